import numpy
from aesara import tensor

from bricks import xla
from bricks.attention import softmax_where


def test_what_is_not_allowed_weighs_nothing_and_a_row_without_any_is_zero():
    energies, allowed = tensor.matrix("energies"), tensor.bmatrix("allowed")
    weights = softmax_where(energies, allowed)
    gradient = tensor.grad((weights * tensor.arange(3)).sum(), energies)
    values = numpy.array([[1, 1e30, 2], [5, 6, 7], [-3e4, 9, 9]], "float32")
    where = numpy.array([[1, 0, 1], [0, 0, 0], [1, 0, 0]], "int8")

    found, slopes = xla.function([energies, allowed], [weights, gradient])(values, where)

    share = 1 / (1 + numpy.exp(1))
    expected = [[share, 0, 1 - share], [0, 0, 0], [1, 0, 0]]
    numpy.testing.assert_allclose(found, expected, rtol=1e-6)
    slope = 2 * share * (1 - share)
    numpy.testing.assert_allclose(slopes, [[-slope, 0, slope], [0] * 3, [0] * 3], atol=1e-6)
