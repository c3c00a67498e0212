import os
import pickle

import h5py
import numpy
import pytest

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.datasets import H5PYDataset, hdf5_digests

SIZES = {"e": 1020, "b": 900, "c": 1000, "d": 1010, "a": 800}


@pytest.fixture
def path(tmp_path):
    """A file of five sources with 10 examples, of 8,000 to 10,200 bytes each; of some time ago."""
    data = [("train", name, numpy.zeros((10, size), "uint8")) for name, size in SIZES.items()]
    with new_hdf5_file(tmp_path / "x.hdf5") as file:
        fill_hdf5_file(file, data)
    os.utime(tmp_path / "x.hdf5", (10**9, 10**9))
    return tmp_path / "x.hdf5"


@pytest.fixture
def read(monkeypatch):
    """The names of the sources that were digested."""
    names = []
    original = hdf5_digests.digest_source

    def note(dataset):
        names.append(dataset.name[1:])
        return original(dataset)

    monkeypatch.setattr(hdf5_digests, "digest_source", note)
    return names


def let_time_pass(monkeypatch):
    monkeypatch.setattr("fuel_data.utils.digests._SETTLED_NANOSECONDS", -(10**10))


def damage(path):
    with h5py.File(path, "r+") as file:
        file["b"][3, 7] = 1


def test_what_was_found_right_is_not_read_again_before_it_was_written(path, read, monkeypatch):
    let_time_pass(monkeypatch)
    dataset = H5PYDataset(path, ("train",))
    H5PYDataset(path, ("train",), sources=("b", "c"))
    pickle.loads(pickle.dumps(dataset)).get_data(None, 0)
    assert sorted(read) == sorted(SIZES)

    dataset.verify()
    assert sorted(read) == sorted([*SIZES, *SIZES])

    damage(path)
    for _ in range(2):
        with pytest.raises(OSError, match="damaged: source 'b' cannot be what was written"):
            H5PYDataset(path, ("train",))


def test_a_file_that_was_just_written_is_read_each_time(path, read):
    H5PYDataset(path, ("train",), sources=("a",))
    H5PYDataset(path, ("train",), sources=("a",))

    assert read == ["a", "a"]


def test_the_smallest_sources_are_checked_up_to_a_bound_in_all(path, read, monkeypatch):
    monkeypatch.setattr("fuel_data.datasets.hdf5.CHECKED_BYTES", 9500)
    dataset = H5PYDataset(path, ("train",))
    assert read == ["a", "b"]

    read.clear()
    monkeypatch.setattr("fuel_data.datasets.hdf5.CHECKED_BYTES", 10_200)
    H5PYDataset(path, ("train",))
    # All have 47,300 bytes, of which 40,800 are looked at.
    assert read == ["a", "b", "c", "d"]

    read.clear()
    dataset.verify()
    assert sorted(read) == sorted(SIZES)


def test_a_source_reached_by_a_link_is_checked_under_its_name(path):
    with h5py.File(path, "r+") as file:
        file.move("b", "elsewhere/b")
        file["b"] = h5py.SoftLink("/elsewhere/b")
    assert H5PYDataset(path, ("train",)).num_examples == 10

    with h5py.File(path, "r+") as file:
        file["elsewhere/b"][0, 0] = 1
    with pytest.raises(OSError, match="source 'b' cannot be what was written"):
        H5PYDataset(path, ("train",))
