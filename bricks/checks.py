"""Checks that bricks make of their sizes and inputs, as early as these are known."""

from collections.abc import Sequence
from typing import Any

from aesara import tensor
from aesara.raise_op import Assert
from aesara.tensor.var import TensorVariable as Variable

from bricks.base import Brick
from bricks.utils.plain import is_integer, is_number


def check_sizes(brick: Brick, **sizes: Any) -> None:
    """Refuse sizes that are no positive integers, when a brick is allocated.

    Parameters
    ----------
    brick : Brick
        Whose sizes they are.
    **sizes : int
        By the names of its arguments.

    Raises
    ------
    ValueError
        If one is not a positive integer.
    """
    for name, size in sizes.items():
        if not is_integer(size) or size < 1:
            raise ValueError(
                f"{brick.path} cannot be allocated: `{name}` must be a positive integer; "
                f"got {size!r}."
            )


def check_epsilon(brick: Brick, epsilon: Any) -> None:
    """Refuse what cannot be added to a variance, when a brick is allocated.

    Parameters
    ----------
    brick : Brick
        Whose `epsilon` it is.
    epsilon : float
        What is added.

    Raises
    ------
    ValueError
        If it is not a number, or negative.
    """
    if not is_number(epsilon) or epsilon < 0:
        raise ValueError(
            f"{brick.path} cannot be allocated: `epsilon` must be a number from 0; got {epsilon!r}."
        )


def check_ndim(application: str, least: int, **inputs: Variable) -> None:
    """Refuse inputs that have too few axes.

    Parameters
    ----------
    application : str
        The path of the application.
    least : int
        How many axes each must have at least.
    **inputs : Variable
        By the names of its arguments.

    Raises
    ------
    ValueError
        If one has fewer.
    """
    for name, variable in inputs.items():
        if variable.ndim < least:
            raise ValueError(
                f"{application}: `{name}` must have at least {least} "
                f"{'axis' if least == 1 else 'axes'}; got {describe(variable)}."
            )


def check_same_shape(application: str, **inputs: Variable) -> None:
    """Refuse two inputs that would be stretched to fit each other.

    Parameters
    ----------
    application : str
        The path of the application.
    **inputs : Variable
        Two, by the names of its arguments.

    Raises
    ------
    ValueError
        If they have another number of axes, or lengths that are known to differ.
    """
    (first_name, first), (second_name, second) = inputs.items()
    lengths = zip(first.type.shape, second.type.shape, strict=False)
    same = all(None in pair or pair[0] == pair[1] for pair in lengths)
    if first.ndim != second.ndim or not same:
        raise ValueError(
            f"{application}: `{first_name}` and `{second_name}` must have the same shape; got "
            f"{describe(first)} and {describe(second)}. Reshape one of them first."
        )


def check_at_run_time(message: str, variable: Variable, lengths: Sequence[int | None]) -> Variable:
    """Let lengths that are not known before run time be compared then.

    What they are compared by are shapes, so nothing is computed for it on the device.

    Parameters
    ----------
    message : str
        Of the ``AssertionError`` if one differs.
    variable : Variable
        Any.
    lengths : sequence of int or None
        What its axes must have; None for any length.

    Returns
    -------
    Variable
        The same; itself if there is nothing to compare.
    """
    conditions = [
        tensor.eq(variable.shape[axis], length)
        for axis, (known, length) in enumerate(zip(variable.type.shape, lengths, strict=True))
        if known is None and length is not None
    ]
    compare: Any = Assert(message)
    return compare(variable, *conditions) if conditions else variable


def describe(variable: Variable) -> str:
    """Describe a variable by its name, dtype and shape, with ``?`` for unknown lengths.

    Parameters
    ----------
    variable : Variable
        Any tensor.

    Returns
    -------
    str
        Such as ``'features' (float32, shape (?, 784))``.
    """
    # The copy that an application makes of its input has the name of the application's argument.
    lengths = ", ".join("?" if length is None else str(length) for length in variable.type.shape)
    comma = "," if variable.ndim == 1 else ""
    return f"{variable.name or 'an input'!r} ({variable.dtype}, shape ({lengths}{comma}))"
