import numpy
import pytest

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.schemes import (
    ConcatenatedScheme,
    ConstantScheme,
    PositionedScheme,
    SequentialScheme,
    ShuffledExampleScheme,
)
from fuel_data.streams import DataStream
from fuel_data.transformers import (
    Batch,
    Filter,
    Interleave,
    Mapping,
    Merge,
    Mix,
    Rename,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    Transformer,
)


class Logging(IndexableDataset):
    """A data set that notes what is asked of it."""

    def __init__(self, num_examples):
        super().__init__({"x": numpy.arange(num_examples)})
        self.asked = []

    def get_data(self, state=None, request=None):
        self.asked.append(request)
        return super().get_data(state, request)


def counting(num_examples):
    return DataStream(IterableDataset({"x": range(num_examples)}))


def batches(num_examples, size=2):
    dataset = IndexableDataset({"x": numpy.arange(num_examples)})
    return DataStream(dataset, SequentialScheme(num_examples, size))


def given(stream, epoch=0):
    return [numpy.asarray(x).tolist() for (x,) in stream.get_epoch_iterator(epoch=epoch)]


def test_take_gives_the_first_items_and_skip_the_others():
    assert given(Take(counting(5), 2)) == [0, 1]
    assert given(Skip(counting(5), 2)) == [2, 3, 4]
    assert given(Take(batches(5), 2)) == [[0, 1], [2, 3]]
    assert given(Take(counting(2), 9)) == [0, 1]
    assert given(Skip(counting(2), 9)) == given(Take(counting(2), 0)) == []


def test_take_does_not_read_further():
    dataset = Logging(6)
    list(Take(dataset.get_example_stream(), 2))

    assert dataset.asked == [0, 1]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("remainder", ["keep", "drop"])
def test_shards_share_an_epoch(count, remainder):
    shards = [Shard(counting(10), index, count, remainder) for index in range(count)]
    parts = [given(shard) for shard in shards]

    kept = 10 if remainder == "keep" else 10 - 10 % count
    assert parts == [list(range(index, kept, count)) for index in range(count)]
    assert [shard.num_batches for shard in shards] == list(map(len, parts))


@pytest.mark.parametrize(
    ("over", "expected", "asked"),
    [
        (lambda s: Skip(s, 6), [6, 7], [6, 7]),
        (lambda s: Shard(s, 1, 3), [1, 4, 7], [1, 4, 7]),
        # Whether a round is whole is known without reading it.
        (lambda s: Shard(s, 0, 3, "drop"), [0, 3], [0, 3, 6]),
        (lambda s: Shard(Rename(s, {"x": "y"}), 0, 4), [0, 4], [0, 4]),
    ],
)
def test_what_is_left_out_is_not_read_where_requests_are_known(over, expected, asked):
    dataset = Logging(8)
    iterator = over(dataset.get_example_stream()).get_epoch_iterator()
    found = [int(x) for (x,) in iterator]

    assert (found, dataset.asked) == (expected, asked)
    position = iterator.get_state()["position"]
    while "child" in position:
        position = position["child"]
    assert position == {"index": 8, "requests": 8}


def test_requests_without_positions_are_passed_over_too():
    dataset = Logging(8)
    scheme = ConcatenatedScheme([SequentialScheme(4, 2), SequentialScheme(range(4, 8), 2)])
    assert given(Skip(DataStream(dataset, scheme), 3)) == [[6, 7]]
    assert dataset.asked == [[6, 7]]


def test_what_a_transformer_draws_or_leaves_out_is_the_same_when_items_are_passed_over():
    def shake(data, rng):
        return (data[0] + rng.uniform(),)

    shaken = Mapping(counting(9), shake, random=True)
    odd = Filter(counting(9), lambda data: data[0] % 2)

    assert given(Skip(shaken, 4)) == given(shaken)[4:]
    assert given(Shard(odd, 1, 2)) == [3, 7]


def test_lengths_of_parts_are_known_if_those_below_are():
    assert Skip(counting(5), 2).num_examples == 3
    assert Skip(counting(1), 2).num_examples == 0
    assert Take(batches(5), 2).num_batches == 2
    # The last batch is smaller, and may be among them or not.
    assert Take(batches(5), 2).num_examples is None
    assert Take(batches(5), 3).num_examples == 5
    assert Take(Repeat(counting(5)), 12).num_examples == 12
    assert Skip(Filter(counting(5), bool), 2).num_batches is None


def test_repeat_gives_the_epochs_below_one_after_the_other():
    dataset = IndexableDataset({"x": numpy.arange(5)})
    stream = DataStream(dataset, ShuffledExampleScheme(5, seed=3))
    epochs = [given(stream, epoch) for epoch in range(6)]
    repeated = Repeat(stream, times=3)

    assert given(repeated) == sum(epochs[:3], [])
    assert given(repeated, epoch=1) == sum(epochs[3:], [])
    assert (repeated.num_batches, repeated.num_examples) == (15, 15)


def test_no_two_epochs_of_a_repetition_without_end_are_one_epoch_below():
    dataset = IndexableDataset({"x": numpy.arange(200)})
    repeated = Repeat(DataStream(dataset, ShuffledExampleScheme(200, seed=3)))
    passes = set()
    for epoch in range(4):
        read = given(Take(repeated, 800), epoch)
        passes |= {tuple(read[begin : begin + 200]) for begin in range(0, 800, 200)}

    assert len(passes) == 16
    assert all(sorted(order) == list(range(200)) for order in passes)
    assert repeated.num_batches is None


def test_repeating_batches_keeps_the_short_one_at_the_end_of_each_epoch():
    assert given(Repeat(batches(3), 2)) == [[0, 1], [2], [0, 1], [2]]
    # Repeated before they are put together, they go across.
    joined = Batch(Repeat(counting(3), 2), ConstantScheme(2))
    assert given(joined) == [[0, 1], [2, 0], [1, 2]]


def test_nothing_cannot_be_repeated_without_end():
    assert given(Repeat(counting(0), 3)) == []
    with pytest.raises(
        ValueError, match="Repeat: there is no item in an epoch of DataStream.* `times`"
    ):
        given(Repeat(counting(0)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Take(counting(3), -1), "^Take: `count` must be at least 0; got -1"),
        (lambda: Skip(counting(3), -1), "^Skip: `count` must be at least 0; got -1"),
        (
            lambda: Shard(counting(3), 2, 2),
            "^Shard: `index` must be from 0 and below `count`; got 2",
        ),
        (lambda: Shard(counting(3), 0, 2, "pad"), "^Shard: `remainder` must be .*; got 'pad'"),
        (lambda: Repeat(counting(3), 0), "^Repeat: `times` must be at least 1; got 0"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class Own(Transformer):
    """Ends after two items, whatever is below."""

    def read(self, stage, request):
        if stage.index == 2:
            raise StopIteration
        return next(stage.child)


def test_the_first_of_endless_items_are_counted():
    endless, ending = Repeat(counting(3)), counting(3)
    batches = Batch(endless, ConstantScheme(2))
    renamed = Rename(endless, {"x": "y"})
    for stream in (batches, Shuffle(Skip(endless, 1), 2), Merge([endless, renamed])):
        assert len(Take(stream, 5)) == 5 == len(list(Take(stream, 5)))
    assert len(Take(Mix([endless, ending], [1, 1]), 9)) == 9
    assert len(Take(Interleave([endless, ending]), 9)) == 9
    assert Take(Mix([endless, ending], [1, 1], until="first"), 9).num_batches is None
    assert len(Take(Mix([endless, ending], [1, 1], num_items=4), 9)) == 4
    assert Take(Own(endless), 9).num_batches is None
    assert len(Take(Take(endless, 2), 9)) == 2


class Unknown(PositionedScheme):
    """Ends by itself, without saying before how many requests there are."""

    requests_examples = True

    def make_request(self, order, index):
        if index == 5:
            raise StopIteration
        return index


def test_what_is_left_out_of_requests_of_unknown_number_is_not_counted_past_their_end():
    stream = DataStream(IndexableDataset({"x": numpy.arange(9)}), Unknown())

    assert [int(x) for (x,) in Shard(stream, 0, 2, remainder="drop")] == [0, 2]
    assert list(Skip(stream, 7)) == []
