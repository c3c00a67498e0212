"""What has changed in an object, what of it can be put back, and what can only be told."""

import pickle
from collections import Counter, deque
from types import SimpleNamespace

import numpy
import pytest

from bricks.attributes import Attributes, is_plain


class Holder:
    """An object of its own class, to be changed inside."""

    def __init__(self):
        self.inside = ["text", {"more": 1}]


def test_attributes_that_are_as_they_were_have_not_changed():
    owner = SimpleNamespace(a=1, b=[1, (2.0, "x")], c=numpy.arange(3), d=Counter("aab"), e={1, 2})
    before = Attributes(owner)

    assert before.changed(owner) == ({}, [])
    assert before.changed(pickle.loads(pickle.dumps(owner))) == ({}, [])


CHANGES = [
    (0, 1),
    (1, True),
    (1, 1.0),
    (None, "x"),
    ([1], [1, 2]),
    ((1,), [1]),
    ({"a": 1}, {"a": 2}),
    (numpy.zeros(2), numpy.ones(2)),
    (numpy.zeros(2, "float32"), numpy.zeros(2)),
    (numpy.float32(1), numpy.float32(2)),
    (set(), 1),
]


@pytest.mark.parametrize(("first", "then"), CHANGES)
def test_plain_values_that_changed_are_put_back_with_their_types(first, then):
    before = Attributes(SimpleNamespace(x=first))
    plain, others = before.changed(SimpleNamespace(x=then))
    owner = SimpleNamespace(x=first)
    before.put_back(owner, plain)

    assert others == []
    assert type(owner.x) is type(then)
    numpy.testing.assert_equal(owner.x, then)
    assert getattr(owner.x, "dtype", None) == getattr(then, "dtype", None)


def test_a_list_that_is_changed_in_its_place_has_changed_and_the_state_is_a_copy():
    owner = SimpleNamespace(x=[1])
    before = Attributes(owner)
    owner.x.append(2)
    plain, _ = before.changed(owner)
    owner.x.append(3)

    assert plain == {"x": [1, 2]}


def test_what_had_not_changed_gets_its_first_value_back():
    owner = SimpleNamespace(x=[1], new=5)
    before = Attributes(owner)
    owner.x.append(2)
    before.put_back(owner, {"y": 3})

    assert owner == SimpleNamespace(x=[1], new=5, y=3)


def test_attributes_can_be_left_out():
    before = Attributes(SimpleNamespace(x=1, y=1), left_out=["y"])

    assert before.changed(SimpleNamespace(x=1, y=2)) == ({}, [])


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (set(), lambda value: value.add(1)),
        (deque([1]), lambda value: value.append(1)),
        (Counter("a"), lambda value: value.update("a")),
        ([Holder()], lambda value: value.append(Holder())),
        (numpy.random.RandomState(1), lambda value: value.rand()),
        (numpy.random.default_rng(1), lambda value: value.random()),
    ],
)
def test_changes_of_what_is_not_plain_are_seen(value, change):
    owner = SimpleNamespace(x=value)
    before = Attributes(owner)
    assert before.changed(owner) == ({}, [])
    change(owner.x)

    assert before.changed(owner) == ({}, ["x"])


def test_changes_inside_of_objects_are_seen_if_that_is_asked_for():
    owner = SimpleNamespace(x=Holder(), function=lambda: 1)
    shallow, deep = Attributes(owner), Attributes(owner, deep=True)
    assert deep.changed(SimpleNamespace(x=pickle.loads(pickle.dumps(owner.x)))) == ({}, [])
    owner.x.inside.append(1)

    assert shallow.changed(owner) == ({}, [])
    assert deep.changed(owner) == ({}, ["x"])


@pytest.mark.parametrize("value", [Counter(), {1}, numpy.array([None]), [{"a": object()}]])
def test_what_could_not_be_put_back_exactly_is_not_plain(value):
    assert not is_plain(value)
