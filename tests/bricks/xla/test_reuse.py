"""A gradient's loop takes what the loop before it has computed, and nothing else."""

import aesara
import jax
import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.config import config
from bricks.xla.accumulation import Accumulation
from bricks.xla.reuse import View, Views

STEPS, UNITS = 4, 3


def recurrence(x, weights):
    """A recurrence whose gradient needs the hyperbolic tangents again."""

    def step(x, state, weights):
        return tensor.tanh(x + tensor.dot(state, weights)) + 0.1 * state

    states, _ = aesara.scan(step, [x], tensor.zeros(UNITS, dtype=x.dtype), [weights])
    return states


def count_in_program(function, what, *args):
    """Count operations in the program that XLA is given; loops hold theirs once."""
    exported = function.export_for("cpu", *args)
    return exported.mlir_module().count(what)


def example():
    rng = numpy.random.default_rng(1)
    return rng.standard_normal((STEPS, UNITS)), 0.4 * rng.standard_normal((UNITS, UNITS))


def test_a_gradient_takes_the_products_and_tangents_of_the_loop_it_goes_back_through():
    x, weights = tensor.dmatrix("x"), tensor.dmatrix("weights")
    cost = (recurrence(x, weights) ** 2).sum()
    step = xla.function([x, weights], aesara.grad(cost, [x, weights]))
    forward = xla.function([x, weights], cost)

    # The tangent is computed once, though two loops need it.
    assert count_in_program(step, "stablehlo.tanh", *example()) == 1
    assert count_in_program(forward, "stablehlo.tanh", *example()) == 1


@pytest.mark.parametrize("truncate", [-1, 2])
def test_gradients_equal_those_of_the_reference_backend(truncate):
    x, weights = tensor.dmatrix("x"), tensor.dmatrix("weights")

    def step(x, state, before, weights):
        state = tensor.tanh(x * before + tensor.dot(state, weights))
        return state, tensor.exp(-state) * before

    start = tensor.ones(UNITS, dtype="float64")
    (states, others), _ = aesara.scan(
        step, [x], [start, start], [weights], truncate_gradient=truncate
    )
    cost = (states * others).sum() + states[-1].sum()
    gradients = aesara.grad(cost, [x, weights])
    ours = xla.function([x, weights], gradients)(*example())
    reference = xla.function([x, weights], gradients, backend="py")(*example())

    for one, other in zip(ours, reference, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-12)


def test_loops_that_differ_in_one_sequence_do_not_take_from_each_other():
    x, y, weights = tensor.dmatrix("x"), tensor.dmatrix("y"), tensor.dmatrix("weights")
    cost = (recurrence(x, weights) ** 2).sum() + (recurrence(y, weights) ** 3).sum()
    gradients = aesara.grad(cost, [x, y])
    values, matrix = example()
    arguments = [values, values[::-1] + 1, matrix]

    ours = xla.function([x, y, weights], gradients)(*arguments)
    reference = xla.function([x, y, weights], gradients, backend="py")(*arguments)

    for one, other in zip(ours, reference, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_loop_takes_nothing_from_a_shorter_one_that_ends_where_it_ends(monkeypatch):
    # Both keep the exponentials of an array, of which the second loop reads a part.
    monkeypatch.setattr(config, "optimizer", "fast_compile")
    x, start = tensor.dmatrix("x"), tensor.dvector("start")

    def states(x, start):
        return aesara.scan(lambda row, state: tensor.exp(row) * tensor.tanh(state), [x], start)[0]

    first = states(x, start)
    cost = first.sum() + (states(x[2:], first[-1]) ** 2).sum()
    gradients = aesara.grad(cost, [x, start])
    arguments = [example()[0], numpy.ones(UNITS)]

    ours = xla.function([x, start], gradients)(*arguments)
    reference = xla.function([x, start], gradients, backend="py")(*arguments)

    for one, other in zip(ours, reference, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_loops_in_a_step_or_a_branch_have_computed_is_not_known_outside():
    views = Views()
    views.loops.append("outside")
    with views.inside():
        views.loops.append("inside")
        assert views.loops == ["outside", "inside"]

    assert views.loops == ["outside"]


def test_a_part_of_a_part_is_a_part_of_the_whole():
    views, x = Views(), jax.numpy.arange(10)

    part = views.part(views.part(views.part(x, slice(2, 9)), slice(None, None, -1)), slice(1, 5, 2))

    assert part.tolist() == list(range(10))[2:9][::-1][1:5:2]
    assert views.of(part) == View(x, 7, -2)
    assert views.part(part, slice(5, 3)).shape == (0,)


def direct_accumulation(buffer, read, written, function, num_steps):
    """Change a buffer step by step, as Aesara defines it."""
    buffer, first = buffer.copy(), min(read)
    for step in range(num_steps):
        values = function([buffer[step + tap - first] for tap in read])
        for tap, value in zip(written, values, strict=True):
            buffer[step + tap - first] = value
    return buffer


@pytest.mark.parametrize(
    ("read", "written"),
    [((0, 1), (1,)), ((0, 1, 2), (1, 2)), ((0, 3), (3, 1)), ((-1, 0), (0,)), ((0,), (2,))],
)
def test_an_accumulation_ends_as_a_buffer_that_every_step_changes(read, written):
    num_steps, length = 5, 5 + max(*read, *written) - min(read)
    buffer = numpy.arange(1.0, 1 + length)

    def function(values):
        return [sum(values) * (place + 2) % 7 for place in range(len(written))]

    one = Accumulation.of_taps(jax.numpy.asarray(buffer), read, written)
    sequences = [x[part] for x, part in one.sequences(num_steps)]
    windows, collected = one.first_windows(), []
    for step in range(num_steps):
        values = function(one.read_values(windows, iter([x[step] for x in sequences])))
        windows = one.shifted(windows, values)
        collected.append([window[-1] for window in windows])
    result = one.result([jax.numpy.stack(values) for values in zip(*collected, strict=True)])

    expected = direct_accumulation(buffer, read, written, function, num_steps)
    numpy.testing.assert_array_equal(result, expected)


def test_slices_that_make_up_an_array_are_joined_in_its_gradient():
    x = tensor.dmatrix("x")
    parts = [x[:, 2:5] ** 2, tensor.exp(x[:, :2]), x[:, 5:] ** 3]
    gradient = xla.function([x], aesara.grad(sum(part.sum() for part in parts), x))
    value = numpy.random.default_rng(1).standard_normal((2, 7))

    expected = numpy.hstack([numpy.exp(value[:, :2]), 2 * value[:, 2:5], 3 * value[:, 5:] ** 2])
    numpy.testing.assert_allclose(gradient(value), expected, rtol=1e-12)
    assert count_in_program(gradient, "stablehlo.pad", value) == 0


def test_slices_that_overlap_or_leave_gaps_are_added_in_the_gradient():
    x = tensor.dvector("x")
    cost = (x[:3] ** 2).sum() + (x[2:5] ** 3).sum() + x[6]
    gradient = xla.function([x], aesara.grad(cost, x))
    value = numpy.arange(1.0, 9.0)

    expected = numpy.array([2, 4, 6 + 27, 48, 75, 0, 1, 0])
    numpy.testing.assert_allclose(gradient(value), expected)
