"""Graphs as lists of their variables."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import aesara
import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_array_equal

from bricks import xla
from bricks.annotations import Annotation, add_annotation
from bricks.base import Brick, application
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, apply_dropout
from bricks.roles import INPUT, OUTPUT, PARAMETER, PERSISTENT, add_role
from bricks.utils import shared_floatx, shared_floatx_zeros


class Scale(Brick):
    def _allocate(self):
        self.parameters.append(shared_floatx(numpy.float32(3), name="factor"))

    @application(inputs=["x"], outputs=["scaled"])
    def apply(self, x, application_call):
        scaled = x * self.parameters[0]
        application_call.add_auxiliary_variable(scaled.sum(), name="total")
        return scaled


@pytest.fixture(params=["xla", "py"])
def backend(request):
    return request.param


def test_variables_are_sorted_into_kinds():
    x, y = tensor.matrix("x"), tensor.vector("y")
    W, state = shared_floatx_zeros((2, 2), name="W"), shared_floatx_zeros((2,), name="state")
    add_role(W, PARAMETER)
    add_role(state, PERSISTENT)
    hidden = tensor.dot(x, W) + y
    graph = ComputationGraph([hidden * state])

    assert set(graph.inputs) == {x, y}
    assert set(graph.shared_variables) == {W, state}
    assert graph.parameters == [W]
    assert hidden in graph.intermediary_variables
    assert not {x, y, graph.outputs[0]} & set(graph.intermediary_variables)
    assert graph.scans == graph.scan_variables == graph.auxiliary_variables == []
    places = {variable: place for place, variable in enumerate(graph.variables)}
    assert places[x] < places[hidden] < places[graph.outputs[0]]
    assert len(places) == len(graph.variables)


def test_variables_come_in_the_order_in_which_they_are_written():
    x, W, b, V = (tensor.matrix(name) for name in "xWbV")
    graph = ComputationGraph(tensor.dot(tensor.tanh(tensor.dot(x, W) + b), V))

    assert [variable.name for variable in graph.inputs] == ["x", "W", "b", "V"]


def test_a_graph_stands_for_the_list_of_its_variables():
    x = tensor.vector("x")
    y = Scale().apply(x)
    graph = ComputationGraph(y)

    assert list(graph) == graph.variables
    assert VariableFilter(roles=[OUTPUT], name="scaled")(graph) == [y]


def test_outputs_may_be_one_variable_or_several_and_must_be_variables():
    x = tensor.scalar("x")

    assert ComputationGraph(x).variables == [x]
    assert ComputationGraph((x, x + 1)).outputs[0] is x
    with pytest.raises(TypeError, match="`outputs` must be symbolic variables; got 3"):
        ComputationGraph([x, 3])


def test_a_graph_of_a_shared_variable_alone_has_all_its_lists():
    shared = shared_floatx_zeros((2,), name="shared")
    graph = ComputationGraph([shared])

    assert graph.variables == graph.shared_variables == [shared]
    assert graph.inputs == graph.scans == graph.scan_variables == []
    assert not graph.updates


def test_auxiliary_variables_follow_the_first_variable_of_their_annotation():
    brick = Scale()
    graph = ComputationGraph(brick.apply(tensor.vector("x")))

    names = [variable.name for variable in graph.variables]
    assert names.index("scale_apply_total") == names.index("scale_apply_x") + 1
    assert [variable.name for variable in graph.auxiliary_variables] == ["scale_apply_total"]


def test_updates_are_those_of_annotations_and_default_updates_of_keys():
    x, counter = tensor.vector("x"), shared_floatx(0, name="counter")
    noisy = x + xla.RandomStream(1, name="noise").normal(x.shape)
    note = Annotation()
    note.add_updates({counter: counter + 1})
    add_annotation(noisy, note)
    graph = ComputationGraph(noisy.sum())

    key = next(shared for shared in graph.shared_variables if shared.name == "noise.0")
    assert list(graph.updates) == [counter, key]
    assert graph.updates[key] is key.default_update


def test_two_updates_of_one_variable_are_refused():
    x, counter = tensor.vector("x"), shared_floatx(0, name="counter")
    y = x * 2
    for variable, value in ((x, counter + 1), (y, counter + 2)):
        note = Annotation()
        note.add_updates({counter: value})
        add_annotation(variable, note)

    with pytest.raises(ValueError, match="counter is to be updated in two ways"):
        ComputationGraph(y)


def test_inputs_come_by_name_when_names_are_unique():
    x, y = tensor.vector("x"), tensor.vector("y")

    assert ComputationGraph(x + y).dict_of_inputs() == {"x": x, "y": y}
    with pytest.raises(ValueError, match="each input must have a name of its own.*: x"):
        ComputationGraph(x + tensor.vector("x")).dict_of_inputs()
    with pytest.raises(ValueError, match="not unique: None"):
        ComputationGraph(x + tensor.vector()).dict_of_inputs()


def test_the_compiled_function_gives_outputs_and_applies_updates(backend):
    x, counter, other = tensor.vector("x"), shared_floatx(0), shared_floatx(5)
    y = x * 2
    note = Annotation()
    note.add_updates({counter: counter + 1})
    add_annotation(y, note)
    graph = ComputationGraph(y)

    function = graph.get_theano_function({other: other - 1}, backend=backend)

    assert_array_equal(function(numpy.float32([1, 2]))[0], [2, 4])
    function(numpy.float32([1, 2]))
    assert (counter.get_value(), other.get_value()) == (2, 3)


def test_a_snapshot_has_the_values_of_variables_with_roles_and_changes_nothing():
    x, brick = tensor.vector("x"), Scale()
    scaled = brick.apply(x)
    graph = apply_dropout(ComputationGraph(scaled), [scaled], 0.5)
    (key,) = graph.updates
    before = key.get_value()

    by_variable, by_name = (graph.get_snapshot({k: numpy.float32([1, 2])}) for k in (x, "x"))

    (inner,) = VariableFilter(roles=[INPUT])(graph.variables)
    (output,) = VariableFilter(roles=[OUTPUT])(graph.variables)
    assert_array_equal(by_name[inner], [1, 2])
    assert_array_equal(by_variable[output], [3, 6])
    assert_array_equal(by_variable[graph.outputs[0]], by_name[graph.outputs[0]])
    assert_array_equal(key.get_value(), before)
    with pytest.raises(ValueError, match="no value for input x. Did you mean 'xx'"):
        graph.get_snapshot({"xx": 1})


def test_dependence_on_inputs_is_known():
    x, shared = tensor.vector("x"), shared_floatx(1)
    apart, together = shared * 2, shared * x
    graph = ComputationGraph([apart, together])

    assert graph.has_inputs(x)
    assert graph.has_inputs(together)
    assert not graph.has_inputs(apart)
    assert not graph.has_inputs(apart)
    assert not graph.has_inputs(shared)


def test_variables_of_loops_are_listed_also_of_loops_in_loops():
    brick = Scale()

    def inner_loop(row):
        out, _ = aesara.scan(lambda element: brick.apply(element), sequences=[row])
        return out

    out, _ = aesara.scan(inner_loop, sequences=[tensor.matrix("x")])
    graph = ComputationGraph(out)

    assert len(graph.scans) == 1
    (found,) = VariableFilter(bricks=[Scale], roles=[OUTPUT])(graph.scan_variables)
    assert found.name == "scale_apply_scaled"


def test_graphs_pickle_and_copy_with_roles_annotations_and_updates():
    brick = Scale()
    y = brick.apply(tensor.vector("x"))
    graph = apply_dropout(ComputationGraph(y), [y], 0.5)

    for clone in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert list(map(str, clone.variables)) == list(map(str, graph.variables))
        assert [str(one) for one in clone.updates] == ["dropout/scale.apply.scaled.0"]
        assert [parameter.name for parameter in clone.parameters] == ["factor"]
        (auxiliary,) = clone.auxiliary_variables
        assert auxiliary not in graph.variables
        function = clone.get_theano_function(backend="py")
        assert set(function(numpy.ones(50, dtype="float32"))[0]) == {0, 6}


def test_the_order_of_variables_does_not_depend_on_the_hash_seed():
    code = """
from bricks.base import Brick, application
from aesara import tensor
from bricks.graph import ComputationGraph, apply_dropout, apply_noise
from bricks.filter import VariableFilter
from bricks.roles import INPUT
from bricks.utils import shared_floatx_zeros

class Sum(Brick):
    @application
    def apply(self, *terms):
        return sum(terms)

x = [tensor.matrix(f"x{i}") for i in range(9)]
W = [shared_floatx_zeros((3, 3), name=f"W{i}") for i in range(9)]
graph = ComputationGraph(Sum().apply(*[tensor.dot(a, b) for a, b in zip(x, W)]))
graph = apply_dropout(graph, VariableFilter(roles=[INPUT])(graph.variables), 0.5)
graph = apply_noise(graph, W[:3], 0.1)
print([str(v) for v in graph.variables], list(map(str, graph.updates)), graph.inputs)
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert len(outputs) == 1
    assert "dropout/sum.apply.terms_3" in outputs.pop()
