import numpy
import pytest

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.exceptions import AxisLabelsMismatchError
from fuel_data.schemes import (
    ConcatenatedScheme,
    ConstantScheme,
    SampledScheme,
    SequentialExampleScheme,
    SequentialScheme,
    WeightedScheme,
)
from fuel_data.streams import DataStream
from fuel_data.testing import same_data
from fuel_data.transformers import (
    Batch,
    Cache,
    Filter,
    Mapping,
    Merge,
    Padding,
    Rename,
    Repeat,
    SourcewiseTransformer,
    Transformer,
    Unpack,
)

LABELS = {"x": ("batch", "time"), "y": ("batch",), "z": None}


def batches(num_examples, batch_size, labels=None):
    data = {"x": numpy.arange(2 * num_examples).reshape(-1, 2), "y": list(range(num_examples))}
    if labels:
        data["z"] = data["y"]
    dataset = IndexableDataset(data, axis_labels=labels)
    return DataStream(dataset, iteration_scheme=SequentialScheme(num_examples, batch_size))


def examples(num_examples, labels=None):
    dataset = batches(num_examples, 1, labels).dataset
    return DataStream(dataset, iteration_scheme=SequentialExampleScheme(num_examples))


def y(stream):
    return [list(item[1]) for item in stream]


def ragged(*lengths, rest=(), dtype="float32"):
    """Give a stream of one batch, whose example i is full of i + 1."""
    rows = [numpy.full((length, *rest), i + 1, dtype) for i, length in enumerate(lengths)]
    labels = {"x": ("batch", "time", "feature"), "y": ("batch",)}
    data = {"x": rows, "y": numpy.arange(len(rows))}
    dataset = IndexableDataset(data, axis_labels=labels)
    return DataStream(dataset, iteration_scheme=SequentialScheme(len(rows), len(rows)))


def test_batch_stacks_examples_and_keeps_a_short_last_batch():
    stream = Batch(examples(5), ConstantScheme(2))
    assert y(stream) == [[0, 1], [2, 3], [4]]
    x = next(iter(stream))[0]
    assert x.tolist() == [[0, 1], [2, 3]]
    assert x.dtype == numpy.arange(1).dtype
    assert not stream.produces_examples


def test_batch_can_leave_a_short_last_batch_out_or_refuse_it():
    assert y(Batch(examples(5), ConstantScheme(2), strictness=1)) == [[0, 1], [2, 3]]
    assert y(Batch(examples(4), ConstantScheme(2), strictness=2)) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="the last batch has 1 examples instead of 2. Give strict"):
        list(Batch(examples(5), ConstantScheme(2), strictness=2))
    with pytest.raises(ValueError, match="`strictness` must be 0, 1 or 2; got 3"):
        Batch(examples(5), ConstantScheme(2), strictness=3)


@pytest.mark.parametrize("strictness", [0, 1])
@pytest.mark.parametrize("limit", [{}, {"num_examples": 5}, {"num_examples": 9}, {"times": 2}])
@pytest.mark.parametrize("available", [0, 4, 5, 6, 7])
def test_batch_knows_how_many_batches_and_examples_it_gives(strictness, limit, available):
    stream = Batch(examples(available), ConstantScheme(2, **limit), strictness=strictness)
    sizes = [len(batch) for batch in y(stream)]
    assert (stream.num_batches, stream.num_examples) == (len(sizes), sum(sizes))


def test_batch_of_ragged_examples_is_an_object_array_of_arrays():
    stream = Batch(Unpack(ragged(1, 3)), ConstantScheme(2))
    ((x, _),) = list(stream)
    assert x.dtype == object
    assert [row.tolist() for row in x] == [[1], [2, 2, 2]]


def test_batch_and_unpack_put_the_batch_axis_on_and_off():
    stream = examples(4, LABELS)
    assert stream.axis_labels == {"x": ("time",), "y": (), "z": None}
    assert Batch(stream, ConstantScheme(2)).axis_labels == LABELS
    assert Unpack(batches(4, 2, LABELS)).axis_labels == stream.axis_labels
    assert Batch(examples(4), ConstantScheme(2)).axis_labels is None


def test_batches_over_batches_and_examples_over_examples_are_refused():
    with pytest.raises(ValueError, match="Batch: `data_stream` must give examples; got DataStream"):
        Batch(batches(4, 2), ConstantScheme(2))
    for transformer in (Unpack, Padding, lambda s: Cache(s, ConstantScheme(2))):
        with pytest.raises(ValueError, match="`data_stream` must give batches; .* Put Batch b"):
            transformer(examples(4))


def test_schemes_that_do_not_ask_for_numbers_of_examples_are_refused():
    with pytest.raises(ValueError, match="Batch: `iteration_scheme` must ask for numbers of exam"):
        Batch(examples(4), SequentialScheme(4, 2))
    with pytest.raises(ValueError, match="Cache: `iteration_scheme` must ask for numbers of exam"):
        Cache(batches(4, 2), SequentialExampleScheme(4))


def test_unpack_gives_each_example_and_leaks_nothing_into_the_next_epoch():
    stream = Unpack(batches(5, 2))
    iterator = stream.get_epoch_iterator()
    assert [next(iterator)[1] for _ in range(3)] == [0, 1, 2]
    assert [item[1] for item in stream] == [0, 1, 2, 3, 4]
    assert (len(stream), stream.produces_examples) == (5, True)


def test_an_unpacked_example_keeps_no_batch_in_memory():
    vectors = [numpy.arange(2), numpy.arange(3)]
    dataset = IndexableDataset({"array": numpy.zeros((2, 3)), "ragged": vectors, "n": [4, 5]})
    example = next(iter(Unpack(DataStream(dataset, SequentialScheme(2, 2)))))

    assert [getattr(item, "base", None) for item in example] == [None, None, None]
    assert same_data(example, (numpy.zeros(3), numpy.arange(2), 4))


def test_unpack_refuses_sources_of_different_lengths():
    stream = Unpack(Mapping(batches(4, 2), lambda data: (data[0], data[1][:1])))
    with pytest.raises(ValueError, match="must have the same number of examples; got {'x': 2, 'y'"):
        next(iter(stream))


def test_unpack_passes_over_empty_batches():
    stream = Unpack(Mapping(batches(4, 2), lambda d: tuple(s[: 2 * (d[1][0] > 0)] for s in d)))
    assert [item[1] for item in stream] == [2, 3]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 12, 20])
@pytest.mark.parametrize("chunk", [1, 3, 5, 12])
def test_cache_loses_nothing_whatever_the_sizes(size, chunk):
    stream = Cache(batches(12, chunk), ConstantScheme(size))
    expected = [list(range(i, min(i + size, 12))) for i in range(0, 12, size)]
    assert y(stream) == expected
    assert [item[0][:, 0].tolist() for item in stream] == [[2 * i for i in b] for b in expected]
    assert (stream.num_batches, stream.num_examples) == (len(expected), 12)


def test_cache_stops_when_its_requests_end_and_leaks_nothing():
    stream = Cache(batches(12, 5), ConstantScheme(2, num_examples=3))
    assert y(stream) == y(stream) == [[0, 1], [2]]
    assert (stream.num_batches, stream.num_examples) == (2, 3)


def test_cache_joins_ragged_sources_of_any_kind():
    (first,) = list(Cache(ragged(1, 3, 2), ConstantScheme(3)))
    assert [len(row) for row in first[0]] == [1, 3, 2]
    mixed = Cache(Batch(Unpack(ragged(2, 2, 3, 1)), ConstantScheme(2)), ConstantScheme(4))
    ((x, targets),) = list(mixed)
    assert x.dtype == object
    assert [row.tolist() for row in x] == [[1, 1], [2, 2], [3, 3, 3], [4]]
    assert targets.tolist() == [0, 1, 2, 3]


def test_padding_fills_with_zeros_and_masks():
    stream = Padding(ragged(1, 3), mask_sources=("x",))
    assert stream.sources == ("x", "x_mask", "y")
    x, mask, targets = next(iter(stream))
    assert x.tolist() == [[1, 0, 0], [2, 2, 2]]
    assert mask.tolist() == [[1, 0, 0], [1, 1, 1]]
    assert (x.dtype, mask.dtype, targets.tolist()) == ("float32", "float32", [0, 1])


def test_padding_keeps_other_axes_and_dtypes():
    stream = Padding(ragged(1, 2, rest=(3,), dtype="uint8"), ("x",), mask_dtype="bool")
    x, mask, _ = next(iter(stream))
    assert (x.shape, x.dtype, mask.dtype) == ((2, 2, 3), "uint8", "bool")
    assert x[0].tolist() == [[1, 1, 1], [0, 0, 0]]


def test_padding_masks_all_sources_by_default():
    stream = Padding(Mapping(ragged(1, 2), lambda d: (d[0], d[0])))
    assert stream.sources == ("x", "x_mask", "y", "y_mask")
    assert [part.shape for part in next(iter(stream))] == [(2, 2)] * 4


@pytest.mark.parametrize(
    ("arguments", "length"),
    [
        ({}, 5),
        ({"multiple_of": 4}, 8),
        ({"multiple_of": 5}, 5),
        ({"lengths": [16, 6, 5]}, 5),
        ({"lengths": [4, 6]}, 6),
    ],
)
def test_padding_keeps_shapes_few(arguments, length):
    x, mask, _ = next(iter(Padding(ragged(5, 2), ("x",), **arguments)))
    assert x.shape == mask.shape == (2, length)
    assert mask.sum() == 7


def test_padding_refuses_an_example_longer_than_all_lengths():
    stream = Padding(ragged(5, 2), ("x",), lengths=[2, 4])
    with pytest.raises(ValueError, match=r"'x' is 5 long, longer than all of `lengths`: \[2, 4\]"):
        next(iter(stream))


def test_padding_refuses_arguments_that_make_no_sense():
    with pytest.raises(ValueError, match="give `multiple_of` or `lengths`, not both"):
        Padding(ragged(1), multiple_of=2, lengths=[2])
    with pytest.raises(ValueError, match="`multiple_of` must be at least 1; got 0"):
        Padding(ragged(1), multiple_of=0)
    with pytest.raises(ValueError, match=r"`lengths` must be lengths, at least one; got \[\]\.$"):
        Padding(ragged(1), lengths=[])
    with pytest.raises(ValueError, match=r"^Padding: `lengths` must be .* at least one; got 5\.$"):
        Padding(ragged(1), lengths=5)
    with pytest.raises(TypeError, match=r"^Padding: `mask_dtype` must be .*; got 'flaot32'\. Did"):
        Padding(ragged(1), mask_dtype="flaot32")
    with pytest.raises(ValueError, match="`mask_sources` names 'z', which the stream below does n"):
        Padding(ragged(1), ("z",))


@pytest.mark.parametrize(
    ("over", "words"),
    [
        (Unpack, r"Leave it out with FilterSources\."),
        (lambda stream: Cache(stream, ConstantScheme(2)), r"Leave it out with FilterSources\."),
        (lambda stream: Padding(stream, ("y",)), r"Leave it out of `mask_sources`\."),
    ],
)
@pytest.mark.parametrize("single", [2.5, numpy.float64(2.5), numpy.array(2.5)])
def test_a_source_that_has_one_item_for_all_examples_is_named(over, words, single):
    stream = over(Mapping(batches(4, 2), lambda data: (data[0], single)))
    with pytest.raises(
        ValueError,
        match=r"^\w+: the source 'y' must have an item for each example of a batch; got .*"
        rf"{words}$",
    ):
        next(iter(stream))


def test_an_empty_batch_is_not_padded():
    empty = Mapping(batches(4, 2), lambda data: tuple(source[:0] for source in data))
    with pytest.raises(
        ValueError,
        match=r"^Padding: a batch of the source 'x' is empty, so that there is no length to fill "
        r"it to\. Leave it out with Filter\.$",
    ):
        next(iter(Padding(empty)))


def test_padding_refuses_what_cannot_be_filled():
    with pytest.raises(ValueError, match="the source 'y' has no axis to fill. Leave it out of"):
        next(iter(Padding(ragged(1, 2))))
    rows = [numpy.zeros((1, 2)), numpy.zeros((1, 3))]
    stream = DataStream(IndexableDataset(rows), iteration_scheme=SequentialScheme(2, 2))
    with pytest.raises(ValueError, match="must differ in their first axis only; got the shapes"):
        next(iter(Padding(stream)))


def test_padding_refuses_a_mask_whose_name_is_taken():
    with pytest.raises(ValueError, match="'x_mask', which the stream below has already. Rename"):
        Padding(Padding(ragged(1), ("x",)), ("x",))


def test_padding_labels_masks_by_batch_and_time():
    labels = Padding(ragged(1, 2, rest=(3,)), ("x",)).axis_labels
    assert labels == {
        "x": ("batch", "time", "feature"),
        "x_mask": ("batch", "time"),
        "y": ("batch",),
    }
    assert Padding(batches(4, 2), ("x",)).axis_labels is None


def test_padding_knows_its_length():
    stream = Padding(batches(5, 2), ("x",))
    assert (len(stream), stream.num_examples) == (3, 5)


def test_lengths_that_are_not_known_stay_unknown():
    unknown = Filter(examples(4), bool)
    assert Batch(unknown, ConstantScheme(2)).num_batches is None
    endless = DataStream(IterableDataset(lambda: iter(range(5))))
    assert Batch(endless, ConstantScheme(2)).num_batches is None
    assert [len(x) for (x,) in Batch(endless, ConstantScheme(2))] == [2, 2, 1]


@pytest.mark.parametrize("error", [ValueError, NotImplementedError])
def test_examples_where_batches_are_needed_can_be_caught_as_in_fuel(error):
    class OfBatches(Transformer):
        def transform_batch(self, batch):
            return batch

    class OfBatchesBySource(SourcewiseTransformer):
        def transform_source_batch(self, batch, source):
            return batch

    examples = IndexableDataset({"x": numpy.arange(4)}).get_example_stream()
    for make in (Unpack, OfBatches, lambda s: OfBatchesBySource(s, produces_examples=True)):
        with pytest.raises(error, match="Batch"):
            make(examples)
    with pytest.raises(error, match="should give batches"):
        SourcewiseTransformer(examples, produces_examples=False)


def test_padding_refuses_examples_whose_elements_differ_in_length():
    words = numpy.empty(2, dtype=object)
    words[:] = [numpy.arange(1), numpy.arange(2)]
    sentences = numpy.empty(1, dtype=object)
    sentences[0] = words
    stream = DataStream(IndexableDataset({"x": sentences}), iteration_scheme=SequentialScheme(1, 1))

    with pytest.raises(ValueError, match="source 'x' must be arrays of numbers or text, not of"):
        next(Padding(stream).get_epoch_iterator())


@pytest.mark.parametrize("ask", ["reset", "next_epoch", "close"])
def test_what_the_stream_is_asked_for_takes_no_leftover_into_the_next_epoch(ask):
    stream = Unpack(batches(5, 3))
    iterator = stream.get_epoch_iterator()
    first = [next(iterator)[1]]
    getattr(stream, ask)()

    assert [number for _, number in stream] == [0, 1, 2, 3, 4]
    assert first + [number for _, number in iterator] == [0, 1, 2, 3, 4]


def test_batches_of_merged_examples_and_merged_batches_lose_nothing():
    def named(x, y):
        return Rename(examples(5), {"x": x, "y": y})

    merged = Batch(Merge([named("a", "b"), named("c", "d")]), ConstantScheme(2))
    of_batches = Merge([Batch(named(*names), ConstantScheme(2)) for names in ("ab", "cd")])

    for stream in (merged, of_batches):
        for _ in range(2):
            items = list(stream)
            assert y(items) == [list(item[3]) for item in items] == [[0, 1], [2, 3], [4]]


def iterable(items, labels=None):
    return DataStream(IterableDataset({"x": items}, axis_labels=labels))


def test_bytes_keep_their_zeros_in_a_batch():
    (x,) = next(iter(Batch(iterable([b"a\0\0", b"bcd"]), ConstantScheme(2))))
    assert (x.dtype, x.tolist()) == (object, [b"a\0\0", b"bcd"])


def test_an_empty_sentence_does_not_make_floats_of_numbers():
    x, mask = next(iter(Padding(Batch(iterable([[1, 2], [], [3]]), ConstantScheme(3)))))
    assert (x.dtype, x.tolist()) == (numpy.int64, [[1, 2], [0, 0], [3, 0]])
    assert mask.tolist() == [[1, 1], [0, 0], [1, 0]]


def test_an_example_that_is_no_array_is_named_with_the_way_out():
    with pytest.raises(ValueError, match="cannot become an array.*one array of each example with"):
        list(Batch(iterable([[[1], [2, 3]], [[4]]]), ConstantScheme(2)))


@pytest.mark.parametrize(
    "scheme",
    [
        WeightedScheme([1, 1], 2),
        SampledScheme(4, 2),
        SequentialScheme(4, 2),
        ConcatenatedScheme([SequentialScheme(4, 2)]),
        None,
    ],
)
def test_a_scheme_that_does_not_ask_for_sizes_is_refused_when_it_is_handed_in(scheme):
    with pytest.raises(ValueError, match="Batch: `iteration_scheme` must ask for numbers of exam"):
        Batch(examples(4), scheme)
    with pytest.raises(ValueError, match="Cache: `iteration_scheme` must ask for numbers of exam"):
        Cache(batches(4, 2), scheme)


def test_a_number_in_the_place_of_a_scheme_is_answered_with_the_scheme():
    with pytest.raises(ValueError, match=r"got 3. Write ConstantScheme\(3\)\."):
        Batch(examples(4), 3)


@pytest.mark.parametrize("over", [Unpack, Padding, lambda stream: Cache(stream, ConstantScheme(2))])
def test_batches_whose_examples_are_not_on_the_first_axis_are_refused(over):
    dataset = IndexableDataset({"x": numpy.zeros((4, 6))})
    stream = DataStream(dataset, SequentialScheme(4, 4), axis_labels={"x": ("time", "batch")})
    with pytest.raises(AxisLabelsMismatchError, match=r"'x' must be on the first axis of a batch"):
        over(stream)


def test_labels_of_none_are_those_of_the_stream_below_with_or_without_the_batch():
    labelled = iterable([[1, 2]], labels={"x": ("time",)})
    batched = Batch(labelled, ConstantScheme(1), axis_labels=None)
    assert batched.axis_labels == {"x": ("batch", "time")}
    assert Unpack(batched, axis_labels=None).axis_labels == {"x": ("time",)}


def test_lengths_may_be_an_array():
    stream = Padding(Batch(iterable([[1], [1, 2]]), ConstantScheme(2)), lengths=numpy.array([4, 2]))
    assert next(iter(stream))[0].tolist() == [[1, 0], [1, 2]]


def test_so_many_batches_of_endless_examples_are_counted():
    endless = Repeat(examples(3))
    assert len(Batch(endless, ConstantScheme(2, times=5))) == 5
    assert Batch(endless, ConstantScheme(2)).num_batches is None
    cached = Cache(Batch(endless, ConstantScheme(2)), ConstantScheme(3, num_examples=7))
    assert (cached.num_batches, cached.num_examples) == (3, 7) == (len(list(cached)), 7)
