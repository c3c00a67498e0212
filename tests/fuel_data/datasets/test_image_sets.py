"""Data sets of images, over files that their converters wrote from small originals."""

import original_files as original
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fuel_data.commands.convert import main
from fuel_data.datasets import (
    CIFAR10,
    CIFAR100,
    SVHN,
    BinarizedMNIST,
    CalTech101Silhouettes,
    CelebA,
    DogsVsCats,
)
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream


@pytest.fixture
def converted(tmp_path, monkeypatch):
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))

    def convert(command, files):
        for name, content in files.items():
            content = content if isinstance(content, bytes) else content.encode()
            (tmp_path / name).write_bytes(content)
        arguments = ["-d", str(tmp_path), "-o", str(tmp_path), "--any-version"]
        assert main([*command.split(), *arguments]) == 0

    return convert


def first_batch(dataset, num=2):
    stream = DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(num, num))
    return next(stream.get_epoch_iterator(as_dict=True))


def test_cifar_is_read_as_floats_from_zero_to_one(converted):
    converted("cifar10", {"cifar-10-python.tar.gz": original.cifar10()[0]})
    converted("cifar100", {"cifar-100-python.tar.gz": original.cifar100()[0]})

    for dataset, num_sources in ((CIFAR10(("test",)), 2), (CIFAR100(("test",)), 3)):
        batch = first_batch(dataset)
        assert dataset.load_in_memory and len(batch) == num_sources
        assert batch["features"].dtype == "float32" and batch["features"].shape == (2, 3, 32, 32)
        assert 0.5 < batch["features"].max() <= 1
    pixels = original.cifar10()[1][5][0].reshape(-1, 3, 32, 32)[:2]
    assert_allclose(first_batch(CIFAR10(("test",)))["features"], pixels / 255, rtol=1e-6)


def test_svhn_is_read_from_disk(converted):
    files = {
        f"{split}.tar.gz": original.svhn_1(split, 1)[0] for split in ("train", "test", "extra")
    }
    converted("svhn 1", files)
    converted(
        "svhn 2", {f"{s}_32x32.mat": original.svhn_2(3)[0] for s in ("train", "test", "extra")}
    )

    ragged, plain = SVHN(1, ("train",)), SVHN(2, ("train",))
    assert not ragged.load_in_memory and not plain.load_in_memory
    batch = first_batch(ragged)
    pixels = [original.decoded(png) for png in original.svhn_1("train", 1)[1]]
    for got, expected in zip(batch["features"], pixels, strict=True):
        assert got.dtype == "float32"
        assert_allclose(got, expected / 255, rtol=1e-6)
    assert batch["bbox_labels"][0].dtype == "uint8"
    batch = first_batch(plain)
    assert batch["features"].dtype == "float32" and batch["targets"].dtype == "uint8"


def test_celeba_is_read_from_disk(converted):
    archive, attributes, partition, faces, signs = original.celeba()
    files = {"img_align_celeba.zip": archive, "list_attr_celeba.txt": attributes}
    converted("celeba aligned_cropped", {**files, "list_eval_partition.txt": partition})

    dataset = CelebA("aligned_cropped", ("train",))
    batch = first_batch(dataset)
    assert not dataset.load_in_memory
    assert_allclose(batch["features"][1], original.decoded(faces[1]) / 255, rtol=1e-6)
    assert_array_equal(batch["targets"], signs[:2])


def test_silhouettes_and_binarized_mnist_stay_as_they_are(converted):
    content, arrays = original.silhouettes(28)
    converted("caltech101_silhouettes 28", {"caltech101_silhouettes_28_split1.mat": content})
    texts = {
        f"binarized_mnist_{s}.amat": original.amat(3, 1)[0] for s in ("train", "valid", "test")
    }
    converted("binarized_mnist", texts)

    batch = first_batch(CalTech101Silhouettes(("valid",)))
    assert_array_equal(batch["targets"], arrays["val_labels"][:2])
    batch = first_batch(BinarizedMNIST(("test",)))
    assert_array_equal(batch["features"].reshape(2, -1), original.amat(3, 1)[1][:2])
    assert batch["features"].dtype == "uint8"


def test_dogs_and_cats_keep_their_sizes(converted):
    train, test, *_ = original.dogs_vs_cats()
    converted("dogs_vs_cats", {"dogs_vs_cats.train.zip": train, "dogs_vs_cats.test1.zip": test})

    assert DogsVsCats(("test",)).sources == ("image_features",)
    batch = first_batch(DogsVsCats(("train",)), 6)
    assert len({image.shape for image in batch["image_features"]}) == 3
    assert all(image.dtype == "float32" and image.max() <= 1 for image in batch["image_features"])


@pytest.mark.parametrize(
    ("make", "command"),
    [
        (lambda: CIFAR10(("train",)), "fuel-convert cifar10 -o"),
        (lambda: SVHN(1, ("train",)), "fuel-convert svhn 1 -o"),
        (lambda: CelebA("64", ("train",)), "fuel-convert celeba 64 -o"),
        (
            lambda: CalTech101Silhouettes(("train",), 16),
            "fuel-convert caltech101_silhouettes 16 -o",
        ),
        (lambda: DogsVsCats(("train",)), "fuel-convert dogs_vs_cats -o"),
    ],
)
def test_a_missing_file_is_an_error_with_the_command_that_makes_it(
    tmp_path, monkeypatch, make, command
):
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))

    with pytest.raises(FileNotFoundError, match=command):
        make()


def test_a_format_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="SVHN: `which_format` must be 1 or 2; got 3"):
        SVHN(3, ("train",))
    with pytest.raises(
        ValueError, match="CelebA: `which_format` must be 'aligned_cropped' or '64'"
    ):
        CelebA(64, ("train",))
    with pytest.raises(ValueError, match="CalTech101Silhouettes: `size` must be 16 or 28; got 32"):
        CalTech101Silhouettes(("train",), size=32)
