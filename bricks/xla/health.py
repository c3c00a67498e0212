"""Refuse releases of jaxlib that compute wrong training steps on the CPU.

In jaxlib 0.7.1, 0.7.2 and 0.8.0 a matrix product may use the weights that lay at the same address
in an earlier call, so a step that updates its parameters in place goes wrong. These releases, and
the two after them of which nothing is known, are refused by number. Others take a test once: steps
that give their parameters up must agree with steps that keep them. The result is kept in the
user's cache folder.
"""

from __future__ import annotations

import functools
import itertools
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy

from bricks.config import user_cache_folder
from bricks.xla.errors import WrongCompiler
from fuel_data.utils.files import atomic_write

__all__ = ["check_compiler", "is_refused", "processor", "processor_features"]

_FIRST_REFUSED, _FIRST_RIGHT_AGAIN = (0, 7, 1), (0, 8, 3)
_WAY_OUT = "Install jax 0.7.0 (pip install 'jax<0.7.1'), or 0.8.3 or newer on numpy 2."


def is_refused(version: str) -> bool:
    """Tell whether a release of jaxlib is known to be wrong, or lies beside those that are.

    Parameters
    ----------
    version : str
        For example ``'0.7.1'``.

    Returns
    -------
    bool
    """
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    return _FIRST_REFUSED <= numbers < _FIRST_RIGHT_AGAIN


def _losses(donate: bool, num_steps: int = 3) -> numpy.ndarray:
    """Train a small network for a few steps, giving its parameters up at each or keeping them."""
    rng = numpy.random.default_rng(0)
    sizes = (64, 256, 256, 10)
    shapes = list(itertools.pairwise(sizes))
    weights = [jnp.asarray(rng.normal(size=s, scale=0.1), jnp.float32) for s in shapes]
    x = rng.normal(size=(128, sizes[0])).astype("float32")
    y = rng.normal(size=(128, sizes[-1])).astype("float32")

    def loss(weights: list[jax.Array], x: Any, y: Any) -> jax.Array:
        for w in weights[:-1]:
            x = jax.nn.relu(x @ w)
        return jnp.mean((x @ weights[-1] - y) ** 2)

    def step(weights: list[jax.Array], x: Any, y: Any) -> tuple[list[jax.Array], jax.Array]:
        value, gradients = jax.value_and_grad(loss)(weights, x, y)
        return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], value

    compiled = jax.jit(step, donate_argnums=0 if donate else ())
    losses = []
    for _ in range(num_steps):
        weights, value = compiled(weights, x, y)
        losses.append(float(value))
    return numpy.array(losses)


def donated_steps_are_right() -> bool:
    """Compare steps that give their parameters up with steps that keep them."""
    return bool(numpy.allclose(_losses(donate=True), _losses(donate=False), rtol=1e-4))


@functools.cache
def _processor_fields() -> dict[str, str]:
    """Read what the system says of its first processor."""
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")
    except OSError:
        return {}
    fields = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in fields}


def processor() -> str:
    """Name the processor as exactly as the system does.

    Returns
    -------
    str
    """
    name = _processor_fields().get("model name")
    return name or platform.processor() or platform.machine()


def processor_features() -> str:
    """List the instructions that the processor knows, where the system tells.

    Returns
    -------
    str
    """
    fields = _processor_fields()
    return fields.get("flags") or fields.get("Features") or ""


def _cache_path() -> Path:
    return user_cache_folder() / "compiler_checks.json"


def _read_results(path: Path) -> dict[str, bool]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _cached_result(key: str, measure: Callable[[], bool]) -> bool:
    """Return what was measured for a key once, measuring it if it never was."""
    path = _cache_path()
    results = _read_results(path)
    if key not in results:
        results = {**results, key: measure()}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path, "w") as file:
                json.dump(results, file)
        except OSError:
            # A home that cannot be written only means that the next process measures again.
            pass
    return results[key]


@functools.cache
def check_compiler() -> None:
    """Refuse a jaxlib that computes wrong training steps on this machine's CPU.

    Raises
    ------
    WrongCompiler
        If its release is known to, or if its steps disagree. It names a release that is right.
    """
    version = jaxlib.__version__
    if is_refused(version):
        raise WrongCompiler(
            f"jaxlib {version} computes wrong training steps on the CPU: parameters that are "
            f"updated in place are mixed up between calls. {_WAY_OUT}"
        )
    if not _cached_result(f"{version} {processor()}", donated_steps_are_right):
        raise WrongCompiler(
            f"jaxlib {version} computes wrong training steps on this processor ({processor()}): "
            f"steps that give their parameters up disagree with steps that keep them. {_WAY_OUT} "
            f"The result is kept in {_cache_path()}."
        )
