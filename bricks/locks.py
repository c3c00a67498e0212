"""A claim of a running loop to the files that it writes checkpoints to.

Two runs that write to one file would overwrite each other's checkpoints. A claim is a file
``.<name>.lock`` beside the checkpoint, locked with ``flock``: it says which process has it, ends
with the process however that dies, and is removed at the end of the run. On NFS the lock holds
between machines too, if the server has locks; where it has none, and where no file can be made,
nothing is claimed.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterable, Iterator


class CheckpointInUse(RuntimeError):
    """Another run is writing checkpoints to the same file."""


@contextlib.contextmanager
def claimed(paths: Iterable[str | os.PathLike[str]]) -> Iterator[None]:
    """Give a context in which no other run may write to the same files.

    Parameters
    ----------
    paths : iterable of path
        Of the checkpoints.

    Yields
    ------
    None

    Raises
    ------
    CheckpointInUse
        If another run, of this process or another, has claimed one of them.
    """
    with contextlib.ExitStack() as stack:
        # One file has one claim, also if it has two names or two extensions write to it.
        for path in sorted({os.path.realpath(path) for path in paths}):
            folder, name = os.path.split(path)
            stack.enter_context(_lock(path, os.path.join(folder, f".{name}.lock")))
        yield


@contextlib.contextmanager
def _lock(path: str, lock_path: str) -> Iterator[None]:
    try:
        descriptor = _open_locked(lock_path)
    except BlockingIOError:
        raise CheckpointInUse(
            f"MainLoop.run: {path} belongs to another run that is still going on: "
            f"{_owner(lock_path)}. Wait for its end or stop it, or give this run's `Checkpoint` "
            "another path."
        ) from None
    except OSError:
        # A missing folder or one that is not to be written to, which `Checkpoint` tells in its
        # own words, or a file system without locks.
        yield
        return
    try:
        words = f"process {os.getpid()} on {socket.gethostname()}"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, words.encode(), 0)
        yield
    finally:
        # While it is still locked, so that nobody's else is removed.
        with contextlib.suppress(OSError):
            os.unlink(lock_path)
        os.close(descriptor)


def _open_locked(lock_path: str) -> int:
    while True:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, lock_path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # It was removed by its last owner between the opening and the locking.
        os.close(descriptor)


def _is_at(descriptor: int, lock_path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(lock_path))
    except FileNotFoundError:
        return False


def _owner(lock_path: str) -> str:
    with contextlib.suppress(OSError), open(lock_path, encoding="utf-8") as file:
        return file.read() or "a process that has just begun"
    return "a process that has just ended"
