"""Step rules that remember where they were going."""

from typing import Any

from bricks.algorithms.rules import CompositeRule, Scale, Step, StepRule
from bricks.algorithms.states import (
    AnyVariable,
    algorithm_buffer,
    hyperparameter,
)


class BasicMomentum(StepRule):
    """Steps that add up, with older ones fading: ``velocity = momentum * velocity + step``.

    Parameters
    ----------
    momentum : float or Variable, optional
        How much of the last velocity is kept. The default is 0.

    References
    ----------
    B. T. Polyak, *Some methods of speeding up the convergence of iteration methods*, 1964.
    """

    def __init__(self, momentum: Any = 0.0) -> None:
        self.momentum = hyperparameter(momentum, "momentum")

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        velocity = algorithm_buffer(parameter, "velocity")
        step = self.momentum * velocity + previous_step
        return step, [(velocity, step)]


class Momentum(CompositeRule):
    """A learning rate, then momentum.

    The rate is applied first, so that a change of the rate fades in: the velocity holds steps
    that were scaled with the rates of their time.

    Parameters
    ----------
    learning_rate : float or Variable, optional
        The default is 1.
    momentum : float or Variable, optional
        The default is 0.

    Attributes
    ----------
    learning_rate, momentum : SharedVariable
        May be changed between batches.

    References
    ----------
    B. T. Polyak, *Some methods of speeding up the convergence of iteration methods*, 1964.
    """

    def __init__(self, learning_rate: Any = 1.0, momentum: Any = 0.0) -> None:
        scale = Scale(learning_rate=learning_rate)
        basic_momentum = BasicMomentum(momentum=momentum)
        self.learning_rate = scale.learning_rate
        self.momentum = basic_momentum.momentum
        super().__init__([scale, basic_momentum])

    __repr__ = StepRule.__repr__


class BasicNesterovMomentum(StepRule):
    """Momentum whose step is the one that plain momentum would make next.

    ``velocity = momentum * velocity + step``, and the step made is
    ``momentum * velocity + step`` with the new velocity.

    Parameters
    ----------
    momentum : float or Variable, optional
        How much of the last velocity is kept. The default is 0.

    References
    ----------
    Y. Bengio, N. Boulanger-Lewandowski, R. Pascanu, *Advances in optimizing recurrent
    networks*, 2012, equation 7: the gradient is taken at the parameters, not at a point ahead.
    """

    def __init__(self, momentum: Any = 0.0) -> None:
        self.momentum = hyperparameter(momentum, "momentum")

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        velocity = algorithm_buffer(parameter, "velocity")
        new_velocity = self.momentum * velocity + previous_step
        step = self.momentum * new_velocity + previous_step
        return step, [(velocity, new_velocity)]


class NesterovMomentum(CompositeRule):
    """A learning rate, then Nesterov's momentum; see `BasicNesterovMomentum`.

    Parameters
    ----------
    learning_rate : float or Variable, optional
        The default is 1.
    momentum : float or Variable, optional
        The default is 0.

    Attributes
    ----------
    learning_rate, momentum : SharedVariable
        May be changed between batches.
    """

    def __init__(self, learning_rate: Any = 1.0, momentum: Any = 0.0) -> None:
        scale = Scale(learning_rate=learning_rate)
        basic_momentum = BasicNesterovMomentum(momentum=momentum)
        self.learning_rate = scale.learning_rate
        self.momentum = basic_momentum.momentum
        super().__init__([scale, basic_momentum])

    __repr__ = StepRule.__repr__
