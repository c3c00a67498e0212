"""Derive a graph whose gradient needs less memory, and more time."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aesara.graph.basic import Apply, Constant, Variable
from aesara.scan.op import Scan
from aesara.tensor.type import TensorType

from bricks.applications import ApplicationCall
from bricks.filter import VariableFilter, get_application_call
from bricks.graph.computation import ComputationGraph
from bricks.graph.order import nodes_below
from bricks.graph.rewriting import inner_variables
from bricks.roles import INPUT, OUTPUT
from bricks.utils.plain import pack
from bricks.utils.variables import is_shared_variable

__all__ = ["rematerialize"]


def rematerialize(
    computation_graph: ComputationGraph,
    bricks: Iterable[Any] | None = None,
    applications: Iterable[Any] | None = None,
) -> ComputationGraph:
    """Return a graph in which some applications are computed again for their gradient.

    A gradient needs what was computed on the way to the cost, and keeps all of it. Of the chosen
    applications it keeps only the inputs, and computes the rest once more when the gradient gets
    there. For a deep stack of equal blocks, all of them chosen, that is the memory of one block and
    of the inputs of all, for the time of one more computation of the cost.

    Parameters
    ----------
    computation_graph : ComputationGraph
        The graph, with dropout and noise if there are to be any. Its gradient is taken afterwards,
        for example by :class:`bricks.algorithms.GradientDescent`.
    bricks : iterable of Brick or brick classes, optional
        Every call of an application of these bricks is chosen.
    applications : iterable of Application or BoundApplication, optional
        Every call of these is chosen; of calls of `bricks` too, if both are given.

    Returns
    -------
    ComputationGraph
        The new graph. Its values are those of the graph, its gradients too, and variables have the
        same names, roles and annotations.

    Raises
    ------
    ValueError
        If nothing is chosen, or what is chosen is not in the graph.

    Notes
    -----
    What lies inside of a chosen application is computed again as a part of it, also if it is chosen
    itself. Random numbers are the same the second time.

    What is used from outside of an application is kept, as are the inputs of a softmax by a
    cross-entropy. So choose the blocks of the middle of a network rather than its end.

    A scan keeps its states and computes the rest of each step again anyway, so applications in its
    step are not chosen. If a scan is inside of a chosen application, it runs a second time. A long
    scan needs less memory as a scan over segments, whose step is a scan over the steps of one: of
    the outer one only the states between segments are kept.

    What is inside of chosen applications cannot be among the ``consider_constant`` of
    :func:`aesara.grad`.

    References
    ----------
    T. Chen, B. Xu, C. Zhang, C. Guestrin, *Training Deep Nets with Sublinear Memory Cost*, 2016.

    Examples
    --------
    >>> import numpy
    >>> from aesara import grad, tensor
    >>> from bricks import MLP, Sequence, Tanh, xla
    >>> from bricks.initialization import Constant
    >>> init = {"weights_init": Constant(0.1), "biases_init": Constant(0)}
    >>> blocks = [MLP([Tanh(), Tanh()], [8, 64, 8], name=f"block_{i}", **init) for i in range(9)]
    >>> stack = Sequence([block.apply for block in blocks])
    >>> stack.initialize()
    >>> x = tensor.matrix("x")
    >>> graph = ComputationGraph(stack.apply(x).sum())
    >>> cheap = rematerialize(graph, bricks=blocks)
    >>> def temporary_bytes(graph):
    ...     step = xla.function([x], grad(graph.outputs[0], graph.parameters))
    ...     return step.memory(numpy.ones((256, 8), x.dtype)).temporary
    >>> temporary_bytes(cheap) < temporary_bytes(graph) / 3
    True
    """
    if bricks is None and applications is None:
        raise ValueError("rematerialize: say which applications, by `bricks` or by `applications`.")
    bricks, applications = (None if x is None else pack(x) for x in (bricks, applications))
    wanted = VariableFilter(roles=[OUTPUT], bricks=bricks, applications=applications)
    variables = computation_graph.variables
    calls = _calls(wanted(variables), variables)
    if not calls:
        chosen = [*(bricks or ()), *(applications or ())]
        raise ValueError(_no_call(chosen, bool(wanted(computation_graph.scan_variables))))
    inside = {variable for call in calls for variable in call.inside()}
    replacements: dict[Variable, Any] = {}
    for call in calls:
        if not any(output in inside for output in call.outputs):
            replacements.update(call.replacements())
    return computation_graph.replace(replacements)


def _no_call(chosen: Sequence[Any], is_in_step: bool) -> str:
    names = ", ".join(str(getattr(one, "path", one)) for one in chosen) or "nothing"
    if is_in_step:
        return (
            f"rematerialize: {names} is applied in the step of a scan only, and the gradient of a "
            "scan computes each step again anyway. Choose the application that the scan is in."
        )
    return (
        f"rematerialize: no application of {names} is in the graph, so none can be computed again. "
        "Choose bricks whose applications lead to its outputs."
    )


@dataclass
class _Call:
    """A call of an application in a graph.

    Parameters
    ----------
    inputs : list of Variable
    outputs : list of Variable
        Those that are in the graph.
    """

    inputs: list[Variable]
    outputs: list[Variable]

    @property
    def values(self) -> list[Variable]:
        """What the outputs, which are copies, are copies of."""
        return [output.owner.inputs[0] for output in self.outputs]

    def nodes(self) -> list[Apply]:
        """What computes the values from the inputs, and from parameters."""
        return nodes_below(self.values, self.inputs)

    def inside(self) -> list[Variable]:
        """The variables between the inputs and the outputs."""
        nodes = self.nodes()
        found = [variable for node in nodes for variable in node.outputs]
        loops = [node.op for node in nodes if isinstance(node.op, Scan)]
        return [*found, *(variable for op in loops for variable in inner_variables(op))]

    def replacements(self) -> dict[Variable, Variable]:
        """Return for each output what has a gradient that computes it again."""
        from bricks.xla.rematerialization import Recomputed

        own = set(self.inside())
        used = [variable for node in self.nodes() for variable in node.inputs]
        given = [x for x in dict.fromkeys([*used, *self.values]) if x not in own and _is_given(x)]
        passed = Recomputed(len(self.values)).make_node(*self.values, *given).outputs
        values = map(_in_place_of, self.outputs, passed)
        return {**self._late_draws(given), **dict(zip(self.outputs, values, strict=True))}

    def _late_draws(self, given: Sequence[Variable]) -> dict[Variable, Variable]:
        """Let random numbers be drawn when they are needed.

        They depend on nothing but a key, so those of a whole stack could be drawn before the first
        block is computed, and would all be there at once.
        """
        from bricks.xla.keys import GeneratorOfKey
        from bricks.xla.rematerialization import behind

        data = [x for x in given if not is_shared_variable(x)]
        return {
            node.outputs[0]: node.op.make_node(behind(node.inputs[0], data[0])).outputs[0]
            for node in self.nodes()
            if data and isinstance(node.op, GeneratorOfKey)
        }


def _is_given(variable: Variable) -> bool:
    return isinstance(variable.type, TensorType) and not isinstance(variable, Constant)


def _in_place_of(output: Variable, value: Any) -> Variable:
    """Return a copy of a value that has the name and the tags of an output."""
    new = value.copy()
    new.name, new.tag = output.name, copy.copy(output.tag)
    return new


def _calls(outputs: Sequence[Variable], variables: Sequence[Variable]) -> list[_Call]:
    """Group outputs by the calls that they are outputs of, and find the inputs of these."""
    by_call: dict[int, list[Variable]] = {}
    for output in outputs:
        by_call.setdefault(id(get_application_call(output)), []).append(output)
    inputs: dict[int, list[Variable]] = {}
    for variable in VariableFilter(roles=[INPUT])(variables):
        call: ApplicationCall | None = get_application_call(variable)
        inputs.setdefault(id(call), []).append(variable)
    return [_Call(inputs.get(call, []), found) for call, found in by_call.items()]
