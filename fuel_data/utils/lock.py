"""Locks between processes, which end with the process that holds them.

The system holds these locks (``flock``), so nobody has to guess whether the owner of a lock still
lives: when it ends, however it ends, the lock is free. Nothing is refreshed, nothing times out, and
no lock is ever taken from a process that works.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator

# What this process holds: the path of what is locked → its descriptors, the last taken last.
_readlocks: dict[str, list[int]] = {}
_writelocks: dict[str, list[int]] = {}
# The one lock of `get_lock`: for each time that it was taken, its folder and its descriptor.
_lock: list[tuple[str, int]] = []


def _begin_in_child() -> None:
    """Let a child that was forked hold none of these: they are its parent's, to keep or give back.

    The descriptor that the child has of each would keep it locked after the parent let go of it.
    """
    held = [*_readlocks.values(), *_writelocks.values(), [descriptor for _, descriptor in _lock]]
    for descriptor in {descriptor for descriptors in held for descriptor in descriptors}:
        os.close(descriptor)
    for locks in (_readlocks, _writelocks, _lock):
        locks.clear()


os.register_at_fork(after_in_child=_begin_in_child)


def take_lock(
    path: str | os.PathLike[str], *, shared: bool = False, wait: bool = True
) -> int | None:
    """Lock a lock file, made if it is not there.

    Parameters
    ----------
    path : path
        The lock file. Whoever removes it must hold it alone.
    shared : bool, optional
        Whether others may hold it, too, if they share it.
    wait : bool, optional
        Whether to wait until it is free.

    Returns
    -------
    int or None
        A descriptor that holds the lock until it is closed; None if it was not free, without
        `wait`.

    Raises
    ------
    OSError
        If the file cannot be made.
    """
    operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, operation)
            if _is_still_there(descriptor, path):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        # While this process waited, another one removed the file that it locked.
        os.close(descriptor)


def _is_still_there(descriptor: int, path: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], *, shared: bool = False) -> Iterator[None]:
    """Hold a lock file while the block runs.

    Parameters
    ----------
    path : path
        The lock file, made if it is not there.
    shared : bool, optional
        Whether others may hold it, too, if they share it.

    Yields
    ------
    None
        The block holds the lock.
    """
    descriptor = take_lock(path, shared=shared)
    assert descriptor is not None
    try:
        yield
    finally:
        os.close(descriptor)


def _lock_file(path: str | os.PathLike[str]) -> str:
    return f"{os.path.abspath(path)}.lock"


def get_readlock(pid: int | None, path: str | os.PathLike[str]) -> None:
    """Keep others from writing a file, as far as they ask by `get_writelock`.

    It waits for them. The lock is a file of the same name with ``.lock`` after it.

    Parameters
    ----------
    pid : int or None
        Of no use any more: the system knows whose a lock is. It stands here as in Fuel.
    path : path
        The file. It need not exist.
    """
    del pid
    _take(_readlocks, path, shared=True)


def release_readlock(path: str | os.PathLike[str]) -> None:
    """Give back what `get_readlock` took; the end of the process does so, too.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    ValueError
        If this process has no such lock.
    """
    _give_back(_readlocks, path, "get_readlock")


def get_writelock(filename: str | os.PathLike[str]) -> None:
    """Keep others from reading and writing a file, as far as they ask by such locks.

    It waits until nobody has one. A process that has a lock on the file already would wait for
    ever; give that back first.

    Parameters
    ----------
    filename : path
        The file. It need not exist.
    """
    _take(_writelocks, filename, shared=False)


def release_writelock(filename: str | os.PathLike[str]) -> None:
    """Give back what `get_writelock` took; the end of the process does so, too.

    Parameters
    ----------
    filename : path
        The file.

    Raises
    ------
    ValueError
        If this process has no such lock.
    """
    _give_back(_writelocks, filename, "get_writelock")


def _take(held: dict[str, list[int]], path: str | os.PathLike[str], *, shared: bool) -> None:
    descriptor = take_lock(_lock_file(path), shared=shared)
    assert descriptor is not None
    held.setdefault(os.path.abspath(path), []).append(descriptor)


def _give_back(held: dict[str, list[int]], path: str | os.PathLike[str], by: str) -> None:
    descriptors = held.get(os.path.abspath(path))
    if not descriptors:
        raise ValueError(f"This process has no lock on {os.fspath(path)!r} by {by}.")
    os.close(descriptors.pop())


def get_lock(lock_dir: str | os.PathLike[str]) -> None:
    """Take the one lock of a folder; taken again by its holder it only counts.

    Parameters
    ----------
    lock_dir : path
        The folder, made if it is not there. The lock is the file ``lock`` in it.

    Raises
    ------
    ValueError
        If this process holds the lock of another folder.
    """
    folder = os.path.realpath(lock_dir)
    if not _lock:
        os.makedirs(folder, exist_ok=True)
        descriptor = take_lock(os.path.join(folder, "lock"))
        assert descriptor is not None
        _lock.append((folder, descriptor))
        return
    held, _ = _lock[0]
    if folder != held:
        raise ValueError(
            f"get_lock: this process holds the lock of {held}; release it before "
            f"{os.fspath(lock_dir)}."
        )
    _lock.append(_lock[0])


def release_lock() -> None:
    """Give back what `get_lock` took last.

    Raises
    ------
    ValueError
        If this process does not hold the lock.
    """
    if not _lock:
        raise ValueError("release_lock: this process holds no lock of get_lock.")
    _, descriptor = _lock.pop()
    if not _lock:
        os.close(descriptor)
