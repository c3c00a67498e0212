"""The device is what the configuration says."""

import jax
import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.config import config
from bricks.xla.devices import chosen_device, place


@pytest.fixture(autouse=True)
def default_device():
    yield
    del config.device


def test_jax_chooses_by_default():
    assert chosen_device() is None


def test_a_named_device_is_used():
    config.device = "cpu:0"
    x = tensor.vector("x")
    weights = xla.shared(numpy.ones(2, "float32"))

    result = xla.function([x], x * weights, on_device=True)(numpy.ones(2, "float32"))

    assert result.devices() == {jax.devices("cpu")[0]}
    assert result.tolist() == [1, 1]


def test_a_missing_device_is_named_beside_those_that_exist():
    config.device = "cpu:99"

    with pytest.raises(ValueError, match="no device 'cpu:99'; JAX finds .*cpu"):
        chosen_device()


def test_wide_dtypes_are_placed_as_they_are():
    assert place(numpy.zeros(2, "int64")).dtype == "int64"
