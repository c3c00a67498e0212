"""Products of vectors, matrices and stacks of them, at lengths of one and zero too."""

import numpy
import pytest
from aesara import tensor
from aesara.tensor import blas

TWO, HALF = tensor.as_tensor(numpy.float64(2)), tensor.as_tensor(numpy.float64(0.5))

#: name -> (graph, shapes of its operands); with gradients
PRODUCTS = {
    "matrix by matrix": (tensor.dot, [(3, 4), (4, 2)]),
    "matrix by vector": (tensor.dot, [(3, 4), (4,)]),
    "vector by matrix": (tensor.dot, [(3,), (3, 2)]),
    "vector by vector": (tensor.dot, [(3,), (3,)]),
    "matrix by an empty one": (tensor.dot, [(3, 0), (0, 2)]),
    "matrix by number": (tensor.dot, [(3, 4), ()]),
    "stack by matrix": (lambda x, y: tensor.dot(x, y), [(2, 3, 4), (4, 2)]),
    "stack by stack over one axis": (lambda x, y: tensor.dot(x, y), [(2, 3), (4, 3, 2)]),
    "tensordot over one axis": (lambda x, y: tensor.tensordot(x, y, 1), [(2, 3), (3, 2, 2)]),
    "tensordot over two axes": (lambda x, y: tensor.tensordot(x, y, 2), [(2, 3, 4), (3, 4, 2)]),
    "tensordot over named axes": (
        lambda x, y: tensor.tensordot(x, y, axes=[[0, 2], [1, 0]]),
        [(2, 3, 4), (4, 2, 5)],
    ),
    "outer product": (tensor.outer, [(3,), (2,)]),
    "batched matrices": (tensor.batched_dot, [(2, 3, 4), (2, 4, 5)]),
    "batched matrices by vectors": (tensor.batched_dot, [(2, 3, 4), (2, 4)]),
    "batched vectors by matrices": (tensor.batched_dot, [(2, 4), (2, 4, 3)]),
    "batched vectors": (tensor.batched_dot, [(2, 4), (2, 4)]),
    "one batch": (tensor.batched_dot, [(1, 2, 3), (1, 3, 1)]),
    "no batch": (tensor.batched_dot, [(0, 2, 3), (0, 3, 2)]),
    "batched tensordot": (
        lambda x, y: tensor.batched_tensordot(x, y, axes=[[2], [1]]),
        [(2, 3, 4), (2, 4, 5)],
    ),
    "batched tensordot over two axes": (
        lambda x, y: tensor.batched_tensordot(x, y, axes=2),
        [(2, 3, 4), (2, 3, 4)],
    ),
    "scores of attention": (
        lambda x, y: tensor.special.softmax(tensor.batched_dot(x, y.dimshuffle(0, 2, 1)), axis=-1),
        [(2, 3, 4), (2, 5, 4)],
    ),
}

#: Aesara defines no gradient of these
WITHOUT_GRADIENT = {
    "matmul": (tensor.matmul, [(3, 4), (4, 2)]),
    "matmul by a vector": (tensor.matmul, [(3, 4), (4,)]),
    "matmul of a vector": (tensor.matmul, [(4,), (4, 2)]),
    "matmul of stacks of known shape": (
        lambda x, y: tensor.matmul(
            tensor.specify_shape(x, (2, 3, 4)), tensor.specify_shape(y, (2, 4, 2))
        ),
        [(2, 3, 4), (2, 4, 2)],
    ),
    "full convolution": (tensor.convolve, [(5,), (3,)]),
    "valid convolution": (lambda x, y: tensor.convolve(x, y, "valid"), [(5,), (3,)]),
    "convolution of equal length": (lambda x, y: tensor.convolve(x, y, "same"), [(3,), (5,)]),
    "scaled product added": (
        lambda z, x, y: blas.gemm_no_inplace(z, TWO, x, y, HALF),
        [(3, 2), (3, 4), (4, 2)],
    ),
    "scaled product with a vector added": (
        lambda z, x, y: blas.gemv_no_inplace(z, TWO, x, y, HALF),
        [(3,), (3, 4), (4,)],
    ),
    "scaled outer product added": (
        lambda z, x, y: blas.ger(z, TWO, x, y),
        [(3, 2), (3,), (2,)],
    ),
    "scaled product": (
        lambda x, y: blas._dot22scalar(x, y, TWO),
        [(3, 4), (4, 2)],
    ),
}


def operands(shapes):
    rng = numpy.random.default_rng(len(shapes))
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_their_gradients_are_those_of_aesara(name, assert_agrees):
    build, shapes = PRODUCTS[name]

    assert_agrees(build, [operands(shapes)])


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_products_without_gradients_are_those_of_aesara(name, assert_agrees):
    build, shapes = WITHOUT_GRADIENT[name]

    assert_agrees(build, [operands(shapes)], gradients=False)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), (0, 2), (1, 2)])
def test_the_first_of_equal_largest_elements_is_found_and_gets_the_gradient(axis, assert_agrees):
    ties = numpy.arange(24).reshape(2, 3, 4) * 7 % 4 - 1.5

    def places(x):
        return [tensor.argmax(x, axis=axis), tensor.argmin(x, axis=axis), x.max(axis) * 1.0]

    assert_agrees(places, [[ties], [ties[:1, :1, :1]]])
