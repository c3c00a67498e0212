"""Digests of plain data and of files, the same in every process."""

import functools
import hashlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy

#: Bytes of a file that its fingerprint looks at: all of a smaller file, blocks all over a larger.
SAMPLE_BYTES = 2**22
NUM_SAMPLES = 64
_PIECE_BYTES = 2**20
# Scalars of numpy of these types are written as the bool, int or float that they are.
_NUMBERS_OF_PYTHON = "?bBhHiIlLqQefd"
# A file that was written so shortly ago may be written again without another time.
_SETTLED_NANOSECONDS = 2 * 10**9


def digest(plain: Any) -> str:
    """Digest plain data.

    Parameters
    ----------
    plain : None, bool, int, float, str, array, or list, tuple and dict of them
        The keys of a dict are strings; their order does not count. Tuples count as lists.

    Returns
    -------
    str
        32 hexadecimal digits, the same in every process and on every machine.

    Raises
    ------
    TypeError
        If something in `plain` is not plain data.
    """
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), default=_array_summary)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _array_summary(value: Any) -> Any:
    if isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype != object:
        if isinstance(value, numpy.generic) and value.dtype.char in _NUMBERS_OF_PYTHON:
            return value.item()
        content = hashlib.blake2b(_array_bytes(value), digest_size=16)
        return {"dtype": value.dtype.str, "shape": value.shape, "content": content.hexdigest()}
    raise TypeError(f"digest: expected plain data, got {type(value).__name__}: {value!r}")


def _array_bytes(value: Any) -> bytes:
    if value.dtype.char in "gG":
        # In memory extended precision is padded with whatever was there.
        return " ".join(map(str, value.flat)).encode()
    return numpy.ascontiguousarray(value).tobytes()


def file_digest(
    path: str | os.PathLike[str],
    algorithm: str = "sha256",
    progress: Callable[[int], None] | None = None,
) -> str:
    """Digest the bytes of a file.

    Parameters
    ----------
    path : path
        The file, read once, in pieces.
    algorithm : str
        A name that `hashlib.new` knows.
    progress : function, optional
        Called with the number of bytes read since the last call.

    Returns
    -------
    str
        The digest in hexadecimal digits.
    """
    content = hashlib.new(algorithm)
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(_PIECE_BYTES):
            content.update(piece)
            if progress is not None:
                progress(len(piece))
    return content.hexdigest()


def fingerprint(path: str) -> dict[str, Any]:
    """Tell one content of a file from another, quickly.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    dict of plain data
        Its size and a digest of up to 4 MiB of its bytes: all of them if it has no more, otherwise
        its first, its last and 62 blocks between. Copies have one fingerprint.
    """
    size = os.path.getsize(path)
    content = hashlib.blake2b(digest_size=16)
    with open(path, "rb", buffering=0) as file:
        if size <= SAMPLE_BYTES:
            content.update(file.read(size))
        else:
            length = SAMPLE_BYTES // NUM_SAMPLES
            for number in range(NUM_SAMPLES):
                file.seek((size - length) * number // (NUM_SAMPLES - 1))
                content.update(file.read(length))
    return {"size": size, "content": content.hexdigest()}


def known_fingerprint(path: str) -> dict[str, Any]:
    """Give the fingerprint of a file, which is read only if it was written since this was asked.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    dict of plain data
        As of `fingerprint`.
    """
    version = settled_version(path)
    return fingerprint(path) if version is None else dict(_fingerprint_of(path, version))


@functools.lru_cache(maxsize=1024)
def _fingerprint_of(path: str, version: tuple[int, ...]) -> dict[str, Any]:
    del version  # It is part of what is remembered.
    return fingerprint(path)


def settled_version(path: str | os.PathLike[str] | int) -> tuple[int, ...] | None:
    """Tell versions of a file apart without reading it.

    Parameters
    ----------
    path : path or int
        The file, or the descriptor of an open one.

    Returns
    -------
    tuple of int, or None
        Device, number, size and times: equal as long as nobody writes the file or puts another in
        its place. None if it was written in the last two seconds: then it may be written again
        without another time.
    """
    found = os.stat(path)
    times = found.st_mtime_ns, found.st_ctime_ns
    if time.time_ns() - max(times) < _SETTLED_NANOSECONDS:
        return None
    return found.st_dev, found.st_ino, found.st_size, *times
