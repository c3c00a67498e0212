"""Special functions that JAX lacks, as functions of arrays in one dtype.

Each says how far from the true value it may be. They are made of elementwise arithmetic, so XLA
fuses them with what surrounds them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import aesara.scalar.math as special
import jax
import jax.numpy as jnp
import numpy
from jax import lax
from jax.scipy import special as jax_special

from bricks.xla.errors import DataDependentShape, GraphError
from bricks.xla.lowering import is_known

__all__ = ["INTEGER_ORDER", "SPECIAL"]

#: Orders of Bessel functions are summed up to this one; the formulas are sharp far beyond it.
_MAX_ORDER = 10

#: From here on asymptotic series of Bessel functions reach the last bit of float64.
_FAR = 100.0

#: Enough points for the trapezoid rule over a full turn to be exact for arguments below `_FAR`.
_NUM_POINTS = 192

_NUM_TERMS = 30


def erfcx(x: jax.Array) -> jax.Array:
    """Compute exp(x^2) erfc(x), within 1e-14 of it in float64 and 5e-6 in float32."""
    far = x > 6
    near_x = jnp.where(far, 0, x)
    near = jnp.exp(near_x**2) * lax.erfc(near_x)
    # The continued fraction of the complementary error function, from its far end.
    tail = jnp.zeros_like(x)
    far_x = jnp.where(far, x, 6)
    for k in range(60, 0, -1):
        tail = (k / 2) / (far_x + tail)
    return jnp.where(far, 1 / (math.sqrt(math.pi) * (far_x + tail)), near)


def erfcinv(x: jax.Array) -> jax.Array:
    """Invert erfc, accurately also near 0, where 1 - x would round to 1."""
    return -jax_special.ndtri(x / 2) / math.sqrt(2)


def _owens_integral(h: jax.Array, a: jax.Array) -> jax.Array:
    """Integrate Owen's function for a between 0 and 1."""
    nodes, weights = numpy.polynomial.legendre.leggauss(40)
    total = jnp.zeros_like(h)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        slope = 1 + (a * node) ** 2
        total = total + weight * jnp.exp(-(h**2) * slope / 2) / slope
    return a * total / (2 * math.pi)


def owens_t(h: jax.Array, a: jax.Array) -> jax.Array:
    """Compute Owen's T function, within 1e-14 in float64."""
    h, sign, a = jnp.abs(h), jnp.sign(a), jnp.abs(a)
    steep = a > 1
    flat = _owens_integral(h, jnp.where(steep, 0, a))
    safe = jnp.where(steep, a, 1)
    upper, upper_scaled = lax.erfc(h / math.sqrt(2)) / 2, lax.erfc(safe * h / math.sqrt(2)) / 2
    # In tails, not in distribution functions: their difference from 1 would round to nothing.
    mirrored = (upper + upper_scaled) / 2 - upper * upper_scaled
    swapped = mirrored - _owens_integral(jnp.where(steep, safe * h, 0), 1 / safe)
    return sign * jnp.where(steep, swapped, flat)


def _hankel_terms(order: int) -> list[float]:
    """List the coefficients of the asymptotic series of Bessel functions."""
    terms = [1.0]
    for k in range(1, _NUM_TERMS):
        terms.append(terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return terms


def _series_in_inverse(x: jax.Array, terms: list[float]) -> jax.Array:
    """Sum terms[k] / x**k."""
    total = jnp.zeros_like(x)
    for term in reversed(terms):
        total = total / x + term
    return total


def _turn(order: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return angles around half a turn and the weights of a mean over a whole one.

    The integrands are even in the angle, so half of the points will do.
    """
    angles = numpy.arange(_NUM_POINTS // 2 + 1) * (2 * math.pi / _NUM_POINTS)
    weights = numpy.full(len(angles), 2.0 / _NUM_POINTS)
    weights[[0, -1]] /= 2
    return angles, weights


def bessel_j(order: int, x: jax.Array) -> jax.Array:
    """Compute the Bessel function of the first kind of an integer order, within 1e-14."""
    sign = (-1.0) ** order if order < 0 else 1.0
    order, size = abs(order), jnp.abs(x)
    far = size > _FAR
    near_x, far_x = jnp.where(far, 0, x)[..., None], jnp.where(far, size, _FAR)
    angles, weights = _turn(order)
    waves = jnp.cos(order * jnp.asarray(angles, x.dtype) - near_x * numpy.sin(angles))
    near = jnp.sum(waves * jnp.asarray(weights, x.dtype), axis=-1)
    terms = _hankel_terms(order)
    phase = far_x - (order / 2 + 0.25) * math.pi
    even = _series_in_inverse(far_x**2, [t * (-1) ** k for k, t in enumerate(terms[::2])])
    odd = _series_in_inverse(far_x**2, [t * (-1) ** k for k, t in enumerate(terms[1::2])]) / far_x
    decay = jnp.sqrt(2 / (math.pi * far_x))
    parity = jnp.where(x < 0, (-1.0) ** order, 1.0)
    distant = parity * decay * (even * jnp.cos(phase) - odd * jnp.sin(phase))
    return (sign * jnp.where(far, distant, near)).astype(x.dtype)


def bessel_i(order: int, x: jax.Array) -> jax.Array:
    """Compute the modified Bessel function of the first kind of an integer order.

    Within 1e-13 of the largest of its neighbours in order, so not sharp for x near 0.
    """
    order, size = abs(order), jnp.abs(x)
    far = size > _FAR
    near_x, far_x = jnp.where(far, 0, size)[..., None], jnp.where(far, size, _FAR)
    angles, weights = _turn(order)
    mixture = jnp.asarray(weights * numpy.cos(order * angles), x.dtype)
    near = jnp.sum(jnp.exp(near_x * jnp.asarray(numpy.cos(angles), x.dtype)) * mixture, axis=-1)
    terms = [term * (-1) ** k for k, term in enumerate(_hankel_terms(order))]
    distant = jnp.exp(far_x) / jnp.sqrt(2 * math.pi * far_x) * _series_in_inverse(far_x, terms)
    parity = jnp.where(x < 0, (-1.0) ** order, 1.0)
    return (parity * jnp.where(far, distant, near)).astype(x.dtype)


def _of_integer_order(function: Callable, name: str) -> Callable:
    """Make a Bessel function one of a constant order and an array."""

    def bessel(order: Any, x: Any) -> jax.Array:
        if not is_known(order):
            raise DataDependentShape(f"the order of {name} must be known", order)
        orders = numpy.unique(order)
        if len(orders) != 1 or orders[0] != round(orders[0]) or abs(orders[0]) > _MAX_ORDER:
            raise GraphError(
                f"XLA computes {name} for one whole order between -{_MAX_ORDER} and {_MAX_ORDER}; "
                f"got {orders}"
            )
        shape = jnp.broadcast_shapes(numpy.shape(order), x.shape)
        return jnp.broadcast_to(function(int(orders[0]), x), shape)

    return bessel


def _beta_continued_fraction(a: jax.Array, b: jax.Array, x: jax.Array) -> jax.Array:
    """Compute the regularized incomplete beta function for x below its mean.

    With the continued fraction of W. H. Press et al., *Numerical Recipes*, section 6.4, by the
    method of Lentz; JAX can differentiate it by `a` and `b`.
    """
    tiny = jnp.finfo(x.dtype).tiny

    def keep(value: jax.Array) -> jax.Array:
        return jnp.where(jnp.abs(value) < tiny, tiny, value)

    def step(m: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        c, d, product = state
        m = m.astype(x.dtype)
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            d, c = 1 / keep(1 + coefficient * d), keep(1 + coefficient / c)
            product = product * c * d
        return c, d, product

    d = 1 / keep(1 - (a + b) * x / (a + 1))
    _, _, fraction = lax.fori_loop(1, 200, step, (jnp.ones_like(d), d, d))
    logarithm = a * jnp.log(x) + b * jnp.log1p(-x) - jnp.log(a)
    logarithm = logarithm + lax.lgamma(a + b) - lax.lgamma(a) - lax.lgamma(b)
    return jnp.exp(logarithm) * fraction


def betainc_der(a: jax.Array, b: jax.Array, x: jax.Array, by_a: jax.Array) -> jax.Array:
    """Differentiate the regularized incomplete beta function by `a` where told, else by `b`."""
    inside = (x > 0) & (x < 1)
    safe = jnp.where(inside, x, 0.5)
    above = safe > (a + 1) / (a + b + 2)
    first, second = jnp.where(above, b, a), jnp.where(above, a, b)
    place = jnp.where(above, 1 - safe, safe)
    by_first = (jnp.asarray(by_a) != 0) != above
    tangents = (by_first.astype(x.dtype), 1 - by_first.astype(x.dtype))
    _, slope = jax.jvp(
        lambda p, q: _beta_continued_fraction(p, q, place), (first, second), tangents
    )
    valid = (x >= 0) & (x <= 1) & (a >= 0) & (b >= 0)
    slope = jnp.where(inside, jnp.where(above, -slope, slope), 0)
    return jnp.where(valid, slope, jnp.nan)


def hyp2f1_der(
    a: jax.Array, b: jax.Array, c: jax.Array, z: jax.Array, which: jax.Array
) -> jax.Array:
    """Differentiate Gauss's hypergeometric function by the parameter of the given number.

    Its series is summed to at most 10,000 terms, for z within (-1, 1); NaN elsewhere.
    """
    inside = jnp.abs(z) < 1
    safe = jnp.where(inside, z, 0)
    picks = [(jnp.asarray(which) == place).astype(z.dtype) for place in range(3)]

    def is_going_on(state: Any) -> jax.Array:
        k, _, change, total = state
        small = jnp.finfo(z.dtype).eps * jnp.abs(total)
        return (k < 10_000) & ((k < 2) | jnp.any(jnp.abs(change) > small))

    def step(state: Any) -> Any:
        k, term, change, total = state
        ratio = (a + k) * (b + k) / ((c + k) * (1 + k)) * safe
        slope = picks[0] * (b + k) / ((c + k) * (1 + k)) * safe
        slope = slope + picks[1] * (a + k) / ((c + k) * (1 + k)) * safe
        slope = slope - picks[2] * ratio / (c + k)
        term, change = term * ratio, change * ratio + term * slope
        return k + 1, term, change, total + change

    shape = jnp.broadcast_shapes(*(array.shape for array in (a, b, c, z, picks[0])))
    zero = jnp.zeros(shape, z.dtype)
    start = (jnp.zeros((), z.dtype), jnp.ones_like(zero), zero, zero)
    total = lax.while_loop(is_going_on, step, start)[3]
    return jnp.where(inside, total, jnp.nan)


def _chi2_tail(x: jax.Array, k: jax.Array) -> jax.Array:
    return jax_special.gammaincc(k / 2, x / 2)


#: Functions of operands in the dtype of the output.
SPECIAL: dict[type, Callable] = {
    special.BetaInc: jax_special.betainc,
    special.BetaIncDer: betainc_der,
    special.Chi2SF: _chi2_tail,
    special.Erfcinv: erfcinv,
    special.Erfcx: erfcx,
    special.GammaIncCDer: lambda k, x: -lax.igamma_grad_a(k, x),
    special.GammaIncDer: lax.igamma_grad_a,
    special.GammaL: lambda k, x: jax_special.gammainc(k, x) * jax_special.gamma(k),
    special.GammaU: lambda k, x: jax_special.gammaincc(k, x) * jax_special.gamma(k),
    special.Hyp2F1: jax_special.hyp2f1,
    special.Hyp2F1Der: hyp2f1_der,
    special.J0: functools.partial(bessel_j, 0),
    special.J1: functools.partial(bessel_j, 1),
    special.Owens_t: owens_t,
}

#: Functions of an order, which must be known, and of an operand in the dtype of the output.
INTEGER_ORDER: dict[type, Callable] = {
    special.Iv: _of_integer_order(bessel_i, "the modified Bessel function"),
    special.Jv: _of_integer_order(bessel_j, "the Bessel function"),
}
