"""Lowerings of what makes, joins, splits and reshapes arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.graph.basic import Apply
from aesara.tensor import basic, extra_ops
from aesara.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape, Unbroadcast
from jax import lax

from bricks.xla.errors import GraphError
from bricks.xla.lowering import Context, known_int, known_ints, lowering


def _product(*lengths: Any) -> int:
    return math.prod(int(length) for length in lengths)


def _length_of_range(start: Any, stop: Any, step: Any) -> int:
    return max(0, math.ceil((stop - start) / step)) if step else 0


@lowering(Shape)
def lower_shape(op: Any, node: Apply, context: Context) -> Callable:
    """Return the shape, which is known."""
    return lambda x: numpy.asarray(numpy.shape(x), dtype=numpy.int64)


@lowering(Shape_i)
def lower_shape_i(op: Any, node: Apply, context: Context) -> Callable:
    """Return the length of one axis, which is known."""
    return lambda x: numpy.asarray(numpy.shape(x)[op.i], dtype=numpy.int64)


@lowering(Reshape)
def lower_reshape(op: Any, node: Apply, context: Context) -> Callable:
    """Reshape; a length of -1 is whatever remains."""
    return lambda x, lengths: jnp.reshape(
        jnp.asarray(x), known_ints(lengths, "the shape to reshape to")
    )


@lowering(SpecifyShape)
def lower_specify_shape(op: Any, node: Apply, context: Context) -> Callable:
    """Check a shape and pass the array on."""

    def specify_shape(x: Any, *lengths: Any) -> Any:
        for axis, (length, expected) in enumerate(zip(numpy.shape(x), lengths, strict=True)):
            if expected is not None and length != known_int(expected, "a specified length"):
                raise GraphError(
                    f"axis {axis} of {node.inputs[0].name or 'an array'} must have length "
                    f"{int(expected)}; got shape {numpy.shape(x)}"
                )
        return jnp.asarray(x)

    return specify_shape


@lowering(Unbroadcast, ViewOp, extra_ops.CpuContiguous)
def lower_view(op: Any, node: Apply, context: Context) -> Callable:
    """Pass the value on."""
    return lambda x: x


@lowering(DeepCopyOp, fold=False)
def lower_copy(op: Any, node: Apply, context: Context) -> Callable:
    """Pass the value on; arrays of XLA are never changed, so none needs a copy."""
    return lambda x: x


@lowering(basic.TensorFromScalar, basic.ScalarFromTensor)
def lower_scalar_tensor(op: Any, node: Apply, context: Context) -> Callable:
    """Pass the value on; a number is an array without axes."""
    return lambda x: x


def _broadcast(x: Any, lengths: tuple[int, ...], node: Apply) -> jax.Array:
    """Repeat an array along axes that the graph knows to have length 1, or does not know."""
    source, x = node.inputs[0], jnp.asarray(x)
    for axis, length in enumerate(x.shape):
        wanted = lengths[axis - x.ndim]
        if length == 1 and wanted != 1 and not source.type.broadcastable[axis]:
            raise GraphError(
                f"axis {axis} of {source.name or 'an array'} has length 1 and would be repeated to "
                f"{wanted}, but its type, {source.type}, does not say so, and its gradient would "
                "be wrong. Declare the length with aesara.tensor.addbroadcast(x, axis)"
            )
    return jnp.broadcast_to(x, lengths)


@lowering(basic.Alloc, extra_ops.BroadcastTo, size=lambda x, *lengths: _product(*lengths))
def lower_alloc(op: Any, node: Apply, context: Context) -> Callable:
    """Fill a new array with repetitions of a smaller one."""
    return lambda x, *lengths: _broadcast(x, known_ints(lengths, "the shape of a new array"), node)


@lowering(basic.AllocEmpty, fold=False)
def lower_alloc_empty(op: Any, node: Apply, context: Context) -> Callable:
    """Make an array whose content does not matter, but is the same in every process."""
    return lambda *lengths: jnp.zeros(known_ints(lengths, "the shape of a new array"), op.dtype)


@lowering(basic.ARange, size=_length_of_range)
def lower_arange(op: Any, node: Apply, context: Context) -> Callable:
    """Count from a start to a stop."""

    def arange(start: Any, stop: Any, step: Any) -> jax.Array:
        first, end, stride = known_ints((start, stop, step), "the bounds of an arange")
        return jnp.arange(first, end, stride, dtype=op.dtype)

    def arange_of_floats(*bounds: Any) -> jax.Array:
        for bound in bounds:
            known_int(bound, "the bounds of an arange")
        first, end, stride = (numpy.asarray(bound).item() for bound in bounds)
        return jnp.arange(first, end, stride, dtype=op.dtype)

    return arange if op.dtype.startswith(("int", "uint")) else arange_of_floats


@lowering(basic.Eye, size=lambda n, m, k: _product(n, m))
def lower_eye(op: Any, node: Apply, context: Context) -> Callable:
    """Make a matrix with ones on a diagonal."""

    def eye(*operands: Any) -> jax.Array:
        rows, columns, diagonal = known_ints(operands, "the shape of an eye")
        return jnp.eye(rows, columns, diagonal, dtype=op.dtype)

    return eye


@lowering(basic.Tri, size=lambda n, m, k: _product(n, m))
def lower_tri(op: Any, node: Apply, context: Context) -> Callable:
    """Make a matrix with ones on and below a diagonal."""

    def tri(*operands: Any) -> jax.Array:
        rows, columns, diagonal = known_ints(operands, "the shape of a tri")
        return jnp.tri(rows, columns, diagonal, dtype=op.dtype)

    return tri


@lowering(basic.MakeVector)
def lower_make_vector(op: Any, node: Apply, context: Context) -> Callable:
    """Put numbers into a vector."""
    return lambda *numbers: jnp.stack([jnp.asarray(number, op.dtype) for number in numbers])


@lowering(basic.Join)
def lower_join(op: Any, node: Apply, context: Context) -> Callable:
    """Concatenate arrays along an axis."""
    dtype = node.outputs[0].type.dtype

    def join(axis: Any, *arrays: Any) -> jax.Array:
        axis = known_int(axis, "the axis to join along")
        return jnp.concatenate([jnp.asarray(array, dtype) for array in arrays], axis=axis)

    return join


@lowering(basic.Split)
def lower_split(op: Any, node: Apply, context: Context) -> Callable:
    """Cut an array along an axis into parts of given lengths."""

    def split(x: Any, axis: Any, lengths: Any) -> Any:
        axis = known_int(axis, "the axis to split along")
        stops = numpy.cumsum(known_ints(lengths, "the lengths to split into"))
        if stops[-1] != x.shape[axis]:
            raise GraphError(
                f"the parts have {stops[-1]} elements together, axis {axis} has {x.shape[axis]}"
            )
        parts = jnp.split(jnp.asarray(x), [int(stop) for stop in stops[:-1]], axis=axis)
        return tuple(parts) if len(parts) > 1 else parts[0]

    return split


@lowering(extra_ops.Repeat, size=lambda x, repeats: numpy.size(x) * int(numpy.max(repeats)))
def lower_repeat(op: Any, node: Apply, context: Context) -> Callable:
    """Repeat the elements along an axis."""

    def repeat(x: Any, repeats: Any) -> jax.Array:
        if numpy.ndim(repeats) == 0:
            counts: Any = known_int(repeats, "how often to repeat")
        else:
            counts = numpy.asarray(known_ints(repeats, "how often to repeat"))
        return jnp.repeat(jnp.asarray(x), counts, axis=op.axis)

    return repeat


@lowering(basic.ExtractDiag)
def lower_diagonal(op: Any, node: Apply, context: Context) -> Callable:
    """Take a diagonal."""
    return lambda x: jnp.diagonal(jnp.asarray(x), offset=op.offset, axis1=op.axis1, axis2=op.axis2)


@lowering(basic.AllocDiag)
def lower_alloc_diagonal(op: Any, node: Apply, context: Context) -> Callable:
    """Put a vector on the diagonal of a new array."""

    def alloc_diagonal(x: Any) -> jax.Array:
        x = jnp.asarray(x)
        length = x.shape[-1] + abs(op.offset)
        places = jnp.arange(x.shape[-1])
        matrix = jnp.zeros((*x.shape[:-1], length, length), x.dtype)
        rows, columns = places + max(0, -op.offset), places + max(0, op.offset)
        return jnp.moveaxis(matrix.at[..., rows, columns].set(x), (-2, -1), (op.axis1, op.axis2))

    return alloc_diagonal


@lowering(basic.Choose)
def lower_choose(op: Any, node: Apply, context: Context) -> Callable:
    """Pick each element from one of several arrays."""
    mode = "clip" if op.mode == "raise" else op.mode
    return lambda places, choices: jnp.choose(places, list(choices), mode=mode)


@lowering(extra_ops.FillDiagonal)
def lower_fill_diagonal(op: Any, node: Apply, context: Context) -> Callable:
    """Overwrite the main diagonal."""
    return lambda x, value: jnp.fill_diagonal(
        jnp.asarray(x), jnp.asarray(value, x.dtype), inplace=False
    )


@lowering(extra_ops.FillDiagonalOffset)
def lower_fill_offset_diagonal(op: Any, node: Apply, context: Context) -> Callable:
    """Overwrite the diagonal that lies some columns to the right of the main one."""

    def fill_offset_diagonal(x: Any, value: Any, offset: Any) -> jax.Array:
        x = jnp.asarray(x)
        rows = lax.broadcasted_iota("int64", x.shape, 0)
        columns = lax.broadcasted_iota("int64", x.shape, 1)
        return jnp.where(columns - rows == offset, jnp.asarray(value, x.dtype), x)

    return fill_offset_diagonal


@lowering(extra_ops.Bartlett)
def lower_bartlett(op: Any, node: Apply, context: Context) -> Callable:
    """Make a triangular window of known length."""
    return lambda length: jnp.asarray(numpy.bartlett(known_int(length, "the length of a window")))
