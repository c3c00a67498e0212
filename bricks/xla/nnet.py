"""Lowerings of softmax, cross-entropy and what Aesara fuses them to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor import special
from aesara.tensor.nnet import basic
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
