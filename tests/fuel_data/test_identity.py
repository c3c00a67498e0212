import collections
import datetime
import decimal
import fractions
import functools
import operator
import os
import pathlib
import re
import subprocess
import sys
import threading
import types
import uuid

import numpy
import pytest

from fuel_data.datasets import IterableDataset
from fuel_data.identity import describe
from fuel_data.streams import DataStream
from fuel_data.testing.pipelines import DropsSome
from fuel_data.transformers import Mapping
from fuel_data.utils.digests import digest


class Point:
    def __init__(self, x, friend=None):
        self.x = x
        self.friend = friend

    def method(self):
        pass


class Slotted:
    __slots__ = ("n", "friend")

    def __init__(self, n):
        self.n = n


class Coloured(Slotted):
    def __init__(self, n, colour):
        super().__init__(n)
        self.colour = colour


class Bare:
    pass


def function():
    pass


def apply(argument, data):
    return data


# Pairs of arguments that have no attributes, or more than these, and differ.
BARE = {
    "path": (pathlib.Path("a/b"), pathlib.Path("a/c")),
    # Their text is cut after 200 characters.
    "pattern": (re.compile("a" * 300 + "b"), re.compile("a" * 300 + "c")),
    "flags": (re.compile("a"), re.compile("a", re.IGNORECASE)),
    "decimal": (decimal.Decimal(1), decimal.Decimal(2)),
    "fraction": (fractions.Fraction(1, 2), fractions.Fraction(1, 3)),
    "date": (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
    "complex": (1j, 2j),
    "objects": (numpy.array(["a", None]), numpy.array(["b", None])),
    "bytearray": (bytearray(b"a"), bytearray(b"b")),
    "slots": (Slotted(1), Slotted(2)),
    "slots and attributes": (Coloured(1, "red"), Coloured(2, "red")),
    "attributes over slots": (Coloured(1, "red"), Coloured(1, "blue")),
    "set in slots": (Slotted({"x", "y", "z"}), Slotted({"x", "y", "w"})),
    "deque": (collections.deque([1]), collections.deque([2])),
    "uuid": (uuid.UUID(int=1), uuid.UUID(int=2)),
    "proxy": (types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2})),
    "keys": ({"a": 1}.keys(), {"b": 1}.keys()),
    "item": (operator.itemgetter(0), operator.itemgetter(1)),
    "ufunc": (numpy.add, numpy.multiply),
    "complex64": (numpy.complex64(1j), numpy.complex64(2j)),
    "datetime64": (numpy.datetime64("2020-01-01", "ns"), numpy.datetime64("2020-01-02", "ns")),
    "timedelta64": (numpy.timedelta64(1, "D"), numpy.timedelta64(1, "h")),
    "bytes_": (numpy.bytes_(b"a"), numpy.bytes_(b"b")),
    "longdouble": (numpy.longdouble(1), numpy.nextafter(numpy.longdouble(1), 2)),
}


def argument_digest(argument):
    stream = DataStream(IterableDataset({"x": "abc"}))
    return Mapping(stream, functools.partial(apply, argument)).digest()


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


@pytest.mark.parametrize(("one", "other"), BARE.values(), ids=BARE)
def test_what_has_no_attributes_counts_by_what_it_would_be_copied_from(one, other):
    assert argument_digest(one) == argument_digest(one)
    assert argument_digest(one) != argument_digest(other)


_DIGESTS = """
from test_identity import BARE, argument_digest
print([argument_digest(value) for pair in BARE.values() for value in pair])
"""


def test_their_digests_are_the_same_in_every_process_and_hash_seed():
    here = [argument_digest(value) for pair in BARE.values() for value in pair]
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        output = subprocess.check_output([sys.executable, "-c", _DIGESTS], env=environment)
        assert output.decode().strip() == str(here)


def test_objects_without_contents_and_handles_count_by_their_class(tmp_path):
    assert describe(Bare()) == {"class": "Bare", "arguments": {}}
    assert describe(threading.Lock())["arguments"] == {}
    assert digest(describe(threading.Lock())) == digest(describe(threading.Lock()))
    with open(tmp_path / "a", "w") as one, open(tmp_path / "b", "w") as other:
        assert digest(describe(one)) == digest(describe(other))


def test_neither_positions_of_iterators_nor_states_of_bit_generators_count():
    items, bits = iter([1, 2]), numpy.random.PCG64(1)
    before = digest(describe([items, bits]))
    next(items)
    bits.random_raw()
    assert digest(describe([items, bits])) == before


def test_slots_that_refer_to_each_other_come_to_an_end():
    slotted = Slotted(1)
    slotted.friend = slotted
    digest(describe(slotted))


def lines(text):
    yield from text


def test_the_function_of_an_iterable_counts():
    def pipeline(iterable):
        return DataStream(IterableDataset({"x": iterable})).digest()

    assert pipeline(functools.partial(lines, "ab")) == pipeline(functools.partial(lines, "ab"))
    assert pipeline(functools.partial(lines, "ab")) != pipeline(functools.partial(lines, "xy"))
    # The content of what is in memory does not count, as in IndexableDataset.
    assert pipeline("ab") == pipeline("xy")


class Loads:
    table = None

    def __call__(self, data):
        self.table = {"a": 1}
        return data


class LoadsAndSaysWhatItIs(Loads):
    def identity(self):
        return {"class": "Loads", "from": "a.txt"}


def test_an_argument_that_changes_when_it_is_called_is_refused_with_the_way_out():
    def build(function):
        return Mapping(DataStream(IterableDataset({"x": "abc"})), function).get_epoch_iterator()

    begun, restored = build(Loads()), build(Loads())
    next(begun)
    with pytest.raises(ValueError, match="An argument that changes .* needs a method `identity`"):
        restored.set_state(begun.get_state())

    begun, restored = build(LoadsAndSaysWhatItIs()), build(LoadsAndSaysWhatItIs())
    next(begun)
    restored.set_state(begun.get_state())
    assert list(restored) == [("b",), ("c",)]
