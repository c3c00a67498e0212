"""What has gone wrong in compilers and in Aesara does not here.

Other traps are looked at where they belong: releases that compute wrong steps in test_health,
batches that are overwritten and dtypes in test_functions, donated arrays in test_storage.
"""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.tensor import inc_subtensor, set_subtensor

from bricks import xla

#: Some scatters abort the process in jaxlib 0.11.2, and all are slow.
SLICES = {
    "the gates of an LSTM": lambda x: tensor.tanh(x[:, :2]) * x[:, 2:4] + x[:, 4:],
    "rows backwards": lambda x: x[::-2] ** 2,
    "an element": lambda x: x[1, 2] ** 2,
    "bounds by shapes": lambda x: x[x.shape[0] // 2 :, : x.shape[1] - 1] ** 2,
    "an increment": lambda x: inc_subtensor(x[1:, :2], x[1:, 2:4]),
    "a value that is set": lambda x: set_subtensor(x[:, 2], x[:, 0] ** 2),
}


@pytest.mark.parametrize("name", SLICES)
def test_constant_slices_and_their_gradients_of_any_order_need_no_scatter(name):
    x = tensor.dmatrix("x")
    value = SLICES[name](x)
    slope = aesara.grad((value**2).sum(), x)
    second = aesara.grad((slope**2).sum(), x)
    f = xla.function([x], [value, slope, second])

    assert "stablehlo.scatter" not in f.export_for("cpu", numpy.ones((4, 6))).mlir_module()


def test_the_second_derivative_of_a_loop_needs_no_scatter():
    x, w = tensor.dmatrix("x"), tensor.dmatrix("w")
    states, _ = aesara.scan(
        lambda x, h: tensor.tanh(x[:2] + h.dot(w)) * x[2:],
        sequences=[x],
        outputs_info=[tensor.zeros_like(x[0, :2])],
    )
    slope = aesara.grad((states**2).sum(), w)
    second = aesara.grad((slope**2).sum(), w)
    f = xla.function([x, w], [slope, second])

    assert (
        "stablehlo.scatter"
        not in f.export_for("cpu", numpy.ones((3, 4)), numpy.eye(2)).mlir_module()
    )


def test_the_gradient_of_a_row_that_is_repeated_is_right_or_refused():
    x, row = tensor.dmatrix("x"), tensor.dmatrix("row")
    declared = tensor.addbroadcast(row, 0)
    values = numpy.arange(6.0).reshape(3, 2), numpy.ones((1, 2))

    slope = xla.function([x, row], aesara.grad((x * declared).sum(), row))(*values)

    numpy.testing.assert_array_equal(slope, [[6, 9]])
    shared_row = xla.shared(values[1], name="row")
    cost = (x * shared_row).sum()
    slope = aesara.grad(cost, shared_row)
    # With the cost, and also without it, when a parameter would be changed by the wrong gradient.
    for outputs, updates in (([cost, slope], []), (None, [(shared_row, shared_row - slope)])):
        with pytest.raises(xla.GraphError, match="'row' has length 1.*its gradient would be wrong"):
            xla.function([x], outputs, updates=updates)(values[0])


def test_the_gradient_of_a_loop_without_steps_is_zero():
    # Aesara's own evaluation fails on it.
    x, start, w = tensor.dmatrix("x"), tensor.dvector("start"), tensor.dmatrix("w")
    states, _ = aesara.scan(
        lambda x, h: tensor.tanh(x + h.dot(w)), sequences=[x], outputs_info=[start]
    )
    slopes = aesara.grad((states**2).sum(), [x, start, w])

    results = xla.function([x, start, w], [states, *slopes])(
        numpy.zeros((0, 2)), numpy.ones(2), numpy.eye(2)
    )

    assert [result.shape for result in results] == [(0, 2), (0, 2), (2,), (2, 2)]
    assert not any(result.any() for result in results)
