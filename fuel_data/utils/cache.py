"""Copies of files on slow storage, on a disk of this machine.

If the setting `local_data_path` names a folder, `cache_file` copies a file into it and gives the
path of the copy; `H5PYDataset` reads through it. The folder has a folder for each content of each
file::

    KEY/NAME       the copy, with the time and permissions of the original
    KEY/used       touched when the copy is used, and locked by the processes that use it
    KEY/copying    locked by the process that copies
    lock           locked while room is made

KEY is a digest of the file's path, size, time and a sample of its bytes, so files of one name do
not meet, and a file that has changed is copied anew. A copy is written beside its place, flushed
and renamed, so it is whole or not there; what a process left that was killed is removed by the next
one that wants the file or its room. When room is needed, copies that nobody uses are removed, those
first that were used longest ago. The setting `max_disk_usage` says how full the disk may become.
"""

import contextlib
import logging
import os
import re
import shutil
import stat
import threading
from pathlib import Path

from fuel_data.utils.digests import digest, fingerprint
from fuel_data.utils.disk import has_room
from fuel_data.utils.files import wait_for_disk
from fuel_data.utils.lock import locked, take_lock

logger = logging.getLogger(__name__)

_PART = ".part"
_PIECE = 2**24
_LOCKS = {"copying", "used"}
_KEY = re.compile("[0-9a-f]{32}")
# What this process uses, held until it ends: folder of the copy → descriptor of its lock.
_in_use: dict[str, int] = {}
_threads = threading.Lock()


def _begin_in_child() -> None:
    # The lock may be held by a thread that is not in this child.
    global _threads
    _threads = threading.Lock()


os.register_at_fork(after_in_child=_begin_in_child)


def cache_file(path: str | os.PathLike[str]) -> str:
    """Give the path of a local copy of a file, which is made if it is not there.

    The copy stays until this process ends, at least.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    str
        The copy, equal to the file as it is now. The file itself if no `local_data_path` is set,
        if there is no such file, if it lies in that folder anyway, or if it could not be copied:
        a warning in the log says why.
    """
    from fuel_data.config_parser import config

    path = os.fspath(path)
    root = os.path.expandvars(os.path.expanduser(config.local_data_path))
    if not root or not os.path.isfile(path):
        return path
    original, root = os.path.realpath(path), os.path.realpath(root)
    if os.path.commonpath([original, root]) == root:
        return path
    try:
        os.makedirs(root, exist_ok=True)
        with _threads:
            return str(_Copy(original, Path(root), config.max_disk_usage).get())
    except OSError as error:
        logger.warning("%s is read where it is, not copied to %s: %s", path, root, error)
        return path


def copy_from_server_to_local(
    remote_path: str | os.PathLike[str], local_path: str | os.PathLike[str]
) -> None:
    """Copy a file, with its time, permissions and (if that may be) group, whole or not at all.

    Parameters
    ----------
    remote_path : path
        The file.
    local_path : path
        Where the copy goes; its folder must exist.

    Raises
    ------
    OSError
        If it cannot be copied, or changes meanwhile. Nothing is left behind.
    """
    part = Path(f"{os.fspath(local_path)}.{os.getpid()}.{threading.get_ident()}{_PART}")
    try:
        _reserve(part, os.path.getsize(remote_path))
        _fill(remote_path, part)
        os.replace(part, local_path)
    finally:
        part.unlink(missing_ok=True)


def _reserve(part: Path, size: int) -> None:
    """Take the room of a file on the disk before its bytes come."""
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        if size and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)


def _fill(original: str | os.PathLike[str], part: Path) -> None:
    before = os.stat(original)
    with open(original, "rb") as source, open(part, "r+b") as target:
        shutil.copyfileobj(source, target, _PIECE)
        target.truncate()
    after = os.stat(original)
    if _version(before) != _version(after) or part.stat().st_size != after.st_size:
        raise OSError(f"{os.fspath(original)} changed while it was copied")
    shutil.copystat(original, part)
    try:
        os.chown(part, -1, after.st_gid)
    except PermissionError:
        # What the original lets its group do is not for the group of this process.
        os.chmod(part, stat.S_IMODE(after.st_mode) & ~stat.S_IRWXG)
    wait_for_disk(part)


def _version(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


class _Copy:
    """The copy of a file as it is now.

    Parameters
    ----------
    original : str
        Its path, without links.
    root : Path
        Folder of all copies.
    max_disk_usage : float
        The part of its disk that may be full when the copy is there.
    """

    def __init__(self, original: str, root: Path, max_disk_usage: float) -> None:
        self.original = original
        self.root = root
        self.max_disk_usage = max_disk_usage
        self.fingerprint = fingerprint(original)
        parts = [original, *_version(os.stat(original)), self.fingerprint["content"]]
        self.folder = root / digest(parts)
        self.path = self.folder / os.path.basename(original)

    def get(self) -> Path:
        """Make the copy if it is not there, and keep it from being removed."""
        # A copy may be removed between the moment it is there and the one it is locked.
        while True:
            if self._use():
                return self.path
            self._make()

    def _use(self) -> bool:
        """Lock the copy for this process, if it is there and right."""
        key = str(self.folder)
        if not self.folder.is_dir():
            return False
        with contextlib.suppress(FileNotFoundError):
            used = self.folder / "used"
            descriptor = _in_use.get(key)
            new = None if descriptor is not None else take_lock(used, shared=True)
            try:
                if self._is_right():
                    os.utime(used)
                    if new is not None:
                        _in_use[key], new = new, None
                    return True
            finally:
                if new is not None:
                    os.close(new)
        return False

    def _is_right(self) -> bool:
        return self.path.is_file() and fingerprint(str(self.path)) == self.fingerprint

    def _make(self) -> None:
        self.folder.mkdir(exist_ok=True)
        try:
            copying = take_lock(self.folder / "copying")
        except FileNotFoundError:
            # Another process has just removed the folder.
            return
        assert copying is not None
        try:
            # Another process may have made it while this one waited.
            if not self._is_right():
                self._copy()
        except BaseException:
            _remove_if_empty(self.folder)
            raise
        finally:
            os.close(copying)

    def _copy(self) -> None:
        for leftover in self.folder.glob(f"*{_PART}"):
            leftover.unlink()
        part = self.folder / f"{self.path.name}{_PART}"
        logger.info("copying %s to %s", self.original, self.path)
        try:
            with locked(self.root / "lock"):
                _make_room(self.root, self.fingerprint["size"], self.max_disk_usage)
                _reserve(part, self.fingerprint["size"])
            _fill(self.original, part)
            if fingerprint(str(part)) != self.fingerprint:
                raise OSError(f"{self.original} changed while it was copied")
            (self.folder / "used").touch()
            os.replace(part, self.path)
            wait_for_disk(self.folder)
        finally:
            part.unlink(missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    left = {entry.name for entry in folder.iterdir()} - _LOCKS
    if not left:
        shutil.rmtree(folder, ignore_errors=True)


def _make_room(root: Path, size: int, max_disk_usage: float) -> None:
    """Remove copies that nobody uses until a file of this size may be written."""
    if has_room(root, size, max_disk_usage):
        return
    for folder in _by_last_use(root):
        _remove_unused(folder)
        if has_room(root, size, max_disk_usage):
            return
    raise OSError(
        f"{size:,} bytes more would fill its disk to over {max_disk_usage:.0%}, which the setting "
        "`max_disk_usage` says, and no copy is there that nobody uses"
    )


def _by_last_use(root: Path) -> list[Path]:
    """List the folders of copies; first those of copies that were never finished."""
    times = {}
    for folder in root.iterdir():
        if _KEY.fullmatch(folder.name):
            used = folder / "used"
            with contextlib.suppress(FileNotFoundError):
                times[folder] = used.stat().st_mtime_ns if used.exists() else 0
    return sorted(times, key=lambda folder: (times[folder], folder.name))


def _remove_unused(folder: Path) -> None:
    """Remove a copy, unless a process uses or makes it."""
    # Another process that waits for a lock may put its lock file into the folder at any moment.
    with contextlib.suppress(OSError), contextlib.ExitStack() as locks:
        for name in sorted(_LOCKS):
            descriptor = take_lock(folder / name, wait=False)
            if descriptor is None:
                return
            locks.callback(os.close, descriptor)
        logger.info("removing %s to make room", folder)
        for path in folder.iterdir():
            if path.name not in _LOCKS:
                path.unlink()
        # Who copies next holds `copying`, and needs `used` to stay from then on.
        for name in ("used", "copying"):
            (folder / name).unlink()
        folder.rmdir()
