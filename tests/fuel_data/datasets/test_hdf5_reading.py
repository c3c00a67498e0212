import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.datasets.hdf5_reading import SourceReader, map_dataset, unfold

ROWS = numpy.random.default_rng(0).integers(0, 255, size=(400, 3, 2))
REQUESTS = [
    0,
    399,
    slice(5, 9),
    numpy.array([3, 4, 5]),
    numpy.array([399, 0, 17]),
    numpy.array([5, 5, 1, 5]),
    numpy.arange(0, 400, 3),
    numpy.array([0, 399]),
]


def write(path, **options):
    dtype = options.pop("dtype", "uint8")
    with h5py.File(path, "w", **options.pop("file", {})) as file:
        values = ROWS.astype(dtype)
        file.create_dataset("x", data=values, **options)
    return values


PLAIN = {
    "uint8": {"dtype": "uint8"},
    "bool": {"dtype": "bool"},
    "float16": {"dtype": "float16"},
    "big endian": {"dtype": ">i4"},
    "complex": {"dtype": "complex64"},
    "bytes": {"dtype": "S4"},
    "user block": {"dtype": "float64", "file": {"userblock_size": 1024}},
    "latest format": {"dtype": "int64", "file": {"libver": "latest"}},
}
OTHER = {
    "chunked": {"chunks": (7, 3, 2)},
    "compressed": {"compression": "gzip"},
    "shuffled": {"shuffle": True, "chunks": (50, 3, 2)},
}


@pytest.mark.parametrize("kind", PLAIN)
def test_values_in_one_piece_are_mapped(tmp_path, kind):
    write(tmp_path / "x.hdf5", **PLAIN[kind])

    with h5py.File(tmp_path / "x.hdf5") as file:
        array = map_dataset(file["x"])
        assert_array_equal(array, file["x"][()])
        assert array.dtype == file["x"].dtype
        assert not array.flags.writeable


@pytest.mark.parametrize("kind", OTHER)
def test_chunked_values_are_not_in_one_piece(tmp_path, kind):
    write(tmp_path / "x.hdf5", **OTHER[kind])

    with h5py.File(tmp_path / "x.hdf5") as file:
        assert map_dataset(file["x"]) is None


def test_types_with_other_bytes_than_numpys_are_not_mapped(tmp_path):
    odd = h5py.h5t.STD_U16LE.copy()
    odd.set_precision(9)
    odd.set_offset(3)
    padded = h5py.h5t.C_S1.copy()
    padded.set_size(4)
    padded.set_strpad(h5py.h5t.STR_SPACEPAD)
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        space = h5py.h5s.create_simple((5,))
        for name, type_ in (("odd", odd), ("padded", padded)):
            h5py.h5d.create(file.id, name.encode(), type_, space)
        # The ends are the same bits in both types, so that only the types tell them apart.
        file["odd"][...] = [0, 3, 2, 1, 0]
        file["scalar"] = 5
        file["empty"] = numpy.zeros((0, 3))
        file["ragged"] = numpy.array([b"a", b"bc"], dtype=h5py.string_dtype())
        file.create_dataset("outside", (4,), dtype="u1", external=str(tmp_path / "raw"))[...] = 1
        file.create_dataset("unwritten", (4,), dtype="u1", fillvalue=7)

    with h5py.File(tmp_path / "x.hdf5") as file:
        for name in file:
            assert map_dataset(file[name]) is None, name
        assert_array_equal(SourceReader(file["odd"]).read(numpy.array([2, 1])), [2, 3])
        assert_array_equal(SourceReader(file["unwritten"]).read(slice(0, 2)), [7, 7])


def test_a_file_that_is_being_written_is_not_mapped(tmp_path):
    write(tmp_path / "x.hdf5")

    with h5py.File(tmp_path / "x.hdf5", "r+") as file:
        assert map_dataset(file["x"]) is None
    with h5py.File(tmp_path / "x.hdf5", "r", driver="core") as file:
        assert map_dataset(file["x"]) is None


def test_a_file_that_was_replaced_after_opening_is_mapped_as_it_was(tmp_path):
    values = write(tmp_path / "x.hdf5")
    with h5py.File(tmp_path / "new.hdf5", "w") as file:
        file["x"] = 255 - values

    with h5py.File(tmp_path / "x.hdf5") as file:
        (tmp_path / "new.hdf5").rename(tmp_path / "x.hdf5")
        assert_array_equal(map_dataset(file["x"]), values)


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
@pytest.mark.parametrize("kind", [*PLAIN, *OTHER])
def test_a_request_is_answered_as_numpy_answers_it(tmp_path, kind, request_):
    values = write(tmp_path / "x.hdf5", **{**PLAIN, **OTHER}[kind])

    with h5py.File(tmp_path / "x.hdf5") as file:
        read = SourceReader(file["x"]).read(request_)

        assert_array_equal(read, values[request_])
        assert read.dtype == values.dtype
        assert read.flags.writeable


def test_one_example_without_axes_is_a_scalar(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["plain"] = numpy.arange(5)
        file.create_dataset("chunked", data=numpy.arange(5), chunks=(2,))
        file["bytes"] = numpy.array([b"ab", b"c"])

    with h5py.File(tmp_path / "x.hdf5") as file:
        assert isinstance(SourceReader(file["plain"]).read(3), numpy.int64)
        assert isinstance(SourceReader(file["chunked"]).read(3), numpy.int64)
        assert SourceReader(file["bytes"]).read(1) == b"c"


def test_unsorted_requests_are_refused_where_sorting_is_needed_and_switched_off(tmp_path):
    values = write(tmp_path / "chunked.hdf5", chunks=(7, 3, 2), compression="gzip")
    with h5py.File(tmp_path / "words.hdf5", "w") as file:
        file["x"] = ["zero", "one", "two", "three"]

    with h5py.File(tmp_path / "words.hdf5") as file:
        reader = SourceReader(file["x"], sort_indices=False)
        assert reader.read(numpy.array([1, 3])).tolist() == [b"one", b"three"]
        with pytest.raises(ValueError, match=r"name increasing indices; got \[3, 1\]. Leave sort"):
            reader.read(numpy.array([3, 1]))
    with h5py.File(tmp_path / "chunked.hdf5") as file:
        read = SourceReader(file["x"], sort_indices=False).read(numpy.array([9, 1]))
        assert_array_equal(read, values[[9, 1]])


def test_arrays_as_a_type_are_axes(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("x", (5,), dtype="(3,)i4", chunks=(2,))[...] = numpy.arange(15).reshape(
            5, 3
        )

    with h5py.File(tmp_path / "x.hdf5") as file:
        read = SourceReader(file["x"]).read(numpy.array([4, 0]))
        assert_array_equal(read, [[12, 13, 14], [0, 1, 2]])


def test_flat_examples_get_their_shapes():
    flat = numpy.empty(2, dtype=object)
    flat[0], flat[1] = numpy.arange(6), numpy.arange(2)

    one, two = unfold(flat, numpy.array([[2, 3], [1, 2]]))

    assert_array_equal(one, [[0, 1, 2], [3, 4, 5]])
    assert_array_equal(two, [[0, 1]])
    one[0, 0] = 9
    assert flat[0][0] == 0
    assert_array_equal(unfold(flat[0], numpy.array([3, 2])), [[0, 1], [2, 3], [4, 5]])
