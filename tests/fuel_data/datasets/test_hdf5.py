import os
import pickle
import shutil
import subprocess
import sys

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal, assert_equal

from fuel_data.datasets.hdf5 import H5PYDataset

NUM_EXAMPLES = 20
FEATURES = numpy.arange(NUM_EXAMPLES * 6, dtype="uint8").reshape(NUM_EXAMPLES, 2, 3)
TARGETS = numpy.arange(NUM_EXAMPLES, dtype="int16") * 10
SHAPES = numpy.array([(1 + number % 3, 2) for number in range(NUM_EXAMPLES)], dtype="int32")
RAGGED = [
    numpy.full(shape, number, dtype="float32") + numpy.arange(2)
    for number, shape in enumerate(SHAPES)
]
SPLIT_INDICES = numpy.array([18, 3, 12, 3])


def split_records(h5file):
    """The attribute `split` laid out by hand, as Fuel documents it."""
    null = h5py.Reference()
    reference = h5file["some_indices"].ref
    train, test = (0, 12, null), (12, 20, null)
    extents = {
        b"train": {b"features": train, b"ragged": train, b"targets": train},
        b"test": {b"features": test, b"ragged": test, b"targets": test},
        b"chosen": dict.fromkeys([b"features", b"ragged", b"targets"], (-1, -1, reference)),
        b"unlabeled": {b"features": (4, 9, null)},
    }
    rows = [
        (split, source, *of_sources.get(source, (0, 0, null)), source in of_sources, b".")
        for split, of_sources in extents.items()
        for source in (b"features", b"ragged", b"targets")
    ]
    fields = [("split", "S9"), ("source", "S8"), ("start", "i8"), ("stop", "i8")]
    fields += [("indices", h5py.ref_dtype), ("available", "?"), ("comment", "S1")]
    return numpy.array(rows, dtype=fields)


def write_by_plain_h5py(path, **options):
    with h5py.File(path, "w") as h5file:
        h5file.create_dataset("features", data=FEATURES)
        h5file.create_dataset("targets", data=TARGETS, **options)
        ragged = h5file.create_dataset("ragged", (NUM_EXAMPLES,), dtype=h5py.vlen_dtype("float32"))
        for number, example in enumerate(RAGGED):
            ragged[number] = example.ravel()
        h5file["ragged_shapes"] = SHAPES
        h5file["ragged_shapes_labels"] = numpy.array([b"time", b"feature"])
        h5file["ragged_shapes"].make_scale("shapes")
        h5file["ragged_shapes_labels"].make_scale("shape_labels")
        ragged.dims[0].attach_scale(h5file["ragged_shapes"])
        ragged.dims[0].attach_scale(h5file["ragged_shapes_labels"])
        ragged.dims[0].label = "batch"
        for axis, label in enumerate(["batch", "height", "width"]):
            h5file["features"].dims[axis].label = label
        h5file["some_indices"] = SPLIT_INDICES
        h5file.attrs["split"] = split_records(h5file)
    return path


@pytest.fixture(params=["plain", "chunked"])
def path(request, tmp_path):
    options = {"chunks": (3,), "compression": "gzip"} if request.param == "chunked" else {}
    return str(write_by_plain_h5py(tmp_path / "data.hdf5", **options))


@pytest.fixture(params=[False, True], ids=["disk", "memory"])
def load_in_memory(request):
    return request.param


REQUESTS = [0, 5, numpy.int64(3), slice(2, 7), slice(None), [0], [4, 5, 6], [7, 2, 2, 0]]
REQUESTS += [(1, 5), range(0, 8, 2), numpy.array([7, 0, 7], dtype="int32")]


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_a_file_laid_out_by_plain_h5py_is_read(path, load_in_memory, request_):
    dataset = H5PYDataset(path, ("test",), load_in_memory=load_in_memory)

    features, ragged, targets = dataset.get_data(None, request_)

    assert dataset.sources == ("features", "ragged", "targets")
    indices = numpy.arange(12, 20)[list(request_) if type(request_) in (tuple, range) else request_]
    assert_array_equal(features, FEATURES[indices])
    assert_array_equal(targets, TARGETS[indices])
    assert (features.dtype, targets.dtype) == (FEATURES.dtype, TARGETS.dtype)
    if numpy.ndim(indices) == 0:
        assert_array_equal(ragged, RAGGED[indices])
    else:
        assert ragged.dtype == object and ragged.shape == indices.shape
        assert_equal(list(ragged), [RAGGED[index] for index in indices])


def test_what_the_file_says_is_known_without_reading_it(path):
    dataset = H5PYDataset(path, ("train",))

    assert dataset.num_examples == 12
    assert dataset.provides_sources == ("features", "ragged", "targets")
    assert dataset.vlen_sources == ["ragged"]
    assert dataset.axis_labels == {
        "features": ("batch", "height", "width"),
        "ragged": ("batch", "time", "feature"),
        "targets": None,
    }
    assert dataset.example_iteration_scheme.num_examples == 12


def test_a_file_written_here_is_read_by_plain_h5py(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as h5file:
        h5file["features"], h5file["targets"] = FEATURES, TARGETS
        h5file["some_indices"] = SPLIT_INDICES
        indices = (-1, -1, h5file["some_indices"].ref)
        h5file.attrs["split"] = H5PYDataset.create_split_array(
            {
                "train": {"features": (0, 12), "targets": (0, 12)},
                "chosen": {"features": indices, "targets": indices},
            }
        )

    with h5py.File(tmp_path / "x.hdf5") as h5file:
        rows = h5file.attrs["split"]
        assert rows["split"].tolist() == [b"train", b"train", b"chosen", b"chosen"]
        assert rows["source"].tolist() == [b"features", b"targets"] * 2
        assert rows["start"].tolist() == [0, 0, -1, -1]
        assert rows["stop"].tolist() == [12, 12, -1, -1]
        assert [bool(reference) for reference in rows["indices"]] == [False, False, True, True]
        assert_array_equal(h5file[rows["indices"][2]], SPLIT_INDICES)
        assert rows["available"].all()
        assert set(rows["comment"]) == {b"."}


def test_several_splits_are_united_in_the_order_of_the_file(path, load_in_memory):
    dataset = H5PYDataset(path, ("test", "chosen"), load_in_memory=load_in_memory)

    _, _, targets = dataset.get_data(None, slice(None))

    assert_array_equal(targets, TARGETS[[3, 12, 13, 14, 15, 16, 17, 18, 19]])


def test_with_keep_order_examples_stand_as_named(path, load_in_memory):
    dataset = H5PYDataset(
        path,
        ("chosen", "train"),
        subset=slice(0, 6),
        load_in_memory=load_in_memory,
        keep_order=True,
    )

    _, _, targets = dataset.get_data(None, slice(None))

    assert_array_equal(targets, TARGETS[[18, 3, 12, 3, 0, 1]])


def test_sources_are_those_that_all_splits_have(path):
    assert H5PYDataset(path, ("train", "unlabeled")).sources == ("features",)
    assert H5PYDataset(path, ("unlabeled", "train", "test")).sources == ("features",)


def test_splits_without_a_common_source_are_refused(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as h5file:
        h5file["x"], h5file["y"] = TARGETS, TARGETS
        h5file.attrs["split"] = H5PYDataset.create_split_array(
            {"a": {"x": (0, 1)}, "b": {"y": (0, 1)}, "c": {"x": (0, 1)}}
        )

    with pytest.raises(ValueError, match="splits 'a', 'b', 'c' have no source in common"):
        H5PYDataset(tmp_path / "x.hdf5", ("a", "b", "c"))


@pytest.mark.parametrize(
    ("subset", "expected"),
    [
        (slice(2, 5), [2, 3, 4]),
        ([7, 1], [1, 7]),
        (numpy.array([0, 11]), [0, 11]),
        (None, list(range(12))),
        ([], []),
        (slice(0, 0), []),
    ],
    ids=str,
)
def test_a_subset_is_relative_to_the_splits(path, load_in_memory, subset, expected):
    dataset = H5PYDataset(path, ("train",), subset=subset, load_in_memory=load_in_memory)

    assert dataset.num_examples == len(expected)
    if expected:
        assert_array_equal(dataset.get_data(None, slice(None))[2], TARGETS[expected])


def test_sources_are_given_in_the_order_asked_for(path, load_in_memory):
    dataset = H5PYDataset(
        path, ("train",), sources=["targets", "features"], load_in_memory=load_in_memory
    )
    targets, features = dataset.get_data(None, [1])
    assert_array_equal(targets, TARGETS[[1]])
    assert_array_equal(features, FEATURES[[1]])

    dataset.sources = ("ragged", "targets")

    ragged, targets = dataset.get_data(None, 3)
    assert_array_equal(ragged, RAGGED[3])
    assert targets == TARGETS[3]


def test_in_memory_only_what_was_chosen_is_loaded(path):
    dataset = H5PYDataset(path, ("chosen",), sources=("ragged", "targets"), load_in_memory=True)

    assert [len(array) for array in dataset.data_sources] == [3, 3]
    assert_array_equal(dataset.source_shapes[0], SHAPES[[3, 12, 18]])
    assert dataset.source_shapes[1] is None


@pytest.mark.parametrize("request_", [0, slice(0, 4), [3, 2]], ids=str)
def test_changing_what_was_read_does_not_change_the_data_set(path, load_in_memory, request_):
    dataset = H5PYDataset(path, ("train",), load_in_memory=load_in_memory)
    before = pickle.dumps(dataset.get_data(None, request_))

    features, ragged, _ = dataset.get_data(None, request_)
    features[...] = 77
    (ragged if request_ == 0 else ragged[0])[...] = 77

    assert pickle.dumps(dataset.get_data(None, request_)) == before


def test_variable_lengths_without_shapes_stay_flat(tmp_path, load_in_memory):
    with h5py.File(tmp_path / "x.hdf5", "w") as h5file:
        images = h5file.create_dataset("images", (3,), dtype=h5py.vlen_dtype("uint8"))
        for number in range(3):
            images[number] = numpy.arange(number + 1)
        h5file["words"] = ["one", "two", "three"]
        h5file.attrs["split"] = H5PYDataset.create_split_array(
            {"train": {"images": (0, 3), "words": (0, 3)}}
        )
    dataset = H5PYDataset(tmp_path / "x.hdf5", ("train",), load_in_memory=load_in_memory)

    images, words = dataset.get_data(None, [2, 0])

    assert_equal(list(images), [numpy.arange(3), numpy.arange(1)])
    assert words.tolist() == [b"three", b"one"]
    assert_array_equal(dataset.get_data(None, 1)[0], [0, 1])
    images[0][:] = 9
    assert_array_equal(dataset.get_data(None, 2)[0], [0, 1, 2])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (None, "get_data needs a request"),
        (12, "index 12 is past the end of 12"),
        (-1, "count from 0; got -1"),
        ([0, 12], "index 12"),
        ([], "is empty"),
        (slice(0, 13), "past the end of 12"),
        (slice(0, 6, 2), "step"),
        ([0.5], "indices are integers"),
        ("features", "expected an int, a slice or indices"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused(path, load_in_memory, request_, message):
    dataset = H5PYDataset(path, ("train",), load_in_memory=load_in_memory)

    with pytest.raises(ValueError, match=message):
        dataset.get_data(None, request_)


def test_a_state_is_refused(path):
    with pytest.raises(ValueError, match="has no state; got state 'x'"):
        H5PYDataset(path, ("train",)).get_data("x", [0])


def test_wrong_names_are_refused_with_the_nearest(path):
    with pytest.raises(ValueError, match="has no split 'tran'. Did you mean 'train'?"):
        H5PYDataset(path, ("tran",))
    with pytest.raises(ValueError, match="split 'train' has no source 'feature'. Did you mean 'fe"):
        H5PYDataset(path, ("train",), sources=("feature",))
    with pytest.raises(ValueError, match=r"several names, such as \('train',\)"):
        H5PYDataset(path, "train")
    with pytest.raises(ValueError, match="must name a split; it is empty"):
        H5PYDataset(path, ())


def test_sources_of_different_lengths_are_refused(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as h5file:
        h5file["x"], h5file["y"] = TARGETS, TARGETS
        h5file.attrs["split"] = H5PYDataset.create_split_array({"a": {"x": (0, 3), "y": (0, 4)}})

    with pytest.raises(ValueError, match="equal numbers of examples in a; got {'x': 3, 'y': 4}"):
        H5PYDataset(tmp_path / "x.hdf5", ("a",))
    assert H5PYDataset(tmp_path / "x.hdf5", ("a",), sources=("y",)).num_examples == 4


def test_sources_may_choose_different_examples(tmp_path, load_in_memory):
    with h5py.File(tmp_path / "x.hdf5", "w") as h5file:
        h5file["x"], h5file["y"] = TARGETS, TARGETS
        h5file["x_indices"], h5file["y_indices"] = [1, 4, 6], [0, 2, 9]
        references = {name: (-1, -1, h5file[f"{name}_indices"].ref) for name in "xy"}
        h5file.attrs["split"] = H5PYDataset.create_split_array({"a": references})

    x, y = H5PYDataset(tmp_path / "x.hdf5", ("a",), load_in_memory=load_in_memory).get_data(
        None, [2, 0]
    )

    assert_array_equal(x, TARGETS[[6, 1]])
    assert_array_equal(y, TARGETS[[9, 0]])


def write_numbers(path, **splits):
    """A file where number i is example i of `x`, and stands where `splits` say in `y`."""
    with h5py.File(path, "w") as h5file:
        h5file["x"], h5file["y"] = numpy.arange(5), numpy.arange(5)
        found = {}
        for split, rows in splits.items():
            found[split] = {source: (*part, None) for source, part in rows.items()}
            for source, part in rows.items():
                if isinstance(part, list):
                    h5file[f"{split} {source}"] = part
                    found[split][source] = (-1, -1, h5file[f"{split} {source}"].ref)
        h5file.attrs["split"] = H5PYDataset.create_split_array(found)
    return path


TURNED = {"train": {"x": (0, 3), "y": (2, 5)}, "test": {"x": (3, 5), "y": (0, 2)}}


@pytest.mark.parametrize(
    ("splits", "subset", "x", "y"),
    [
        (TURNED, None, [0, 1, 2, 3, 4], [2, 3, 4, 0, 1]),
        ({"one": {"x": [3, 1], "y": [0, 2]}}, None, [3, 1], [0, 2]),
        ({"one": {"x": [3, 1], "y": [1, 3]}}, None, [3, 1], [1, 3]),
        ({"one": {"x": [4, 3, 1], "y": [4, 0, 2]}}, [1, 0], [3, 4], [0, 4]),
    ],
    ids=["splits", "indices", "the same indices", "subset"],
)
def test_sources_that_sorting_would_pair_wrongly_need_keep_order(
    tmp_path, load_in_memory, splits, subset, x, y
):
    path = write_numbers(tmp_path / "turned.hdf5", **splits)
    options = {"subset": subset, "load_in_memory": load_in_memory}

    with pytest.raises(
        ValueError,
        match=r"turned.hdf5: the examples of x and y stand in different orders in .*, so sorting "
        r"would pair wrong ones. Give keep_order=True",
    ):
        H5PYDataset(path, tuple(splits), **options)
    kept = H5PYDataset(path, tuple(splits), keep_order=True, **options)

    assert_array_equal(kept.get_data(None, slice(0, len(x))), [x, y])


@pytest.mark.parametrize(
    ("splits", "subset", "x", "y"),
    [
        ({"one": {"x": [3, 1], "y": [2, 0]}}, None, [1, 3], [0, 2]),
        ({"one": {"x": [1, 3], "y": (2, 4)}}, None, [1, 3], [2, 3]),
        ({"one": {"x": [3, 1, 0], "y": [4, 2, 1]}}, [], [], []),
        ({"one": {"x": (0, 3), "y": (1, 5)}}, slice(0, 2), [0, 1], [1, 2]),
        ({"one": {"x": [0, 1, 3], "y": (1, 5)}}, slice(0, 2), [0, 1], [1, 2]),
        (
            {"one": {"x": (0, 2), "y": (1, 3)}, "two": {"x": (3, 4), "y": (4, 5)}},
            None,
            [0, 1, 3],
            [1, 2, 4],
        ),
    ],
)
def test_sources_that_sorting_pairs_rightly_need_nothing(tmp_path, splits, subset, x, y):
    path = write_numbers(tmp_path / "numbers.hdf5", **splits)
    dataset = H5PYDataset(path, tuple(splits), subset=subset)

    assert dataset.num_examples == len(x)
    if x:
        assert_array_equal(dataset.get_data(None, slice(0, len(x))), [x, y])


def test_a_file_that_is_no_hdf5_file_is_an_error_with_its_name(tmp_path):
    (tmp_path / "x.hdf5").write_text("text")

    with pytest.raises(OSError, match="x.hdf5 cannot be opened as an HDF5 file"):
        H5PYDataset(tmp_path / "x.hdf5", ("train",))


def open_handles(path):
    folder = "/proc/self/fd"
    links = [os.path.join(folder, name) for name in os.listdir(folder)]
    return sum(os.path.realpath(link) == os.path.realpath(path) for link in links)


def test_no_handle_is_left_behind_by_an_error(path):
    with pytest.raises(ValueError, match="no split"):
        H5PYDataset(path, ("nowhere",))
    with pytest.raises(ValueError, match="past the end"):
        H5PYDataset(path, ("train",), subset=slice(0, 99))

    assert open_handles(path) == 0


def test_the_file_is_closed_when_everybody_has_closed_it(path):
    dataset = H5PYDataset(path, ("train",), sources=("ragged",))
    assert open_handles(path) == 0
    dataset.open()
    with dataset:
        assert open_handles(path) == 1
    assert open_handles(path) == 1
    dataset.close(None)
    assert open_handles(path) == 0

    dataset.get_data(None, [0])
    dataset.close(None)

    assert open_handles(path) == 0


def test_in_memory_no_handle_stays_open(path):
    dataset = H5PYDataset(path, ("train",), load_in_memory=True)
    dataset.open()
    dataset.get_data(None, [0])
    assert open_handles(path) == 0

    copied = pickle.loads(pickle.dumps(dataset))
    copied.get_data(None, [0])

    assert open_handles(path) == 0


def test_an_open_file_is_used_and_left_open(path, load_in_memory):
    with h5py.File(path) as h5file:
        with H5PYDataset(h5file, ("train",), load_in_memory=load_in_memory) as dataset:
            assert_array_equal(dataset.get_data(None, [2])[2], TARGETS[[2]])
        assert h5file
        copied = pickle.loads(pickle.dumps(dataset))
        assert copied.external_file_handle is None

    assert_array_equal(copied.get_data(None, [2])[2], TARGETS[[2]])


def test_a_given_file_that_was_closed_is_an_error_in_words(path):
    with h5py.File(path) as h5file:
        dataset = H5PYDataset(h5file, ("train",))

    with pytest.raises(ValueError, match="has been closed. Keep it open, or give the path"):
        dataset.get_data(None, [0])


def test_the_pickle_is_small_and_reads_the_same(path, load_in_memory):
    dataset = H5PYDataset(path, ("chosen",), subset=[0, 2], load_in_memory=load_in_memory)
    dataset.open()
    before = dataset.get_data(None, [1, 0])

    pickled = pickle.dumps(dataset)
    copied = pickle.loads(pickled)

    assert len(pickled) < 1500
    for one, two in zip(copied.get_data(None, [1, 0]), before, strict=True):
        assert_equal(list(one), list(two))
    assert copied.identity() == dataset.identity()
    assert copied.num_examples == 2


def test_the_pickle_does_not_grow_with_the_data(tmp_path):
    sizes = []
    for num_examples in (1000, 100_000):
        path = tmp_path / f"{num_examples:06}.hdf5"
        with h5py.File(path, "w") as h5file:
            h5file["x"] = numpy.arange(num_examples)
            h5file["indices"] = numpy.arange(0, num_examples, 2)
            h5file.attrs["split"] = H5PYDataset.create_split_array(
                {"train": {"x": (-1, -1, h5file["indices"].ref)}}
            )
        dataset = H5PYDataset(path, ("train",), load_in_memory=True)
        sizes.append(len(pickle.dumps(dataset)))

    assert abs(sizes[0] - sizes[1]) < 20


def test_unpickling_does_not_need_the_file(path, load_in_memory):
    pickled = pickle.dumps(H5PYDataset(path, ("train",), load_in_memory=load_in_memory))
    os.rename(path, path + ".away")

    copied = pickle.loads(pickled)

    assert copied.num_examples == 12
    os.rename(path + ".away", path)
    assert_array_equal(copied.get_data(None, [2])[2], TARGETS[[2]])


def test_a_moved_file_is_found_in_the_data_path(path, load_in_memory, tmp_path, monkeypatch):
    pickled = pickle.dumps(H5PYDataset(path, ("train",), load_in_memory=load_in_memory))
    (tmp_path / "moved").mkdir()
    os.rename(path, tmp_path / "moved" / "data.hdf5")
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path / "moved"))

    copied = pickle.loads(pickled)

    assert_array_equal(copied.get_data(None, [2])[2], TARGETS[[2]])
    assert_array_equal(H5PYDataset("data.hdf5", ("train",)).get_data(None, 2)[2], TARGETS[2])


def test_a_file_that_is_nowhere_is_an_error_in_words(path, tmp_path, monkeypatch):
    copied = pickle.loads(pickle.dumps(H5PYDataset(path, ("train",))))
    os.remove(path)
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path / "elsewhere"))

    with pytest.raises(FileNotFoundError, match="no file .*data.hdf5, and 'data.hdf5' is in no f"):
        copied.get_data(None, [0])


def test_a_file_with_other_data_than_before_is_refused(path, load_in_memory):
    dataset = H5PYDataset(path, ("train",), load_in_memory=load_in_memory)
    copied = pickle.loads(pickle.dumps(dataset))
    with h5py.File(path, "r+") as h5file:
        rows = h5file.attrs["split"]
        rows["stop"][:3] = 11
        h5file.attrs["split"] = rows

    with pytest.raises(ValueError, match="has changed since it was first opened: .*header was"):
        copied.get_data(None, [0])


def test_a_file_without_the_split_any_more_is_refused(path):
    copied = pickle.loads(pickle.dumps(H5PYDataset(path, ("train",))))
    with h5py.File(path, "r+") as h5file:
        rows = h5file.attrs["split"]
        rows["split"][:3] = b"other"
        h5file.attrs["split"] = rows

    with pytest.raises(ValueError, match="it no longer fits: .* has no split 'train'"):
        copied.get_data(None, [0])
    assert open_handles(path) == 0


def test_the_identity_does_not_depend_on_the_folder_or_on_memory(path, tmp_path):
    (tmp_path / "other").mkdir()
    shutil.copy(path, tmp_path / "other" / "data.hdf5")

    one = H5PYDataset(path, ("train",)).identity()
    two = H5PYDataset(tmp_path / "other" / "data.hdf5", ("train",), load_in_memory=True).identity()

    assert one == two
    assert one["file"] == "data.hdf5"
    assert one["size"] == os.path.getsize(path)


@pytest.mark.parametrize(
    "other",
    [
        {"which_sets": ("test",)},
        {"subset": slice(0, 12)},
        {"subset": [0, 1]},
        {"sources": ("targets", "ragged", "features")},
        {"keep_order": True},
    ],
    ids=str,
)
def test_the_identity_depends_on_what_is_read(path, other):
    arguments = {"which_sets": ("train",)}

    one = H5PYDataset(path, **arguments).identity()

    assert H5PYDataset(path, **{**arguments, **other}).identity() != one


FORK = """
import os, sys
from fuel_data.datasets import H5PYDataset

dataset = H5PYDataset(sys.argv[1], ("test",))
dataset.open()
parent_handle = dataset._file()
child = os.fork()
if child == 0:
    print(dataset.get_data(None, [7, 0])[2].tolist(), flush=True)
    print("own handle:", dataset._file().id.id != parent_handle.id.id, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(dataset.get_data(None, [7, 0])[2].tolist())
dataset.close(None)
"""


def test_a_forked_child_reads_with_a_handle_of_its_own(path):
    # In a process of its own, which has no threads that a fork would lose.
    finished = subprocess.run(
        [sys.executable, "-c", FORK, str(path)], capture_output=True, text=True, check=True
    )

    assert finished.stdout.splitlines() == ["[190, 120]", "own handle: True", "[190, 120]"]


def test_a_new_process_reads_what_was_pickled_elsewhere(path, tmp_path):
    dataset = H5PYDataset(os.path.relpath(path), ("test",))
    (tmp_path / "dataset.pkl").write_bytes(pickle.dumps(dataset))
    program = (
        "import pickle, sys\n"
        "with open('dataset.pkl', 'rb') as file:\n"
        "    print(pickle.load(file).get_data(None, [7, 0])[2])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[190 120]\n"


def test_contiguous_requests_reach_hdf5_as_slices(tmp_path, monkeypatch):
    path = write_by_plain_h5py(tmp_path / "data.hdf5")
    asked = []
    original = h5py.Dataset.__getitem__

    def recorded(self, request, **options):
        asked.append(request)
        return original(self, request, **options)

    with H5PYDataset(path, ("train",), sources=("ragged",)) as dataset:
        dataset.get_data(None, [0])
        monkeypatch.setattr(h5py.Dataset, "__getitem__", recorded)
        dataset.get_data(None, [3, 4, 5])
        dataset.get_data(None, [5, 3, 4, 3])

    assert asked == [slice(3, 6), slice(3, 6)]


def test_repr_says_what_is_read(path):
    shown = repr(H5PYDataset(path, ("train",), sources=("targets",)))

    assert shown == (
        "<H5PYDataset data.hdf5, which_sets=('train',), sources=('targets',), 12 examples, on disk>"
    )
