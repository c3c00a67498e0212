"""Lowerings of indices and slices, and of assignments and increments through them.

An increment of a constant slice, which is what the gradient of a slice is, becomes a padded
addition or a slice update and never a scatter: that is faster on every device, and some scatters
abort the process in some releases of XLA. An index outside its axis cannot raise on a device: what
is read there is NaN (of signed integers the smallest, of unsigned ones the largest value), and what
is written there is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Apply, Constant, Variable
from aesara.tensor import basic, extra_ops, subtensor
from aesara.tensor.type_other import MakeSlice
from jax import lax

from bricks.xla.errors import DataDependentShape, GraphError
from bricks.xla.lowering import Context, is_known, known_int, known_ints, lowering

#: The way out is named, because masks are what scripts for Theano use most.
_MASK_MUST_BE_KNOWN = (
    "how many elements a mask selects must be known when the graph is compiled (keep the shape "
    "instead: tensor.switch(mask, x, 0), or multiply by the mask before a sum)"
)


def _known_slice(index: slice) -> slice:
    bounds = (
        None if bound is None else known_int(bound, "the bounds of a slice")
        for bound in (index.start, index.stop, index.step)
    )
    return slice(*bounds)


def _index_part(index: Any) -> Any:
    """Make one part of an index what JAX expects: known where that is possible."""
    if isinstance(index, slice):
        return _known_slice(index)
    if index is None:
        return None
    if is_known(index):
        array = numpy.asarray(index)
        return int(array) if array.ndim == 0 and array.dtype != bool else array
    if index.dtype == bool:
        raise DataDependentShape(_MASK_MUST_BE_KNOWN, index)
    return index


def _index(op: Any, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Build the index of an operation from its operands."""
    parts = subtensor.indices_from_subtensor(operands, getattr(op, "idx_list", None))
    return tuple(_index_part(part) for part in parts)


def _is_constant(index: Sequence[Any]) -> bool:
    return all(isinstance(part, (int, slice)) for part in index)


def _check_bounds(index: Sequence[Any], shape: Sequence[int]) -> None:
    """Refuse known indices outside their axes, which JAX would move inside."""
    for axis, (part, length) in enumerate(zip(index, shape, strict=False)):
        if isinstance(part, int) and not -length <= part < length:
            raise IndexError(f"index {part} is out of bounds for axis {axis} of length {length}")


@lowering(subtensor.Subtensor, subtensor.AdvancedSubtensor, subtensor.AdvancedSubtensor1)
def lower_subtensor(op: Any, node: Apply, context: Context) -> Callable:
    """Read through an index."""

    def read(x: Any, *operands: Any) -> jax.Array:
        index, x = _index(op, operands), jnp.asarray(x)
        if len(index) == 1 and isinstance(index[0], slice):
            return context.views.part(x, index[0])
        if _is_constant(index):
            _check_bounds(index, x.shape)
            return x[index]
        return x.at[index].get(mode="fill")

    return read


class _Region(NamedTuple):
    """A constant slice of an array, as a start, a length and a positive step for each axis."""

    starts: tuple[int, ...]
    lengths: tuple[int, ...]
    steps: tuple[int, ...]
    reversed_axes: tuple[int, ...]
    indexed_axes: tuple[int, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """The place behind the last one, for each axis."""
        return tuple(
            start + (length - 1) * step + 1 if length else start
            for start, length, step in zip(self.starts, self.lengths, self.steps, strict=True)
        )


def _region(index: Sequence[int | slice], shape: Sequence[int]) -> _Region:
    """Describe a constant index of an array of a given shape."""
    _check_bounds(index, shape)
    full = (*index, *[slice(None)] * (len(shape) - len(index)))
    ranges, reversed_axes = [], []
    for axis, (part, length) in enumerate(zip(full, shape, strict=True)):
        if isinstance(part, int):
            ranges.append(range(part % length, part % length + 1))
            continue
        places = range(*part.indices(length))
        if places.step < 0:
            reversed_axes.append(axis)
            places = places[::-1]
        ranges.append(places)
    return _Region(
        starts=tuple(places.start if len(places) else 0 for places in ranges),
        lengths=tuple(len(places) for places in ranges),
        steps=tuple(places.step for places in ranges),
        reversed_axes=tuple(reversed_axes),
        indexed_axes=tuple(axis for axis, part in enumerate(full) if isinstance(part, int)),
    )


def _fit(y: jax.Array, region: _Region) -> jax.Array:
    """Bring what is written into the shape and direction of the region."""
    lengths = region.lengths
    visible = tuple(
        length for axis, length in enumerate(lengths) if axis not in region.indexed_axes
    )
    y = lax.reshape(jnp.broadcast_to(y, visible), lengths)
    return lax.rev(y, region.reversed_axes) if region.reversed_axes else y


def _add_to_region(x: jax.Array, y: jax.Array, region: _Region) -> jax.Array:
    """Add to a constant slice by padding with zeros."""
    padding = []
    for axis, length in enumerate(x.shape):
        padding.append((region.starts[axis], length - region.ends[axis], region.steps[axis] - 1))
    return x + lax.pad(y, jnp.zeros((), x.dtype), padding)


def _write_region(x: jax.Array, y: jax.Array, region: _Region) -> jax.Array:
    """Overwrite a constant slice."""
    is_dense = all(
        step == 1 or length == 1 for step, length in zip(region.steps, region.lengths, strict=True)
    )
    if is_dense:
        return lax.dynamic_update_slice(x, y, [numpy.int32(start) for start in region.starts])
    index = tuple(
        slice(start, end, step)
        for start, end, step in zip(region.starts, region.ends, region.steps, strict=True)
    )
    return x.at[index].set(y)


def _are_apart(region: _Region, other: _Region) -> bool:
    """Tell whether two regions lie apart along an axis."""
    return any(
        end <= other_start or other_end <= start
        for start, end, other_start, other_end in zip(
            region.starts, region.ends, other.starts, other.ends, strict=True
        )
    )


def _is_zeros(variable: Variable) -> bool:
    """Tell whether an array holds nothing but zeros, whatever its shape."""
    owner = variable.owner
    is_full = owner is not None and isinstance(owner.op, basic.Alloc)
    value = owner.inputs[0] if is_full else variable
    return isinstance(value, Constant) and not numpy.any(value.data)


class _Piece(NamedTuple):
    """What was written into a region of an array of zeros."""

    region: _Region
    value: jax.Array


def _pieces_of(node: Apply, x: jax.Array, context: Context) -> list[_Piece] | None:
    """List what was written into the array that a node changes, if all else in it is zero."""
    return [] if _is_zeros(node.inputs[0]) else context.views.pieces_of(x)


def _join(pieces: Sequence[_Piece], shape: Sequence[int]) -> jax.Array | None:
    """Join pieces along the axis that they divide; None if they do not cover an array."""
    first = pieces[0].region
    divided = [axis for axis, length in enumerate(shape) if first.lengths[axis] != length]
    if len(divided) != 1 or len(pieces) < 2:
        return None
    (axis,) = divided
    ordered = sorted(pieces, key=lambda piece: piece.region.starts[axis])
    end = 0
    for region, _ in ordered:
        whole = (*shape[:axis], region.lengths[axis], *shape[axis + 1 :])
        if region.starts[axis] != end or region.steps[axis] != 1 or region.lengths != whole:
            return None
        end += region.lengths[axis]
    return lax.concatenate([value for _, value in ordered], axis) if end == shape[axis] else None


def _increment(
    x: jax.Array, y: jax.Array, index: Sequence[int | slice], node: Apply, context: Context
) -> jax.Array:
    """Add to a constant slice.

    The gradient of an array that is used in slices, as the gates of an LSTM are, adds each of them
    to zeros. Where they cover the array they are joined: in a sum of padded slices XLA works out
    every slice for the whole array.
    """
    pieces = _pieces_of(node, x, context)
    region = _region(index, x.shape)
    if 0 in region.lengths:
        return x
    if pieces is None or not all(_are_apart(region, other) for other, _ in pieces):
        return _change_constant_slice(x, y, index, overwrite=False)
    pieces = [*pieces, _Piece(region, _fit(y, region))]
    joined = _join(pieces, x.shape)
    if joined is None:
        joined = _change_constant_slice(x, y, index, overwrite=False)
    context.views.note_pieces(joined, pieces)
    return joined


def _change_constant_slice(
    x: jax.Array, y: jax.Array, index: Sequence[int | slice], *, overwrite: bool
) -> jax.Array:
    region = _region(index, x.shape)
    if 0 in region.lengths:
        return x
    y = _fit(y, region)
    if y.shape == x.shape:
        return y if overwrite else x + y
    return _write_region(x, y, region) if overwrite else _add_to_region(x, y, region)


def _is_computed_mask(index: Any) -> bool:
    """Tell whether an index selects by truth values that are computed from data."""
    return not is_known(index) and index.dtype == bool


@lowering(subtensor.IncSubtensor, subtensor.AdvancedIncSubtensor, subtensor.AdvancedIncSubtensor1)
def lower_inc_subtensor(op: Any, node: Apply, context: Context) -> Callable:
    """Overwrite or increment through an index; those of one place add up, if not told otherwise."""
    overwrite = op.set_instead_of_inc
    ignores_duplicates = getattr(op, "ignore_duplicates", False)

    def change(x: Any, y: Any, *operands: Any) -> jax.Array:
        x = jnp.asarray(x)
        y = jnp.asarray(y, x.dtype)
        if len(operands) == 1 and y.size == 1 and _is_computed_mask(operands[0]):
            mask = lax.expand_dims(operands[0], range(operands[0].ndim, x.ndim))
            return jnp.where(mask, y if overwrite else x + y, x)
        index = _index(op, operands)
        if _is_constant(index):
            if overwrite:
                return _change_constant_slice(x, y, index, overwrite=True)
            return _increment(x, y, index, node, context)
        place = x.at[index]
        if ignores_duplicates and not overwrite:
            return place.set(place.get(mode="fill") + y)
        return place.set(y) if overwrite else place.add(y)

    return change


@lowering(MakeSlice)
def lower_make_slice(op: Any, node: Apply, context: Context) -> Callable:
    """Put bounds into a slice."""
    return lambda *bounds: slice(*bounds)


def _fills_only_scalars(node: Apply, context: Context) -> bool:
    """Tell whether places are used for nothing but writing one number to all of them."""
    clients = [client for places in node.outputs for client in context.clients_of(places)]
    return bool(clients) and all(
        client is not None
        and isinstance(client.op, subtensor.AdvancedIncSubtensor)
        and all(client.inputs[1].type.broadcastable)
        for client in clients
    )


@lowering(basic.Nonzero, fold=False)
def lower_nonzero(op: Any, node: Apply, context: Context) -> Callable:
    """List the places of a mask that is known, or of one through which a number is written."""

    def nonzero(mask: Any) -> Any:
        if is_known(mask):
            places: tuple[Any, ...] = numpy.nonzero(mask)
        elif _fills_only_scalars(node, context):
            # As many places as there could be; those too many are outside, where nothing is kept.
            places = jnp.nonzero(mask, size=mask.size, fill_value=mask.shape)
        else:
            raise DataDependentShape(_MASK_MUST_BE_KNOWN, mask)
        return places if len(places) > 1 else places[0]

    return nonzero


@lowering(basic.PermuteRowElements, fold=False)
def lower_permute_rows(op: Any, node: Apply, context: Context) -> Callable:
    """Reorder the elements of each row, or undo that."""

    def permute_rows(x: Any, order: Any, inverse: Any) -> jax.Array:
        x, order = jnp.asarray(x), jnp.asarray(order)
        if known_int(inverse, "whether a permutation is undone"):
            order = jnp.argsort(order, axis=-1)
        shape = numpy.broadcast_shapes(x.shape, order.shape)
        x, order = jnp.broadcast_to(x, shape), jnp.broadcast_to(order, shape)
        return jnp.take_along_axis(x, order, axis=-1)

    return permute_rows


def _in_order(lengths: Any, order: str) -> list[tuple[int, int]]:
    """Pair axes and their lengths, the fastest varying first."""
    lengths = known_ints(lengths, "the shape that flat indices refer to")
    axes = list(enumerate(lengths))
    return axes[::-1] if order == "C" else axes


@lowering(extra_ops.UnravelIndex)
def lower_unravel_index(op: extra_ops.UnravelIndex, node: Apply, context: Context) -> Callable:
    """Split indices of a flattened array into one for each axis; they must be within it."""

    def unravel_index(flat: Any, lengths: Any) -> Any:
        rest = jnp.asarray(flat)
        axes = _in_order(lengths, op.order)
        size = math.prod(length for _, length in axes)
        context.check(
            jnp.all((rest >= 0) & (rest < size)),
            GraphError(f"{node.op}: an index is outside an array of {size} elements"),
        )
        places: dict[int, jax.Array] = {}
        for axis, length in axes:
            places[axis] = rest % length
            rest = rest // length
        results = tuple(places[axis] for axis in sorted(places))
        return results if len(results) > 1 else results[0]

    return unravel_index


@lowering(extra_ops.RavelMultiIndex)
def lower_ravel_multi_index(
    op: extra_ops.RavelMultiIndex, node: Apply, context: Context
) -> Callable:
    """Join an index for each axis to one of the flattened array."""

    def bounded(index: jax.Array, axis: int, length: int) -> jax.Array:
        if op.mode == "wrap":
            return index % length
        if op.mode == "clip":
            return jnp.clip(index, 0, length - 1)
        context.check(
            jnp.all((index >= 0) & (index < length)),
            GraphError(f"{node.op}: an index is outside axis {axis} of length {length}"),
        )
        return index

    def ravel_multi_index(*operands: Any) -> jax.Array:
        indices = [jnp.asarray(index, "int64") for index in operands[:-1]]
        flat, stride = jnp.zeros((), "int64"), 1
        for axis, length in _in_order(operands[-1], op.order):
            flat = flat + bounded(indices[axis], axis, length) * stride
            stride *= length
        return flat

    return ravel_multi_index
