"""Sources of every kind, written here and read by plain h5py, and by `H5PYDataset`."""

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal, assert_equal

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.datasets import H5PYDataset

COUNT = 11
DRAW = numpy.random.default_rng(0)


def ragged(ndim, dtype):
    shapes = DRAW.integers(0, 4, (COUNT, ndim))
    return [DRAW.integers(0, 99, shape).astype(dtype) for shape in shapes]


SOURCES = {
    "vectors": ragged(1, "uint8"),
    "matrices": ragged(2, "float64"),
    "movies": ragged(4, ">i2"),
    "flags": DRAW.integers(0, 2, (COUNT, 3)).astype(bool),
    "records": numpy.array([(n, b"x" * n, n > 3) for n in range(COUNT)], "i4, S5, ?"),
    "names": numpy.array([b"a", b"bc"] * 5 + [b"d"]),
    "complex": DRAW.normal(size=(COUNT, 2)) * 1j,
    "half": DRAW.normal(size=COUNT).astype("float16"),
}


def write(path, sources, labels=None):
    with new_hdf5_file(path) as h5file:
        data = [
            (split, source, values[rows])
            for split, rows in (("a", slice(0, 8)), ("b", slice(8, None)))
            for source, values in sources.items()
        ]
        fill_hdf5_file(h5file, data, labels)
    return path


def fuels_way_of_reading(path, source):
    """Read all examples by plain h5py, as Fuel's documents describe the layout."""
    with h5py.File(path) as h5file:
        rows = [row for row in h5file.attrs["split"] if row["source"].decode() == source]
        assert [(row["split"], row["start"], row["stop"]) for row in rows] == [
            (b"a", 0, 8),
            (b"b", 8, COUNT),
        ]
        assert all(row["available"] and not row["indices"] for row in rows)
        values = h5file[source][()]
        if values.dtype != object or "shapes" not in list(h5file[source].dims[0]):
            return values, None
        shapes = h5file[source].dims[0]["shapes"][()]
        labels = [label.decode() for label in h5file[source].dims[0]["shape_labels"][()]]
        axes = (h5file[source].dims[0].label, *labels)
        return [flat.reshape(shape) for flat, shape in zip(values, shapes, strict=True)], axes


@pytest.mark.parametrize("source", SOURCES)
def test_every_kind_of_source_is_read_by_plain_h5py_and_here(tmp_path, source):
    path = write(tmp_path / "x.hdf5", {source: SOURCES[source]})
    expected = SOURCES[source]

    found, _ = fuels_way_of_reading(path, source)
    for load_in_memory in (False, True):
        dataset = H5PYDataset(path, ("a", "b"), load_in_memory=load_in_memory)
        (backwards,) = dataset.get_data(None, numpy.arange(COUNT)[::-1])
        assert_equal(list(backwards), list(expected)[::-1])
        assert backwards[0].dtype.newbyteorder("=") == expected[0].dtype.newbyteorder("=")

    assert_equal(list(found), list(expected))


def test_text_and_bytes_are_vectors_of_any_length(tmp_path):
    words = ["", "größe"] * 5 + ["x"]
    files = [bytes(range(number)) for number in range(COUNT)]
    path = write(tmp_path / "x.hdf5", {"words": words, "files": files})

    found_files, found_words = H5PYDataset(path, ("a", "b")).get_data(None, [9, 1])

    assert [word.decode() for word in found_words] == ["größe", "größe"]
    assert_equal(list(found_files), [numpy.arange(9), numpy.arange(1)])
    with h5py.File(path) as h5file:
        assert h5file["words"].asstr()[1] == "größe"


def test_ragged_sources_have_labels_for_all_their_axes(tmp_path):
    labels = {"matrices": ("batch", "time", "feature")}
    path = write(tmp_path / "x.hdf5", {"matrices": SOURCES["matrices"]}, labels)
    unlabelled = write(tmp_path / "y.hdf5", {"matrices": SOURCES["matrices"]})

    assert fuels_way_of_reading(path, "matrices")[1] == ("batch", "time", "feature")
    assert H5PYDataset(path, ("a",)).axis_labels == labels
    assert fuels_way_of_reading(unlabelled, "matrices")[1] == ("", "index_1", "index_2")
    with pytest.raises(ValueError, match="'matrices' has 3 axes, so it needs as many labels; got"):
        write(tmp_path / "z.hdf5", {"matrices": SOURCES["matrices"]}, {"matrices": ("a", "b")})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (numpy.array(["2001-01-01"] * COUNT, "M8[D]"), "dtype datetime64.D., which HDF5 has not"),
        ([numpy.zeros(2), numpy.zeros((1, 2))] * 6, "one dtype with the same number of axes"),
        ([numpy.zeros(2), "text"] * 6, "all be arrays, all str or all bytes; got ndarray, str"),
    ],
    ids=["dates", "ranks", "kinds"],
)
def test_what_cannot_be_stored_is_refused_in_words(tmp_path, values, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "x.hdf5", {"x": values[:COUNT]})
    assert not (tmp_path / "x.hdf5").exists()


def test_thousands_of_splits_are_written_and_read(tmp_path):
    with new_hdf5_file(tmp_path / "x.hdf5") as h5file:
        data = [
            (f"fold number {number}", source, numpy.array([number]))
            for number in range(2500)
            for source in ("x", "y")
        ]
        fill_hdf5_file(h5file, data)

    with h5py.File(tmp_path / "x.hdf5") as h5file:
        assert len(h5file.attrs["split"]) == 5000
        assert h5file.attrs["split"][4999]["split"] == b"fold number 2499"
    folds = [f"fold number {number}" for number in (2400, 7)]
    assert_array_equal(H5PYDataset(tmp_path / "x.hdf5", folds).get_data(None, [0, 1])[0], [7, 2400])


def test_the_same_input_gives_the_same_bytes(tmp_path):
    one = write(tmp_path / "x.hdf5", SOURCES).read_bytes()
    two = write(tmp_path / "x.hdf5", SOURCES).read_bytes()

    assert one == two
