"""What converters have in common: input files, HDF5 files of Fuel's format, progress."""

import contextlib
import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.datasets.hdf5_format import create_split_array
from fuel_data.exceptions import MissingInputFiles
from fuel_data.utils.digests import file_digest
from fuel_data.utils.files import atomic_write
from fuel_data.utils.names import nearest_name

INPUTS_ATTRIBUTE = "fuel_convert_inputs"
PIECE_BYTES = 2**24


class UsageError(ValueError):
    """Arguments of a converter that do not fit together; the command ends with status 2."""


def check_exists(required_files: Iterable[str]) -> Callable[[Callable], Callable]:
    """Decorate a converter so that it runs only if its input files are there.

    Parameters
    ----------
    required_files : iterable of str
        Names of files in the folder that the converter takes as its first argument.

    Returns
    -------
    function
        The decorator.

    Raises
    ------
    MissingInputFiles
        By the decorated function, with all the files that are missing.
    """

    def decorate(convert: Callable) -> Callable:
        @functools.wraps(convert)
        def checked(directory: str | os.PathLike[str], *args: Any, **kwargs: Any) -> Any:
            missing = [
                name
                for name in required_files
                if not os.path.isfile(os.path.join(directory, name))
            ]
            if missing:
                raise MissingInputFiles(f"Not in the folder {os.fspath(directory)!r}", missing)
            return convert(directory, *args, **kwargs)

        return checked

    return decorate


@contextlib.contextmanager
def new_hdf5_file(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Give an empty HDF5 file that takes the place of `path` when the block ends well.

    Parameters
    ----------
    path : path
        The file to write. Its folder must exist.

    Yields
    ------
    h5py.File
        Open for writing.

    Raises
    ------
    OSError
        If the disk is full. Nothing is left behind, and an old file at `path` stays.
    """
    # h5py writes through the Python file: when the disk is full, HDF5's own writing leaves a file
    # that cannot be closed, and ends the process by a segmentation fault.
    with atomic_write(path, "w+b") as raw, h5py.File(raw, mode="w") as h5file:
        yield h5file


def fill_hdf5_file(
    h5file: h5py.File,
    data: Sequence[Sequence[Any]],
    axis_labels: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write arrays into a file, with the attribute that says which split has which.

    Parameters
    ----------
    h5file : h5py.File
        A file open for writing.
    data : sequence of (split, source, array) or (split, source, array, comment)
        The arrays. Those of one split have equal lengths; those of one source have equal dtypes
        and equal shapes but for the first axis. The splits of a source follow each other in the
        file in this order.
    axis_labels : dict, optional
        Source name → a label for each axis.
    progress : function, optional
        Called with the number of bytes written since the last call.

    Raises
    ------
    ValueError
        If lengths, dtypes, shapes or the number of labels do not fit, or if there are more splits
        than HDF5 can hold in an attribute.
    """
    _check_arrays(data)
    split_dict: dict[str, dict[str, tuple]] = {}
    for source in dict.fromkeys(entry[1] for entry in data):
        start = 0
        entries = [entry for entry in data if entry[1] == source]
        for split, _, array, *comment in entries:
            stop = start + len(array)
            split_dict.setdefault(split, {})[source] = (start, stop, None, *comment)
            start = stop
        _write_source(h5file, source, [entry[2] for entry in entries], progress)
    order = dict.fromkeys(entry[0] for entry in data)
    _write_split(h5file, {split: split_dict[split] for split in order})
    for source, labels in (axis_labels or {}).items():
        if source not in h5file:
            raise ValueError(
                f"Axis labels are given for {source!r}, which is no source."
                f"{nearest_name(source, split_dict[next(iter(order))])}"
            )
        label_axes(h5file[source], labels)


def _check_arrays(data: Sequence[Sequence[Any]]) -> None:
    lengths: dict[str, dict[str, int]] = {}
    kinds: dict[str, set] = {}
    for split, source, array, *_ in data:
        if source in lengths.setdefault(split, {}):
            raise ValueError(f"Split {split!r} has source {source!r} twice.")
        lengths[split][source] = len(array)
        kinds.setdefault(source, set()).add((str(array.dtype), array.shape[1:]))
    for split, of_sources in lengths.items():
        if len(set(of_sources.values())) > 1:
            raise ValueError(
                f"The sources of split {split!r} must have equal lengths; got {of_sources}."
            )
    for source, found in kinds.items():
        if len(found) > 1:
            raise ValueError(
                f"Source {source!r} must have one dtype and shape in all splits, but for the first "
                f"axis; got {sorted(map(str, found))}."
            )


def _write_source(
    h5file: h5py.File,
    source: str,
    arrays: Sequence[numpy.ndarray],
    progress: Callable[[int], None] | None,
) -> None:
    total = sum(len(array) for array in arrays)
    dataset = h5file.create_dataset(
        source, shape=(total, *arrays[0].shape[1:]), dtype=arrays[0].dtype
    )
    start = 0
    for array in arrays:
        # In pieces, so that a memory-mapped input need not fit into memory.
        step = max(1, PIECE_BYTES // max(1, array[:1].nbytes))
        for first in range(0, len(array), step):
            piece = array[first : first + step]
            dataset[start : start + len(piece)] = piece
            start += len(piece)
            if progress is not None:
                progress(piece.nbytes)


def _write_split(h5file: h5py.File, split_dict: Mapping[str, Mapping[str, Sequence]]) -> None:
    array = create_split_array(split_dict)
    try:
        h5file.attrs["split"] = array
    except (OSError, RuntimeError) as error:
        if array.nbytes < 2**15:
            raise
        raise ValueError(
            f"{len(array)} pairs of split and source do not fit into an attribute, which HDF5 "
            "limits to 64 KiB. Write fewer splits, or a data set of indices that names the split."
        ) from error


def label_axes(dataset: h5py.Dataset, labels: Sequence[str]) -> None:
    """Write the axis labels of a source.

    Parameters
    ----------
    dataset : h5py.Dataset
        The source.
    labels : sequence of str
        One for each axis.

    Raises
    ------
    ValueError
        If there are more or fewer labels than axes.
    """
    if len(labels) != dataset.ndim:
        raise ValueError(
            f"Source {dataset.name.lstrip('/')!r} has {dataset.ndim} axes, so it needs as many "
            f"labels; got {', '.join(labels)}."
        )
    for axis, label in enumerate(labels):
        dataset.dims[axis].label = label


def record_inputs(h5file: h5py.File, paths: Iterable[str | os.PathLike[str]]) -> None:
    """Write the SHA-256 digests of the input files into the converted file.

    Parameters
    ----------
    h5file : h5py.File
        The converted file.
    paths : iterable of path
        The input files; their last names are written.
    """
    digests = {os.path.basename(path): file_digest(path) for path in paths}
    text = json.dumps(digests, sort_keys=True)
    h5file.attrs[INPUTS_ATTRIBUTE] = numpy.bytes_(text.encode("utf-8"))
