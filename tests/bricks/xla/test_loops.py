"""Scans of every kind agree with Aesara's own evaluation, gradients included."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.breakpoint import PdbBreakpoint
from aesara.compile.mode import Mode
from aesara.link.vm import VMLinker
from aesara.raise_op import Assert
from aesara.scan.utils import until

from bricks import xla

#: Evaluates a graph as it is written, so that a wrong rewrite is noticed too.
NOT_REWRITTEN = Mode(VMLinker(use_cloop=False, c_thunks=False), optimizer=None)

#: The numbers of steps that every scan takes.
LENGTHS = (6, 3)

#: name -> function of a sequence (time, feature), weights (feature, feature), and a vector
SCANS = {}


def scan_case(function):
    SCANS[function.__name__] = function
    return function


def tanh_step(x, h, w):
    return tensor.tanh(x + h.dot(w))


def recurrence(x, w, h, **options):
    return aesara.scan(tanh_step, sequences=[x], outputs_info=[h], non_sequences=[w], **options)[0]


@scan_case
def all_states(x, w, h):
    return recurrence(x, w, h)


@scan_case
def last_state(x, w, h):
    return recurrence(x, w, h)[-1]


@scan_case
def last_two_states(x, w, h):
    return recurrence(x, w, h)[-2:]


@scan_case
def backwards(x, w, h):
    return recurrence(x, w, h, go_backwards=True)


@scan_case
def truncated_gradient(x, w, h):
    return recurrence(x, w, h, truncate_gradient=2)[-1]


@scan_case
def strict(x, w, h):
    return recurrence(x, w, h, strict=True)


@scan_case
def two_states_with_mask(x, w, h):
    def step(x, mask, h, c, w):
        gates = x + h.dot(w)
        c_new = tensor.sigmoid(gates[:2].sum()) * c + tensor.tanh(gates)
        h_new = tensor.sigmoid(gates) * tensor.tanh(c_new)
        return mask * h_new + (1 - mask) * h, mask * c_new + (1 - mask) * c

    mask = tensor.gt(x[:, 0], 0).astype("float64")
    states, _ = aesara.scan(
        step, sequences=[x, mask], outputs_info=[h, tensor.zeros_like(h)], non_sequences=[w]
    )
    return states


@scan_case
def several_taps_and_a_collected_result(x, w, h):
    def step(before, now, after, second_last, last):
        return [tensor.tanh(before + now * after + second_last * last), now * last]

    results, _ = aesara.scan(
        step,
        sequences=[{"input": x, "taps": [-1, 0, 1]}],
        outputs_info=[{"initial": tensor.stack([h, h * 2]), "taps": [-2, -1]}, None],
    )
    return results


@scan_case
def only_a_distant_tap(x, w, h):
    initial = tensor.stack([h, h * 2, h * 3])
    return aesara.scan(
        lambda x, old: tensor.tanh(x + old),
        sequences=[x],
        outputs_info=[{"initial": initial, "taps": [-3]}],
    )[0]


@scan_case
def mapping(x, w, h):
    return aesara.map(lambda row, w: tensor.tanh(row.dot(w)).sum(), [x], [w])[0]


@scan_case
def last_of_a_mapping(x, w, h):
    return aesara.map(lambda row, w: tensor.tanh(row.dot(w)), [x], [w])[0][-1]


@scan_case
def folding(x, w, h):
    return aesara.foldl(lambda row, total: total + row**2, [x], h)[0]


@scan_case
def sequences_longer_than_the_loop(x, w, h):
    return recurrence(x, w, h, n_steps=2)


@scan_case
def steps_counted_by_a_shape(x, w, h):
    return aesara.scan(lambda h: tensor.tanh(h * 2), outputs_info=[h], n_steps=x.shape[0] - 1)[0]


@scan_case
def nested(x, w, h):
    def outer(row, h):
        inner, _ = aesara.scan(lambda a, h: tensor.tanh(h * a), sequences=[row], outputs_info=[h])
        return inner[-1]

    return aesara.scan(outer, sequences=[x], outputs_info=[h])[0]


@scan_case
def second_derivative(x, w, h):
    states = recurrence(x[:, None, :], w, tensor.unbroadcast(h[None, :], 0))
    slope = aesara.grad((states**2).sum(), w)
    # Aesara cannot take a third derivative of a loop, which the test would add.
    return aesara.gradient.disconnected_grad(aesara.grad((slope**2).sum(), w))


@scan_case
def attention(x, w, h):
    def step(x, h, w, attended):
        weights = tensor.special.softmax(attended.dot(h)[None, :], axis=-1)[0]
        return tensor.tanh(x + weights.dot(attended) + h.dot(w)), weights

    return aesara.scan(
        step, sequences=[x], outputs_info=[h, None], non_sequences=[w, x * 2], strict=True
    )[0]


@scan_case
def jacobian(x, w, h):
    return aesara.gradient.jacobian(tensor.tanh(h) * h.sum(), h)


@pytest.mark.parametrize("name", SCANS)
def test_values_and_gradients_are_those_of_aesara(name):
    x, w, h = tensor.dmatrix("x"), tensor.dmatrix("w"), tensor.dvector("h")
    outputs = SCANS[name](x, w, h)
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    cost = sum((out**2).sum() for out in outputs)
    outputs += aesara.grad(cost, [x, w, h], disconnected_inputs="ignore")
    ours = xla.function([x, w, h], outputs, on_unused_input="ignore")
    theirs = aesara.function([x, w, h], outputs, mode=NOT_REWRITTEN, on_unused_input="ignore")

    rng = numpy.random.default_rng(1)
    for length in LENGTHS:
        batch = [rng.normal(size=shape) for shape in ((length, 3), (3, 3), (3,))]
        for mine, expected in zip(ours(*batch), theirs(*batch), strict=True):
            assert mine.dtype == expected.dtype
            numpy.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-10)


def test_the_number_of_steps_may_be_an_argument():
    n, h = tensor.lscalar("n"), tensor.dvector("h")
    powers = aesara.scan(lambda h: h * 2, outputs_info=[h], n_steps=n)[0]
    f = xla.function([n, h], powers)

    assert [f(n, numpy.ones(1)).ravel().tolist() for n in (1, 3)] == [[2], [2, 4, 8]]


def test_no_steps_give_no_values():
    x, h = tensor.dmatrix("x"), tensor.dvector("h")
    f = xla.function([x, h], aesara.scan(lambda x, h: h + x, sequences=[x], outputs_info=[h])[0])

    assert f(numpy.zeros((0, 2)), numpy.ones(2)).shape == (0, 2)


def test_shared_variables_are_updated_at_each_step():
    x, count = tensor.dvector("x"), xla.shared(numpy.float64(10), name="count")
    values, updates = aesara.scan(lambda x: (x + count, {count: count + 1}), sequences=[x])
    f = xla.function([x], values, updates=updates)

    assert f(numpy.zeros(3)).tolist() == [10, 11, 12]
    assert f(numpy.zeros(2)).tolist() == [13, 14]
    assert count.get_value() == 15


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_random_numbers_differ_at_each_step_and_call(backend):
    x, stream = tensor.dvector("x"), xla.RandomStream(1)
    values, updates = aesara.scan(lambda x: x + stream.uniform((), dtype="float64"), sequences=[x])
    f = xla.function([x], values, updates=updates, backend=backend)

    numbers = {*f(numpy.zeros(4)), *f(numpy.zeros(4))}

    assert len(numbers) == 8
    assert all(0 <= number < 1 for number in numbers)


def test_a_condition_stops_the_loop():
    h = tensor.dvector("h")
    doubled, _ = aesara.scan(
        lambda h: ((h * 2, h.sum()), until(h.sum() * 2 > 50)), outputs_info=[h, None], n_steps=100
    )
    f = xla.function([h], [doubled[0][-1], doubled[1][-1]])

    last, total = f(numpy.array([1.0, 2.0]))

    assert (last.tolist(), total) == ([32, 64], 48)


def test_all_values_of_a_loop_that_stops_by_a_condition_are_refused_with_the_way_out():
    h = tensor.dvector("h")
    doubled, _ = aesara.scan(lambda h: (h * 2, until(h.sum() > 50)), outputs_info=[h], n_steps=100)

    with pytest.raises(xla.UnsupportedOp, match=r"Use only the last one, result\[-1\]"):
        xla.function([h], doubled)(numpy.ones(2))
    assert xla.function([h], doubled, backend="py")(numpy.ones(2)).shape == (6, 2)


def test_a_condition_that_fails_in_any_step_raises():
    x = tensor.dvector("x")
    checked, _ = aesara.scan(lambda x: Assert("negative")(x, x >= 0) * 2, sequences=[x])
    f = xla.function([x], checked)

    assert f(numpy.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(AssertionError, match="negative"):
        f(numpy.array([1.0, -1.0, 1.0]))


def test_an_operation_without_lowering_inside_a_loop_is_refused_when_compiling():
    x = tensor.dmatrix("x")
    stop = PdbBreakpoint("stop")
    totals, _ = aesara.scan(lambda row: stop(row[0] > 0, row).sum(), sequences=[x])

    with pytest.raises(xla.UnsupportedOp, match="PdbBreakpoint"):
        xla.function([x], totals)


def test_a_wrong_width_inside_a_loop_is_one_readable_error():
    x, w, h = tensor.dmatrix("x"), tensor.dmatrix("w"), tensor.dvector("h")
    f = xla.function([x, w, h], recurrence(x, w, h))

    with pytest.raises(xla.GraphError, match=r"float64\(3,\), float64\(4, 3\)"):
        f(numpy.zeros((2, 3)), numpy.zeros((4, 3)), numpy.zeros(3))


def test_the_gradient_of_a_loop_lowers_for_cuda():
    x, w, h = tensor.dmatrix("x"), tensor.dmatrix("w"), tensor.dvector("h")
    slope = aesara.grad(recurrence(x, w, h).sum(), w)

    exported = xla.export_for(
        "cuda", xla.function([x, w, h], slope), numpy.ones((4, 3)), numpy.eye(3), numpy.ones(3)
    )

    assert "stablehlo.while" in exported.mlir_module()


@pytest.mark.parametrize("tap", [-1, -2])
@pytest.mark.parametrize("backend", ["xla", "py"])
def test_second_derivatives_are_those_of_the_closed_form(tap, backend):
    # Squares of squares are powers, of 2, 4 and 8; the cost is the sum of theirs.
    start = tensor.dmatrix("start")
    first = start[0] if tap == -1 else start
    states, _ = aesara.scan(
        tensor.sqr, outputs_info=[{"initial": first, "taps": [tap]}], n_steps=-3 * tap
    )
    slope = aesara.grad((states**2).sum(), start)
    curvature = xla.function([start], aesara.grad(slope.sum(), start), backend=backend)

    values = numpy.random.default_rng(1).uniform(0.5, 1, (-tap, 2))
    expected = sum(n * (n - 1) * values ** (n - 2) for n in (4, 8, 16))
    numpy.testing.assert_allclose(curvature(values), expected, rtol=1e-12)


def test_a_second_derivative_through_several_taps_is_refused():
    start = tensor.dvector("start")
    states, _ = aesara.scan(
        lambda older, old: older * old,
        outputs_info=[{"initial": start, "taps": [-2, -1]}],
        n_steps=3,
    )
    slope = aesara.grad(states[-1], start)

    with pytest.raises(NotImplementedError, match="Give each state the tap -1, and hand"):
        aesara.grad(slope.sum(), start)


@pytest.mark.parametrize("num_steps", [1, 2, 6])
def test_truncated_gradient_of_independent_steps_reaches_only_the_last_ones(num_steps):
    x = tensor.dmatrix("x")
    values = numpy.linspace(-1, 1, 12).reshape(6, 2)
    last = numpy.arange(6)[:, None] >= 6 - num_steps
    expected = numpy.where(last, 2 * numpy.tanh(values) / numpy.cosh(values) ** 2, 0)

    results = aesara.scan(tensor.tanh, sequences=[x], truncate_gradient=num_steps)[0]
    gradient = tensor.grad((results**2).sum(), x)

    for backend in ("xla", "py"):
        found = xla.function([x], gradient, backend=backend)(values)
        numpy.testing.assert_allclose(found, expected, atol=1e-12)
