import os

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.datasets import hdf5_maps
from fuel_data.datasets.hdf5_maps import map_values
from fuel_data.utils.disk import is_local

VALUES = numpy.arange(100 * 6, dtype=">i4").reshape(100, 2, 3)
RECORDS = numpy.array([(1, b"a", True), (2, b"bc", False)], dtype="i4, S3, ?")


def test_chunks_that_are_not_compressed_are_gathered_from_the_map(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(7, 2, 3))

    with h5py.File(tmp_path / "x.hdf5") as file:
        values = map_values(file["x"])
        assert values.whole is None
        for request in (
            0,
            99,
            slice(5, 9),
            slice(0, 100),
            slice(6, 50),
            numpy.array([99, 0, 7, 7]),
        ):
            read = values.read(request)
            assert_array_equal(read, VALUES[request])
            assert read.dtype == VALUES.dtype
            read[...] = 0
        assert_array_equal(values.read(slice(0, 100)), VALUES)


def test_records_are_mapped_and_values_at_odd_addresses_too(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["odd"] = numpy.arange(3, dtype="uint8")
        file["records"] = RECORDS
        file["numbers"] = numpy.arange(9.0)

    with h5py.File(tmp_path / "x.hdf5") as file:
        assert any(file[name].id.get_offset() % 8 for name in ("records", "numbers"))
        assert_array_equal(map_values(file["records"]).read(numpy.array([1, 0])), RECORDS[::-1])
        assert_array_equal(map_values(file["numbers"]).read(numpy.array([8, 1])), [8.0, 1.0])


@pytest.mark.parametrize(
    "options",
    [
        {"chunks": (7, 1, 3)},
        {"chunks": (7, 2, 3), "fletcher32": True},
        {"chunks": (7, 2, 3), "compression": "gzip"},
    ],
    ids=str,
)
def test_chunks_that_are_cut_or_filtered_are_not_mapped(tmp_path, options):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("x", data=VALUES, **options)

    with h5py.File(tmp_path / "x.hdf5") as file:
        assert map_values(file["x"]) is None


def test_chunks_that_were_never_written_are_not_mapped(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("x", (100,), "i4", chunks=(10,), fillvalue=7)[:90] = 1

    with h5py.File(tmp_path / "x.hdf5") as file:
        assert map_values(file["x"]) is None


def test_files_on_network_file_systems_are_not_mapped(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["x"] = VALUES
    monkeypatch.setattr(hdf5_maps, "is_local", lambda descriptor: False)

    with h5py.File(tmp_path / "x.hdf5") as file:
        assert map_values(file["x"]) is None


def test_a_temporary_folder_is_on_this_machine(tmp_path):
    with open(tmp_path / "x", "w") as file:
        assert is_local(file.fileno())


def test_a_file_is_mapped_once_for_all_its_sources(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        for name in "abcdefgh":
            file[name] = VALUES

    with h5py.File(tmp_path / "x.hdf5") as file:
        num_open = len(os.listdir("/proc/self/fd"))
        maps = [map_values(file[name]) for name in "abcdefgh"]
        assert len(os.listdir("/proc/self/fd")) == num_open + 1
        assert_array_equal(maps[7].read(numpy.array([5, 1])), VALUES[[5, 1]])
        del maps
        assert len(os.listdir("/proc/self/fd")) == num_open


def test_a_file_of_the_same_name_has_a_map_of_its_own(tmp_path):
    found = []
    for number in range(3):
        with h5py.File(tmp_path / f"{number}.hdf5", "w") as file:
            file["x"] = VALUES + number
        (tmp_path / f"{number}.hdf5").replace(tmp_path / "x.hdf5")
        with h5py.File(tmp_path / "x.hdf5") as file:
            found.append(map_values(file["x"]))

    for number, values in enumerate(found):
        assert_array_equal(values.read(slice(0, 100)), VALUES + number)


def test_a_map_does_not_lock_a_file_that_was_closed(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["x"] = VALUES
    with h5py.File(tmp_path / "x.hdf5") as file:
        values = map_values(file["x"])

    with h5py.File(tmp_path / "x.hdf5", "r+") as file:
        file["x"][3] = 7
    assert (values.read(3) == 7).all()
