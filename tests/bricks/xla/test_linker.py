"""``aesara.function(..., mode='xla')`` computes with XLA."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.raise_op import Assert

from bricks import xla


def test_a_function_of_the_mode_gives_numpy_arrays():
    x = tensor.matrix("x")

    f = aesara.function([x], [x.dot(x.T), x.sum(axis=0)], mode="xla")

    product, total = f(numpy.array([[1, 2], [3, 4]], "float32"))
    assert product.tolist() == [[5, 11], [11, 25]]
    assert total.tolist() == [4, 6]
    assert type(product) is numpy.ndarray


def test_an_integer_that_reaches_a_shape_is_compiled_for():
    n = tensor.lscalar("n")
    f = aesara.function([n], tensor.arange(n) * 2, mode="xla")

    assert [f(n).tolist() for n in (2, 3)] == [[0, 2], [0, 2, 4]]


def test_a_condition_that_fails_raises():
    x = tensor.vector("x")
    f = aesara.function([x], Assert("negative")(x, tensor.all(x >= 0)), mode="xla")

    with pytest.raises(AssertionError, match="negative"):
        f(numpy.array([-1], "float32"))


def test_random_numbers_are_those_of_our_functions():
    draws = [
        compile_([], xla.RandomStream(1).normal((3,)))()
        for compile_ in (xla.function, lambda i, o: aesara.function(i, o, mode="xla"))
    ]

    numpy.testing.assert_array_equal(*draws)
