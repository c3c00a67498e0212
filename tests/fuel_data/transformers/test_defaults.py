import io

import numpy
import PIL.Image
import pytest

from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers.defaults import (
    ToBytes,
    rgb_images_from_encoded_bytes,
    uint8_pixels_to_floatX,
)
from fuel_data.transformers.ragged import ragged


def test_pixels_become_floats_from_zero_to_one_and_other_sources_stay():
    pixels = numpy.array([[0, 51], [255, 102]], dtype="uint8")
    dataset = IndexableDataset({"x": pixels, "y": pixels})
    dataset.default_transformers = uint8_pixels_to_floatX(("x",))

    stream = DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(2, 2))
    x, y = next(iter(stream))

    assert x.dtype == "float32"
    numpy.testing.assert_allclose(x, [[0, 0.2], [1, 0.4]], rtol=1e-6)
    assert y.dtype == "uint8"


def test_default_transformers_pass_over_sources_that_are_left_out():
    def stream(sources, named):
        dataset = IndexableDataset(dict.fromkeys("xyz", pixels), sources=sources)
        dataset.default_transformers = uint8_pixels_to_floatX(named)
        return DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(2, 2))

    pixels = numpy.array([[0, 51], [255, 102]], dtype="uint8")

    only_z = stream(("z",), ("x", "y"))
    assert type(only_z) is DataStream
    assert [z.tolist() for (z,) in only_z] == [pixels.tolist()]
    ((x, z),) = stream(("x", "z"), ("x", "y"))
    assert (x.dtype, z.dtype) == ("float32", "uint8")
    with pytest.raises(ValueError, match="names 'w', which the stream below does not have"):
        stream(("z",), ("x", "w"))


def test_arrays_become_bytes_with_labels_that_say_so_and_the_stream_below_keeps_its_own():
    data = {"x": ragged([numpy.array([104, 105], "uint8"), numpy.array([0], "uint8")]), "y": [1, 2]}
    labels = {"x": ("batch", "index"), "y": ("batch",)}
    dataset = IndexableDataset(data, axis_labels=labels)
    batches = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))

    stream = ToBytes(batches, which_sources=("x",))

    assert next(iter(stream))[0] == [b"hi", b"\0"]
    assert stream.axis_labels == {"x": ("batch", "bytes"), "y": ("batch",)}
    assert batches.axis_labels == dataset.axis_labels == labels
    examples = ToBytes(dataset.get_example_stream(), which_sources=("x",))
    assert next(iter(examples))[0] == b"hi"
    assert examples.axis_labels == {"x": ("bytes",), "y": ()}
    unlabelled = IndexableDataset(data).get_example_stream()
    assert ToBytes(unlabelled, which_sources=("x",)).axis_labels == {"x": ("bytes",), "y": None}


def test_encoded_images_of_a_data_set_are_decoded():
    file = io.BytesIO()
    PIL.Image.new("RGB", (4, 3), "orange").save(file, "PNG")
    content = numpy.frombuffer(file.getvalue(), "uint8")
    dataset = IndexableDataset({"x": ragged([content]), "y": [5]})
    dataset.default_transformers = rgb_images_from_encoded_bytes(("x",))

    stream = DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(1, 1))
    (image,), (y,) = next(iter(stream))

    assert image.shape == (3, 3, 4)
    assert image[:, 0, 0].tolist() == [255, 165, 0]
    assert y == 5
    assert stream.axis_labels == {"x": ("batch", "channel", "height", "width"), "y": None}
