import itertools

import numpy
import pytest
from aesara import tensor
from aesara.tensor.nnet import conv2d
from scipy.signal import convolve2d

from bricks import Linear, Rectifier, Sequence, xla
from bricks.conv import (
    AveragePooling,
    Convolutional,
    ConvolutionalTranspose,
    Flattener,
    MaxPooling,
    Pooling,
)
from bricks.conv.geometry import Window
from bricks.initialization import Constant, IsotropicGaussian
from bricks.roles import BIAS, FILTER, WEIGHT, has_roles

INIT = {"weights_init": IsotropicGaussian(0.5), "biases_init": Constant(0)}
IMAGES = tensor.tensor4("images")


def typed(*shape, dtype="float32"):
    return tensor.TensorType(dtype, shape)("x")


def compute(outputs, *pairs, backend="xla"):
    variables, values = pairs[::2], pairs[1::2]
    return xla.function(list(variables), outputs, backend=backend)(*values)


def draw(*shape):
    return numpy.random.RandomState(1).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("border_mode", ["valid", "full"])
def test_images_are_convolved_with_flipped_filters(border_mode):
    brick = Convolutional((3, 2), 1, 1, border_mode=border_mode, **INIT)
    brick.initialize()
    x = draw(1, 1, 5, 4)

    found = compute(brick.apply(IMAGES), IMAGES, x)

    expected = convolve2d(x[0, 0], brick.W.get_value()[0, 0], border_mode)
    numpy.testing.assert_allclose(found[0, 0], expected, rtol=1e-5, atol=1e-6)


def count_places(length, size, step, dilation, before, after):
    """Try every place."""
    padded = length + before + after
    span = dilation * (size - 1) + 1
    return sum(start + span <= padded for start in range(0, padded, step))


BORDERS = {
    "valid": lambda span: (0, 0),
    "half": lambda span: (span // 2, span // 2),
    "full": lambda span: (span - 1, span - 1),
    "causal": lambda span: (span - 1, 0),
    2: lambda span: (2, 2),
    ((3, 1), (3, 1)): lambda span: (3, 1),
}


@pytest.mark.parametrize("border_mode", BORDERS, ids=str)
def test_the_lengths_of_the_output_are_known_in_all_modes(border_mode):
    for size in (1, 2, 3, 4):
        for step in (1, 2, 3):
            for dilation in (1, 2):
                lengths = (8, 11)
                brick = Convolutional(
                    (size, size), 2, 1, None, lengths, step, border_mode, dilation=dilation
                )
                ends = BORDERS[border_mode](dilation * (size - 1) + 1)
                places = [count_places(n, size, step, dilation, *ends) for n in lengths]

                assert brick.get_dim("output") == (2, *places)
                assert brick.apply(IMAGES).type.shape == (None, 2, *places)


@pytest.mark.parametrize("border_mode", BORDERS, ids=str)
def test_a_transposed_convolution_leads_back_to_the_lengths_of_the_convolution(border_mode):
    for size, step, length in [(1, 1, 8), (3, 1, 8), (3, 2, 9), (4, 3, 12), (2, 4, 11)]:
        options = {"step": step, "border_mode": border_mode}
        small = Convolutional((size, size), 2, 3, image_size=(length, length), **options)
        lengths = small.get_dim("output")[1:]
        large = ConvolutionalTranspose(
            (size, size), 3, 2, (length, length), image_size=lengths, **options
        )

        assert large.get_dim("output") == (3, length, length)
        assert large.apply(IMAGES).type.shape == (None, 3, length, length)
        # Without the size of the original, the smallest that has these lengths.
        large.original_image_size = None
        small.image_size = large.original_image_size
        assert small.get_dim("output")[1:] == lengths


def test_a_transposed_convolution_is_the_gradient_of_the_convolution():
    small = Convolutional((3, 3), 2, 3, step=2, use_bias=False, border_mode=1, **INIT)
    large = ConvolutionalTranspose(
        (3, 3), 3, 2, (6, 6), step=2, use_bias=False, border_mode=1, **INIT
    )
    small.initialize()
    large.initialize()
    large.W.set_value(small.W.get_value().swapaxes(0, 1))
    x, y = draw(2, 3, 6, 6), draw(2, 2, 3, 3)
    image, weights = tensor.tensor4("image"), tensor.tensor4("weights")
    gradient = tensor.grad((small.apply(image) * weights).sum(), image)

    values = compute([gradient, large.apply(weights)], image, x, weights, y)

    numpy.testing.assert_allclose(values[1], values[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("brick", "last"), [(Convolutional, 4), (ConvolutionalTranspose, 1)])
def test_nothing_looks_ahead_in_a_causal_convolution(brick, last):
    brick = brick(3, 1, 1, step=2, border_mode="causal", **INIT)
    brick.initialize()
    x = tensor.tensor3("x")
    gradient = tensor.grad(brick.apply(x)[0, 0, 2], x)

    ((row,),) = compute(gradient, x, draw(1, 1, 6))

    # Steps of two: the third output is that of the fifth input, or lies behind the second.
    assert numpy.flatnonzero(row).max() == last


def test_filters_and_biases_have_roles_and_shapes():
    brick = Convolutional((2, 3), 6, 4, num_groups=2, **INIT)
    brick.initialize()
    each = Convolutional(3, 2, 1, image_size=(5,), tied_biases=False, **INIT)
    each.initialize()

    assert brick.W.type.shape == (6, 2, 2, 3) and brick.b.type.shape == (6,)
    assert has_roles(brick.W, [FILTER]) and has_roles(brick.W, [WEIGHT])
    assert has_roles(brick.b, [BIAS])
    assert each.b.type.shape == (2, 3)
    assert [p.name for p in each.parameters] == ["W", "b"]
    assert brick.num_output_channels == 6


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "float32"])
def test_no_input_makes_float64(dtype):
    bricks = [Convolutional((2, 2), 1, 1), MaxPooling((2, 2)), AveragePooling((2, 2))]
    for brick in bricks:
        assert brick.apply(typed(None, 1, None, None, dtype=dtype)).dtype == "float32"


def test_a_subclass_may_convolve_in_another_way():
    class Doubled(Convolutional):
        @staticmethod
        def conv2d_impl(input_, W, input_shape, filter_shape, border_mode, subsample):
            return 2 * conv2d(input_, W, border_mode=border_mode, subsample=subsample)

    bricks = [kind((2, 2), 1, 1, weights_init=Constant(1)) for kind in (Convolutional, Doubled)]
    for brick in bricks:
        brick.use_bias = False
        brick.initialize()

    one, two = compute([brick.apply(IMAGES) for brick in bricks], IMAGES, draw(1, 1, 3, 3))

    numpy.testing.assert_allclose(two, 2 * one)


def test_the_shape_of_an_output_can_be_asked_for_as_in_blocks():
    shape = Convolutional.get_output_shape((None, 3, 8, 8), (6, 3, 3, 3), "half", (2, 2))

    assert shape == (None, 6, 4, 4)


def test_a_convolution_knows_what_the_next_brick_gets():
    x = typed(None, 3, 8, 8)
    hidden = Flattener().apply(Convolutional((3, 3), 4, 3).apply(x))

    assert hidden.type.shape == (None, 144)
    with pytest.raises(ValueError, match=r"/linear\.apply: `input_` must have 100 features"):
        Linear(100, 2).apply(hidden)


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_what_a_mask_leaves_out_is_not_looked_at_even_if_it_is_nan(backend):
    x, mask = tensor.tensor3("x"), tensor.matrix("mask")
    brick = Convolutional(3, 2, 1, border_mode="half", **INIT)
    brick.initialize()
    pooling = MaxPooling(2)
    hidden = brick.apply(x, mask)
    output = pooling.apply(hidden, brick.output_mask(mask))
    gradients = tensor.grad((output**2).sum(), [x, brick.W])
    values = draw(1, 1, 8)
    values[..., 5:] = numpy.nan
    ones = (numpy.arange(8) < 5)[None].astype("float32")
    outputs = [output, pooling.output_mask(brick.output_mask(mask)), *gradients]

    found = compute(outputs, x, values, mask, ones, backend=backend)

    assert all(numpy.isfinite(value).all() for value in found)
    numpy.testing.assert_array_equal(found[1], [[1, 1, 0, 0]])
    numpy.testing.assert_array_equal(found[0][..., 2:], 0)
    numpy.testing.assert_array_equal(found[2][..., 5:], 0)


MASKED = {
    "valid": (Convolutional(2, 1, 1), [[1, 1], [0, 0], [0, 0]]),
    "full": (Convolutional(2, 1, 1, border_mode="full"), [[1] * 4, [0] * 4, [1, 1, 0, 0]]),
    "steps": (Convolutional(3, 1, 1, step=2, border_mode=1), [[1, 1], [0, 0], [1, 0]]),
    "transposed": (
        ConvolutionalTranspose(2, 1, 1, step=2, unused_edge=1),
        [[1] * 7, [0] * 7, [1, 1, 1, 0, 0, 0, 0]],
    ),
    "given length": (
        ConvolutionalTranspose(2, 1, 1, (7,), step=2, image_size=(3,)),
        [[1] * 7, [0] * 7, [1, 1, 1, 0, 0, 0, 0]],
    ),
    "pooling": (MaxPooling(2, ignore_border=False), [[1, 1], [0, 0], [1, 0]]),
    "overlapping": (MaxPooling(2, 1, ignore_border=False), [[1, 1], [0, 0], [1, 0]]),
}


@pytest.mark.parametrize("name", MASKED)
def test_the_mask_of_the_output_says_how_long_each_sequence_alone_would_be(name):
    brick, expected = MASKED[name]
    mask = tensor.matrix("mask")
    ones = numpy.array([[1, 1, 1], [0, 0, 0], [1, 0, 0]], "float32")

    found = compute(brick.output_mask(mask), mask, ones, backend="py")

    numpy.testing.assert_array_equal(found, expected)
    assert found.dtype == "float32"


def count_windows(length, size, step):
    """Count windows up to the one that reaches the end, or up to the last that begins before it."""
    if step >= size:
        return len(range(0, length, step))
    count = 1
    while (count - 1) * step + size < length:
        count += 1
    return count


@pytest.mark.parametrize("ignore_border", [True, False])
def test_the_lengths_of_what_is_pooled_are_known(ignore_border):
    lengths = (7, 8)
    for size in (1, 2, 3):
        for step in (1, 2, 4):
            for padding in range(size if ignore_border else 1):
                brick = MaxPooling((size, size), step, (3, *lengths), ignore_border, padding)
                places = [
                    count_places(n, size, step, 1, padding, padding)
                    if ignore_border
                    else count_windows(n, size, step)
                    for n in lengths
                ]

                assert brick.output_dim == brick.get_dim("output") == (3, *places)
                assert brick.apply(IMAGES).type.shape == (None, 3, *places)


def test_the_window_may_have_fewer_axes_in_front():
    image = tensor.matrix("image")

    value = compute(MaxPooling((2, 2)).apply(image), image, numpy.eye(4, dtype="float32"))

    numpy.testing.assert_array_equal(value, [[1, 0], [0, 1]])


def test_sizes_of_a_pooling_may_be_given_later():
    brick = MaxPooling((2, 2))
    brick.image_size = (6, 4)
    brick.num_channels = 3

    assert brick.input_dim == (3, 6, 4)
    assert brick.num_output_channels == 3
    assert brick.get_dim("output") == (3, 3, 2)


def test_a_convolution_stands_in_a_plain_sequence():
    layers = Sequence([Convolutional((2, 2), 1, 1, **INIT), Rectifier()])

    assert layers.apply(IMAGES).type.shape == (None, 1, None, None)


CONV, POOL, BACK = Convolutional, MaxPooling, ConvolutionalTranspose
REFUSED = {
    "a filter larger than the image": (
        lambda: CONV((5, 5), 1, 1, image_size=(4, 9)).allocate(),
        r"^/convolutional: the filter covers 5 elements of axis 2, but the input has 4 there\. "
        "Use a smaller filter or dilation, or a border that adds more, such as 'half'",
    ),
    "a filter larger than what comes": (
        lambda: CONV((2, 3), 1, 1, dilation=2, border_mode=1).apply(typed(None, 1, 4, 2)),
        r"^/convolutional\.apply: the filter covers 5 elements of axis 3, but the input has 2 "
        "there and the border adds 2",
    ),
    "a window larger than the image": (
        lambda: POOL((3, 3), input_dim=(1, 2, 3)).get_dim("output"),
        "^/maxpooling: the window covers 3 elements of axis 2.*ignore_border=False",
    ),
    "an unknown border": (
        lambda: CONV((2, 2), 1, 1, border_mode="same").allocate(),
        "^/convolutional: `border_mode` must be 'valid', 'half', 'full', 'causal'.*got 'same'",
    ),
    "a border for too few axes": (
        lambda: CONV(3, 1, 1, border_mode=(1, 2)).allocate(),
        r"each of the 1 axis; got \(1, 2\)\. A pair .* is written \(\(before, after\),\)",
    ),
    "a step for too many axes": (
        lambda: CONV((3, 3), 1, 1, step=(1, 1, 1)).allocate(),
        r"^/convolutional: `step` must be an integer from 1 for each of the 2 axes that the window "
        r"moves over, or one for all; got \(1, 1, 1\)",
    ),
    "no step at all": (lambda: POOL((2, 2), 0).allocate(), "`step` must be an integer from 1"),
    "a filter of four axes": (
        lambda: CONV((1, 1, 1, 1), 1, 1).allocate(),
        r"`filter_size` must have one, two or three lengths; got \(1, 1, 1, 1\)",
    ),
    "a window of four axes": (
        lambda: POOL((1, 1, 1, 1)).allocate(),
        r"`pooling_size` must have one, two or three lengths; got \(1, 1, 1, 1\)",
    ),
    "groups that do not divide": (
        lambda: CONV(1, 4, 3, num_groups=2).allocate(),
        "^/convolutional cannot be allocated: `num_channels`, 3, must be a multiple of num_groups",
    ),
    "biases for unknown places": (
        lambda: CONV((1, 1), 4, 3, image_size=(2, None), tied_biases=False).allocate(),
        r"tied_biases=False needs a bias for each place, so `image_size` must be known; it is "
        r"\(2, None\)",
    ),
    "images of other channels": (
        lambda: CONV((1, 1), 4, 3).apply(typed(None, 1, 5, 5)),
        r"^/convolutional\.apply: `input_` must have the axes \(batch, channel=3, height, width\); "
        r"got 'convolutional_apply_input_' \(float32, shape \(\?, 1, 5, 5\)\)\. Reorder its axes",
    ),
    "images of another size": (
        lambda: CONV((1, 1), 4, 3, image_size=(6, 5)).apply(typed(None, 3, 5, 5)),
        "height=6, width=5",
    ),
    "sequences for images": (
        lambda: CONV((1, 1), 4, 3).apply(tensor.tensor3("x")),
        r"must have the axes \(batch, channel=3, height, width\)",
    ),
    "a mask of other lengths": (
        lambda: CONV(1, 4, 3).apply(typed(2, 3, 5), typed(2, 6)),
        r"^/convolutional\.apply: `mask` must have the axes \(batch, time\), of the lengths that "
        r"`input_` has on its axes 0 and 2; got .*\(2, 6\)",
    ),
    "padding without ignore_border": (
        lambda: POOL((2, 2), ignore_border=False, padding=1).allocate(),
        "^/maxpooling: `padding` needs ignore_border=True; got 1",
    ),
    "padding as large as the window": (
        lambda: POOL((2, 2), padding=(0, 2)).allocate(),
        r"`padding` must be less than `pooling_size`, \(2, 2\).*got \(0, 2\)",
    ),
    "an unknown mode": (
        lambda: Pooling("median", (2, 2)).allocate(),
        "^/pooling cannot be allocated: `mode` must be one of max, sum.*got 'median'",
    ),
    "an input_dim of too few axes": (
        lambda: POOL((2, 2), input_dim=(2, 2)).allocate(),
        r"`input_dim` must be the channels and the 2 lengths.*got \(2, 2\)",
    ),
    "an output that no convolution comes from": (
        lambda: BACK((3, 3), 1, 1, (9, 9), image_size=(3, 3), step=2).get_dim("output"),
        "^/convolutionaltranspose: an output of length 9 on axis 2 does not belong to an input of "
        "length 3, because the convolution would make 4 of it. Choose `original_image_size` from "
        "7 to 8, or leave it out and choose `unused_edge` from 0 to 1",
    ),
    "an edge that the convolution would look at": (
        lambda: BACK((3, 3), 1, 1, step=(2, 3), unused_edge=2).allocate(),
        r"^/convolutionaltranspose cannot be allocated: `unused_edge` must be less than `step`, "
        r"\(2, 3\), or the convolution would look at it; got 2",
    ),
    "another name of a variable": (
        lambda: CONV((3, 3), 1, 1).get_dim("inputs"),
        "^/convolutional: the dimension of 'inputs' is not known",
    ),
    "another name of a pooled variable": (
        lambda: POOL((3, 3)).get_dim("inputs"),
        "^/maxpooling: the dimension of 'inputs' is not known",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_words(name):
    act, words = REFUSED[name]

    with pytest.raises(ValueError, match=words):
        act()


def sequences_for(brick):
    x = tensor.tensor3("x")
    return brick.apply(x), x


def images_alone_for(brick):
    x = tensor.matrix("x")
    return brick.apply(x), x


REFUSED_AT_RUN_TIME = {
    "other channels": (
        lambda: sequences_for(CONV(1, 1, 3, **INIT)),
        (2, 4, 5),
        r"^/convolutional\.apply: `input_` must have the axes \(batch, channel=3, time\)\. Reorder",
    ),
    "another length": (
        lambda: sequences_for(POOL(2, input_dim=(3, 6))),
        (2, 3, 5),
        r"^/maxpooling\.apply: `input_` must have the axes \(batch, channel=3, time=6\)\. Reorder",
    ),
    "a filter longer than what comes": (
        lambda: sequences_for(CONV(4, 1, 3, border_mode=((0, 1),), **INIT)),
        (2, 3, 2),
        r"^/convolutional\.apply: the filter covers 4 elements of axis 2, but the input has fewer "
        "there and the border adds 1",
    ),
    "a window longer than what comes": (
        lambda: sequences_for(POOL(4)),
        (2, 3, 3),
        r"^/maxpooling\.apply: the window covers 4 elements of axis 2, but the input has fewer",
    ),
    "a window longer than what comes without batch and channels": (
        lambda: images_alone_for(POOL((1, 2))),
        (3, 1),
        r"^/maxpooling\.apply: the window covers 2 elements of axis 1, but the input has fewer",
    ),
    "an input that the given output does not come from": (
        lambda: sequences_for(BACK(3, 1, 3, (9,), step=2, **INIT)),
        (2, 3, 3),
        r"^/convolutionaltranspose\.apply: an output of length 9 on axis 2 belongs only to an "
        "input of length 4",
    ),
}


@pytest.mark.parametrize("name", REFUSED_AT_RUN_TIME)
def test_what_turns_out_not_to_fit_is_refused_in_the_same_words(name):
    build, shape, words = REFUSED_AT_RUN_TIME[name]
    output, x = build()

    with pytest.raises(AssertionError, match=words) as error:
        compute(output, x, draw(*shape))
    assert str(error.value).endswith(f" Got float32{shape}.")


@pytest.mark.parametrize("ignore_border", [True, False])
def test_the_least_length_of_a_window_is_the_first_on_which_it_has_a_place(ignore_border):
    for size, step, dilation, padding in itertools.product((1, 2, 3), (1, 4), (1, 2), (0, 1)):
        window = Window(size, step, dilation, padding, 0, not ignore_border)

        assert window.least == next(n for n in range(1, 9) if window.count(n) > 0)


def test_a_mask_has_no_features():
    assert [b.get_dim("mask") for b in (CONV((1, 1), 1, 1), POOL(2), BACK(1, 1, 1))] == [0, 0, 0]
