"""Products by the names of axes are those of numpy, with gradients of any order."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.tensor.type import TensorType

from bricks import xla

#: subscripts -> shapes of the operands
PRODUCTS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk,kl->li": [(2, 3), (3, 4), (4, 1)],
    "bqd,bkd->bqk": [(2, 3, 4), (2, 5, 4)],
    "...qd,...kd->...qk": [(2, 1, 3, 4), (2, 1, 5, 4)],
    "...ij, jk -> ...ik": [(2, 2, 3), (3, 4)],
    "bi,bj,bk->kbij": [(2, 3), (2, 2), (2, 4)],
    "i,j->ij": [(3,), (2,)],
    "i,i->i": [(3,), (3,)],
    "i,i->": [(3,), (3,)],
    "ijk,kij->": [(2, 3, 4), (4, 2, 3)],
    "abc,bd->c": [(2, 3, 4), (3, 5)],
    "ijk->kj": [(2, 3, 4)],
    "ij,->ji": [(2, 3), ()],
    "ij,jk->i": [(0, 3), (3, 2)],
    "bij,bjk->bik": [(2, 3, 0), (2, 0, 2)],
}


def symbolic(shapes):
    return [TensorType("float64", shape=(None,) * len(shape))() for shape in shapes]


@pytest.mark.parametrize("subscripts", PRODUCTS)
def test_products_and_their_gradients_are_those_of_numpy(subscripts):
    rng = numpy.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in PRODUCTS[subscripts]]
    inputs = symbolic(PRODUCTS[subscripts])
    product = xla.einsum(subscripts, *inputs)
    # A product is linear in each operand, so its gradient is found by giving it a direction.
    directions = [rng.normal(size=value.shape) for value in values]
    outer = rng.normal(size=numpy.einsum(subscripts, *values).shape)
    slopes = aesara.grad((product * outer).sum(), inputs)

    result, *gradients = xla.function(inputs, [product, *slopes])(*values)

    numpy.testing.assert_allclose(result, numpy.einsum(subscripts, *values), atol=1e-12)
    for place, (gradient, direction) in enumerate(zip(gradients, directions, strict=True)):
        moved = [*values[:place], direction, *values[place + 1 :]]
        expected = (numpy.einsum(subscripts, *moved) * outer).sum()
        numpy.testing.assert_allclose((gradient * direction).sum(), expected, atol=1e-12)


def test_it_has_second_derivatives_and_is_computed_by_every_backend():
    x, y = symbolic([(2, 3), (3, 2)])
    product = xla.einsum("ij,jk->ik", x, y)
    slope = aesara.grad((product**2).sum(), x)
    second = aesara.grad((slope**2).sum(), y)
    rng = numpy.random.default_rng(1)
    values = rng.normal(size=(2, 3)), rng.normal(size=(3, 2))

    ours, theirs = (
        xla.function([x, y], second, backend=backend)(*values) for backend in ("xla", "py")
    )

    numpy.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    ("subscripts", "message"),
    [
        ("ij,jk", "must name the axes of the result behind '->'"),
        ("ij->ij", "is for 1 operands; got 2"),
        ("ij,j->i", "operand 1 of 'ij,j->i' has 2 axes, but 'j' names 1"),
        ("ijk,jk->i", "operand 0 of 'ijk,jk->i' has 2 axes, but 'ijk' names 3"),
        ("ii,ij->j", "names axis 'i' twice in one array. Take the diagonal first"),
        ("ij,jk->il", "the result of 'ij,jk->il' names axis 'l', which no operand has"),
        ("...i,...jk->i", r"'...' must stand for as many axes in each operand .*; got 1 and 0"),
    ],
)
def test_wrong_subscripts_are_refused_in_words(subscripts, message):
    x, y = tensor.matrices("x", "y")

    with pytest.raises(ValueError, match="einsum: .*" + message):
        xla.einsum(subscripts, x, y)


def test_lengths_that_differ_are_refused_when_it_is_computed():
    x, y = tensor.dmatrices("x", "y")
    f = xla.function([x, y], xla.einsum("ij,jk->ik", x, y))

    with pytest.raises(xla.GraphError):
        f(numpy.ones((2, 3)), numpy.ones((4, 2)))
