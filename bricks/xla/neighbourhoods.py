"""Lowering of what cuts images into neighbourhoods.

Putting neighbourhoods back into images, which is the gradient where they do not overlap, is the
same operation with other lengths. Where they overlap, Aesara's gradient is a scan whose slices
begin where its steps compute, so it is refused as a shape that depends on data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Apply
from aesara.tensor.nnet.neighbours import Images2Neibs
from jax import lax

from bricks.xla.lowering import Context, known_ints, lowering


def _neighbourhood_places(
    length: int, size: int, step: int, mode: str, axis: int
) -> tuple[numpy.ndarray, tuple[int, int]]:
    """Find the places of neighbourhoods along an axis.

    Returns
    -------
    places : array of int, of shape (neighbourhood, element)
    padding : tuple of int
        How many zeros are put before and after the axis first.
    """
    if size < 1 or step < 1:
        raise ValueError(f"neib_shape and neib_step must be positive; got {size} and {step}")
    margin = {"half": size // 2, "full": size - 1}.get(mode, 0)
    left_over = length + 2 * margin - size
    if mode == "wrap_centered":
        if size % 2 == 0 or length < size:
            raise ValueError(
                f"neighbourhoods that wrap around must have odd lengths, at most those of the "
                f"image; got {size} along axis {axis} of length {length}"
            )
        starts = numpy.arange(0, length, step) - size // 2
    elif mode == "ignore_borders":
        starts = numpy.arange(max(0, left_over // step + 1)) * step
    elif length < size or left_over % step:
        raise ValueError(
            f"neighbourhoods of {size}, {step} apart, do not fill axis {axis} of length {length} "
            f"with mode {mode!r}; mode 'ignore_borders' leaves out what remains"
        )
    else:
        starts = numpy.arange(left_over // step + 1) * step
    places = starts[:, None] + numpy.arange(size)
    return places % length if mode == "wrap_centered" else places, (margin, margin)


def _take_neighbourhoods(x: jax.Array, axis: int, places: numpy.ndarray) -> jax.Array:
    """Replace an axis by one of neighbourhoods and one of their elements."""
    flat = places.reshape(-1)
    if flat.size and numpy.array_equal(flat, numpy.arange(flat.size)):
        taken = lax.slice_in_dim(x, 0, flat.size, axis=axis)
    else:
        taken = jnp.take(x, flat, axis=axis)
    return taken.reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])


@lowering(Images2Neibs, fold=False)
def lower_neighbourhoods(op: Any, node: Apply, context: Context) -> Callable:
    """Cut images into neighbourhoods, one in each row of a matrix."""

    def neighbourhoods(x: Any, sizes: Any, steps: Any) -> jax.Array:
        sizes = known_ints(sizes, "the shape of a neighbourhood")
        steps = known_ints(steps, "the distance of neighbourhoods")
        rows, row_padding = _neighbourhood_places(x.shape[2], sizes[0], steps[0], op.mode, 2)
        columns, padding = _neighbourhood_places(x.shape[3], sizes[1], steps[1], op.mode, 3)
        x = jnp.pad(jnp.asarray(x), ((0, 0), (0, 0), row_padding, padding))
        cut = _take_neighbourhoods(_take_neighbourhoods(x, 3, columns), 2, rows)
        num_rows = cut.shape[0] * cut.shape[1] * rows.shape[0] * columns.shape[0]
        return jnp.swapaxes(cut, 3, 4).reshape(num_rows, sizes[0] * sizes[1])

    return neighbourhoods
