"""Evaluate an Aesara graph node by node, while JAX traces it.

What depends only on shapes and constants is computed at once, by Aesara's own ``perform``, and
stays a numpy value: so ``arange(x.shape[0])``, slice bounds and the lengths of new arrays are
plain integers when XLA asks for them, and no operation needs a rule of its own for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import HasInnerGraph
from aesara.tensor.type import TensorType
from jax import lax

from bricks.config import config
from bricks.xla.branches import paths_of
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
        #: What only one of the two branches needs, if the node is an ``ifelse``.
        self.branches: tuple[list[_Step], list[_Step]] = ([], [])

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
        self._context = context
        self._inputs = list(fgraph.inputs)
        self._outputs = list(fgraph.outputs)
        self._steps = self._plan()

    def _plan(self) -> list[_Step]:
        """Make a step of each node, and put what one branch needs into the branch."""
        always: list[_Step] = []
        steps: dict[Apply, _Step] = {}
        paths = paths_of(self.fgraph)
        nodes = self.fgraph.toposort()
        for node in nodes:
            rule = find_lowering(node.op)
            assert rule is not None
            steps[node] = _Step(node, rule, self._context)
        for node in nodes:
            if not paths[node]:
                always.append(steps[node])
                continue
            choice, branch = paths[node][-1]
            steps[choice].branches[branch].append(steps[node])
        return always

    @property
    def nodes(self) -> list[Apply]:
        """The nodes, in the order in which they are computed."""
        return [step.node for step in self._steps]

    def __call__(
        self,
        *values: Any,
        given: Mapping[Variable, Any] | None = None,
        wanted: Sequence[Variable] = (),
    ) -> list[Any]:
        """Compute the outputs.

        Parameters
        ----------
        *values : array
            The inputs; numpy arrays count as known.
        given : mapping, optional
            Values of variables inside that need not be computed.
        wanted : sequence of Variable, optional
            Variables of `nodes`, whose values are returned behind the outputs.

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
        known.update(given or {})
        self._take(self._steps, known)
        return [_value_of(variable, known) for variable in (*self._outputs, *wanted)]

    def _take(self, steps: list[_Step], known: dict[Variable, Any]) -> None:
        """Take steps in order, and note what they give."""
        for step in steps:
            if step.node.outputs[0] in known:
                continue
            if any(step.branches):
                results = self._choose(step, known)
            else:
                operands = [_value_of(variable, known) for variable in step.node.inputs]
                results = self._run(step, operands)
            known.update(zip(step.node.outputs, results, strict=True))

    def _choose(self, step: _Step, known: dict[Variable, Any]) -> list[Any]:
        """Take the steps of one branch of an ``ifelse``, which is chosen at run time."""
        condition = _value_of(step.node.inputs[0], known)
        if is_known(condition):
            return self._take_branch(step, 0 if condition else 1, dict(known))
        choice = _Choice(step.node, self._context)
        results = lax.cond(
            jnp.asarray(condition) != 0,
            lambda: choice.record(0, lambda: self._take_branch(step, 0, dict(known))),
            lambda: choice.record(1, lambda: self._take_branch(step, 1, dict(known))),
        )
        choice.check(condition, results.pop())
        return results

    def _take_branch(self, step: _Step, branch: int, known: dict[Variable, Any]) -> list[Any]:
        number = step.node.op.n_outs
        self._take(step.branches[branch], known)
        wanted = step.node.inputs[1 + branch * number : 1 + (branch + 1) * number]
        return [_value_of(variable, known) for variable in wanted]

    def _run(self, step: _Step, operands: list[Any]) -> list[Any]:
        try:
            return step.run(operands)
        except DataDependentShape as error:
            raise self._locate(error, step.node, operands) from error
        except (GraphError, UnsupportedOp) as error:
            if error.is_located:
                raise
            where = describe_node(step.node, self.fgraph.clients)
            raise _located(type(error)(f"{where}: {error}")) from error
        except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            got = ", ".join(describe_value(value) for value in operands)
            where = describe_node(step.node, self.fgraph.clients)
            raise _located(GraphError(f"{where} cannot be computed from {got}: {error}")) from error

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


def _located(error: Any) -> Any:
    """Note of an error that it says where it comes from."""
    error.is_located = True
    return error


class _Choice:
    """What must agree between the two branches of an ``ifelse``, and what they check."""

    def __init__(self, node: Apply, context: Context):
        self._node = node
        self._context = context
        self._shapes: list[list[tuple[int, ...]]] = []
        self._errors: list[list[Exception]] = [[], []]

    def record(self, branch: int, compute: Callable[[], list[Any]]) -> list[jax.Array]:
        """Compute one branch, and say at the end of its results whether its checks hold."""
        num_checks = len(self._context.checks)
        with self._context.views.inside():
            values = compute()
        checks = self._context.checks[num_checks:]
        del self._context.checks[num_checks:]
        self._errors[branch] = [error for _, error in checks]
        self._shapes.append([numpy.shape(value) for value in values])
        if self._shapes[0] != self._shapes[-1]:
            raise _located(
                GraphError(
                    f"{describe_node(self._node)}: the branches of an ifelse have shapes "
                    f"{self._shapes[0]} and {self._shapes[-1]}; XLA needs equal ones"
                )
            )
        holds = jnp.ones((), bool)
        for condition, _ in checks:
            holds = holds & jnp.asarray(condition, bool).all()
        outputs = self._node.outputs
        results = [
            _as_declared(jnp.asarray(value), variable)
            for value, variable in zip(values, outputs, strict=True)
        ]
        return [*results, holds]

    def check(self, condition: Any, holds: jax.Array) -> None:
        """Hand the checks of the branch that was taken on to the graph around it."""
        is_first = jnp.asarray(condition) != 0
        for errors, is_taken in zip(self._errors, (is_first, ~is_first), strict=True):
            if errors:
                self._context.check(holds | ~is_taken, errors[0])


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
        f"  {describe_node(node, fgraph.clients)}, of class {type(node.op).__name__}"
        for node in nodes
    )
    return (
        f"XLA has no lowering for {len(nodes)} kind(s) of operation in this graph:\n{lines}\n"
        "Register one with bricks.xla.lowering, write the expression with other operations, or "
        "compile this function with backend='py'."
    )
