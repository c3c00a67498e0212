"""Plain data: what positions, logs and checkpoints are made of.

Plain data are None, bool, int, float, str, lists and dicts (with str as keys) of plain data, and
numpy arrays of every dtype but object. They can be written as JSON with the arrays beside it, so
they can be read by another version of the library, or by none, and reading them runs no code.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy

_PLACE = "__array__"


def split_arrays(plain: Any) -> tuple[str, dict[str, numpy.ndarray]]:
    """Split plain data into JSON and arrays.

    Parameters
    ----------
    plain : plain data
        Tuples become lists, numpy numbers become Python numbers of the same value.

    Returns
    -------
    text : str
        JSON, with ``{"__array__": key}`` where an array was.
    arrays : dict of str to array
        The arrays themselves, not copied. A key is the way to the array, as in
        ``'position/child/state'``.

    Raises
    ------
    TypeError
        If something is not plain data; the message says where it is.

    Examples
    --------
    >>> split_arrays({"index": 3, "state": [numpy.zeros(2)]})
    ('{"index": 3, "state": [{"__array__": "state/0"}]}', {'state/0': array([0., 0.])})
    """
    arrays: dict[str, numpy.ndarray] = {}
    return json.dumps(_strip(plain, "", arrays)), arrays


def join_arrays(text: str, arrays: Mapping[str, numpy.ndarray]) -> Any:
    """Put together what `split_arrays` took apart.

    Parameters
    ----------
    text : str
        JSON with places for arrays.
    arrays : mapping of str to array
        The arrays by key.

    Returns
    -------
    plain data

    Raises
    ------
    ValueError
        If an array is missing.
    """
    return _fill(json.loads(text), arrays)


def is_plain(value: Any) -> bool:
    """Tell whether something is plain data.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    bool
    """
    try:
        _strip(value, "", {})
    except TypeError:
        return False
    return True


def _strip(value: Any, path: str, arrays: dict[str, numpy.ndarray]) -> Any:
    kind = type(value)
    if value is None or kind in (int, str, float, bool):
        return value
    if kind is dict:
        return _strip_dict(value, path, arrays)
    if kind in (list, tuple):
        return [_strip(item, f"{path}{i}/", arrays) for i, item in enumerate(value)]
    if isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject:
        return _strip_array(value, path, arrays)
    return _strip_subclass(value, path, arrays)


def _strip_dict(value: dict, path: str, arrays: dict[str, numpy.ndarray]) -> dict:
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"plain data: the keys at {path or '/'} must be str; got {key!r}.")
        if key == _PLACE:
            raise TypeError(f"plain data: the key {_PLACE!r} at {path or '/'} is reserved.")
    return {str(key): _strip(item, f"{path}{key}/", arrays) for key, item in value.items()}


def _strip_array(value: Any, path: str, arrays: dict[str, numpy.ndarray]) -> Any:
    if isinstance(value, numpy.generic) and type(value.item()) in (bool, int, float, str):
        return value.item()
    key = path.rstrip("/") or "array"
    # Two ways may read the same if a key of a dict has a slash in it.
    while key in arrays:
        key += "_"
    arrays[key] = numpy.asarray(value)
    return {_PLACE: key}


def _strip_subclass(value: Any, path: str, arrays: dict[str, numpy.ndarray]) -> Any:
    kinds: tuple[Any, ...] = (int, float, str, dict, list, tuple)
    for kind in kinds:
        if isinstance(value, kind):
            return _strip(kind(value), path, arrays)
    raise TypeError(
        f"plain data: expected None, a number, text, list, dict or array at {path or '/'}; "
        f"got {type(value).__name__}: {value!r}."
    )


def _fill(value: Any, arrays: Mapping[str, numpy.ndarray]) -> Any:
    if isinstance(value, list):
        return [_fill(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if _PLACE not in value:
        return {key: _fill(item, arrays) for key, item in value.items()}
    try:
        return arrays[value[_PLACE]]
    except KeyError:
        raise ValueError(f"plain data: the array {value[_PLACE]!r} is missing.") from None
