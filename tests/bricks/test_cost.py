import numpy
import pytest
from aesara import tensor

from bricks import Logistic, Softmax, xla
from bricks.cost import (
    AbsoluteError,
    BinaryCrossEntropy,
    CategoricalCrossEntropy,
    Cost,
    CostMatrix,
    MisclassificationRate,
    SquaredError,
)

BACKENDS = ["xla", "py"]


def compute(variable, values, backend="xla"):
    arrays = [numpy.asarray(value, dtype=x.dtype) for x, value in values.items()]
    return xla.function(list(values), variable, backend=backend)(*arrays)


@pytest.mark.parametrize(
    ("brick", "expected"), [(SquaredError(), (1 + 4 + 0 + 9) / 2), (AbsoluteError(), 6 / 2)]
)
def test_errors_are_summed_over_features_and_averaged_over_the_batch(brick, expected):
    y, y_hat = tensor.lmatrix("y"), tensor.matrix("y_hat")
    cost = brick.apply(y, y_hat)

    assert cost.dtype == "float32"
    assert compute(cost, {y: [[1, 2], [3, 4]], y_hat: [[0, 0], [3, 1]]}) == expected


@pytest.mark.parametrize("brick", [SquaredError(), AbsoluteError(), BinaryCrossEntropy()])
def test_shapes_that_would_be_stretched_are_refused(brick):
    column = tensor.TensorType("float32", (None, 1))("column")
    predictions = tensor.TensorType("float32", (None, 5))("predictions")

    path = rf"/{brick.name}\.cost_matrix: "
    with pytest.raises(ValueError, match=path + "`y` must have at least 2 axes"):
        brick.apply(tensor.vector("y"), predictions)
    with pytest.raises(ValueError, match=path + "`y` and `y_hat` must have the same shape"):
        brick.apply(column, predictions)
    with pytest.raises(ValueError, match=path + "`y` and `y_hat` must have the same shape"):
        brick.apply(tensor.tensor3("y"), predictions)


def test_a_cost_matrix_of_a_users_own_is_averaged():
    class Larger(CostMatrix):
        def cost_matrix(self, first, second, third):
            return tensor.maximum(first, second) + third

    names = [tensor.matrix(name) for name in "abc"]
    cost = Larger().apply(*names)

    assert compute(cost, dict.fromkeys(names, [[1.0, 2.0], [3.0, 0.0]])) == 6


@pytest.mark.parametrize("backend", BACKENDS)
def test_binary_cross_entropy_of_a_sigmoid_is_exact_for_large_inputs(backend):
    x, y = tensor.matrix("x"), tensor.matrix("y")
    cost = BinaryCrossEntropy().apply(y, Logistic().apply(x))
    targets, inputs = [[0.0, 1.0, 1.0, 0.5]], [[200.0, -200.0, 200.0, 0.0]]

    value, gradient = compute([cost, tensor.grad(cost, x)], {y: targets, x: inputs}, backend)

    numpy.testing.assert_allclose(value, 400 + numpy.log(2), rtol=1e-6)
    numpy.testing.assert_allclose(gradient, [[1, -1, 0, 0]], atol=1e-6)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_certain_and_right_prediction_costs_nothing(backend):
    y, y_hat = tensor.matrix("y"), tensor.matrix("y_hat")
    cost = BinaryCrossEntropy().apply(y, y_hat)

    assert compute(cost, {y: [[0, 1]], y_hat: [[0, 1]]}, backend) == 0


@pytest.mark.parametrize(
    ("y", "targets"),
    [
        (tensor.lvector("y"), [1, 0]),
        (tensor.lmatrix("y"), [[1], [0]]),
        (tensor.matrix("y"), [[0, 1], [1, 0]]),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_categorical_cross_entropy_of_a_softmax_is_exact_for_large_inputs(backend, y, targets):
    x = tensor.matrix("x")
    cost = CategoricalCrossEntropy().apply(y, Softmax().apply(x))

    value, gradient = compute(
        [cost, tensor.grad(cost, x)], {y: targets, x: [[500, 0], [0, 0]]}, backend
    )

    numpy.testing.assert_allclose(value, (500 + numpy.log(2)) / 2, rtol=1e-6)
    numpy.testing.assert_allclose(gradient, [[0.5, -0.5], [-0.25, 0.25]])


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(
    ("y", "targets"), [(tensor.lvector("y"), [1]), (tensor.matrix("y"), [[0, 1, 0]])]
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_impossible_class_that_is_not_the_target_costs_nothing(backend, y, targets):
    p = tensor.matrix("p")
    cost = CategoricalCrossEntropy().apply(y, p)

    values = {y: targets, p: [[0, 0.5, 0.5]]}
    value, gradient = compute([cost, tensor.grad(cost, p)], values, backend)

    numpy.testing.assert_allclose(value, numpy.log(2), rtol=1e-6)
    numpy.testing.assert_allclose(gradient, [[0, -2, 0]])


def test_the_usual_flattened_targets_of_blocks_work():
    y, probabilities = tensor.lmatrix("targets"), tensor.matrix("p")
    cost = CategoricalCrossEntropy().apply(y.flatten(), probabilities)

    value = compute(cost, {y: [[0], [1]], probabilities: [[0.5, 0.5], [0.75, 0.25]]})

    numpy.testing.assert_allclose(value, numpy.log([2, 4]).mean(), rtol=1e-6)


SCORES = [[5, 4, 3, 2], [1, 2, 3, 4], [1, 1, 1, 1]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("top_k", "classes", "expected"),
    [
        (1, [0, 0, 0], 1 / 3),
        (1, [1, 3, 1], 2 / 3),
        (2, [1, 1, 0], 2 / 3),
        (2, [2, 2, 0], 2 / 3),
        (4, [3, 0, 2], 0),
        (1, [-1, 4, 7], 1),
        (2, [-1, 4, 7], 1),
    ],
)
def test_mistakes_are_counted_and_ties_beyond_the_first_place_count_as_mistakes(
    backend, top_k, classes, expected
):
    y, y_hat = tensor.lvector("y"), tensor.matrix("y_hat")
    rate = MisclassificationRate(top_k).apply(y, y_hat)

    assert rate.dtype == "float32"
    numpy.testing.assert_allclose(compute(rate, {y: classes, y_hat: SCORES}, backend), expected)


@pytest.mark.parametrize(
    "targets", [numpy.array([[0], [0], [1]], "uint8"), numpy.eye(4, dtype=int)[[0, 0, 1]]]
)
@pytest.mark.parametrize("known", [True, False])
def test_classes_of_mistakes_may_be_given_in_all_ways_of_data_sets(targets, known):
    shape = targets.shape if known else (None, None)
    y, y_hat = tensor.TensorType(targets.dtype, shape)("y"), tensor.matrix("y_hat")
    rate = MisclassificationRate().apply(y, y_hat)

    numpy.testing.assert_allclose(compute(rate, {y: targets, y_hat: SCORES}), 2 / 3)


@pytest.mark.parametrize("base", [Cost, CostMatrix])
def test_the_base_classes_cannot_be_used_themselves(base):
    with pytest.raises(TypeError, match="abstract"):
        base()


@pytest.mark.parametrize("top_k", [0, 1.5, None])
def test_top_k_must_be_a_positive_integer(top_k):
    with pytest.raises(ValueError, match=f"`top_k` must be a positive integer; got {top_k}"):
        MisclassificationRate(top_k)
