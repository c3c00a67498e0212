import os

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.base import check_exists, fill_hdf5_file, new_hdf5_file
from fuel_data.datasets import H5PYDataset
from fuel_data.exceptions import MissingInputFiles

X = numpy.arange(12, dtype="int16").reshape(6, 2)
Y = numpy.arange(6, dtype="uint8")


@pytest.fixture
def h5file(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as h5file:
        yield h5file


def test_a_converter_runs_only_if_its_files_are_there(tmp_path):
    @check_exists(required_files=["a", "b", "c"])
    def convert(directory, output_directory):
        return (directory, output_directory)

    (tmp_path / "b").touch()
    with pytest.raises(MissingInputFiles) as raised:
        convert(tmp_path, "out")
    assert raised.value.filenames == ["a", "c"]
    (tmp_path / "a").touch()
    (tmp_path / "c").touch()
    assert convert(tmp_path, "out") == (tmp_path, "out")


@pytest.mark.parametrize(("split", "source"), [("", "x"), ("train", "")])
def test_a_split_or_source_without_a_name_is_refused(h5file, split, source):
    with pytest.raises(ValueError, match=f"names; got split '{split}' with source '{source}'"):
        fill_hdf5_file(h5file, [(split, source, X)])


def test_arrays_of_a_source_follow_each_other_in_the_file(h5file):
    written = []

    fill_hdf5_file(
        h5file,
        [
            ("train", "x", X[:4]),
            ("train", "y", Y[:4], "a comment"),
            ("test", "x", X[4:]),
        ],
        {"x": ("batch", "index")},
        written.append,
    )

    assert_array_equal(h5file["x"], X)
    assert_array_equal(h5file["y"], Y[:4])
    assert (h5file["x"].dtype, h5file["y"].dtype) == ("int16", "uint8")
    assert h5file["x"].id.get_create_plist().get_layout() == h5py.h5d.CONTIGUOUS
    assert [dim.label for dim in h5file["x"].dims] == ["batch", "index"]
    rows = h5file.attrs["split"]
    assert rows[["split", "source", "start", "stop", "available", "comment"]].tolist() == [
        (b"train", b"x", 0, 4, True, b"."),
        (b"train", b"y", 0, 4, True, b"a comment"),
        (b"test", b"x", 4, 6, True, b"."),
        (b"test", b"y", 0, 0, False, b"."),
    ]
    assert sum(written) == X.nbytes + Y[:4].nbytes


def test_arrays_may_come_one_after_the_other(h5file):
    fill_hdf5_file(h5file, (entry for entry in [("train", "x", X[:4]), ("test", "x", X[4:])]))

    assert_array_equal(h5file["x"], X)


def test_large_arrays_are_written_in_pieces(h5file, monkeypatch):
    monkeypatch.setattr("fuel_data.converters.sources.PIECE_BYTES", 9)
    written = []

    fill_hdf5_file(h5file, [("train", "x", X)], progress=written.append)

    assert written == [8, 8, 8]
    assert_array_equal(h5file["x"], X)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([("a", "x", X), ("a", "y", Y[:5])], "sources of split 'a' must have equal lengths"),
        ([("a", "x", X), ("b", "x", X.astype("int32"))], "'x' must have one dtype and shape"),
        ([("a", "x", X), ("b", "x", X[:, :1])], "'x' must have one dtype and shape"),
        ([("a", "x", X), ("a", "x", X)], "Split 'a' has source 'x' twice"),
        ([], "has to name a split and a source"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(h5file, data, message):
    with pytest.raises(ValueError, match=message):
        fill_hdf5_file(h5file, data)


def test_labels_that_do_not_fit_are_refused(h5file):
    with pytest.raises(ValueError, match="Source 'x' has 2 axes, so it needs as many labels"):
        fill_hdf5_file(h5file, [("a", "x", X)], {"x": ("batch",)})
    del h5file["x"]
    with pytest.raises(ValueError, match="'z', which is no source. Known: x"):
        fill_hdf5_file(h5file, [("a", "x", X)], {"z": ("batch",)})


def test_more_splits_than_an_attribute_holds_are_refused_in_words(h5file):
    data = [(f"split number {number}", "x", X) for number in range(2000)]

    with pytest.raises(ValueError, match="2000 pairs of split and source do not fit into the 64 K"):
        fill_hdf5_file(h5file, data)


def test_a_new_file_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "x.hdf5"
    path.write_text("old")

    with pytest.raises(KeyError), new_hdf5_file(path) as h5file:
        h5file["x"] = X
        raise KeyError
    assert path.read_text() == "old"

    with new_hdf5_file(path) as h5file:
        h5file["x"] = X
    with h5py.File(path) as h5file:
        assert_array_equal(h5file["x"], X)
    assert os.listdir(tmp_path) == ["x.hdf5"]


@pytest.mark.parametrize("lengths", [[1, 1], [2, 2, 2], [3], [0, 0], [1, 2]])
def test_vectors_of_one_length_stay_apart_in_a_ragged_source(tmp_path, lengths):
    vectors = numpy.empty(len(lengths), dtype=object)
    for index, length in enumerate(lengths):
        vectors[index] = numpy.arange(10 * index, 10 * index + length)

    with new_hdf5_file(tmp_path / "x.hdf5") as file:
        fill_hdf5_file(file, [("train", "x", vectors)])

    with h5py.File(tmp_path / "x.hdf5") as file:
        assert [x.tolist() for x in file["x"]] == [x.tolist() for x in vectors]


@pytest.mark.parametrize("make", [new_hdf5_file, lambda path: h5py.File(path, "w")])
def test_more_may_be_written_after_the_arrays_as_in_fuel(tmp_path, make):
    with make(tmp_path / "x.hdf5") as h5file:
        fill_hdf5_file(h5file, [("train", "x", numpy.arange(4)), ("test", "x", numpy.arange(2))])
        h5file["x"].dims[0].label = "batch"
        h5file["x"][5] = 7

    dataset = H5PYDataset(tmp_path / "x.hdf5", ("test",))

    assert dataset.axis_labels == {"x": ("batch",)}
    assert dataset.get_data(request=[0, 1])[0].tolist() == [0, 7]
