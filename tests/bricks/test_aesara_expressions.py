import numpy
import pytest
from aesara import tensor

from bricks import aesara_expressions, theano_expressions, xla
from bricks.aesara_expressions import as_float, hessian_times_vector, l2_norm, lengths_of


def test_the_norm_of_several_tensors_is_that_of_one_long_vector():
    x, y = tensor.vector("x"), tensor.lmatrix("y")
    outputs = [l2_norm([x, y]), l2_norm([x, y], squared=True)]

    values = xla.function([x, y], outputs)(numpy.ones(2, "float32"), numpy.array([[3], [5]]))

    numpy.testing.assert_array_equal(values, [6, 36])
    assert values[0].dtype == "float32"


def test_the_gradient_of_the_norm_of_zeros_is_zero():
    x = tensor.vector("x")

    gradient = xla.function([x], tensor.grad(l2_norm([x]), x))(numpy.zeros(2, "float32"))

    numpy.testing.assert_array_equal(gradient, [0, 0])


def test_the_norm_of_nothing_is_refused():
    with pytest.raises(ValueError, match="l2_norm: expected at least one tensor"):
        l2_norm([])


@pytest.mark.parametrize("r_op", [False, True])
def test_a_hessian_times_a_vector_is_what_it_says(r_op):
    x, vector = tensor.vector("x"), tensor.vector("v")
    matrix = numpy.array([[2, 1], [1, 6]], "float32")
    gradient = tensor.grad(tensor.dot(x, tensor.dot(matrix, x)) / 2, x)
    product = hessian_times_vector(gradient, x, vector, r_op=r_op)

    function = xla.function([x, vector], product, on_unused_input="ignore")
    value = function(numpy.zeros(2, "float32"), numpy.array([1, 2], "float32"))

    numpy.testing.assert_allclose(value, matrix @ [1, 2])


def test_integers_become_floating_point_and_these_stay():
    x = tensor.dvector("x")

    assert as_float(x) is x
    assert as_float(tensor.bvector("x")).dtype == "float32"
    assert as_float(tensor.lvector("x"), "float64").dtype == "float64"


def test_lengths_are_numbers_where_they_are_known():
    assert lengths_of(tensor.TensorType("float32", (None, 3))("x"))[1] == 3


def test_the_name_that_blocks_had_is_there():
    assert theano_expressions.l2_norm is aesara_expressions.l2_norm
