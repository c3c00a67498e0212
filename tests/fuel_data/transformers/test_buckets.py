import itertools
import json
from collections import Counter

import numpy
import pytest

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.exceptions import KindMismatchError
from fuel_data.schemes import SequentialScheme, ShuffledExampleScheme
from fuel_data.state import split_arrays
from fuel_data.streams import DataStream
from fuel_data.transformers import Bucket, Padding, Repeat, choose_bounds


class Counted:
    """Sequences of given lengths; each holds its own number, and reading it is counted."""

    def __init__(self, lengths):
        self.lengths = list(lengths)
        self.num_read = 0

    def __iter__(self):
        for number, length in enumerate(self.lengths):
            self.num_read += 1
            yield numpy.full(length, number)

    def __deepcopy__(self, memo):
        return self


def examples(lengths):
    labels = {"x": ("time",), "n": ()}
    sources = {"x": Counted(lengths), "n": range(len(list(lengths)))}
    return DataStream(IterableDataset(sources, axis_labels=labels))


def numbers(stream):
    return [batch.tolist() for _, batch in stream.get_epoch_iterator()]


LENGTHS = numpy.random.default_rng(3).integers(1, 30, size=400).tolist()


def test_a_full_bucket_becomes_a_batch_and_the_rest_comes_with_the_oldest_first():
    stream = Bucket(examples([1, 5, 2, 5, 9, 1, 1]), "x", bounds=[3, 6, 9], batch_size=2)

    assert numbers(stream) == [[0, 2], [1, 3], [5, 6], [4]]


def test_every_example_comes_once_in_a_batch_of_its_bucket_in_the_order_read():
    stream = Bucket(examples(LENGTHS), "x", bounds=[5, 10, 30], batch_size=[9, 7, 5])
    batches = numbers(stream)

    assert sorted(itertools.chain(*batches)) == list(range(400))
    for batch in batches:
        buckets = {int(numpy.searchsorted([5, 10, 30], LENGTHS[n])) for n in batch}
        assert len(buckets) == 1
        assert len(batch) <= [9, 7, 5][buckets.pop()]
        assert batch == sorted(batch)


def test_a_batch_has_no_more_tokens_than_asked_for_when_it_is_filled_to_its_bound():
    stream = Bucket(examples(LENGTHS), "x", bounds=[5, 10, 30], max_tokens=65)
    both = Bucket(examples(LENGTHS), "x", bounds=[5, 10, 30], max_tokens=65, batch_size=6)

    assert stream.capacities == [13, 6, 2]
    assert both.capacities == [6, 6, 2]
    shapes = {x.shape for x, _, _ in Padding(stream, ["x"], lengths=stream.bounds)}
    assert max(batch * time for batch, time in shapes) <= 65
    assert {time for _, time in shapes} == {5, 10, 30}


def test_no_example_waits_longer_than_allowed():
    stream = examples([9, *[1] * 20, 9])
    source = stream.dataset.iterables["x"]
    iterator = Bucket(stream, "x", bounds=[4, 9], batch_size=5, max_wait=7).get_epoch_iterator()
    given = [(batch.tolist(), source.num_read) for _, batch in iterator]

    # Number 0 was read first and comes after 7 more; number 6 begins a bucket and waits for 4.
    assert given[:3] == [([1, 2, 3, 4, 5], 6), ([0], 8), ([6, 7, 8, 9, 10], 11)]


def test_padding_is_reported_and_what_was_left_out_with_the_reason():
    stream = Bucket(
        examples([1, 3, 12, 2, 4, 11, 1]), "x", bounds=[2, 5], batch_size=2, drop_last=True
    )
    iterator = stream.get_epoch_iterator()
    batches = [batch.tolist() for _, batch in iterator]

    assert batches == [[0, 3], [1, 4]]
    assert iterator.notes() == [
        (
            "Bucket",
            {
                "batches": 2,
                "examples": 4,
                # 10 tokens in 2 × 2 + 2 × 4 places, or in 2 × 2 + 2 × 5.
                "padding to the longest": pytest.approx(2 / 12),
                "padding to the bound": pytest.approx(4 / 14),
                "by bound": {"2": 2, "5": 2},
                "dropped": {
                    "longer than the last bound": 2,
                    "left over at the end of the epoch": 1,
                },
                "first dropped": [
                    "number 2, 12 long",
                    "number 5, 11 long",
                    "number 6, 1 long",
                ],
            },
        )
    ]


def test_only_some_of_what_was_dropped_is_named_and_an_epoch_may_be_empty():
    iterator = Bucket(examples([9] * 30), "x", bounds=[2], batch_size=2).get_epoch_iterator()

    assert list(iterator) == []
    ((_, notes),) = iterator.notes()
    assert notes["dropped"] == {"longer than the last bound": 30}
    assert len(notes["first dropped"]) == 10
    assert notes["padding to the bound"] == 0


@pytest.mark.parametrize("num_given", [0, 1, 5, 12, 15])
def test_half_filled_buckets_and_the_counts_survive_a_resume(num_given):
    def build():
        return Bucket(examples(LENGTHS), "x", bounds=[5, 20], batch_size=16, max_wait=150)

    whole = build().get_epoch_iterator()
    expected = [n.tolist() for _, n in whole]
    iterator = build().get_epoch_iterator()
    given = [next(iterator)[1].tolist() for _ in range(num_given)]
    text, arrays = split_arrays(iterator.get_state())
    restored = build().get_epoch_iterator()
    restored.set_state(json.loads(text))

    assert arrays == {}
    assert given + [n.tolist() for _, n in restored] == expected
    assert restored.notes() == whole.notes()


@pytest.mark.parametrize("num_given", [1, 7, 20])
def test_the_position_has_no_data_and_little_is_read_again(num_given):
    data = [numpy.zeros(1 + n % 30) for n in range(5000)]
    dataset = IndexableDataset({"x": data})
    iterator = Bucket(
        DataStream(dataset, ShuffledExampleScheme(5000)), "x", [10, 20, 30], 32, max_wait=100
    ).get_epoch_iterator()
    for _ in range(num_given):
        next(iterator)
    position = iterator.get_state()["position"]
    window = position["buffer"]

    assert len(json.dumps(position)) < 500
    assert window["num_read"] - window["anchor"] <= 100 + 64
    assert window["child"] == {"index": window["anchor"], "requests": window["anchor"]}


def test_a_function_can_measure_the_examples():
    stream = Bucket(examples(range(1, 7)), lambda example: example[1] % 2, [0, 1], 2)

    assert numbers(stream) == [[0, 2], [1, 3], [4], [5]]


def test_batches_are_labelled_and_counted_if_nothing_can_be_left_out():
    stream = Bucket(examples([1, 2]), "x", bounds=[2], batch_size=2)
    strict = Bucket(examples([1, 2]), "x", bounds=[2], batch_size=2, too_long="raise")

    assert stream.axis_labels == {"x": ("batch", "time"), "n": ("batch",)}
    assert (stream.produces_examples, stream.num_batches, stream.num_examples) == (
        False,
        None,
        None,
    )
    assert strict.num_examples == 2


def test_an_example_that_is_too_long_can_be_refused():
    stream = Bucket(examples([1, 7]), "x", bounds=[2], batch_size=2, too_long="raise")
    with pytest.raises(
        ValueError,
        match=r"^Bucket: example 1 of the epoch is 7 long, longer than the last of `bounds`, 2\. "
        r"Add a bound, or give too_long='drop'\.$",
    ):
        next(stream.get_epoch_iterator())


def test_what_is_left_out_is_counted_in_the_log_once_an_epoch(caplog):
    stream = Bucket(examples([1, 7, 2, 9, 1]), "x", bounds=[1, 2], batch_size=2)
    iterator = stream.get_epoch_iterator()
    next(iterator)
    state = iterator.get_state()
    assert caplog.messages == []
    for _ in range(2):
        assert list(iterator)[1:] == []
    message = (
        "Bucket: left out 2 of 5 examples, which are longer than the last of `bounds`, 2. Add a "
        "bound, take them out below with Filter, or give too_long='raise'; notes and report() name "
        "some."
    )
    assert caplog.messages == [message]
    assert (caplog.records[0].levelname, caplog.records[0].name) == (
        "WARNING",
        "fuel_data.transformers.buckets",
    )

    resumed = stream.get_epoch_iterator()
    resumed.set_state(state)
    list(resumed)
    list(stream)
    assert caplog.messages == [message] * 3
    list(Bucket(examples([1, 1, 1]), "x", bounds=[1], batch_size=2, drop_last=True))
    assert caplog.messages == [message] * 3


def test_what_is_left_out_of_a_stream_without_end_is_logged_at_once(caplog):
    endless = Repeat(examples([1, 7, 9]))
    iterator = Bucket(endless, "x", bounds=[2], batch_size=3).get_epoch_iterator()
    for _ in range(3):
        next(iterator)
    (message,) = caplog.messages
    assert message.startswith("Bucket: left out 1 of 2 examples, which are longer than the last")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": [2, 2], "batch_size": 1}, "`bounds` must be lengths that rise, at least one"),
        ({"bounds": [], "batch_size": 1}, r"`bounds` must be lengths that rise.*got \[\]"),
        ({"bounds": 5, "batch_size": 1}, r"`bounds` must be lengths that rise.*; got 5\.$"),
        ({"bounds": None, "batch_size": 1}, r"`bounds` must be lengths that rise.*; got None\.$"),
        ({"bounds": [2]}, "give `batch_size` or `max_tokens`, or both"),
        ({"bounds": [2], "batch_size": 0}, "must have room for at least one example"),
        ({"bounds": [2, 9], "max_tokens": 8}, "up to length 9 must have room.*max_tokens=8"),
        ({"bounds": [2, 9], "batch_size": [1]}, r"one for each of the 2 bounds; got \[1\]"),
        ({"bounds": [2], "batch_size": 1, "max_wait": 0}, "`max_wait` must be at least 1"),
        ({"bounds": [2], "batch_size": 1, "too_long": "cut"}, "must be 'drop' or 'raise'.*'cut'"),
        ({"bounds": [2], "batch_size": 1, "by": "y"}, "`by` names 'y', which .* Known: n, x"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^Bucket: .*{message}"):
        Bucket(examples([1]), **{"by": "x", **arguments})


def test_a_source_without_a_length_is_refused_when_it_is_met():
    with pytest.raises(ValueError, match="Bucket: the source 'n' has no length; got 0"):
        next(Bucket(examples([1]), "n", [2], 1).get_epoch_iterator())


def test_batches_are_refused():
    dataset = IndexableDataset({"x": numpy.zeros((4, 2))})
    with pytest.raises(KindMismatchError, match="Bucket: `data_stream` must give examples"):
        Bucket(DataStream(dataset, SequentialScheme(4, 2)), "x", [2], 1)


def cost(bounds, lengths):
    return sum(min(bound for bound in bounds if bound >= length) for length in lengths)


@pytest.mark.parametrize("seed", range(20))
def test_no_other_bounds_need_less_padding(seed):
    rng = numpy.random.default_rng(seed)
    lengths = rng.integers(0, 12, size=rng.integers(1, 30)).tolist()
    num_buckets = int(rng.integers(1, 5))
    *others, last = sorted(set(lengths))
    choices = (c for r in range(num_buckets) for c in itertools.combinations(others, r))

    bounds = choose_bounds(lengths, num_buckets)

    assert len(bounds) <= num_buckets
    assert cost(bounds, lengths) == min(cost([*choice, last], lengths) for choice in choices)
    assert choose_bounds(Counter(lengths), num_buckets) == bounds


def test_bounds_can_be_multiples_so_that_shapes_are_few():
    assert choose_bounds([1, 2, 9, 17, 18, 31], 3, multiple_of=8) == [8, 24, 32]
    assert choose_bounds([1, 2, 3], 10, multiple_of=8) == [8]


def test_bounds_of_very_many_different_lengths_are_nearly_the_best():
    lengths = dict.fromkeys(range(1, 20001), 1)

    # The best bounds of a flat histogram lie at equal distances.
    bounds = choose_bounds(lengths, 4)
    assert numpy.allclose(bounds, [5000, 10_000, 15_000, 20_000], atol=40)
    assert bounds[-1] == 20_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 2), "`lengths` must have at least one length"),
        (([-1, 2], 2), "none below 0"),
        (([1], 0), "`num_buckets` must be at least 1; got 0"),
    ],
)
def test_bounds_of_nothing_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^choose_bounds: .*{message}"):
        choose_bounds(*arguments)


def test_bounds_and_sizes_may_be_arrays():
    arrays = Bucket(examples(LENGTHS), "x", numpy.array([5, 10, 30]), numpy.array([9, 7, 5]))
    lists = Bucket(examples(LENGTHS), "x", [5, 10, 30], [9, 7, 5])

    assert numbers(arrays) == numbers(lists)
    assert arrays.digest() == lists.digest()


@pytest.mark.parametrize("length", [-1, 2.5, float("nan"), None])
def test_a_function_that_gives_no_length_is_refused(length):
    with pytest.raises(ValueError, match=r"Bucket: `by\(example\)` must be"):
        numbers(Bucket(examples([1]), lambda example: length, [3], 1))


def test_a_function_may_give_a_whole_float():
    assert numbers(Bucket(examples([1]), lambda example: numpy.float64(3), [3], 1)) == [[0]]


def test_an_array_without_axes_has_no_length():
    stream = DataStream(IterableDataset({"x": [numpy.array(3)]}))
    with pytest.raises(ValueError, match="Bucket: the source 'x' has no length; got array"):
        list(Bucket(stream, "x", [3], 1))
