"""Both directions, and stacks."""

import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose, assert_array_equal

from bricks import Linear, xla
from bricks.initialization import Constant, IsotropicGaussian
from bricks.model import Model
from bricks.recurrent import LSTM, Bidirectional, GatedRecurrent, RecurrentStack, SimpleRecurrent
from bricks.recurrent.base import BaseRecurrent, recurrent

X = numpy.random.RandomState(0).standard_normal((4, 2, 3)).astype("float32")
SCHEMES = {"weights_init": IsotropicGaussian(0.5), "biases_init": IsotropicGaussian(0.5)}


@pytest.fixture
def x():
    return tensor.tensor3("x")


def test_both_directions_are_two_bricks_with_weights_of_their_own(x):
    brick = Bidirectional(LSTM(2), weights_init=IsotropicGaussian(), name="both")
    brick.initialize()

    states, cells = brick.apply(x)

    names = Model([states, cells]).get_parameter_dict()
    assert {"/both/forward.W_state", "/both/backward.W_state"} <= set(names)
    assert len(names) == 12
    forward, backward = brick.forward.W_state.get_value(), brick.backward.W_state.get_value()
    assert (forward != backward).all()
    assert (states.name, cells.name) == ("both_apply_states", "both_apply_cells")
    assert brick.get_dims(["inputs", "states", "cells"]) == [8, 4, 4]
    assert brick.apply.sequences == ["inputs", "mask"]


def test_both_directions_refuse_what_is_of_one(x):
    brick = Bidirectional(SimpleRecurrent(3))
    for option in ("iterate", "reverse", "return_initial_states"):
        with pytest.raises(TypeError, match=rf"/bidirectional\.apply: unexpected .*'{option}'"):
            brick.apply(x, **{option: True})


def stack(**options):
    schemes = (
        SCHEMES if "skip_connections" not in options else {"weights_init": SCHEMES["weights_init"]}
    )
    brick = RecurrentStack([SimpleRecurrent(3), GatedRecurrent(2), LSTM(2)], **options, **schemes)
    brick.initialize()
    return brick


def low_stack():
    brick = RecurrentStack([SimpleRecurrent(3), GatedRecurrent(2)], **SCHEMES)
    brick.initialize()
    return brick


def test_names_of_upper_levels_have_their_level_and_masks_and_contexts_have_none():
    brick = stack(skip_connections=True)

    assert brick.apply.sequences == ["inputs", "mask", "inputs#1", "gate_inputs#1", "inputs#2"]
    assert brick.apply.states == ["states", "states#1", "states#2", "cells#2"]
    assert brick.apply.outputs == brick.initial_states.outputs == brick.apply.states
    assert brick.apply.contexts == []
    assert stack().apply.sequences == ["inputs", "mask"]
    assert brick.get_dims(["gate_inputs#1", "inputs#2", "cells#2", "mask"]) == [4, 8, 2, 0]
    with pytest.raises(ValueError, match="the dimension of 'cells#1' is not known"):
        brick.get_dim("cells#1")


def test_forks_have_biases_unless_there_are_skip_connections(x):
    names = list(Model(stack().apply(x)).get_parameter_dict())
    skipping = stack(skip_connections=True)
    fewer = list(Model(skipping.apply(x)).get_parameter_dict())

    assert "/recurrentstack/fork_1/fork_gate_inputs.b" in names
    assert "/recurrentstack/lstm#2.W_state" in names
    assert [name for name in fewer if name.endswith(".b")] == []


def test_one_loop_a_loop_for_each_level_and_single_steps_agree(x):
    brick = low_stack()
    mask = tensor.matrix("mask")
    mask_ = numpy.array([[1, 1], [1, 1], [1, 0], [1, 0]], "float32")
    outputs = []
    for low_memory in (True, False):
        for reverse in (True, False):
            options = {"return_initial_states": True, "reverse": reverse}
            outputs += brick.apply(x, mask=mask, low_memory=low_memory, **options)
    first = brick.initial_states(2, as_dict=True)
    outputs += brick.apply(inputs=x[0], iterate=False, **first)

    values = xla.function([x, mask], outputs)(X, mask_)

    backwards, forwards, steps = values[:2], values[2:4], values[8:]
    for one, other in zip(backwards + forwards, values[4:8], strict=True):
        assert one.shape == (5, 2, one.shape[2])
        assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    for whole, step in zip(forwards, steps, strict=True):
        assert_allclose(whole[1], step, rtol=1e-4, atol=1e-5)
        # Where the mask is 0 the states stay.
        assert_array_equal(whole[3:, 1], numpy.stack([whole[2, 1]] * 2))
        assert (whole[3, 0] != whole[2, 0]).any()
    for whole in backwards:
        assert_array_equal(whole[1:3, 1], whole[:2, 1])


def test_a_prototype_makes_the_forks_and_another_output_may_feed(x):
    brick = RecurrentStack(
        [LSTM(2), SimpleRecurrent(3)],
        fork_prototype=Linear(use_bias=False, weights_init=Constant(2)),
        states_name="cells",
        weights_init=Constant(0),
    )
    brick.initialize()
    brick.forks[0].transforms[0].W.set_value(numpy.full((2, 3), 2, "float32"))
    inputs = numpy.zeros((1, 1, 8), "float32")
    inputs[..., 4:6] = 1

    states, cells, above = xla.function([x], brick.apply(x))(inputs)

    # Gates are open by half.
    assert_allclose(cells.ravel(), [numpy.tanh(1) / 2] * 2, rtol=1e-5)
    assert_allclose(above.ravel(), [numpy.tanh(2 * cells.sum())] * 3, rtol=1e-5)


def test_initial_states_and_the_number_of_steps_are_for_the_levels_that_need_them():
    class Counter(BaseRecurrent):
        @recurrent(sequences=[], states=["states"], outputs=["states"], contexts=[])
        def apply(self, states):
            return states + 1

        def get_dim(self, name):
            return 1

    brick = RecurrentStack(
        [Counter(), SimpleRecurrent(1)], weights_init=Constant(0), biases_init=Constant(0)
    )
    brick.initialize()
    brick.forks[0].transforms[0].W.set_value(numpy.ones((1, 1), "float32"))
    start = numpy.full((1, 1), 3, "float32")

    counts, above = xla.function([], brick.apply(n_steps=2, batch_size=1, states=start))()

    assert counts.ravel().tolist() == [4, 5]
    assert_allclose(above.ravel(), numpy.tanh([4, 5]), rtol=1e-5)


def test_stacks_that_cannot_be_are_refused_in_words(x):
    with pytest.raises(ValueError, match="RecurrentStack: `transitions` must not be empty"):
        RecurrentStack([])
    with pytest.raises(ValueError, match="'cells' is none of level 0, which has states"):
        RecurrentStack([SimpleRecurrent(2), LSTM(2)], states_name="cells")
    inner = RecurrentStack([SimpleRecurrent(2), SimpleRecurrent(2)])
    with pytest.raises(ValueError, match="states#1 would be the name of two things. Rename what"):
        RecurrentStack([inner, SimpleRecurrent(2)])
    brick = stack()
    with pytest.raises(TypeError, match=r"/recurrentstack\.apply: unexpected .* 'inputs#1'"):
        brick.apply(x, **{"inputs#1": x})
    with pytest.raises(TypeError, match="only sequences can be given by position: inputs, mask"):
        brick.apply(x, None, x)


@pytest.mark.parametrize("low_memory", [False, True])
def test_the_loops_of_a_stack_take_arguments_of_scan(x, low_memory):
    brick = low_stack()
    states = brick.apply(x, low_memory=low_memory, scan_kwargs={"truncate_gradient": 1})[-1]

    gradient = xla.function([x], tensor.grad(states[-1].sum(), x))(X)

    assert (gradient[-1] != 0).all()
    assert_array_equal(gradient[:-1], 0)


def test_a_single_step_of_a_stack_has_no_direction(x):
    with pytest.raises(TypeError, match="reverse means nothing with iterate=False"):
        low_stack().apply(x[0], iterate=False, reverse=True)
