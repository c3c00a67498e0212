import numpy
import pytest

from fuel_data.config_parser import config
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialExampleScheme, SequentialScheme, ShuffledScheme
from fuel_data.streams import DataStream
from fuel_data.testing import same_data
from fuel_data.transformers import Filter, FilterSources, Mapping, SortMapping, Unpack

LABELS = {"x": ("batch",), "y": ("batch",)}


@pytest.fixture
def batches():
    dataset = IndexableDataset({"x": numpy.arange(4), "y": list("abcd")}, axis_labels=LABELS)
    return DataStream(dataset, iteration_scheme=SequentialScheme(4, 2))


@pytest.fixture
def examples(batches):
    return DataStream(batches.dataset, iteration_scheme=SequentialExampleScheme(4))


def _square(data):
    return (data[0] ** 2, data[1])


def test_mapping_takes_the_place_of_the_data(examples):
    assert list(Mapping(examples, _square))[3] == (9, "d")


def test_mapping_appends_the_sources_that_are_added(examples):
    stream = Mapping(examples, lambda data: (data[0] + 1, data[1] * 2), add_sources=["x1", "y2"])
    assert stream.sources == ("x", "y", "x1", "y2")
    assert list(stream)[1] == (1, "b", 2, "bb")


def test_mapping_labels_stay_and_added_sources_have_none_unless_given(batches):
    assert Mapping(batches, tuple).axis_labels == LABELS
    added = Mapping(batches, tuple, add_sources=("u", "v"))
    assert added.axis_labels == {**LABELS, "u": None, "v": None}
    given = Mapping(batches, tuple, add_sources=("u", "v"), axis_labels={"u": ("batch",)})
    assert given.axis_labels == {**LABELS, "u": ("batch",), "v": None}


def test_mapping_accepts_dicts(examples):
    def double(data):
        return {"y": data["y"] * 2, "x": data["x"]}

    assert list(Mapping(examples, double, mapping_accepts=dict))[1] == (1, "bb")
    added = Mapping(examples, lambda d: {"z": d["y"]}, add_sources=("z",), mapping_accepts=dict)
    assert list(added)[1] == (1, "b", "b")


def test_filter_wants_one_answer_for_each_item(batches, examples):
    with pytest.raises(ValueError, match=r"bool and shape \(2,\)\. .* put Unpack below\.$"):
        next(iter(Filter(batches, lambda data: data[0] > 1)))
    with pytest.raises(ValueError, match=r"^Filter: `predicate` .*; got None, as of a function"):
        next(iter(Filter(examples, lambda data: None)))
    with pytest.raises(ValueError, match=r"got \[False, False\]\. .* To choose examples, put Unp"):
        next(iter(Filter(batches, lambda data: [x > 9 for x in data[0].tolist()])))
    with pytest.raises(ValueError, match=r"got \(False,\)\. .* of several\.$"):
        next(iter(Filter(examples, lambda data: (False,))))
    assert [data[0] for data in Filter(examples, lambda data: numpy.array([data[0] > 1]))] == [2, 3]


def test_mapping_refuses_results_that_do_not_fit_the_sources(examples):
    with pytest.raises(ValueError, match=r"one item for each of \('x', 'y'\); got 1 items"):
        next(iter(Mapping(examples, lambda data: data[:1])))
    with pytest.raises(ValueError, match="got <class 'int'>"):
        next(iter(Mapping(examples, len)))
    with pytest.raises(ValueError, match="the function gave 'z', which is not among the sources"):
        next(iter(Mapping(examples, lambda data: {"z": 1}, mapping_accepts=dict)))
    with pytest.raises(ValueError, match=r"the function gave no \['y'\] but \['x'\]"):
        next(iter(Mapping(examples, lambda data: {"x": 1}, mapping_accepts=dict)))


def test_mapping_refuses_arguments_that_make_no_sense(examples):
    with pytest.raises(ValueError, match="`mapping_accepts` must be list or dict; got 'dict'"):
        Mapping(examples, tuple, mapping_accepts="dict")
    with pytest.raises(ValueError, match="`seed` has no effect without random=True"):
        Mapping(examples, tuple, seed=3)
    with pytest.raises(ValueError, match="`add_sources` names 'x', which the stream below has alr"):
        Mapping(examples, tuple, add_sources=("x",))
    with pytest.raises(ValueError, match=r"names 'z' more than once: \('z', 'u', 'z'\)\.$"):
        Mapping(examples, tuple, add_sources=("z", "u", "z"))
    with pytest.raises(ValueError, match=r"got the text 'z'. Write \('z',\)"):
        Mapping(examples, tuple, add_sources="z")
    with pytest.raises(ValueError, match="Mapping: the stream below gives examples, but this shou"):
        Mapping(examples, tuple, produces_examples=False)


def test_a_function_that_raises_stop_iteration_does_not_cut_the_epoch_short(examples):
    with pytest.raises(RuntimeError, match="Mapping: the function that it applies raised StopIt"):
        list(Mapping(examples, lambda data: next(iter(()))))
    with pytest.raises(RuntimeError, match="Filter: the function that it applies raised StopIter"):
        list(Filter(examples, lambda data: next(iter(()))))


def _draw(data, rng):
    return (rng.normal(size=2), data[1])


def test_a_random_mapping_draws_anew_for_each_item_and_epoch_and_the_same_in_each_run(examples):
    stream = Mapping(examples, _draw, random=True)
    draws = [x.tolist() for x, _ in [*stream, *stream]]
    assert len(numpy.unique(draws)) == 2 * 4 * 2
    again = Mapping(examples, _draw, random=True)
    assert [x.tolist() for x, _ in [*again, *again]] == draws
    assert not same_data(list(Mapping(examples, _draw, random=True, seed=2)), draws[:4])


def test_the_seed_of_a_random_mapping_is_read_when_it_is_made(examples):
    config.default_seed = 12
    try:
        stream = Mapping(examples, _draw, random=True)
    finally:
        del config.default_seed
    assert same_data(list(stream), list(Mapping(examples, _draw, random=True, seed=12)))


def test_filter_leaves_examples_out_and_respects_as_dict(examples):
    stream = Filter(examples, lambda data: data[0] % 2)
    assert list(stream) == [(1, "b"), (3, "d")]
    assert next(stream.get_epoch_iterator(as_dict=True)) == {"x": 1, "y": "b"}
    assert stream.axis_labels == examples.axis_labels


def test_filter_leaves_whole_batches_out(batches):
    assert [y for _, y in Filter(batches, lambda data: data[0][0] > 0)] == [["c", "d"]]
    with pytest.raises(ValueError, match="Filter: the stream below gives batches, but this should"):
        Filter(batches, bool, produces_examples=True)


def test_filter_may_leave_everything_out(examples):
    assert list(Filter(examples, lambda data: False)) == []


def test_sort_mapping_sorts_within_each_batch_and_keeps_the_kinds():
    data = {"x": numpy.array([2, 1, 4, 3]), "y": list("abcd")}
    stream = DataStream(IndexableDataset(data), iteration_scheme=SequentialScheme(4, 2))
    first, second = list(Mapping(stream, SortMapping(lambda example: example[0])))
    assert (first[0].tolist(), first[1]) == ([1, 2], ["b", "a"])
    assert (second[0].tolist(), second[1]) == ([3, 4], ["d", "c"])
    (reverse, _) = list(Mapping(stream, SortMapping(lambda example: example[1], reverse=True)))
    assert reverse[1] == ["b", "a"]


def test_sort_mapping_keeps_the_order_of_equal_examples_and_ragged_arrays():
    rows = numpy.empty(3, dtype=object)
    rows[0], rows[1], rows[2] = numpy.ones(2), numpy.ones(2), numpy.zeros(1)
    x, y = SortMapping(lambda example: len(example[0]))((rows, (1, 2, 3)))
    assert x.dtype == object
    assert ([len(row) for row in x], y) == ([1, 2, 2], (3, 1, 2))


def test_sort_mapping_says_what_it_needs():
    sort = SortMapping(lambda example: example[0])
    with pytest.raises(
        ValueError,
        match=r"^SortMapping: each source must have an item for each example of a batch; got "
        r"2\.5\. Put Batch below, or sort with a function that leaves this source as it is\.$",
    ):
        sort(([1, 2], 2.5))
    with pytest.raises(
        ValueError,
        match=r"^SortMapping: all sources of a batch must have the same .*; got \[2, 1\]",
    ):
        sort(([1, 2], [1]))


@pytest.mark.parametrize("wrong", [None, 3, "len"])
def test_what_is_no_function_is_refused_when_it_is_handed_in(batches, wrong):
    got = rf"must be a function; got {wrong!r}\.$"
    with pytest.raises(ValueError, match=f"^Mapping: `mapping` {got}"):
        Mapping(batches, wrong)
    with pytest.raises(ValueError, match=f"^Filter: `predicate` {got}"):
        Filter(batches, wrong)
    with pytest.raises(ValueError, match=f"^SortMapping: `key` {got}"):
        SortMapping(wrong)


class Jitter:
    def __init__(self):
        self.rng = numpy.random.RandomState(4)

    def __call__(self, data):
        return tuple(source + self.rng.normal() for source in data)


def test_a_generator_that_a_function_holds_is_part_of_the_state():
    def build():
        dataset = IndexableDataset(numpy.arange(6.0))
        batches = DataStream(dataset, iteration_scheme=ShuffledScheme(6, 4))
        return FilterSources(Unpack(Mapping(batches, Jitter())), ["data"])

    stream = build()
    reference = [list(stream), list(stream)]
    for step in range(6):
        iterator = build().get_epoch_iterator()
        for _ in range(step):
            next(iterator)
        restored = build().get_epoch_iterator()
        restored.set_state(iterator.get_state())
        rest = [list(restored), list(restored.data_stream)]
        assert same_data(rest, [reference[0][step:], reference[1]])


def test_sources_may_be_named_in_lists_everywhere():
    data = {"x": [1, 2], "y": [3, 4]}
    stream = IndexableDataset(data, sources=["y", "x"]).get_example_stream()

    added = Mapping(stream, lambda data: (sum(data),), add_sources=["z"])

    assert added.sources == ("y", "x", "z")
    assert list(FilterSources(added, ["z", "y"])) == [(4, 3), (6, 4)]


def test_a_sorting_function_says_what_it_is_in_a_printed_pipeline():
    assert repr(SortMapping(len)) == "SortMapping(len)"
    assert repr(SortMapping(len, reverse=True)) == "SortMapping(len, reverse=True)"
