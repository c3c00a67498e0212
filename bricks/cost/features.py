"""Costs of features that are numbers, one by one or, as a vector, all together."""

from typing import Any

import numpy
from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import of_dtype
from bricks.base import application
from bricks.cost.base import Cost, CostMatrix, matching_pair
from bricks.saturation import logits_of, unless_replaced
from bricks.utils.plain import is_number

__all__ = [
    "AbsoluteError",
    "BinaryCrossEntropy",
    "CosineDistance",
    "HuberError",
    "SquaredError",
]


class BinaryCrossEntropy(CostMatrix):
    """Cross-entropy of features that are each 0 or 1, in nats.

    Of the output of a sigmoid, also when it is copied, reshaped, transposed or indexed, it is
    computed from what the sigmoid was applied to. So it and its gradient are exact also where the
    probabilities are rounded to 0 or 1.
    """

    @application(outputs=["cost_matrix"])
    def cost_matrix(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Cost of each feature of each example.

        Parameters
        ----------
        y : Variable of shape (batch, feature)
            The targets, from 0 to 1.
        y_hat : Variable of shape (batch, feature)
            The predicted probabilities of a 1.

        Returns
        -------
        Variable of shape (batch, feature)
        """
        y, y_hat = matching_pair(application.path, y, y_hat)
        # A target that excludes an outcome does not care that it is predicted as impossible.
        # What the logarithm is taken of is guarded: 0 times its infinite slope is NaN.
        is_zero, is_one = tensor.eq(y, 0), tensor.eq(y, 1)
        ones = y * tensor.log(tensor.switch(is_zero, 1, y_hat))
        zeros = (1 - y) * tensor.log1p(-tensor.switch(is_one, 0, y_hat))
        logits = logits_of(y_hat)
        if logits is None:
            return -(ones + zeros)
        exact = y * tensor.softplus(-tensor.switch(is_zero, 0, logits))
        exact += (1 - y) * tensor.softplus(tensor.switch(is_one, 0, logits))
        return unless_replaced(exact, -(ones + zeros), y_hat, logits)


class AbsoluteError(CostMatrix):
    """The absolute difference."""

    @application(outputs=["cost_matrix"])
    def cost_matrix(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Cost of each feature of each example; see `CostMatrix.cost_matrix`."""
        y, y_hat = matching_pair(application.path, y, y_hat)
        return tensor.abs(y - y_hat)


class SquaredError(CostMatrix):
    """The square of the difference."""

    @application(outputs=["cost_matrix"])
    def cost_matrix(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Cost of each feature of each example; see `CostMatrix.cost_matrix`."""
        y, y_hat = matching_pair(application.path, y, y_hat)
        return (y - y_hat) ** 2


class HuberError(CostMatrix):
    """Half the square of a small difference, and as many times a large one as keeps it smooth.

    Parameters
    ----------
    delta : float
        Up to which difference it is a square; from there on it grows like ``delta`` times the
        absolute difference.
    **kwargs
        For `Brick`.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", *Annals of Mathematical Statistics*
    35, 1964.
    """

    def __init__(self, delta: float = 1.0, **kwargs: Any) -> None:
        if not is_number(delta) or delta <= 0:
            raise ValueError(
                f"{type(self).__name__}: `delta`, up to which a difference counts as small, must "
                f"be positive; got {delta!r}. Differences alone are `AbsoluteError`."
            )
        super().__init__(**kwargs)
        self.delta = float(delta)

    @application(outputs=["cost_matrix"])
    def cost_matrix(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Cost of each feature of each example; see `CostMatrix.cost_matrix`."""
        y, y_hat = matching_pair(application.path, y, y_hat)
        difference = tensor.abs(y - y_hat)
        small = tensor.minimum(difference, of_dtype(self.delta, difference.dtype))
        # Half a square up to delta, and a line from there on: one formula for both.
        return small * (difference - 0.5 * small)


class CosineDistance(Cost):
    """One minus the cosine of the angle between two vectors: 0 to 2.

    Parameters
    ----------
    epsilon : float
        The least length that a vector is taken to have. A vector of zeros has the distance 1 from
        all others.
    **kwargs
        For `Brick`.
    """

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any) -> None:
        if not is_number(epsilon) or epsilon <= 0:
            raise ValueError(
                f"{type(self).__name__}: `epsilon`, the least length of a vector, must be "
                f"positive; got {epsilon!r}."
            )
        super().__init__(**kwargs)
        self.epsilon = float(epsilon)

    @application(outputs=["cost"])
    def apply(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Mean distance of predictions from targets.

        Parameters
        ----------
        y : Variable of shape (..., feature)
            The targets.
        y_hat : Variable of shape (..., feature)
            The predictions.

        Returns
        -------
        Variable
            A scalar.
        """
        return self.costs(y, y_hat).mean()

    @application(outputs=["costs"])
    def costs(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Distance of each prediction from its target.

        Parameters
        ----------
        y : Variable of shape (..., feature)
            The targets.
        y_hat : Variable of shape (..., feature)
            The predictions.

        Returns
        -------
        Variable of shape (...)
        """
        y, y_hat = matching_pair(application.path, y, y_hat, ndim=1)
        # One by one: the square of their product may be 0, by which the gradient would divide.
        return 1 - (y * y_hat).sum(axis=-1) / self._length(y) / self._length(y_hat)

    def _length(self, vectors: Variable) -> Variable:
        squares = (vectors**2).sum(axis=-1)
        # What the root is taken of is guarded: its slope at 0 is infinite. The square of a small
        # number may be 0 in this dtype.
        least = max(self.epsilon**2, float(numpy.finfo(squares.dtype).tiny))
        return tensor.sqrt(tensor.maximum(squares, of_dtype(least, squares.dtype)))
