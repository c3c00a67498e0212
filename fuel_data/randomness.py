"""Random numbers that need no memory.

What is random in a pipeline is drawn from a generator made for the occasion from a key: a hash of
the seed, the place in the pipeline, the epoch and the index in the epoch. So a position is four
numbers and resumption costs nothing. `key` never gives one key to two occasions, and `permutation`
does not depend on the version of numpy.

A generator that a user hands in has a memory; `rng_state` and `set_rng_state` make plain data of
it.
"""

import contextlib
import functools
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy

Rng = numpy.random.RandomState | numpy.random.Generator


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


def rngs_of(function: Any) -> dict[str, Rng]:
    """Find the generators that a function draws from.

    Parameters
    ----------
    function : callable
        A function, a partial application, a bound method, or an object with ``__call__``.

    Returns
    -------
    dict of str to RandomState or Generator
        Those among its attributes, the variables around it, its defaults and its fixed arguments,
        by a name that is the same in every process.
    """
    found: dict[str, Rng] = {}
    if isinstance(function, functools.partial):
        arguments = {str(number): value for number, value in enumerate(function.args)}
        found.update(_rngs_among({**arguments, **function.keywords}))
        found.update({f"function.{name}": rng for name, rng in rngs_of(function.func).items()})
        return found
    owner = getattr(function, "__self__", None)
    for candidate in (function, owner):
        found.update(_rngs_among(getattr(candidate, "__dict__", {})))
    code = getattr(function, "__code__", None)
    if code is not None:
        outside = function.__globals__
        found.update(_rngs_among({n: outside[n] for n in code.co_names if n in outside}))
        found.update(_rngs_among(_closure(function)))
        found.update(_rngs_among(dict(enumerate(function.__defaults__ or ()))))
    return found


def _closure(function: Any) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {}
    for name, cell in cells:
        with contextlib.suppress(ValueError):
            # A variable that is not bound yet.
            values[name] = cell.cell_contents
    return values


def _rngs_among(values: Mapping[Any, Any]) -> dict[str, Rng]:
    return {str(name): value for name, value in values.items() if is_rng(value)}


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
