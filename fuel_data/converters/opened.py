"""The files that a converter reads, noticed while it runs.

Converters written for Fuel do not say which files they read; they are noticed when Python opens
them. What a library opens by itself, as h5py does, is not, unless the converter names it by
`check_exists`.
"""

import contextlib
import functools
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

_CODE = (".py", ".pyc")
_watchers: list["_Watcher"] = []


class _Watcher:
    """Collects what is opened for reading.

    Parameters
    ----------
    folder : path
        Where files are noticed, or one of them.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        folder = os.path.abspath(folder)
        self.folder = os.path.dirname(folder) if os.path.isfile(folder) else folder
        # A dict keeps the order.
        self._paths: dict[str, None] = {}

    def add(self, path: str) -> None:
        self._paths[os.path.abspath(path)] = None

    def found(self, left_out: str) -> list[str]:
        return [
            path
            for path in sorted(self._paths)
            if _is_in(path, self.folder)
            and not _is_in(path, left_out)
            and not path.endswith(_CODE)
            and os.path.isfile(path)
        ]


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))


def _notice(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not _watchers:
        return
    path, _, flags = arguments
    if isinstance(path, (str, bytes)) and flags & os.O_ACCMODE == os.O_RDONLY:
        notice([os.fsdecode(path)])


@functools.cache
def _begin_to_notice() -> None:
    # A hook sees every way in which Python opens files, and cannot be taken back.
    sys.addaudithook(_notice)


def notice(paths: Iterable[str]) -> None:
    """Say which files are read, where `watch_files` would not notice it.

    Parameters
    ----------
    paths : iterable of str
        The files.
    """
    for watcher in _watchers:
        for path in paths:
            watcher.add(path)


@contextlib.contextmanager
def watch_files(folder: str | os.PathLike[str], left_out: str) -> Iterator[list[str]]:
    """Notice which files of a folder are read while the block runs.

    Parameters
    ----------
    folder : path
        The folder, or one of the files in it.
    left_out : str
        A folder of which nothing is noticed, such as that of the output.

    Yields
    ------
    list of str
        Their absolute paths, in order, once the block has ended. Code is left out.
    """
    _begin_to_notice()
    watcher = _Watcher(folder)
    found: list[str] = []
    _watchers.append(watcher)
    try:
        yield found
    finally:
        _watchers.remove(watcher)
    found += watcher.found(os.path.abspath(left_out))
