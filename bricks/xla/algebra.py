"""Lowerings of products of matrices, cumulative sums, and places of largest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor import blas, extra_ops, math
from jax import lax

from bricks.xla.lowering import Context, lowering


@lowering(math.Dot, blas.Dot22)
def lower_dot(op: Any, node: Apply, context: Context) -> Callable:
    """Multiply matrices and vectors."""
    dtype = node.outputs[0].type.dtype

    def dot(x: Any, y: Any) -> jax.Array:
        return jnp.dot(jnp.asarray(x, dtype), jnp.asarray(y, dtype))

    return dot


@lowering(math.MatMul)
def lower_matmul(op: Any, node: Apply, context: Context) -> Callable:
    """Multiply stacks of matrices, broadcasting the leading axes."""
    dtype = node.outputs[0].type.dtype
    return lambda x, y: jnp.matmul(jnp.asarray(x, dtype), jnp.asarray(y, dtype))


@lowering(blas.BatchedDot)
def lower_batched_dot(op: Any, node: Apply, context: Context) -> Callable:
    """Multiply the matrices of two stacks of equal length, pair by pair."""
    dtype = node.outputs[0].type.dtype

    def batched_dot(x: Any, y: Any) -> jax.Array:
        x, y = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
        return lax.dot_general(x, y, (((x.ndim - 1,), (1,)), ((0,), (0,))))

    return batched_dot


@lowering(blas.Dot22Scalar)
def lower_scaled_dot(op: Any, node: Apply, context: Context) -> Callable:
    """Multiply matrices and a number."""
    return lambda x, y, factor: factor * jnp.dot(jnp.asarray(x), jnp.asarray(y))


@lowering(blas.Gemm, blas.Gemv)
def lower_gemm(op: Any, node: Apply, context: Context) -> Callable:
    """Add a scaled product to a scaled matrix or vector."""

    def gemm(z: Any, factor: Any, x: Any, y: Any, decay: Any) -> jax.Array:
        return decay * jnp.asarray(z) + factor * jnp.dot(jnp.asarray(x), jnp.asarray(y))

    return gemm


@lowering(blas.Ger)
def lower_ger(op: Any, node: Apply, context: Context) -> Callable:
    """Add a scaled outer product to a matrix."""
    return lambda z, factor, x, y: jnp.asarray(z) + factor * jnp.outer(x, y)


@lowering(math.Convolve)
def lower_convolve(op: Any, node: Apply, context: Context) -> Callable:
    """Convolve two vectors."""
    return lambda x, y: jnp.convolve(jnp.asarray(x), jnp.asarray(y), mode=op.mode)


@lowering(extra_ops.CumOp)
def lower_cumulation(op: Any, node: Apply, context: Context) -> Callable:
    """Add or multiply up along an axis, or over all elements."""
    function = jnp.cumsum if op.mode == "add" else jnp.cumprod
    return lambda x: function(jnp.asarray(x), axis=op.axis)


def _with_axes_last(x: jax.Array, axes: Sequence[int] | None) -> jax.Array:
    """Move axes behind the others and join them to one."""
    if axes is None:
        return x.reshape(-1)
    axes = [axis % x.ndim for axis in axes]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [x.shape[axis] for axis in kept]
    return jnp.transpose(x, [*kept, *axes]).reshape([*shape, -1])


@lowering(math.Argmax)
def lower_argmax(op: Any, node: Apply, context: Context) -> Callable:
    """Find the first place of the largest element."""
    return lambda x: jnp.argmax(_with_axes_last(jnp.asarray(x), op.axis), axis=-1)


@lowering(math.MaxAndArgmax)
def lower_max_and_argmax(op: Any, node: Apply, context: Context) -> Callable:
    """Find the largest element and its first place."""

    def max_and_argmax(x: Any) -> tuple[jax.Array, jax.Array]:
        x = _with_axes_last(jnp.asarray(x), op.axis)
        return jnp.max(x, axis=-1), jnp.argmax(x, axis=-1)

    return max_and_argmax
