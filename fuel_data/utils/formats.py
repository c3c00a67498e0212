"""Opening files that may be compressed."""

import gzip
import os
import tarfile
from typing import IO, Any


def open_(filename: str | os.PathLike[str], mode: str = "r", encoding: str | None = None) -> IO:
    """Open a file, through gzip if its name ends in ``.gz``.

    Parameters
    ----------
    filename : path
        The file.
    mode : str, optional
        As for `open`; text unless it has a ``'b'``.
    encoding : str, optional
        Of a text; UTF-8 if not given.

    Returns
    -------
    file
        An open file, to be closed by the caller.

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    binary = "b" in mode
    if not binary:
        encoding = encoding or "utf-8"
    if os.fspath(filename).endswith(".gz"):
        # gzip takes 'r' for bytes, where `open` takes it for text.
        gzip_mode: Any = mode if binary else mode + "t"
        return gzip.open(filename, gzip_mode, encoding=encoding)
    return open(filename, mode, encoding=encoding)


def tar_open(path_or_file: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Open a tar archive for reading, compressed or not.

    Parameters
    ----------
    path_or_file : path, or file open for bytes
        The archive.

    Returns
    -------
    tarfile.TarFile
        It never extracts outside the folder it is told to (filter ``'data'``).

    Raises
    ------
    tarfile.ReadError
        If it is no tar archive.
    """
    source: dict[str, Any] = {"name": path_or_file}
    if hasattr(path_or_file, "read"):
        source = {"fileobj": path_or_file}
    archive = tarfile.open(mode="r:*", **source)  # noqa: SIM115 (the caller closes it)
    archive.extraction_filter = tarfile.data_filter
    return archive
