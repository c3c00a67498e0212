from collections import Counter
from itertools import islice

import numpy
import pytest

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Shuffle


def counting(num_examples, **arguments):
    return Shuffle(DataStream(IterableDataset(range(num_examples))), **arguments)


def order(stream, epoch=0):
    return numpy.array([number for (number,) in stream.get_epoch_iterator(epoch=epoch)])


def test_every_item_comes_once_and_not_far_from_its_place():
    shuffled = order(counting(2000, buffer_size=100))

    assert sorted(shuffled) == list(range(2000))
    moved = numpy.abs(numpy.argsort(shuffled) - numpy.arange(2000))
    assert moved.max() <= 2 * 100
    # After the beginning, by at most half of the buffer to either side: 25 on average.
    assert 20 < moved[200:].mean() < 30
    assert moved[200:1900].max() < 70


def test_a_buffer_as_long_as_the_epoch_makes_every_order_equally_likely():
    stream = counting(4, buffer_size=4)
    orders = Counter(tuple(order(stream, epoch)) for epoch in range(2400))

    assert len(orders) == 24
    # Chi-squared with 23 degrees of freedom is above 49.7 once in a thousand times.
    assert sum((count - 100) ** 2 / 100 for count in orders.values()) < 49.7


def test_neighbours_come_in_either_order():
    shuffled = numpy.argsort(order(counting(2000, buffer_size=100)))

    swapped = (shuffled[1:] < shuffled[:-1]).mean()
    assert 0.45 < swapped < 0.55


def test_each_epoch_has_another_order_and_each_run_the_same():
    first, second = (order(counting(50, buffer_size=10), epoch) for epoch in (0, 1))

    assert list(first) != list(second)
    assert list(first) == list(order(counting(50, buffer_size=10)))
    assert list(first) != list(order(counting(50, buffer_size=10, seed=2)))


def test_a_buffer_of_one_changes_nothing():
    assert list(order(counting(20, buffer_size=1))) == list(range(20))


def test_no_more_is_read_ahead_than_the_buffer_holds():
    read = []

    def numbers():
        for number in range(500):
            read.append(number)
            yield number

    iterator = Shuffle(DataStream(IterableDataset(numbers)), buffer_size=8).get_epoch_iterator()
    held = [len(read) - given for given, _ in enumerate(iterator)]

    assert held[0] >= 8
    assert max(held) <= 2 * 8
    assert 3 < numpy.mean(held) < 6


def test_little_is_read_again_after_a_resume_however_far_it_was():
    stream = Shuffle(
        DataStream(IndexableDataset({"x": range(10_000)}), SequentialScheme(10_000, 1)),
        buffer_size=50,
    )
    iterator = stream.get_epoch_iterator()
    for _ in range(7000):
        next(iterator)
    position = iterator.get_state()["position"]

    assert position["index"] == 7000
    assert position["buffer"]["num_read"] - position["buffer"]["anchor"] <= 2 * 50 + 64
    assert set(position["buffer"]) == {"anchor", "child", "last", "num_read"}


@pytest.mark.parametrize("num_given", [1, 63, 64, 65, 130, 299, 300])
def test_a_resume_changes_nothing_wherever_it_is(num_given):
    iterator = counting(300, buffer_size=90).get_epoch_iterator()
    given = [next(iterator) for _ in range(num_given)]
    restored = counting(300, buffer_size=90).get_epoch_iterator()
    restored.set_state(iterator.get_state())
    # Once more from there, with anchors that were noted while it was read again.
    given.extend(islice(restored, 40))
    again = counting(300, buffer_size=90).get_epoch_iterator()
    again.set_state(restored.get_state())

    assert [number for (number,) in [*given, *again]] == list(order(counting(300, buffer_size=90)))


def test_lengths_and_kinds_stay():
    batches = DataStream(IndexableDataset({"x": range(10)}), SequentialScheme(10, 4))
    stream = Shuffle(batches, buffer_size=3)

    assert (stream.num_batches, stream.num_examples, stream.produces_examples) == (3, 10, False)
    assert counting(7, buffer_size=2).num_examples == 7


def test_a_buffer_must_have_room():
    with pytest.raises(ValueError, match="Shuffle: `buffer_size` must be at least 1; got 0"):
        counting(7, buffer_size=0)
