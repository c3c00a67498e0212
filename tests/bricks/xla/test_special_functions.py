"""Special functions agree with scipy, in value and in gradient."""

import aesara
import numpy
import pytest
import scipy.special
import scipy.stats
from aesara import tensor
from aesara.scalar.math import gammal, gammau
from aesara.tensor.elemwise import Elemwise

from bricks import xla

SMALL = [-0.9, -0.5, -1e-7, 0.0, 1e-7, 0.4, 0.9]
POSITIVE = [1e-3, 0.2, 0.9, 1.0, 2.5, 8.0, 30.0]
WIDE = [-120.0, -31.0, -3.0, -1e-6, 0.0, 0.7, 2.0, 24.9, 99.0, 101.0, 300.0]

#: function of Aesara -> (function of scipy, arguments)
OF_ONE = {
    "erf": (scipy.special.erf, [*SMALL, -5.0, 5.0, 40.0]),
    "erfc": (scipy.special.erfc, [*SMALL, -5.0, 5.0, 26.0]),
    "erfcx": (scipy.special.erfcx, [*SMALL, -5.0, 5.9, 6.1, 26.0, 1e6]),
    "erfinv": (scipy.special.erfinv, [*SMALL, 0.999999]),
    "erfcinv": (scipy.special.erfcinv, [1e-200, 1e-20, 0.1, 1.0, 1.9]),
    "gamma": (scipy.special.gamma, [*POSITIVE, -0.5, -2.3]),
    "gammaln": (scipy.special.gammaln, POSITIVE),
    "psi": (scipy.special.psi, POSITIVE),
    "j0": (scipy.special.j0, WIDE),
    "j1": (scipy.special.j1, WIDE),
    "i0": (scipy.special.i0, WIDE),
    "i1": (scipy.special.i1, WIDE),
    "sigmoid": (scipy.special.expit, WIDE),
    "softplus": (lambda x: numpy.logaddexp(0, x), WIDE),
    "log1mexp": (lambda x: numpy.log(-numpy.expm1(x)), [-1e-9, -0.6, -0.7, -5.0, -50.0]),
}

#: the same with several arguments, which are combined with each other
OF_SEVERAL = {
    "gammainc": (scipy.special.gammainc, [[0.3, 1.0, 9.0], [0.1, 1.0, 12.0]]),
    "gammaincc": (scipy.special.gammaincc, [[0.3, 1.0, 9.0], [0.1, 1.0, 12.0]]),
    "betainc": (scipy.special.betainc, [[0.3, 2.0], [0.7, 5.0], [0.05, 0.5, 0.95]]),
    "owens_t": (scipy.special.owens_t, [[-2.0, 0.0, 0.5, 5.0], [-3.0, -0.5, 0.0, 1.0, 40.0]]),
    "hyp2f1": (scipy.special.hyp2f1, [[0.5, 2.0], [1.5], [2.5, 3.5], [-0.6, 0.0, 0.3]]),
}

#: Aesara defines no gradient of these
WITHOUT_GRADIENT = {
    "chi2sf": (tensor.chi2sf, scipy.stats.chi2.sf, [[0.1, 3.0, 20.0], [1.0, 4.0]]),
    "gammal": (
        Elemwise(gammal),
        lambda k, x: scipy.special.gammainc(k, x) * scipy.special.gamma(k),
        [[0.5, 3.0], [0.1, 2.0, 9.0]],
    ),
    "gammau": (
        Elemwise(gammau),
        lambda k, x: scipy.special.gammaincc(k, x) * scipy.special.gamma(k),
        [[0.5, 3.0], [0.1, 2.0, 9.0]],
    ),
}


def combined(arguments):
    return [grid.ravel().copy() for grid in numpy.meshgrid(*arguments)]


@pytest.mark.parametrize("name", OF_ONE)
def test_a_function_of_one_number_is_that_of_scipy(name):
    expected, arguments = OF_ONE[name]
    x, data = tensor.dvector("x"), numpy.array(arguments)

    result = xla.function([x], getattr(tensor, name)(x))(data)

    numpy.testing.assert_allclose(result, expected(data), rtol=1e-12, atol=3e-14)


@pytest.mark.parametrize("name", [*OF_ONE, *OF_SEVERAL])
def test_gradients_are_those_of_aesara(name, assert_agrees):
    arguments = combined(OF_SEVERAL[name][1]) if name in OF_SEVERAL else [OF_ONE[name][1]]
    arguments = [numpy.asarray(argument) for argument in arguments]

    def slopes(*inputs):
        return aesara.grad(getattr(tensor, name)(*inputs).sum(), list(inputs))

    # Aesara ends the series of this one at 1e-6.
    tolerance = 1e-5 if name == "gammaincc" else 1e-8
    assert_agrees(slopes, [arguments], gradients=False, rtol=tolerance, atol=1e-10)


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_a_function_of_several_numbers_is_that_of_scipy(name):
    expected, arguments = OF_SEVERAL[name]
    data = combined(arguments)
    inputs = [tensor.dvector() for _ in data]

    result = xla.function(inputs, getattr(tensor, name)(*inputs))(*data)

    numpy.testing.assert_allclose(result, expected(*data), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_a_function_without_a_gradient_is_that_of_scipy(name):
    function, expected, arguments = WITHOUT_GRADIENT[name]
    data = combined(arguments)
    inputs = [tensor.dvector() for _ in data]

    result = xla.function(inputs, function(*inputs))(*data)

    numpy.testing.assert_allclose(result, expected(*data), rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, -1, 2, 3, 10])
def test_bessel_functions_of_a_whole_order_are_those_of_scipy(order):
    x, data = tensor.dvector("x"), numpy.array(WIDE)
    outputs = [tensor.jv(order, x), tensor.iv(order, x)]

    first, modified = xla.function([x], outputs)(data)

    numpy.testing.assert_allclose(first, scipy.special.jv(order, data), rtol=1e-10, atol=2e-14)
    numpy.testing.assert_allclose(modified, scipy.special.iv(order, data), rtol=1e-10, atol=1e-13)


def test_bessel_functions_of_another_order_are_refused():
    x = tensor.dvector("x")

    with pytest.raises(xla.GraphError, match=r"one whole order between -10 and 10; got \[0.5\]"):
        xla.function([x], tensor.jv(0.5, x))(numpy.ones(2))
    with pytest.raises(xla.DataDependentShape, match="the order of the Bessel function must be"):
        xla.function([x], tensor.jv(x, x))(numpy.ones(2))


@pytest.mark.parametrize("name", ["erfcx", "j0", "j1", "owens_t", "log1mexp"])
def test_single_precision_is_kept(name):
    x = tensor.fvector("x")
    data = numpy.array([-3.0, -0.8, -0.1], "float32")
    function = getattr(tensor, name)
    output = function(x, x) if name == "owens_t" else function(x)

    result = xla.function([x], output)(data)

    exact = {**OF_ONE, **OF_SEVERAL}[name][0]
    wide = data.astype("float64")
    assert result.dtype == "float32"
    numpy.testing.assert_allclose(
        result, exact(wide, wide) if name == "owens_t" else exact(wide), rtol=2e-5, atol=1e-6
    )


def test_incomplete_functions_have_no_slope_where_they_are_not_defined():
    a, x = tensor.dvectors("a", "x")
    slope = aesara.grad(tensor.betainc(a, 2.0, x).sum(), a)

    result = xla.function([a, x], slope)(numpy.full(3, 2.0), numpy.array([-0.5, 0.0, 1.5]))

    numpy.testing.assert_array_equal(result, [numpy.nan, 0, numpy.nan])
