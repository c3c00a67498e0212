"""Applications that are computed again for their gradient: as before, in less memory."""

import pickle

import aesara
import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose, assert_array_equal

from bricks import MLP, Linear, Sequence, Softmax, Tanh, xla
from bricks.algorithms import GradientDescent, Scale
from bricks.base import Brick, application
from bricks.cost import CategoricalCrossEntropy
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, apply_dropout, rematerialize
from bricks.initialization import Constant, IsotropicGaussian
from bricks.roles import DROPOUT, INPUT, OUTPUT, WEIGHT

X = numpy.random.RandomState(0).normal(size=(64, 4)).astype("float32")


def stack(depth, width=64):
    """Blocks that widen and narrow, one after the other, and the graph of a cost of the last."""
    init = {"weights_init": IsotropicGaussian(0.3), "biases_init": Constant(0)}
    blocks = [
        MLP([Tanh(), Tanh()], [4, width, 4], name=f"block_{place}", seed=place, **init)
        for place in range(depth)
    ]
    top = Sequence([block.apply for block in blocks])
    top.initialize()
    x = tensor.matrix("x")
    return x, ComputationGraph((top.apply(x) ** 2).sum()), blocks


def values_and_gradients(graph, inputs):
    """Compile the cost and its gradients in all inputs and parameters."""
    (cost,) = graph.outputs
    return xla.function(inputs, [cost, *aesara.grad(cost, [*inputs, *graph.parameters])])


def assert_equal_but_for_rounding(mine, expected):
    """XLA may add numbers up in another order where they are computed again."""
    assert_allclose(mine, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())


def names_and_roles(graph):
    return sorted(
        (str(variable.name), [str(role) for role in variable.tag.roles])
        for variable in graph.variables
        if getattr(variable.tag, "roles", None)
    )


def set_keys(graph):
    for number, key in enumerate(graph.updates):
        key.set_value(numpy.array([number, 1], "uint32"))


@pytest.fixture(scope="module")
def deep():
    """A stack with dropout of the wide layers, as it is and computed again, and their functions."""
    x, graph, blocks = stack(3)
    wide = [block.activations[0] for block in blocks]
    hidden = VariableFilter(roles=[OUTPUT], bricks=wide)(graph.variables)
    plain = apply_dropout(graph, hidden, 0.5, seed=1)
    again = rematerialize(plain, bricks=blocks)
    functions = [values_and_gradients(one, [x]) for one in (plain, again)]
    return plain, again, functions


def test_values_and_gradients_with_dropout_are_the_same(deep):
    plain, _, functions = deep
    results = []
    for function in functions:
        set_keys(plain)
        results.append(function(X) + function(X))

    for mine, expected in zip(*results, strict=True):
        assert_equal_but_for_rounding(mine, expected)
    assert results[0][0] != results[0][len(results[0]) // 2]


def test_the_gradient_of_a_deep_stack_needs_less_than_half_of_the_memory(deep):
    plain, again = (function.memory(X) for function in deep[2])

    assert again.temporary < plain.temporary / 2
    assert again[:3] == plain[:3]


def test_memory_hardly_grows_with_depth():
    needed = {}
    for depth in (4, 8):
        x, graph, blocks = stack(depth, width=128)
        function = values_and_gradients(rematerialize(graph, blocks), [x])
        needed[depth] = function.memory(X).temporary

    # Four more inputs of blocks, and as much again for their gradients on the way.
    assert needed[8] - needed[4] <= 8 * X.nbytes


def test_names_roles_annotations_and_updates_are_those_of_the_graph(deep):
    plain, again, _ = deep

    assert names_and_roles(again) == names_and_roles(plain)
    assert again.parameters == plain.parameters
    assert list(again.updates) == list(plain.updates)
    assert len(VariableFilter(roles=[DROPOUT])(again.variables)) == 3
    outputs = VariableFilter(roles=[OUTPUT], bricks=[MLP])(again.variables)
    assert [output.name for output in outputs] == [f"block_{n}_apply_output" for n in range(3)]


def test_the_graph_can_be_pickled():
    x, graph, blocks = stack(1, width=5)
    again = rematerialize(graph, blocks)
    expected = values_and_gradients(again, [x])(X)

    cost, inputs = pickle.loads(pickle.dumps([again.outputs[0], again.inputs]))

    for mine, other in zip(
        values_and_gradients(ComputationGraph(cost), inputs)(X), expected, strict=True
    ):
        assert_array_equal(mine, other)


def test_a_training_step_is_the_same():
    costs = []
    for again in (False, True):
        x, graph, blocks = stack(2, width=5)
        graph = rematerialize(graph, blocks) if again else graph
        step = GradientDescent(
            cost=graph.outputs[0], parameters=graph.parameters, step_rule=Scale(0.01)
        )
        step.initialize()
        step.process_batch({"x": X})
        costs.append([parameter.get_value() for parameter in graph.parameters])

    for mine, expected in zip(*costs, strict=True):
        assert_allclose(mine, expected, rtol=1e-6)


class Attention(Brick):
    """A block of a transformer of one head, which also returns what it attends to."""

    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        rng = numpy.random.RandomState(1)
        self.weights = [aesara.shared(rng.normal(size=(dim, dim)) / dim, name=n) for n in "qkvo"]

    @application(inputs=["x"], outputs=["y", "attended"])
    def apply(self, x):
        q, k, v, o = self.weights
        scores = tensor.batched_dot(x.dot(q), x.dot(k).dimshuffle(0, 2, 1))
        attended = tensor.special.softmax(scores, axis=-1)
        return x + tensor.tanh(tensor.batched_dot(attended, x.dot(v)).dot(o)), attended


def test_a_block_of_several_outputs_has_the_gradients_of_all():
    x = tensor.dtensor3("x")
    blocks = [Attention(3, name=name) for name in ("first", "second")]
    hidden, attended = blocks[0].apply(x)
    output, other = blocks[1].apply(hidden)
    cost = (output**2).sum() + (attended**3).sum() + (other[:, 0] * attended[:, 1]).sum()
    graph = ComputationGraph(cost)
    parameters = [weight for block in blocks for weight in block.weights]

    functions = [
        xla.function([x], aesara.grad(one.outputs[0], [x, *parameters]))
        for one in (graph, rematerialize(graph, [Attention]))
    ]

    data = numpy.random.RandomState(2).normal(size=(2, 5, 3))
    for mine, expected in zip(functions[1](data), functions[0](data), strict=True):
        assert_allclose(mine, expected, rtol=1e-12)


def test_second_and_forward_derivatives_are_the_same():
    x, graph, blocks = stack(2, width=5)
    direction = tensor.matrix("direction")

    def derivatives(graph):
        (cost,) = graph.outputs
        slope = aesara.grad(cost, x)
        second = aesara.grad((slope**2).sum(), [x, *graph.parameters])
        return [*second, tensor.Rop(cost, x, direction)]

    outputs = derivatives(graph), derivatives(rematerialize(graph, blocks))
    expected, mine = (xla.function([x, direction], both)(X, X[::-1]) for both in outputs)

    for one, other in zip(mine, expected, strict=True):
        assert_equal_but_for_rounding(one, other)


class Recurrence(Brick):
    """A loop with noise in each step."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.W = aesara.shared(numpy.eye(4) / 2, name="W")
        self.stream = xla.RandomStream(3)

    @application(inputs=["x"], outputs=["h"])
    def apply(self, x, application_call):
        def step(x, h):
            noise = self.stream.normal(h.shape, dtype="float64")
            return tensor.tanh(x + h.dot(self.W) + noise)

        states, updates = aesara.scan(step, sequences=[x], outputs_info=[tensor.zeros_like(x[0])])
        application_call.add_updates(updates)
        return states


def test_a_loop_with_noise_inside_of_a_chosen_application_runs_again_with_the_same_noise():
    x = tensor.dtensor3("x")
    loop = Recurrence()
    graph = ComputationGraph((loop.apply(x)[-1] ** 2).sum())
    again = rematerialize(graph, [loop])
    key = loop.stream.keys[0]
    data = numpy.random.RandomState(4).normal(size=(3, 2, 4))

    results = []
    for one in (graph, again):
        key.set_value(numpy.array([1, 2], "uint32"))
        cost = one.outputs[0]
        function = xla.function([x], [cost, *aesara.grad(cost, [x, loop.W])], updates=one.updates)
        results.append([*function(data), *function(data), key.get_value()])

    for mine, expected in zip(results[1], results[0], strict=True):
        assert_allclose(mine, expected, rtol=1e-12)
    assert results[0][0] != results[0][3]


class Step(Brick):
    @application(inputs=["x", "h"], outputs=["new"])
    def apply(self, x, h):
        return tensor.tanh(x + h)


def test_applications_in_the_step_of_a_loop_are_refused_because_they_are_computed_again_anyway():
    x = tensor.tensor3("x")
    brick = Step(name="step")
    states, _ = aesara.scan(brick.apply, sequences=[x], outputs_info=[tensor.zeros_like(x[0])])

    with pytest.raises(ValueError, match=r"/step is applied in the step of a scan only.*anyway"):
        rematerialize(ComputationGraph(states.sum()), [brick])


def test_a_loop_over_segments_keeps_the_states_between_them_only():
    x = tensor.tensor3("x")
    weights = xla.shared(numpy.eye(4, 64, dtype="float32"), name="W")

    def step(x, h):
        return tensor.tanh(h + tensor.tanh((x + h).dot(weights)).dot(weights.T))

    def run(x, h):
        return aesara.scan(step, sequences=[x], outputs_info=[h])[0][-1]

    start = tensor.zeros_like(x[0])
    segments = x.reshape((8, 8, x.shape[1], x.shape[2]))
    long = run(x, start)
    short = aesara.scan(run, sequences=[segments], outputs_info=[start])[0][-1]
    data = numpy.random.RandomState(5).normal(size=(64, 8, 4)).astype("float32")

    slopes = [xla.function([x], aesara.grad(h.sum(), weights)) for h in (long, short)]

    assert_equal_but_for_rounding(slopes[1](data), slopes[0](data))
    assert slopes[1].memory(data).temporary < slopes[0].memory(data).temporary / 2


def test_what_is_chosen_inside_of_what_is_chosen_is_a_part_of_it():
    x, graph, blocks = stack(1)
    expected = rematerialize(graph, blocks)

    nested = rematerialize(graph, [MLP, Linear, Tanh])

    assert len(nested.variables) == len(expected.variables)
    assert_equal_but_for_rounding(
        values_and_gradients(nested, [x])(X)[1], values_and_gradients(graph, [x])(X)[1]
    )


def test_the_inside_can_be_used_and_replaced_from_outside():
    x, graph, blocks = stack(2, width=6)
    hidden = VariableFilter(roles=[OUTPUT], bricks=[Tanh])(graph.variables)[0]
    graph = ComputationGraph(graph.outputs[0] + (hidden**3).sum())
    again = rematerialize(graph, blocks)
    (inside,) = (v for v in again.variables if v.name == hidden.name and has_brick(v, hidden))

    for one, variable in ((graph, hidden), (again, inside)):
        one.halved = one.replace({variable: variable / 2})

    assert_equal_but_for_rounding(
        values_and_gradients(again.halved, [x])(X)[1],
        values_and_gradients(graph.halved, [x])(X)[1],
    )


def has_brick(variable, other):
    return variable.tag.annotations[0] is other.tag.annotations[0]


def test_what_is_learned_and_comes_in_later_is_refused():
    x, graph, blocks = stack(1, width=5)
    again = rematerialize(graph, blocks)
    (weights,) = VariableFilter(roles=[WEIGHT], bricks=[blocks[0].linear_transformations[0]])(
        again.variables
    )
    hidden = VariableFilter(roles=[OUTPUT], bricks=[Tanh])(again.variables)[0]
    scale = xla.shared(numpy.float32(2), name="scale")
    scaled = again.replace({hidden: hidden * scale})

    with pytest.raises(xla.GraphError, match=r"'scale'.*came into the graph.*rematerialize"):
        aesara.grad(scaled.outputs[0], weights)


def test_a_cross_entropy_sees_the_softmax_of_a_chosen_application():
    x, y = tensor.matrix("x"), tensor.lvector("y")
    mlp = MLP([Softmax()], [4, 3], weights_init=Constant(0), biases_init=Constant(0))
    mlp.initialize()
    weights = mlp.linear_transformations[0].W
    weights.set_value(numpy.eye(4, 3, dtype="float32") * 1000)
    graph = ComputationGraph(CategoricalCrossEntropy().apply(y, mlp.apply(x)))
    again = rematerialize(graph, [mlp])

    cost, slope = xla.function([x, y], [again.outputs[0], aesara.grad(again.outputs[0], weights)])(
        numpy.eye(4, dtype="float32")[1:2], [0]
    )

    assert cost == 1000
    assert_array_equal(slope, [[0, 0, 0], [-1, 1, 0], [0, 0, 0], [0, 0, 0]])


def test_nothing_to_choose_is_an_error():
    x, graph, _ = stack(1, width=5)

    with pytest.raises(ValueError, match="say which applications, by `bricks` or by"):
        rematerialize(graph)
    with pytest.raises(ValueError, match="no application of /other is in the graph"):
        rematerialize(graph, [Linear(4, 2, name="other")])
    assert VariableFilter(roles=[INPUT])(graph.variables)
