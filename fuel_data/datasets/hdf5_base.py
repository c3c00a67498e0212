"""What data sets in HDF5 files have in common: the file, its changes, reading, memory."""

import copy
import logging
import os
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import h5py
import numpy

from fuel_data.datasets.base import Dataset
from fuel_data.datasets.hdf5_chunks import CACHE_BYTES
from fuel_data.datasets.hdf5_files import SharedFile, damage_in_words, find_dataset
from fuel_data.datasets.hdf5_format import scales
from fuel_data.datasets.hdf5_heaps import check_lengths
from fuel_data.datasets.hdf5_reading import SourceReader, unfold
from fuel_data.datasets.hdf5_virtual import describe_changes, files_of
from fuel_data.schemes import SequentialExampleScheme
from fuel_data.utils.arguments import whole_number
from fuel_data.utils.digests import SAMPLE_BYTES, digest, known_fingerprint
from fuel_data.utils.subset import Request, Subset

logger = logging.getLogger(__name__)

# What belongs to an open file, or is read again.
_NOT_PICKLED = ("_data", "_opened", "_readers", "_subsets")


class HDF5Dataset(Dataset):
    """Base of data sets in an HDF5 file, in memory or on disk.

    A subclass sets its own attributes, calls ``super().__init__`` and then `describe`. It defines
    `find_sources`, `find_subsets` and what else is its own.

    Parameters
    ----------
    file_or_path : path or h5py.File
        The file. A path that does not exist is looked for, by its last part, in the data path. An
        open file is used as it is and never closed; a pickle keeps its name only.
    load_in_memory : bool
        Whether to read the chosen examples into memory at once.
    driver : str or None
        Driver that h5py opens the file with.
    sort_indices : bool
        Whether requests that HDF5 has to answer may be in any order and repeat examples.
    cache_bytes : int
        How much memory the compressed chunks of one source may take.

    Attributes
    ----------
    path : str
        Absolute path of the file as it was given.
    load_in_memory, driver, sort_indices, cache_bytes
        As given.
    external_file_handle : h5py.File or None
        The argument `file_or_path`, if it was an open file.
    num_examples : int
        Number of examples.

    Notes
    -----
    Threads may share a data set. A child that was forked opens the file for itself.
    """

    num_examples: int
    vlen_sources: Sequence[str] = ()
    _opened: h5py.File | None
    _readers: dict[str, SourceReader]
    _subsets: list[Subset] | None

    def __init__(
        self,
        file_or_path: str | os.PathLike[str] | h5py.File,
        load_in_memory: bool,
        driver: str | None,
        sort_indices: bool,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        who = type(self).__name__
        self.external_file_handle = file_or_path if isinstance(file_or_path, h5py.File) else None
        self.path = os.path.abspath(_name(who, file_or_path))
        self.load_in_memory = load_in_memory
        self.driver = driver
        self.sort_indices = sort_indices
        self.cache_bytes = whole_number(who, "cache_bytes", cache_bytes, least=0)
        self._shared = SharedFile(self.path, driver, who)
        self._forget_file()

    @abstractmethod
    def find_sources(self, h5file: h5py.File) -> tuple[str, ...]:
        """List the sources that the chosen part of a file has.

        Parameters
        ----------
        h5file : h5py.File
            The file.

        Returns
        -------
        tuple of str
        """

    @abstractmethod
    def find_subsets(self, h5file: h5py.File) -> list[Subset]:
        """Find the examples of each of `sources`.

        Parameters
        ----------
        h5file : h5py.File
            The file.

        Returns
        -------
        list of Subset
            As many examples of each.
        """

    @abstractmethod
    def find_labels(self, h5file: h5py.File) -> dict[str, tuple[str, ...] | None]:
        """Find the axis labels of all sources.

        Parameters
        ----------
        h5file : h5py.File
            The file.

        Returns
        -------
        dict of str to tuple of str or None
        """

    def path_in_file(self, source: str) -> str:
        """Say where in the file a source is.

        Parameters
        ----------
        source : str
            Its name.

        Returns
        -------
        str
        """
        return source

    def about(self, h5file: h5py.File) -> Any:
        """Say what else in a file must stay as it is.

        Parameters
        ----------
        h5file : h5py.File
            The file.

        Returns
        -------
        plain data
        """
        del h5file
        return None

    def check_content(self, h5file: h5py.File, *, everything: bool = False) -> list[str]:
        """Check that the values are those that were written, if digests of them are there.

        Parameters
        ----------
        h5file : h5py.File
            The file.
        everything : bool, optional
            Whether to read sources of more than 64 MiB too.

        Returns
        -------
        list of str
            The files that have values and no digests of them: this one, or parts of a joined one.

        Raises
        ------
        OSError
            If they are not.
        """
        del everything
        return [h5file.filename]

    def verify(self) -> None:
        """Check all values of the sources against the digests in the file.

        If there are none, as in files of other makers, the log says so. Sources of up to 64 MiB,
        and 256 MiB in all, are checked whenever the file is opened for the first time or has been
        written since; this reads larger ones too, and all anew. Of a joined file, that goes for
        each of its parts.

        Raises
        ------
        OSError
            If a file is damaged.
        """
        was_open = self._shared.is_open
        try:
            without = self.check_content(self._file(), everything=True)
            if without:
                logger.warning(
                    "%s: no digests, so nothing was checked, in %s. What you know to be right gets "
                    "them by fuel_data.datasets.hdf5_digests.write_digests.",
                    type(self).__name__,
                    ", ".join(without),
                )
        finally:
            if not was_open:
                self._close_file()

    def describe(self, sources: Sequence[str] | None, axis_labels: Any) -> None:
        """Read what the file says of the data, and the data if they are to be in memory.

        Parameters
        ----------
        sources : sequence of str or None
            The wanted ones.
        axis_labels : dict or None
            The user's labels.

        Raises
        ------
        ValueError
            If something that was asked for is not in the file.
        """
        was_open = self._shared.is_open
        try:
            h5file = self._file()
            with damage_in_words(self.path):
                self.provides_sources = self.find_sources(h5file)
                self.default_axis_labels = self.find_labels(h5file)
            if axis_labels is None:
                labels = self.default_axis_labels
                axis_labels = {name: labels[name] for name in self.provides_sources}
            super().__init__(sources=sources, axis_labels=axis_labels)
            with damage_in_words(self.path):
                self._count_examples()
                self._identity = self._find_identity(h5file)
                self.check_content(h5file)
            self._written = self._time()
            if self.load_in_memory:
                self.load()
        finally:
            if not was_open:
                self._close_file()

    def _count_examples(self) -> None:
        self.num_examples = self.subsets[0].num_examples
        self.example_iteration_scheme = SequentialExampleScheme(self.num_examples)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that are read, in this order."""
        return self._sources

    @sources.setter
    def sources(self, sources: Sequence[str]) -> None:
        if not self._is_described():
            Dataset.sources.fset(self, sources)  # type: ignore[attr-defined]
            return
        before = self._sources
        was_open = self._shared.is_open
        h5file = self._file()
        try:
            Dataset.sources.fset(self, sources)  # type: ignore[attr-defined]
            self._subsets = None
            self._count_examples()
            self._identity = self._find_identity(h5file)
            self.__dict__.pop("_data", None)
        except BaseException:
            self._sources, self._subsets = before, None
            self._count_examples()
            raise
        finally:
            if not was_open:
                self._close_file()

    # What the file is, and whether it is still the same.

    def _is_described(self) -> bool:
        return "_identity" in self.__dict__

    def _find_identity(self, h5file: h5py.File) -> dict[str, Any]:
        datasets = [find_dataset(h5file, self.path_in_file(name)) for name in self.sources]
        for dataset in datasets:
            check_lengths(dataset)
        layout = [
            [name, dataset.shape, dataset.dtype.str]
            for name, dataset in zip(self.sources, datasets, strict=True)
        ]
        chosen = [subset.plain() for subset in self.subsets]
        # Without their paths: the files may be moved, together.
        others = [known_fingerprint(path) for path in files_of(h5file, datasets)]
        return {
            **super().identity(),
            "file": os.path.basename(self.path),
            **self._find_fingerprint(h5file),
            "header": digest([self.about(h5file), layout, chosen]),
            **({"other_files": others} if others else {}),
        }

    def _find_fingerprint(self, h5file: h5py.File) -> dict[str, Any]:
        # A file that is being written has no fingerprint yet, and one in memory has no path.
        if h5file.mode == "r" and os.path.isfile(h5file.filename) and h5file.driver == "sec2":
            return known_fingerprint(h5file.filename)
        return {"size": h5file.id.get_filesize()}

    def _time(self) -> int | None:
        """When the file was last written, in nanoseconds since 1970, if that is known."""
        name = self._file().filename
        return os.stat(name).st_mtime_ns if os.path.isfile(name) else None

    def identity(self) -> dict[str, Any]:
        """Say what data this is, cheaply, for the digest of a pipeline.

        Returns
        -------
        dict
            Plain data: the file's last name and size, a digest of up to 4 MiB of its bytes, one of
            what it says of its data, and what was chosen from it. It does not matter in which
            folder the file is, when it was copied, or whether it is read into memory.
        """
        return dict(self._identity)

    def _check_unchanged(self, h5file: h5py.File, path: str) -> None:
        if not self._is_described():
            return
        # The readers and subsets of before belong to a handle that is closed.
        self._forget_file()
        self._opened = h5file
        before = self._identity
        try:
            with damage_in_words(self.path):
                self._subsets = self.find_subsets(h5file)
                now = self._find_identity(h5file)
        except ValueError as error:
            raise ValueError(self._changed(path, f"it no longer fits: {error}")) from error
        # A moved file may have been renamed on the way by a link; what counts is what is in it.
        differences = [
            key for key in before if key != "file" and key in now and before[key] != now[key]
        ]
        written = self._time()
        if differences:
            described = [f"{key} was {before[key]}, is {now[key]}" for key in differences]
            if "other_files" in differences:
                datasets = [find_dataset(h5file, self.path_in_file(name)) for name in self.sources]
                paths = files_of(h5file, datasets)
                described[differences.index("other_files")] = describe_changes(
                    paths, before["other_files"], now["other_files"]
                )
            if _date(written) != _date(self._written):
                described.append(f"written was {_date(self._written)}, is {_date(written)}")
            raise ValueError(self._changed(path, ", ".join(described)))
        if written == self._written:
            return
        with damage_in_words(self.path):
            self.check_content(h5file)
        if now["size"] > SAMPLE_BYTES and self._written is not None:
            logger.warning(
                "%s: %s was written again: %s, before %s. Its size, its header and samples of its "
                "bytes are the same, so it is taken for a copy.",
                type(self).__name__,
                path,
                _date(written),
                _date(self._written),
            )
        self._written = written

    def _changed(self, path: str, what: str) -> str:
        was_at = "" if path == self.path else f" (it was {self.path} then)"
        return (
            f"{type(self).__name__}: {path} has changed since it was first opened{was_at}: {what}. "
            "Put the old file back, or make the data set anew."
        )

    # The open file.

    def _file(self) -> h5py.File:
        given = self.external_file_handle
        if given is None:
            return self._shared.get(self._check_unchanged)
        if not given:
            raise ValueError(
                f"{type(self).__name__}: the h5py.File that was given for {self.path} has been "
                "closed. Keep it open, or give the path."
            )
        return given

    def _forget_file(self) -> None:
        self._opened = None
        self._readers = {}
        self._subsets = None

    def _close_file(self) -> None:
        with self._shared.lock:
            self._shared.close()
            self._forget_file()

    def _of_this_file(self) -> h5py.File:
        """Give the open file, and forget what belongs to another handle."""
        h5file = self._file()
        if self._opened is not h5file:
            with self._shared.lock:
                if self._opened is not h5file:
                    self._forget_file()
                    self._opened = h5file
        return h5file

    def open(self) -> None:
        """Open the file, or read it into memory if that is not done, so that errors show early.

        Returns
        -------
        None
            The state: there is none.
        """
        if not self.load_in_memory:
            self._file()
        elif self._loaded() is None:
            self.load()
        self._shared.count_open()

    def close(self, state: None = None) -> None:
        """Close the file if everybody who opened it has closed it.

        Parameters
        ----------
        state : None
            What `open` returned.
        """
        if self._shared.count_close():
            self._close_file()

    def reset(self, state: None = None) -> None:
        """Do nothing: there is no state.

        Parameters
        ----------
        state : None
            What `open` returned.

        Returns
        -------
        None
            The state.
        """

    def __enter__(self) -> "HDF5Dataset":
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close(None)

    def __getstate__(self) -> dict[str, Any]:
        state = {key: value for key, value in self.__dict__.items() if key not in _NOT_PICKLED}
        return {**state, "external_file_handle": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_file()

    # The data.

    @property
    def subsets(self) -> list[Subset]:
        """The examples of each source, in the order of `sources`."""
        h5file = self._of_this_file()
        subsets = self._subsets
        if subsets is None:
            subsets = self._subsets = self.find_subsets(h5file)
        return subsets

    def _loaded(self) -> tuple[list[numpy.ndarray], list[numpy.ndarray | None]] | None:
        return self.__dict__.get("_data")

    @property
    def data_sources(self) -> list[numpy.ndarray]:
        """The examples in memory, one array for each source; ragged ones are flat."""
        return self._data_in_memory()[0]

    @property
    def source_shapes(self) -> list[numpy.ndarray | None]:
        """The shapes in memory, one array for each source, None if it is not ragged."""
        return self._data_in_memory()[1]

    def _data_in_memory(self) -> tuple[list[numpy.ndarray], list[numpy.ndarray | None]]:
        if not self.load_in_memory:
            raise AttributeError(
                f"{type(self).__name__}: {self.path} is on disk; set load_in_memory=True for that."
            )
        loaded = self._loaded()
        if loaded is None:
            self.load()
            loaded = self._data
        return loaded

    def load(self) -> None:
        """Read the chosen examples into memory, if the data set is one in memory."""
        if not self.load_in_memory:
            return
        was_open = self._shared.is_open
        read = [
            self._read(source, _all_of(subset))
            for source, subset in zip(self.sources, self.subsets, strict=True)
        ]
        self._data = [values for values, _ in read], [shapes for _, shapes in read]
        if not was_open:
            self._close_file()

    def get_data(self, state: None = None, request: Request | None = None) -> tuple[Any, ...]:
        """Read examples.

        Parameters
        ----------
        state : None
            There is none.
        request : int, slice, or list or array of int
            Positions among the `num_examples`, in any order, with repetitions.

        Returns
        -------
        tuple
            For each of `sources` an array of the examples, or the example for an int. Ragged
            examples come in an array of objects. All are copies.

        Raises
        ------
        ValueError
            If there is a state or no request, or if the request is empty, negative or goes past
            the end.
        OSError
            If the file is damaged.
        """
        if state is not None or request is None:
            raise ValueError(
                f"{self!r}: get_data needs a request (an int, a slice, or indices) and has no "
                f"state; got state {state!r} and request {request!r}."
            )
        if self.load_in_memory:
            return self._get_from_memory(request)
        data = []
        resolved_for = None
        for source, subset in zip(self.sources, self.subsets, strict=True):
            if subset is not resolved_for:
                resolved, resolved_for = subset.resolve(request), subset
            values, shapes = self._read(source, resolved)
            if shapes is not None:
                data.append(self._unfold(source, values, shapes))
            else:
                data.append(_own(values) if _repeats(values, resolved) else values)
        return tuple(data)

    def _get_from_memory(self, request: Request) -> tuple[Any, ...]:
        values_of, shapes_of = self._data_in_memory()
        resolved = Subset(slice(None), self.num_examples).resolve(request)
        data = []
        for source, values, shapes in zip(self.sources, values_of, shapes_of, strict=True):
            if shapes is not None:
                data.append(self._unfold(source, values[resolved], shapes[resolved]))
            elif values.dtype.hasobject:
                data.append(_own(values[resolved]))
            elif isinstance(resolved, numpy.ndarray):
                data.append(values.take(resolved, axis=0))
            else:
                # A view would let a transformer that works in place change the data set.
                data.append(values[resolved].copy())
        return tuple(data)

    def _read(self, source: str, request: Any) -> tuple[Any, Any]:
        values = self._reader(source, None).read(request)
        if source not in self.vlen_sources:
            return values, None
        return values, self._reader(source, "shapes").read(request)

    def _unfold(self, source: str, values: Any, shapes: Any) -> Any:
        try:
            return unfold(values, shapes)
        except (ValueError, TypeError) as error:
            raise OSError(
                f"{self.path}: examples of {source!r} do not have the sizes that their shapes say: "
                f"{error}. The file is damaged."
            ) from error

    def _reader(self, source: str, scale: str | None) -> SourceReader:
        h5file = self._of_this_file()
        key = source if scale is None else f"{source}/{scale}"
        reader = self._readers.get(key)
        if reader is None:
            with self._shared.lock:
                with damage_in_words(self.path):
                    dataset = find_dataset(h5file, self.path_in_file(source))
                    if scale is not None:
                        dataset = scales(dataset)[scale]
                    reader = SourceReader(dataset, self.sort_indices, self.cache_bytes)
                reader = self._readers.setdefault(key, reader)
        return reader


def _name(who: str, file_or_path: Any) -> str:
    if isinstance(file_or_path, h5py.File) and not file_or_path:
        raise ValueError(f"{who}: the h5py.File has been closed. Keep it open, or give the path.")
    name = getattr(file_or_path, "filename", file_or_path)
    if not isinstance(name, str | bytes | os.PathLike):
        raise ValueError(
            f"{who}: `file_or_path` must be a path or an open h5py.File; got {file_or_path!r}."
        )
    return os.fsdecode(name)


def _repeats(values: Any, request: Any) -> bool:
    """Tell whether an example that has an object stands in an answer twice, as one object."""
    has_objects = isinstance(values, numpy.ndarray) and values.dtype.hasobject
    return (
        has_objects
        and isinstance(request, numpy.ndarray)
        and len(numpy.unique(request)) < len(request)
    )


def _own(values: Any) -> Any:
    """Copy values with the objects in them, each for itself: copy.deepcopy keeps repeated ones."""
    if not isinstance(values, numpy.ndarray) or not values.dtype.hasobject:
        return copy.deepcopy(values)
    own = values.copy()
    for name in values.dtype.names or ():
        own[name] = _own(values[name])
    if values.dtype.names is None:
        for place, value in numpy.ndenumerate(values):
            own[place] = copy.deepcopy(value)
    return own


def _all_of(subset: Subset) -> int | slice | numpy.ndarray:
    return slice(0, 0) if subset.is_empty else subset.resolve(slice(None))


def _date(nanoseconds: int | None) -> str:
    if nanoseconds is None:
        return "unknown"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(nanoseconds / 1e9))
