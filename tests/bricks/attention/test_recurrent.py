import numpy
import pytest
from aesara import tensor
from aesara.graph.basic import applys_between
from aesara.scan.op import Scan

from bricks import xla
from bricks.attention import (
    AttentionRecurrent,
    LocationSensitiveAttention,
    SequenceContentAttention,
)
from bricks.graph import ComputationGraph
from bricks.initialization import IsotropicGaussian
from bricks.recurrent import BaseRecurrent, SimpleRecurrent, recurrent

SCHEMES = {"weights_init": IsotropicGaussian(0.5), "biases_init": IsotropicGaussian(0.5)}


def attending(attention_class=SequenceContentAttention, **options):
    attention = attention_class(match_dim=4, attended_dim=5, **options)
    brick = AttentionRecurrent(SimpleRecurrent(3), attention, **SCHEMES)
    brick.initialize()
    return brick


def floats(*shape):
    return numpy.random.RandomState(len(shape)).standard_normal(shape).astype("float32")


def test_the_halves_of_a_step_one_by_one_give_what_apply_gives():
    brick = attending(LocationSensitiveAttention, num_filters=2, filter_length=3)
    inputs, mask, attended = tensor.tensor3("x"), tensor.matrix("mask"), tensor.tensor3("attended")
    whole = brick.apply(inputs=inputs, mask=mask, attended=attended)
    contexts = {
        "attended": attended,
        "preprocessed_attended": brick.attention.preprocess(attended),
    }
    states = brick.initial_states(2, attended=attended, as_dict=True)
    steps = []
    for x in (inputs[0], inputs[1]):
        glimpses = brick.take_glimpses(as_dict=True, **states, **contexts)
        known = {**states, **glimpses, **contexts}
        states = {**brick.compute_states(inputs=x, as_dict=True, **known), **glimpses}
        steps.append(list(states.values()))
    values = [floats(3, 2, 3), numpy.array([[1, 1], [1, 1], [1, 0]], "float32"), floats(4, 2, 5)]

    found = xla.function([inputs, mask, attended], [*whole, *steps[0], *steps[1]])(*values)

    for name, over_time, first, second in zip(
        brick.apply.outputs, found[:3], found[3:6], found[6:], strict=True
    ):
        numpy.testing.assert_allclose(over_time[:2], [first, second], 1e-4, 1e-5, err_msg=name)
        # The mask of the second example ends there: states and glimpses stay.
        numpy.testing.assert_array_equal(over_time[2, 1], over_time[1, 1], err_msg=name)
        assert (over_time[2, 0] != over_time[1, 0]).any()


def test_it_says_what_it_takes():
    brick = attending()

    assert brick.apply.sequences == ["inputs", "mask"]
    assert brick.apply.states == brick.apply.outputs == ["states", "weighted_averages", "weights"]
    assert brick.initial_states.outputs == brick.apply.states
    assert brick.apply.contexts == ["attended", "attended_mask"]
    assert brick.do_apply.contexts == ["attended", "attended_mask", "preprocessed_attended"]
    assert brick.take_glimpses.outputs == ["weighted_averages", "weights"]
    assert brick.compute_states.outputs == ["states"]
    assert brick.get_dims(["inputs", "mask", *brick.apply.states]) == [3, 0, 3, 5, 0]
    assert brick.get_dims(brick.do_apply.contexts) == [5, 0, 4]
    assert brick.previous_glimpses_needed == []


def test_what_is_attended_is_preprocessed_once_and_not_in_each_step():
    brick = attending()
    outputs = brick.apply(inputs=tensor.tensor3("x"), attended=tensor.tensor3("attended"))

    loops = [node for node in applys_between([], outputs) if isinstance(node.op, Scan)]
    in_the_loop = {variable for node in loops for variable in node.inputs}

    W = brick.attention.attended_transformer.W
    assert W in ComputationGraph(outputs).parameters and W not in in_the_loop
    assert brick.transition.W in in_the_loop


class Gated(BaseRecurrent):
    """A transition that looks at what is attended too."""

    @recurrent(
        sequences=["inputs"],
        states=["states"],
        outputs=["states"],
        contexts=["source", "source_mask"],
    )
    def apply(self, inputs, states, source, source_mask=None):
        return tensor.tanh(inputs + states) + 0 * source.mean(axis=0)[:, :3]

    def get_dim(self, name):
        return {"source": 5, "source_mask": 0}.get(name, 3)


def test_contexts_of_the_transition_may_be_what_is_attended():
    brick = AttentionRecurrent(
        Gated(), SequenceContentAttention(match_dim=4), add_contexts=False, **SCHEMES
    )

    outputs = brick.apply(inputs=tensor.tensor3("x"), source=tensor.tensor3("source"))

    assert brick.apply.contexts == ["source", "source_mask"]
    assert (brick.attended_name, brick.attended_mask_name) == ("source", "source_mask")
    assert brick.preprocessed_attended_name == "preprocessed_source"
    assert brick.attention.attended_dim == 5
    assert [output.ndim for output in outputs] == [3, 3, 3]
    with pytest.raises(ValueError, match="must be a context of /simplerecurrent, which has none"):
        AttentionRecurrent(SimpleRecurrent(3), brick.attention, add_contexts=False)


def test_missing_and_unknown_arguments_are_refused_in_words():
    brick, x = attending(), tensor.tensor3("x")

    with pytest.raises(TypeError, match=r"/attentionrecurrent\.apply: missing attended\."):
        brick.apply(inputs=x)
    with pytest.raises(TypeError, match=r"take_glimpses: missing states\."):
        brick.take_glimpses(attended=x)
    with pytest.raises(TypeError, match=r"take_glimpses: unexpected argument 'atended'.*attended"):
        brick.take_glimpses(atended=x)
    with pytest.raises(TypeError, match=r"compute_states: missing weighted_averages\."):
        brick.compute_states(inputs=x[0], states=x[0])
    with pytest.raises(TypeError, match=r"initial_states: missing attended, which the first"):
        brick.initial_states(2)
