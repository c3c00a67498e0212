"""Digests of plain data and of files, the same in every process."""

import hashlib
import json
import os
from typing import Any

import numpy


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
    if isinstance(value, numpy.generic) and value.dtype != object:
        return value.item()
    if isinstance(value, numpy.ndarray) and value.dtype != object:
        content = hashlib.blake2b(numpy.ascontiguousarray(value).tobytes(), digest_size=16)
        return {"dtype": value.dtype.str, "shape": value.shape, "content": content.hexdigest()}
    raise TypeError(f"digest: expected plain data, got {type(value).__name__}: {value!r}")


def file_digest(path: str | os.PathLike[str], algorithm: str = "sha256") -> str:
    """Digest the bytes of a file.

    Parameters
    ----------
    path : path
        The file, read once, in pieces.
    algorithm : str
        A name that `hashlib.new` knows.

    Returns
    -------
    str
        The digest in hexadecimal digits.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
