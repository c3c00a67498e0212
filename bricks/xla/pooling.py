"""Lowerings of pooling and of its gradients.

The gradients are written elementwise. The padded input is cut into *blocks* as long as the
stride, so that window ``r`` begins where block ``r`` does, and block ``b`` meets the windows
``b``, ``b - 1``, ... as far as the window reaches. What belongs to windows is repeated over the
blocks it meets, one shift at a time, and XLA makes one loop of all of it: a fraction of what its
own gradient of a maximum (``select_and_scatter``) costs on the CPU. Elements of a window that are
equal to its maximum all receive its gradient, as they do in Theano and Aesara.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Apply
from aesara.tensor.signal import pool
from jax import lax

from bricks.xla.lowering import Context, known_ints, lowering


class _Axis(NamedTuple):
    """Where the windows lie along an axis that is pooled."""

    length: int
    size: int
    stride: int
    padding: int
    num_windows: int

    @property
    def num_blocks(self) -> int:
        return -(-(self.padding + self.length) // self.stride)

    def shifts(self) -> range:
        """Count the windows that a block may meet: its own, the one before it, and so on."""
        return range(min(-(-self.size // self.stride), max(self.num_blocks, 1)))

    def num_elements(self, *, count_padding: bool) -> numpy.ndarray:
        """Count the elements of each window, with or without those of the padding."""
        first, last = (0, 2) if count_padding else (1, 1)
        starts = numpy.arange(self.num_windows) * self.stride
        stops = numpy.minimum(starts + self.size, self.length + last * self.padding)
        return stops - numpy.maximum(starts, first * self.padding)


class _Windows(NamedTuple):
    """Where the windows of a pooling lie; the other axes come first and are kept."""

    kept: tuple[int, ...]
    axes: tuple[_Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array with one element for each window."""
        return (*self.kept, *(axis.num_windows for axis in self.axes))

    def shifts(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*(axis.shifts() for axis in self.axes))

    def per_axis(self, values: Sequence[Any], kept: Any) -> list[Any]:
        """Extend values for the pooled axes to all axes."""
        return [kept] * len(self.kept) + list(values)


def _count_windows(length: int, size: int, stride: int, *, ignore_border: bool) -> int:
    """Count the windows that fit, or those that cover everything."""
    if ignore_border:
        return max(0, (length - size) // stride + 1)
    if stride >= size:
        return (length - 1) // stride + 1
    return max(0, -((size - length) // stride)) + 1


def _make_axis(length: int, size: int, stride: int, padding: int, *, ignore_border: bool) -> _Axis:
    if size < 1 or stride < 1 or padding < 0:
        raise ValueError(
            f"a window must have at least one element, its stride must be at least 1 and its "
            f"padding at least 0; got ws={size}, stride={stride}, pad={padding}"
        )
    if padding >= size:
        raise ValueError(
            f"padding must be smaller than the window, or a window would hold nothing else; got "
            f"pad={padding}, ws={size}"
        )
    num_windows = _count_windows(length + 2 * padding, size, stride, ignore_border=ignore_border)
    # A single window has no stride; then one block holds it whole.
    return _Axis(length, size, stride if num_windows > 1 else size, padding, num_windows)


def _make_windows(op: Any, shape: tuple[int, ...], *numbers: Any) -> _Windows:
    """Find the windows in an array.

    Parameters
    ----------
    op : aesara.tensor.signal.pool.Pool
    shape : tuple of int
    *numbers : vector of int
        Sizes, strides and paddings of the windows.

    Returns
    -------
    _Windows

    Raises
    ------
    ValueError
        If there cannot be such windows.
    """
    names = ("the size of a window", "the stride of windows", "the padding")
    known = [known_ints(vector, name) for vector, name in zip(numbers, names, strict=True)]
    if any(len(vector) != op.ndim for vector in known):
        raise ValueError(
            f"ws, stride and pad must have {op.ndim} numbers each, one for each axis; got "
            f"{', '.join(map(str, known))}"
        )
    num_kept = len(shape) - op.ndim
    axes = tuple(
        _make_axis(*values, ignore_border=op.ignore_border)
        for values in zip(shape[num_kept:], *known, strict=True)
    )
    windows = _Windows(tuple(shape[:num_kept]), axes)
    if op.mode in ("max", "average_exc_pad"):
        _check_content(op, windows)
    return windows


def _check_content(op: Any, windows: _Windows) -> None:
    """Refuse windows that hold nothing that has a maximum or a mean."""
    for axis in windows.axes:
        if numpy.any(axis.num_elements(count_padding=False) < 1):
            raise ValueError(
                f"a window of ws={axis.size} holds no element of an axis of length {axis.length} "
                f"with pad={axis.padding}, so it has no {op.mode}"
            )


def _check_windows(windows: _Windows, *arrays: jax.Array) -> None:
    """Refuse arrays that do not have one element for each window."""
    for array in arrays:
        if array.shape != windows.shape:
            raise ValueError(
                f"the gradient of a pooled output must have its shape, {windows.shape}; got "
                f"{array.shape}"
            )


def _reduce(x: jax.Array, windows: _Windows, start: Any, function: Callable) -> jax.Array:
    """Combine the elements of each window."""
    if not all(axis.num_windows for axis in windows.axes):
        return jnp.zeros(windows.shape, x.dtype)
    margins = []
    for axis in windows.axes:
        covered = (axis.num_windows - 1) * axis.stride + axis.size
        margins.append((axis.padding, covered - axis.padding - axis.length))
    # What no window reaches is cut off, because a window cannot have a negative padding.
    cut = [(0, min(after, 0), 0) for _, after in margins]
    if any(after for _, after, _ in cut):
        x = lax.pad(x, start, windows.per_axis(cut, (0, 0, 0)))
    return lax.reduce_window(
        x,
        start,
        function,
        tuple(windows.per_axis([axis.size for axis in windows.axes], 1)),
        tuple(windows.per_axis([axis.stride for axis in windows.axes], 1)),
        windows.per_axis([(before, max(after, 0)) for before, after in margins], (0, 0)),
    )


def _lowest(dtype: Any) -> numpy.ndarray:
    """Return what no element of this dtype is below."""
    if numpy.issubdtype(dtype, numpy.integer):
        return numpy.array(numpy.iinfo(dtype).min, dtype)
    return numpy.array(-numpy.inf, dtype)


def _num_averaged(op: Any, windows: _Windows) -> Any:
    """Count the elements that each window is the mean of; None if it is a sum."""
    if op.mode == "sum":
        return None
    along = [axis.num_elements(count_padding=op.mode == "average_inc_pad") for axis in windows.axes]
    counts = functools.reduce(numpy.multiply.outer, along)
    return counts.flat[0] if counts.size and (counts == counts.flat[0]).all() else counts


@lowering(pool.Pool, fold=False)
def lower_pooling(op: Any, node: Apply, context: Context) -> Callable:
    """Take the maximum, the sum or the mean of windows."""
    dtype = node.outputs[0].type.dtype

    def pooling(x: Any, *numbers: Any) -> jax.Array:
        x = jnp.asarray(x)
        windows = _make_windows(op, x.shape, *numbers)
        if op.mode == "max":
            return _reduce(x, windows, _lowest(dtype), lax.max)
        total = _reduce(x, windows, numpy.array(0, dtype), lax.add)
        counts = _num_averaged(op, windows)
        return total if counts is None else total / jnp.asarray(counts, dtype)

    return pooling


def _to_blocks(x: jax.Array, windows: _Windows) -> jax.Array:
    """Cut the padded input into blocks: each pooled axis becomes one of blocks and one inside."""
    margins, shape = [], list(windows.kept)
    for axis in windows.axes:
        total = axis.num_blocks * axis.stride
        margins.append((axis.padding, total - axis.padding - axis.length, 0))
        shape += [axis.num_blocks, axis.stride]
    return lax.pad(x, numpy.array(0, x.dtype), windows.per_axis(margins, (0, 0, 0))).reshape(shape)


def _from_blocks(blocks: jax.Array, windows: _Windows) -> jax.Array:
    """Join blocks, and take the padding away."""
    joined = blocks.reshape(
        *windows.kept, *(axis.num_blocks * axis.stride for axis in windows.axes)
    )
    starts = [axis.padding for axis in windows.axes]
    stops = [axis.padding + axis.length for axis in windows.axes]
    return lax.slice(
        joined,
        windows.per_axis(starts, 0),
        [*windows.kept, *stops],
    )


def _at_blocks(y: jax.Array, windows: _Windows, shift: tuple[int, ...]) -> jax.Array:
    """Bring what belongs to windows to the blocks that they meet; elsewhere it is zero."""
    margins = [
        (places, axis.num_blocks - axis.num_windows - places, 0)
        for axis, places in zip(windows.axes, shift, strict=True)
    ]
    moved = lax.pad(y, numpy.array(0, y.dtype), windows.per_axis(margins, (0, 0, 0)))
    first = len(windows.kept)
    return lax.expand_dims(moved, [first + 2 * i + 1 for i in range(len(windows.axes))])


def _is_reached(windows: _Windows, shift: tuple[int, ...]) -> numpy.ndarray:
    """Mark the elements of a block that the window reaches, which began so many blocks before."""
    reached = numpy.ones((), bool)
    for axis, places in zip(windows.axes, shift, strict=True):
        inside = numpy.arange(axis.stride) + places * axis.stride < axis.size
        reached = reached[..., None, None] & inside
    return reached


def _spread(windows: _Windows, make_term: Callable[[Callable], jax.Array]) -> jax.Array:
    """Sum, for each element of the input, a term of each window that holds it.

    Parameters
    ----------
    windows : _Windows
    make_term : function
        ``make_term(at_blocks)`` gives the terms in blocks; ``at_blocks(y)`` brings what belongs to
        windows to the blocks that they meet.
    """
    total: Any = 0
    for shift in windows.shifts():
        term = make_term(functools.partial(_at_blocks, windows=windows, shift=shift))
        reached = _is_reached(windows, shift)
        total = total + (term if reached.all() else jnp.where(reached, term, jnp.zeros_like(term)))
    blocks = [*windows.kept]
    for axis in windows.axes:
        blocks += [axis.num_blocks, axis.stride]
    return _from_blocks(jnp.broadcast_to(total, blocks), windows)


@lowering(pool.MaxPoolGrad, fold=False)
def lower_max_pooling_gradient(op: Any, node: Apply, context: Context) -> Callable:
    """Give the gradient of each window to all its elements that are its maximum."""

    def max_pooling_gradient(x: Any, maximum: Any, gradient: Any, *numbers: Any) -> jax.Array:
        x, maximum, gradient = jnp.asarray(x), jnp.asarray(maximum), jnp.asarray(gradient)
        windows = _make_windows(op, x.shape, *numbers)
        _check_windows(windows, maximum, gradient)
        blocks = _to_blocks(x, windows)

        def term(at_blocks: Callable) -> jax.Array:
            given = at_blocks(gradient)
            return jnp.where(blocks == at_blocks(maximum), given, jnp.zeros_like(given))

        return _spread(windows, term)

    return max_pooling_gradient


@lowering(pool.AveragePoolGrad, fold=False)
def lower_average_pooling_gradient(op: Any, node: Apply, context: Context) -> Callable:
    """Give the gradient of each window to all its elements, or its share to each."""

    def average_pooling_gradient(x: Any, gradient: Any, *numbers: Any) -> jax.Array:
        gradient = jnp.asarray(gradient)
        windows = _make_windows(op, numpy.shape(x), *numbers)
        _check_windows(windows, gradient)
        counts = _num_averaged(op, windows)
        if counts is not None:
            gradient = gradient / jnp.asarray(counts, gradient.dtype)
        return _spread(windows, lambda at_blocks: at_blocks(gradient))

    return average_pooling_gradient


@lowering(pool.DownsampleFactorMaxGradGrad, fold=False)
def lower_max_pooling_second_gradient(op: Any, node: Apply, context: Context) -> Callable:
    """Sum, in each window, what belongs to the elements that are its maximum."""

    def max_pooling_second_gradient(x: Any, maximum: Any, values: Any, *numbers: Any) -> jax.Array:
        x, maximum, values = jnp.asarray(x), jnp.asarray(maximum), jnp.asarray(values)
        windows = _make_windows(op, x.shape, *numbers)
        _check_windows(windows, maximum)
        blocks, values = _to_blocks(x, windows), _to_blocks(values, windows)
        first, total = len(windows.kept), jnp.zeros(maximum.shape, x.dtype)
        inside = [first + 2 * i + 1 for i in range(op.ndim)]
        for shift in windows.shifts():
            is_maximum = blocks == _at_blocks(maximum, windows, shift)
            chosen = is_maximum & _is_reached(windows, shift)
            sums = jnp.sum(jnp.where(chosen, values, jnp.zeros_like(values)), axis=inside)
            margins = [
                (-places, axis.num_windows + places - axis.num_blocks, 0)
                for axis, places in zip(windows.axes, shift, strict=True)
            ]
            zero = numpy.array(0, sums.dtype)
            total = total + lax.pad(sums, zero, windows.per_axis(margins, (0, 0, 0)))
        return total

    return max_pooling_second_gradient
