"""The node of a draw knows the lengths that its size says, at little cost."""

import time

import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.xla.variates import size_vector


def shape_of(size, **parameters):
    return xla.RandomStream(1).normal(size, **parameters).type.shape


def test_lengths_are_known_from_numbers_and_from_the_types_of_tensors():
    x = tensor.TensorType("float32", shape=(None, 1))("x")
    constant = numpy.array([4, 5])

    assert shape_of((2, 3)) == (2, 3)
    assert shape_of(7) == (7,)
    assert shape_of(()) == ()
    assert shape_of(x.shape) == (None, 1)
    assert shape_of((x.shape[0], x.shape[1], 1)) == (None, 1, 1)
    assert shape_of(constant) == (4, 5)
    assert shape_of(None, avg=constant.astype("float32")) == (2,)
    assert shape_of(tensor.concatenate([x.shape, x.shape])) == (None,) * 4
    assert xla.RandomStream(1).multinomial((2,), 5, [0.5, 0.5]).type.shape == (2, 2)
    assert xla.RandomStream(1).permutation((2,), 3).type.shape == (2, 3)


def test_a_draw_in_the_shape_of_a_deep_net_takes_hardly_any_time_to_build():
    deep = tensor.matrix("x")
    for _ in range(200):
        deep = tensor.tanh(deep.dot(deep))
    stream = xla.RandomStream(1)

    start = time.process_time()
    for _ in range(20):
        stream.uniform(deep.shape)
    # Aesara alone takes 150 ms for each; here it is one third of one.
    assert (time.process_time() - start) / 20 < 0.02


def test_a_size_of_unknown_length_or_dtype_is_refused_in_words():
    with pytest.raises(ValueError, match="`size` must have a known number of axes; got n"):
        size_vector(tensor.lvector("n"))
    with pytest.raises(TypeError, match="`size` must be integers, or a vector of integers; got"):
        size_vector(tensor.fvector("x"))
    with pytest.raises(TypeError, match="`size` must be integers, or a vector of integers; got"):
        size_vector(tensor.lmatrix("x"))


@pytest.mark.parametrize(("size", "length"), [((3,), 4), ((2, 3), 4), ((), 3), ((4, 1), 4)])
def test_parameters_that_do_not_fit_the_size_are_refused_in_words(size, length):
    stream = xla.RandomStream(1)

    with pytest.raises(ValueError, match="does not broadcast to the size .*Give a larger size"):
        stream.normal(size, numpy.zeros(length, "float32"))
    assert stream.keys == []


def test_a_choice_of_size_is_any_form_of_integers():
    n = tensor.iscalar("n")
    draws = [
        xla.RandomStream(1).uniform(size)
        for size in ([2, numpy.int64(3)], (n, 3), numpy.array([2, 3]), tensor.stack([n, 3]))
    ]

    assert [value.shape for value in xla.function([n], draws)(2)] == [(2, 3)] * 4
