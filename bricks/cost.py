"""Costs: how far predictions are from targets. The targets come first: ``apply(y, y_hat)``."""

from abc import abstractmethod
from typing import Any

from aesara import config, tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import Brick, application
from bricks.checks import check_ndim, check_same_shape
from bricks.saturation import log_softmax_of, logits_of, unless_replaced
from bricks.targets import (
    classes,
    cross_entropy,
    cross_entropy_of_probabilities,
    is_class,
    score_of_class,
)

__all__ = [
    "AbsoluteError",
    "BinaryCrossEntropy",
    "CategoricalCrossEntropy",
    "Cost",
    "CostMatrix",
    "MisclassificationRate",
    "SquaredError",
]


class Cost(Brick):
    """The base class of bricks whose application gives a scalar cost."""

    @abstractmethod
    @application
    def apply(self, y: Variable, y_hat: Variable) -> Variable:
        """Cost of predictions.

        Parameters
        ----------
        y : Variable
            The targets.
        y_hat : Variable
            The predictions.

        Returns
        -------
        Variable
            A scalar.
        """


class CostMatrix(Cost):
    """The base class of costs that are summed over features and averaged over the batch."""

    @application(outputs=["cost"])
    def apply(self, application: Any, *args: Variable, **kwargs: Variable) -> Variable:
        """Cost of predictions.

        Parameters
        ----------
        *args, **kwargs : Variable
            For `cost_matrix`: the targets ``y`` and the predictions ``y_hat``.

        Returns
        -------
        Variable
            A scalar.
        """
        costs = self.cost_matrix(*args, **kwargs)
        check_ndim(application.path, 2, cost_matrix=costs)
        return costs.sum(axis=1).mean()

    @abstractmethod
    @application
    def cost_matrix(self, y: Variable, y_hat: Variable) -> Variable:
        """Cost of each feature of each example.

        Parameters
        ----------
        y : Variable of shape (batch, feature)
            The targets.
        y_hat : Variable of shape (batch, feature)
            The predictions.

        Returns
        -------
        Variable of shape (batch, feature)
        """


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
        y, y_hat = _pair(application.path, y, y_hat)
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
        y, y_hat = _pair(application.path, y, y_hat)
        return tensor.abs(y - y_hat)


class SquaredError(CostMatrix):
    """The square of the difference."""

    @application(outputs=["cost_matrix"])
    def cost_matrix(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Cost of each feature of each example; see `CostMatrix.cost_matrix`."""
        y, y_hat = _pair(application.path, y, y_hat)
        return (y - y_hat) ** 2


class CategoricalCrossEntropy(Cost):
    """Cross-entropy of classes, in nats, averaged over the batch.

    It takes probabilities. Of the output of a softmax, also when it is copied, reshaped, transposed
    or indexed, it is computed from what the softmax was applied to. So it and its gradient are
    exact also where the probabilities are rounded to 0.
    """

    @application(outputs=["cost"])
    def apply(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Cost of predictions.

        Parameters
        ----------
        y : Variable of shape (batch,), (batch, 1) or (batch, class)
            Integers from 0: the classes. Or weights of the classes: a distribution.
        y_hat : Variable of shape (batch, class)
            The predicted probabilities of the classes.

        Returns
        -------
        Variable
            A scalar; NaN if there is a class that is not one of them.
        """
        check_ndim(application.path, 2, y_hat=y_hat)
        y_hat = as_float(y_hat)
        costs = cross_entropy_of_probabilities(application.path, y, y_hat)
        logarithms = log_softmax_of(y_hat)
        if logarithms is not None:
            exact = cross_entropy(application.path, y, logarithms)
            costs = unless_replaced(exact, costs, y_hat, logarithms)
        return costs.mean()


class MisclassificationRate(Cost):
    """The share of examples whose class is not predicted.

    Parameters
    ----------
    top_k : int
        An example counts as right if less than this many other classes score at least as high as
        its own. With 1, of classes with equal scores the first is the prediction. It must be less
        than the number of classes: otherwise nothing is a mistake.
    **kwargs
        For `Brick`.
    """

    def __init__(self, top_k: int = 1, **kwargs: Any) -> None:
        if not isinstance(top_k, int) or top_k < 1:
            raise ValueError(
                f"{type(self).__name__}: `top_k` must be a positive integer; got {top_k!r}."
            )
        super().__init__(**kwargs)
        self.top_k = top_k

    @application(outputs=["error_rate"])
    def apply(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Share of mistakes.

        Parameters
        ----------
        y : Variable of shape (batch,), (batch, 1) or (batch, class)
            Integers from 0: the classes. Or weights of the classes, the largest of which counts.
        y_hat : Variable of shape (batch, class)
            Scores of the classes: probabilities, or what a softmax would be applied to.

        Returns
        -------
        Variable
            A scalar from 0 to 1. A class that is not one of them is a mistake, and so is an
            example of which a score is NaN.

        Raises
        ------
        ValueError
            If the shapes do not fit, or `top_k` is not less than a number of classes that is known.
        """
        check_ndim(application.path, 2, y_hat=y_hat)
        num_classes = y_hat.type.shape[-1]
        if num_classes is not None and self.top_k >= num_classes:
            raise ValueError(
                f"{application.path}: `top_k` must be less than the number of classes, "
                f"{num_classes}, or nothing would be a mistake; got {self.top_k}."
            )
        numbers = classes(application.path, y, y_hat)
        if self.top_k == 1:
            mistakes = tensor.neq(numbers, tensor.argmax(y_hat, axis=-1))
        else:
            own = tensor.shape_padright(score_of_class(y_hat, numbers))
            # The class itself is among those that score as high as it does.
            mistakes = tensor.gt(tensor.ge(y_hat, own).sum(axis=-1), self.top_k)
        mistakes = tensor.or_(mistakes, tensor.isnan(y_hat).any(axis=-1))
        mistakes = tensor.or_(mistakes, tensor.invert(is_class(numbers, y_hat)))
        return mistakes.mean(dtype=config.floatX)


def _pair(application: str, y: Variable, y_hat: Variable) -> tuple[Variable, Variable]:
    """Targets and predictions that fit each other, without a wider dtype than they need."""
    check_ndim(application, 2, y=y, y_hat=y_hat)
    check_same_shape(application, y=y, y_hat=y_hat)
    y_hat = as_float(y_hat)
    return as_float(y, y_hat.dtype), y_hat
