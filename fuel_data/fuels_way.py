"""Streams and transformers that are written in Fuel's way.

In Fuel a stream defines ``get_data(request)``, reads ``next(self.child_epoch_iterator)`` in it, and
keeps what it needs between two items as attributes of itself. Here such a stream is copied for each
epoch, and the copy works: so it is still written like this, but two epochs do not disturb each
other. What the copy changed of its attributes during the epoch is its state. Generators of numpy
are not copied, since their state is meant to move on from epoch to epoch.

Attributes that are lists, dicts, sets or arrays with many elements when the epoch begins, such as a
vocabulary, are taken for arguments: they are not copied. So are objects of other classes. If one of
them is changed, or is an iterator such as ``itertools.count()``, the stream has no state, and says
which it is.
"""

import collections
import copy
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy

from fuel_data.identity import describe
from fuel_data.randomness import is_rng, rngs_of
from fuel_data.state import split_arrays
from fuel_data.utils.digests import digest

ARGUMENTS = "_arguments_seen"
"""Name of the attribute of a stream that says how its arguments were when it was first read."""

# A buffer is small when the epoch begins; a vocabulary or a mean image is not.
_MAX_ELEMENTS = 1000

# Where what is deep in an argument is searched for changes, so many of its elements.
_SAMPLE = 50
_DEPTH = 4

_KINDS: dict[str, Any] = {"tuple": tuple, "deque": collections.deque, "set": set}
_DICTS: dict[str, Any] = {
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "Counter": collections.Counter,
    **{
        f"defaultdict of {factory.__name__}": factory
        for factory in (bool, int, float, str, list, dict, set, collections.deque)
    },
}
_VALUES = (type(None), bool, int, float, complex, str, bytes, range, slice, numpy.generic)
_FUNCTIONS = (type, FunctionType, BuiltinFunctionType, MethodType)
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
    ARGUMENTS,
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
    return not is_ours(type(stream)) and is_ours(type(stream).read)


def is_ours(thing: Any) -> bool:
    """Tell whether a class or function is one of the library.

    Parameters
    ----------
    thing : class or function
        What it is asked of.

    Returns
    -------
    bool
    """
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
    arguments = vars(stream).get(ARGUMENTS, {})
    seen = {}
    for name, value in vars(stream).items():
        if name in _NEVER_STATE or is_rng(value) or isinstance(value, (*_VALUES, *_FUNCTIONS)):
            continue
        if isinstance(value, _CONTAINERS) and _count(value) <= _MAX_ELEMENTS:
            # A generator within moves on from epoch to epoch, too.
            kept = {id(rng): rng for rng in rngs_of(value).values()}
            setattr(worker, name, copy.deepcopy(value, kept))
            watched[name] = value
        elif name in arguments and arguments[name][0] is value:
            seen[name] = arguments[name]
        else:
            seen[name] = (value, _summary(value))
    setattr(stream, ARGUMENTS, seen)
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


def can_repeat(stream: Any) -> bool:
    """Tell whether items that were read can be read again from an earlier position.

    Parameters
    ----------
    stream : AbstractDataStream
        The top of a pipeline with streams in Fuel's way.

    Returns
    -------
    bool
        False if such a stream has an object of another class, which may be an open file.
    """
    own = {} if not is_used_by(stream) else vars(stream)
    repeatable = (*_VALUES, *_FUNCTIONS, *_CONTAINERS)
    return all(
        name in _NEVER_STATE or is_rng(value) or isinstance(value, repeatable)
        for name, value in own.items()
    ) and all(map(can_repeat, _children(stream)))


def _children(stream: Any) -> Sequence[Any]:
    # A stream of another library has none that we know of.
    return stream._children() if hasattr(stream, "_children") else ()


def check_arguments(stream: Any) -> None:
    """Refuse to take the state of a pipeline one of whose arguments was changed by reading it.

    Parameters
    ----------
    stream : AbstractDataStream
        The top of the pipeline.

    Raises
    ------
    TypeError
        If there is one, with its name.
    """
    for name, (value, before) in getattr(stream, ARGUMENTS, {}).items():
        if vars(stream).get(name) is not value:
            continue
        if _hides_position(value):
            raise TypeError(
                f"{type(stream).__name__}.{name}: it is an iterator ({type(value).__name__}), "
                "which does not tell where it stands, so it cannot be saved. Count in a number "
                "instead, or read from the stream below."
            )
        if _summary(value) != before:
            many = isinstance(value, _CONTAINERS)
            raise TypeError(
                f"{type(stream).__name__}.{name}: it was changed while the stream was read, but "
                f"{f'with over {_MAX_ELEMENTS} elements' if many else 'as an object of a class'} "
                f"({type(value).__name__}) it is taken for an argument, which is neither kept for "
                "each epoch nor saved. Set it to a new one in get_data, or keep what changes in "
                "numbers, lists, dicts or arrays that are small when an epoch begins."
            )
    for child in _children(stream):
        check_arguments(child)


def check_held(stage: Any) -> None:
    """Refuse what is held and is not plain data, with the name of the attribute.

    Parameters
    ----------
    stage : Stage
        The top of an open pipeline.

    Raises
    ------
    TypeError
        If there is such a thing.
    """
    if "worker" in getattr(stage, "held", ()):
        for name, value in get_held(stage.stream, stage).items():
            try:
                split_arrays(value)
            except TypeError as error:
                raise TypeError(
                    f"{type(stage.stream).__name__}.{name}: what get_data sets is saved with the "
                    f"position, as plain data. {error} Keep numbers, text, lists, dicts or arrays "
                    "instead, or pickle the iterator."
                ) from error
    for child in getattr(stage, "children", ()):
        check_held(child)


def _hides_position(value: Any) -> bool:
    return isinstance(value, Iterator) and not hasattr(value, "__dict__")


def _summary(value: Any) -> str:
    """Digest a value, so that a change of it shows; of large ones, a sample."""
    return digest(_sample(value, 0))


def _sample(value: Any, depth: int) -> Any:
    if isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
        step = max(1, value.size // _MAX_ELEMENTS)
        return [list(value.shape), str(value.dtype), value.flat[::step]]
    if isinstance(value, _CONTAINERS):
        return [type(value).__name__, len(value), _sample_items(value, depth)]
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        return [type(value).__qualname__, str(value.getstate())]
    attributes = getattr(value, "__dict__", None)
    if attributes is None or depth >= _DEPTH or isinstance(value, _FUNCTIONS) or is_rng(value):
        return describe(value)
    return [type(value).__qualname__, _sample(dict(attributes), depth + 1)]


def _sample_items(value: Any, depth: int) -> list:
    # The order of a set is another one in every process.
    if depth >= _DEPTH or isinstance(value, set):
        return []
    items: Iterable = value.items() if isinstance(value, dict) else value
    step = max(1, len(value) // (_SAMPLE if depth else _MAX_ELEMENTS))
    return [_sample(item, depth + 1) for item in itertools.islice(items, 0, None, step)]


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
    if isinstance(value, dict):
        return _encode_dict(value)
    if isinstance(value, numpy.ndarray):
        if value.dtype == object and value.ndim == 1:
            return {"__kind__": "objects", "items": [_encode(item) for item in value]}
        return value.copy()
    if isinstance(value, numpy.generic) and not value.dtype.hasobject:
        return {"__kind__": "scalar", "items": numpy.asarray(value)}
    return value


def _encode_dict(value: dict) -> Any:
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _encode(item) for key, item in value.items()}
    name = type(value).__name__
    if isinstance(value, collections.defaultdict) and isinstance(value.default_factory, type):
        name = f"defaultdict of {value.default_factory.__name__}"
    if name not in _DICTS:
        return value
    return {"__kind__": name, "items": [[_encode(k), _encode(v)] for k, v in value.items()]}


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
    if value["__kind__"] in _DICTS:
        kind = _DICTS[value["__kind__"]]
        plain = dict(items)
        is_default = value["__kind__"].startswith("defaultdict")
        return collections.defaultdict(kind, plain) if is_default else kind(plain)
    if value["__kind__"] != "objects":
        return _KINDS[value["__kind__"]](items)
    array = numpy.empty(len(items), dtype=object)
    for number, item in enumerate(items):
        array[number] = item
    return array
