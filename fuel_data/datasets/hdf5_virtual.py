"""Data sets whose values are in other files: virtual ones, and those with external storage.

HDF5 gives zeros, or the fill value, for what it does not find there. Here it is an error.
"""

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import h5py

from fuel_data.datasets.hdf5_files import find_dataset, open_file


class Part(NamedTuple):
    """A range of examples of a virtual data set, which are examples of another data set.

    Parameters
    ----------
    start, stop : int
        The range in the virtual data set.
    offset : int
        The example of `dataset` that `start` is.
    dataset : h5py.Dataset
        Where the examples are.
    """

    start: int
    stop: int
    offset: int
    dataset: h5py.Dataset


def find_parts(dataset: h5py.Dataset) -> list[Part]:
    """Find of which data sets a virtual one is put together, example after example.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.

    Returns
    -------
    list of Part
        In increasing order and without gaps. Empty if `dataset` is not virtual, or put together
        in another way.

    Raises
    ------
    ValueError
        If a data set that has some of the values is not there, or is too small.
    """
    if dataset.ndim == 0 or not dataset.is_virtual:
        return []
    sources = dataset.virtual_sources()
    opened = _open_all(dataset, sources)
    for source in sources:
        _check_size(dataset, source, opened)
    dtype = dataset.dtype
    if dtype.hasobject or dtype.subdtype:
        return []
    parts = []
    for source in sources:
        target = _whole_examples(source.vspace, dataset.shape)
        found = opened.get((source.file_name, source.dset_name))
        if target is None or found is None:
            return []
        if found == dataset or found.dtype != dataset.dtype or found.shape[1:] != dataset.shape[1:]:
            return []
        offset = _whole_examples(source.src_space, found.shape)
        if offset is None or offset[1] - offset[0] != target[1] - target[0]:
            return []
        parts.append(Part(*target, offset[0], found))
    parts.sort(key=lambda part: part.start)
    bounds = [0, *(part.stop for part in parts)]
    if [part.start for part in parts] != bounds[:-1] or bounds[-1] != len(dataset):
        return []
    return parts


def _open_all(dataset: h5py.Dataset, sources: Sequence[Any]) -> dict[tuple[str, str], h5py.Dataset]:
    """Open the data sets that have the values, each once, by the names of file and data set."""
    files = {".": dataset.file}
    opened = {}
    for source in sources:
        names = source.file_name, source.dset_name
        # What has a number in its name may be missing: it is then not written yet.
        if names in opened or "%b" in "".join(names):
            continue
        if source.file_name not in files:
            files[source.file_name] = open_file(_path(dataset, source.file_name))
        opened[names] = find_dataset(files[source.file_name], source.dset_name)
    return opened


def _check_size(
    dataset: h5py.Dataset, source: Any, opened: Mapping[tuple[str, str], h5py.Dataset]
) -> None:
    """Check that all values are there which a virtual data set wants of another one."""
    found = opened.get((source.file_name, source.dset_name))
    space = source.src_space
    if (
        found is None
        or space.get_select_type() not in (h5py.h5s.SEL_HYPERSLABS, h5py.h5s.SEL_POINTS)
        or _is_endless(space)
    ):
        return
    needed = tuple(int(last) + 1 for last in space.get_select_bounds()[1])
    if len(needed) != found.ndim or any(map(operator.gt, needed, found.shape)):
        raise ValueError(
            f"{dataset.file.filename}: {dataset.name} wants values of {found.file.filename}: "
            f"{found.name} up to shape {needed}, which has shape {found.shape}. Put the whole "
            "file back."
        )


def _is_endless(space: h5py.h5s.SpaceID) -> bool:
    """Tell whether a selection goes on as far as its data set does."""
    if space.get_select_type() != h5py.h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return False
    _, _, counts, blocks = space.get_regular_hyperslab()
    return h5py.h5s.UNLIMITED in (*counts, *blocks)


def _whole_examples(space: h5py.h5s.SpaceID, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Give the range of a selection that is nothing but all values of a range of examples."""
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return 0, shape[0]
    if space.get_select_type() != h5py.h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return None
    if _is_endless(space):
        return None
    first, last = space.get_select_bounds()
    is_box = space.get_select_npoints() == _volume(first, last)
    if not is_box or any(first[1:]) or tuple(end + 1 for end in last[1:]) != shape[1:]:
        return None
    return int(first[0]), int(last[0]) + 1


def _volume(first: tuple[int, ...], last: tuple[int, ...]) -> int:
    volume = 1
    for start, end in zip(first, last, strict=True):
        volume *= end - start + 1
    return volume


def _path(dataset: h5py.Dataset, name: str) -> str:
    """Find another file where HDF5 looks for it."""
    folder = os.path.dirname(os.path.realpath(dataset.file.filename))
    prefix = os.environ.get("HDF5_VDS_PREFIX", "").replace("${ORIGIN}", folder)
    candidates = [os.path.join(prefix, name)] if prefix else []
    candidates += [os.path.join(folder, name), os.path.join(folder, os.path.basename(name)), name]
    for candidate in candidates:
        if os.path.isfile(candidate):
            return candidate
    raise ValueError(
        f"{dataset.file.filename}: {dataset.name} has examples in the file {name!r}, which is not "
        f"there. Put it into the folder {folder}."
    )


def other_files(dataset: h5py.Dataset) -> list[str]:
    """List the other files that have values of a data set, and check that they are there.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.

    Returns
    -------
    list of str
        Their paths, each once: those of a virtual data set, of what its parts are put together
        from in turn, and those of raw values.

    Raises
    ------
    ValueError
        If one is missing, if one of raw values is too short, or if a virtual data set is put
        together from itself: HDF5 would end the process.
    """
    found: dict[str, None] = {}
    _follow(dataset, found, [])
    return list(found)


def _follow(dataset: h5py.Dataset, found: dict[str, None], above: list[h5py.Dataset]) -> None:
    if any(dataset == other for other in above):
        raise ValueError(
            f"{dataset.file.filename}: {dataset.name} is put together from itself, by way of "
            f"{', '.join(f'{other.file.filename}: {other.name}' for other in above)}. Make it anew "
            "from data sets that have the values."
        )
    found.update(dict.fromkeys(_raw_files(dataset)))
    if dataset.shape is None or not dataset.is_virtual:
        return
    for (name, _), part in _open_all(dataset, dataset.virtual_sources()).items():
        if name != ".":
            found[part.file.filename] = None
        _follow(part, found, [*above, dataset])


def _raw_files(dataset: h5py.Dataset) -> Iterator[str]:
    for name, offset, size in dataset.external or ():
        prefix = os.environ.get("HDF5_EXTFILE_PREFIX", "").replace(
            "${ORIGIN}", os.path.dirname(os.path.realpath(dataset.file.filename))
        )
        path = os.path.join(prefix, name)
        needed = offset + (dataset.id.get_storage_size() if size == h5py.h5f.UNLIMITED else size)
        length = os.path.getsize(path) if os.path.isfile(path) else 0
        if length < needed:
            raise ValueError(
                f"{dataset.file.filename}: {dataset.name} has values in the file {path!r}, which "
                f"must have {needed:,} bytes; it has {length:,}. HDF5 would take zeros for the "
                "rest."
            )
        yield path
