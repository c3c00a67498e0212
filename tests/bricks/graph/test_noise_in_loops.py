"""Dropout and noise in the steps of loops."""

import aesara
import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose, assert_array_equal

from bricks import xla
from bricks.algorithms import GradientDescent
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, apply_dropout, apply_noise
from bricks.initialization import IsotropicGaussian
from bricks.recurrent import BaseRecurrent, SimpleRecurrent, recurrent
from bricks.roles import INPUT, OUTPUT, WEIGHT

ONES = numpy.ones((6, 20, 30), "float32")


class Passing(BaseRecurrent):
    """Returns what it is given, and what a loop in its step returns of it."""

    def __init__(self, depth=0, **kwargs):
        self.inner = Passing(depth - 1, name="inner") if depth else None
        super().__init__(children=[self.inner] if depth else [], **kwargs)

    @recurrent(sequences=["inputs"], states=[], outputs=["outputs"], contexts=[])
    def apply(self, inputs):
        return self.inner.apply(inputs) if self.inner else inputs


def inner(graph, name, role=OUTPUT):
    (variable,) = VariableFilter(roles=[role], name=name)(graph.scan_variables)
    return variable


@pytest.mark.parametrize("backend", ["xla", "py"])
@pytest.mark.parametrize("per", ["step", "sequence"])
def test_masks_are_those_of_each_step_or_of_all_and_differ_from_call_to_call(per, backend):
    graph = ComputationGraph(Passing().apply(tensor.tensor3("x")))
    function = apply_dropout(graph, [inner(graph, "outputs")], 0.25, per=per).get_function(
        backend=backend
    )

    masks = numpy.stack([function(ONES)[0] != 0 for _ in range(2)])

    assert_allclose(masks.mean(), 0.75, atol=0.03)
    between_steps = (masks[:, 1:] != masks[:, :-1]).mean()
    # Two independent masks differ where one is 0 and the other is 1: 2 × 0.25 × 0.75.
    assert_allclose(between_steps, 0.375 if per == "step" else 0, atol=0.03)
    assert_allclose((masks[0] != masks[1]).mean(), 0.375, atol=0.05)


def test_in_a_loop_in_a_loop_masks_are_those_of_each_step_of_both():
    graph = ComputationGraph(Passing(1).apply(tensor.tensor4("x")))
    (variable,) = VariableFilter(bricks=[Passing], roles=[INPUT])(innermost_variables(graph))
    ones = numpy.ones((2, *ONES.shape), "float32")
    masks = {}
    for per in ("step", "sequence"):
        function = apply_dropout(graph, [variable], 0.25, per=per).get_function()
        masks[per] = function(ones)[0] != 0

    flat = masks["step"].reshape(12, 600)
    different = [(one != other).mean() for i, one in enumerate(flat) for other in flat[:i]]
    assert_allclose(different, 0.375, atol=0.1)
    assert (masks["sequence"] == masks["sequence"][0, 0]).all()
    assert_allclose(masks["sequence"][0, 0].mean(), 0.75, atol=0.06)


def innermost_variables(graph):
    (scan,) = graph.scans
    (deeper,) = ComputationGraph(scan.inner_outputs).scans
    return ComputationGraph(deeper.inner_outputs).variables


def numpy_states(W, x, masks, initial):
    states = [initial]
    for x_t, mask in zip(x, masks, strict=True):
        states.append(numpy.tanh(x_t + (states[-1] * mask / 0.5) @ W))
    return numpy.array(states[1:])


@pytest.mark.parametrize("reverse", [False, True])
def test_states_are_dropped_by_masks_that_are_fed_and_gradients_are_right(reverse):
    with aesara.config.change_flags(floatX="float64"):
        brick = SimpleRecurrent(3, weights_init=IsotropicGaussian(0.5))
        brick.initialize()
        x = tensor.dtensor3("x")
        graph = ComputationGraph(brick.apply(x, reverse=reverse))
    states = inner(graph, "states", INPUT)
    rng = numpy.random.RandomState(0)
    x_ = rng.standard_normal((4, 2, 3))
    for mask, per_step in ((tensor.dtensor3("mask"), True), (tensor.dmatrix("mask"), False)):
        new = apply_dropout(graph, [states], 0.5, masks={states: mask})
        gradient = tensor.grad((new.outputs[0] ** 2).sum(), brick.W)
        function = xla.function([x, mask], [new.outputs[0], gradient])
        mask_ = rng.binomial(1, 0.5, size=(4, 2, 3) if per_step else (2, 3)).astype("float64")

        values, gradient_ = function(x_, mask_)

        # The masks are those of the steps in the order in which they are taken.
        masks = mask_ if per_step else [mask_] * 4
        taken = x_[::-1] if reverse else x_
        W, change = brick.W.get_value(), rng.standard_normal((3, 3))

        def expected(by, taken=taken, masks=masks, W=W, change=change):
            return numpy_states(W + by * change, taken, masks, numpy.zeros((2, 3)))

        assert_allclose(values, expected(0), rtol=1e-10)
        quotient = ((expected(1e-6) ** 2).sum() - (expected(-1e-6) ** 2).sum()) / 2e-6
        assert_allclose((gradient_ * change).sum(), quotient, rtol=1e-6)


def test_a_call_repeats_the_masks_when_the_keys_have_their_values_again():
    graph = ComputationGraph(Passing().apply(tensor.tensor3("x")))
    new = apply_dropout(graph, [inner(graph, "outputs")], 0.5, per="step")
    function = new.get_function()
    (key,) = new.updates

    before = key.get_value()
    first, second = function(ONES)[0], function(ONES)[0]
    key.set_value(before)

    assert_array_equal(function(ONES)[0], first)
    assert_array_equal(function(ONES)[0], second)
    # The output of the whole application is the first of this place.
    assert key.name == "dropout/passing.apply.outputs#1.0"


def build_training(seed):
    brick = SimpleRecurrent(3, weights_init=IsotropicGaussian(0.5), seed=seed)
    brick.initialize()
    graph = ComputationGraph((brick.apply(tensor.tensor3("x")) ** 2).mean())
    graph = apply_dropout(graph, [inner(graph, "states", INPUT)], 0.5, per="step", seed=seed)
    algorithm = GradientDescent(cost=graph.outputs[0], parameters=graph.parameters)
    algorithm.initialize()
    return brick, algorithm


def test_training_goes_on_with_the_same_masks_when_its_state_is_restored_by_name():
    x = numpy.random.RandomState(0).standard_normal((4, 2, 3)).astype("float32")
    brick, algorithm = build_training(seed=1)
    other_brick, other = build_training(seed=2)
    algorithm.process_batch({"x": x})

    state = algorithm.get_state_variables()
    assert "algorithm/random/dropout/simplerecurrent.apply.states#1.0" in state
    for name, variable in other.get_state_variables().items():
        variable.set_value(state[name].get_value())
    for parameter, mine in zip(other_brick.parameters, brick.parameters, strict=True):
        parameter.set_value(mine.get_value())
    for one in (algorithm, other):
        one.process_batch({"x": x})

    assert_array_equal(brick.W.get_value(), other_brick.W.get_value())


def test_noise_on_states_differs_from_step_to_step_if_wanted():
    graph = ComputationGraph(Passing().apply(tensor.tensor3("x")))
    for per, deviation in (("step", 0.5), ("sequence", 0)):
        function = apply_noise(graph, [inner(graph, "outputs")], 0.5, per=per).get_function()
        noise = function(ONES)[0] - 1
        assert_allclose(noise.std(), 0.5, atol=0.03)
        assert_allclose(noise.std(axis=0).mean(), deviation, atol=0.1)


def test_noise_on_weights_is_the_same_in_all_steps_of_a_call():
    brick = SimpleRecurrent(3, weights_init=IsotropicGaussian(0.5))
    brick.initialize()
    x = tensor.tensor3("x")
    graph = ComputationGraph(brick.apply(x))
    (W,) = VariableFilter(roles=[WEIGHT])(graph.parameters)
    new = apply_noise(graph, [W], 0.1)
    (noisy,) = [v for v in new.variables if hasattr(v.tag, "replacement_of")]
    function = xla.function([x], [new.outputs[0], noisy], updates=new.updates)
    x_ = numpy.random.RandomState(0).standard_normal((4, 2, 3))

    weights = []
    for _ in range(2):
        states, noisy_ = function(x_.astype("float32"))
        # `numpy_states` divides by 0.5.
        expected = numpy_states(noisy_, x_, [0.5] * 4, numpy.zeros((2, 3)))
        assert_allclose(states, expected, rtol=1e-4, atol=1e-5)
        weights.append(noisy_)
    assert (weights[0] != weights[1]).all()


def test_masks_may_be_the_same_along_axes():
    x = tensor.tensor3("x")
    y = x * 1
    outside = apply_dropout(ComputationGraph(y), [y], 0.5, same_along=[0]).get_function()(ONES)[0]
    assert (outside == outside[0]).all()
    assert_allclose((outside[0] != 0).mean(), 0.5, atol=0.08)

    graph = ComputationGraph(Passing().apply(x))
    dropped = apply_dropout(graph, [inner(graph, "outputs")], 0.5, per="step", same_along=[-1])
    inside = dropped.get_function()(ONES)[0]
    assert (inside == inside[..., :1]).all()
    assert_allclose((inside[..., 0] != 0).mean(), 0.5, atol=0.15)
    assert (inside[0] != inside[1]).any()


def test_what_cannot_be_placed_is_refused_in_words():
    graph = ComputationGraph(Passing().apply(tensor.tensor3("x")))
    variable = inner(graph, "outputs")

    with pytest.raises(ValueError, match="`per` must be 'sequence' or 'step'; got 'batch'"):
        apply_dropout(graph, [variable], 0.5, per="batch")
    with pytest.raises(ValueError, match="must hold axes of passing_apply_outputs, which has 2"):
        apply_noise(graph, [variable], 0.5, same_along=[2])
    with pytest.raises(ValueError, match="mask of passing_apply_outputs must have 2, or 3 with"):
        apply_dropout(graph, [variable], 0.5, masks={variable: tensor.vector("mask")})


def test_a_length_that_only_the_step_knows_is_refused_in_words():
    x = tensor.lvector("x")
    counts, _ = aesara.scan(lambda n: Passing().apply(tensor.ones((n, 1, 1))).sum(), [x])
    graph = ComputationGraph(counts)
    (variable,) = VariableFilter(roles=[INPUT], bricks=[Passing])(graph.scan_variables)[:1]

    with pytest.raises(ValueError, match="how long it is depends on what the step of its loop"):
        apply_noise(graph, [variable], 0.5)
