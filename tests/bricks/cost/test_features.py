import numpy
import pytest
import scipy.spatial.distance
import scipy.special
from aesara import tensor

from bricks import xla
from bricks.cost import CosineDistance, HuberError

Y = numpy.array([[0.0, 0.0, 1.0], [2.0, -1.0, 0.5]], "float32")
Y_HAT = numpy.array([[0.5, -3.0, 1.0], [0.0, -1.5, 4.0]], "float32")


def compute(brick, y=Y, y_hat=Y_HAT):
    """Cost and gradient by the predictions."""
    variables = tensor.matrix("y"), tensor.matrix("y_hat")
    cost = brick.apply(*variables)
    function = xla.function(list(variables), [cost, tensor.grad(cost, variables[1])])
    return function(y.astype("float32"), y_hat.astype("float32"))


@pytest.mark.parametrize("delta", [1.0, 2.5])
def test_huber_error_is_that_of_scipy_and_its_slope_is_bounded(delta):
    cost, gradient = compute(HuberError(delta=delta))

    difference = Y_HAT.astype("float64") - Y
    expected = scipy.special.huber(delta, difference).sum(axis=1).mean()
    numpy.testing.assert_allclose(cost, expected, rtol=1e-6)
    numpy.testing.assert_allclose(gradient, numpy.clip(difference, -delta, delta) / 2, rtol=1e-6)


def test_cosine_distance_is_that_of_scipy_whatever_the_lengths():
    cost, _ = compute(CosineDistance(), 100 * Y, 0.01 * Y_HAT)

    pairs = zip(Y.astype("float64"), Y_HAT.astype("float64"), strict=True)
    expected = numpy.mean([scipy.spatial.distance.cosine(*pair) for pair in pairs])
    numpy.testing.assert_allclose(cost, expected, rtol=1e-5)


def test_a_vector_of_zeros_is_at_distance_1_and_has_a_finite_gradient():
    cost, gradient = compute(CosineDistance(), Y[:1], numpy.zeros((1, 3)))

    assert cost == 1
    assert numpy.isfinite(gradient).all()


def test_a_vector_of_zeros_in_half_precision_has_finite_gradients_too():
    y, y_hat = (tensor.matrix(name, dtype="float16") for name in ("y", "y_hat"))
    cost = CosineDistance().apply(y, y_hat)
    zeros = numpy.zeros((1, 3), "float16")

    values = xla.function([y, y_hat], [cost, tensor.grad(cost, y_hat)])(zeros, zeros)

    assert values[0] == 1
    assert numpy.isfinite(values[1]).all()


def test_cosine_distances_may_be_weighted_by_a_mask():
    y, y_hat = tensor.tensor3("y"), tensor.tensor3("y_hat")
    costs = xla.function([y, y_hat], CosineDistance().costs(y, y_hat))

    opposite = costs(numpy.stack([Y, Y]), numpy.stack([Y, -Y]))

    numpy.testing.assert_allclose(opposite, [[0, 0], [2, 2]], atol=1e-6)


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="HuberError: `delta`.* must be positive; got 0"):
        HuberError(delta=0)
    with pytest.raises(ValueError, match="HuberError: `delta`.* must be positive; got True"):
        HuberError(delta=True)
    with pytest.raises(ValueError, match="CosineDistance: `epsilon`.* must be positive; got -1"):
        CosineDistance(epsilon=-1)
    with pytest.raises(ValueError, match="CosineDistance: `epsilon`.* must be positive; got '1'"):
        CosineDistance(epsilon="1")
    with pytest.raises(ValueError, match="`y` and `y_hat` must have the same shape"):
        CosineDistance().apply(tensor.vector(), tensor.matrix())
