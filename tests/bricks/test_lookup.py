import numpy
import pytest
from aesara import tensor

from bricks import MLP, LookupTable, TiedProjection, xla
from bricks.algorithms import GradientDescent, find_non_finite
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian
from bricks.model import Model
from bricks.roles import WEIGHT, has_roles
from bricks.select import Selector


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


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_what_is_out_of_range_is_nan_and_has_no_gradient(dtype):
    table = make_table()
    indices = tensor.vector("indices", dtype=dtype)
    found = table.apply(indices)
    gradient = tensor.grad(found.sum(), table.W)
    out_of_range = [5, 100, 127] if dtype == "uint8" else [-1, -5, 5, 100, -128]

    vectors, slopes = xla.function([indices], [found, gradient])(
        numpy.array([1, *out_of_range], dtype)
    )

    numpy.testing.assert_array_equal(vectors[0], table.W.get_value()[1])
    assert numpy.isnan(vectors[1:]).all()
    numpy.testing.assert_array_equal(slopes.sum(axis=1), [0, 3, 0, 0, 0])


@pytest.mark.parametrize("index", [-1, 5])
def test_what_is_out_of_range_is_refused_by_backends_that_can_raise(index):
    indices = tensor.lvector("indices")
    function = xla.function([indices], make_table().apply(indices), backend="py")

    with pytest.raises(IndexError, match="out of bounds"):
        function([index])


def test_a_lookup_out_of_range_is_found_by_its_brick():
    indices = tensor.lvector("words")
    table = make_table()
    algorithm = GradientDescent(table.apply(indices).mean(), parameters=[table.W])

    found = find_non_finite(algorithm, {"words": numpy.array([0, 5])})

    assert "in /lookuptable: float32 of shape (2, 3), 3 NaN" in found
    assert "int64 of shape (2,), from 0 to 5" in found


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


def make_tied(**kwargs):
    """A table of words and a projection that shares it."""
    words = LookupTable(5, 3, weights_init=IsotropicGaussian(), name="words")
    scores = TiedProjection(words, biases_init=IsotropicGaussian(), name="scores", **kwargs)
    scores.initialize()
    return words, scores


def test_a_tied_table_learns_from_both_of_its_uses():
    words, scores = make_tied()
    x, y = tensor.lvector("x"), tensor.lvector("y")
    found = scores.apply(words.apply(x))
    cost = found[tensor.arange(2), y].sum()
    indices, targets = numpy.array([1, 4]), numpy.array([3, 1])

    values, gradient = xla.function([x, y], [found, tensor.grad(cost, words.W)])(indices, targets)

    W = words.W.get_value().astype("float64")
    numpy.testing.assert_allclose(values, W[indices] @ W.T + scores.b.get_value(), rtol=1e-5)
    # The cost is W[1]·W[3] + W[4]·W[1], so each row gets the sum of those it meets.
    expected = numpy.zeros((5, 3))
    expected[1], expected[3], expected[4] = W[3] + W[4], W[1], W[1]
    numpy.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_a_tied_table_is_one_parameter_with_one_name():
    words, scores = make_tied()
    y = scores.apply(words.apply(tensor.lvector("x")))

    assert list(Model(y).get_parameter_dict()) == ["/scores/words.W", "/scores.b"]
    assert list(Selector(scores).get_parameters()) == ["/scores.b", "/scores/words.W"]
    weights = VariableFilter(roles=[WEIGHT])(ComputationGraph(y).variables)
    assert weights == [words.W]


def test_a_tied_table_without_biases_has_none():
    _, scores = make_tied(use_bias=False)

    assert len(scores.parameters) == 0
    with pytest.raises(AttributeError, match="/scores has no biases: use_bias is False"):
        _ = scores.b


def test_a_tied_table_keeps_the_scheme_that_was_chosen_for_it():
    chosen = LookupTable(5, 3, weights_init=Constant(2))
    TiedProjection(chosen, use_bias=False, weights_init=Constant(7)).initialize()
    open_one = LookupTable(5, 3)
    TiedProjection(open_one, use_bias=False, weights_init=Constant(7)).initialize()

    assert (chosen.W.get_value() == 2).all()
    assert (open_one.W.get_value() == 7).all()


def test_sizes_may_be_pushed_through_the_projection():
    table = LookupTable()
    scores = TiedProjection(table)
    scores.input_dim, scores.output_dim = 4, 9
    scores.allocate()

    assert table.W.get_value().shape == (9, 4)
    assert scores.b.get_value().shape == (9,)
    assert scores.get_dims(["input_", "output"]) == [4, 9]


def test_a_projection_refuses_other_bricks_and_inputs_of_another_size():
    with pytest.raises(TypeError, match="TiedProjection: `table` must be a LookupTable.*Linear"):
        TiedProjection(MLP([None], [2, 2]))
    with pytest.raises(ValueError, match=r"/scores\.apply: `input_` must have 3 features"):
        make_tied()[1].apply(tensor.TensorType("float32", (None, 4))("x"))
