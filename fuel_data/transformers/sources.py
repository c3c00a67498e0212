"""Transformers of the set of sources: `FilterSources`, `Rename`, `Merge`."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fuel_data.abstract import check_is_stream, check_label_names
from fuel_data.axes import AxisLabels, examples_first, of_sources
from fuel_data.iterator import Stage
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import (
    AgnosticTransformer,
    Transformer,
    as_streams,
    check_sources,
)
from fuel_data.utils.names import nearest_name

logger = logging.getLogger(__name__)


class FilterSources(AgnosticTransformer):
    """Keep some sources.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    sources : sequence of str
        The sources to keep, in the order wanted.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If the stream below does not have one of them, one is named twice, or none is named.
    """

    def __init__(
        self, data_stream: AbstractDataStream, sources: Sequence[str], **kwargs: Any
    ) -> None:
        check_is_stream("FilterSources", "data_stream", data_stream)
        check_sources("FilterSources", "sources", sources, data_stream.sources)
        self.sources = tuple(sources)
        if not self.sources or len(set(self.sources)) < len(self.sources):
            raise ValueError(
                "FilterSources: `sources` must have at least one name, and each only once; got "
                f"{list(sources)}."
            )
        self._places = [data_stream.sources.index(source) for source in self.sources]
        super().__init__(data_stream, **kwargs)

    def _keep_known(self, by_source: Mapping[str, Any] | None) -> Any:
        if by_source is None:
            return None
        return of_sources(by_source, self.sources)

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return self.data_stream.num_examples

    def transform_any(self, data: tuple) -> tuple:
        """Pick the sources; see `AgnosticTransformer.transform_any`."""
        return tuple(data[place] for place in self._places)


class Rename(AgnosticTransformer):
    """Give sources other names.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    names : dict of str to str
        From the old name to the new one. Two sources may swap names.
    on_non_existent : {'raise', 'ignore', 'warn'}
        What to do if the stream below does not have a source.
    **kwargs
        See `Transformer`.

    Raises
    ------
    KeyError
        If the stream below does not have a source, or two sources would have one name.
    ValueError
        If `on_non_existent` is another word.
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        names: Mapping[str, str],
        on_non_existent: str = "raise",
        **kwargs: Any,
    ) -> None:
        if on_non_existent not in ("raise", "ignore", "warn"):
            raise ValueError(
                "Rename: `on_non_existent` must be 'raise', 'ignore' or 'warn'; got "
                f"{on_non_existent!r}."
            )
        check_is_stream("Rename", "data_stream", data_stream)
        for old in names:
            if old not in data_stream.sources:
                self._miss(old, data_stream.sources, on_non_existent)
        self.names = {old: new for old, new in names.items() if old in data_stream.sources}
        self.sources = tuple(self.names.get(source, source) for source in data_stream.sources)
        for source in self.sources:
            if self.sources.count(source) > 1:
                raise KeyError(f"Rename: two sources would be called {source!r}: {self.sources}.")
        super().__init__(data_stream, **kwargs)

    @staticmethod
    def _miss(old: str, known: Sequence[str], on_non_existent: str) -> None:
        message = (
            f"Rename: `names` has {old!r}, which the stream below does not have."
            f"{nearest_name(old, known)}"
        )
        if on_non_existent == "raise":
            raise KeyError(message)
        if on_non_existent == "warn":
            logger.warning(message)

    def _keep_known(self, by_source: Mapping[str, Any] | None) -> Any:
        if by_source is None:
            return None
        return {self.names.get(source, source): item for source, item in by_source.items()}

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return self.data_stream.num_examples

    def transform_any(self, data: tuple) -> tuple:
        """Pass the data as they are; see `AgnosticTransformer.transform_any`."""
        return data


class Merge(AbstractDataStream):
    """Read several streams side by side and give the sources of all.

    Parameters
    ----------
    data_streams : sequence of AbstractDataStream
        Streams that all give examples, or all batches, and equally many of them.
    sources : sequence of str, optional
        Names for the sources of all streams in order, by default those that they have.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes, by default those of the streams.
    metadata : dict of str to dict, optional
        Open information on each source, by default that of the streams.

    Raises
    ------
    ValueError
        If the streams do not fit together, when this is known; otherwise when one ends, or gives a
        smaller batch, before another.
    """

    def __init__(
        self,
        data_streams: Sequence[AbstractDataStream],
        sources: Sequence[str] | None = None,
        axis_labels: AxisLabels | None = None,
        *,
        metadata: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self.data_streams = as_streams("Merge", data_streams)
        self._check_streams()
        below = [(stream, name) for stream in self.data_streams for name in stream.sources]
        self.sources = self._check_names(sources, [name for _, name in below])
        super().__init__(
            axis_labels=self._labels(below) if axis_labels is None else axis_labels,
            metadata=self._metadata(below) if metadata is None else metadata,
        )
        self.produces_examples = self.data_streams[0].produces_examples
        check_label_names(self, axis_labels or {})

    def _check_streams(self) -> None:
        if len({stream.produces_examples for stream in self.data_streams}) > 1:
            shown = [
                f"{stream!r} gives {'examples' if stream.produces_examples else 'batches'}"
                for stream in self.data_streams
            ]
            raise ValueError(
                f"Merge: all streams must give examples, or all batches; {'; '.join(shown)}. Put "
                "Batch or Unpack over some."
            )
        lengths = [stream.num_batches for stream in self.data_streams]
        if len({*lengths} - {None}) > 1:
            shown = [
                f"{stream!r} has {length}"
                for stream, length in zip(self.data_streams, lengths, strict=True)
            ]
            raise ValueError(
                f"Merge: all streams must have equally many items in an epoch; {'; '.join(shown)}."
            )

    @staticmethod
    def _check_names(sources: Sequence[str] | None, below: list[str]) -> tuple[str, ...]:
        names = tuple(below if sources is None else sources)
        if len(names) != len(below):
            raise ValueError(
                f"Merge: `sources` must have {len(below)} names, one for each of {below}; got "
                f"{list(names)}."
            )
        if len(set(names)) < len(names):
            raise ValueError(
                f"Merge: two sources have one name: {list(names)}. Give other names as `sources`."
            )
        return names

    def _labels(self, below: list[tuple[AbstractDataStream, str]]) -> AxisLabels | None:
        if all(stream.axis_labels is None for stream, _ in below):
            return None
        return {
            name: (stream.axis_labels or {}).get(old)
            for name, (stream, old) in zip(self.sources, below, strict=True)
        }

    def _metadata(self, below: list[tuple[AbstractDataStream, str]]) -> dict[str, dict[str, Any]]:
        return {
            name: stream.metadata[old]
            for name, (stream, old) in zip(self.sources, below, strict=True)
            if old in (getattr(stream, "metadata", None) or {})
        }

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known of any stream."""
        counts = (stream.num_batches for stream in self.data_streams)
        return next((count for count in counts if count is not None), None)

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known of any stream."""
        counts = (stream.num_examples for stream in self.data_streams)
        return next((count for count in counts if count is not None), None)

    @property
    def _is_endless(self) -> bool:
        return all(getattr(stream, "_is_endless", False) for stream in self.data_streams)

    def _children(self) -> Sequence[Any]:
        return self.data_streams

    get_data = Transformer.get_data

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read one item of each stream; see `AbstractDataStream.read`."""
        parts: list[tuple] = []
        ended = []
        for number, child in enumerate(stage.children):
            try:
                parts.append(next(child))
            except StopIteration:
                ended.append(number)
        if not ended:
            self._check_sizes(parts)
            return tuple(item for part in parts for item in part)
        if len(ended) == len(stage.children):
            raise StopIteration
        shown = ", ".join(f"number {n} ({self.data_streams[n]!r})" for n in ended)
        raise ValueError(
            f"Merge: {shown} of {len(stage.children)} streams ended after {stage.index} items "
            "while the others went on. All must have equally many."
        )

    def _check_sizes(self, parts: list[tuple]) -> None:
        if self.produces_examples:
            return
        sizes = [
            len(examples_first(part[0], (stream.axis_labels or {}).get(stream.sources[0])))
            for stream, part in zip(self.data_streams, parts, strict=True)
            if part
        ]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"Merge: all streams must give batches of one size; got {sizes} examples."
            )
