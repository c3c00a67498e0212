"""Graphs whose parameters are slices of one vector."""

import aesara
import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose, assert_array_equal

from bricks import xla
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, collect_parameters
from bricks.roles import COLLECTED, COLLECTOR, PARAMETER, add_role
from bricks.utils import shared_floatx


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_the_vector_holds_the_values_and_gets_the_gradients_in_order(backend):
    x = tensor.dvector("x")
    W = shared_floatx([[1, 2, 3], [4, 5, 6]], dtype="float64", name="W")
    b = shared_floatx([7, 8, 9], dtype="float64", name="b")
    add_role(W, PARAMETER)
    cost = ((tensor.dot(x, W) + b) ** 2).sum()

    new = collect_parameters(ComputationGraph(cost), [W, b])

    (vector,) = new.shared_variables
    assert vector.tag.roles == [COLLECTOR]
    assert new.parameters == [vector]
    assert_array_equal(vector.get_value(), [1, 2, 3, 4, 5, 6, 7, 8, 9])
    pieces = VariableFilter(roles=[COLLECTED])(new.variables)
    assert {piece.tag.replacement_of for piece in pieces} == {W, b}
    gradient = aesara.grad(new.outputs[0], vector)
    value, got = xla.function([x], [new.outputs[0], gradient], backend=backend)([1.0, 2.0])
    out = numpy.array([1.0, 2.0]) @ W.get_value() + b.get_value()
    assert_allclose(value, (out**2).sum())
    assert_allclose(got, numpy.concatenate([2 * out, 4 * out, 2 * out]))


def test_no_parameters_or_several_dtypes_are_refused():
    x = tensor.dvector("x")
    W, V = shared_floatx(1, dtype="float32"), shared_floatx(1, dtype="float64")
    graph = ComputationGraph(x * W * V)

    with pytest.raises(ValueError, match="must be shared variables of one dtype; got 2 of float32"):
        collect_parameters(graph, [W, V])
    with pytest.raises(ValueError, match="got 0 of no dtype"):
        collect_parameters(graph, [])
