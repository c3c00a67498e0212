"""The shapes of a graph's variables, worked out when a rewrite asks for one.

Aesara works out the shape of every variable as soon as a rewrite makes it, once more for each
scan that a rewrite touches, and writes a length as the arithmetic that C would do. Most of these
shapes nobody ever asks for, and where XLA compiles, all lengths are plain integers while the graph
is traced. So here a shape is worked out when it is wanted, and what takes many nodes to write in
Aesara's operations is one of ours: the length of a slice, and the one length that operands share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.features import AlreadyThere
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.graph.rewriting.basic import GraphRewriter, node_rewriter
from aesara.scan.op import Scan
from aesara.scan.utils import Validator
from aesara.tensor.basic import as_tensor_variable, constant
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.exceptions import ShapeError
from aesara.tensor.rewriting.shape import ShapeFeature
from aesara.tensor.shape import Shape_i
from aesara.tensor.subtensor import (
    AdvancedSubtensor,
    Subtensor,
    get_idx_list,
    indexed_result_shape,
)
from aesara.tensor.type import lscalar
from aesara.tensor.type_other import NoneTypeT, SliceConstant, SliceType

from bricks.xla.errors import GraphError
from bricks.xla.lowering import Context, known_ints, lowering

__all__ = ["LazyShapes", "ShapesOnDemand", "SharedLength", "SliceLength", "drop_equal_lengths"]

_Shape = tuple[Variable, ...] | None


def _length(value: Any) -> Variable:
    """Make a length of the graph, an int64 of no axes."""
    if isinstance(value, Variable):
        value = as_tensor_variable(value)
        return value if value.type.dtype == "int64" else value.astype("int64")
    return constant(int(value), dtype="int64", ndim=0)


def _apply(op: Op, *inputs: Variable) -> Variable:
    """Return the one output of an operation."""
    return op.make_node(*inputs).outputs[0]


class _LengthOp(Op):
    """An operation from integers to a length, which is computed while the graph is traced."""

    def make_node(self, *lengths: Any) -> Apply:
        """Apply the operation to integers."""
        return Apply(self, list(map(_length, lengths)), [lscalar()])

    def compute(self, *lengths: int) -> int:
        """Return the result for integers of Python."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it is computed.")

    def perform(
        self, node: Apply, inputs: Sequence[Any], output_storage: Any, params: Any = None
    ) -> None:
        """Compute the length."""
        result = self.compute(*map(int, inputs))
        output_storage[0][0] = node.outputs[0].type.filter(result)

    def infer_shape(self, fgraph: FunctionGraph, node: Apply, shapes: Any) -> list[tuple]:
        """Tell that a length has no axes."""
        return [()]


class SliceLength(_LengthOp):
    """How many elements a slice takes of an axis.

    Parameters
    ----------
    start, stop, step : int, None or True
        The parts of the slice: numbers that never change, None where there is none, and True for
        those that are inputs, in this order, behind the length of the axis.
    """

    __props__ = ("start", "stop", "step")

    def __init__(self, start: Any, stop: Any, step: Any):
        self.start, self.stop, self.step = start, stop, step

    def compute(self, *lengths: int) -> int:
        """Return the number of elements."""
        values = iter(lengths[1:])
        parts = (self.start, self.stop, self.step)
        index = slice(*(next(values) if part is True else part for part in parts))
        return len(range(*index.indices(lengths[0])))


class SharedLength(_LengthOp):
    """The one length of operands that meet along an axis; it is refused that they differ."""

    __props__ = ()

    def compute(self, *lengths: int) -> int:
        """Return the length, if it is one."""
        if len(set(lengths)) > 1:
            listed = " and ".join(map(str, dict.fromkeys(lengths)))
            raise GraphError(
                f"operands of lengths {listed} meet along one axis. An axis of length 1 is "
                "repeated only where its type says so: declare it, for example with "
                "aesara.tensor.addbroadcast(x, axis), or give arrays of equal lengths"
            )
        return lengths[0]


@lowering(_LengthOp)
def lower_length(op: _LengthOp, node: Apply, context: Context) -> Callable:
    """Compute a length, which must be known."""
    return lambda *lengths: op.compute(*known_ints(lengths, "a length"))


@node_rewriter([SharedLength])
def drop_equal_lengths(fgraph: FunctionGraph, node: Apply) -> Any:
    """Leave lengths out that turned out to be those of other operands.

    Parameters
    ----------
    fgraph : FunctionGraph
        The graph.
    node : Apply
        A shared length.

    Returns
    -------
    list of Variable, or bool
        What takes the place of its output; False if it stays.
    """
    different = _different(node.inputs)
    if different == node.inputs:
        return False
    return [different[0] if len(different) == 1 else SharedLength()(*different)]


def _key(length: Variable) -> Any:
    """Return what is equal for lengths that are surely equal."""
    if isinstance(length, Constant):
        return int(length.data)
    owner = length.owner
    if owner is None or not isinstance(owner.op, _LengthOp | Shape_i):
        return length
    is_of_lengths = isinstance(owner.op, _LengthOp)
    return owner.op, *(map(_key, owner.inputs) if is_of_lengths else owner.inputs)


def _shared(length: Variable) -> list[Variable]:
    """List the lengths that one is known to be equal to, or itself."""
    owner = length.owner
    is_shared = owner is not None and isinstance(owner.op, SharedLength)
    return owner.inputs if is_shared else [length]


def _different(lengths: Sequence[Variable]) -> list[Variable]:
    """List each length once."""
    different: dict[Any, Variable] = {}
    for length in lengths:
        for one in _shared(length):
            different.setdefault(_key(one), one)
    return list(different.values())


def _one_length(lengths: Sequence[Variable]) -> Variable:
    """Return the length that operands share."""
    different = _different(lengths)
    if len(different) == 1:
        return different[0]
    for length in lengths:
        if set(_shared(length)) >= set(different):
            return length
    return _apply(SharedLength(), *different)


def _elemwise_shapes(node: Apply, shapes: Sequence[_Shape]) -> list[_Shape]:
    """Infer the shape of an operation element by element."""
    types = [x.type for x in node.inputs]
    lengths: list[Variable] = []
    for axis, static in enumerate(node.outputs[0].type.shape):
        if static is not None:
            lengths.append(_length(static))
            continue
        meeting = [
            shape[axis]
            for shape, type_ in zip(shapes, types, strict=True)
            if shape is not None and type_.shape[axis] != 1
        ]
        lengths.append(_one_length(meeting))
    return [tuple(lengths)] * len(node.outputs)


def _part(value: Any) -> tuple[Any, list[Variable]]:
    """Split a part of a slice into what :class:`SliceLength` holds and what it is given."""
    if isinstance(value, Constant):
        value = value.data
    if value is None or not isinstance(value, Variable):
        return (None if value is None else int(value)), []
    return True, [value]


def _slice_length(index: slice, length: Variable) -> Variable:
    """Return how many elements a slice takes."""
    parts = [_part(part) for part in (index.start, index.stop, index.step)]
    fixed = [part for part, _ in parts]
    if fixed in ([None, None, None], [0, None, None]):
        return length
    op = SliceLength(*fixed)
    given = [variable for _, variables in parts for variable in variables]
    if not given and isinstance(length, Constant):
        return _length(op.compute(int(length.data)))
    return _apply(op, length, *given)


def _subtensor_shapes(node: Apply, shapes: Sequence[_Shape]) -> list[_Shape]:
    """Infer the shape of a part that is taken by slices and places."""
    (lengths, *_) = shapes
    assert lengths is not None
    indices = list(get_idx_list(node.inputs, node.op.idx_list))
    indices += [slice(None)] * (len(lengths) - len(indices))
    return [
        tuple(
            _slice_length(index, length)
            for index, length in zip(indices, lengths, strict=True)
            if isinstance(index, slice)
        )
    ]


def _advanced_shapes(node: Apply, shapes: Sequence[_Shape]) -> list[_Shape]:
    """Infer the shape of a part that is taken by arrays of places, and perhaps slices."""
    indices: list[Any] = []
    for index, shape in zip(node.inputs[1:], shapes[1:], strict=True):
        if getattr(index.type, "dtype", None) == "bool":
            raise ShapeError("How many elements a mask selects is not known.")
        # Aesara takes a slice that became a constant for one that selects all.
        given = _plain_slice(index.data) if isinstance(index, SliceConstant) else index
        indices.append(given if isinstance(index.type, SliceType | NoneTypeT) else shape)
    return [indexed_result_shape(shapes[0], indices, indices_are_shapes=True)]


def _plain_slice(index: slice) -> slice:
    parts = (index.start, index.stop, index.step)
    return slice(*(None if part is None else int(part) for part in parts))


def _scan_shapes(node: Apply, shapes: Sequence[_Shape]) -> list[_Shape]:
    """Infer the shapes of a scan's results: those of their buffers, if they have one.

    Only an element of a collected result has a shape that must be looked for in the inner graph.
    """
    info = node.op.info
    first = 1 + info.n_seqs
    num_buffers = info.n_mit_mot + info.n_mit_sot + info.n_sit_sot
    results = list(shapes[first : first + num_buffers])
    first += num_buffers
    if info.n_nit_sot:
        results += _collected_shapes(node, shapes)
    results += shapes[first : first + info.n_shared_outs]
    if not info.as_while:
        return results
    return [
        None if shape is None else (_apply(Shape_i(0), out), *shape[1:])
        for out, shape in zip(node.outputs, results, strict=True)
    ]


def _collected_shapes(node: Apply, shapes: Sequence[_Shape]) -> list[_Shape]:
    """Infer the shapes of a scan's collected results."""
    op = node.op
    inner = LazyShapes()
    inner.on_attach(FunctionGraph([], [], clone=False))
    for variable, shape in zip(op.inner_inputs, _shapes_in_a_step(op, shapes), strict=True):
        inner.set_shape(variable, shape)
    constants = op.inner_non_seqs(op.inner_inputs)
    validator = Validator(
        valid=[length for shape in shapes if shape is not None for length in shape],
        invalid=op.inner_inputs,
        valid_equivalent=dict(zip(constants, op.outer_non_seqs(node.inputs), strict=True)),
    )
    results: list[_Shape] = []
    for steps, element, output in zip(
        op.outer_nitsot(node.inputs),
        op.inner_nitsot_outs(op.inner_outputs),
        op.outer_nitsot_outs(node.outputs),
        strict=True,
    ):
        shape = inner.shape_of[element]
        found = [validator.check(length) for length in shape or ()]
        lengths = [
            _apply(Shape_i(axis), output) if outside is None else outside[0]
            for axis, outside in enumerate(found, start=1)
        ]
        results.append(None if shape is None else (steps, *lengths))
    return results


def _shapes_in_a_step(op: Scan, shapes: Sequence[_Shape]) -> list[_Shape]:
    """List the shapes of what a step of a scan reads."""
    info = op.info
    parts = iter(shapes[1:])
    known = [_without_first_axis(next(parts)) for _ in range(info.n_seqs)]
    for taps in (*info.mit_mot_in_slices, *info.mit_sot_in_slices, *info.sit_sot_in_slices):
        known += [_without_first_axis(next(parts))] * len(taps)
    known += [next(parts) for _ in range(info.n_shared_outs)]
    for _ in range(info.n_nit_sot):
        next(parts)
    return [*known, *parts]


def _without_first_axis(shape: _Shape) -> _Shape:
    return None if shape is None else shape[1:]


class _ShapesWhenAsked(dict):
    """The shapes that are known; asking for another one works it out."""

    def __init__(self, feature: LazyShapes):
        super().__init__()
        self._feature = feature

    def __missing__(self, variable: Variable) -> _Shape:
        self._feature.work_out(variable)
        return self[variable]


class LazyShapes(ShapeFeature):
    """What Aesara's rewrites ask for the shapes of a graph's variables.

    Attributes
    ----------
    shape_of : mapping of variable to tuple of variables, or None
        A shape is worked out when it is first asked for.
    """

    def on_attach(self, fgraph: Any) -> None:
        """Begin to know a graph."""
        if hasattr(fgraph, "shape_feature"):
            raise AlreadyThere("The graph knows its shapes already.")
        fgraph.shape_feature = self
        self.shape_of = _ShapesWhenAsked(self)
        self.scheduled = {}
        self.shape_of_reverse_index = {}
        self._fgraph = fgraph
        #: For a variable, the one that it took the place of.
        self._predecessor: dict[Variable, Variable] = {}

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        """Leave a new node alone until its shape is asked for."""

    def work_out(self, variable: Variable) -> None:
        """Work out the shape of a variable, and of all that it needs.

        Parameters
        ----------
        variable : aesara variable
            Of the graph, or of one that was in it.
        """
        waiting = [variable]
        while waiting:
            last = waiting[-1]
            if last in self.shape_of:
                waiting.pop()
                continue
            missing = [x for x in self._needed(last) if x not in self.shape_of]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if not self._take_over(last):
                self._infer(last)

    def _needed(self, variable: Variable) -> Sequence[Variable]:
        """List the variables whose shapes must be known first."""
        if variable.owner is None or self._predecessor.get(variable) in self.shape_of:
            return ()
        return variable.owner.inputs

    def _take_over(self, variable: Variable) -> bool:
        """Take the shape of a variable's predecessor, if it is known and says something."""
        before = self._predecessor.get(variable)
        shape = None if before is None else self.shape_of.get(before)
        if before is None or shape is None:
            return False
        if variable in shape or any(_is_about(length, before) for length in shape):
            return False
        self.set_shape(variable, shape)
        return True

    def _infer(self, variable: Variable) -> None:
        """Infer the shapes of a variable, and of those that are computed with it."""
        node = variable.owner
        if node is None:
            self.init_r(variable)
            return
        inferred = self.get_node_infer_shape(self._fgraph, node)
        for output, shape in zip(node.outputs, inferred, strict=True):
            if output not in self.shape_of:
                self.set_shape(output, None if shape is None else tuple(map(_length, shape)))

    def get_node_infer_shape(self, fgraph: FunctionGraph, node: Apply) -> list[_Shape]:
        """Infer the shapes of a node's outputs from those of its inputs.

        Parameters
        ----------
        fgraph : FunctionGraph
        node : Apply

        Returns
        -------
        list of tuples of variables
            One for each output; None for what is no tensor.
        """
        own = _OWN_RULES.get(type(node.op))
        if own is None:
            return super().get_node_infer_shape(fgraph, node)
        shapes = [self.shape_of[x] for x in node.inputs]
        try:
            return own(node, shapes)
        except ShapeError:
            return self.default_infer_shape(fgraph, node, shapes)

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Any,
        i: int,
        var: Variable,
        new_var: Variable,
        reason: Any = None,
    ) -> None:
        """Note that one variable takes the place of another, so that their shapes are equal."""
        clients = [(node, i), *fgraph.clients[var]]
        is_asked_for = any(isinstance(getattr(one, "op", None), Shape_i) for one, _ in clients)
        if is_asked_for or self.shape_of_reverse_index.get(var):
            _ = self.shape_of[var], self.shape_of[new_var]
            super().on_change_input(fgraph, node, i, var, new_var, reason)
            return
        if new_var not in self.shape_of:
            self._predecessor.setdefault(new_var, var)
        # What was replaced is put back after a rewrite that failed.
        for client in [one for one, new in self.scheduled.items() if new is var]:
            del self.scheduled[client]

    def clone(self) -> LazyShapes:
        """Return a new one that knows nothing."""
        return type(self)()


def _is_about(length: Variable, variable: Variable) -> bool:
    """Tell whether a length only says that it is that of a variable."""
    owner = length.owner
    return owner is not None and isinstance(owner.op, Shape_i) and owner.inputs[0] is variable


_OWN_RULES: dict[type, Callable] = {
    Elemwise: _elemwise_shapes,
    Subtensor: _subtensor_shapes,
    AdvancedSubtensor: _advanced_shapes,
    Scan: _scan_shapes,
}


class ShapesOnDemand(GraphRewriter):
    """Lets a graph know its shapes, for the rewrites that come after."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the shapes."""
        fgraph.attach_feature(LazyShapes())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Change nothing."""
