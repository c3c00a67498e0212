"""Replacing variables of graphs, all in one pass."""

import aesara
import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose, assert_array_equal

from bricks import xla
from bricks.annotations import get_annotations
from bricks.base import Brick, application
from bricks.filter import VariableFilter, get_application_call
from bricks.graph import ComputationGraph
from bricks.roles import COST, INPUT, OUTPUT
from bricks.utils import shared_floatx


class Square(Brick):
    @application(inputs=["x"], outputs=["squared"])
    def apply(self, x, application_call):
        counter = shared_floatx(0, name="counter")
        application_call.add_auxiliary_variable(x.sum(), name="total", roles=[COST])
        application_call.updates[counter] = counter + x.sum()
        application_call.metadata["input"] = x
        return x**2


@pytest.fixture
def x():
    return tensor.dscalar("x")


def value(graph, given=None, backend="xla", outputs=None):
    outputs = graph.outputs if outputs is None else outputs
    inputs = ComputationGraph(outputs).inputs
    function = xla.function(inputs, outputs, backend=backend)
    result = function(*[(given or {})[variable.name] for variable in inputs])
    return result[0] if len(outputs) == 1 else result


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_a_replacement_may_contain_what_it_replaces(x, backend):
    h = x + 1
    graph = ComputationGraph(h**2 + h)

    new = graph.replace({h: 10 * h})

    assert value(new, {"x": 2.0}, backend) == 30**2 + 30
    assert value(graph, {"x": 2.0}, backend) == 12


def test_all_replacements_are_seen_by_each_other(x):
    h = x + 1
    y = h * 3
    graph = ComputationGraph(y + h)

    new = graph.replace([(y, y + h), (h, 2 * h), (x, x * 10)])

    # h = 2 (10 x + 1), y = 3 h + h
    assert value(new, {"x": 1.0}) == 4 * 22 + 22


def test_a_part_of_a_replacement_that_depends_on_the_old_variable_sees_the_old_one(x):
    h = x + 1
    below = h * 3
    graph = ComputationGraph([h, below])

    new = graph.replace({h: h + below})

    # Inside the replacement `below` is 3 h as it was; outside, 3 times the replacement.
    assert value(new, {"x": 1.0}) == [2 + 6, 3 * (2 + 6)]


def test_inputs_outputs_and_shared_variables_can_be_replaced(x):
    W, y = aesara.shared(3.0, name="W"), tensor.dscalar("y")
    out = x * W
    graph = ComputationGraph(out)

    assert value(graph.replace({x: y}), {"y": 2.0}) == 6
    assert value(graph.replace({W: W + 1}), {"x": 2.0}) == 8
    assert value(graph.replace({out: out - 1}), {"x": 2.0}) == 5
    assert value(graph.replace({x: 5.0})) == 15
    assert graph.replace({W: W + 1}).shared_variables == [W]


def test_an_output_of_several_can_be_replaced_by_another_of_the_same_operation():
    x = tensor.dvector("x")
    largest, place = tensor.max_and_argmax(x)
    graph = ComputationGraph(largest * 2)

    new = graph.replace({largest: largest + place})

    assert value(new, {"x": numpy.array([1.0, 5.0])}) == 12


def test_replacements_in_a_circle_are_refused_in_words():
    x, y = tensor.dscalar("x"), tensor.dscalar("y")
    h = x + 1
    graph = ComputationGraph(h + y)

    with pytest.raises(ValueError, match="the replacements of (x, y|y, x) contain each other"):
        graph.replace({x: y, y: x})
    with pytest.raises(ValueError, match="the replacements of .* contain each other"):
        graph.replace({x: x + h, h: 2 * h})


def test_a_replacement_of_another_type_is_refused_in_words(x):
    with pytest.raises(TypeError, match="x of type .*float64.* cannot be replaced by v .*Cast or"):
        ComputationGraph(x + 1).replace({x: tensor.dvector("v")})
    with pytest.raises(TypeError, match="x of type .* cannot be replaced by text of type str"):
        ComputationGraph(x + 1).replace({x: "text"})


def test_missing_and_auxiliary_variables_are_warned_of(x):
    stranger = tensor.dscalar("stranger")
    graph = ComputationGraph(Square().apply(x))
    (auxiliary,) = graph.auxiliary_variables

    with pytest.warns(UserWarning, match="stranger cannot be replaced: it is not a part"):
        graph.replace({stranger: x})
    with pytest.warns(UserWarning, match="square_apply_total is an auxiliary variable"):
        new = graph.replace({auxiliary: auxiliary * 2})
    replaced = get_application_call(new.outputs[0]).auxiliary_variables
    assert replaced[0] in new.variables
    assert value(new, {"x": 3.0}, outputs=replaced) == 6


def test_names_roles_and_bricks_are_kept_and_calls_copied_with_what_belongs_to_them(x):
    brick = Square()
    out = brick.apply(x)
    graph = ComputationGraph(out)

    new = graph.replace({x: x * 10})

    (new_out,) = VariableFilter(roles=[OUTPUT], applications=[brick.apply])(new.variables)
    assert new_out is new.outputs[0] is not out
    assert new_out.name == "square_apply_squared"
    old_call, call = get_application_call(out), get_application_call(new_out)
    assert get_annotations(new_out) == [brick, call]
    assert call is not old_call
    (new_input,) = VariableFilter(roles=[INPUT])(new.variables)
    assert get_application_call(new_input) is call
    assert call.metadata["input"] is new_input
    (auxiliary,) = new.auxiliary_variables
    assert value(new, {"x": 2.0}, outputs=[auxiliary]) == 20
    assert list(new.updates) == list(graph.updates)
    assert value(new, {"x": 2.0}, outputs=list(new.updates.values())) == 20
    assert value(graph, {"x": 2.0}, outputs=list(graph.updates.values())) == 2


def test_aggregation_schemes_speak_of_the_new_variables(x):
    class Scheme:
        def __init__(self, numerator, denominator):
            self.numerator, self.denominator = numerator, denominator

    numerator = x * 2
    mean = numerator / 4
    mean.tag.aggregation_scheme = Scheme(numerator, 4)

    new = ComputationGraph(mean).replace({x: x + 1})

    scheme = new.outputs[0].tag.aggregation_scheme
    assert value(new, {"x": 1.0}, outputs=[scheme.numerator]) == 4
    assert scheme.denominator == 4
    assert mean.tag.aggregation_scheme.numerator is numerator


def test_gradients_of_the_new_graph_are_right():
    x, W = tensor.dvector("x"), aesara.shared(numpy.array([1.0, 2.0]), name="W")
    h = tensor.tanh(x * W)
    mask = tensor.dvector("mask")
    graph = ComputationGraph((h**2).sum() + h.sum())

    new = graph.replace({h: h * mask, W: W * 2})
    gradient = aesara.grad(new.outputs[0], W)

    x_, mask_, W_ = numpy.array([0.3, -0.2]), numpy.array([2.0, 0.5]), W.get_value()
    h_ = numpy.tanh(x_ * 2 * W_)
    expected = (2 * h_ * mask_ + 1) * mask_ * (1 - h_**2) * 2 * x_
    got = value(new, {"x": x_, "mask": mask_}, outputs=[gradient])
    assert_allclose(got, expected, rtol=1e-12)


def test_long_chains_need_no_recursion(x):
    y = x
    for _ in range(3000):
        y = y + 1
    new = ComputationGraph(y).replace({x: x * 2})

    assert len(new.variables) == len(ComputationGraph(y).variables) + 2


def test_the_variable_that_all_use_is_cloned_once(x):
    h = x + 1
    y = h
    for _ in range(40):
        # Two paths at each step: 2 ** 40 paths in all.
        y = y * h + y
    new = ComputationGraph(y).replace({x: x * 2, h: h + 1})

    assert len(new.variables) < 200


class TestLoops:
    """Replacements in and around loops, computed by Aesara's own implementation."""

    def loop(self, x, W):
        """Sum up: state = tanh(state W) + x, with what is in tanh marked as an input."""
        brick = Square(name="square")

        def step(x_t, state):
            return brick.apply(state * W) + x_t

        states, _ = aesara.scan(step, sequences=[x], outputs_info=[tensor.zeros((), "float64")])
        return states

    def expected(self, x, W, on_input=lambda h: h):
        state, states = 0.0, []
        for x_t in x:
            state = on_input(state * W) ** 2 + x_t
            states.append(state)
        return states

    def test_what_a_loop_takes_can_be_replaced(self):
        x, W = tensor.dvector("x"), aesara.shared(0.5, name="W")
        graph = ComputationGraph(self.loop(x, W))

        new = graph.replace({W: W * 2, x: x + 1})

        x_ = numpy.array([1.0, 2.0, 3.0])
        assert_allclose(value(new, {"x": x_}, "py"), self.expected(x_ + 1, 1.0))

    def test_variables_of_the_step_can_be_replaced_with_what_is_inside_and_outside(self):
        x, W, factor = tensor.dvector("x"), aesara.shared(0.5, name="W"), tensor.dscalar("factor")
        outside = factor * 10
        graph = ComputationGraph([self.loop(x, W), outside])
        (inner,) = VariableFilter(roles=[INPUT], bricks=[Square])(graph.scan_variables)

        new = graph.replace({inner: inner * outside + W, outside: outside + 1})

        x_ = numpy.array([1.0, 2.0, 3.0])
        states, outside_ = value(new, {"x": x_, "factor": 0.1}, "py")
        assert outside_ == 2
        assert_allclose(states, self.expected(x_, 0.5, lambda h: h * 2 + 0.5))
        (new_inner,) = VariableFilter(roles=[INPUT], bricks=[Square])(new.scan_variables)
        assert new_inner.name == "square_apply_x"
        again = value(new.replace({factor: factor * 2}), {"x": x_, "factor": 0.05}, "py")
        assert_allclose(again[0], states)

    def test_gradients_through_a_rewritten_loop_are_right(self):
        x, W, factor = tensor.dvector("x"), aesara.shared(0.5, name="W"), tensor.dscalar("factor")
        graph = ComputationGraph(self.loop(x, W)[-1])
        (inner,) = VariableFilter(roles=[INPUT], bricks=[Square])(graph.scan_variables)
        new = graph.replace({inner: inner * factor})
        gradients = aesara.grad(new.outputs[0], [W, factor])

        x_, step = numpy.array([1.0, 2.0, 3.0]), 1e-6
        got = value(new, {"x": x_, "factor": 2.0}, "py", outputs=gradients)
        for place, at in enumerate([(0.5, 2.0), (2.0, 0.5)]):
            up, down = (self.expected(x_, (at[0] + d) * at[1])[-1] for d in (step, -step))
            assert_allclose(got[place], (up - down) / (2 * step), rtol=1e-6)

    def test_variables_of_a_loop_in_a_loop_can_be_replaced(self):
        x, factor = tensor.dmatrix("x"), tensor.dscalar("factor")
        brick = Square()

        def rows(row):
            out, _ = aesara.scan(lambda element: brick.apply(element), sequences=[row])
            return out

        out, _ = aesara.scan(rows, sequences=[x])
        graph = ComputationGraph(out)
        (inner,) = VariableFilter(roles=[OUTPUT])(graph.scan_variables)

        new = graph.replace({inner: inner * factor})

        given = {"x": numpy.array([[1.0, 2.0], [3.0, 4.0]]), "factor": 10.0}
        assert_array_equal(value(new, given, "py"), 10 * given["x"] ** 2)

    def test_inputs_of_a_step_itself_and_results_of_its_loop_are_refused_in_words(self):
        x, W = tensor.dvector("x"), aesara.shared(0.5, name="W")
        states = self.loop(x, W)
        graph = ComputationGraph(states)
        step_input = graph.scans[0].inner_inputs[0]
        (inner,) = VariableFilter(roles=[INPUT], bricks=[Square])(graph.scan_variables)

        with pytest.raises(ValueError, match="is an input of the step of .*, which loops share"):
            graph.replace({step_input: step_input * 2})
        with pytest.raises(ValueError, match="uses what that loop gives"):
            graph.replace({inner: inner * states[-1]})

    def test_variables_of_another_loop_s_step_are_refused_in_words(self):
        x = tensor.dvector("x")
        first, second = (
            aesara.scan(Square(name=name).apply, sequences=[x])[0] for name in ("first", "second")
        )
        out = first + second
        graph = ComputationGraph(out)
        one, two = VariableFilter(roles=[OUTPUT])(graph.scan_variables)

        with pytest.raises(
            ValueError, match="uses .*, an input of the step of a loop, directly or"
        ):
            graph.replace({one: one + two})
        with pytest.raises(ValueError, match="through a variable of a loop that it does not stand"):
            graph.replace({out: out + one})

    def test_in_a_loop_in_a_loop_variables_of_the_outer_step_may_be_used(self):
        x, factor = tensor.dmatrix("x"), tensor.dscalar("factor")
        outer, inner = Square(name="outer"), Square(name="inner")

        def rows(row):
            total = outer.apply(row.sum())
            out, _ = aesara.scan(lambda element: inner.apply(element), sequences=[row])
            return out + total

        graph = ComputationGraph(aesara.scan(rows, sequences=[x])[0])
        of_outer, of_inner = (
            VariableFilter(roles=[OUTPUT], bricks=[brick])(graph.scan_variables)[0]
            for brick in (outer, inner)
        )

        new = graph.replace({of_inner: of_inner * of_outer * factor, of_outer: of_outer + 1})

        x_ = numpy.array([[1.0, 2.0], [3.0, 4.0]])
        total = x_.sum(axis=1, keepdims=True) ** 2 + 1
        assert_allclose(value(new, {"x": x_, "factor": 2.0}, "py"), x_**2 * total * 2 + total)
