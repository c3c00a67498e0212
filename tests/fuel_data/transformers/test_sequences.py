import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.exceptions import KindMismatchError
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Mapping
from fuel_data.transformers.sequences import NGrams, Window


def sequences(*lists, labels=("time",)):
    dataset = IterableDataset({"x": list(lists)}, axis_labels={"x": labels})
    return DataStream(dataset)


def windows(stream, epoch=0):
    return list(stream.get_epoch_iterator(epoch=epoch))


def test_a_target_window_begins_where_the_source_window_begins_or_ends():
    stream = sequences([1, 2, 3, 4, 5])

    assert windows(Window(0, 2, 1, False, stream)) == [([1, 2], [3]), ([2, 3], [4]), ([3, 4], [5])]
    assert windows(Window(1, 3, 3, True, stream)) == [
        ([1, 2, 3], [2, 3, 4]),
        ([2, 3, 4], [3, 4, 5]),
    ]


def test_an_offset_may_put_the_target_before_the_source():
    stream = sequences([1, 2, 3, 4], [5, 6])

    assert windows(Window(-1, 1, 2, True, stream)) == [
        ([2], [1, 2]),
        ([3], [2, 3]),
        ([4], [3, 4]),
    ] + [([6], [5, 6])]


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(
    length=st.integers(0, 9),
    offset=st.integers(-4, 4),
    source=st.integers(1, 3),
    target=st.integers(1, 3),
    overlapping=st.booleans(),
)
def test_every_place_where_both_windows_fit_comes_once_in_order(
    length, offset, source, target, overlapping
):
    distance = offset + (0 if overlapping else source)
    expected = [
        (list(range(i, i + source)), list(range(i + distance, i + distance + target)))
        for i in range(length)
        if i + source <= length and i + distance >= 0 and i + distance + target <= length
    ]

    stream = Window(offset, source, target, overlapping, sequences(list(range(length))))

    assert windows(stream) == expected


def test_no_window_reaches_into_the_next_sequence_and_short_ones_give_nothing():
    grams = NGrams(2, sequences([1, 2, 3], [], [4, 5], [6, 7, 8]))

    assert windows(grams) == [([1, 2], 3), ([6, 7], 8)]


def test_an_epoch_that_is_left_leaks_no_window_into_the_next():
    grams = NGrams(1, sequences([1, 2, 3], [4, 5]))
    next(grams.get_epoch_iterator())

    assert windows(grams, epoch=1) == [([1], 2), ([2], 3), ([4], 5)]


def scale_in_place(item):
    for values in item:
        values *= 10
    return item


def test_a_window_that_is_changed_in_place_changes_no_other():
    windows_below = Window(1, 2, 2, True, sequences(numpy.arange(1, 6)))
    stream = Mapping(windows_below, scale_in_place)
    iterator = stream.get_epoch_iterator()
    next(iterator)
    resumed = stream.get_epoch_iterator()
    resumed.set_state(iterator.get_state())

    for windows_ in (next(iterator), next(resumed)):
        assert [window.tolist() for window in windows_] == [[20, 30], [30, 40]]


def test_windows_keep_their_labels_and_a_single_target_has_no_time():
    stream = sequences(numpy.zeros((3, 2)), labels=("time", "feature"))

    axes = Window(0, 2, 1, False, stream, "next").axis_labels
    assert axes == {"x": ("time", "feature"), "next": ("time", "feature")}
    grams = NGrams(2, stream, target_source="next")
    assert grams.axis_labels == {"x": ("time", "feature"), "next": ("feature",)}
    assert grams.sources == ("x", "next")
    source, target = windows(grams)[0]
    assert (source.shape, target.shape) == ((2, 2), (2,))
    given_labels = {"x": ("t",), "next": ()}
    assert NGrams(2, stream, "next", axis_labels=given_labels).axis_labels == given_labels


def test_sequences_without_labels_give_windows_without():
    unlabelled = DataStream(IterableDataset({"x": [[1, 2]]}))

    assert NGrams(1, unlabelled).axis_labels is None
    assert NGrams(1, sequences([1], labels=None)).axis_labels == {"x": None, "targets": None}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: NGrams(0, s), "NGrams: `ngram_order` must be at least 1; got 0"),
        (lambda s: Window(0, 0, 1, True, s), "Window: `source_window` must be at least 1; got 0"),
        (lambda s: Window(0, 1, -1, True, s), "Window: `target_window` must be at least 1; got -1"),
        (lambda s: NGrams(1, s, "x"), "NGrams: the targets would be called 'x', as the source"),
        (lambda s: NGrams(1, NGrams(1, s)), r"must have one source; got \('x', 'targets'\). Put"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(sequences([1, 2]))


def test_batches_are_refused():
    dataset = IndexableDataset({"x": numpy.zeros((4, 3))})
    batches = DataStream(dataset, iteration_scheme=SequentialScheme(4, 2))

    with pytest.raises(KindMismatchError, match="Window: `data_stream` must give examples; got"):
        Window(0, 1, 1, True, batches)
