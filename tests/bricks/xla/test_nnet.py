"""Softmax, cross-entropy and what Aesara fuses them to, in two and more dimensions."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.tensor import nnet
from aesara.tensor.nnet import basic, blocksparse
from aesara.tensor.special import log_softmax, softmax

from bricks import xla

TARGETS = numpy.array([1, 0, 3])

#: of a matrix of scores and one target for each row
CASES = {
    "of a softmax": lambda x, t: nnet.categorical_crossentropy(softmax(x, axis=-1), t),
    "its mean": lambda x, t: nnet.categorical_crossentropy(softmax(x, axis=1), t).mean(),
    "with a bias": lambda x, t: nnet.categorical_crossentropy(softmax(x + x[0], axis=-1), t),
    "by log-softmax": lambda x, t: -log_softmax(x, axis=-1)[tensor.arange(t.shape[0]), t].sum(),
    "by the logarithm of a softmax": lambda x, t: (
        -tensor.log(softmax(x, axis=-1))[tensor.arange(t.shape[0]), t].mean()
    ),
    "fused": lambda x, t: list(nnet.crossentropy_softmax_argmax_1hot_with_bias(x, x[0] * 2, t)),
    "fused without the class": lambda x, t: list(nnet.crossentropy_softmax_1hot(x, t)),
    "fused with a bias": lambda x, t: list(nnet.crossentropy_softmax_1hot_with_bias(x, x[0], t)),
    "fused, the largest too": lambda x, t: list(
        nnet.crossentropy_softmax_max_and_argmax_1hot(x, t)
    )[:2],
    "with distributions": lambda x, t: nnet.categorical_crossentropy(
        softmax(x, axis=-1), softmax(2 * x[::-1], axis=-1)
    ),
    "binary": lambda x, t: nnet.binary_crossentropy(tensor.sigmoid(x), tensor.sigmoid(x[::-1])),
    "binary from scores": lambda x, t: nnet.sigmoid_binary_crossentropy(x, tensor.sigmoid(-x)),
    "a column of zeros in front": lambda x, t: basic.prepend_scalar_to_each_row(0.0, x),
}


def scores(rows, columns):
    return numpy.random.default_rng(rows).normal(size=(rows, columns))


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_aesara(name, assert_agrees):
    batches = [[scores(3, 4), TARGETS], [scores(1, 4), TARGETS[:1]]]

    assert_agrees(CASES[name], batches)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("function", [softmax, log_softmax])
def test_softmax_of_three_dimensions_and_its_gradients_are_those_of_aesara(
    function, axis, assert_agrees
):
    rng = numpy.random.default_rng(6)
    weights = rng.normal(size=(2, 3, 4))

    def weighted(x):
        return function(x, axis=axis) * weights

    assert_agrees(weighted, [[rng.normal(size=(2, 3, 4))], [numpy.zeros((2, 3, 4))]])


def test_softmax_of_one_element_is_1(assert_agrees):
    assert_agrees(lambda x: softmax(x, axis=-1), [[numpy.array([[3.0]])]])


def test_softmax_of_large_scores_does_not_overflow():
    x, t = tensor.dmatrix("x"), tensor.lvector("t")
    cost = nnet.categorical_crossentropy(softmax(x, axis=-1), t)
    outputs = [cost, aesara.grad(cost.sum(), x), log_softmax(x, axis=-1)]

    loss, slope, logarithms = xla.function([x, t], outputs)(
        numpy.array([[1000.0, 0.0]]), numpy.array([1])
    )

    numpy.testing.assert_allclose(loss, [1000])
    numpy.testing.assert_allclose(slope, [[1, -1]])
    numpy.testing.assert_allclose(logarithms, [[0, -1000]])


def test_the_cross_entropy_of_a_saturated_sigmoid_is_finite_and_so_is_its_slope():
    x, t = tensor.dvectors("x", "t")
    cost = nnet.binary_crossentropy(tensor.sigmoid(x), t)

    loss, slope = xla.function([x, t], [cost, aesara.grad(cost.sum(), x)])(
        numpy.array([-800.0, 800.0, 800.0]), numpy.array([1.0, 0.0, 1.0])
    )

    numpy.testing.assert_allclose(loss, [800, 800, 0])
    numpy.testing.assert_allclose(slope, [-1, 1, 0])


def test_the_second_derivative_of_a_softmax_is_that_of_aesara(assert_agrees):
    def curvature(x):
        slope = aesara.grad((softmax(x, axis=-1)[:, 0] ** 2).sum(), x)
        return aesara.grad((slope**2).sum(), x)

    assert_agrees(curvature, [[scores(2, 3)]], gradients=False)


def test_a_constant_is_put_in_front_of_each_row(assert_agrees):
    assert_agrees(basic.prepend_0_to_each_row, [[scores(2, 3)]], gradients=False)


def test_products_with_chosen_blocks_are_those_of_aesara(assert_agrees):
    rng = numpy.random.default_rng(7)
    y, weights, x = (rng.normal(size=s) for s in [(2, 2, 3), (4, 5, 2, 3), (2, 3, 2)])
    sources, targets = rng.integers(0, 4, size=(2, 3)), rng.integers(0, 5, size=(2, 2))

    assert_agrees(blocksparse.sparse_block_gemv, [[y, weights, x, sources, targets]])


def test_a_target_outside_the_classes_costs_nan():
    x, t = tensor.dmatrix("x"), tensor.lvector("t")
    cost = nnet.categorical_crossentropy(softmax(x, axis=-1), t)

    loss = xla.function([x, t], cost)(numpy.zeros((2, 3)), numpy.array([0, 3]))

    numpy.testing.assert_allclose(loss, [numpy.log(3), numpy.nan])
