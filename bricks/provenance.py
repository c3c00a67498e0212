"""Under what a checkpoint was made, and how that differs from what reads it.

Training goes on bit for bit only with the same versions, device, number of threads and lowered
step. A checkpoint's manifest keeps these; a difference is said aloud once, when it is resumed.
"""

import contextlib
import functools
import os
import platform
import sys
import warnings
import weakref
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy

from bricks.config import config

_LOWERED: "weakref.WeakKeyDictionary[Any, tuple[int, str | None]]" = weakref.WeakKeyDictionary()

_LIBRARIES = ("firebrick", "aesara", "jax", "jaxlib", "numpy", "h5py")


def describe() -> dict[str, Any]:
    """Describe this process, for the manifest of a checkpoint.

    Returns
    -------
    dict
        ``libraries`` (versions by name), ``python``, ``machine``, ``device``, ``threads``,
        ``backend`` and ``command`` (the command line).
    """
    return {
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": _device_kind(),
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "backend": str(config.backend),
        "command": sys.orig_argv,
    }


def lowered_step(algorithm: Any) -> str | None:
    """Digest the compiled training step of an algorithm, for the manifest of a checkpoint.

    Parameters
    ----------
    algorithm : TrainingAlgorithm
        Any.

    Returns
    -------
    str or None
        None if it has no step that XLA compiled, or has not made one yet.
    """
    function: Any = getattr(algorithm, "function", None)
    if not hasattr(function, "lowered_digest"):
        return None
    # Lowering takes long, and a step is lowered anew only when it is compiled anew.
    count, digest = _LOWERED.get(function, (None, None))
    if count != function.num_compilations:
        with contextlib.suppress(RuntimeError):
            digest = function.lowered_digest()
        _LOWERED[function] = function.num_compilations, digest
    return digest


def differences(manifest: Mapping[str, Any]) -> list[str]:
    """List in words what differs between a manifest and this process.

    Parameters
    ----------
    manifest : mapping
        Of a checkpoint. What it does not say does not differ.

    Returns
    -------
    list of str
        Such as ``'numpy 1.26.4 (now 2.1.0)'``. The command line may differ.
    """
    then, now = _flat(manifest), _flat(describe())
    return [
        f"{name} {then[name]} (now {now[name]})"
        for name in now
        if name in then and then[name] != now[name]
    ]


def warn_of_differences(path: str, manifest: Mapping[str, Any]) -> None:
    """Warn once if a checkpoint was made under other conditions.

    Parameters
    ----------
    path : str
        The checkpoint, for the message.
    manifest : mapping
        Its manifest.

    Warns
    -----
    UserWarning
        If anything differs that may change the last bits of a number.
    """
    found = differences(manifest)
    if found:
        warnings.warn(
            f"{path} was made with {', '.join(found)}. Training goes on from the same state, but "
            "its numbers may differ in their last bits from those of an uninterrupted run.",
            stacklevel=3,
        )


def _flat(manifest: Mapping[str, Any]) -> dict[str, Any]:
    named = dict(manifest.get("libraries", {}))
    for name in ("python", "machine", "device", "threads", "backend"):
        if name in manifest:
            named[name] = manifest[name]
    return named


# Looking through the installed packages takes longer than writing a small checkpoint.
@functools.cache
def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _device_kind() -> str:
    if config.backend != "xla":
        return "cpu"
    from bricks.xla.devices import place

    (device,) = place(numpy.zeros(())).devices()
    return f"{device.platform} {device.device_kind}"
