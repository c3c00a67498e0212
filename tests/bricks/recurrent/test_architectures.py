"""The usual recurrent bricks; their values and gradients are checked in the contract of bricks."""

import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose, assert_array_equal

from bricks import Rectifier, xla
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian, Orthogonal
from bricks.model import Model
from bricks.recurrent import LSTM, GatedRecurrent, SimpleRecurrent
from bricks.roles import BIAS, INITIAL_STATE, WEIGHT


def parameters(brick):
    return {p.name: p.get_value() for p in brick.parameters}


def test_parameters_have_the_names_of_old():
    bricks = [SimpleRecurrent(2), LSTM(2), GatedRecurrent(2)]
    for brick in bricks:
        brick.allocate()

    assert [[(p.name, p.get_value().shape) for p in brick.parameters] for brick in bricks] == [
        [("W", (2, 2)), ("initial_state", (2,))],
        [
            ("W_state", (2, 8)),
            ("W_cell_to_in", (2,)),
            ("W_cell_to_forget", (2,)),
            ("W_cell_to_out", (2,)),
            ("initial_state", (2,)),
            ("initial_cells", (2,)),
        ],
        [("state_to_state", (2, 2)), ("state_to_gates", (2, 4)), ("initial_state", (2,))],
    ]
    names = {role: VariableFilter(roles=[role])(bricks[1].parameters) for role in (WEIGHT, BIAS)}
    assert [len(found) for found in names.values()] == [4, 0]
    assert bricks[1].initial_cells in VariableFilter(roles=[INITIAL_STATE])(bricks[1].parameters)


@pytest.mark.parametrize("brick", [SimpleRecurrent, LSTM, GatedRecurrent])
def test_weights_may_be_orthogonal_and_states_begin_at_zero(brick):
    brick = brick(4, weights_init=Orthogonal(), seed=1)
    brick.initialize()

    for name, value in parameters(brick).items():
        rows = numpy.atleast_2d(value).astype("float64")
        expected = 0 if name.startswith("initial") else numpy.eye(len(rows))
        assert_allclose(rows @ rows.T, expected * numpy.eye(len(rows)), atol=1e-5, err_msg=name)


def test_initial_states_are_trained():
    brick = LSTM(2, weights_init=IsotropicGaussian(0.5))
    brick.initialize()
    x = tensor.tensor3("x")
    states, cells = brick.apply(x, return_initial_states=True)
    brick.initial_state_.set_value(numpy.array([1, 2], "float32"))
    brick.initial_cells.set_value(numpy.array([3, 4], "float32"))

    graph = ComputationGraph([states, cells])
    function = xla.function([x], [states, cells])
    states_, cells_ = function(numpy.zeros((1, 3, 8), "float32"))

    assert_array_equal(states_[0], [[1, 2]] * 3)
    assert_array_equal(cells_[0], [[3, 4]] * 3)
    assert {brick.initial_state_, brick.initial_cells} <= set(graph.parameters)
    assert "/lstm.initial_cells" in Model(states).get_parameter_dict()


def test_peepholes_may_be_left_out_and_activations_be_chosen():
    brick = LSTM(
        1,
        activation=Rectifier(),
        gate_activation=Rectifier(name="gate"),
        use_peepholes=False,
        weights_init=Constant(0),
    )
    brick.initialize()
    x = tensor.tensor3("x")

    states, cells = xla.function([x], brick.apply(x))(
        numpy.array([[[2, 3, 5, 7]], [[1, 2, -1, 0.5]]], "float32")
    )

    # cells: 2 × 5, then 2 × 10 + 1 × 0; states: 7 × 10, then 0.5 × 20
    assert cells.ravel().tolist() == [10, 20]
    assert states.ravel().tolist() == [70, 10]
    assert list(parameters(brick)) == ["W_state", "initial_state", "initial_cells"]
    with pytest.raises(AttributeError, match="/lstm has no parameter 'W_cell_to_in'; it has W_st"):
        _ = brick.W_cell_to_in


def test_one_brick_may_be_both_activations():
    tanh = Rectifier()

    assert list(LSTM(2, tanh, tanh).children) == [tanh]
    assert list(GatedRecurrent(2, tanh, tanh).children) == [tanh]


def test_dimensions_are_told_by_name():
    assert LSTM(3).get_dims(["inputs", "states", "cells", "mask"]) == [12, 3, 3, 0]
    assert GatedRecurrent(3).get_dims(["inputs", "gate_inputs", "states", "mask"]) == [3, 6, 3, 0]
    with pytest.raises(ValueError, match="/lstm: `dim` is not set yet"):
        LSTM().get_dim("inputs")
    for brick in (SimpleRecurrent(3), LSTM(3), GatedRecurrent(3)):
        with pytest.raises(ValueError, match="the dimension of 'inptus' is not known"):
            brick.get_dim("inptus")


def test_biases_and_sizes_that_are_none_are_refused_in_words():
    with pytest.raises(ValueError, match="LSTM .* has no biases"):
        LSTM(3, use_bias=True)
    with pytest.raises(ValueError, match="`dim` must be a positive integer; got -1"):
        GatedRecurrent(-1).allocate()
    with pytest.raises(ValueError, match="'dim' not set"):
        SimpleRecurrent().initialize()


@pytest.mark.parametrize("dtype", ["int64", "bool", "float64"])
def test_masks_may_be_of_any_numbers(dtype):
    brick = SimpleRecurrent(2, weights_init=Constant(0))
    brick.initialize()
    x, mask = tensor.tensor3("x"), tensor.matrix("mask", dtype=dtype)

    states = xla.function([x, mask], brick.apply(x, mask=mask))(
        numpy.ones((2, 2, 2), "float32"), numpy.array([[1, 1], [1, 0]], dtype)
    )

    assert states.dtype == "float32"
    assert_allclose(states, numpy.full((2, 2, 2), numpy.tanh(1)), rtol=1e-5)


@pytest.mark.parametrize("ndim", [1, 3])
@pytest.mark.parametrize("brick", [SimpleRecurrent, LSTM, GatedRecurrent])
def test_masks_of_other_axes_are_refused(brick, ndim):
    brick = brick(3)
    mask = tensor.TensorType("float32", (None,) * ndim)("mask")
    given = {name: tensor.tensor3(name) for name in brick.apply.sequences if name != "mask"}

    with pytest.raises(ValueError, match=rf"^{brick.path}\.apply: `mask` must .* \(time, batch\)"):
        brick.apply(**given, mask=mask)


@pytest.mark.parametrize("ndim", [2, 4])
@pytest.mark.parametrize("brick", [SimpleRecurrent, LSTM, GatedRecurrent])
def test_sequences_without_a_batch_are_refused(brick, ndim):
    brick = brick(3)
    given = {
        name: tensor.TensorType("float32", (None,) * ndim)(name)
        for name in brick.apply.sequences
        if name != "mask"
    }

    words = r"in each step `inputs` and `states` must have the same axes, \(batch, feature\); got"
    with pytest.raises(ValueError, match=rf"^{brick.path}\.apply: {words}"):
        brick.apply(**given)
