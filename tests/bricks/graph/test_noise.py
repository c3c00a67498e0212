"""Graphs with dropout and noise."""

import re

import aesara
import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose, assert_array_equal

from bricks import xla
from bricks.base import Brick, application
from bricks.config import config
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, apply_dropout, apply_noise
from bricks.interfaces import derive_seed
from bricks.roles import DROPOUT, INPUT, OUTPUT


class Layer(Brick):
    def __init__(self, W, **kwargs):
        super().__init__(**kwargs)
        self.W = W

    @application(inputs=["x"], outputs=["y"])
    def apply(self, x):
        return tensor.tanh(tensor.dot(x, self.W))


@pytest.fixture(params=["xla", "py"])
def backend(request):
    return request.param


W0 = numpy.random.RandomState(0).normal(size=(4, 5))
W1 = numpy.random.RandomState(1).normal(size=(5, 2))
X = numpy.random.RandomState(2).normal(size=(3, 4))


def network(names=("one", "two")):
    """Two layers in float64, whose cost uses the hidden layer twice."""
    x = tensor.dmatrix("x")
    layers = [
        Layer(aesara.shared(W, name="W"), name=n) for W, n in zip((W0, W1), names, strict=True)
    ]
    hidden = layers[0].apply(x)
    cost = (layers[1].apply(hidden) ** 2).sum() + (hidden**3).sum()
    return ComputationGraph(cost), hidden, layers


def masks_of(graph):
    """The variables that the DROPOUT variables of a graph are multiplied by."""
    dropped = VariableFilter(roles=[DROPOUT])(graph.variables)
    return [variable.owner.inputs[0].owner.inputs[1] for variable in dropped]


def expected_gradient(mask, keep):
    """The cost of `network` with its hidden layer dropped, and its gradient in W0, by hand."""
    hidden = numpy.tanh(X @ W0)
    dropped = hidden * mask / keep
    out = numpy.tanh(dropped @ W1)
    of_dropped = (2 * out * (1 - out**2)) @ W1.T + 3 * dropped**2
    gradient = X.T @ (of_dropped * mask / keep * (1 - hidden**2))
    return (out**2).sum() + (dropped**3).sum(), gradient


def test_dropout_and_its_gradient_are_right_with_the_masks_that_were_drawn(backend):
    graph, hidden, layers = network()
    new = apply_dropout(graph, [hidden], 0.4)
    (mask,) = masks_of(new)
    gradient = aesara.grad(new.outputs[0], layers[0].W)
    function = xla.function(
        new.inputs, [new.outputs[0], gradient, mask], updates=new.updates, backend=backend
    )

    seen = []
    for _ in range(2):
        cost, gradient_, mask_ = function(X)
        expected = expected_gradient(mask_, 0.6)
        assert_allclose(cost, expected[0], rtol=1e-10)
        assert_allclose(gradient_, expected[1], rtol=1e-10)
        assert set(mask_.ravel()) == {0, 1}
        seen.append(mask_)
    assert (seen[0] != seen[1]).any()


def test_masks_can_be_fed(backend):
    graph, hidden, layers = network()
    mask = tensor.dmatrix("mask")
    new = apply_dropout(graph, [hidden], 0.5, masks={hidden: mask})
    gradient = aesara.grad(new.outputs[0], layers[0].W)
    mask_ = numpy.random.RandomState(3).binomial(1, 0.5, size=(3, 5)).astype("float64")

    function = xla.function(
        [*new.dict_of_inputs().values()], [new.outputs[0], gradient], backend=backend
    )
    got = function(**{"x": X, "mask": mask_})

    for value, expected in zip(got, expected_gradient(mask_, 0.5), strict=True):
        assert_allclose(value, expected, rtol=1e-10)


def test_what_stands_for_a_variable_has_the_role_and_knows_what_it_replaced():
    graph, hidden, _ = network()

    new = apply_dropout(graph, [hidden], 0.5)

    (dropped,) = VariableFilter(roles=[DROPOUT])(new.variables)
    assert dropped.tag.replacement_of is hidden
    assert not VariableFilter(roles=[DROPOUT])(graph.variables)


def test_the_mean_is_kept_unless_another_divisor_is_given(backend):
    x = tensor.dmatrix("x")
    y = x * 1
    graph = ComputationGraph(y)
    ones = numpy.ones((200, 200))

    for arguments, mean in (({}, 1.0), ({"custom_divisor": 1.0}, 0.75)):
        function = apply_dropout(graph, [y], 0.25, **arguments).get_function(backend=backend)
        assert_allclose(function(ones)[0].mean(), mean, atol=0.01)


def test_keys_are_named_after_brick_application_and_variable():
    graph, _, layers = network()
    variables = VariableFilter(roles=[INPUT, OUTPUT])(graph.variables)

    new = apply_dropout(graph, [*variables, graph.inputs[0], layers[0].W], 0.5)

    assert sorted(key.name for key in new.updates) == [
        "dropout/W.0",
        "dropout/one.apply.x.0",
        "dropout/one.apply.y.0",
        "dropout/two.apply.x.0",
        "dropout/two.apply.y.0",
        "dropout/x.0",
    ]


def test_keys_do_not_depend_on_order_nor_on_what_else_is_dropped():
    graph, hidden, layers = network()
    (x,) = VariableFilter(roles=[INPUT], bricks=[layers[1]])(graph.variables)

    keys = [
        {key.name: key.get_value().tolist() for key in apply_dropout(graph, chosen, 0.5).updates}
        for chosen in ([hidden, x], [x, hidden], [x])
    ]

    assert keys[0] == keys[1]
    assert keys[2].items() <= keys[0].items()
    first, second = keys[0].values()
    assert first != second


def test_the_seed_changes_the_keys_and_is_by_default_the_configuration_s(monkeypatch):
    graph, hidden, _ = network()

    def key(**arguments):
        (key,) = apply_dropout(graph, [hidden], 0.5, **arguments).updates
        return key.get_value().tolist()

    assert key() == key(seed=config.default_seed) != key(seed=17)
    monkeypatch.setattr(config, "default_seed", 17)
    assert key() == key(seed=17)
    assert derive_seed(17, "dropout/one.apply.y") != derive_seed(17, "noise/one.apply.y")


def test_a_brick_that_is_applied_twice_gets_two_keys():
    x, layer = tensor.dmatrix("x"), Layer(aesara.shared(numpy.eye(4)), name="layer")
    graph = ComputationGraph(layer.apply(layer.apply(x)))
    first, second = VariableFilter(roles=[OUTPUT])(graph.variables)

    assert [key.name for key in apply_dropout(graph, [second], 0.5).updates] == [
        "dropout/layer.apply.y#1.0"
    ]
    names = [key.name for key in apply_dropout(graph, [second, first], 0.5).updates]
    assert sorted(names) == ["dropout/layer.apply.y#1.0", "dropout/layer.apply.y.0"]


def test_dropout_of_dropout_gets_another_key():
    graph, hidden, _ = network()
    new = apply_dropout(graph, [hidden], 0.5)
    (dropped,) = VariableFilter(roles=[DROPOUT])(new.variables)

    newer = apply_dropout(new, [dropped], 0.5)

    names = [key.name for key in newer.updates]
    assert len(set(names)) == 2
    assert len({tuple(key.get_value()) for key in newer.updates}) == 2


def test_one_stream_may_be_given_for_all():
    graph, hidden, layers = network()
    (x,) = VariableFilter(roles=[INPUT], bricks=[layers[0]])(graph.variables)
    stream = xla.RandomStream(3, name="mine")

    new = apply_dropout(graph, [hidden, x], 0.5, rng=stream)

    assert sorted(key.name for key in new.updates) == ["mine.0", "mine.1"]


@pytest.mark.parametrize(
    "drop_prob", [-0.1, 1, 1.5, numpy.float32(2.5), numpy.nan, True, "0.5", numpy.array([0.5])]
)
def test_probabilities_out_of_range_are_refused(drop_prob):
    graph, hidden, _ = network()

    message = re.escape(f"`drop_prob` must be at least 0 and below 1; got {drop_prob!r}.")
    with pytest.raises(ValueError, match=message):
        apply_dropout(graph, [hidden], drop_prob)


def test_a_probability_may_be_a_shared_variable(backend):
    x = tensor.dmatrix("x")
    y, probability = x * 1, aesara.shared(0.0)
    function = apply_dropout(ComputationGraph(y), [y], probability).get_function(backend=backend)

    assert_array_equal(function(X)[0], X)
    probability.set_value(0.5)
    assert (function(X)[0] == 0).any()


def test_integers_are_refused_in_words():
    x = tensor.lmatrix("x")

    for apply in (apply_dropout, apply_noise):
        with pytest.raises(ValueError, match="apply_.*: x holds int64; only variables of floating"):
            apply(ComputationGraph(x + 1), [x], 0.5)


def test_noise_has_the_given_deviation_and_differs_from_call_to_call(backend):
    x = tensor.dmatrix("x")
    y = x * 1
    function = apply_noise(ComputationGraph(y), [y], 0.5).get_function(backend=backend)

    first, second = (function(numpy.zeros((100, 100)))[0] for _ in range(2))

    assert_allclose(first.std(), 0.5, atol=0.02)
    assert_allclose(first.mean(), 0, atol=0.02)
    assert (first != second).all()


def test_noise_on_parameters_reaches_all_their_uses_and_gradients_are_right(backend):
    x, W = tensor.dmatrix("x"), aesara.shared(W0, name="W")
    out = tensor.dot(x, W)
    graph = ComputationGraph((out**2).sum() + W.sum())
    new = apply_noise(graph, [W], 0.1)
    (noisy,) = [v for v in new.variables if hasattr(v.tag, "replacement_of")]
    gradient = aesara.grad(new.outputs[0], W)

    function = xla.function(
        [x], [new.outputs[0], gradient, noisy], updates=new.updates, backend=backend
    )
    cost, gradient_, noisy_ = function(X)

    assert (noisy_ != W0).all()
    assert_allclose(cost, ((X @ noisy_) ** 2).sum() + noisy_.sum(), rtol=1e-10)
    assert_allclose(gradient_, 2 * X.T @ X @ noisy_ + 1, rtol=1e-10)
    assert [key.name for key in new.updates] == ["noise/W.0"]


@pytest.mark.parametrize("level", [-1, numpy.float32(-0.5), numpy.nan, True, "1", None])
def test_levels_that_are_no_numbers_from_0_are_refused(level):
    graph, hidden, _ = network()

    message = re.escape(f"`level` must be at least 0; got {level!r}.")
    with pytest.raises(ValueError, match=message):
        apply_noise(graph, [hidden], level)


@pytest.mark.parametrize("number", [numpy.float32(0.25), numpy.float64(0.25), numpy.array(0.25)])
def test_numbers_of_numpy_are_levels_and_probabilities_and_widen_nothing(number):
    x = tensor.fmatrix("x")
    y = x * 1

    for apply in (apply_dropout, apply_noise):
        (output,) = apply(ComputationGraph(y), [y], number).outputs
        assert output.dtype == "float32"


def test_in_the_step_of_a_loop_one_mask_serves_all_steps_of_a_call():
    x, layer = tensor.dtensor3("x"), Layer(aesara.shared(numpy.eye(4)), name="layer")
    out, _ = aesara.scan(lambda x_t: layer.apply(x_t), sequences=[x])
    gradient_in_x = aesara.grad(out.sum(), x)
    graph = ComputationGraph(out)
    (inner,) = VariableFilter(roles=[OUTPUT])(graph.scan_variables)

    new = apply_dropout(graph, [inner], 0.5)
    gradient = aesara.grad(new.outputs[0].sum(), x)
    function = xla.function(
        [x], [new.outputs[0], gradient, gradient_in_x], updates=new.updates, backend="py"
    )

    given = numpy.random.RandomState(0).normal(size=(6, 3, 4))
    seen = []
    for _ in range(2):
        dropped, gradient_, without = function(given)
        mask = dropped[0] != 0
        assert_allclose(dropped, 2 * numpy.tanh(given) * mask)
        assert_allclose(gradient_, 2 * without * mask)
        seen.append(mask)
    assert (seen[0] != seen[1]).any()
    assert [key.name for key in new.updates] == ["dropout/layer.apply.y.0"]


def test_a_mask_may_be_of_any_numbers():
    y, mask = tensor.fmatrix("y"), tensor.lmatrix("mask")
    graph = ComputationGraph(y * 2)
    ones = numpy.ones((1, 2), "float32")
    for given, values in ((mask, [numpy.array([[1, 0]])]), (numpy.array([[1.0, 0.0]]), [])):
        new = apply_dropout(graph, [y], 0.5, masks={y: given})
        function = xla.function([y, *([mask] if values else [])], new.outputs[0])

        found = function(ones, *values)

        assert found.dtype == "float32"
        assert_array_equal(found, [[4, 0]])


def test_a_mask_of_what_is_not_dropped_is_refused():
    y, z = tensor.fmatrix("y"), tensor.fmatrix("z")

    with pytest.raises(ValueError, match="`masks` has z, which is not among `variables`. Add it"):
        apply_dropout(ComputationGraph(y * z), iter([y]), 0.5, masks={y: y, z: z})
