"""The base of all streams; see `AbstractDataStream`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from fuel_data import fuels_way
from fuel_data.axes import AxisLabels
from fuel_data.datasets.base import Request
from fuel_data.identity import describe, describe_arguments
from fuel_data.iterator import (
    FORMAT,
    DataIterator,
    IteratorStage,
    Stage,
    check_state,
    height_over,
    restarting,
)
from fuel_data.randomness import (
    Rng,
    rng_state,
    rng_states,
    rngs_of,
    set_rng_state,
    set_rng_states,
)
from fuel_data.reports import Report, draw, report_on
from fuel_data.requests import IterationScheme, open_requests, scheme_rngs
from fuel_data.utils.arguments import whole_number
from fuel_data.utils.digests import digest
from fuel_data.utils.keywords import NamedKeywords
from fuel_data.utils.names import nearest_name

# Attributes of streams that are no arguments of the pipeline.
NO_ARGUMENTS = (
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

    @property
    def _is_endless(self) -> bool:
        """Whether it is known that an epoch has no end."""
        return False

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
        epoch = whole_number(type(self).__name__, "epoch", epoch, least=0)
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
            "arguments": describe_arguments(self, left_out=NO_ARGUMENTS),
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
            "rngs": rng_states(self.all_rngs()),
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
        check_state(self, state, "rngs")
        set_rng_states(self.all_rngs(), state["rngs"])
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

    def report(self, num_items: int | None = 1000, epoch: int = 0) -> Report:
        """Read a part of an epoch and say what is in it.

        It does not count as an epoch, and generators that were handed in are put back.

        Parameters
        ----------
        num_items : int or None
            How many items are read at most, None for the whole epoch.
        epoch : int
            Number of the epoch.

        Returns
        -------
        Report
            Shapes, types, axis labels, ranges and lengths of each source, and what the transformers
            note: paddings, what was left out and why. It prints as a table.

        Examples
        --------
        >>> import numpy
        >>> from fuel_data.datasets import IndexableDataset
        >>> stream = IndexableDataset({"x": numpy.arange(5)}).get_example_stream()
        >>> print(stream.report())
        DataStream(IndexableDataset(x, 5 examples), SequentialExampleScheme(examples=5))
            gives 5 examples of x
        read: 5 items, 5 examples, the whole epoch
        x: int64, shape (), 0 to 4, axes not labelled
        """
        before = rng_states(self.all_rngs())
        begun = self.epochs_begun
        iterator = restarting(self, epoch)()
        try:
            return report_on(self, iterator, num_items)
        finally:
            if hasattr(iterator, "close"):
                iterator.close()
            self.epochs_begun = begun
            set_rng_states(self.all_rngs(), before)

    def __repr__(self) -> str:
        children = ", ".join(map(repr, self._children()))
        return f"{type(self).__name__}({children})"

    def __str__(self) -> str:
        return draw(self, NO_ARGUMENTS)

    @property
    def _height(self) -> str:
        """How high it stands in its pipeline; see `height_over`."""
        return height_over(map(height_of, self._children()))

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
        return rngs_of(self, NO_ARGUMENTS) if fuels_way.is_used_by(self) else {}

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
            children = [open_child(streams[0], epoch, branch)]
        else:
            children = [
                open_child(stream, epoch, f"{branch}.{number}")
                for number, stream in enumerate(streams)
            ]
        scheme = self.iteration_scheme
        requests = None if scheme is None else open_requests(scheme, epoch)
        return Stage(self, epoch, f"{branch}/{self._height}", children, requests)

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

    def skip(self, stage: Stage, count: int) -> int:
        """Pass over items of an epoch. By default they are read.

        Parameters
        ----------
        stage : Stage
            The stage of this stream.
        count : int
            How many.

        Returns
        -------
        int
            How many there were: fewer at the end of the epoch.
        """
        return sum(1 for _ in islice(stage, count))

    def notes(self, stage: Stage) -> dict[str, Any]:
        """Say what a stage has noticed in its epoch so far, such as what it left out.

        Parameters
        ----------
        stage : Stage
            The stage of this stream.

        Returns
        -------
        dict of str to plain data
            Empty if there is nothing to say.
        """
        del stage  # Nothing is noticed by default.
        return {}

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
        position = self._own_position(stage)
        if stage.child is not None:
            position["child"] = stage.child.get_position()
        elif stage.children:
            position["children"] = [child.get_position() for child in stage.children]
        return position

    def _own_position(self, stage: Stage) -> dict[str, Any]:
        """Give what `get_position` does, without the stages below."""
        position: dict[str, Any] = {"index": stage.index}
        if stage.requests is not None:
            position["requests"] = stage.requests.get_position()
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
            # A transformer that holds items back says itself where the stage below goes.
            if "child" in position:
                stage.child.set_position(position["child"])
        elif stage.children:
            for child, child_position in zip(stage.children, position["children"], strict=True):
                child.set_position(child_position)
        saved = position.get("rngs", {})
        if saved.keys() != stage.rngs.keys():
            raise ValueError(
                f"{type(self).__name__}: the position has states of the generators "
                f"{sorted(saved)}, and the stream draws from {sorted(stage.rngs)}. Build the "
                "stream as it was when the position was saved, with the same release, or begin the "
                "epoch anew."
            )
        for name, rng in stage.rngs.items():
            set_rng_state(rng, saved[name])
        if "held" in position:
            fuels_way.set_held(self, stage, position["held"])


def open_child(stream: Any, epoch: int, branch: str) -> Any:
    """Open a stream for the stage above it.

    Parameters
    ----------
    stream : AbstractDataStream, or another with `get_epoch_iterator`
        The stream below.
    epoch : int
        Number of the epoch.
    branch : str
        Tells the branches of a pipeline apart, for random keys.

    Returns
    -------
    Stage or IteratorStage
    """
    if makes_own_iterators(stream):
        place = f"{branch}/{height_of(stream)}"
        return IteratorStage(restarting(stream, epoch), epoch, place)
    return stream.open_stage(epoch, branch)


def height_of(stream: Any) -> str:
    """Say how high a stream stands in its pipeline.

    Parameters
    ----------
    stream : AbstractDataStream, or another with `get_epoch_iterator`
        The stream.

    Returns
    -------
    str
        See `height_over`.
    """
    if not makes_own_iterators(stream):
        return stream._height
    # Its stages are numbered elsewhere; another letter keeps their places apart from ours.
    letters = getattr(stream, "_height", "").count("s") + 1
    return f"{'s' * letters}0"


def check_is_stream(who: str, name: str, stream: Any) -> None:
    """Refuse what is no stream where one belongs.

    Parameters
    ----------
    who : str
        Who is to read it, for the error.
    name : str
        Name of the argument, for the error.
    stream : object
        What the user handed in.

    Raises
    ------
    TypeError
        If it has no `get_epoch_iterator`.
    """
    if hasattr(stream, "get_epoch_iterator") and not isinstance(stream, type):
        return
    way_out = ""
    if hasattr(stream, "get_example_stream"):
        way_out = " Put a DataStream over the data set."
    elif isinstance(stream, type):
        way_out = " Make one of the class."
    raise TypeError(f"{who}: `{name}` must be a stream; got {stream!r}.{way_out}")


def check_label_names(stream: Any, axis_labels: AxisLabels) -> None:
    """Refuse labels of sources that a stream does not have.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream, which knows its sources.
    axis_labels : dict from source to tuple of str or None
        What its user handed in.

    Raises
    ------
    ValueError
        If a name is unknown; the nearest known one is named.
    """
    for source in axis_labels:
        if source not in stream.sources:
            raise ValueError(
                f"{type(stream).__name__}: `axis_labels` names {source!r}, which is not among the "
                f"sources.{nearest_name(source, stream.sources)}"
            )


def makes_own_iterators(stream: Any) -> bool:
    """Tell whether a stream begins its epochs itself, as a user's may.

    Parameters
    ----------
    stream : AbstractDataStream, or another with `get_epoch_iterator`
        The stream.

    Returns
    -------
    bool
    """
    own = getattr(type(stream), "get_epoch_iterator", None)
    return own is not AbstractDataStream.get_epoch_iterator
