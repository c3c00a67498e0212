import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.datasets import H5PYDataset, hdf5_format
from fuel_data.datasets.hdf5_format import (
    create_split_array,
    get_all_sources,
    get_all_splits,
    get_axis_labels,
    get_provided_sources,
    get_subsets,
    get_vlen_sources,
    split_rows,
)
from fuel_data.utils import Subset


@pytest.fixture
def h5file(tmp_path):
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        yield file


def documented_array(reference):
    """The attribute as Fuel's documents describe it, made by hand."""
    dtype = numpy.dtype(
        [
            ("split", "S5"),
            ("source", "S8"),
            ("start", numpy.int64),
            ("stop", numpy.int64),
            ("indices", h5py.ref_dtype),
            ("available", numpy.bool_),
            ("comment", "S5"),
        ]
    )
    null = h5py.Reference()
    rows = [
        (b"train", b"features", 0, 6, null, True, b"."),
        (b"train", b"targets", 0, 6, null, True, b"first"),
        (b"test", b"features", -1, -1, reference, True, b"."),
        (b"test", b"targets", 0, 0, null, False, b"."),
    ]
    return numpy.array(rows, dtype=dtype)


def test_the_split_attribute_is_the_documented_one(h5file):
    h5file["indices"] = numpy.array([7, 9])
    reference = h5file["indices"].ref
    array = create_split_array(
        {
            "train": {"targets": (0, 6, None, "first"), "features": (0, 6)},
            "test": {"features": (-1, -1, reference)},
        }
    )
    documented = documented_array(reference)

    assert array.dtype == documented.dtype
    h5file.attrs["split"] = array
    h5file.attrs["documented"] = documented
    stored, expected = h5file.attrs.get_id("split"), h5file.attrs.get_id("documented")
    assert stored.get_type() == expected.get_type()
    for name in array.dtype.names:
        one, two = h5file.attrs["split"][name], h5file.attrs["documented"][name]
        if name == "indices":
            one, two = ([h5file[ref].name if ref else None for ref in x] for x in (one, two))
        assert_array_equal(one, two)


def test_names_that_are_not_ascii_are_whole(h5file):
    h5file["größe"] = numpy.arange(3)
    h5file.attrs["split"] = create_split_array({"übung": {"größe": (0, 3, None, "äöü")}})

    assert get_all_splits(h5file) == ("übung",)
    assert get_all_sources(h5file) == ("größe",)
    assert split_rows(h5file)[0].comment == "äöü"


def test_an_empty_comment_is_stored_as_a_dot():
    array = create_split_array({"train": {"x": (0, 3, None, "")}})

    assert array["comment"] == [b"."]


@pytest.mark.parametrize("entry", [(0,), (0, 3, None, "", 1), 3])
def test_an_entry_of_another_kind_is_refused(entry):
    with pytest.raises(ValueError, match=r"source 'x' of split 'train' must be \(start, stop\)"):
        create_split_array({"train": {"x": entry}})


def test_a_split_that_names_no_sources_is_refused():
    with pytest.raises(ValueError, match=r"split 'train' must be a dict from source to \(start, s"):
        create_split_array({"train": (0, 3)})


def test_names_of_variable_length_are_read_too(h5file):
    array = create_split_array({"träin": {"x": (0, 3)}})
    kind = [
        (name, h5py.string_dtype() if array.dtype[name].kind == "S" else array.dtype[name])
        for name in array.dtype.names
    ]
    rows = numpy.empty(1, dtype=kind)
    for name in array.dtype.names:
        rows[name] = array[name]
    h5file.attrs["split"] = rows

    assert get_all_splits(h5file) == ("träin",)


def test_splits_without_sources_are_refused():
    with pytest.raises(ValueError, match="has to name a split and a source in it"):
        create_split_array({"train": {}})


def test_splits_are_listed_in_the_order_of_the_file(h5file):
    names = [f"fold {number}" for number in (3, 1, 2, 9, 5)]
    h5file.attrs["split"] = create_split_array({name: {"x": (0, 1)} for name in names})

    assert get_all_splits(h5file) == tuple(names)


def test_a_file_without_the_attribute_is_no_data_set(h5file):
    with pytest.raises(ValueError, match=r"data.hdf5 has no root attribute 'split'.*fuel-convert"):
        get_all_splits(h5file)


def test_provided_sources_are_those_that_are_available(h5file):
    h5file.attrs["split"] = create_split_array(
        {"train": {"x": (0, 1), "y": (0, 1)}, "test": {"x": (1, 2)}}
    )

    assert get_provided_sources(h5file, "train") == ("x", "y")
    assert get_provided_sources(h5file, "test") == ("x",)
    with pytest.raises(ValueError, match="has no split 'tets'. Did you mean 'test'?"):
        get_provided_sources(h5file, "tets")


def test_axis_labels_are_dimension_labels_and_none_if_there_are_none(h5file):
    h5file["x"] = numpy.zeros((2, 3))
    h5file["y"] = numpy.zeros(2)
    h5file["x"].dims[0].label = "batch"
    h5file["x"].dims[1].label = "feature"
    h5file.attrs["split"] = create_split_array({"train": {"x": (0, 2), "y": (0, 2)}})

    assert get_axis_labels(h5file) == {"x": ("batch", "feature"), "y": None}


def test_a_ragged_source_with_two_dimensions_is_refused(h5file):
    h5file["x"] = numpy.zeros((2, 3))
    h5file["scale"] = numpy.zeros((2, 2), dtype=int)
    h5file["scale"].make_scale("shapes")
    h5file["x"].dims[0].attach_scale(h5file["scale"])
    h5file.attrs["split"] = create_split_array({"train": {"x": (0, 2)}})

    with pytest.raises(ValueError, match="source 'x' has shapes, so it must have one dimension"):
        get_vlen_sources(h5file)


def test_a_source_that_is_named_and_not_there_is_an_error(h5file):
    h5file["features"] = numpy.zeros(2)
    h5file.attrs["split"] = create_split_array({"train": {"feature": (0, 2)}})

    with pytest.raises(ValueError, match="no such data set .*Did you mean 'features'?"):
        get_vlen_sources(h5file)


def test_a_source_that_is_no_data_set_with_an_axis_is_an_error(h5file):
    h5file.create_group("folder")
    h5file["number"] = 5

    for source in ("folder", "number"):
        h5file.attrs["split"] = create_split_array({"train": {source: (0, 2)}})
        with pytest.raises(ValueError, match=f"a source '{source}', which must be a data set with"):
            get_axis_labels(h5file)
        with pytest.raises(ValueError, match=f"a source '{source}', which must be a data set with"):
            get_subsets(h5file, ["train"], [source])


def test_subsets_are_united_over_splits(h5file):
    h5file["x"] = numpy.zeros(10)
    h5file["indices"] = numpy.array([7, 2, 7])
    h5file.attrs["split"] = create_split_array(
        {"a": {"x": (0, 2)}, "b": {"x": (-1, -1, h5file["indices"].ref)}}
    )

    assert get_subsets(h5file, ["a", "b"], ["x"]) == [Subset([0, 1, 2, 7], 10)]
    assert get_subsets(h5file, ["b", "a"], ["x"], keep_order=True) == [
        Subset([7, 2, 7, 0, 1], 10, keep_order=True)
    ]


def test_the_indices_of_a_split_are_read_at_once(h5file, monkeypatch):
    h5file["x"] = numpy.zeros(20_000)
    h5file["indices"] = numpy.arange(0, 20_000, 2)
    h5file.attrs["split"] = create_split_array({"a": {"x": (-1, -1, h5file["indices"].ref)}})
    asked = []
    original = h5py.Dataset.__getitem__

    def recorded(self, request, **options):
        asked.append((self.name, request))
        return original(self, request, **options)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", recorded)

    (subset,) = get_subsets(h5file, ["a"], ["x"])

    assert subset.num_examples == 10_000
    assert asked == [("/indices", ())]


def test_a_split_attribute_of_another_kind_is_refused_in_words(h5file):
    h5file.attrs["split"] = numpy.arange(3)

    with pytest.raises(ValueError, match="'split' must be an array of records with"):
        split_rows(h5file)


def test_a_split_that_reaches_past_the_end_is_an_error(h5file):
    h5file["x"] = numpy.zeros(10)
    h5file.attrs["split"] = create_split_array({"a": {"x": (0, 11)}})

    with pytest.raises(ValueError, match="split 'a', source 'x': .* past the end of 10 examples"):
        get_subsets(h5file, ["a"], ["x"])


def test_a_split_without_the_source_is_an_error_that_names_the_nearest(h5file):
    h5file["features"] = numpy.zeros(10)
    h5file.attrs["split"] = create_split_array({"a": {"features": (0, 10)}})
    h5file["feature"] = numpy.zeros(10)

    with pytest.raises(ValueError, match="split 'a' has no source 'feature'. Did you mean 'feat"):
        get_subsets(h5file, ["a"], ["feature"])


def test_sources_are_listed_in_the_order_of_the_file(h5file):
    names = [f"source {number}" for number in range(8)]
    h5file.attrs["split"] = create_split_array({"a": dict.fromkeys(reversed(names), (0, 1))})

    assert get_all_sources(h5file) == tuple(names)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (numpy.ones((8, 2), "i4"), "are of 8 examples, and the source has 10. Write a shape for"),
        (numpy.ones((10, 3), "i4"), "have 3 axes, and there are 2 labels in /labels. Write a"),
        (numpy.ones(10, "i4"), r"must be of shape \(example, axis\); they are \(10,\)\."),
    ],
)
def test_shapes_that_do_not_fit_are_refused(h5file, shapes, message):
    h5file.create_dataset("x", (10,), dtype=h5py.vlen_dtype("i4"))
    h5file["shapes"], h5file["labels"] = shapes, [b"height", b"width"]
    for name, scale in [("shapes", "shapes"), ("labels", "shape_labels")]:
        h5file[name].make_scale(scale)
        h5file["x"].dims[0].attach_scale(h5file[name])
    h5file.attrs["split"] = create_split_array({"train": {"x": (0, 10)}})

    with pytest.raises(ValueError, match=f"the shapes of source 'x', in /shapes, {message}"):
        get_vlen_sources(h5file)


@pytest.mark.parametrize("keep_order", [False, True])
def test_many_splits_are_united_without_reading_what_the_file_says_for_each(
    h5file, monkeypatch, keep_order
):
    order = numpy.random.default_rng(1).permutation(301)
    h5file["x"] = numpy.arange(301)
    splits = {}
    for i in range(43):
        h5file[f"indices/{i}"] = order[7 * i : 7 * i + 7]
        splits[f"s{i}"] = {"x": (-1, -1, h5file[f"indices/{i}"].ref)}
    h5file.attrs["split"] = create_split_array(splits)
    calls = []
    monkeypatch.setattr(hdf5_format, "split_rows", lambda file: calls.append(1) or split_rows(file))

    dataset = H5PYDataset(h5file, tuple(splits), keep_order=keep_order)

    expected = order if keep_order else numpy.arange(301)
    assert_array_equal(dataset.get_data(request=slice(0, 301))[0], expected)
    assert len(calls) < 10
