"""Data sets in HDF5 files that others made: MATLAB 7.3, netCDF-4, PyTables, or plain h5py."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import h5py

from fuel_data.datasets.hdf5_base import HDF5Dataset
from fuel_data.datasets.hdf5_chunks import CACHE_BYTES
from fuel_data.datasets.hdf5_files import check_sources, find_dataset
from fuel_data.datasets.hdf5_format import dimension_labels, scales
from fuel_data.utils.subset import Subset

# Where the data sets are looked for that a message lists.
MAX_GROUPS = 1000
MAX_DEPTH = 20


class PlainHDF5Dataset(HDF5Dataset):
    """Named data sets of any HDF5 file, with their first axis as the examples.

    Parameters
    ----------
    file_or_path : path or h5py.File
        The file, as for `H5PYDataset`.
    sources_in_file : dict of str to str, or sequence of str
        Source → path of its data set in the file. A sequence names the data sets only; a source
        then has the last part of its path as its name.
    start, stop : int, optional
        Use the examples from `start` to before `stop` only.
    load_in_memory : bool, optional
        Whether to read the examples into memory at once.
    driver : str, optional
        Driver that h5py opens the file with.
    sources : sequence of str, optional
        The sources to read, in this order; all by default.
    axis_labels : dict, optional
        Source → labels. By default those of the file, or the names of its dimension scales.
    cache_bytes : int, optional
        As for `H5PYDataset`.

    Attributes
    ----------
    sources_in_file : dict of str to str
        As given, by source.
    start, stop
        As given.

    Raises
    ------
    FileNotFoundError
        If the file is neither at its path nor in the data path.
    ValueError
        If a data set is not there, cannot serve as a source (no axis, references, compressed by
        what is not installed), or if sources have different numbers of examples. The message lists
        what the file has.

    Notes
    -----
    The values are those of the file. Scales, offsets and missing values of netCDF are not applied.
    MATLAB writes the last axis first: an array of size height × width × N there has the shape
    (N, width, height) here. Its cell arrays and structs are references, which are no source.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/five.h5", "w") as file:
    ...         file["measured/size"] = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    ...     dataset = PlainHDF5Dataset(f"{folder}/five.h5", {"x": "measured/size"})
    ...     dataset.get_data(request=[4, 0])
    (array([[8, 9],
           [0, 1]]),)
    """

    def __init__(
        self,
        file_or_path: str | os.PathLike[str] | h5py.File,
        sources_in_file: Mapping[str, str] | Sequence[str],
        start: int = 0,
        stop: int | None = None,
        load_in_memory: bool = False,
        driver: str | None = None,
        sources: Sequence[str] | None = None,
        axis_labels: dict[str, tuple[str, ...] | None] | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        super().__init__(file_or_path, load_in_memory, driver, True, cache_bytes)
        self.sources_in_file = _by_source(type(self).__name__, sources_in_file)
        self.start = start
        self.stop = stop
        self._wanted = sources
        self.describe(sources, axis_labels)
        del self._wanted

    def path_in_file(self, source: str) -> str:
        """Say where in the file a source is; see `HDF5Dataset.path_in_file`."""
        return self.sources_in_file[source]

    def find_sources(self, h5file: h5py.File) -> tuple[str, ...]:
        """Check the named data sets; see `HDF5Dataset.find_sources`."""
        if not self.sources_in_file:
            raise ValueError(f"{h5file.filename}: name its data sets. {_what_there_is(h5file)}")
        for name in self.sources_in_file.values():
            _check_dataset(h5file, name)
        provided = tuple(self.sources_in_file)
        check_sources(h5file, self._wanted, provided, "`sources_in_file` has")
        return provided

    def find_labels(self, h5file: h5py.File) -> dict[str, tuple[str, ...] | None]:
        """Read labels and names of dimension scales; see `HDF5Dataset.find_labels`."""
        return {
            source: _labels(find_dataset(h5file, name))
            for source, name in self.sources_in_file.items()
        }

    def find_subsets(self, h5file: h5py.File) -> list[Subset]:
        """Find the examples of each source; see `HDF5Dataset.find_subsets`."""
        datasets = {name: find_dataset(h5file, self.path_in_file(name)) for name in self.sources}
        lengths = {name: len(dataset) for name, dataset in datasets.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(
                f"{h5file.filename}: the sources must have equal numbers of examples, on their "
                f"first axes; got {lengths}."
            )
        length = next(iter(lengths.values()))
        stop = length if self.stop is None else self.stop
        try:
            return [Subset(slice(self.start, stop), length)] * len(lengths)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{h5file.filename}: `start` and `stop` must be positions among its {length} "
                f"examples, in this order; got {self.start!r} and {self.stop!r}."
            ) from error

    def _find_identity(self, h5file: h5py.File) -> dict[str, Any]:
        return {
            **super()._find_identity(h5file),
            "sources_in_file": [self.sources_in_file[name] for name in self.sources],
        }


def _by_source(who: str, given: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    if not isinstance(given, Iterable):
        raise ValueError(f"{who}: `sources_in_file` must be paths of data sets; got {given!r}.")
    if isinstance(given, str):
        raise ValueError(f"{who}: `sources_in_file` must be several paths, such as ({given!r},).")
    paths = list(given.values() if isinstance(given, Mapping) else given)
    if not all(isinstance(path, str) for path in paths):
        raise ValueError(f"{who}: `sources_in_file` must be paths of data sets; got {paths}.")
    if isinstance(given, Mapping):
        return dict(given)
    by_source = {path.rstrip("/").rpartition("/")[2]: path for path in paths}
    if len(by_source) < len(paths):
        raise ValueError(
            f"{who}: `sources_in_file` names two data sets whose paths end alike: {paths}. "
            "Give a dict from source to path."
        )
    return by_source


def _check_dataset(h5file: h5py.File, name: str) -> None:
    try:
        reason = _why_no_source(find_dataset(h5file, name))
    except ValueError as error:
        raise ValueError(f"{error} {_what_there_is(h5file)}") from error
    if reason:
        raise ValueError(
            f"{h5file.filename}: {name!r} cannot be a source: {reason}. {_what_there_is(h5file)}"
        )


def _why_no_source(dataset: h5py.Dataset) -> str:
    dtype = dataset.dtype
    if dataset.shape is None or dataset.ndim == 0:
        return "it has no axis"
    fields = [dtype[name] for name in dtype.names or ()]
    if any(h5py.check_ref_dtype(part) for part in (dtype.base, *fields)):
        return "it holds references, as cell arrays of MATLAB do; name what they refer to"
    return ""


def _what_there_is(h5file: h5py.File, limit: int = 20) -> str:
    found = list(islice(_sources_below(h5file, "", set()), limit + 1))
    if not found:
        return "The file has no data set that can be a source."
    more = ", …" if len(found) > limit else ""
    return f"The file has {', '.join(found[:limit])}{more}."


def _sources_below(group: h5py.Group, path: str, seen: set[h5py.Group]) -> Iterator[str]:
    # Links may go in circles, and files may have millions of groups.
    if len(seen) >= MAX_GROUPS or path.count("/") > MAX_DEPTH:
        return
    seen.add(group)
    # MATLAB keeps what cells refer to there, thousands of data sets without names of their own.
    for name in sorted(group, key=lambda name: name == "#refs#"):
        try:
            item = group[name]
            is_source = isinstance(item, h5py.Dataset) and not _why_no_source(item)
        except (KeyError, OSError, RuntimeError, TypeError, ValueError):
            continue
        if is_source:
            yield path + name
        elif isinstance(item, h5py.Group) and item not in seen:
            yield from _sources_below(item, f"{path}{name}/", seen)


def _labels(dataset: h5py.Dataset) -> tuple[str, ...] | None:
    try:
        labels = dimension_labels(dataset)
        found = tuple(label or _scale(dataset, axis) for axis, label in enumerate(labels))
    except (KeyError, OSError, RuntimeError, TypeError, ValueError):
        # Labels are a comfort; the data can be read where they are damaged.
        return None
    return found if any(found) else None


def _scale(dataset: h5py.Dataset, axis: int) -> str:
    """Give the last name of the first scale of an axis, which netCDF calls by the dimension."""
    first = next(iter(scales(dataset, axis).values()), None)
    return "" if first is None else str(first.name).rpartition("/")[2]
