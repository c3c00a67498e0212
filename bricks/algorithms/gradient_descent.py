"""Gradient descent: gradients, through step rules, subtracted from parameters."""

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import aesara
from aesara import tensor
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Variable, ancestors

from bricks.algorithms.base import UpdatePairs, UpdatesAlgorithm
from bricks.algorithms.clipping import total_norm
from bricks.algorithms.rules import Scale, StepRule
from bricks.algorithms.states import (
    AnyVariable,
    put_below,
    shared_inputs,
    state_name,
    variable_path,
)
from bricks.config import config
from bricks.roles import PARAMETER, has_roles
from bricks.utils.plain import change_recursion_limit

Gradients = Mapping[AnyVariable, AnyVariable] | Iterable[tuple[AnyVariable, AnyVariable]]


class GradientDescent(UpdatesAlgorithm):
    """Subtract from each parameter what a step rule makes of its gradient.

    Parameters
    ----------
    cost : Variable, optional
        The scalar to be made small. Needed unless `gradients` or `known_grads` is given; with
        `gradients` it only serves to find where a cost went wrong.
    parameters : sequence of SharedVariable, optional
        What is changed, in the order in which it is. By default the keys of `gradients`, or
        else all shared variables with the role ``PARAMETER`` in the graph of `cost`, in the
        order of a walk through that graph.
    step_rule : StepRule, optional
        The default is ``Scale()``, which subtracts the gradients themselves.
    gradients : OrderedDict, dict or list of (SharedVariable, Variable), optional
        The gradients, if they are not those of `cost`. The order is kept; a plain dict has one
        too.
    known_grads : dict, optional
        From variables to the gradients of the cost with respect to them, if those are known,
        as for `aesara.grad`.
    consider_constant : list of Variable, optional
        What gradients do not go through, as for `aesara.grad`.
    updates : list of (SharedVariable, Variable), or dict, optional
        Further updates; see `UpdatesAlgorithm`.
    theano_func_kwargs : dict, optional
        See `UpdatesAlgorithm`.
    on_unused_sources : {'raise', 'warn', 'ignore'}, optional
        See `UpdatesAlgorithm`.

    Attributes
    ----------
    gradients : OrderedDict
        From parameter to gradient.
    steps : OrderedDict
        From parameter to what is subtracted from it.
    total_gradient_norm, total_step_norm : Variable
        Scalars: the Euclidean norms of all gradients, and of all steps, as one vector.
    updates : list of (SharedVariable, Variable)
        The updates given, then those of the parameters in their order, then those of the rule.

    Raises
    ------
    ValueError
        If the arguments do not say what the gradients are, or contradict each other.
    TypeError
        If an argument is of a wrong kind, for example a class of step rules.

    Examples
    --------
    >>> import numpy
    >>> from bricks.utils import shared_floatx
    >>> x, mean = tensor.vector("x"), shared_floatx(0.0, name="mean")
    >>> cost = ((mean - x) ** 2).mean()
    >>> algorithm = GradientDescent(cost, parameters=[mean], step_rule=Scale(0.25))
    >>> algorithm.initialize()
    >>> algorithm.process_batch({"x": numpy.array([2, 6], "float32")})
    >>> mean.get_value().item()                       # the gradient was 2 * (0 - 4)
    2.0
    """

    def __init__(
        self,
        cost: AnyVariable | None = None,
        parameters: Sequence[AnyVariable] | None = None,
        step_rule: StepRule | None = None,
        gradients: Gradients | None = None,
        known_grads: Mapping[AnyVariable, AnyVariable] | None = None,
        consider_constant: Sequence[AnyVariable] | None = None,
        *,
        updates: UpdatePairs | None = None,
        theano_func_kwargs: Mapping[str, Any] | None = None,
        on_unused_sources: str = "raise",
    ) -> None:
        self.cost = cost
        self.step_rule = _checked_rule(step_rule)
        if gradients is not None:
            if known_grads or consider_constant:
                raise ValueError(
                    "GradientDescent: `known_grads` and `consider_constant` say how gradients are "
                    "computed, so they cannot be given with `gradients`."
                )
            self.gradients = _given_gradients(gradients, parameters)
        else:
            self.gradients = _computed_gradients(cost, parameters, known_grads, consider_constant)
        self.parameters = list(self.gradients)
        self.steps, rule_updates = self.step_rule.compute_steps(OrderedDict(self.gradients))
        put_below("step_rule", (target for target, _ in rule_updates))
        self.total_gradient_norm = _named(
            total_norm(self.gradients.values()), "total_gradient_norm"
        )
        self.total_step_norm = _named(total_norm(self.steps.values()), "total_step_norm")
        super().__init__(updates, theano_func_kwargs, on_unused_sources)
        self._watched: list[AnyVariable] = []
        self._parameter_updates = [(p, p - self.steps[p]) for p in self.parameters]
        self._rule_updates = list(rule_updates)
        self.add_updates(self._parameter_updates)
        self.add_updates(self._rule_updates)

    def hold_on_non_finite(self, gradients: bool = True) -> AnyVariable:
        """Leave everything as it is on a batch whose cost or gradients are not finite.

        Parameters, buffers and random keys then keep the values from before the step, so that
        `find_non_finite` can say afterwards what went wrong. What monitors training goes on and
        shows the cost. Must be called before `initialize`.

        Parameters
        ----------
        gradients : bool, optional
            Whether to look at the norm of all gradients, beside the cost. The default is True.
            It takes a pass over the gradients, about 0.4 ms for a million elements on a CPU;
            looking at the cost alone takes no time, and finds most mishaps one step later.
            Without a cost, the gradients are looked at anyway.

        Returns
        -------
        Variable
            A truth value, whether the batch is such a one, for updates that count them.

        Raises
        ------
        RuntimeError
            If the function is already compiled otherwise.
        """
        watched = [] if self.cost is None else [self.cost]
        if gradients or not watched:
            watched.append(self.total_gradient_norm)
        if self.initialized and watched != self._watched:
            raise RuntimeError(
                "GradientDescent: `hold_on_non_finite` must be called before `initialize`, because "
                "the function is compiled."
            )
        self._watched = watched
        return self._is_held()

    def _is_held(self) -> AnyVariable:
        bad = [tensor.isnan(variable) | tensor.isinf(variable) for variable in self._watched]
        return bad[0] if len(bad) == 1 else bad[0] | bad[1]

    def _compiled_updates(self) -> list[tuple[AnyVariable, AnyVariable]]:
        updates = super()._compiled_updates()
        if not self._watched:
            return updates
        hold = self._is_held()
        targets = {target for target, _ in updates}
        keys = [
            (variable, variable.default_update)
            for variable in shared_inputs(self._expressions())
            if getattr(variable, "default_update", None) is not None and variable not in targets
        ]
        return [
            (target, value)
            if getattr(target.tag, "is_accumulator", False)
            else (target, tensor.switch(hold, target, value))
            for target, value in [*updates, *keys]
        ]

    def _named_state(self) -> Iterator[tuple[str, AnyVariable]]:
        for path, rule in _walk("step_rule", self.step_rule):
            for name, variable in rule.hyperparameters.items():
                if isinstance(variable, SharedVariable):
                    yield f"{path}.{name}", variable
        for target, _ in self._rule_updates:
            yield state_name(target).lstrip("/"), target
        for parameter in self.parameters:
            yield f"parameters/{variable_path(parameter)}", parameter
        yield from super()._named_state()


def _walk(path: str, rule: StepRule) -> Iterator[tuple[str, StepRule]]:
    yield path, rule
    for name, child in rule.children.items():
        yield from _walk(f"{path}/{name}", child)


def _checked_rule(step_rule: StepRule | None) -> StepRule:
    if step_rule is None:
        return Scale()
    if not isinstance(step_rule, StepRule):
        hint = " Make an instance of it." if isinstance(step_rule, type) else ""
        raise TypeError(
            f"GradientDescent: `step_rule` must be a step rule; got {step_rule!r}.{hint}"
        )
    return step_rule


def _named(variable: AnyVariable, name: str) -> AnyVariable:
    variable.name = name
    return variable


def _given_gradients(
    gradients: Gradients, parameters: Sequence[AnyVariable] | None
) -> "OrderedDict[AnyVariable, AnyVariable]":
    """Put given gradients in the order of the parameters, which have to be their keys."""
    given = OrderedDict(gradients)
    if not given:
        raise ValueError("GradientDescent: `gradients` must hold at least one gradient.")
    if parameters is None:
        return given
    missing = [variable_path(p) for p in parameters if p not in given]
    unexpected = [variable_path(p) for p in given if p not in set(parameters)]
    if missing or unexpected:
        raise ValueError(
            "GradientDescent: `gradients` must be those of `parameters`; without a gradient: "
            f"{', '.join(missing) or 'none'}; not among the parameters: "
            f"{', '.join(unexpected) or 'none'}. Leave `parameters` out to take the keys of "
            "`gradients`."
        )
    return OrderedDict((parameter, given[parameter]) for parameter in parameters)


def _computed_gradients(
    cost: AnyVariable | None,
    parameters: Sequence[AnyVariable] | None,
    known_grads: Mapping[AnyVariable, AnyVariable] | None,
    consider_constant: Sequence[AnyVariable] | None,
) -> "OrderedDict[AnyVariable, AnyVariable]":
    if cost is None and not known_grads:
        raise ValueError(
            "GradientDescent: give a `cost`, or the `gradients`, or `known_grads` and `parameters`."
        )
    if cost is not None and cost.ndim != 0:
        raise ValueError(
            f"GradientDescent: `cost` must be a scalar; {cost} has {cost.ndim} axes. Take its mean "
            "or its sum."
        )
    roots = [root for root in (cost, *(known_grads or {})) if root is not None]
    parameters = list(_parameters_of(roots) if parameters is None else parameters)
    _check_parameters(parameters, roots)
    known = OrderedDict(known_grads) if known_grads else None
    constant = list(consider_constant) if consider_constant else None
    # Aesara goes back by functions that call themselves, deeper than the graph is.
    depth = max(sys.getrecursionlimit(), config.recursion_limit)
    with change_recursion_limit(depth):
        gradients: Any = aesara.grad(
            cost, parameters, known_grads=known, consider_constant=constant
        )
    return OrderedDict(zip(parameters, gradients, strict=True))


def _parameters_of(roots: Sequence[AnyVariable]) -> list[AnyVariable]:
    found = [variable for variable in shared_inputs(roots) if has_roles(variable, [PARAMETER])]
    if not found:
        raise ValueError(
            "GradientDescent: the graph of the cost has no shared variable with the role "
            "PARAMETER. Give `parameters`, or `add_role(variable, PARAMETER)`."
        )
    return found


def _check_parameters(parameters: Sequence[AnyVariable], roots: Sequence[AnyVariable]) -> None:
    if not parameters:
        raise ValueError("GradientDescent: `parameters` is empty, so there is nothing to train.")
    known = set(ancestors(roots))
    seen: set[AnyVariable] = set()
    for parameter in parameters:
        path = variable_path(parameter) if isinstance(parameter, Variable) else repr(parameter)
        if not isinstance(parameter, SharedVariable):
            raise TypeError(
                f"GradientDescent: `parameters` must be shared variables; {path} is not."
            )
        if parameter in seen:
            raise ValueError(f"GradientDescent: `parameters` has {path} twice.")
        seen.add(parameter)
        if not parameter.type.dtype.startswith("float"):
            raise TypeError(
                f"GradientDescent: {path} has dtype {parameter.type.dtype}; only floats have "
                "gradients."
            )
        if parameter not in known:
            raise ValueError(
                f"GradientDescent: the cost does not depend on {path}, so it has no gradient. "
                "Leave it out of `parameters`, or see whether a graph that was replaced was meant."
            )
