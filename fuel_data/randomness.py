"""Random numbers that need no memory.

What is random in a pipeline is drawn from a generator made for the occasion from a key: a hash of
the seed, the place in the pipeline, the epoch and the index in the epoch. So a position is four
numbers and resumption costs nothing. `key` never gives one key to two occasions, and `permutation`
does not depend on the version of numpy.

A generator that a user hands in has a memory; `rng_state` and `set_rng_state` make plain data of
it.
"""

import contextlib
import dis
import functools
import hashlib
import sys
import types
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

Rng = numpy.random.RandomState | numpy.random.Generator

# Where the generators of a function are looked for: so deep, and not in longer lists, as of words.
_MAX_DEPTH = 8
_MAX_ITEMS = 1000
_PLAIN = (type(None), bool, int, float, complex, str, bytes, numpy.ndarray, types.ModuleType)
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "fuel_data"} - {"__main__"}
_READ_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


def key(seed: int, place: str, epoch: int, index: int | None = None) -> int:
    """Make the key of one random occasion.

    Parameters
    ----------
    seed : int
        The seed of the whole.
    place : str
        What draws: a place in the pipeline.
    epoch : int
        Number of the epoch.
    index : int, optional
        Index in the epoch, None for what is drawn once in an epoch.

    Returns
    -------
    int
        128 bits.
    """
    text = f"{seed}\0{place}\0{epoch}\0{index}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")


def generator(key: int) -> numpy.random.Generator:
    """Make the generator of one random occasion.

    Parameters
    ----------
    key : int
        From `key`.

    Returns
    -------
    numpy.random.Generator
        A fresh Philox generator.
    """
    return numpy.random.Generator(numpy.random.Philox(key=key))


def permutation(key: int, n: int) -> numpy.ndarray:
    """Shuffle the first `n` numbers.

    Parameters
    ----------
    key : int
        From `key`.
    n : int
        How many.

    Returns
    -------
    int64 array of shape (n,)
        The same on every version of numpy: the stable order of `n` raw 64-bit draws of Philox.
    """
    return _stable_order(numpy.random.Philox(key=key).random_raw(n))


def _stable_order(draws: numpy.ndarray) -> numpy.ndarray:
    # The sort that is not stable is up to five times as fast; without ties both give one order.
    order = numpy.argsort(draws)
    in_order = draws[order]
    if (in_order[1:] == in_order[:-1]).any():
        order = numpy.argsort(draws, kind="stable")
    return order.astype(numpy.int64, copy=False)


class Draws:
    """Random numbers of one epoch by their index, without a memory.

    Parameters
    ----------
    seed : int
        The seed of the whole.
    place : str
        What draws: a place in the pipeline.
    epoch : int
        Number of the epoch.

    Examples
    --------
    >>> draws = Draws(1, "/0", 0)
    >>> draws[1000] == Draws(1, "/0", 0)[1000] != draws[1001]
    True
    """

    _BLOCK = 256

    def __init__(self, seed: int, place: str, epoch: int) -> None:
        # The end keeps these keys apart from those of a generator for each item.
        self._occasion = (seed, f"{place}#", epoch)
        self._block_number = -1
        self._block: list[int] = []

    def __getitem__(self, index: int) -> int:
        """Give 64 random bits.

        Parameters
        ----------
        index : int
            Any index in any order; neighbours cost least.

        Returns
        -------
        int
        """
        number, offset = divmod(index, self._BLOCK)
        if number != self._block_number:
            philox = numpy.random.Philox(key=key(*self._occasion, number))
            self._block, self._block_number = philox.random_raw(self._BLOCK).tolist(), number
        return self._block[offset]


def is_rng(value: Any) -> bool:
    """Tell whether something is a random number generator of numpy.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    bool
    """
    return isinstance(value, (numpy.random.RandomState, numpy.random.Generator))


def rngs_of(function: Any, left_out: Sequence[str] = ()) -> dict[str, Rng]:
    """Find the generators that a function draws from.

    Parameters
    ----------
    function : callable
        A function, a partial application, a bound method, or an object with ``__call__``.
    left_out : sequence of str
        Names of its attributes that are not looked at.

    Returns
    -------
    dict of str to RandomState or Generator
        Those among its attributes, those of its class, the variables around it, its defaults and
        its fixed arguments, and in lists, dicts, objects and functions among these; by the path to
        it, which is the same in every process. What is in modules, other libraries and long lists
        is not found.
    """
    found: dict[str, Rng] = {}
    seen = {id(function)}
    parts = [(step, part) for step, part in _parts(function) if step not in left_out]
    for _ in range(_MAX_DEPTH):
        below = []
        for path, part in parts:
            if id(part) in seen or isinstance(part, _PLAIN):
                continue
            seen.add(id(part))
            if is_rng(part):
                found[path] = part
            elif not _is_pipeline(part):
                below += [(f"{path}.{step}", inner) for step, inner in _parts(part)]
        parts = below
    return found


def _is_pipeline(value: Any) -> bool:
    """Tell whether something is asked by itself what it draws from."""
    ways = ("get_epoch_iterator", "get_example_stream", "get_request_iterator")
    return any(hasattr(type(value), way) for way in ways)


def _is_foreign(thing: Any) -> bool:
    """Tell whether a class or function belongs to a library, this one included."""
    name = getattr(thing, "__module__", None) or "builtins"
    if name.partition(".")[0] in _LIBRARIES:
        return True
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def _parts(value: Any) -> list[tuple[str, Any]]:
    """List what a function or an object may draw from, by names that cannot be the same."""
    if isinstance(value, functools.partial):
        arguments = [*enumerate(value.args), *sorted(value.keywords.items())]
        return [(str(name), part) for name, part in arguments] + [("function", value.func)]
    if isinstance(value, types.MethodType):
        return [*_parts(value.__self__), ("method", value.__func__)]
    if isinstance(value, types.FunctionType):
        return _parts_of_function(value)
    if isinstance(value, (list, tuple, deque)):
        return [(f"[{n}]", part) for n, part in enumerate(value)] if _is_short(value) else []
    if isinstance(value, dict):
        if not _is_short(value):
            return []
        return [
            (f"[{key!r}]" if isinstance(key, (str, int)) else f"[item {number}]", part)
            for number, (key, part) in enumerate(value.items())
        ]
    if isinstance(value, type):
        return _parts_of_class(value)
    attributes = _attributes(value)
    return [*sorted(attributes.items()), *_parts_of_class(type(value))]


def _is_short(container: Any) -> bool:
    return len(container) <= _MAX_ITEMS


def _attributes(value: Any) -> dict[str, Any]:
    kind = type(value)
    top = kind.__module__.partition(".")[0]
    if top != "fuel_data" and kind is not types.SimpleNamespace and _is_foreign(kind):
        wrapped = getattr(value, "__wrapped__", None) if top == "functools" else None
        return {} if wrapped is None else {"__wrapped__": wrapped}
    try:
        attributes = dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        attributes = {}
    for base in kind.__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    attributes[name] = member.__get__(value)
    return attributes


def _parts_of_class(kind: type) -> list[tuple[str, Any]]:
    parts = []
    for base in kind.__mro__:
        if _is_foreign(base):
            continue
        for name, member in sorted(vars(base).items()):
            if isinstance(member, property):
                member = member.fget
            elif isinstance(member, (staticmethod, classmethod)):
                member = member.__func__
            parts.append((f"class {base.__qualname__}.{name}", member))
    return parts


def _parts_of_function(function: Any) -> list[tuple[str, Any]]:
    # What a library's own function reads is its affair; what it was made with is the user's.
    outside = {} if _is_foreign(function) else function.__globals__
    names = _global_names(function.__code__)
    return [
        *sorted(vars(function).items()),
        *((f"global {name}", outside[name]) for name in names if name in outside),
        *((f"variable {name}", part) for name, part in _closure(function).items()),
        *((f"default {n}", part) for n, part in enumerate(function.__defaults__ or ())),
        *((f"default {n}", part) for n, part in sorted((function.__kwdefaults__ or {}).items())),
    ]


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    """List the global variables that a function reads, the functions within it too."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in _READ_GLOBAL}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(_global_names(constant))
    return tuple(sorted(names))


def _closure(function: Any) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {}
    for name, cell in cells:
        with contextlib.suppress(ValueError):
            # A variable that is not bound yet.
            values[name] = cell.cell_contents
    return values


def rng_state(rng: Rng) -> dict[str, Any]:
    """Give the state of a generator as plain data.

    Parameters
    ----------
    rng : RandomState or Generator
        The generator.

    Returns
    -------
    dict
        Plain data. Integers beyond 64 bits are text.
    """
    if isinstance(rng, numpy.random.RandomState):
        return _plain(rng.get_state(legacy=False))
    return _plain(rng.bit_generator.state)


def set_rng_state(rng: Rng, state: dict[str, Any]) -> None:
    """Put a generator where another of its kind was.

    Parameters
    ----------
    rng : RandomState or Generator
        The generator.
    state : dict
        From `rng_state`.

    Raises
    ------
    ValueError
        If the state is of another kind of generator.
    """
    restored = _unplain(state)
    current = rng_state(rng)
    if current["bit_generator"] != restored.get("bit_generator"):
        raise ValueError(
            f"rng: the saved state is of {restored.get('bit_generator')}, the generator is "
            f"{current['bit_generator']}. Make it as it was made when the state was saved."
        )
    if isinstance(rng, numpy.random.RandomState):
        rng.set_state(restored)
    else:
        rng.bit_generator.state = restored


def rng_states(rngs: Iterable[Rng]) -> list[dict[str, Any]]:
    """Give the states of several generators as plain data.

    Parameters
    ----------
    rngs : iterable of RandomState or Generator
        The generators.

    Returns
    -------
    list of dict
        See `rng_state`.
    """
    return [rng_state(rng) for rng in rngs]


def set_rng_states(rngs: Sequence[Rng], states: Sequence[dict[str, Any]]) -> None:
    """Put several generators where others were.

    Parameters
    ----------
    rngs : sequence of RandomState or Generator
        The generators.
    states : sequence of dict
        From `rng_states`.

    Raises
    ------
    ValueError
        If they are of more or fewer generators, or of another kind.
    """
    if len(rngs) != len(states):
        raise ValueError(
            f"rng: the states are of {len(states)} generators, and {len(rngs)} are drawn from. "
            "Build the stream as it was when they were saved."
        )
    for rng, state in zip(rngs, states, strict=True):
        set_rng_state(rng, state)


def rngs_of_stream(stream: Any) -> list[Rng]:
    """Give the generators with a memory of a stream, which may be of any class.

    Parameters
    ----------
    stream : AbstractDataStream, or another with `get_epoch_iterator`
        The stream.

    Returns
    -------
    list of RandomState or Generator, or what stands for them
    """
    return stream.all_rngs() if hasattr(stream, "all_rngs") else []


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"int:{value}"
    if isinstance(value, numpy.ndarray):
        return value.copy()
    return value


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unplain(item) for name, item in value.items()}
    if isinstance(value, str) and value.startswith("int:"):
        return int(value[4:])
    return value
