"""Reading tar and zip archives that nobody vouches for.

Nothing is extracted: members are read into memory, one at a time, and their names never become
paths. Before memory is taken, a member must say that it is small enough. Whatever is damaged is a
ValueError that names the archive.
"""

import contextlib
import gzip
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

MEMBER_BYTES = 2**28
HEADER_BYTES = 2**20
BLOCK = 512
# Members that tarfile reads into memory by itself: long names and extended headers.
HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
# What Python's readers raise on damage; zipfile says RuntimeError to encrypted members and
# NotImplementedError to methods that it does not know.
DAMAGE = (
    OSError,
    EOFError,
    zlib.error,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    RuntimeError,
    NotImplementedError,
    UnicodeDecodeError,
    OverflowError,
)


def read_tar(
    archive: str | os.PathLike[str] | IO[bytes], name: str, limit: int = MEMBER_BYTES
) -> Iterator[tuple[str, bytes]]:
    """Read the files in a tar archive, in its order.

    Parameters
    ----------
    archive : path, or file open for bytes
        The archive. A path is read through gzip if it is packed.
    name : str
        What to call it in errors.
    limit : int, optional
        How many bytes a member may have.

    Yields
    ------
    name : str
        Of a regular file; links, devices and folders are passed over.
    content : bytes
        What it holds.

    Raises
    ------
    ValueError
        If the archive is damaged, is cut short, or a member is larger than `limit`. Whether the
        whole of a packed archive is right is only known at its end.
    """
    try:
        with contextlib.ExitStack() as stack:
            file: Any = archive
            if not hasattr(archive, "read"):
                file = stack.enter_context(_open(archive))
            tar = stack.enter_context(tarfile.open(fileobj=file, mode="r:", tarinfo=_Member))
            yield from _members(tar, name, limit)
            _check_tail(file, name)
    except DAMAGE as error:
        raise ValueError(
            f"{name} cannot be read as a tar archive: {error}. Fetch it again."
        ) from error


class _Damage(OSError):
    """What tarfile passes over in silence."""


class _Member(tarfile.TarInfo):
    """A member whose header is right: of a wrong one in the middle, tarfile says nothing."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> Any:
        try:
            member = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == BLOCK and not any(buf):
                raise
            raise _Damage("it is cut short, or a header is damaged") from error
        if member.size < 0 or (member.type in HEADERS and member.size > HEADER_BYTES):
            raise _Damage(f"a header says {member.size:,} bytes")
        return member


def _open(path: Any) -> IO[bytes]:
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else open(path, "rb")


def _members(tar: tarfile.TarFile, name: str, limit: int) -> Iterator[tuple[str, bytes]]:
    offset = -1
    while (member := tar.next()) is not None:
        # Sizes in extended headers could lead back, and round in a circle.
        if member.offset_data <= offset or member.size < 0:
            raise _Damage("its members do not follow each other")
        offset = member.offset_data
        if not member.isreg():
            continue
        if member.size > limit:
            raise ValueError(
                f"{name}: the member {member.name!r} says {member.size:,} bytes; at most "
                f"{limit:,} were expected."
            )
        file: Any = tar.extractfile(member)
        content = file.read()
        if len(content) != member.size:
            raise _Damage("it is cut short")
        yield member.name, content
        # Else tarfile keeps a list of them all.
        tar.members = []  # type: ignore[attr-defined]


def _check_tail(file: Any, name: str) -> None:
    """Read to the end, where gzip has its check sum; what stands there is padding of zeros."""
    left = file.read(HEADER_BYTES)
    if any(left) or file.read(1):
        raise _Damage("something follows its end")


class ZipImages:
    """The members of a zip archive, read by name, each checked by its CRC.

    Parameters
    ----------
    path : path
        The archive.
    limit : int, optional
        How many bytes a member may have.

    Attributes
    ----------
    names : tuple of str
        Of the members that are files, in the order of the archive.

    Raises
    ------
    ValueError
        If it cannot be read, or names a member twice.
    """

    def __init__(self, path: str | os.PathLike[str], limit: int = MEMBER_BYTES) -> None:
        self._path = os.fspath(path)
        self._limit = limit
        try:
            self._zip = zipfile.ZipFile(path)
        except DAMAGE as error:
            raise self._damaged(error) from error
        self.names = tuple(info.filename for info in self._zip.infolist() if not info.is_dir())
        folders = [info for info in self._zip.infolist() if info.is_dir()]
        if len(set(self.names)) != len(self.names) or any(info.file_size for info in folders):
            self.close()
            raise ValueError(
                f"{self._path} names a member twice, or a folder with content. Fetch it again."
            )

    def read(self, name: str) -> bytes:
        """Read a member.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        bytes
            What it holds.

        Raises
        ------
        ValueError
            If there is none of that name, it is damaged, or larger than the limit.
        """
        try:
            info = self._zip.getinfo(name)
        except KeyError as error:
            raise ValueError(f"{self._path} has no member {name!r}.") from error
        if info.file_size > self._limit:
            raise ValueError(
                f"{self._path}: the member {name!r} says {info.file_size:,} bytes; at most "
                f"{self._limit:,} were expected."
            )
        try:
            content = self._zip.read(info)
        except DAMAGE as error:
            raise self._damaged(error) from error
        if len(content) != info.file_size:
            raise self._damaged("a member is cut short")
        return content

    def close(self) -> None:
        """Close the archive."""
        self._zip.close()

    def __enter__(self) -> "ZipImages":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _damaged(self, reason: Any) -> ValueError:
        return ValueError(
            f"{self._path} cannot be read as a zip archive: {reason}. Fetch it again."
        )
