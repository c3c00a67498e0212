import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.digits import convert_digits
from fuel_data.datasets.digits import Digits
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream


@pytest.fixture
def data_path(tmp_path, monkeypatch):
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))
    monkeypatch.setenv("FUEL_FLOATX", "float32")
    return tmp_path


def test_the_default_stream_gives_float_images_from_zero_to_one(data_path):
    convert_digits(None, data_path)
    dataset = Digits(("test",))
    raw, _ = dataset.get_data(None, slice(0, 100))

    stream = DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(360, 100))
    features, targets = next(stream.get_epoch_iterator())

    assert features.dtype == numpy.float32
    assert_array_equal(features, raw / numpy.float32(16))
    assert (targets.dtype, targets.shape) == (numpy.uint8, (100, 1))
    assert stream.axis_labels["features"] == ("batch", "channel", "height", "width")


def test_it_is_in_memory_unless_told_otherwise(data_path):
    convert_digits(None, data_path)

    assert Digits(("train",)).load_in_memory
    dataset = Digits(("train", "test"), load_in_memory=False, sources=("targets",))
    assert not dataset.load_in_memory
    assert (dataset.num_examples, dataset.sources) == (1797, ("targets",))


def test_a_file_that_is_not_converted_yet_is_an_error_with_the_command(data_path):
    with pytest.raises(FileNotFoundError, match=f"Digits: .*fuel-convert digits -o {data_path}"):
        Digits(("train",))


def test_an_unknown_argument_is_refused_with_the_nearest(data_path):
    with pytest.raises(TypeError, match="Digits: .* 'load_in_memry'. Did you mean 'load_in_memory"):
        Digits(("train",), load_in_memry=True)
