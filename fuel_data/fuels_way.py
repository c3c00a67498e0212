"""Streams and transformers that are written in Fuel's way.

In Fuel a stream defines ``get_data(request)``, reads ``next(self.child_epoch_iterator)`` in it, and
keeps what it needs between two items as attributes of itself. Here such a stream is copied for each
epoch, and the copy works: so it is still written like this, but two epochs do not disturb each
other. What the copy changed of its attributes during the epoch is its state. Generators of numpy
are not copied, since their state is meant to move on from epoch to epoch.
"""

import collections
import copy
from typing import Any

import numpy

from fuel_data.randomness import is_rng, rng_state, set_rng_state

_COPIED = (list, dict, set, bytearray, collections.deque, numpy.ndarray)
_NEVER_STATE = (
    "data_stream",
    "data_streams",
    "dataset",
    "iteration_scheme",
    "axis_labels",
    "metadata",
    "epochs_begun",
    "data_state",
    "child_epoch_iterator",
    "_stage",
    "_sources",
    "_produces_examples",
)


def is_used_by(stream: Any) -> bool:
    """Tell whether a stream is written in Fuel's way: whether a user's class defines `get_data`.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream.

    Returns
    -------
    bool
    """
    module = getattr(type(stream).get_data, "__module__", "")
    return not module.startswith("fuel_data.")


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
    for name, value in vars(stream).items():
        if name not in _NEVER_STATE and isinstance(value, _COPIED):
            setattr(worker, name, copy.deepcopy(value))
    worker.child_epoch_iterator = stage.child
    worker._stage = stage
    stage.held["worker"] = worker
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
    return data if isinstance(data, tuple) else tuple(data)


def get_held(stream: Any, stage: Any) -> dict[str, Any]:
    """Give what a stage holds, as plain data if it can be.

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
    held = dict(stage.held)
    worker = held.pop("worker", None)
    if worker is None:
        return held
    original = vars(stream)
    held["changed"] = {
        name: _encode(value)
        for name, value in vars(worker).items()
        if name not in _NEVER_STATE
        and not is_rng(value)
        and not (name in original and _same(value, original[name]))
    }
    held["rngs"] = {name: rng_state(value) for name, value in vars(worker).items() if is_rng(value)}
    return held


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
    if "changed" not in held:
        stage.held = dict(held)
        return
    start(stream, stage)
    worker = stage.held["worker"]
    for name, value in held["changed"].items():
        setattr(worker, name, _decode(value))
    for name, state in held["rngs"].items():
        set_rng_state(getattr(worker, name), state)
    rest = {name: value for name, value in held.items() if name not in ("changed", "rngs")}
    stage.held.update(rest)


def _same(value: Any, original: Any) -> bool:
    if value is original:
        return True
    if type(value) is not type(original) or not isinstance(value, (*_COPIED, int, float, str)):
        return False
    try:
        return bool(numpy.array_equal(value, original)) if _is_array(value) else value == original
    except ValueError:
        # Containers of arrays do not compare.
        return False


def _is_array(value: Any) -> bool:
    return isinstance(value, numpy.ndarray)


def _encode(value: Any) -> Any:
    """Copy a value, and mark those that are not plain data but can be told in plain data."""
    if isinstance(value, (tuple, collections.deque, set)):
        kind = next(name for name, type_ in _KINDS.items() if isinstance(value, type_))
        return {"__kind__": kind, "items": [_encode(item) for item in value]}
    if type(value) is list:
        return [_encode(item) for item in value]
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {key: _encode(item) for key, item in value.items()}
    if _is_array(value) and value.dtype == object and value.ndim == 1:
        return {"__kind__": "objects", "items": [_encode(item) for item in value]}
    return value.copy() if _is_array(value) else value


_KINDS: dict[str, type] = {"tuple": tuple, "deque": collections.deque, "set": set}


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value.copy() if _is_array(value) else value
    if "__kind__" not in value:
        return {key: _decode(item) for key, item in value.items()}
    items = [_decode(item) for item in value["items"]]
    if value["__kind__"] != "objects":
        return _KINDS[value["__kind__"]](items)
    array = numpy.empty(len(items), dtype=object)
    for number, item in enumerate(items):
        array[number] = item
    return array
