import math

import numpy
import pytest
from aesara import tensor

from bricks import LeakyRectifier, aesara_expressions, theano_expressions, xla
from bricks.aesara_expressions import as_float, hessian_times_vector, l2_norm, lengths_of
from bricks.attention import DotProductAttention
from bricks.cost import CategoricalCrossEntropy, HuberError
from bricks.initialization import Constant


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


def test_numbers_of_settings_are_neither_rounded_nor_widen_what_they_meet():
    narrow, wide = tensor.fmatrix("narrow"), tensor.dmatrix("wide")
    sizes = {"state_names": ["s"], "state_dims": [1], "attended_dim": 1}
    schemes = {"weights_init": Constant(1), "biases_init": Constant(0)}
    attention = DotProductAttention(3, scaled=True, **sizes, **schemes)
    attention.initialize()
    third = numpy.float64(1 / 3)

    def results(x):
        smoothed = CategoricalCrossEntropy(third).costs(tensor.constant([0]), x)
        energies = attention.compute_energies(x[:, :1, None], None, {"s": x[:, :1]})
        return [
            LeakyRectifier(third).apply(-x),
            HuberError(third).cost_matrix(tensor.zeros((1, 2), x.dtype), x),
            smoothed,
            energies,
        ]

    x = numpy.array([[1.0, 2.0]])
    found = xla.function([wide], results(wide))(x)

    expected = [-x / 3, (x - 1 / 6) / 3, [-math.log(2) / 6], [[math.sqrt(3)]]]
    for one, other in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-14)
    assert {result.dtype for result in results(narrow)} == {"float32"}
