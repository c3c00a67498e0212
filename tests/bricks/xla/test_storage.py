"""Shared variables live on the device and look like numpy arrays from outside."""

import copy
import pickle

import aesara
import jax
import numpy
import pytest
from aesara import tensor

from bricks import xla


@pytest.fixture
def weights():
    """A shared variable whose value is on the device."""
    variable = xla.shared(numpy.array([1, 2], "float32"), name="W")
    xla.function([], updates={variable: variable + 1})()
    assert isinstance(variable.container.storage.device, jax.Array)
    return variable


def double(variable):
    """Compile a function that doubles a variable in place."""
    return xla.function([], updates={variable: variable * 2})


def test_a_value_is_an_array_of_the_caller(weights):
    for borrow in (False, True):
        value = weights.get_value(borrow=borrow)
        assert type(value) is numpy.ndarray
        value[...] = 0
        assert weights.get_value().tolist() == [2, 3]


def test_a_value_taken_before_a_call_outlives_it(weights):
    value = weights.get_value(borrow=True)

    double(weights)()

    assert value.tolist() == [2, 3]
    assert weights.get_value().tolist() == [4, 6]


def test_a_value_that_was_set_is_a_copy(weights):
    value = numpy.array([5, 6], "float32")

    weights.set_value(value, borrow=True)
    value[...] = 0

    assert weights.get_value().tolist() == [5, 6]


def test_one_array_in_two_variables_is_given_up_once_for_each(weights):
    other = xla.shared(numpy.zeros(2, "float32"))
    value = jax.numpy.ones(2, "float32")
    weights.set_value(value)
    other.set_value(value)

    xla.function([], updates=[(weights, weights + 1), (other, other + 2)])()

    assert (weights.get_value().tolist(), other.get_value().tolist()) == ([2, 2], [3, 3])
    assert value.tolist() == [1, 1]


def test_a_value_of_another_type_is_refused(weights):
    with pytest.raises(TypeError, match="float64"):
        weights.set_value(numpy.zeros(2))
    with pytest.raises(TypeError, match=r"got float32 of shape \(2, 2\). Give it as many axes"):
        weights.set_value(numpy.zeros((2, 2), "float32"))


def test_a_value_of_another_length_may_be_set(weights):
    f = double(weights)

    weights.set_value(numpy.ones(3, "float32"))
    f()

    assert weights.get_value().tolist() == [2, 2, 2]


def test_a_declared_length_is_kept():
    row = xla.shared(numpy.zeros((1, 3), "float32"), shape=(1, None))

    assert row.type.shape == (1, None)
    with pytest.raises(TypeError, match="shape"):
        row.set_value(numpy.zeros((2, 3), "float32"))


def test_zeroing_keeps_shape_and_dtype(weights):
    weights.zero()

    assert weights.get_value().tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint32", "bool", "int8"])
def test_dtypes_are_kept_on_the_device(dtype):
    variable = xla.shared(numpy.ones(2, dtype))
    xla.function([], variable * 1, updates={variable: variable})()

    assert variable.get_value().dtype == dtype


def test_pickles_and_copies_hold_numpy_arrays_of_their_own(weights):
    f = double(weights)
    for twin in (pickle.loads(pickle.dumps(weights)), copy.deepcopy(weights)):
        assert type(list.__getitem__(twin.container.storage, 0)) is numpy.ndarray
        before = twin.get_value()
        f()
        numpy.testing.assert_array_equal(twin.get_value(), before)
        double(twin)()
        numpy.testing.assert_array_equal(twin.get_value(), 2 * before)


def test_a_clone_shares_the_value(weights):
    clone = weights.clone(name="clone")

    weights.set_value(numpy.array([7, 8], "float32"))

    assert clone.get_value().tolist() == [7, 8]


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "xla"])
def test_a_function_of_aesara_reads_and_updates_the_value(weights, mode):
    f = aesara.function([], weights * 10, updates={weights: weights + 1}, mode=mode)

    assert f().tolist() == [20, 30]
    double(weights)()
    assert f().tolist() == [60, 80]
    assert weights.get_value().tolist() == [7, 9]


def test_a_symbolic_value_is_refused():
    with pytest.raises(TypeError, match="`value` must be an array, not a symbolic variable"):
        xla.shared(tensor.scalar())


def test_a_value_that_is_no_array_of_numbers_is_refused():
    with pytest.raises(TypeError, match="must be an array of numbers; got object"):
        xla.shared(object())


def test_a_variable_on_the_host_is_not_lost():
    assert not xla.state_is_lost([xla.shared(1.0), aesara.shared(1.0)])


@pytest.mark.parametrize("value", [0.01, 1, numpy.float32(0.5), True])
def test_a_rate_is_set_to_a_number_of_python(value):
    rate = xla.shared(numpy.float32(0.1), "rate")

    rate.set_value(value)

    assert rate.get_value().dtype == numpy.float32
    assert rate.get_value() == numpy.float32(value)


def test_an_array_of_a_wider_dtype_is_refused_with_what_to_do():
    weights = xla.shared(numpy.zeros(3, "float32"), "W")

    message = r"'W' holds .*float32.*; got float64 of shape \(3,\)\. .*astype"
    with pytest.raises(TypeError, match=message):
        weights.set_value(numpy.zeros(3))
