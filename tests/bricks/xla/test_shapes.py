"""What makes, joins, splits and reshapes arrays, at lengths of one and zero too."""

import numpy
import pytest
from aesara import tensor
from aesara.tensor import extra_ops

from bricks import xla

EMPTY = numpy.zeros((0, 3))
ROW = numpy.array([[1.0, 2, 3]])

#: of one matrix, with gradients
CASES = {
    "reshape": lambda x: [x.reshape((3, -1)), x.reshape((x.size,)), x.ravel()],
    "reshape in two ways": lambda x: x.reshape((x.shape[1], x.shape[0])).T,
    "flatten": lambda x: [x.flatten(), tensor.flatten(x, 1)],
    "dimshuffle": lambda x: [x.dimshuffle(1, 0), x.dimshuffle("x", 1, "x", 0)],
    "moved axes": lambda x: [tensor.moveaxis(x, 0, 1), tensor.swapaxes(x, 0, 1)],
    "expanded dimensions": lambda x: [tensor.expand_dims(x, 1), x[None, :, None]],
    "padded dimensions": lambda x: [tensor.shape_padleft(x), tensor.atleast_3d(x)],
    "atleast": lambda x: [tensor.atleast_1d(x.sum()), tensor.atleast_2d(x[:, 0])],
    "join": lambda x: [tensor.concatenate([x, x[:1], 2 * x], axis=0), tensor.join(1, x, x)],
    "join of one": lambda x: tensor.concatenate([x], axis=0),
    "join from the last axis": lambda x: tensor.concatenate([x, x], axis=-1),
    "join of vectors": lambda x: tensor.concatenate([x[:, 0], x[:, 1], tensor.ones((2,))]),
    "stacks": lambda x: [tensor.stack([x, x**2], axis=a) for a in (0, 1, 2, -1)],
    "horizontal and vertical stacks": lambda x: [
        tensor.horizontal_stack(x, x),
        tensor.vertical_stack(x, -x),
    ],
    "stacked numbers": lambda x: tensor.stack([x.sum(), tensor.as_tensor(2.0), x.mean() * x.sum()]),
    "split in the middle": lambda x: tensor.split(x, [1, x.shape[1] - 1], 2, axis=1),
    "split with an empty part": lambda x: tensor.split(x, [0, 3, 0], 3, axis=1),
    "split into one": lambda x: tensor.split(x, [3], 1, axis=1),
    "tile": lambda x: [tensor.tile(x, (2, 3)), tensor.tile(x, (1, 1, 2)), tensor.tile(x, 2, 2)],
    "repeat": lambda x: [tensor.repeat(x, 2, axis=0), tensor.repeat(x, 3, axis=1)],
    "repeat of everything": lambda x: tensor.repeat(x, 2),
    "repeat never": lambda x: tensor.repeat(x, 0, axis=1),
    "roll": lambda x: [tensor.roll(x, 2, axis=1), tensor.roll(x, -1, axis=1), tensor.roll(x, 5)],
    "differences": lambda x: [tensor.diff(x, axis=1), tensor.diff(x, n=2, axis=1)],
    "flips": lambda x: [x[::-1], x[:, ::-1]],
    "triangles": lambda x: [f(x, k) for f in (tensor.tril, tensor.triu) for k in (-1, 0, 1)],
    # Aesara's gradient of other diagonals than those of square matrices fails.
    "diagonals": lambda x: [tensor.diagonal(x[:3], offset=k) for k in (-1, 0, 1)],
    "a vector on a diagonal": lambda x: [
        tensor.diag(x.sum(axis=0)),
        tensor.basic.AllocDiag(offset=1)(x.sum(axis=0)),
        tensor.basic.AllocDiag(offset=-2)(x.sum(axis=0)),
    ],
    "main diagonal overwritten": lambda x: tensor.fill_diagonal(x, x.sum()),
    "other diagonals overwritten": lambda x: [
        tensor.fill_diagonal_offset(x, x.sum(), k) for k in (-1, 0, 2)
    ],
    "alloc": lambda x: [tensor.alloc(x.sum(), 2, 3), tensor.alloc(x[0], 4, 3)],
    "fill": lambda x: [tensor.fill(x, 2.0), tensor.full_like(x, 3.0), tensor.zeros_like(x)],
    "full": lambda x: tensor.full((2, x.shape[1]), x.sum()),
    "broadcast to a shape": lambda x: tensor.broadcast_to(x, (2, x.shape[0], 3)),
    "broadcast arrays": lambda x: list(tensor.broadcast_arrays(x, x[None])),
    "where": lambda x: tensor.where(x > 0, x, 0.0),
    "cumulation": lambda x: [f(x, axis=a) for f in (tensor.cumsum, tensor.cumprod) for a in (0, 1)],
    "cumulation of everything": lambda x: [tensor.cumsum(x), tensor.cumprod(x + 2)],
    "squeeze": lambda x: tensor.addbroadcast(x[:1], 0).squeeze(),
    "mean subtracted": lambda x: x - x.mean(axis=0, keepdims=True),
    "outer product": lambda x: tensor.outer(x[:, 0], x[:, 1]),
    "norms": lambda x: [x.norm(2), x.norm(1, axis=1)],
}

#: without inputs that are differentiated
MADE = {
    "ranges": lambda n: [
        tensor.arange(n),
        tensor.arange(2, n),
        tensor.arange(n, 0, -2),
        tensor.arange(0, n, 3, dtype="float32"),
        tensor.arange(5, 2),
    ],
    "ranges of floats": lambda n: [tensor.arange(0.0, 1.0, 0.25), tensor.arange(n / 2.0)],
    "linear, logarithmic and geometric spaces": lambda n: [
        tensor.linspace(0.0, 1.0, 5),
        tensor.logspace(0.0, 2.0, 3),
        tensor.geomspace(1.0, 8.0, 4),
    ],
    "identities": lambda n: [tensor.eye(n), tensor.eye(n, 3), tensor.eye(n, n + 1, k=-1)],
    "triangles of ones": lambda n: [tensor.tri(n), tensor.tri(n, 2, 1), tensor.tri(2, n, -1)],
    "indices of triangles": lambda n: [*tensor.tril_indices(n), *tensor.triu_indices(n, 1)],
    "grids": lambda n: [*tensor.mgrid[0:n, 0:3], *tensor.ogrid[0:n, 1:4]],
    "windows": lambda n: extra_ops.bartlett(n),
    "zeros and ones": lambda n: [tensor.zeros((n, 2)), tensor.ones((n,), "int8"), tensor.zeros(())],
    "a vector of numbers": lambda n: [tensor.stack([n, n * 2]), tensor.as_tensor([n, 1])],
    "the shape of a broadcast": lambda n: tensor.stack(
        list(extra_ops.broadcast_shape(tensor.zeros((n, 1)), tensor.zeros((1, 3))))
    ),
}


def batches():
    rng = numpy.random.default_rng(2)
    return [[rng.normal(size=shape)] for shape in [(3, 3), (5, 3)]]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_aesara(name, assert_agrees):
    assert_agrees(CASES[name], batches())


@pytest.mark.parametrize("name", ["join", "stacks", "tile", "repeat", "cumulation", "roll", "fill"])
@pytest.mark.parametrize("data", [EMPTY, ROW], ids=["empty", "one row"])
def test_empty_arrays_and_single_rows_are_handled_alike(name, data, assert_agrees):
    if name == "join":
        assert_agrees(lambda x: tensor.concatenate([x, x, 2 * x], axis=0), [[data]])
    elif name == "roll":
        assert_agrees(lambda x: tensor.roll(x, 1, axis=1), [[data]])
    else:
        assert_agrees(CASES[name], [[data]])


@pytest.mark.parametrize("name", MADE)
def test_an_integer_argument_may_be_a_length(name, assert_agrees):
    assert_agrees(MADE[name], [[numpy.int64(4)], [numpy.int64(1)]], gradients=False)


def test_a_long_window_is_made_of_its_length():
    n = tensor.lscalar("n")

    window = xla.function([n], extra_ops.bartlett(n * 2))(3000)

    numpy.testing.assert_allclose(window, numpy.bartlett(6000))


def test_rows_are_repeated_as_often_as_counts_say():
    x = tensor.dmatrix("x")
    counts = numpy.array([0, 2, 1])

    repeated = xla.function([x], tensor.repeat(x, counts, axis=0))(numpy.eye(3))

    numpy.testing.assert_array_equal(repeated, numpy.repeat(numpy.eye(3), counts, axis=0))


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_choices_outside_are_wrapped_or_clipped(mode):
    places, choices = tensor.lvector("places"), tensor.dmatrix("choices")
    table = numpy.array([[0.0, 1, 2], [10, 11, 12]])
    wanted = numpy.array([-1, 1, 3])

    chosen = xla.function([places, choices], tensor.choose(places, choices, mode=mode))

    numpy.testing.assert_array_equal(chosen(wanted, table), numpy.choose(wanted, table, mode=mode))


def test_a_diagonal_may_be_chosen_by_an_integer_argument():
    x, k = tensor.dmatrix("x"), tensor.lscalar("k")
    overwrite = xla.function([x, k], tensor.fill_diagonal_offset(x, 7.0, k))

    numpy.testing.assert_array_equal(overwrite(numpy.zeros((2, 3)), -1), [[0, 0, 0], [7, 0, 0]])


def test_counts_of_numbers_have_no_shape_that_is_known():
    x = tensor.lvector("x")

    with pytest.raises(xla.DataDependentShape, match="shape of a new array must be known"):
        xla.function([x], extra_ops.bincount(x))(numpy.array([1, 2, 2]))


def test_parts_that_do_not_add_up_are_refused():
    x = tensor.dvector("x")
    parts = xla.function([x], tensor.split(x, [2, 2], 2))

    with pytest.raises(xla.GraphError, match="4 elements together, axis 0 has 5"):
        parts(numpy.zeros(5))
