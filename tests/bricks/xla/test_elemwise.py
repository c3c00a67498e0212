"""Elementwise operations and reductions at kinks, ties, signs, zeros, and with complex numbers."""

import aesara
import aesara.scalar.basic as scalar
import numpy
import pytest
from aesara import tensor
from aesara.tensor import nnet
from aesara.tensor.elemwise import CAReduce, Elemwise

from bricks import xla

KINKS = numpy.array([[-2.5, -1.5, -1.0, -0.5, -0.0], [0.0, 0.5, 1.0, 1.5, 2.5]])
SMALL = KINKS[:, :1]
EMPTY = numpy.zeros((0, 4))
COMPLEX = numpy.array([[1 + 2j, -1.5j], [-3 + 0.5j, 2 + 0j]])

#: of one matrix, with gradients; kinks, an array of one column, and an empty one
AT_KINKS = {
    "abs": abs,
    "sign": tensor.sgn,
    "relu": nnet.relu,
    "leaky relu": lambda x: nnet.relu(x, 0.1),
    "elu": nnet.elu,
    "selu": nnet.selu,
    "softsign": lambda x: x / (1 + abs(x)),
    "softplus": tensor.softplus,
    "sigmoid": tensor.sigmoid,
    "hard sigmoid": nnet.hard_sigmoid,
    "clip at its bounds": lambda x: x.clip(-1.0, 1.0),
    "maximum of equal ones": lambda x: [tensor.maximum(x, x), tensor.minimum(x, 0.5)],
    "largest with ties": lambda x: tensor.maximum(x, 1.0) + tensor.minimum(x, -1.0),
    "switch": lambda x: tensor.switch(x > 0, x, 0.2 * x),
    "comparisons": lambda x: [tensor.ge(x, 1), tensor.le(x, -1), tensor.eq(x, 0), x < 0.5],
    "isclose": lambda x: [tensor.isclose(x, x + 1e-9), tensor.allclose(x, x)],
    # One at a time: Aesara takes the two for equal, and merges them.
    "in a closed range": lambda x: Elemwise(scalar.inclosedrange)(x, -1.0, 1.0),
    "in an open range": lambda x: Elemwise(scalar.inopenrange)(x, -1.0, 1.0),
    "rounding": lambda x: [
        tensor.round(x, mode="half_to_even"),
        tensor.round(x, mode="half_away_from_zero"),
        tensor.iround(x),
        tensor.ceil(x),
        tensor.floor(x),
        tensor.trunc(x),
    ],
    "casts towards zero": lambda x: [x.astype(t) for t in ("int8", "int64", "float32", "bool")],
    "square root of squares": lambda x: tensor.sqrt(x**2 + 1e-8),
    "powers": lambda x: [(x + 0.25) ** 2, (x + 0.25) ** 3, (abs(x) + 0.1) ** 1.5, 2.0**x],
    "angles": lambda x: [tensor.sin(x), tensor.cos(x), tensor.tan(x), tensor.arctan2(x, 1.0)],
    "hyperbolic functions": lambda x: [tensor.sinh(x), tensor.cosh(x), tensor.tanh(x)],
    "inverse hyperbolic functions": lambda x: [tensor.arcsinh(x), tensor.arccosh(1.5 + abs(x))],
    "exponentials": lambda x: [tensor.exp(x), tensor.exp2(x), tensor.expm1(x)],
    "logarithms": lambda x: [f(abs(x) + 0.1) for f in (tensor.log, tensor.log2, tensor.log10)],
    "log1p": lambda x: tensor.log1p(abs(x)),
    "logaddexp": lambda x: tensor.logaddexp(x, 2 * x),
    "xlogx": lambda x: tensor.xlogx.xlogx(abs(x) + 0.1),
    "mean of several": lambda x: Elemwise(scalar.mean)(x, 2 * x, x**2),
    "division by a float": lambda x: [x // 0.3, x % 0.3, x // -0.3, x % -0.3, x / 4],
}

NUMBERS = numpy.array([[-7, -4, -1, 0], [1, 3, 4, 7]])
INTEGERS = {
    "quotients by both signs": lambda x: [x // 3, x // -3, -x // 2, x // x[::-1]],
    "rests by both signs": lambda x: [x % 3, x % -3, -x % 2],
    "true quotients": lambda x: [x / 4, x / tensor.as_tensor(numpy.int8(4))],
    "division by zero": lambda x: [x // (x * 0), x % (x * 0)],
    "bits": lambda x: [x & 6, x | 9, x ^ 5, ~x],
    "truth": lambda x: [(x > 0) & (x < 5), (x > 0) | (x < -5), (x > 0) ^ (x < 5), ~(x > 0)],
    "signs": lambda x: [abs(x), tensor.sgn(x), -x],
    "extremes": lambda x: [tensor.maximum(x, 2), tensor.minimum(x, -2), x.clip(-3, 3)],
    "powers": lambda x: [x**2, x**3],
    "functions of integers": lambda x: [tensor.exp(x), tensor.tanh(x), tensor.sqrt(abs(x))],
    "sums": lambda x: [x.sum(), x.prod(axis=0), x.max(axis=1), x.min(), x.mean(axis=0)],
    "sums of small integers": lambda x: [x.astype("int8").sum(axis=1), (x > 0).sum(axis=0)],
    "bitwise reductions": lambda x: [
        CAReduce(op, axis)(x)
        for op in (scalar.and_, scalar.or_, scalar.xor)
        for axis in (None, (0,), (1,))
    ],
    "reductions of truth values": lambda x: [
        tensor.all(x > 0, axis=1),
        tensor.any(x > 3, axis=0),
        CAReduce(scalar.xor, (1,))(x > 0),
    ],
    "product without zeros": lambda x: tensor.math.ProdWithoutZeros(axis=0)(x),
}

REDUCTIONS = {
    "sum": tensor.sum,
    "mean": tensor.mean,
    "product": tensor.prod,
    "largest": tensor.max,
    "smallest": tensor.min,
    "variance": tensor.var,
    "deviation": tensor.std,
    "span": tensor.ptp,
    "logsumexp": tensor.logsumexp,
    "kept dimensions": lambda x, axis: x.sum(axis=axis, keepdims=True),
}

#: computed without gradients
WITH_COMPLEX = {
    "parts": lambda z: [tensor.real(z), tensor.imag(z), tensor.conj(z), abs(z)],
    "angle": tensor.angle,
    "arithmetic": lambda z: [z + 1, z * z, z / (1 + z), -z, z**2],
    "functions": lambda z: [tensor.exp(z), tensor.log(z), tensor.sin(z), tensor.sqrt(z)],
    "products": lambda z: [z.dot(z), z.sum(axis=0), z.T],
    "comparison": lambda z: [tensor.eq(z, z), tensor.neq(z, tensor.conj(z))],
}


@pytest.mark.parametrize("name", AT_KINKS)
def test_values_and_gradients_at_kinks_are_those_of_aesara(name, assert_agrees):
    assert_agrees(AT_KINKS[name], [[KINKS], [SMALL], [EMPTY]], rtol=1e-9)


def test_the_ultra_fast_sigmoid_is_an_exact_one(assert_agrees):
    # Aesara approximates it in C only, and defines no gradient.
    assert_agrees(nnet.ultra_fast_sigmoid, [[KINKS * 3]], gradients=False)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_computed_as_numpy_does(name, assert_agrees):
    assert_agrees(INTEGERS[name], [[NUMBERS], [NUMBERS[:, :1]]], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32"])
def test_other_integers_wrap_around_as_numpy_has_it(dtype, assert_agrees):
    data = numpy.array([0, 1, 200, 255], dtype=dtype)

    assert_agrees(lambda x: [x + x, x * x, x // 3, x % 3, x - 1, ~x], [[data]])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_casts_of_integers_wrap_around_as_in_numpy(dtype):
    x = tensor.lvector("x")
    data = numpy.array([-70000, -129, -1, 128, 256, 70000])

    result = xla.function([x], x.astype(dtype))(data)

    numpy.testing.assert_array_equal(result, data.astype(dtype))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), (0, 2), -1])
def test_reductions_and_their_gradients_are_those_of_aesara(name, axis, assert_agrees):
    rng = numpy.random.default_rng(2)
    # Every line has different elements, because a deviation has no slope where it is 0.
    ties = numpy.arange(24).reshape(2, 3, 4) % 5 - 1.5

    assert_agrees(
        lambda x: REDUCTIONS[name](x, axis=axis), [[ties], [rng.normal(size=(3, 2, 2))]], rtol=1e-9
    )


@pytest.mark.parametrize("name", ["sum", "mean", "product"])
def test_reductions_of_nothing_are_those_of_aesara(name, assert_agrees):
    if name == "mean":
        assert_agrees(lambda x: x.mean(axis=1), [[numpy.zeros((0, 3))]])
    else:
        assert_agrees(lambda x: REDUCTIONS[name](x, axis=0), [[numpy.zeros((0, 3))]])


@pytest.mark.parametrize("name", WITH_COMPLEX)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_computed_as_numpy_does(name, dtype, assert_agrees):
    assert_agrees(
        WITH_COMPLEX[name],
        [[COMPLEX.astype(dtype)]],
        gradients=False,
        rtol=1e-5 if dtype == "complex64" else 1e-12,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_complex_numbers_are_made_of_reals(dtype, assert_agrees):
    def make(x):
        return [tensor.complex(x, 2 * x), tensor.complex_from_polar(abs(x), x)]

    # Gradients through complex numbers are refused by Aesara itself.
    assert_agrees(make, [[KINKS.astype(dtype)]], gradients=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_of_floats_by_zero_is_that_of_numpy(dtype):
    x = tensor.vector("x", dtype=dtype)
    y = tensor.vector("y", dtype=dtype)
    data = numpy.array([-1, 0, 1, numpy.inf, -1, 1], dtype=dtype)
    zeros = numpy.array([0, 0, 0, 0, -0.0, -0.0], dtype=dtype)

    quotient, rounded, rest = xla.function([x, y], [x / y, x // y, x % y])(data, zeros)

    with numpy.errstate(all="ignore"):
        numpy.testing.assert_array_equal(quotient, data / zeros)
        numpy.testing.assert_array_equal(rounded, data // zeros)
        numpy.testing.assert_array_equal(rest, data % zeros)


def test_x_log_x_is_0_at_0():
    x = tensor.dvector("x")
    value = tensor.xlogx.xlogx(x)

    result = xla.function([x], value)(numpy.array([0.0, 1.0, numpy.e]))

    numpy.testing.assert_allclose(result, [0, 0, numpy.e])


def test_nan_spreads_through_extremes_as_in_numpy():
    x = tensor.dvector("x")
    data = numpy.array([1.0, numpy.nan, 3.0])

    results = xla.function([x], [x.max(), tensor.maximum(x, 2.0), tensor.argmax(x)])(data)

    numpy.testing.assert_array_equal(results[0], numpy.nan)
    numpy.testing.assert_array_equal(results[1], [2, numpy.nan, 3])
    assert results[2] == 1


SMOOTH = {
    "tanh": lambda x: tensor.tanh(x).sum(),
    "a product": lambda x: (x * x.sum(axis=0)).sum(),
    "softmax": lambda x: (tensor.special.softmax(x, axis=-1) ** 2).sum(),
    "a quadratic form": lambda x: tensor.dot(x.T, x).sum(),
    "exponential of a sum": lambda x: tensor.exp(x.sum() / 10),
    "largest": lambda x: (tensor.max(x, axis=1) ** 3).sum(),
    "a slice": lambda x: (x[:, 1:] ** 3 * x[:, :-1]).sum(),
    "rows by places": lambda x: (x[numpy.array([0, 1, 0])] ** 3).sum(),
    "cumulation": lambda x: (tensor.cumsum(x, axis=1) ** 3).sum(),
    "sort": lambda x: (tensor.sort(x, axis=1) ** 3).sum(),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives_are_those_of_aesara(name, assert_agrees):
    def curvature(x):
        slope = aesara.grad(SMOOTH[name](x), x)
        return aesara.grad((slope**2).sum(), x)

    rng = numpy.random.default_rng(4)
    batches = [[rng.normal(size=(2, 3))], [rng.normal(size=(3, 2))]]

    assert_agrees(curvature, batches, gradients=False)


@pytest.mark.parametrize("name", ["tanh", "a product", "exponential of a sum", "a slice"])
def test_forward_derivatives_are_those_of_aesara(name, assert_agrees):
    def forward(x, direction):
        return tensor.Rop(aesara.grad(SMOOTH[name](x), x), x, direction)

    rng = numpy.random.default_rng(5)
    batch = [rng.uniform(0.2, 1, size=(2, 3)), rng.normal(size=(2, 3))]

    assert_agrees(forward, [batch], gradients=False)


@pytest.mark.parametrize("build", [aesara.gradient.jacobian, aesara.gradient.hessian])
def test_jacobians_and_hessians_are_those_of_aesara(build, assert_agrees):
    def derivative(x):
        outputs = tensor.tanh(x) * x.sum()
        return build(outputs if build is aesara.gradient.jacobian else outputs.sum(), x)

    assert_agrees(derivative, [[KINKS[0]], [KINKS[0, :1]]], gradients=False)
