import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.datasets import H5PYDataset, PlainHDF5Dataset, hdf5_vectors
from fuel_data.datasets.hdf5_digests import write_digests
from fuel_data.datasets.hdf5_vectors import TurnedVectors, with_right_vectors

SHAPES = [(1, 2), (3, 2), (2, 2), (4, 2), (0, 2)]
KINDS = ["i2", "u4", "i8", "f2", "f4", "f8", "c8"]


def expected(kind):
    return [(numpy.arange(rows * 2) + rows).reshape(rows, 2).astype(kind) for rows, _ in SHAPES]


def write(path, kind, **options):
    """A ragged source of which every number is in the other byte order, as bytes show."""
    turned = numpy.dtype(kind).newbyteorder("S")
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", (len(SHAPES),), dtype=h5py.vlen_dtype(turned), **options)
        for index, value in enumerate(expected(kind)):
            x[index] = value.ravel().astype(turned)
        file["sizes"] = numpy.array(SHAPES, dtype=numpy.dtype("i4").newbyteorder("S"))
        file["sizes"].make_scale("shapes")
        x.dims[0].attach_scale(file["sizes"])
        file.attrs["split"] = H5PYDataset.create_split_array({"all": {"x": (0, len(SHAPES))}})
        write_digests(file)
    assert expected(kind)[3].astype(turned).tobytes() in path.read_bytes()
    return path


def check(found, kind, indices):
    assert len(found) == len(indices)
    for example, index in zip(found, indices, strict=True):
        assert_array_equal(example, expected(kind)[index])
        assert example.dtype == numpy.dtype(kind)
        assert example.dtype.isnative


@pytest.mark.parametrize("load_in_memory", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_of_the_other_byte_order_come_as_native_numbers(tmp_path, kind, load_in_memory):
    dataset = H5PYDataset(write(tmp_path / "x.h5", kind), ("all",), load_in_memory=load_in_memory)

    check([dataset.get_data(None, 3)[0]], kind, [3])
    check(dataset.get_data(None, slice(1, 5))[0], kind, [1, 2, 3, 4])
    check(dataset.get_data(None, [4, 0, 3, 0])[0], kind, [4, 0, 3, 0])
    dataset.verify()


def test_vectors_in_compressed_chunks_and_without_shapes_do_too(tmp_path):
    path = write(tmp_path / "x.h5", "f8", chunks=(2,), compression="gzip")
    dataset = PlainHDF5Dataset(path, ["x"])

    for example, index in zip(dataset.get_data(None, [3, 0])[0], [3, 0], strict=True):
        assert_array_equal(example, expected("f8")[index].ravel())


def test_records_in_vectors_are_read_rightly_by_h5py_itself(tmp_path):
    kind = numpy.dtype([("a", "i4"), ("b", "f8")]).newbyteorder("S")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (1,), dtype=h5py.vlen_dtype(kind))
        file["x"][0] = numpy.array([(1, 2.5), (3, 4.5)], dtype=kind)

    found = PlainHDF5Dataset(tmp_path / "x.h5", ["x"]).get_data(None, 0)[0]

    assert found.tolist() == [(1, 2.5), (3, 4.5)]


def vectors(kind="i4"):
    return h5py.vlen_dtype(numpy.dtype(kind).newbyteorder("S"))


@pytest.mark.parametrize(
    "kind",
    [
        [("n", "i4"), ("v", vectors())],
        h5py.vlen_dtype(vectors()),
        (vectors(), (2,)),
        h5py.vlen_dtype(numpy.dtype((numpy.dtype("i2").newbyteorder("S"), (3,)))),
    ],
    ids=["in records", "in vectors", "in arrays", "of arrays"],
)
def test_vectors_inside_other_types_are_refused_in_words(tmp_path, kind):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (2,), dtype=kind)

    with pytest.raises(ValueError, match="/x cannot be a source: it has vectors inside other typ"):
        PlainHDF5Dataset(tmp_path / "x.h5", ["x"])


def test_native_vectors_and_what_a_better_h5py_reads_are_left_alone(tmp_path, monkeypatch):
    with h5py.File(write(tmp_path / "x.h5", "i2")) as file:
        assert isinstance(with_right_vectors(file["x"]), TurnedVectors)
        monkeypatch.setattr(hdf5_vectors, "h5py_reads_vectors_rightly", lambda: True)
        assert with_right_vectors(file["x"]) is not None
        assert not isinstance(with_right_vectors(file["x"]), TurnedVectors)
    monkeypatch.undo()
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file.create_dataset("x", (2,), dtype=h5py.vlen_dtype("i4"))
        assert not isinstance(with_right_vectors(file["x"]), TurnedVectors)
