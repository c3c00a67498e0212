"""Conditions, checks, printing and inner graphs."""

import aesara
import jax
import numpy
import pytest
from aesara import tensor
from aesara.compile.builders import OpFromGraph
from aesara.ifelse import ifelse
from aesara.raise_op import Assert, CheckAndRaise

from bricks import xla

UP, DOWN = numpy.array([[1.0, 2], [0.5, 3]]), numpy.array([[-1.0, -2], [0.5, -3]])

CASES = {
    "one value": lambda x: ifelse(x.sum() > 0, tensor.exp(x), x - 1),
    "several values": lambda x: ifelse(
        x.sum() > 0, [tensor.exp(x), x[0] * 2], [tensor.tanh(x), x[1] / 3]
    ),
    "values that are there anyway": lambda x: [ifelse(x.sum() > 0, 2 * x, x), 2 * x],
    "a value that both branches need": lambda x: ifelse(
        x.sum() > 0, tensor.exp(x).sum(), tensor.exp(x).max()
    ),
    "one branch inside of another": lambda x: ifelse(
        x.sum() > 0, ifelse(x.max() > 2.5, tensor.exp(x), tensor.sin(x)), tensor.tanh(x)
    ),
    "one condition after another": lambda x: ifelse(
        ifelse(x.sum() > 0, tensor.exp(x), x).sum() > 0, tensor.tanh(x), x**2
    ),
    "equal dtypes of another kind": lambda x: ifelse(
        x.sum() > 0, tensor.ones_like(x), tensor.zeros_like(x) + x.shape[0]
    ),
    "inside of a loop": lambda x: aesara.scan(
        lambda row, total: ifelse(row.sum() > 0, tensor.exp(row) + total, total * 0.5),
        sequences=x,
        outputs_info=tensor.zeros_like(x[0]),
    )[0],
    "a loop inside": lambda x: ifelse(
        x.sum() > 0,
        aesara.scan(lambda row, total: row + total, x, tensor.zeros_like(x[0]))[0][-1],
        x[0],
    ),
    "a condition by shape": lambda x: ifelse(tensor.gt(x.shape[0], 5), tensor.exp(x[:1]), x),
}


@pytest.mark.parametrize("name", CASES)
def test_branches_and_their_gradients_are_those_of_aesara(name, assert_agrees):
    assert_agrees(CASES[name], [[UP], [DOWN], [UP[:, :1]]])


def test_only_the_branch_that_is_taken_is_computed():
    x = tensor.dvector("x")
    choose = xla.function([x], ifelse(x.sum() > 0, tensor.exp(x), x))

    assert "case" in str(choose.export_for("cpu", numpy.ones(2)).mlir_module())


def test_a_branch_that_is_not_taken_prints_nothing(capfd):
    x = tensor.dvector("x")
    shown = aesara.printing.Print("costly")(x)
    choose = xla.function([x], ifelse(x.sum() > 0, tensor.exp(shown), x))

    choose(-numpy.ones(2))
    jax.effects_barrier()
    assert "costly" not in capfd.readouterr().out
    choose(numpy.ones(2))
    jax.effects_barrier()
    assert "costly" in capfd.readouterr().out


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_what_is_printed_is_the_message_and_each_attribute_of_the_value(backend, capfd):
    x = tensor.dvector("x")
    shown = aesara.printing.Print("here", attrs=("shape", "sum", "__str__"))(x)

    xla.function([x], shown * 2, backend=backend)([1, 2])
    jax.effects_barrier()

    printed = capfd.readouterr().out.splitlines()
    assert printed == ["here shape = (2,)", "here sum = 3.0", "here __str__ = [1. 2.]"]


def test_what_is_called_in_the_steps_of_a_loop_is_called_in_their_order():
    x, seen = tensor.dvector("x"), []
    seen_by = aesara.printing.Print(global_fn=lambda op, value: seen.append(value.tolist()))
    totals, _ = aesara.scan(
        lambda x, total: seen_by(seen_by(x) + total), x, tensor.zeros((), dtype="float64")
    )

    xla.function([x], totals)([1, 2, 3])
    jax.effects_barrier()

    assert seen == [1, 1, 2, 3, 3, 6]


def test_what_a_branch_checks_is_checked_when_it_is_taken():
    x = tensor.dvector("x")
    first = tensor.sqrt(Assert("not positive")(x, x.min() > 0))
    second = tensor.exp(Assert("too large")(x, x.max() < 1))
    choose = xla.function([x], ifelse(x.sum() > 0, first, second))

    numpy.testing.assert_allclose(choose(numpy.array([1.0, 4.0])), [1, 2])
    choose(numpy.array([-1.0, 0.5]))
    with pytest.raises(AssertionError, match="not positive"):
        choose(numpy.array([2.0, -1.0]))
    with pytest.raises(AssertionError, match="too large"):
        choose(numpy.array([2.0, -3.0]))


def test_a_call_is_checked_by_the_conditions_of_its_own_shapes():
    # Of few places a condition is known; of many it is left to XLA.
    x = tensor.dvector("x")
    is_short = tensor.all(tensor.arange(x.shape[0]) < 5000)
    positive = Assert("not positive")(x, x.min() > 0)
    check = xla.function([x], Assert("too long")(positive, is_short).sum())

    assert [check(numpy.ones(length)) for length in (4999, 3, 4999)] == [4999, 3, 4999]
    with pytest.raises(AssertionError, match="too long"):
        check(numpy.ones(5001))
    with pytest.raises(AssertionError, match="not positive"):
        check(numpy.zeros(3))
    with pytest.raises(AssertionError, match="not positive"):
        check(numpy.zeros(4999))


@pytest.mark.parametrize("is_lazy", [False, True])
def test_branches_of_different_shapes_are_refused(is_lazy):
    x = tensor.dvector("x")
    y = tensor.dvector("y")
    other = tensor.exp(x[1:]) if is_lazy else y
    choose = xla.function([x, y], ifelse(x.sum() > 0, x, other), on_unused_input="ignore")

    with pytest.raises(xla.GraphError, match=r"branches of an ifelse have shapes .*\(3,\).*\(2,\)"):
        choose(numpy.ones(3), numpy.ones(2))


def test_a_check_raises_what_it_is_told_to():
    x = tensor.dvector("x")
    check = CheckAndRaise(OverflowError, "too much")
    checked = xla.function([x], check(x, x.sum() < 10, x.min() > -1) * 2)

    numpy.testing.assert_array_equal(checked(numpy.ones(2)), [2, 2])
    with pytest.raises(OverflowError, match="too much"):
        checked(numpy.full(2, 6.0))
    with pytest.raises(OverflowError, match="too much"):
        checked(numpy.full(2, -6.0))


def test_a_check_of_lengths_says_what_came():
    x = tensor.matrix("x")
    checked = xla.function([x], Assert("Too few.")(x, x.shape[0] > 2))

    with pytest.raises(AssertionError, match=r"^Too few\. Got float32\(2, 5\)\."):
        checked(numpy.ones((2, 5), "float32"))


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_the_r_operator_goes_through_checks(backend):
    x, direction = tensor.dvectors("x", "direction")
    along = tensor.Rop(Assert("too few")(x**2, x.shape[0] > 1), x, direction)

    compute = xla.function([x, direction], along, backend=backend)

    numpy.testing.assert_allclose(compute([1.0, 2.0], [3.0, -1.0]), [6, -4])


def test_graphs_inside_of_graphs_have_the_values_and_gradients_of_aesara(assert_agrees):
    x, y = tensor.dmatrices("x", "y")
    inner = OpFromGraph([x, y], [tensor.tanh(x) * y])
    outer = OpFromGraph([x], [inner(x, x * 2).sum(axis=0)])

    assert_agrees(lambda x: [inner(x, x), outer(x)], [[UP], [DOWN[:1]]])


def test_a_graph_with_a_gradient_of_its_own_uses_it():
    x = tensor.dvector("x")
    straight = OpFromGraph(
        [x], [tensor.round(x)], grad_overrides=lambda inputs, gradients: [gradients[0] * 3]
    )
    y = tensor.dvector("y")

    slope = xla.function([y], aesara.grad(straight(y).sum(), y))(numpy.array([0.2, 1.7]))

    numpy.testing.assert_array_equal(slope, [3, 3])


@pytest.mark.parametrize(
    "marker",
    [
        lambda x: aesara.gradient.grad_clip(x, -0.1, 0.1),
        lambda x: aesara.gradient.grad_scale(x, 3),
        aesara.gradient.disconnected_grad,
        aesara.gradient.zero_grad,
    ],
)
def test_markers_change_gradients_only(marker, assert_agrees):
    assert_agrees(lambda x: marker(x) ** 2 * x, [[UP], [DOWN]])
