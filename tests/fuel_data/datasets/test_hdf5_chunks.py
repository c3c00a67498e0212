import threading

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.datasets.hdf5_chunks import ChunkedValues
from fuel_data.datasets.hdf5_reading import SourceReader

VALUES = numpy.arange(103 * 6, dtype="int32").reshape(103, 2, 3)


@pytest.fixture
def dataset(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(10, 1, 2), compression="gzip")
    with h5py.File(tmp_path / "x.hdf5") as file:
        yield file["x"]


@pytest.mark.parametrize("max_bytes", [1, 3 * 240, 2**20])
def test_examples_are_those_of_the_file_however_small_the_cache(dataset, max_bytes):
    chunked = ChunkedValues(dataset, max_bytes)
    draw = numpy.random.default_rng(0)

    for size in (1, 3, 40, 200):
        indices = draw.integers(0, 103, size)
        assert_array_equal(chunked.read(indices), VALUES[indices])
    assert chunked.num_cached <= chunked.max_cached == min(max(1, max_bytes // 240), 11)


def test_a_chunk_is_read_once_as_long_as_it_is_in_the_cache(dataset, monkeypatch):
    chunked = ChunkedValues(dataset, max_bytes=2 * 240)
    read = []
    original = h5py.Dataset.__getitem__
    monkeypatch.setattr(
        h5py.Dataset,
        "__getitem__",
        lambda self, key: (read.append(key.start), original(self, key))[1],
    )

    for index in (5, 15, 5, 25, 5, 15):
        chunked.read(numpy.array([index]))

    # 15 was used before 5 when 25 came, so it made room.
    assert read == [0, 10, 20, 10]


@pytest.mark.parametrize("max_bytes", [1, 3 * 240, 2**20])
def test_ranges_are_those_of_the_file_however_small_the_cache(dataset, max_bytes):
    chunked = ChunkedValues(dataset, max_bytes)

    for start, stop in [(0, 103), (5, 5), (7, 8), (38, 61), (95, 103), (100, 103), (0, 30)]:
        found = chunked.read_range(start, stop)
        assert_array_equal(found, VALUES[start:stop])
        found[...] = 0


@pytest.mark.parametrize(("cache_bytes", "way"), [(239, "h5py"), (240, "chunks")])
def test_chunks_of_little_of_many_examples_are_left_to_hdf5_if_all_of_these_are_too_large(
    dataset, cache_bytes, way
):
    reader = SourceReader(dataset, cache_bytes=cache_bytes)

    assert reader.way == way
    for indices in ([102, 3, 3], [], [50]):
        wanted = numpy.array(indices, dtype=int)
        assert_array_equal(reader.read(wanted), VALUES[wanted])


def test_what_was_read_is_a_copy(dataset):
    chunked = ChunkedValues(dataset)
    chunked.read(numpy.array([3, 4]))[...] = 0

    assert_array_equal(chunked.read(numpy.array([3])), VALUES[[3]])


def test_threads_share_a_cache(dataset):
    chunked = ChunkedValues(dataset, max_bytes=3 * 240)
    wrong = []

    def read(seed):
        draw = numpy.random.default_rng(seed)
        for _ in range(60):
            indices = draw.integers(0, 103, 7)
            if not numpy.array_equal(chunked.read(indices), VALUES[indices]):
                wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


def test_long_ranges_go_past_a_cache_that_is_too_small_and_short_ones_through_it(dataset):
    reader = SourceReader(dataset, cache_bytes=3 * 240)

    assert reader.way == "chunks"
    assert_array_equal(reader.read(slice(5, 98)), VALUES[5:98])
    assert reader._chunked.num_cached == 0
    assert_array_equal(reader.read(slice(8, 12)), VALUES[8:12])
    assert reader._chunked.num_cached == 2


def test_ranges_fill_a_cache_that_holds_all_each_by_one_reading(dataset, monkeypatch):
    reader = SourceReader(dataset)
    reader.read(numpy.array([35]))
    read = []
    original = h5py.Dataset.__getitem__
    monkeypatch.setattr(
        h5py.Dataset,
        "__getitem__",
        lambda self, key: (read.append((key.start, key.stop)), original(self, key))[1],
    )

    for request in (slice(5, 98), slice(0, 103), slice(0, 103)):
        assert_array_equal(reader.read(request), VALUES[request])

    # The chunk from 30 to 39 is there, and the last one is shorter.
    assert read == [(0, 30), (40, 100), (100, 110)]


def test_a_chunk_that_cannot_be_read_leaves_the_cache_as_it_was(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        dataset = file.create_dataset("x", data=VALUES, chunks=(10, 2, 3), fletcher32=True)
        info = dataset.id.get_chunk_info(2)
    with open(tmp_path / "x.hdf5", "r+b") as raw:
        raw.seek(info.byte_offset + 5)
        raw.write(b"\xff")

    with h5py.File(tmp_path / "x.hdf5") as file:
        reader = SourceReader(file["x"])
        for _ in range(2):
            with pytest.raises(OSError, match=r"x.hdf5: /x cannot be read: .*damaged"):
                reader.read(numpy.array([25, 1]))
        assert_array_equal(reader.read(numpy.array([91, 1, 35])), VALUES[[91, 1, 35]])
