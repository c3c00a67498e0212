"""Bricks: annotated parts of neural networks, their graphs, training loops and compiler.

Importing this package sets Aesara up (see :mod:`bricks.aesara_setup`), so every module below
may import it. The names that ``blocks.bricks`` exported are found here, and imported on first
use: ``from bricks import MLP, Rectifier``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bricks.aesara_setup import set_up

set_up()

#: Where each name that this package re-exports is defined.
_HOMES = {
    "bricks.base": ("Brick", "application", "lazy", "ApplicationCall"),
    "bricks.interfaces": (
        "Activation",
        "Feedforward",
        "Initializable",
        "LinearLike",
        "Random",
        "RNGMixin",
    ),
    "bricks.simple": (
        "Bias",
        "Identity",
        "LeakyRectifier",
        "Linear",
        "LinearMaxout",
        "Logistic",
        "Maxout",
        "NDimensionalSoftmax",
        "Rectifier",
        "Softmax",
        "Softplus",
        "Tanh",
    ),
    "bricks.sequences": ("FeedforwardSequence", "MLP", "Sequence"),
    "bricks.parallel": ("Distribute", "Fork", "Merge", "Parallel"),
    "bricks.lookup": ("LookupTable", "TiedProjection"),
    "bricks.bn": ("BatchNormalization", "BatchNormalizedMLP", "SpatialBatchNormalization"),
    "bricks.normalization": ("GroupNormalization", "LayerNormalization", "RMSNormalization"),
    "bricks.wrappers": ("BrickWrapper", "WithExtraDims"),
    "bricks.inference": ("load",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = list(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Import a re-exported name when it is first asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'bricks' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the re-exported names beside those already imported."""
    return sorted({*globals(), *__all__})
