"""Lowerings of products of matrices, decompositions, cumulative sums and sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor import blas, extra_ops, math, nlinalg, slinalg
from aesara.tensor.sort import ArgSortOp, SortOp
from jax import lax

from bricks.xla.lowering import Context, known_int, lowering


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


@lowering(extra_ops.CumOp)
def lower_cumulation(op: Any, node: Apply, context: Context) -> Callable:
    """Add or multiply up along an axis, or over all elements."""
    function = jnp.cumsum if op.mode == "add" else jnp.cumprod
    return lambda x: function(jnp.asarray(x), axis=op.axis)


@lowering(extra_ops.SearchsortedOp)
def lower_searchsorted(op: Any, node: Apply, context: Context) -> Callable:
    """Find where values belong in a sorted vector."""

    def searchsorted(x: Any, values: Any, sorter: Any = None) -> jax.Array:
        x = jnp.asarray(x) if sorter is None else jnp.asarray(x)[jnp.asarray(sorter)]
        return jnp.searchsorted(x, jnp.asarray(values), side=op.side)

    return searchsorted


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


@lowering(SortOp)
def lower_sort(op: Any, node: Apply, context: Context) -> Callable:
    """Sort along an axis."""
    return lambda x, axis: jnp.sort(jnp.asarray(x), axis=known_int(axis, "the axis to sort along"))


@lowering(ArgSortOp)
def lower_argsort(op: Any, node: Apply, context: Context) -> Callable:
    """Find the order that sorts along an axis."""

    def argsort(x: Any, axis: Any) -> jax.Array:
        return jnp.argsort(jnp.asarray(x), axis=known_int(axis, "the axis to sort along"))

    return argsort


@lowering(nlinalg.MatrixInverse)
def lower_matrix_inverse(op: Any, node: Apply, context: Context) -> Callable:
    """Invert a matrix."""
    return lambda x: jnp.linalg.inv(jnp.asarray(x))


@lowering(nlinalg.Det)
def lower_determinant(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the determinant of a matrix."""
    return lambda x: jnp.linalg.det(jnp.asarray(x))


@lowering(slinalg.Cholesky)
def lower_cholesky(op: Any, node: Apply, context: Context) -> Callable:
    """Factorize a positive definite matrix into a triangle and its transpose."""

    def cholesky(x: Any) -> jax.Array:
        factor = jnp.linalg.cholesky(jnp.asarray(x))
        return factor if op.lower else factor.T

    return cholesky


@lowering(slinalg.Solve)
def lower_solve(op: Any, node: Apply, context: Context) -> Callable:
    """Solve a system of linear equations."""

    def solve(a: Any, b: Any) -> jax.Array:
        return jax.scipy.linalg.solve(jnp.asarray(a), jnp.asarray(b), lower=op.lower)

    return solve


@lowering(slinalg.SolveTriangular)
def lower_solve_triangular(op: Any, node: Apply, context: Context) -> Callable:
    """Solve a system of linear equations whose matrix is a triangle."""

    def solve_triangular(a: Any, b: Any) -> jax.Array:
        return jax.scipy.linalg.solve_triangular(
            jnp.asarray(a),
            jnp.asarray(b),
            trans=op.trans,
            lower=op.lower,
            unit_diagonal=op.unit_diagonal,
        )

    return solve_triangular
