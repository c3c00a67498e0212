"""Compiled programs, kept on disk for the next process.

JAX has a cache of compiled programs, one for a whole process. Here it serves our compilations and
no others: its settings are ours from the end of a trace to the end of the compilation, and the
user's again afterwards. The key of a program is made of the program, of the versions of JAX and
XLA and of their options. It knows of no processor, so each kind of processor, and each number of
them, has a folder of its own.

A cache never stops a run. What cannot be read is thrown away and compiled anew; a folder that
cannot be used is one warning, and then there is no cache. Processes that share a folder wait for
each other, and the entries that were not used for longest go first when there are too many.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import warnings
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
from jax import monitoring
from jax.experimental.compilation_cache import compilation_cache

from bricks.config import config
from bricks.xla.health import processor, processor_features

__all__ = ["Compilation"]

logger = logging.getLogger(__name__)
_jax_logger = logging.getLogger("jax._src.compilation_cache")

#: More than this is thrown away, oldest first.
_MAX_BYTES = 1 << 30

#: What JAX's warnings about its cache begin with.
_CANNOT_READ = "Error reading persistent compilation cache entry"
_CANNOT_WRITE = "Error writing persistent compilation cache entry"

_lock = threading.RLock()
_unusable: set[Path] = set()
_hits: list[str] = []


@cache
def _listen() -> None:
    """Let JAX tell when it finds a program."""

    def listener(event: str, **kwargs: Any) -> None:
        if event == "/jax/compilation_cache/cache_hits":
            _hits.append(event)

    monitoring.register_event_listener(listener)


def _number_of_processors() -> int:
    """Count the processors that XLA divides its work among."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _machine() -> str:
    """Digest what a program is compiled for and its key in JAX's cache does not say."""
    text = f"{processor()} {processor_features()} {_number_of_processors()}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _usable_folder() -> Path | None:
    """Return the folder of this machine's programs, which is made if need be."""
    if config.compilation_cache is None:
        return None
    folder = Path(config.compilation_cache) / _machine()
    if folder in _unusable:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        _give_up(folder, str(error))
        return None
    return folder


def _give_up(folder: Path, reason: str) -> None:
    """Do without the cache from now on, and say so once."""
    if folder not in _unusable:
        _unusable.add(folder)
        logger.warning(
            "the cache of compiled programs in %s cannot be used, so every process compiles anew: "
            "%s. Choose another folder by config.compilation_cache, or none ('').",
            folder,
            reason,
        )


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


class Compilation:
    """One compilation by XLA, from when it begins: looked up in the cache, and put there."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._window: _Window | None = None
        folder = _usable_folder()
        if folder is not None:
            self._window = _Window(folder)

    def finish(self) -> tuple[float, bool]:
        """Note that the compilation is over, or has failed.

        Returns
        -------
        seconds : float
            How long it took.
        is_from_cache : bool
            Whether the program was found in the cache.
        """
        seconds = perf_counter() - self._start
        return seconds, self._window is not None and self._window.close()


class _Window:
    """The time in which the settings of JAX's cache are ours."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._is_writable = _is_writable(folder)
        settings = {
            "jax_enable_compilation_cache": True,
            "jax_compilation_cache_dir": str(folder),
            "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
            # With a bound, JAX locks the folder and writes into it even to read.
            "jax_compilation_cache_max_size": _MAX_BYTES if self._is_writable else -1,
            "jax_raise_persistent_cache_errors": False,
        }
        _listen()
        _lock.acquire()
        self._before = {name: getattr(jax.config, name) for name in settings}
        self._num_hits = len(_hits)
        self._caught: Any = warnings.catch_warnings(record=True)
        self._warnings = self._caught.__enter__()
        warnings.simplefilter("always")
        _configure(settings)

    def close(self) -> bool:
        """Give the settings back, and tell whether a program was found."""
        try:
            _configure(self._before)
            self._caught.__exit__(None, None, None)
            is_found = len(_hits) > self._num_hits
        finally:
            _lock.release()
        for warning in self._warnings:
            self._handle(warning)
        return is_found

    def _handle(self, warning: warnings.WarningMessage) -> None:
        """Do something about a warning of the cache; hand on any other."""
        text = str(warning.message)
        if text.startswith(_CANNOT_READ):
            self._throw_away(text)
        elif text.startswith(_CANNOT_WRITE):
            # A process that was killed leaves an entry without its time behind.
            if "FileNotFoundError" in text:
                self._throw_away(text)
            elif self._is_writable:
                _give_up(self._folder, text)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )

    def _throw_away(self, reason: str) -> None:
        """Empty a folder in which something is damaged."""
        try:
            for path in self._folder.glob("*-*"):
                path.unlink(missing_ok=True)
        except OSError as error:
            _give_up(self._folder, f"{reason}; {error}")
        else:
            logger.info("emptied the cache of compiled programs in %s: %s", self._folder, reason)


def _configure(settings: dict[str, Any]) -> None:
    """Change the settings of JAX's cache, which looks at them when it is first used."""
    for name, value in settings.items():
        jax.config.update(name, value)
    # JAX tells of each reset, which would be four lines for each program of a script that logs.
    level = _jax_logger.level
    _jax_logger.setLevel(logging.WARNING)
    try:
        compilation_cache.reset_cache()
    finally:
        _jax_logger.setLevel(level)
