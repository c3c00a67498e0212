"""Logarithms of probabilities without a detour through probabilities that have become 0 or 1.

A cost is given probabilities, and should be computed from what a sigmoid or a softmax was applied
to. That is found by looking through operations that only move elements: copies (applications of
bricks make them), reshapes, transpositions, indices. But the probabilities may still be replaced in
the graph, by dropout or for a test; then the cost must be that of the replacement. So both costs
are written, and which one holds is decided where the gradient is built and where the graph is
compiled: by :class:`Preferred`, which looks at what the probabilities come from by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aesara import scalar, tensor
from aesara.compile.mode import optdb
from aesara.gradient import DisconnectedType
from aesara.graph.basic import Apply
from aesara.graph.op import Op
from aesara.graph.rewriting.basic import in2out, node_rewriter
from aesara.scan.op import Scan
from aesara.tensor.elemwise import DimShuffle, Elemwise
from aesara.tensor.shape import Reshape, SpecifyShape
from aesara.tensor.special import LogSoftmax, Softmax
from aesara.tensor.subtensor import Subtensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.xla.rematerialization import Recomputed
from bricks.xla.rewriting import rewrite_step

__all__ = ["Preferred", "log_softmax_of", "logits_of", "unless_replaced"]

#: Their first input holds the elements that their output holds, in other places.
_MOVES = (DimShuffle, Reshape, SpecifyShape, Subtensor)


def logits_of(probabilities: Variable) -> Variable | None:
    """What a sigmoid was applied to, moved as its output was.

    Parameters
    ----------
    probabilities : Variable
        Any.

    Returns
    -------
    Variable of the same shape, or None
        None if these are not the output of a sigmoid.
    """
    return _seen_through(probabilities, _logits)


def log_softmax_of(probabilities: Variable) -> Variable | None:
    """Logarithms of the output of a softmax, moved as the output was.

    Parameters
    ----------
    probabilities : Variable
        Any.

    Returns
    -------
    Variable of the same shape, or None
        None if these are not the output of a softmax.
    """
    return _seen_through(probabilities, _log_softmax)


def unless_replaced(
    exact: Variable, otherwise: Variable, probabilities: Variable, source: Variable
) -> Any:
    """One of two ways to compute the same from probabilities, chosen when the graph is compiled.

    Parameters
    ----------
    exact : Variable
        Computed from `source`.
    otherwise : Variable
        Computed from `probabilities`; of the same type.
    probabilities : Variable
        What may be replaced in the graph.
    source : Variable
        What `logits_of` or `log_softmax_of` gave for them.

    Returns
    -------
    Variable
        `exact` as long as `probabilities` are what `source` tells; `otherwise` if not.
    """
    return Preferred()(exact, otherwise, probabilities, source)


class Preferred(Op):
    """The first input if the third still comes from the fourth; otherwise the second."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Take the inputs of `unless_replaced`.

        Parameters
        ----------
        *inputs : Variable
            Four.

        Returns
        -------
        Apply
        """
        return Apply(self, list(inputs), [inputs[1].type()])

    def choose(self, inputs: Sequence[Any]) -> int:
        """Say which input holds.

        Parameters
        ----------
        inputs : sequence of Variable
            Of the node.

        Returns
        -------
        {0, 1}
        """
        return 0 if _comes_from(inputs[2], inputs[3]) else 1

    def perform(self, node: Apply, inputs: Any, output_storage: Any, params: Any = None) -> None:
        """Return the value that holds."""
        output_storage[0][0] = inputs[self.choose(node.inputs)].copy()

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Connect the output with the input that holds.

        Parameters
        ----------
        node : Apply
            Of this operation.

        Returns
        -------
        list of list of bool
            For each input, whether the output depends on it.
        """
        return [[place == self.choose(node.inputs)] for place in range(4)]

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        """Hand the gradient to the input that holds."""
        grads = [DisconnectedType()() for _ in inputs]
        grads[self.choose(inputs)] = output_grads[0]
        return grads

    def R_op(self, inputs: Any, eval_points: Any) -> list[Any]:
        """Take the directional derivative of the input that holds."""
        return [eval_points[self.choose(inputs)]]

    def infer_shape(self, fgraph: Any, node: Apply, shapes: Any) -> list[Any]:
        """Give the shape of the output, which is that of both ways.

        Parameters
        ----------
        fgraph : FunctionGraph
            Where the node stands.
        node : Apply
            Of this operation.
        shapes : list of tuple
            Of the inputs.

        Returns
        -------
        list of tuple
        """
        return [shapes[1]]


@node_rewriter([Preferred])
def _decide(fgraph: Any, node: Any) -> list[Variable]:
    return [node.outputs[0].type.filter_variable(node.inputs[node.op.choose(node.inputs)])]


@node_rewriter([Scan])
def _decide_in_step(fgraph: Any, node: Any) -> Any:
    return rewrite_step(node, Preferred, _DECIDE)


# First of all rewrites: later ones change what the probabilities come from.
_DECIDE = in2out(_decide, _decide_in_step, name="bricks_preferred")
optdb.register("bricks_preferred", _DECIDE, "fast_run", "fast_compile", position=-1)


def _seen_through(variable: Variable, source_of: Callable[[Apply], Any]) -> Any:
    node = _without_copies(variable).owner
    if node is None or not isinstance(node.op, _MOVES):
        return None if node is None else source_of(node)
    source = _seen_through(node.inputs[0], source_of)
    return None if source is None else node.op(source, *node.inputs[1:])


def _comes_from(variable: Any, source: Any) -> bool:
    """Tell whether `_seen_through` would give this source."""
    node = _without_copies(variable).owner
    if node is None:
        return False
    if not isinstance(node.op, _MOVES):
        log_softmax, above = _log_softmax(node), source.owner
        if log_softmax is None:
            return _logits(node) is source
        return above is not None and (above.op, above.inputs[0]) == (
            log_softmax.owner.op,
            node.inputs[0],
        )
    moved = source.owner
    return (
        moved is not None
        and moved.op == node.op
        and all(a is b for a, b in zip(moved.inputs[1:], node.inputs[1:], strict=True))
        and _comes_from(node.inputs[0], moved.inputs[0])
    )


def _without_copies(variable: Any) -> Any:
    # Applications copy their inputs and outputs, and what is computed again is passed on.
    while variable.owner is not None and _is_copy(variable.owner.op):
        variable = variable.owner.inputs[variable.index]
    return variable


def _is_copy(op: Op) -> bool:
    return op == tensor.tensor_copy or isinstance(op, Recomputed)


def _logits(node: Any) -> Any:
    is_sigmoid = isinstance(node.op, Elemwise) and node.op.scalar_op == scalar.sigmoid
    return node.inputs[0] if is_sigmoid else None


def _log_softmax(node: Any) -> Any:
    return LogSoftmax(axis=node.op.axis)(node.inputs[0]) if isinstance(node.op, Softmax) else None
