"""A function of XLA is called, updates, fails, pickles and reports as a function of Aesara does."""

import copy
import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import time

import aesara
import jax
import numpy
import pytest
from aesara import tensor
from aesara.compile.ops import as_op
from aesara.raise_op import Assert
from aesara.scalar.basic import UnaryScalarOp, upgrade_to_float
from aesara.tensor.elemwise import Elemwise

from bricks import xla
from bricks.config import config


@pytest.fixture
def counter():
    return xla.shared(numpy.float32(0), name="counter")


@pytest.fixture(autouse=True)
def default_backend():
    yield
    del config.backend


def training_function(backend=None, **options):
    """Return a function that trains a small classifier, and its parameters."""
    rng = numpy.random.default_rng(0)
    x, y = tensor.matrix("x"), tensor.lvector("y")
    weights = xla.shared(rng.normal(size=(5, 4)).astype("float32"), name="W")
    biases = xla.shared(numpy.zeros(4, "float32"), name="b")
    probabilities = tensor.special.softmax(x.dot(weights) + biases, axis=-1)
    cost = tensor.nnet.categorical_crossentropy(probabilities, y).mean()
    parameters = [weights, biases]
    updates = [
        (p, p - numpy.float32(0.5) * g)
        for p, g in zip(parameters, aesara.grad(cost, parameters), strict=True)
    ]
    step = xla.function([x, y], cost, updates=updates, name="step", backend=backend, **options)
    return step, parameters


def batch():
    rng = numpy.random.default_rng(1)
    return rng.normal(size=(8, 5)).astype("float32"), rng.integers(0, 4, size=8)


@pytest.mark.parametrize("backend", ["py", "FAST_COMPILE"])
def test_training_gives_the_same_losses_and_parameters_on_every_backend(backend):
    ours, our_parameters = training_function()
    theirs, their_parameters = training_function(backend)

    losses = [[float(step(*batch())) for _ in range(3)] for step in (ours, theirs)]

    numpy.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    for mine, other in zip(our_parameters, their_parameters, strict=True):
        numpy.testing.assert_allclose(mine.get_value(), other.get_value(), rtol=1e-4, atol=1e-6)


def test_the_backend_of_the_configuration_is_taken():
    config.backend = "py"
    x = tensor.scalar("x")

    assert repr(xla.function([x], x + 1, name="f")) == "<f(x) compiled by py>"


def test_an_unknown_backend_names_the_nearest():
    with pytest.raises(ValueError, match="no 'FAST_RUM'.*FAST_RUN"):
        xla.function([], tensor.constant(1), backend="FAST_RUM")


def test_c_without_a_compiler_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match="AESARA_FLAGS=cxx=g"):
        xla.function([], tensor.constant(1), backend="c")


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_arguments_go_by_position_or_by_name(backend):
    x, y = tensor.scalars("x", "y")
    subtract = xla.function([x, y], x - y, backend=backend, name="subtract")

    assert subtract(5, 3) == subtract(5, y=3) == subtract(y=3, x=5) == 2
    with pytest.raises(TypeError, match="subtract was called without y"):
        subtract(5)
    with pytest.raises(TypeError, match="subtract has no input 'z'"):
        subtract(5, z=3)
    with pytest.raises(TypeError, match="input 'x' was given twice"):
        subtract(5, x=3)
    with pytest.raises(TypeError, match="takes 2 arguments, 3 were given"):
        subtract(1, 2, 3)


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_outputs_come_in_the_form_that_was_asked_for(backend):
    x = tensor.dscalar("x")

    assert xla.function([x], x + 1, backend=backend)(1) == 2
    assert xla.function([x], [x + 1], backend=backend)(1) == [2]
    assert xla.function([x], {"b": x + 1, "a": x}, backend=backend)(1) == {"a": 1, "b": 2}
    assert xla.function([x], None, backend=backend, on_unused_input="ignore")(1) is None
    assert xla.function([x], [], backend=backend, on_unused_input="ignore")(1) == []


def test_outputs_are_arrays_of_the_caller():
    x = tensor.vector("x")

    result = xla.function([x], x)(numpy.ones(3, "float32"))
    result += 1

    assert type(result) is numpy.ndarray


def test_givens_replace_variables():
    x, y = tensor.scalars("x", "y")

    assert xla.function([x], y * 2, givens={y: x + 1})(3) == 8


def test_an_unused_input_is_refused_unless_told_otherwise():
    x, y = tensor.scalars("x", "y")

    with pytest.raises(aesara.compile.function.types.UnusedInputError, match="y"):
        xla.function([x, y], x)
    assert xla.function([x, y], x, on_unused_input="ignore")(1, 2) == 1


def test_a_mode_in_the_place_of_updates_is_refused():
    x = tensor.scalar("x")

    with pytest.raises(TypeError, match="`updates` and `givens` must be mappings.*`backend`"):
        xla.function([x], x, "FAST_RUN")


def test_an_argument_of_another_dtype_or_rank_is_refused_with_its_name():
    x = tensor.matrix("features")
    f = xla.function([x], x.sum(), name="f")

    with pytest.raises(TypeError, match=r"f: argument 0, 'features'.*float64 of shape \(2, 3\)"):
        f(numpy.zeros((2, 3)))
    with pytest.raises(TypeError, match=r"got float32 of shape \(3,\)"):
        f(numpy.zeros(3, "float32"))


def test_a_wider_argument_is_accepted_if_that_was_asked_for():
    x = tensor.matrix("x")

    f = xla.function([x], x.sum(), allow_input_downcast=True)

    assert f(numpy.ones((2, 3))) == 6


def test_a_declared_length_is_checked():
    x = tensor.TensorType("float32", shape=(None, 3))("x")

    with pytest.raises(TypeError, match="argument 0, 'x'"):
        xla.function([x], x.sum())(numpy.zeros((2, 4), "float32"))


def test_an_updated_variable_stays_on_the_device(counter):
    f = xla.function([], updates={counter: counter + 1})

    f()
    f()

    assert isinstance(counter.container.storage.device, jax.Array)
    assert counter.get_value() == 2
    assert isinstance(counter.container.storage.device, jax.Array)


def test_updates_use_the_values_before_the_call():
    first, second = (xla.shared(numpy.float32(v), name=str(v)) for v in (1, 2))
    swap = xla.function([], [first, second], updates=[(first, second), (second, first)])

    assert swap() == [1, 2]
    assert swap() == [2, 1]


def test_a_variable_updated_to_another_does_not_share_its_memory(counter):
    source = xla.shared(numpy.float32(7))
    follow = xla.function([], updates={counter: source})
    advance = xla.function([], updates={counter: counter + 1})

    follow()
    advance()

    assert (counter.get_value(), source.get_value()) == (8, 7)


def test_default_updates_apply_unless_told_otherwise(counter):
    counter.default_update = counter + 1

    xla.function([], counter)()
    xla.function([], counter, no_default_updates=True)()

    assert counter.get_value() == 1


def test_a_shared_variable_of_aesara_is_updated_too():
    foreign = aesara.shared(numpy.float32(1), name="foreign")

    f = xla.function([], foreign * 2, updates={foreign: foreign + 1})

    assert [f(), f()] == [2, 4]
    assert type(foreign.get_value()) is numpy.ndarray


def test_a_random_state_of_aesara_is_refused_with_the_way_out():
    from aesara.tensor.random.utils import RandomStream

    with pytest.raises(xla.UnsupportedOp, match=r"Draw random numbers from bricks\.xla\.RandomStr"):
        xla.function([], RandomStream(1).uniform(size=(3,)))


def test_a_batch_may_be_overwritten_as_soon_as_the_call_returns():
    x = tensor.matrix("x")
    total = xla.shared(numpy.float32(0))
    f = xla.function([x], updates={total: total + (x.dot(x.T)).sum() * 0 + x.sum()})
    buffer = numpy.empty((300, 300), "float32")

    for value in range(50):
        buffer[...] = value
        f(buffer)
    buffer[...] = -1

    assert total.get_value() == 300 * 300 * sum(range(50))


def test_wide_dtypes_are_kept_and_the_users_setting_of_jax_is_untouched():
    x, i = tensor.dvector("x"), tensor.lvector("i")
    before = jax.config.jax_enable_x64

    floats, integers = xla.function([x, i], [x + 1e-12, i + 1])(numpy.ones(1), numpy.array([2**40]))

    assert floats.dtype == "float64"
    assert floats[0] != 1
    assert integers.tolist() == [2**40 + 1]
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.zeros(1, "float32").dtype == "float32"


def test_what_is_float64_throughout_is_no_upcast(caplog):
    total, count = xla.shared(numpy.float64(3), "total"), xla.shared(numpy.float64(2), "count")

    xla.function([], total / count, updates=[(total, tensor.zeros_like(total))])

    assert not caplog.messages


def test_an_upcast_to_float64_is_reported_once_with_its_place(caplog):
    x, lengths = tensor.vector("upcast x"), tensor.lvector("lengths")

    for _ in range(2):
        xla.function([x, lengths], x / lengths)

    messages = [record.message for record in caplog.records if "float64" in record.message]
    assert len(messages) == 1
    assert "(upcast x, lengths) is computed in float64 although floatX is float32" in messages[0]


def test_broadcasting_that_the_graph_does_not_know_of_is_refused():
    x, y = tensor.matrices("x", "y")
    f = xla.function([x, y], x + y)

    with pytest.raises(xla.GraphError, match=r"axis 0 of 'y' has length 1 .* repeated to 3"):
        f(numpy.zeros((3, 2), "float32"), numpy.zeros((1, 2), "float32"))
    assert f(numpy.zeros((1, 2), "float32"), numpy.ones((1, 2), "float32")).tolist() == [[1, 1]]


def test_a_shape_error_names_the_operation_and_leaves_the_parameters_as_they_are():
    step, (weights, _) = training_function()
    step(*batch())
    before = weights.get_value()

    with pytest.raises(xla.GraphError, match=r"[dD]ot.*\(x, W\).*float32\(8, 7\), float32\(5, 4\)"):
        step(numpy.zeros((8, 7), "float32"), batch()[1])

    numpy.testing.assert_array_equal(weights.get_value(), before)
    assert numpy.isfinite(step(*batch()))


class Application:
    """What an annotation of a brick's application looks like."""

    def __init__(self, brick_name, name):
        self.application = self
        self.brick = type("Brick", (), {"name": brick_name})()
        self.application_name = name


@as_op(itypes=[tensor.fvector], otypes=[tensor.fvector])
def deduplicate(x):
    return numpy.unique(x)


def test_an_operation_without_lowering_is_named_with_its_brick_and_the_way_out():
    x = tensor.vector("x")
    result = deduplicate(x)
    result.tag.annotations = [Application("dedup", "apply")]

    with pytest.raises(xla.UnsupportedOp) as error:
        xla.function([x], result)

    line = "  /dedup.apply: FromFunctionOp{deduplicate}(x), of class FromFunctionOp\n"
    assert line in str(error.value)
    assert "compile this function with backend='py'" in str(error.value)


def test_a_scalar_operation_without_lowering_is_refused_too():
    x = tensor.vector("x")
    cube = Elemwise(type("Cube", (UnaryScalarOp,), {})(upgrade_to_float, name="cube"))

    with pytest.raises(xla.UnsupportedOp, match="no lowering for the scalar operation cube"):
        xla.function([x], cube(x))(numpy.ones(2, "float32"))


def test_an_integer_argument_that_reaches_a_shape_is_compiled_for():
    x, n = tensor.vector("x"), tensor.lscalar("n")
    f = xla.function([x, n], [x[:n], tensor.arange(n), tensor.zeros((n + 1,)).sum() + n])
    values = numpy.arange(5, dtype="float32")

    for count in (2, 3, 2):
        head, places, total = f(values, count)
        assert head.tolist() == values[:count].tolist()
        assert places.tolist() == list(range(count))
        assert total == count
    assert f.num_compilations == 2


def test_an_integer_argument_that_reaches_no_shape_is_not():
    x, i = tensor.vector("x"), tensor.lscalar("i")
    f = xla.function([x, i], x[i])

    assert [float(f(numpy.array([3, 4], "float32"), i)) for i in (0, 1, -1)] == [3, 4, 4]
    assert f.num_compilations == 1


def test_a_shape_computed_from_data_is_refused_with_the_way_out():
    x = tensor.vector("x")
    f = xla.function([x], tensor.zeros((tensor.cast(x.sum(), "int64"),)))

    with pytest.raises(xla.DataDependentShape, match="shape of a new array must be known"):
        f(numpy.ones(2, "float32"))


def test_a_mask_that_selects_elements_is_refused_with_the_way_out():
    x = tensor.vector("x")

    with pytest.raises((xla.UnsupportedOp, xla.DataDependentShape), match="backend='py'"):
        xla.function([x], x[x > 0])(numpy.ones(2, "float32"))


def test_many_compilations_bring_one_warning_with_the_sizes_seen(caplog):
    x = tensor.matrix("features")
    f = xla.function([x], x.sum(), name="summing")

    for length in range(1, 8):
        f(numpy.zeros((length, 2), "float32"))

    messages = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(messages) == 1
    assert "summing was compiled 5 times" in messages[0]
    assert "axis 0 of features (seen: 1, 2, 3, 4, 5)" in messages[0]
    assert "Padding(multiple_of=...)" in messages[0]


def test_a_condition_known_from_shapes_is_checked_while_tracing():
    x = tensor.vector("x")
    f = xla.function([x], Assert("too short")(x, tensor.ge(x.shape[0], 2)))

    with pytest.raises(AssertionError, match="too short"):
        f(numpy.zeros(1, "float32"))
    assert f(numpy.zeros(2, "float32")).shape == (2,)


def test_a_condition_that_fails_at_run_time_raises_and_leaves_the_state_as_it_was(counter):
    x = tensor.vector("x")
    checked = Assert("negative")(x, tensor.all(x >= 0))
    f = xla.function([x], checked * 2, updates={counter: counter + checked.sum()})

    f(numpy.array([1, 2], "float32"))
    with pytest.raises(AssertionError, match="negative"):
        f(numpy.array([1, -2], "float32"))

    assert counter.get_value() == 3


def test_a_graph_may_be_deeper_than_python_calls_functions():
    x = tensor.dvector("x")
    deep, expected = x, numpy.array([0.5, 2.0])
    limit = sys.getrecursionlimit()
    for _ in range(limit):
        deep, expected = tensor.sin(deep), numpy.sin(expected)

    numpy.testing.assert_allclose(xla.function([x], deep)([0.5, 2]), expected)
    assert sys.getrecursionlimit() == limit


def test_a_pickle_and_a_copy_go_on_by_themselves():
    step, _ = training_function()
    first = step(*batch())

    loaded, copied = pickle.loads(pickle.dumps(step)), copy.deepcopy(step)

    second = step(*batch())
    assert second < first
    assert loaded(*batch()) == copied(*batch()) == second
    assert loaded.name == "step"
    assert [v.name for v in loaded.inputs] == ["x", "y"]


def test_an_interrupt_during_a_call_loses_no_update(counter):
    x = tensor.matrix("x")
    f = xla.function([x], updates={counter: counter + (x.dot(x)).sum() * 0 + 1})
    data = numpy.zeros((64, 64), "float32")
    f(data)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    interrupts = 0
    try:
        for number in range(60):
            deadline = time.monotonic() + 10
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.00001 * number)
            try:
                while time.monotonic() < deadline:
                    f(data)
            except KeyboardInterrupt:
                interrupts += 1
            assert not xla.state_is_lost([counter])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)

    assert interrupts == 60
    before = counter.get_value()
    f(data)
    assert counter.get_value() == before + 1


def test_a_failed_call_that_gave_its_state_up_says_so_in_words(counter):
    f = xla.function([], counter * 2, updates={counter: counter + 1}, name="counting")
    f()
    counter.container.storage.device.delete()

    with pytest.raises(xla.DonatedStateLost, match=r"counting failed.*\(counter\).*checkpoint"):
        f()
    with pytest.raises(xla.DonatedStateLost, match="value of shared variable 'counter' is gone"):
        counter.get_value()
    assert xla.state_is_lost([counter])

    counter.set_value(numpy.float32(5))
    assert f() == 10
    assert not xla.state_is_lost([counter])


def test_outputs_that_stay_on_the_device_outlive_later_calls(counter):
    f = xla.function([], [counter, counter + 1], updates={counter: counter + 1}, on_device=True)

    first, second = f(), f()

    assert isinstance(first[0], jax.Array)
    assert [numpy.asarray(x).item() for x in (*first, *second)] == [0, 1, 1, 2]


def test_no_device_array_is_left_behind():
    step, _ = training_function()
    step(*batch())
    gc.collect()
    before = len(jax.live_arrays())

    for _ in range(5):
        step(*batch())
    gc.collect()

    assert len(jax.live_arrays()) == before


DIGEST_SCRIPT = """
import sys
sys.path[:0] = sys.argv[1:]
import bricks
from test_functions import batch, training_function
step, _ = training_function()
step(*batch())
print(step.lowered_digest())
"""


def test_the_program_is_the_same_in_every_process():
    here = os.path.dirname(__file__)
    root = os.path.abspath(os.path.join(here, "..", "..", ".."))
    digests = set()
    for seed in ("0", "1", "2"):
        result = subprocess.run(
            [sys.executable, "-c", DIGEST_SCRIPT, root, here],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        digests.add(result.stdout.strip())
    step, _ = training_function()
    step(*batch())

    assert digests == {step.lowered_digest()}
    assert step.num_compilations == 1


def test_the_times_of_a_build_are_told():
    x = tensor.vector("x")
    ours, theirs = (xla.function([x], x + 1, backend=backend) for backend in ("xla", "py"))

    assert ours.build_times.rewrite > 0
    assert ours.build_times.compile == 0
    ours(numpy.ones(2, "float32"))
    assert min(ours.build_times.trace, ours.build_times.compile) > 0
    assert theirs.build_times.total == theirs.build_times.rewrite > 0


def test_a_digest_needs_a_call_first():
    step, _ = training_function()

    with pytest.raises(RuntimeError, match="step has not been called"):
        step.lowered_digest()


def test_only_xla_has_a_digest():
    step, _ = training_function("py")

    with pytest.raises(RuntimeError, match="compiled by 'py'; only what XLA compiles"):
        step.lowered_digest()


def test_a_training_step_lowers_for_cuda():
    step, _ = training_function()

    exported = xla.export_for("cuda", step, *batch())

    assert exported.platforms == ("cuda",)
    assert "dot_general" in exported.mlir_module()


def test_a_function_with_an_integer_that_reaches_a_shape_lowers_for_cuda():
    n = tensor.lscalar("n")

    exported = xla.export_for("cuda", xla.function([n], tensor.arange(n)), 3)

    assert [out.shape for out in exported.out_avals] == [(3,)]
