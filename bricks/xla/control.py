"""Lowerings of conditions, checks, printing and inner graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from aesara import gradient
from aesara.compile.builders import OpFromGraph
from aesara.graph.basic import Apply
from aesara.ifelse import IfElse
from aesara.printing import Print
from aesara.raise_op import CheckAndRaise

from bricks.xla.errors import GraphError, describe_value
from bricks.xla.lowering import Context, is_known, lowering


@lowering(IfElse, fold=False)
def lower_ifelse(op: IfElse, node: Apply, context: Context) -> Callable:
    """Choose between two groups of values that are there anyway, or by a known condition.

    What only one of them needs is not computed before, and is chosen by the
    :class:`~bricks.xla.evaluation.Evaluator`.
    """

    def choose(condition: Any, yes: Any, no: Any) -> Any:
        if numpy.shape(yes) != numpy.shape(no):
            raise GraphError(
                f"the branches of an ifelse have shapes {numpy.shape(yes)} and {numpy.shape(no)}; "
                "XLA needs equal ones"
            )
        if is_known(yes) and is_known(no) and numpy.array_equal(yes, no):
            return yes
        return jnp.where(jnp.asarray(condition) != 0, yes, no)

    def ifelse(condition: Any, *branches: Any) -> Any:
        yes, no = branches[: op.n_outs], branches[op.n_outs :]
        if is_known(condition):
            results = yes if bool(condition) else no
        else:
            results = tuple(choose(condition, *pair) for pair in zip(yes, no, strict=True))
        return results if op.n_outs > 1 else results[0]

    return ifelse


@lowering(CheckAndRaise, fold=False)
def lower_check(op: CheckAndRaise, node: Apply, context: Context) -> Callable:
    """Pass a value on if conditions hold; known ones are looked at while tracing.

    Those are about shapes, so the error says which shape the value has.
    """

    def check(value: Any, *conditions: Any) -> Any:
        for condition in conditions:
            got = f" Got {describe_value(value)}." if is_known(condition) else ""
            context.check(condition, op.exc_type(f"{op.msg}{got}"))
        return value

    return check


@lowering(Print, fold=False)
def lower_print(op: Print, node: Apply, context: Context) -> Callable:
    """Call what the operation calls, with the value and in order, each time it is computed."""

    def call(value: Any) -> None:
        op.global_fn(op, numpy.asarray(value))

    def show(value: Any) -> Any:
        jax.debug.callback(call, jnp.asarray(value), ordered=True)
        return value

    return show


@lowering(OpFromGraph, fold=False)
def lower_inner_graph(op: OpFromGraph, node: Apply, context: Context) -> Callable:
    """Compute an inner graph."""
    function = context.function_of(op.fgraph)

    def inner_graph(*operands: Any) -> Any:
        results = function(*operands)
        return tuple(results) if len(results) > 1 else results[0]

    return inner_graph


@lowering(
    gradient.ConsiderConstant,
    gradient.DisconnectedGrad,
    gradient.GradClip,
    gradient.GradScale,
    gradient.UndefinedGrad,
    gradient.ZeroGrad,
)
def lower_gradient_marker(op: Any, node: Apply, context: Context) -> Callable:
    """Pass the value on; these operations only change gradients."""
    return lambda x: x
