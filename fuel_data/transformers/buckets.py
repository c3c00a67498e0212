"""`Bucket`: batches of examples of about one length, and bounds that keep the padding low."""

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from fuel_data.axes import labels_of, with_batch
from fuel_data.iterator import Stage
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.anchors import AnchoredReader, AnchoredTransformer
from fuel_data.transformers.base import call, check_sources
from fuel_data.transformers.batches import check_kind, stack
from fuel_data.utils.arguments import whole_number

logger = logging.getLogger(__name__)

_MAX_CANDIDATES = 1000
_MAX_NAMED = 10

_TOO_LONG = "longer than the last bound"
_LEFT_OVER = "left over at the end of the epoch"


class Bucket(AnchoredTransformer):
    """Make batches of examples of about one length.

    Each example waits in the bucket whose bound is the first that is not below its length. A full
    bucket becomes a batch; so does one whose first example has waited too long, and at the end of
    the epoch each that is not empty, the one that has waited longest first. Put `Padding` over it,
    with ``lengths=stream.bounds`` if the batches of a bucket shall have one shape. At most as many
    examples are held as fill all buckets.

    The position is a place in the stream below, at most ``max_wait + 64`` examples back, from which
    the half-filled buckets are filled again. So a generator of numpy that is handed in below may
    not be drawn from in another part of the pipeline.

    Parameters
    ----------
    data_stream : AbstractDataStream
        A stream of examples.
    by : str or function
        The source whose first axis is the length, or a function from an example, a tuple of its
        sources, to its length. It depends on the example only.
    bounds : sequence of int
        The greatest length of each bucket; see `choose_bounds`.
    batch_size : int or sequence of int, optional
        How many examples fill a bucket, or each of them.
    max_tokens : int, optional
        How long a batch may be, filled up to the bound of its bucket: the bound times the number of
        examples. With `batch_size`, what is reached first counts.
    max_wait : int
        How many further examples are read before a bucket is emptied that is not full.
    drop_last : bool
        Leave out what has not filled a bucket at the end of the epoch.
    too_long : {'drop', 'raise'}
        What to do with an example that is longer than the last bound. How many were left out is
        logged at the end of an epoch.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If the arguments do not fit, or an example is too long and `too_long` is ``'raise'``.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> words = [[1], [1, 2, 3], [1, 2], [4, 5, 6, 7], [8], [1, 2, 3, 4, 5]]
    >>> stream = Bucket(DataStream(IterableDataset({"x": words})), "x", bounds=[2, 4], batch_size=2)
    >>> iterator = stream.get_epoch_iterator()
    >>> [[example.tolist() for example in x] for (x,) in iterator]
    [[[1], [1, 2]], [[1, 2, 3], [4, 5, 6, 7]], [[8]]]
    >>> ((_, notes),) = iterator.notes()
    >>> notes["dropped"], notes["padding to the longest"]
    ({'longer than the last bound': 1}, 0.15384615384615385)
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        by: str | Callable[[tuple], int],
        bounds: Sequence[int],
        batch_size: int | Sequence[int] | None = None,
        *,
        max_tokens: int | None = None,
        max_wait: int = 10_000,
        drop_last: bool = False,
        too_long: str = "drop",
        **kwargs: Any,
    ) -> None:
        check_kind("Bucket", data_stream, examples=True)
        if isinstance(by, str):
            check_sources("Bucket", "by", (by,), data_stream.sources)
        if too_long not in ("drop", "raise"):
            raise ValueError(f"Bucket: `too_long` must be 'drop' or 'raise'; got {too_long!r}.")
        self.by = by
        self.bounds = _check_bounds(bounds)
        self.capacities = _capacities(self.bounds, batch_size, max_tokens)
        self.max_wait = whole_number("Bucket", "max_wait", max_wait, least=1)
        self.drop_last = drop_last
        self.too_long = too_long
        if kwargs.get("axis_labels") is None:
            kwargs["axis_labels"] = with_batch(labels_of(data_stream))
        super().__init__(data_stream, produces_examples=False, **kwargs)

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has: not known before it is read."""
        return None

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if some may be left out."""
        may_drop = self.drop_last or self.too_long == "drop"
        return None if may_drop else self.data_stream.num_examples

    def open_buffer(self, stage: Stage) -> "_Buckets":
        """Make empty buckets; see `AnchoredTransformer.open_buffer`."""
        return _Buckets(self, stage.child)

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read on until a batch is complete; see `AbstractDataStream.read`."""
        examples = stage.state.next()
        return tuple(stack(column) for column in zip(*examples, strict=True))

    def length(self, example: tuple) -> int:
        """Measure an example.

        Parameters
        ----------
        example : tuple
            Its sources.

        Returns
        -------
        int
        """
        if callable(self.by):
            return _check_length(call(self, self.by, example))
        item = example[self.data_stream.sources.index(self.by)]
        try:
            return len(item)
        except TypeError:
            raise ValueError(
                f"Bucket: the source {self.by!r} has no length; got {item!r}. Give another source, "
                "or a function, as `by`."
            ) from None

    def notes(self, stage: Stage) -> dict[str, Any]:
        """Say how much padding the batches need, and what was left out.

        Parameters
        ----------
        stage : Stage
            The stage of this stream.

        Returns
        -------
        dict
            ``batches`` and ``examples``: how many of each were given; ``padding to the longest``
            and ``padding to the bound``: which part of the filled batches is padding; ``by bound``:
            how many examples were given by each bucket; ``dropped``: how many examples were left
            out, by reason; ``first dropped``: number in the epoch and length of some of them.
        """
        return stage.state.counts.notes(self.bounds)


class _Buckets:
    """Examples that wait, by bucket, each with the number of its first one."""

    def __init__(self, stream: Bucket, child: Any) -> None:
        self.counts = _Counts(len(stream.bounds))
        self._stream = stream
        self._reader = AnchoredReader(child)
        self._has_warned = False
        self._empty()

    def _empty(self) -> None:
        self._examples: list[list[tuple]] = [[] for _ in self._stream.bounds]
        self._lengths: list[list[int]] = [[] for _ in self._stream.bounds]
        # Number of the first example in each bucket that is not empty, the oldest first.
        self._begun: dict[int, int] = {}

    def next(self) -> list[tuple]:
        while True:
            oldest = next(iter(self._begun), None)
            if oldest is not None and self._waits_too_long(oldest):
                return self._take(oldest)
            try:
                full = self._put(*self._reader.read())
            except StopIteration:
                self._warn_of_too_long()
                return self._take_rest(oldest)
            if full is not None:
                return self._take(full)

    def _waits_too_long(self, bucket: int) -> bool:
        return self._reader.num_read - self._begun[bucket] > self._stream.max_wait

    def _put(self, number: int, example: tuple) -> int | None:
        """Put an example into its bucket; give the bucket if that is full now."""
        length = self._stream.length(example)
        bucket = bisect_left(self._stream.bounds, length)
        if bucket == len(self._stream.bounds):
            self._refuse_or_drop(number, length)
            return None
        self._add(bucket, number, length, example)
        return bucket if len(self._examples[bucket]) == self._stream.capacities[bucket] else None

    def _add(self, bucket: int, number: int, length: int, example: tuple) -> None:
        self._begun.setdefault(bucket, number)
        self._examples[bucket].append(example)
        self._lengths[bucket].append(length)

    def _refuse_or_drop(self, number: int, length: int) -> None:
        if self._stream.too_long == "raise":
            raise ValueError(
                f"Bucket: example {number} of the epoch is {length} long, longer than the last of "
                f"`bounds`, {self._stream.bounds[-1]}. Add a bound, or give too_long='drop'."
            )
        self.counts.drop(_TOO_LONG, [number], [length])
        if getattr(self._stream.data_stream, "_is_endless", False):
            self._warn_of_too_long()

    def _warn_of_too_long(self) -> None:
        count = self.counts.num_dropped(_TOO_LONG)
        if count and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Bucket: left out %d of %d examples, which are longer than the last of `bounds`, "
                "%d. Add a bound, take them out below with Filter, or give too_long='raise'; notes "
                "and report() name some.",
                count,
                self._reader.num_read,
                self._stream.bounds[-1],
            )

    def _take(self, bucket: int) -> list[tuple]:
        self.counts.give(bucket, self._lengths[bucket])
        examples = self._examples[bucket]
        self._examples[bucket], self._lengths[bucket] = [], []
        del self._begun[bucket]
        return examples

    def _take_rest(self, oldest: int | None) -> list[tuple]:
        if oldest is None:
            raise StopIteration
        if not self._stream.drop_last:
            return self._take(oldest)
        for bucket, lengths in enumerate(self._lengths):
            self.counts.drop(_LEFT_OVER, [self._begun[bucket]] if lengths else [], lengths)
        self._empty()
        raise StopIteration

    def get_position(self) -> dict[str, Any]:
        oldest = next(iter(self._begun.values()), None)
        return {
            **self._reader.get_position(oldest),
            "begun": [self._begun.get(bucket) for bucket in range(len(self._examples))],
            "counts": self.counts.get_position(),
        }

    def set_position(self, position: dict[str, Any]) -> None:
        self._empty()
        for number, example in self._reader.set_position(position):
            length = self._stream.length(example)
            bucket = bisect_left(self._stream.bounds, length)
            first = position["begun"][bucket] if bucket < len(self._examples) else None
            if first is not None and number >= first:
                self._add(bucket, number, length, example)
        self.counts.set_position(position["counts"])


class _Counts:
    """What became of the examples of an epoch."""

    def __init__(self, num_buckets: int) -> None:
        self._batches = [0] * num_buckets
        self._examples = [0] * num_buckets
        # Sums of lengths, as they are and filled up to the longest of each batch.
        self._tokens = [0] * num_buckets
        self._filled = [0] * num_buckets
        self._dropped: dict[str, int] = {}
        self._named: list[list[int]] = []

    def give(self, bucket: int, lengths: list[int]) -> None:
        self._batches[bucket] += 1
        self._examples[bucket] += len(lengths)
        self._tokens[bucket] += sum(lengths)
        self._filled[bucket] += max(lengths) * len(lengths)

    def drop(self, reason: str, numbers: Sequence[int], lengths: list[int]) -> None:
        if lengths:
            self._dropped[reason] = self.num_dropped(reason) + len(lengths)
        # Of those that are left over in a bucket, only the first has its number.
        for number, length in zip(numbers, lengths, strict=False):
            if len(self._named) < _MAX_NAMED:
                self._named.append([number, length])

    def num_dropped(self, reason: str) -> int:
        return self._dropped.get(reason, 0)

    def notes(self, bounds: Sequence[int]) -> dict[str, Any]:
        to_bounds = sum(bound * n for bound, n in zip(bounds, self._examples, strict=True))
        return {
            "batches": sum(self._batches),
            "examples": sum(self._examples),
            "padding to the longest": _waste(sum(self._tokens), sum(self._filled)),
            "padding to the bound": _waste(sum(self._tokens), to_bounds),
            "by bound": {str(b): n for b, n in zip(bounds, self._examples, strict=True)},
            "dropped": dict(self._dropped),
            "first dropped": [f"number {number}, {length} long" for number, length in self._named],
        }

    def get_position(self) -> dict[str, Any]:
        return {
            "given": [list(part) for part in self._given()],
            "dropped": dict(self._dropped),
            "named": [list(pair) for pair in self._named],
        }

    def set_position(self, position: dict[str, Any]) -> None:
        for part, saved in zip(self._given(), position["given"], strict=True):
            part[:] = saved
        self._dropped = dict(position["dropped"])
        self._named = [list(pair) for pair in position["named"]]

    def _given(self) -> tuple[list[int], ...]:
        return self._batches, self._examples, self._tokens, self._filled


def _waste(tokens: int, filled: int) -> float:
    return 1 - tokens / filled if filled else 0.0


def _check_bounds(bounds: Sequence[int]) -> list[int]:
    given = bounds if isinstance(bounds, Iterable) else ()
    checked = [whole_number("Bucket", "bounds", bound) for bound in given]
    if not checked or checked != sorted(set(checked)) or checked[0] < 0:
        raise ValueError(f"Bucket: `bounds` must be lengths that rise, at least one; got {bounds}.")
    return checked


def _check_length(length: Any) -> int:
    is_whole = isinstance(length, float) and length.is_integer()
    return whole_number("Bucket", "by(example)", int(length) if is_whole else length, least=0)


def _capacities(
    bounds: list[int], batch_size: int | Sequence[int] | None, max_tokens: int | None
) -> list[int]:
    if batch_size is None and max_tokens is None:
        raise ValueError("Bucket: give `batch_size` or `max_tokens`, or both.")
    if max_tokens is not None:
        max_tokens = whole_number("Bucket", "max_tokens", max_tokens)
    given: Any = [batch_size] * len(bounds) if numpy.ndim(batch_size) == 0 else batch_size  # type: ignore[arg-type]
    sizes: list[int | None] = [None] * len(bounds)
    if batch_size is not None:
        sizes = [whole_number("Bucket", "batch_size", size) for size in given]
    if len(sizes) != len(bounds):
        raise ValueError(
            f"Bucket: `batch_size` must be one number, or one for each of the {len(bounds)} "
            f"bounds; got {list(sizes)}."
        )
    capacities = []
    for bound, size in zip(bounds, sizes, strict=True):
        fitting = None if max_tokens is None else max_tokens // max(bound, 1)
        capacity = min(n for n in (size, fitting) if n is not None)
        if capacity < 1:
            raise ValueError(
                f"Bucket: a batch of the bucket up to length {bound} must have room for at least "
                f"one example; got batch_size={size} and max_tokens={max_tokens}."
            )
        capacities.append(capacity)
    return capacities


def choose_bounds(
    lengths: Mapping[int, int] | Iterable[int], num_buckets: int, *, multiple_of: int = 1
) -> list[int]:
    """Choose the bounds of buckets so that filling up to them costs least.

    Parameters
    ----------
    lengths : dict of int to int, or iterable of int
        How many examples have which length, as `SourceReport.lengths` says, or the length of each.
    num_buckets : int
        How many bounds there are at most.
    multiple_of : int
        What each bound is a multiple of.

    Returns
    -------
    list of int
        Bounds that rise, the last of them not below the longest. No others make the sum of the
        bounds of all examples smaller. (Of more than 1,000 different lengths, 1,000 are looked at
        that divide the examples equally.)

    Raises
    ------
    ValueError
        If there are no lengths, or a number is below 1.

    Examples
    --------
    >>> choose_bounds({1: 10, 2: 10, 9: 5, 10: 1}, num_buckets=2)
    [2, 10]
    >>> choose_bounds([3, 5, 17], num_buckets=3, multiple_of=4)
    [4, 8, 20]
    """
    num_buckets = whole_number("choose_bounds", "num_buckets", num_buckets, least=1)
    multiple_of = whole_number("choose_bounds", "multiple_of", multiple_of, least=1)
    rounded: Counter[int] = Counter()
    for given, count in Counter(lengths).items():
        length = whole_number("choose_bounds", "lengths", given)
        rounded[-(-length // multiple_of) * multiple_of] += count
    if not rounded or min(rounded) < 0:
        raise ValueError("choose_bounds: `lengths` must have at least one length, none below 0.")
    candidates = numpy.array(sorted(rounded))
    counts = numpy.cumsum([rounded[length] for length in candidates.tolist()])
    if len(candidates) > _MAX_CANDIDATES:
        wanted = numpy.linspace(0, counts[-1], _MAX_CANDIDATES + 1)[1:]
        kept = numpy.unique(numpy.searchsorted(counts, wanted).clip(max=len(counts) - 1))
        candidates, counts = candidates[kept], counts[kept]
    return _cheapest(candidates, counts, min(num_buckets, len(candidates)))


def _cheapest(bounds: numpy.ndarray, counts: numpy.ndarray, num_buckets: int) -> list[int]:
    """Choose some of the bounds, the last included; `counts` says how many are at most so long."""
    # With one bucket up to each bound, then with one more at a time.
    costs = bounds * counts
    came_from = []
    # price[i, j]: of a bucket that ends at bound j and begins after bound i.
    price = bounds * (counts - counts[:, None]).astype(float)
    price[numpy.tril_indices(len(bounds))] = numpy.inf
    for _ in range(num_buckets - 1):
        totals = costs[:, None] + price
        came_from.append(totals.argmin(axis=0))
        # A bucket fewer never costs less, but there may be none to leave out.
        costs = totals.min(axis=0)
    chosen = [len(bounds) - 1]
    for previous in reversed(came_from):
        chosen.append(int(previous[chosen[-1]]))
    return bounds[chosen[::-1]].tolist()
