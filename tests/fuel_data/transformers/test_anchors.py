import numpy
import pytest

from fuel_data.datasets import IterableDataset
from fuel_data.streams import DataStream
from fuel_data.testing import check_resumption
from fuel_data.transformers import Bucket, Mapping, Mix, Shuffle
from fuel_data.transformers.anchors import AnchoredReader


class Growing:
    """Data that may have more or fewer items when they are read the next time."""

    def __init__(self, num_items):
        self.num_items = num_items

    def __iter__(self):
        return iter(range(self.num_items))


def saved_after(num_given, data, buffer_size):
    iterator = Shuffle(DataStream(IterableDataset({"x": data})), buffer_size).get_epoch_iterator()
    for _ in range(num_given):
        next(iterator)
    return iterator, iterator.get_state()


def test_data_that_have_become_fewer_are_found_out_when_they_are_read_again():
    data = Growing(9)
    iterator, state = saved_after(3, data, buffer_size=3)
    data.num_items = 2
    with pytest.raises(ValueError, match="epoch has 2 items before .* had read 5 when .* changed"):
        iterator.set_state(state)


def test_data_that_have_become_more_are_found_out_if_the_end_was_seen():
    data = Growing(9)
    iterator, state = saved_after(1, data, buffer_size=20)
    data.num_items = 12
    with pytest.raises(
        ValueError, match="the epoch had 9 items before a transformer, and has more"
    ):
        iterator.set_state(state)


def test_what_the_streams_below_noticed_at_their_end_is_noticed_again():
    lengths = DataStream(IterableDataset({"x": ["a", "bb", "c", "ddd"]}))
    below = Bucket(lengths, "x", bounds=[1, 3], batch_size=2, drop_last=True)
    iterator = Shuffle(Mix([below, below], [1, 1]), 9).get_epoch_iterator()
    next(iterator)
    again = Shuffle(Mix([below, below], [1, 1]), 9).get_epoch_iterator()
    again.set_state(iterator.get_state())

    assert again.notes() == iterator.notes()
    assert dict(again.notes())["Mix"] == {"items by stream": [2, 2], "ended": [0, 1]}


class Ends:
    """A stage that counts how often it was asked after its end."""

    def __init__(self):
        self.num_asked = 0

    def __next__(self):
        self.num_asked += 1
        raise StopIteration

    def get_position(self):
        return {}


def test_a_stage_that_has_ended_is_not_asked_again():
    stage = Ends()
    reader = AnchoredReader(stage)
    for _ in range(3):
        with pytest.raises(StopIteration):
            reader.read()

    assert stage.num_asked == 1


class Numbered(Shuffle):
    """Says of each item as the how manyth it is given."""

    def start(self, stage):
        super().start(stage)
        stage.held["given"] = 0

    def read(self, stage, request):
        (x,) = super().read(stage, request)
        stage.held["given"] += 1
        return (x + 100 * stage.held["given"],)


def test_a_transformer_of_ones_own_may_hold_plain_data_beside_its_buffer():
    def build(num_examples):
        return Numbered(DataStream(IterableDataset({"x": range(num_examples)})), 3)

    assert sorted(x % 100 for (x,) in build(4)) == [0, 1, 2, 3]
    assert [x // 100 for (x,) in build(4)] == [1, 2, 3, 4]
    check_resumption(build)


class Draws:
    """A function that draws from a generator that it was handed."""

    def __init__(self, rng):
        self.rng = rng

    def __call__(self, example):
        return (example[0] + 100 * self.rng.randint(9),)


def test_a_generator_below_a_buffer_may_not_be_drawn_from_elsewhere():
    shared, own = numpy.random.RandomState(1), numpy.random.RandomState(2)
    stream = DataStream(IterableDataset({"x": range(9)}))

    def shuffled(num_examples):
        below = DataStream(IterableDataset({"x": range(num_examples)}))
        rng = numpy.random.RandomState(1)
        twice = Mapping(Mapping(below, Draws(rng)), Draws(rng))
        return Mapping(Shuffle(twice, 4), Draws(numpy.random.RandomState(2)))

    check_resumption(shuffled)
    below = Mapping(stream, Draws(shared))
    refused = [
        Mapping(Shuffle(below, 4), Draws(shared)),
        Mix([Shuffle(below, 4), Mapping(stream, Draws(shared))], [1, 1]),
        Mix([Shuffle(below, 4), below], [1, 1]),
        Mapping(Bucket(below, by=len, bounds=[1], batch_size=2), Draws(shared)),
    ]
    for pipeline in refused:
        with pytest.raises(ValueError, match="holds back items .* from a generator of yours, and"):
            pipeline.get_epoch_iterator()
    assert len(list(Mapping(Shuffle(below, 4), Draws(own)))) == 9
