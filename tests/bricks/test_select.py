"""Paths and selectors."""

import pytest

from bricks.base import Brick
from bricks.select import Path, Selector
from bricks.utils import shared_floatx_zeros


class Leaf(Brick):
    def _allocate(self):
        for name in "WVW" if self.name == "twice" else "WV":
            self.parameters.append(shared_floatx_zeros((1,), name=name))
        self.parameters.append(None)


@pytest.fixture
def top():
    shared = Leaf(name="shared")
    left = Brick(name="left", children=[Leaf(name="leaf"), shared])
    right = Brick(name="right", children=[Leaf(name="leaf"), shared])
    top = Brick(name="top", children=[left, right])
    top.allocate()
    return top


@pytest.mark.parametrize("text", ["/a", "/a/b", "/a/b.W", ".W", "/a.W"])
def test_paths_are_parsed_and_written_back(text):
    assert str(Path.parse(text)) == text
    assert Path.parse(text) == Path.parse(text)
    assert repr(Path.parse(text)) == f"Path.parse({text!r})"
    assert hash(Path.parse(text)) == hash(Path.parse(text))


@pytest.mark.parametrize("text", ["", "a", "a/b", "/a//b", "/", "/a.", "/a.W/b", "/a.W.V"])
def test_text_that_is_no_path_is_refused(text):
    with pytest.raises(ValueError, match="is no path. Write '/brick/child'"):
        Path.parse(text)


def test_paths_are_joined():
    assert str(Path.parse("/a") + Path.parse("/b.W")) == "/a/b.W"


def test_bricks_are_selected_by_path(top):
    selector = Selector(top)

    assert selector.select("/top/left").bricks == [top.children[0]]
    assert selector.select("/top/left/leaf").bricks == [top.children[0].children[0]]
    assert selector.select("/top/nothing").bricks == []
    assert selector.select("/left").bricks == []
    assert selector.select(Path.parse("/top")).bricks == [top]


def test_a_parameter_name_selects_from_all_bricks_below(top):
    left = top.children[0]

    assert Selector([top]).select("/top/left/leaf.W") == [left.children[0].parameters[0]]
    assert len(Selector([top]).select("/top.W")) == 3
    assert Selector([top]).select("/top.X") == []


def test_parameters_come_by_path_each_once_under_the_first_parent(top):
    parameters = Selector(top).get_parameters()

    assert list(parameters) == [
        "/top/left/leaf.W",
        "/top/left/leaf.V",
        "/top/left/shared.W",
        "/top/left/shared.V",
        "/top/right/leaf.W",
        "/top/right/leaf.V",
    ]
    assert list(Selector(top.children[1]).get_parameters("W")) == [
        "/top/right/leaf.W",
        "/top/left/shared.W",
    ]


def test_parameters_of_one_path_are_refused_in_words():
    two = Brick(name="top", children=[Leaf(name="leaf"), Leaf(name="leaf")])
    two.allocate()
    twice = Leaf(name="twice")
    twice.allocate()

    with pytest.raises(ValueError, match="two parameters are called /top/leaf.W. Give the bricks"):
        Selector(two).get_parameters()
    with pytest.raises(ValueError, match="two parameters are called /twice.W"):
        Selector(twice).get_parameters()


def test_parameters_before_allocation_are_an_error_in_words():
    with pytest.raises(AttributeError, match="/leaf has no parameters yet"):
        Selector(Leaf()).get_parameters()
