"""Transformers that cut sequences into windows: `Window` and `NGrams`."""

from typing import Any

import numpy

from fuel_data.abstract import check_is_stream
from fuel_data.axes import AxisLabels
from fuel_data.exceptions import KindMismatchError
from fuel_data.iterator import Stage
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.leftovers import LeftoverTransformer
from fuel_data.utils.arguments import whole_number


class Window(LeftoverTransformer):
    """Slide a window, and a target window beside it, over each sequence.

    Both move on by one element at a time as long as both lie within the sequence; no window
    reaches from one sequence into the next, and a sequence that is too short gives nothing. The
    position is that of the stream below before the current sequence, and an index in the sequence.

    Parameters
    ----------
    offset : int
        From where the target window would begin otherwise to where it begins. It may be negative.
    source_window, target_window : int
        Lengths of the two windows, at least 1.
    overlapping : bool
        If true, the target window begins where the source window begins, and if not, where it ends;
        `offset` comes on top.
    data_stream : AbstractDataStream
        A stream of examples with one source: arrays of shape (time, ...), or lists.
    target_source : str
        Name of the target windows.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If the stream below gives batches or has several sources, or a window has no length.

    Examples
    --------
    To predict the next element of each, as recurrent networks do:

    >>> from fuel_data.datasets import IterableDataset
    >>> stream = IterableDataset({"x": [[1, 2, 3, 4], [5, 6], [7, 8, 9]]}).get_example_stream()
    >>> list(Window(1, 2, 2, True, stream).get_epoch_iterator())
    [([1, 2], [2, 3]), ([2, 3], [3, 4]), ([7, 8], [8, 9])]
    """

    def __init__(
        self,
        offset: int,
        source_window: int,
        target_window: int,
        overlapping: bool,
        data_stream: AbstractDataStream,
        target_source: str = "targets",
        **kwargs: Any,
    ) -> None:
        who = type(self).__name__
        _check_stream(who, data_stream, target_source)
        self.offset = whole_number(who, "offset", offset)
        self.source_window = whole_number(who, "source_window", source_window, least=1)
        self.target_window = whole_number(who, "target_window", target_window, least=1)
        self.overlapping = overlapping
        self.target_source = target_source
        self.sources = (*data_stream.sources, target_source)
        labels = kwargs.pop("axis_labels", None) or self._labels(data_stream)
        super().__init__(data_stream, produces_examples=True, axis_labels=labels, **kwargs)

    def _labels(self, data_stream: AbstractDataStream) -> AxisLabels | None:
        if data_stream.axis_labels is None:
            return None
        labels = data_stream.axis_labels.get(data_stream.sources[0])
        return {data_stream.sources[0]: labels, self.target_source: self._target_labels(labels)}

    def _target_labels(self, labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return labels

    def _begins(self) -> tuple[int, int]:
        """Say where the two windows begin at first."""
        distance = self.offset + (0 if self.overlapping else self.source_window)
        return max(0, -distance), max(0, distance)

    def _size(self, batch: tuple) -> int:
        """Count the windows in a sequence."""
        source, target = self._begins()
        end = max(source + self.source_window, target + self.target_window)
        return max(0, len(batch[0]) - end + 1)

    def read(self, stage: Stage, request: Any) -> tuple:
        """Give the next two windows; see `AbstractDataStream.read`."""
        leftover = self.leftover(stage)
        (sequence,) = leftover.batch
        source, target = (begin + leftover.offset for begin in self._begins())
        leftover.offset += 1
        self.drop_if_empty(stage)
        return (
            _copied(sequence[source : source + self.source_window]),
            _copied(sequence[target : target + self.target_window]),
        )


def _copied(window: Any) -> Any:
    """Copy a window, because others overlap it and may not change when somebody changes it."""
    return window.copy() if isinstance(window, numpy.ndarray) else window


def _check_stream(who: str, data_stream: AbstractDataStream, target_source: str) -> None:
    check_is_stream(who, "data_stream", data_stream)
    if not data_stream.produces_examples:
        raise KindMismatchError(
            f"{who}: `data_stream` must give examples; got {data_stream!r}, which gives batches. "
            "Put Unpack between them."
        )
    if len(data_stream.sources) != 1:
        raise ValueError(
            f"{who}: `data_stream` must have one source; got {data_stream.sources}. Put "
            "FilterSources between them."
        )
    if target_source in data_stream.sources:
        raise ValueError(
            f"{who}: the targets would be called {target_source!r}, as the source of the stream "
            "below is. Give another `target_source`."
        )


class NGrams(Window):
    """Give each run of n elements of a sequence, and the element that follows it.

    Parameters
    ----------
    ngram_order : int
        How many elements; the n of the n-grams that are predicted from is one greater.
    data_stream : AbstractDataStream
        A stream of examples with one source: arrays of shape (time, ...), or lists.
    target_source : str
        Name of what follows.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If the stream below gives batches or has several sources, or the order is below 1.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> stream = IterableDataset({"x": [[1, 2, 3, 4], [5, 6], [7, 8, 9]]}).get_example_stream()
    >>> list(NGrams(2, stream).get_epoch_iterator())
    [([1, 2], 3), ([2, 3], 4), ([7, 8], 9)]
    """

    def __init__(
        self,
        ngram_order: int,
        data_stream: AbstractDataStream,
        target_source: str = "targets",
        **kwargs: Any,
    ) -> None:
        ngram_order = whole_number("NGrams", "ngram_order", ngram_order, least=1)
        super().__init__(0, ngram_order, 1, False, data_stream, target_source, **kwargs)

    def _target_labels(self, labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if labels is None else labels[1:]

    def read(self, stage: Stage, request: Any) -> tuple:
        """Give the next elements and what follows them; see `AbstractDataStream.read`."""
        source, target = super().read(stage, request)
        return source, target[0]
