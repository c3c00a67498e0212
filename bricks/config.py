"""The settings of bricks and of the main loop, looked up when they are read.

A setting has the first of these values that exists: what was assigned in code
(``config.backend = 'py'``); the environment variable ``BRICKS_<KEY>``, or the name that Blocks
had for it; the line of the YAML file; its default. The file is what ``BRICKS_CONFIG`` or
``BLOCKS_CONFIG`` says, else ``~/.bricksrc`` where it exists, else ``~/.blocksrc``.

================  ===================  ============================================================
key               Blocks' variable     meaning and default
================  ===================  ============================================================
backend           BLOCKS_BACKEND       what compiles: xla, or an Aesara mode (py, c, FAST_RUN, ...);
                                       xla
device            BLOCKS_DEVICE        where compiled functions run: cpu, cuda, cuda:1, ...; empty,
                                       which leaves the choice to JAX
optimizer         BLOCKS_OPTIMIZER     how much graphs are rewritten: fast_run; or fast_compile,
                                       which builds a recurrent step a little faster, and leaves
                                       its products in the loop, where they take longer; fast_run
default_seed      BLOCKS_DEFAULT_SEED  seed of what is random and was given none; 1
recursion_limit   BLOCKS_RECURSION_LIMIT  Python's limit while functions are built,
                                       and while a main loop runs or is saved; 10000
compilation_cache BRICKS_COMPILATION_CACHE  folder where compiled programs are kept for the next
                                       process; empty for none; firebrick/programs among the
                                       user's caches
profile           BLOCKS_PROFILE       print where the time went when training ends; no
log_backend       BLOCKS_LOG_BACKEND   what holds the log: python, sqlite or jsonlines; python
sqlite_database   BLOCKS_SQLITEDB      file of the sqlite log; ~/blocks_log.sqlite
max_blob_size     BLOCKS_MAX_BLOB_SIZE from Blocks' settings, without effect: all is stored whole
temp_dir          BLOCKS_TEMPDIR       from Blocks' settings, without effect: files are written
                                       beside their targets
================  ===================  ============================================================
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from fuel_data.config_parser import Configuration
from fuel_data.utils.names import nearest_name

__all__ = ["config", "user_cache_folder"]


class _BricksConfiguration(Configuration):
    """A configuration that also reads the variables and the file that Blocks used.

    What is assigned is checked at once, not when it is read.
    """

    def __setattr__(self, key: str, value: Any) -> None:
        before = dict(self._assigned)
        super().__setattr__(key, value)
        try:
            getattr(self, key)
        except ValueError:
            self.__dict__["_assigned"] = before
            raise

    def _raw_value(self, key: str, setting: Any) -> tuple[Any, str]:
        own_name = f"BRICKS_{key.upper()}"
        if own_name in os.environ:
            setting = setting._replace(env_var=own_name)
        return super()._raw_value(key, setting)

    def _default_path(self) -> Path:
        own = Path("~/.bricksrc").expanduser()
        return own if own.exists() else Path("~/.blocksrc").expanduser()


def _optional_text(value: Any) -> str | None:
    """Make a text, or None from None and from an empty text."""
    return str(value) if value not in (None, "") else None


def user_cache_folder() -> Path:
    """Return the folder for what can be made again, which need not exist.

    Returns
    -------
    path
        ``firebrick`` in ``XDG_CACHE_HOME`` if that is set, otherwise where the system keeps
        caches.
    """
    chosen = os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen) / "firebrick"
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(os.path.expanduser(usual)) / "firebrick"


def _folder(value: Any) -> Path | None:
    """Make the path of a folder, or None from None and from an empty text."""
    return Path(value).expanduser() if value not in (None, "") else None


def _backend(value: Any) -> str:
    """Check the name of what compiles."""
    name = str(value)
    if name in ("xla", "py", "c"):
        return name
    from aesara.compile.mode import predefined_modes

    if name not in predefined_modes:
        known = {"xla", "py", "c", *predefined_modes}
        raise ValueError(f"no such backend.{nearest_name(name, known)}")
    return name


def _optimizer(value: Any) -> str:
    """Check the name of a rewriting profile."""
    if value not in ("fast_run", "fast_compile"):
        raise ValueError("expected fast_run or fast_compile")
    return value


config = _BricksConfiguration(env_var=("BRICKS_CONFIG", "BLOCKS_CONFIG"))
config.add_config("backend", _backend, default="xla", env_var="BLOCKS_BACKEND")
config.add_config("device", _optional_text, default="", env_var="BLOCKS_DEVICE")
config.add_config("optimizer", _optimizer, default="fast_run", env_var="BLOCKS_OPTIMIZER")
config.add_config("compilation_cache", _folder, default=lambda: user_cache_folder() / "programs")
config.add_config("default_seed", int, default=1, env_var="BLOCKS_DEFAULT_SEED")
config.add_config("recursion_limit", int, default=10000, env_var="BLOCKS_RECURSION_LIMIT")
config.add_config("profile", bool, default=False, env_var="BLOCKS_PROFILE")
config.add_config("log_backend", str, default="python", env_var="BLOCKS_LOG_BACKEND")
config.add_config(
    "sqlite_database", os.path.expanduser, default="~/blocks_log.sqlite", env_var="BLOCKS_SQLITEDB"
)
config.add_config("max_blob_size", int, default=4096, env_var="BLOCKS_MAX_BLOB_SIZE")
config.add_config("temp_dir", _optional_text, default="", env_var="BLOCKS_TEMPDIR")
