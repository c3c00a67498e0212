"""Several streams in one: `Mix` by weights, `Interleave` in turns."""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy

from fuel_data.abstract import check_label_names
from fuel_data.axes import AxisLabels, of_sources
from fuel_data.exceptions import AxisLabelsMismatchError, KindMismatchError
from fuel_data.iterator import Stage
from fuel_data.randomness import Draws
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import Transformer, as_streams
from fuel_data.utils.arguments import seed_number, whole_number


class _Taking(AbstractDataStream):
    """What streams have in common that take each item from one of several."""

    until: str

    def __init__(
        self,
        data_streams: Sequence[AbstractDataStream],
        until: str,
        axis_labels: AxisLabels | None,
        metadata: Mapping[str, dict[str, Any]] | None,
    ) -> None:
        who = type(self).__name__
        self.data_streams = as_streams(who, data_streams)
        if until not in ("all", "first"):
            raise ValueError(f"{who}: `until` must be 'all' or 'first'; got {until!r}.")
        self.until = until
        _check_alike(who, self.data_streams)
        first = self.data_streams[0]
        self.sources = first.sources
        labels = _common_labels(who, self.data_streams) if axis_labels is None else axis_labels
        if metadata is None:
            metadata = of_sources(getattr(first, "metadata", None) or {}, self.sources)
        super().__init__(axis_labels=labels, metadata=metadata)
        self.produces_examples = first.produces_examples
        check_label_names(self, axis_labels or {})

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known."""
        return self._sum([stream.num_batches for stream in self.data_streams])

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return self._sum([stream.num_examples for stream in self.data_streams])

    @property
    def _is_endless(self) -> bool:
        endless = [getattr(stream, "_is_endless", False) for stream in self.data_streams]
        return any(endless) if self.until == "all" else all(endless)

    def _sum(self, counts: list[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if self.until == "all" and len(known) == len(counts) else None

    def _children(self) -> Sequence[Any]:
        return self.data_streams

    get_data = Transformer.get_data

    def start(self, stage: Stage) -> None:
        """Begin with all streams; see `AbstractDataStream.start`."""
        super().start(stage)
        stage.state = _Progress(len(self.data_streams))

    def read(self, stage: Stage, request: Any) -> tuple:
        """Take an item of one of the streams; see `AbstractDataStream.read`."""
        progress = stage.state
        while not progress.is_over(self.until):
            number = self._choose(stage, progress)
            try:
                data = next(stage.children[number])
            except StopIteration:
                progress.ended[number] = True
                progress.draws = None
                continue
            self._check_choice(stage, progress, number)
            progress.given[number] += 1
            progress.last = number
            return data
        raise StopIteration

    @abstractmethod
    def _choose(self, stage: Stage, progress: "_Progress") -> int:
        """Give the number of a stream that is not known to have ended."""

    def _check_choice(self, stage: Stage, progress: "_Progress", number: int) -> None:
        """Refuse a stream that has an item but should have none."""

    def get_position(self, stage: Stage) -> dict[str, Any]:
        """Give the position; see `AbstractDataStream.get_position`."""
        return {**super().get_position(stage), "progress": stage.state.get_position()}

    def set_position(self, stage: Stage, position: dict[str, Any]) -> None:
        """Go to a position; see `AbstractDataStream.set_position`."""
        super().set_position(stage, position)
        stage.state = _Progress(len(self.data_streams), **position["progress"])

    def notes(self, stage: Stage) -> dict[str, Any]:
        """Say what was taken from each stream.

        Parameters
        ----------
        stage : Stage
            The stage of this stream.

        Returns
        -------
        dict
            ``items by stream``, and ``ended``: numbers of the streams that were read to their end.
        """
        progress = stage.state
        return {
            "items by stream": list(progress.given),
            "ended": [number for number, ended in enumerate(progress.ended) if ended],
        }


class _Progress:
    """How far each of several streams has been read."""

    def __init__(
        self,
        num_streams: int,
        given: Sequence[int] | None = None,
        ended: Sequence[bool] | None = None,
        last: int | None = None,
    ) -> None:
        self.draws: Any = None
        self.weights: Sequence[float] = ()
        self.given = list(given or [0] * num_streams)
        self.ended = list(ended or [False] * num_streams)
        self.last = last

    def is_over(self, until: str) -> bool:
        return any(self.ended) if until == "first" else all(self.ended)

    def get_position(self) -> dict[str, Any]:
        return {"given": list(self.given), "ended": list(self.ended), "last": self.last}


def _check_alike(who: str, streams: Sequence[AbstractDataStream]) -> None:
    first = streams[0]
    for number, stream in enumerate(streams):
        if stream.produces_examples != first.produces_examples:
            kinds = {True: "examples", False: "batches"}
            raise KindMismatchError(
                f"{who}: all streams must give examples, or all batches; number 0 gives "
                f"{kinds[first.produces_examples]}, number {number} "
                f"{kinds[stream.produces_examples]}. Put Batch or Unpack over one of them."
            )
        if stream.sources != first.sources:
            raise ValueError(
                f"{who}: all streams must have the same sources in one order; number 0 has "
                f"{list(first.sources)}, number {number} {list(stream.sources)}. Put FilterSources "
                "or Rename over one of them."
            )


def _common_labels(who: str, streams: Sequence[AbstractDataStream]) -> AxisLabels | None:
    if all(stream.axis_labels is None for stream in streams):
        return None
    common: dict[str, tuple[str, ...] | None] = {}
    for source in streams[0].sources:
        found: dict[tuple[str, ...], int] = {}
        for number, stream in enumerate(streams):
            labels = (stream.axis_labels or {}).get(source)
            if labels is not None:
                found.setdefault(tuple(labels), number)
        if len(found) > 1:
            (left, n), (right, m) = list(found.items())[:2]
            raise AxisLabelsMismatchError(
                f"{who}: the axes of the source {source!r} must be the same in all streams; they "
                f"are {left} in number {n} and {right} in number {m}. Transpose one of them, or "
                "correct the labels with the `axis_labels` of its stream."
            )
        common[source] = next(iter(found), None)
    return common


class Mix(_Taking):
    """Take each item from one of several streams, drawn by weights.

    Parameters
    ----------
    data_streams : sequence of AbstractDataStream
        Streams with the same sources that all give examples, or all batches.
    weights : sequence of float, or function
        How likely each stream is. A function from the step to such a sequence, as `LinearWeights`
        and `PiecewiseWeights` are, changes them as training goes on: the step counts the items of
        all epochs, so the length of an epoch must be known.
    num_items : int, optional
        How many items an epoch has. The streams must have as many; put `Repeat` over those that are
        to begin again.
    until : {'all', 'first'}
        Whether the epoch ends when all streams have ended, those that have not being drawn in
        proportion to their weights meanwhile, or when the first has.
    seed : int, optional
        Seed of the draws, ``config.default_seed`` by default.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes, by default those of the streams.
    metadata : dict of str to dict, optional
        Open information on each source, by default that of the first stream.

    Raises
    ------
    ValueError
        If the streams do not fit together; if the weights do not; if all that have not ended have
        weight 0; if they end before `num_items`.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> from fuel_data.transformers import Repeat
    >>> many, few = (DataStream(IterableDataset(letters)) for letters in ("abcdefgh", "XY"))
    >>> mixed = Mix([many, Repeat(few)], weights=[2, 1], until="first", seed=1)
    >>> iterator = mixed.get_epoch_iterator()
    >>> "".join(letter for (letter,) in iterator)
    'aXbcYdeXfYgh'
    >>> iterator.notes()
    [('Mix', {'items by stream': [8, 4], 'ended': [0]})]
    """

    def __init__(
        self,
        data_streams: Sequence[AbstractDataStream],
        weights: Sequence[float] | Callable[[int], Sequence[float]],
        num_items: int | None = None,
        *,
        until: str = "all",
        seed: int | None = None,
        axis_labels: AxisLabels | None = None,
        metadata: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(data_streams, until, axis_labels, metadata)
        self.num_items = (
            None if num_items is None else whole_number("Mix", "num_items", num_items, least=0)
        )
        self.seed = seed_number("Mix", seed)
        if callable(weights):
            self.weights: Any = weights
            self._check_weights(weights(0))
            if self.num_batches is None:
                raise ValueError(
                    "Mix: weights that change need to know how many items an epoch has, to count "
                    "steps over epochs. Give `num_items`."
                )
        else:
            self.weights = self._check_weights(weights)

    def _check_weights(self, weights: Sequence[float]) -> list[float]:
        checked = [float(weight) for weight in weights]
        if len(checked) != len(self.data_streams) or not _are_weights(checked):
            raise ValueError(
                f"Mix: `weights` must be {len(self.data_streams)} numbers from 0, one for each "
                f"stream and not all 0; got {list(weights)}."
            )
        return checked

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known."""
        return super().num_batches if self.num_items is None else self.num_items

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        if self.num_items is None:
            return super().num_examples
        return self.num_items if self.produces_examples else None

    @property
    def _is_endless(self) -> bool:
        return self.num_items is None and super()._is_endless

    def read(self, stage: Stage, request: Any) -> tuple:
        """Take an item of the stream that is drawn; see `AbstractDataStream.read`."""
        if self.num_items is None:
            return super().read(stage, request)
        if stage.index >= self.num_items:
            raise StopIteration
        try:
            return super().read(stage, request)
        except StopIteration:
            raise ValueError(
                f"Mix: the streams ended after {stage.index} of `num_items`={self.num_items} "
                "items. Put Repeat over those that are to begin again."
            ) from None

    def _choose(self, stage: Stage, progress: Any) -> int:
        weights = progress.weights = self._weights_now(stage)
        live = [0 if ended else w for w, ended in zip(weights, progress.ended, strict=True)]
        sums = list(accumulate(live))
        if not sums[-1]:
            # It may be at its end without having said so.
            return progress.ended.index(False)
        if progress.draws is None:
            # A draw that fell on a stream at its end, taken again, would favour its neighbours.
            ends = sum(progress.ended)
            place = f"{stage.place}#{ends}" if ends else stage.place
            progress.draws = Draws(self.seed, place, stage.epoch)
        # 53 bits make a float below 1 without rounding.
        drawn = (progress.draws[stage.index] >> 11) * 2.0**-53 * sums[-1]
        # Rounding must not go past the last one that has a weight.
        return min(bisect_right(sums, drawn), sums.index(sums[-1]))

    def _check_choice(self, stage: Stage, progress: Any, number: int) -> None:
        if not progress.weights[number]:
            raise ValueError(
                f"Mix: after {stage.index} items all streams of a weight above 0 have ended, but "
                f"number {number}, of weight 0, has not. Put Repeat over the others, or give "
                "until='first'."
            )

    def _weights_now(self, stage: Stage) -> list[float]:
        if not callable(self.weights):
            return self.weights
        length = self.num_batches
        assert length is not None
        return self._check_weights(self.weights(stage.epoch * length + stage.index))


def _are_weights(weights: Sequence[float]) -> bool:
    return all(weight >= 0 for weight in weights) and 0 < sum(weights) < numpy.inf


class LinearWeights:
    """Weights for `Mix` that go from some to others.

    Parameters
    ----------
    begin, end : sequence of float
        Weights of all streams at the first step, and from step `num_steps` on.
    num_steps : int
        How many steps lie between, at least 1.

    Raises
    ------
    ValueError
        If there are not equally many weights, one is below 0, or all at one end are 0.

    Examples
    --------
    >>> weights = LinearWeights([1, 0], [0.5, 0.5], num_steps=100)
    >>> weights(0), weights(50), weights(1000)
    ((1.0, 0.0), (0.75, 0.25), (0.5, 0.5))
    """

    def __init__(self, begin: Sequence[float], end: Sequence[float], num_steps: int) -> None:
        self.begin = [float(weight) for weight in begin]
        self.end = [float(weight) for weight in end]
        self.num_steps = whole_number("LinearWeights", "num_steps", num_steps, least=1)
        are_weights = _are_weights(self.begin) and _are_weights(self.end)
        if len(self.begin) != len(self.end) or not are_weights:
            raise ValueError(
                "LinearWeights: `begin` and `end` must have as many weights as one another, none "
                f"below 0 and not all 0; got {self.begin} and {self.end}."
            )

    def __call__(self, step: int) -> tuple[float, ...]:
        """Give the weights at a step.

        Parameters
        ----------
        step : int
            How many items were given before.

        Returns
        -------
        tuple of float
        """
        part = min(step / self.num_steps, 1.0)
        pairs = zip(self.begin, self.end, strict=True)
        return tuple((1 - part) * first + part * last for first, last in pairs)

    def __repr__(self) -> str:
        return f"LinearWeights({self.begin}, {self.end}, num_steps={self.num_steps})"


class PiecewiseWeights:
    """Weights for `Mix` that change at certain steps: a curriculum.

    Parameters
    ----------
    weights : dict of int to sequence of float
        Weights of all streams from each step on; one of the steps is 0.

    Raises
    ------
    ValueError
        If step 0 is missing, there are not equally many weights, one is below 0, or all of a step
        are 0.

    Examples
    --------
    >>> weights = PiecewiseWeights({0: [1, 0], 1000: [1, 1]})
    >>> weights(999), weights(1000)
    ((1.0, 0.0), (1.0, 1.0))
    """

    def __init__(self, weights: Mapping[int, Sequence[float]]) -> None:
        self.weights = {step: tuple(map(float, weights[step])) for step in sorted(weights)}
        are_weights = all(map(_are_weights, self.weights.values()))
        if min(weights, default=1) != 0 or len(set(map(len, weights.values()))) > 1:
            raise ValueError(
                "PiecewiseWeights: `weights` must say equally many weights from step 0 on, and "
                f"from later steps; got {self.weights}."
            )
        if not are_weights:
            raise ValueError(
                "PiecewiseWeights: the weights of each step must be numbers from 0, not all 0; got "
                f"{self.weights}."
            )

    def __call__(self, step: int) -> tuple[float, ...]:
        """Give the weights at a step.

        Parameters
        ----------
        step : int
            How many items were given before.

        Returns
        -------
        tuple of float
        """
        steps = list(self.weights)
        return self.weights[steps[bisect_right(steps, step) - 1]]

    def __repr__(self) -> str:
        return f"PiecewiseWeights({self.weights})"


class Interleave(_Taking):
    """Take items from several streams in turns.

    Parameters
    ----------
    data_streams : sequence of AbstractDataStream
        Streams with the same sources that all give examples, or all batches.
    block_length : int
        How many items are taken from a stream before it is the next one's turn.
    until : {'all', 'first'}
        Whether the epoch ends when all streams have ended, those that have being passed over, or
        when the first is found to have ended.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes, by default those of the streams.
    metadata : dict of str to dict, optional
        Open information on each source, by default that of the first stream.

    Raises
    ------
    ValueError
        If the streams do not fit together, or `block_length` is below 1.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> streams = [DataStream(IterableDataset(letters)) for letters in ("abcde", "XYZ")]
    >>> "".join(letter for (letter,) in Interleave(streams, block_length=2))
    'abXYcdZe'
    """

    def __init__(
        self,
        data_streams: Sequence[AbstractDataStream],
        block_length: int = 1,
        *,
        until: str = "all",
        axis_labels: AxisLabels | None = None,
        metadata: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self.block_length = whole_number("Interleave", "block_length", block_length, least=1)
        super().__init__(data_streams, until, axis_labels, metadata)

    def _choose(self, stage: Stage, progress: Any) -> int:
        last = progress.last
        if last is None:
            first = 0
        elif not progress.ended[last] and progress.given[last] % self.block_length:
            return last
        else:
            first = last + 1
        count = len(self.data_streams)
        turns = (number % count for number in range(first, first + count))
        return next(number for number in turns if not progress.ended[number])
