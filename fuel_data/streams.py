"""Streams: what gives a data set's examples or batches, epoch by epoch; see `DataStream`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fuel_data import fuels_way
from fuel_data.axes import AxisLabels, without_batch
from fuel_data.datasets.base import Dataset, Request
from fuel_data.identity import describe, describe_arguments
from fuel_data.iterator import (
    FORMAT,
    DataIterator,
    IteratorStage,
    Stage,
    check_state,
    place_over,
    restarting,
)
from fuel_data.randomness import Rng, rng_state, rngs_of, set_rng_state
from fuel_data.requests import IterationScheme, open_requests, scheme_rngs
from fuel_data.utils.digests import digest
from fuel_data.utils.keywords import NamedKeywords

if TYPE_CHECKING:
    from fuel_data.server.client import ServerDataStream

__all__ = ["AbstractDataStream", "DataStream", "ServerDataStream"]

# Attributes of streams that are no arguments of the pipeline.
_NO_ARGUMENTS = (
    "data_stream",
    "data_streams",
    "dataset",
    "data_state",
    "is_open",
    "epochs_begun",
    "axis_labels",
    "metadata",
    "child_epoch_iterator",
    "_checked_sources",
    fuels_way.ARGUMENTS,
)

# The state of a data set that takes no requests, once it has been read to its end and closed.
_ENDED = object()


def __getattr__(name: str) -> Any:
    if name == "ServerDataStream":
        # The client brings zmq, which most streams do without.
        from fuel_data.server.client import ServerDataStream

        return ServerDataStream
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class AbstractDataStream(NamedKeywords, ABC):
    """Base of all streams.

    A stream of your own defines `sources` and `get_data`. What it sets on itself in `get_data` is
    kept for each epoch separately.

    Parameters
    ----------
    iteration_scheme : IterationScheme, optional
        What `get_data` is asked for.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes.
    metadata : dict of str to dict, optional
        Open information on each source, plain data.

    Attributes
    ----------
    epochs_begun : int
        Number of the epoch that `get_epoch_iterator` gives next.
    """

    # So that a subclass need not call __init__ if it has nothing to say.
    iteration_scheme: IterationScheme | None = None
    epochs_begun = 0

    def __init__(
        self,
        iteration_scheme: IterationScheme | None = None,
        axis_labels: AxisLabels | None = None,
        *,
        metadata: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self.iteration_scheme = iteration_scheme
        self.axis_labels = axis_labels
        self.metadata = dict(metadata or {})
        self.epochs_begun = 0

    @property
    def produces_examples(self) -> bool:
        """Whether the items are single examples, not batches."""
        if self.iteration_scheme is not None:
            return self.iteration_scheme.requests_examples
        return self._produces_examples

    @produces_examples.setter
    def produces_examples(self, value: bool) -> None:
        if self.iteration_scheme is not None:
            raise ValueError(
                f"{type(self).__name__}: `produces_examples` follows from the iteration scheme "
                f"{self.iteration_scheme!r} and cannot be set."
            )
        self._produces_examples = value

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the items of each example or batch."""
        return self._sources

    @sources.setter
    def sources(self, sources: Sequence[str]) -> None:
        self._sources = tuple(sources)

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has, examples or batches; None if that is not known."""
        return None

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has, in batches or not; None if that is not known."""
        return self.num_batches if self.produces_examples else None

    def __len__(self) -> int:
        count = self.num_batches
        if count is None:
            raise TypeError(
                f"{type(self).__name__}: the number of items in an epoch is not known before it "
                "has been read. `num_batches` is None in this case."
            )
        return count

    def __bool__(self) -> bool:
        return True

    @abstractmethod
    def get_data(self, request: Request | None = None) -> tuple:
        """Read one item.

        Parameters
        ----------
        request : object, optional
            From the iteration scheme.

        Returns
        -------
        tuple
            One item for each source.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """

    def get_epoch_iterator(self, as_dict: bool = False, epoch: int | None = None) -> DataIterator:
        """Begin an epoch.

        Parameters
        ----------
        as_dict : bool
            Give dicts by source instead of tuples.
        epoch : int, optional
            Number of the epoch, by default the one after the one that was begun last. The count
            goes on from it.

        Returns
        -------
        DataIterator
        """
        if epoch is None:
            epoch = self.epochs_begun
        if epoch < 0:
            raise ValueError(f"{type(self).__name__}: `epoch` must be at least 0; got {epoch}.")
        iterator = DataIterator(self, as_dict=as_dict, epoch=epoch)
        self.epochs_begun = epoch + 1
        return iterator

    def iterate_epochs(self, as_dict: bool = False) -> Iterator[DataIterator]:
        """Begin epochs for ever.

        Parameters
        ----------
        as_dict : bool
            Give dicts by source instead of tuples.

        Yields
        ------
        DataIterator
        """
        while True:
            yield self.get_epoch_iterator(as_dict=as_dict)

    def __iter__(self) -> DataIterator:
        return self.get_epoch_iterator()

    def reset(self) -> None:
        """Let go of what is open; epochs begun later open it again."""
        self.close()

    def close(self) -> None:
        """Let go of what is open."""
        for child in self._children():
            child.close()

    def next_epoch(self) -> None:
        """Do nothing but tell the streams below; each iterator begins its epoch itself.

        Kept for those who call it, as in Fuel.
        """
        for child in self._children():
            child.next_epoch()

    def __enter__(self) -> "AbstractDataStream":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def identity(self) -> dict[str, Any]:
        """Say what this pipeline is, as plain data.

        Returns
        -------
        dict of plain data
        """
        return {
            "class": type(self).__qualname__,
            "sources": list(self.sources),
            "arguments": describe_arguments(self, left_out=_NO_ARGUMENTS),
            "children": [describe(child) for child in self._children()],
        }

    def digest(self) -> str:
        """Digest what this pipeline is: its classes, arguments, seeds, sources and data sets.

        Returns
        -------
        str
            Hexadecimal, the same in every process. The position does not count.
        """
        return digest(self.identity())

    def get_state(self) -> dict[str, Any]:
        """Give the position between two epochs as plain data.

        Within an epoch it is the iterator that has a position.

        Returns
        -------
        dict
            ``format`` (1), ``pipeline`` (digest), ``epoch`` (the next one) and ``rngs``: the states
            of generators of numpy that were handed in.
        """
        fuels_way.check_arguments(self)
        return {
            "format": FORMAT,
            "pipeline": self.digest(),
            "epoch": self.epochs_begun,
            "rngs": [rng_state(rng) for rng in self.all_rngs()],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on with the epoch before which a state was taken.

        Parameters
        ----------
        state : dict
            From `get_state`, of the same pipeline.

        Raises
        ------
        ValueError
            If it is of another format or another pipeline.
        """
        check_state(self, state)
        for rng, rng_before in zip(self.all_rngs(), state["rngs"], strict=True):
            set_rng_state(rng, rng_before)
        self.epochs_begun = state["epoch"]

    def all_rngs(self) -> list[Rng]:
        """Give the generators with a memory that this pipeline draws from.

        Returns
        -------
        list of RandomState or Generator
        """
        found = [] if self.iteration_scheme is None else scheme_rngs(self.iteration_scheme)
        found.extend(self.user_rngs().values())
        for child in self._children():
            if isinstance(child, AbstractDataStream):
                found.extend(child.all_rngs())
        return found

    def __repr__(self) -> str:
        children = ", ".join(map(repr, self._children()))
        return f"{type(self).__name__}({children})"

    # What follows is the life of a stage; see `fuel_data.transformers.base`.

    def _children(self) -> Sequence[Any]:
        """Give the streams that this one reads from."""
        return ()

    def user_rngs(self) -> dict[str, Rng]:
        """Give the generators with a memory that this stream draws from, those of its scheme apart.

        Returns
        -------
        dict of str to RandomState or Generator
        """
        return rngs_of(self) if fuels_way.is_used_by(self) else {}

    @property
    def holds_anything(self) -> bool:
        """Whether a stage of this pipeline may hold what is not plain data."""
        return fuels_way.is_used_by(self) or any(
            getattr(child, "holds_anything", False) for child in self._children()
        )

    def open_stage(self, epoch: int, branch: str = "") -> Stage:
        """Open this stream and all below it for one epoch.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        branch : str
            Tells the branches of a pipeline apart, for random keys.

        Returns
        -------
        Stage
        """
        streams = self._children()
        if len(streams) == 1:
            children = [_open_child(streams[0], epoch, branch)]
        else:
            children = [
                _open_child(stream, epoch, f"{branch}.{number}")
                for number, stream in enumerate(streams)
            ]
        scheme = self.iteration_scheme
        requests = None if scheme is None else open_requests(scheme, epoch)
        return Stage(self, epoch, place_over(branch, children), children, requests)

    def start(self, stage: Stage) -> None:
        """Prepare an epoch: set what `stage.held` begins with.

        Parameters
        ----------
        stage : Stage
            The stage of this stream in a new epoch.
        """
        stage.rngs = self.user_rngs()
        fuels_way.start(self, stage)

    def finish(self, stage: Stage) -> None:
        """Release what `start` opened.

        Parameters
        ----------
        stage : Stage
            The stage of this stream.
        """
        del stage  # Nothing is open by default.

    def read(self, stage: Stage, request: Request | None) -> tuple:
        """Read one item of an epoch. By default it is `get_data` that does this, in Fuel's way.

        Parameters
        ----------
        stage : Stage
            What is open: the stages below, and what is held.
        request : object or None
            From the stream's own iteration scheme.

        Returns
        -------
        tuple

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        return fuels_way.read(stage, request)

    def get_position(self, stage: Stage) -> dict[str, Any]:
        """Give the position of a stage as plain data.

        Parameters
        ----------
        stage : Stage
            The stage of this stream.

        Returns
        -------
        dict
            What `set_position` needs, with `held` in it unless this is overridden.
        """
        position: dict[str, Any] = {"index": stage.index}
        if stage.requests is not None:
            position["requests"] = stage.requests.get_position()
        if stage.child is not None:
            position["child"] = stage.child.get_position()
        elif stage.children:
            position["children"] = [child.get_position() for child in stage.children]
        if stage.rngs:
            position["rngs"] = {name: rng_state(rng) for name, rng in stage.rngs.items()}
        if stage.held:
            position["held"] = fuels_way.get_held(self, stage)
        return position

    def set_position(self, stage: Stage, position: dict[str, Any]) -> None:
        """Put a stage at a position of its epoch.

        Parameters
        ----------
        stage : Stage
            The stage of this stream.
        position : dict
            From `get_position`.
        """
        stage.index = position["index"]
        if stage.requests is not None:
            stage.requests.set_position(position["requests"])
        if stage.child is not None:
            stage.child.set_position(position["child"])
        elif stage.children:
            for child, child_position in zip(stage.children, position["children"], strict=True):
                child.set_position(child_position)
        for name, rng in stage.rngs.items():
            set_rng_state(rng, position["rngs"][name])
        if "held" in position:
            fuels_way.set_held(self, stage, position["held"])


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
        self.dataset = dataset
        known = getattr(dataset, "metadata", None) if metadata is None else metadata
        super().__init__(iteration_scheme, axis_labels, metadata=known)
        if iteration_scheme is None:
            self.produces_examples = True
        if axis_labels is None:
            axis_labels = getattr(dataset, "axis_labels", None)
            self.axis_labels = without_batch(axis_labels) if self.produces_examples else axis_labels
        self.data_state: Any = None
        self.is_open = False

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
        """Names of the items of each example or batch: those of the data set."""
        return tuple(self.dataset.sources)

    @sources.setter
    def sources(self, sources: Sequence[str]) -> None:
        self.dataset.sources = sources  # type: ignore[assignment]

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

    def set_position(self, stage: Stage, position: dict[str, Any]) -> None:
        """Put a stage at a position; a data set without requests is read again from the front."""
        super().set_position(stage, position)
        if stage.requests is None:
            self.finish(stage)
            stage.state = self._open_epoch(stage.epoch)
            self.dataset.skip(stage.state, position["index"])

    def identity(self) -> dict[str, Any]:
        """Say what this pipeline is; see `AbstractDataStream.identity`."""
        return {**super().identity(), "dataset": describe(self.dataset)}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "data_state": None, "is_open": False}

    def __repr__(self) -> str:
        scheme = "" if self.iteration_scheme is None else f", {self.iteration_scheme!r}"
        return f"{type(self).__name__}({self.dataset!r}{scheme})"


def _known(counted: Any) -> int | None:
    count = getattr(counted, "num_examples", None)
    # A data set written for Fuel says NaN when it does not know.
    return count if count is None or count == count else None


def _open_child(stream: Any, epoch: int, branch: str) -> Any:
    if _makes_own_iterators(stream):
        # Its stages are numbered elsewhere; the letter keeps their places apart from ours.
        return IteratorStage(restarting(stream, epoch), epoch, f"{branch}/s0")
    return stream.open_stage(epoch, branch)


def _makes_own_iterators(stream: Any) -> bool:
    own = getattr(type(stream), "get_epoch_iterator", None)
    return own is not AbstractDataStream.get_epoch_iterator
