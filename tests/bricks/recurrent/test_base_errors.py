"""What the decorator that repeats a step refuses, in words."""

import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.base import Brick
from bricks.initialization import Constant
from bricks.recurrent import BaseRecurrent, SimpleRecurrent, recurrent


class Sum(BaseRecurrent):
    @recurrent(
        sequences=["inputs", "mask"], states=["states"], outputs=["states"], contexts=["context"]
    )
    def apply(self, inputs, states, context=None, mask=None):
        return states + (inputs if mask is None else inputs * mask[:, None])

    def get_dim(self, name):
        return 3


@pytest.fixture
def x():
    return tensor.tensor3("x")


def test_unknown_missing_and_surplus_arguments_are_named(x):
    brick = Sum()
    with pytest.raises(TypeError, match=r"/sum\.apply: unexpected argument 'maks'.*'mask'"):
        brick.apply(x, maks=x)
    with pytest.raises(TypeError, match=r"/sum\.apply: inputs must be given\."):
        brick.apply(n_steps=3, batch_size=2)
    with pytest.raises(TypeError, match=r"give one of the sequences inputs, mask, or `n_steps`"):
        brick.apply(batch_size=2)
    with pytest.raises(TypeError, match="too many positional arguments"):
        brick.apply(x, x, x, x, x)


def test_a_batch_size_that_no_sequence_tells_is_asked_for():
    with pytest.raises(TypeError, match="`batch_size` must be given, for the initial states"):
        Sum().apply(tensor.vector("x"))


def test_a_state_that_is_given_as_an_array_needs_no_batch_size():
    class Decay(Sum):
        @recurrent(sequences=[], states=["states"], outputs=["states"], contexts=[])
        def apply(self, states):
            return states / 2

    states = Decay().apply(n_steps=2, states=numpy.full((1, 3), 4, "float32"))

    assert xla.function([], states)().tolist() == [[[2] * 3], [[1] * 3]]


@pytest.mark.parametrize("name", ["n_steps", "batch_size"])
@pytest.mark.parametrize("count", [-1, 2.5, True])
def test_counts_that_are_none_are_refused(x, name, count):
    message = rf"/sum\.apply: `{name}` must be an integer from 0; got {count}"
    with pytest.raises(ValueError, match=message):
        Sum().apply(x, **{name: count})


def test_a_single_step_needs_its_states_and_no_options(x):
    with pytest.raises(TypeError, match=r"states must be given with iterate=False\."):
        Sum().apply(tensor.matrix("x"), iterate=False)
    with pytest.raises(TypeError, match="reverse, n_steps means nothing with iterate=False"):
        Sum().apply(x, iterate=False, reverse=True, n_steps=2)


def test_lengths_that_differ_are_refused_when_they_are_known(x):
    five, four = (tensor.TensorType("float32", (n, 2, 3))("x") for n in (5, 4))
    with pytest.raises(ValueError, match="`inputs` and `mask` must tell of .*; got 5 and 4"):
        Sum().apply(five, mask=four)
    with pytest.raises(ValueError, match="`n_steps` and `inputs` must tell of .*; got 3 and 5"):
        Sum().apply(five, n_steps=3)

    mask = tensor.matrix("mask")
    function = xla.function([x, mask], Sum().apply(x, mask=mask))
    with pytest.raises(AssertionError, match=r"/sum\.apply: `inputs` and `mask` must tell of"):
        function(numpy.zeros((5, 2, 3), "float32"), numpy.zeros((4, 2), "float32"))


def test_a_scalar_is_no_sequence():
    with pytest.raises(ValueError, match="`inputs` must have a time axis; got .*shape"):
        Sum().apply(tensor.scalar("x"))


def test_states_that_change_their_type_or_size_are_refused(x):
    class Widening(Sum):
        @recurrent(sequences=["inputs"], states=["states"], outputs=["states"], contexts=[])
        def apply(self, inputs, states):
            doubled = tensor.concatenate([states, states], axis=1)
            return tensor.specify_shape(doubled, (None, 6))

    with pytest.raises(
        ValueError, match="'states' has 3 elements on axis 1 before the step, and 6"
    ):
        Widening().apply(x)
    with pytest.raises(ValueError, match="must have the type of its initial value, float32 with 2"):
        Sum().apply(tensor.dtensor3("x"))


def test_the_number_of_outputs_and_the_states_among_them_are_checked(x):
    class Short(Sum):
        @recurrent(sequences=["inputs"], states=["states"], outputs=["states", "more"], contexts=[])
        def apply(self, inputs, states):
            return states

    class Lost(Sum):
        @recurrent(sequences=["inputs"], states=["states"], outputs=["sums"], contexts=[])
        def apply(self, inputs, states):
            return inputs

    with pytest.raises(ValueError, match=r"must return 2 values, states, more; got 1\."):
        Short().apply(x)
    with pytest.raises(ValueError, match="each state must be among the outputs.*states not in"):
        Lost().apply(x)


def test_states_without_initial_values_are_named(x):
    class Uninitialized(Sum):
        @recurrent(sequences=["inputs"], states=["sums"], outputs=["sums"], contexts=[])
        def apply(self, inputs, sums):
            return sums + inputs

    class Forgotten(Uninitialized):
        def get_dim(self, name):
            return Brick.get_dim(self, name)

    with pytest.raises(ValueError, match="/forgotten: the dimension of 'sums' is not known"):
        Forgotten().apply(x)
    with pytest.raises(ValueError, match="`sums` cannot be drawn by .*has no `rng`. Give a var"):
        Uninitialized().apply(x, sums=Constant(0))


def test_the_decorator_takes_names_by_keyword_only():
    with pytest.raises(TypeError, match="use it bare, or with keyword arguments only"):
        recurrent(["inputs"], ["states"])


def test_what_makes_a_state_wider_is_named():
    with pytest.raises(ValueError, match=r"float32 with 2 axes.*float64.*Of that dtype: inputs\."):
        SimpleRecurrent(3).apply(tensor.dtensor3("x"))


def test_features_that_do_not_fit_are_refused_when_they_are_known():
    with pytest.raises(ValueError, match=r"/simplerecurrent\.apply: `inputs` must have 3 features"):
        SimpleRecurrent(3).apply(tensor.TensorType("float32", (None, None, 4))("x"))
