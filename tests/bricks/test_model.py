"""Models: graphs whose parameters have names."""

import copy
import logging
import pickle

import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_array_equal

from bricks.base import Brick, application
from bricks.model import Model
from bricks.roles import PARAMETER, PERSISTENT, add_role
from bricks.utils import shared_floatx_zeros


class Layer(Brick):
    def _allocate(self):
        self.parameters.append(shared_floatx_zeros((2, 2), name="W"))
        self.mean = shared_floatx_zeros((2,), name="mean")
        self.annotate(self.mean)

    def annotate(self, mean):
        add_role(mean, PERSISTENT)
        mean.tag.annotations = [self]

    @application(inputs=["x"], outputs=["y"])
    def apply(self, x):
        return tensor.dot(x - self.mean, self.parameters[0])


class Net(Brick):
    def __init__(self, layers, **kwargs):
        super().__init__(children=layers, **kwargs)

    @application(inputs=["x"], outputs=["y"])
    def apply(self, x):
        for layer in self.children:
            x = layer.apply(x)
        return x


class Algorithm:
    def __init__(self, parameters):
        self.parameters = parameters


@pytest.fixture
def net():
    return Net([Layer(name="one"), Layer(name="two")], name="net")


@pytest.fixture
def model(net):
    return Model(net.apply(tensor.matrix("x")))


def values(model, **changes):
    values = {name: numpy.full((2, 2), 3.0) for name in model.get_parameter_dict()}
    return {**values, **changes}


def test_top_bricks_are_those_that_are_no_child_of_another(model, net):
    assert model.top_bricks == model.get_top_bricks() == [net]


def test_top_bricks_of_one_name_are_refused_in_words():
    x = tensor.matrix("x")

    with pytest.raises(ValueError, match="several top bricks are called 'layer'. Give each a name"):
        Model(Layer().apply(x) + Layer().apply(x))


def test_parameters_have_the_paths_of_their_bricks_or_their_own_names(net):
    x, free = tensor.matrix("x"), shared_floatx_zeros((2,), name="free")
    add_role(free, PARAMETER)

    model = Model(net.apply(x) * free)

    assert list(model.get_parameter_dict()) == ["/net/one.W", "/net/two.W", "free"]
    assert model.get_parameter_dict()["/net/two.W"] is net.children[1].parameters[0]


def test_persistent_variables_that_are_no_parameters_have_a_dictionary_of_their_own(model, net):
    assert model.get_persistent_dict() == {
        "/net/one.mean": net.children[0].mean,
        "/net/two.mean": net.children[1].mean,
    }


def test_parameters_without_a_name_or_with_that_of_another_are_refused():
    x = tensor.matrix("x")
    nameless, one, two = (shared_floatx_zeros((2,), name=name) for name in (None, "one", "one"))
    for parameter in (nameless, one, two):
        add_role(parameter, PARAMETER)
    same = Net([Layer(name="same"), Layer(name="same")])

    with pytest.raises(ValueError, match=r"of shape \(2,\) has no name, so it could not be saved"):
        Model(x * nameless)
    with pytest.raises(ValueError, match="two parameters are called one"):
        Model(x * one * two)
    with pytest.raises(ValueError, match="two parameters are called /net/same.W. Give the bricks"):
        Model(same.apply(x))


def test_values_are_read_as_copies_and_set_by_name(model):
    model.set_parameter_values(values(model))
    read = model.get_parameter_values()

    assert_array_equal(read["/net/one.W"], [[3, 3], [3, 3]])
    read["/net/one.W"][:] = 0
    assert_array_equal(model.get_parameter_values()["/net/one.W"], [[3, 3], [3, 3]])


def test_missing_unknown_and_misshapen_values_are_one_error_and_nothing_is_set(model):
    wrong = {"/net/one.W": numpy.ones((3, 2)), "/net/twoo.W": numpy.ones((2, 2)), "other": 1}

    with pytest.raises(ValueError, match="nothing was set") as error:
        model.set_parameter_values(wrong)

    assert str(error.value).splitlines()[1:] == [
        "  missing: /net/two.W",
        "  shape of /net/one.W: expected (2, 2), got (3, 2)",
        "  unknown: /net/twoo.W. Did you mean '/net/two.W'?",
        "  unknown: other. Known: /net/one.W, /net/two.W.",
    ]
    assert not model.get_parameter_values()["/net/one.W"].any()


@pytest.mark.parametrize("ignore", [["/net/two.W", "other"], ["missing", "unknown"]])
def test_what_is_to_be_ignored_may_be_missing_or_unknown(model, ignore):
    model.set_parameter_values({"/net/one.W": numpy.ones((2, 2)), "other": 1}, ignore=ignore)

    assert model.get_parameter_values()["/net/one.W"].all()
    assert not model.get_parameter_values()["/net/two.W"].any()


def test_an_algorithm_that_trains_other_parameters_is_noted(model, net, caplog):
    stranger = shared_floatx_zeros((1,), name="stranger")
    W, V = (layer.parameters[0] for layer in net.children)

    with caplog.at_level(logging.WARNING):
        model.check_sanity(Algorithm([W, V]))
        model.check_sanity(object())
    assert not caplog.records

    with caplog.at_level(logging.WARNING):
        model.check_sanity(Algorithm([W, stranger]))
    assert "trains what the model does not have: [stranger]" in caplog.text
    assert "does not train parameters of the model: ['/net/two.W']" in caplog.text


def test_models_pickle_and_copy(model):
    model.set_parameter_values(values(model))

    for clone in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert list(clone.get_parameter_dict()) == list(model.get_parameter_dict())
        assert_array_equal(clone.get_parameter_values()["/net/two.W"], [[3, 3], [3, 3]])
        assert [brick.name for brick in clone.top_bricks] == ["net"]
        brick = clone.top_bricks[0].children[0]
        assert clone.get_parameter_dict()["/net/one.W"] is brick.parameters[0]


def test_a_misspelt_keyword_is_refused_with_the_nearest():
    with pytest.raises(TypeError, match=r"Model: .* 'output'\. Did you mean 'outputs'"):
        Model(output=tensor.scalar())
