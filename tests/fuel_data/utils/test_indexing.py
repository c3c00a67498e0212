import numpy
from numpy.testing import assert_array_equal

from fuel_data import utils
from fuel_data.utils.indexing import (
    contiguous_slice,
    iterable_fancy_indexing,
    sorted_fancy_indexing,
)


def test_contiguous_indices_are_a_slice_and_others_stay():
    assert contiguous_slice(numpy.array([4, 5, 6])) == slice(4, 7)
    assert contiguous_slice(numpy.array([4])) == slice(4, 5)
    assert_array_equal(contiguous_slice(numpy.array([4, 6])), [4, 6])
    assert_array_equal(contiguous_slice(numpy.array([4, 4, 6])), [4, 4, 6])
    assert_array_equal(contiguous_slice(numpy.array([6, 5, 4])), [6, 5, 4])
    assert len(contiguous_slice(numpy.array([], dtype=int))) == 0


def test_lists_can_be_indexed_by_lists():
    assert iterable_fancy_indexing(["a", "b", "c"], [2, 0]) == ["c", "a"]
    assert_array_equal(iterable_fancy_indexing(numpy.arange(3) + 5, [2, 0]), [7, 5])


def test_sorted_indexing_reads_increasing_indices_and_answers_in_the_order_asked():
    asked = []

    class Increasing:
        def __array__(self):
            raise AssertionError("only __getitem__ reads")

        def __getitem__(self, indices):
            asked.append(list(indices))
            return numpy.asarray(indices) * 10

    assert_array_equal(sorted_fancy_indexing(Increasing(), [4, 1, 4]), [40, 10, 40])
    assert asked == [[1, 4]]


def test_fuels_name_for_a_view_of_memory_is_there():
    assert bytes(utils.buffer_(numpy.arange(3, dtype="uint8"))) == b"\x00\x01\x02"
