"""The families of operations that XLA can compute; importing this module registers them."""

from bricks.xla import (
    algebra,
    control,
    draws,
    elemwise,
    fourier,
    indexing,
    linear_algebra,
    loops,
    nnet,
    shapes,
    sorting,
)

__all__ = [
    "algebra",
    "control",
    "draws",
    "elemwise",
    "fourier",
    "indexing",
    "linear_algebra",
    "loops",
    "nnet",
    "shapes",
    "sorting",
]
