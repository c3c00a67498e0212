"""What a scan computes and nobody uses is neither computed nor kept."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.scan.op import Scan

from bricks import xla
from bricks.xla.rewriting import rewriting_mode


@pytest.fixture(autouse=True)
def failing_rewrites_raise(monkeypatch):
    monkeypatch.setattr(aesara.config, "on_opt_error", "raise")


def scans_of(inputs, outputs):
    """Return the scans that are left of a graph."""
    prepared = aesara.function(
        inputs, outputs, mode=rewriting_mode("fast_run"), on_unused_input="ignore"
    )
    return [n.op for n in prepared.maker.fgraph.toposort() if isinstance(n.op, Scan)]


def three_results(x):
    """Scan for a sum, a product and a collected square."""
    (total, product, square), _ = aesara.scan(
        lambda element, total, product: (total + element, product * element + total, element**2),
        sequences=[x],
        outputs_info=[tensor.zeros((), x.dtype), tensor.ones((), x.dtype), None],
    )
    return total, product, square


def test_what_is_not_used_is_left_out_of_the_loop():
    x = tensor.dvector("x")
    total, _, square = three_results(x)

    (scan,) = scans_of([x], [total, square])
    assert (scan.info.n_sit_sot, scan.info.n_nit_sot) == (1, 1)
    (scan,) = scans_of([x], [total])
    assert (scan.info.n_sit_sot, scan.info.n_nit_sot) == (1, 0)


def test_what_another_result_reads_stays():
    x = tensor.dvector("x")
    _, product, _ = three_results(x)

    (scan,) = scans_of([x], [product])
    assert (scan.info.n_sit_sot, scan.info.n_nit_sot) == (2, 0)
    values = numpy.array([1.0, 2.0, 4.0])
    assert xla.function([x], product)(values).tolist() == [1, 3, 15]


def test_a_sum_of_products_that_left_the_loop_is_not_added_up_in_it():
    x, w = tensor.dtensor3("x"), tensor.dmatrix("w")
    states, _ = aesara.scan(
        lambda row, state, w: tensor.tanh(row + state.dot(w)),
        sequences=[x],
        outputs_info=[tensor.zeros_like(x[0])],
        non_sequences=[w],
    )
    forward, backward = scans_of([x, w], aesara.grad(states.sum(), w))

    assert (forward.info.n_sit_sot, backward.info.n_sit_sot) == (1, 0)
    assert (backward.info.n_mit_mot, backward.info.n_nit_sot) == (1, 1)


def test_the_last_values_are_all_that_a_loop_keeps():
    x = tensor.dmatrix("x")
    state, collected = aesara.scan(
        lambda row, state: (state + row, row * 2),
        sequences=[x],
        outputs_info=[tensor.zeros_like(x[0]), None],
    )[0]
    last = xla.function([x], [state[-1], collected[-1], collected[-2:]])
    every = xla.function([x], [state, collected])
    batch = numpy.random.default_rng(0).normal(size=(64, 500))

    results = last(batch)

    numpy.testing.assert_allclose(results[0], batch.sum(axis=0))
    numpy.testing.assert_allclose(results[1], 2 * batch[-1])
    numpy.testing.assert_allclose(results[2], 2 * batch[-2:])
    assert last.memory(batch).temporary < batch.nbytes / 4
    assert every.memory(batch).outputs >= 2 * batch.nbytes


@pytest.mark.parametrize("num_steps", [0, 1, 2, 5])
def test_few_last_values_are_right_for_few_steps(num_steps):
    x = tensor.dvector("x")
    fibonacci, _ = aesara.scan(
        lambda element, before, last: before + last + element,
        sequences=[x],
        outputs_info=[{"initial": tensor.constant([1.0, 1.0]), "taps": [-2, -1]}],
    )
    buffer = fibonacci.owner.inputs[0]
    last_two = xla.function([x], buffer[-2:])

    expected = [1.0, 1.0]
    for element in range(num_steps):
        expected.append(expected[-1] + expected[-2] + element)
    assert last_two(numpy.arange(float(num_steps))).tolist() == expected[-2:]


def test_a_place_from_the_front_keeps_all():
    x = tensor.dvector("x")
    total, _, square = three_results(x)

    first, last = xla.function([x], [square[1], total[-1]])(numpy.arange(5.0))
    assert (first, last) == (1, 10)
