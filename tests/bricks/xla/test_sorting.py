"""Sorting and searching agree with numpy, ties included."""

import numpy
import pytest
from aesara import tensor
from aesara.tensor.sort import TopKOp, topk, topk_and_argtopk

from bricks import xla

TIES = numpy.array([[3.0, 1, 3, 2, 1], [0, 0, 0, 0, 0], [5, -1, 2, -1, 7]])
OTHER = numpy.random.default_rng(3).normal(size=(4, 3))
LONE = numpy.array([[2.0]])

CASES = {
    "sort of rows": lambda x: tensor.sort(x, axis=1),
    "sort of columns": lambda x: tensor.sort(x, axis=0),
    "sort of everything": lambda x: tensor.sort(x, axis=None),
    "stable sort": lambda x: tensor.sort(x, axis=-1, kind="stable"),
    "argsort of rows": lambda x: tensor.argsort(x, axis=1, kind="stable"),
    "argsort of columns": lambda x: tensor.argsort(x, axis=0, kind="stable"),
    "argsort of everything": lambda x: tensor.argsort(x, axis=None, kind="stable"),
    "smallest and largest of a row": lambda x: [tensor.sort(x, axis=1)[:, i] for i in (0, -1)],
    "median": lambda x: tensor.sort(x, axis=1)[:, x.shape[1] // 2],
    "sort weighted by places": lambda x: tensor.sort(x, axis=1) * tensor.arange(x.shape[1]),
    "searchsorted": lambda x: tensor.searchsorted(tensor.sort(x[0]), x[0]),
    "searchsorted from the right": lambda x: tensor.searchsorted(
        tensor.sort(x[0]), x, side="right"
    ),
    "searchsorted with a sorter": lambda x: tensor.searchsorted(
        x[0], x[0], sorter=tensor.argsort(x[0])
    ),
    "searchsorted beyond the ends": lambda x: tensor.searchsorted(
        tensor.sort(x[0]), tensor.as_tensor([-1e9, 1e9])
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sorting_agrees_with_numpy_and_so_do_gradients(name, assert_agrees):
    assert_agrees(CASES[name], [[TIES], [OTHER], [LONE]])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 2, -1, -2, -3])
def test_the_largest_elements_are_those_of_numpy_and_so_are_gradients(count, axis, assert_agrees):
    def top(x):
        values, places = topk_and_argtopk(x, count, axis=axis, sorted=False)
        # Aesara leaves their order open.
        return [tensor.sort(values, axis=axis), tensor.sort(places, axis=axis)]

    assert_agrees(top, [[OTHER], [OTHER.T.copy()]])


@pytest.mark.parametrize("count", [3, -3])
def test_the_most_extreme_element_comes_first_and_of_equal_ones_the_first(count):
    x = tensor.dvector("x")
    values, places = topk_and_argtopk(x, count, sorted=False)

    found, where = xla.function([x], [values, places])(numpy.array([1.0, 5, 0, 5, 0, 3]))

    expected = [5, 5, 3] if count > 0 else [0, 0, 1]
    numpy.testing.assert_array_equal(found, expected)
    numpy.testing.assert_array_equal(where, [1, 3, 5] if count > 0 else [2, 4, 0])


def test_values_or_places_alone_can_be_asked_for():
    x = tensor.dvector("x")
    values = TopKOp(sorted=False, return_indices=False)(x, 2)
    places = TopKOp(sorted=False, return_values=False, idx_dtype="int32")(x, 2)

    found, where = xla.function([x], [values, places])(numpy.array([1.0, 5, 0]))

    numpy.testing.assert_array_equal(found, [5, 1])
    numpy.testing.assert_array_equal(where, [1, 0])
    assert where.dtype == "int32"


@pytest.mark.parametrize("count", [0, 4, -4])
def test_more_elements_than_there_are_cannot_be_found(count):
    x = tensor.dvector("x")

    with pytest.raises(xla.GraphError, match=rf"1 to 3 elements can be found .*; got {count}"):
        xla.function([x], topk(x, count, sorted=False))(numpy.ones(3))


def test_nan_sorts_behind_everything():
    x = tensor.dvector("x")

    result = xla.function([x], tensor.sort(x))(numpy.array([numpy.nan, 1, -numpy.inf]))

    numpy.testing.assert_array_equal(result, [-numpy.inf, 1, numpy.nan])


def test_an_empty_array_is_sorted():
    x = tensor.dmatrix("x")
    outputs = [tensor.sort(x, axis=0), tensor.argsort(x, axis=1)]

    assert [part.shape for part in xla.function([x], outputs)(numpy.zeros((0, 3)))] == [(0, 3)] * 2


def test_different_elements_are_found_where_their_number_is_declared():
    x = tensor.lvector("x")
    values, first, inverse, counts = tensor.unique(x, True, True, True)
    outputs = [tensor.specify_shape(values, [3]), first, inverse, counts]
    data = numpy.array([4, 1, 4, 9, 1, 4])

    results = xla.function([x], outputs)(data)

    for mine, expected in zip(results, numpy.unique(data, True, True, True), strict=True):
        numpy.testing.assert_array_equal(mine, expected)


def test_different_rows_are_found_where_their_number_is_declared():
    x = tensor.lmatrix("x")
    rows = tensor.specify_shape(tensor.unique(x, axis=0), [2, None])
    data = numpy.array([[4, 1], [0, 3], [4, 1]])

    numpy.testing.assert_array_equal(xla.function([x], rows)(data), [[0, 3], [4, 1]])


def test_another_number_of_different_elements_than_declared_is_an_error():
    x = tensor.lvector("x")
    function = xla.function([x], tensor.specify_shape(tensor.unique(x), [2]))

    with pytest.raises(xla.GraphError, match="another number of different elements than 2"):
        function(numpy.array([1, 2, 3]))


def test_the_number_of_different_elements_must_be_declared():
    x = tensor.lvector("x")

    with pytest.raises(xla.DataDependentShape, match=r"tensor\.specify_shape\(tensor\.unique\(x\)"):
        xla.function([x], tensor.unique(x))(numpy.array([1, 2, 3]))


def test_different_elements_of_a_known_array_are_found():
    x = tensor.dmatrix("x")
    known = numpy.arange(5000) // 1000 % 2
    constant = tensor.unique(tensor.as_tensor(known), return_inverse=True)

    results = xla.function([x], [x, *constant])(numpy.eye(2))

    numpy.testing.assert_array_equal(results[1], [0, 1])
    numpy.testing.assert_array_equal(results[2], known)
