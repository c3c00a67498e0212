"""The random operations of Aesara draw from their distributions when XLA computes them."""

import numpy
import pytest
from aesara import tensor
from aesara.tensor.random import basic
from scipy import stats

from bricks import xla
from bricks.xla.sampling import GeneratorOfKey, make_key

#: Chance that one comparison raises a false alarm with a seed drawn at random; the seeds are fixed.
FALSE_ALARM = 1e-4
NUMBER = 5000

CONTINUOUS = {
    "beta": (basic.beta, (2, 3), stats.beta(2, 3)),
    "cauchy": (basic.cauchy, (1, 2), stats.cauchy(1, 2)),
    "chisquare": (basic.chisquare, (3,), stats.chi2(3)),
    "exponential": (basic.exponential, (2,), stats.expon(0, 2)),
    "f": (basic.f, (4, 6), stats.f(4, 6)),
    "gamma": (basic.gamma, (2, 3), stats.gamma(2, 0, 1 / 3)),
    "gengamma": (basic.gengamma, (2, 3, 4), stats.gengamma(2 / 3, 3, 0, 4)),
    "gumbel": (basic.gumbel, (1, 2), stats.gumbel_r(1, 2)),
    "halfcauchy": (basic.halfcauchy, (1, 2), stats.halfcauchy(1, 2)),
    "halfnormal": (basic.halfnormal, (1, 2), stats.halfnorm(1, 2)),
    "invgamma": (basic.invgamma, (2, 3), stats.invgamma(2, 0, 3)),
    "laplace": (basic.laplace, (1, 2), stats.laplace(1, 2)),
    "logistic": (basic.logistic, (1, 2), stats.logistic(1, 2)),
    "lognormal": (basic.lognormal, (1, 0.5), stats.lognorm(0.5, 0, numpy.e)),
    "normal": (basic.normal, (1, 2), stats.norm(1, 2)),
    "pareto": (basic.pareto, (3, 2), stats.pareto(3, 0, 2)),
    "power": (basic.power, (3,), stats.powerlaw(3)),
    "rayleigh": (basic.rayleigh, (2,), stats.rayleigh(0, 2)),
    "t": (basic.t, (4, 1, 2), stats.t(4, 1, 2)),
    "triangular": (basic.triangular, (1, 2, 5), stats.triang(0.25, 1, 4)),
    "truncexpon": (basic.truncexpon, (2, 1, 3), stats.truncexpon(2, 1, 3)),
    "uniform": (basic.uniform, (1, 3), stats.uniform(1, 2)),
    "wald": (basic.wald, (2, 3), stats.invgauss(2 / 3, 0, 3)),
    "weibull": (basic.weibull, (2,), stats.weibull_min(2)),
}

DISCRETE = {
    "bernoulli": (basic.bernoulli, (0.3,), stats.bernoulli(0.3)),
    "betabinom": (basic.betabinom, (5, 2, 3), stats.betabinom(5, 2, 3)),
    "binomial": (basic.binomial, (5, 0.3), stats.binom(5, 0.3)),
    "geometric": (basic.geometric, (0.3,), stats.geom(0.3)),
    "integers": (basic.integers, (3, 7), stats.randint(3, 7)),
    "nbinom": (basic.nbinom, (3, 0.4), stats.nbinom(3, 0.4)),
    "poisson": (basic.poisson, (3,), stats.poisson(3)),
}


def generator(number=0):
    return GeneratorOfKey()(xla.shared(make_key(5, "aesara", number)))


@pytest.fixture(scope="module")
def drawn():
    cases = {**CONTINUOUS, **DISCRETE}
    draws = {
        name: operation(
            *(numpy.asarray(parameter, "float32") for parameter in parameters)
            if name in CONTINUOUS
            else parameters,
            size=(NUMBER,),
            rng=generator(number),
        )
        for number, (name, (operation, parameters, _)) in enumerate(cases.items())
    }
    return xla.function([], draws)()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_real_numbers_follow_their_distribution(drawn, name):
    assert stats.kstest(drawn[name], CONTINUOUS[name][2].cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", DISCRETE)
def test_integers_come_up_as_often_as_their_distribution_says(drawn, name):
    values, distribution = drawn[name], DISCRETE[name][2]
    top = int(distribution.ppf(0.999))
    counts = numpy.bincount(numpy.minimum(values, top), minlength=top + 1)
    expected = distribution.pmf(numpy.arange(top + 1)) * NUMBER
    expected[top] += distribution.sf(top) * NUMBER
    possible = expected > 0

    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], expected[possible]).pvalue > FALSE_ALARM


def test_normal_vectors_have_their_mean_and_a_covariance_that_may_be_singular():
    mean = numpy.array([1, 2, 3], "float32")
    covariance = numpy.array([[2, 1, 0], [1, 1, 0], [0, 0, 0]], "float32")
    draws = basic.multivariate_normal(mean, covariance, size=(NUMBER,), rng=generator())

    values = xla.function([], draws)()

    # Five standard errors.
    numpy.testing.assert_allclose(values.mean(axis=0), mean, atol=5 * numpy.sqrt(2 / NUMBER))
    numpy.testing.assert_allclose(numpy.cov(values.T), covariance, atol=5 * numpy.sqrt(8 / NUMBER))


def test_choices_and_permutations_are_of_their_elements():
    elements = tensor.constant(numpy.array([10, 20, 30, 40]))
    rows = tensor.constant(numpy.arange(6).reshape(3, 2))
    draws = [
        basic.choice(elements, size=(50,), rng=generator(0)),
        basic.choice(elements, size=(4,), replace=False, rng=generator(1)),
        basic.choice(elements, size=(50,), p=numpy.array([0, 0.5, 0.5, 0]), rng=generator(2)),
        basic.permutation(elements, rng=generator(3)),
        basic.permutation(rows, rng=generator(4)),
        basic.permutation(5, rng=generator(5)),
    ]

    any_, all_, some, turned, rows, numbers = xla.function([], draws)()

    assert set(any_) == {10, 20, 30, 40}
    assert sorted(all_) == sorted(turned) == [10, 20, 30, 40]
    assert set(some) == {20, 30}
    assert sorted(map(tuple, rows)) == [(0, 1), (2, 3), (4, 5)]
    assert sorted(numbers) == [0, 1, 2, 3, 4]


def test_the_generator_that_is_passed_on_draws_other_numbers():
    first = basic.normal(size=(3,), rng=generator())
    second = basic.normal(size=(3,), rng=first.owner.outputs[0])

    values = xla.function([], [first, second])()

    assert set(values[0]).isdisjoint(values[1])


def test_parameters_that_are_no_numbers_give_none():
    stream, x = xla.RandomStream(1), tensor.dvector("x")
    draws = [stream.gamma(None, x), stream.beta(None, x, 1.0), stream.poisson(None, x)]

    gamma, beta, poisson = xla.function([x], draws)([numpy.nan, -1.0, numpy.inf, 0.0, 2.0])

    assert numpy.isnan(gamma).tolist() == [True, True, True, False, False]
    assert numpy.isnan(beta).tolist() == [True, True, True, False, False]
    assert gamma[3] == beta[3] == poisson[3] == 0
    assert poisson[:3].tolist() == [-1, -1, -1]
    assert poisson[4] >= 0


def test_parameters_that_do_not_fit_the_size_are_refused_in_words():
    x = tensor.vector("x")
    draws = basic.normal(x, 1, size=(2, 3), rng=generator())

    with pytest.raises(xla.GraphError, match=r"shape \(4,\), which does not broadcast.*\(2, 3\)"):
        xla.function([x], draws)(numpy.zeros(4, "float32"))


def test_a_distribution_that_xla_does_not_know_is_refused_with_the_way_out():
    values = basic.vonmises(2.0, 1.0, size=(3,), rng=generator())

    with pytest.raises(xla.UnsupportedOp, match="VonMisesRV.*\n.*backend='py'"):
        xla.function([], values)
    assert xla.function([], values, backend="py")().shape == (3,)


def test_draws_lower_for_cuda():
    stream, x = xla.RandomStream(1), tensor.matrix("x")
    draws = [stream.normal(x.shape), stream.gamma(None, x), stream.binomial(None, 20, x)]

    exported = xla.export_for("cuda", xla.function([x], draws), numpy.ones((2, 3), "float32"))

    assert exported.platforms == ("cuda",)
