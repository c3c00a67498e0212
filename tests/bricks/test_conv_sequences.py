import numpy
import pytest
from aesara import tensor

from bricks import Logistic, Rectifier, SpatialBatchNormalization, xla
from bricks.conv import AveragePooling, Convolutional, ConvolutionalSequence, Flattener, MaxPooling
from bricks.initialization import Constant, IsotropicGaussian
from bricks.normalization import GroupNormalization

INIT = {"weights_init": IsotropicGaussian(0.5), "biases_init": Constant(0.5)}


def make_layers():
    return [
        Convolutional((3, 3), 4, name="first"),
        SpatialBatchNormalization(),
        Rectifier(),
        MaxPooling((2, 2)),
        Convolutional((3, 3), 6, name="second"),
        GroupNormalization(2),
    ]


def test_each_layer_gets_channels_and_lengths_from_the_one_before():
    sequence = ConvolutionalSequence(make_layers(), num_channels=3, image_size=(12, 10))
    sequence.allocate()
    first, normalization, _, pooling, second, _ = sequence.layers

    assert sequence.get_dim("input_") == (3, 12, 10)
    assert sequence.get_dim("output") == (6, 3, 2)
    assert (first.num_channels, first.image_size) == (3, (12, 10))
    assert normalization.input_dim == (4, 10, 8)
    assert pooling.input_dim == (4, 10, 8)
    assert (second.num_channels, second.image_size) == (4, (5, 4))
    assert sequence.num_output_channels == 6
    assert sequence.output_dim == (6, 3, 2)
    assert sequence.get_dim("mask") == 0


def test_the_size_of_the_output_is_known_before_allocation_as_blocks_scripts_ask_for_it():
    sequence = ConvolutionalSequence(make_layers(), num_channels=3, image_size=(12, 10))
    sequence._push_allocation_config()

    assert sequence.get_dim("output") == (6, 3, 2)
    assert not sequence.layers[0].allocated


def test_lengths_that_are_not_known_stay_so():
    sequence = ConvolutionalSequence(make_layers(), num_channels=3, image_size=(None, 10))
    sequence.allocate()

    assert sequence.get_dim("output") == (6, None, 2)
    assert sequence.apply(tensor.tensor4("x")).type.shape == (None, 6, None, 2)


def test_sequences_stand_in_each_other():
    inner = ConvolutionalSequence(make_layers(), border_mode="half", name="inner")
    outer = ConvolutionalSequence(
        [Convolutional((2, 2), 5, step=2), inner, AveragePooling((2, 2))],
        num_channels=3,
        image_size=(16, 16),
    )
    outer.allocate()

    assert inner.num_channels == 5
    assert outer.get_dim("output") == (6, 2, 2)
    assert Flattener().apply(outer.apply(tensor.tensor4("x"))).type.shape == (None, 24)


def test_only_options_that_are_given_reach_the_layers():
    layers = [Convolutional((3, 3), 4, border_mode="full", use_bias=False, tied_biases=False)]
    options = {"num_channels": 3, "image_size": (5, 5)}
    ConvolutionalSequence(layers, **options).allocate()
    before = layers[0].border_mode, layers[0].use_bias, layers[0].tied_biases
    others = [Convolutional((3, 3), 4, border_mode="full", use_bias=False, tied_biases=False)]
    ConvolutionalSequence(
        others, border_mode="half", tied_biases=True, use_bias=True, batch_size=7, **options
    ).allocate()

    assert before == ("full", False, False)
    assert (others[0].border_mode, others[0].use_bias, others[0].tied_biases) == (
        "half",
        True,
        True,
    )
    assert others[0].batch_size == 7


def test_schemes_of_initialization_reach_the_layers():
    sequence = ConvolutionalSequence(make_layers(), num_channels=3, image_size=(12, 10), **INIT)
    sequence.initialize()

    assert sequence.layers[0].b.get_value().tolist() == [0.5] * 4


def test_masks_go_through_all_layers_and_hide_what_activations_make_of_padding():
    sequence = ConvolutionalSequence(
        [
            Convolutional(3, 2, step=2, border_mode="half"),
            SpatialBatchNormalization(),
            Logistic(),
        ],
        num_channels=1,
        image_size=(None,),
        **INIT,
    )
    sequence.initialize()
    x, mask = tensor.tensor3("x"), tensor.matrix("mask")
    values = numpy.random.RandomState(0).standard_normal((2, 1, 6)).astype("float32")
    ones = numpy.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], "float32")
    compute = xla.function([x, mask], [sequence.apply(x, mask), sequence.output_mask(mask)])

    together, masks = compute(values, ones)
    alone, _ = compute(values[1:, :, :3], ones[1:, :3])

    numpy.testing.assert_array_equal(masks, [[1, 1, 1], [1, 1, 0]])
    numpy.testing.assert_allclose(together[1:, :, :2], alone, rtol=1e-6)
    numpy.testing.assert_array_equal(together[1, :, 2], 0)
    # Half is what a logistic function makes of zero.
    assert (alone != 0).all()


def test_inputs_and_outputs_are_named():
    sequence = ConvolutionalSequence(make_layers(), num_channels=3)

    assert (sequence.apply.inputs, sequence.apply.outputs) == (["input_", "mask"], ["output"])
    with pytest.raises(ValueError, match="/convolutionalsequence: the dimension of 'x' is not"):
        sequence.get_dim("x")


def test_a_layer_that_does_not_fit_is_refused_in_words():
    sequence = ConvolutionalSequence(make_layers(), num_channels=3, image_size=(6, 6))

    with pytest.raises(ValueError, match="^/convolutionalsequence/second: the filter covers 3 ele"):
        sequence.allocate()


def test_a_batch_without_examples_is_flattened_too():
    x = tensor.tensor4("x")

    assert xla.function([x], Flattener().apply(x))(numpy.zeros((0, 2, 3, 4), "f4")).shape == (0, 24)
