import numpy
import pytest
from aesara import tensor

from bricks import (
    Bias,
    Identity,
    LeakyRectifier,
    Linear,
    LinearMaxout,
    Logistic,
    Maxout,
    NDimensionalSoftmax,
    Rectifier,
    Softmax,
    Softplus,
    Tanh,
    xla,
)
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian
from bricks.roles import BIAS, WEIGHT, has_roles

BACKENDS = ["xla", "py"]


def compute(variable, values, backend="xla"):
    arrays = [numpy.asarray(value, dtype=x.dtype) for x, value in values.items()]
    return xla.function(list(values), variable, backend=backend)(*arrays)


def test_linear_is_a_matrix_product_and_a_bias():
    linear = Linear(2, 3, weights_init=Constant(2), biases_init=Constant(1))
    linear.initialize()
    x = tensor.matrix("x")

    value = compute(linear.apply(x), {x: [[1.0, 10.0]]})

    numpy.testing.assert_array_equal(value, [[23, 23, 23]])
    assert (linear.get_dim("input_"), linear.get_dim("output")) == (2, 3)
    with pytest.raises(ValueError, match="/linear: the dimension of 'mask' is not known"):
        linear.get_dim("mask")


def test_parameters_of_linear_have_roles_names_and_norms():
    linear = Linear(3, 4, weights_init=Constant(2), biases_init=Constant(1))
    linear.initialize()
    graph = ComputationGraph(linear.apply(tensor.matrix("x")))

    assert has_roles(linear.W, [WEIGHT]) and has_roles(linear.b, [BIAS])
    assert [p.name for p in linear.parameters] == ["W", "b"]
    (norm,) = VariableFilter(name="W_norm")(graph.auxiliary_variables)
    numpy.testing.assert_allclose(compute(norm, {}), numpy.sqrt(12 * 4), rtol=1e-6)


def test_linear_without_bias_has_only_weights():
    linear = Linear(2, 3, use_bias=False, weights_init=Constant(2))
    linear.initialize()

    assert len(linear.parameters) == 1


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "bool", "float32"])
@pytest.mark.parametrize(
    "brick",
    [Linear(4, 2), Bias(4), Tanh(), Logistic(), Softplus(), LeakyRectifier(), Softmax()],
    ids=lambda brick: brick.name,
)
def test_no_input_makes_float64_of_float32(brick, dtype):
    x = tensor.TensorType(dtype, (None, 4))("x")

    assert brick.apply(x).dtype == "float32"


def test_linear_knows_the_length_of_its_output_so_that_the_next_one_can_refuse_it():
    x = tensor.matrix("x")
    hidden = Linear(4, 3, name="first").apply(x)

    assert hidden.type.shape == (None, 3)
    with pytest.raises(ValueError, match=r"/second\.apply: `input_` must have 5 features.*, 3\)"):
        Linear(5, 2, name="second").apply(hidden)


@pytest.mark.parametrize("dim", [0, -1, 2.5, None, True, "3"])
def test_a_size_that_is_no_positive_integer_is_refused_at_allocation(dim):
    with pytest.raises(ValueError, match="/linear cannot be allocated: `output_dim` must be a pos"):
        Linear(2, dim).allocate()


def test_an_input_without_axes_is_refused():
    with pytest.raises(ValueError, match=r"/linear\.apply: `input_` must have at least 1 axis"):
        Linear(2, 2).apply(tensor.scalar("x"))


def test_sizes_may_be_given_later():
    bias, maxout = Bias(), LinearMaxout()
    bias.output_dim = 4
    maxout.input_dim, maxout.output_dim, maxout.num_pieces = 3, 2, 5
    bias.allocate()
    maxout.allocate()

    assert bias.input_dim == bias.dim == 4
    assert maxout.linear.W.get_value().shape == (3, 10)
    with pytest.raises(ValueError, match="/linear cannot be allocated: 'input_dim'.*not set"):
        Linear(output_dim=2).allocate()


def test_linear_maxout_hands_use_bias_to_its_linear_map():
    maxout = LinearMaxout(3, 2, 5, use_bias=False)
    maxout.allocate()

    assert len(maxout.linear.parameters) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_maxout_takes_the_largest_of_neighbours(backend):
    x = tensor.matrix("x")

    value = compute(Maxout(2).apply(x), {x: [[1.0, 2.0, 4.0, 3.0]]}, backend)

    numpy.testing.assert_array_equal(value, [[2, 4]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_rectifiers_have_no_gradient_at_zero_and_keep_nan(backend):
    x = tensor.vector("x")
    rectified, leaky = Rectifier().apply(x), LeakyRectifier(0.5).apply(x)
    outputs = [rectified, leaky, tensor.grad(rectified.sum(), x)]

    values = compute(outputs, {x: [-2.0, 0.0, 3.0, float("nan")]}, backend)

    numpy.testing.assert_array_equal(values[0], [0, 0, 3, float("nan")])
    numpy.testing.assert_array_equal(values[1], [-1, 0, 3, float("nan")])
    numpy.testing.assert_array_equal(values[2][:3], [0, 0, 1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_overflows(backend):
    x = tensor.matrix("x")
    softmax = Softmax()
    outputs = [
        Softplus().apply(x),
        Logistic().apply(x),
        softmax.apply(x),
        softmax.log_probabilities(x),
    ]

    values = compute(outputs, {x: [[1000.0, 0.0, -1000.0]]}, backend)

    numpy.testing.assert_allclose(values[0], [[1000, numpy.log(2), 0]], rtol=1e-6)
    numpy.testing.assert_array_equal(values[1], [[1, 0.5, 0]])
    numpy.testing.assert_array_equal(values[2], [[1, 0, 0]])
    numpy.testing.assert_array_equal(values[3], [[0, -1000, -2000]])


def test_softmax_of_a_vector_is_a_vector():
    x = tensor.vector("x")

    numpy.testing.assert_array_equal(compute(Softmax().apply(x), {x: [2.0, 2.0]}), [0.5, 0.5])


@pytest.mark.parametrize("backend", BACKENDS)
def test_cross_entropy_of_unlikely_classes_is_exact_and_so_is_its_gradient(backend):
    x, y = tensor.matrix("x"), tensor.lvector("y")
    costs = Softmax().categorical_cross_entropy(y, x)

    cost, gradient = compute(
        [costs, tensor.grad(costs.sum(), x)], {y: [1, 0], x: [[500.0, 0.0], [0.0, 0.0]]}, backend
    )

    numpy.testing.assert_allclose(cost, [500, numpy.log(2)], rtol=1e-6)
    numpy.testing.assert_allclose(gradient, [[1, -1], [-0.5, 0.5]])


TARGETS = {
    "classes": numpy.array([1, 0]),
    "bytes": numpy.array([1, 0], "uint8"),
    "a column": numpy.array([[1], [0]]),
    "a column of bytes": numpy.array([[1], [0]], "uint8"),
    "a one-hot code": numpy.array([[0, 1, 0], [1, 0, 0]]),
    "a distribution": numpy.array([[0, 1, 0], [1, 0, 0]], "float32"),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_classes_may_be_given_in_all_ways_of_data_sets(backend, name, known):
    target = TARGETS[name]
    shape = target.shape if known else (None,) * target.ndim
    y, x = tensor.TensorType(target.dtype, shape)("y"), tensor.matrix("x")
    costs = Softmax().categorical_cross_entropy(y, x)
    scores = numpy.array([[1, 2, 3], [0, 0, 0]], "float32")

    cost, gradient = compute([costs, tensor.grad(costs.sum(), x)], {y: target, x: scores}, backend)

    e = numpy.exp(scores)
    expected = e / e.sum(axis=1, keepdims=True)
    assert costs.dtype == "float32"
    numpy.testing.assert_allclose(cost, -numpy.log([expected[0, 1], expected[1, 0]]), rtol=1e-5)
    expected[[0, 1], [1, 0]] -= 1
    numpy.testing.assert_allclose(gradient, expected, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("number", [-1, 3])
def test_a_class_that_is_none_of_them_costs_nan(backend, number):
    x, y = tensor.matrix("x"), tensor.lvector("y")
    costs = Softmax().categorical_cross_entropy(y, x)

    cost = compute(costs, {y: [number, 1], x: numpy.zeros((2, 3), "float32")}, backend)

    numpy.testing.assert_array_equal(numpy.isnan(cost), [True, False])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_class_that_is_none_of_them_costs_nan_also_in_a_column_of_unknown_width(backend):
    scores, column = tensor.matrix("scores"), tensor.lmatrix("y")
    cost = Softmax().categorical_cross_entropy(column, scores)
    gradient = tensor.grad(cost[1], scores)
    values = {scores: [[0, 1, 2], [2, 1, 0]]}

    wrong, _ = compute([cost, gradient], {**values, column: [[3], [0]]}, backend)
    one_hot, _ = compute([cost, gradient], {**values, column: [[0, 0, 1], [1, 0, 0]]}, backend)
    right, slope = compute([cost, gradient], {**values, column: [[2], [0]]}, backend)

    numpy.testing.assert_array_equal(numpy.isnan(wrong), [True, False])
    numpy.testing.assert_allclose(right, one_hot)
    probabilities = numpy.exp([2, 1, 0]) / numpy.exp([2, 1, 0]).sum()
    numpy.testing.assert_allclose(slope[1], probabilities - [1, 0, 0], rtol=1e-5)


def test_an_outcome_of_weight_zero_and_probability_zero_costs_nothing():
    x, y = tensor.matrix("x"), tensor.matrix("y")
    costs = Softmax().categorical_cross_entropy(y, x)
    scores = numpy.array([[-numpy.inf, 0, 0]], "float32")

    cost, gradient = compute([costs, tensor.grad(costs.sum(), x)], {y: [[0, 0, 1]], x: scores})

    numpy.testing.assert_allclose(cost, [numpy.log(2)], rtol=1e-6)
    numpy.testing.assert_allclose(gradient, [[0, 0.5, -0.5]])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (tensor.vector("y"), "must be integers"),
        (tensor.TensorType("int64", (7,))("y"), "does not fit"),
        (tensor.TensorType("float32", (None, 4))("y"), "does not fit"),
        (tensor.tensor3("y"), r"must have shape \(batch,\) or"),
    ],
)
def test_targets_that_do_not_fit_are_refused_in_words(y, words):
    x = tensor.TensorType("float32", (5, 3))("x")

    with pytest.raises(ValueError, match=rf"/softmax\.categorical_cross_entropy: `y` .*{words}"):
        Softmax().categorical_cross_entropy(y, x)


def test_softmax_over_time_folds_the_axes_and_unfolds_them():
    x, y = tensor.tensor3("x"), tensor.lmatrix("y")
    softmax = NDimensionalSoftmax()
    outputs = [
        softmax.apply(x, extra_ndim=1),
        softmax.categorical_cross_entropy(y, x, extra_ndim=1),
    ]

    values = compute(outputs, {x: numpy.zeros((2, 3, 4), "float32"), y: numpy.zeros((2, 3), int)})

    numpy.testing.assert_array_equal(values[0], numpy.full((2, 3, 4), 0.25))
    numpy.testing.assert_allclose(values[1], numpy.full((2, 3), numpy.log(4)), rtol=1e-6)


def test_seeds_make_the_same_parameters_again():
    bricks = [Linear(3, 3, weights_init=IsotropicGaussian(), use_bias=False) for _ in range(2)]
    for brick in bricks:
        brick.seed = 4
        brick.initialize()

    numpy.testing.assert_array_equal(bricks[0].W.get_value(), bricks[1].W.get_value())


def test_identity_returns_its_input():
    x = tensor.tensor3("x")

    assert compute(Identity().apply(x), {x: numpy.ones((1, 2, 3), "float32")}).sum() == 6
