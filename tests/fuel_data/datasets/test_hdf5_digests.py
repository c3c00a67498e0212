import hashlib
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


RECORD = numpy.dtype([("name", h5py.string_dtype()), ("number", "i4")])
VECTORS = h5py.vlen_dtype(h5py.vlen_dtype("i4"))


def write_objects(path, dtype, number):
    with h5py.File(path, "w") as file:
        source = file.create_dataset("x", (300,), dtype=dtype)
        for i in range(300):
            if dtype is RECORD:
                source[i] = (f"name {i}", number)
            else:
                example = numpy.empty(2, dtype=object)
                example[:] = [numpy.array([i, number], "i4"), numpy.array([7], "i4")]
                source[i] = example
        file.attrs["split"] = H5PYDataset.create_split_array({"train": {"x": (0, 300)}})
        hdf5_digests.write_digests(file)
        return hdf5_digests.digest_source(source)


def test_vectors_of_vectors_are_digested_by_their_values(tmp_path):
    found = [write_objects(tmp_path / f"{i}.h5", VECTORS, i // 2) for i in range(3)]

    with h5py.File(tmp_path / "0.h5") as file:
        assert hdf5_digests.digest_source(file["x"]) == found[0]
    assert found[0] == found[1] != found[2]


def test_records_with_texts_are_digested_by_their_values(tmp_path):
    found = [write_objects(tmp_path / f"{i}.h5", RECORD, i // 2) for i in range(3)]

    H5PYDataset(tmp_path / "0.h5", ("train",)).verify()
    assert found[0] == found[1] != found[2]
    # As the module describes it.
    content = hashlib.sha256()
    for i in range(300):
        name = f"name {i}".encode()
        fields = [len(name).to_bytes(8, "little"), name, bytes([4, *[0] * 7]), bytes(4)]
        example = b"".join(fields)
        content.update(len(example).to_bytes(8, "little") + example)
    assert found[0] == content.hexdigest()


def test_references_are_digested_by_whether_they_are_there(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        source = file.create_dataset("x", (2,), dtype=h5py.ref_dtype)
        source[1] = file.ref
        one = (1).to_bytes(8, "little")
        expected = hashlib.sha256(one + b"\0" + one + b"\1").hexdigest()

        assert hdf5_digests.digest_source(source) == expected


def test_chunks_of_a_column_do_not_make_all_be_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_digests, "_PIECE_BYTES", 64)
    monkeypatch.setattr(hdf5_digests, "_MOST_BYTES", 256)
    sizes = []

    class Noting(h5py.Dataset):
        def __getitem__(self, args):
            sizes.append(super().__getitem__(args).nbytes)
            return super().__getitem__(args)

    values = numpy.arange(800, dtype="f4").reshape(100, 8)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(100, 1))

        found = hdf5_digests.digest_source(Noting(file["x"].id))

    assert found == hashlib.sha256(values.tobytes()).hexdigest()
    assert max(sizes) == 256
