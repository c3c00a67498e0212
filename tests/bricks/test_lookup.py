import numpy
import pytest
from aesara import tensor

from bricks import LookupTable, xla
from bricks.initialization import IsotropicGaussian
from bricks.roles import WEIGHT, has_roles


def make_table():
    table = LookupTable(5, 3, weights_init=IsotropicGaussian())
    table.initialize()
    return table


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 1, 2)])
def test_vectors_are_looked_up_for_integers_of_any_shape(shape, dtype):
    table = make_table()
    indices = tensor.TensorType(dtype, (None,) * len(shape))("indices")
    values = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype) % 5

    found = xla.function([indices], table.apply(indices))(values)

    numpy.testing.assert_array_equal(found, table.W.get_value()[values])


def test_the_gradient_adds_up_where_an_integer_comes_twice():
    table = make_table()
    indices = tensor.lvector("indices")
    gradient = tensor.grad(table.apply(indices).sum(), table.W)

    value = xla.function([indices], gradient)(numpy.array([1, 1, 4]))

    numpy.testing.assert_array_equal(value, numpy.array([0, 2, 0, 0, 1])[:, None].repeat(3, 1))


def test_the_table_has_the_role_of_weights_and_knows_its_sizes():
    table = make_table()

    assert has_roles(table.W, [WEIGHT])
    assert (table.get_dim("indices"), table.get_dim("output")) == (0, 3)
    assert (table.input_dim, table.output_dim) == (0, 3)


def test_floating_point_numbers_are_refused():
    with pytest.raises(ValueError, match=r"/lookuptable\.apply: `indices` must be integers.*Cast"):
        make_table().apply(tensor.matrix("x"))


def test_biases_and_an_input_dimension_are_refused():
    with pytest.raises(ValueError, match="LookupTable .* has no biases"):
        LookupTable(5, 3, use_bias=True)
    with pytest.raises(ValueError, match="/lookuptable: `input_dim` must be 0.*`length`"):
        make_table().input_dim = 5
    with pytest.raises(ValueError, match="/lookuptable cannot be allocated: `length` must be"):
        LookupTable(0, 3).allocate()


def test_the_size_may_be_pushed_as_that_of_a_feedforward_brick():
    table = LookupTable(length=5)
    table.output_dim = 7
    table.allocate()

    assert table.W.get_value().shape == (5, 7)
