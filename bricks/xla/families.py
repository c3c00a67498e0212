"""The families of operations that XLA can compute; importing this module registers them."""

from bricks.xla import (
    algebra,
    control,
    convolution,
    ctc,
    draws,
    elemwise,
    fourier,
    indexing,
    linear_algebra,
    loops,
    neighbourhoods,
    nnet,
    pooling,
    shapes,
    sorting,
    wrapping,
)

__all__ = [
    "algebra",
    "control",
    "convolution",
    "ctc",
    "draws",
    "elemwise",
    "fourier",
    "indexing",
    "linear_algebra",
    "loops",
    "neighbourhoods",
    "nnet",
    "pooling",
    "shapes",
    "sorting",
    "wrapping",
]
