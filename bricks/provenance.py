"""Under what a checkpoint was made, and how that differs from what reads it.

Training goes on bit for bit only with the same versions, device, number of threads and lowered
step. A checkpoint's manifest keeps these; a difference is said aloud once, when it is resumed.
"""

import functools
import os
import platform
import sys
import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy

from bricks.config import config

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


def lowered_steps(algorithm: Any) -> dict[str, str]:
    """Digest the compiled training step of an algorithm, for the manifest of a checkpoint.

    Parameters
    ----------
    algorithm : TrainingAlgorithm
        Any.

    Returns
    -------
    dict of str to str
        The digest for each set of shapes that the step was compiled for; empty if there is no step
        that XLA compiled.
    """
    function: Any = getattr(algorithm, "function", None)
    if not hasattr(function, "lowered_digests") or function.backend != "xla":
        return {}
    return function.lowered_digests()


def expected_steps(manifest: Mapping[str, Any]) -> dict[str, str] | None:
    """Give the programs that the training step should be compiled from after a checkpoint.

    Parameters
    ----------
    manifest : mapping
        Of the checkpoint.

    Returns
    -------
    dict of str to str, or None
        What `lowered_steps` gave; None where versions or the device differ, so that the step
        differs too and one warning has been enough.
    """
    return None if differences(manifest) else manifest.get("lowered_steps")


def warn_of_another_step(then: Mapping[str, str], algorithm: Any) -> None:
    """Warn if the training step is compiled from another program than when it was saved.

    Parameters
    ----------
    then : mapping of str to str
        What `lowered_steps` gave for the checkpoint.
    algorithm : TrainingAlgorithm
        After its first step.

    Warns
    -----
    UserWarning
        If the programs differ for the same shapes.
    """
    now = lowered_steps(algorithm)
    other = [shapes for shapes in now if then.get(shapes, now[shapes]) != now[shapes]]
    if other:
        warnings.warn(
            f"The training step for batches of shapes {other[0]} is another program than when the "
            f"checkpoint was written ({then[other[0]]}, now {now[other[0]]}): the model, the "
            "algorithm, what is monitored, a library or the profile of rewriting has changed. "
            "Training goes on from the same state, but its numbers may differ in their last bits "
            "from those of an uninterrupted run.",
            stacklevel=2,
        )


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
