"""Step rules: what becomes of a gradient before it is subtracted, and how rules are combined.

A rule turns the steps that it is given (at first the gradients) into other steps. Whoever writes
one overrides `StepRule.compute_step`, which sees one parameter, or `StepRule.compute_steps`, which
sees them all. `CompositeRule` applies several after each other, `Restrict` applies one to some of
the parameters only.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Variable

from bricks.algorithms.states import (
    AnyVariable,
    hyperparameter,
    put_below,
    variable_path,
)
from bricks.roles import ALGORITHM_HYPERPARAMETER, has_roles
from bricks.utils.plain import is_number
from fuel_data.utils.keywords import NamedKeywords

Updates = Sequence[tuple[AnyVariable, AnyVariable]]
Steps = Mapping[AnyVariable, AnyVariable]
Step = tuple[AnyVariable, Updates]


class StepRule(NamedKeywords):
    """What becomes of the gradients before they are subtracted from the parameters.

    Attributes that are hyperparameters (see `bricks.algorithms.states.hyperparameter`) and
    attributes that are rules are found by themselves when the algorithm's state is named.
    """

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        """Build the step of one parameter.

        Parameters
        ----------
        parameter : SharedVariable
            The parameter.
        previous_step : Variable
            What the rule before this one would subtract from it, with the parameter's shape.

        Returns
        -------
        step : Variable
            What this rule would subtract from it, with the parameter's shape and dtype.
        updates : sequence of (SharedVariable, Variable)
            The new values of what the rule remembers.

        Raises
        ------
        NotImplementedError
            If a rule overrides neither this method nor `compute_steps`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must override `compute_step` or `compute_steps`."
        )

    def compute_steps(self, previous_steps: Steps) -> tuple[Steps, Updates]:
        """Build the steps of all parameters.

        Parameters
        ----------
        previous_steps : OrderedDict
            From parameter to what the rule before this one would subtract from it.

        Returns
        -------
        steps : OrderedDict
            From the same parameters, in the same order, to their steps.
        updates : list of (SharedVariable, Variable)
            The new values of what the rule remembers.
        """
        steps: OrderedDict[AnyVariable, AnyVariable] = OrderedDict()
        updates: list[tuple[AnyVariable, AnyVariable]] = []
        for parameter, previous_step in previous_steps.items():
            steps[parameter], more = self.compute_step(parameter, previous_step)
            updates.extend(more)
        return steps, updates

    @property
    def children(self) -> dict[str, "StepRule"]:
        """The rules that this one applies, by the names that their state gets."""
        return {name: value for name, value in vars(self).items() if isinstance(value, StepRule)}

    @property
    def hyperparameters(self) -> dict[str, AnyVariable]:
        """The hyperparameters of this rule, by name, without those of its `children`."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, Variable) and has_roles(value, [ALGORITHM_HYPERPARAMETER])
        }

    def __repr__(self) -> str:
        parts = [f"{name}={_plain(value)}" for name, value in self.hyperparameters.items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def _plain(variable: AnyVariable) -> Any:
    """Show a hyperparameter as a short number if it has one, as the variable if not."""
    if isinstance(variable, SharedVariable) and variable.type.ndim == 0:
        return f"{float(variable.get_value()):.7g}"
    return variable


class CompositeRule(StepRule):
    """Several rules, each applied to the steps of the one before it.

    Parameters
    ----------
    components : list of StepRule
        The rules; the first one gets the gradients. The components' state is named by their
        positions in this list.

    Raises
    ------
    TypeError
        If a component is no step rule.
    """

    def __init__(self, components: Sequence[StepRule]) -> None:
        for position, component in enumerate(components):
            if not isinstance(component, StepRule):
                raise TypeError(
                    f"{type(self).__name__}: `components` must be a list of step rules; got "
                    f"{component!r} in position {position}."
                    + (" Make an instance of it." if isinstance(component, type) else "")
                )
        self.components = list(components)

    def compute_steps(self, previous_steps: Steps) -> tuple[Steps, Updates]:
        steps = previous_steps
        updates: list[tuple[AnyVariable, AnyVariable]] = []
        for name, component in self.children.items():
            steps, more = component.compute_steps(steps)
            put_below(name, (target for target, _ in more))
            updates.extend(more)
        return steps, updates

    @property
    def children(self) -> dict[str, StepRule]:
        return {str(position): component for position, component in enumerate(self.components)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.components!r})"


class Restrict(StepRule):
    """A rule that is applied to some of the parameters; the steps of the others stay.

    Parameters
    ----------
    rule : StepRule
        The rule.
    variables : iterable of SharedVariable
        The parameters that it is applied to. Found with a `VariableFilter`, for example.
    """

    def __init__(self, rule: StepRule, variables: Iterable[AnyVariable]) -> None:
        self.rule = rule
        self.variables = list(dict.fromkeys(variables))

    def compute_steps(self, previous_steps: Steps) -> tuple[Steps, Updates]:
        """Build the steps of all parameters; see `StepRule.compute_steps`.

        Raises
        ------
        ValueError
            If one of `variables` is not among the parameters.
        """
        for variable in self.variables:
            if variable not in previous_steps:
                raise ValueError(
                    f"Restrict: `variables` must be parameters that are trained; "
                    f"{variable_path(variable)} is not. Trained are: "
                    f"{', '.join(variable_path(parameter) for parameter in previous_steps)}."
                )
        chosen = set(self.variables)
        restricted = OrderedDict(
            (parameter, step) for parameter, step in previous_steps.items() if parameter in chosen
        )
        new_steps, updates = self.rule.compute_steps(restricted)
        put_below("rule", (target for target, _ in updates))
        steps = OrderedDict(
            (parameter, new_steps[parameter] if parameter in chosen else step)
            for parameter, step in previous_steps.items()
        )
        return steps, updates

    def __repr__(self) -> str:
        names = ", ".join(variable_path(variable) for variable in self.variables)
        return f"Restrict({self.rule!r}, [{names}])"


class Scale(StepRule):
    """A step in the direction opposite to the gradient, of proportional length.

    Parameters
    ----------
    learning_rate : float or Variable, optional
        What the step is multiplied with. The default is 1.

    Attributes
    ----------
    learning_rate : SharedVariable
        May be changed between batches.
    """

    def __init__(self, learning_rate: Any = 1.0) -> None:
        self.learning_rate = hyperparameter(learning_rate, "learning_rate")

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        return self.learning_rate * previous_step, []


def check_between(owner: object, name: str, value: object, low: float, high: float) -> None:
    """Refuse a hyperparameter that is a number outside of its range.

    Parameters
    ----------
    owner : object
        The rule, for the message.
    name : str
        The argument's name.
    value : object
        What was given; a variable is not looked at.
    low, high : float
        The range, ends included.

    Raises
    ------
    ValueError
        If it is not a number in the range.
    """
    if isinstance(value, Variable):
        return
    if not is_number(value) or not low <= value <= high:  # type: ignore[operator]
        raise ValueError(
            f"{type(owner).__name__}: `{name}` must be from {low:g} to {high:g}; got {value!r}."
        )
