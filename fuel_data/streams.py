"""Streams: what gives a data set's examples or batches, epoch by epoch; see `DataStream`."""

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from fuel_data import fuels_way
from fuel_data.abstract import AbstractDataStream, check_label_names
from fuel_data.axes import AxisLabels, labels_of, of_sources, without_batch
from fuel_data.datasets.base import Dataset, IterableDataset, Request
from fuel_data.identity import describe
from fuel_data.iterator import Stage
from fuel_data.requests import IterationScheme, skip_requests
from fuel_data.schemes import BatchSizeScheme, IndexScheme

if TYPE_CHECKING:
    from fuel_data.server.client import ServerDataStream

__all__ = ["AbstractDataStream", "DataStream", "ServerDataStream"]

# The state of a data set that takes no requests, once it has been read to its end and closed.
_ENDED = object()


def __getattr__(name: str) -> Any:
    if name == "ServerDataStream":
        # The client brings zmq, which most streams do without.
        from fuel_data.server.client import ServerDataStream

        return ServerDataStream
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class DataStream(AbstractDataStream):
    """A stream over a data set.

    The data set is opened when it is first read. One that takes requests stays open until the
    stream is closed; one that takes none is opened for each epoch and closed at its end.

    Parameters
    ----------
    dataset : Dataset
        What is read.
    iteration_scheme : IterationScheme, optional
        The requests. Without one the data set is read from the front to the end, and gives
        examples.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes, by default those of the data set, without ``'batch'`` for examples.
    metadata : dict of str to dict, optional
        Open information on each source, by default that of the data set.

    Examples
    --------
    >>> import numpy
    >>> from fuel_data.datasets import IndexableDataset
    >>> from fuel_data.schemes import SequentialScheme
    >>> dataset = IndexableDataset({"x": numpy.arange(5)})
    >>> stream = DataStream(dataset, iteration_scheme=SequentialScheme(5, batch_size=2))
    >>> iterator = stream.get_epoch_iterator(as_dict=True)
    >>> next(iterator)
    {'x': array([0, 1])}
    >>> state = iterator.get_state()                  # plain data, for another process perhaps
    >>> list(iterator)
    [{'x': array([2, 3])}, {'x': array([4])}]
    >>> iterator.set_state(state)
    >>> next(iterator)
    {'x': array([2, 3])}
    """

    def __init__(
        self,
        dataset: Dataset,
        iteration_scheme: IterationScheme | None = None,
        axis_labels: AxisLabels | None = None,
        *,
        metadata: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        _check_parts(dataset, iteration_scheme)
        self.dataset = dataset
        if metadata is None:
            metadata = of_sources(getattr(dataset, "metadata", None) or {}, dataset.sources)
        super().__init__(iteration_scheme, axis_labels, metadata=metadata)
        if iteration_scheme is None:
            self.produces_examples = True
        if axis_labels is None:
            self.axis_labels = self._labels_of_dataset()
        else:
            self.axis_labels = self._check_labels(axis_labels)
        self._check_requests()
        self.data_state: Any = None
        self.is_open = False

    def _labels_of_dataset(self) -> AxisLabels | None:
        labels = labels_of(self.dataset)
        return without_batch(labels) if self.produces_examples else labels

    def _check_labels(self, axis_labels: AxisLabels) -> AxisLabels:
        # Those of sources that were not chosen are no mistake: the data set's own have them.
        provided = getattr(self.dataset, "provides_sources", None) or ()
        chosen = {
            source: labels
            for source, labels in axis_labels.items()
            if source in self.sources or source not in provided
        }
        check_label_names(self, chosen)
        return chosen

    def _check_requests(self) -> None:
        """Refuse a scheme that the data set cannot answer, as far as that is known."""
        scheme, reader = self.iteration_scheme, type(self.dataset).get_data
        if scheme is not None and reader is IterableDataset.get_data:
            raise ValueError(
                f"DataStream: {self.dataset!r} is read from the front to the end and takes no "
                f"requests; got {scheme!r}. Leave `iteration_scheme` out, and put Batch over the "
                "stream for batches or Shuffle for another order."
            )
        if scheme is None and self._is_asked_by_number(reader):
            raise ValueError(
                f"DataStream: {self.dataset!r} answers requests, so the stream needs an "
                "`iteration_scheme`. Give one, or write dataset.get_example_stream()."
            )
        by_index = getattr(self.dataset, "example_iteration_scheme", None)
        if isinstance(scheme, BatchSizeScheme) and isinstance(by_index, IndexScheme):
            # It would take each size for the number of an example.
            raise ValueError(
                f"DataStream: {self.dataset!r} is asked by the numbers of examples, but {scheme!r} "
                "says sizes of batches. Give SequentialScheme or ShuffledScheme, or put Batch over "
                "a stream of examples."
            )
        count = _known(self.dataset)
        for part in (scheme, *getattr(scheme, "schemes", ())):
            last = _last(getattr(part, "indices", ()))
            if count is not None and last >= count:
                raise ValueError(
                    f"DataStream: {part!r} asks for example {last}, but {self.dataset!r} has the "
                    f"examples 0 to {count - 1}."
                )

    def _is_asked_by_number(self, reader: Any) -> bool:
        # A user's `get_data` may do without requests.
        if not fuels_way.is_ours(reader) or reader is IterableDataset.get_data:
            return False
        return getattr(self.dataset, "example_iteration_scheme", None) is not None

    @classmethod
    def default_stream(cls, dataset: Dataset, **kwargs: Any) -> AbstractDataStream:
        """Make a stream with the data set's default transformers over it.

        Parameters
        ----------
        dataset : Dataset
            What is read.
        **kwargs
            The other arguments of the class, which refuses those that it does not know.

        Returns
        -------
        AbstractDataStream
        """
        return dataset.apply_default_transformers(cls(dataset, **kwargs))

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the items of each example or batch: those of the data set, or those chosen.

        Who chooses others does so for this stream alone, which then reads a copy of the data set.
        """
        return tuple(self.dataset.sources)

    @sources.setter
    def sources(self, sources: Sequence[str]) -> None:
        dataset = copy.copy(self.dataset)
        # What a pickle leaves out, such as data in memory, the copy shares.
        vars(dataset).update(vars(self.dataset))
        dataset.sources = sources  # type: ignore[assignment]
        self.close()
        self.dataset = dataset
        of_dataset = self._labels_of_dataset()
        if of_dataset is not None:
            # Sources may have come to those that had labels before.
            self.axis_labels = {**of_dataset, **(labels_of(self) or {})}

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known."""
        if self.iteration_scheme is not None:
            return getattr(self.iteration_scheme, "num_requests", None)
        return _known(self.dataset)

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return _known(self.dataset if self.iteration_scheme is None else self.iteration_scheme)

    def get_data(self, request: Request | None = None) -> tuple:
        """Answer a request of a data set that takes requests.

        Parameters
        ----------
        request : object, optional
            What `Dataset.get_data` understands.

        Returns
        -------
        tuple
        """
        stage = self.__dict__.get("_stage")
        if stage is not None:
            return self.read(stage, request)
        self._open()
        return self.dataset.get_data(self.data_state, request)

    def close(self) -> None:
        """Let go of what is open."""
        if self.is_open:
            self.dataset.close(self.data_state)
            self.data_state = None
            self.is_open = False

    def _open(self) -> None:
        # Not told by the state: that of many data sets is None.
        if not self.is_open:
            self.data_state = self.dataset.open()
            self.is_open = True

    def start(self, stage: Stage) -> None:
        """Open the data set; see `AbstractDataStream.start`."""
        super().start(stage)
        if stage.requests is None:
            stage.state = self._open_epoch(stage.epoch)
        else:
            self._open()

    def _open_epoch(self, epoch: int) -> Any:
        state = self.dataset.open()
        if type(self.dataset).next_epoch is not Dataset.next_epoch:
            for _ in range(epoch):
                state = self.dataset.next_epoch(state)
        return state

    def finish(self, stage: Stage) -> None:
        """Close the state of a data set that takes no requests."""
        if stage.requests is None and stage.state is not _ENDED:
            self.dataset.close(stage.state)
            stage.state = _ENDED

    def read(self, stage: Stage, request: Request | None) -> tuple:
        """Read one item; see `AbstractDataStream.read`."""
        if stage.requests is not None:
            # Of the stream, not of its copy in Fuel's way; it may have been closed meanwhile.
            stage.stream._open()
            return self.dataset.get_data(stage.stream.data_state, request)
        if stage.state is _ENDED:
            raise StopIteration
        try:
            return self.dataset.get_data(stage.state)
        except StopIteration:
            self.finish(stage)
            raise

    def skip(self, stage: Stage, count: int) -> int:
        """Pass over requests without reading; see `AbstractDataStream.skip`."""
        is_plain = type(self).read is DataStream.read and not fuels_way.is_used_by(self)
        if stage.requests is None or not is_plain:
            return super().skip(stage, count)
        passed = skip_requests(stage.requests, count)
        stage.index += passed
        return passed

    def get_position(self, stage: Stage) -> dict[str, Any]:
        """Give the position of a stage, and where the data set stands if it can say so."""
        position = super().get_position(stage)
        if stage.requests is None and stage.state is not _ENDED:
            where = getattr(self.dataset, "get_position", None)
            if where is not None:
                position["dataset"] = where(stage.state)
        return position

    def set_position(self, stage: Stage, position: dict[str, Any]) -> None:
        """Put a stage at a position; a data set without requests is read again from the front.

        One that has `get_position` and `set_position` is told where to go on instead.
        """
        super().set_position(stage, position)
        if stage.requests is None:
            self.finish(stage)
            stage.state = self._open_epoch(stage.epoch)
            if "dataset" in position:
                self.dataset.set_position(stage.state, position["dataset"])  # type: ignore
            else:
                self.dataset.skip(stage.state, position["index"])

    def identity(self) -> dict[str, Any]:
        """Say what this pipeline is; see `AbstractDataStream.identity`."""
        return {**super().identity(), "dataset": describe(self.dataset)}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "data_state": None, "is_open": False}

    def __repr__(self) -> str:
        scheme = "" if self.iteration_scheme is None else f", {self.iteration_scheme!r}"
        return f"{type(self).__name__}({self.dataset!r}{scheme})"


def _check_parts(dataset: Any, scheme: Any) -> None:
    if isinstance(dataset, type) and issubclass(dataset, Dataset):
        raise TypeError(
            f"DataStream: `dataset` must be a data set; got the class. Write "
            f"{dataset.__name__}(...)."
        )
    if not hasattr(dataset, "get_data") or not hasattr(dataset, "sources"):
        raise TypeError(
            f"DataStream: `dataset` must be a data set; got {dataset!r}. Put IndexableDataset or "
            "IterableDataset over what is in memory."
        )
    is_class = isinstance(scheme, type)
    if scheme is not None and (is_class or not hasattr(scheme, "requests_examples")):
        raise TypeError(
            f"DataStream: `iteration_scheme` must be a scheme, as SequentialScheme and "
            f"ShuffledScheme are; got {scheme!r}."
        )


def _last(indices: Any) -> int:
    if not len(indices):
        return -1
    is_range = isinstance(indices, range)
    return max(indices[0], indices[-1]) if is_range else int(numpy.max(indices))


def _known(counted: Any) -> int | None:
    count = getattr(counted, "num_examples", None)
    # A data set written for Fuel says NaN when it does not know.
    return count if count is None or count == count else None
