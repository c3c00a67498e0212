import re
from fractions import Fraction

import numpy
import pytest

from fuel_data.config_parser import config
from fuel_data.datasets import IndexableDataset
from fuel_data.exceptions import AxisLabelsMismatchError
from fuel_data.schemes import SequentialExampleScheme, SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Cast, Flatten, ForceFloatX, ScaleAndShift

LABELS = {"image": ("batch", "height", "width"), "rows": ("batch", "time"), "n": ("batch",)}


@pytest.fixture
def dataset():
    rows = numpy.empty(3, dtype=object)
    for number in range(3):
        rows[number] = numpy.full((number + 1, 2), number, dtype="float64")
    data = {
        "image": numpy.arange(12, dtype="uint8").reshape(3, 2, 2),
        "rows": rows,
        "n": numpy.arange(3, dtype="float64"),
    }
    return IndexableDataset(data, axis_labels=LABELS)


@pytest.fixture
def batches(dataset):
    return DataStream(dataset, iteration_scheme=SequentialScheme(3, 3))


@pytest.fixture
def examples(dataset):
    return DataStream(dataset, iteration_scheme=SequentialExampleScheme(3))


def first(stream):
    return next(stream.get_epoch_iterator(as_dict=True))


def test_flatten_makes_one_axis_of_all_but_the_batch(batches):
    stream = Flatten(batches, which_sources=("image",))
    assert first(stream)["image"].tolist() == numpy.arange(12).reshape(3, 4).tolist()
    assert stream.axis_labels == {**LABELS, "image": ("batch", "feature")}
    assert batches.axis_labels == LABELS


def test_flatten_of_an_example_makes_one_axis(examples):
    stream = Flatten(examples, which_sources=("image", "n"))
    assert first(stream)["image"].tolist() == [0, 1, 2, 3]
    assert first(stream)["n"].tolist() == [0]
    assert stream.axis_labels["image"] == ("feature",)


def test_flatten_goes_into_ragged_sources_and_lists(batches):
    rows = first(Flatten(batches))["rows"]
    assert [row.shape for row in rows] == [(2,), (4,), (6,)]
    flatten = Flatten(batches)
    assert flatten.transform_source_batch([[[1, 2]], [[3, 4]]], "x").tolist() == [[1, 2], [3, 4]]


def test_flatten_gives_scalars_one_feature_and_empty_axes_none(batches):
    assert first(Flatten(batches))["n"].tolist() == [[0], [1], [2]]
    assert Flatten(batches).transform_source_batch(numpy.zeros((2, 0, 3)), "x").shape == (2, 0)


def test_flatten_takes_labels_that_are_given(batches):
    assert Flatten(batches, axis_labels={"image": ("a",)}).axis_labels == {"image": ("a",)}


def test_scale_and_shift_is_linear(batches, examples):
    batch = first(ScaleAndShift(batches, 2, 1))
    assert batch["image"].tolist() == (2 * numpy.arange(12) + 1).reshape(3, 2, 2).tolist()
    assert [row.max() for row in batch["rows"]] == [1, 3, 5]
    assert first(ScaleAndShift(examples, 2, 1, which_sources=("n",)))["n"] == 1


@pytest.mark.parametrize("scale", [0.5, numpy.float64(0.5), numpy.array(0.5)])
def test_a_number_as_scale_does_not_widen_float32(batches, scale):
    scaled = ScaleAndShift(batches, scale, 0).transform_any_source(numpy.ones(2, "float32"), "x")
    assert scaled.dtype == numpy.float32


def test_whole_numbers_scaled_by_a_fraction_are_float64(batches):
    assert first(ScaleAndShift(batches, 1 / 255, 0))["image"].dtype == numpy.float64


def test_an_array_as_scale_is_broadcast(batches):
    scaled = first(ScaleAndShift(batches, numpy.array([1, 10]), 0, which_sources=("image",)))
    assert scaled["image"][0].tolist() == [[0, 10], [2, 30]]


def test_cast_changes_the_dtype(batches):
    batch = first(Cast(batches, "int16"))
    assert (batch["image"].dtype, batch["n"].dtype) == ("int16", "int16")
    assert {row.dtype for row in batch["rows"]} == {numpy.dtype("int16")}
    assert Cast(batches, "int16").transform_any_source([1.5, 2], "x").tolist() == [1, 2]


def test_cast_to_float_x_is_what_the_settings_say_when_it_is_made(batches):
    config.floatX = "float16"
    try:
        stream = Cast(batches, "floatX")
    finally:
        del config.floatX
    assert first(stream)["image"].dtype == numpy.float16
    assert first(Cast(batches, "floatX"))["image"].dtype == numpy.float32


def test_force_float_x_casts_floating_point_numbers_only(batches):
    batch = first(ForceFloatX(batches))
    assert (batch["image"].dtype, batch["n"].dtype) == ("uint8", "float32")
    assert {row.dtype for row in batch["rows"]} == {numpy.dtype("float32")}


def test_force_float_x_leaves_what_is_no_array(batches):
    values = [1.5, 2.5]
    assert ForceFloatX(batches).transform_any_source(values, "x") is values
    assert ForceFloatX(batches).transform_any_source(numpy.float64(1), "x").dtype == "float32"


def test_values_do_not_change_in_place(batches, dataset):
    before = dataset.n.copy()
    first(ScaleAndShift(Cast(batches, "float64"), 3, 1))
    numpy.testing.assert_array_equal(dataset.n, before)


def _objects(*values):
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (numpy.array(["a", "bc"]), r"of dtype <U2"),
        (numpy.array([b"a", b"b"]), r"of dtype \|S1"),
        (["a", "b"], "list of str"),
        (_objects("a", None), "ndarray of str"),
        (numpy.zeros(2, [("a", "int32"), ("b", "float32")]), r"of dtype \[\('a', "),
    ],
)
def test_what_is_no_number_is_named_with_its_source_and_dtype(values, kind):
    dataset = IndexableDataset({"x": numpy.zeros(2), "word": values})
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))

    def refusal(transformer, which_sources):
        with pytest.raises(ValueError) as raised:
            next(transformer(stream, which_sources=which_sources).get_epoch_iterator())
        return str(raised.value)

    def scale(stream, **arguments):
        return ScaleAndShift(stream, 2, 1, **arguments)

    def cast(stream, **arguments):
        return Cast(stream, "float32", **arguments)

    assert re.fullmatch(
        f"ScaleAndShift: the source 'word' cannot be scaled and shifted, it is {kind}.*"
        r"\. Leave it out by which_sources=\('x',\), or map it to numbers first\.",
        refusal(scale, None),
    )
    assert re.fullmatch(
        f"Cast: the source 'word' cannot become float32, it is {kind}.*"
        r"\. Map it to numbers first\.",
        refusal(cast, ["word"]),
    )
    assert list(first(ForceFloatX(stream))["word"]) == list(values)


def test_examples_without_a_shape_cannot_be_flattened():
    dataset = IndexableDataset({"x": [[[1], [2, 3]], [[4]]]})
    examples = DataStream(dataset, iteration_scheme=SequentialExampleScheme(2))
    batches = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))

    for stream in (examples, batches):
        with pytest.raises(
            ValueError, match="Flatten: the source 'x' cannot be flattened, it is list of list: se"
        ):
            next(Flatten(stream).get_epoch_iterator())


def test_shapes_that_do_not_fit_name_the_source(batches):
    with pytest.raises(
        ValueError, match="ScaleAndShift: the source 'image' cannot .*broadcast.*which_sources="
    ):
        first(ScaleAndShift(batches, numpy.ones(5), 0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("scale", [2, True, 300, numpy.uint8(200), numpy.array([100, 2], "uint8")])
@pytest.mark.parametrize("shift", [0, -1, 100, numpy.int8(-100), [1, -1]])
def test_whole_numbers_do_not_overflow(dtype, scale, shift):
    data = numpy.array([[1, 100], [0, 120]]).astype(dtype)
    stream = DataStream(IndexableDataset({"x": data}), SequentialScheme(2, 2))

    (x,) = next(iter(ScaleAndShift(stream, scale, shift)))

    rows = [[int(n) for n in row] for row in data]
    scales, shifts = (numpy.broadcast_to(n, 2).tolist() for n in (scale, shift))
    expected = [[n * s + t for n, s, t in zip(row, scales, shifts, strict=True)] for row in rows]
    assert x.dtype == "int64"
    assert x.tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "scale", "shift", "expected"),
    [
        ("uint8", 2, 0.5, "float64"),
        ("uint8", 2.0, 0, "float64"),
        ("uint8", numpy.float32(2), 1, "float64"),
        ("uint8", numpy.array([2], "float32"), 1, "float32"),
        ("uint64", 2, 1, "float64"),
        ("float32", 2, 1, "float32"),
        ("float16", 2, 0.5, "float16"),
    ],
)
def test_the_dtype_of_what_is_scaled_is_the_same_for_every_numpy(dtype, scale, shift, expected):
    dataset = IndexableDataset({"x": numpy.array([100, 200], dtype)})
    (x,) = next(iter(ScaleAndShift(DataStream(dataset, SequentialScheme(2, 2)), scale, shift)))

    assert x.dtype == expected
    assert x.tolist() == [200 + shift, 400 + shift]


@pytest.mark.parametrize("wrong", ["a", None, b"1", [[1], [1, 2]], numpy.array(["1"]), {}])
def test_only_numbers_scale_and_shift(batches, wrong):
    with pytest.raises(ValueError, match="ScaleAndShift: `scale` must be a number or an array"):
        ScaleAndShift(batches, wrong, 0)
    with pytest.raises(ValueError, match="ScaleAndShift: `shift` must be a number or an array"):
        ScaleAndShift(batches, 1, wrong)


def test_fractions_and_lists_scale_and_spans_of_time_shift(batches):
    scaled = ScaleAndShift(batches, Fraction(1, 2), [1, 2])
    assert scaled.transform_any_source(numpy.array([4, 4]), "x").tolist() == [3, 4]
    later = ScaleAndShift(batches, 2, numpy.array([1], "timedelta64[s]"))
    seconds = later.transform_any_source(numpy.array([1, 2], "timedelta64[s]"), "x")
    assert seconds.astype(int).tolist() == [3, 5]


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("flot32", r"got 'flot32'\. Did you mean 'float32'\?"),
        ("floatx", r"got 'floatx'\. Did you mean 'floatX'\?"),
        (3, r"got 3\. Known: bool, .*float32, "),
    ],
)
def test_a_dtype_that_numpy_does_not_know_is_an_error_with_the_nearest(batches, dtype, words):
    with pytest.raises(TypeError, match=f"^Cast: `dtype` must be a dtype of numpy.*{words}"):
        Cast(batches, dtype)


def test_imaginary_parts_are_not_lost_by_a_cast():
    dataset = IndexableDataset({"x": numpy.array([1j])})
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(1, 1))

    with pytest.raises(ValueError, match="'x' cannot become float32, it is of dtype complex128: "):
        first(Cast(stream, "float32"))
    assert first(Cast(stream, "complex64"))["x"].dtype == "complex64"


def test_force_float_x_leaves_objects_as_they_are():
    values = _objects(None, "a", numpy.ones(2))
    stream = DataStream(IndexableDataset({"x": values}), iteration_scheme=SequentialScheme(3, 3))

    none, text, array = first(ForceFloatX(stream))["x"]

    assert (none, text, array.dtype) == (None, "a", "float32")


def test_flatten_refuses_batches_whose_examples_are_not_on_the_first_axis():
    dataset = IndexableDataset({"x": numpy.zeros((4, 2, 3))})
    labels = {"x": ("time", "batch", "feature")}
    stream = DataStream(dataset, SequentialScheme(4, 4), axis_labels=labels)
    with pytest.raises(
        AxisLabelsMismatchError, match="Flatten: the examples of the source 'x' must"
    ):
        Flatten(stream)


def test_flatten_labels_its_axes_if_it_is_told_of_no_labels():
    dataset = IndexableDataset({"x": numpy.zeros((4, 2, 3))})
    labels = {"x": ("batch", "height", "width")}
    stream = DataStream(dataset, SequentialScheme(4, 4), axis_labels=labels)
    assert Flatten(stream, axis_labels=None).axis_labels == {"x": ("batch", "feature")}
