"""Lowerings of the discrete Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor.fft import IRFFTOp, RFFTOp
from aesara.tensor.fourier import Fourier

from bricks.xla.lowering import Context, known_int, known_ints, lowering

__all__: list[str] = []


@lowering(RFFTOp, fold=False)
def lower_real_transform(op: RFFTOp, node: Apply, context: Context) -> Callable:
    """Transform real arrays over all axes but the first; real and imaginary parts come last."""

    def real_transform(x: Any, lengths: Any) -> jax.Array:
        lengths = known_ints(lengths, "the lengths of a Fourier transform")
        result = jnp.fft.rfft(jnp.asarray(x), n=lengths[-1], axis=-1)
        # One axis after the other: XLA transforms three axes at most at once.
        for axis, length in zip(range(-len(lengths), -1), lengths[:-1], strict=True):
            result = jnp.fft.fft(result, n=length, axis=axis)
        return jnp.stack([result.real, result.imag], axis=-1)

    return real_transform


@lowering(IRFFTOp, fold=False)
def lower_inverse_real_transform(op: IRFFTOp, node: Apply, context: Context) -> Callable:
    """Transform back to real arrays, without a factor."""

    def inverse_real_transform(x: Any, lengths: Any) -> jax.Array:
        lengths = known_ints(lengths, "the lengths of a Fourier transform")
        result = _from_pairs(jnp.asarray(x))
        for axis, length in zip(range(-len(lengths), -1), lengths[:-1], strict=True):
            result = jnp.fft.ifft(result, n=length, axis=axis)
        result = jnp.fft.irfft(result, n=lengths[-1], axis=-1)
        return result * math.prod(lengths)

    return inverse_real_transform


def _from_pairs(pairs: jax.Array) -> jax.Array:
    """Make pairs of real numbers, on the last axis, complex numbers."""
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


@lowering(Fourier, fold=False)
def lower_transform(op: Fourier, node: Apply, context: Context) -> Callable:
    """Transform along one axis, cut or padded with zeros to a length."""

    def transform(x: Any, length: Any, axis: Any) -> jax.Array:
        length = known_int(length, "the length of a Fourier transform")
        axis = known_int(axis, "the axis of a Fourier transform")
        return jnp.fft.fft(jnp.asarray(x, node.outputs[0].type.dtype), n=length, axis=axis)

    return transform
