"""What a pipeline is, as plain data: the ground of its digest.

Two pipelines have one digest if they are made of the same classes with the same arguments over the
same data sets. Functions and classes count by their qualified name, without the module: a script
is ``__main__`` today and imported tomorrow. What has no attributes counts by what it would be
copied from. The state of a random generator does not count, nor does any position.
"""

import copyreg
import functools
import types
from collections.abc import Iterator
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
    if isinstance(value, (type, numpy.dtype, numpy.random.BitGenerator)) or is_rng(value):
        return _name(value)
    if isinstance(value, (list, tuple)):
        return [describe(item, depth + 1) for item in value]
    if isinstance(value, (dict, types.MappingProxyType)):
        return _describe_dict(value, depth)
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((describe(item, depth + 1) for item in value), key=digest)}
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return _describe_objects(value, depth) if value.dtype.hasobject else value
    if isinstance(value, (range, slice)):
        return {type(value).__name__: [value.start, value.stop, value.step]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return _describe_object(value, depth)


def _describe_objects(array: Any, depth: int) -> Any:
    items = describe(numpy.asarray(array).ravel().tolist(), depth)
    return {"shape": array.shape, "dtype": str(array.dtype), "items": items}


def _describe_dict(value: Any, depth: int) -> Any:
    pairs = [(key, describe(item, depth + 1)) for key, item in value.items()]
    if all(isinstance(key, str) for key, _ in pairs):
        return dict(pairs)
    return {"dict": [[describe(key, depth + 1), item] for key, item in pairs]}


def _describe_object(value: Any, depth: int) -> Any:
    # That of a ufunc is a number.
    if callable(getattr(value, "identity", None)):
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
    described = {
        "class": _name(type(value)),
        "arguments": describe_arguments(value, (), depth + 1),
    }
    has_slots = any(vars(base).get("__slots__") for base in type(value).__mro__)
    # An iterator would tell its position.
    if (has_slots or not described["arguments"]) and not isinstance(value, Iterator):
        contents = describe(_contents(value), depth + 1)
        if contents:
            described["contents"] = contents
    return described


def _contents(value: Any) -> Any:
    """Give what an object holds beside attributes: what it would be copied from, or its text."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        reduced = value.__reduce_ex__(2) if reduce is None else reduce(value)
    except Exception:
        # What is in angle brackets names the object, maybe by its address, instead of its value.
        text = repr(value)
        return None if text.startswith("<") or " at 0x" in text else text
    if isinstance(reduced, str):
        return reduced
    _, arguments, state, items, pairs, *_ = (*tuple[Any, ...](reduced), None, None, None)
    contents = {
        "from": [part for part in arguments if part is not type(value)],
        "state": state,
        "items": list(items or ()),
        "pairs": list(pairs or ()),
    }
    return {name: part for name, part in contents.items() if not _is_nothing(part)}


def _is_nothing(part: Any) -> bool:
    return part is None or (isinstance(part, (list, dict)) and not part)


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
