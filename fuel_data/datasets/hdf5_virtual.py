"""Data sets whose values are in other files: virtual ones, and those with external storage.

HDF5 gives zeros, or the fill value, for what it does not find there. Here it is an error.
"""

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import h5py

from fuel_data.datasets.hdf5_digests import CHECKED_BYTES, check_digests
from fuel_data.datasets.hdf5_files import find_dataset, open_file
from fuel_data.datasets.hdf5_format import get_all_sources
from fuel_data.datasets.hdf5_parts import check_parts


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
    pairs = dict.fromkeys((source.file_name, source.dset_name) for source in sources)
    # What has a number in its name may be missing: it is then not written yet.
    pairs = {names: None for names in pairs if "%b" not in "".join(names)}
    others = list(dict.fromkeys(name for name, _ in pairs if name != "."))
    files = {name: open_file(_path(dataset, name)) for name in others}
    check_parts(dataset.file, files)
    files["."] = dataset.file
    return {names: find_dataset(files[names[0]], names[1]) for names in pairs}


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
    """Find another file where HDF5 looks for it.

    That is at its path, which is mostly relative to the folder of the file with the data set. For
    an absolute one, HDF5 then looks for its last name in that folder: not where another file that
    is wanted has the same last name, for it would be taken for both.
    """
    folder = os.path.dirname(os.path.abspath(dataset.file.filename))
    real_folder = os.path.dirname(os.path.realpath(dataset.file.filename))
    prefix = os.environ.get("HDF5_VDS_PREFIX", "").replace("${ORIGIN}", real_folder)
    candidates = [os.path.join(prefix, name)] if prefix else []
    candidates += [os.path.join(folder, name), name, os.path.join(real_folder, name)]
    beside = []
    if os.path.isabs(name):
        beside = [os.path.join(place, os.path.basename(name)) for place in (folder, real_folder)]
    for candidate in (*candidates, *beside):
        if os.path.isfile(candidate) and (candidate not in beside or _is_alone(dataset, name)):
            return candidate
    wanted = os.path.normpath(os.path.join(real_folder, name))
    raise ValueError(
        f"{dataset.file.filename}: {dataset.name} has examples in the file {name!r}, which is not "
        f"there. Put it back as {wanted}; or, if files have been moved, move them back so that "
        "the joined one has the same paths to the others, or join them anew where they are."
    )


def _is_alone(dataset: h5py.Dataset, name: str) -> bool:
    """Tell whether the file of a data set wants no other part that has the last name of one."""
    wanted: set[str] = set()

    def note(_: str, found: object) -> None:
        if isinstance(found, h5py.Dataset) and found.shape is not None and found.is_virtual:
            wanted.update(source.file_name for source in found.virtual_sources())

    dataset.file.visititems(note)
    last = os.path.basename(name)
    return [os.path.basename(other) for other in wanted].count(last) == 1


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


def files_of(h5file: h5py.File, datasets: Iterable[h5py.Dataset]) -> list[str]:
    """List the other files that have values of data sets, sorted; see `other_files`.

    Parameters
    ----------
    h5file : h5py.File
        The file.
    datasets : iterable of h5py.Dataset
        Data sets that are reached from it.

    Returns
    -------
    list of str
        Among them files that a data set is in because its name is a link.
    """
    datasets = list(datasets)
    files = {path for dataset in datasets for path in other_files(dataset)}
    return sorted(files | {dataset.file.filename for dataset in datasets} - {h5file.filename})


def describe_changes(paths: Sequence[str], before: Sequence[object], now: Sequence[object]) -> str:
    """Say which of the other files have changed.

    Parameters
    ----------
    paths : sequence of str
        Where they are.
    before, now : sequence
        What was known of each, and what is.

    Returns
    -------
    str
    """
    if len(before) != len(now):
        return f"it had values in {len(before)} other files, has some in {len(now)}"
    return ", ".join(
        f"its part {path} was {old}, is {new}"
        for path, old, new in zip(paths, before, now, strict=True)
        if old != new
    )


def check_values(
    h5file: h5py.File, sources: Iterable[str], max_bytes: int | None = CHECKED_BYTES
) -> list[str]:
    """Check sources against the digests in their file, and in the files that have their values.

    Parameters
    ----------
    h5file : h5py.File
        An open file of Fuel's format.
    sources : iterable of str
        The sources that are of interest.
    max_bytes : int or None
        As of `check_digests`, for each of the files.

    Returns
    -------
    list of str
        Paths of the files that have no digests, and values that no other digests are of.

    Raises
    ------
    OSError
        If a file is not what was written.
    ValueError
        If one of the other files is missing, or is not the one that was joined.
    """
    return _check_values(h5file, tuple(sources), max_bytes, ())


def _check_values(
    h5file: h5py.File, sources: tuple[str, ...], max_bytes: int | None, above: tuple[str, ...]
) -> list[str]:
    has_digests = check_digests(h5file, sources, max_bytes)
    datasets = [find_dataset(h5file, source) for source in sources]
    unchecked: dict[str, None] = {}
    if not all(dataset.is_virtual for dataset in datasets):
        unchecked[h5file.filename] = None
    above = (*above, h5file.filename)
    for part, names in _parts_of(datasets):
        # What is put together from itself is refused when it is read.
        if part.filename in above:
            continue
        in_part = tuple(names & set(get_all_sources(part))) if "split" in part.attrs else ()
        found = _check_values(part, in_part, max_bytes, above) if in_part else [part.filename]
        unchecked.update(dict.fromkeys(found))
    return [] if has_digests else list(unchecked)


def _parts_of(datasets: Iterable[h5py.Dataset]) -> list[tuple[h5py.File, set[str]]]:
    """List the other files that virtual data sets are put together from, and what of each."""
    found: dict[str, tuple[h5py.File, set[str]]] = {}
    for dataset in datasets:
        if dataset.is_virtual:
            for (name, _), part in _open_all(dataset, dataset.virtual_sources()).items():
                if name != ".":
                    found.setdefault(part.file.filename, (part.file, set()))[1].add(part.name[1:])
    return list(found.values())


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
