"""What targets say about classes: one number for each example, or one weight for each class.

Data sets give the classes of a batch as integers of shape ``(batch,)`` or ``(batch, 1)``, or as a
distribution (or one-hot code) of shape ``(batch, class)``. Everything here takes all three. With
more axes, the classes are the last one.
"""

from typing import Any

from aesara import tensor
from aesara.ifelse import ifelse
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.checks import check_ndim, describe


def cross_entropy(application: str, y: Any, log_probabilities: Variable) -> Variable:
    """Cross-entropy of each example: how unlikely the targets are, in nats.

    Parameters
    ----------
    application : str
        Path of the application that computes it, for messages.
    y : Variable of shape (..., batch), (..., batch, 1) or (..., batch, class)
        Integers from 0: the classes. Or weights of the classes: a distribution.
    log_probabilities : Variable of shape (..., batch, class)
        The logarithms of the probabilities of the classes. Where the weight is 0 they do not
        count, not even if they are infinite.

    Returns
    -------
    Variable of shape (..., batch)
        In the dtype of `log_probabilities`. NaN where the class is not one of them.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    check_targets(application, y, log_probabilities)
    weights = _weights(y, log_probabilities)
    counted = tensor.switch(tensor.eq(weights, 0), 0, log_probabilities)
    return _nan_without_class(-(weights * counted).sum(axis=-1), y, log_probabilities)


def cross_entropy_of_probabilities(application: str, y: Any, probabilities: Variable) -> Variable:
    """Cross-entropy of each example, from probabilities themselves.

    Parameters
    ----------
    application : str
        Path of the application that computes it, for messages.
    y : Variable of shape (..., batch), (..., batch, 1) or (..., batch, class)
        Integers from 0: the classes. Or weights of the classes: a distribution.
    probabilities : Variable of shape (..., batch, class)
        Where the weight is 0 they do not count, neither in the cost nor in its gradient.

    Returns
    -------
    Variable of shape (..., batch)
        In nats, in the dtype of `probabilities`. NaN where the class is not one of them.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    check_targets(application, y, probabilities)
    weights = _weights(y, probabilities)
    # Not the logarithm is guarded but what it is taken of: 0 times its infinite slope is NaN.
    counted = tensor.switch(tensor.eq(weights, 0), 1, probabilities)
    return _nan_without_class(-(weights * tensor.log(counted)).sum(axis=-1), y, probabilities)


def classes(application: str, y: Variable, scores: Variable) -> Variable:
    """Number of the class of each example.

    Parameters
    ----------
    application : str
        Path of the application that asks, for messages.
    y : Variable of shape (..., batch), (..., batch, 1) or (..., batch, class)
        Integers from 0: the classes. Or weights of the classes, the largest of which counts.
    scores : Variable of shape (..., batch, class)
        What the targets are compared with.

    Returns
    -------
    Variable of shape (..., batch)
        Integers.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    check_targets(application, y, scores)
    if _are_numbers(y, scores):
        return _numbers(y, scores)
    numbers: Any = tensor.argmax(y, axis=-1)
    if _may_be_numbers(y):
        numbers = ifelse(tensor.eq(y.shape[-1], 1), y[..., 0].astype("int64"), numbers)
    return numbers


def score_of_class(scores: Variable, numbers: Variable) -> Variable:
    """Score of one class for each example.

    Parameters
    ----------
    scores : Variable of shape (..., batch, class)
        Any.
    numbers : Variable of shape (..., batch)
        The classes.

    Returns
    -------
    Variable of shape (..., batch)
        Minus infinity where the class is not one of them.
    """
    return tensor.max(tensor.switch(_is_number(numbers, scores), scores, -float("inf")), axis=-1)


def is_class(numbers: Variable, scores: Variable) -> Variable:
    """Where the class of an example is one of those that there are.

    Parameters
    ----------
    numbers : Variable of shape (..., batch)
        The classes.
    scores : Variable of shape (..., batch, class)
        Any.

    Returns
    -------
    Variable of shape (..., batch)
        Truth values.
    """
    return tensor.and_(tensor.ge(numbers, 0), tensor.lt(numbers, scores.shape[-1]))


def check_targets(application: str, y: Variable, scores: Variable) -> None:
    """Refuse targets that do not fit the scores of classes.

    Parameters
    ----------
    application : str
        Path of the application that has them, for messages.
    y : Variable
        The targets.
    scores : Variable
        The scores of the classes.

    Raises
    ------
    ValueError
        If the shapes do not fit, or classes are given by other numbers than integers.
    """
    check_ndim(application, 2, predictions=scores)
    got = f"got {describe(y)} for predictions {describe(scores)}."
    if y.ndim not in (scores.ndim - 1, scores.ndim):
        raise ValueError(
            f"{application}: `y` must have shape (batch,) or (batch, 1), the numbers of the "
            f"classes, or (batch, class), their weights; {got}"
        )
    if y.ndim == scores.ndim - 1 and not _is_integer(y):
        raise ValueError(f"{application}: `y` of shape (batch,) must be integers, classes; {got}")
    lengths = list(zip(y.type.shape, scores.type.shape, strict=False))
    if _are_numbers(y, scores):
        lengths = lengths[: scores.ndim - 1]
    if any(None not in pair and pair[0] != pair[1] for pair in lengths):
        raise ValueError(f"{application}: `y` does not fit the predictions; {got}")


def _is_integer(y: Variable) -> bool:
    return y.dtype.startswith(("int", "uint"))


def _are_numbers(y: Variable, scores: Variable) -> bool:
    """Tell whether targets are known to be numbers of classes."""
    if y.ndim < scores.ndim:
        return True
    return _is_integer(y) and y.type.shape[-1] == 1 != scores.type.shape[-1]


def _may_be_numbers(y: Variable) -> bool:
    """Tell whether targets with an axis of unknown length can be numbers of classes."""
    return _is_integer(y) and y.type.shape[-1] is None


def _numbers(y: Variable, scores: Variable) -> Variable:
    return y if y.ndim < scores.ndim else y[..., 0]


def _is_number(numbers: Variable, scores: Variable) -> Variable:
    """Where the class of the last axis is the one of the example."""
    return tensor.eq(tensor.arange(scores.shape[-1]), tensor.shape_padright(numbers))


def _nan_without_class(costs: Variable, y: Variable, scores: Variable) -> Variable:
    """Costs, with NaN where targets that are numbers of classes have no class."""
    known = _are_numbers(y, scores)
    if not known and not _may_be_numbers(y):
        return costs
    numbers = _numbers(y, scores)
    missing = tensor.switch(is_class(numbers, scores), 0, float("nan"))
    if not known:
        missing = tensor.switch(tensor.eq(y.shape[-1], 1), missing, 0)
    # For who looks for the origin of the NaN.
    missing.tag.targets = (numbers, scores.shape[-1])
    # Added, so that it stays out of the gradient.
    return costs + missing


def _weights(y: Variable, scores: Variable) -> Any:
    """Weights of the classes, also of targets that are numbers."""
    if _are_numbers(y, scores):
        return _one_hot(_numbers(y, scores), scores)
    weights = as_float(y, scores.dtype)
    if not _may_be_numbers(y):
        return weights
    return ifelse(tensor.eq(y.shape[-1], 1), _one_hot(y[..., 0], scores), weights)


def _one_hot(numbers: Variable, scores: Variable) -> Variable:
    # Compared, not indexed: a compiler fuses this with what is around it, gradient included,
    # where an index would become a scatter.
    return as_float(_is_number(numbers, scores), scores.dtype)
