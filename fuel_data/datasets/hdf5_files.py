"""HDF5 files open for reading: found, checked, kept by one process and shared by its threads."""

import contextlib
import logging
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.datasets.hdf5_heaps import check_heaps
from fuel_data.datasets.hdf5_kinds import check_kind
from fuel_data.datasets.hdf5_vectors import with_right_vectors
from fuel_data.utils.cache import cache_file
from fuel_data.utils.names import nearest_name
from fuel_data.utils.paths import find_in_data_path

logger = logging.getLogger(__name__)

#: What a file system answers that has no locks: ENOLCK, ENOSYS, EOPNOTSUPP.
_WITHOUT_LOCKS = (37, 38, 95)
# Drivers to which a path is the name of a file; to others it may be that of several.
_ONE_FILE = (None, "sec2", "core", "direct", "stdio", "windows")
#: Filters of HDF5 that this library has no name for in a file, by their registered numbers.
_FILTERS = {
    305: "LZO",
    307: "bzip2",
    32001: "Blosc",
    32004: "LZ4",
    32008: "bitshuffle",
    32013: "ZFP",
    32015: "Zstandard",
    32026: "Blosc2",
}


def open_file(path: str | os.PathLike[str], driver: str | None = None) -> h5py.File:
    """Open an HDF5 file for reading.

    Files on file systems without locks are read without one.

    Parameters
    ----------
    path : path
        The file.
    driver : str, optional
        Driver of HDF5; by default plain reading.

    Returns
    -------
    h5py.File

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    PermissionError
        If it must not be read.
    OSError
        If it is no HDF5 file, cut short, damaged, or being written.
    """
    if driver in _ONE_FILE:
        check_kind(path)
        check_heaps(path)
    try:
        # What the variable HDF5_USE_FILE_LOCKING says goes before this.
        return h5py.File(path, mode="r", driver=driver, locking="best-effort")
    except Exception as error:
        found = re.search(r"unable to lock file, errno = (\d+)", str(error))
        number = int(found[1]) if found else None
        if number in _WITHOUT_LOCKS:
            logger.warning("%s is on a file system without locks; it is read without.", path)
            return h5py.File(path, mode="r", driver=driver, locking=False)
        raise OSError(
            f"{os.fsdecode(path)} cannot be opened as an HDF5 file: {error}{_advice(error, number)}"
        ) from error


def _advice(error: Exception, lock_errno: int | None) -> str:
    text = str(error)
    if lock_errno is not None:
        return (
            ". Another process has it open for writing: close it there. If nobody has, and its "
            "file system has no working locks, set HDF5_USE_FILE_LOCKING=FALSE."
        )
    if "Unknown driver" in text:
        return f". `driver` must be one of {', '.join(sorted(h5py.registered_drivers()))}."
    if "already open for write" in text:
        return (
            ". A program is writing it, or was ended before it closed the file: write it again, or "
            "trust what is in it and clear that mark with `h5clear -s`."
        )
    if "truncated file" in text:
        return ". It has been cut short: fetch or convert it again."
    return ". It is damaged, or of a kind that this version of HDF5 does not read."


def locate_file(path: str, who: str) -> str:
    """Find a file at its path, or by its last name in the data path.

    Parameters
    ----------
    path : str
        Where it was.
    who : str
        The data set, for the error.

    Returns
    -------
    str
        Where it is.

    Raises
    ------
    FileNotFoundError
        If it is in neither place.
    """
    if os.path.isfile(path):
        return path
    try:
        return find_in_data_path(os.path.basename(path))
    except OSError as error:
        # It may be a folder, or in one that must not be read.
        with contextlib.suppress(FileNotFoundError):
            check_kind(path)
        raise FileNotFoundError(f"{who}: there is no file {path}, and {error}") from error


def check_filters(dataset: h5py.Dataset) -> None:
    """Check that the filters which a data set went through are there.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.

    Raises
    ------
    ValueError
        If one is missing, with the extra that brings it.
    """
    missing = _missing_filters(dataset)
    if not missing:
        return
    try:
        # It registers its filters with HDF5 when it is imported.
        import hdf5plugin  # noqa: F401  (imported for that effect)

        missing = _missing_filters(dataset)
    except ImportError:
        pass
    if missing:
        raise ValueError(
            f"{dataset.file.filename}: {dataset.name} is compressed by {', '.join(missing)}, which "
            "HDF5 cannot undo here. Most filters come with `pip install hdf5plugin`; "
            "otherwise write the file again with gzip."
        )


def _missing_filters(dataset: h5py.Dataset) -> list[str]:
    properties = dataset.id.get_create_plist()
    missing = []
    for number in range(properties.get_nfilters()):
        code, _, _, name = properties.get_filter(number)
        if not h5py.h5z.filter_avail(code):
            named = name.decode("utf-8", "replace").split(" (")[0].split(";")[0]
            missing.append(f"{_FILTERS.get(code, named or 'a filter')} (number {code})")
    return missing


def find_dataset(h5file: h5py.File, name: str) -> h5py.Dataset:
    """Get a data set of an open file.

    Parameters
    ----------
    h5file : h5py.File
        The file.
    name : str
        Path of the data set in it.

    Returns
    -------
    h5py.Dataset

    Raises
    ------
    ValueError
        If there is none, if it cannot be opened, if numpy has not its type, or if HDF5 cannot undo
        its compression.
    """
    try:
        found = h5file[name]
    except KeyError as error:
        raise ValueError(
            f"{h5file.filename}: there is no data set {name!r} ({error.args[0]})."
            f"{_what_is_there(h5file, name)}"
        ) from error
    if not isinstance(found, h5py.Dataset):
        kind = "folder" if isinstance(found, h5py.Group) else "type"
        raise ValueError(f"{h5file.filename}: {name!r} is a {kind}, not a data set.")
    check_filters(found)
    try:
        dtype = found.dtype
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{h5file.filename}: {name!r} cannot be a source: its type is none that numpy has "
            f"({error})."
        ) from error
    if _overlaps(dtype):
        raise ValueError(
            f"{h5file.filename}: {name!r} cannot be a source: its records have fields that need "
            "more room in numpy than the file gives them, so reading would write over other "
            "memory. The file is damaged, or has numbers of an uncommon size."
        )
    return with_right_vectors(found) if dtype.hasobject else found


def _overlaps(dtype: numpy.dtype) -> bool:
    """Tell whether fields of records overlap, or go past the end, at any depth.

    In HDF5 they never do, but h5py gives a number that numpy has not the next larger type of
    numpy, at the place and in the record that the smaller one has.
    """
    base = h5py.check_vlen_dtype(dtype)
    inner = base if isinstance(base, numpy.dtype) else dtype.base
    if inner.fields is None:
        return inner != dtype and _overlaps(inner)
    places = [inner.fields[name][:2] for name in inner.names or ()]
    fields = sorted(places, key=lambda field: field[1])
    ends = [offset + kind.itemsize for kind, offset in fields]
    begins = [*(offset for _, offset in fields[1:]), inner.itemsize]
    return any(end > begin for end, begin in zip(ends, begins, strict=True)) or any(
        _overlaps(kind) for kind, _ in fields
    )


def _what_is_there(h5file: h5py.File, name: str) -> str:
    """Say what a broken link wants, or what the nearest name is."""
    folder, _, last = name.rstrip("/").rpartition("/")
    beside = h5file.get(folder or "/")
    if not isinstance(beside, h5py.Group) or not last:
        return ""
    link = beside.get(last, getlink=True)
    if isinstance(link, h5py.ExternalLink):
        return f" It is a link to {link.path!r} in the file {link.filename!r}: put it there."
    if isinstance(link, h5py.SoftLink):
        return f" It is a link to {link.path!r}, which is not there."
    return nearest_name(last, list(beside))


@contextlib.contextmanager
def damage_in_words(path: str) -> Iterator[None]:
    """Say what is wrong with a file, where HDF5 and h5py say it in words of their own.

    Parameters
    ----------
    path : str
        The file.

    Yields
    ------
    None
        The block reads what the file says of itself.

    Raises
    ------
    OSError
        For every error but those that are in words already.
    """
    try:
        yield
    except OSError as error:
        if path in str(error):
            raise
        # What has a number comes from the system: too many open files, a disk that fails.
        why = "" if error.errno else " The file is damaged."
        raise OSError(f"{path} cannot be read: {error}.{why}") from error
    except MemoryError as error:
        raise OSError(
            f"{path} cannot be read: {error!r}. It needs more memory than there is, or is damaged."
        ) from error
    except (ArithmeticError, AttributeError, LookupError) as error:
        raise OSError(f"{path} cannot be read: {error!r}. The file is damaged.") from error
    except (RuntimeError, TypeError, UnicodeError) as error:
        raise OSError(
            f"{path} cannot be read: {error}. The file is damaged, or has types that h5py does "
            "not know."
        ) from error


def check_sources(
    h5file: h5py.File, wanted: Iterable[str] | None, provided: Sequence[str], where: str
) -> None:
    """Check that wanted sources are there.

    Parameters
    ----------
    h5file : h5py.File
        The file.
    wanted : iterable of str or None
        The names, one at least; None means all.
    provided : sequence of str
        What there is.
    where : str
        For the error, such as ``"split 'train' has"``.

    Raises
    ------
    ValueError
        If one is missing, or none is named.
    """
    if wanted is None:
        return
    wanted = tuple(wanted)
    if not wanted:
        raise ValueError(
            f"{h5file.filename}: `sources` must name a source; {where} {', '.join(provided)}."
        )
    for source in wanted:
        if source not in provided:
            raise ValueError(
                f"{h5file.filename}: {where} no source {source!r}.{nearest_name(source, provided)}"
            )


def stands_alone(h5file: h5py.File) -> bool:
    """Tell whether a file has all its data in itself.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    bool
        False if it has links to other files, virtual data sets, or values in other files.
    """
    groups: list[h5py.Group] = [h5file]
    datasets: list[h5py.Dataset] = []

    def sort(name: str, found: object) -> None:
        if isinstance(found, h5py.Group):
            groups.append(found)
        elif isinstance(found, h5py.Dataset):
            datasets.append(found)

    try:
        h5file.visititems(sort)
        links = [group.get(name, getlink=True) for group in groups for name in group]
    except (KeyError, OSError, RuntimeError, ValueError):
        # Damage is said in words when the data are looked for.
        return False
    return not any(isinstance(link, h5py.ExternalLink) for link in links) and not any(
        dataset.is_virtual or dataset.external for dataset in datasets
    )


_shared_files: "weakref.WeakSet[SharedFile]" = weakref.WeakSet()


class SharedFile:
    """An HDF5 file that is opened when it is needed, by each process for itself.

    Threads of one process share the handle. A child that was forked opens its own, and so does
    whoever unpickles this.

    Parameters
    ----------
    path : str
        Absolute path.
    driver : str or None
        Driver of HDF5.
    who : str
        The data set, for errors.

    Attributes
    ----------
    path, driver, who
        As given.
    lock : lock
        Held while the file is opened or closed.
    """

    def __init__(self, path: str, driver: str | None, who: str) -> None:
        self.path = path
        self.driver = driver
        self.who = who
        self._begin()

    def _begin(self) -> None:
        self._handle: h5py.File | None = None
        self._num_opens = 0
        # Reentrant: whoever checks the file after opening it asks for it again.
        self.lock = threading.RLock()
        _shared_files.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "driver": self.driver, "who": self.who}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @property
    def is_open(self) -> bool:
        """Whether this process has the file open."""
        with self.lock:
            return self._handle is not None

    def get(self, check: Callable[[h5py.File, str], None]) -> h5py.File:
        """Give the open file.

        Parameters
        ----------
        check : function of (h5py.File, str)
            Called with the file and its path when it has been opened; may refuse it by an error.

        Returns
        -------
        h5py.File
        """
        with self.lock:
            if self._handle is None:
                path = self.path if self.driver else locate_file(self.path, self.who)
                self._handle = self._open(path)
                try:
                    check(self._handle, path)
                except BaseException:
                    self.close()
                    raise
            return self._handle

    def _open(self, path: str) -> h5py.File:
        near = path if self.driver else cache_file(path)
        handle = open_file(near, self.driver)
        if near == path or stands_alone(handle):
            return handle
        # What it refers to is beside the original.
        handle.close()
        return open_file(path)

    def close(self) -> None:
        """Close the file, if this process has it open."""
        with self.lock:
            if self._handle is not None:
                self._handle.close()
            self._handle = None

    def count_open(self) -> None:
        """Note that somebody keeps the file open."""
        with self.lock:
            self._num_opens += 1

    def count_close(self) -> bool:
        """Note that somebody needs the file no longer.

        Returns
        -------
        bool
            Whether nobody does.
        """
        with self.lock:
            self._num_opens = max(self._num_opens - 1, 0)
            return self._num_opens == 0


def _begin_in_child() -> None:
    # A lock may be held, and the handle be in use, by a thread that is not in this child.
    for file in list(_shared_files):
        file._begin()


os.register_at_fork(after_in_child=_begin_in_child)
