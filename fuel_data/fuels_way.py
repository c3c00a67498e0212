"""Streams and transformers that are written in Fuel's way.

In Fuel a stream defines ``get_data(request)``, reads ``next(self.child_epoch_iterator)`` in it, and
keeps what it needs between two items as attributes of itself. Here such a stream is copied for each
epoch, and the copy works: so it is still written like this, but two epochs do not disturb each
other. What the copy changed of its attributes during the epoch is its state. Generators of numpy
are not copied, since their state is meant to move on from epoch to epoch.

Attributes that are lists, dicts, sets or arrays with many elements when the epoch begins, such as a
vocabulary, are taken for arguments: they are not copied and not searched for changes. So are
objects of other classes.
"""

import collections
import copy
from typing import Any

import numpy

from fuel_data.randomness import is_rng

# A buffer is small when the epoch begins; a vocabulary or a mean image is not.
_MAX_ELEMENTS = 1000

_KINDS: dict[str, Any] = {"tuple": tuple, "deque": collections.deque, "set": set}
_CONTAINERS: tuple[Any, ...] = (list, dict, bytearray, numpy.ndarray, *_KINDS.values())
_NEVER_STATE = (
    "data_stream",
    "data_streams",
    "dataset",
    "iteration_scheme",
    "axis_labels",
    "metadata",
    "epochs_begun",
    "data_state",
    "is_open",
    "child_epoch_iterator",
    "_stage",
    "_sources",
    "_produces_examples",
)


def is_used_by(stream: Any) -> bool:
    """Tell whether a stream is of a user's class that does not define `read`.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream.

    Returns
    -------
    bool
    """
    return not _is_ours(type(stream)) and _is_ours(type(stream).read)


def _is_ours(thing: Any) -> bool:
    return thing.__module__.startswith("fuel_data.")


def start(stream: Any, stage: Any) -> None:
    """Make the copy of a stream that works during an epoch.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream, which stays as it is.
    stage : Stage
        Its stage.
    """
    if not is_used_by(stream):
        return
    worker = copy.copy(stream)
    watched = {}
    for name, value in vars(stream).items():
        if name in _NEVER_STATE or is_rng(value):
            continue
        if isinstance(value, _CONTAINERS) and _count(value) <= _MAX_ELEMENTS:
            setattr(worker, name, copy.deepcopy(value))
            watched[name] = value
    worker.child_epoch_iterator = stage.child
    worker._stage = stage
    stage.held = {"worker": worker, "watched": watched}
    stage._read = read


def read(stage: Any, request: Any) -> tuple:
    """Read one item with the copy.

    Parameters
    ----------
    stage : Stage
        Of a stream for which `start` was called.
    request : object or None
        From the iteration scheme.

    Returns
    -------
    tuple
    """
    worker = stage.held["worker"]
    data = worker.get_data() if request is None else worker.get_data(request)
    return data if type(data) is tuple else tuple(data)


def get_held(stream: Any, stage: Any) -> dict[str, Any]:
    """Give a copy of what a stage holds, as plain data if it can be.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream.
    stage : Stage
        Its stage.

    Returns
    -------
    dict
    """
    if "worker" not in stage.held:
        return _encode(stage.held)
    watched = stage.held["watched"]
    original = vars(stream)
    return {
        name: _encode(value)
        for name, value in vars(stage.held["worker"]).items()
        if name not in _NEVER_STATE
        and not (name in original and value is original[name])
        and not (name in watched and _same(value, watched[name]))
    }


def set_held(stream: Any, stage: Any, held: dict[str, Any]) -> None:
    """Put back what a stage held.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream.
    stage : Stage
        Its stage.
    held : dict
        From `get_held`.
    """
    if not is_used_by(stream):
        stage.held = _decode(held)
        return
    start(stream, stage)
    for name, value in held.items():
        setattr(stage.held["worker"], name, _decode(value))


def _count(value: Any) -> int:
    """Count the elements of nested containers, up to a little over the limit."""
    if isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
        return value.size
    if not isinstance(value, _CONTAINERS):
        return 1
    if len(value) > _MAX_ELEMENTS:
        return len(value)
    items = value.values() if isinstance(value, dict) else value
    return sum(map(_count, items), start=1)


def _same(value: Any, original: Any) -> bool:
    if type(value) is not type(original):
        return False
    if isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
        return value.dtype == original.dtype and numpy.array_equal(value, original)
    if isinstance(value, dict):
        return list(value) == list(original) and all(_same(value[k], original[k]) for k in value)
    if isinstance(value, (list, tuple, collections.deque, numpy.ndarray)):
        return len(value) == len(original) and all(map(_same, value, original))
    return value is original or bool(value == original)


def _encode(value: Any) -> Any:
    """Copy a value, and mark those that are not plain data but can be told in plain data."""
    for name, kind in _KINDS.items():
        if type(value) is kind:
            return {"__kind__": name, "items": [_encode(item) for item in value]}
    if type(value) is list:
        return [_encode(item) for item in value]
    if type(value) is dict:
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, numpy.ndarray):
        if value.dtype == object and value.ndim == 1:
            return {"__kind__": "objects", "items": [_encode(item) for item in value]}
        return value.copy()
    if isinstance(value, numpy.generic) and not value.dtype.hasobject:
        return {"__kind__": "scalar", "items": numpy.asarray(value)}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value.copy() if isinstance(value, numpy.ndarray) else value
    if "__kind__" not in value:
        return {key: _decode(item) for key, item in value.items()}
    if value["__kind__"] == "scalar":
        return value["items"][()]
    items = [_decode(item) for item in value["items"]]
    if value["__kind__"] != "objects":
        return _KINDS[value["__kind__"]](items)
    array = numpy.empty(len(items), dtype=object)
    for number, item in enumerate(items):
        array[number] = item
    return array
