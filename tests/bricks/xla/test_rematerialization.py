"""Barriers and recomputed values, as XLA and other backends compute them."""

import aesara
import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.xla.rematerialization import Barrier, Recomputed, behind

VALUES = {
    "floats": numpy.array([numpy.nan, -1.5, numpy.inf]),
    "half floats": numpy.array([1.5, 2], "float16"),
    "no numbers": numpy.zeros((0, 2), "float32"),
    "integers": numpy.array([-(2**40), 3]),
    "truth values": numpy.array([True, False]),
    "complex numbers": numpy.array([1 + 2j, numpy.nan]),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_barrier_passes_every_kind_of_value_on(name):
    value = VALUES[name]
    x, other = tensor.TensorType(value.dtype, shape=(None,) * value.ndim)(), tensor.dvector()
    late = behind(x, other)

    results = [
        xla.function([x, other], [late, late.shape], backend=backend)(value, [numpy.nan])
        for backend in ("xla", "py")
    ]

    for passed, shape in results:
        assert passed.dtype == value.dtype
        numpy.testing.assert_array_equal(passed, value)
        assert tuple(shape) == value.shape


def test_lengths_behind_a_barrier_are_still_known():
    n, x = tensor.lscalar("n"), tensor.dvector("x")
    length, behind_it = Barrier(2, 1)(n, x)

    zeros = xla.function([n, x], tensor.zeros((length,)) + behind_it.sum())

    assert [zeros(n, [1, 1]).tolist() for n in (2, 3)] == [[2, 2], [2, 2, 2]]


def squared_tanh(x, scale):
    return Recomputed(1)(tensor.tanh(x * scale) ** 2, x, scale)


def test_the_gradient_flows_to_what_was_given_and_is_of_any_order(assert_agrees):
    def slopes(x):
        scale = 2 * tensor.ones_like(x)
        again, plain = squared_tanh(x, scale), tensor.tanh(x * scale) ** 2
        return [aesara.grad(y.sum(), x) for y in (again, plain)]

    x = tensor.dmatrix("x")
    first = slopes(x)
    second = [aesara.grad((slope**3).sum(), x) for slope in first]
    point = numpy.array([[0.1, -2.0], [0.5, 0.0]])

    once, expected, twice, expected_twice = xla.function([x], [*first, *second])(point)

    numpy.testing.assert_allclose(once, expected, rtol=1e-12)
    numpy.testing.assert_allclose(twice, expected_twice, rtol=1e-12)
    assert_agrees(lambda x: squared_tanh(x, x + 1), [[point], [point[:, :1]]])


def test_integers_and_what_a_value_does_not_depend_on_get_no_gradient():
    x, places, unused = tensor.dvector("x"), tensor.lvector("places"), tensor.dvector("unused")
    value = Recomputed(1)(x[places] ** 2, x, places, unused)

    assert value.owner.op.connection_pattern(value.owner) == [[False], [True], [False], [False]]
    slopes = aesara.grad(value.sum(), [x, unused], disconnected_inputs="ignore")
    results = xla.function([x, places, unused], slopes, on_unused_input="ignore")(
        [1, 2, 3], [0, 2, 2], [1]
    )
    assert [result.tolist() for result in results] == [[2, 0, 12], [0]]


def test_on_a_gpu_the_barrier_is_that_of_xla():
    x = tensor.vector("x")
    slope = xla.function([x], aesara.grad(squared_tanh(x, 2 * x).sum(), x))
    point = numpy.ones(3, "float32")

    modules = {name: slope.export_for(name, point).mlir_module() for name in ("cuda", "cpu")}

    assert "optimization_barrier" in modules["cuda"]
    # Old releases for the CPU drop it too early.
    assert "optimization_barrier" not in modules["cpu"]
    assert "stablehlo.select" in modules["cpu"]


def test_what_is_said_for_gradients_does_not_keep_rewrites_from_their_work():
    x = tensor.matrix("x")
    probabilities = Recomputed(1)(tensor.special.softmax(x, axis=-1), x)

    result = xla.function([x], tensor.log(probabilities))(numpy.array([[0, 1000]], "float32"))

    assert result.tolist() == [[-1000, 0]]


def test_it_can_stand_in_the_step_of_a_loop():
    x, w = tensor.dmatrix("x"), tensor.dmatrix("w")

    def step(x, h, w, again):
        new = tensor.tanh(x + h.dot(w))
        return Recomputed(1)(new, x, h, w) if again else new

    slopes = []
    for again in (True, False):
        states, _ = aesara.scan(
            lambda x, h, w, again=again: step(x, h, w, again),
            sequences=[x],
            outputs_info=[tensor.zeros_like(x[0])],
            non_sequences=[w],
        )
        slopes += aesara.grad((states**2).sum(), [x, w])

    rng = numpy.random.default_rng(0)
    mine, of_w, expected, expected_of_w = xla.function([x, w], slopes)(
        rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
    )
    numpy.testing.assert_allclose(mine, expected, rtol=1e-12)
    numpy.testing.assert_allclose(of_w, expected_of_w, rtol=1e-12)
