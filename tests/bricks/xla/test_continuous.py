"""Real numbers have the distributions that they are drawn from, on each backend."""

import aesara
import numpy
import pytest
from aesara import tensor
from scipy import stats

from bricks import xla

#: Chance that one comparison raises a false alarm with a seed drawn at random; the seeds are fixed.
FALSE_ALARM = 1e-4
NUMBER = 10000

#: name -> how it is drawn, and what scipy says of it.
CASES = {
    "uniform": (lambda s, n: s.uniform((n,), -1, 3), stats.uniform(-1, 4)),
    "normal": (lambda s, n: s.normal((n,), 2, 3), stats.norm(2, 3)),
    "truncated normal": (lambda s, n: s.truncated_normal((n,)), stats.truncnorm(-2, 2)),
    "moved truncated normal": (
        lambda s, n: s.truncated_normal((n,), 1, 2, low=-0.5, high=3),
        stats.truncnorm(-0.5, 3, 1, 2),
    ),
    "upper tail": (lambda s, n: s.truncated_normal((n,), low=4, high=9), stats.truncnorm(4, 9)),
    "lower tail": (lambda s, n: s.truncated_normal((n,), low=-9, high=-4), stats.truncnorm(-9, -4)),
    "lognormal": (lambda s, n: s.lognormal((n,), 0.5, 0.7), stats.lognorm(0.7, 0, numpy.exp(0.5))),
    "exponential": (lambda s, n: s.exponential((n,), 3), stats.expon(0, 3)),
    "standard exponential": (lambda s, n: s.exponential((n,)), stats.expon()),
    "gumbel": (lambda s, n: s.gumbel((n,), 1, 2), stats.gumbel_r(1, 2)),
    "laplace": (lambda s, n: s.laplace((n,), 1, 2), stats.laplace(1, 2)),
    "logistic": (lambda s, n: s.logistic((n,), 1, 2), stats.logistic(1, 2)),
    "cauchy": (lambda s, n: s.cauchy((n,), 1, 2), stats.cauchy(1, 2)),
    "t": (lambda s, n: s.standard_t((n,), 5), stats.t(5)),
    "gamma": (lambda s, n: s.gamma((n,), 2.5, 3), stats.gamma(2.5, 0, 3)),
    "gamma of a small shape": (lambda s, n: s.gamma((n,), 0.3), stats.gamma(0.3)),
    "beta": (lambda s, n: s.beta((n,), 2, 0.5), stats.beta(2, 0.5)),
    "dirichlet": (lambda s, n: s.dirichlet((n,), [0.5, 1, 2])[:, 2], stats.beta(2, 1.5)),
}


@pytest.fixture(scope="module", params=["xla", "py"])
def drawn(request):
    """Two calls' numbers of each distribution."""
    stream = xla.RandomStream(11)
    draws = {name: build(stream, NUMBER // 2) for name, (build, _) in CASES.items()}
    function = xla.function([], draws, backend=request.param)
    first, second = function(), function()
    return {name: numpy.concatenate([first[name], second[name]]) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_draws_follow_their_distribution(drawn, name):
    _, distribution = CASES[name]

    assert stats.kstest(drawn[name], distribution.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", [name for name in CASES if name != "cauchy"])
def test_draws_have_the_moments_of_their_distribution(drawn, name):
    values, (_, distribution) = drawn[name].astype("float64"), CASES[name]
    mean, variance, _, kurtosis = distribution.stats("mvsk")

    # Four standard errors: one false alarm in 16000.
    error_of_mean = numpy.sqrt(variance / NUMBER)
    error_of_variance = variance * numpy.sqrt((kurtosis + 2) / NUMBER)
    assert abs(values.mean() - mean) < 4 * error_of_mean
    assert abs(values.var() - variance) < 4 * error_of_variance


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_parameters_with_axes_are_broadcast_to_the_size(backend):
    stream, scales = xla.RandomStream(1), numpy.array([1.0, 1e3, 1e6], "float32")
    draws = [
        stream.exponential((500, 3), scales),
        stream.gamma((500, 3), 2, tensor.constant(scales)),
        stream.gamma((500, 3), scales, 1),
        stream.truncated_normal((500, 3), 0, scales, [1, 1, 1], 2),
        stream.beta((500, 3), scales, scales),
    ]

    exponential, gamma, shaped, truncated, beta = xla.function([], draws, backend=backend)()

    assert (abs(exponential.mean(axis=0) / scales - 1) < 0.25).all()
    assert (abs(gamma.mean(axis=0) / scales - 2) < 0.3).all()
    assert (abs(shaped.mean(axis=0) / scales - 1) < 0.25).all()
    assert (truncated / scales >= 0.999).all()
    assert (truncated / scales <= 2.001).all()
    assert beta.std(axis=0).argsort().tolist() == [2, 1, 0]


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_the_size_is_by_default_that_of_all_parameters_together(backend):
    stream = xla.RandomStream(1)
    column, row = tensor.col(dtype="float32"), tensor.row(dtype="float32")
    draws = [
        stream.laplace(None, column, row),
        stream.beta(None, column, row),
        stream.dirichlet(None, tensor.exp(column + row)),
    ]

    function = xla.function([column, row], draws, backend=backend)
    values = function(numpy.ones((2, 1), "float32"), numpy.ones((1, 3), "float32"))

    assert [value.shape for value in values] == [(2, 3)] * 3
    numpy.testing.assert_allclose(values[2].sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("backend", ["xla", "py"])
def test_draws_have_the_dtype_that_was_asked_for(backend, dtype):
    stream = xla.RandomStream(1)
    draws = [
        stream.truncated_normal((2,), dtype=dtype),
        stream.gumbel((2,), 1, 2, dtype=dtype),
        stream.standard_t((2,), 3, dtype=dtype),
        stream.gamma((2,), 2, 3, dtype=dtype),
        stream.beta((2,), 2, 3, dtype=dtype),
        stream.dirichlet((2,), [1, 2], dtype=dtype),
    ]

    assert {draw.dtype for draw in draws} == {dtype}
    assert {value.dtype.name for value in xla.function([], draws, backend=backend)()} == {dtype}


@pytest.mark.parametrize("backend", ["xla", "py"])
@pytest.mark.parametrize(
    "method",
    ["normal", "truncated_normal", "gumbel", "laplace", "logistic", "cauchy", "lognormal"],
)
def test_gradients_flow_to_location_and_scale(backend, method):
    loc, scale = tensor.dscalars("loc", "scale")
    stream = xla.RandomStream(1)
    total = getattr(stream, method)((20,), loc, scale, dtype="float64").sum()
    function = xla.function(
        [loc, scale], [total, *aesara.grad(total, [loc, scale])], backend=backend
    )
    key = stream.keys[0].get_value()

    def at(*values):
        stream.keys[0].set_value(key)
        return function(*values)

    _, *slopes = at(0.5, 1.5)
    by_loc = (at(0.5 + 1e-6, 1.5)[0] - at(0.5 - 1e-6, 1.5)[0]) / 2e-6
    by_scale = (at(0.5, 1.5 + 1e-6)[0] - at(0.5, 1.5 - 1e-6)[0]) / 2e-6
    numpy.testing.assert_allclose(slopes, [by_loc, by_scale], rtol=1e-6)


def test_the_gradient_of_the_scale_is_the_standard_draw():
    scale = tensor.dscalar("scale")
    stream = xla.RandomStream(1)
    draws = [
        stream.exponential((), scale, dtype="float64"),
        stream.gamma((), 2, scale, dtype="float64"),
    ]
    slopes = [aesara.grad(draw, scale) for draw in draws]

    values = xla.function([scale], [*draws, *slopes])(2)

    numpy.testing.assert_allclose(values[:2], numpy.array(values[2:]) * 2)


def test_a_gradient_that_is_not_defined_is_refused():
    shape = tensor.dscalar("shape")
    draw = xla.RandomStream(1).gamma((), shape)

    with pytest.raises(aesara.gradient.NullTypeGradError, match="No gradient defined for random"):
        aesara.grad(draw, shape)


def test_concentrations_that_are_missing_are_asked_for():
    with pytest.raises(TypeError, match="dirichlet: `alphas` must be an array of concentrations"):
        xla.RandomStream(1).dirichlet((3,))
