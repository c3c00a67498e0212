"""Step rules that bound steps and parameters, or make a step harmless."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import aesara.tensor as tensor

from bricks.algorithms.rules import Step, StepRule, Steps, Updates
from bricks.algorithms.states import (
    AnyVariable,
    hyperparameter,
    variable_path,
)
from bricks.utils.plain import is_integer


def total_norm(variables: Iterable[AnyVariable]) -> AnyVariable:
    """Build the Euclidean norm of all elements of some variables together.

    Parameters
    ----------
    variables : iterable of Variable
        Of any shapes.

    Returns
    -------
    Variable
        A scalar.
    """
    # Summed in the order given: floats do not add associatively, and a resumed run must match.
    squares = [tensor.sum(variable**2) for variable in variables]
    return tensor.sqrt(sum(squares[1:], squares[0]))


class StepClipping(StepRule):
    """All steps together, scaled down where their common norm is above a threshold.

    Parameters
    ----------
    threshold : float or Variable, optional
        The largest Euclidean norm of all steps taken as one vector. By default nothing is
        clipped.

    References
    ----------
    R. Pascanu, T. Mikolov, Y. Bengio, *On the difficulty of training recurrent neural
    networks*, 2013, algorithm 1.
    """

    def __init__(self, threshold: Any = None) -> None:
        self.threshold = None if threshold is None else hyperparameter(threshold, "threshold")

    def compute_steps(self, previous_steps: Steps) -> tuple[Steps, Updates]:
        if self.threshold is None or not previous_steps:
            return previous_steps, []
        norm = total_norm(previous_steps.values())
        factor = tensor.switch(norm < self.threshold, 1.0, self.threshold / norm)
        factor = tensor.cast(factor, norm.dtype)
        return OrderedDict((p, step * factor) for p, step in previous_steps.items()), []


class VariableClipping(StepRule):
    """Steps after which no norm of a parameter is above a threshold.

    Parameters
    ----------
    threshold : float or Variable
        The largest Euclidean norm of the parameter *after* the step.
    axis : int or iterable of int, optional
        The axes over which a norm is summed: 0 bounds each column of a matrix that multiplies
        from the right, as all the weights into one unit. By default each parameter has one
        norm.

    Notes
    -----
    This rule has to be the last one: a rule after it would change the step again.

    References
    ----------
    G. Hinton, N. Srivastava, A. Krizhevsky, I. Sutskever, R. Salakhutdinov, *Improving neural
    networks by preventing co-adaptation of feature detectors*, 2012, appendix A.1.
    """

    def __init__(self, threshold: Any, axis: int | Iterable[int] | None = None) -> None:
        axes: Any = () if axis is None else axis
        self.axis = (axes,) if is_integer(axes) else tuple(axes)
        if len(set(self.axis)) != len(self.axis):
            raise ValueError(
                f"VariableClipping: `axis` must not name an axis twice; got {self.axis}."
            )
        self.threshold = hyperparameter(threshold, "threshold")

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        """Build the step of one parameter; see `StepRule.compute_step`.

        Raises
        ------
        ValueError
            If the parameter does not have the axes.
        """
        if any(not -previous_step.ndim <= axis < previous_step.ndim for axis in self.axis):
            raise ValueError(
                f"VariableClipping: `axis` is {self.axis}, but {variable_path(parameter)} has "
                f"{previous_step.ndim} axes. Wrap the rule in `Restrict` to leave it out."
            )
        updated = parameter - previous_step
        axis = self.axis or None
        norms = tensor.sqrt(tensor.sum(updated**2, axis=axis, keepdims=True))
        # Not below the threshold, so that a norm of 0 does not make a NaN that is thrown away.
        clipped = parameter - self.threshold / tensor.maximum(norms, self.threshold) * updated
        return tensor.switch(norms > self.threshold, clipped, previous_step), []

    def __repr__(self) -> str:
        return super().__repr__()[:-1] + f", axis={self.axis or None})"


class RemoveNotFinite(StepRule):
    """Steps without those that hold an infinite element or one that is not a number.

    A parameter whose step has such an element is multiplied with `scaler` instead.

    Parameters
    ----------
    scaler : float or Variable, optional
        The default is 1: the parameter stays as it is.

    Notes
    -----
    Put it before rules that remember steps, such as `Momentum` or `Adam`: what is not a number
    would stay in their buffers. Those rules then treat the shrinking like any other step.

    Blocks looked at the sum of the elements, which may overflow though each one is finite;
    this rule looks at each element.
    """

    def __init__(self, scaler: Any = 1) -> None:
        self.scaler = hyperparameter(scaler, "scaler")

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        bad = tensor.isnan(previous_step) | tensor.isinf(previous_step)
        shrinking = (1 - self.scaler) * parameter
        return tensor.switch(tensor.any(bad), shrinking, previous_step), []
