import aesara
import numpy
import pytest
import scipy.special
from aesara import tensor
from aesara.gradient import Rop

from bricks import MLP, Logistic, Softmax, xla
from bricks.aesara_expressions import hessian_times_vector
from bricks.cost import (
    AbsoluteError,
    BinaryCrossEntropy,
    CategoricalCrossEntropy,
    Cost,
    CostMatrix,
    MisclassificationRate,
    SquaredError,
)
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.initialization import Constant
from bricks.roles import INPUT

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


#: What keeps all elements, and what moves them where: twelve probabilities of one axis to another.
MOVES = {
    "flatten": lambda p: p.reshape((2, 3, 2)).flatten(ndim=2),
    "transpose": lambda p: p.T,
    "dimshuffle": lambda p: p.dimshuffle("x", 0, 1)[0],
    "index": lambda p: p[::-1, :2],
    "several": lambda p: p.reshape((3, 2, 2)).dimshuffle(2, 0, 1).flatten(ndim=2).T.copy(),
}


def moved(numbers, move):
    """Move the elements of an array like those of a probability."""
    x = tensor.matrix("x")
    return compute(MOVES[move](x), {x: numbers})


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_binary_cross_entropy_is_exact_through_what_moves_the_output_of_a_sigmoid(backend, move):
    x, y = tensor.matrix("x"), tensor.matrix("y")
    cost = BinaryCrossEntropy().apply(y, MOVES[move](Logistic().apply(x)))
    inputs = numpy.array([[60, -60, 0, 200], [-200, 60, 1, -1], [-60, 0, 90, 60]], "float32")
    logits = moved(inputs, move)
    targets = numpy.resize([0, 1, 0.25, 1, 0], logits.shape)

    value, gradient = compute([cost, tensor.grad(cost, x)], {y: targets, x: inputs}, backend)

    logits = logits.astype("float64")
    costs = targets * numpy.logaddexp(0, -logits) + (1 - targets) * numpy.logaddexp(0, logits)
    numpy.testing.assert_allclose(value, costs.sum(axis=1).mean(), rtol=1e-6)
    slopes = (1 / (1 + numpy.exp(-logits)) - targets) / len(logits)
    numpy.testing.assert_allclose(moved(gradient, move), slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_step_from_a_saturated_sigmoid_that_is_flattened_leaves_numbers(backend):
    mlp = MLP([Logistic()], [1, 1], weights_init=Constant(60), biases_init=Constant(0))
    mlp.initialize()
    x, y = tensor.matrix("x"), tensor.matrix("y")
    cost = BinaryCrossEntropy().apply(y, mlp.apply(x).flatten(ndim=2))
    weights = mlp.linear_transformations[0].W

    updates = [(weights, weights - 0.1 * tensor.grad(cost, weights))]
    function = xla.function([x, y], cost, updates=updates, backend=backend)
    function(numpy.ones((1, 1), "float32"), numpy.zeros((1, 1), "float32"))

    numpy.testing.assert_allclose(weights.get_value(), [[59.9]], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_certain_and_right_prediction_costs_nothing(backend):
    y, y_hat = tensor.matrix("y"), tensor.matrix("y_hat")
    cost = BinaryCrossEntropy().apply(y, y_hat)

    value, gradient = compute(
        [cost, tensor.grad(cost, y_hat)], {y: [[0, 1]], y_hat: [[0, 1]]}, backend
    )

    assert value == 0
    numpy.testing.assert_array_equal(gradient, [[1, -1]])


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


@pytest.mark.parametrize("move", ["index", "several"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_categorical_cross_entropy_is_exact_through_what_moves_the_output_of_a_softmax(
    backend, move
):
    x, y = tensor.matrix("x"), tensor.matrix("y")
    cost = CategoricalCrossEntropy().apply(y, MOVES[move](Softmax().apply(x)))
    inputs = numpy.array([[500, 0, 0, -500], [0, 1, 2, 300], [0, 0, 0, 0]], "float64")
    logarithms = inputs - scipy.special.logsumexp(inputs, axis=1, keepdims=True)
    targets = numpy.resize([0, 0.75, 0.25], moved(inputs, move).shape)

    value, gradient = compute([cost, tensor.grad(cost, x)], {y: targets, x: inputs}, backend)

    expected = -(targets * moved(logarithms, move)).sum(axis=1).mean()
    numpy.testing.assert_allclose(value, expected, rtol=1e-6)
    assert numpy.isfinite(gradient).all()
    numpy.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-5)
    assert abs(gradient).max() > 0.05


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_class_that_is_masked_before_the_softmax_costs_nothing(backend):
    x, y = tensor.matrix("x"), tensor.lvector("y")
    cost = CategoricalCrossEntropy().apply(y, Softmax().apply(x))

    values = {y: [0], x: [[0, 0, -numpy.inf]]}
    value, gradient = compute([cost, tensor.grad(cost, x)], values, backend)

    numpy.testing.assert_allclose(value, numpy.log(2), rtol=1e-6)
    numpy.testing.assert_allclose(gradient, [[-0.5, 0.5, 0]], rtol=1e-6)


@pytest.mark.parametrize("through", ["replace", "givens"])
@pytest.mark.parametrize("place", ["probabilities", "moved", "input of the cost"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_probabilities_that_replace_a_softmax_count_and_so_does_their_gradient(
    backend, place, through
):
    x, y, p = tensor.matrix("x"), tensor.lvector("y"), tensor.matrix("p")
    probabilities = Softmax().apply(x)
    shifted = probabilities[::-1]
    cost = CategoricalCrossEntropy().apply(y, shifted)
    graph = ComputationGraph(cost)
    (given,) = VariableFilter(roles=[INPUT], bricks=[CategoricalCrossEntropy], name="y_hat")(
        graph.variables
    )
    replaced = {"probabilities": probabilities, "moved": shifted, "input of the cost": given}[place]
    values = {y: [1], p: [[0, 0.5, 0.5]], x: [[0, 0, 0]]}

    if through == "replace":
        cost = graph.replace({replaced: p}).outputs[0]
        results, givens = [cost, tensor.grad(cost, p)], {}
    else:
        results, givens = [cost], {replaced: p}
    names = list(values)
    function = xla.function(
        names, results, givens=givens, backend=backend, on_unused_input="ignore"
    )
    value, *gradient = function(*[numpy.asarray(values[v], v.dtype) for v in names])

    numpy.testing.assert_allclose(value, numpy.log(2), rtol=1e-6)
    for slope in gradient:
        numpy.testing.assert_allclose(slope, [[0, -2, 0]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_of_the_output_of_a_sigmoid_counts(backend):
    x, y = tensor.matrix("x"), tensor.matrix("y")
    probabilities = Logistic().apply(x)
    cost = BinaryCrossEntropy().apply(y, probabilities)
    replaced = ComputationGraph(cost).replace({probabilities: probabilities / 2}).outputs[0]
    slope = tensor.grad(replaced, x)

    value, slope = compute([replaced, slope], {y: [[0.0]], x: [[0.0]]}, backend)

    numpy.testing.assert_allclose(value, -numpy.log(0.75), rtol=1e-6)
    numpy.testing.assert_allclose(slope, [[0.125 / 0.75]], rtol=1e-6)


def test_a_cost_within_a_loop_is_exact():
    x, y = tensor.tensor3("x"), tensor.tensor3("y")
    cost = BinaryCrossEntropy()
    costs, _ = aesara.scan(
        lambda x, y: cost.apply(y, Logistic().apply(x).flatten(ndim=2)), sequences=[x, y]
    )

    values = {x: [[[60]], [[-200]]], y: [[[0]], [[1]]]}
    value, slope = compute([costs.sum(), tensor.grad(costs.sum(), x)], values)

    assert value == 260
    numpy.testing.assert_allclose(slope, [[[1]], [[-1]]])


def test_the_second_derivative_along_a_direction_is_exact():
    x, y = tensor.matrix("x"), tensor.matrix("y")
    cost = BinaryCrossEntropy().apply(y, Logistic().apply(x).flatten(ndim=2))
    gradient = tensor.grad(cost, x)

    along = hessian_times_vector(gradient, x, tensor.ones_like(x))
    first = Rop(cost, x, tensor.ones_like(x))

    values = compute([along, first], {x: [[0.0, 90.0]], y: [[0.0, 0.0]]})
    numpy.testing.assert_allclose(values[0], [[0.25, 0]], atol=1e-6)
    numpy.testing.assert_allclose(values[1], 1.5)


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
        (3, [2, 1, 0], 1 / 3),
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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("top_k", [1, 2])
def test_scores_that_are_not_numbers_are_mistakes_for_every_class(backend, top_k):
    y, y_hat = tensor.lvector("y"), tensor.matrix("y_hat")
    rate = MisclassificationRate(top_k).apply(y, y_hat)
    nan = numpy.nan
    scores = [[nan, nan, nan], [nan, nan, nan], [0, nan, 1], [2, 1, nan], [1, 0, 0]]

    value = compute(rate, {y: [0, 2, 2, 0, 0], y_hat: scores}, backend)

    numpy.testing.assert_allclose(value, 0.8)


@pytest.mark.parametrize("top_k", [1, 2])
def test_classes_out_of_range_are_mistakes_however_many_guesses_there_are(top_k):
    y, y_hat = tensor.lvector("y"), tensor.matrix("y_hat")
    rate = MisclassificationRate(top_k).apply(y, y_hat)

    assert compute(rate, {y: [-1, 3, 7], y_hat: [[1, 2, 3]] * 3}) == 1


@pytest.mark.parametrize("top_k", [3, 4])
def test_as_many_guesses_as_there_are_classes_are_refused(top_k):
    y_hat = tensor.TensorType("float32", (None, 3))("y_hat")

    message = rf"misclassificationrate\.apply: `top_k` .* number of classes, 3, .* got {top_k}"
    with pytest.raises(ValueError, match=message):
        MisclassificationRate(top_k).apply(tensor.lvector("y"), y_hat)


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


def test_as_many_guesses_as_there_turn_out_to_be_classes_are_refused_at_run_time():
    y, y_hat = tensor.lvector("y"), tensor.matrix("y_hat")
    rate = MisclassificationRate(numpy.int64(3)).apply(y, y_hat)

    with pytest.raises(AssertionError, match=r"misclassificationrate\.apply: `top_k` .*top_k=3"):
        compute(rate, {y: [0, 1], y_hat: [[1, 2, 3]] * 2})
    assert compute(rate, {y: [0, 1], y_hat: [[1, 2, 3, 4]] * 2}) == 0.5


@pytest.mark.parametrize("top_k", [0, 1.5, None, True])
def test_top_k_must_be_a_positive_integer(top_k):
    with pytest.raises(ValueError, match=f"`top_k` must be a positive integer; got {top_k}"):
        MisclassificationRate(top_k)
