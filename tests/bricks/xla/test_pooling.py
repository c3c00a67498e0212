"""Pooling and its gradients agree with loops over the windows, in numpy, ties included."""

import functools
import itertools

import aesara
import jax
import numpy
import pytest
from aesara import tensor
from aesara.tensor.signal.pool import (
    AveragePoolGrad,
    MaxPoolGrad,
    Pool,
    max_pool_2d_same_size,
    pool_2d,
    pool_3d,
)
from aesara.tensor.type import TensorType
from jax import lax

from bricks import xla


def starts_along(length, size, stride, pad, ignore_border):
    """List where windows begin along an axis, whose first element is at 0."""
    end, starts, start = length + pad, [], -pad
    while start < end:
        if ignore_border and start + size > end:
            break
        starts.append(start)
        if not ignore_border and stride < size and start + size >= end:
            break
        start += stride
    return starts


class Loops:
    """Pooling of one array, as a loop over the windows."""

    def __init__(self, x, mode, size, stride, pad, ignore_border):
        self.x, self.mode, self.num_kept = x, mode, x.ndim - len(size)
        lengths = x.shape[self.num_kept :]
        self.places, self.windows, self.counts = [], [], []
        along = [
            list(enumerate(starts_along(*numbers, ignore_border)))
            for numbers in zip(lengths, size, stride, pad, strict=True)
        ]
        self.shape = (*x.shape[: self.num_kept], *map(len, along))
        for window in itertools.product(*along):
            inside, padded = [], []
            for (_, start), n, k, p in zip(window, lengths, size, pad, strict=True):
                inside.append(slice(max(start, 0), min(start + k, n)))
                padded.append(min(start + k, n + p) - start)
            self.places.append((..., *(i for i, _ in window)))
            self.windows.append((..., *inside))
            self.counts.append(numpy.prod(padded))

    def weights(self, number):
        """Give what each element of a window counts for in its result."""
        part = self.x[self.windows[number]]
        if self.mode == "max":
            axes = tuple(range(self.num_kept, part.ndim))
            return (part == part.max(axis=axes, keepdims=True)).astype(float)
        inside = numpy.prod(part.shape[self.num_kept :])
        count = {"sum": 1, "average_inc_pad": self.counts[number], "average_exc_pad": inside}
        return numpy.ones_like(part) / count[self.mode]

    def forward(self):
        output = numpy.zeros(self.shape)
        axes = tuple(range(self.num_kept, self.x.ndim))
        for number, place in enumerate(self.places):
            part = self.x[self.windows[number]]
            largest = self.mode == "max"
            output[place] = part.max(axes) if largest else (part * self.weights(number)).sum(axes)
        return output

    def gather(self, values):
        output, axes = numpy.zeros(self.shape), tuple(range(self.num_kept, self.x.ndim))
        for number, place in enumerate(self.places):
            output[place] = (self.weights(number) * values[self.windows[number]]).sum(axes)
        return output

    def spread(self, gradient):
        output = numpy.zeros_like(self.x)
        for number, place in enumerate(self.places):
            at = gradient[place]
            at = at.reshape(*at.shape, *(1,) * (self.x.ndim - self.num_kept))
            output[self.windows[number]] += self.weights(number) * at
        return output


#: name -> (mode, size, stride, padding, ignore_border)
CASES = {}


def case(mode, size, stride=None, pad=None, ignore_border=True):
    stride, pad = stride or size, pad or (0,) * len(size)
    name = f"{mode} of {size} by {stride}, pad {pad}" + ("" if ignore_border else ", with border")
    CASES[name] = (mode, size, stride, pad, ignore_border)


for mode in ("max", "sum", "average_inc_pad", "average_exc_pad"):
    for border in (True, False):
        case(mode, (2, 2), ignore_border=border)
        case(mode, (3, 2), (2, 1), ignore_border=border)
        case(mode, (2, 1), (3, 2), ignore_border=border)
        case(mode, (3,), (2,), ignore_border=border)
        case(mode, (2, 3, 2), (1, 2, 2), ignore_border=border)
    case(mode, (3, 2), (2, 2), (1, 1))
    case(mode, (3, 3), (1, 1), (2, 1))
    case(mode, (2, 2), (2, 2), (1, 0))
    case(mode, (4,), (3,), (2,))
    case(mode, (2, 3, 2), (2, 2, 1), (1, 1, 0))
    case(mode, (1, 1))
    case(mode, (7, 9))
    case(mode, (5, 6), (1, 1))

#: Batches and lengths that every pooling is computed with; 1-D and 2-D leave the last ones out.
SHAPES = [(2, 3, 7, 9, 4), (1, 2, 8, 6, 5)]


def pooling_and_gradients(mode, size, stride, pad, ignore_border, dtype="float64"):
    """Return the input, the output, its gradient, and the gradient of that."""
    x = TensorType(dtype, (None,) * (2 + len(size)))("x")
    pool = Pool(ndim=len(size), mode=mode, ignore_border=ignore_border)
    output = pool(x, size, stride, pad)
    gradient = aesara.grad((output**2).sum(), x)
    return x, [output, gradient, aesara.grad((gradient**3).sum(), x)]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_loops(name):
    mode, size, *_ = CASES[name]
    rng = numpy.random.default_rng(len(name))
    x, outputs = pooling_and_gradients(*CASES[name])
    function = xla.function([x], outputs)

    for shape in SHAPES:
        # Small integers make ties; below zero, padding would win if it counted.
        batch = rng.integers(-4, 0, size=shape[: 2 + len(size)]).astype(float)
        loops = Loops(batch, *CASES[name])
        output = loops.forward()
        gradient = loops.spread(2 * output)
        second = loops.spread(2 * loops.gather(3 * gradient**2))

        for mine, expected in zip(function(batch), (output, gradient, second), strict=True):
            numpy.testing.assert_allclose(mine, expected, rtol=1e-12)


@pytest.mark.parametrize("mode", ["max", "sum", "average_inc_pad", "average_exc_pad"])
@pytest.mark.parametrize("ignore_border", [True, False])
def test_values_and_gradients_are_those_of_aesara(mode, ignore_border):
    x, outputs = pooling_and_gradients(mode, (3, 2), (2, 3), (0, 0), ignore_border)
    batch = numpy.random.default_rng(0).integers(-4, 4, size=(1, 2, 8, 6)).astype(float)

    expected = xla.function([x], outputs, backend="py")(batch)

    for mine, other in zip(xla.function([x], outputs)(batch), expected, strict=True):
        numpy.testing.assert_allclose(mine, other, rtol=1e-12)


def test_the_gradient_of_a_maximum_without_ties_is_that_of_jax():
    rng = numpy.random.default_rng(0)
    batch = rng.permutation(2 * 3 * 9 * 8).reshape(2, 3, 9, 8).astype("float32")

    def by_jax(x):
        padding = [(0, 0), (0, 0), (1, 1), (0, 0)]
        return lax.reduce_window(x, -numpy.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 1), padding)

    output, transpose = jax.vjp(by_jax, batch)
    x, outputs = pooling_and_gradients("max", (3, 3), (2, 1), (1, 0), True, dtype="float32")

    results = xla.function([x], outputs[:2])(batch)

    numpy.testing.assert_array_equal(results[0], output)
    numpy.testing.assert_allclose(results[1], transpose(2 * output)[0], rtol=1e-6)


def test_all_elements_that_are_the_maximum_receive_the_gradient():
    x = tensor.dmatrix("x")
    gradient = aesara.grad(pool_2d(x, (2, 2), ignore_border=True).sum(), x)

    result = xla.function([x], gradient)(numpy.array([[1.0, 1.0, 0.0, 2.0], [0.0, 1.0, 2.0, 2.0]]))

    numpy.testing.assert_array_equal(result, [[1, 1, 0, 1], [0, 1, 1, 1]])


def test_the_gradient_of_a_maximum_has_no_select_and_scatter():
    x, outputs = pooling_and_gradients("max", (3, 3), (2, 2), (1, 1), True, dtype="float32")

    exported = xla.export_for("cuda", xla.function([x], outputs), numpy.ones((2, 3, 8, 8), "f4"))

    assert exported.platforms == ("cuda",)
    assert "stablehlo.select_and_scatter" not in exported.mlir_module()


def test_average_pooling_lowers_for_cuda():
    x, outputs = pooling_and_gradients("average_exc_pad", (3, 3), (2, 2), (1, 1), True)

    exported = xla.export_for("cuda", xla.function([x], outputs), numpy.ones((2, 3, 8, 8)))

    assert exported.platforms == ("cuda",)


def test_a_maximum_along_a_direction_is_the_direction_at_the_maxima():
    x, direction = tensor.dmatrices("x", "direction")
    y = aesara.gradient.Rop(pool_2d(x, (1, 2), ignore_border=True), x, direction)

    result = xla.function([x, direction], y)(
        numpy.array([[1.0, 2.0, 5.0, 3.0]]), numpy.array([[10.0, 20.0, 30.0, 40.0]])
    )

    numpy.testing.assert_array_equal(result, [[20.0, 30.0]])


def test_pooling_to_the_same_size_keeps_only_maxima():
    x = tensor.dtensor4("x")
    image = numpy.arange(16.0).reshape(1, 1, 4, 4)

    result = xla.function([x], max_pool_2d_same_size(x, (2, 2)))(image)

    expected = numpy.zeros((4, 4))
    expected[1::2, 1::2] = image[0, 0, 1::2, 1::2]
    numpy.testing.assert_array_equal(result[0, 0], expected)


def test_all_axes_can_be_pooled():
    x = tensor.dtensor3("x")
    y = pool_3d(x, (2, 2, 2), ignore_border=True)
    box = numpy.arange(64.0).reshape(4, 4, 4)

    output, gradient = xla.function([x], [y, aesara.grad(y.sum(), x)])(box)

    numpy.testing.assert_array_equal(output, box[1::2, 1::2, 1::2])
    numpy.testing.assert_array_equal(gradient[1::2, 1::2, 1::2], numpy.ones((2, 2, 2)))
    assert gradient.sum() == 8


def test_minus_infinity_can_be_a_maximum():
    x, outputs = pooling_and_gradients("max", (2,), (2,), (1,), True)
    batch = numpy.array([[[-numpy.inf, -numpy.inf, 1.0]]])
    y = outputs[0]
    gradient = aesara.grad(y[:, :, 0].sum(), x)

    output, of_x = xla.function([x], [y, gradient])(batch)

    numpy.testing.assert_array_equal(output, [[[-numpy.inf, 1.0]]])
    numpy.testing.assert_array_equal(of_x, [[[1.0, 0.0, 0.0]]])


def test_nan_is_passed_on_and_has_no_gradient():
    x, (output, *_) = pooling_and_gradients("max", (2,), (2,), (0,), True)
    batch = numpy.array([[[1.0, numpy.nan, 2.0, 3.0]]])

    result, gradient = xla.function([x], [output, aesara.grad(output.sum(), x)])(batch)

    numpy.testing.assert_array_equal(result, [[[numpy.nan, 3.0]]])
    numpy.testing.assert_array_equal(gradient, [[[0.0, 0.0, 0.0, 1.0]]])


def test_sizes_can_come_from_shapes_and_integers():
    x, n = tensor.dtensor4("x"), tensor.lscalar("n")
    whole = pool_2d(x, x.shape[2:], ignore_border=True, mode="average_exc_pad")
    some = pool_2d(x, tensor.stack([n, n]), ignore_border=True, stride=(1, 1))
    function = xla.function([x, n], [whole, some, aesara.grad(some.sum() + whole.sum(), x)])
    batch = numpy.random.default_rng(0).normal(size=(2, 3, 5, 4))

    for size in (2, 3):
        mean, largest, gradient = function(batch, size)

        numpy.testing.assert_allclose(mean[:, :, 0, 0], batch.mean(axis=(2, 3)))
        assert largest.shape == (2, 3, 6 - size, 5 - size)
        assert round(gradient.sum()) == 6 + largest.size


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "int8"])
def test_dtypes_are_kept(dtype):
    x = TensorType(dtype, (None, None))("x")
    values = numpy.array([[-7, -3, -5], [-9, -4, -8]], dtype)
    outputs = [
        Pool(mode=mode, ndim=1, ignore_border=True)(x, (3,), (1,), (1,))
        for mode in ("max", "sum", "average_inc_pad")
    ]

    largest, total, mean = xla.function([x], outputs)(values)

    assert largest.dtype == total.dtype == mean.dtype == dtype
    numpy.testing.assert_array_equal(largest, [[-3, -3, -3], [-4, -4, -4]])
    numpy.testing.assert_array_equal(total, [[-10, -15, -8], [-13, -21, -12]])
    numpy.testing.assert_array_equal(mean[:, 1], [-5, -7])


@pytest.mark.parametrize("mode", ["max", "sum", "average_inc_pad", "average_exc_pad"])
def test_an_empty_batch_is_pooled_to_an_empty_batch(mode):
    x, outputs = pooling_and_gradients(mode, (3, 2), (2, 1), (1, 0), True)

    output, gradient, second = xla.function([x], outputs)(numpy.ones((0, 3, 7, 6)))

    assert output.shape == (0, 3, 4, 5)
    assert gradient.shape == second.shape == (0, 3, 7, 6)


@pytest.mark.parametrize("mode", ["max", "sum", "average_inc_pad", "average_exc_pad"])
def test_a_border_smaller_than_a_window_is_ignored_or_pooled(mode):
    batch = numpy.arange(1.0, 5.0).reshape(1, 1, 2, 2)
    of_four = {"max": 4.0, "sum": 10.0}.get(mode, 2.5)
    for stride in ((3, 3), (1, 1)):
        x, outputs = pooling_and_gradients(mode, (3, 3), stride, (0, 0), True)
        ignored, gradient, _ = xla.function([x], outputs)(batch)
        x, outputs = pooling_and_gradients(mode, (3, 3), stride, (0, 0), False)
        pooled, *_ = xla.function([x], outputs)(batch)

        assert ignored.shape == (1, 1, 0, 0)
        assert not gradient.any()
        numpy.testing.assert_array_equal(pooled, [[[[of_four]]]])


def test_a_single_element_is_its_own_maximum():
    x, outputs = pooling_and_gradients("max", (2, 2), (2, 2), (0, 0), False)

    results = xla.function([x], outputs)(numpy.full((1, 1, 1, 1), 3.0))

    # y = x, the gradient of y² is 2 x, that of (2 x)³ is 24 x².
    assert [float(result.squeeze()) for result in results] == [3.0, 6.0, 216.0]


def refuse(match, x_shape, *numbers, **options):
    x = TensorType("float64", (None,) * len(x_shape))("x")
    vectors = [tensor.as_tensor(numpy.array(numbers_of, "int64")) for numbers_of in numbers]
    function = xla.function([x], Pool(**options)(x, *vectors))
    with pytest.raises(xla.GraphError, match=match):
        function(numpy.ones(x_shape))


def test_padding_as_large_as_the_window_is_refused():
    refuse(
        r"Pool{.*}\(x, .*cannot be computed from float64\(1, 1, 5, 5\).*"
        "padding must be smaller than the window.* got pad=2, ws=2",
        (1, 1, 5, 5),
        (3, 2),
        (1, 1),
        (2, 2),
        ignore_border=True,
    )


@pytest.mark.parametrize("size, stride, pad", [(0, 1, 0), (2, 0, 0), (2, 1, -1)])
def test_windows_that_are_none_are_refused(size, stride, pad):
    refuse(
        f"got ws={size}, stride={stride}, pad={pad}",
        (1, 5),
        (size,),
        (stride,),
        (pad,),
        ndim=1,
        ignore_border=True,
    )


def test_another_number_of_lengths_than_of_axes_is_refused():
    refuse(
        r"must have 2 numbers each, one for each axis; got \(2, 2, 2\), \(2, 2, 2\), \(0, 0\)",
        (1, 1, 5, 5),
        (2, 2, 2),
        (2, 2, 2),
        (0, 0),
    )


@pytest.mark.parametrize("mode", ["max", "average_exc_pad"])
def test_windows_on_padding_alone_are_refused(mode):
    refuse(
        f"window of ws=3 holds no element of an axis of length 0 with pad=2, so it has no {mode}",
        (1, 0),
        (3,),
        (1,),
        (2,),
        ndim=1,
        mode=mode,
        ignore_border=True,
    )


def test_sizes_that_come_from_data_are_refused():
    x = tensor.dtensor4("x")
    size = tensor.stack([x.max().astype("int64"), 2])

    with pytest.raises(
        xla.DataDependentShape, match="the size of a window must be known when the graph is compil"
    ):
        xla.function([x], pool_2d(x, size, ignore_border=True))(numpy.ones((1, 1, 4, 4)))


def test_gradients_of_another_shape_are_refused():
    x, y, z = tensor.dtensor3s("x", "y", "z")
    batch, wrong = numpy.ones((1, 4, 4)), numpy.ones((1, 3, 2))
    of_maximum = functools.partial(MaxPoolGrad(True), x, y, z, (2, 2))
    of_mean = functools.partial(AveragePoolGrad(True, "sum"), x, z, (2, 2))

    match = r"gradient of a pooled output must have its shape, \(1, 2, 2\); got \(1, 3, 2\)"
    with pytest.raises(xla.GraphError, match=match):
        xla.function([x, y, z], of_maximum())(batch, numpy.ones((1, 2, 2)), wrong)
    with pytest.raises(xla.GraphError, match=match):
        xla.function([x, z], of_mean())(batch, wrong)
