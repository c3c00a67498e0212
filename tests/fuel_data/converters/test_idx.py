import gzip
import hashlib
import json
import tracemalloc

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.idx import IdxFile, convert_idx, default_name, find_files, read_idx
from fuel_data.exceptions import MissingInputFiles

IMAGES = numpy.random.default_rng(1).integers(0, 256, (7, 3, 2), dtype="uint8")
IMAGES[0, 0] = 127, 128
LABELS = numpy.array([3, 1, 4, 1, 5, 9, 2], dtype="uint8")


def idx_bytes(array):
    """The format by hand: zeros, type, number of axes, sizes from the big end, values."""
    header = b"\x00\x00\x08" + bytes([array.ndim])
    for size in array.shape:
        header += bytes([0, 0, 0, size])
    return header + array.tobytes()


def described(split, source, name, array):
    md5 = hashlib.md5(idx_bytes(array)).hexdigest()
    return IdxFile(split, source, name, array.shape, md5)


FILES = (
    described("train", "features", "train-images-idx3-ubyte", IMAGES[:5]),
    described("train", "targets", "train-labels-idx1-ubyte", LABELS[:5]),
    described("test", "features", "t10k-images-idx3-ubyte", IMAGES[5:]),
    described("test", "targets", "t10k-labels-idx1-ubyte", LABELS[5:]),
)
PARTS = (IMAGES[:5], LABELS[:5], IMAGES[5:], LABELS[5:])


@pytest.fixture
def folder(tmp_path):
    for number, (file, part) in enumerate(zip(FILES, PARTS, strict=True)):
        if number % 2:
            (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(idx_bytes(part)))
        else:
            (tmp_path / file.name).write_bytes(idx_bytes(part))
    (tmp_path / "out").mkdir()
    return tmp_path


def test_packed_and_unpacked_files_are_converted(folder):
    (path,) = convert_idx(FILES, folder, folder / "out", "x.hdf5")

    with h5py.File(path) as h5file:
        assert_array_equal(h5file["features"], IMAGES[:, None])
        assert_array_equal(h5file["targets"], LABELS[:, None])
        assert h5file["features"].dtype == h5file["targets"].dtype == "uint8"
        assert [dim.label for dim in h5file["features"].dims] == [
            "batch",
            "channel",
            "height",
            "width",
        ]
        assert [dim.label for dim in h5file["targets"].dims] == ["batch", "index"]
        assert h5file.attrs["split"][["split", "source", "start", "stop"]].tolist() == [
            (b"train", b"features", 0, 5),
            (b"train", b"targets", 0, 5),
            (b"test", b"features", 5, 7),
            (b"test", b"targets", 5, 7),
        ]
        assert sorted(json.loads(h5file.attrs["fuel_convert_inputs"])) == [
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte.gz",
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte.gz",
        ]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", IMAGES.astype("float32") / numpy.float32(255)),
        ("float64", IMAGES / 255),
        ("bool", IMAGES > 127),
    ],
)
def test_images_are_stored_in_the_type_asked_for(folder, dtype, expected):
    (path,) = convert_idx(FILES, folder, folder / "out", "x.hdf5", dtype=dtype)

    with h5py.File(path) as h5file:
        assert h5file["features"].dtype == dtype
        assert_array_equal(h5file["features"][:, 0], expected)
        assert h5file["targets"].dtype == "uint8"


def test_the_name_of_the_file_has_the_type():
    assert default_name("mnist", None) == "mnist.hdf5"
    assert default_name("mnist", "bool") == "mnist_bool.hdf5"


def test_one_of_the_files_may_stand_for_their_folder(folder):
    found = find_files(FILES, folder / FILES[0].name)

    assert found[0] == str(folder / FILES[0].name)
    assert found[1] == str(folder / f"{FILES[1].name}.gz")


def test_all_missing_files_are_named(folder):
    (folder / FILES[0].name).unlink()
    (folder / f"{FILES[3].name}.gz").unlink()

    with pytest.raises(MissingInputFiles) as raised:
        convert_idx(FILES, folder, folder / "out", "x.hdf5")

    assert raised.value.filenames == [f"{FILES[0].name}[.gz]", f"{FILES[3].name}[.gz]"]
    assert str(folder) in str(raised.value)


RIGHT = idx_bytes(IMAGES[:5])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (RIGHT[:-1], "expected 30 bytes of values for the shape .5, 3, 2., got 29"),
        (RIGHT + b"x", "expected 30 bytes .* got more"),
        (RIGHT[:20], "got 4"),
        (RIGHT[:9], "begins with .* and 3 sizes; this one begins with"),
        (b"", "this one begins with b''"),
        (b"<html>not found</html>", "this one begins with b'<html>not found<"),
        (idx_bytes(LABELS), "with 3 axes begins with"),
        (idx_bytes(IMAGES), "expected the shape .5, 3, 2., the header says .7, 3, 2."),
        (idx_bytes(IMAGES[1:6]), "MD5 digest of the unpacked file must be [0-9a-f]{32}, it is"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_another_file_is_refused_by_name(tmp_path, content, message, suffix):
    path = tmp_path / f"images{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)

    with pytest.raises(ValueError, match=f"^{path}.* {message}"):
        read_idx(path, FILES[0])


@pytest.mark.parametrize(
    "damaged",
    [
        gzip.compress(RIGHT)[:-6],
        gzip.compress(RIGHT)[:30],
        gzip.compress(RIGHT)[:-8] + b"\x00" * 8,
        RIGHT,
    ],
    ids=["cut at the end", "cut", "wrong check sum", "not packed"],
)
def test_a_damaged_packed_file_is_refused_by_name(tmp_path, damaged):
    path = tmp_path / "images.gz"
    path.write_bytes(damaged)

    with pytest.raises(ValueError, match=f"^{path} cannot be read: .* Fetch the file again"):
        read_idx(path, FILES[0])


def test_no_memory_is_taken_for_more_than_is_expected(tmp_path):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(RIGHT + bytes(50_000_000)))
    tracemalloc.start()

    with pytest.raises(ValueError, match="got more"):
        read_idx(path, FILES[0])

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
