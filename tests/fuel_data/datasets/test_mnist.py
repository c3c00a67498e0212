import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.base import fill_hdf5_file
from fuel_data.datasets import (
    MNIST,
    SVHN,
    CalTech101Silhouettes,
    CelebA,
    DogsVsCats,
    FashionMNIST,
)
from fuel_data.datasets.imagenet import ILSVRC2012
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
    with pytest.raises(ValueError, match="the stream needs an `iteration_scheme`. Give one, or"):
        DataStream(dataset)

    stream = DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(6, 4))
    features, targets = next(stream.get_epoch_iterator())

    assert features.dtype == numpy.float32
    assert_array_equal(features, (IMAGES[:4] / 255).astype("float32"))
    assert_array_equal(targets, CLASSES[:4])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MNIST(), r"MNIST: `which_sets` must name .*Write which_sets=\('train',\)"),
        (lambda: MNIST(which_set="test"), r"MNIST: `which_sets` must .*which_sets=\('test',\)"),
        (lambda: SVHN(2, which_set="extra"), r"SVHN: `which_sets` .*which_sets=\('extra',\)"),
        (lambda: CelebA("64"), "CelebA: `which_sets` must name the splits"),
        (lambda: CalTech101Silhouettes(size=16), "CalTech101Silhouettes: `which_sets` must name"),
        (lambda: DogsVsCats(), "DogsVsCats: `which_sets` must name the splits"),
        (lambda: ILSVRC2012(), "ILSVRC2012: `which_sets` must name the splits"),
    ],
)
def test_who_names_no_splits_or_names_one_in_fuels_old_way_is_told_how(make, words):
    with pytest.raises(TypeError, match=f"^{words}"):
        make()
