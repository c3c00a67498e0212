"""Transformers as their users wrote them for Fuel."""

import collections
import itertools
import pickle
import random

import numpy
import pytest

from fuel_data import fuels_way
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ConstantScheme, SequentialExampleScheme, ShuffledScheme
from fuel_data.streams import DataStream
from fuel_data.testing import check_contract, check_items, check_resumption
from fuel_data.transformers import Batch, SourcewiseTransformer, Transformer, Unpack


def _examples(num_examples):
    dataset = IndexableDataset({"x": numpy.arange(num_examples), "y": numpy.ones(num_examples)})
    return DataStream(dataset, iteration_scheme=SequentialExampleScheme(num_examples))


def _batches(num_examples):
    dataset = IndexableDataset({"x": numpy.arange(float(num_examples))})
    return DataStream(dataset, iteration_scheme=ShuffledScheme(num_examples, 4))


class Window(Transformer):
    """Keeps a window of examples as attributes of itself."""

    def __init__(self, data_stream):
        super().__init__(data_stream, produces_examples=True)
        self.window = collections.deque(maxlen=2)
        self.pairs = []

    def get_data(self, request=None):
        while len(self.window) < 2:
            self.window.append(next(self.child_epoch_iterator))
        pair = tuple(self.window)
        self.window.popleft()
        self.pairs.append(len(self.pairs))
        return (int(pair[0][0]), int(pair[1][0]) + len(self.pairs))


class Leftovers(Transformer):
    """Unpacks by keeping the batch itself, as Fuel's Unpack does."""

    def __init__(self, data_stream):
        super().__init__(data_stream, produces_examples=True)
        self.data = None

    def get_data(self, request=None):
        if request is not None:
            raise ValueError
        if not self.data:
            (self.data,) = next(self.child_epoch_iterator)
            self.data = list(self.data)
        return (self.data.pop(0),)


class RandomShift(SourcewiseTransformer):
    """Draws from a generator of its own that moves on from epoch to epoch."""

    def __init__(self, data_stream, rng, **kwargs):
        super().__init__(data_stream, data_stream.produces_examples, **kwargs)
        self.rng = rng

    def transform_source_batch(self, source, name):
        return source + self.rng.normal(size=len(source))


class Doubling(Batch):
    """Extends one of the library's transformers by its get_data."""

    def get_data(self, request=None):
        return tuple(2 * source for source in super().get_data(request))


class DoublingStream(DataStream):
    def get_data(self, request=None):
        return tuple(2 * source for source in super().get_data(request))


def _doubling_stream(num_examples):
    scheme = ShuffledScheme(num_examples, 4)
    return DoublingStream(_batches(num_examples).dataset, iteration_scheme=scheme)


@pytest.mark.parametrize(
    "build",
    [
        lambda n: Leftovers(_batches(n)),
        lambda n: Batch(Leftovers(_batches(n)), ConstantScheme(3)),
        lambda n: Doubling(_examples(n), ConstantScheme(3)),
        _doubling_stream,
    ],
)
def test_what_is_kept_as_attributes_is_kept_for_each_epoch(build):
    check_contract(build)


def test_containers_that_are_changed_in_place_are_kept_for_each_epoch():
    # The buffer grows, so its position is not small, but all else holds.
    check_resumption(lambda n: Window(_examples(n)))
    check_items(lambda n: Window(_examples(n)))
    stream = Window(_examples(5))
    assert list(stream) == list(stream) == [(0, 2), (1, 4), (2, 6), (3, 8)]
    assert (stream.pairs, len(stream.window)) == ([], 0)


@pytest.mark.parametrize("make", [numpy.random.RandomState, numpy.random.default_rng])
def test_a_generator_moves_on_from_epoch_to_epoch_and_is_restored(make):
    def build(num_examples):
        return Unpack(RandomShift(_batches(num_examples), make(3)))

    check_contract(build, shares_rng=True)
    stream = build(8)
    assert list(stream) != list(stream)


class ShiftsByOneOfMany(RandomShift):
    def __init__(self, data_stream, rng, **kwargs):
        super().__init__(data_stream, rng, **kwargs)
        self.rng = None
        self.settings = {"rngs": [rng]}

    def transform_source_batch(self, source, name):
        return source + self.settings["rngs"][0].normal(size=len(source))


def test_a_generator_in_containers_moves_on_from_epoch_to_epoch_and_is_restored():
    def build(num_examples):
        return Unpack(ShiftsByOneOfMany(_batches(num_examples), numpy.random.default_rng(3)))

    check_contract(build, shares_rng=True)
    stream = build(8)
    assert list(stream) != list(stream)


class Vocabulary(Transformer):
    def __init__(self, data_stream):
        super().__init__(data_stream)
        self.numbers = dict.fromkeys(range(2000))
        self.mean = numpy.zeros(5000)

    def transform_batch(self, batch):
        return batch


def test_large_containers_are_arguments_and_not_copied():
    iterator = Vocabulary(_batches(8)).get_epoch_iterator()
    worker = iterator._stage.held["worker"]
    assert worker.numbers is iterator.data_stream.numbers
    assert worker.mean is iterator.data_stream.mean
    assert iterator.get_state()["position"]["held"] == {}


class HoldsObject(Transformer):
    def get_data(self, request=None):
        self.thing = complex(1, 2)
        return next(self.child_epoch_iterator)


def test_what_is_not_plain_data_can_be_pickled_but_has_no_state():
    iterator = HoldsObject(_batches(8)).get_epoch_iterator()
    next(iterator)
    with pytest.raises(TypeError, match=r"HoldsObject.thing: .* got complex.*Keep numbers, text"):
        iterator.get_state()
    restored = pickle.loads(pickle.dumps(iterator))
    assert [x.tolist() for (x,) in restored] == [x.tolist() for (x,) in iterator]


class KeepsEverything(Transformer):
    def __init__(self, data_stream):
        super().__init__(data_stream)
        self.kept = None

    def get_data(self, request=None):
        data = next(self.child_epoch_iterator)
        ragged = numpy.empty(2, dtype=object)
        ragged[0], ragged[1] = numpy.ones(2), numpy.ones(2)
        self.kept = {"t": (1, {2, 3}), "d": collections.deque([4]), "r": ragged, "n": data[0][0]}
        return data


def test_tuples_sets_deques_ragged_arrays_and_numpy_numbers_come_back_as_they_were():
    iterator = KeepsEverything(_batches(8)).get_epoch_iterator()
    next(iterator)
    restored = KeepsEverything(_batches(8)).get_epoch_iterator()
    restored.set_state(iterator.get_state())
    kept = restored._stage.held["worker"].kept
    assert kept["t"] == (1, {2, 3})
    assert kept["d"] == collections.deque([4])
    assert [row.tolist() for row in kept["r"]] == [[1, 1], [1, 1]]
    assert type(kept["n"]) is numpy.float64


def test_reading_a_transformer_without_an_epoch_is_refused():
    with pytest.raises(ValueError, match="Doubling.get_data: no epoch is open. Read next"):
        Doubling(_examples(4), ConstantScheme(2)).get_data()


class Buckets(Transformer):
    """Keeps examples in dicts by length, as many did."""

    def __init__(self, data_stream):
        super().__init__(data_stream, produces_examples=True)
        self.by_length = {}
        self.lists = collections.defaultdict(list)
        self.counts = collections.Counter()
        self.order = collections.OrderedDict()

    def get_data(self, request=None):
        x = int(next(self.child_epoch_iterator)[0])
        self.by_length[x % 3] = self.by_length.get(x % 3, 0) + x
        self.lists[x % 2, "list"].append(x)
        self.counts[x % 4] += 1
        self.order[x % 5] = None
        self.order.move_to_end(x % 5)
        seen = (self.by_length, len(self.lists[x % 2, "list"]), self.counts[7], list(self.order))
        return (x, repr(seen))


def test_dicts_of_every_kind_and_with_any_keys_are_kept():
    check_resumption(lambda n: Buckets(_examples(n)))
    assert list(Buckets(_examples(2)))[1] == (1, "({0: 0, 1: 1}, 1, 0, [0, 1])")


class FailsAt(Leftovers):
    """Keeps what it has read, and cannot read one of the items at the first attempts."""

    failures = 0

    def __init__(self, data_stream):
        super().__init__(data_stream)
        self.seen = []

    def get_data(self, request=None):
        (x,) = super().get_data()
        self.seen.append(x)
        if len(self.seen) == 250 and FailsAt.failures:
            FailsAt.failures -= 1
            raise OSError("not now")
        return (len(self.seen), x)


def test_an_item_that_failed_is_not_passed_over_and_none_is_given_twice():
    reference = list(FailsAt(_batches(300)))
    iterator = FailsAt(_batches(300)).get_epoch_iterator()
    FailsAt.failures = 2
    items = [next(iterator) for _ in range(249)]
    for _ in range(2):
        with pytest.raises(OSError, match="not now"):
            next(iterator)
        assert iterator.index == 249

    assert items + list(iterator) == reference


def test_the_position_after_a_failure_is_that_before_the_item():
    reference = list(FailsAt(_batches(300)))
    iterator = FailsAt(_batches(300)).get_epoch_iterator()
    FailsAt.failures = 1
    [next(iterator) for _ in range(249)]
    with pytest.raises(OSError, match="not now"):
        next(iterator)
    restored = pickle.loads(pickle.dumps(iterator))
    another = FailsAt(_batches(300)).get_epoch_iterator()
    another.set_state(iterator.get_state())

    assert list(restored) == list(another) == list(iterator) == reference[249:]


def test_a_closed_iterator_goes_on_where_it_was():
    reference = list(FailsAt(_batches(30)))
    iterator = FailsAt(_batches(30)).get_epoch_iterator()
    items = []
    for item in iterator:
        items.append(item)
        iterator.close()

    assert items == reference


class FromOutside(Transformer):
    """Reads an iterator that is no stream, and fails once."""

    failed = False

    def __init__(self, data_stream, lines):
        super().__init__(data_stream, produces_examples=True)
        self.lines = lines

    def get_data(self, request=None):
        data = next(self.child_epoch_iterator)
        if data[0] == 5 and not FromOutside.failed:
            FromOutside.failed = True
            raise OSError("not now")
        return (next(self.lines), *data)


def test_what_cannot_be_read_twice_is_not_read_twice_after_a_failure():
    iterator = FromOutside(_examples(8), iter(range(8))).get_epoch_iterator()
    items = [next(iterator) for _ in range(5)]
    with pytest.raises(OSError, match="not now"):
        next(iterator)

    assert [item[0] for item in items + list(iterator)] == list(range(8))


def test_a_large_buffer_is_copied_for_a_position_and_not_for_each_item(monkeypatch):
    copies = []
    encode = fuels_way._encode
    monkeypatch.setattr(fuels_way, "_encode", lambda value: copies.append(1) or encode(value))
    iterator = Window(_examples(50)).get_epoch_iterator()
    [next(iterator) for _ in range(40)]
    before = len(copies)
    iterator.get_state()

    assert before == 0
    assert copies


class Statistics:
    def __init__(self):
        self.count = 0


class Counts(Transformer):
    def __init__(self, data_stream):
        super().__init__(data_stream)
        self.statistics = Statistics()
        self.log = list(range(2000))

    def get_data(self, request=None):
        self.change()
        return next(self.child_epoch_iterator)


class ChangesObject(Counts):
    def change(self):
        self.statistics.count += 1


class DrawsFromPython(Counts):
    def __init__(self, data_stream):
        super().__init__(data_stream)
        self.random = random.Random(3)

    def change(self):
        self.random.random()


class ChangesLargeList(Counts):
    def change(self):
        self.log.append(1)


@pytest.mark.parametrize(
    ("kind", "attribute"),
    [(ChangesObject, "statistics"), (ChangesLargeList, "log"), (DrawsFromPython, "random")],
)
@pytest.mark.parametrize("epoch", [0, 1])
def test_a_changed_argument_is_an_error_that_names_it_where_a_state_is_taken(
    kind, attribute, epoch
):
    stream = kind(_batches(8))
    for _ in range(epoch):
        list(stream)
    iterator = stream.get_epoch_iterator()
    next(iterator)

    with pytest.raises(TypeError, match=f"{kind.__name__}.{attribute}: .*changed.*a new one"):
        iterator.get_state()


def test_an_iterator_of_its_own_is_refused_where_a_state_is_taken():
    stream = Counts(_batches(8))
    stream.numbers = itertools.count()
    stream.change = int
    iterator = stream.get_epoch_iterator()
    next(iterator)

    with pytest.raises(TypeError, match=r"Counts\.numbers: it is an iterator \(count\).*number"):
        iterator.get_state()


def test_an_argument_that_is_set_between_two_epochs_is_no_error():
    stream = Counts(_batches(8))
    stream.change = int
    list(stream)
    stream.statistics = Statistics()
    stream.statistics.count = 7

    assert stream.get_epoch_iterator().get_state()["epoch"] == 1
