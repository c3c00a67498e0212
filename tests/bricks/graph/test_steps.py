"""What steps of loops have to do with the graph around them."""

import aesara
import numpy
import pytest
from aesara import tensor

from bricks import Tanh, xla
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.graph.steps import element_of_step, lengths_outside, loops_around
from bricks.roles import OUTPUT


@pytest.fixture
def nested():
    """A loop over rows in a loop over matrices, and the variable of the innermost step."""
    x = tensor.dtensor4("x")

    def matrices(matrix):
        return aesara.scan(lambda row: Tanh().apply(row), [matrix])[0]

    graph = ComputationGraph(aesara.scan(matrices, [x])[0])
    (variable,) = VariableFilter(roles=[OUTPUT])(graph.scan_variables)
    return graph, variable


def test_the_loops_around_a_variable_are_found_the_outermost_first(nested):
    graph, variable = nested

    loops = loops_around(variable, graph.scan_nodes)

    assert len(loops) == 2
    assert loops[0] is graph.scan_nodes[0]
    assert loops_around(graph.inputs[0], graph.scan_nodes) == []


def test_lengths_of_a_step_are_known_before_its_loops(nested):
    graph, variable = nested
    loops = loops_around(variable, graph.scan_nodes)

    lengths = lengths_outside(variable, loops, over_steps=True)

    found = xla.function(graph.inputs, [tensor.stack(lengths)])(numpy.zeros((2, 3, 4, 5)))
    assert found[0].tolist() == [2, 3, 4, 5]
    assert len(lengths_outside(variable, loops)) == 2


def test_elements_reach_the_steps_of_a_loop_in_a_loop(nested):
    graph, variable = nested
    factors = tensor.dtensor3("factors")
    element = element_of_step(element_of_step(factors))

    new = graph.replace({variable: variable + element[:, None]})
    x, factors_ = numpy.zeros((2, 3, 4, 5)), numpy.arange(24.0).reshape(2, 3, 4)
    values = xla.function([*graph.inputs, factors], new.outputs[0])(x, factors_)

    numpy.testing.assert_array_equal(values, numpy.repeat(factors_[..., None], 5, axis=3))


def test_an_element_outside_of_a_loop_is_refused_in_words(nested):
    graph, variable = nested
    vector = tensor.dvector("vector")
    output = graph.outputs[0]
    with pytest.raises(ValueError, match="element of vector, but stands in no step of a loop, or"):
        graph.replace({output: output + element_of_step(vector)})
    with pytest.raises(ValueError, match="it means something only in a replacement"):
        xla.function([vector], element_of_step(vector), backend="py")(numpy.ones(2))
