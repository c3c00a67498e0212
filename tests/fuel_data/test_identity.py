import functools
import operator

import numpy
import pytest

from fuel_data.identity import describe
from fuel_data.testing.pipelines import DropsSome
from fuel_data.utils.digests import digest


class Point:
    def __init__(self, x, friend=None):
        self.x = x
        self.friend = friend

    def method(self):
        pass


def function():
    pass


@pytest.mark.parametrize(
    ("value", "description"),
    [
        (3, 3),
        ((1, [2]), [1, [2]]),
        ({"a": (1,)}, {"a": [1]}),
        ({1: 2}, {"dict": [[1, 2]]}),
        ({3, 1}, {"set": [1, 3]}),
        (b"\x01", {"bytes": "01"}),
        (slice(1, 2), {"slice": [1, 2, None]}),
        (range(3), {"range": [0, 3, 1]}),
        (function, "function"),
        (Point, "Point"),
        (numpy.dtype("float32"), "float32"),
        (numpy.float32, "float32"),
        (operator.add, "add"),
        (Point(2), {"class": "Point", "arguments": {"friend": None, "x": 2}}),
        (functools.partial(function, 1, a=2), {"partial": ["function", [1], {"a": 2}]}),
        (numpy.random.RandomState(1), "RandomState"),
    ],
)
def test_arguments_are_described_in_plain_data(value, description):
    described = describe(value)
    if isinstance(value, set):
        described["set"].sort()
    assert described == description
    digest(described)


def test_methods_are_described_with_their_object():
    point = {"class": "Point", "arguments": {"friend": None, "x": 2}}
    assert describe(Point(2).method) == {"method": "method", "of": point}
    assert describe("a-b".split) == {"method": "split", "of": "a-b"}


def test_the_state_of_a_generator_does_not_count():
    dropping = DropsSome(1)
    before = digest(describe(dropping))
    dropping(())
    assert digest(describe(dropping)) == before


def test_the_content_of_arrays_counts():
    assert digest(describe(numpy.zeros(2))) != digest(describe(numpy.ones(2)))
    assert digest(describe(numpy.zeros(2))) != digest(describe(numpy.zeros(2, "float32")))
    digest(describe(numpy.array([None])))


def test_objects_that_refer_to_each_other_come_to_an_end():
    point = Point(1)
    point.friend = Point(2, point)
    digest(describe(point))
