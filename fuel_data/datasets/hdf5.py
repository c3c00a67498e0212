"""Data sets in HDF5 files of Fuel's format 0.3, described in `fuel_data.datasets.hdf5_format`."""

import copy
import os
from collections.abc import Iterable, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.datasets import hdf5_format
from fuel_data.datasets.base import Dataset
from fuel_data.datasets.hdf5_reading import SourceReader, unfold
from fuel_data.schemes import SequentialExampleScheme
from fuel_data.utils.digests import digest
from fuel_data.utils.names import nearest_name
from fuel_data.utils.paths import find_in_data_path
from fuel_data.utils.subset import Request, Subset


class H5PYDataset(Dataset):
    """Splits of an HDF5 file, in memory or on disk.

    Parameters
    ----------
    file_or_path : path or h5py.File
        The file. A path that does not exist is looked for, by its last part, in the data path. An
        open file is used as it is and never closed; a pickle keeps its name only.
    which_sets : iterable of str
        The splits. Their examples are united; the sources are those that all of them have.
    subset : slice, or list or array of int, optional
        Examples inside the chosen splits. All of them by default; an empty list means none.
    load_in_memory : bool, optional
        Whether to read the chosen examples into memory at once.
    driver : str, optional
        Driver that h5py opens the file with.
    sort_indices : bool, optional
        Whether requests on disk may be in any order and repeat examples. HDF5 has to read in
        increasing order; with False nothing is sorted, and a request that does not increase is
        refused where HDF5 could not answer it.
    sources : sequence of str, optional
        The sources to read, in this order. By default all, sorted by name.
    axis_labels : dict, optional
        Source name → tuple of labels, or None. By default what the file says.
    keep_order : bool, optional
        As in Fuel, examples stand in the order of the file, each once, by default. With True they
        stand in the order of `which_sets`, of the indices of a split and of `subset`, and as often
        as they are named there.

    Attributes
    ----------
    path : str
        Absolute path of the file as it was given.
    which_sets, load_in_memory, driver, sort_indices, keep_order
        As given, `which_sets` as a tuple.
    user_given_subset : slice, list or array
        The argument `subset`.
    external_file_handle : h5py.File or None
        The argument `file_or_path`, if it was an open file.
    num_examples : int
        Number of examples.
    vlen_sources : list of str
        The ragged sources of the file.
    default_axis_labels : dict
        The labels in the file.

    Raises
    ------
    FileNotFoundError
        If the file is neither at its path nor in the data path.
    ValueError
        If a split or a source is not in the file, if sources have different numbers of examples,
        or, when a file is opened again, if it has changed.

    Notes
    -----
    The data set has no state: `open` and `close` count who is using the file, and reading opens it
    where nobody did. The pickle is small and independent of the size of the data; a data set in
    memory is read again when it is first used after unpickling. Such a file may have moved into a
    folder of the data path; its size, splits, shapes and types must be the same.
    A file must not be cut short in place while it is read. Replacing it by renaming is safe.

    Examples
    --------
    >>> import tempfile
    >>> splits = {"train": {"x": (0, 3), "y": (0, 3)}, "test": {"x": (3, 5), "y": (3, 5)}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/five.hdf5", "w") as file:
    ...         file["x"] = numpy.arange(10).reshape(5, 2)
    ...         file["y"] = [0, 1, 0, 1, 0]
    ...         file.attrs["split"] = H5PYDataset.create_split_array(splits)
    ...     test = H5PYDataset(f"{folder}/five.hdf5", which_sets=("test",), load_in_memory=True)
    >>> test.get_data(request=slice(0, 2))
    (array([[6, 7],
           [8, 9]]), array([1, 0]))
    """

    num_examples: int
    _handle: h5py.File | None
    _process: int
    _readers: dict[str, SourceReader]
    _subsets: list[Subset] | None

    interface_version = hdf5_format.INTERFACE_VERSION

    create_split_array = staticmethod(hdf5_format.create_split_array)
    get_all_splits = staticmethod(hdf5_format.get_all_splits)
    get_all_sources = staticmethod(hdf5_format.get_all_sources)
    get_provided_sources = staticmethod(hdf5_format.get_provided_sources)
    get_vlen_sources = staticmethod(hdf5_format.get_vlen_sources)
    get_axis_labels = staticmethod(hdf5_format.get_axis_labels)
    get_subsets = staticmethod(hdf5_format.get_subsets)

    def __init__(
        self,
        file_or_path: str | os.PathLike[str] | h5py.File,
        which_sets: Iterable[str],
        subset: slice | Sequence[int] | numpy.ndarray | None = None,
        load_in_memory: bool = False,
        driver: str | None = None,
        sort_indices: bool = True,
        sources: Sequence[str] | None = None,
        axis_labels: dict[str, tuple[str, ...] | None] | None = None,
        keep_order: bool = False,
    ) -> None:
        is_file = isinstance(file_or_path, h5py.File)
        self.external_file_handle = file_or_path if is_file else None
        name: Any = getattr(file_or_path, "filename", file_or_path)
        self.path = os.path.abspath(name)
        self.which_sets = _checked_which_sets(which_sets)
        self.user_given_subset = slice(None) if subset is None else subset
        self.load_in_memory = load_in_memory
        self.driver = driver
        self.sort_indices = sort_indices
        self.keep_order = keep_order
        self._num_opens = 0
        self._forget_file()
        try:
            self._describe(self._file(), sources, axis_labels)
            if load_in_memory:
                self.load()
        finally:
            self._close_file()

    def _describe(self, h5file: h5py.File, sources: Any, axis_labels: Any) -> None:
        self.provides_sources = _common_sources(h5file, self.which_sets)
        for source in sources or ():
            if source not in self.provides_sources:
                raise ValueError(
                    f"{h5file.filename}: {_named_splits(self.which_sets)} no source {source!r}."
                    f"{nearest_name(source, self.provides_sources)}"
                )
        self.vlen_sources = hdf5_format.get_vlen_sources(h5file)
        self.default_axis_labels = hdf5_format.get_axis_labels(h5file)
        if axis_labels is None:
            axis_labels = {name: self.default_axis_labels[name] for name in self.provides_sources}
        super().__init__(sources=sources, axis_labels=axis_labels)
        self.num_examples = self.subsets[0].num_examples
        self.example_iteration_scheme = SequentialExampleScheme(self.num_examples)
        self._identity = self._find_identity(h5file)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that are read, in this order."""
        return self._sources

    @sources.setter
    def sources(self, sources: Sequence[str]) -> None:
        if not self._is_described():
            Dataset.sources.fset(self, sources)  # type: ignore[attr-defined]
            return
        was_open = self._handle is not None
        h5file = self._file()
        Dataset.sources.fset(self, sources)  # type: ignore[attr-defined]
        self._subsets = None
        self.__dict__.pop("_data", None)
        self._identity = self._find_identity(h5file)
        if not was_open:
            self._close_file()

    def _find_subsets(self, h5file: h5py.File) -> list[Subset]:
        in_splits = hdf5_format.get_subsets(
            h5file, self.which_sets, self.sources, keep_order=self.keep_order
        )
        subsets = [Subset.subset_of(subset, self.user_given_subset) for subset in in_splits]
        numbers = {
            source: subset.num_examples
            for source, subset in zip(self.sources, subsets, strict=True)
        }
        if len(set(numbers.values())) > 1:
            raise ValueError(
                f"{h5file.filename}: the sources must have equal numbers of examples in "
                f"{', '.join(self.which_sets)}; got {numbers}. Choose some of them by `sources`."
            )
        # Mostly all sources have one subset; then a request is looked up in it once.
        return [subsets[0] if subset == subsets[0] else subset for subset in subsets]

    def _find_identity(self, h5file: h5py.File) -> dict[str, Any]:
        rows = [
            [row.split, row.source, row.start, row.stop, bool(row.indices), row.available]
            for row in hdf5_format.split_rows(h5file)
        ]
        layout = {name: [h5file[name].shape, h5file[name].dtype.str] for name in self.sources}
        chosen = [subset.plain() for subset in self.subsets]
        return {
            **super().identity(),
            "file": os.path.basename(self.path),
            "size": h5file.id.get_filesize(),
            "header": digest([rows, layout, chosen]),
            "which_sets": list(self.which_sets),
            "subset": _plain_subset(self.user_given_subset),
            "keep_order": self.keep_order,
        }

    def identity(self) -> dict[str, Any]:
        """Say what data this is, cheaply, for the digest of a pipeline.

        Returns
        -------
        dict
            Plain data: the file's last name and size, a digest of its splits and of the sources'
            shapes and types, and what was chosen from it. The values are not looked at, nor does
            it matter in which folder the file is, or whether it is read into memory.
        """
        return dict(self._identity)

    def __repr__(self) -> str:
        where = "in memory" if self.load_in_memory else "on disk"
        return (
            f"<{type(self).__name__} {os.path.basename(self.path)}, "
            f"which_sets={self.which_sets}, sources={tuple(self.sources)}, "
            f"{self.num_examples} examples, {where}>"
        )

    # The file. Handles belong to one process: a child that was forked opens its own.

    def _file(self) -> h5py.File:
        if self.external_file_handle is not None:
            if not self.external_file_handle:
                raise ValueError(
                    f"{type(self).__name__}: the h5py.File that was given for {self.path} has been "
                    "closed. Keep it open, or give the path."
                )
            return self.external_file_handle
        if self._handle is None or self._process != os.getpid():
            self._forget_file()
            self._handle = _open_file(self._locate(), self.driver)
            self._process = os.getpid()
            if self._is_described():
                self._check_unchanged(self._handle)
        return self._handle

    def _is_described(self) -> bool:
        return "_identity" in self.__dict__

    def _check_unchanged(self, h5file: h5py.File) -> None:
        before = self._identity
        try:
            self._subsets = self._find_subsets(h5file)
            now = self._find_identity(h5file)
        except (KeyError, ValueError) as error:
            self._close_file()
            raise ValueError(self._changed(f"it no longer fits: {error}")) from error
        # A moved file may have been renamed on the way by a link; what counts is what is in it.
        differences = [key for key in before if key != "file" and before[key] != now[key]]
        if differences:
            self._close_file()
            described = ", ".join(f"{key} was {before[key]}, is {now[key]}" for key in differences)
            raise ValueError(self._changed(described))

    def _changed(self, what: str) -> str:
        return (
            f"{type(self).__name__}: {self.path} has changed since it was first opened: {what}. "
            "Put the old file back, or make the data set anew."
        )

    def _locate(self) -> str:
        if self.driver is not None or os.path.isfile(self.path):
            return self.path
        try:
            return find_in_data_path(os.path.basename(self.path))
        except OSError as error:
            raise FileNotFoundError(
                f"{type(self).__name__}: there is no file {self.path}, and {error}"
            ) from error

    def _forget_file(self) -> None:
        self._handle = None
        self._process = os.getpid()
        self._readers = {}
        self._subsets = None

    def _close_file(self) -> None:
        if self._handle is not None and self._process == os.getpid():
            self._handle.close()
        self._forget_file()

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
        self._num_opens += 1

    def close(self, state: None = None) -> None:
        """Close the file if everybody who opened it has closed it.

        Parameters
        ----------
        state : None
            What `open` returned.
        """
        self._num_opens = max(self._num_opens - 1, 0)
        if self._num_opens == 0:
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

    def __enter__(self) -> "H5PYDataset":
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close(None)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for key in ("_data", "_handle", "_process", "_readers", "_subsets"):
            state.pop(key, None)
        return {**state, "external_file_handle": None, "_num_opens": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_file()

    # The data.

    @property
    def subsets(self) -> list[Subset]:
        """The examples of each source, in the order of `sources`."""
        h5file = self._file()
        if self._subsets is None:
            self._subsets = self._find_subsets(h5file)
        return self._subsets

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
        return self._data

    def load(self) -> None:
        """Read the chosen examples into memory, if the data set is one in memory."""
        if not self.load_in_memory:
            return
        was_open = self._handle is not None
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
            data.append(values if shapes is None else unfold(values, shapes))
        return tuple(data)

    def _get_from_memory(self, request: Request) -> tuple[Any, ...]:
        values_of, shapes_of = self._data_in_memory()
        resolved = Subset(slice(None), self.num_examples).resolve(request)
        data = []
        for values, shapes in zip(values_of, shapes_of, strict=True):
            if shapes is not None:
                data.append(unfold(values[resolved], shapes[resolved]))
            elif values.dtype.hasobject:
                data.append(copy.deepcopy(values[resolved]))
            elif isinstance(resolved, numpy.ndarray):
                data.append(values[resolved])
            else:
                # A view would let a transformer that works in place change the data set.
                data.append(values[resolved].copy())
        return tuple(data)

    def _read(self, source: str, request: Any) -> tuple[Any, Any]:
        values = self._reader(source, None).read(request)
        if source not in self.vlen_sources:
            return values, None
        return values, self._reader(source, "shapes").read(request)

    def _reader(self, source: str, scale: str | None) -> SourceReader:
        file = self._file()
        key = source if scale is None else f"{source}/{scale}"
        if key not in self._readers:
            dataset = file[source] if scale is None else file[source].dims[0][scale]
            self._readers[key] = SourceReader(dataset, sort_indices=self.sort_indices)
        return self._readers[key]


def _all_of(subset: Subset) -> int | slice | numpy.ndarray:
    return slice(0, 0) if subset.is_empty else subset.resolve(slice(None))


def _plain_subset(subset: slice | Sequence[int] | numpy.ndarray) -> Any:
    if isinstance(subset, slice):
        return [None if bound is None else int(bound) for bound in (subset.start, subset.stop)]
    return digest(subset)


def _checked_which_sets(which_sets: Iterable[str]) -> tuple[str, ...]:
    if isinstance(which_sets, str):
        raise ValueError(
            f"H5PYDataset: `which_sets` must be several names, such as ({which_sets!r},); got the "
            f"string {which_sets!r}."
        )
    which_sets = tuple(which_sets)
    if not which_sets:
        raise ValueError("H5PYDataset: `which_sets` must name a split; it is empty.")
    return which_sets


def _common_sources(h5file: h5py.File, which_sets: tuple[str, ...]) -> tuple[str, ...]:
    provided = [set(hdf5_format.get_provided_sources(h5file, split)) for split in which_sets]
    common = set.intersection(*provided)
    if not common:
        raise ValueError(f"{h5file.filename}: {_named_splits(which_sets)} no source in common.")
    return tuple(sorted(common))


def _named_splits(which_sets: tuple[str, ...]) -> str:
    if len(which_sets) == 1:
        return f"split {which_sets[0]!r} has"
    return f"splits {', '.join(map(repr, which_sets))} have"


def _open_file(path: str, driver: str | None) -> h5py.File:
    try:
        return h5py.File(path, mode="r", driver=driver)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OSError(f"{path} cannot be opened as an HDF5 file: {error}") from error
