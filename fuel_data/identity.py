"""What a pipeline is, as plain data: the ground of its digest.

Two pipelines have one digest if they are made of the same classes with the same arguments over the
same data sets. Functions and classes count by their qualified name, without the module: a script
is ``__main__`` today and imported tomorrow. The state of a random generator does not count, nor
does any position.
"""

import functools
from typing import Any

import numpy

from fuel_data.randomness import is_rng
from fuel_data.utils.digests import digest

# A cycle of objects, or a tree of them, is followed so far and no further.
_MAX_DEPTH = 8


def describe(value: Any, depth: int = 0) -> Any:
    """Describe an argument as plain data.

    Parameters
    ----------
    value : object
        Anything. An object with a method `identity` describes itself.
    depth : int
        How deep in another object it was found.

    Returns
    -------
    plain data
        The same in every process.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (type, numpy.dtype)) or is_rng(value):
        return _name(value)
    if isinstance(value, (list, tuple)):
        return [describe(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return _describe_dict(value, depth)
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((describe(item, depth + 1) for item in value), key=digest)}
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return value if not value.dtype.hasobject else {"shape": value.shape, "dtype": "object"}
    if isinstance(value, (range, slice)):
        return {type(value).__name__: [value.start, value.stop, value.step]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return _describe_object(value, depth)


def _describe_dict(value: dict, depth: int) -> Any:
    pairs = [(key, describe(item, depth + 1)) for key, item in value.items()]
    if all(isinstance(key, str) for key, _ in pairs):
        return dict(pairs)
    return {"dict": [[describe(key, depth + 1), item] for key, item in pairs]}


def _describe_object(value: Any, depth: int) -> Any:
    if hasattr(value, "identity"):
        return value.identity()
    if isinstance(value, functools.partial):
        parts = [value.func, value.args, value.keywords]
        return {"partial": [describe(part, depth + 1) for part in parts]}
    owner = getattr(value, "__self__", None)
    if owner is not None and hasattr(value, "__name__") and not isinstance(owner, type(functools)):
        return {"method": value.__name__, "of": describe(owner, depth + 1)}
    if hasattr(value, "__qualname__"):
        return _name(value)
    if depth >= _MAX_DEPTH:
        return _name(type(value))
    return {"class": _name(type(value)), "arguments": describe_arguments(value, (), depth + 1)}


def describe_arguments(value: Any, left_out: tuple[str, ...], depth: int = 0) -> dict[str, Any]:
    """Describe the attributes of an object.

    Parameters
    ----------
    value : object
        The object.
    left_out : tuple of str
        Names of attributes that are no arguments.
    depth : int
        How deep in another object it was found.

    Returns
    -------
    dict of str to plain data
    """
    attributes = getattr(value, "__dict__", {})
    return {
        name: describe(attributes[name], depth + 1)
        for name in sorted(attributes)
        if name not in left_out
    }


def _name(value: Any) -> str:
    if isinstance(value, numpy.dtype):
        return str(value)
    return getattr(value, "__qualname__", type(value).__qualname__)
