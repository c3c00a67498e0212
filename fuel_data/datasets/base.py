"""Data sets: what answers requests.

A data set is stateless. ``open()`` gives a state (a file handle, an iterator, or None), and
``get_data(state, request)`` answers. A stream over it keeps the state of each epoch.
"""

import codecs
import collections
import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy

from fuel_data.axes import AxisLabels
from fuel_data.identity import describe
from fuel_data.schemes import IterationScheme, SequentialExampleScheme
from fuel_data.utils.arguments import as_whole_number
from fuel_data.utils.keywords import NamedKeywords
from fuel_data.utils.names import nearest_name

Request = int | Sequence[int] | slice | numpy.ndarray

# What an iterator that has ended gives.
_MISSING = object()


class Dataset(NamedKeywords, ABC):
    """Base of all data sets.

    A subclass sets `provides_sources` before it calls ``super().__init__``, and defines `get_data`.

    Parameters
    ----------
    sources : sequence of str, optional
        The sources wanted, in the order wanted; all by default.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes, by default those that the class has.

    Attributes
    ----------
    provides_sources : tuple of str
        What the data set has.
    default_transformers : tuple of (class, list, dict)
        Transformers for `apply_default_transformers`: class, arguments, keyword arguments.
    num_examples : int or None
        How many examples there are, None if not known.
    metadata : dict of str to dict
        Open information on each source, plain data.
    """

    provides_sources: tuple[str, ...] = ()
    default_transformers: tuple = ()
    num_examples: int | None = None
    metadata: Mapping[str, dict[str, Any]] = {}
    axis_labels: AxisLabels | None = None

    def __init__(
        self, sources: Sequence[str] | None = None, axis_labels: AxisLabels | None = None
    ) -> None:
        if not self.provides_sources:
            raise ValueError(
                f"{type(self).__name__}: `provides_sources` must name at least one source before "
                "Dataset.__init__ is called."
            )
        self.sources = self.provides_sources if sources is None else sources
        if axis_labels is not None:
            self.axis_labels = axis_labels

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that `get_data` gives, in this order."""
        # One that names what it provides in its class may have an `__init__` of its own.
        return self.__dict__.get("_sources", self.provides_sources)

    @sources.setter
    def sources(self, sources: Sequence[str]) -> None:
        if isinstance(sources, str):
            raise ValueError(
                f"{type(self).__name__}: `sources` must be a sequence of names; got the text "
                f"{sources!r}. Write ({sources!r},)."
            )
        for source in sources:
            if source not in self.provides_sources:
                raise ValueError(
                    f"{type(self).__name__}: `sources` asks for {source!r}, which is not provided."
                    f"{nearest_name(source, self.provides_sources)}"
                )
        if not sources or len(set(sources)) < len(sources):
            raise ValueError(
                f"{type(self).__name__}: `sources` must have at least one name, and each only "
                f"once; got {list(sources)}."
            )
        self._sources = tuple(sources)

    @property
    def example_iteration_scheme(self) -> IterationScheme | None:
        """The scheme that goes through single examples; None if the data set takes no requests."""
        try:
            return self._example_iteration_scheme
        except AttributeError:
            raise AttributeError(
                f"{type(self).__name__}: has no `example_iteration_scheme`. Give the stream an "
                "`iteration_scheme`."
            ) from None

    @example_iteration_scheme.setter
    def example_iteration_scheme(self, scheme: IterationScheme | None) -> None:
        self._example_iteration_scheme = scheme

    def get_example_stream(self) -> Any:
        """Give a stream of single examples.

        Returns
        -------
        DataStream
        """
        from fuel_data.streams import DataStream

        return DataStream(self, iteration_scheme=self.example_iteration_scheme)

    def open(self) -> Any:
        """Give a state to read with.

        Returns
        -------
        object
            None if reading needs no state.
        """
        return None

    def close(self, state: Any) -> None:
        """Close a state.

        Parameters
        ----------
        state : object
            From `open`.
        """
        del state  # Nothing to close by default.

    def reset(self, state: Any) -> Any:
        """Close a state and open another.

        Parameters
        ----------
        state : object
            From `open`.

        Returns
        -------
        object
        """
        self.close(state)
        return self.open()

    def next_epoch(self, state: Any) -> Any:
        """Give the state for the next epoch.

        A data set that takes no requests and whose epochs differ overrides this. The state of epoch
        *n* is then made by `open` and *n* calls of this method, without reading in between.

        Parameters
        ----------
        state : object
            The state of the epoch before.

        Returns
        -------
        object
        """
        return self.reset(state)

    def skip(self, state: Any, count: int) -> None:
        """Pass over examples of a data set that takes no requests.

        Parameters
        ----------
        state : object
            From `open`.
        count : int
            How many reads to pass over.
        """
        for _ in range(count):
            self.get_data(state)

    @abstractmethod
    def get_data(self, state: Any = None, request: Request | None = None) -> tuple:
        """Answer a request.

        Parameters
        ----------
        state : object, optional
            From `open`.
        request : int, list, slice or array of int, optional
            Which examples.

        Returns
        -------
        tuple
            One item for each source, in the order of `sources`.
        """

    def apply_default_transformers(self, stream: Any) -> Any:
        """Put the default transformers over a stream.

        Parameters
        ----------
        stream : AbstractDataStream
            A stream over this data set.

        Returns
        -------
        AbstractDataStream
            Without the transformers all of whose sources were left out of the stream.
        """
        left_out = set(self.provides_sources) - set(stream.sources)
        for transformer, arguments, keywords in self.default_transformers:
            asked = keywords.get("which_sources")
            if asked and left_out.intersection(asked):
                kept = tuple(source for source in asked if source not in left_out)
                if not kept:
                    continue
                keywords = {**keywords, "which_sources": kept}
            stream = transformer(stream, *arguments, **keywords)
        return stream

    def filter_sources(self, data: Sequence) -> tuple:
        """Pick the wanted sources from all that are provided.

        Parameters
        ----------
        data : sequence
            One item for each of `provides_sources`.

        Returns
        -------
        tuple
            One item for each of `sources`, in that order.
        """
        by_name = dict(zip(self.provides_sources, data, strict=True))
        return tuple(by_name[source] for source in self.sources)

    def identity(self) -> dict[str, Any]:
        """Say what data these are, for the digest of a pipeline.

        Returns
        -------
        dict of plain data
        """
        return {
            "class": type(self).__qualname__,
            "sources": list(self.sources),
            "num_examples": self.num_examples,
        }

    def __repr__(self) -> str:
        count = "" if self.num_examples is None else f", {self.num_examples} examples"
        return f"{type(self).__name__}({', '.join(self.sources)}{count})"


class IterableDataset(Dataset):
    """A data set that is read from the front to the end.

    It is resumed by beginning again and skipping, so each source must be something that can be
    begun again. A generator cannot; hand in the function that makes it.

    Parameters
    ----------
    iterables : dict of str to iterable, or iterable
        The sources by name, or one that is called ``'data'``. A function without arguments that
        gives an iterator serves as well, for example ``functools.partial(read_lines, path)``.
    sources : sequence of str, optional
        The sources wanted, in the order wanted; all by default.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes.

    Raises
    ------
    ValueError
        If a source cannot be read twice, or the sources have different lengths.
    """

    def __init__(
        self,
        iterables: Mapping[str, Iterable | Callable[[], Iterator]] | Iterable,
        sources: Sequence[str] | None = None,
        axis_labels: AxisLabels | None = None,
    ) -> None:
        by_name = iterables if isinstance(iterables, Mapping) else {"data": iterables}
        self.provides_sources = tuple(by_name)
        self.iterables = dict(by_name)
        self.example_iteration_scheme = None
        for source, iterable in self.iterables.items():
            _check_iterable(source, iterable)
        super().__init__(sources, axis_labels)
        _check_lengths("IterableDataset", _known_lengths(self.iterables))

    @property
    def num_examples(self) -> int | None:  # type: ignore[override]
        """How many examples there are, None if not known."""
        lengths = _known_lengths(self.iterables)
        return next(iter(lengths.values())) if lengths else None

    def open(self) -> list[Iterator]:
        """Give fresh iterators; see `Dataset.open`."""
        return [_begin(self.iterables[source]) for source in self.sources]

    def get_data(self, state: Any = None, request: Request | None = None) -> tuple:
        """Give the next example; see `Dataset.get_data`.

        Raises
        ------
        ValueError
            If there is a request, no state, or one source ends before another.
        """
        if state is None or request is not None:
            raise ValueError(
                "IterableDataset.get_data: takes a state from `open` and no request; got state "
                f"{state!r} and request {request!r}. Use an IndexableDataset for random access."
            )
        data = [next(iterator, _MISSING) for iterator in state]
        for item in data:
            if item is _MISSING:
                break
        else:
            return tuple(data)
        ended = [name for name, item in zip(self.sources, data, strict=True) if item is _MISSING]
        if len(ended) == len(data):
            raise StopIteration
        going_on = [source for source in self.sources if source not in ended]
        raise ValueError(
            f"IterableDataset: {', '.join(map(repr, ended))} ended while "
            f"{', '.join(map(repr, going_on))} went on. All sources must have one length."
        )

    def skip(self, state: list[Iterator], count: int) -> None:
        """Pass over examples; see `Dataset.skip`."""
        for source, iterator in zip(self.sources, state, strict=True):
            last = collections.deque(enumerate(islice(iterator, count), start=1), maxlen=1)
            passed = last[0][0] if last else 0
            if passed < count:
                raise ValueError(
                    f"IterableDataset: the source {source!r} ended after {passed} of {count} "
                    "examples that were read before. Has it changed since the position was saved? "
                    "Put the old data back, or begin anew."
                )

    def identity(self) -> dict[str, Any]:
        """Say what data these are; see `Dataset.identity`."""
        identity = {**super().identity(), "provides_sources": list(self.provides_sources)}
        made_by = {s: describe(i) for s, i in self.iterables.items() if not isinstance(i, Iterable)}
        return {**identity, "made_by": made_by} if made_by else identity


class IndexableDataset(Dataset):
    """A data set whose sources can be indexed: arrays, or lists.

    Parameters
    ----------
    indexables : dict of str to sequence, or sequence
        The sources by name, or one that is called ``'data'``. The first axis is the examples.
    start, stop : int, optional
        Use the examples from `start` to before `stop` only.
    sources : sequence of str, optional
        The sources wanted, in the order wanted; all by default.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes.

    Attributes
    ----------
    indexables : list
        The sources, cut to `start` and `stop`, in the order of `provides_sources`. Each is an
        attribute by its name too.

    Raises
    ------
    ValueError
        If the sources have different lengths.

    Examples
    --------
    >>> dataset = IndexableDataset({"x": numpy.arange(6), "y": list("abcdef")}, start=1, stop=5)
    >>> dataset.get_data(request=[0, 3])
    (array([1, 4]), ['b', 'e'])
    """

    def __init__(
        self,
        indexables: Mapping[str, Any] | Any,
        start: int | None = None,
        stop: int | None = None,
        sources: Sequence[str] | None = None,
        axis_labels: AxisLabels | None = None,
    ) -> None:
        by_name = indexables if isinstance(indexables, Mapping) else {"data": indexables}
        self.provides_sources = tuple(by_name)
        super().__init__(sources, axis_labels)
        self.start = start
        self.stop = stop
        whole = start is None and stop is None
        self.indexables = [data if whole else data[start:stop] for data in by_name.values()]
        lengths = [len(data) for data in self.indexables]
        _check_lengths("IndexableDataset", dict(zip(by_name, lengths, strict=True)))
        self.example_iteration_scheme = SequentialExampleScheme(self.num_examples)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and "indexables" in self.__dict__:
            named = dict(zip(self.provides_sources, self.indexables, strict=True))
            if name in named:
                return named[name]
        raise AttributeError(f"{type(self).__name__}: has no attribute {name!r}.")

    @property
    def num_examples(self) -> int:  # type: ignore[override]
        """How many examples there are."""
        return len(self.indexables[0])

    def get_data(self, state: Any = None, request: Request | None = None) -> tuple:
        """Answer a request; see `Dataset.get_data`.

        Raises
        ------
        ValueError
            If there is a state or no request, or the request is empty or out of range.
        """
        if state is not None or request is None:
            raise ValueError(
                "IndexableDataset.get_data: takes a request and no state; got state "
                f"{state!r} and request {request!r}."
            )
        wanted = check_request("IndexableDataset", request, self.num_examples)
        named = dict(zip(self.provides_sources, self.indexables, strict=True))
        return tuple(_index(named[source], wanted) for source in self.sources)

    def identity(self) -> dict[str, Any]:
        """Say what data these are: names, shapes and dtypes; the content does not count."""
        kinds = {
            source: [list(getattr(data, "shape", [len(data)])), str(getattr(data, "dtype", "list"))]
            for source, data in zip(self.provides_sources, self.indexables, strict=True)
        }
        return {**super().identity(), "kinds": kinds, "start": self.start, "stop": self.stop}


def check_request(who: str, request: Request, num_examples: int) -> int | slice | numpy.ndarray:
    """Check a request against the number of examples.

    Parameters
    ----------
    who : str
        The data set, for the error.
    request : int, slice, or sequence or array of int
        Which examples.
    num_examples : int
        How many there are.

    Returns
    -------
    int, slice or int64 array of shape (request,)
        The same request.

    Raises
    ------
    ValueError
        If it is empty, negative, out of range or of another kind.
    """
    index = as_whole_number(request)
    if index is not None:
        if not 0 <= index < num_examples:
            raise _out_of_range(who, request, num_examples)
        return index
    if isinstance(request, slice):
        return _check_slice(who, request, num_examples)
    indices = numpy.asarray(request)
    if indices.ndim != 1 or indices.size == 0 or indices.dtype.kind not in "iu":
        raise ValueError(
            f"{who}.get_data: `request` must be a whole number, a slice, or a sequence of at least "
            f"one whole number; got {request!r}."
        )
    if indices.min() < 0 or indices.max() >= num_examples:
        raise _out_of_range(who, request, num_examples)
    return indices.astype(numpy.int64, copy=False)


def _check_slice(who: str, request: slice, num_examples: int) -> slice:
    start = 0 if request.start is None else request.start
    stop = num_examples if request.stop is None else request.stop
    step = 1 if request.step is None else request.step
    if not (0 <= start < stop <= num_examples and step > 0):
        raise _out_of_range(who, request, num_examples)
    return slice(start, stop, step)


def _out_of_range(who: str, request: Any, num_examples: int) -> ValueError:
    return ValueError(
        f"{who}.get_data: `request` must lie within the {num_examples} examples, not be empty and "
        f"not count from the end; got {request!r}."
    )


def _index(data: Any, request: int | slice | numpy.ndarray) -> Any:
    """Read examples that are not those of the data set: who changes a batch changes no data set."""
    if isinstance(request, numpy.ndarray) and not hasattr(data, "shape"):
        return [_own(data[index]) for index in request.tolist()]
    found = data[request]
    if isinstance(found, numpy.ndarray) and found.dtype == object and found.ndim == 1:
        examples, found = found, numpy.empty_like(found)
        for number, example in enumerate(examples):
            found[number] = _own(example)
        return found
    if isinstance(found, list) and isinstance(request, slice):
        return [_own(example) for example in found]
    # Only a list of indices makes numpy copy by itself.
    return found if isinstance(request, numpy.ndarray) else _own(found)


def _own(example: Any) -> Any:
    is_changeable = isinstance(example, numpy.ndarray) or type(example) is list
    return example.copy() if is_changeable else example


def _check_lengths(who: str, lengths: Mapping[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{source!r} has {length}" for source, length in lengths.items())
        raise ValueError(f"{who}: all sources must have the same number of examples; {shown}.")


def _known_lengths(iterables: Mapping[str, Any]) -> dict[str, int]:
    return {source: len(data) for source, data in iterables.items() if hasattr(data, "__len__")}


def _check_iterable(source: str, iterable: Any) -> None:
    if not isinstance(iterable, Iterable):
        if callable(iterable):
            return
        raise ValueError(
            f"IterableDataset: source {source!r} must be iterable, or a function that gives an "
            f"iterator; got {iterable!r}."
        )
    if not isinstance(iterable, Iterator):
        return
    copies: dict[int, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            copy.deepcopy(iterable, copies)
    except Exception as error:
        raise ValueError(
            f"IterableDataset: source {source!r} is a {type(iterable).__name__}, which can be read "
            "only once, so no second epoch could begin and no run be resumed. Hand in something "
            "that can be begun again: a list, an object with __iter__, or the function that makes "
            "the iterator (functools.partial fixes its arguments)."
        ) from error
    _check_encodings(source, copies)


def _check_encodings(source: str, copies: dict[int, Any]) -> None:
    """Refuse files that picklable_itertools would read in another encoding than they were opened.

    Parameters
    ----------
    source : str
        Name of the source, for the error.
    copies : dict
        The memo of `copy.deepcopy`: by the number of each object its copy, and among them a list
        that keeps the objects themselves.
    """
    for original in copies.get(id(copies), ()):
        if type(original).__name__ != "file_iterator":
            continue
        copied = copies[id(original)]._f
        copied.close()
        encodings = [getattr(file, "encoding", None) for file in (original._f, copied)]
        if len({encoding and codecs.lookup(encoding).name for encoding in encodings}) > 1:
            name, encoding = original._f.name, encodings[0]
            raise ValueError(
                f"IterableDataset: source {source!r} reads {name} as {encoding} by the "
                f"file_iterator of picklable_itertools, whose copies read it as {encodings[1]}. "
                f"Hand in functools.partial(open, {name!r}, encoding={encoding!r}), or use "
                "TextFile."
            )


def _begin(iterable: Any) -> Iterator:
    if isinstance(iterable, Iterator):
        return copy.deepcopy(iterable)
    if isinstance(iterable, (list, tuple, numpy.ndarray)):
        return map(_own, iterable)
    return iter(iterable) if isinstance(iterable, Iterable) else iter(iterable())
