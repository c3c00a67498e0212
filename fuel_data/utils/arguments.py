"""What a user hands in where a whole number, a time, or a yes or no belongs."""

import numbers
import operator
import reprlib
from typing import Any

import numpy


def whole_number(who: str, name: str, value: Any, least: int | None = None) -> int:
    """Make a Python integer of an argument that must be a whole number.

    Those of numpy are taken, too, but not kept: a uint8 or uint64 overflows where it is reckoned
    with other numbers.

    Parameters
    ----------
    who : str
        Whose argument it is, for the error.
    name : str
        Name of the argument, for the error.
    value : object
        What the user handed in.
    least : int, optional
        The least that it may be.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is less, or no whole number: a float, NaN, a bool, text.

    Examples
    --------
    >>> whole_number("Take", "count", numpy.uint8(3), least=0)
    3
    >>> whole_number("Take", "count", 2.5, least=0)
    Traceback (most recent call last):
    ValueError: Take: `count` must be a whole number; got 2.5.
    """
    number = as_whole_number(value)
    if number is None:
        raise ValueError(f"{who}: `{name}` must be a whole number; got {value!r}.")
    if least is not None and number < least:
        raise ValueError(f"{who}: `{name}` must be at least {least}; got {number}.")
    return number


def as_whole_number(value: Any) -> int | None:
    """Make a Python integer of a whole number, of Python or of numpy.

    Parameters
    ----------
    value : object
        Any.

    Returns
    -------
    int or None
        None if it is no whole number: a float, a bool, text, several.

    Examples
    --------
    >>> [as_whole_number(value) for value in (2, numpy.int8(2), 2.0, True, [2])]
    [2, 2, None, None, None]
    """
    if isinstance(value, (bool, numpy.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def number_of_seconds(who: str, name: str, value: Any, least: float, most: float) -> float:
    """Make a float of an argument that must be a time in seconds.

    Parameters
    ----------
    who : str
        Whose argument it is, for the error.
    name : str
        Name of the argument, for the error.
    value : object
        What the user handed in.
    least, most : float
        Between what it must lie.

    Returns
    -------
    float
        The argument.

    Raises
    ------
    ValueError
        If it is none: NaN, text, a bool, or not between them.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise ValueError(
            f"{who}: `{name}` must be a number of seconds from {least:g} to {most:g}; got "
            f"{value!r}."
        )
    return float(value)


def seed_number(who: str, seed: Any) -> int:
    """Make a Python integer of a seed.

    Parameters
    ----------
    who : str
        Whose argument it is, for the error.
    seed : int or None
        What the user handed in; None is the setting `default_seed`.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is no whole number.
    """
    from fuel_data.config_parser import config

    return whole_number(who, "seed", config.default_seed if seed is None else seed)


def truth_value(who: str, name: str, answer: Any, way_out: str = "") -> bool:
    """Make a bool of what a user's function answered where it must say yes or no.

    Python calls anything true that is not zero or empty: the list ``[False]``, the text ``"no"``.
    None would pass for False, but is what a function gives that lacks its ``return``.

    Parameters
    ----------
    who : str
        Whose argument the function is, for the error.
    name : str
        Name of the argument, for the error.
    answer : object
        What the function gave.
    way_out : str
        A last sentence for the error, after a space.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If it is neither a bool nor a whole number, nor an array that holds just one of these.

    Examples
    --------
    >>> truth_value("Filter", "predicate", numpy.array([3]) > 2)
    True
    """
    if isinstance(answer, int):
        return bool(answer)
    got = reprlib.repr(answer)
    if hasattr(answer, "__array__"):
        array = numpy.asarray(answer)
        if array.size == 1 and array.dtype.kind in "biu":
            return bool(array)
        got = f"an answer of dtype {array.dtype} and shape {array.shape}"
    elif answer is None:
        got = "None, as of a function without `return`"
    raise ValueError(
        f"{who}: `{name}` must answer True or False; got {got}. Return bool(...) of one answer, "
        f"any(...) or all(...) of several.{way_out}"
    )
