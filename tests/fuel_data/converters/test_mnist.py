"""MNIST and Fashion-MNIST, whose files are not here: what is known of them, and the way to them."""

import argparse
import hashlib
import os

import pytest

from fuel_data.commands.convert import main
from fuel_data.converters import fashion_mnist, mnist
from fuel_data.converters.idx import IdxFile, mnist_converter


@pytest.mark.parametrize("module", [mnist, fashion_mnist])
def test_the_files_have_the_original_names_and_shapes(module):
    assert [(file.split, file.source, file.name, file.shape) for file in module.FILES] == [
        ("train", "features", "train-images-idx3-ubyte", (60000, 28, 28)),
        ("train", "targets", "train-labels-idx1-ubyte", (60000,)),
        ("test", "features", "t10k-images-idx3-ubyte", (10000, 28, 28)),
        ("test", "targets", "t10k-labels-idx1-ubyte", (10000,)),
    ]
    assert all(len(file.md5) == 32 for file in module.FILES)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_missing_files_are_listed_with_the_way_to_get_them(tmp_path, capsys, name):
    assert main([name, "-d", str(tmp_path), "-o", str(tmp_path / "out")]) == 1

    error = capsys.readouterr().err
    assert error.startswith(f"fuel-convert {name}: Not in the folder '{tmp_path}': train-images-")
    assert error.count("[.gz]") == 4
    assert f"Get them by `fuel-download {name} -d {tmp_path}`" in error
    assert list((tmp_path / "out").iterdir()) == []


def test_the_converter_writes_the_named_file(tmp_path):
    images = b"\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01\x07\x85"
    labels = b"\x00\x00\x08\x01\x00\x00\x00\x02\x07\x05"
    files = (
        IdxFile("test", "features", "images", (2, 1, 1), hashlib.md5(images).hexdigest()),
        IdxFile("test", "targets", "labels", (2,), hashlib.md5(labels).hexdigest()),
    )
    (tmp_path / "images").write_bytes(images)
    (tmp_path / "labels").write_bytes(labels)
    convert, _ = mnist_converter("toy", files)

    written = [
        *convert(tmp_path, tmp_path),
        *convert(tmp_path, tmp_path, dtype="bool"),
        *convert(tmp_path, tmp_path, "named.hdf5"),
    ]

    assert written == [str(tmp_path / name) for name in ("toy.hdf5", "toy_bool.hdf5", "named.hdf5")]
    assert all(os.path.isfile(path) for path in written)


@pytest.mark.parametrize(("name", "module"), [("mnist", mnist), ("fashion_mnist", fashion_mnist)])
def test_the_function_and_the_command_are_one_converter(name, module):
    parser = argparse.ArgumentParser()

    assert module.fill_subparser(parser) is getattr(module, f"convert_{name}")
    assert parser.parse_args(["--dtype", "bool"]).dtype == "bool"
