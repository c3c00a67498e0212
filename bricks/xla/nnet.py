"""Lowerings of softmax, cross-entropy and what Aesara fuses them to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor import special
from aesara.tensor.nnet import basic
from aesara.tensor.nnet.blocksparse import SparseBlockGemv, SparseBlockOuter
from jax import lax

from bricks.xla.lowering import Context, lowering


@lowering(special.Softmax)
def lower_softmax(op: Any, node: Apply, context: Context) -> Callable:
    """Normalize exponentials over an axis, or over all of them."""
    return lambda x: jax.nn.softmax(jnp.asarray(x), axis=op.axis)


@lowering(special.LogSoftmax)
def lower_log_softmax(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the logarithm of a softmax."""
    return lambda x: jax.nn.log_softmax(jnp.asarray(x), axis=op.axis)


@lowering(special.SoftmaxGrad)
def lower_softmax_grad(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the gradient of a softmax from its result."""

    def softmax_grad(gradient: Any, probabilities: Any) -> jax.Array:
        product = jnp.asarray(gradient) * probabilities
        return product - jnp.sum(product, axis=op.axis, keepdims=True) * probabilities

    return softmax_grad


@lowering(basic.SoftmaxWithBias)
def lower_softmax_with_bias(op: Any, node: Apply, context: Context) -> Callable:
    """Add a bias and normalize exponentials over the rows."""
    return lambda x, bias: jax.nn.softmax(jnp.asarray(x) + bias, axis=-1)


def _is_target(targets: Any, probabilities: jax.Array) -> jax.Array:
    """Mark the target of each row: elementwise work, where an index would be a scatter."""
    classes = lax.broadcasted_iota(jnp.int32, probabilities.shape, 1)
    return classes == jnp.asarray(targets)[:, None]


def _pick(x: jax.Array, targets: Any) -> jax.Array:
    """Take the element of each row that its target says; NaN where there is none."""
    rows = jnp.arange(x.shape[0], dtype=jnp.int32)
    return x.at[rows, jnp.asarray(targets)].get(mode="fill")


@lowering(basic.CrossentropySoftmaxArgmax1HotWithBias)
def lower_crossentropy_softmax(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the cross-entropy, the probabilities and the likeliest class of each row."""

    def crossentropy_softmax(x: Any, bias: Any, targets: Any) -> tuple[jax.Array, ...]:
        scores = jnp.asarray(x) + bias
        logarithms = jax.nn.log_softmax(scores, axis=-1)
        return (
            -_pick(logarithms, targets),
            jnp.exp(logarithms),
            jnp.argmax(scores, axis=-1),
        )

    return crossentropy_softmax


@lowering(basic.CrossentropySoftmax1HotWithBiasDx)
def lower_crossentropy_softmax_grad(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the gradient of the cross-entropy of a softmax."""

    def crossentropy_softmax_grad(gradient: Any, probabilities: Any, targets: Any) -> jax.Array:
        probabilities = jnp.asarray(probabilities)
        hits = _is_target(targets, probabilities).astype(probabilities.dtype)
        return (probabilities - hits) * jnp.reshape(jnp.asarray(gradient), (-1, 1))

    return crossentropy_softmax_grad


@lowering(basic.CrossentropyCategorical1Hot)
def lower_crossentropy(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the cross-entropy of each row with its target."""
    return lambda probabilities, targets: -jnp.log(_pick(jnp.asarray(probabilities), targets))


@lowering(basic.CrossentropyCategorical1HotGrad)
def lower_crossentropy_grad(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the gradient of the cross-entropy of each row."""

    def crossentropy_grad(gradient: Any, probabilities: Any, targets: Any) -> jax.Array:
        probabilities = jnp.asarray(probabilities)
        slopes = -jnp.reshape(jnp.asarray(gradient), (-1, 1)) / probabilities
        return jnp.where(_is_target(targets, probabilities), slopes, jnp.zeros_like(slopes))

    return crossentropy_grad


@lowering(basic.Prepend_scalar_to_each_row)
def lower_prepend(op: Any, node: Apply, context: Context) -> Callable:
    """Put a number in front of each row."""

    def prepend(value: Any, x: Any) -> jax.Array:
        x = jnp.asarray(x)
        column = jnp.full((x.shape[0], 1), jnp.asarray(value, x.dtype))
        return jnp.concatenate([column, x], axis=1)

    return prepend


@lowering(basic.Prepend_scalar_constant_to_each_row)
def lower_prepend_constant(
    op: basic.Prepend_scalar_constant_to_each_row, node: Apply, context: Context
) -> Callable:
    """Put a constant in front of each row."""
    value = getattr(op.val, "data", op.val)
    return lambda x: jnp.pad(jnp.asarray(x), ((0, 0), (1, 0)), constant_values=value)


@lowering(SparseBlockGemv)
def lower_block_product(op: SparseBlockGemv, node: Apply, context: Context) -> Callable:
    """Multiply pieces of vectors with the blocks of a matrix that indices choose."""

    def block_product(y: Any, weights: Any, x: Any, sources: Any, targets: Any) -> jax.Array:
        blocks = jnp.asarray(weights)[sources[:, :, None], targets[:, None, :]]
        return y + jnp.einsum("bis,bijst->bjt", jnp.asarray(x), blocks)

    return block_product


@lowering(SparseBlockOuter)
def lower_block_outer(op: SparseBlockOuter, node: Apply, context: Context) -> Callable:
    """Add outer products of pieces of vectors to the blocks that indices choose.

    Aesara's own evaluation leaves the factor out, and so does this one.
    """

    def block_outer(
        weights: Any, x: Any, y: Any, sources: Any, targets: Any, factor: Any
    ) -> jax.Array:
        products = jnp.einsum("bis,bjt->bijst", jnp.asarray(x), jnp.asarray(y))
        places = jnp.asarray(weights).at[sources[:, :, None], targets[:, None, :]]
        return places.add(products)

    return block_outer
