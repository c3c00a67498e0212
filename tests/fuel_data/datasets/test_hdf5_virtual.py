"""Data sets whose values are in several files."""

import os
import pickle
import shutil

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.datasets import H5PYDataset, PlainHDF5Dataset
from fuel_data.datasets.hdf5_reading import SourceReader

VALUES = numpy.arange(90 * 4, dtype="int16").reshape(90, 4)


def write(folder, interleaved=False):
    """A file whose 90 examples are in three others, the last one compressed."""
    layout = h5py.VirtualLayout((90, 4), "int16")
    for number in range(3):
        path = folder / f"part {number}.hdf5"
        rows = slice(number, None, 3) if interleaved else slice(number * 30, number * 30 + 30)
        options = {"chunks": (8, 4), "compression": "gzip"} if number == 2 else {}
        with h5py.File(path, "w") as file:
            # Examples that nobody asks for stand before and behind.
            padded = numpy.pad(VALUES[rows], [(5, 2), (0, 0)], constant_values=-1)
            file.create_dataset("x", data=padded, **options)
            layout[rows] = h5py.VirtualSource(path.name, "x", (37, 4))[5:35]
    with h5py.File(folder / "all.hdf5", "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout, fillvalue=99)
        file.attrs["split"] = H5PYDataset.create_split_array({"train": {"x": (0, 90)}})
    return folder / "all.hdf5"


REQUESTS = [0, 89, slice(0, 90), slice(25, 35), numpy.array([89, 0, 31, 31, 60])]


@pytest.mark.parametrize("interleaved", [False, True])
def test_examples_come_from_all_files(tmp_path, interleaved):
    path = write(tmp_path, interleaved)

    with h5py.File(path) as file:
        reader = SourceReader(file["x"])
        assert reader.way == ("h5py" if interleaved else "parts")
        for request in REQUESTS:
            assert_array_equal(reader.read(request), VALUES[request])


def test_a_data_set_over_many_files_may_move_with_them(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    dataset = H5PYDataset(write(folder), ("train",))
    shutil.move(folder, tmp_path / "there")
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path / "there"))

    (values,) = dataset.get_data(None, [61, 2])

    assert_array_equal(values, VALUES[[61, 2]])


def test_a_missing_file_is_an_error_and_no_fill_value(tmp_path):
    path = write(tmp_path)
    os.remove(tmp_path / "part 1.hdf5")

    with pytest.raises(ValueError, match="'part 1.hdf5', which is not there. Put it back as"):
        H5PYDataset(path, ("train",))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_file_with_too_few_examples_is_an_error_and_no_other_examples(
    tmp_path, interleaved, number
):
    path = write(tmp_path, interleaved)
    with h5py.File(tmp_path / f"part {number}.hdf5", "r+") as file:
        few = file["x"][:20]
        options = {"compression": file["x"].compression}
        del file["x"]
        file.create_dataset("x", data=few, **options)

    message = (
        rf"all.hdf5: /x wants values of .*part {number}.hdf5: /x up to shape \(35, 4\), which "
        r"has shape \(20, 4\). Put the whole file back."
    )
    with pytest.raises(ValueError, match=message):
        H5PYDataset(path, ("train",)).get_data(None, [89, 0])


def test_a_part_that_may_still_grow_has_what_is_there(tmp_path):
    with h5py.File(tmp_path / "part.hdf5", "w") as file:
        file.create_dataset("x", data=VALUES[:20], maxshape=(None, 4))
    layout = h5py.VirtualLayout((20, 4), "int16", maxshape=(None, 4))
    source = h5py.VirtualSource("part.hdf5", "x", (20, 4), maxshape=(None, 4))
    layout[: h5py.h5s.UNLIMITED] = source[: h5py.h5s.UNLIMITED]
    with h5py.File(tmp_path / "all.hdf5", "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout)

    with h5py.File(tmp_path / "all.hdf5") as file:
        assert_array_equal(SourceReader(file["x"]).read(slice(0, 20)), VALUES[:20])


def test_a_change_in_one_of_the_files_is_refused(tmp_path):
    dataset = H5PYDataset(write(tmp_path), ("train",))
    with h5py.File(tmp_path / "part 1.hdf5", "r+") as file:
        file["x"][7] = 0

    match = "has changed since it was first opened: its part .*/part 1.hdf5 was .*'size': "
    with pytest.raises(ValueError, match=match) as error:
        dataset.get_data(None, [0])
    assert "part 2" not in str(error.value)


def test_raw_values_in_a_file_that_is_too_short_are_an_error_and_no_zeros(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("x.hdf5", "w") as file:
        external = [("raw", 3, VALUES.nbytes)]
        file.create_dataset("x", (90, 4), "int16", external=external)[...] = VALUES
    with h5py.File("x.hdf5") as file:
        assert_array_equal(SourceReader(file["x"]).read(numpy.array([80, 1])), VALUES[[80, 1]])

    os.truncate("raw", 100)

    with (
        h5py.File("x.hdf5") as file,
        pytest.raises(ValueError, match="must have 723 bytes"),
    ):
        SourceReader(file["x"])


def write_virtual(path, other):
    layout = h5py.VirtualLayout((90, 4), "int16")
    layout[:] = h5py.VirtualSource(other, "x", (90, 4))
    with h5py.File(path, "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout)
    return path


@pytest.mark.parametrize("names", ["a", "ab", "abc"])
def test_a_data_set_that_is_put_together_from_itself_is_refused(tmp_path, names):
    for name, other in zip(names, names[1:] + names[0], strict=True):
        write_virtual(tmp_path / name, other)

    with pytest.raises(ValueError, match=r"a: /x is put together from itself, by way of .*: /x\."):
        PlainHDF5Dataset(tmp_path / "a", ["x"])
    with h5py.File(tmp_path / "a") as file, pytest.raises(ValueError, match="from itself"):
        SourceReader(file["x"])


def part_of_part(folder):
    with h5py.File(folder / "values.h5", "w") as file:
        file["x"] = VALUES
    write_virtual(folder / "part.h5", "values.h5")
    return write_virtual(folder / "x.h5", "part.h5")


def link(folder):
    with h5py.File(folder / "values.h5", "w") as file:
        file["x"] = VALUES
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"] = h5py.ExternalLink("values.h5", "/x")
    return folder / "x.h5"


def raw(folder):
    VALUES.tofile(folder / "values.h5")
    with h5py.File(folder / "x.h5", "w") as file:
        external = [(str(folder / "values.h5"), 0, VALUES.nbytes)]
        file.create_dataset("x", (90, 4), "int16", external=external)
    return folder / "x.h5"


@pytest.mark.parametrize("make", [part_of_part, link, raw])
def test_a_change_where_the_values_are_is_refused(tmp_path, make):
    dataset = PlainHDF5Dataset(make(tmp_path), ["x"])
    saved = pickle.dumps(dataset)
    assert_array_equal(pickle.loads(saved).get_data(None, [61, 2])[0], VALUES[[61, 2]])
    content = bytearray((tmp_path / "values.h5").read_bytes())
    place = content.index(VALUES[61].tobytes())
    content[place : place + 8] = bytes(8)
    (tmp_path / "values.h5").write_bytes(content)

    match = "has changed since it was first opened: its part .*/values.h5 was "
    with pytest.raises(ValueError, match=match):
        pickle.loads(saved).get_data(None, [61])


def test_a_link_that_leads_nowhere_says_where(tmp_path):
    path = link(tmp_path)
    with h5py.File(path, "r+") as file:
        file["soft"] = h5py.SoftLink("/y/z")
    os.remove(tmp_path / "values.h5")

    with pytest.raises(ValueError, match="a link to '/x' in the file 'values.h5': put it there."):
        PlainHDF5Dataset(path, ["x"])
    with pytest.raises(ValueError, match="It is a link to '/y/z', which is not there."):
        PlainHDF5Dataset(path, ["soft"])


def test_files_that_are_wanted_by_whole_paths_may_stand_beside_if_no_other_has_the_name(tmp_path):
    layout = h5py.VirtualLayout((4, 4), "int16")
    for number, folder in enumerate(("one", "two")):
        name = str(tmp_path / "gone" / folder / "part.h5")
        layout[2 * number : 2 * number + 2] = h5py.VirtualSource(name, "x", (4, 4))[:2]
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["x"] = VALUES[:4]
    with h5py.File(tmp_path / "both.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout)
    write_virtual(tmp_path / "one.h5", str(tmp_path / "gone" / "part.h5"))
    with h5py.File(tmp_path / "part.h5", "r+") as file:
        del file["x"]
        file["x"] = VALUES

    with pytest.raises(ValueError, match=r"'.*/gone/one/part.h5', which is not there"):
        PlainHDF5Dataset(tmp_path / "both.h5", ["x"])
    (values,) = PlainHDF5Dataset(tmp_path / "one.h5", ["x"]).get_data(None, [61, 2])
    assert_array_equal(values, VALUES[[61, 2]])


def test_parts_are_found_through_a_link_to_the_file_as_hdf5_finds_them(tmp_path):
    (tmp_path / "there").mkdir()
    path = write(tmp_path / "there", interleaved=True)
    os.symlink(path, tmp_path / "link.hdf5")

    (values,) = H5PYDataset(tmp_path / "link.hdf5", ("train",)).get_data(None, [61, 2])

    assert_array_equal(values, VALUES[[61, 2]])
