"""The file of a checkpoint: arrays and bytes by name in one zip, written whole or not at all.

The zip is stored, not compressed. An array called ``name`` is the member ``name.npy``, so that
``numpy.load(path)[name]`` works for anyone who has numpy; other members are plain bytes. The
last member, ``manifest.json``, holds what the writer wants to say about the file and the digest
of every member, which is checked whenever a member is read: nothing of a damaged file is used.
Arrays have the CRC that a zip needs in any case, since a stronger digest would take as long as
writing them; the other members, which may run code when they are unpickled, have SHA-256.

This module knows nothing of main loops; `bricks.serialization` says what goes into a checkpoint.
"""

import hashlib
import io
import json
import os
import tarfile
import zipfile
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Any

import numpy
from numpy.lib import format as npy

from fuel_data.utils.files import atomic_write
from fuel_data.utils.names import nearest_name

Target = str | os.PathLike[str] | IO[bytes]

FORMAT_NAME = "firebrick archive"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_PIECE = 1 << 20


class DamagedArchive(ValueError):
    """The file is an archive of ours, but truncated or changed."""


class ForeignFile(ValueError):
    """The file is something else than an archive that this version can read."""


class ArchiveWriter:
    """Write an archive member by member, in one pass.

    Used as a context manager. The members go to a temporary file beside `path`, which takes the
    place of `path` when the block ends well; whatever goes wrong, the old file is still there.

    Parameters
    ----------
    path : path or binary file
        The file to write. Its folder must exist. An open file is written to as it is.
    manifest : dict
        Plain data for JSON, written under its own keys beside ``format`` and ``members``. It may
        be changed until the block ends.

    Raises
    ------
    OSError
        If the folder is missing or the disk is full.
    """

    def __init__(self, path: Target, manifest: dict[str, Any] | None = None):
        self.path = _name_of(path)
        self._target = path
        self.manifest = {} if manifest is None else manifest
        self._members: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> "ArchiveWriter":
        with ExitStack() as stack:
            file: Any = self._target
            if isinstance(file, str | os.PathLike):
                file = stack.enter_context(atomic_write(file))
            self._zip = stack.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_STORED))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._stack as stack:
            if error is not None:
                stack.__exit__(kind, error, traceback)
                return
            manifest = {
                "format": {"name": FORMAT_NAME, "version": FORMAT_VERSION},
                **self.manifest,
                "members": self._members,
            }
            self._write(MANIFEST, [json.dumps(manifest, indent=1).encode()])

    def add_array(self, name: str, array: numpy.ndarray) -> None:
        """Write one array as the member ``name.npy``.

        Parameters
        ----------
        name : str
            Its name, new in this archive.
        array : array
            Any shape and any dtype that an ``.npy`` file can hold without pickling.

        Raises
        ------
        ValueError
            If the name is taken, or the dtype would not come back as it was.
        """
        array = numpy.asarray(array)
        _check_dtype(self.path, name, array.dtype)
        member = name + ".npy"
        self._add(member, _npy_pieces(array))
        self._members[member] |= {"dtype": str(array.dtype), "shape": list(array.shape)}

    def add_member(self, name: str, content: bytes) -> None:
        """Write bytes as a member.

        Parameters
        ----------
        name : str
            Its name, new in this archive, not ending in ``.npy``.
        content : bytes
            What it holds.

        Raises
        ------
        ValueError
            If the name is taken or ends in ``.npy``.
        """
        if name.endswith(".npy"):
            raise ValueError(
                f"{self.path}: the member {name!r} would read as an array; use `add_array`."
            )
        self._add(name, [content])
        self._members[name]["sha256"] = hashlib.sha256(content).hexdigest()

    def _add(self, name: str, pieces: list[Any]) -> None:
        if not name or "\0" in name:
            raise ValueError(f"{self.path}: {name!r} cannot be the name of a member of a zip.")
        if name in self._members or name == MANIFEST:
            raise ValueError(f"{self.path}: there are two members called {name!r}.")
        self._members[name] = self._write(name, pieces)

    def _write(self, name: str, pieces: list[Any]) -> dict[str, Any]:
        info = zipfile.ZipInfo(name)
        info.file_size = sum(memoryview(piece).nbytes for piece in pieces)
        info.external_attr = 0o600 << 16
        with self._zip.open(info, "w") as file:
            for piece in pieces:
                file.write(piece)
        return {"bytes": info.file_size, "crc32": f"{info.CRC:08x}"}


class Archive:
    """Read an archive. What is read is first checked against its digest.

    Used as a context manager. Nothing is ever unpickled here.

    Parameters
    ----------
    path : path or binary file
        The file to read; an open file can be sought.

    Attributes
    ----------
    manifest : dict
        What ``manifest.json`` holds.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the nearest name in its folder is named.
    DamagedArchive
        If the file is truncated or was changed.
    ForeignFile
        If it is no archive, or one of a newer format.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> with ArchiveWriter(file) as writer:
    ...     writer.add_array("/mlp/linear_0.W", numpy.eye(2))
    ...     writer.add_member("note", b"trained")
    >>> with Archive(file) as archive:
    ...     archive.names(), archive["/mlp/linear_0.W"], archive.member("note")
    (['/mlp/linear_0.W'], array([[1., 0.],
           [0., 1.]]), b'trained')
    """

    def __init__(self, path: Target):
        self.path = _name_of(path)
        with ExitStack() as stack:
            file: Any = path
            if isinstance(path, str | os.PathLike):
                file = stack.enter_context(_open(path))
            self._size = file.seek(0, os.SEEK_END)
            self._zip = stack.enter_context(_open_zip(self.path, file))
            self.manifest = self._read_manifest()
            self._stack = stack.pop_all()

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    def names(self) -> list[str]:
        """Give the names of the arrays.

        Returns
        -------
        list of str
            In the order of writing, without ``.npy``.
        """
        return [name[: -len(".npy")] for name in self._members if name.endswith(".npy")]

    def member_names(self) -> list[str]:
        """Give the names of the members that are not arrays.

        Returns
        -------
        list of str
            In the order of writing, the manifest left out.
        """
        return [name for name in self._members if not name.endswith(".npy")]

    def __contains__(self, name: str) -> bool:
        return name + ".npy" in self._members

    def __getitem__(self, name: str) -> numpy.ndarray:
        if name not in self:
            raise KeyError(
                f"{self.path} holds no array {name!r}.{nearest_name(name, self.names())}"
            )
        return self._parse_array(name, self._checked(name + ".npy"))

    def _parse_array(self, name: str, content: bytearray) -> numpy.ndarray:
        try:
            return _array_in(content)
        except ValueError as error:
            raise DamagedArchive(f"{self.path}: {name!r} is no .npy file: {error}.") from error

    def member(self, name: str) -> bytes:
        """Read a member that is not an array.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        bytes
            What it holds, checked.

        Raises
        ------
        KeyError
            If there is no such member.
        DamagedArchive
            If it is not what was written.
        """
        known = self.member_names()
        if name not in known:
            raise KeyError(f"{self.path} holds no member {name!r}.{nearest_name(name, known)}")
        return bytes(self._checked(name))

    def verify(self) -> None:
        """Read every member once and check it.

        Raises
        ------
        DamagedArchive
            If one is not what was written.
        """
        for name in self._members:
            self._checked(name)

    def _read_manifest(self) -> dict[str, Any]:
        if MANIFEST not in self._zip.namelist():
            raise ForeignFile(
                f"{self.path} is a zip, but not one of ours: it has no {MANIFEST!r}. "
                "Expected a checkpoint that `dump` or the Checkpoint extension wrote."
            )
        manifest = self._parse_manifest(bytes(self._read(MANIFEST)))
        self._members: dict[str, dict[str, Any]] = manifest["members"]
        missing = sorted(set(self._members) - set(self._zip.namelist()))
        if missing:
            raise DamagedArchive(f"{self.path} is damaged: it lacks {', '.join(missing)}.")
        return manifest

    def _parse_manifest(self, text: bytes) -> dict[str, Any]:
        try:
            manifest = json.loads(text)
            name, version = manifest["format"]["name"], manifest["format"]["version"]
            manifest["members"].keys()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ForeignFile(
                f"{self.path} is a zip with a {MANIFEST!r} of another kind; expected a checkpoint."
            ) from error
        if name != FORMAT_NAME or version > FORMAT_VERSION:
            raise ForeignFile(
                f"{self.path} has the format {name!r} {version}; this version of firebrick reads "
                f"{FORMAT_NAME!r} up to {FORMAT_VERSION}. Read it with a newer one."
            )
        return manifest

    def _checked(self, name: str) -> bytearray:
        content = self._read(name)
        expected, crc = self._members[name], f"{self._zip.getinfo(name).CRC:08x}"
        # That the content has this CRC was checked when it was read.
        same = (len(content), crc) == (expected["bytes"], expected["crc32"])
        if "sha256" in expected:
            same = same and hashlib.sha256(content).hexdigest() == expected["sha256"]
        if not same:
            raise DamagedArchive(
                f"{self.path} is damaged: the member {name!r} is not what was written. "
                "Go back to an earlier checkpoint."
            )
        return content

    def _read(self, name: str) -> bytearray:
        try:
            info = self._zip.getinfo(name)
            content = bytearray(min(info.file_size, self._size))
            with self._zip.open(info) as file:
                _fill(content, file)
        # Whatever zipfile stumbles over in a damaged file: it raises some ten types.
        except Exception as error:
            raise DamagedArchive(
                f"{self.path} is damaged: the member {name!r} cannot be read ({error}). "
                "Go back to an earlier checkpoint."
            ) from error
        return content


def _fill(content: bytearray, file: IO[bytes]) -> None:
    view = memoryview(content)
    while view:
        piece = file.read(min(len(view), _PIECE))
        if not piece:
            raise EOFError(f"it ends {len(view)} bytes early")
        view[: len(piece)] = piece
        view = view[len(piece) :]
    if file.read(1):
        raise EOFError("it is longer than it says")


def _check_dtype(path: str, name: str, dtype: numpy.dtype) -> None:
    # Also catches bfloat16 and its like, which .npy files turn into nameless bytes.
    if dtype.hasobject or npy.descr_to_dtype(npy.dtype_to_descr(dtype)) != dtype:
        raise ValueError(
            f"{path}: the array {name!r} has dtype {dtype}, which an .npy file cannot hold "
            "without pickling. Convert it first, for example to float32 or to a string dtype."
        )


def _npy_pieces(array: numpy.ndarray) -> list[Any]:
    """The bytes of an ``.npy`` file: its header, and the array's own memory where possible."""
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = numpy.ascontiguousarray(array)
    file = io.BytesIO()
    try:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
    except (ValueError, UnicodeEncodeError):
        # Structured dtypes whose names are long or not Latin need a later header.
        npy.write_array(file, array, version=(3, 0), allow_pickle=False)
        return [file.getvalue()]
    flat = array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)
    return [file.getvalue(), flat.view(numpy.uint8).data if flat.size else b""]


def _array_in(content: bytearray) -> numpy.ndarray:
    """The array of an ``.npy`` file, over the file's own bytes."""
    start = io.BytesIO(content[:_PIECE])
    version = npy.read_magic(start)
    # The digest was right, so a long header is one that we wrote.
    limit: dict[str, Any] = {"max_header_size": _PIECE}
    if version != (1, 0):
        return npy.read_array(io.BytesIO(content), allow_pickle=False, **limit)
    shape, fortran_order, dtype = npy.read_array_header_1_0(start, **limit)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects")
    size, offset = int(numpy.prod(shape)), start.tell()
    flat: numpy.ndarray = numpy.ndarray(size, dtype, buffer=content, offset=offset)
    return flat.reshape(shape[::-1]).T if fortran_order else flat.reshape(shape)


def _name_of(target: Target) -> str:
    if isinstance(target, str | os.PathLike):
        return os.fspath(target)
    return str(getattr(target, "name", "the open file"))


def _open(path: Any) -> Any:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        folder, name = os.path.split(os.path.abspath(path))
        if not os.path.isdir(folder):
            hint = f" There is no folder {folder} either."
        else:
            ending = os.path.splitext(name)[1]
            others = [other for other in sorted(os.listdir(folder)) if other.endswith(ending)]
            hint = nearest_name(name, others[:100]) if others else " There is none in its folder."
        raise FileNotFoundError(f"There is no checkpoint {path}.{hint}") from None
    except IsADirectoryError:
        raise IsADirectoryError(
            f"{path} is a folder; expected the file of a checkpoint, such as "
            f"{os.path.join(path, 'checkpoint.zip')}."
        ) from None


def _open_zip(path: str, file: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except Exception as error:
        raise _what_else(path, file) from error


def _what_else(path: str, file: IO[bytes]) -> ValueError:
    """The error for a file that is no readable zip."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(512)
    if not start.strip(b"\0"):
        return DamagedArchive(f"{path} is damaged: {size} bytes, and they begin with no content.")
    if start.startswith(b"PK\x03\x04"):
        return DamagedArchive(
            f"{path} is damaged: it begins as a zip, but its end is missing or changed. "
            "Go back to an earlier checkpoint."
        )
    file.seek(0)
    if tarfile.is_tarfile(file):
        return ForeignFile(
            f"{path} is a tar archive, as Blocks wrote them; expected a zip. "
            "`load_parameters` reads the parameters of Blocks' checkpoints."
        )
    return ForeignFile(f"{path} is no checkpoint: it begins with {start[:16]!r}, not as a zip.")
