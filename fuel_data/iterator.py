"""An epoch: the open pipeline, and the iterator that a user holds.

A stream describes; it remembers nothing of an epoch but how many were begun. To read one, each
stream of a pipeline opens a `Stage` over the stages below it, and `DataIterator` reads the topmost.
All that changes during the epoch is in the stages, so two iterators do not know of each other, and
the position of the whole is the nested positions of the stages.
"""

import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy

from fuel_data import fuels_way
from fuel_data.randomness import Rng, generator, key, rng_states, set_rng_states
from fuel_data.requests import PositionedScheme, scheme_rngs
from fuel_data.state import is_plain, split_arrays

FORMAT = 1

# After a failure at most so many items of a stream in Fuel's way are read again.
_MAX_REPEATED = 100


class Stage:
    """One stream of a pipeline, open for one epoch.

    Parameters
    ----------
    stream : AbstractDataStream
        Whose stage this is.
    epoch : int
        Number of the epoch.
    place : str
        Place in the pipeline, for random keys: no other stage of the pipeline has it.
    children : sequence of Stage
        The stages that this one reads from.
    requests : iterator or None
        The requests of the stream's own iteration scheme, with `get_position` and `set_position`.

    Attributes
    ----------
    child : Stage or None
        The stage below, where there is exactly one.
    index : int
        How many items this stage has given.
    held : dict
        What the stream keeps during the epoch: plain data, saved with the position.
    state : object
        What the stream has open during the epoch, not saved.
    rngs : dict of str to RandomState or Generator
        Generators of the user's that are drawn from; their states are saved.
    """

    def __init__(
        self,
        stream: Any,
        epoch: int,
        place: str,
        children: Sequence[Any] = (),
        requests: Any = None,
    ) -> None:
        self.stream = stream
        self.epoch = epoch
        self.place = place
        self.children = tuple(children)
        self.child: Any = self.children[0] if len(self.children) == 1 else None
        self.requests = requests
        self.index = 0
        self.held: dict[str, Any] = {}
        self.state: Any = None
        self.rngs: dict[str, Any] = {}
        self._read = stream.read
        stream.start(self)

    def __iter__(self) -> "Stage":
        return self

    def __next__(self) -> tuple:
        data = self._read(self, None if self.requests is None else next(self.requests))
        self.index += 1
        return data

    def rng(self, seed: int) -> numpy.random.Generator:
        """Make the generator for the item that is being read.

        Parameters
        ----------
        seed : int
            Seed of the stream.

        Returns
        -------
        numpy.random.Generator
            Drawn from no other stage, epoch or item.
        """
        return generator(key(seed, self.place, self.epoch, self.index))

    def skip(self, count: int) -> int:
        """Pass over items.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        int
            How many there were: fewer at the end of the epoch.
        """
        return self.stream.skip(self, count)

    def notes(self) -> list[tuple[str, dict[str, Any]]]:
        """Collect what the stages have noticed in this epoch so far.

        Returns
        -------
        list of (str, dict)
            Class of the stream and its notes, from below to above; without those that have none.
        """
        found = [note for child in self.children for note in child.notes()]
        own = self.stream.notes(self)
        return [*found, (type(self.stream).__name__, own)] if own else found

    def get_position(self) -> dict[str, Any]:
        """Give the position as plain data.

        Returns
        -------
        dict
        """
        return self.stream.get_position(self)

    def set_position(self, position: dict[str, Any]) -> None:
        """Go to a position of this epoch.

        Parameters
        ----------
        position : dict
            From `get_position`.
        """
        self.stream.set_position(self, position)

    def close(self) -> None:
        """Release what the stages hold open."""
        self.stream.finish(self)
        for child in self.children:
            child.close()


class OpaqueStage(ABC):
    """Base of stages that are read without knowing what is in them."""

    def __iter__(self) -> "OpaqueStage":
        return self

    @abstractmethod
    def __next__(self) -> tuple:
        """Give the next item."""

    def skip(self, count: int) -> int:
        """Read items without giving them; see `Stage.skip`.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        int
            How many there were.
        """
        return sum(1 for _ in islice(self, count))

    def notes(self) -> list[tuple[str, dict[str, Any]]]:
        """Give nothing: what the stages elsewhere notice is not known.

        Returns
        -------
        list
        """
        return []


class IteratorStage(OpaqueStage):
    """A stage over a stream that makes its own epoch iterators.

    Parameters
    ----------
    restart : function
        Makes the iterator of the epoch, the same one each time. If that has `get_state` and
        `set_state`, they are its position; otherwise it is read again from the front.
    epoch : int
        Number of the epoch.
    place : str
        Place in the pipeline.
    """

    def __init__(self, restart: Any, epoch: int, place: str) -> None:
        self.epoch = epoch
        self.place = place
        self.index = 0
        self._restart = restart
        self._iterator = iter(restart())

    def __next__(self) -> tuple:
        data = next(self._iterator)
        self.index += 1
        return data

    def get_position(self) -> dict[str, Any]:
        """Give the position as plain data; see `Stage.get_position`.

        Returns
        -------
        dict
            ``index``, and ``state`` if the iterator can tell its own.
        """
        if hasattr(self._iterator, "get_state"):
            return {"index": self.index, "state": self._iterator.get_state()}
        return {"index": self.index}

    def set_position(self, position: dict[str, Any]) -> None:
        """Go to a position of this epoch; see `Stage.set_position`.

        Parameters
        ----------
        position : dict
            From `get_position`.
        """
        if "state" in position:
            self._iterator.set_state(position["state"])
        else:
            self._iterator = iter(self._restart())
            for _ in range(position["index"]):
                next(self._iterator)
        self.index = position["index"]

    def close(self) -> None:
        """Release what the iterator holds open."""
        if hasattr(self._iterator, "close"):
            self._iterator.close()


def height_over(heights: Iterable[str]) -> str:
    """Say how high a stream stands over others, which is its place on its branch of a pipeline.

    It keeps it when others are put above it, whichever processes read those below.

    Parameters
    ----------
    heights : iterable of str
        Those of the streams below.

    Returns
    -------
    str
        A number, after a letter for each pipeline below that counts for itself.
    """
    below = [(height.count("s"), int(height.lstrip("s"))) for height in heights]
    if not below:
        return "0"
    letters, numbers = map(max, zip(*below, strict=True))
    return f"{'s' * letters}{numbers + 1}"


def restarting(stream: Any, epoch: int) -> Callable[[], Any]:
    """Give a function that begins an epoch of a stream which makes its own iterators.

    Parameters
    ----------
    stream : object
        With `get_epoch_iterator`.
    epoch : int
        Number of the epoch.

    Returns
    -------
    function
        Without arguments; see `IteratorStage`.
    """
    parameters = inspect.signature(stream.get_epoch_iterator).parameters.values()
    takes_epoch = any(p.name == "epoch" or p.kind is p.VAR_KEYWORD for p in parameters)

    def restart() -> Any:
        if takes_epoch:
            return stream.get_epoch_iterator(as_dict=False, epoch=epoch)
        stream.epochs_begun = epoch
        return stream.get_epoch_iterator(as_dict=False)

    return restart


class DataIterator:
    """One epoch of a stream.

    It is made by ``stream.get_epoch_iterator()``. It can be pickled between any two items, stream
    included; `get_state` gives the position alone, as plain data. An item that could not be read
    because of an error is not passed over: the iterator stands before it.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to read.
    request_iterator : iterator, optional
        What the scheme of the stream gives by ``get_request_iterator()``, as streams that were
        written for Fuel hand it in. There is no need to: the scheme is asked without it, too.
    as_dict : bool
        Give dicts by source instead of tuples.
    epoch : int, optional
        Number of the epoch, by default the one after the one that was begun last.
    branch : str
        Where the stream stands in a larger pipeline, for random keys.

    Attributes
    ----------
    data_stream, as_dict, epoch
        As given.
    index : int
        How many items were given.

    Raises
    ------
    ValueError
        If `request_iterator` is something else.
    """

    # In pickles of version 0.1.0 they are missing.
    _since = 0
    _may_repeat = False
    _branch = ""

    def __init__(
        self,
        data_stream: Any,
        request_iterator: Iterator | None = None,
        as_dict: bool = False,
        epoch: int | None = None,
        *,
        branch: str = "",
    ) -> None:
        requests = None
        if request_iterator is not None:
            _check_requests(data_stream, request_iterator)
            requests = request_iterator.get_position()  # type: ignore[attr-defined]
        if epoch is None:
            epoch = data_stream.epochs_begun
            data_stream.epochs_begun = epoch + 1
        self.data_stream = data_stream
        self.as_dict = as_dict
        self.epoch = epoch
        self.index = 0
        self._branch = branch
        self._pipeline: str | None = None
        self._position: dict[str, Any] | None = None
        # How many items were given after `_position`, which is copied more seldom if it is large.
        self._since = 0
        # Generators that several stages draw from. Each stage puts its own back, and may draw again
        # while others do: so they are put back once more when all stages stand.
        self._shared: Sequence[Rng] = ()
        self._may_repeat = (
            data_stream.holds_anything
            and fuels_way.can_repeat(data_stream)
            and not data_stream.all_rngs()
        )
        self._stage: Any = None
        _check_generators(data_stream)
        stage = self._open()
        if requests is not None:
            # Where they stand; and a generator of the user's is drawn from once, not twice.
            stage.requests.set_position(requests)
            self._note_position(stage)

    def _open(self) -> Any:
        stage = self.data_stream.open_stage(self.epoch, self._branch)
        rngs = self.data_stream.all_rngs()
        self._shared = rngs if len(set(map(id, rngs))) < len(rngs) else ()
        try:
            if self._position is None:
                self._note_position(stage)
            else:
                stage.set_position(self._position)
                if "generators" in self._position:
                    set_rng_states(rngs, self._position["generators"])
            for _ in range(self._since):
                next(stage)
        except StopIteration:
            stage.close()
            raise ValueError(
                f"{type(self.data_stream).__name__}: {self.index} items of epoch {self.epoch} were "
                "given when this position was saved, and now the epoch ends before them. Put the "
                "data back as they were, or begin the epoch anew."
            ) from None
        except BaseException:
            stage.close()
            raise
        self._stage = stage
        return stage

    def _note_position(self, stage: Any) -> None:
        self._position, self._since = stage.get_position(), 0
        if self._shared:
            self._position["generators"] = rng_states(self._shared)
        if self._may_repeat:
            self._may_repeat = is_plain(self._position)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        stage = self._stage or self._open()
        if self._since >= _MAX_REPEATED:
            self._note_position(stage)
        try:
            data = next(stage)
            if self._may_repeat:
                self._since += 1
            else:
                self._note_position(stage)
        except StopIteration:
            self._note_position(stage)
            raise
        except BaseException:
            # The stages below may have gone on already. Begin again from where the item began.
            self._close()
            raise
        self.index += 1
        return dict(zip(self.data_stream.sources, data, strict=True)) if self.as_dict else data

    def get_state(self) -> dict[str, Any]:
        """Give the position as plain data.

        Returns
        -------
        dict
            ``format`` (1), ``pipeline`` (digest), ``epoch``, ``index`` and ``position``.

        Raises
        ------
        TypeError
            If a transformer in Fuel's way holds something that is not plain data, or has changed
            one of its arguments; see `fuel_data.fuels_way`.
        """
        if self.data_stream.holds_anything:
            stage = self._stage or self._open()
            self._note_position(stage)
            fuels_way.check_arguments(self.data_stream)
            fuels_way.check_held(stage)
        if self._pipeline is None:
            self._pipeline = self.data_stream.digest()
        state = {
            "format": FORMAT,
            "pipeline": self._pipeline,
            "epoch": self.epoch,
            "index": self.index,
            "position": self._position,
        }
        if self.data_stream.holds_anything:
            split_arrays(state)
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where a state was taken, in this or another process.

        The stream's next epoch is the one after it.

        Parameters
        ----------
        state : dict
            From `get_state`, of an iterator over the same pipeline.

        Raises
        ------
        ValueError
            If it is of another format or another pipeline.
        """
        pipeline = check_state(self.data_stream, state, "position")
        self._close()
        self._pipeline = pipeline
        self.epoch = state["epoch"]
        self.index = state["index"]
        self._position = state["position"]
        self._since = 0
        self.data_stream.epochs_begun = self.epoch + 1
        self._open()

    def notes(self) -> list[tuple[str, dict[str, Any]]]:
        """Say what the streams of the pipeline have noticed in this epoch so far.

        Returns
        -------
        list of (str, dict)
            Class of the stream and its notes, from below to above; without those that have none.
        """
        return (self._stage or self._open()).notes()

    def __enter__(self) -> "DataIterator":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what the epoch holds open. The iterator can still be read on."""
        if self._stage is not None and self._since:
            self._note_position(self._stage)
        self._close()

    def _close(self) -> None:
        if self._stage is not None:
            self._stage.close()
            self._stage = None

    def __getstate__(self) -> dict[str, Any]:
        if self._since:
            self._note_position(self._stage or self._open())
        return {**self.__dict__, "_stage": None, "_shared": ()}

    def __repr__(self) -> str:
        return f"<epoch {self.epoch}, {self.index} items given, of {self.data_stream!r}>"


def _check_requests(stream: Any, requests: Any) -> None:
    scheme = stream.iteration_scheme
    if scheme is None or getattr(requests, "scheme", None) is not scheme:
        raise ValueError(
            "DataIterator: `request_iterator` must be what get_request_iterator() of the stream's "
            f"own scheme gives, {scheme!r}; got {requests!r}. Leave it out: the scheme is asked "
            "without it, too."
        )


def _check_generators(stream: Any) -> None:
    """Refuse a generator that is drawn from where items are read again, and elsewhere too.

    When a run goes on, it stands where it stood when those items were read; what had been drawn
    elsewhere in between would be missing, and the items would become others.
    """
    again: list[tuple[Any, Counter]] = []
    everywhere = _count_draws(stream, again)
    for reader, below in again:
        if any(everywhere[rng] > count for rng, count in below.items()):
            raise ValueError(
                f"{type(reader).__name__}: holds back items that are drawn below it from a "
                "generator of yours, and another part of the pipeline draws from the same one, so "
                "they could not be drawn again when a run goes on. Give each part a generator of "
                f"its own: {reader!r}."
            )


def _count_draws(stream: Any, again: list[tuple[Any, Counter]]) -> Counter:
    """Count by how many parts of a pipeline each generator is drawn from, item by item."""
    rngs = list(stream.user_rngs().values()) if hasattr(stream, "user_rngs") else []
    scheme = getattr(stream, "iteration_scheme", None)
    if scheme is not None and not isinstance(scheme, PositionedScheme):
        rngs += scheme_rngs(scheme)
    below: Counter = Counter()
    for child in stream._children() if hasattr(stream, "_children") else ():
        below.update(_count_draws(child, again))
    if getattr(stream, "_reads_again", False):
        again.append((stream, below))
    return below + Counter(map(id, rngs))


def check_state(stream: Any, state: Any, part: str) -> str:
    """Check that a state was taken from a pipeline like this one.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream that is to go on.
    state : dict
        From `get_state` of a stream or of an iterator.
    part : {'position', 'rngs'}
        What it must have: the first is in those of iterators, the second in those of streams.

    Returns
    -------
    str
        The digest of the pipeline.

    Raises
    ------
    ValueError
        If it is of another format or another pipeline, or of a stream instead of an iterator.
    """
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise ValueError(f"set_state: `state` must be of format {FORMAT}; got {found!r}.")
    if part not in state:
        whose = {"position": "an iterator", "rngs": "a stream, between two epochs"}[part]
        raise ValueError(
            f"set_state: `state` must be what get_state() of {whose} gave; it has only "
            f"{sorted(state)}. Streams take the states of streams, iterators those of iterators."
        )
    pipeline = stream.digest()
    if state["pipeline"] != pipeline:
        raise ValueError(
            f"set_state: the state is of the pipeline {state['pipeline']}, this is {pipeline}: "
            f"{stream!r}. Build the stream with the same data, schemes, transformers, arguments "
            "and seeds as when the state was saved. An argument that changes while the stream is "
            "read needs a method `identity` that gives, as plain data, what it was made from."
        )
    return pipeline
