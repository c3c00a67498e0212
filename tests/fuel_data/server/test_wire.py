import json

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_equal

from fuel_data.server.errors import WireError
from fuel_data.server.wire import pack, unpack


def through_the_wire(value):
    return unpack([bytes(frame) for frame in pack(value)])


def objects(*items):
    array = numpy.empty(len(items), dtype=object)
    array[:] = items
    return array


ARRAYS = {
    "numbers": numpy.arange(6, dtype="f4").reshape(2, 3),
    "big-endian": numpy.arange(3, dtype=">i4"),
    "booleans": numpy.array([True, False]),
    "complex": numpy.array([1 + 2j]),
    "0-d": numpy.array(3.5),
    "empty": numpy.zeros((0, 4), dtype="i8"),
    "non-contiguous": numpy.arange(10)[::3],
    "negative strides": numpy.arange(6).reshape(2, 3)[::-1, ::-1],
    "fortran order": numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
    "fixed bytes": numpy.array([b"a", b"bcd"]),
    "fixed text": numpy.array(["a", "\u00e9\u00e8"]),
    "no text": numpy.array(["", ""], dtype="U0"),
    "dates": numpy.array(["2020-01-01", "NaT"], dtype="M8[D]"),
    "fields": numpy.array([(1, 2.5)], dtype=[("a", "i2"), ("b", "f8")]),
    "aligned fields": numpy.zeros(2, dtype=numpy.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "nested fields": numpy.zeros(2, dtype=[("a", [("b", "i2", (2, 3))]), (("title", "c"), "S3")]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_comes_back_with_its_dtype_and_shape(name):
    array = ARRAYS[name]

    result = through_the_wire(array)

    assert_equal(result, array)
    assert result.dtype == array.dtype
    assert result.shape == array.shape


def test_fortran_order_is_kept_without_a_copy():
    array = numpy.asfortranarray(numpy.arange(6).reshape(2, 3))

    header, buffer = pack(array)

    assert numpy.shares_memory(numpy.frombuffer(buffer, dtype="u1"), array)
    assert unpack([header, bytes(buffer)]).flags.f_contiguous


def test_arrays_are_writable_views_of_writable_buffers():
    header, buffer = pack(numpy.arange(4))
    received = bytearray(buffer)

    result = unpack([header, received])
    result[0] = 9

    assert received[0] == 9


def test_arrays_at_odd_addresses_are_copied_to_aligned_ones():
    header, buffer = pack(numpy.arange(4.0))
    ragged_header, ragged_buffer = pack([numpy.arange(2.0), numpy.arange(3.0)])

    result = unpack([header, memoryview(b"x" + bytes(buffer))[1:]])
    ragged = unpack([ragged_header, memoryview(b"x" + bytes(ragged_buffer))[1:]])

    assert result.flags.aligned
    assert_equal(result, numpy.arange(4.0))
    assert all(item.flags.aligned for item in ragged)
    assert_equal(ragged[1], numpy.arange(3.0))


@pytest.mark.parametrize("container", [list, lambda items: objects(*items)])
def test_ragged_arrays_of_one_dtype_take_one_buffer(container):
    items = [numpy.arange(6, dtype="u1").reshape(2, 3), numpy.zeros((0, 4), "u1")]

    frames = pack(container(items))
    result = unpack(frames)

    assert len(frames) == 2
    assert type(result) is type(container(items))
    assert [item.dtype for item in result] == [numpy.dtype("u1")] * 2
    assert_equal(result[0], items[0])
    assert result[1].shape == (0, 4)


def test_objects_of_several_kinds_keep_their_types():
    value = objects("text \u2603", b"bytes", 3, 2.5, None, numpy.arange(2), (1, [2]), {"k": True})

    result = through_the_wire(value)

    assert result.dtype == object
    assert_equal(result[5], numpy.arange(2))
    assert [item for place, item in enumerate(result) if place != 5] == [
        "text \u2603", b"bytes", 3, 2.5, None, (1, [2]), {"k": True}
    ]  # fmt: skip


def test_an_array_of_text_with_two_axes_keeps_its_shape():
    value = numpy.array([["a", "b\x00"], ["", "\ud800"]], dtype=object)

    assert through_the_wire(value).tolist() == [["a", "b\x00"], ["", "\ud800"]]


def test_objects_nested_in_objects_keep_their_shapes():
    value = objects(objects(numpy.arange(2), numpy.arange(3)), objects())

    result = through_the_wire(value)

    assert_equal(result[0][1], numpy.arange(3))
    assert result[1].shape == (0,)


def test_numpy_scalars_stay_numpy_scalars():
    result = through_the_wire((numpy.float32(0.1), numpy.str_("a"), numpy.bool_(True)))

    assert result == (numpy.float32(0.1), "a", True)
    assert [type(item) for item in result] == [numpy.float32, numpy.str_, numpy.bool_]


def test_floats_and_integers_are_exact():
    value = [0.1, float("inf"), 2**200, -0.0, 5e-324]

    assert [repr(item) for item in through_the_wire(value)] == [repr(item) for item in value]


dtypes = st.one_of(
    hnp.scalar_dtypes(),
    hnp.unicode_string_dtypes(max_len=5),
    hnp.byte_string_dtypes(max_len=5),
    hnp.array_dtypes(allow_subarrays=True, max_size=3),
)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_side=4)), st.booleans())
def test_any_array_comes_back_byte_for_byte(array, transpose):
    array = array.T if transpose else array

    result = through_the_wire(array)

    assert result.dtype == array.dtype
    assert result.shape == array.shape
    assert result.tobytes() == array.tobytes()


leaves = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
plain = st.recursive(
    st.none() | leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(plain)
def test_any_plain_value_comes_back_equal(value):
    assert through_the_wire(value) == value


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_damaged_frames_give_a_wire_error_or_a_value(data):
    value = (numpy.arange(6).reshape(2, 3), [numpy.zeros(2), numpy.zeros(3)], b"ab", {"k": 1})
    frames = [bytearray(frame) for frame in pack(value)]
    frame = frames[data.draw(st.integers(0, len(frames) - 1))]
    place = data.draw(st.integers(0, len(frame) - 1))
    frame[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))

    try:
        unpack(frames)
    except WireError as error:
        assert str(error).startswith("unpack: ")


def message(node, *buffers):
    return [json.dumps([1, node]).encode(), *buffers]


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([], "no frame at all"),
        ([b"\x80\x04"], "does not follow the format"),
        ([b"[2, null]"], "speaks version 1 .* in version 2"),
        (message(["array", "<f8", [10**12], "C"], b"123"), "an array of 8000000000000 bytes"),
        (message(["array", "<f8", [-1], "C"], b""), "a shape must be a list of lengths"),
        (message(["array", "<f8", [2.0], "C"], b"1" * 16), "a shape must be a list of lengths"),
        (message(["array", "<f8", [1], "K"], b"12345678"), "C or F, got 'K'"),
        (message(["array", "|O", [1], "C"], b"12345678"), "cannot have the dtype object"),
        (message(["array", [["a", "|O"]], [1], "C"], b"12345678"), "cannot have the dtype"),
        (message(["array", "<f8", [1], "C"]), "fewer buffers"),
        (message(None, b"1"), "more buffers"),
        (message(["ragged", None, "<f8", [[10**12]]], b"123"), "ragged arrays of 8000000000000"),
        (message(["ragged", [3], "<f8", [[1]]], b"12345678"), "cannot hold 1 objects"),
        (message(["objects", [10**12], None]), "cannot hold 1 objects"),
        (message(["bytes", 3], b"12"), "bytes of 3 bytes, the buffer has 2"),
        (message(["dict", ["a"], 1, 2]), "does not follow the format"),
        (message(["pickle", 1]), "unknown kind of value 'pickle'"),
        (message({"a": 1}), "a header holds no objects"),
        ([b"[1," * 50 + b"1" + b"]" * 50], "unpack: "),
    ],
)
def test_a_message_out_of_format_is_refused_in_words(frames, words):
    with pytest.raises(WireError, match=words):
        unpack(frames)


def nested(depth):
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda: None, "cannot send a builtins.function"),
        ({1: 2}, "keys of a dict must be strings, got 1"),
        (numpy.ma.masked_array([1, 2], [0, 1]), "send its data and its mask"),
        (numpy.zeros(1, dtype=[("a", object)]), "cannot send the dtype"),
        (objects(numpy.zeros(1), print), "cannot send a builtins.builtin_function"),
        (nested(40), "nest more than 32 deep"),
    ],
)
def test_a_value_that_cannot_be_sent_is_refused_in_words(value, words):
    with pytest.raises(WireError, match=words):
        pack(value)
