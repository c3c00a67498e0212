"""Costs of classes."""

from typing import Any

from aesara import config, tensor
from aesara.raise_op import Assert
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, of_dtype
from bricks.base import application
from bricks.checks import check_ndim
from bricks.cost.base import Cost
from bricks.saturation import log_softmax_of, unless_replaced
from bricks.targets import (
    classes,
    cross_entropy,
    cross_entropy_of_probabilities,
    is_class,
    score_of_class,
)
from bricks.utils.plain import is_integer, is_number

__all__ = ["CategoricalCrossEntropy", "MisclassificationRate"]


class CategoricalCrossEntropy(Cost):
    """Cross-entropy of classes, in nats, averaged over the batch.

    It takes probabilities. Of the output of a softmax, also when it is copied, reshaped, transposed
    or indexed, it is computed from what the softmax was applied to. So it and its gradient are
    exact also where the probabilities are rounded to 0.

    Parameters
    ----------
    label_smoothing : float
        The share of each target that is spread evenly over all classes, at least 0 and below 1.
        Above 0, a class that is impossible costs infinitely much, also where it is not the target.
    **kwargs
        For `Brick`.

    References
    ----------
    C. Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR 2016, for
    the smoothing.
    """

    def __init__(self, label_smoothing: float = 0.0, **kwargs: Any) -> None:
        if not is_number(label_smoothing) or not 0 <= label_smoothing < 1:
            raise ValueError(
                f"{type(self).__name__}: `label_smoothing` must be a share, at least 0 and below "
                f"1; got {label_smoothing!r}."
            )
        super().__init__(**kwargs)
        self.label_smoothing = float(label_smoothing)

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
        return self._costs(application.path, y, y_hat).mean()

    @application(outputs=["costs"])
    def costs(self, application: Any, y: Variable, y_hat: Variable) -> Variable:
        """Cost of the prediction of each example.

        Parameters
        ----------
        y, y_hat : Variable
            As of `apply`.

        Returns
        -------
        Variable of shape (batch,)
            NaN for a class that is not one of them.
        """
        return self._costs(application.path, y, y_hat)

    # No application: `apply` would have inputs of both by the same names.
    def _costs(self, path: str, y: Variable, y_hat: Variable) -> Variable:
        check_ndim(path, 2, y_hat=y_hat)
        y_hat = as_float(y_hat)
        costs = cross_entropy_of_probabilities(path, y, y_hat)
        if self.label_smoothing:
            costs = self._smooth(costs, tensor.log(y_hat))
        logarithms = log_softmax_of(y_hat)
        if logarithms is not None:
            exact = cross_entropy(path, y, logarithms)
            if self.label_smoothing:
                exact = self._smooth(exact, logarithms)
            costs = unless_replaced(exact, costs, y_hat, logarithms)
        return costs

    def _smooth(self, costs: Variable, logarithms: Variable) -> Variable:
        """Mix costs with those of a target that all classes share evenly."""
        even = -logarithms.mean(axis=-1)
        share = self.label_smoothing
        return of_dtype(1 - share, costs.dtype) * costs + of_dtype(share, even.dtype) * even


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
        if not is_integer(top_k) or top_k < 1:
            raise ValueError(
                f"{type(self).__name__}: `top_k` must be a positive integer; got {top_k!r}."
            )
        super().__init__(**kwargs)
        self.top_k = int(top_k)

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
            What is known only at run time is an ``AssertionError`` there.
        """
        check_ndim(application.path, 2, y_hat=y_hat)
        y_hat = self._with_more_classes(application.path, y_hat)
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

    def _with_more_classes(self, path: str, y_hat: Variable) -> Any:
        """Refuse scores of as many classes as count as right, now or at run time."""
        words = "`top_k` must be less than the number of classes"
        num_classes = y_hat.type.shape[-1]
        if num_classes is None:
            message = f"{path}: {words}, or nothing would be a mistake; top_k={self.top_k}."
            return Assert(message)(y_hat, tensor.gt(y_hat.shape[-1], self.top_k))
        if self.top_k >= num_classes:
            raise ValueError(
                f"{path}: {words}, {num_classes}, or nothing would be a mistake; got {self.top_k}."
            )
        return y_hat
