"""A look at the heaps of an HDF5 file before HDF5 reads them.

What has variable length is kept in heaps: chains of objects, each with its size. HDF5 follows a
damaged chain without end, inside a call that nothing can interrupt; so the chains are followed here
first. And it takes as much memory as a damaged length says. The layout is in the HDF5 File Format
Specification, "Disk Format: Level 1E, Global Heap".
"""

import functools
import mmap
import os
import re
import struct

import h5py
import numpy

from fuel_data.utils.digests import settled_version
from fuel_data.utils.disk import is_local

#: Heaps of larger files are not looked at: it would take too long.
CHECKED_BYTES = 2**26
_SIGNATURE = re.compile(rb"GCOL\x01\x00\x00\x00")
_HEADER = 16
# Where HDF5 has the length of an example, the address of its heap and its number there.
_PLACE = numpy.dtype("<u4, <u8, <u4")


def check_heaps(path: str | os.PathLike[str]) -> None:
    """Check that the chains of objects in the heaps of a file come to an end.

    A file is read for that once, and again if it was written since: some files have thousands of
    data sets, for each of which they are opened.

    Parameters
    ----------
    path : path
        An HDF5 file, whose addresses and lengths have eight bytes each, as they mostly have.

    Raises
    ------
    OSError
        If one does not, or goes past the end of its heap.
    """
    if not 0 < os.path.getsize(path) <= CHECKED_BYTES:
        return
    version = settled_version(path)
    if version is None:
        _check(os.fspath(path))
    else:
        _check_once(os.fspath(path), version)


def _check(path: str) -> None:
    content = _content(path)
    for found in _SIGNATURE.finditer(content):
        if not _is_chain(content, found.start()):
            raise OSError(
                f"{path} is damaged: its heap at byte {found.start():,} has no end, or two objects "
                "of one number. Fetch or convert the file again."
            )


@functools.lru_cache(maxsize=1024)
def _check_once(path: str, version: tuple[int, ...]) -> None:
    del version  # It is part of what is remembered; errors are not.
    _check(path)


def _content(path: str) -> bytes | mmap.mmap:
    with open(path, "rb") as file:
        # While a file of a network is mapped, a server that fails would end the process.
        if not is_local(file.fileno()):
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _is_chain(content: bytes | mmap.mmap, start: int) -> bool:
    (size,) = struct.unpack_from("<Q", content, start + 8) if start + 16 <= len(content) else (0,)
    end = start + size
    if end > len(content):
        # HDF5 says that it is past the end of the file, when it gets there.
        return True
    place = start + _HEADER
    seen = set()
    while place + _HEADER <= end:
        index, length = struct.unpack_from("<H6xQ", content, place)
        # The free space, number 0, counts its header in; what follows the others is aligned.
        step = _HEADER + (length + 7) // 8 * 8 if index else length
        if step < 1 or place + step > end or index in seen:
            return False
        seen.add(index)
        place += step
    return True


def check_lengths(dataset: h5py.Dataset) -> None:
    """Check that examples of variable length are not longer than their file.

    Parameters
    ----------
    dataset : h5py.Dataset
        Any data set of an open file. Only those in one piece are looked at, in files whose
        addresses and lengths have eight bytes each.

    Raises
    ------
    OSError
        If one is.
    """
    base = h5py.check_vlen_dtype(dataset.dtype)
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    if not dataset.dtype.hasobject or (base is None and not is_text) or not dataset.size:
        return
    file, offset = dataset.file, dataset.id.get_offset()
    if file.id.get_create_plist().get_sizes() != (8, 8):
        return
    if offset is None or file.driver != "sec2" or dataset.id.get_storage_size() % _PLACE.itemsize:
        return
    size = os.fstat(file.id.get_vfd_handle()).st_size
    content = os.pread(file.id.get_vfd_handle(), dataset.id.get_storage_size(), offset)
    places = numpy.frombuffer(content, _PLACE, len(content) // _PLACE.itemsize)
    itemsize = 1 if base is None or is_text else numpy.dtype(base).itemsize
    if (places["f0"] > size // itemsize).any() or (places["f1"] >= size).any():
        raise OSError(
            f"{file.filename} is damaged: {dataset.name} has examples that are longer than the "
            "file, or beyond its end. Fetch or convert the file again."
        )
