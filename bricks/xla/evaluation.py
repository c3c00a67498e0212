"""Evaluate an Aesara graph node by node, while JAX traces it.

What depends only on shapes and constants is computed at once, by Aesara's own ``perform``, and
stays a numpy value: so ``arange(x.shape[0])``, slice bounds and the lengths of new arrays are
plain integers when XLA asks for them, and no operation needs a rule of its own for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import HasInnerGraph
from aesara.tensor.type import TensorType
from jax import lax

from bricks.config import config
from bricks.xla.errors import (
    DataDependentShape,
    GraphError,
    UnsupportedOp,
    describe_node,
    describe_value,
)
from bricks.xla.lowering import Context, Lowering, find_lowering, is_known
from bricks.xla.rewriting import rewrite_copy

__all__ = ["Evaluator", "make_context", "unsupported_nodes"]

#: Known values of at most this many elements are computed by numpy while tracing. Shapes are far
#: smaller; what is larger is better left to XLA.
_MAX_FOLDED_SIZE = 4096


class _Step:
    """One node of a graph, and the ways to compute it."""

    def __init__(self, node: Apply, rule: Lowering, context: Context):
        self.node = node
        self.rule = rule
        self._context = context
        self._compute: Callable | None = None
        self._perform: Callable | None = None

    def run(self, values: list[Any]) -> list[Any]:
        """Compute the node's outputs, in numpy where every input is known and small."""
        if self._is_foldable(values):
            return self._fold(values)
        if self._compute is None:
            self._compute = self.rule.make(self.node.op, self.node, self._context)
        results = self._compute(*values)
        if len(self.node.outputs) == 1:
            results = (results,)
        return list(map(_as_declared, results, self.node.outputs))

    def _is_foldable(self, values: list[Any]) -> bool:
        if not self.rule.fold:
            return False
        if not all(is_known(value) and numpy.size(value) <= _MAX_FOLDED_SIZE for value in values):
            return False
        return self.rule.size is None or self.rule.size(*values) <= _MAX_FOLDED_SIZE

    def _fold(self, values: list[Any]) -> list[Any]:
        if self._perform is None:
            self._perform = _numpy_function(self.node)
        return self._perform(values)


def _numpy_function(node: Apply) -> Callable[[list[Any]], list[Any]]:
    """Return a function that computes a node by the ``perform`` of its operation."""
    storage: dict[Variable, list[Any]] = {}
    for variable in (*node.inputs, *node.outputs):
        storage[variable] = [None]
    computed = {variable: [variable in node.inputs] for variable in storage}
    thunk = node.op.make_py_thunk(node, storage, computed, [])

    def perform(values: list[Any]) -> list[Any]:
        for variable, value in zip(node.inputs, values, strict=True):
            if isinstance(variable.type, TensorType):
                value = numpy.asarray(value, dtype=variable.type.dtype)
            storage[variable][0] = value
        for variable in node.outputs:
            storage[variable][0] = None
        thunk()
        return [storage[variable][0] for variable in node.outputs]

    return perform


def _as_declared(value: Any, variable: Variable) -> Any:
    """Give an array the dtype that the graph declares, and no weak type."""
    dtype = getattr(variable.type, "dtype", None)
    if dtype is None or is_known(value):
        return value
    if value.dtype != dtype or getattr(value, "weak_type", False):
        return lax.convert_element_type(value, dtype)
    return value


class Evaluator:
    """A function of a graph's inputs, to be traced by JAX.

    Parameters
    ----------
    fgraph : aesara.graph.fg.FunctionGraph
        The graph, rewritten.
    context : Context

    Raises
    ------
    UnsupportedOp
        If an operation of the graph has no lowering.
    """

    def __init__(self, fgraph: FunctionGraph, context: Context):
        missing = unsupported_nodes(fgraph)
        if missing:
            raise UnsupportedOp(_explain_unsupported(missing, fgraph))
        context.enter(fgraph)
        self.fgraph = fgraph
        self._inputs = list(fgraph.inputs)
        self._outputs = list(fgraph.outputs)
        self._steps = [
            _Step(node, rule, context)
            for node in fgraph.toposort()
            if (rule := find_lowering(node.op)) is not None
        ]

    def __call__(self, *values: Any) -> list[Any]:
        """Compute the outputs.

        Parameters
        ----------
        *values : array
            The inputs; numpy arrays count as known.

        Returns
        -------
        list of array

        Raises
        ------
        GraphError
            If a node cannot be computed from what came; it names the node, its operands and the
            brick.
        """
        known: dict[Variable, Any] = dict(zip(self._inputs, values, strict=True))
        for step in self._steps:
            operands = [_value_of(variable, known) for variable in step.node.inputs]
            results = self._run(step, operands)
            known.update(zip(step.node.outputs, results, strict=True))
        return [_value_of(variable, known) for variable in self._outputs]

    def _run(self, step: _Step, operands: list[Any]) -> list[Any]:
        try:
            return step.run(operands)
        except DataDependentShape as error:
            raise self._locate(error, step.node, operands) from error
        except GraphError:
            raise
        except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            got = ", ".join(describe_value(value) for value in operands)
            raise GraphError(
                f"{describe_node(step.node, self.fgraph.clients)} cannot be computed from {got}: "
                f"{error}"
            ) from error

    def _locate(
        self, error: DataDependentShape, node: Apply, operands: list[Any]
    ) -> DataDependentShape:
        """Say in which node a value was missing, and find the variables that hold it."""
        unknown = [
            (variable, value)
            for variable, value in zip(node.inputs, operands, strict=True)
            if not is_known(value)
        ]
        exact = [variable for variable, value in unknown if value is error.value]
        variables = exact or [variable for variable, _ in unknown]
        if error.variables:
            # It comes from a graph inside this node, and was described there.
            return DataDependentShape(str(error), variables=variables)
        return DataDependentShape(
            f"{describe_node(node, self.fgraph.clients)}: {error}, but it is computed from data. "
            "XLA needs every shape before it runs: derive it from the shape of an input, from a "
            "constant or from a 0-d integer input, or compile this function with backend='py'.",
            variables=variables,
        )


def _value_of(variable: Variable, known: dict[Variable, Any]) -> Any:
    if variable in known:
        return known[variable]
    assert isinstance(variable, Constant)
    return variable.data


def make_context() -> Context:
    """Return a context in which inner graphs are rewritten and evaluated as outer ones are.

    Returns
    -------
    Context
        A new one, without graphs and checks.
    """

    def evaluate(fgraph: FunctionGraph, context: Context) -> Evaluator:
        return Evaluator(rewrite_copy(fgraph, config.optimizer), context)

    return Context(evaluate)


def unsupported_nodes(fgraph: FunctionGraph) -> list[Apply]:
    """List the nodes whose operation has no lowering, one for each kind of operation.

    Graphs that operations of this one hold are searched too.

    Parameters
    ----------
    fgraph : aesara.graph.fg.FunctionGraph
        The graph, rewritten.

    Returns
    -------
    list of Apply
        The first node of each kind, in the order of computation.
    """
    by_class: dict[type, Apply] = {}
    for node in fgraph.toposort():
        missing = [node] if find_lowering(node.op) is None else []
        if isinstance(node.op, HasInnerGraph):
            missing += unsupported_nodes(node.op.fgraph)
        for found in missing:
            by_class.setdefault(type(found.op), found)
    return list(by_class.values())


def _explain_unsupported(nodes: list[Apply], fgraph: FunctionGraph) -> str:
    lines = "\n".join(
        f"  {type(node.op).__name__}: {describe_node(node, fgraph.clients)}" for node in nodes
    )
    return (
        f"XLA has no lowering for {len(nodes)} kind(s) of operation in this graph:\n{lines}\n"
        "Register one with bricks.xla.lowering, write the expression with other operations, or "
        "compile this function with backend='py'."
    )


