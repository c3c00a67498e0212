"""Indices, slices and masks of every kind, and the gradients through them."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.tensor import basic, extra_ops, inc_subtensor, set_subtensor

from bricks import xla

ROWS = numpy.array([2, 0, 1])
COLUMNS = numpy.array([1, 1, 3])
GRID = numpy.array([[0, 2], [1, 1]])

#: of an array of three axes; each is read, set and incremented
INDICES = {
    "an element": lambda x: (0, -1, 1),
    "a row": lambda x: (-1,),
    "the last axis": lambda x: (..., 1),
    "a range": lambda x: slice(1, 3),
    "a range by shapes": lambda x: (slice(x.shape[0] // 2, None), slice(None, x.shape[1] - 1)),
    "a computed stride": lambda x: (slice(None, None, x.shape[0] - 1),),
    "a range beyond the end": lambda x: (slice(1, 99),),
    "an empty range": lambda x: (slice(2, 2),),
    "a backward range": lambda x: (slice(None, None, -1), slice(3, 0, -2)),
    "a range from the end": lambda x: (slice(-2, None), slice(-99, -1)),
    "a new axis": lambda x: (slice(None), None, 0),
    "places": lambda x: ROWS,
    "places on the second axis": lambda x: (slice(None), COLUMNS),
    "places on the last axis": lambda x: (..., ROWS % 2),
    "pairs of places": lambda x: (ROWS, COLUMNS),
    "pairs of places around a slice": lambda x: (ROWS, slice(None), ROWS % 2),
    "pairs of places behind a slice": lambda x: (slice(None), COLUMNS, ROWS % 2),
    "places and a range": lambda x: (ROWS, slice(1, 3)),
    "places and a backward range": lambda x: (slice(None, None, -1), COLUMNS),
    "places and a number": lambda x: (ROWS, 0),
    "places and a number around a slice": lambda x: (ROWS, slice(None), 1),
    "negative places": lambda x: (-1 - ROWS,),
    "a grid of places": lambda x: GRID,
    "two grids of places": lambda x: (GRID, GRID.T),
    "places that broadcast": lambda x: (ROWS[:, None], numpy.array([0, 3])),
    "equal places": lambda x: numpy.array([1, 1, 1]),
    "equal pairs": lambda x: (numpy.array([1, 1]), numpy.array([2, 2])),
    "no places": lambda x: numpy.zeros(0, "int64"),
    "one place": lambda x: numpy.array([1]),
    "places by shapes": lambda x: (tensor.arange(x.shape[0]), tensor.arange(x.shape[0]) % 2),
    "a known mask": lambda x: numpy.array([True, False, True]),
    "a known mask behind a slice": lambda x: (slice(None), numpy.array([True, False, True, True])),
    "a mask by shapes": lambda x: (tensor.arange(x.shape[0]) > 0).nonzero(),
}

#: the first two axes have lengths that the constants above fit
SHAPES = [(3, 4, 2), (3, 4, 3)]

#: written with equal places, the last one to be written is not determined
AMBIGUOUS = {"equal places", "equal pairs", "a grid of places", "two grids of places"}


def batches(*more):
    rng = numpy.random.default_rng(1)
    return [[rng.normal(size=shape), *more] for shape in SHAPES]


@pytest.mark.parametrize("name", INDICES)
def test_what_is_read_and_its_gradient_are_those_of_aesara(name, assert_agrees):
    assert_agrees(lambda x: x[INDICES[name](x)], batches())


@pytest.mark.parametrize("name", sorted(set(INDICES) - {"a new axis"}))
def test_increments_and_their_gradients_are_those_of_aesara(name, assert_agrees):
    def increment(x):
        part = x[INDICES[name](x)]
        return [inc_subtensor(part, 2.0), inc_subtensor(part, part**2)]

    assert_agrees(increment, batches())


@pytest.mark.parametrize("name", sorted(set(INDICES) - {"a new axis"} - AMBIGUOUS))
def test_what_is_set_and_its_gradients_are_those_of_aesara(name, assert_agrees):
    def overwrite(x):
        part = x[INDICES[name](x)]
        return [set_subtensor(part, 2.0), set_subtensor(part, part**2)]

    assert_agrees(overwrite, batches())


@pytest.mark.parametrize("name", sorted(AMBIGUOUS))
def test_one_number_is_set_at_equal_places(name, assert_agrees):
    assert_agrees(lambda x: set_subtensor(x[INDICES[name](x)], 2.0), batches())


COMPUTED = {
    "an element": lambda x, i: x[i[0], i[1]],
    "a row": lambda x, i: x[i[0]],
    "a column": lambda x, i: x[:, i[1]],
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i],
    "pairs": lambda x, i: x[i, i[::-1]],
    "pairs around a slice": lambda x, i: x[i, :, i % 2],
    "rows and a range": lambda x, i: x[i, 1:],
    "a number and places": lambda x, i: x[i[0], i],
    "a grid": lambda x, i: x[tensor.stack([i, i[::-1]])],
    "take": lambda x, i: [x.take(i, axis=1), tensor.take(x, i, axis=0), tensor.take(x, i)],
    "take that wraps": lambda x, i: tensor.take(x, i + 7, axis=0, mode="wrap"),
    "take that clips": lambda x, i: tensor.take(x, i * 9, axis=0, mode="clip"),
    "take along an axis": lambda x, i: tensor.take_along_axis(
        x, tensor.argsort(x, axis=1, kind="stable"), axis=1
    ),
    "increment of rows": lambda x, i: inc_subtensor(x[i], x[i] ** 2),
    "increment of pairs": lambda x, i: inc_subtensor(x[i, i], x[i, 0]),
    "increment of a row": lambda x, i: inc_subtensor(x[i[0]], x[1] ** 2),
    "setting of a row": lambda x, i: set_subtensor(x[i[0]], x[1] ** 2),
    "setting of an element": lambda x, i: set_subtensor(x[i[0], i[1]], 3.0),
    "setting of rows to one number": lambda x, i: set_subtensor(x[i], 3.0),
    "an embedding of a sequence": lambda x, i: x[i, 0].dot(x[i, 1].T),
    "one-hot": lambda x, i: extra_ops.to_one_hot(i, 3, "float64").dot(x[:, 0]),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_places_give_the_values_and_gradients_of_aesara(name, assert_agrees):
    assert_agrees(COMPUTED[name], batches(numpy.array([1, 2, 1])))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 0), (1, 1)])
def test_the_gradient_of_an_embedding_adds_up_over_equal_places(shape, assert_agrees):
    rng = numpy.random.default_rng(8)
    table, places = rng.normal(size=(5, 3)), rng.integers(0, 5, size=shape)

    assert_agrees(lambda x, i: x[i], [[table, places]])


def test_a_number_is_written_through_a_mask_that_is_computed(assert_agrees):
    def write(x):
        return [
            set_subtensor(x[(x > 0).nonzero()], 0.0),
            inc_subtensor(x[(x < 0).nonzero()], 1.5),
            set_subtensor(x[x > 1], -1.0),
            inc_subtensor(x[x[:, :, 0] > 1], -1.0),
        ]

    assert_agrees(write, batches())


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x[x > 0],
        lambda x: x[(x > 0).nonzero()].sum(),
        lambda x: tensor.nonzero(x > 0)[0],
        lambda x: tensor.flatnonzero(x),
        lambda x: tensor.nonzero_values(x).sum(),
        lambda x: set_subtensor(x[(x > 0).nonzero()], x[(x > 0).nonzero()] * 2),
        lambda x: tensor.ones_like(x)[(x > 0).nonzero()].shape[0],
    ],
)
def test_a_mask_that_is_computed_cannot_select_and_the_error_says_what_to_write(build):
    x = tensor.dmatrix("x")

    with pytest.raises(xla.DataDependentShape, match=r"a mask .*tensor\.switch\(mask, x, 0\)"):
        xla.function([x], build(x))(numpy.eye(3))


def test_slices_by_computed_bounds_are_refused():
    x, i = tensor.dvector("x"), tensor.lvector("i")

    with pytest.raises(xla.DataDependentShape, match="the bounds of a slice must be known"):
        xla.function([x, i], x[: i[0]])(numpy.ones(3), numpy.array([2]))


@pytest.mark.parametrize("inverse", [False, True])
def test_rows_are_permuted_and_the_gradient_undoes_it(inverse, assert_agrees):
    rng = numpy.random.default_rng(9)
    orders = numpy.array([[2, 0, 1], [1, 0, 2]])

    def permute(x, order):
        return basic.permute_row_elements(x, order, inverse)

    assert_agrees(permute, [[rng.normal(size=(2, 3)), orders]])
    assert_agrees(permute, [[rng.normal(size=(2, 3)), orders[0]]])
    assert_agrees(permute, [[rng.normal(size=3), orders]], gradients=False)


@pytest.mark.parametrize("order", ["C", "F"])
def test_flat_indices_are_taken_apart_and_put_together(order, assert_agrees):
    def there(flat):
        return list(tensor.unravel_index(flat, (2, 3, 4), order=order))

    def back(i, j):
        return [
            tensor.ravel_multi_index((i, j), (3, 4), order=order),
            tensor.ravel_multi_index((i * 5, j - 9), (3, 4), mode="wrap", order=order),
            tensor.ravel_multi_index((i * 5, j - 9), (3, 4), mode="clip", order=order),
        ]

    assert_agrees(there, [[numpy.arange(24)], [numpy.array([3])]])
    assert_agrees(back, [[ROWS, COLUMNS]])


def test_flat_indices_outside_are_an_error():
    i = tensor.lvector("i")
    there = xla.function([i], tensor.unravel_index(i, (2, 3))[0])
    back = xla.function([i], tensor.ravel_multi_index((i, i), (2, 3)))

    with pytest.raises(xla.GraphError, match="an index is outside an array of 6 elements"):
        there(numpy.array([6]))
    with pytest.raises(xla.GraphError, match="an index is outside axis 0 of length 2"):
        back(numpy.array([2]))


def test_the_jacobian_of_a_table_lookup_has_one_entry_a_place():
    x = tensor.dvector("x")
    jacobian = aesara.gradient.jacobian(x[numpy.array([2, 0, 2])] ** 2, x)

    result = xla.function([x], jacobian)(numpy.array([1.0, 2, 3]))

    numpy.testing.assert_array_equal(result, [[0, 0, 6], [2, 0, 0], [0, 0, 6]])


def test_an_increment_that_ignores_duplicates_changes_each_place_once():
    x, places = tensor.dvector("x"), tensor.lvector("places")
    y = tensor.inc_subtensor(x[places], 2.5, ignore_duplicates=True)

    values, twice = numpy.arange(4.0), numpy.array([0, 0, -1])
    expected = values.copy()
    expected[twice] += 2.5
    assert xla.function([x, places], y)(values, twice).tolist() == expected.tolist()
