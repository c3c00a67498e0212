"""Each converter on small files in exactly the format of the published ones."""

import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy
import original_files as original
import pytest
from numpy.testing import assert_array_equal

from fuel_data.commands.convert import main
from fuel_data.config_parser import config
from fuel_data.converters import cifar10, cifar100, svhn
from fuel_data.datasets.hdf5 import H5PYDataset


def write(folder, files):
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def convert(folder, *arguments):
    """Convert by command the files in a folder; they are not the published ones."""
    return main([*arguments, "-d", str(folder), "-o", str(folder), "--any-version"])


def rows(h5file):
    """What the file says of splits: of those available, split, source, start and stop."""
    return [
        (row["split"].decode(), row["source"].decode(), int(row["start"]), int(row["stop"]))
        for row in h5file.attrs["split"]
        if row["available"]
    ]


def labels(dataset):
    return [dimension.label for dimension in dataset.dims]


IMAGE_AXES = ["batch", "channel", "height", "width"]


def test_cifar10(tmp_path):
    archive, batches = original.cifar10()
    write(tmp_path, {"cifar-10-python.tar.gz": archive})

    assert convert(tmp_path, "cifar10") == 0

    with h5py.File(tmp_path / "cifar10.hdf5") as h5file:
        pixels = numpy.concatenate([pixels for pixels, _ in batches])
        # Of a picture, the file has 1,024 red values, row by row, then the green, then the blue.
        assert_array_equal(h5file["features"][:, 1, 2, 3], pixels[:, 1024 + 2 * 32 + 3])
        assert_array_equal(h5file["features"][()].reshape(-1, 3072), pixels)
        assert_array_equal(h5file["targets"][:, 0], sum((labels for _, labels in batches), []))
        assert h5file["features"].dtype == h5file["targets"].dtype == "uint8"
        assert labels(h5file["features"]) == IMAGE_AXES
        assert labels(h5file["targets"]) == ["batch", "index"]
        assert rows(h5file) == [
            ("train", "features", 0, 15),
            ("train", "targets", 0, 15),
            ("test", "features", 15, 18),
            ("test", "targets", 15, 18),
        ]
        inputs = json.loads(h5file.attrs["fuel_convert_inputs"])
        assert inputs == {"cifar-10-python.tar.gz": hashlib.sha256(archive).hexdigest()}


def test_cifar100(tmp_path):
    archive, splits = original.cifar100()
    write(tmp_path, {"cifar-100-python.tar.gz": archive})

    assert convert(tmp_path, "cifar100") == 0

    with h5py.File(tmp_path / "cifar100.hdf5") as h5file:
        for source in ("coarse_labels", "fine_labels"):
            expected = splits["train"][source] + splits["test"][source]
            assert_array_equal(h5file[source], numpy.array(expected)[:, None])
            assert h5file[source].dtype == "uint8" and labels(h5file[source]) == ["batch", "index"]
        assert_array_equal(
            h5file["features"][4:].reshape(4, 3072),
            splits["test"]["data"],
        )
        assert rows(h5file)[:3] == [
            ("train", "coarse_labels", 0, 4),
            ("train", "features", 0, 4),
            ("train", "fine_labels", 0, 4),
        ]


def as_bytes(values):
    """A pickle with keys as encoding='bytes' gives them, and labels as arrays."""
    arrays = {key: numpy.array(values[key]) for key in values if "labels" in key}
    return pickle.dumps({key.encode(): value for key, value in {**values, **arrays}.items()}, 2)


@pytest.mark.parametrize("dumps", [pickle.dumps, as_bytes])
@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_parts_of_cifar_that_python_3_has_pickled_are_the_same(tmp_path, name, dumps):
    archive = f"{name[:5]}-{name[5:]}-python.tar.gz"
    found = []
    for arguments in ({}, {"dumps": dumps}):
        write(tmp_path, {archive: getattr(original, name)(**arguments)[0]})
        assert convert(tmp_path, name) == 0
        with h5py.File(tmp_path / f"{name}.hdf5") as h5file:
            found.append({source: h5file[source][()].tolist() for source in h5file})

    assert found[0] == found[1]


def test_pixels_of_cifar_that_are_no_bytes_are_refused(tmp_path, capsys):
    archive, _ = original.cifar10(
        dumps=lambda values: pickle.dumps({**values, "data": values["data"] / 255})
    )
    write(tmp_path, {"cifar-10-python.tar.gz": archive})

    assert convert(tmp_path, "cifar10") == 1
    expected = (
        r"'data' must be a uint8 array of shape \(image, 3072\); got float64 of shape \(3, 3072"
    )
    assert re.search(expected, capsys.readouterr().err)


@pytest.mark.parametrize("module", [cifar10, cifar100])
def test_cifar_of_another_version_is_refused_by_its_digest(tmp_path, capsys, module):
    name = module.__name__.rpartition(".")[2]
    write(tmp_path, {module.ARCHIVE: getattr(original, name)()[0]})

    assert main([name, "-d", str(tmp_path), "-o", str(tmp_path)]) == 1

    error = capsys.readouterr().err
    assert f"{module.ARCHIVE}/cifar-1" in error
    assert f"the MD5 digest must be {module.BATCHES[0].md5}, it is" in error
    assert "--any-version" in error
    assert sum(batch.num_examples for batch in module.BATCHES) == 60000


def test_binarized_mnist(tmp_path):
    made = {
        name: original.amat(num, seed)
        for seed, (name, num) in enumerate((("train", 3), ("valid", 2), ("test", 1)))
    }
    write(tmp_path, {f"binarized_mnist_{name}.amat": text for name, (text, _) in made.items()})

    assert convert(tmp_path, "binarized_mnist") == 0

    with h5py.File(tmp_path / "binarized_mnist.hdf5") as h5file:
        pixels = numpy.concatenate([pixels for _, pixels in made.values()])
        assert_array_equal(h5file["features"], pixels.reshape(6, 1, 28, 28))
        assert h5file["features"].dtype == "uint8" and labels(h5file["features"]) == IMAGE_AXES
        assert rows(h5file) == [
            ("train", "features", 0, 3),
            ("valid", "features", 3, 5),
            ("test", "features", 5, 6),
        ]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-2], "1,568 bytes for each image, .* its 3,134 bytes are no multiple"),
        (lambda text: text.replace(b"1", b"2", 1), "784 digits, 0 or 1"),
        (lambda text: text.replace(b" ", b",", 1), "with a space between"),
        (lambda text: b"", "expected 10,000 images, found 0"),
    ],
)
def test_another_text_is_no_binarized_mnist(tmp_path, capsys, damage, message):
    text, _ = original.amat(2, seed=1)
    names = [f"binarized_mnist_{name}.amat" for name in ("train", "valid", "test")]
    write(tmp_path, dict.fromkeys(names, text))
    write(tmp_path, {names[2]: damage(text)})

    assert convert(tmp_path, "binarized_mnist") == 1
    error = capsys.readouterr().err
    assert names[2] in error
    assert re.search(message, error)


@pytest.mark.parametrize("size", [16, 28])
def test_silhouettes_stand_upright(tmp_path, size):
    content, arrays = original.silhouettes(size)
    write(tmp_path, {f"caltech101_silhouettes_{size}_split1.mat": content})

    assert convert(tmp_path, "caltech101_silhouettes", str(size)) == 0

    with h5py.File(tmp_path / f"caltech101_silhouettes{size}.hdf5") as h5file:
        # The file lists an image column by column: row 2 of column 1 is value `size` + 2.
        assert_array_equal(h5file["features"][:5, 0, 2, 1], arrays["train_data"][:, size + 2])
        assert_array_equal(
            h5file["features"][5:9, 0],
            arrays["val_data"].reshape(-1, size, size, order="C").transpose(0, 2, 1),
        )
        assert_array_equal(h5file["targets"][9:], arrays["test_labels"])
        assert labels(h5file["features"]) == IMAGE_AXES
        assert [row for row in rows(h5file) if row[1] == "targets"] == [
            ("train", "targets", 0, 5),
            ("valid", "targets", 5, 9),
            ("test", "targets", 9, 12),
        ]


def test_svhn_of_format_2(tmp_path):
    made = {name: original.svhn_2(num) for name, num in (("train", 4), ("test", 3), ("extra", 2))}
    write(tmp_path, {f"{name}_32x32.mat": content for name, (content, *_) in made.items()})

    assert convert(tmp_path, "svhn", "2") == 0

    with h5py.File(tmp_path / "svhn_format_2.hdf5") as h5file:
        pixels = numpy.concatenate([pixels.transpose(3, 2, 0, 1) for _, pixels, _ in made.values()])
        digits = numpy.concatenate([digits for *_, digits in made.values()])
        assert_array_equal(h5file["features"], pixels)
        assert_array_equal(h5file["targets"], digits % 10)
        assert (digits == 10).any()
        assert h5file["features"].dtype == h5file["targets"].dtype == "uint8"
        assert labels(h5file["features"]) == IMAGE_AXES
        assert rows(h5file)[::2] == [
            ("train", "features", 0, 4),
            ("test", "features", 4, 7),
            ("extra", "features", 7, 9),
        ]


def test_svhn_of_format_2_is_known_by_its_digest(tmp_path, capsys):
    write(tmp_path, dict.fromkeys(svhn.DIGESTS, original.svhn_2(2)[0]))

    assert main(["svhn", "2", "-d", str(tmp_path), "-o", str(tmp_path)]) == 1
    assert "train_32x32.mat: the SHA256 digest of the published file is 435e94d6" in (
        capsys.readouterr().err
    )


def test_svhn_of_format_1(tmp_path):
    made = {
        name: original.svhn_1(name, 10 * n) for n, name in enumerate(("train", "test", "extra"))
    }
    write(tmp_path, {f"{name}.tar.gz": content for name, (content, _) in made.items()})

    assert convert(tmp_path, "svhn", "1") == 0

    dataset = H5PYDataset(tmp_path / "svhn_format_1.hdf5", ("train", "test", "extra"))
    state = dataset.open()
    found = dict(zip(dataset.sources, dataset.get_data(state, slice(0, 6)), strict=True))
    dataset.close(state)
    pngs = [png for _, of_split in made.values() for png in of_split]
    for got, png in zip(found["features"], pngs, strict=True):
        assert_array_equal(got, original.decoded(png))
    # The second image has two digits; a box that begins outside begins at 0; 10 stands for 0.
    assert [values.tolist() for values in found["bbox_labels"]] == [[0], [1, 9]] * 3
    assert [values.tolist() for values in found["bbox_lefts"]] == [[0], [1, 7]] * 3
    assert [values.tolist() for values in found["bbox_heights"]] == [[5], [5, 6]] * 3
    assert found["bbox_labels"][0].dtype == "uint8" and found["bbox_tops"][0].dtype == "uint16"
    assert dataset.axis_labels["features"] == tuple(IMAGE_AXES)
    assert dataset.axis_labels["bbox_widths"] == ("batch", "bounding_box")
    with h5py.File(tmp_path / "svhn_format_1.hdf5") as h5file:
        assert len(h5file.attrs["split"]) == 18
        assert h5file["features_shapes"].dtype == "uint16"


@pytest.mark.parametrize(("which", "height"), [("aligned_cropped", 218), ("64", 64)])
def test_celeba(tmp_path, which, height):
    archive, attributes, partition, faces, signs = original.celeba()
    names = ("img_align_celeba.zip", "list_attr_celeba.txt", "list_eval_partition.txt")
    write(tmp_path, dict(zip(names, (archive, attributes, partition), strict=True)))

    assert convert(tmp_path, "celeba", which) == 0

    with h5py.File(tmp_path / f"celeba_{which}.hdf5") as h5file:
        assert h5file["features"].shape == (5, 3, height, 178 if height == 218 else 64)
        assert_array_equal(h5file["targets"], signs)
        assert h5file["features"].dtype == h5file["targets"].dtype == "uint8"
        assert labels(h5file["features"]) == IMAGE_AXES
        assert rows(h5file)[::2] == [
            ("train", "features", 0, 3),
            ("valid", "features", 3, 4),
            ("test", "features", 4, 5),
        ]
        for got, face in zip(h5file["features"], faces, strict=True):
            if which == "aligned_cropped":
                assert_array_equal(got, original.decoded(face))
            else:
                # The 64 rows in the middle of 78, so from 7/78 to 71/78 of the height.
                middle = original.decoded(face)[:, 20:198].astype("float64")
                rough = middle[:, ::1, ::1].mean(axis=(1, 2))
                numpy.testing.assert_allclose(got.mean(axis=(1, 2)), rough, atol=3)


@pytest.mark.parametrize(
    ("line", "other"), [("000005.jpg 2", "000005.jpg 3"), ("000003.jpg 0", "000003.jpg")]
)
def test_a_face_in_no_split_is_refused(tmp_path, capsys, line, other):
    archive, attributes, partition, *_ = original.celeba()
    partition = partition.replace(line, other)
    names = ("img_align_celeba.zip", "list_attr_celeba.txt", "list_eval_partition.txt")
    write(tmp_path, dict(zip(names, (archive, attributes, partition), strict=True)))

    assert convert(tmp_path, "celeba", "64") == 1
    assert "with its split, 0, 1 or 2, in increasing order" in capsys.readouterr().err


def test_dogs_vs_cats(tmp_path):
    train_zip, test_zip, train, test = original.dogs_vs_cats()
    write(tmp_path, {"dogs_vs_cats.train.zip": train_zip, "dogs_vs_cats.test1.zip": test_zip})

    assert convert(tmp_path, "dogs_vs_cats") == 0

    names = list(train)
    numpy.random.RandomState(123522).shuffle(names)
    dataset = H5PYDataset(tmp_path / "dogs_vs_cats.hdf5", ("train",))
    assert dataset.sources == ("image_features", "targets")
    state = dataset.open()
    images, targets = dataset.get_data(state, slice(0, 6))
    dataset.close(state)
    assert_array_equal(targets[:, 0], ["dog" in name for name in names])
    for got, name in zip(images, names, strict=True):
        assert_array_equal(got, original.decoded(train[name]))
    with h5py.File(tmp_path / "dogs_vs_cats.hdf5") as h5file:
        numbers = (1, 2, 10)
        shapes = [original.decoded(test[f"test1/{number}.jpg"]).shape for number in numbers]
        assert h5file["image_features_shapes"][6:].tolist() == list(map(list, shapes))
        assert h5file["image_features_shapes"].dtype == "int32"
        assert rows(h5file) == [
            ("train", "image_features", 0, 6),
            ("train", "targets", 0, 6),
            ("test", "image_features", 6, 9),
        ]


@pytest.mark.parametrize("year", [2010, 2012])
def test_ilsvrc(tmp_path, year):
    files, splits = original.ilsvrc(year)
    write(tmp_path, files)

    assert convert(tmp_path, f"ilsvrc{year}", "--shuffle-seed", "3") == 0

    order = numpy.random.RandomState(3).permutation(5)
    train = {int(order[place]): name for place, name in enumerate(splits["train"])}
    names = [train[place] for place in range(5)]
    names += sorted(splits["valid"]) + sorted(splits["test"])
    images = {name: content for split in splits.values() for name, content in split.items()}
    # Image 1 of the validation is of the second class, image 2 of the first.
    targets = [int(name.startswith("n02")) for name in names[:5]] + [1, 0] + [0, 1, 1]
    with h5py.File(tmp_path / f"ilsvrc{year}.hdf5") as h5file:
        assert [bytes(content) for content in h5file["encoded_images"]] == [
            images[name] for name in names
        ]
        assert_array_equal(h5file["filenames"][:, 0], [name.encode() for name in names])
        expected = targets if year == 2010 else targets[:7]
        assert_array_equal(h5file["targets"][:, 0], expected)
        assert h5file["targets"].dtype == "int16" and h5file["filenames"].dtype == "S32"
        found = rows(h5file)
        assert [row for row in found if row[1] == "encoded_images"] == [
            ("train", "encoded_images", 0, 5),
            ("valid", "encoded_images", 5, 7),
            ("test", "encoded_images", 7, 10),
        ]
        assert (("test", "targets", 7, 10) in found) == (year == 2010)


def test_without_a_seed_the_order_of_ilsvrc_is_that_of_the_setting_at_that_time(
    tmp_path, monkeypatch
):
    files, _ = original.ilsvrc(2012)
    write(tmp_path, files)

    def names(*arguments):
        assert convert(tmp_path, "ilsvrc2012", *arguments) == 0
        with h5py.File(tmp_path / "ilsvrc2012.hdf5") as h5file:
            return h5file["filenames"][:5, 0].tolist()

    orders = []
    for seed in (3, 4):
        monkeypatch.setattr(config, "default_seed", seed)
        orders.append(names())
        assert orders[-1] == names("--shuffle-seed", str(seed))

    assert orders[0] != orders[1]


def test_the_test_images_of_2012_have_two_names(tmp_path, capsys):
    files, _ = original.ilsvrc(2012)
    files["ILSVRC2012_img_test_v10102019.tar"] = files.pop("ILSVRC2012_img_test.tar")
    del files["ILSVRC2012_img_val.tar"]
    write(tmp_path, files)

    assert main(["ilsvrc2012", "-d", str(tmp_path), "-o", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert f"Not in the folder '{tmp_path}': ILSVRC2012_img_val.tar. Get them by" in error


@pytest.mark.parametrize(
    ("command", "download", "files"),
    [
        ("cifar10", "cifar10", ["cifar-10-python.tar.gz"]),
        ("binarized_mnist", "binarized_mnist", ["binarized_mnist_train.amat"]),
        ("svhn 1", "svhn 1", ["train.tar.gz", "extra.tar.gz"]),
        ("celeba 64", "celeba", ["img_align_celeba.zip", "list_attr_celeba.txt"]),
        (
            "caltech101_silhouettes 28",
            "caltech101_silhouettes 28",
            ["caltech101_silhouettes_28_split1.mat"],
        ),
        ("dogs_vs_cats", "dogs_vs_cats", ["dogs_vs_cats.train.zip"]),
        ("ilsvrc2010", "ilsvrc2010", ["patch_images.tar", "ILSVRC2010_test_ground_truth.txt"]),
    ],
)
def test_missing_files_are_named_with_the_way_to_get_them(
    tmp_path, capsys, command, download, files
):
    assert main([*command.split(), "-d", str(tmp_path), "-o", str(tmp_path)]) == 1

    error = capsys.readouterr().err
    assert all(file in error for file in files)
    assert f"Get them by `fuel-download {download} -d {tmp_path}`, or say" in error


CONVERT_ALL = """
import sys
from fuel_data.commands.convert import main

for arguments in %r:
    assert main([*arguments, "-d", sys.argv[1], "-o", ".", "--any-version"]) == 0
"""


def test_the_same_files_give_the_same_bytes_whatever_the_hash_seed(tmp_path):
    commands = [["cifar10"], ["svhn", "1"], ["svhn", "2"], ["celeba", "64"], ["dogs_vs_cats"]]
    commands += [["ilsvrc2010"], ["caltech101_silhouettes", "16"], ["binarized_mnist"]]
    commands += [["cifar100"], ["ilsvrc2012"]]
    archive, attributes, partition, *_ = original.celeba()
    train, test, *_ = original.dogs_vs_cats()
    files = {"img_align_celeba.zip": archive, "list_attr_celeba.txt": attributes}
    files |= {"list_eval_partition.txt": partition, "dogs_vs_cats.train.zip": train}
    files |= {"dogs_vs_cats.test1.zip": test, "cifar-10-python.tar.gz": original.cifar10()[0]}
    files |= {"cifar-100-python.tar.gz": original.cifar100()[0]}
    files |= {"caltech101_silhouettes_16_split1.mat": original.silhouettes(16)[0]}
    for split in ("train", "test", "extra"):
        files[f"{split}.tar.gz"] = original.svhn_1(split, 1)[0]
        files[f"{split}_32x32.mat"] = original.svhn_2(3)[0]
    for split in ("train", "valid", "test"):
        files[f"binarized_mnist_{split}.amat"] = original.amat(2, 5)[0]
    for year in (2010, 2012):
        files |= original.ilsvrc(year)[0]
    write(tmp_path, files)
    found = []
    for seed in ("0", "1", "77"):
        (tmp_path / seed).mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "0"}
        subprocess.run(
            [sys.executable, "-c", CONVERT_ALL % (commands,), str(tmp_path)],
            cwd=tmp_path / seed,
            env={**environment, "PYTHONPATH": str(Path(__file__).parents[3])},
            check=True,
            capture_output=True,
        )
        found.append(
            {
                path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in (tmp_path / seed).iterdir()
            }
        )

    assert len(found[0]) == len(commands)
    assert found[0] == found[1] == found[2]
