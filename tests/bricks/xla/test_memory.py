"""What memory a compiled function needs, as XLA planned it."""

import numpy
import pytest
from aesara import tensor

from bricks import xla


def test_arguments_outputs_and_donated_state_are_counted():
    x, weights = tensor.matrix("x"), xla.shared(numpy.ones((8, 8), "float32"), name="W")
    step = xla.function([x], x.sum(), updates={weights: weights - x.T.dot(x)})

    use = step.memory(numpy.ones((16, 8), "float32"))

    assert use.arguments == 4 * (16 * 8 + 8 * 8)
    assert use.donated == 4 * 8 * 8
    # The outputs, and a table of where they are.
    assert 0 <= use.outputs - 4 * (8 * 8 + 1) < 100
    assert use.total == use.arguments + use.outputs - use.donated + use.temporary


def test_temporary_memory_grows_with_what_must_be_kept():
    x = tensor.matrix("x")
    function = xla.function([x], tensor.tanh(x.dot(x.T)).dot(x))

    small, large = (function.memory(numpy.ones((n, 4), "float32")).temporary for n in (64, 128))

    assert small >= 4 * 64 * 64
    assert large >= 4 * 128 * 128
    assert not function.num_compilations


def test_an_integer_that_reaches_a_shape_may_be_among_the_arguments():
    n = tensor.lscalar("n")
    function = xla.function([n], tensor.arange(n) * 2)

    assert function.memory(100).outputs >= 800


def test_only_what_xla_compiles_can_be_measured():
    x = tensor.vector("x")

    with pytest.raises(RuntimeError, match="compiled by 'py'; only what XLA compiles can be meas"):
        xla.function([x], x * 2, backend="py").memory(numpy.ones(3))
