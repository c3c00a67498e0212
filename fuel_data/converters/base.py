"""What converters have in common: input files, HDF5 files of Fuel's format, progress."""

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.converters.opened import notice
from fuel_data.converters.sources import as_source, write_source
from fuel_data.converters.sources import label_axes as label_axes
from fuel_data.converters.storage import Storage, storage_of, warn_of_what_is_not_compressed
from fuel_data.datasets.hdf5_digests import add_digests
from fuel_data.datasets.hdf5_format import create_split_array
from fuel_data.exceptions import MissingInputFiles
from fuel_data.utils.digests import file_digest
from fuel_data.utils.files import atomic_write
from fuel_data.utils.names import nearest_name
from fuel_data.utils.progress import progress_bar as progress_bar

#: How the folders are called in which `fuel-convert` has files written, in that of the output.
STAGING = ".fuel-convert-"
INPUTS_ATTRIBUTE = "fuel_convert_inputs"


class UsageError(ValueError):
    """Arguments of a converter that do not fit together; the command ends with status 2."""


def check_exists(required_files: Iterable[str]) -> Callable[[Callable], Callable]:
    """Decorate a converter so that it runs only if its input files are there.

    The output of `fuel-convert` names them with their digests, if the converter does not do so.

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
            paths = {name: os.path.join(directory, name) for name in required_files}
            missing = [name for name, path in paths.items() if not os.path.isfile(path)]
            if missing:
                raise MissingInputFiles(f"Not in the folder {os.fspath(directory)!r}", missing)
            notice(paths.values())
            return convert(directory, *args, **kwargs)

        return checked

    return decorate


@contextlib.contextmanager
def new_hdf5_file(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Give an empty HDF5 file that takes the place of `path` when the block ends well.

    Digests of what is in it then are written too, by which damage shows when the file is read; see
    `fuel_data.datasets.hdf5_digests`.

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
    # From the format of HDF5 1.8 on (2008) an attribute, such as that of many splits, may have more
    # than 64 KiB.
    with (
        atomic_write(path, "w+b") as raw,
        h5py.File(raw, mode="w", libver=("v108", "latest")) as h5file,
    ):
        yield h5file
        add_digests(h5file)


def fill_hdf5_file(
    h5file: h5py.File,
    data: Sequence[Sequence[Any]],
    axis_labels: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[int], None] | None = None,
    storage: Storage | Mapping[str, Storage] | None = None,
) -> None:
    """Write arrays into a file, with the attributes that say which split has which.

    More may be written into it afterwards, such as labels of axes. When it is complete,
    `new_hdf5_file` and ``fuel-convert`` write digests of the values.

    Parameters
    ----------
    h5file : h5py.File
        A file open for writing.
    data : sequence of (split, source, array) or (split, source, array, comment)
        The arrays. Those of one split have equal lengths; those of one source have equal dtypes
        and equal shapes but for the first axis. The splits of a source follow each other in the
        file in this order. A sequence (or an array of dtype object) of arrays of one dtype and
        rank but of different shapes becomes a ragged source, one of str text, and one of bytes a
        source of vectors of uint8.
    axis_labels : dict, optional
        Source name → a label for each axis, those of ragged examples included.
    progress : function, optional
        Called with the number of bytes written since the last call.
    storage : Storage or dict of str to Storage, optional
        How all sources are stored, or some of them by name; by default as `default_storage` says,
        otherwise in one piece. Ragged examples, texts and bytes are never compressed: HDF5 does not
        do it, and a warning in the log names those of which this asks it.

    Raises
    ------
    ValueError
        If lengths, dtypes, shapes or the number of labels do not fit, if `axis_labels` or `storage`
        names what is no source, if a source cannot be stored, or if the file was not made by
        `new_hdf5_file` and cannot hold so many splits.
    TypeError
        If `storage` has something else than a `Storage`.
    """
    data = list(data)
    for entry in data:
        if not isinstance(entry, (list, tuple)) or not 3 <= len(entry) <= 4:
            raise ValueError(
                "fill_hdf5_file: `data` must have (split, source, array) or (split, source, array, "
                f"comment) for each split and source; got {entry!r}."
            )
    data = [(split, source, as_source(values), *rest) for split, source, values, *rest in data]
    _check_arrays(data)
    sources = list(dict.fromkeys(entry[1] for entry in data))
    _check_names("axis_labels", axis_labels or {}, sources)
    chosen = _by_source(storage, sources)
    split_dict: dict[str, dict[str, tuple]] = {}
    for source in sources:
        start = 0
        entries = [entry for entry in data if entry[1] == source]
        for split, _, array, *comment in entries:
            stop = start + len(array)
            split_dict.setdefault(split, {})[source] = (start, stop, None, *comment)
            start = stop
        labels = (axis_labels or {}).get(source)
        arrays = [entry[2] for entry in entries]
        write_source(h5file, source, arrays, labels, storage_of(source, chosen), progress)
    order = dict.fromkeys(entry[0] for entry in data)
    _write_split(h5file, {split: split_dict[split] for split in order})
    packed = [source for source, one in chosen.items() if one.compression is not None]
    warn_of_what_is_not_compressed(h5file, packed, "fill_hdf5_file: compression")


def _check_names(argument: str, given: Iterable[str], known: Sequence[str]) -> None:
    for source in given:
        if source not in known:
            raise ValueError(
                f"fill_hdf5_file: `{argument}` names {source!r}, which is no source."
                f"{nearest_name(source, known)}"
            )


def _by_source(storage: Any, sources: Sequence[str]) -> dict[str, Storage]:
    """Take what is asked for all sources as asked for each."""
    if storage is None:
        return {}
    given = storage if isinstance(storage, Mapping) else dict.fromkeys(sources, storage)
    _check_names("storage", given, sources)
    for one in given.values():
        if not isinstance(one, Storage):
            raise TypeError(
                "fill_hdf5_file: `storage` must be a Storage, such as Storage('gzip'), or a "
                f"dictionary of source to Storage; got {storage!r}."
            )
    return dict(given)


def _check_arrays(data: Sequence[Sequence[Any]]) -> None:
    lengths: dict[str, dict[str, int]] = {}
    kinds: dict[str, set] = {}
    for split, source, array, *_ in data:
        if split == "" or source == "":
            raise ValueError(
                f"Splits and sources need names; got split {split!r} with source {source!r}."
            )
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


def _write_split(h5file: h5py.File, split_dict: Mapping[str, Mapping[str, Sequence]]) -> None:
    array = create_split_array(split_dict)
    try:
        h5file.attrs["split"] = array
    except (OSError, RuntimeError) as error:
        if array.nbytes < 2**15:
            raise
        raise ValueError(
            f"{len(array)} pairs of split and source do not fit into the 64 KiB that an attribute "
            "may have in this file. Make it by h5py.File(path, 'w', libver=('v108', 'latest')), as "
            "new_hdf5_file does, and every HDF5 since 1.8 can read it."
        ) from error


def final_folder(output_directory: str | os.PathLike[str]) -> str:
    """Tell in which folder a file will be that a converter writes.

    Parameters
    ----------
    output_directory : path
        The folder that the converter is told to write into.

    Returns
    -------
    str
        That folder, or the one above if it is one of `fuel-convert`, out of which files are moved
        when they are whole.
    """
    folder = os.path.abspath(output_directory)
    parent, name = os.path.split(folder)
    return parent if name.startswith(STAGING) else folder


def record_inputs(
    h5file: h5py.File,
    paths: Iterable[str | os.PathLike[str]],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write the SHA-256 digests of the input files into the converted file.

    Parameters
    ----------
    h5file : h5py.File
        The converted file.
    paths : iterable of path
        The input files; their last names are written, or as much of their paths as tells them
        apart.
    progress : function, optional
        Called with the number of bytes read since the last call.
    """
    named = _short_names(paths).items()
    _write_inputs(h5file, {name: file_digest(path, progress=progress) for name, path in named})


def _short_names(paths: Iterable[str | os.PathLike[str]]) -> dict[str, str]:
    absolute = list(dict.fromkeys(os.path.abspath(path) for path in paths))
    num_parts = 1
    while True:
        names = ["/".join(path.split(os.sep)[-num_parts:]) for path in absolute]
        if len(set(names)) == len(names):
            return dict(zip(names, absolute, strict=True))
        num_parts += 1


def record_folder(
    h5file: h5py.File, folder: str | os.PathLike[str], names: Sequence[str], what: str
) -> None:
    """Write one digest of many input files: that of the list that sha256sum would print of them.

    Parameters
    ----------
    h5file : h5py.File
        The converted file.
    folder : path
        Where they are.
    names : sequence of str
        Their paths in it.
    what : str
        What they are, such as ``'images'``.
    """
    folder = os.fspath(folder)
    lines = [f"{file_digest(os.path.join(folder, name))}  {name}\n" for name in sorted(names)]
    digest = hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    _write_inputs(h5file, {f"{len(names)} {what} in {os.path.basename(folder) or folder}": digest})


def _write_inputs(h5file: h5py.File, digests: Mapping[str, str]) -> None:
    text = json.dumps(digests, sort_keys=True)
    h5file.attrs[INPUTS_ATTRIBUTE] = numpy.bytes_(text.encode("utf-8"))
