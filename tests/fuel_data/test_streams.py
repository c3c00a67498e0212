import json
import os
import pickle
import subprocess
import sys

import numpy
import pytest

from fuel_data import streams
from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel_data.state import join_arrays, split_arrays
from fuel_data.streams import AbstractDataStream, DataStream
from fuel_data.testing import STREAMS, same_data
from fuel_data.transformers import Batch, Filter, Mapping, Rename, ScaleAndShift


@pytest.fixture
def dataset():
    labels = {"x": ("batch", "feature"), "y": ("batch",), "z": None}
    data = {"x": numpy.arange(10).reshape(5, 2), "y": numpy.arange(5), "z": list("abcde")}
    return IndexableDataset(data, axis_labels=labels)


@pytest.fixture
def stream(dataset):
    return DataStream(dataset, iteration_scheme=SequentialScheme(5, 2))


def test_a_stream_gives_tuples_or_dicts_in_the_order_of_sources(stream):
    x, y, z = next(stream.get_epoch_iterator())
    assert (x.tolist(), y.tolist(), z) == ([[0, 1], [2, 3]], [0, 1], ["a", "b"])
    batch = next(stream.get_epoch_iterator(as_dict=True))
    assert list(batch) == ["x", "y", "z"]
    assert batch["z"] == ["a", "b"]


def test_epochs_are_counted_and_can_be_asked_for(stream):
    epochs = [stream.get_epoch_iterator().epoch for _ in range(2)]
    epochs += [stream.get_epoch_iterator(epoch=7).epoch, stream.get_epoch_iterator().epoch]
    assert epochs == [0, 1, 7, 8]
    with pytest.raises(ValueError, match="DataStream: `epoch` must be at least 0; got -1"):
        stream.get_epoch_iterator(epoch=-1)


def test_iterating_a_stream_iterates_one_epoch(stream):
    assert [len(batch[0]) for batch in stream] == [2, 2, 1]
    assert stream.epochs_begun == 1


def test_iterate_epochs_goes_on_for_ever(stream):
    epochs = stream.iterate_epochs()
    assert [len(list(next(epochs))) for _ in range(3)] == [3, 3, 3]


def test_the_length_is_known_or_refused_in_words(stream):
    assert len(stream) == stream.num_batches == 3
    assert stream.num_examples == 5
    unknown = Filter(stream, bool)
    assert unknown.num_batches is None
    with pytest.raises(TypeError, match="Filter: the number of items in an epoch is not known"):
        len(unknown)


def test_an_empty_stream_is_not_false(dataset):
    assert DataStream(dataset, iteration_scheme=SequentialScheme(0, 2))


def test_labels_of_batches_are_the_data_sets_and_of_examples_without_batch(dataset, stream):
    assert stream.axis_labels == {"x": ("batch", "feature"), "y": ("batch",), "z": None}
    examples = dataset.get_example_stream()
    assert examples.axis_labels == {"x": ("feature",), "y": (), "z": None}
    assert dataset.axis_labels["x"] == ("batch", "feature")
    own = DataStream(dataset, SequentialScheme(5, 2), axis_labels={"x": ("a",)})
    assert own.axis_labels == {"x": ("a",)}


def test_metadata_are_the_data_sets_and_follow_renaming(dataset):
    dataset.metadata = {"x": {"unit": "m"}}
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(5, 2))
    assert stream.metadata == {"x": {"unit": "m"}}
    assert Rename(stream, {"x": "w"}).metadata == {"w": {"unit": "m"}}


@pytest.fixture
def part():
    data = {"x": numpy.arange(10).reshape(5, 2), "y": numpy.arange(5)}
    labels = {"x": ("batch", "feature"), "y": ("batch",)}
    dataset = IndexableDataset(data, sources=("x",), axis_labels=labels)
    dataset.metadata = {"x": {"unit": "m"}, "y": {"unit": "s"}}
    return dataset


def test_a_stream_says_nothing_of_sources_that_were_not_chosen(part):
    stream = DataStream(part, SequentialScheme(5, 2))
    assert stream.axis_labels == {"x": ("batch", "feature")}
    assert stream.metadata == {"x": {"unit": "m"}}
    # The new name is that of a source that was left out.
    renamed = Rename(stream, {"x": "y"})
    assert renamed.axis_labels == {"y": ("batch", "feature")}
    assert renamed.metadata == {"y": {"unit": "m"}}


def test_a_stream_takes_labels_of_all_that_its_data_set_provides_but_of_nothing_else(part):
    own = DataStream(part, SequentialScheme(5, 2), axis_labels=part.axis_labels)
    assert own.axis_labels == {"x": ("batch", "feature")}
    with pytest.raises(ValueError, match="DataStream: `axis_labels` names 'z', which is not among"):
        DataStream(part, SequentialScheme(5, 2), axis_labels={**part.axis_labels, "z": ()})


def test_sources_that_are_chosen_later_have_their_labels(part):
    stream = DataStream(part, SequentialExampleScheme(5), axis_labels={"x": ("mine",)})
    stream.sources = ("y", "x")
    assert stream.axis_labels == {"y": (), "x": ("mine",)}
    stream.sources = ("y",)
    assert Batch(stream, ConstantScheme(2)).axis_labels == {"y": ("batch",)}


def test_sources_that_one_stream_chooses_are_those_of_no_other(part):
    chosen, other = (DataStream(part, SequentialExampleScheme(5)) for _ in range(2))
    iterator = other.get_epoch_iterator()
    next(iterator)
    digest = other.digest()
    chosen.sources = ("y",)
    assert same_data([y for (y,) in chosen], list(numpy.arange(5)))
    assert (part.sources, other.sources) == (("x",), ("x",))
    assert next(iterator)[0].tolist() == [2, 3]
    assert other.digest() == digest != chosen.digest()


def test_produces_examples_follows_from_the_scheme(dataset, stream):
    assert not stream.produces_examples
    assert DataStream(dataset, iteration_scheme=SequentialExampleScheme(5)).produces_examples
    with pytest.raises(ValueError, match="follows from the iteration scheme SequentialScheme"):
        stream.produces_examples = True
    of_batches = DataStream(IterableDataset([[1, 2], [3]]))
    of_batches.produces_examples = False
    assert not of_batches.produces_examples


def test_a_default_stream_has_the_default_transformers(dataset):
    dataset.default_transformers = ((ScaleAndShift, [2, 0], {"which_sources": ("y",)}),)
    stream = DataStream.default_stream(dataset, iteration_scheme=SequentialScheme(5, 5))
    assert next(iter(stream))[1].tolist() == [0, 2, 4, 6, 8]


def test_data_can_be_asked_for_directly(stream):
    assert stream.get_data([3])[1].tolist() == [3]


class Handle(IndexableDataset):
    """A data set with something to open, and to close."""

    def __init__(self):
        super().__init__({"x": numpy.arange(4)})
        self.log = []

    def open(self):
        self.log.append("open")
        return object()

    def close(self, state):
        self.log.append("close")

    def get_data(self, state=None, request=None):
        assert state is not None
        return super().get_data(None, request)


def test_a_data_set_with_requests_is_opened_once_when_first_read_and_closed_by_the_stream():
    dataset = Handle()
    with DataStream(dataset, iteration_scheme=SequentialScheme(4, 2)) as stream:
        assert dataset.log == []
        list(stream), list(stream)
        assert dataset.log == ["open"]
    assert dataset.log == ["open", "close"]


class Counted(Handle):
    """A data set whose state is None, as that of an HDF5 file is."""

    def open(self):
        self.log.append("open")

    def get_data(self, state=None, request=None):
        return IndexableDataset.get_data(self, None, request)


def test_a_data_set_without_state_is_opened_and_closed_once_too():
    dataset = Counted()
    with DataStream(dataset, iteration_scheme=SequentialScheme(4, 2)) as stream:
        list(stream), list(stream), stream.get_data([1])
    assert dataset.log == ["open", "close"]


class Lines(IterableDataset):
    """A data set that takes no requests, with something to open in each epoch."""

    def __init__(self):
        super().__init__([1, 2])
        self.log = []

    def open(self):
        self.log.append("open")
        return super().open()

    def close(self, state):
        self.log.append("close")


def test_a_data_set_without_requests_is_closed_at_the_end_of_each_epoch_and_when_left():
    dataset = Lines()
    stream = DataStream(dataset)
    iterator = stream.get_epoch_iterator()
    assert [*iterator, *iterator] == [(1,), (2,)]
    iterator.close()
    assert dataset.log == ["open", "close"]
    left = stream.get_epoch_iterator()
    next(left)
    left.close()
    assert dataset.log == ["open", "close"] * 2
    assert list(left) == [(2,)]


def test_closing_a_transformer_closes_what_is_below():
    dataset = Handle()
    stream = Mapping(DataStream(dataset, iteration_scheme=SequentialScheme(4, 2)), tuple)
    list(stream)
    stream.close()
    stream.reset()
    assert dataset.log == ["open", "close"]
    assert len(list(stream)) == 2


def test_an_iterator_can_be_read_on_after_its_stream_was_closed():
    dataset = Handle()
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(4, 2))
    iterator = stream.get_epoch_iterator()
    stream.close()
    assert [x.tolist() for (x,) in iterator] == [[0, 1], [2, 3]]
    assert dataset.log == ["open", "close", "open"]


def test_unpickling_opens_nothing_before_it_is_read():
    stream = DataStream(Handle(), iteration_scheme=SequentialScheme(4, 2))
    iterator = stream.get_epoch_iterator()
    next(iterator)
    restored = pickle.loads(pickle.dumps(iterator))
    assert restored.data_stream.dataset.log == ["open"]
    assert restored.get_state() == iterator.get_state()
    assert [x.tolist() for (x,) in restored] == [[2, 3]]
    assert restored.data_stream.dataset.log == ["open", "open"]


def test_reprs_print_the_pipeline(stream):
    assert repr(Rename(stream, {})) == (
        "Rename(DataStream(IndexableDataset(x, y, z, 5 examples), "
        "SequentialScheme(examples=5, batch_size=2, drop_last=False)))"
    )
    assert repr(stream.get_epoch_iterator()).startswith("<epoch 0, 0 items given, of DataStream(")


def test_the_state_between_epochs_has_the_generators_that_were_handed_in():
    def build():
        scheme = ShuffledScheme(6, 2, rng=numpy.random.RandomState(3))
        return Rename(DataStream(IndexableDataset(range(6)), iteration_scheme=scheme), {})

    stream = build()
    list(stream), list(stream)
    state = join_arrays(*split_arrays(stream.get_state()))
    fresh = build()
    fresh.set_state(state)
    iterator = fresh.get_epoch_iterator()
    assert iterator.epoch == 2
    assert list(iterator) == list(stream)


def test_the_state_of_another_pipeline_is_refused(stream, dataset):
    other = DataStream(dataset, iteration_scheme=SequentialScheme(5, 3))
    with pytest.raises(ValueError, match=r"the state is of the pipeline \w+, this is \w+: DataStr"):
        other.set_state(stream.get_state())


def test_parts_of_a_pipeline_that_differ_make_another_digest(dataset):
    def make(scheme=None, sources=None, scale=1, function=len, seed=None):
        scheme = scheme or ShuffledScheme(5, 2, seed=seed)
        data = IndexableDataset({"x": dataset.x, "y": dataset.y}, sources=sources)
        stream = ScaleAndShift(DataStream(data, iteration_scheme=scheme), scale, 0)
        return Filter(stream, function).digest()

    pipelines = [
        make(),
        make(seed=2),
        make(sources=("y", "x")),
        make(scale=2),
        make(scale=numpy.ones(3)),
        make(scale=numpy.zeros(3)),
        make(function=bool),
        make(scheme=ShuffledScheme(5, 3)),
        make(scheme=SequentialScheme(5, 2)),
        make(scheme=SequentialScheme([0, 1, 2, 4, 3], 2)),
    ]
    assert len(set(pipelines)) == len(pipelines)
    assert make() == make()


_DIGESTS = """
import json
from fuel_data.testing import STREAMS
print(json.dumps({case.name: case.build(11).digest() for case in STREAMS}))
"""


def test_digests_are_the_same_in_every_process_and_hash_seed():
    here = {case.name: case.build(11).digest() for case in STREAMS}
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        output = subprocess.check_output([sys.executable, "-c", _DIGESTS], env=environment)
        assert json.loads(output) == here


_RESUMES = """
import pickle, sys
restored = pickle.load(sys.stdin.buffer)
epochs = [list(restored), list(restored.data_stream.get_epoch_iterator())]
sys.stdout.buffer.write(pickle.dumps(epochs))
"""


def test_an_iterator_goes_on_in_another_process():
    case = next(case for case in STREAMS if case.name.startswith("iterable,"))
    iterator = case.build(40).get_epoch_iterator()
    next(iterator)
    output = subprocess.run(
        [sys.executable, "-c", _RESUMES],
        input=pickle.dumps(iterator),
        capture_output=True,
        check=True,
    ).stdout
    here = [list(iterator), list(iterator.data_stream.get_epoch_iterator())]
    assert same_data(pickle.loads(output), here)


def test_an_unknown_name_of_the_module_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'ServerStream'"):
        streams.ServerStream  # noqa: B018


class Counter(AbstractDataStream):
    """A stream of a user, without data set, written as for Fuel."""

    sources = ("n",)

    def __init__(self, limit):
        super().__init__()
        self.produces_examples = True
        self.limit = limit
        self.n = 0

    def get_data(self, request=None):
        if self.n == self.limit:
            raise StopIteration
        self.n += 1
        return (self.n,)


def test_a_stream_of_a_user_keeps_what_it_sets_on_itself_for_each_epoch():
    stream = Counter(3)
    first = stream.get_epoch_iterator()
    assert next(first) == (1,)
    assert list(stream.get_epoch_iterator()) == [(1,), (2,), (3,)]
    restored = Counter(3).get_epoch_iterator()
    restored.set_state(first.get_state())
    assert list(restored) == list(first) == [(2,), (3,)]
    assert stream.n == 0


class Bare(AbstractDataStream):
    sources = ("n",)
    axis_labels = None
    produces_examples = True

    def __init__(self):
        self.n = 0

    get_data = Counter.get_data
    limit = 2


def test_a_stream_of_a_user_need_not_call_the_base():
    assert list(Bare()) == [(1,), (2,)]


class OwnIterators(Counter):
    """A stream of a user that makes its epoch iterators itself."""

    def get_epoch_iterator(self, as_dict=False):
        return iter([(10,), (11,), (12,)])


class ServedElsewhere(Counter):
    """A stream that makes iterators with a state, as the client of a server does."""

    def get_epoch_iterator(self, as_dict=False, epoch=None):
        return Counter(10 * (epoch + 1)).get_epoch_iterator(as_dict, epoch)


@pytest.mark.parametrize("make", [lambda: OwnIterators(3), lambda: ServedElsewhere(3)])
def test_streams_that_make_their_own_iterators_resume_below_transformers(make):
    def build():
        return Batch(make(), ConstantScheme(2))

    stream = build()
    reference = [list(stream), list(stream)]
    for step in range(len(reference[0])):
        iterator = build().get_epoch_iterator()
        for _ in range(step):
            next(iterator)
        restored = build().get_epoch_iterator()
        restored.set_state(join_arrays(*split_arrays(iterator.get_state())))
        rest = [list(restored), list(restored.data_stream.get_epoch_iterator())]
        assert same_data(rest, [reference[0][step:], reference[1]])


def test_sizes_of_batches_are_no_requests_for_a_data_set_that_is_asked_by_number(dataset):
    with pytest.raises(ValueError, match="says sizes of batches. Give SequentialScheme or"):
        DataStream(dataset, iteration_scheme=ConstantScheme(2, num_examples=5))


def test_a_class_is_no_data_set_and_no_scheme(dataset):
    words = r"must be a data set; got the class. Write IndexableDataset\(...\)"
    with pytest.raises(TypeError, match=words):
        DataStream(IndexableDataset)
    with pytest.raises(TypeError, match="`iteration_scheme` must be a scheme, .*got <class"):
        DataStream(dataset, SequentialScheme)


class AnswersWithoutRequests(IndexableDataset):
    def get_data(self, state=None, request=None):
        return super().get_data(state, 0 if request is None else request)


def test_a_data_set_of_a_user_may_do_without_requests_where_its_base_does_not():
    data = {"x": numpy.arange(3)}
    with pytest.raises(ValueError, match="so the stream needs an `iteration_scheme`"):
        DataStream(IndexableDataset(data))
    assert next(DataStream(AnswersWithoutRequests(data)).get_epoch_iterator()) == (0,)
