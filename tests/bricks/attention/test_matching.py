import numpy
import pytest
from aesara import tensor

from bricks import Identity, xla
from bricks.attention import (
    DotProductAttention,
    LocationSensitiveAttention,
    SequenceContentAttention,
)
from bricks.initialization import Constant, IsotropicGaussian
from bricks.model import Model

SCHEMES = {"weights_init": IsotropicGaussian(0.5), "biases_init": Constant(0)}
ATTENDED = numpy.random.RandomState(0).standard_normal((5, 2, 4)).astype("float32")
STATES = numpy.random.RandomState(1).standard_normal((2, 4)).astype("float32")
SIZES = {"state_names": ["states"], "state_dims": [4], "attended_dim": 4, "match_dim": 4}


def variables():
    return tensor.tensor3("attended"), tensor.matrix("states")


def test_identities_in_place_of_linear_maps_make_luongs_general_and_dot_attention():
    attended, states = variables()
    general = DotProductAttention(state_transformer=Identity(), **SIZES, **SCHEMES)
    dot = DotProductAttention(
        state_transformer=Identity(), attended_transformer=Identity(), name="dot", **SIZES
    )
    general.initialize()
    energies = [
        attention.compute_energies(attended, None, {"states": states})
        for attention in (general, dot)
    ]

    of_general, of_dot = xla.function([attended, states], energies)(ATTENDED, STATES)

    (W,) = (p.get_value() for name, p in names_of(energies[0]) if name.endswith("preprocess.W"))
    expected = numpy.einsum("tbf,fs,bs->tb", ATTENDED, W, STATES)
    numpy.testing.assert_allclose(of_general, expected, 1e-4, 1e-5)
    numpy.testing.assert_allclose(of_dot, numpy.einsum("tbf,bf->tb", ATTENDED, STATES), 1e-4, 1e-5)
    assert not names_of(energies[1])


def names_of(output):
    return list(Model(output).get_parameter_dict().items())


def test_masks_weigh_and_an_example_of_padding_only_has_no_weights():
    energies, mask = tensor.matrix("energies"), tensor.matrix("mask")
    weights = DotProductAttention(**SIZES).compute_weights(energies, mask)
    values = numpy.array([[0, 1], [0, 2], [1e30, 3]], "float32")
    where = numpy.array([[1, 0], [0.5, 0], [0, 0]], "float32")

    found = xla.function([energies, mask], weights)(values, where)

    numpy.testing.assert_allclose(found, [[2 / 3, 0], [1 / 3, 0], [0, 0]], rtol=1e-6)


def test_states_may_be_named_after_the_attention_was_made():
    attention = SequenceContentAttention(**SCHEMES)
    with pytest.raises(ValueError, match="cannot be allocated: 'match_dim', 'state_names'"):
        attention.allocate()
    attention.state_names, attention.state_dims = ["states", "cells"], [3, 4]
    attention.attended_dim, attention.match_dim = 5, 6
    attention.initialize()

    children = attention.state_transformers.children
    assert [child.W.get_value().shape for child in children] == [(3, 6), (4, 6)]
    assert attention.take_glimpses.inputs[-2:] == ["states", "cells"]
    assert attention.get_dims(["cells", "attended", "preprocessed_attended"]) == [4, 5, 6]
    assert attention.get_dims(["weighted_averages", "weights", "attended_mask"]) == [5, 0, 0]


def test_what_cannot_be_looked_at_is_refused_in_words():
    attended, states = variables()
    attention = SequenceContentAttention(**SIZES)

    with pytest.raises(ValueError, match=r"`attended` must have the axes \(attended time, batch, "):
        attention.take_glimpses(states, states=states)
    with pytest.raises(ValueError, match=r"`states` must have the axes \(batch, feature\); got "):
        attention.take_glimpses(attended, states=attended)
    with pytest.raises(ValueError, match=r"`attended_mask` must have the axes \(attended time, b"):
        attention.take_glimpses(attended, attended_mask=attended, states=states)
    with pytest.raises(TypeError, match=r"glimpses: unexpected argument 'state'.*states"):
        attention.take_glimpses(attended, state=states)
    with pytest.raises(
        TypeError, match=r"state_trans\.apply takes the inputs states; missing: states"
    ):
        attention.take_glimpses(attended)


@pytest.mark.parametrize(
    ("given", "shape", "words"),
    [
        ("attended_mask", (2, 5), r"\(attended time, batch\), of the lengths that `attended` has"),
        ("preprocessed_attended", (5, 1, 6), r"\(attended time, batch, feature\), of the lengths"),
        ("preprocessed_attended", (5, 6), r"\(attended time, batch, feature\); got"),
        ("preprocessed_attended", (5, 2, 9), "6 features on its last axis"),
    ],
)
def test_lengths_that_are_known_to_differ_from_those_of_the_attended_are_refused(
    given, shape, words
):
    attention = SequenceContentAttention(
        state_names=["s"], state_dims=[3], attended_dim=4, match_dim=6
    )
    attended, other = (tensor.TensorType("float32", lengths)("x") for lengths in ((5, 2, 4), shape))

    with pytest.raises(ValueError, match=rf"\.take_glimpses: `{given}` must have .*{words}"):
        attention.take_glimpses(attended, s=tensor.matrix("s"), **{given: other})


def test_location_sensitive_attention_asks_for_the_weights_before_and_odd_filters():
    attended, states = variables()

    with pytest.raises(TypeError, match=r"take_glimpses: `weights` must be given: the glimpse of"):
        LocationSensitiveAttention(**SIZES).take_glimpses(attended, states=states)
    with pytest.raises(ValueError, match="`filter_length` must be odd, .* got 4"):
        LocationSensitiveAttention(filter_length=4, **SIZES).allocate()
