"""Step rules that give each element of each parameter a length of its own."""

from collections import OrderedDict
from typing import Any

import aesara.tensor as tensor
from aesara.graph.basic import Variable

from bricks.algorithms.rules import (
    CompositeRule,
    Scale,
    Step,
    StepRule,
    Steps,
    Updates,
    check_between,
)
from bricks.algorithms.states import (
    AnyVariable,
    algorithm_buffer,
    common_buffer,
    hyperparameter,
)
from bricks.utils.plain import is_number


class AdaDelta(StepRule):
    """Steps as long as the recent ones were, over what the recent gradients were.

    Parameters
    ----------
    decay_rate : float or Variable, optional
        How much of the running means of squares is kept at each step, from 0 to 1. The
        default is 0.95.
    epsilon : float or Variable, optional
        Added to both means before the root is taken. The default is 1e-6.

    Raises
    ------
    ValueError
        If the decay rate is not from 0 to 1.

    References
    ----------
    M. D. Zeiler, *ADADELTA: an adaptive learning rate method*, 2012, algorithm 1.
    """

    def __init__(self, decay_rate: Any = 0.95, epsilon: Any = 1e-6) -> None:
        check_between(self, "decay_rate", decay_rate, 0, 1)
        self.decay_rate = hyperparameter(decay_rate, "decay_rate")
        self.epsilon = hyperparameter(epsilon, "epsilon")

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        mean_square_step = algorithm_buffer(parameter, "mean_square_step_tm1")
        mean_square_delta = algorithm_buffer(parameter, "mean_square_delta_x_tm1")
        new_mean_square_step = _fade(self.decay_rate, mean_square_step, previous_step**2)
        rms_delta = tensor.sqrt(mean_square_delta + self.epsilon)
        rms_step = tensor.sqrt(new_mean_square_step + self.epsilon)
        step = rms_delta / rms_step * previous_step
        new_mean_square_delta = _fade(self.decay_rate, mean_square_delta, step**2)
        return step, [
            (mean_square_step, new_mean_square_step),
            (mean_square_delta, new_mean_square_delta),
        ]


class BasicRMSProp(StepRule):
    """Steps over the root of the running mean of their squares.

    Parameters
    ----------
    decay_rate : float or Variable, optional
        How much of the running mean is kept at each step, from 0 to 1. The default is 0.9.
    max_scaling : float or Variable, optional
        A step is multiplied with at most this. The default is 1e5.

    Raises
    ------
    ValueError
        If the decay rate is not from 0 to 1, or the largest factor not above 0.

    Notes
    -----
    The lecture says nothing about small roots. Other libraries add a constant to the root or
    to the mean; as Blocks did, this rule takes the larger one of the root and
    ``1 / max_scaling``, so that the step is exact wherever the root is not tiny.

    References
    ----------
    T. Tieleman, G. Hinton, *Lecture 6.5: rmsprop*, Coursera, 2012.
    """

    def __init__(self, decay_rate: Any = 0.9, max_scaling: Any = 1e5) -> None:
        check_between(self, "decay_rate", decay_rate, 0, 1)
        is_known = not isinstance(max_scaling, Variable)
        if is_known and (not is_number(max_scaling) or max_scaling <= 0):
            raise ValueError(
                f"{type(self).__name__}: `max_scaling` must be above 0; got {max_scaling!r}."
            )
        self.decay_rate = hyperparameter(decay_rate, "decay_rate")
        self.max_scaling = hyperparameter(max_scaling, "max_scaling")

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        mean_square_step = algorithm_buffer(parameter, "mean_square_step_tm1")
        new_mean_square_step = _fade(self.decay_rate, mean_square_step, previous_step**2)
        rms_step = tensor.maximum(tensor.sqrt(new_mean_square_step), 1 / self.max_scaling)
        return previous_step / rms_step, [(mean_square_step, new_mean_square_step)]


class RMSProp(CompositeRule):
    """`BasicRMSProp`, then a learning rate.

    Parameters
    ----------
    learning_rate : float or Variable, optional
        The default is 1.
    decay_rate : float or Variable, optional
        The default is 0.9.
    max_scaling : float or Variable, optional
        The default is 1e5.

    Attributes
    ----------
    learning_rate, decay_rate, max_scaling : SharedVariable
        May be changed between batches.

    References
    ----------
    T. Tieleman, G. Hinton, *Lecture 6.5: rmsprop*, Coursera, 2012.
    """

    def __init__(
        self, learning_rate: Any = 1.0, decay_rate: Any = 0.9, max_scaling: Any = 1e5
    ) -> None:
        basic_rms_prop = BasicRMSProp(decay_rate=decay_rate, max_scaling=max_scaling)
        scale = Scale(learning_rate=learning_rate)
        self.learning_rate = scale.learning_rate
        self.decay_rate = basic_rms_prop.decay_rate
        self.max_scaling = basic_rms_prop.max_scaling
        super().__init__([basic_rms_prop, scale])

    __repr__ = StepRule.__repr__


class AdaGrad(StepRule):
    """Steps over the root of the sum of all earlier squares.

    Parameters
    ----------
    learning_rate : float or Variable, optional
        What the result is multiplied with. The default is 0.002.
    epsilon : float or Variable, optional
        Added to the root. The default is 1e-6.

    References
    ----------
    J. Duchi, E. Hazan, Y. Singer, *Adaptive subgradient methods for online learning and
    stochastic optimization*, 2011: the diagonal variant.
    """

    def __init__(self, learning_rate: Any = 0.002, epsilon: Any = 1e-6) -> None:
        self.learning_rate = hyperparameter(learning_rate, "learning_rate")
        self.epsilon = hyperparameter(epsilon, "epsilon")

    def compute_step(self, parameter: AnyVariable, previous_step: AnyVariable) -> Step:
        sum_of_squares = algorithm_buffer(parameter, "ssq")
        new_sum_of_squares = sum_of_squares + previous_step**2
        step = self.learning_rate * previous_step / (tensor.sqrt(new_sum_of_squares) + self.epsilon)
        return step, [(sum_of_squares, new_sum_of_squares)]


class Adam(StepRule):
    """The running mean of the gradients over the root of the running mean of their squares.

    Parameters
    ----------
    learning_rate : float or Variable, optional
        The default is 0.002.
    beta1 : float or Variable, optional
        How much of the mean of the gradients is kept at each step, from 0 to 1. The default
        is 0.9.
    beta2 : float or Variable, optional
        The same for the mean of the squares. The default is 0.999.
    epsilon : float or Variable, optional
        Added to the root. The default is 1e-8.
    decay_factor : float or Variable, optional
        `beta1` is multiplied with the power ``step - 1`` of this. The default is 1: `beta1`
        stays. In ``float32`` a factor nearer to 1 than 6e-8 is 1.

    Raises
    ------
    ValueError
        If one of the betas or the decay factor is not from 0 to 1.

    Notes
    -----
    Three things differ from the published algorithm 1. The learning rate's default is 0.002
    (it was so in the paper's first version, and in Blocks); 0.001 is what the final version
    recommends. The corrections for the empty start are applied to the learning rate, as in
    the end of the paper's section 2, so `epsilon` is not corrected. `decay_factor` is the
    lambda of the paper's section 4, off by default.

    The number of steps done is one buffer, ``time``, for all parameters.

    References
    ----------
    D. P. Kingma, J. Ba, *Adam: a method for stochastic optimization*, 2014.
    """

    def __init__(
        self,
        learning_rate: Any = 0.002,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        decay_factor: Any = 1.0,
    ) -> None:
        check_between(self, "beta1", beta1, 0, 1)
        check_between(self, "beta2", beta2, 0, 1)
        check_between(self, "decay_factor", decay_factor, 0, 1)
        self.learning_rate = hyperparameter(learning_rate, "learning_rate")
        self.beta1 = hyperparameter(beta1, "beta1")
        self.beta2 = hyperparameter(beta2, "beta2")
        self.epsilon = hyperparameter(epsilon, "epsilon")
        self.decay_factor = hyperparameter(decay_factor, "decay_factor")

    def compute_steps(self, previous_steps: Steps) -> tuple[Steps, Updates]:
        time = common_buffer("time", 0)
        steps: OrderedDict[AnyVariable, AnyVariable] = OrderedDict()
        updates: list[tuple[AnyVariable, AnyVariable]] = [(time, time + 1)]
        for parameter, previous_step in previous_steps.items():
            steps[parameter], more = self.compute_step(parameter, previous_step, time=time)
            updates.extend(more)
        return steps, updates

    def compute_step(
        self,
        parameter: AnyVariable,
        previous_step: AnyVariable,
        time: AnyVariable | None = None,
    ) -> Step:
        """Build the step of one parameter; see `StepRule.compute_step`.

        Parameters
        ----------
        parameter : SharedVariable
            The parameter.
        previous_step : Variable
            What the rule before this one would subtract from it, with the parameter's shape.
        time : SharedVariable, optional
            The number of steps done, which somebody else updates. By default the parameter
            gets a counter of its own.

        Returns
        -------
        step : Variable
            What this rule would subtract from it, with the parameter's shape and dtype.
        updates : list of (SharedVariable, Variable)
            The new values of what the rule remembers.
        """
        updates: list[tuple[AnyVariable, AnyVariable]] = []
        if time is None:
            time = common_buffer("time", 0)
            updates.append((time, time + 1))
        mean = algorithm_buffer(parameter, "mean")
        variance = algorithm_buffer(parameter, "variance")
        now = time + 1
        rate = self.learning_rate * tensor.sqrt(1 - self.beta2**now) / (1 - self.beta1**now)
        new_mean = _fade(self.beta1 * self.decay_factor**time, mean, previous_step)
        new_variance = _fade(self.beta2, variance, previous_step**2)
        step = rate * new_mean / (tensor.sqrt(new_variance) + self.epsilon)
        return step, [*updates, (mean, new_mean), (variance, new_variance)]


def _fade(kept: AnyVariable, old: AnyVariable, new: AnyVariable) -> AnyVariable:
    """Mix the old with the new, keeping a part of the old."""
    return kept * old + (1 - kept) * new
