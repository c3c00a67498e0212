import numpy

from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers.defaults import uint8_pixels_to_floatX


def test_pixels_become_floats_from_zero_to_one_and_other_sources_stay():
    pixels = numpy.array([[0, 51], [255, 102]], dtype="uint8")
    dataset = IndexableDataset({"x": pixels, "y": pixels})
    dataset.default_transformers = uint8_pixels_to_floatX(("x",))

    stream = DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(2, 2))
    x, y = next(iter(stream))

    assert x.dtype == "float32"
    numpy.testing.assert_allclose(x, [[0, 0.2], [1, 0.4]], rtol=1e-6)
    assert y.dtype == "uint8"
