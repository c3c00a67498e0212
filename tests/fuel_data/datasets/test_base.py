import functools
import itertools
import pickle

import numpy
import pytest

from fuel_data.datasets import Dataset, IndexableDataset, IterableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import ScaleAndShift


@pytest.fixture
def letters():
    return IndexableDataset({"x": numpy.arange(10.0, 16.0), "y": list("abcdef")})


class Constant(Dataset):
    provides_sources = ("a", "b")
    default_transformers = ((ScaleAndShift, [2, 1], {"which_sources": ("a",)}),)

    def get_data(self, state=None, request=None):
        return self.filter_sources((request, -request))


def test_sources_are_filtered_in_the_order_asked_for():
    assert Constant(sources=("b", "a")).get_data(request=3) == (-3, 3)
    assert Constant(sources=["b"]).get_data(request=3) == (-3,)
    assert Constant().sources == ("a", "b")


class NamedInTheClass(Constant):
    axis_labels = {"a": ("batch",), "b": ("batch", "feature")}

    def __init__(self, *args, calls_base=True):
        if calls_base:
            super().__init__(*args)


def test_labels_and_sources_may_be_named_in_the_class():
    assert NamedInTheClass(("b",)).axis_labels["b"] == ("batch", "feature")
    assert NamedInTheClass(("b",), {"b": ("batch", "x")}).axis_labels == {"b": ("batch", "x")}
    bare = NamedInTheClass(calls_base=False)
    assert bare.sources == ("a", "b")
    stream = DataStream(bare, SequentialScheme(4, 2))
    assert stream.axis_labels == NamedInTheClass.axis_labels
    assert Constant().axis_labels is None


def test_an_unknown_source_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="Constant: `sources` asks for 'c', which is not provided"):
        Constant(sources=("c",))
    with pytest.raises(ValueError, match="asks for 'targts'.*Did you mean 'targets'"):
        IndexableDataset({"targets": [1]}, sources=("targts",))


def test_one_text_as_sources_is_refused():
    with pytest.raises(ValueError, match=r"got the text 'ab'. Write \('ab',\)"):
        Constant(sources="ab")


def test_a_data_set_must_provide_sources():
    class Nothing(Constant):
        provides_sources = ()

    with pytest.raises(ValueError, match="Nothing: `provides_sources` must name at least one"):
        Nothing()


def test_a_data_set_without_example_scheme_says_so():
    with pytest.raises(AttributeError, match="Constant: has no `example_iteration_scheme`"):
        Constant().get_example_stream()


def test_default_transformers_are_put_over_a_stream(letters):
    letters.default_transformers = ((ScaleAndShift, [2, 1], {"which_sources": ("x",)}),)
    stream = letters.apply_default_transformers(letters.get_example_stream())
    assert next(stream.get_epoch_iterator()) == (21.0, "a")


def test_an_example_stream_has_all_examples_in_order(letters):
    stream = letters.get_example_stream()
    assert stream.produces_examples
    assert list(stream.get_epoch_iterator())[1:3] == [(11.0, "b"), (12.0, "c")]


@pytest.mark.parametrize(
    ("request_", "x", "y"),
    [
        ([4, 0, 4], [14, 10, 14], ["e", "a", "e"]),
        (numpy.array([1, 3], dtype="uint8"), [11, 13], ["b", "d"]),
        (slice(1, 3), [11, 12], ["b", "c"]),
        (slice(None), list(range(10, 16)), list("abcdef")),
        (slice(0, 6, 2), [10, 12, 14], ["a", "c", "e"]),
        ((5,), [15], ["f"]),
    ],
)
def test_requests_are_lists_arrays_and_slices(letters, request_, x, y):
    data = letters.get_data(request=request_)
    assert data[0].tolist() == x
    assert data[1] == y


def test_a_request_for_one_example_is_an_int(letters):
    assert letters.get_data(request=2) == (12.0, "c")
    assert letters.get_data(request=numpy.int64(2)) == (12.0, "c")


@pytest.mark.parametrize(
    "request_",
    [-1, 6, [0, -1], [6], [], slice(2, 2), slice(0, 7), slice(-2, None), slice(4, 1, -1)],
)
def test_requests_that_are_empty_negative_or_out_of_range_are_refused(letters, request_):
    with pytest.raises(ValueError, match="IndexableDataset.get_data: `request` must"):
        letters.get_data(request=request_)


@pytest.mark.parametrize("request_", [[0.5], [[1]], "a", [True, False], True, numpy.bool_(1), 1.0])
def test_requests_of_another_kind_are_refused(letters, request_):
    with pytest.raises(ValueError, match="must be a whole number, a slice, or a sequence"):
        letters.get_data(request=request_)


def test_an_indexable_data_set_takes_a_request_and_no_state(letters):
    with pytest.raises(ValueError, match="takes a request and no state"):
        letters.get_data()
    with pytest.raises(ValueError, match="takes a request and no state; got state 1"):
        letters.get_data(1, [0])


def test_start_and_stop_cut_once():
    dataset = IndexableDataset({"x": numpy.arange(10), "y": list(range(10))}, start=2, stop=8)
    assert dataset.num_examples == 6
    assert dataset.get_data(request=[0, 5])[0].tolist() == [2, 7]
    assert dataset.get_data(request=[0, 5])[1] == [2, 7]
    assert len(list(dataset.get_example_stream())) == 6


def test_one_indexable_is_called_data_and_cut_too():
    dataset = IndexableDataset(numpy.arange(10), start=2)
    assert dataset.sources == ("data",)
    assert (dataset.num_examples, dataset.get_data(request=0)) == (8, (2,))


def test_sources_are_attributes(letters):
    assert letters.y == list("abcdef")
    assert letters.x is letters.indexables[0]
    with pytest.raises(AttributeError, match="has no attribute 'z'"):
        letters.z  # noqa: B018


def test_sources_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="number of examples; 'x' has 2, 'y' has 3"):
        IndexableDataset({"x": [1, 2], "y": [1, 2, 3]})
    with pytest.raises(ValueError, match="number of examples; 'x' has 2, 'y' has 3"):
        IterableDataset({"x": [1, 2], "y": [1, 2, 3]})


def test_sources_asked_for_come_in_that_order(letters):
    letters.sources = ("y", "x")
    assert letters.get_data(request=0) == ("a", 10.0)


def test_an_iterable_data_set_is_read_from_its_state():
    dataset = IterableDataset({"x": [1, 2], "y": "ab"})
    state = dataset.open()
    assert [dataset.get_data(state), dataset.get_data(state)] == [(1, "a"), (2, "b")]
    with pytest.raises(StopIteration):
        dataset.get_data(state)
    assert dataset.num_examples == 2


def test_one_iterable_is_called_data():
    assert list(DataStream(IterableDataset(range(2)))) == [(0,), (1,)]


def test_an_iterable_data_set_takes_a_state_and_no_request():
    with pytest.raises(ValueError, match="takes a state from `open` and no request"):
        IterableDataset([1]).get_data()
    with pytest.raises(ValueError, match="Use an IndexableDataset for random access"):
        IterableDataset([1]).get_data(iter([1]), [0])


def test_a_source_that_ends_before_another_is_an_error_that_says_which():
    endless = functools.partial(itertools.count)
    dataset = IterableDataset({"x": [1, 2], "y": endless})
    state = dataset.open()
    dataset.get_data(state), dataset.get_data(state)
    with pytest.raises(ValueError, match="IterableDataset: 'x' ended while 'y' went on"):
        dataset.get_data(state)


def test_a_generator_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match="source 'x' is a generator, which can be read only once"):
        IterableDataset({"x": (number for number in range(3))})


def test_something_that_is_not_iterable_is_refused():
    with pytest.raises(ValueError, match="source 'x' must be iterable, or a function"):
        IterableDataset({"x": 3})


def test_an_iterator_that_can_be_copied_begins_again_in_each_epoch():
    stream = DataStream(IterableDataset(iter([1, 2])))
    assert list(stream) == list(stream) == [(1,), (2,)]


def test_a_function_that_makes_a_generator_begins_again_in_each_epoch():
    stream = DataStream(IterableDataset({"x": lambda: (number for number in range(2))}))
    assert list(stream) == list(stream) == [(0,), (1,)]
    assert stream.num_batches is None


class Parts(Dataset):
    """Another part in each epoch, as partitions of text are read."""

    provides_sources = ("x",)
    example_iteration_scheme = None

    def open(self):
        return {"part": 0, "line": 0}

    def next_epoch(self, state):
        return {"part": state["part"] + 1, "line": 0}

    def get_data(self, state=None, request=None):
        if state["line"] == 3:
            raise StopIteration
        state["line"] += 1
        return (10 * state["part"] + state["line"],)


def test_a_data_set_whose_epochs_differ_resumes_in_any_of_them():
    stream = DataStream(Parts())
    assert [list(stream), list(stream)] == [[(1,), (2,), (3,)], [(11,), (12,), (13,)]]
    iterator = stream.get_epoch_iterator()
    next(iterator)
    fresh = DataStream(Parts()).get_epoch_iterator()
    fresh.set_state(iterator.get_state())
    assert list(fresh) == [(22,), (23,)]


def test_a_repr_names_sources_and_size(letters):
    assert repr(letters) == "IndexableDataset(x, y, 6 examples)"


@pytest.mark.parametrize("request_", [1, slice(0, 3), [0, 1]], ids=str)
def test_changing_what_was_read_does_not_change_the_data_set(request_):
    ragged = numpy.empty(3, dtype=object)
    ragged[:] = [numpy.arange(number, number + 2) for number in range(3)]
    arrays = IndexableDataset({"x": numpy.arange(6.0).reshape(3, 2), "rows": ragged})

    x, rows = arrays.get_data(request=request_)
    x *= 10
    rows[...] = 0

    assert arrays.x.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert [row.tolist() for row in arrays.rows] == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("sources", [(), ("x", "x")])
def test_sources_must_be_named_and_each_once(sources):
    # Without sources an IterableDataset would never end.
    for kind in (IndexableDataset, IterableDataset):
        with pytest.raises(ValueError, match="at least one name, and each only once; got"):
            kind({"x": [1, 2], "y": [3, 4]}, sources=sources)


def _rows():
    rows = [numpy.zeros(2), numpy.zeros(3)]
    objects = numpy.empty(2, dtype=object)
    objects[:] = rows
    return rows, objects


@pytest.mark.parametrize("request_", [slice(0, 2), [0, 1], 0])
def test_who_changes_a_ragged_batch_changes_no_data_set(request_):
    for data in _rows():
        dataset = IndexableDataset({"x": data})
        (batch,) = dataset.get_data(request=request_)
        for example in batch:
            example += 1

        assert not any(example.any() for example in data)
        (again,) = dataset.get_data(request=request_)
        assert type(again) is type(batch)
        assert len(again) == len(batch)


def test_who_changes_an_example_changes_no_data_set_that_is_iterated_over():
    for data in (numpy.zeros((2, 2)), [numpy.zeros(2)], (numpy.zeros(2),)):
        for (x,) in DataStream(IterableDataset({"x": data})):
            x += 1

        assert not numpy.any(data)
    sentences = [[1], [2, 3]]
    for (x,) in DataStream(IterableDataset({"x": sentences})):
        x.append(0)
    for (batch,) in DataStream(IndexableDataset({"x": sentences}), SequentialScheme(2, 2)):
        batch[0].append(0)
    assert sentences == [[1], [2, 3]]


def test_examples_that_are_no_longer_there_are_missed_when_a_run_goes_on():
    data = list("abcdef")
    stream = DataStream(IterableDataset({"x": lambda: iter(data)}))
    iterator = stream.get_epoch_iterator()
    for _ in range(3):
        next(iterator)
    state = iterator.get_state()
    del data[2:]

    with pytest.raises(ValueError, match="'x' ended after 2 of 3 examples that were read before"):
        iterator.set_state(state)


class Lines(Dataset):
    """A data set of a user that is read from the front."""

    provides_sources = ("x",)
    lines = "abcdef"

    def open(self):
        return iter(Lines.lines)

    def get_data(self, state=None, request=None):
        return (next(state),)


def test_an_epoch_that_ends_before_the_position_is_no_end_of_the_data(monkeypatch):
    stream = DataStream(Lines())
    iterator = stream.get_epoch_iterator()
    for _ in range(3):
        next(iterator)
    state, pickled = iterator.get_state(), pickle.dumps(iterator)
    monkeypatch.setattr(Lines, "lines", "ab")

    with pytest.raises(ValueError, match="DataStream: 3 items of epoch 0 were given when this pos"):
        iterator.set_state(state)
    with pytest.raises(ValueError, match="now the epoch ends before them. Put the data back as th"):
        next(pickle.loads(pickled))
