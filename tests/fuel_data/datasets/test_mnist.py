import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.base import fill_hdf5_file
from fuel_data.datasets.fashion_mnist import FashionMNIST
from fuel_data.datasets.mnist import MNIST
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream

IMAGES = numpy.random.default_rng(3).integers(0, 256, (6, 1, 28, 28), dtype="uint8")
CLASSES = numpy.arange(6, dtype="uint8")[:, None]


@pytest.mark.parametrize(
    ("dataset_class", "name"), [(MNIST, "mnist"), (FashionMNIST, "fashion_mnist")]
)
def test_the_default_stream_gives_float_images_from_zero_to_one(
    tmp_path, monkeypatch, dataset_class, name
):
    monkeypatch.setenv("FUEL_DATA_PATH", "")
    with pytest.raises(FileNotFoundError, match=f"path is empty. .*-convert {name} -o FOLDER`"):
        dataset_class(("train",))
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))
    monkeypatch.setenv("FUEL_FLOATX", "float32")
    with pytest.raises(FileNotFoundError, match=f"`fuel-convert {name} -o {tmp_path}` makes it"):
        dataset_class(("train",))
    with h5py.File(tmp_path / f"{name}.hdf5", "w") as h5file:
        fill_hdf5_file(h5file, [("test", "features", IMAGES), ("test", "targets", CLASSES)])
    dataset = dataset_class(("test",))
    assert dataset.load_in_memory

    stream = DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(6, 4))
    features, targets = next(stream.get_epoch_iterator())

    assert features.dtype == numpy.float32
    assert_array_equal(features, (IMAGES[:4] / 255).astype("float32"))
    assert_array_equal(targets, CLASSES[:4])
