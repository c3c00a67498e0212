"""Data sets in HDF5 files of Fuel's format 0.3, described in `fuel_data.datasets.hdf5_format`."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.datasets import hdf5_format
from fuel_data.datasets.hdf5_base import HDF5Dataset
from fuel_data.datasets.hdf5_chunks import CACHE_BYTES
from fuel_data.datasets.hdf5_digests import CHECKED_BYTES
from fuel_data.datasets.hdf5_files import check_sources
from fuel_data.datasets.hdf5_virtual import check_values
from fuel_data.datasets.pytables import PytablesDataset
from fuel_data.utils.digests import digest
from fuel_data.utils.subset import Subset

# Fuel had both in this module.
__all__ = ["H5PYDataset", "PytablesDataset"]


class H5PYDataset(HDF5Dataset):
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
        Whether requests on disk may be in any order and repeat examples. HDF5 itself has to read in
        increasing order, as it does ragged sources; with False nothing is sorted, and a request
        that does not increase is refused where HDF5 could not answer it.
    sources : sequence of str, optional
        The sources to read, in this order. By default all, sorted by name.
    axis_labels : dict, optional
        Source name → tuple of labels, or None. By default what the file says.
    keep_order : bool, optional
        As in Fuel, examples stand in the order of the file, each once, by default. With True they
        stand in the order of `which_sets`, of the indices of a split and of `subset`, and as often
        as they are named there. A file whose sources stand in different orders needs it.
    cache_bytes : int, optional
        How much memory the chunks of one compressed source may take that were read before; 128 MiB
        by default.

    Attributes
    ----------
    path : str
        Absolute path of the file as it was given.
    which_sets, load_in_memory, driver, sort_indices, keep_order, cache_bytes
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
        if putting each in the order of the file would pair wrong ones, or, when a file is opened
        again, if it has changed.

    Notes
    -----
    The data set has no state: `open` and `close` count who is using the file, and reading opens it
    where nobody did. The pickle is small and independent of the size of the data; a data set in
    memory is read again when it is first used after unpickling. Such a file may have moved into a
    folder of the data path; its size, splits, shapes, types and samples of its bytes must be the
    same. Threads may share a data set, and a child that was forked opens the file for itself.
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
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        super().__init__(file_or_path, load_in_memory, driver, sort_indices, cache_bytes)
        self.which_sets = _checked_which_sets(which_sets)
        self.user_given_subset = _checked_subset(subset)
        self.keep_order = keep_order
        self._wanted = sources
        self.describe(sources, axis_labels)
        del self._wanted

    def find_sources(self, h5file: h5py.File) -> tuple[str, ...]:
        """List the sources that all of `which_sets` have; see `HDF5Dataset.find_sources`."""
        provided = map(set, hdf5_format.provided_sources(h5file, self.which_sets))
        common = tuple(sorted(set.intersection(*provided)))
        where = _named_splits(self.which_sets)
        if not common:
            raise ValueError(f"{h5file.filename}: {where} no source in common.")
        check_sources(h5file, self._wanted, common, where)
        return common

    def find_labels(self, h5file: h5py.File) -> dict[str, tuple[str, ...] | None]:
        """Read the axis labels, and which sources are ragged; see `HDF5Dataset.find_labels`."""
        described = hdf5_format.describe_sources(h5file)
        self.vlen_sources = [source for source, (is_ragged, _) in described.items() if is_ragged]
        return {source: labels for source, (_, labels) in described.items()}

    def find_subsets(self, h5file: h5py.File) -> list[Subset]:
        """Find the examples of each source; see `HDF5Dataset.find_subsets`."""
        in_splits = hdf5_format.get_subsets(
            h5file, self.which_sets, self.sources, keep_order=self.keep_order
        )
        subsets = [self._chosen(h5file, subset) for subset in in_splits]
        numbers = {
            source: subset.num_examples
            for source, subset in zip(self.sources, subsets, strict=True)
        }
        if len(set(numbers.values())) > 1:
            raise ValueError(
                f"{h5file.filename}: the sources must have equal numbers of examples in "
                f"{', '.join(self.which_sets)}; got {numbers}. Choose some of them by `sources`."
            )
        self._check_pairs(h5file)
        # Mostly all sources have one subset; then a request is looked up in it once.
        return [subsets[0] if subset == subsets[0] else subset for subset in subsets]

    def _chosen(self, h5file: h5py.File, in_splits: Subset) -> Subset:
        try:
            return Subset.subset_of(in_splits, self.user_given_subset)
        except ValueError as error:
            raise ValueError(
                f"{h5file.filename}: `subset` chooses among the {in_splits.num_examples} examples "
                f"of {', '.join(self.which_sets)}: {str(error).removeprefix('Request: ')}"
            ) from error

    def _check_pairs(self, h5file: h5py.File) -> None:
        """Check that what belongs together still does when each source is sorted by itself."""
        if self.keep_order or hdf5_format.have_same_rows(h5file, self.which_sets, self.sources):
            return
        as_named = hdf5_format.get_subsets(h5file, self.which_sets, self.sources, keep_order=True)
        are_ranges = not any(subset.is_list for subset in as_named)
        if are_ranges or all(subset == as_named[0] for subset in as_named):
            return
        chosen = self.user_given_subset
        if not isinstance(chosen, slice):
            chosen = numpy.asarray(chosen, dtype=numpy.int64)
        # Where each example is named first, in the order of the file.
        places = [numpy.unique(subset.indices(), return_index=True)[1] for subset in as_named]
        for source, of_source in zip(self.sources, places, strict=True):
            if not numpy.array_equal(of_source[chosen], places[0][chosen]):
                raise ValueError(
                    f"{h5file.filename}: the examples of {self.sources[0]} and {source} stand in "
                    f"different orders in {', '.join(self.which_sets)}, so sorting would pair "
                    "wrong ones. Give keep_order=True, or one of the sources by `sources`."
                )

    def about(self, h5file: h5py.File) -> Any:
        """Give the attribute ``split`` as plain data; see `HDF5Dataset.about`."""
        return [
            [row.split, row.source, row.start, row.stop, bool(row.indices), row.available]
            for row in hdf5_format.split_rows(h5file)
        ]

    def check_content(self, h5file: h5py.File, *, everything: bool = False) -> list[str]:
        """Compare with the digests in the files, if they have some; see `HDF5Dataset`."""
        return check_values(h5file, self.sources, None if everything else CHECKED_BYTES)

    def _find_identity(self, h5file: h5py.File) -> dict[str, Any]:
        return {
            **super()._find_identity(h5file),
            "which_sets": list(self.which_sets),
            "subset": _plain_subset(self.user_given_subset),
            "keep_order": self.keep_order,
        }

    def __repr__(self) -> str:
        where = "in memory" if self.load_in_memory else "on disk"
        return (
            f"<{type(self).__name__} {os.path.basename(self.path)}, "
            f"which_sets={self.which_sets}, sources={tuple(self.sources)}, "
            f"{self.num_examples} examples, {where}>"
        )


def _checked_subset(subset: Any) -> slice | Sequence[int] | numpy.ndarray:
    if subset is None:
        return slice(None)
    if isinstance(subset, range):
        return numpy.array(subset, dtype=numpy.int64)
    if isinstance(subset, slice | list | tuple | numpy.ndarray):
        return subset
    raise ValueError(
        f"H5PYDataset: `subset` must be a slice, or a list or array of indices; got {subset!r}."
    )


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
    if not isinstance(which_sets, Iterable):
        raise ValueError(f"H5PYDataset: `which_sets` must be names of splits; got {which_sets!r}.")
    which_sets = tuple(which_sets)
    if not which_sets:
        raise ValueError("H5PYDataset: `which_sets` must name a split; it is empty.")
    return which_sets


def _named_splits(which_sets: tuple[str, ...]) -> str:
    if len(which_sets) == 1:
        return f"split {which_sets[0]!r} has"
    return f"splits {', '.join(map(repr, which_sets))} have"
