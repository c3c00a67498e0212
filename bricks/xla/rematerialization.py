"""Values that are computed a second time for their gradient, instead of being kept for it.

:class:`Recomputed` stands behind some values of a graph and passes them on. It hides from gradients
how they were computed: its own gradient computes all that lies between its inputs and those values
again, from inputs that stand behind a :class:`Barrier`, and goes back through the copy. So what
lies between is there for a moment twice, and not from the first time to the second. As the graph in
front of it stays as it is, all that looks at graphs or replaces parts of them works as before.

A compiler that sees one expression twice computes it once, which would undo all that. The barrier
is what it cannot see through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import aesara
import jax
import jax.numpy as jnp
from aesara.compile.mode import optdb
from aesara.compile.sharedvalue import SharedVariable
from aesara.gradient import DisconnectedType
from aesara.graph.basic import (
    Apply,
    Constant,
    Variable,
    io_connection_pattern,
    io_toposort,
)
from aesara.graph.op import Op
from aesara.graph.rewriting.basic import in2out, node_rewriter
from aesara.scan.op import Scan
from aesara.tensor.type import discrete_dtypes
from jax import lax

from bricks.xla.errors import GraphError, describe_variable
from bricks.xla.lowering import Context, is_known, lowering
from bricks.xla.rewriting import rewrite_step

__all__ = ["Barrier", "Recomputed", "behind"]


class _Passing(Op):
    """Passes the first of its inputs on."""

    view_map: dict[int, list[int]] = {}

    def __init__(self, num_outputs: int):
        self.num_outputs = num_outputs
        self.view_map = {place: [place] for place in range(num_outputs)}

    def make_node(self, *inputs: Variable) -> Apply:
        """Make a node.

        Parameters
        ----------
        *inputs : variable
            Those that are passed on, then the others.

        Returns
        -------
        Apply
        """
        return Apply(self, list(inputs), [x.type() for x in inputs[: self.num_outputs]])

    def perform(self, node: Apply, inputs: Any, output_storage: Any, params: Any = None) -> None:
        """Pass values on."""
        for storage, value in zip(output_storage, inputs, strict=False):
            storage[0] = value

    def infer_shape(self, fgraph: Any, node: Apply, shapes: Any) -> list[Any]:
        """Give the shapes of the outputs, which are those of the first inputs.

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
        return list(shapes[: self.num_outputs])

    def R_op(self, inputs: Any, eval_points: Any) -> list[Any]:
        """Pass directional derivatives on."""
        return list(eval_points[: self.num_outputs])


class Barrier(_Passing):
    """Passes values on that a compiler must not take for equal to what they were before.

    Parameters
    ----------
    num_outputs : int
        How many inputs there are; all are passed on.
    num_guarded : int
        How many of them are guarded: none is passed on before all others are known.
    """

    __props__ = ("num_outputs", "num_guarded")

    def __init__(self, num_outputs: int, num_guarded: int):
        super().__init__(num_outputs)
        self.num_guarded = num_guarded

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Connect each output with its own input only.

        Parameters
        ----------
        node : Apply
            Of this operation.

        Returns
        -------
        list of list of bool
            For each input, whether each output depends on it.
        """
        places = range(self.num_outputs)
        return [[place == other for other in places] for place in places]

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        """Pass gradients back."""
        return [
            DisconnectedType()() if x.type.dtype in discrete_dtypes else gradient
            for x, gradient in zip(inputs, output_grads, strict=True)
        ]


def behind(value: Variable, other: Variable) -> Variable:
    """Return a value that is not there before another one is.

    Parameters
    ----------
    value, other : variable
        Tensors.

    Returns
    -------
    variable
        Equal to `value`.
    """
    late, _ = Barrier(2, 1).make_node(value, other).outputs
    late.name = value.name
    return late


class Recomputed(_Passing):
    """Passes values on whose gradient computes them again, from the further inputs.

    Parameters
    ----------
    num_outputs : int
        How many values are passed on. The further inputs of a node are all that these values are
        computed from.
    """

    __props__ = ("num_outputs",)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Connect the values with what they are computed from, and not with themselves.

        Parameters
        ----------
        node : Apply
            Of this operation.

        Returns
        -------
        list of list of bool
            For each input, whether each output depends on it.
        """
        values, given = self._parts(node.inputs)
        own = [[False] * len(values) for _ in values]
        is_smooth = [x.type.dtype not in discrete_dtypes for x in given]
        pattern = io_connection_pattern(given, values)
        return own + [
            [smooth and connected for connected in row]
            for smooth, row in zip(is_smooth, pattern, strict=True)
        ]

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        """Compute the values again, and go back from there."""
        values, given = self._parts(inputs)
        places = [
            place
            for place, gradient in enumerate(output_grads)
            if not isinstance(gradient.type, DisconnectedType)
        ]
        gradients = [output_grads[place] for place in places]
        again, gradients = _behind_barrier(given, gradients)
        copies = _compute_again([values[place] for place in places], given, again)
        smooth = [x for x in again if x.type.dtype not in discrete_dtypes]
        slopes: Any = aesara.grad(
            None,
            smooth,
            known_grads=dict(zip(copies, gradients, strict=True)),
            disconnected_inputs="ignore",
            return_disconnected="disconnected",
            null_gradients="return",
        )
        found = dict(zip(smooth, slopes, strict=True))
        nothing = [DisconnectedType()() for _ in values]
        return nothing + [found.get(x, DisconnectedType()()) for x in again]

    def _parts(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return list(inputs[: self.num_outputs]), list(inputs[self.num_outputs :])


def _behind_barrier(
    given: Sequence[Variable], gradients: Sequence[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """Put what values are computed from, and the gradients of the values, behind a barrier.

    Parameters are left in front of it, as they are kept anyway, and so are single integers, because
    they may be lengths. If there is nothing else, parameters are put behind it.
    """
    guarded = [x for x in given if not _is_parameter(x) and not _is_length(x)]
    guarded = guarded or [x for x in given if not _is_length(x)]
    if not guarded:
        return list(given), list(gradients)
    barrier = Barrier(len(guarded) + len(gradients), len(guarded))
    outputs = barrier.make_node(*guarded, *gradients).outputs
    for new, old in zip(outputs, guarded, strict=False):
        new.name = old.name
    behind = dict(zip(guarded, outputs, strict=False))
    return [behind.get(x, x) for x in given], outputs[len(guarded) :]


def _is_parameter(variable: Variable) -> bool:
    is_shared = isinstance(variable, SharedVariable)
    return is_shared and variable.type.dtype not in discrete_dtypes


def _is_length(variable: Variable) -> bool:
    return variable.type.ndim == 0 and variable.type.dtype in discrete_dtypes


def _compute_again(
    values: Sequence[Variable], given: Sequence[Variable], again: Sequence[Variable]
) -> list[Variable]:
    """Copy the graph of some values, from what they are computed from to what stands for it."""
    copies = dict(zip(given, again, strict=True))
    for node in io_toposort(given, values):
        for variable in node.inputs:
            if variable.owner is None and variable not in copies:
                _check_needs_no_gradient(variable, values)
        new = node.clone_with_new_inputs([copies.get(x, x) for x in node.inputs])
        copies.update(zip(node.outputs, new.outputs, strict=True))
    # A copy of its own for each, because two values may be one, with a gradient for each.
    found: list[Any] = [copies.get(value, value) for value in values]
    return [value.copy() for value in found]


def _check_needs_no_gradient(variable: Variable, values: Sequence[Variable]) -> None:
    if isinstance(variable, Constant):
        return
    if getattr(variable.type, "dtype", "int8") not in discrete_dtypes:
        raise GraphError(
            f"The gradient of {describe_variable(values[0])} is to compute it again, but "
            f"{describe_variable(variable)}, which it is computed from, came into the graph after "
            "that was said, and would get no gradient. Replace variables first, and call "
            "bricks.graph.rematerialize afterwards."
        )


@node_rewriter([Recomputed])
def _forget(fgraph: Any, node: Any) -> list[Variable]:
    return list(node.inputs[: node.op.num_outputs])


@node_rewriter([Scan])
def _forget_in_step(fgraph: Any, node: Any) -> list[Variable] | None:
    return rewrite_step(node, Recomputed, _FORGET)


# When a graph is compiled its gradients are built, so that nothing is left to say; and what says
# nothing would only keep other rewrites from seeing what it passes on.
_FORGET = in2out(_forget, _forget_in_step, name="bricks_recomputed")
optdb.register("bricks_recomputed", _FORGET, "fast_run", "fast_compile", position=-1)


@lowering(Recomputed, fold=False)
def lower_recomputed(op: Recomputed, node: Apply, context: Context) -> Callable:
    """Pass values on."""

    def recomputed(*operands: Any) -> Any:
        return operands[: op.num_outputs] if op.num_outputs > 1 else operands[0]

    return recomputed


@lowering(Barrier, fold=False)
def lower_barrier(op: Barrier, node: Apply, context: Context) -> Callable:
    """Keep XLA from taking the guarded values for what they were before.

    Known values are lengths, as a rule, and stay known.
    """

    def barrier(*operands: Any) -> Any:
        traced = [place for place, value in enumerate(operands) if not is_known(value)]
        is_guarded = tuple(place < op.num_guarded for place in traced)
        passed = lax.platform_dependent(
            tuple(operands[place] for place in traced),
            cpu=lambda values: _behind_test(values, is_guarded),
            default=lax.optimization_barrier,
        )
        results = list(operands)
        for place, value in zip(traced, passed, strict=True):
            results[place] = value
        return tuple(results) if len(results) > 1 else results[0]

    return barrier


def _behind_test(values: Sequence[jax.Array], is_guarded: Sequence[bool]) -> tuple[jax.Array, ...]:
    """Choose the guarded values or zeros, by a test that always holds and that XLA cannot decide.

    Releases of XLA for the CPU before 0.8 drop their own barriers before they merge what is equal.
    """
    holds = jnp.ones((), bool)
    for value, guarded in zip(values, is_guarded, strict=True):
        if not guarded and value.size:
            holds = holds & _always_holds(value)
    return tuple(
        jnp.where(holds, value, jnp.zeros((), value.dtype)) if guarded else value
        for value, guarded in zip(values, is_guarded, strict=True)
    )


def _always_holds(value: jax.Array) -> jax.Array:
    """Tell that one of two following integers is even."""
    number = lax.convert_element_type(lax.index_in_dim(value.ravel(), 0, keepdims=False), "float32")
    bits = lax.bitcast_convert_type(number, "int32")
    return (bits * (bits + 1)) & 1 == 0
