import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.utils import Subset


def test_a_list_is_sorted_and_each_index_stands_once():
    subset = Subset([7, 2, 7, 0], 10)

    assert subset.list_or_slice == [0, 2, 7]
    assert subset.num_examples == 3
    assert subset.is_list


def test_a_contiguous_list_becomes_a_slice():
    subset = Subset([3, 1, 2], 10)

    assert subset.list_or_slice == slice(1, 4)
    assert not subset.is_list


def test_with_keep_order_the_order_and_the_repetitions_stay():
    subset = Subset([7, 2, 7, 0], 10, keep_order=True)

    assert subset.list_or_slice == [7, 2, 7, 0]
    assert subset[[3, 0]] == [0, 7]


def test_the_bounds_of_a_slice_are_filled_in():
    assert Subset(slice(None), 10).list_or_slice == slice(0, 10)
    assert Subset(slice(4, None), 10).num_examples == 6


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (slice(0, 4, 2), "step"),
        (slice(-3, None), "without negative numbers"),
        (slice(0, 11), "past the end of 10 examples"),
        (slice(5, 2), "starts before it stops"),
        ([0, -1], "indices count from 0; got -1"),
        ([0, 10], "index 10 is past the end of 10 examples"),
    ],
)
def test_what_is_not_in_the_data_set_is_refused(selection, message):
    with pytest.raises(ValueError, match=message):
        Subset(selection, 10)


@pytest.mark.parametrize("selection", [[[0, 1]], [0.5], [True, False], "01", 3])
def test_what_are_no_indices_is_refused(selection):
    with pytest.raises(ValueError, match="Subset: "):
        Subset(selection, 10)


@pytest.mark.parametrize(
    ("one", "two", "union"),
    [
        (slice(0, 3), slice(3, 5), slice(0, 5)),
        (slice(2, 6), slice(0, 4), slice(0, 6)),
        (slice(0, 2), slice(4, 6), [0, 1, 4, 5]),
        (slice(4, 6), slice(0, 2), [0, 1, 4, 5]),
        ([1, 5], [5, 7], [1, 5, 7]),
        ([1, 3], [0, 2], slice(0, 4)),
        ([], slice(2, 4), slice(2, 4)),
        ([1, 5], [], [1, 5]),
    ],
)
def test_a_sum_is_the_union(one, two, union):
    assert (Subset(one, 10) + Subset(two, 10)).list_or_slice == union


def test_a_sum_that_keeps_order_puts_one_behind_the_other():
    test = Subset(slice(5, 8), 10, keep_order=True)
    train = Subset(slice(0, 2), 10, keep_order=True)

    assert (test + train).get_list_representation() == [5, 6, 7, 0, 1]


def test_subsets_of_different_data_sets_cannot_be_added():
    with pytest.raises(ValueError, match="one of 10 and one of 11 examples"):
        Subset([1], 10) + Subset([1], 11)


def test_subsets_are_equal_if_they_have_the_same_examples_of_the_same_data_set():
    assert Subset([1, 2], 10) == Subset(slice(1, 3), 10)
    assert Subset([1, 2], 10) != Subset([1, 3], 10)
    assert Subset([1, 2], 10) != Subset([1, 2], 11)
    assert Subset([1, 3], 10) == Subset([3, 1], 10)
    assert Subset([1, 3], 10) != Subset(slice(1, 3), 10)
    assert Subset([], 10) == Subset(slice(4, 4), 10)
    assert Subset([], 10) != Subset([1], 10)


def test_the_empty_subset_has_no_examples():
    empty = Subset.empty_subset(10)

    assert empty.is_empty and empty.is_list and empty.num_examples == 0


@pytest.mark.parametrize(
    ("selection", "request_", "expected"),
    [
        (slice(2, 8), 3, 5),
        (slice(2, 8), slice(1, 3), slice(3, 5)),
        (slice(2, 8), slice(None), slice(2, 8)),
        (slice(2, 8), [4, 0, 0], [6, 2, 2]),
        (slice(2, 8), [1, 2, 3], slice(3, 6)),
        ([1, 3, 4, 8], 3, 8),
        ([1, 3, 4, 8], slice(1, 3), slice(3, 5)),
        ([1, 3, 4, 8], numpy.array([3, 0]), [8, 1]),
        ([1, 3, 4, 8], numpy.int64(0), 1),
        ([1, 3, 4, 8], numpy.array(3), 8),
    ],
)
def test_a_request_inside_a_subset_means_examples_of_the_data_set(selection, request_, expected):
    assert Subset(selection, 10)[request_] == expected


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (4, "index 4 is past the end of 4"),
        (-1, "count from 0; got -1"),
        (slice(0, 5), "past the end of 4 examples"),
        (slice(2, 2), "is empty"),
        ([], "is empty"),
        (numpy.array([], dtype=int), "is empty"),
        ([1, 4], "index 4"),
    ],
)
@pytest.mark.parametrize("selection", [slice(2, 6), [1, 3, 4, 8]])
def test_a_request_that_cannot_be_answered_in_full_is_refused(selection, request_, message):
    with pytest.raises(ValueError, match=message):
        Subset(selection, 10)[request_]


def test_a_subset_of_a_subset_is_one_of_the_data_set():
    subset = Subset.subset_of(Subset([1, 3, 5, 7], 10), slice(1, 3))

    assert subset == Subset([3, 5], 10)
    assert Subset.subset_of(subset, []).is_empty
    assert Subset.subset_of(subset, slice(0, 0)).is_empty


@pytest.mark.parametrize("sort_indices", [False, True])
def test_reading_within_a_subset_answers_in_the_order_of_the_request(sort_indices):
    data = numpy.arange(10) * 10
    subset = Subset([1, 3, 5, 8], 10)

    read = subset.index_within_subset(data, [3, 0, 3], sort_indices=sort_indices)

    assert_array_equal(read, [80, 10, 80])
    assert subset.index_within_subset(list(data), 1) == 30
    assert subset.index_within_subset(list(data), [2, 0]) == [50, 10]


def test_a_hundred_thousand_indices_take_no_time_in_python():
    """Element by element the checks would make about a million calls."""
    calls = 0

    class Counted(numpy.ndarray):
        def __getitem__(self, key):
            nonlocal calls
            calls += 1
            return super().__getitem__(key)

    indices = numpy.arange(0, 200_000, 2).view(Counted)

    Subset(indices, 200_000) + Subset(indices, 200_000)

    assert calls < 100


def test_repr_of_many_indices_is_short():
    assert repr(Subset([1, 3], 10)) == "Subset([1, 3], 10)"
    assert len(repr(Subset(range(0, 1000, 2), 1000))) < 60
