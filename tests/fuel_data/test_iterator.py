from functools import partial

import numpy
import pytest

from fuel_data import iterator as iterator_module
from fuel_data.datasets import IndexableDataset
from fuel_data.iterator import DataIterator, Stage
from fuel_data.schemes import (
    ConcatenatedScheme,
    ConstantScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel_data.streams import DataStream
from fuel_data.testing import check_resumption, same_data
from fuel_data.testing.pipelines import DropsSome
from fuel_data.transformers import Batch, Filter, Mapping, Merge, Rename


def _stream(batch_size=2):
    dataset = IndexableDataset(numpy.arange(6))
    return DataStream(dataset, iteration_scheme=ShuffledScheme(6, batch_size))


def test_a_state_says_format_pipeline_epoch_index_and_position():
    stream = _stream()
    iterator = stream.get_epoch_iterator(epoch=3)
    next(iterator)
    assert iterator.get_state() == {
        "format": 1,
        "pipeline": stream.digest(),
        "epoch": 3,
        "index": 1,
        "position": {"index": 1, "requests": 1},
    }


def test_setting_a_state_sets_the_count_of_the_stream():
    iterator = _stream().get_epoch_iterator(epoch=3)
    restored = _stream().get_epoch_iterator()
    restored.set_state(iterator.get_state())
    assert (restored.epoch, restored.index) == (3, 0)
    assert restored.data_stream.get_epoch_iterator().epoch == 4


def test_a_state_of_another_pipeline_is_refused_and_changes_nothing():
    iterator = _stream(batch_size=3).get_epoch_iterator()
    with pytest.raises(ValueError, match="Build the stream with the same data, schemes"):
        iterator.set_state(_stream().get_epoch_iterator(epoch=4).get_state())
    assert (iterator.epoch, len(list(iterator))) == (0, 2)


@pytest.mark.parametrize("state", [None, [], {"format": 2}, {}])
def test_a_state_of_another_format_is_refused(state):
    with pytest.raises(ValueError, match="`state` must be of format 1; got"):
        _stream().get_epoch_iterator().set_state(state)


def test_an_iterator_that_has_ended_stays_at_its_end():
    iterator = _stream().get_epoch_iterator()
    assert len(list(iterator)) == 3
    assert list(iterator) == list(iterator) == []
    assert iterator.index == 3


def test_an_iterator_counts_what_it_has_given():
    iterator = _stream().get_epoch_iterator()
    assert iter(iterator) is iterator
    next(iterator), next(iterator)
    assert (iterator.index, iterator.epoch) == (2, 0)


def test_a_closed_iterator_can_be_read_on():
    iterator = _stream().get_epoch_iterator()
    reference = list(_stream())
    next(iterator)
    iterator.close()
    assert same_data(list(iterator), reference[1:])


def test_the_state_after_the_end_has_generators_as_they_are_then():
    def build():
        dataset = IndexableDataset(numpy.arange(6))
        examples = DataStream(dataset, iteration_scheme=ShuffledExampleScheme(6))
        return Filter(examples, DropsSome(seed=3))

    stream = build()
    iterator = stream.get_epoch_iterator()
    # The last two are drawn for and left out, after the last that is given.
    assert len(list(iterator)) == iterator.index == 4
    restored = build()
    restored.get_epoch_iterator().set_state(iterator.get_state())
    assert list(restored) == list(stream)


class FailsOnce:
    def __init__(self):
        self.calls = 0

    def __call__(self, data):
        self.calls += 1
        if self.calls == 4:
            raise KeyboardInterrupt
        return data


def test_an_item_that_could_not_be_read_is_read_again():
    dataset = IndexableDataset(numpy.arange(6))
    examples = DataStream(dataset, iteration_scheme=ShuffledExampleScheme(6))
    reference = list(Batch(examples, ConstantScheme(2)))
    iterator = Batch(Mapping(examples, FailsOnce()), ConstantScheme(2)).get_epoch_iterator()
    first = next(iterator)
    state = iterator.get_state()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert iterator.get_state() == state
    assert same_data([first, *iterator], reference)


def _shifted(data, rng):
    return (data[0] + rng.uniform(),)


def _sharing_one_generator(num_examples, turned, fails=tuple):
    rng = numpy.random.RandomState(3)
    dataset = IndexableDataset({"x": numpy.arange(float(num_examples))})
    branches = [
        Mapping(DataStream(dataset, SequentialScheme(num_examples, 2)), partial(_shifted, rng=rng)),
        Rename(DataStream(dataset, ShuffledScheme(num_examples, 2, rng=rng)), {"x": "y"}),
        Rename(Mapping(DataStream(dataset, SequentialScheme(num_examples, 2)), fails), {"x": "z"}),
    ]
    return Merge(branches[::-1] if turned else branches)


@pytest.mark.parametrize("turned", [False, True])
def test_a_generator_of_two_branches_goes_on_where_it_was(turned):
    check_resumption(lambda num_examples: _sharing_one_generator(num_examples, turned))


@pytest.mark.parametrize("turned", [False, True])
def test_a_generator_of_two_branches_repeats_nothing_after_a_failure(turned):
    expected = list(_sharing_one_generator(12, turned))
    iterator = _sharing_one_generator(12, turned, FailsOnce()).get_epoch_iterator()
    first = [next(iterator) for _ in range(3)]
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert same_data([*first, *iterator], expected)


def test_a_position_without_the_generators_that_are_drawn_from_is_refused():
    dataset = IndexableDataset({"x": numpy.arange(6.0)})
    shifted = partial(_shifted, rng=numpy.random.RandomState(3))
    iterator = Mapping(DataStream(dataset, SequentialScheme(6, 2)), shifted).get_epoch_iterator()
    next(iterator)
    state = iterator.get_state()
    (saved,) = state["position"]["rngs"].values()
    state["position"]["rngs"] = {"of old": saved}

    with pytest.raises(ValueError, match=r"Mapping: .* generators \['of old'\], and .* from \["):
        iterator.set_state(state)


def _noise(data, rng):
    return (rng.integers(2**62, size=3),)


def test_no_two_stages_items_or_epochs_share_a_key(monkeypatch):
    keys = []
    key = iterator_module.key

    def recorded(*arguments):
        keys.append(key(*arguments))
        return keys[-1]

    monkeypatch.setattr(iterator_module, "key", recorded)
    stream = _stream()
    for _ in range(3):
        stream = Mapping(stream, _noise, random=True)
    merged = Merge([stream, Rename(stream, {"data": "other"})])
    top = Mapping(merged, lambda data, rng: data, random=True)
    for _ in range(2):
        assert len(list(top)) == 3
    assert len(keys) == len(set(keys)) == 2 * 3 * (3 + 3 + 1)


def test_a_stage_keeps_its_place_when_another_is_put_above():
    stream = Mapping(_stream(), _noise, random=True)
    assert same_data(list(stream), list(Mapping(stream, tuple)))


def test_a_stage_tells_epoch_and_index():
    stage = _stream().open_stage(epoch=2)
    assert isinstance(stage, Stage)
    next(stage)
    assert (stage.epoch, stage.index, stage.place) == (2, 1, "/0")


class BeginsItself(DataStream):
    """A stream that begins its epochs itself, as all had to in Fuel."""

    def get_epoch_iterator(self, as_dict=False):
        requests = self.iteration_scheme.get_request_iterator()
        return DataIterator(self, requests, as_dict=as_dict)


SCHEMES = {
    "in order": lambda: SequentialScheme(6, 2),
    "shuffled": lambda: ShuffledScheme(6, 2),
    "shuffled by a generator": lambda: ShuffledScheme(6, 2, rng=numpy.random.RandomState(5)),
    "one after the other": lambda: ConcatenatedScheme(
        [ShuffledScheme(4, 2, rng=numpy.random.default_rng(5)), ShuffledScheme(3, 2)]
    ),
}


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("over", [lambda s: s, lambda s: Rename(s, {})], ids=["alone", "below"])
def test_a_stream_that_hands_its_requests_in_gives_what_any_gives_and_resumes(scheme, over):
    dataset = IndexableDataset(numpy.arange(6))

    def build(_, kind=BeginsItself):
        return over(kind(dataset, iteration_scheme=scheme()))

    stream, plain = build(6), build(6, DataStream)
    for _ in range(3):
        given = list(stream.get_epoch_iterator(as_dict=True))
        assert same_data(given, list(plain.get_epoch_iterator(as_dict=True)))
    check_resumption(build)


def test_requests_that_were_asked_for_already_are_not_asked_for_again():
    stream = _stream()
    requests = stream.iteration_scheme.get_request_iterator()
    next(requests)

    assert same_data(list(DataIterator(stream, requests)), list(_stream())[1:])


def test_an_iterator_that_is_made_by_hand_begins_the_next_epoch():
    stream = _stream()

    assert [DataIterator(stream).epoch, DataIterator(stream, None, True).epoch] == [0, 1]
    assert stream.get_epoch_iterator().epoch == 2
    assert DataIterator(stream, epoch=7).epoch == 7


@pytest.mark.parametrize("requests", [[[0, 1]], True, ShuffledScheme(6, 2).get_request_iterator()])
def test_requests_of_something_else_are_refused_with_the_way_out(requests):
    with pytest.raises(ValueError, match="must be what get_request_iterator.* Leave it out: the"):
        DataIterator(_stream(), requests)
    with pytest.raises(ValueError, match="of the stream's own scheme gives, None; got"):
        DataIterator(Rename(_stream(), {}), requests)
