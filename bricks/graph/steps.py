"""What the step of a loop has to do with the graph around it.

A replacement in the step may use what differs from step to step: :func:`element_of_step` stands for
the element of a sequence outside that belongs to the step. :class:`bricks.graph.rewriting.Rewriter`
makes such sequences further sequences of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aesara import tensor
from aesara.compile.builders import infer_shape
from aesara.graph.basic import Apply, Variable, clone_replace
from aesara.graph.op import Op
from aesara.scan.op import Scan
from aesara.scan.utils import Validator
from aesara.tensor.shape import Shape, Shape_i
from aesara.tensor.type import TensorType

from bricks.aesara_expressions import lengths_of
from bricks.graph.order import nodes_below

__all__ = ["ElementOfStep", "element_of_step", "inner_variables", "lengths_outside", "loops_around"]


class ElementOfStep(Op):
    """The element of a sequence that belongs to a step; stands in replacements only."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Apply it to a sequence of axes (time, ...)."""
        sequence = tensor.as_tensor_variable(*inputs)
        return Apply(self, [sequence], [TensorType(sequence.dtype, sequence.type.shape[1:])()])

    def perform(
        self, node: Apply, inputs: Sequence[Any], output_storage: list[list], params: Any = None
    ) -> None:
        """Refuse to be computed: outside of a loop there is no step."""
        raise ValueError(
            "element_of_step: it means something only in a replacement, given to "
            "`ComputationGraph.replace`, of a variable of the step of a loop."
        )


def element_of_step(sequence: Any) -> Any:
    """Return what stands for the element of a sequence that belongs to a step of a loop.

    Parameters
    ----------
    sequence : Variable of axes (time, ...)
        A variable of the graph around the loop, with an element for each step, in the order in
        which the loop takes its steps.

    Returns
    -------
    Variable of axes (...)
        To be used in the replacement of a variable of the step. In a loop in a loop it takes two:
        the inner one's element of the outer one's element.

    Examples
    --------
    >>> import aesara, numpy
    >>> from aesara import tensor
    >>> from bricks import Tanh, xla
    >>> from bricks.filter import VariableFilter
    >>> from bricks.graph import ComputationGraph
    >>> from bricks.roles import OUTPUT
    >>> x, factors = tensor.vector("x"), tensor.vector("factors")
    >>> y, _ = aesara.scan(lambda element: Tanh().apply(element), sequences=[x])
    >>> graph = ComputationGraph(y)
    >>> (inner,) = VariableFilter(roles=[OUTPUT])(graph.scan_variables)
    >>> new = graph.replace({inner: inner * element_of_step(factors)})
    >>> function = xla.function([x, factors], new.outputs[0])
    >>> function(numpy.full(3, 100, "float32"), numpy.arange(3, dtype="float32")).tolist()
    [0.0, 1.0, 2.0]
    """
    element: Any = ElementOfStep()(sequence)
    return element


def inner_variables(op: Scan) -> set[Variable]:
    """Return the variables of the step of a loop, and of the loops in it.

    Parameters
    ----------
    op : Scan
        The loop.

    Returns
    -------
    set of Variable
        The variables.
    """
    nodes = nodes_below(op.inner_outputs)
    found = {variable for node in nodes for variable in [*node.inputs, *node.outputs]}
    found.update(op.inner_inputs, op.inner_outputs)
    for node in nodes:
        if isinstance(node.op, Scan):
            found |= inner_variables(node.op)
    return found


def loops_around(variable: Variable, nodes: Iterable[Apply]) -> list[Apply]:
    """Return the loops in whose step a variable stands.

    Parameters
    ----------
    variable : Variable
        Of the graph, or of a step.
    nodes : iterable of Apply
        The nodes of the graph.

    Returns
    -------
    list of Apply
        The outermost first; empty for a variable that is in no step.
    """
    for node in nodes:
        if isinstance(node.op, Scan) and variable in inner_variables(node.op):
            return [node, *loops_around(variable, nodes_below(node.op.inner_outputs))]
    return []


def lengths_outside(variable: Any, loops: Sequence[Apply], *, over_steps: bool = False) -> list:
    """Return the lengths of the axes of a variable of a step, as variables outside of its loops.

    Parameters
    ----------
    variable : Variable
        Of the step.
    loops : sequence of Apply
        The loops around it, from :func:`loops_around`; at least one.
    over_steps : bool, optional
        Whether to put the number of steps of each loop in front, that of the outermost first.

    Returns
    -------
    list of int or Variable
        The lengths.

    Raises
    ------
    ValueError
        If a length depends on what a step computes.
    """
    lengths = lengths_of(variable)
    for loop in reversed(loops):
        around = _Around(loop)
        lengths = [one if isinstance(one, int) else around.value(one) for one in lengths]
        if None in lengths:
            raise ValueError(
                f"{variable}: how long it is depends on what the step of its loop computes, so "
                "nothing of its shape can be drawn before the loop. Choose another variable."
            )
        if over_steps:
            lengths = [loop.inputs[0], *lengths]
    return lengths


class _Around:
    """What lies around a loop, for lengths in its step.

    Parameters
    ----------
    loop : Apply
        The node of the loop.
    """

    def __init__(self, loop: Apply) -> None:
        op: Any = loop.op
        self._inner = op.inner_inputs
        outer_of = op.get_oinp_iinp_iout_oout_mappings()["outer_inp_from_inner_inp"]
        outer = [loop.inputs[outer_of[place]] for place in range(len(self._inner))]
        info = op.info
        num_sliced = info.n_seqs + info.n_mit_mot + info.n_mit_sot + info.n_sit_sot
        is_sliced = [outer_of[place] <= num_sliced for place in range(len(self._inner))]
        self._shapes = [
            _lengths(variable)[int(sliced) :] if isinstance(variable.type, TensorType) else None
            for variable, sliced in zip(outer, is_sliced, strict=True)
        ]
        everything = zip(self._inner, outer, is_sliced, strict=True)
        self._constant = {inner: variable for inner, variable, sliced in everything if not sliced}

    def value(self, number: Any) -> Any:
        """Return a number of the step as one outside, or None if there is none."""
        of_shapes = {
            node.outputs[0]: node.op
            for node in nodes_below([number])
            if isinstance(node.op, Shape | Shape_i)
        }
        measured = [output.owner.inputs[0] for output in of_shapes]
        found = infer_shape(measured, self._inner, self._shapes)
        replaced = {
            output: lengths[op.i] if isinstance(op, Shape_i) else tensor.stack(lengths)
            for (output, op), lengths in zip(of_shapes.items(), found, strict=True)
        }
        if replaced:
            number = clone_replace(number, replace=list(replaced.items()), rebuild_strict=False)
        valid = [length for shape in self._shapes for length in shape or ()]
        validator = Validator(valid, invalid=self._inner, valid_equivalent=self._constant)
        checked = validator.check(number)
        return None if checked is None else checked[0]


def _lengths(variable: Any) -> tuple[Any, ...]:
    return tuple(
        Shape_i(axis)(variable) if known is None else tensor.constant(known, dtype="int64")
        for axis, known in enumerate(variable.type.shape)
    )
