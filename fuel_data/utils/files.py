"""Files that are written whole or not at all."""

import contextlib
import errno
import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_PART = ".part"
_YOUNG_S = 60


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO]:
    """Give a file that takes the place of `path` when the block ends well.

    The bytes go to a temporary file in the same folder, which is flushed to the disk and then
    renamed. Whatever stops the block, the file that stood at `path` is still there, whole. What a
    process that was killed left beside it is removed when the file is next written.

    Parameters
    ----------
    path : path
        The file to write. Its folder must exist. A link stays, and what it leads to is written.
    mode : str
        ``'wb'`` for bytes, ``'w'`` for text in UTF-8.

    Yields
    ------
    file
        The temporary file, open in `mode`; it can be sought and read back if `mode` has ``'+'``.

    Raises
    ------
    OSError
        If the folder is missing, the disk is full, or what stands there is no file, as a device.
        Nothing is left behind.
    """
    _refuse_other_than_file(path)
    target = Path(os.path.realpath(path))
    encoding = None if "b" in mode else "utf-8"
    _remove_leftovers(target.parent, f".{glob.escape(target.name)}.*{_PART}")
    descriptor, temporary = tempfile.mkstemp(_PART, f".{target.name}.", target.parent)
    # As long as this is open, the temporary file is somebody's. It is so for a moment after it has
    # its name: readers that lock what they open, as HDF5 does, must be able to share the lock.
    owned = os.dup(descriptor)
    fcntl.flock(owned, fcntl.LOCK_SH)
    try:
        with open(descriptor, mode, encoding=encoding) as file:
            yield file
        move_into_place(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        os.close(owned)


@contextlib.contextmanager
def working_folder(parent: str | os.PathLike[str], prefix: str) -> Iterator[Path]:
    """Give a new folder that is removed when the block ends.

    Those that processes left when they were killed are removed when the next one is made.

    Parameters
    ----------
    parent : path
        Where to make it.
    prefix : str
        How its name begins; all folders in `parent` whose names begin so must be working folders.

    Yields
    ------
    Path
        The folder, of mode 0700.
    """
    _remove_leftovers(Path(parent), f"{glob.escape(prefix)}*")
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as folder:
        owned = os.open(folder, os.O_RDONLY)
        fcntl.flock(owned, fcntl.LOCK_EX)
        try:
            yield Path(folder)
        finally:
            os.close(owned)


def _remove_leftovers(folder: Path, pattern: str) -> None:
    """Remove temporary files and folders whose owners are gone."""
    for leftover in folder.glob(pattern):
        # Another process may be here too, or have made it and not locked it yet.
        with contextlib.suppress(OSError):
            if time.time() - leftover.lstat().st_mtime <= _YOUNG_S or _has_owner(leftover):
                continue
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink()


def _has_owner(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def move_into_place(temporary: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Put a finished file in the place of another, so that a power cut leaves one of them whole.

    Parameters
    ----------
    temporary : path
        The finished file, closed, on the same disk as `path`.
    path : path
        The file that it replaces, and whose permissions it takes. It need not exist.

    Raises
    ------
    OSError
        If the bytes cannot be written to the disk, or what stands there is no file.
    """
    _refuse_other_than_file(path)
    target = Path(path)
    wait_for_disk(temporary)
    os.chmod(temporary, _permissions(target))
    os.replace(temporary, target)
    # Without this a power cut after the rename may bring the old file back.
    wait_for_disk(target.parent)


def _refuse_other_than_file(path: str | os.PathLike[str]) -> None:
    """Refuse what would be gone if a file took its place, `/dev/null` for one."""
    path = os.fspath(path) or os.curdir
    if os.path.exists(path) and not os.path.isfile(path):
        reason = "There is something that is no file, choose another name"
        raise FileExistsError(errno.EEXIST, reason, path)


def _permissions(target: Path) -> int:
    """Permissions of the file that is replaced, or those that `open` would give a new one."""
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask


def wait_for_disk(path: str | os.PathLike[str]) -> None:
    """Wait until a file, or the list of files in a folder, is on the disk.

    Parameters
    ----------
    path : path
        The file or folder.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
