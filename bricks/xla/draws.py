"""Lowerings of random draws, with JAX's counter-based threefry generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Apply
from aesara.tensor.random import basic
from aesara.tensor.random.op import RandomVariable

from bricks.xla.errors import UnsupportedOp
from bricks.xla.lowering import Context, known_ints, lowering
from bricks.xla.sampling import GeneratorOfKey, NextKey


def _split(key: Any) -> jax.Array:
    """Derive the key of the next call and the key of this call's numbers."""
    return jax.random.split(jax.random.wrap_key_data(jnp.asarray(key), impl="threefry2x32"))


@lowering(GeneratorOfKey, fold=False)
def lower_generator(op: Any, node: Apply, context: Context) -> Callable:
    """Derive the key that draws this call's numbers; it stands for the generator."""
    return lambda key: _split(key)[1]


@lowering(NextKey, fold=False)
def lower_next_key(op: Any, node: Apply, context: Context) -> Callable:
    """Derive the key of the next call."""
    return lambda key: jax.random.key_data(_split(key)[0])


def _uniform(key: Any, shape: Any, dtype: Any, low: Any, high: Any) -> jax.Array:
    return jax.random.uniform(key, shape, dtype) * (high - low) + low


def _normal(key: Any, shape: Any, dtype: Any, mean: Any, deviation: Any) -> jax.Array:
    return jax.random.normal(key, shape, dtype) * deviation + mean


def _binomial(key: Any, shape: Any, dtype: Any, n: Any, p: Any) -> jax.Array:
    return jax.random.binomial(key, jnp.asarray(n, jnp.float32), p, shape, jnp.float32)


def _integers(key: Any, shape: Any, dtype: Any, low: Any, high: Any) -> jax.Array:
    return jax.random.randint(key, shape, low, high, dtype)


def _categorical(key: Any, shape: Any, dtype: Any, probabilities: Any) -> jax.Array:
    return jax.random.categorical(key, jnp.log(probabilities), axis=-1, shape=shape)


def _multinomial(key: Any, shape: Any, dtype: Any, n: Any, probabilities: Any) -> jax.Array:
    (trials,) = known_ints([n], "the number of trials of a multinomial draw")
    places = jax.random.categorical(key, jnp.log(probabilities), axis=-1, shape=(trials, *shape))
    return jax.nn.one_hot(places, numpy.shape(probabilities)[-1], dtype=dtype).sum(axis=0)


_DISTRIBUTIONS: dict[type, Callable[..., jax.Array]] = {
    basic.UniformRV: _uniform,
    basic.NormalRV: _normal,
    basic.BinomialRV: _binomial,
    basic.IntegersRV: _integers,
    basic.CategoricalRV: _categorical,
    basic.MultinomialRV: _multinomial,
}


@lowering(RandomVariable, fold=False)
def lower_random_variable(op: RandomVariable, node: Apply, context: Context) -> Callable:
    """Draw from a distribution; the generator that is passed on is a key of its own."""
    distribution = _DISTRIBUTIONS.get(type(op))
    if distribution is None:
        raise UnsupportedOp(
            f"XLA has no lowering for draws from {op.name}. Draw with the methods of "
            "bricks.xla.RandomStream, or compile this function with backend='py'."
        )
    dtype = node.outputs[1].type.dtype

    def draw(key: Any, size: Any, dtype_number: Any, *parameters: Any) -> tuple[Any, jax.Array]:
        shape = known_ints(size, "the size of a random draw") if numpy.size(size) else ()
        shape = shape or _batch_shape(op, parameters)
        following, own = jax.random.split(key)
        arrays = (
            parameter if numpy.ndim(parameter) == 0 else jnp.asarray(parameter)
            for parameter in parameters
        )
        return following, distribution(own, shape, dtype, *arrays)

    return draw


def _batch_shape(op: RandomVariable, parameters: Sequence[Any]) -> tuple[int, ...]:
    """Broadcast the shapes of the parameters, without the axes that one draw takes."""
    shapes = [
        numpy.shape(parameter)[: numpy.ndim(parameter) - taken]
        for parameter, taken in zip(parameters, op.ndims_params, strict=True)
    ]
    return numpy.broadcast_shapes(*shapes)
