"""Parts of an epoch, and several in one: `Take`, `Skip`, `Shard`, `Repeat`."""

from abc import abstractmethod
from typing import Any

from fuel_data.abstract import open_child
from fuel_data.iterator import Stage
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import Transformer
from fuel_data.utils.arguments import whole_number


class _Part(Transformer):
    """What transformers have in common that give some of the items of the stream below."""

    def _refuse_misfit(self) -> None:
        self._refuse_change()

    @abstractmethod
    def _part(self, count: int) -> int:
        """Say how many of so many items are given."""

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known."""
        count = self.data_stream.num_batches
        return None if count is None else self._part(count)

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        if self.produces_examples:
            return self.num_batches
        # A part of the batches may have the smaller last one, or not.
        is_whole = self.num_batches is not None and self.num_batches == self.data_stream.num_batches
        return self.data_stream.num_examples if is_whole else None


class Take(_Part):
    """Give the first items of each epoch.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    count : int
        How many items, examples or batches, are given at most.
    **kwargs
        See `Transformer`.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> letters = DataStream(IterableDataset("abcdefg"))
    >>> list(Take(Skip(letters, 2), 3))
    [('c',), ('d',), ('e',)]
    """

    def __init__(self, data_stream: AbstractDataStream, count: int, **kwargs: Any) -> None:
        self.count = whole_number("Take", "count", count, least=0)
        super().__init__(data_stream, **kwargs)

    def _part(self, count: int) -> int:
        return min(count, self.count)

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known."""
        if getattr(self.data_stream, "_is_endless", False):
            return self.count
        return super().num_batches

    @property
    def _is_endless(self) -> bool:
        return False

    def read(self, stage: Stage, request: Any) -> tuple:
        """Pass an item on unless there were enough; see `AbstractDataStream.read`."""
        if stage.index >= self.count:
            raise StopIteration
        return next(stage.child)


class Skip(_Part):
    """Leave the first items of each epoch out.

    Where the stream below knows its requests, what is left out is not read.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    count : int
        How many items, examples or batches, are left out.
    **kwargs
        See `Transformer`.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> list(Skip(DataStream(IterableDataset("abcd")), 2))
    [('c',), ('d',)]
    """

    def __init__(self, data_stream: AbstractDataStream, count: int, **kwargs: Any) -> None:
        self.count = whole_number("Skip", "count", count, least=0)
        super().__init__(data_stream, **kwargs)

    def _part(self, count: int) -> int:
        return max(0, count - self.count)

    def read(self, stage: Stage, request: Any) -> tuple:
        """Pass an item on, after those that are left out; see `AbstractDataStream.read`."""
        if stage.index == 0:
            stage.child.skip(self.count)
        return next(stage.child)


class Shard(_Part):
    """Give every n-th item, so that n readers share an epoch.

    Where the stream below knows its requests, what is left to the others is not read.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below, the same for all readers.
    index : int
        Which of the readers this is, from 0.
    count : int
        How many readers there are.
    remainder : {'keep', 'drop'}
        What to do with the last items if there are not enough for all readers: the first readers
        keep one more than the others, or they are left out, so that all have equally many.
    **kwargs
        See `Transformer`.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> letters = DataStream(IterableDataset("abcdefg"))
    >>> ["".join(x for (x,) in Shard(letters, index, count=3)) for index in range(3)]
    ['adg', 'be', 'cf']
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        index: int,
        count: int,
        remainder: str = "keep",
        **kwargs: Any,
    ) -> None:
        self.index = whole_number("Shard", "index", index)
        self.count = whole_number("Shard", "count", count)
        if not 0 <= self.index < self.count:
            raise ValueError(
                f"Shard: `index` must be from 0 and below `count`; got {index} and {count}."
            )
        if remainder not in ("keep", "drop"):
            raise ValueError(f"Shard: `remainder` must be 'keep' or 'drop'; got {remainder!r}.")
        self.remainder = remainder
        super().__init__(data_stream, **kwargs)

    def _part(self, count: int) -> int:
        rounds, rest = divmod(count, self.count)
        return rounds + (self.remainder == "keep" and self.index < rest)

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read the reader's item of a round; see `AbstractDataStream.read`."""
        before = self.index if stage.index == 0 or self.remainder == "drop" else self.count - 1
        stage.child.skip(before)
        item = next(stage.child)
        if self.remainder == "drop":
            after = self.count - 1 - self.index
            if stage.child.skip(after) < after:
                raise StopIteration
        return item


class Repeat(Transformer):
    """Go through several epochs of a stream in one.

    Each is another epoch below: what is shuffled is shuffled anew. What streams below notice, as
    `Bucket` does, is that of the epoch which is being read.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    times : int or None
        How many epochs there are in one; None for no end, which `Take` or `Mix` can put to it.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If there is nothing in the stream below that could be repeated without end.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> letters = DataStream(IterableDataset("abc"))
    >>> "".join(letter for (letter,) in Repeat(letters, times=2))
    'abcabc'
    >>> "".join(letter for (letter,) in Take(Repeat(letters), 7))
    'abcabca'
    """

    def __init__(
        self, data_stream: AbstractDataStream, times: int | None = None, **kwargs: Any
    ) -> None:
        self.times = None if times is None else whole_number("Repeat", "times", times, least=1)
        super().__init__(data_stream, **kwargs)

    def _refuse_misfit(self) -> None:
        self._refuse_change()

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known, or has no end."""
        return self._times(self.data_stream.num_batches)

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known, or has no end."""
        return self._times(self.data_stream.num_examples)

    @property
    def _is_endless(self) -> bool:
        return self.times is None or super()._is_endless

    def _times(self, count: int | None) -> int | None:
        return None if count is None or self.times is None else count * self.times

    def open_stage(self, epoch: int, branch: str = "") -> Stage:
        """Open the first epoch below; see `AbstractDataStream.open_stage`."""
        child = open_child(self.data_stream, self._epoch_below(epoch, 0), branch)
        return Stage(self, epoch, f"{branch}/{self._height}", [child])

    def _epoch_below(self, epoch: int, number: int) -> int:
        if self.times is not None:
            return epoch * self.times + number
        # Cantor's pairing: no two pairs have one number, and small ones have small numbers.
        return (epoch + number) * (epoch + number + 1) // 2 + number

    def start(self, stage: Stage) -> None:
        """Begin with the first epoch below; see `AbstractDataStream.start`."""
        super().start(stage)
        stage.state = _Pass()

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read an item, of the next epoch below if one has ended; see `AbstractDataStream.read`."""
        while True:
            try:
                item = next(stage.child)
            except StopIteration:
                self._go_on(stage)
                continue
            stage.state.is_empty = False
            return item

    def _go_on(self, stage: Stage) -> None:
        if self.times is not None and stage.state.number + 1 >= self.times:
            raise StopIteration
        if self.times is None and stage.state.is_empty:
            raise ValueError(
                f"Repeat: there is no item in an epoch of {self.data_stream!r}, so repeating it "
                "would never give one. Give `times`."
            )
        self._open_pass(stage, stage.state.number + 1)

    def _open_pass(self, stage: Stage, number: int) -> None:
        branch = stage.place.rpartition("/")[0]
        stage.child.close()
        child = open_child(self.data_stream, self._epoch_below(stage.epoch, number), branch)
        stage.child, stage.children = child, (child,)
        stage.state = _Pass(number)

    def get_position(self, stage: Stage) -> dict[str, Any]:
        """Give the position; see `AbstractDataStream.get_position`."""
        position = super().get_position(stage)
        return {**position, "pass": stage.state.number, "is_empty": stage.state.is_empty}

    def set_position(self, stage: Stage, position: dict[str, Any]) -> None:
        """Go to a position of one of the epochs below; see `AbstractDataStream.set_position`."""
        if position["pass"] != stage.state.number:
            self._open_pass(stage, position["pass"])
        stage.state.is_empty = position["is_empty"]
        super().set_position(stage, position)


class _Pass:
    """An epoch below: which it is, and whether it has given nothing yet."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.is_empty = True
