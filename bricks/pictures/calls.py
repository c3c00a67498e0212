"""Which application passes its outputs to which: a graph of calls, found in a graph of variables.

Every application copies its inputs and outputs and annotates the copies, so a walk from the outputs
of a model backwards meets the OUTPUT of a call first, then what the call computes, then its INPUTs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from aesara.graph.basic import Constant, Variable
from aesara.scan.op import Scan

from bricks.annotations import get_annotations
from bricks.applications import ApplicationCall
from bricks.base import Brick
from bricks.graph.order import nodes_below
from bricks.roles import INPUT, OUTPUT, has_roles
from bricks.utils.variables import is_shared_variable

__all__ = ["CallGraph", "Node"]


@dataclass(eq=False)
class Node:
    """A call of a brick, an input or an output of a graph.

    Parameters
    ----------
    kind : {'call', 'input', 'output'}
        Which of them.
    call : ApplicationCall, optional
        The call.
    variables : list of Variable
        The outputs of the call; or the input, or the output.
    """

    kind: str
    call: ApplicationCall | None = None
    variables: list[Variable] = field(default_factory=list)


class CallGraph:
    """The calls of bricks in a graph.

    Parameters
    ----------
    outputs : iterable of Variable
        Where to begin.
    depth : int, optional
        Down to which level of bricks calls are told apart: 1 shows the calls of the top bricks. By
        default all levels are shown: a call that consists of others gives way to these.

    Attributes
    ----------
    nodes : list of Node
        What comes first is used by what comes later.
    edges : dict of tuple of Node to list of str
        From one node to another: the names of what is passed on.
    """

    def __init__(self, outputs: Iterable[Variable], depth: int | None = None) -> None:
        self.outputs = list(outputs)
        self.depth = depth
        self.nodes: list[Node] = []
        self.edges: dict[tuple[Node, Node], list[str]] = {}
        self._of_call: dict[int, Node] = {}
        self._of_input: dict[Variable, Node] = {}
        self._inputs: dict[int, list[Variable]] = {}
        self._outputs: dict[int, list[Variable]] = {}
        self._opaque: dict[int, bool] = {}
        self._sources: dict[Variable, list[Node]] = {}
        self._index()
        for output in self.outputs:
            node = Node("output", variables=[output])
            self._connect(self._sources_of(output), node, output)
            self.nodes.append(node)

    def _index(self) -> None:
        """List the INPUT and OUTPUT variables of each call."""
        self._in_order = [v for node in nodes_below(self.outputs) for v in node.outputs]
        for variable in self._in_order:
            call = _call_of(variable)
            if call is not None and has_roles(variable, [INPUT]):
                self._inputs.setdefault(id(call), []).append(variable)
            elif call is not None and has_roles(variable, [OUTPUT]):
                self._outputs.setdefault(id(call), []).append(variable)

    def _sources_of(self, variable: Variable) -> list[Node]:
        """The nodes that a variable comes from, without a recursion as deep as the graph."""
        stack = [variable]
        while stack:
            one = stack[-1]
            if one in self._sources:
                stack.pop()
                continue
            call, before = self._before(one)
            waiting = [other for other in before if other not in self._sources]
            if waiting:
                stack.extend(waiting[::-1])
                continue
            stack.pop()
            if call is not None:
                self._sources[one] = [self._node_of(call)]
            elif one.owner is None:
                self._sources[one] = self._leaf(one)
            else:
                found = [node for other in before for node in self._sources[other]]
                self._sources[one] = list(dict.fromkeys(found))
        return self._sources[variable]

    def _before(self, variable: Variable) -> tuple[ApplicationCall | None, list[Variable]]:
        """The call that gives a variable, if that is shown, and what comes before it."""
        call = _call_of(variable)
        if call is not None and has_roles(variable, [OUTPUT]) and self._is_opaque(call):
            return call, [one.owner.inputs[0] for one in self._inputs.get(id(call), ())]
        return None, list(variable.owner.inputs) if variable.owner is not None else []

    def _is_opaque(self, call: ApplicationCall) -> bool:
        """Tell whether a call is shown itself, not the calls that it consists of."""
        if id(call) not in self._opaque:
            level = len(call.application.brick.get_unique_path())
            at_depth = self.depth is not None and level >= self.depth
            self._opaque[id(call)] = at_depth or not self._consists_of_others(call)
        return self._opaque[id(call)]

    def _consists_of_others(self, call: ApplicationCall) -> bool:
        """Tell whether calls of bricks below lie between the inputs and the outputs of a call.

        One that has a loop of its own does not consist of what is called before the loop.
        """
        brick, found = call.application.brick, False
        seen: set[Variable] = set(self._inputs.get(id(call), ()))
        stack = list(self._outputs.get(id(call), ()))
        while stack:
            variable = stack.pop()
            if variable in seen or variable.owner is None:
                continue
            seen.add(variable)
            if isinstance(variable.owner.op, Scan):
                return False
            inner = _call_of(variable) if has_roles(variable, [OUTPUT]) else None
            if inner is None or inner.application.brick is brick:
                stack.extend(variable.owner.inputs)
            elif _is_below(inner.application.brick, brick):
                found = True
                stack.extend(self._inputs.get(id(inner), ()))
        return found

    def _node_of(self, call: ApplicationCall) -> Node:
        if id(call) not in self._of_call:
            node = Node("call", call, self._outputs[id(call)])
            for variable in self._inputs.get(id(call), ()):
                self._connect(self._sources[variable.owner.inputs[0]], node, variable)
            self._of_call[id(call)] = node
            self.nodes.append(node)
        return self._of_call[id(call)]

    def _leaf(self, variable: Variable) -> list[Node]:
        if isinstance(variable, Constant) or is_shared_variable(variable):
            return []
        if not hasattr(variable.type, "dtype"):
            return []
        if variable not in self._of_input:
            self._of_input[variable] = Node("input", variables=[variable])
            self.nodes.append(self._of_input[variable])
        return [self._of_input[variable]]

    def _connect(self, sources: list[Node], node: Node, variable: Variable) -> None:
        name = getattr(variable.tag, "name", None) or variable.name or ""
        for source in sources:
            names = self.edges.setdefault((source, node), [])
            if name and name not in names:
                names.append(name)


def _is_below(brick: Brick, ancestor: Brick) -> bool:
    """Tell whether a brick is another one's child, or the child of such a child."""
    stack = list(brick.parents)
    while stack:
        parent = stack.pop()
        if parent is ancestor:
            return True
        stack.extend(parent.parents)
    return False


def _call_of(variable: Variable) -> Any:
    return next((a for a in get_annotations(variable) if isinstance(a, ApplicationCall)), None)
