"""Which attributes of an object have changed since a moment: state that nobody wrote code for.

The attributes that hold plain data (None, bool, int, float, str, arrays and numbers of numpy, and
lists, tuples and dicts of them) are given and put back exactly. Of all others it can only be said,
as far as that can be seen, that they have changed.
"""

import copy
import hashlib
import pickle
import random
import types
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy
from aesara.graph.basic import Variable

from bricks.log.plain import decode, encode
from fuel_data.utils.digests import digest

_ATOMS = (type(None), bool, int, float, str)
# What does not change, or what a checkpoint holds elsewhere.
_FIXED = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, type)
_GENERATORS = (numpy.random.Generator, numpy.random.RandomState, random.Random)


class Attributes:
    """The attributes of an object at one moment, to compare with later.

    Parameters
    ----------
    owner : object
        The object.
    left_out : iterable of str
        Names of attributes that do not count.
    deep : bool
        Whether to pickle objects of other classes to see whether they have changed inside.
    """

    def __init__(self, owner: Any, left_out: Iterable[str] = (), *, deep: bool = False) -> None:
        self._left_out = frozenset(left_out)
        self._deep = deep
        self._plain: dict[str, Any] = {}
        self._marks: dict[str, Any] = {}
        for name, value in self._counting(owner):
            if is_plain(value):
                self._plain[name] = copy.deepcopy(encode(value))
            else:
                self._marks[name] = self._mark(value)

    def changed(self, owner: Any) -> tuple[dict[str, Any], list[str]]:
        """Give what has changed.

        Parameters
        ----------
        owner : object
            The same object, or a copy.

        Returns
        -------
        plain : dict of str to plain data
            The attributes that are new or have other values, and can be put back.
        others : list of str
            The names of those that have changed and are no plain data.
        """
        plain, others = {}, []
        for name, value in self._counting(owner):
            if is_plain(value):
                if self._differs(name, value):
                    plain[name] = copy.deepcopy(encode(value))
            elif name not in self._marks or self._marks[name] != self._mark(value):
                others.append(name)
        return plain, others

    def put_back(self, owner: Any, plain: Mapping[str, Any]) -> None:
        """Give an object the attributes that had changed; the others get the values of the moment.

        Parameters
        ----------
        owner : object
            An object of the same class, made with the same arguments.
        plain : dict of str to plain data
            What `changed` gave.
        """
        for name, value in self._counting(owner):
            if name in self._plain and is_plain(value) and self._differs(name, value):
                vars(owner)[name] = decode(copy.deepcopy(self._plain[name]))
        for name, value in plain.items():
            vars(owner)[name] = decode(copy.deepcopy(value))

    def _counting(self, owner: Any) -> list[tuple[str, Any]]:
        return [(n, value) for n, value in vars(owner).items() if n not in self._left_out]

    def _differs(self, name: str, value: Any) -> bool:
        return name not in self._plain or digest(self._plain[name]) != digest(encode(value))

    def _mark(self, value: Any) -> Any:
        """Give something that is another if a value was changed, as far as that can be seen."""
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, (Variable, *_FIXED)):
            return kind
        if isinstance(value, set | frozenset) and all(map(is_plain, value)):
            return kind, sorted(map(repr, value))
        if isinstance(value, deque) and is_plain(list(value)):
            return kind, digest(encode(list(value)))
        if isinstance(value, dict) and is_plain(dict(value)):
            return kind, digest(encode(dict(value)))
        if self._deep or isinstance(value, _GENERATORS):
            return kind, _pickled(value)
        return kind, len(value) if hasattr(type(value), "__len__") else None


def _pickled(value: Any) -> str | None:
    try:
        # Twice: what was unpickled once shares its strings in another way, and is as it was.
        content = pickle.dumps(pickle.loads(pickle.dumps(value)))
    except Exception:
        # Whatever it is that cannot be pickled: nothing can be said about it.
        return None
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def is_plain(value: Any) -> bool:
    """Tell whether a value can be saved and put back with exactly its types.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    bool
        Whether it is plain data, or has tuples and numpy's numbers in it; subclasses of list and
        dict, such as a ``Counter``, are none.
    """
    kind = type(value)
    if kind in _ATOMS:
        return True
    if kind is numpy.ndarray or isinstance(value, numpy.generic):
        return not value.dtype.hasobject
    if kind in (list, tuple):
        return all(map(is_plain, value))
    if kind is dict:
        return all(is_plain(key) and is_plain(item) for key, item in value.items())
    return False
