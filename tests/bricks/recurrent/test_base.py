"""The decorator that repeats a step over time."""

import pickle

import numpy
import pytest
from aesara import tensor
from aesara.graph.basic import ancestors
from aesara.scan.op import Scan
from numpy.testing import assert_allclose, assert_array_equal

from bricks import Tanh, xla
from bricks.base import application
from bricks.filter import VariableFilter, get_application_call
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian
from bricks.interfaces import RNGMixin
from bricks.recurrent import BaseRecurrent, SimpleRecurrent, recurrent
from bricks.roles import INPUT, OUTPUT
from bricks.utils import shared_floatx

X = numpy.random.RandomState(0).standard_normal((4, 2, 3)).astype("float32")


class Leaky(BaseRecurrent, RNGMixin):
    """Adds inputs times a context to half of the states; gives their squares as well."""

    decay = 0.5

    @recurrent(
        sequences=["inputs", "mask"],
        states=["states"],
        outputs=["squares", "states"],
        contexts=["factor"],
    )
    def apply(self, inputs, states, factor=None, mask=None, shift=0.0):
        new = self.decay * states + (inputs if factor is None else inputs * factor) + shift
        if mask is not None:
            new = tensor.switch(mask[:, None], new, states)
        return new**2, new

    def get_dim(self, name):
        return {"inputs": 3, "states": 3, "mask": 0}[name]


def leaky_states(x, initial=0.0, decay=0.5):
    states = [numpy.broadcast_to(initial, x[0].shape)]
    for x_t in x:
        states.append(decay * states[-1] + x_t)
    return numpy.array(states[1:])


def compute(outputs, *given, backend=None):
    inputs = ComputationGraph(outputs).inputs
    return xla.function(inputs, outputs, backend=backend)(*given)


@pytest.fixture
def x():
    return tensor.tensor3("x")


def test_sequences_go_step_by_step_from_zeros_and_outputs_come_over_time(x):
    squares, states = compute(Leaky().apply(x), X)

    assert_allclose(states, leaky_states(X), rtol=1e-5)
    assert_allclose(squares, leaky_states(X) ** 2, rtol=1e-5)


def test_a_single_step_is_the_method_itself():
    inputs, states = tensor.matrix("inputs"), tensor.matrix("states")

    outputs = Leaky().apply(inputs, states, iterate=False)
    squares, new = xla.function([inputs, states], outputs)(X[0], X[1])

    assert_allclose(new, 0.5 * X[1] + X[0], rtol=1e-6)
    assert_allclose(squares, new**2, rtol=1e-6)


def test_backwards_outputs_come_in_the_order_in_which_they_are_computed(x):
    states = Leaky().apply(x, reverse=True, as_dict=True)["states"]

    assert_allclose(compute(states, X), leaky_states(X[::-1]), rtol=1e-5)


def test_initial_values_are_put_before_the_states_only(x):
    initial = tensor.matrix("initial")
    squares, states = Leaky().apply(x, states=initial, return_initial_states=True)

    squares_, states_ = compute([squares, states], X, X[0])

    assert_array_equal(states_[0], X[0])
    assert_allclose(states_[1:], leaky_states(X, X[0]), rtol=1e-5)
    assert squares_.shape == (4, 2, 3)


def test_states_may_be_drawn_by_a_scheme_or_made_by_an_application(x):
    class Learned(Leaky):
        @application
        def first(self, name, batch_size, inputs, **kwargs):
            assert name == "states"
            return tensor.alloc(numpy.float32(2), batch_size, 3) + inputs[0]

    brick = Learned()
    drawn = brick.apply(x, states=IsotropicGaussian(), return_initial_states=True)[1]
    made = brick.apply(x, states=brick.first)[1]

    drawn_, made_ = compute([drawn, made], X)
    assert_array_equal(drawn_[0, 0], drawn_[0, 1])
    assert_allclose(drawn_[1:], leaky_states(X, drawn_[0]), rtol=1e-5)
    assert_allclose(made_, leaky_states(X, 2 + X[0]), rtol=1e-5)
    assert drawn_[0, 0].std() > 0


def test_contexts_masks_flags_and_other_variables_reach_each_step(x):
    factor, shift, mask = tensor.matrix("factor"), tensor.scalar("shift"), tensor.matrix("mask")
    states = Leaky().apply(x, factor=factor, mask=mask, shift=shift)[1]
    flagged = Leaky().apply(x, None, None, None, shift=1.0)[1]

    mask_ = numpy.array([[1, 1], [1, 0], [1, 1], [1, 0]], "float32")
    graph = ComputationGraph([states, flagged])
    given = {"x": X, "factor": X[0], "shift": numpy.float32(0.25), "mask": mask_}
    states_, flagged_ = xla.function(graph.inputs, graph.outputs)(
        *[given[variable.name] for variable in graph.inputs]
    )

    expected, state = [], numpy.zeros((2, 3))
    for x_t, keep in zip(X, mask_, strict=True):
        state = numpy.where(keep[:, None], 0.5 * state + x_t * X[0] + 0.25, state)
        expected.append(state)
    assert_allclose(states_, expected, rtol=1e-5, atol=1e-6)
    assert_allclose(flagged_, leaky_states(X + 1), rtol=1e-5, atol=1e-6)


def test_a_context_is_computed_once_before_the_loop(x):
    factor = tensor.exp(tensor.matrix("factor"))
    graph = ComputationGraph(Leaky().apply(x, factor=factor)[1])

    makers = [variable.owner for variable in graph.scan_variables if variable.owner]
    assert [node for node in makers if node.op == tensor.exp] == []
    assert_allclose(compute(graph.outputs, X, X[0])[0], leaky_states(X * numpy.exp(X[0])), 1e-4)


@pytest.mark.parametrize("backend", ["xla", "py"])
@pytest.mark.parametrize("length", [0, 1])
def test_sequences_of_no_or_one_element_are_sequences(length, backend):
    brick = SimpleRecurrent(3, weights_init=IsotropicGaussian())
    brick.initialize()
    x, mask = tensor.tensor3("x"), tensor.matrix("mask")
    states = brick.apply(x, mask=mask)
    gradient = tensor.grad(states.sum(), brick.W)

    states_, gradient_ = xla.function([x, mask], [states, gradient], backend=backend)(
        X[:length], numpy.ones((length, 2), "float32")
    )

    assert_allclose(states_, numpy.tanh(X[:length]), rtol=1e-5)
    assert_array_equal(gradient_, numpy.zeros((3, 3)))


def test_lengths_that_are_known_are_kept_to(x):
    one = tensor.TensorType("float32", (1, 2, 3))("one")

    assert compute(Leaky().apply(one)[1], X[:1]).shape == (1, 2, 3)
    alone = tensor.TensorType("float32", (None, 1, 3))("alone")
    assert_allclose(compute(Leaky().apply(alone)[1], X[:, :1]), leaky_states(X[:, :1]), rtol=1e-5)


def test_the_number_of_steps_is_taken_of_what_is_given_rather_than_computed(x):
    mask = tensor.matrix("mask")
    (first, second) = Leaky().apply(x * 2, mask=mask)

    (scan,) = [v.owner for v in ComputationGraph(second).variables if _is_loop(v)][:1]
    assert x not in ancestors(scan.inputs[:1])
    # As the mask is longer, the sequence is refused.
    function = xla.function([x, mask], [first, second])
    with pytest.raises(AssertionError, match="`mask` and `inputs` must tell of the same number"):
        function(X, numpy.ones((5, 2), "float32"))


def _is_loop(variable):
    return variable.owner is not None and isinstance(variable.owner.op, Scan)


class Walk(BaseRecurrent):
    """Adds a random number in each step, and returns it."""

    def __init__(self, stream=None, **kwargs):
        super().__init__(**kwargs)
        self.stream = stream or xla.RandomStream(3, name="walk")

    @recurrent(sequences=[], states=["states"], outputs=["states", "moves"], contexts=[])
    def apply(self, states):
        move = self.stream.normal(states.shape)
        return states + move, move

    def get_dim(self, name):
        return 2


class Outer(BaseRecurrent):
    """Takes a walk in each of its steps."""

    def __init__(self, **kwargs):
        self.walk = Walk()
        super().__init__(children=[self.walk], **kwargs)

    @recurrent(sequences=[], states=["states"], outputs=["states", "moves"], contexts=[])
    def apply(self, states):
        places, moves = self.walk.apply(n_steps=3, batch_size=4)
        return states + places[-1], moves

    def get_dim(self, name):
        return 2


@pytest.mark.parametrize("backend", ["xla", "py"])
@pytest.mark.parametrize("brick", [Walk, Outer])
def test_random_numbers_differ_in_each_step_of_each_loop_and_from_call_to_call(brick, backend):
    states, moves = brick().apply(n_steps=5, batch_size=4)
    # No updates are handed over: the key has its own.
    function = xla.function([], [states, moves], backend=backend)

    (first, moves_), (_, more) = function(), function()

    numbers = numpy.concatenate([moves_.ravel(), more.ravel()])
    assert len(set(numbers.tolist())) == len(numbers)
    expected = moves_ if brick is Walk else moves_.sum(axis=1)
    assert_allclose(first, expected.cumsum(axis=0), rtol=1e-4, atol=1e-5)
    assert [key.name for key in ComputationGraph(states).updates] == ["walk.0"]


def test_a_draw_from_outside_is_the_same_in_all_steps():
    class Given(Walk):
        @recurrent(sequences=[], states=["states"], outputs=["states"], contexts=["noise"])
        def apply(self, states, noise):
            return states + noise + self.captured

    brick = Given()
    brick.captured = brick.stream.normal((4, 2))
    noise = brick.stream.normal((4, 2))
    states = brick.apply(noise=noise, n_steps=3, batch_size=4)

    states_, total = compute([states, noise + brick.captured])

    assert_allclose(states_, total * numpy.arange(1, 4)[:, None, None], rtol=1e-5)


def test_updates_of_the_step_reach_the_function_that_is_compiled_from_the_graph(x):
    class Counting(Leaky):
        @recurrent(sequences=["inputs"], states=["states"], outputs=["states"], contexts=[])
        def apply(self, inputs, states, application_call):
            application_call.add_updates({self.counter: self.counter + inputs.sum()})
            return states + inputs

    brick = Counting()
    brick.counter = shared_floatx(0, name="counter")
    function = ComputationGraph(brick.apply(x)).get_function()

    function(numpy.ones((4, 2, 3), "float32"))
    function(numpy.ones((1, 2, 3), "float32"))

    assert brick.counter.get_value() == 5 * 6


def test_variables_of_the_step_are_found_by_role_brick_name_and_application(x):
    brick = SimpleRecurrent(3, weights_init=Constant(0))
    states = brick.apply(x)
    graph = ComputationGraph(states)

    inner = graph.scan_variables
    assert VariableFilter(roles=[INPUT], bricks=[brick])(inner) == [
        VariableFilter(roles=[INPUT], name=name)(inner)[0] for name in ("states", "inputs")
    ]
    (activated,) = VariableFilter(roles=[OUTPUT], bricks=[Tanh])(inner)
    assert activated.name == "tanh_apply_output"
    (output,) = VariableFilter(roles=[OUTPUT], applications=[brick.apply])(inner)
    assert output.name == states.name == "simplerecurrent_apply_states"
    call = get_application_call(states)
    assert [v.name for v in call.inner_inputs] == ["inputs", "states"]
    assert len(call.inner_outputs) == 1
    assert graph.has_inputs(states)
    assert graph.scans[0].name == "simplerecurrent_apply_scan"


def test_what_a_loop_takes_is_declared_by_properties_and_delegates(x):
    class Twice(BaseRecurrent):
        def __init__(self, **kwargs):
            self.leaky = Leaky()
            self.extra = []
            super().__init__(children=[self.leaky], **kwargs)

        @recurrent
        def apply(self, **kwargs):
            return self.leaky.apply(iterate=False, as_list=True, **kwargs)

        @apply.delegate
        def apply_delegate(self):
            return self.leaky.apply

        @apply.property("sequences")
        def apply_sequences(self):
            return self.leaky.apply.sequences[: 1 + len(self.extra)]

        def get_dim(self, name):
            return self.leaky.get_dim(name)

    brick = Twice()
    assert brick.apply.sequences == ["inputs"]
    assert brick.apply.states == ["states"]
    assert_allclose(compute(brick.apply(inputs=x)[1], X), leaky_states(X), rtol=1e-5)
    with pytest.raises(TypeError, match=r"/twice\.apply: unexpected argument 'mask'"):
        brick.apply(inputs=x, mask=tensor.matrix("mask"))
    brick.extra.append("mask")
    assert brick.apply(inputs=x, mask=tensor.matrix("mask"))[0].ndim == 3
    brick.apply.sequences = ["inputs"]
    assert brick.apply.sequences == ["inputs"]


def test_the_brick_its_graph_and_its_application_pickle(x):
    brick = SimpleRecurrent(3, weights_init=IsotropicGaussian())
    brick.initialize()
    states = brick.apply(x)

    loaded, loaded_x, application_ = pickle.loads(pickle.dumps((states, x, brick.apply)))

    assert_allclose(xla.function([loaded_x], loaded)(X), compute(states, X), rtol=1e-6)
    assert application_.sequences == ["inputs", "mask"]


def test_arguments_of_the_scan_are_handed_on(x):
    brick = Leaky()
    gradients = [
        tensor.grad(brick.apply(x, scan_kwargs=options)[1][-1].sum(), x)
        for options in ({}, {"truncate_gradient": 2})
    ]

    full, truncated = compute(gradients, X)

    assert_allclose(full[:, 0, 0], [0.125, 0.25, 0.5, 1])
    assert_allclose(truncated[:, 0, 0], [0, 0, 0.5, 1])
