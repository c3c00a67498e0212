import numpy
import pytest

from fuel_data.state import is_plain, join_arrays, split_arrays


def test_plain_data_come_back_the_same():
    plain = {
        "numbers": [1, 2.5, float("inf"), -(2**80), True, None],
        "nested": {"a": [{"b": numpy.arange(3, dtype="uint8")}], "text": "é"},
        "array": numpy.array([["x", "yz"]]),
    }
    back = join_arrays(*split_arrays(plain))
    assert back["numbers"] == plain["numbers"]
    assert back["nested"]["text"] == "é"
    numpy.testing.assert_array_equal(back["nested"]["a"][0]["b"], [0, 1, 2])
    assert back["nested"]["a"][0]["b"].dtype == numpy.uint8
    assert back["array"].tolist() == [["x", "yz"]]


def test_an_array_is_named_by_the_way_to_it():
    text, arrays = split_arrays({"a": [0, numpy.zeros(2)]})
    assert text == '{"a": [0, {"__array__": "a/1"}]}'
    assert list(arrays) == ["a/1"]


def test_two_arrays_whose_ways_read_the_same_are_kept_apart():
    back = join_arrays(*split_arrays({"a/b": numpy.zeros(1), "a": {"b": numpy.ones(1)}}))
    assert (back["a/b"][0], back["a"]["b"][0]) == (0, 1)


def test_tuples_become_lists_and_numpy_numbers_python_numbers():
    back = join_arrays(*split_arrays({"t": (1, (2,)), "n": numpy.float32(0.1)}))
    assert back["t"] == [1, [2]]
    assert type(back["n"]) is float
    assert numpy.float32(back["n"]) == numpy.float32(0.1)


def test_an_array_alone_is_plain():
    assert join_arrays(*split_arrays(numpy.arange(2))).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [object()]}, "at a/0/; got object"),
        ({"a": {1: 2}}, "the keys at a/ must be str; got 1"),
        ({"__array__": 1}, "the key '__array__' at / is reserved"),
        (numpy.array([None]), "at /; got ndarray"),
    ],
)
def test_what_is_not_plain_is_refused_with_the_way_to_it(value, message):
    with pytest.raises(TypeError, match=message):
        split_arrays(value)
    assert not is_plain(value)


def test_a_missing_array_is_named():
    with pytest.raises(ValueError, match="the array 'a' is missing"):
        join_arrays('{"a": {"__array__": "a"}}', {})
