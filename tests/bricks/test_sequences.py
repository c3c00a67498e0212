import numpy
import pytest
from aesara import tensor

from bricks import (
    MLP,
    Brick,
    FeedforwardSequence,
    Linear,
    Rectifier,
    Sequence,
    Softmax,
    Tanh,
    application,
    xla,
)
from bricks.initialization import Constant, IsotropicGaussian
from bricks.model import Model


class Swap(Brick):
    @application(inputs=["a", "b"], outputs=["b", "a"])
    def apply(self, a, b):
        return b, a

    @application(inputs=["a", "b"], outputs=["difference"])
    def subtract(self, a, b):
        return a - b


def test_each_application_gets_the_outputs_of_the_one_before():
    swap = Swap()
    sequence = Sequence([swap, swap.subtract, Tanh()])
    a, b = tensor.scalar("a"), tensor.scalar("b")

    value = xla.function([a, b], sequence.apply(a, b))(numpy.float32(1), numpy.float32(3))

    numpy.testing.assert_allclose(value, numpy.tanh(2), rtol=1e-6)
    assert list(sequence.children) == [swap, sequence.application_methods[-1].brick]
    assert sequence.apply.inputs == ["a", "b"]
    assert sequence.apply.outputs == ["output"]


def test_what_is_no_brick_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"Sequence: expected bricks.*Make one: Tanh\(\)\."):
        Sequence([Tanh])
    with pytest.raises(ValueError, match="Sequence: `application_methods` must not be empty"):
        Sequence([])


def test_sizes_of_a_feedforward_sequence_are_those_of_its_ends():
    sequence = FeedforwardSequence([Linear(name="a"), Linear(5, 3, name="b")])
    sequence.input_dim, sequence.output_dim = 7, 2
    sequence.children[0].output_dim = 5
    sequence.allocate()

    assert (sequence.input_dim, sequence.output_dim) == (7, 2)
    assert sequence.children[1].W.get_value().shape == (5, 2)
    assert sequence.get_dim("input_") == 7 and sequence.get_dim("output") == 2


def test_a_perceptron_is_what_numpy_computes():
    mlp = MLP([Tanh(), None], [3, 4, 2], weights_init=IsotropicGaussian(), seed=1)
    mlp.biases_init = Constant(0.5)
    mlp.initialize()
    x = tensor.matrix("x")
    values = numpy.random.RandomState(0).standard_normal((5, 3)).astype("float32")

    found = xla.function([x], mlp.apply(x))(values)

    first, second = (layer.W.get_value() for layer in mlp.linear_transformations)
    expected = numpy.tanh(values @ first + 0.5) @ second + 0.5
    numpy.testing.assert_allclose(found, expected, rtol=1e-5)
    assert sorted(Model(mlp.apply(x)).get_parameter_dict()) == [
        "/mlp/linear_0.W",
        "/mlp/linear_0.b",
        "/mlp/linear_1.W",
        "/mlp/linear_1.b",
    ]


def test_layers_are_copies_of_a_prototype_with_its_name():
    mlp = MLP([Tanh(), Tanh()], [3, 4, 2], prototype=Linear(name="layer", use_bias=False))
    mlp.allocate()

    assert [layer.path for layer in mlp.linear_transformations] == ["/mlp/layer_0", "/mlp/layer_1"]
    assert all(len(layer.parameters) == 1 for layer in mlp.linear_transformations)


def test_use_bias_reaches_the_layers_only_if_it_is_given():
    prototype = Linear(use_bias=False)
    with_bias = MLP([None], [3, 2], prototype=prototype, use_bias=True)
    with_bias.allocate()

    assert with_bias.linear_transformations[0].use_bias


def test_sizes_may_be_given_later_and_one_by_one():
    mlp = MLP([Rectifier(), Softmax()])
    with pytest.raises(ValueError, match=r"/mlp cannot be allocated: `dims\[0\]` must be a"):
        mlp.allocate()
    mlp.input_dim, mlp.dims[1], mlp.output_dim = 3, 4, 2
    mlp.allocate()

    assert mlp.linear_transformations[1].W.get_value().shape == (4, 2)
    assert (mlp.input_dim, mlp.output_dim) == (3, 2)


def test_a_wrong_number_of_sizes_is_refused_when_allocated_and_may_be_mended_before():
    mlp = MLP([Tanh(), Tanh()], [3, 2])
    with pytest.raises(ValueError, match=r"/mlp: `dims` must have 3 sizes.*got \[3, 2\].*None"):
        mlp.allocate()

    mlp.dims = [4, *mlp.dims]
    mlp.allocate()

    assert mlp.linear_transformations[0].W.get_value().shape == (4, 3)


def test_an_input_of_the_wrong_length_names_the_first_layer():
    mlp = MLP([Tanh()], [3, 2])

    with pytest.raises(ValueError, match=r"/mlp/linear_0\.apply: `input_` must have 3 features"):
        mlp.apply(tensor.TensorType("float32", (None, 4))("x"))
