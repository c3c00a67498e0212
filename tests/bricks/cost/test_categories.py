import numpy
import pytest
import scipy.special
from aesara import tensor

from bricks import Softmax, xla
from bricks.cost import CategoricalCrossEntropy

SCORES = numpy.array([[2.0, 0.0, -1.0, 90.0], [0.5, 0.5, -2.0, 0.0]], "float32")


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize(
    "targets", [numpy.array([3, 2]), numpy.array([[0, 0.5, 0, 0.5], [1, 0, 0, 0]], "float32")]
)
def test_smoothed_labels_cost_as_the_distribution_that_they_are(targets, smoothing):
    x = tensor.matrix("x")
    y = tensor.as_tensor_variable(targets)
    cost = CategoricalCrossEntropy(label_smoothing=smoothing).apply(y, Softmax().apply(x))

    value, gradient = xla.function([x], [cost, tensor.grad(cost, x)])(SCORES)

    weights = targets if targets.ndim == 2 else numpy.eye(4)[targets]
    weights = (1 - smoothing) * weights + smoothing / 4
    scores = SCORES.astype("float64")
    expected = -(weights * scipy.special.log_softmax(scores, axis=-1)).sum(axis=-1).mean()
    numpy.testing.assert_allclose(value, expected, rtol=1e-6)
    slopes = (scipy.special.softmax(scores, axis=-1) - weights) / 2
    numpy.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)


def test_labels_are_smoothed_also_where_probabilities_come_from_elsewhere():
    p = numpy.array([[0.5, 0.3, 0.2]], "float32")
    y_hat = tensor.matrix("y_hat")
    cost = CategoricalCrossEntropy(label_smoothing=0.3).apply(tensor.as_tensor([1]), y_hat)

    value = xla.function([y_hat], cost)(p)

    numpy.testing.assert_allclose(value, -numpy.log(p[0]) @ [0.1, 0.8, 0.1], rtol=1e-6)


@pytest.mark.parametrize("smoothing", [-0.1, 1, 10, numpy.nan, False, "0"])
def test_a_smoothing_that_is_no_share_is_refused(smoothing):
    with pytest.raises(ValueError, match=f"`label_smoothing` must be a share.*; got {smoothing!r}"):
        CategoricalCrossEntropy(label_smoothing=smoothing)


@pytest.mark.parametrize("smoothing", [0, 0.2])
def test_costs_of_examples_can_be_masked(smoothing):
    cost = CategoricalCrossEntropy(label_smoothing=smoothing)
    y, scores = tensor.lvector("y"), tensor.matrix("scores")
    y_hat = Softmax().apply(scores)
    values = numpy.array([[1, 2, 3], [200, 0, -200]], "float32")
    function = xla.function([y, scores], [cost.costs(y, y_hat), cost.apply(y, y_hat)])

    costs, mean = function(numpy.array([0, 2]), values)

    log_probs = scipy.special.log_softmax(values.astype("float64"), axis=1)
    expected = -(1 - smoothing) * log_probs[[0, 1], [0, 2]] - smoothing * log_probs.mean(axis=1)
    numpy.testing.assert_allclose(costs, expected, rtol=1e-5)
    numpy.testing.assert_allclose(mean, expected.mean(), rtol=1e-5)
