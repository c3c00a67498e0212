"""Gradient descent: what is subtracted from which parameters, and what its state is."""

import os
import pickle
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.algorithms import (
    Adam,
    CompositeRule,
    GradientDescent,
    Momentum,
    Restrict,
    Scale,
    StepClipping,
    StepRule,
)
from bricks.base import Brick
from bricks.roles import PARAMETER, WEIGHT, add_role

ROOT = Path(__file__).parents[3]


def parameter(value, name="W", role=PARAMETER):
    variable = xla.shared(numpy.asarray(value, dtype="float32"), name=name)
    add_role(variable, role)
    return variable


def regression(**options):
    """Make gradient descent on ``mean((x W + b)^2)``."""
    weight, bias = parameter([[1.0], [2.0]], "W"), parameter([0.5], "b")
    x = tensor.fmatrix("x")
    cost = ((x.dot(weight) + bias) ** 2).mean().copy(name="cost")
    return GradientDescent(cost=cost, **options), weight, bias


def batch(seed=0):
    return {"x": numpy.random.RandomState(seed).normal(size=(4, 2)).astype("float32")}


def expected_gradients(weight, bias, x):
    residual = x @ weight + bias
    return 2 * x.T @ residual / len(x), 2 * residual.mean(axis=0)


def test_the_step_is_subtracted_from_each_parameter():
    algorithm, weight, bias = regression(step_rule=Scale(0.1))
    algorithm.initialize()
    before = weight.get_value(), bias.get_value()

    algorithm.process_batch(batch())

    of_weight, of_bias = expected_gradients(*before, batch()["x"].astype("float64"))
    numpy.testing.assert_allclose(weight.get_value(), before[0] - 0.1 * of_weight, rtol=1e-5)
    numpy.testing.assert_allclose(bias.get_value(), before[1] - 0.1 * of_bias, rtol=1e-5)


def test_the_gradient_itself_is_subtracted_without_a_rule():
    algorithm, weight, bias = regression()
    assert repr(algorithm.step_rule) == "Scale(learning_rate=1)"


def test_the_parameters_are_those_of_the_graph_that_have_the_role():
    algorithm, weight, bias = regression()

    assert algorithm.parameters == [weight, bias]


def test_a_shared_variable_without_the_role_is_not_trained():
    weight, other = parameter(1.0), xla.shared(numpy.float32(2), name="other")

    assert GradientDescent(cost=weight * other).parameters == [weight]


def test_parameters_keep_the_order_in_which_they_are_given():
    a, b = parameter(1.0, "a"), parameter(2.0, "b")
    algorithm = GradientDescent(cost=a * b, parameters=[b, a])

    assert algorithm.parameters == list(algorithm.gradients) == list(algorithm.steps) == [b, a]


def test_updates_are_those_given_then_of_parameters_then_of_the_rule():
    count = xla.shared(numpy.int64(0), name="count")
    weight = parameter(1.0)
    algorithm = GradientDescent(
        cost=weight**2, step_rule=Momentum(0.1, 0.9), updates=[(count, count + 1)]
    )

    assert [target.name for target, _ in algorithm.updates] == ["count", "W", "velocity[W]"]


@pytest.mark.parametrize("kind", [OrderedDict, dict, list])
def test_gradients_may_be_given_in_an_order(kind):
    a, b = parameter(1.0, "a"), parameter(2.0, "b")
    one = tensor.constant(1.0, dtype="float32")

    algorithm = GradientDescent(gradients=kind([(b, one), (a, one)]))

    assert algorithm.parameters == [b, a]


def test_given_gradients_follow_the_order_of_the_parameters():
    a, b = parameter(1.0, "a"), parameter(2.0, "b")
    one = tensor.constant(1.0, dtype="float32")

    algorithm = GradientDescent(gradients={b: one, a: one}, parameters=[a, b])

    assert algorithm.parameters == [a, b]


def test_given_gradients_of_other_variables_are_refused():
    a, b = parameter(1.0, "a"), parameter(2.0, "b")
    one = tensor.constant(1.0, dtype="float32")

    with pytest.raises(ValueError, match="without a gradient: b; not among the parameters: none"):
        GradientDescent(gradients={a: one}, parameters=[a, b])
    with pytest.raises(ValueError, match="without a gradient: none; not among the parameters: b"):
        GradientDescent(gradients={a: one, b: one}, parameters=[a])


def test_known_gradients_take_the_place_of_a_cost():
    weight = parameter(3.0)
    square = weight**2
    known = {square: tensor.constant(10.0, dtype="float32")}
    algorithm = GradientDescent(known_grads=known, parameters=[weight])
    algorithm.initialize()

    algorithm.process_batch({})

    assert weight.get_value() == 3 - 10 * 6


def test_gradients_do_not_go_through_what_is_considered_constant():
    weight = parameter(3.0)
    square = weight**2
    algorithm = GradientDescent(cost=square + weight, consider_constant=[square])
    algorithm.initialize()

    algorithm.process_batch({})

    assert weight.get_value() == 2


def test_the_total_norms_are_those_of_all_elements():
    a, b = parameter(3.0, "a"), parameter([4.0], "b")
    algorithm = GradientDescent(cost=(a**2 + b.sum() ** 2) / 2, step_rule=Scale(0.1))

    norms = xla.function([], [algorithm.total_gradient_norm, algorithm.total_step_norm])()

    numpy.testing.assert_allclose(norms, [5, 0.5], rtol=1e-6)
    assert algorithm.total_gradient_norm.name == "total_gradient_norm"
    assert algorithm.total_step_norm.name == "total_step_norm"


def test_a_rate_may_be_changed_between_batches():
    rule = Scale(0.1)
    weight = parameter(1.0)
    algorithm = GradientDescent(cost=weight * 1.0, step_rule=rule)
    algorithm.initialize()
    algorithm.process_batch({})
    rule.learning_rate.set_value(numpy.float32(0.5))

    algorithm.process_batch({})

    assert weight.get_value() == pytest.approx(1 - 0.1 - 0.5)


def test_a_rate_may_follow_a_schedule():
    class Decaying(StepRule):
        def __init__(self):
            self.scale = Scale(1.0)

        def compute_steps(self, previous_steps):
            steps, updates = self.scale.compute_steps(previous_steps)
            rate = self.scale.learning_rate
            return steps, [*updates, (rate, rate / 2)]

    weight = parameter(0.0)
    algorithm = GradientDescent(cost=weight * 1.0, step_rule=Decaying())
    algorithm.initialize()
    for _ in range(3):
        algorithm.process_batch({})

    assert weight.get_value() == -1.75
    assert list(algorithm.get_state_variables()) == ["algorithm/step_rule/scale.learning_rate"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda w: GradientDescent(), ValueError, "give a `cost`, or the `gradients`, or"),
        (lambda w: GradientDescent(cost=w), ValueError, "`cost` must be a scalar; W has 1 axes"),
        (
            lambda w: GradientDescent(cost=tensor.fscalar("x") * 1.0),
            ValueError,
            "no shared variable with the role PARAMETER",
        ),
        (
            lambda w: GradientDescent(cost=w.sum(), parameters=[]),
            ValueError,
            "`parameters` is empty",
        ),
        (
            lambda w: GradientDescent(cost=w.sum(), parameters=[w, w]),
            ValueError,
            "`parameters` has W twice",
        ),
        (
            lambda w: GradientDescent(cost=w.sum(), parameters=[parameter([1.0], "other")]),
            ValueError,
            "the cost does not depend on other",
        ),
        (
            lambda w: GradientDescent(cost=w.sum(), parameters=[tensor.fvector("x")]),
            TypeError,
            "`parameters` must be shared variables; x is not",
        ),
        (
            lambda w: GradientDescent(
                cost=w.sum(), parameters=[xla.shared(numpy.zeros(1, "int64"), name="count")]
            ),
            TypeError,
            "count has dtype int64; only floats have gradients",
        ),
        (
            lambda w: GradientDescent(cost=w.sum(), step_rule=Scale),
            TypeError,
            "`step_rule` must be a step rule.*Make an instance of it",
        ),
        (
            lambda w: GradientDescent(gradients={}),
            ValueError,
            "`gradients` must hold at least one",
        ),
        (
            lambda w: GradientDescent(gradients={w: w}, consider_constant=[w]),
            ValueError,
            "cannot be given with `gradients`",
        ),
        (
            lambda w: GradientDescent(cost=w.sum(), updates=[(w, w)]),
            ValueError,
            "W is updated twice",
        ),
        (
            lambda w: GradientDescent(gradients={w: tensor.dvector("g")}),
            TypeError,
            "the new value of W must have dtype float32.*got float64",
        ),
        (
            lambda w: GradientDescent(cost=w.sum(), learning_rate=0.1),
            TypeError,
            "unexpected argument 'learning_rate'. Known: ",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_words(make, error, message):
    with pytest.raises(error, match=message):
        make(parameter([1.0, 2.0]))


class Layer(Brick):
    def __init__(self, **options):
        super().__init__(**options)
        self.allocate()

    def _allocate(self):
        self.parameters.append(parameter([1.0], "W", WEIGHT))


def test_the_state_is_named_by_the_paths_of_rules_and_parameters():
    first, second = Layer(name="first"), Layer(name="second")
    parent = Brick(name="net", children=[first, second])
    weights = [brick.parameters[0] for brick in parent.children]
    rule = CompositeRule([StepClipping(1.0), Restrict(Momentum(0.1, 0.9), weights[:1]), Adam()])

    algorithm = GradientDescent(cost=(weights[0] * weights[1]).sum(), step_rule=rule)

    assert list(algorithm.get_state_variables()) == [
        "algorithm/step_rule/0.threshold",
        "algorithm/step_rule/1/rule.learning_rate",
        "algorithm/step_rule/1/rule.momentum",
        "algorithm/step_rule/2.learning_rate",
        "algorithm/step_rule/2.beta1",
        "algorithm/step_rule/2.beta2",
        "algorithm/step_rule/2.epsilon",
        "algorithm/step_rule/2.decay_factor",
        "algorithm/step_rule/1/rule/1.velocity[/net/first.W]",
        "algorithm/step_rule/2.time",
        "algorithm/step_rule/2.mean[/net/first.W]",
        "algorithm/step_rule/2.variance[/net/first.W]",
        "algorithm/step_rule/2.mean[/net/second.W]",
        "algorithm/step_rule/2.variance[/net/second.W]",
    ]


def test_what_is_trained_without_the_role_of_a_parameter_is_state():
    weight = xla.shared(numpy.float32(2), name="W")

    state = GradientDescent(cost=weight**2, parameters=[weight]).get_state_variables()

    assert state["algorithm/parameters/W"] is weight


def test_two_algorithms_may_use_one_rule():
    weight, rule = parameter(1.0), Momentum(0.1, 0.9)
    first = GradientDescent(cost=weight**2, step_rule=rule)
    second = GradientDescent(cost=weight**2, step_rule=rule)

    names = [
        "algorithm/step_rule.learning_rate",
        "algorithm/step_rule.momentum",
        "algorithm/step_rule/1.velocity[W]",
    ]
    assert list(first.get_state_variables()) == list(second.get_state_variables()) == names
    buffers = [a.get_state_variables()[names[2]] for a in (first, second)]
    assert buffers[0] is not buffers[1]


PRINT_STATE = """
from bricks import xla
import numpy
from aesara import tensor
from bricks.algorithms import Adam, CompositeRule, GradientDescent, StepClipping
from bricks.monitoring import AggregationBuffer
from bricks.roles import PARAMETER, add_role

names = ["W%d" % i for i in range(8)] + ["W1", "W2"]
weights = [xla.shared(numpy.ones(2, "float32"), name=name) for name in names]
for weight in weights:
    add_role(weight, PARAMETER)
stream = xla.RandomStream(seed=1, name="noise")
cost = sum((w * stream.normal((2,))).sum() for w in weights) * tensor.fvector("x").sum()
cost.name = "cost"
algorithm = GradientDescent(cost=cost, step_rule=CompositeRule([StepClipping(1.0), Adam()]))
algorithm.add_updates(AggregationBuffer([cost]).accumulation_updates)
print([(name, v.name, v.get_value().shape) for name, v in algorithm.get_state_variables().items()])
print([w.name for w in algorithm.parameters])
"""


def test_the_state_has_the_same_names_and_order_in_every_process():
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PRINT_STATE],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1", "2")
    ]
    printed = [process.communicate()[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0]
    assert "mean[W1]_2" in printed[0]
    assert "random/noise.9" in printed[0]
    assert len(set(printed)) == 1


@pytest.mark.parametrize("rule", [Momentum(0.1, 0.9), Adam(0.1)])
def test_a_pickled_algorithm_goes_on_bit_by_bit(rule):
    algorithm, *_ = regression(step_rule=rule)
    algorithm.initialize()
    for seed in range(3):
        algorithm.process_batch(batch(seed))

    copy = pickle.loads(pickle.dumps(algorithm))
    for continued in (algorithm, copy):
        for seed in range(3, 6):
            continued.process_batch(batch(seed))

    for ours, theirs in zip(algorithm.updates, copy.updates, strict=True):
        assert ours[0].get_value().tobytes() == theirs[0].get_value().tobytes()
    assert list(copy.get_state_variables()) == list(algorithm.get_state_variables())


def test_the_state_put_by_name_into_a_new_algorithm_goes_on_bit_by_bit():
    def made():
        noise = xla.RandomStream(seed=3, name="noise").normal((2, 1))
        weight = parameter([[1.0], [2.0]])
        cost = ((tensor.fmatrix("x").dot(weight + noise)) ** 2).mean()
        algorithm = GradientDescent(cost=cost, step_rule=Adam(0.1))
        algorithm.initialize()
        return algorithm, weight

    algorithm, weight = made()
    algorithm.process_batch(batch(0))
    state = {k: v.get_value() for k, v in algorithm.get_state_variables().items()}
    fresh, fresh_weight = made()
    for name, variable in fresh.get_state_variables().items():
        variable.set_value(state[name])
    fresh_weight.set_value(weight.get_value())
    for continued in (algorithm, fresh):
        continued.process_batch(batch(1))

    assert weight.get_value().tobytes() == fresh_weight.get_value().tobytes()


def broken(hold, **options):
    """Make training on ``mean(log(x) W)`` with a random key."""
    weight = parameter(1.0)
    noise = xla.RandomStream(seed=1, name="noise").normal(())
    cost = (tensor.log(tensor.fvector("x")) * weight + noise).mean()
    algorithm = GradientDescent(cost=cost, step_rule=Momentum(0.1, 0.9))
    if hold:
        algorithm.hold_on_non_finite(**options)
    algorithm.initialize()
    return algorithm, weight


def assert_held(algorithm, weight, bad):
    before = {k: v.get_value() for k, v in algorithm.get_state_variables().items()}
    before_weight = weight.get_value()

    algorithm.process_batch(bad)

    for name, variable in algorithm.get_state_variables().items():
        numpy.testing.assert_array_equal(variable.get_value(), before[name], err_msg=name)
    assert weight.get_value() == before_weight


@pytest.mark.parametrize("gradients", [False, True])
def test_the_state_before_a_bad_step_is_held_on_request(gradients):
    algorithm, weight = broken(hold=True, gradients=gradients)
    algorithm.process_batch({"x": numpy.full(2, 2, "float32")})

    assert_held(algorithm, weight, {"x": numpy.full(2, -1, "float32")})


def test_bad_gradients_of_a_finite_cost_are_held_too_and_can_be_counted():
    weight = parameter(0.0)
    algorithm = GradientDescent(cost=tensor.sqrt(weight * tensor.fscalar("x")))
    count = xla.shared(numpy.int64(0), name="count")
    count.tag.is_accumulator = True
    held = algorithm.hold_on_non_finite(gradients=True)
    algorithm.add_updates([(count, count + held)])
    algorithm.initialize()

    algorithm.process_batch({"x": 1.0})

    assert weight.get_value() == 0
    assert count.get_value() == 1


def test_the_state_is_held_for_bad_gradients_where_there_is_no_cost():
    weight = parameter(1.0)
    algorithm = GradientDescent(gradients={weight: tensor.fscalar("x")})
    algorithm.hold_on_non_finite()
    algorithm.initialize()

    assert_held(algorithm, weight, {"x": numpy.inf})


def test_good_steps_are_the_same_when_the_state_would_be_held():
    values = []
    for hold in (False, True):
        algorithm, weight = broken(hold)
        for _ in range(2):
            algorithm.process_batch({"x": numpy.full(2, 2, "float32")})
        values.append(weight.get_value())

    assert values[0] == values[1] != 1


def test_holding_cannot_begin_after_initialize():
    algorithm, _ = broken(hold=False)

    with pytest.raises(RuntimeError, match="must be called before `initialize`"):
        algorithm.hold_on_non_finite()


def test_gradients_go_back_through_more_layers_than_python_calls_functions():
    parameter = xla.shared(numpy.ones(2), "parameter")
    add_role(parameter, PARAMETER)
    deep = parameter
    for _ in range(sys.getrecursionlimit() // 2):
        deep = tensor.sin(deep)

    algorithm = GradientDescent(cost=deep.sum(), step_rule=Scale(1))

    assert list(algorithm.gradients) == [parameter]
