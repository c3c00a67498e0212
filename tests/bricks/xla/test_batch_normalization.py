"""Batch normalization, which is elementwise work when rewritten, agrees with its formula."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.tensor.nnet.batchnorm import (
    batch_normalization,
    batch_normalization_test,
    batch_normalization_train,
)
from aesara.tensor.type import TensorType

from bricks import xla

#: A number that float32 holds exactly, because Aesara makes a constant of floatX of it.
EPSILON = 2.0**-10

#: axes -> the axes that are averaged over, and the shapes of two batches
AXES = {
    "per-activation": ((0,), [(5, 4), (3, 6)]),
    "spatial": ((0, 2, 3), [(3, 4, 2, 5), (2, 3, 6, 1)]),
    (0, 1): ((0, 1), [(3, 4, 2), (1, 5, 3)]),
}


def make_inputs(shapes, axes):
    """Return x and parameters, whose axes of length 1 are known to be so."""
    ndim = len(shapes[0])
    shape = tuple(1 if axis in axes else None for axis in range(ndim))
    x = TensorType("float64", (None,) * ndim)("x")
    return x, [TensorType("float64", shape)(name) for name in ("scale", "shift", "mean", "var")]


def make_values(shape, axes, seed=0):
    rng = numpy.random.default_rng(seed)
    reduced = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    return rng.normal(3, 2, shape), [rng.uniform(0.5, 2, reduced) for _ in range(4)]


def numpy_train(x, scale, shift, axes):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    invstd = 1 / numpy.sqrt(variance + EPSILON)
    return (x - mean) * invstd * scale + shift, mean, invstd


def assert_slope(function, points, gradients):
    rng = numpy.random.default_rng(9)
    directions = [rng.normal(size=point.shape) for point in points]
    step = 1e-5
    ahead = function(*(p + step * d for p, d in zip(points, directions, strict=True)))
    behind = function(*(p - step * d for p, d in zip(points, directions, strict=True)))
    slope = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True))
    numpy.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-5)


@pytest.mark.parametrize("name", AXES, ids=str)
def test_training_uses_the_statistics_of_the_batch_and_moves_the_running_ones(name):
    axes, shapes = AXES[name]
    x, parameters = make_inputs(shapes, axes)
    outputs = batch_normalization_train(x, *parameters[:2], name, EPSILON, 0.25, *parameters[2:])
    function = xla.function([x, *parameters], list(outputs))

    for shape in shapes:
        batch, (scale, shift, mean, variance) = make_values(shape, axes)
        y, batch_mean, invstd = numpy_train(batch, scale, shift, axes)
        count = batch.size / scale.size
        moved = 0.75 * mean + 0.25 * batch_mean
        unbiased = batch.var(axes, keepdims=True) * count / (count - 1)
        *exact, new_variance = function(batch, scale, shift, mean, variance)
        for mine, other in zip(exact, (y, batch_mean, invstd, moved), strict=True):
            numpy.testing.assert_allclose(mine, other, rtol=1e-10)
        # Aesara counts in floatX what it corrects the variance by.
        numpy.testing.assert_allclose(new_variance, 0.75 * variance + 0.25 * unbiased, rtol=1e-6)


@pytest.mark.parametrize("name", AXES, ids=str)
def test_gradients_of_training_are_slopes(name):
    axes, shapes = AXES[name]
    x, (scale, shift, *_) = make_inputs(shapes, axes)
    y, *_ = batch_normalization_train(x, scale, shift, name, EPSILON)
    cost = (y**3).sum()
    value = xla.function([x, scale, shift], cost)
    slopes = xla.function([x, scale, shift], aesara.grad(cost, [x, scale, shift]))

    for shape in shapes:
        batch, parameters = make_values(shape, axes)
        points = [batch, *parameters[:2]]
        assert_slope(value, points, slopes(*points))


@pytest.mark.parametrize("name", AXES, ids=str)
def test_gradients_of_the_statistics_of_a_batch_are_slopes(name):
    axes, shapes = AXES[name]
    x, (scale, shift, *_) = make_inputs(shapes, axes)
    y, mean, invstd = batch_normalization_train(x, scale, shift, name, EPSILON)
    for cost in ((mean**2).sum() + (invstd**3).sum(), (y**3).sum() * invstd.sum()):
        gradient = aesara.grad(cost, x)
        inputs = [x, scale, shift]
        batch, (scale_value, shift_value, *_) = make_values(shapes[0], axes)
        value = xla.function(inputs, cost, on_unused_input="ignore")
        slope = xla.function(inputs, gradient, on_unused_input="ignore")

        assert_slope(
            lambda x, value=value, rest=(scale_value, shift_value): value(x, *rest),
            [batch],
            [slope(batch, scale_value, shift_value)],
        )


@pytest.mark.parametrize("name", AXES, ids=str)
def test_second_gradients_of_training_are_slopes(name):
    axes, shapes = AXES[name]
    x, (scale, shift, *_) = make_inputs(shapes, axes)
    y, *_ = batch_normalization_train(x, scale, shift, name, EPSILON)
    first = aesara.grad((y**3).sum(), [x, scale, shift])
    cost = sum((gradient**2).sum() for gradient in first)
    value = xla.function([x, scale, shift], cost)
    slopes = xla.function([x, scale, shift], aesara.grad(cost, [x, scale, shift]))
    batch, parameters = make_values(shapes[0], axes)

    points = [batch, *parameters[:2]]
    assert_slope(value, points, slopes(*points))


@pytest.mark.parametrize("name", AXES, ids=str)
def test_testing_uses_the_given_statistics(name):
    axes, shapes = AXES[name]
    x, parameters = make_inputs(shapes, axes)
    y = batch_normalization_test(x, *parameters, name, EPSILON)
    cost = (y**3).sum()
    function = xla.function([x, *parameters], [y, *aesara.grad(cost, [x, *parameters])])
    value = xla.function([x, *parameters], cost)

    for shape in shapes:
        batch, (scale, shift, mean, variance) = make_values(shape, axes)
        points = [batch, scale, shift, mean, variance]
        result, *gradients = function(*points)

        expected = (batch - mean) / numpy.sqrt(variance + EPSILON) * scale + shift
        numpy.testing.assert_allclose(result, expected, rtol=1e-10)
        assert_slope(value, points, gradients)


@pytest.mark.parametrize("mode", ["low_mem", "high_mem"])
def test_the_older_function_normalizes_with_what_it_is_given(mode):
    x = tensor.dmatrix("x")
    vectors = tensor.dvectors("gamma", "beta", "mean", "std")
    y = batch_normalization(x, *vectors, mode=mode)
    rng = numpy.random.default_rng(0)
    batch, gamma, beta, mean, std = (rng.uniform(1, 2, size) for size in ((5, 4), 4, 4, 4, 4))

    results = xla.function([x, *vectors], [y, aesara.grad(y.sum(), x)])(
        batch, gamma, beta, mean, std
    )

    numpy.testing.assert_allclose(results[0], (batch - mean) * gamma / std + beta, rtol=1e-10)
    numpy.testing.assert_allclose(results[1], numpy.tile(gamma / std, (5, 1)), rtol=1e-10)


def test_a_batch_of_one_is_normalized_to_the_shift():
    x, (scale, shift, *_) = make_inputs([(1, 3)], (0,))
    y, *_ = batch_normalization_train(x, scale, shift, epsilon=EPSILON)

    result, gradient = xla.function([x, scale, shift], [y, aesara.grad((y**2).sum(), x)])(
        numpy.array([[1.0, 5.0, -2.0]]), numpy.full((1, 3), 2.0), numpy.array([[1.0, 2.0, 3.0]])
    )

    numpy.testing.assert_array_equal(result, [[1.0, 2.0, 3.0]])
    numpy.testing.assert_array_equal(gradient, numpy.zeros((1, 3)))


def test_single_precision_stays_single():
    x = tensor.fmatrix("x")
    row = TensorType("float32", (1, None))
    parameters = [row(name) for name in ("scale", "shift", "mean", "var")]
    outputs = batch_normalization_train(x, *parameters[:2], "per-activation", EPSILON, 0.1)
    tested = batch_normalization_test(x, *parameters)
    gradients = aesara.grad(outputs[0].sum(), [x, *parameters[:2]])
    function = xla.function([x, *parameters], [*outputs, tested, *gradients])

    results = function(numpy.ones((3, 2), "f4"), *(numpy.ones((1, 2), "f4") for _ in range(4)))

    assert {result.dtype.name for result in results} == {"float32"}


def test_batch_normalization_lowers_for_cuda():
    x, (scale, shift, *_) = make_inputs([(4, 3)], (0,))
    y, *_ = batch_normalization_train(x, scale, shift)
    function = xla.function([x, scale, shift], aesara.grad((y**2).sum(), [x, scale, shift]))
    batch, parameters = make_values((4, 3), (0,))

    assert xla.export_for("cuda", function, batch, *parameters[:2]).platforms == ("cuda",)
