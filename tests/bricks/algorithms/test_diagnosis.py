"""Where a cost went wrong, in words."""

import re

import numpy
import pytest
from aesara import tensor

from bricks import MLP, Softmax, Tanh, xla
from bricks.algorithms import GradientDescent, Scale, find_non_finite
from bricks.base import Brick, application
from bricks.cost import CategoricalCrossEntropy
from bricks.graph import ComputationGraph, apply_dropout
from bricks.initialization import Constant, IsotropicGaussian
from bricks.roles import PARAMETER, add_role


class Logarithm(Brick):
    @application(inputs=["x"], outputs=["y"])
    def apply(self, x):
        inner = x - 1
        inner.name = "shifted"
        return tensor.log(inner) * 2


class Weighted(Brick):
    def _allocate(self):
        self.parameters.append(xla.shared(numpy.ones(2, "float32"), name="W"))

    @application(inputs=["x"], outputs=["y"])
    def apply(self, x):
        return x * self.parameters[0]


def network(step_rule=None):
    weighted, logarithm = Weighted(name="weighted"), Logarithm(name="logarithm")
    weighted.allocate()
    add_role(weighted.parameters[0], PARAMETER)
    Brick(name="net", children=[weighted, logarithm])
    x = tensor.fmatrix("features")
    cost = logarithm.apply(weighted.apply(x)).mean().copy(name="cost")
    algorithm = GradientDescent(cost=cost, step_rule=step_rule)
    return algorithm, weighted.parameters[0]


def features(*rows):
    return {"features": numpy.array(rows, dtype="float32")}


def classifier(initialize=True, dropout=None):
    x, y = tensor.matrix("features"), tensor.lmatrix("targets")
    init = {"weights_init": IsotropicGaussian(0.3), "biases_init": Constant(0)}
    mlp = MLP([Tanh(), Softmax()], [4, 5, 2], seed=1, **init)
    probabilities = mlp.apply(x)
    if initialize:
        mlp.initialize()
    cost = CategoricalCrossEntropy().apply(y.flatten(), probabilities)
    graph = ComputationGraph(cost)
    if dropout is not None:
        (cost,) = apply_dropout(graph, [mlp.linear_transformations[1].W], dropout).outputs
    return GradientDescent(cost, graph.parameters)


def labelled(*targets):
    numbers = numpy.array(targets)[:, None]
    return {"features": numpy.ones((len(targets), 4), "float32"), "targets": numbers}


def test_a_brick_that_was_never_initialized_is_named():
    found = find_non_finite(classifier(initialize=False), labelled(0, 1))

    words = r"/mlp/linear_[01] was never initialized, so /mlp/linear_[01]\.[Wb] is not finite: "
    assert re.match(words, found)
    assert "Call `initialize()` of this brick, or of the one that it is a part of" in found


@pytest.mark.parametrize("dropout", [None, 0.5])
def test_targets_that_are_no_classes_are_named(dropout):
    found = find_non_finite(classifier(dropout=dropout), labelled(0, 2, -1, 1))

    assert found.startswith("There is a target -1, 2, but there are 2 classes, 0 to 1: int64")
    assert "in /categoricalcrossentropy, is NaN." in found


def test_nothing_is_found_where_all_is_finite():
    algorithm, _ = network()

    assert find_non_finite(algorithm, features([2, 3], [4, 5])) is None


def test_the_first_variable_that_is_not_finite_is_named_with_its_brick():
    algorithm, _ = network()

    found = find_non_finite(algorithm, features([2, 3], [0, 1]))

    assert found.startswith("The first value that is not finite is a result of Elemwise{log")
    assert "in /net/logarithm: float32 of shape (2, 2), 1 NaN and 1 infinite of 4 elements" in found
    assert "the others from 0 to 0.693147." in found
    assert found.endswith("It is computed from 'shifted' (float32 of shape (2, 2), from -1 to 2).")


def test_a_source_that_is_not_finite_is_named_first():
    algorithm, _ = network()

    found = find_non_finite(algorithm, features([2, numpy.nan], [numpy.inf, 5]))

    assert found == (
        "Source 'features' of the batch is not finite: float32 of shape (2, 2), 1 NaN and 1 "
        "infinite of 4 elements, the others from 2 to 5."
    )


def test_a_parameter_that_is_not_finite_already_is_named_with_the_way_out():
    algorithm, weight = network()
    weight.set_value(numpy.array([numpy.nan, 1], "float32"))

    found = find_non_finite(algorithm, features([2, 3]))

    assert found.startswith("/net/weighted.W is not finite before the batch is looked at: float32")
    assert "call `hold_on_non_finite` before training" in found


def test_the_state_before_the_step_can_be_given():
    algorithm, weight = network()
    weight.set_value(numpy.array([numpy.nan, 1], "float32"))

    found = find_non_finite(algorithm, features([0, 3]), state={weight: numpy.ones(2)})

    assert "in /net/logarithm" in found
    numpy.testing.assert_array_equal(weight.get_value(), [numpy.nan, 1])


def test_a_batch_that_went_wrong_in_training_is_explained_when_the_state_was_held():
    algorithm, weight = network(step_rule=Scale(0.1))
    algorithm.hold_on_non_finite()
    algorithm.initialize()
    bad = features([0, 3])

    algorithm.process_batch(bad)

    assert numpy.isfinite(weight.get_value()).all()
    assert "in /net/logarithm" in find_non_finite(algorithm, bad)


def test_a_gradient_that_is_not_finite_is_found_when_the_cost_is():
    weight = xla.shared(numpy.float32(0), name="W")
    cost = tensor.sqrt(weight)
    algorithm = GradientDescent(cost=cost, parameters=[weight])

    found = find_non_finite(algorithm, {})

    assert "1 infinite of 1 elements" in found
    assert "outside of all bricks" in found


def test_infinite_values_that_do_not_reach_the_cost_are_passed_over():
    weight = xla.shared(numpy.float32(0), name="W")
    energies = tensor.log(tensor.fvector("x"))
    weights = tensor.exp(energies)
    cost = tensor.log(weights.sum() - 10 + weight)
    algorithm = GradientDescent(cost=cost, parameters=[weight])

    found = find_non_finite(algorithm, {"x": numpy.array([0, 1, 2], "float32")})

    assert found.count("log") == 1
    assert "float32 of shape (), 1 NaN" in found


def test_random_keys_are_left_as_they_are():
    stream = xla.RandomStream(seed=1, name="noise")
    weight = xla.shared(numpy.ones(2, "float32"), name="W")
    cost = tensor.log(tensor.fscalar("x") * (weight * stream.normal((2,)) ** 2).sum())
    algorithm = GradientDescent(cost=cost, parameters=[weight])
    keys = [v for k, v in algorithm.get_state_variables().items() if "random" in k]
    before = [key.get_value() for key in keys]

    assert find_non_finite(algorithm, {"x": 1.0}) is None
    assert "log" in find_non_finite(algorithm, {"x": -1.0})

    assert len(keys) == 1
    numpy.testing.assert_array_equal(keys[0].get_value(), before[0])


def test_a_missing_source_is_refused():
    algorithm, _ = network()

    with pytest.raises(ValueError, match="find_non_finite: the graph has an input 'features'"):
        find_non_finite(algorithm, {"x": numpy.ones((2, 2), "float32")})
