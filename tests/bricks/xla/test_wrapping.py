"""Functions of JAX become operations, with gradients, on each backend and inside loops."""

import copy
import functools
import pickle

import aesara
import jax
import jax.numpy as jnp
import numpy
import pytest
from aesara import tensor

from bricks import xla


@pytest.fixture(params=["xla", "py"])
def backend(request):
    return request.param


def wave(x, y):
    return jnp.sin(x) * y


@xla.wrap
def cube(x):
    """Raise to the third power."""
    return x**3


def divided(x, by):
    return x // by, x % by


def weighted(x, lengths, scale):
    """Sum the first elements of each row."""
    is_inside = jnp.arange(x.shape[1]) < lengths[:, None]
    return (jnp.where(is_inside, x, 0) * scale).sum(axis=1), is_inside.sum(axis=1)


def run(outputs, given, backend):
    """Compute outputs from a mapping of variables to values."""
    return xla.function(list(given), outputs, backend=backend)(*given.values())


def numeric_gradient(function, x):
    gradient = numpy.zeros_like(x)
    for place in numpy.ndindex(x.shape):
        moved = numpy.zeros_like(x)
        moved[place] = 1e-6
        gradient[place] = (function(x + moved) - function(x - moved)) / 2e-6
    return gradient


def test_values_and_gradients_are_those_of_the_function(backend):
    x, y = tensor.dmatrix("x"), tensor.dmatrix("y")
    value = xla.wrap(wave)(x, y)
    slopes = aesara.grad((value**2).sum(), [x, y])
    rng = numpy.random.default_rng(0)
    data = {x: rng.normal(size=(2, 3)), y: rng.normal(size=(2, 3))}

    result, *gradients = run([value, *slopes], data, backend)

    a, b = data.values()
    numpy.testing.assert_allclose(result, numpy.sin(a) * b)
    numpy.testing.assert_allclose(gradients[0], 2 * numpy.sin(a) * numpy.cos(a) * b**2)
    numpy.testing.assert_allclose(gradients[1], 2 * numpy.sin(a) ** 2 * b)


def test_gradients_of_gradients_are_right(backend):
    x = tensor.dvector("x")
    slopes = [cube(x)]
    for _ in range(3):
        slopes.append(aesara.grad(slopes[-1].sum(), x))
    data = numpy.array([-1.0, 0.5, 2.0])

    values = run(slopes, {x: data}, backend)

    for value, expected in zip(values, [data**3, 3 * data**2, 6 * data, 6 + 0 * data], strict=True):
        numpy.testing.assert_allclose(value, expected)


def test_integer_inputs_and_outputs_have_no_gradient(backend):
    x, lengths, scale = tensor.dmatrix("x"), tensor.lvector("lengths"), tensor.dscalar("scale")
    total, count = xla.wrap(weighted)(x, lengths, scale)
    cost = (total**2).sum() + count.sum()
    slopes = aesara.grad(cost, [x, scale])
    rows = numpy.arange(6.0).reshape(2, 3)
    data = {x: rows, lengths: numpy.array([1, 3]), scale: 2.0}

    *_, number, of_x, of_scale = run([total, count, *slopes], data, backend)

    assert count.dtype == "int64"
    assert number.tolist() == [1, 3]

    def expected_cost(values, factor=2.0):
        return values[0, 0] ** 2 * factor**2 + values[1].sum() ** 2 * factor**2

    numpy.testing.assert_allclose(of_x, numeric_gradient(expected_cost, rows), rtol=1e-6)
    assert of_scale == pytest.approx(2 * 2 * 12**2)
    with pytest.raises(aesara.gradient.DisconnectedInputError):
        aesara.grad(cost, lengths)


def test_lengths_that_come_from_the_data_do_not_spoil_its_gradient(backend):
    x = tensor.dmatrix("x")
    lengths = tensor.gt(x, 0).sum(axis=1)
    total, _ = xla.wrap(weighted)(x, lengths, 1.0)
    slope = aesara.grad(total.sum(), x)

    value = run(slope, {x: numpy.array([[1.0, 0, 2], [0, 3, 0]])}, backend)

    assert value.tolist() == [[1, 1, 0], [1, 0, 0]]


def test_inputs_may_be_declared_to_have_no_gradient(backend):
    x, y = tensor.dvectors("x", "y")
    value = xla.wrap(wave, differentiable=[0])(x, y)
    slope = aesara.grad(value.sum(), x)
    second = aesara.grad(slope.sum(), x)

    values = run([slope, second], {x: [0.0, 1.0], y: [2.0, 3.0]}, backend)

    numpy.testing.assert_allclose(values[0], [2, 3 * numpy.cos(1)])
    numpy.testing.assert_allclose(values[1], [0, -3 * numpy.sin(1)])
    with pytest.raises(aesara.gradient.DisconnectedInputError):
        aesara.grad(value.sum(), y)


def test_only_the_outputs_that_a_cost_uses_take_part_in_its_gradient(backend):
    x, y = tensor.dscalars("x", "y")
    quotient, rest = xla.wrap(divided)(x, y)
    slopes = aesara.grad(rest, [x, y])

    values = run([quotient, rest, *slopes], {x: 7.5, y: 2.0}, backend)

    assert [float(value) for value in values] == [3, 1.5, 1, -3]


def test_exact_types_are_inferred_where_all_lengths_are_known():
    x = tensor.TensorType("float32", shape=(4, 3))("x")

    assert xla.wrap(lambda x: x @ x.T)(x).type == tensor.TensorType("float32", shape=(4, 4))
    assert xla.wrap(lambda x: x.argmax(axis=1))(x).type == tensor.TensorType("int64", shape=(4,))
    assert xla.wrap(lambda x: x > 0)(x).type == tensor.TensorType("bool", shape=(4, 3))


def test_axes_are_inferred_where_lengths_are_not_known():
    x, y = tensor.fmatrix("x"), tensor.TensorType("float32", shape=(None, 5))("y")

    assert xla.wrap(jnp.matmul)(x, x).type == tensor.TensorType("float32", shape=(None, None))
    assert xla.wrap(jnp.matmul)(x, y.T).type == tensor.TensorType("float32", shape=(None, None))
    kept = xla.wrap(lambda x: x.sum(axis=1, keepdims=True))(x)
    assert kept.type == tensor.TensorType("float32", shape=(None, 1))
    assert xla.wrap(lambda x: x.reshape(-1, 4))(x).type.shape == (None, None)


def test_types_may_be_declared(backend):
    x = tensor.dvector("x")
    pairs = xla.wrap(lambda x: x.reshape(7, -1), outputs=tensor.TensorType("float32", (7, None)))(x)

    value = run(pairs, {x: numpy.arange(14.0)}, backend)

    assert pairs.type.shape == (7, None)
    assert value.dtype == "float32"
    assert value.tolist() == numpy.arange(14.0).reshape(7, 2).tolist()


def test_a_wrapped_function_can_be_a_step_of_a_loop_and_of_its_gradient(backend):
    x, y = tensor.dmatrix("x"), tensor.dvector("y")
    states, _ = aesara.scan(
        lambda row, state: xla.wrap(wave)(row, state) + cube(state) / 9,
        sequences=[x],
        outputs_info=[y],
    )
    slopes = aesara.grad(states[-1].sum(), [x, y])
    rng = numpy.random.default_rng(0)
    rows, start = rng.normal(size=(4, 2)), rng.normal(size=2)

    def expected(rows, start):
        for row in rows:
            start = numpy.sin(row) * start + start**3 / 9
        return start

    last, of_x, of_y = run([states[-1], *slopes], {x: rows, y: start}, backend)

    numpy.testing.assert_allclose(last, expected(rows, start))
    numpy.testing.assert_allclose(
        of_x, numeric_gradient(lambda x: expected(x, start).sum(), rows), atol=1e-8
    )
    numpy.testing.assert_allclose(
        of_y, numeric_gradient(lambda y: expected(rows, y).sum(), start), atol=1e-8
    )


def test_a_gradient_that_the_function_defines_itself_is_used(backend):
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, gradient: (jnp.clip(gradient, -1, 1),))
    x = tensor.dvector("x")
    slope = aesara.grad((xla.wrap(clipped)(x) * [0.5, 5]).sum(), x)

    assert run(slope, {x: [1.0, 1.0]}, backend).tolist() == [0.5, 1]


def test_graphs_with_importable_functions_can_be_pickled_with_their_gradients():
    x = tensor.dvector("x")
    bound = xla.wrap(functools.partial(wave, y=2.0))(x)
    outputs = [cube(x), bound, *(aesara.grad(out.sum(), x) for out in (cube(x), bound))]
    f = xla.function([x], outputs)

    loaded = pickle.loads(pickle.dumps(f))

    for mine, expected in zip(loaded([1.0, 2.0]), f([1.0, 2.0]), strict=True):
        numpy.testing.assert_array_equal(mine, expected)
    assert pickle.loads(pickle.dumps(cube)) is cube
    assert pickle.loads(pickle.dumps(xla.wrap(wave))) == xla.wrap(wave)


def test_a_function_that_cannot_be_imported_is_refused_when_it_is_pickled_but_can_be_copied():
    operation = xla.wrap(lambda x: x * 2)
    f = xla.function([x := tensor.dvector("x")], operation(x))

    with pytest.raises(pickle.PicklingError, match=r"xla.wrap\(<lambda>\) cannot be pickled.*top"):
        pickle.dumps(f)
    assert copy.deepcopy(operation) is operation
    assert copy.deepcopy(f)([1.0]).tolist() == [2]


def test_an_operation_is_named_and_documented_after_its_function():
    x = tensor.dvector("x")

    assert str(cube) == "xla.wrap(cube)"
    assert cube.__doc__ == "Raise to the third power."
    assert "gradient of cube" in str(aesara.grad(cube(x).sum(), x).owner.op)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: xla.wrap(3)(x), "`function` must be a function of JAX; got 3"),
        (lambda x: xla.wrap(wave, outputs="float32"), "`outputs` must be types of Aesara"),
        (lambda x: xla.wrap(wave)(x), r"wrap\(wave\) cannot be traced with.*missing.*'y'"),
        (
            lambda x: xla.wrap(lambda x: x.reshape(7, 5))(x),
            r"cannot be traced with.*Declare what it returns with `outputs`, or fix lengths",
        ),
        (lambda x: xla.wrap(lambda x: {"a": x})(x), "must return an array, or a tuple.*got dict"),
        (
            lambda x: xla.wrap(lambda x: (x,) * x.shape[0])(x),
            "number, dtype or number of axes depends on the lengths",
        ),
        (
            lambda x: xla.wrap(lambda x: x.astype("bfloat16"))(x),
            "returns bfloat16, which is no dtype of Aesara. Cast it",
        ),
        (
            lambda x: xla.wrap(wave, differentiable=[2])(x, x),
            "`differentiable` names input 2, which is no input of real numbers",
        ),
        (
            lambda x: xla.wrap(wave, differentiable=[1])(x, tensor.lvector()),
            "`differentiable` names input 1, which is no input of real numbers",
        ),
    ],
)
def test_wrong_use_is_refused_in_words(build, message):
    with pytest.raises(TypeError, match=message):
        build(tensor.dvector("x"))


def test_results_that_were_declared_otherwise_are_refused_in_words(backend):
    x = tensor.dvector("x")
    wrong = xla.wrap(lambda x: x[:, None], outputs=tensor.dvector)(x)

    with pytest.raises(
        (TypeError, xla.GraphError), match=r"returned float64\(2, 1\), but.*\(\?,\)"
    ):
        run(wrong, {x: [1.0, 2.0]}, backend)


def test_values_that_decide_what_is_computed_are_refused_in_words():
    x = tensor.dvector("x")
    f = xla.function([x], xla.wrap(lambda x: x if x[0] > 0 else -x, outputs=tensor.dvector)(x))

    with pytest.raises(xla.GraphError, match=r"xla.wrap\(<lambda>\)\(x\) cannot be computed from"):
        f([1.0])


def test_the_gradient_lowers_for_cuda():
    x = tensor.fvector("x")
    f = xla.function([x], aesara.grad(cube(x).sum(), x))

    assert xla.export_for("cuda", f, numpy.ones(3, "float32")).platforms == ("cuda",)
