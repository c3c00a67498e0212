"""`Shuffle`: another order for streams that can only be read from the front to the end."""

import heapq
from typing import Any

from fuel_data.iterator import Stage
from fuel_data.randomness import Draws
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.anchors import AnchoredReader, AnchoredTransformer
from fuel_data.utils.arguments import seed_number, whole_number

# Times are whole numbers of this part of a full time, so that no rounding decides an order.
_SCALE = 2**32


class Shuffle(AnchoredTransformer):
    """Change the order of examples, or of batches, as far as a buffer reaches.

    A buffer is filled, and then each item that is given makes room for one more. A buffer as long
    as the epoch makes every order equally likely; a shorter one moves items about half as far as
    it is long, and never further than twice its length. Data that can be indexed are better
    shuffled by a `ShuffledScheme`.

    Two of them in one pipeline never draw the same order. To keep parallel streams together, put
    one over their `Merge`.

    The position is a place in the stream below, at most ``2 * buffer_size + 64`` items back, from
    which it is read again. So a generator of numpy that is handed in below may not be drawn from in
    another part of the pipeline.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    buffer_size : int
        How many items are held when the first is given, at least 1. Later it is about half of them,
        and at no time more than twice as many.
    seed : int, optional
        Seed of the orders, ``config.default_seed`` by default.
    **kwargs
        See `Transformer`.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> lines = DataStream(IterableDataset("abcdefghij"))
    >>> shuffled = Shuffle(lines, buffer_size=4, seed=1)
    >>> "".join(letter for (letter,) in shuffled)
    'decbafgihj'
    >>> "".join(letter for (letter,) in shuffled)
    'cabfedgihj'
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        buffer_size: int,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.buffer_size = whole_number("Shuffle", "buffer_size", buffer_size, least=1)
        self.seed = seed_number("Shuffle", seed)
        super().__init__(data_stream, **kwargs)

    def _refuse_misfit(self) -> None:
        self._refuse_change()

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known."""
        return self.data_stream.num_batches

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return self.data_stream.num_examples

    def open_buffer(self, stage: Stage) -> "_Buffer":
        """Make an empty buffer; see `AnchoredTransformer.open_buffer`."""
        return _Buffer(stage, self.seed, self.buffer_size)

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read on until it is known what comes next; see `AbstractDataStream.read`."""
        return stage.state.next()


class _Buffer:
    """Items that wait for their turn, and the rule by which it comes.

    The items with the first `size` numbers are let in at time 0, each further one at the next full
    time, and the turn of an item is when it is let in plus a random time below `size`. They are
    given in the order of their turns. So turns rise, and the last one that was given says which of
    the items that were read are still held: no list of them is saved.
    """

    def __init__(self, stage: Stage, seed: int, size: int) -> None:
        self._reader = AnchoredReader(stage.child)
        self._draws = Draws(seed, stage.place, stage.epoch)
        self._size = size
        self._heap: list[tuple[int, int, tuple]] = []
        self._last: int | None = None

    def _let_in(self, number: int) -> int:
        time = number - self._size + 1
        return time * _SCALE if time > 0 else 0

    def _turn(self, number: int) -> tuple[int, int]:
        late = (self._draws[number] >> 32) * self._size
        # Equal turns are told apart by the number.
        return self._let_in(number) + late, number

    def next(self) -> tuple:
        heap, reader = self._heap, self._reader
        while not heap or heap[0][0] >= self._let_in(reader.num_read):
            try:
                number, item = reader.read()
            except StopIteration:
                if not heap:
                    raise
                break
            heapq.heappush(heap, (*self._turn(number), item))
        _, self._last, item = heapq.heappop(heap)
        return item

    def get_position(self) -> dict[str, Any]:
        # One of the first `size` items waits longest: until 2 * `size` were read.
        oldest = max(0, self._reader.num_read - 2 * self._size) if self._heap else None
        return {**self._reader.get_position(oldest), "last": self._last}

    def set_position(self, position: dict[str, Any]) -> None:
        self._last = position["last"]
        given = None if self._last is None else self._turn(self._last)
        self._heap = []
        for number, item in self._reader.set_position(position):
            turn = self._turn(number)
            if given is None or turn > given:
                heapq.heappush(self._heap, (*turn, item))
