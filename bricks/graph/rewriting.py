"""Replace variables of a graph, all of them in one pass.

Every node below the outputs is cloned once. A variable that is replaced leads to two clones: its
own, which only its replacement sees, and the replacement, which everyone else sees. Parts of a
replacement that depend on the replaced variable belong to that replacement alone; the other parts
are shared with the rest of the graph.

Inside loops the same is done to the graph of the step. Whatever a replacement inside a loop uses
from outside becomes a further non-sequence of the loop: it is the same in every step. What it uses
of a sequence outside, by :func:`bricks.graph.steps.element_of_step`, becomes a further sequence.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as replace_fields
from typing import Any

from aesara.graph.basic import Apply, Constant, NominalVariable, Variable
from aesara.scan.op import Scan
from aesara.tensor.type import TensorType

from bricks.annotations import get_annotations
from bricks.applications import ApplicationCall
from bricks.graph.order import nodes_below
from bricks.graph.steps import ElementOfStep, inner_variables

__all__ = ["Rewriter", "inner_variables"]

#: A node, and the replaced variable in whose replacement it is cloned (None: everywhere).
_Place = tuple[Apply, Variable | None]


class Rewriter:
    """Clones a graph with some of its variables replaced.

    Parameters
    ----------
    replacements : mapping of Variable to Variable
        What is replaced by what.
    outputs : sequence of Variable
        The outputs of the graph.
    step : Scan, optional
        The loop whose step the graph is; what lies outside is made its input.
    enclosing : set of Variable, optional
        The variables of the steps around that loop.
    """

    def __init__(
        self,
        replacements: Mapping[Variable, Any],
        outputs: Sequence[Variable],
        step: Scan | None = None,
        enclosing: frozenset[Variable] = frozenset(),
    ) -> None:
        self.replacements = {
            variable: _of_type(variable, value) for variable, value in replacements.items()
        }
        self._outputs = list(outputs)
        self._clones: dict[_Place, Apply] = {}
        self._calls: dict[int, tuple[ApplicationCall, ApplicationCall]] = {}
        self._loops_under_way: list[Apply] = []
        self._step = step
        self._step_inputs = set(step.inner_inputs) if step is not None else set()
        #: Variables from outside the loop, and what stands for them in the step.
        self.from_outside: dict[Variable, Variable] = {}
        #: Sequences from outside the loop, and what stands for their elements in the step.
        self.elements: dict[Variable, Variable] = {}
        nodes = nodes_below(self._outputs)
        loops = [node.op for node in nodes if isinstance(node.op, Scan)]
        deeper = {variable for op in loops for variable in inner_variables(op)}
        values = [value for key, value in self.replacements.items() if key not in deeper]
        own = {v for node in nodes for v in [*node.inputs, *node.outputs] if _is_unique(v)}
        self._known = enclosing | own if step is not None else frozenset()
        below = [node for value in values for node in nodes_below([value], self._known)]
        for variable in [*values, *(i for node in below for i in node.inputs)]:
            _check_belongs_here(variable)
        self._movable = self._nodes_of_step(nodes, below, own)
        self._dependent = {
            variable: self._nodes_between(variable, value)
            for variable, value in self.replacements.items()
        }

    def rewrite(self) -> list[Variable]:
        """Clone the graph.

        Returns
        -------
        list of Variable
            The outputs of the new graph, in the order of the old ones.

        Raises
        ------
        TypeError
            If a node cannot take what replaces its inputs.
        ValueError
            If replacements contain each other, or use what a step of a loop cannot reach.
        """
        new = [self.new(output) for output in self._outputs]
        if self._step is None:
            self._rewrite_tags()
        return new

    def new(self, variable: Variable) -> Variable:
        """Return what stands for a variable in the new graph.

        Parameters
        ----------
        variable : Variable
            Of the old graph, or one that depends on it.

        Returns
        -------
        Variable
            Its clone, its replacement, or the variable itself if it is a leaf that is not replaced.
        """
        found = self._resolve(variable, None)
        if isinstance(found, tuple):
            self._clone(found[0])
        return self._cloned(found)

    def _nodes_of_step(
        self, nodes: list[Apply], below: list[Apply], own: set[Variable]
    ) -> set[Apply]:
        """Return the nodes of the step, and those of replacements that need the step."""
        movable = set(nodes)
        for node in below:
            if isinstance(node.op, ElementOfStep):
                continue
            if any(i in own or i.owner in movable or _is_element(i) for i in node.inputs):
                movable.add(node)
        # Only tensors are handed into a loop: slices and random generators are made inside.
        for node in reversed(below):
            if node in movable:
                others = [i for i in node.inputs if not isinstance(i.type, TensorType)]
                movable.update(i.owner for i in others if i.owner is not None)
        return movable

    def _nodes_between(self, variable: Variable, value: Variable) -> set[Apply]:
        """Return the nodes of a replacement that depend on the variable that it replaces."""
        nodes: set[Apply] = set()
        for node in nodes_below([value], self.replacements):
            if any(i is variable or i.owner in nodes for i in node.inputs):
                nodes.add(node)
        return nodes

    def _resolve(
        self, variable: Variable, within: Variable | None
    ) -> Variable | tuple[_Place, int]:
        """Say what stands for a variable: a leaf, or an output of a clone."""
        passed: list[Variable] = []
        while variable is not within and variable in self.replacements:
            if variable in passed:
                raise ValueError(_circle(passed))
            passed.append(variable)
            variable, within = self.replacements[variable], variable
        if variable is within:
            within = None
        node = variable.owner
        is_given = self._step is not None and node not in self._movable
        if node is None or is_given or _is_element(variable):
            return self._leaf(variable)
        if within is not None and node not in self._dependent[within]:
            within = None
        return (node, within), variable.index

    def _leaf(self, variable: Variable) -> Variable:
        """Return what stands for a variable that is not cloned."""
        if _is_element(variable):
            return self._element(variable)
        is_known = self._step is None or variable in self._step_inputs
        if is_known or isinstance(variable, Constant):
            return variable
        return self.from_outside.setdefault(variable, variable.type(name=variable.name))

    def _element(self, variable: Any) -> Variable:
        """Return what stands in the step for the element of a sequence from outside."""
        (sequence,) = variable.owner.inputs
        if self._step is None:
            raise ValueError(
                f"replace: a replacement uses an element of {sequence}, but stands in no step of a "
                "loop, or in fewer loops than it takes elements of elements."
            )
        return self.elements.setdefault(sequence, variable.type(name=sequence.name))

    def _clone(self, start: _Place) -> None:
        """Clone a node and all that it needs."""
        stack: list[_Place] = [start]
        under_way: set[_Place] = set()
        while stack:
            place = stack[-1]
            if place in self._clones:
                stack.pop()
                continue
            node, within = place
            inputs = [self._resolve(i, within) for i in node.inputs]
            needed = [i[0] for i in inputs if isinstance(i, tuple) and i[0] not in self._clones]
            if needed:
                if place in under_way:
                    raise ValueError(_circle([one[1] for one in stack if one[1] is not None]))
                under_way.add(place)
                stack.extend(needed)
                continue
            self._clones[place] = self._clone_node(node, [self._cloned(i) for i in inputs])
            stack.pop()

    def _cloned(self, found: Variable | tuple[_Place, int]) -> Variable:
        """Return the variable that `_resolve` found, once its node is cloned."""
        return found if isinstance(found, Variable) else self._clones[found[0]].outputs[found[1]]

    def _clone_node(self, node: Apply, inputs: list[Variable]) -> Apply:
        """Return a copy of a node with other inputs, names and tags of its outputs kept."""
        if isinstance(node.op, Scan):
            inside = inner_variables(node.op)
            within = {k: v for k, v in self.replacements.items() if k in inside}
            if within:
                return self._clone_scan(node, inputs, within)
        try:
            clone = node.clone_with_new_inputs(inputs)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"replace: {node.op} cannot take the new inputs "
                f"{[f'{i}: {i.type}' for i in inputs]}: {error}"
            ) from error
        return _with_tags(clone, node)

    def _clone_scan(self, node: Apply, inputs: list[Variable], within: dict) -> Apply:
        """Return a copy of a loop in whose step variables are replaced."""
        op = node.op
        if node in self._loops_under_way:
            raise ValueError(
                f"replace: a replacement in the step of {op} uses what that loop gives. It may use "
                "variables of the step, and of the graph before the loop."
            )
        for variable in within:
            if isinstance(variable, NominalVariable):
                raise ValueError(
                    f"replace: {variable} is an input of the step of {op}, which loops share. "
                    "Replace what is fed to the loop, or what the step computes from it."
                )
        inner = Rewriter(within, op.inner_outputs, step=op, enclosing=frozenset(self._known))
        new_op = inner._step_with_more_inputs(inner.rewrite())
        outside, sequences = inner.from_outside, inner.elements
        self._loops_under_way.append(node)
        given, new_sequences = ([self.new(one) for one in ones] for ones in (outside, sequences))
        self._loops_under_way.pop()
        # The number of steps comes before the sequences.
        first = op.info.n_seqs + 1
        inputs = [*inputs[:first], *new_sequences, *inputs[first:], *given]
        return _with_tags(new_op.make_node(*inputs), node)

    def _step_with_more_inputs(self, outputs: list[Variable]) -> Scan:
        """Return the loop of the new step, which takes what replacements use from outside."""
        op: Any = self._step
        first, old = op.info.n_seqs, op.inner_inputs
        info = replace_fields(
            op.info,
            n_seqs=first + len(self.elements),
            n_non_seqs=op.info.n_non_seqs + len(self.from_outside),
        )
        elements, constant = self.elements.values(), self.from_outside.values()
        return Scan(
            [*old[:first], *elements, *old[first:], *constant],
            outputs,
            info,
            mode=op.mode,
            truncate_gradient=op.truncate_gradient,
            name=op.name,
            profile=op.profile,
            allow_gc=op.allow_gc,
            strict=op.strict,
        )

    def _rewrite_tags(self) -> None:
        """Let tags of new variables speak of new variables; continues while that makes more."""
        done = 0
        while done < len(self._clones):
            nodes = list(self._clones.values())[done:]
            done += len(nodes)
            for variable in (output for node in nodes for output in node.outputs):
                if get_annotations(variable):
                    variable.tag.annotations = [
                        self._new_call(one) if isinstance(one, ApplicationCall) else one
                        for one in get_annotations(variable)
                    ]
                scheme = getattr(variable.tag, "aggregation_scheme", None)
                if scheme is not None:
                    variable.tag.aggregation_scheme = self._with_new_variables(scheme)

    def _new_call(self, call: ApplicationCall) -> ApplicationCall:
        """Return the copy of an application call that stands in the new graph."""
        if id(call) not in self._calls:
            new = copy.copy(call)
            self._calls[id(call)] = (call, new)
            new.auxiliary_variables = [self.new(one) for one in call.auxiliary_variables]
            new.updates = type(call.updates)((k, self.new(v)) for k, v in call.updates.items())
            new.metadata = {
                key: self.new(value) if isinstance(value, Variable) else value
                for key, value in call.metadata.items()
            }
        return self._calls[id(call)][1]

    def _with_new_variables(self, thing: Any) -> Any:
        """Return a copy of an object whose attributes that are variables are the new ones."""
        new = copy.copy(thing)
        for name, value in vars(thing).items():
            if isinstance(value, Variable):
                setattr(new, name, self.new(value))
        return new


def _is_unique(variable: Variable) -> bool:
    """Say whether a variable belongs to one graph: constants and inputs of steps are shared."""
    return not isinstance(variable, Constant | NominalVariable)


def _is_element(variable: Variable) -> bool:
    """Say whether a variable stands for an element of a sequence outside of the step."""
    return variable.owner is not None and isinstance(variable.owner.op, ElementOfStep)


def _check_belongs_here(variable: Variable) -> None:
    """Refuse a replacement that uses a step from outside of it."""
    if isinstance(variable, NominalVariable):
        raise ValueError(
            f"replace: a replacement uses {variable}, an input of the step of a loop, directly or "
            "through a variable of a loop that it does not stand in. It may use variables of its "
            "own step that are computed from its inputs, and variables outside."
        )


def _of_type(variable: Variable, value: Any) -> Variable:
    """Return a replacement as a variable of the type of what it replaces."""
    try:
        if not isinstance(value, Variable):
            value = variable.type.make_constant(variable.type.filter(value))
        return variable.type.filter_variable(value, allow_convert=True)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"replace: {variable} of type {variable.type} cannot be replaced by {value} of type "
            f"{getattr(value, 'type', type(value).__name__)}. Cast or reshape the replacement."
        ) from error


def _with_tags(clone: Apply, node: Apply) -> Apply:
    """Give the outputs of a clone the names and tags of the original's."""
    for new, old in zip(clone.outputs, node.outputs, strict=True):
        new.name = old.name
        new.tag = copy.copy(old.tag)
    return clone


def _circle(variables: Iterable[Variable | None]) -> str:
    names = ", ".join(dict.fromkeys(str(variable) for variable in variables))
    return (
        f"replace: the replacements of {names} contain each other. A replacement may contain what "
        "it replaces, and others that do not lead back to it."
    )
