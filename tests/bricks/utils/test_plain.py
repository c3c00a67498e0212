"""Helpers for lists, dictionaries, exceptions and trees."""

import sys

import pytest

from bricks.base import Brick
from bricks.utils import (
    change_recursion_limit,
    dict_subset,
    dict_union,
    extract_args,
    find_bricks,
    pack,
    repr_attrs,
    reraise_as,
    unpack,
)


def test_pack_makes_lists_and_unpack_undoes_those_of_one():
    assert pack(1) == [1]
    assert pack((1, 2)) == [1, 2]
    assert pack("ab") == ["ab"]
    assert unpack([1]) == 1
    assert unpack((1, 2)) == (1, 2)
    assert unpack("ab") == "ab"
    with pytest.raises(ValueError, match="expected exactly one element, got 2"):
        unpack([1, 2], singleton=True)


def test_reraise_as_chains_another_exception():
    with pytest.raises(KeyError, match="other") as caught:
        try:
            raise ValueError("first")
        except ValueError:
            reraise_as(KeyError("other"))

    assert isinstance(caught.value.__cause__, ValueError)


def test_reraise_as_puts_words_before_the_message_of_the_same_class():
    with pytest.raises(ValueError, match="(?s)while reading.*ValueError: first"):
        try:
            raise ValueError("first")
        except ValueError:
            reraise_as("while reading")

    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    with pytest.raises(RuntimeError, match="(?s)while reading.*Odd"):
        try:
            raise Odd(1, 2)
        except Odd:
            reraise_as("while reading")


def test_dict_subset_keeps_the_order_of_the_keys_and_may_pop():
    dictionary = {"a": 1, "b": 2, "c": 3}

    assert list(dict_subset(dictionary, ["c", "a"]).items()) == [("c", 3), ("a", 1)]
    assert dict_subset(dictionary, ["a", "x"], must_have=False) == {"a": 1}
    assert dict_subset(dictionary, ["a"], pop=True) == {"a": 1}
    assert dictionary == {"b": 2, "c": 3}


def test_dict_subset_names_missing_keys_and_removes_nothing():
    dictionary = {"a": 1}

    with pytest.raises(KeyError, match="no 'x'; the keys are: a"):
        dict_subset(dictionary, ["a", "x"], pop=True)
    assert dictionary == {"a": 1}


def test_dict_union_joins_and_refuses_keys_that_repeat():
    assert list(dict_union({"a": 1}, {"b": 2}, c=3).items()) == [("a", 1), ("b", 2), ("c", 3)]
    with pytest.raises(ValueError, match="'a' in more than one dictionary"):
        dict_union({"a": 1}, {"a": 1})


def test_repr_attrs_shows_the_attributes():
    class Thing:
        x = 1

    assert repr_attrs(Thing(), "x", "y").endswith(": x=1, y=None>")
    assert repr_attrs(Thing()).endswith(">")


def test_extract_args_orders_positions_and_names():
    assert extract_args(["a", "b", "c"], 1, c=3, b=2) == [1, 2, 3]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2, 3), {}, "expected 2 arguments"),
        ((1,), {"bb": 2}, "unexpected argument 'bb'.*'b'"),
        ((1,), {"a": 2}, "'a' is given by position and by name"),
        ((1,), {}, "missing arguments: b"),
    ],
)
def test_extract_args_says_what_is_wrong(args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        extract_args(["a", "b"], *args, **kwargs)


def test_find_bricks_gives_each_brick_once_parents_first():
    leaf = Brick(name="leaf")
    one, two = Brick(name="one", children=[leaf]), Brick(name="two", children=[leaf])
    top = Brick(name="top", children=[one, two])

    found = find_bricks([top], lambda brick: brick is not one)

    assert found == [top, two, leaf]


def test_the_recursion_limit_is_put_back_also_after_an_exception():
    before = sys.getrecursionlimit()

    with pytest.raises(RuntimeError, match="inside"), change_recursion_limit(before + 7):
        assert sys.getrecursionlimit() == before + 7
        raise RuntimeError("inside")
    assert sys.getrecursionlimit() == before
    with change_recursion_limit(None):
        assert sys.getrecursionlimit() == before
