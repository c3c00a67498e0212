"""Neighbourhoods of images agree with loops over their places, in numpy."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.tensor.nnet.neighbours import images2neibs, neibs2images

from bricks import xla


def direct_neighbourhoods(x, sizes, steps, mode):
    margins = {"half": [s // 2 for s in sizes], "full": [s - 1 for s in sizes]}.get(mode, [0, 0])
    if mode == "wrap_centered":
        margins = [s // 2 for s in sizes]
    kind = {"mode": "wrap"} if mode == "wrap_centered" else {}
    padded = numpy.pad(x, ((0, 0), (0, 0), *((m, m) for m in margins)), **kind)
    rows = []
    for image in padded.reshape(-1, *padded.shape[2:]):
        for i in range(0, image.shape[0] - sizes[0] + 1, steps[0]):
            for j in range(0, image.shape[1] - sizes[1] + 1, steps[1]):
                rows.append(image[i : i + sizes[0], j : j + sizes[1]].ravel())
    return numpy.array(rows)


@pytest.mark.parametrize(
    "mode, sizes, steps",
    [
        ("valid", (2, 3), None),
        ("valid", (2, 3), (1, 3)),
        ("valid", (1, 1), None),
        ("ignore_borders", (4, 2), None),
        ("ignore_borders", (3, 2), (2, 3)),
        ("half", (3, 3), (1, 1)),
        ("full", (2, 3), (1, 1)),
        ("wrap_centered", (3, 3), (1, 1)),
        ("wrap_centered", (1, 3), (2, 2)),
    ],
)
def test_neighbourhoods_are_those_of_loops(mode, sizes, steps):
    x = tensor.dtensor4("x")
    y = images2neibs(x, sizes, steps, mode=mode)
    function = xla.function([x], y)

    for shape in ((2, 3, 6, 9), (1, 1, 8, 6), (0, 2, 6, 9)):
        image = numpy.random.default_rng(0).normal(size=shape)
        expected = direct_neighbourhoods(image, sizes, steps or sizes, mode)
        numpy.testing.assert_array_equal(function(image), expected.reshape(-1, sizes[0] * sizes[1]))


@pytest.mark.parametrize("mode, shape", [("valid", (2, 3, 6, 9)), ("ignore_borders", (2, 3, 7, 8))])
def test_neighbourhoods_are_put_back(mode, shape):
    x = tensor.dtensor4("x")
    y = images2neibs(x, (2, 3), mode=mode)
    back = neibs2images(y, (2, 3), x.shape, mode=mode)
    image = numpy.random.default_rng(0).normal(size=shape)

    returned, gradient = xla.function([x], [back, aesara.grad((y**2).sum(), x)])(image)

    expected = image.copy()
    expected[:, :, shape[2] // 2 * 2 :] = 0
    expected[:, :, :, shape[3] // 3 * 3 :] = 0
    numpy.testing.assert_array_equal(returned, expected)
    numpy.testing.assert_allclose(gradient, 2 * expected)


@pytest.mark.parametrize(
    "mode, sizes, steps, match",
    [
        ("valid", (4, 3), (4, 3), "of 4, 4 apart, do not fill axis 2 of length 6.*ignore_borders"),
        ("valid", (2, 3), (0, 3), "must be positive; got 2 and 0"),
        ("wrap_centered", (2, 3), (1, 1), "odd lengths.* got 2 along axis 2 of length 6"),
        ("half", (7, 3), (1, 1), "of 7, 1 apart, do not fill axis 2 of length 6"),
    ],
)
def test_neighbourhoods_that_do_not_fit_are_refused(mode, sizes, steps, match):
    x = tensor.dtensor4("x")
    function = xla.function([x], images2neibs(x, sizes, steps, mode=mode))

    with pytest.raises(xla.GraphError, match=match):
        function(numpy.ones((1, 1, 6, 9)))


def test_the_gradient_of_overlapping_neighbourhoods_is_refused():
    x = tensor.ftensor4("x")
    gradient = aesara.grad((images2neibs(x, (2, 3), (1, 2)) ** 2).sum(), x)

    with pytest.raises(xla.DataDependentShape, match="the bounds of a slice must be known"):
        xla.function([x], gradient)(numpy.ones((1, 1, 4, 5), "float32"))
