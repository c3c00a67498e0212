"""Schemes: in which order, and how many at a time, examples are asked for.

A scheme turns (seed, epoch, position) into requests: an int asks for one example (or, for a
`BatchSizeScheme`, for that many), a list of ints for a batch. The position in an epoch is one
number; the order of a shuffled epoch is computed anew from its key.

Schemes that are made with one seed give one order for one number of examples, wherever they stand,
so two data sets of parallel examples stay aligned when each is shuffled by a scheme of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy

from fuel_data.randomness import Rng, is_rng, key, permutation, rng_states, set_rng_states
from fuel_data.requests import (
    IterationScheme,
    PositionedScheme,
    as_indices,
    open_requests,
    scheme_rngs,
)
from fuel_data.sampling import (
    SampledExampleScheme,
    SampledScheme,
    WeightedExampleScheme,
    WeightedScheme,
)
from fuel_data.utils.arguments import seed_number, whole_number

__all__ = [
    "BatchScheme",
    "BatchSizeScheme",
    "ConcatenatedScheme",
    "ConstantScheme",
    "IndexScheme",
    "IterationScheme",
    "PositionedScheme",
    "SampledExampleScheme",
    "SampledScheme",
    "SequentialExampleScheme",
    "SequentialScheme",
    "ShuffledExampleScheme",
    "ShuffledScheme",
    "WeightedExampleScheme",
    "WeightedScheme",
    "cross_validation",
]


class BatchSizeScheme(PositionedScheme):
    """Base of schemes whose requests are numbers of examples."""

    requests_examples = False


class ConstantScheme(BatchSizeScheme):
    """Ask for the same number of examples again and again.

    Parameters
    ----------
    batch_size : int
        How many examples are asked for.
    num_examples : int, optional
        How many are asked for in an epoch; the last request is for what remains.
    times : int, optional
        How many requests an epoch has. Without this and `num_examples` there is no end.

    Raises
    ------
    ValueError
        If both `num_examples` and `times` are given, or one is negative.
    """

    def __init__(
        self, batch_size: int, num_examples: int | None = None, times: int | None = None
    ) -> None:
        if num_examples is not None and times is not None:
            raise ValueError(
                f"ConstantScheme: give `num_examples` or `times`, not both; got {num_examples} and "
                f"{times}."
            )
        who = type(self).__name__
        self.batch_size = whole_number(who, "batch_size", batch_size, least=1)
        self.times = None if times is None else whole_number(who, "times", times, least=0)
        if self.times is not None:
            num_examples = self.times * self.batch_size
        self.num_examples: int | None = (
            None if num_examples is None else whole_number(who, "num_examples", num_examples, 0)
        )

    @property
    def num_requests(self) -> int | None:  # type: ignore[override]
        """How many requests an epoch has, None if it has no end."""
        return None if self.num_examples is None else -(-self.num_examples // self.batch_size)

    def make_request(self, order: Any, index: int) -> int:
        """Give one request; see `PositionedScheme.make_request`."""
        if self.num_examples is None:
            return self.batch_size
        return min(self.batch_size, self.num_examples - index * self.batch_size)


class IndexScheme(PositionedScheme):
    """Base of schemes that ask for one example at a time.

    Parameters
    ----------
    examples : int or iterable of int
        How many examples there are, or which.
    """

    requests_examples = True

    def __init__(self, examples: int | Iterable[int]) -> None:
        self.indices = as_indices(type(self).__name__, examples)

    @property
    def num_examples(self) -> int:  # type: ignore[override]
        """How many examples an epoch has."""
        return len(self.indices)

    @property
    def num_requests(self) -> int:  # type: ignore[override]
        """How many requests an epoch has."""
        return len(self.indices)

    def make_order(self, epoch: int, place: str) -> Sequence[int]:
        """Give the order of an epoch; see `PositionedScheme.make_order`."""
        return self.indices

    def make_request(self, order: Sequence[int], index: int) -> int:
        """Give one request; see `PositionedScheme.make_request`."""
        return int(order[index])


class SequentialExampleScheme(IndexScheme):
    """Ask for one example at a time, in order.

    Parameters
    ----------
    examples : int or iterable of int
        How many examples there are, or which.
    """


class _Shuffled:
    """What schemes that shuffle have in common."""

    indices: Sequence[int]
    rng: Rng | None
    seed: int | None

    def _set_randomness(self, rng: Rng | None, seed: int | None) -> None:
        who = type(self).__name__
        if rng is not None and not is_rng(rng):
            raise ValueError(
                f"{who}: `rng` must be a RandomState or Generator of numpy; got {rng!r}. "
                "Give a number as `seed`."
            )
        if rng is not None and seed is not None:
            raise ValueError(f"{who}: give `rng` or `seed`, not both.")
        self.rng = rng
        self.seed = seed_number(who, seed) if rng is None else None

    def make_order(self, epoch: int, place: str) -> Sequence[int]:
        """Give the order of an epoch; see `PositionedScheme.make_order`."""
        if self.rng is not None:
            # The order of an array is the one that Fuel's shuffling of a list gives.
            shuffled = numpy.array(self.indices, dtype=numpy.int64)
            self.rng.shuffle(shuffled)
            return shuffled  # type: ignore[return-value]
        assert self.seed is not None
        order = permutation(key(self.seed, place, epoch), len(self.indices))
        if _is_whole(self.indices):
            return order  # type: ignore[return-value]
        return numpy.asarray(self.indices)[order]  # type: ignore[return-value]


class ShuffledExampleScheme(_Shuffled, IndexScheme):
    """Ask for one example at a time, in another order in every epoch.

    Parameters
    ----------
    examples : int or iterable of int
        How many examples there are, or which.
    rng : RandomState or Generator, optional
        What to draw from. Its state moves on in every epoch, so iterators of one scheme must be
        used one after the other.
    seed : int, optional
        Seed of the orders, ``config.default_seed`` by default.
    """

    def __init__(
        self, examples: int | Iterable[int], rng: Rng | None = None, *, seed: int | None = None
    ) -> None:
        super().__init__(examples)
        self._set_randomness(rng, seed)


class BatchScheme(PositionedScheme):
    """Base of schemes that ask for batches.

    Parameters
    ----------
    examples : int or iterable of int
        How many examples there are, or which.
    batch_size : int
        How many examples a batch has. The last one may have fewer.
    drop_last : bool
        Leave a last batch out that would have fewer.
    """

    requests_examples = False

    def __init__(
        self, examples: int | Iterable[int], batch_size: int, *, drop_last: bool = False
    ) -> None:
        self.batch_size = whole_number(type(self).__name__, "batch_size", batch_size, least=1)
        self.indices = as_indices(type(self).__name__, examples)
        self.drop_last = drop_last

    @property
    def num_examples(self) -> int:  # type: ignore[override]
        """How many examples an epoch has."""
        count = len(self.indices)
        return count - count % self.batch_size if self.drop_last else count

    @property
    def num_requests(self) -> int:  # type: ignore[override]
        """How many batches an epoch has."""
        return -(-self.num_examples // self.batch_size)

    def make_order(self, epoch: int, place: str) -> Sequence[int]:
        """Give the order of an epoch; see `PositionedScheme.make_order`."""
        return self.indices

    def make_request(self, order: Sequence[int], index: int) -> list[int]:
        """Give one request; see `PositionedScheme.make_request`."""
        part = order[index * self.batch_size : (index + 1) * self.batch_size]
        return part.tolist() if isinstance(part, numpy.ndarray) else list(part)


class SequentialScheme(BatchScheme):
    """Ask for batches in order.

    Parameters
    ----------
    examples : int or iterable of int
        How many examples there are, or which.
    batch_size : int
        How many examples a batch has. The last one may have fewer.
    drop_last : bool
        Leave a last batch out that would have fewer.
    """


class ShuffledScheme(_Shuffled, BatchScheme):
    """Ask for batches in another order in every epoch.

    Parameters
    ----------
    examples : int or iterable of int
        How many examples there are, or which.
    batch_size : int
        How many examples a batch has. The last one may have fewer.
    rng : RandomState or Generator, optional
        What to draw from. Its state moves on in every epoch, so iterators of one scheme must be
        used one after the other.
    sorted_indices : bool
        Sort the indices in each batch.
    seed : int, optional
        Seed of the orders, ``config.default_seed`` by default.
    drop_last : bool
        Leave a last batch out that would have fewer. Other examples are left out in every epoch.
    """

    def __init__(
        self,
        examples: int | Iterable[int],
        batch_size: int,
        rng: Rng | None = None,
        sorted_indices: bool = False,
        *,
        seed: int | None = None,
        drop_last: bool = False,
    ) -> None:
        super().__init__(examples, batch_size, drop_last=drop_last)
        self.sorted_indices = sorted_indices
        self._set_randomness(rng, seed)

    def make_request(self, order: Sequence[int], index: int) -> list[int]:
        """Give one request; see `PositionedScheme.make_request`."""
        request = super().make_request(order, index)
        return sorted(request) if self.sorted_indices else request


class ConcatenatedScheme(IterationScheme):
    """Go through several schemes one after the other in every epoch.

    Parameters
    ----------
    schemes : sequence of IterationScheme
        Schemes that all ask for examples, or all for batches.

    Raises
    ------
    ValueError
        If there is none, or they ask for different things.
    """

    def __init__(self, schemes: Sequence[IterationScheme]) -> None:
        self.schemes = list(schemes)
        kinds = {scheme.requests_examples for scheme in self.schemes}
        if len(kinds) != 1:
            raise ValueError(
                "ConcatenatedScheme: `schemes` must all ask for examples, or all for batches; got "
                f"{[type(scheme).__name__ for scheme in self.schemes]}."
            )
        self.requests_examples = kinds.pop()

    @property
    def num_examples(self) -> int | None:  # type: ignore[override]
        """How many examples an epoch has, None if not known."""
        return _sum(scheme.num_examples for scheme in self.schemes)

    @property
    def num_requests(self) -> int | None:  # type: ignore[override]
        """How many requests an epoch has, None if not known."""
        return _sum(scheme.num_requests for scheme in self.schemes)

    get_request_iterator = PositionedScheme.get_request_iterator

    def open_requests(self, epoch: int, place: str) -> "_ConcatenatedRequests":
        """Give the requests of an epoch; see `PositionedScheme.open_requests`.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        place : str
            Place of the stream in its pipeline, for random keys.

        Returns
        -------
        iterator
            Over the requests of all schemes, with `get_position` and `set_position`.
        """
        return _ConcatenatedRequests(self, epoch, place)


class _ConcatenatedRequests:
    def __init__(self, scheme: ConcatenatedScheme, epoch: int, place: str) -> None:
        self.scheme = scheme
        self.epoch = epoch
        self.place = place
        self._go_to(0)

    def _go_to(self, number: int) -> None:
        self.number = number
        scheme = self.scheme.schemes[number]
        self._requests = open_requests(scheme, self.epoch, f"{self.place}/{number}")

    def __iter__(self) -> "_ConcatenatedRequests":
        return self

    def __next__(self) -> Any:
        while True:
            try:
                return next(self._requests)
            except StopIteration:
                if self.number + 1 == len(self.scheme.schemes):
                    raise
                self._go_to(self.number + 1)

    def get_position(self) -> dict[str, Any]:
        position = {"scheme": self.number, "requests": self._requests.get_position()}
        # Those of other parts have been drawn from already in this epoch, or will be.
        rngs = rng_states(scheme_rngs(self.scheme))
        return {**position, "rngs": rngs} if rngs else position

    def set_position(self, position: dict[str, Any]) -> None:
        self._go_to(position["scheme"])
        self._requests.set_position(position["requests"])
        # Positions of version 0.1.0 have none.
        if "rngs" in position:
            set_rng_states(scheme_rngs(self.scheme), position["rngs"])


def cross_validation(
    scheme_class: type[IterationScheme],
    num_examples: int,
    num_folds: int,
    strict: bool = True,
    **kwargs: Any,
) -> Iterator[tuple]:
    """Make the schemes of a cross-validation.

    Parameters
    ----------
    scheme_class : class
        Of the schemes to make; its first argument is the examples.
    num_examples : int
        How many examples there are.
    num_folds : int
        Into how many parts they are cut, in order.
    strict : bool
        Refuse parts of different sizes. Otherwise the size is given as a third item.
    **kwargs
        The other arguments of `scheme_class`, which refuses those that it does not know.

    Returns
    -------
    iterator of (scheme, scheme) or (scheme, scheme, int)
        For training, for validation, and how many examples the latter has.

    Raises
    ------
    ValueError
        When this is called, if the folds are not equal but `strict`, or there are more of them than
        examples.
    """
    num_examples = whole_number("cross_validation", "num_examples", num_examples, least=1)
    num_folds = whole_number("cross_validation", "num_folds", num_folds)
    if not 1 <= num_folds <= num_examples:
        raise ValueError(
            f"cross_validation: `num_folds` must be between 1 and `num_examples`, which is "
            f"{num_examples}; got {num_folds}."
        )
    if strict and num_examples % num_folds:
        raise ValueError(
            f"cross_validation: {num_examples} examples make no {num_folds} equal folds. Give "
            "strict=False, or another number of folds."
        )
    folds = _folds(scheme_class, num_examples, num_folds, kwargs)
    return (fold[:2] for fold in folds) if strict else folds


def _folds(
    scheme_class: Any, num_examples: int, num_folds: int, arguments: dict[str, Any]
) -> Iterator[tuple]:
    for fold in range(num_folds):
        begin = num_examples * fold // num_folds
        end = num_examples * (fold + 1) // num_folds
        training = [*range(begin), *range(end, num_examples)]
        schemes = (scheme_class(part, **arguments) for part in (training, range(begin, end)))
        yield (*schemes, end - begin)


def _is_whole(indices: Sequence[int]) -> bool:
    return isinstance(indices, range) and indices.start == 0 and indices.step == 1


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(known)  # type: ignore[arg-type]
