"""The arithmetic of the models written by hand in JAX, with parameters that are donated.

Everything is as the models have it: the names of parameters, the order of operations where it
matters for speed, the gradient of a maximum over windows. What JAX offers is used where it is the
faster choice: gradients are its own, and for the LSTM there is a backward pass by hand too.
"""

from __future__ import annotations

import functools
import resource
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax import lax

LEARNING_RATE = 0.1

Parameters = Mapping[str, jax.Array]
Sizes = Mapping[str, int]


def _cross_entropy(targets: jax.Array, scores: jax.Array) -> jax.Array:
    # Compared, not indexed: on the CPU an index costs a scatter in the gradient.
    chosen = jnp.arange(scores.shape[-1]) == targets[..., None]
    log_probabilities = jax.nn.log_softmax(scores, axis=-1)
    return -jnp.where(chosen, log_probabilities, 0).sum(axis=-1).mean()


def mlp(p: Parameters, sizes: Sizes, features: jax.Array, targets: jax.Array) -> jax.Array:
    """Compute the cost of the perceptron; see `models.mlp`."""
    hidden = features
    for number in range(2):
        hidden = jnp.maximum(hidden @ p[f"W{number}"] + p[f"b{number}"], 0)
    return _cross_entropy(targets, hidden @ p["W2"] + p["b2"])


def _lstm_step(gates: jax.Array, cell: jax.Array) -> tuple[jax.Array, ...]:
    """Compute the activations of the gates, the new cell and its hyperbolic tangent."""
    new, keep, candidate, shown = jnp.split(gates, 4, axis=-1)
    new, keep, shown = jax.nn.sigmoid(new), jax.nn.sigmoid(keep), jax.nn.sigmoid(shown)
    candidate = jnp.tanh(candidate)
    cell = keep * cell + new * candidate
    return new, keep, candidate, shown, cell, jnp.tanh(cell)


def _last_state(inputs: jax.Array, recurrent: jax.Array) -> jax.Array:
    """Run the recurrence; JAX finds the gradient."""

    def step(carry: tuple[jax.Array, jax.Array], gates: jax.Array) -> Any:
        state, cell = carry
        *_, shown, cell, squashed = _lstm_step(gates + state @ recurrent, cell)
        return (shown * squashed, cell), None

    start = jnp.zeros((inputs.shape[1], recurrent.shape[0]), inputs.dtype)
    (state, _), _ = lax.scan(step, (start, start), inputs)
    return state


@jax.custom_vjp
def _last_state_by_hand(inputs: jax.Array, recurrent: jax.Array) -> jax.Array:
    return _last_state(inputs, recurrent)


def _forward(inputs: jax.Array, recurrent: jax.Array) -> Any:
    """Run the recurrence and keep what its gradient needs, so that nothing is computed twice."""

    def step(carry: tuple[jax.Array, jax.Array], gates: jax.Array) -> Any:
        state, cell = carry
        new, keep, candidate, shown, following, squashed = _lstm_step(
            gates + state @ recurrent, cell
        )
        kept = (state, cell, new, keep, candidate, shown, squashed)
        return (shown * squashed, following), kept

    start = jnp.zeros((inputs.shape[1], recurrent.shape[0]), inputs.dtype)
    (state, _), kept = lax.scan(step, (start, start), inputs)
    return state, (kept, recurrent)


def _backward(residuals: Any, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Go back through time, then compute the gradient of the weights as one product."""
    kept, recurrent = residuals
    transposed = recurrent.T

    def step(carry: tuple[jax.Array, jax.Array], values: Any) -> Any:
        of_state, of_cell = carry
        _, cell, new, keep, candidate, shown, squashed = values
        of_cell = of_cell + of_state * shown * (1 - squashed * squashed)
        of_gates = jnp.concatenate(
            [
                of_cell * candidate * new * (1 - new),
                of_cell * cell * keep * (1 - keep),
                of_cell * new * (1 - candidate * candidate),
                of_state * squashed * shown * (1 - shown),
            ],
            axis=-1,
        )
        return (of_gates @ transposed, of_cell * keep), of_gates

    start = (gradient, jnp.zeros_like(gradient))
    _, of_inputs = lax.scan(step, start, kept, reverse=True)
    states = kept[0]
    units = recurrent.shape[0]
    of_recurrent = states.reshape(-1, units).T @ of_inputs.reshape(-1, 4 * units)
    return of_inputs, of_recurrent


_last_state_by_hand.defvjp(_forward, _backward)


def lstm(
    p: Parameters,
    sizes: Sizes,
    features: jax.Array,
    targets: jax.Array,
    *,
    last_state: Callable = _last_state,
) -> jax.Array:
    """Compute the cost of the LSTM; see `models.lstm`."""
    state = last_state(features @ p["W"] + p["b"], p["U"])
    return _cross_entropy(targets, state @ p["Wo"] + p["bo"])


def _gated_update(inputs: Any, gates: Any, state: Any, recurrent: Any) -> jax.Array:
    update, reset = jnp.split(jax.nn.sigmoid(gates), 2, axis=-1)
    candidate = jnp.tanh(inputs + (reset * state) @ recurrent)
    return update * candidate + (1 - update) * state


def attention(p: Parameters, sizes: Sizes, source: jax.Array, target: jax.Array) -> jax.Array:
    """Compute the cost of the decoder with attention; see `models.attention`."""
    units = sizes["units"]

    def encode(state: jax.Array, inputs: jax.Array) -> Any:
        gates = inputs[:, : 2 * units] + state @ p["encoder_Ug"]
        state = _gated_update(inputs[:, 2 * units :], gates, state, p["encoder_Uc"])
        return state, state

    start = jnp.zeros((source.shape[1], units), p["K"].dtype)
    inputs = p["source_table"][source] @ p["encoder_W"] + p["encoder_b"]
    _, annotations = lax.scan(encode, start, inputs)
    keys = annotations @ p["K"] + p["k"]

    def decode(state: jax.Array, inputs: jax.Array) -> Any:
        energies = jnp.tanh(keys + state @ p["Q"]) @ p["v"]
        attended = jax.nn.softmax(energies, axis=0)
        context = (attended[:, :, None] * annotations).sum(axis=0)
        gates = inputs[:, : 2 * units] + state @ p["Ug"] + context @ p["Cg"]
        inputs = inputs[:, 2 * units :] + context @ p["Cc"]
        state = _gated_update(inputs, gates, state, p["Uc"])
        return state, (state, context)

    inputs = p["target_table"][target[:-1]] @ p["W"] + p["b"]
    _, outputs = lax.scan(decode, start, inputs)
    scores = jnp.concatenate(outputs, axis=-1) @ p["Wo"] + p["bo"]
    return _cross_entropy(target[1:], scores)


@jax.custom_vjp
def _pool(x: jax.Array) -> jax.Array:
    window = (1, 1, 2, 2)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def _pool_backward(residuals: tuple[jax.Array, jax.Array], gradient: jax.Array) -> Any:
    """Give the gradient of a window to all its elements that are its maximum."""
    x, maximum = residuals
    batch, channels, height, width = maximum.shape
    windows = x.reshape(batch, channels, height, 2, width, 2)
    is_maximum = windows == maximum[:, :, :, None, :, None]
    return (jnp.where(is_maximum, gradient[:, :, :, None, :, None], 0).reshape(x.shape),)


def _pool_forward(x: jax.Array) -> Any:
    maximum = _pool(x)
    return maximum, (x, maximum)


_pool.defvjp(_pool_forward, _pool_backward)


def conv(p: Parameters, sizes: Sizes, features: jax.Array, targets: jax.Array) -> jax.Array:
    """Compute the cost of the network of convolutions; see `models.conv`."""
    hidden = features
    for number in range(2):
        hidden = lax.conv_general_dilated(hidden, p[f"K{number}"], (1, 1), "SAME")
        hidden = _pool(jnp.maximum(hidden + p[f"c{number}"][:, None, None], 0))
    return _cross_entropy(targets, hidden.reshape(len(hidden), -1) @ p["W"] + p["b"])


def _normalize(x: jax.Array) -> jax.Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def _attend(parts: jax.Array, heads: int) -> jax.Array:
    batch, steps, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
    parts = parts.reshape(batch, steps, 3, heads, width // heads)
    query, key, value = (parts[:, :, number].transpose(0, 2, 1, 3) for number in range(3))
    scores = query @ key.transpose(0, 1, 3, 2) * (width // heads) ** -0.5
    places = jnp.arange(steps)
    scores = jnp.where(places[:, None] >= places, scores, -1e9)
    attended = jax.nn.softmax(scores, axis=-1) @ value
    return attended.transpose(0, 2, 1, 3).reshape(batch, steps, width)


def transformer(p: Parameters, sizes: Sizes, words: jax.Array, targets: jax.Array) -> jax.Array:
    """Compute the cost of the transformer; see `models.transformer`."""
    hidden = p["table"][words] + p["places"]
    for k in range(2):
        normal = _normalize(hidden) * p[f"scale{k}0"]
        attended = _attend(normal @ p[f"P{k}"] + p[f"p{k}"], sizes["heads"])
        hidden = hidden + attended @ p[f"A{k}"] + p[f"a{k}"]
        normal = _normalize(hidden) * p[f"scale{k}1"]
        inner = jnp.maximum(normal @ p[f"F{k}"] + p[f"f{k}"], 0)
        hidden = hidden + inner @ p[f"G{k}"] + p[f"g{k}"]
    return _cross_entropy(targets, _normalize(hidden) @ p["Wo"] + p["bo"])


def embedding(p: Parameters, sizes: Sizes, words: jax.Array, targets: jax.Array) -> jax.Array:
    """Compute the cost of the model with the large table; see `models.embedding`."""
    return _cross_entropy(targets, p["table"][words].mean(axis=1) @ p["W"] + p["b"])


def overhead(p: Parameters, sizes: Sizes, x: jax.Array) -> jax.Array:
    """Compute the cost of a model of many small parameters; see `models.overhead`."""
    return sum((x * parameter).sum() for parameter in p.values())


COSTS: dict[str, Callable] = {
    "mlp": mlp,
    "lstm": lstm,
    "lstm by hand": functools.partial(lstm, last_state=_last_state_by_hand),
    "attention": attention,
    "conv": conv,
    "transformer": transformer,
    "embedding": embedding,
    "overhead10": overhead,
    "overhead100": overhead,
}


class Step:
    """A compiled training step.

    Parameters
    ----------
    name : str
        Of the model, with ``" by hand"`` for a gradient by hand.
    sizes : dict
        Of the model.
    parameters : dict of str to array
        First values.
    batch : list of array
        For which it is compiled.
    device : str
        Such as ``'cpu'``.
    """

    def __init__(
        self,
        name: str,
        sizes: Sizes,
        parameters: Mapping[str, numpy.ndarray],
        batch: list[numpy.ndarray],
        device: str,
    ):
        jax.config.update("jax_platforms", device)
        cost = COSTS[name]

        @functools.partial(jax.jit, donate_argnums=0)
        def step(parameters: Parameters, *batch: jax.Array) -> Any:
            value, gradients = jax.value_and_grad(cost)(parameters, sizes, *batch)
            updated = {
                name: parameter - LEARNING_RATE * gradients[name]
                for name, parameter in parameters.items()
            }
            return updated, value

        self._parameters = {name: jnp.array(value) for name, value in parameters.items()}
        start = time.perf_counter()
        lowered = step.lower(self._parameters, *batch)
        traced = time.perf_counter()
        self.compiled = lowered.compile()
        compiled = time.perf_counter()
        self._build = {"trace": traced - start, "compile": compiled - traced}
        self._step = step

    def __call__(self, batch: list[numpy.ndarray]) -> float:
        """Train on a batch and return the cost before that."""
        self._parameters, cost = self._step(self._parameters, *batch)
        return float(cost)

    def figures(self) -> dict[str, Any]:
        """Give what is measured beside the time of a step.

        Returns
        -------
        dict
            ``build``, seconds by stage; ``memory``, bytes of XLA's buffers for a step; ``peak``,
            bytes that the process took at most; ``version``.
        """
        return {
            "build": self._build,
            "memory": buffers(self.compiled),
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "version": f"jax {jax.__version__}",
        }


def buffers(compiled: Any) -> int:
    """Count the bytes of all buffers that a compiled program needs at once.

    Parameters
    ----------
    compiled : jax.stages.Compiled

    Returns
    -------
    int
        Of what it is given, what it returns and what it needs between, without counting twice
        what is written into the place of what was given.
    """
    sizes = compiled.memory_analysis()
    return (
        sizes.argument_size_in_bytes
        + sizes.output_size_in_bytes
        - sizes.alias_size_in_bytes
        + sizes.temp_size_in_bytes
    )
