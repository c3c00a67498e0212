import os
import time

import h5py
import pytest

from fuel_data.datasets import PlainHDF5Dataset, hdf5_heaps
from fuel_data.datasets.hdf5_heaps import check_heaps
from fuel_data.utils import digests


@pytest.fixture
def path(tmp_path):
    """A file with a heap, written some time ago."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["words"] = ["one", "two"]
    os.utime(tmp_path / "x.h5", (10**9, 10**9))
    return tmp_path / "x.h5"


def damage(path):
    """Damage the length of the first object, and leave the file's time as it was."""
    content = bytearray(path.read_bytes())
    content[content.index(b"GCOL") + 24] = 200
    path.write_bytes(content)
    os.utime(path, (10**9, 10**9))


@pytest.fixture
def looks(monkeypatch):
    """The paths of files that were read."""
    found = []
    original = hdf5_heaps._content
    monkeypatch.setattr(hdf5_heaps, "_content", lambda path: found.append(path) or original(path))
    hdf5_heaps._check_once.cache_clear()
    return found


def later(monkeypatch):
    now = time.time_ns()
    monkeypatch.setattr(digests.time, "time_ns", lambda: now + 10**10)


def test_a_file_is_looked_at_once_and_again_after_a_change(path, looks, monkeypatch):
    later(monkeypatch)
    for _ in range(3):
        check_heaps(path)
    assert looks == [str(path)]

    damage(path)
    for _ in range(2):
        with pytest.raises(OSError, match="x.h5 is damaged: its heap at byte .* has no end"):
            check_heaps(path)
    assert looks == [str(path)] * 3


def test_a_file_that_was_just_written_is_looked_at_each_time(path, looks):
    check_heaps(path)
    check_heaps(path)

    assert looks == [str(path)] * 2


def test_a_file_of_a_network_is_read_and_not_mapped(path, monkeypatch):
    monkeypatch.setattr(hdf5_heaps, "is_local", lambda descriptor: False)
    monkeypatch.setattr(hdf5_heaps, "mmap", None)

    check_heaps(path)
    damage(path)
    with pytest.raises(OSError, match="x.h5 is damaged"):
        check_heaps(path)


@pytest.mark.parametrize("sizes", [(4, 4), (4, 8), (8, 4), (8, 8)])
def test_addresses_and_lengths_may_have_four_bytes(tmp_path, sizes):
    properties = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    properties.set_sizes(*sizes)
    path = tmp_path / "x.h5"
    with h5py.File(h5py.h5f.create(bytes(path), fcpl=properties)) as file:
        vectors = file.create_dataset("x", (64,), dtype=h5py.vlen_dtype("i4"))
        for i in range(64):
            vectors[i] = range(i)

    dataset = PlainHDF5Dataset(path, ["x"])

    assert dataset.get_data(request=[63])[0][0].tolist() == list(range(63))
