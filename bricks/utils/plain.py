"""Helpers for lists, dictionaries, numbers, exceptions and trees of bricks."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy

from fuel_data.utils.names import nearest_name

__all__ = [
    "change_recursion_limit",
    "dict_subset",
    "dict_union",
    "extract_args",
    "find_bricks",
    "is_integer",
    "is_number",
    "pack",
    "repr_attrs",
    "reraise_as",
    "unpack",
]


def pack(arg: Any) -> list:
    """Return a list: of the elements of a list or tuple, of one element for anything else.

    Parameters
    ----------
    arg : object
        A list, a tuple, or something else.

    Returns
    -------
    list
        A new list.

    Examples
    --------
    >>> pack((1, 2)), pack("ab")
    ([1, 2], ['ab'])
    """
    return list(arg) if isinstance(arg, list | tuple) else [arg]


def unpack(arg: Any, singleton: bool = False) -> Any:
    """Return the only element of a list or tuple of one, and anything else as it is.

    Parameters
    ----------
    arg : object
        A list, a tuple, or something else.
    singleton : bool, optional
        Whether a list or tuple of another length is an error.

    Returns
    -------
    object
        The element, or `arg`.

    Raises
    ------
    ValueError
        If `singleton` and there is not exactly one element.
    """
    if not isinstance(arg, list | tuple):
        return arg
    if len(arg) == 1:
        return arg[0]
    if singleton:
        raise ValueError(f"unpack: expected exactly one element, got {len(arg)}: {arg!r}.")
    return arg


def reraise_as(new_exc: BaseException | str) -> NoReturn:
    """Raise another exception, or the current one with words put before it, from an `except`.

    Parameters
    ----------
    new_exc : exception or str
        The exception to raise, or what to put before the current message.

    Raises
    ------
    Exception
        `new_exc`, or one of the current class, chained to the current one.
    """
    current = sys.exc_info()[1]
    if isinstance(new_exc, str):
        words = f"{new_exc}\n\nOriginal exception:\n\t{type(current).__name__}: {current}"
        try:
            new_exc = type(current)(words) if current is not None else RuntimeError(words)
        except TypeError:
            new_exc = RuntimeError(words)
    raise new_exc from current


def dict_subset(
    dict_: MutableMapping, keys: Iterable, pop: bool = False, must_have: bool = True
) -> OrderedDict:
    """Return some of the items of a dictionary, in the order of the given keys.

    Parameters
    ----------
    dict_ : mapping
        The dictionary.
    keys : iterable
        The keys wanted.
    pop : bool, optional
        Whether to remove them from `dict_`.
    must_have : bool, optional
        Whether a missing key is an error; it is left out otherwise.

    Returns
    -------
    OrderedDict
        The items.

    Raises
    ------
    KeyError
        If keys are missing and `must_have`. Nothing is removed then.
    """
    keys = list(keys)
    missing = [key for key in keys if key not in dict_]
    if missing and must_have:
        known = ", ".join(map(str, dict_)) or "none"
        raise KeyError(f"dict_subset: no {', '.join(map(repr, missing))}; the keys are: {known}.")
    present = [key for key in keys if key in dict_]
    return OrderedDict((key, dict_.pop(key) if pop else dict_[key]) for key in present)


def dict_union(*dicts: Mapping, **kwargs: Any) -> OrderedDict:
    """Return one dictionary with the items of several that share no key.

    Parameters
    ----------
    *dicts : mappings
        The dictionaries.
    **kwargs : object
        Further items.

    Returns
    -------
    OrderedDict
        All items, in order.

    Raises
    ------
    ValueError
        If a key is in two of them.
    """
    union: OrderedDict = OrderedDict()
    for one in [*dicts, kwargs]:
        twice = [key for key in one if key in union]
        if twice:
            raise ValueError(
                f"dict_union: {', '.join(map(repr, twice))} in more than one dictionary. "
                "Rename or leave out one of each."
            )
        union.update(one)
    return union


def is_integer(value: Any) -> bool:
    """Tell whether a value is an integer, of Python or of numpy, and no truth value.

    Parameters
    ----------
    value : object
        Any.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy
    >>> [is_integer(value) for value in (2, numpy.int8(2), 2.0, True)]
    [True, True, False, False]
    """
    return isinstance(value, int | numpy.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Tell whether a value is one real number, of Python or of numpy: no truth value, and not NaN.

    Parameters
    ----------
    value : object
        Any. Arrays without axes count as the number that they hold.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy
    >>> [is_number(value) for value in (2, 10**20, numpy.float32(0.5), float("inf"))]
    [True, True, True, True]
    >>> [is_number(value) for value in (True, float("nan"), "2", None)]
    [False, False, False, False]
    """
    # Long ones are objects to numpy.
    if is_integer(value):
        return True
    array = numpy.asarray(value)
    return array.ndim == 0 and array.dtype.kind in "iuf" and not numpy.isnan(array)


def repr_attrs(instance: object, *attrs: str) -> str:
    """Return a representation of an object with some of its attributes.

    Parameters
    ----------
    instance : object
        The object.
    *attrs : str
        Names of attributes.

    Returns
    -------
    str
        ``<package.module.Class object at 0x...: name='linear', ...>``
    """
    head = object.__repr__(instance)[:-1]
    shown = ", ".join(f"{name}={getattr(instance, name, None)!r}" for name in attrs)
    return f"{head}: {shown}>" if shown else f"{head}>"


def extract_args(expected: Sequence[str], *args: Any, **kwargs: Any) -> list:
    """Put positional and keyword arguments into the order of the expected names.

    Parameters
    ----------
    expected : sequence of str
        All the names, each of which must be given once.
    *args : object
        Values of the first names.
    **kwargs : object
        Values of the others.

    Returns
    -------
    list
        One value for each name.

    Raises
    ------
    TypeError
        If there are too many values, a name is unknown, given twice or missing.
    """
    if len(args) > len(expected):
        raise TypeError(
            f"expected {len(expected)} arguments ({', '.join(expected)}), got {len(args)}."
        )
    given = dict(zip(expected, args, strict=False))
    for name, value in kwargs.items():
        if name not in expected:
            raise TypeError(f"unexpected argument {name!r}.{nearest_name(name, expected)}")
        if name in given:
            raise TypeError(f"argument {name!r} is given by position and by name.")
        given[name] = value
    missing = [name for name in expected if name not in given]
    if missing:
        raise TypeError(f"missing arguments: {', '.join(missing)}.")
    return [given[name] for name in expected]


def find_bricks(top_bricks: Iterable, predicate: Callable[[Any], bool]) -> list:
    """Return the bricks of some trees for which something is true.

    Parameters
    ----------
    top_bricks : iterable of Brick
        The roots of the trees.
    predicate : callable
        Says of a brick whether it is wanted.

    Returns
    -------
    list of Brick
        Each once, parents before their children.
    """
    found, seen, queue = [], set(), list(top_bricks)
    while queue:
        brick = queue.pop(0)
        if id(brick) in seen:
            continue
        seen.add(id(brick))
        if predicate(brick):
            found.append(brick)
        queue.extend(brick.children)
    return found


@contextmanager
def change_recursion_limit(limit: int | None) -> Iterator[None]:
    """Set Python's recursion limit for a while.

    Parameters
    ----------
    limit : int or None
        The limit inside the context; None leaves it alone.

    Yields
    ------
    None
        The former limit is back when the block ends, however it ends.
    """
    before = sys.getrecursionlimit()
    if limit is not None:
        sys.setrecursionlimit(limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
