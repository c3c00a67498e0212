"""Other long short-term memories; values and gradients are checked in the contract of bricks."""

import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose

from bricks import xla
from bricks.filter import VariableFilter
from bricks.initialization import IsotropicGaussian
from bricks.recurrent import LayerNormalizedLSTM, ProjectedLSTM
from bricks.roles import BIAS, WEIGHT


def test_a_projection_makes_the_states_smaller_and_the_weights_fewer():
    brick = ProjectedLSTM(5, 2, weights_init=IsotropicGaussian())
    brick.initialize()

    shapes = {p.name: p.get_value().shape for p in brick.parameters}
    assert shapes["W_state"] == (2, 20)
    assert shapes["W_projection"] == (5, 2)
    assert (shapes["initial_state"], shapes["initial_cells"]) == ((2,), (5,))
    assert brick.get_dims(["inputs", "states", "cells"]) == [20, 2, 5]


def test_the_size_of_a_projection_is_needed():
    with pytest.raises(ValueError, match="'projection_dim' not set"):
        ProjectedLSTM(5).allocate()
    with pytest.raises(ValueError, match="`projection_dim` must be a positive integer; got 0.5"):
        ProjectedLSTM(5, 0.5).allocate()


def test_normalized_inputs_may_be_scaled_and_shifted_as_one_likes():
    brick = LayerNormalizedLSTM(3, weights_init=IsotropicGaussian())
    brick.initialize()
    x = tensor.matrix("x")
    states, cells = tensor.matrix("states"), tensor.matrix("cells")
    function = xla.function(
        [x, states, cells], brick.apply(x, states, cells, iterate=False), on_unused_input="ignore"
    )
    rng = numpy.random.RandomState(0)
    given = [rng.standard_normal(shape).astype("float32") for shape in [(2, 12), (2, 3), (2, 3)]]

    usual = function(*given)
    moved = function(given[0] * 7 + 5, *given[1:])

    for one, other in zip(usual, moved, strict=True):
        assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_scales_begin_at_one_are_no_weights_and_shifts_begin_at_zero():
    brick = LayerNormalizedLSTM(2)
    brick.allocate()

    begin = {
        p.name: set(p.get_value().tolist())
        for p in brick.parameters
        if p.name.endswith(("scale", "shift"))
    }
    assert begin == {
        "inputs_scale": {1},
        "states_scale": {1},
        "cells_scale": {1},
        "shift": {0},
        "cells_shift": {0},
    }
    assert [p.name for p in VariableFilter(roles=[WEIGHT])(brick.parameters)] == ["W_state"]
    biases = VariableFilter(roles=[BIAS])(brick.parameters)
    assert [p.name for p in biases] == ["shift", "cells_shift"]
