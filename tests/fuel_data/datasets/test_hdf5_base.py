"""Wrong arguments are not taken for damaged files."""

import h5py
import numpy
import pytest

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.datasets import H5PYDataset, PlainHDF5Dataset
from fuel_data.datasets.hdf5_digests import write_digests
from fuel_data.datasets.hdf5_files import damage_in_words, stands_alone


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["x"] = numpy.arange(10)
        file["y"] = numpy.arange(10)
        splits = {"train": {"x": (0, 8), "y": (0, 8)}}
        file.attrs["split"] = H5PYDataset.create_split_array(splits)
    return tmp_path / "x.hdf5"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"which_sets": None}, "H5PYDataset: `which_sets` must be names of splits; got None"),
        ({"sources": ()}, "x.hdf5: `sources` must name a source; split 'train' has x, y"),
        ({"subset": 5}, "H5PYDataset: `subset` must be a slice, or a list or array.*got 5"),
        ({"cache_bytes": "1G"}, "H5PYDataset: `cache_bytes` must be a whole number; got '1G'"),
        ({"cache_bytes": -1}, "`cache_bytes` must be at least 0; got -1"),
        ({"driver": "cor"}, "Unknown driver type 'cor'. `driver` must be one of core, "),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(path, arguments, message):
    with pytest.raises((ValueError, OSError), match=message):
        H5PYDataset(path, **{"which_sets": ("train",), **arguments})


@pytest.mark.parametrize(
    ("names", "arguments", "message"),
    [
        (5, {}, "PlainHDF5Dataset: `sources_in_file` must be paths of data sets; got 5"),
        ({"x": None}, {}, r"`sources_in_file` must be paths of data sets; got \[None\]"),
        (["x"], {"start": 5, "stop": 3}, "`start` and `stop` must be positions.*got 5 and 3"),
        (["x"], {"start": -2}, "among its 10 examples, in this order; got -2 and None"),
        (["x"], {"stop": 11}, "among its 10 examples, in this order; got 0 and 11"),
        (["x"], {"start": "1"}, "among its 10 examples, in this order; got '1' and None"),
    ],
    ids=str,
)
def test_a_wrong_argument_of_plain_files_is_named(path, names, arguments, message):
    with pytest.raises(ValueError, match=message):
        PlainHDF5Dataset(path, names, **arguments)


def test_paths_in_the_file_may_come_from_any_iterable(path):
    assert PlainHDF5Dataset(path, (name for name in "yx")).sources == ("y", "x")


def test_what_is_no_file_is_named(path):
    with pytest.raises(ValueError, match="`file_or_path` must be a path or an open h5py.File; got"):
        H5PYDataset(None, ("train",))
    with h5py.File(path) as file, pytest.raises(ValueError, match='got <HDF5 dataset "x"'):
        H5PYDataset(file["x"], ("train",))
    with pytest.raises(ValueError, match="the h5py.File has been closed. Keep it open, or give"):
        H5PYDataset(file, ("train",))


def test_the_search_for_what_there_is_ends_where_links_go_in_circles(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        inner = file.create_group("a/b/c")
        for number in range(40):
            file[f"loop {number}"] = h5py.SoftLink("/")
            inner[f"loop {number}"] = h5py.SoftLink("/a")
        inner["x"] = numpy.arange(10)

    with pytest.raises(ValueError, match="there is no data set 'y'.*The file has a/b/c/x."):
        PlainHDF5Dataset(tmp_path / "x.h5", ["y"])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(24, "Too many open files"),
            r"x.h5 .*: \[Errno 24\] Too many open files.$",
        ),
        (MemoryError(), "needs more memory than there is, or is damaged"),
        (OSError("wrong fill value"), "cannot be read: wrong fill value. The file is damaged"),
    ],
    ids=repr,
)
def test_what_the_system_says_is_not_called_damage(error, message):
    with pytest.raises(OSError, match=message), damage_in_words("x.h5"):
        raise error


def test_a_file_whose_objects_cannot_all_be_visited_is_read_beside_what_it_refers_to(
    path, monkeypatch
):
    with h5py.File(path) as file:
        assert stands_alone(file)

        def fail(visitor):
            raise RuntimeError("Object visitation failed (bad object header version number)")

        monkeypatch.setattr(file, "visititems", fail)
        assert not stands_alone(file)


@pytest.mark.parametrize("load_in_memory", [False, True])
@pytest.mark.parametrize("name", ["vectors", "grid", "records"])
def test_an_example_that_is_asked_for_twice_comes_as_two_copies(tmp_path, name, load_in_memory):
    kind = h5py.vlen_dtype("f4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("vectors", (3,), dtype=kind)
        file.create_dataset("grid", (3, 2), dtype=kind)
        file.create_dataset("records", (3,), dtype=[("n", "i4"), ("v", kind)])
        for index in range(3):
            vector = numpy.arange(index + 1, dtype="f4")
            file["vectors"][index] = file["grid"][index, 1] = vector
            file["records"][index] = (index, vector)
    dataset = PlainHDF5Dataset(tmp_path / "x.h5", [name], load_in_memory=load_in_memory)

    def vector_of(example):
        return example if name == "vectors" else example[1]

    first, middle, second = dataset.get_data(None, [2, 0, 2])[0]
    vector_of(first)[:] += 5

    assert vector_of(first).tolist() == [5, 6, 7]
    assert vector_of(middle).tolist() == [0]
    assert vector_of(second).tolist() == [0, 1, 2]
    assert vector_of(dataset.get_data(None, 2)[0]).tolist() == [0, 1, 2]


def test_other_sources_may_have_another_number_of_examples(path):
    with h5py.File(path, "r+") as file:
        splits = {"train": {"x": (0, 8), "y": (4, 10)}}
        file.attrs["split"] = H5PYDataset.create_split_array(splits)
    dataset = H5PYDataset(path, ("train",), sources=("x",))

    dataset.sources = ("y",)

    assert dataset.num_examples == 6
    assert len(list(dataset.get_example_stream().get_epoch_iterator())) == 6
    with pytest.raises(ValueError, match="equal numbers of examples.*'x': 8, 'y': 6"):
        dataset.sources = ("x", "y")
    assert dataset.sources == ("y",)
    assert dataset.get_data(None, [0, 5])[0].tolist() == [4, 9]


def test_a_file_without_digests_says_that_nothing_was_checked(path, caplog):
    H5PYDataset(path, ("train",)).verify()
    assert (
        "no digests, so nothing was checked, in " in caplog.text and "x.hdf5. What" in caplog.text
    )

    caplog.clear()
    with h5py.File(path, "r+") as file:
        write_digests(file)
    H5PYDataset(path, ("train",)).verify()
    assert not caplog.text


@pytest.mark.parametrize(
    ("subset", "words"),
    [
        ([99], "index 99 is past the end of 4 examples"),
        (slice(0, 99), r"slice\(0, 99, None\) goes past the end of 4 examples"),
        (["a"], "indices are integers on one axis"),
    ],
)
def test_a_subset_that_cannot_be_is_refused_with_the_file_and_the_argument(tmp_path, subset, words):
    with new_hdf5_file(tmp_path / "x.hdf5") as h5file:
        fill_hdf5_file(h5file, [("train", "x", numpy.zeros((4, 1)))])

    match = f"^{tmp_path}/x.hdf5: `subset` chooses among the 4 examples of train: {words}"
    with pytest.raises(ValueError, match=match):
        H5PYDataset(tmp_path / "x.hdf5", ("train",), subset=subset)


def test_a_subset_may_be_a_range(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = numpy.arange(10)
        file.attrs["split"] = H5PYDataset.create_split_array({"train": {"x": (2, 10)}})

    dataset = H5PYDataset(tmp_path / "x.h5", ("train",), subset=range(1, 6, 2))

    assert dataset.get_data(request=slice(0, 3))[0].tolist() == [3, 5, 7]
