"""Requests: what a scheme makes of (seed, epoch, position).

The bases of all schemes, and the iterators over their requests, which have a position.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy

from fuel_data.identity import describe_arguments
from fuel_data.randomness import Rng, is_rng, rng_state, set_rng_state
from fuel_data.utils.arguments import whole_number
from fuel_data.utils.keywords import NamedKeywords

PLACE = "scheme"


class IterationScheme(NamedKeywords, ABC):
    """A way to go through the examples of a data set once in every epoch.

    A scheme of your own defines `requests_examples` and `get_request_iterator`. It is resumed by
    asking for the iterator again and skipping; generators of numpy that it holds as attributes are
    put back first. Derive from `PositionedScheme` to resume without skipping.

    Attributes
    ----------
    requests_examples : bool
        Whether a request is for one example.
    num_requests : int or None
        How many requests an epoch has, None if that is not known or has no end.
    num_examples : int or None
        How many examples an epoch has, None if that is not known or has no end.
    """

    requests_examples: bool
    num_requests: int | None = None
    num_examples: int | None = None

    @abstractmethod
    def get_request_iterator(self) -> Iterator:
        """Give the requests of the next epoch.

        Returns
        -------
        iterator
        """

    def identity(self) -> dict[str, Any]:
        """Say what this scheme is, for the digest of the pipeline.

        Returns
        -------
        dict of plain data
        """
        arguments = describe_arguments(self, left_out=("_next_epoch",))
        return {"class": type(self).__qualname__, "arguments": arguments}

    def __repr__(self) -> str:
        shown = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        indices = shown.pop("indices", None)
        arguments = [f"{name}={value!r}" for name, value in shown.items()]
        if indices is not None:
            count = len(indices)
            whole = isinstance(indices, range) and indices == range(count)
            arguments.insert(0, f"examples={count if whole else f'<{count} indices>'}")
        return f"{type(self).__name__}({', '.join(arguments)})"


class PositionedScheme(IterationScheme):
    """Base of schemes whose requests are a function of (seed, epoch, index).

    A subclass defines `make_request` and, if anything must be prepared for an epoch, `make_order`.

    Attributes
    ----------
    rng : RandomState, Generator or None
        What the user handed in to draw from.
    """

    rng: Rng | None = None

    @abstractmethod
    def make_request(self, order: Any, index: int) -> Any:
        """Give one request.

        Parameters
        ----------
        order : object
            What `make_order` gave for this epoch.
        index : int
            Index of the request in the epoch, below `num_requests`.

        Returns
        -------
        int or list of int
        """

    def make_order(self, epoch: int, place: str) -> Any:
        """Prepare an epoch.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        place : str
            Place of the scheme, for random keys.

        Returns
        -------
        object
            What `make_request` is given; None by default.
        """
        return None

    def get_request_iterator(self, epoch: int | None = None) -> "Requests":
        """Give the requests of an epoch.

        Parameters
        ----------
        epoch : int, optional
            Number of the epoch. By default the one after the one that was asked for last.

        Returns
        -------
        Requests
        """
        if epoch is None:
            epoch = getattr(self, "_next_epoch", 0)
        self._next_epoch = epoch + 1
        return self.open_requests(epoch, PLACE)

    def open_requests(self, epoch: int, place: str) -> "Requests":
        """Give the requests of an epoch, without counting it.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        place : str
            Place of the scheme, for random keys.

        Returns
        -------
        Requests
        """
        return Requests(self, epoch, place)


class Requests:
    """The requests of one epoch.

    Parameters
    ----------
    scheme : PositionedScheme
        What makes them.
    epoch : int
        Number of the epoch.
    place : str
        Place of the scheme, for random keys.
    """

    def __init__(self, scheme: PositionedScheme, epoch: int, place: str) -> None:
        self.scheme = scheme
        self.epoch = epoch
        self.place = place
        self.index = 0
        self._end = scheme.num_requests
        self._order: Any = None
        self._prepared = False
        self._rng_state: dict[str, Any] | None = None
        if scheme.rng is not None:
            # A generator with a memory is drawn from when the epoch begins, as in Fuel.
            self._rng_state = rng_state(scheme.rng)
            self._prepare()

    def _prepare(self) -> None:
        self._order = self.scheme.make_order(self.epoch, self.place)
        self._prepared = True

    def __iter__(self) -> "Requests":
        return self

    def __next__(self) -> Any:
        if self._end is not None and self.index >= self._end:
            raise StopIteration
        if not self._prepared:
            self._prepare()
        request = self.scheme.make_request(self._order, self.index)
        self.index += 1
        return request

    def get_position(self) -> Any:
        """Give the position as plain data.

        Returns
        -------
        int or dict
            The index; with a generator of the user's, its state when the epoch began too.
        """
        if self._rng_state is None:
            return self.index
        return {"index": self.index, "rng": self._rng_state}

    def set_position(self, position: Any) -> None:
        """Go to a position.

        Parameters
        ----------
        position : int or dict
            From `get_position`.
        """
        if self.scheme.rng is not None:
            self._rng_state = position["rng"]
            set_rng_state(self.scheme.rng, position["rng"])
            self._prepare()
            position = position["index"]
        self.index = position


class _CountedRequests:
    """Requests of a scheme that knows no positions: they are skipped one by one."""

    def __init__(self, scheme: IterationScheme, epoch: int) -> None:
        self.scheme = scheme
        self.epoch = epoch
        self._open({name: rng_state(rng) for name, rng in self._rngs().items()})

    def _rngs(self) -> dict[str, Rng]:
        return {name: value for name, value in vars(self.scheme).items() if is_rng(value)}

    def _open(self, rng_states: dict[str, Any]) -> None:
        for name, rng in self._rngs().items():
            set_rng_state(rng, rng_states[name])
        self.rng_states = rng_states
        self.index = 0
        if isinstance(self.scheme, PositionedScheme):
            self.scheme._next_epoch = self.epoch
        self._iterator = iter(self.scheme.get_request_iterator())

    def __iter__(self) -> "_CountedRequests":
        return self

    def __next__(self) -> Any:
        request = next(self._iterator)
        self.index += 1
        return request

    def get_position(self) -> dict[str, Any]:
        return {"index": self.index, "rngs": self.rng_states}

    def set_position(self, position: dict[str, Any]) -> None:
        self._open(position["rngs"])
        while self.index < position["index"]:
            next(self)


def skip_requests(requests: Any, count: int) -> int:
    """Pass over requests.

    Parameters
    ----------
    requests : iterator
        From `open_requests`.
    count : int
        How many to pass over.

    Returns
    -------
    int
        How many there were: fewer at the end of the epoch.
    """
    end = requests.scheme.num_requests if isinstance(requests, Requests) else None
    if end is None:
        return sum(1 for _ in islice(requests, count))
    passed = max(0, min(count, end - requests.index))
    requests.index += passed
    return passed


def scheme_rngs(scheme: IterationScheme) -> list[Rng]:
    """Find the generators that a scheme was handed.

    Parameters
    ----------
    scheme : IterationScheme
        One of the library or one of the user's.

    Returns
    -------
    list of RandomState or Generator
        In the same order in every process.
    """
    parts = getattr(scheme, "schemes", ())
    own = [value for _, value in sorted(vars(scheme).items(), key=_name) if is_rng(value)]
    return own + [rng for part in parts for rng in scheme_rngs(part)]


def _name(item: tuple[str, Any]) -> str:
    return item[0]


def open_requests(scheme: IterationScheme, epoch: int, place: str = PLACE) -> Any:
    """Give the requests of an epoch, with a position, of any scheme.

    Parameters
    ----------
    scheme : IterationScheme
        One of the library or one of the user's.
    epoch : int
        Number of the epoch.
    place : str
        Place of the scheme, for random keys.

    Returns
    -------
    iterator
        With `get_position` and `set_position`.
    """
    overridden = (
        getattr(type(scheme), "get_request_iterator", None)
        is not PositionedScheme.get_request_iterator
    )
    if overridden:
        return _CountedRequests(scheme, epoch)
    return scheme.open_requests(epoch, place)  # type: ignore[attr-defined]


def as_indices(who: str, examples: int | Iterable[int]) -> Sequence[int]:
    """Make indices of what a user hands to a scheme.

    Parameters
    ----------
    who : str
        The scheme, for the error.
    examples : int or iterable of int
        How many examples there are, or which.

    Returns
    -------
    range or int64 array

    Raises
    ------
    ValueError
        If it is negative, or no sequence of whole numbers.
    """
    if isinstance(examples, range):
        return examples
    given: Any = examples
    is_many = isinstance(given, Iterable) and not isinstance(given, str)
    if not is_many or getattr(given, "ndim", 1) == 0:
        return range(whole_number(who, "examples", given, least=0))
    if not isinstance(given, numpy.ndarray):
        given = numpy.asarray(list(given))
    if given.size == 0:
        return range(0)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"{who}: `examples` must be a number or a sequence of whole numbers; got an array of "
            f"{given.dtype} with shape {given.shape}."
        )
    return given.astype(numpy.int64)
