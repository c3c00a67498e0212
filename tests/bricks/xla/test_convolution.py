"""Convolutions and their gradients agree with loops over the places of the output, in numpy."""

import itertools

import aesara
import jax
import numpy
import pytest
import scipy.signal
from aesara import tensor
from aesara.tensor import nnet
from aesara.tensor.nnet import abstract_conv
from aesara.tensor.type import TensorType
from jax import lax

from bricks import xla


def as_pairs(border_mode, spans):
    named = {
        "valid": [(0, 0) for _ in spans],
        "half": [(span // 2, span // 2) for span in spans],
        "full": [(span - 1, span - 1) for span in spans],
    }
    if isinstance(border_mode, str):
        return named[border_mode]
    sides = [border_mode] * len(spans) if isinstance(border_mode, int) else border_mode
    return [side if isinstance(side, tuple) else (side, side) for side in sides]


class Loops:
    """Convolutions of an image of one shape, written as a loop over the places of the output.

    ``places`` gives for each place of the output what it reads: slices of the padded image.
    """

    def __init__(
        self,
        image_shape,
        kernel_lengths,
        border_mode="valid",
        subsample=None,
        filter_flip=True,
        filter_dilation=None,
        num_groups=1,
    ):
        num_axes = len(kernel_lengths)
        self.strides = subsample or (1,) * num_axes
        self.steps = filter_dilation or (1,) * num_axes
        self.flip, self.groups, self.image_shape = filter_flip, num_groups, tuple(image_shape)
        spans = [(k - 1) * s + 1 for k, s in zip(kernel_lengths, self.steps, strict=True)]
        self.spans, self.pads = spans, as_pairs(border_mode, spans)
        self.lengths = tuple(
            (n + sum(pad) - span) // stride + 1
            for n, pad, span, stride in zip(
                image_shape[2:], self.pads, spans, self.strides, strict=True
            )
        )

    def pad(self, image):
        return numpy.pad(image, [(0, 0), (0, 0), *self.pads])

    def unpad(self, padded):
        lengths = self.image_shape[2:]
        return padded[
            (..., *(slice(low, low + n) for (low, _), n in zip(self.pads, lengths, strict=True)))
        ]

    def places(self):
        for place in itertools.product(*map(range, self.lengths)):
            starts = [i * stride for i, stride in zip(place, self.strides, strict=True)]
            yield (
                place,
                tuple(
                    slice(start, start + span, step)
                    for start, span, step in zip(starts, self.spans, self.steps, strict=True)
                ),
            )

    def split(self, filters, channels):
        """Give, for each group, its filters and its channels."""
        f, c = filters // self.groups, channels // self.groups
        return [(slice(g * f, g * f + f), slice(g * c, g * c + c)) for g in range(self.groups)]

    def oriented(self, kernel):
        axes = tuple(range(kernel.ndim - len(self.lengths), kernel.ndim))
        return numpy.flip(kernel, axes) if self.flip else kernel

    def forward(self, image, kernel):
        padded, kernel = self.pad(image), self.oriented(kernel)
        output = numpy.zeros((image.shape[0], kernel.shape[0], *self.lengths))
        for place, window in self.places():
            for filters, channels in self.split(kernel.shape[0], image.shape[1]):
                patch = padded[(slice(None), channels, *window)]
                output[(slice(None), filters, *place)] = numpy.tensordot(
                    patch, kernel[filters], (range(1, patch.ndim), range(1, patch.ndim))
                )
        return output

    def gradients(self, image, kernel, top):
        padded, oriented = self.pad(image), self.oriented(kernel)
        of_image, of_kernel = numpy.zeros_like(padded), numpy.zeros_like(kernel)
        for place, window in self.places():
            for filters, channels in self.split(kernel.shape[0], image.shape[1]):
                at = top[(slice(None), filters, *place)]
                patch = padded[(slice(None), channels, *window)]
                of_kernel[filters] += numpy.einsum("nf,nc...->fc...", at, patch)
                of_image[(slice(None), channels, *window)] += numpy.einsum(
                    "nf,fc...->nc...", at, oriented[filters]
                )
        return self.unpad(of_image), self.oriented(of_kernel)


#: name -> (options, lengths of the kernel, number of channels, number of filters)
CASES = {}


def case(name, kernel=(3, 2), channels=2, filters=3, **options):
    CASES[name] = (options, kernel, channels, filters)


for flip in (True, False):
    kind = "convolution" if flip else "correlation"
    for mode in ("valid", "half", "full", 1, (2, 1), ((1, 2), 0), (1, (0, 2)), ((0, 1), (2, 0))):
        case(f"{kind}, border {mode}", border_mode=mode, filter_flip=flip)
    case(f"{kind}, strides", subsample=(2, 3), filter_flip=flip)
    case(f"{kind}, dilation", filter_dilation=(2, 3), filter_flip=flip)
    case(f"{kind}, groups", num_groups=2, channels=4, filters=6, filter_flip=flip)
    case(
        f"{kind}, everything",
        border_mode=((1, 2), 1),
        subsample=(2, 1),
        filter_dilation=(1, 2),
        num_groups=2,
        channels=4,
        filters=2,
        filter_flip=flip,
    )
for mode in ("half", "full", (1, 0), ((2, 0), (0, 1))):
    case(f"strides, border {mode}", border_mode=mode, subsample=(3, 2))
    case(f"dilation, border {mode}", border_mode=mode, filter_dilation=(2, 2))
    case(
        f"strides and dilation, border {mode}",
        border_mode=mode,
        subsample=(2, 2),
        filter_dilation=(2, 3),
    )
case("strides longer than the kernel", kernel=(2, 1), subsample=(3, 3))
case("kernel of one element", kernel=(1, 1))
case("kernel of even lengths, half", kernel=(2, 4), border_mode="half")
case("kernel as large as the image", kernel=(6, 5))
case("one channel and one filter", channels=1, filters=1, border_mode="half")
case("each channel by itself", channels=3, filters=3, num_groups=3, border_mode="half")
case("several filters of each channel", channels=2, filters=6, num_groups=2, subsample=(2, 2))
case("a row", kernel=(1, 4), border_mode=(0, 2))
for flip in (True, False):
    kind = "3-D convolution" if flip else "3-D correlation"
    for mode in ("valid", "half", "full", 1, (1, 0, 2)):
        case(f"{kind}, border {mode}", kernel=(2, 3, 2), border_mode=mode, filter_flip=flip)
    case(f"{kind}, strides", kernel=(2, 3, 2), subsample=(1, 2, 3), filter_flip=flip)
    case(f"{kind}, dilation", kernel=(2, 2, 2), filter_dilation=(2, 1, 3), filter_flip=flip)
    case(
        f"{kind}, everything",
        kernel=(2, 2, 2),
        channels=4,
        filters=2,
        num_groups=2,
        border_mode=(1, 0, 2),
        subsample=(2, 1, 2),
        filter_dilation=(1, 2, 2),
        filter_flip=flip,
    )

#: Batches and lengths that every convolution is computed with; the last axis is left out in 2-D.
SHAPES = [(2, 6, 5, 4), (1, 7, 9, 5)]


def operator_for(num_axes):
    return nnet.conv2d if num_axes == 2 else abstract_conv.conv3d


def convolution_and_gradients(options, num_axes):
    image, kernel = (TensorType("float64", (None,) * (2 + num_axes))() for _ in range(2))
    output = operator_for(num_axes)(image, kernel, **options)
    gradients = aesara.grad((output**2).sum(), [image, kernel])
    return [image, kernel], [output, *gradients]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_loops(name):
    options, lengths, channels, filters = CASES[name]
    rng = numpy.random.default_rng(len(name))
    function = xla.function(*convolution_and_gradients(options, len(lengths)))

    for batch, *axes in SHAPES:
        image = rng.normal(size=(batch, channels, *axes[: len(lengths)]))
        kernel = rng.normal(size=(filters, channels // options.get("num_groups", 1), *lengths))
        loops = Loops(image.shape, lengths, **options)
        expected = loops.forward(image, kernel)
        of_image, of_kernel = loops.gradients(image, kernel, 2 * expected)

        for mine, other in zip(
            function(image, kernel), (expected, of_image, of_kernel), strict=True
        ):
            numpy.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-10)


def assert_slope(function, points, gradients, rng):
    """Compare gradients with the difference quotient along a random direction."""
    directions = [rng.normal(size=point.shape) for point in points]
    step = 1e-5
    ahead = function(*(p + step * d for p, d in zip(points, directions, strict=True)))
    behind = function(*(p - step * d for p, d in zip(points, directions, strict=True)))
    slope = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True))
    numpy.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "convolution, everything",
        "correlation, border ((1, 2), 0)",
        "strides and dilation, border full",
        "3-D convolution, everything",
    ],
)
def test_second_gradients_are_slopes(name):
    options, lengths, channels, filters = CASES[name]
    rng = numpy.random.default_rng(3)
    inputs, (_, *gradients) = convolution_and_gradients(options, len(lengths))
    cost = sum((gradient**2).sum() for gradient in gradients)
    value = xla.function(inputs, cost)
    slopes = xla.function(inputs, aesara.grad(cost, inputs))
    points = [
        rng.normal(size=(2, channels, *(6, 5, 4)[: len(lengths)])),
        rng.normal(size=(filters, channels // options.get("num_groups", 1), *lengths)),
    ]

    assert_slope(value, points, slopes(*points), rng)


def test_a_convolution_is_that_of_scipy():
    rng = numpy.random.default_rng(0)
    image, kernel = rng.normal(size=(1, 1, 9, 8)), rng.normal(size=(1, 1, 3, 4))
    x, w = tensor.dtensor4s("x", "w")

    for mode in ("valid", "full"):
        output = xla.function([x, w], nnet.conv2d(x, w, border_mode=mode))(image, kernel)
        expected = scipy.signal.convolve2d(image[0, 0], kernel[0, 0], mode)
        numpy.testing.assert_allclose(output[0, 0], expected, rtol=1e-12)


def test_gradients_are_the_convolutions_that_jax_derives():
    rng = numpy.random.default_rng(0)
    image = rng.normal(size=(2, 4, 8, 9)).astype("float32")
    kernel = rng.normal(size=(6, 2, 3, 2)).astype("float32")

    def by_jax(image, kernel):
        return lax.conv_general_dilated(
            image, kernel, (2, 3), [(1, 2), (0, 1)], rhs_dilation=(1, 2), feature_group_count=2
        )

    output, transpose = jax.vjp(by_jax, image, kernel)
    expected = [output, *transpose(2 * output)]
    x, w = tensor.ftensor4s("x", "w")
    y = nnet.conv2d(
        x,
        w,
        border_mode=((1, 2), (0, 1)),
        subsample=(2, 3),
        filter_dilation=(1, 2),
        num_groups=2,
        filter_flip=False,
    )

    results = xla.function([x, w], [y, *aesara.grad((y**2).sum(), [x, w])])(image, kernel)

    for mine, other in zip(results, expected, strict=True):
        numpy.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


TRANSPOSED = {
    "plain": {},
    "padded": {"border_mode": "half"},
    "spread": {"subsample": (2, 3)},
    "spread and padded": {"subsample": (2, 2), "border_mode": (1, 1)},
    "dilated": {"filter_dilation": (2, 1)},
    "grouped": {"num_groups": 2, "subsample": (2, 1)},
    "not flipped": {"filter_flip": False, "border_mode": "full"},
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_a_transposed_convolution_is_the_gradient_for_the_image(name):
    options = TRANSPOSED[name]
    rng = numpy.random.default_rng(0)
    groups = options.get("num_groups", 1)
    x, w = tensor.dtensor4s("x", "w")
    spread = dict(options)
    spread["input_dilation"] = spread.pop("subsample", (1, 1))
    kernel = rng.normal(size=(4, 3, 3, 2))
    for lengths in ((9, 8), (7, 7)):
        y = nnet.conv2d_transpose(x, w, output_shape=(None, None, *lengths), **spread)
        function = xla.function([x, w], [y, *aesara.grad((y**2).sum(), [x, w])])
        loops = Loops((2, 3 * groups, *lengths), (3, 2), **options)
        top = rng.normal(size=(2, 4, *loops.lengths))

        output, of_top, of_kernel = function(top, kernel)

        expected, _ = loops.gradients(numpy.zeros((2, 3 * groups, *lengths)), kernel, top)
        numpy.testing.assert_allclose(output, expected, rtol=1e-10, atol=1e-10)
        numpy.testing.assert_allclose(of_top, loops.forward(2 * expected, kernel), rtol=1e-10)
        _, by_loops = loops.gradients(2 * expected, kernel, top)
        numpy.testing.assert_allclose(of_kernel, by_loops, rtol=1e-10, atol=1e-10)


def test_gradients_can_be_asked_for_by_name():
    rng = numpy.random.default_rng(0)
    x, w = (TensorType("float64", (None,) * 5)() for _ in range(2))
    image, kernel = rng.normal(size=(2, 2, 5, 4, 6)), rng.normal(size=(3, 2, 2, 2, 3))
    loops = Loops(image.shape, (2, 2, 3), subsample=(2, 1, 2))
    top = loops.forward(image, kernel)
    of_image, of_kernel = loops.gradients(image, kernel, top)
    y = TensorType("float64", (None,) * 5)()

    shapes = [(None, None, *(v.shape[axis] for axis in (2, 3, 4))) for v in (x, w)]

    inputs = abstract_conv.conv3d_grad_wrt_inputs(y, w, shapes[0], subsample=(2, 1, 2))
    weights = abstract_conv.conv3d_grad_wrt_weights(x, y, shapes[1], subsample=(2, 1, 2))

    results = xla.function([x, w, y], [inputs, weights])(image, kernel, top)
    for mine, other in zip(results, (of_image, of_kernel), strict=True):
        numpy.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-10)


def direct_unshared(loops, image, kernel):
    padded, kernel = loops.pad(image), loops.oriented(kernel)
    output = numpy.zeros((image.shape[0], kernel.shape[0], *loops.lengths))
    for place, window in loops.places():
        for filters, channels in loops.split(kernel.shape[0], image.shape[1]):
            output[(slice(None), filters, *place)] = numpy.einsum(
                "nchw,fchw->nf",
                padded[(slice(None), channels, *window)],
                kernel[(filters, *place)],
            )
    return output


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"border_mode": ((1, 0), 2), "filter_flip": False},
        {"subsample": (2, 1), "filter_dilation": (1, 2)},
        {"num_groups": 2, "border_mode": "half"},
    ],
)
def test_unshared_filters_have_one_kernel_for_each_place(options):
    rng = numpy.random.default_rng(0)
    loops = Loops((2, 4, 6, 5), (3, 2), **options)
    channels = 4 // options.get("num_groups", 1)
    image = rng.normal(size=(2, 4, 6, 5))
    kernel = rng.normal(size=(2, *loops.lengths, channels, 3, 2))
    x, w = tensor.dtensor4("x"), TensorType("float64", (None,) * 6)("w")
    y = nnet.conv2d(x, w, unshared=True, **options)
    cost = (y**2).sum()

    output = xla.function([x, w], y)(image, kernel)
    gradients = xla.function([x, w], aesara.grad(cost, [x, w]))(image, kernel)

    numpy.testing.assert_allclose(output, direct_unshared(loops, image, kernel), rtol=1e-10)
    assert_slope(xla.function([x, w], cost), [image, kernel], gradients, rng)


def test_a_separable_convolution_is_one_for_each_channel_and_one_across_them():
    rng = numpy.random.default_rng(0)
    image, depth = rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(6, 1, 3, 2))
    across = rng.normal(size=(4, 6, 1, 1))
    x, d, p = tensor.dtensor4s("x", "d", "p")
    y = abstract_conv.separable_conv2d(x, d, p, 3, border_mode="half")

    output = xla.function([x, d, p], y)(image, depth, across)

    first = Loops(image.shape, (3, 2), border_mode="half", num_groups=3).forward(image, depth)
    expected = Loops(first.shape, (1, 1)).forward(first, across)
    numpy.testing.assert_allclose(output, expected, rtol=1e-10)


def test_a_separable_convolution_in_3d_is_one_for_each_channel_and_one_across_them():
    rng = numpy.random.default_rng(0)
    image, depth = rng.normal(size=(2, 2, 4, 5, 4)), rng.normal(size=(4, 1, 2, 3, 2))
    across = rng.normal(size=(3, 4, 1, 1, 1))
    x, d, p = (TensorType("float64", (None,) * 5)() for _ in range(3))
    y = abstract_conv.separable_conv3d(x, d, p, 2)

    output = xla.function([x, d, p], y)(image, depth, across)

    first = Loops(image.shape, (2, 3, 2), num_groups=2).forward(image, depth)
    expected = Loops(first.shape, (1, 1, 1)).forward(first, across)
    numpy.testing.assert_allclose(output, expected, rtol=1e-10)


def test_a_causal_convolution_sees_no_future():
    rng = numpy.random.default_rng(0)
    sequence, kernel = rng.normal(size=(2, 3, 9)), rng.normal(size=(4, 3, 2))
    x, w = tensor.dtensor3s("x", "w")
    y = abstract_conv.causal_conv1d(x, w, filter_shape=(4, 3, 2), filter_dilation=3)

    output, gradient = xla.function([x, w], [y, aesara.grad(y[:, :, 4].sum(), x)])(sequence, kernel)

    padded = numpy.pad(sequence, ((0, 0), (0, 0), (3, 0)))
    expected = numpy.einsum("nct,fc->nft", padded[:, :, 3:], kernel[:, :, 0])
    expected += numpy.einsum("nct,fc->nft", padded[:, :, :9], kernel[:, :, 1])
    numpy.testing.assert_allclose(output, expected, rtol=1e-10)
    assert set(numpy.flatnonzero(abs(gradient).sum(axis=(0, 1)))) == {1, 4}


def test_a_sequence_is_an_image_of_one_row():
    rng = numpy.random.default_rng(0)
    sequence, kernel = rng.normal(size=(1, 1, 12)), rng.normal(size=(1, 1, 5))
    x, w = tensor.dtensor3s("x", "w")
    y = nnet.conv2d(x.dimshuffle(0, 1, "x", 2), w.dimshuffle(0, 1, "x", 2))[:, :, 0]

    output = xla.function([x, w], y)(sequence, kernel)

    expected = numpy.convolve(sequence[0, 0], kernel[0, 0], "valid")
    numpy.testing.assert_allclose(output[0, 0], expected, rtol=1e-12)


def test_bilinear_upsampling_interpolates():
    x = tensor.dtensor4("x")
    image = numpy.random.default_rng(0).normal(size=(2, 3, 4, 5))
    y = abstract_conv.bilinear_upsampling(x, 2, batch_size=2, num_input_channels=3)

    output = xla.function([x], y)(image)

    padded = numpy.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    assert output.shape == (2, 3, 8, 10)
    numpy.testing.assert_allclose(output[:, :, ::2, ::2], image, atol=1e-6)
    between = (padded[:, :, 1:-1, 1:-1] + padded[:, :, 2:, 1:-1]) / 2
    # Aesara makes the weights in float32.
    numpy.testing.assert_allclose(output[:, :, 1::2, ::2], between, atol=1e-6)


@pytest.mark.parametrize("declared", [(2, 2, 6, 5), (None, 2, None, None), (None, None, 6, 5)])
def test_declared_shapes_change_nothing(declared):
    rng = numpy.random.default_rng(0)
    image, kernel = rng.normal(size=(2, 2, 6, 5)), rng.normal(size=(3, 2, 3, 2))
    x, w = tensor.dtensor4s("x", "w")
    y = nnet.conv2d(x, w, declared, (3, 2, 3, 2), border_mode="half", subsample=(2, 1))

    function = xla.function([x, w], [y, *aesara.grad((y**2).sum(), [x, w]), y.shape])
    output, of_image, of_kernel, shape = function(image, kernel)

    loops = Loops(image.shape, (3, 2), border_mode="half", subsample=(2, 1))
    expected = loops.forward(image, kernel)
    numpy.testing.assert_allclose(output, expected, rtol=1e-10)
    assert tuple(shape) == expected.shape
    for mine, other in zip(
        (of_image, of_kernel), loops.gradients(image, kernel, 2 * expected), strict=True
    ):
        numpy.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-10)


def test_types_with_known_lengths_are_kept_by_the_gradient():
    x = TensorType("float64", (1, 4, None, None))("x")
    w = xla.shared(numpy.ones((4, 1, 3, 3)), "w", shape=(4, 1, 3, 3))
    y = nnet.conv2d(x, w, num_groups=4)
    gradients = aesara.grad(y.sum(), [x, w])

    of_image, of_kernel = xla.function([x], gradients)(numpy.ones((1, 4, 3, 3)))

    assert y.type.shape[0] == gradients[0].type.shape[0] == gradients[1].type.shape[1] == 1
    numpy.testing.assert_array_equal(of_image, numpy.ones((1, 4, 3, 3)))
    numpy.testing.assert_array_equal(of_kernel, numpy.ones((4, 1, 3, 3)))


def test_unshared_filters_leave_an_empty_batch_empty():
    x, w = tensor.dtensor4("x"), TensorType("float64", (None,) * 6)("w")
    y = nnet.conv2d(x, w, unshared=True)
    function = xla.function([x, w], [y, *aesara.grad(y.sum(), [x, w])])

    output, of_image, of_kernel = function(numpy.ones((0, 2, 4, 4)), numpy.ones((3, 3, 3, 2, 2, 2)))

    assert output.shape == (0, 3, 3, 3)
    assert of_image.shape == (0, 2, 4, 4)
    assert not of_kernel.any()


@pytest.mark.parametrize(
    "shape, kernel_shape",
    [((0, 2, 6, 5), (3, 2, 3, 2)), ((2, 0, 6, 5), (3, 0, 3, 2)), ((2, 2, 6, 5), (0, 2, 3, 2))],
)
def test_nothing_convolved_is_nothing(shape, kernel_shape):
    inputs, outputs = convolution_and_gradients({"border_mode": "half", "subsample": (2, 1)}, 2)

    output, of_image, of_kernel = xla.function(inputs, outputs)(
        numpy.ones(shape), numpy.ones(kernel_shape)
    )

    assert output.shape == (shape[0], kernel_shape[0], 3, 6)
    assert of_image.shape == shape
    assert of_kernel.shape == kernel_shape
    assert not output.any() and not of_image.any() and not of_kernel.any()


def test_a_single_element_is_multiplied():
    inputs, outputs = convolution_and_gradients({}, 2)

    results = xla.function(inputs, outputs)(numpy.full((1,) * 4, 3.0), numpy.full((1,) * 4, 2.0))

    assert [float(result.squeeze()) for result in results] == [6.0, 24.0, 36.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_dtypes_are_kept(dtype):
    x, w = (TensorType(dtype, (None,) * 4)() for _ in range(2))
    image = numpy.arange(16).reshape(1, 1, 4, 4).astype(dtype)

    output = xla.function([x, w], nnet.conv2d(x, w))(image, numpy.ones((1, 1, 2, 2), dtype))

    assert output.dtype == dtype
    numpy.testing.assert_array_equal(output[0, 0, 0], [10, 14, 18])


def test_a_convolution_of_constants_is_left_to_xla():
    image, kernel = numpy.ones((1, 1, 3, 3)), numpy.ones((1, 1, 2, 2))

    output = xla.function([], nnet.conv2d(tensor.constant(image), tensor.constant(kernel)))()

    numpy.testing.assert_array_equal(output, numpy.full((1, 1, 2, 2), 4.0))


def test_convolutions_and_gradients_lower_for_cuda():
    for num_axes, groups in ((2, 1), (2, 2), (3, 1)):
        inputs, outputs = convolution_and_gradients(
            {"num_groups": groups, "border_mode": "half", "subsample": (2,) * num_axes}, num_axes
        )
        image = numpy.ones((2, 4, *(6,) * num_axes))
        kernel = numpy.ones((4, 4 // groups, *(3,) * num_axes))

        exported = xla.export_for("cuda", xla.function(inputs, outputs), image, kernel)

        assert exported.platforms == ("cuda",)
        assert exported.mlir_module().count("stablehlo.convolution") == 3


def refuse(match, image_shape, kernel_shape, dtypes=("float64", "float64"), **options):
    x, w = (TensorType(dtype, (None,) * 4)(name) for dtype, name in zip(dtypes, "xw", strict=True))
    function = xla.function([x, w], nnet.conv2d(x, w, **options))
    with pytest.raises(xla.GraphError, match=match):
        function(numpy.ones(image_shape, dtypes[0]), numpy.ones(kernel_shape, dtypes[1]))


def test_a_kernel_larger_than_the_padded_image_is_refused():
    refuse(
        r"AbstractConv2d.*\(x, w\) cannot be computed from float64\(2, 3, 4, 9\).*covers 7 "
        r"elements of axis 2, where the image of lengths \(4, 9\) has 4 and border_mode \(1, 1\) "
        r"adds 1 \+ 1",
        (2, 3, 4, 9),
        (5, 3, 4, 2),
        border_mode=(1, 1),
        filter_dilation=(2, 1),
    )


def test_a_kernel_without_elements_is_refused():
    refuse("covers 0 elements of axis 3", (2, 3, 4, 4), (5, 3, 2, 0))


def test_wrong_channels_are_refused():
    refuse("the image has 4 channels, but the filters expect 3", (2, 4, 5, 5), (5, 3, 2, 2))


def test_wrong_channels_of_groups_are_refused():
    refuse(
        "the image has 5 channels, but the filters expect 2 in each of 3 groups, 6 together",
        (2, 5, 5, 5),
        (6, 2, 2, 2),
        num_groups=3,
    )


def test_groups_that_do_not_divide_the_filters_are_refused():
    refuse(
        "num_groups, 3, must divide the number of filters, which is 4",
        (2, 6, 5, 5),
        (4, 2, 2, 2),
        num_groups=3,
    )


def test_shapes_other_than_those_declared_are_refused():
    refuse(
        r"input_shape was declared as \(None, 3, 8, 8\) .* got \(2, 4, 8, 8\)",
        (2, 4, 8, 8),
        (5, 4, 2, 2),
        input_shape=(None, 3, 8, 8),
    )
    refuse(
        r"filter_shape was declared as \(5, 3, 3, 3\) .* got \(5, 3, 2, 2\)",
        (2, 3, 8, 8),
        (5, 3, 2, 2),
        filter_shape=(5, 3, 3, 3),
    )


def test_an_image_of_integers_is_not_convolved_with_floats():
    refuse(
        r"result uint8, .* the second is float32, .* Cast the first with .astype\('float32'\)",
        (1, 1, 4, 4),
        (1, 1, 2, 2),
        dtypes=("uint8", "float32"),
    )


def test_unshared_filters_for_other_places_are_refused():
    x, w = tensor.dtensor4("x"), TensorType("float64", (None,) * 6)("w")
    function = xla.function([x, w], nnet.conv2d(x, w, unshared=True))

    with pytest.raises(xla.GraphError, match=r"has lengths \(4, 4\); these filters have \(3, 4\)"):
        function(numpy.ones((1, 2, 5, 5)), numpy.ones((3, 3, 4, 2, 2, 2)))


def test_an_output_that_a_transposed_convolution_cannot_have_is_refused():
    x, w = tensor.dtensor4s("x", "w")
    y = nnet.conv2d_transpose(x, w, (None, None, 9, 9), input_dilation=(2, 2))

    with pytest.raises(
        xla.GraphError, match=r"input of a transposed .* shape \(2, 4, 4, 4\) .* got \(2, 4, 5, 4\)"
    ):
        xla.function([x, w], y)(numpy.ones((2, 4, 5, 4)), numpy.ones((4, 3, 3, 3)))
