"""A look at the heaps of an HDF5 file before HDF5 reads them.

What has variable length is kept in heaps: chains of objects, each with its size. HDF5 follows a
damaged chain without end, inside a call that nothing can interrupt; so the chains are followed here
first. The layout is in the HDF5 File Format Specification, "Disk Format: Level 1E, Global Heap".
"""

import mmap
import os
import re
import struct

#: Heaps of larger files are not looked at: it would take too long.
CHECKED_BYTES = 2**26
_SIGNATURE = re.compile(rb"GCOL\x01\x00\x00\x00")
_HEADER = 16


def check_heaps(path: str | os.PathLike[str]) -> None:
    """Check that the chains of objects in the heaps of a file come to an end.

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
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for found in _SIGNATURE.finditer(content):
            if not _is_chain(content, found.start()):
                raise OSError(
                    f"{os.fspath(path)} is damaged: its heap at byte {found.start():,} has no end, "
                    "or two objects of one number. Fetch or convert the file again."
                )


def _is_chain(content: mmap.mmap, start: int) -> bool:
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
