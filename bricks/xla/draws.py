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
from jax import lax, random
from jax.scipy.special import ndtr, ndtri

from bricks.xla import variates
from bricks.xla.errors import GraphError
from bricks.xla.keys import GeneratorOfKey, NextKey
from bricks.xla.lowering import Context, is_known, known_int, known_ints, lowering

#: The chances of counts are good to three digits in float32 if there are no more trials.
_MAX_FLOAT32_TRIALS = 2**12


def _split(key: Any) -> jax.Array:
    """Derive the key of the next call and the key of this call's numbers."""
    return random.split(random.wrap_key_data(jnp.asarray(key), impl="threefry2x32"))


@lowering(GeneratorOfKey, fold=False)
def lower_generator(op: Any, node: Apply, context: Context) -> Callable:
    """Derive the key that draws this call's numbers; it stands for the generator."""
    return lambda key: _split(key)[1]


@lowering(NextKey, fold=False)
def lower_next_key(op: Any, node: Apply, context: Context) -> Callable:
    """Derive the key of the next call."""
    return lambda key: random.key_data(_split(key)[0])


def _uniform(key: Any, shape: Any, dtype: Any, low: Any, high: Any) -> jax.Array:
    return random.uniform(key, shape, dtype) * (high - low) + low


def _triangular(key: Any, shape: Any, dtype: Any, left: Any, mode: Any, right: Any) -> jax.Array:
    return random.triangular(key, left, mode, right, shape, dtype)


def _normal(key: Any, shape: Any, dtype: Any, mean: Any, deviation: Any) -> jax.Array:
    return random.normal(key, shape, dtype) * deviation + mean


def _half_normal(key: Any, shape: Any, dtype: Any, loc: Any, scale: Any) -> jax.Array:
    return jnp.abs(random.normal(key, shape, dtype)) * scale + loc


def _lognormal(key: Any, shape: Any, dtype: Any, mean: Any, deviation: Any) -> jax.Array:
    return jnp.exp(_normal(key, shape, dtype, mean, deviation))


def _truncated_normal(key: Any, shape: Any, dtype: Any, low: Any, high: Any) -> jax.Array:
    unit = random.uniform(key, shape, dtype)
    low, high = jnp.asarray(low, dtype), jnp.asarray(high, dtype)
    return variates.truncated_normal_quantile(unit, low, high, jnp, ndtr, ndtri)


def _multivariate_normal(key: Any, shape: Any, dtype: Any, mean: Any, covariance: Any) -> jax.Array:
    # Unlike Cholesky's factorization, this one knows singular covariances.
    return random.multivariate_normal(key, mean, covariance, shape, dtype, method="svd")


def _exponential(key: Any, shape: Any, dtype: Any, scale: Any) -> jax.Array:
    return random.exponential(key, shape, dtype) * scale


def _truncated_exponential(
    key: Any, shape: Any, dtype: Any, bound: Any, loc: Any, scale: Any
) -> jax.Array:
    unit = random.uniform(key, shape, dtype)
    return loc - scale * jnp.log1p(unit * jnp.expm1(-bound))


def _gumbel(key: Any, shape: Any, dtype: Any, loc: Any, scale: Any) -> jax.Array:
    return random.gumbel(key, shape, dtype) * scale + loc


def _laplace(key: Any, shape: Any, dtype: Any, loc: Any, scale: Any) -> jax.Array:
    return random.laplace(key, shape, dtype) * scale + loc


def _logistic(key: Any, shape: Any, dtype: Any, loc: Any, scale: Any) -> jax.Array:
    return random.logistic(key, shape, dtype) * scale + loc


def _cauchy(key: Any, shape: Any, dtype: Any, loc: Any, scale: Any) -> jax.Array:
    return random.cauchy(key, shape, dtype) * scale + loc


def _half_cauchy(key: Any, shape: Any, dtype: Any, loc: Any, scale: Any) -> jax.Array:
    return jnp.abs(random.cauchy(key, shape, dtype)) * scale + loc


def _rayleigh(key: Any, shape: Any, dtype: Any, scale: Any) -> jax.Array:
    return jnp.sqrt(2 * random.exponential(key, shape, dtype)) * scale


def _weibull(key: Any, shape: Any, dtype: Any, exponent: Any) -> jax.Array:
    return random.exponential(key, shape, dtype) ** (1 / jnp.asarray(exponent, dtype))


def _power(key: Any, shape: Any, dtype: Any, exponent: Any) -> jax.Array:
    return jnp.exp(-random.exponential(key, shape, dtype) / exponent)


def _pareto(key: Any, shape: Any, dtype: Any, exponent: Any, scale: Any) -> jax.Array:
    return jnp.exp(random.exponential(key, shape, dtype) / exponent) * scale


def _log_gamma(key: Any, shape: Any, dtype: Any, exponent: Any) -> jax.Array:
    """Draw logarithms of gamma variables of scale 1: small exponents make numbers near 0.

    By rejection, all at once until the last is accepted: hardly any needs more than a few tries.

    References
    ----------
    G. Marsaglia and W. W. Tsang, *A Simple Method for Generating Gamma Variables*, ACM TOMS 26,
    2000.
    """
    given = jnp.broadcast_to(jnp.asarray(exponent, dtype), shape)
    # Nothing would ever be accepted for what is no exponent.
    is_valid = (given > 0) & jnp.isfinite(given)
    exponent = jnp.where(is_valid, given, 1)
    tries, small = random.split(key)
    is_small = exponent < 1
    mode = jnp.where(is_small, exponent + 1, exponent) - 1 / 3
    width = 1 / jnp.sqrt(9 * mode)

    def try_again(state: Any) -> Any:
        number, logarithms, is_done = state
        one, other = random.split(random.fold_in(tries, number))
        x = random.normal(one, shape, dtype)
        step = jnp.maximum(width * x, -1)
        # The logarithm of (1 + step) ** 3, which is drawn, and (1 + step) ** 3 - 1.
        logarithm, excess = 3 * jnp.log1p(step), step * (3 + step * (3 + step))
        bound = x * x / 2 + mode * (logarithm - excess)
        is_accepted = -random.exponential(other, shape, dtype) < bound
        return (
            number + 1,
            jnp.where(is_accepted & ~is_done, logarithm, logarithms),
            is_done | is_accepted,
        )

    start = 0, jnp.zeros(shape, dtype), jnp.zeros(shape, bool)
    _, logarithms, _ = lax.while_loop(lambda state: ~state[2].all(), try_again, start)
    # An exponent below 1 is the one above, times a power of a uniform number.
    lower = -random.exponential(small, shape, dtype) / exponent
    result = jnp.log(mode) + logarithms + jnp.where(is_small, lower, 0)
    return jnp.where(is_valid, result, jnp.where(given == 0, -jnp.inf, jnp.nan))


def _gamma(key: Any, shape: Any, dtype: Any, exponent: Any, scale: Any) -> jax.Array:
    return jnp.exp(_log_gamma(key, shape, dtype, exponent)) * scale


def _inverse_gamma(key: Any, shape: Any, dtype: Any, exponent: Any, scale: Any) -> jax.Array:
    return jnp.exp(-_log_gamma(key, shape, dtype, exponent)) * scale


def _generalized_gamma(
    key: Any, shape: Any, dtype: Any, alpha: Any, power: Any, scale: Any
) -> jax.Array:
    exponent = jnp.asarray(alpha, dtype) / power
    return jnp.exp(_log_gamma(key, shape, dtype, exponent) / power) * scale


def _chi_square(key: Any, shape: Any, dtype: Any, freedom: Any) -> jax.Array:
    return _gamma(key, shape, dtype, jnp.asarray(freedom, dtype) / 2, 2)


def _f(key: Any, shape: Any, dtype: Any, first: Any, second: Any) -> jax.Array:
    one, other = random.split(key)
    numerator = _chi_square(one, shape, dtype, first) / first
    return numerator * second / _chi_square(other, shape, dtype, second)


def _student_t(key: Any, shape: Any, dtype: Any, freedom: Any, loc: Any, scale: Any) -> jax.Array:
    one, other = random.split(key)
    half = jnp.asarray(freedom, dtype) / 2
    spread = jnp.sqrt(half) * jnp.exp(-_log_gamma(one, shape, dtype, half) / 2)
    return random.normal(other, shape, dtype) * spread * scale + loc


def _wald(key: Any, shape: Any, dtype: Any, mean: Any, scale: Any) -> jax.Array:
    ratio = jnp.asarray(mean, dtype) / scale
    return random.wald(key, ratio, shape, dtype) * scale


def _beta(key: Any, shape: Any, dtype: Any, a: Any, b: Any) -> jax.Array:
    one, other = random.split(key)
    first, second = _log_gamma(one, shape, dtype, a), _log_gamma(other, shape, dtype, b)
    return jax.nn.sigmoid(first - second)


def _dirichlet(key: Any, shape: Any, dtype: Any, alphas: Any) -> jax.Array:
    shape = (*shape, numpy.shape(alphas)[-1])
    return jax.nn.softmax(_log_gamma(key, shape, dtype, alphas), axis=-1)


def _poisson(key: Any, shape: Any, dtype: Any, rate: Any) -> jax.Array:
    one, other = random.split(key)
    counting = _counting_dtype(rate)
    rate = jnp.broadcast_to(jnp.asarray(rate, counting), shape)
    is_valid = (rate >= 0) & jnp.isfinite(rate)
    is_large = is_valid & (rate >= 10)
    few = _arrivals(one, jnp.where(is_valid & ~is_large, rate, 0))
    many = _many_arrivals(other, jnp.where(is_large, rate, 10))
    return jnp.where(is_valid, jnp.where(is_large, many, few), -1)


def _arrivals(key: Any, rates: jax.Array) -> jax.Array:
    """Draw Poisson variables of small means: as many waiting times as pass in that time."""

    def wait(state: Any) -> Any:
        number, counts, time = state
        pause = random.exponential(random.fold_in(key, number), rates.shape, rates.dtype)
        time = time + pause
        return number + 1, counts + (time <= rates), time

    zeros = jnp.zeros_like(rates)
    return lax.while_loop(lambda state: (state[2] <= rates).any(), wait, (0, zeros, zeros))[1]


def _many_arrivals(key: Any, rates: jax.Array) -> jax.Array:
    """Draw Poisson variables of means of at least 10, by rejection.

    JAX does it in float32, where the chances of large counts are lost.

    References
    ----------
    W. Hörmann, *The transformed rejection method for generating Poisson random variables*,
    Insurance: Mathematics and Economics 12, 1993; algorithm PTRS.
    """
    b = 0.931 + 2.53 * jnp.sqrt(rates)
    a = 0.02483 * b - 0.059
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)

    def try_again(state: Any) -> Any:
        number, counts, is_done = state
        one, other = random.split(random.fold_in(key, number))
        u = random.uniform(one, rates.shape, rates.dtype) - 0.5
        v = random.uniform(other, rates.shape, rates.dtype)
        edge = 0.5 - jnp.abs(u)
        count = jnp.floor((2 * a / edge + b) * u + rates + 0.43)
        height = jnp.log(v * inverse_alpha / (a / (edge * edge) + b))
        is_below = height <= count * jnp.log(rates) - rates - lax.lgamma(count + 1)
        is_possible = (count >= 0) & ((edge >= 0.013) | (v <= edge))
        is_accepted = ((edge >= 0.07) & (v <= squeeze)) | (is_possible & is_below)
        return number + 1, jnp.where(is_accepted & ~is_done, count, counts), is_done | is_accepted

    start = 0, jnp.zeros_like(rates), jnp.zeros(rates.shape, bool)
    return lax.while_loop(lambda state: ~state[2].all(), try_again, start)[1]


def _geometric(key: Any, shape: Any, dtype: Any, p: Any) -> jax.Array:
    # The number of the first success, from the time to it: log1p keeps small probabilities.
    time = random.exponential(key, shape, jnp.float64)
    return jnp.maximum(jnp.ceil(-time / jnp.log1p(-jnp.asarray(p, jnp.float64))), 1)


def _bernoulli(key: Any, shape: Any, dtype: Any, p: Any) -> jax.Array:
    return random.bernoulli(key, p, shape)


def _counting_dtype(n: Any) -> Any:
    """Choose the float in which trials, or what is expected of them, are counted."""
    is_small = is_known(n) and numpy.max(n, initial=0) <= _MAX_FLOAT32_TRIALS
    return jnp.float32 if is_small else jnp.float64


def _binomial(key: Any, shape: Any, dtype: Any, n: Any, p: Any) -> jax.Array:
    counting = _counting_dtype(n)
    p = jnp.asarray(p, counting)
    return random.binomial(key, jnp.asarray(n, counting), p, shape, counting)


def _negative_binomial(key: Any, shape: Any, dtype: Any, n: Any, p: Any) -> jax.Array:
    one, other = random.split(key)
    p = jnp.asarray(p, jnp.float64)
    rate = _gamma(one, shape, jnp.float64, n, (1 - p) / p)
    return _poisson(other, shape, dtype, rate)


def _beta_binomial(key: Any, shape: Any, dtype: Any, n: Any, a: Any, b: Any) -> jax.Array:
    one, other = random.split(key)
    return _binomial(other, shape, dtype, n, _beta(one, shape, jnp.float32, a, b))


def _integers(key: Any, shape: Any, dtype: Any, low: Any, high: Any) -> jax.Array:
    return random.randint(key, shape, low, high, dtype)


def _categorical(key: Any, shape: Any, dtype: Any, probabilities: Any) -> jax.Array:
    return random.categorical(key, jnp.log(probabilities), axis=-1, shape=shape)


def _multinomial(key: Any, shape: Any, dtype: Any, n: Any, probabilities: Any) -> jax.Array:
    num_categories = numpy.shape(probabilities)[-1]
    if is_known(n) and numpy.ndim(n) == 0 and n <= num_categories:
        trials = int(n)
        places = random.categorical(key, jnp.log(probabilities), axis=-1, shape=(trials, *shape))
        return jax.nn.one_hot(places, num_categories, dtype=dtype).sum(axis=0)
    return _counts(key, shape, n, jnp.asarray(probabilities))


def _counts(key: Any, shape: Any, n: Any, probabilities: jax.Array) -> jax.Array:
    """Draw one category's count after the other, each binomial given those before it."""
    counting = _counting_dtype(n)
    rest = jnp.cumsum(probabilities[..., ::-1], axis=-1)[..., ::-1]
    # The last category that has a chance at all takes what is left, because it is all of the rest.
    chances = jnp.where(rest > 0, probabilities / rest, 0).astype(counting)

    def step(trials: jax.Array, operands: Any) -> tuple[jax.Array, jax.Array]:
        own, chance = operands
        count = random.binomial(own, trials, chance, shape, counting)
        return trials - count, count

    trials = jnp.broadcast_to(jnp.asarray(n, counting), shape)
    keys = random.split(key, chances.shape[-1])
    _, counts = lax.scan(step, trials, (keys, jnp.moveaxis(chances, -1, 0)))
    return jnp.moveaxis(counts, 0, -1)


def _choice(
    key: Any, shape: Any, dtype: Any, elements: Any, probabilities: Any, replace: Any
) -> jax.Array:
    replaces = bool(known_int(replace, "whether a choice is with replacement"))
    return random.choice(key, jnp.asarray(elements), shape, replaces, probabilities)


def _permutation(key: Any, shape: Any, dtype: Any, elements: Any) -> jax.Array:
    if numpy.ndim(elements) == 0:
        return random.permutation(key, known_int(elements, "the length of a permutation"))
    return random.permutation(key, jnp.asarray(elements))


def _order(key: Any, shape: Any, dtype: Any, n: Any) -> jax.Array:
    length = known_int(n, "the length of a permutation")
    integers = jnp.broadcast_to(jnp.arange(length), (*shape, length))
    return random.permutation(key, integers, axis=-1, independent=True)


_DISTRIBUTIONS: dict[type, Callable[..., jax.Array]] = {
    variates.Order: _order,
    variates.TruncatedNormal: _truncated_normal,
    basic.BernoulliRV: _bernoulli,
    basic.BetaBinomialRV: _beta_binomial,
    basic.BetaRV: _beta,
    basic.BinomialRV: _binomial,
    basic.CategoricalRV: _categorical,
    basic.CauchyRV: _cauchy,
    basic.ChiSquareRV: _chi_square,
    basic.ChoiceRV: _choice,
    basic.DirichletRV: _dirichlet,
    basic.ExponentialRV: _exponential,
    basic.FRV: _f,
    basic.GammaRV: _gamma,
    basic.GenGammaRV: _generalized_gamma,
    basic.GeometricRV: _geometric,
    basic.GumbelRV: _gumbel,
    basic.HalfCauchyRV: _half_cauchy,
    basic.HalfNormalRV: _half_normal,
    basic.IntegersRV: _integers,
    basic.InvGammaRV: _inverse_gamma,
    basic.LaplaceRV: _laplace,
    basic.LogNormalRV: _lognormal,
    basic.LogisticRV: _logistic,
    basic.MultinomialRV: _multinomial,
    basic.MvNormalRV: _multivariate_normal,
    basic.NegBinomialRV: _negative_binomial,
    basic.NormalRV: _normal,
    basic.ParetoRV: _pareto,
    basic.PermutationRV: _permutation,
    basic.PoissonRV: _poisson,
    basic.PowerRV: _power,
    basic.RayleighRV: _rayleigh,
    basic.StudentTRV: _student_t,
    basic.TriangularRV: _triangular,
    basic.TruncExponentialRV: _truncated_exponential,
    basic.UniformRV: _uniform,
    basic.WaldRV: _wald,
    basic.WeibullRV: _weibull,
}


@lowering(*_DISTRIBUTIONS, fold=False)
def lower_random_variable(op: RandomVariable, node: Apply, context: Context) -> Callable:
    """Draw from a distribution; the generator that is passed on is a key of its own."""
    distribution = next(
        _DISTRIBUTIONS[class_] for class_ in type(op).__mro__ if class_ in _DISTRIBUTIONS
    )
    dtype = node.outputs[1].type.dtype

    def draw(key: Any, size: Any, dtype_number: Any, *parameters: Any) -> tuple[Any, jax.Array]:
        shape = _shape_of_draws(op, size, parameters)
        following, own = random.split(key)
        arrays = (
            parameter if parameter is None or numpy.ndim(parameter) == 0 else jnp.asarray(parameter)
            for parameter in parameters
        )
        return following, distribution(own, shape, dtype, *arrays)

    return draw


def _shape_of_draws(op: RandomVariable, size: Any, parameters: Sequence[Any]) -> tuple[int, ...]:
    """Return how many draws are wanted: the size, or the shape of the parameters together.

    Raises
    ------
    GraphError
        If the parameters do not fit the size.
    """
    shapes = [
        numpy.shape(parameter)[: numpy.ndim(parameter) - taken]
        for parameter, taken in zip(parameters, op.ndims_params, strict=True)
        if parameter is not None
    ]
    together = numpy.broadcast_shapes(*shapes)
    if not numpy.size(size):
        return together
    shape = known_ints(size, "the size of a random draw")
    ends = shape[len(shape) - len(together) :]
    is_fitting = all(given in (1, wanted) for given, wanted in zip(together, ends, strict=False))
    if len(together) > len(shape) or not is_fitting:
        raise GraphError(
            f"the parameters of a draw from {op.name} have shape {together}, which does not "
            f"broadcast to its size {shape}"
        )
    return shape
