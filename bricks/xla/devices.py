"""Where compiled functions run, and in which dtypes."""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import numpy

from bricks.config import config

__all__ = ["chosen_device", "place", "x64"]


def x64() -> contextlib.AbstractContextManager:
    """Let JAX keep int64 and float64 in this thread, leaving the user's setting as it is.

    Returns
    -------
    context manager
        64-bit types are kept inside of its block.
    """
    return _enable_x64(True)


def _find_switch() -> Any:
    """Find JAX's context manager for 64-bit types, which moved between releases."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64
    from jax.experimental import enable_x64

    return enable_x64


_enable_x64 = _find_switch()


def chosen_device() -> jax.Device | None:
    """Return the device that ``config.device`` names, such as ``'cuda:1'``.

    Returns
    -------
    jax.Device or None
        None leaves the choice to JAX.

    Raises
    ------
    ValueError
        If there is no such device.
    """
    name = config.device
    if name is None:
        return None
    platform, _, number = name.partition(":")
    try:
        return jax.devices(platform)[int(number or 0)]
    except (RuntimeError, IndexError, ValueError) as error:
        found = ", ".join(str(device) for device in jax.devices())
        raise ValueError(
            f"config.device: there is no device {name!r}; JAX finds {found}. Name one as 'cpu' or "
            "'cuda:0', or leave the setting empty."
        ) from error


def place(value: numpy.ndarray) -> jax.Array:
    """Move an array, which must not change afterwards, to the chosen device.

    Parameters
    ----------
    value : array

    Returns
    -------
    jax.Array
        Of the same dtype, 64-bit ones included.
    """
    with x64():
        return jax.device_put(value, chosen_device())
