"""Filters of variables."""

import pickle

import pytest
from aesara import tensor

from bricks.base import Brick, application
from bricks.filter import VariableFilter, get_annotation, get_application_call, get_brick
from bricks.graph import ComputationGraph
from bricks.roles import AUXILIARY, COST, INPUT, OUTPUT, WEIGHT, add_role


class Square(Brick):
    @application(inputs=["x"], outputs=["squared"])
    def apply(self, x):
        return x**2

    @application(inputs=["x"], outputs=["root"])
    def undo(self, x):
        return tensor.sqrt(x)


class Cube(Square):
    pass


@pytest.fixture
def graph():
    first, second = Square(name="first"), Cube(name="second")
    y = second.apply(first.apply(tensor.matrix("x"), call_id="one"))
    z = first.undo(y, call_id="two")
    add_role(z, COST)
    graph = ComputationGraph(z)
    graph.first, graph.second = first, second
    return graph


def names(graph, **criteria):
    return [variable.name for variable in VariableFilter(**criteria)(graph.variables)]


def test_roles_are_any_of_unless_each_is_wanted(graph):
    assert names(graph, roles=[COST, INPUT]) == [
        "first_apply_x",
        "second_apply_x",
        "first_undo_x",
        "first_undo_root",
    ]
    assert names(graph, roles=[COST, OUTPUT], each_role=True) == ["first_undo_root"]
    assert names(graph, roles=[WEIGHT]) == []


def test_bricks_are_instances_or_classes(graph):
    assert names(graph, bricks=[graph.second]) == ["second_apply_x", "second_apply_squared"]
    assert names(graph, bricks=[Cube]) == ["second_apply_x", "second_apply_squared"]
    assert len(names(graph, bricks=[Square])) == 6
    assert names(graph, bricks=[]) == []


def test_names_are_bare_and_full_equal_or_matched_from_the_start(graph):
    assert names(graph, name="squared") == ["first_apply_squared", "second_apply_squared"]
    assert names(graph, name_regex="ro") == ["first_undo_root"]
    assert names(graph, name_regex="oot") == []
    assert names(graph, theano_name="x") == ["x"]
    assert names(graph, theano_name_regex="second_") == ["second_apply_x", "second_apply_squared"]


def test_calls_are_found_by_id_and_application(graph):
    assert names(graph, call_id="two") == ["first_undo_x", "first_undo_root"]
    assert names(graph, applications=[graph.first.undo]) == ["first_undo_x", "first_undo_root"]
    assert len(names(graph, applications=[Square.apply], roles=[OUTPUT])) == 2
    assert names(graph, applications=[graph.second.undo]) == []


def test_all_criteria_must_hold(graph):
    assert names(graph, roles=[OUTPUT], bricks=[graph.first], name="squared") == [
        "first_apply_squared"
    ]


def test_makers_of_a_variable_are_found_or_none(graph):
    (z,) = graph.outputs

    assert get_brick(z) is graph.first
    assert get_application_call(z).application == graph.first.undo
    assert get_annotation(z, Cube) is None
    assert get_brick(tensor.matrix()) is get_application_call(tensor.matrix()) is None


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"bricks": [3]}, "`bricks` must hold bricks or brick classes; got 3"),
        ({"roles": [type(WEIGHT)]}, "`roles` holds .*Roles are objects such as WEIGHT"),
        ({"applications": [len]}, "`applications` holds .* none of the applications"),
    ],
)
def test_criteria_of_the_wrong_kind_are_refused_in_words(criteria, message):
    with pytest.raises(ValueError, match=message):
        VariableFilter(**criteria)


def test_filters_pickle():
    clone = pickle.loads(pickle.dumps(VariableFilter(roles=[AUXILIARY], name="x")))

    assert clone.roles == [AUXILIARY]
    assert clone.name == "x"
