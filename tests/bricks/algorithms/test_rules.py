"""The step rules, against the same arithmetic in numpy's float64 and against optax."""

import pickle

import jax.numpy
import numpy
import optax
import pytest
from aesara import tensor

from bricks import xla
from bricks.algorithms import (
    AdaDelta,
    AdaGrad,
    Adam,
    BasicMomentum,
    BasicNesterovMomentum,
    BasicRMSProp,
    CompositeRule,
    GradientDescent,
    Momentum,
    NesterovMomentum,
    RemoveNotFinite,
    Restrict,
    RMSProp,
    Scale,
    StepClipping,
    StepRule,
    VariableClipping,
)
from bricks.config import config
from bricks.roles import ALGORITHM_BUFFER, ALGORITHM_HYPERPARAMETER, has_roles

START = numpy.array([[1.0, -2.0, 0.5], [3.0, 0.0, -1.0]])
GRADIENTS = numpy.random.RandomState(7).normal(size=(6, 2, 3))


def train(rule, start=START, gradients=GRADIENTS):
    """Feed gradients to a rule, and give the parameter after each step."""
    parameter = xla.shared(numpy.asarray(start, dtype="float32"), name="W")
    gradient = tensor.TensorType("float32", (None,) * parameter.ndim)("gradient")
    algorithm = GradientDescent(gradients=[(parameter, gradient)], step_rule=rule)
    algorithm.initialize()
    values = []
    for value in gradients:
        algorithm.process_batch({"gradient": numpy.asarray(value, dtype="float32")})
        values.append(parameter.get_value())
    return numpy.array(values)


def follow(transform, start=START, gradients=GRADIENTS):
    """Do the same with a transformation of optax."""
    parameter = jax.numpy.asarray(start, dtype="float32")
    state = transform.init(parameter)
    values = []
    for value in gradients:
        update, state = transform.update(jax.numpy.asarray(value, "float32"), state, parameter)
        parameter = optax.apply_updates(parameter, update)
        values.append(numpy.asarray(parameter))
    return numpy.array(values)


def walk(step_of, start=START, gradients=GRADIENTS):
    """Do the same with a function from gradient to step, in float64."""
    parameter = numpy.array(start, dtype="float64")
    values = []
    for gradient in gradients:
        parameter = parameter - step_of(gradient)
        values.append(parameter)
    return numpy.array(values)


OF_OPTAX = {
    "scale": (lambda: Scale(0.1), lambda: optax.sgd(0.1)),
    "momentum": (lambda: Momentum(0.1, 0.9), lambda: optax.sgd(0.1, momentum=0.9)),
    "nesterov": (
        lambda: NesterovMomentum(0.1, 0.9),
        lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    ),
    "adadelta": (
        lambda: AdaDelta(0.9, 1e-6),
        lambda: optax.adadelta(learning_rate=1.0, rho=0.9, eps=1e-6),
    ),
    "rmsprop": (
        lambda: RMSProp(0.1, 0.9, 1e5),
        lambda: optax.rmsprop(0.1, decay=0.9, eps=0.0),
    ),
    "adam": (lambda: Adam(0.1, 0.9, 0.99, 0.0), lambda: optax.adam(0.1, 0.9, 0.99, eps=0.0)),
    "step clipping": (
        lambda: StepClipping(1.5),
        lambda: optax.chain(optax.clip_by_global_norm(1.5), optax.scale(-1.0)),
    ),
}


@pytest.mark.parametrize("name", OF_OPTAX)
def test_a_rule_agrees_with_optax_where_the_formulas_are_the_same(name):
    ours, theirs = OF_OPTAX[name]

    numpy.testing.assert_allclose(train(ours()), follow(theirs()), rtol=2e-4, atol=1e-6)


def ada_delta():
    mean_square, mean_square_delta = 0.0, 0.0

    def step(gradient):
        nonlocal mean_square, mean_square_delta
        mean_square = 0.95 * mean_square + 0.05 * gradient**2
        delta = numpy.sqrt(mean_square_delta + 1e-6) / numpy.sqrt(mean_square + 1e-6) * gradient
        mean_square_delta = 0.95 * mean_square_delta + 0.05 * delta**2
        return delta

    return step


def rms_prop(decay_rate, max_scaling):
    mean_square = 0.0

    def step(gradient):
        nonlocal mean_square
        mean_square = decay_rate * mean_square + (1 - decay_rate) * gradient**2
        return gradient / numpy.maximum(numpy.sqrt(mean_square), 1 / max_scaling)

    return step


def ada_grad():
    total = 0.0

    def step(gradient):
        nonlocal total
        total = total + gradient**2
        return 0.002 * gradient / (numpy.sqrt(total) + 1e-6)

    return step


def adam(rate=0.002, beta1=0.9, beta2=0.999, epsilon=1e-8, decay_factor=1.0):
    time, mean, variance = 0, 0.0, 0.0

    def step(gradient):
        nonlocal time, mean, variance
        time += 1
        now = beta1 * decay_factor ** (time - 1)
        mean = now * mean + (1 - now) * gradient
        variance = beta2 * variance + (1 - beta2) * gradient**2
        corrected = rate * numpy.sqrt(1 - beta2**time) / (1 - beta1**time)
        return corrected * mean / (numpy.sqrt(variance) + epsilon)

    return step


def momentum(kept, nesterov=False):
    velocity = 0.0

    def step(gradient):
        nonlocal velocity
        velocity = kept * velocity + gradient
        return kept * velocity + gradient if nesterov else velocity

    return step


IN_NUMPY = {
    "Scale": (lambda: Scale(), lambda gradient: gradient),
    "BasicMomentum": (lambda: BasicMomentum(0.8), momentum(0.8)),
    "BasicNesterovMomentum": (lambda: BasicNesterovMomentum(0.8), momentum(0.8, nesterov=True)),
    "Momentum": (lambda: Momentum(), lambda gradient: gradient),
    "AdaDelta": (lambda: AdaDelta(), ada_delta()),
    "BasicRMSProp": (lambda: BasicRMSProp(), rms_prop(0.9, 1e5)),
    "RMSProp": (lambda: RMSProp(decay_rate=0.5), rms_prop(0.5, 1e5)),
    "RMSProp with a bound that is reached": (lambda: RMSProp(max_scaling=2), rms_prop(0.9, 2)),
    "AdaGrad": (lambda: AdaGrad(), ada_grad()),
    "Adam": (lambda: Adam(), adam()),
    "Adam with a decay": (lambda: Adam(0.1, decay_factor=0.5), adam(0.1, decay_factor=0.5)),
}


@pytest.mark.parametrize("name", IN_NUMPY)
def test_a_rule_agrees_with_its_formula_in_float64(name):
    rule, step_of = IN_NUMPY[name]

    numpy.testing.assert_allclose(train(rule()), walk(step_of), rtol=1e-4, atol=1e-5)


def test_a_step_below_the_threshold_is_not_clipped():
    numpy.testing.assert_array_equal(train(StepClipping(100.0)), train(Scale()))


def test_step_clipping_without_a_threshold_leaves_the_steps():
    numpy.testing.assert_array_equal(train(StepClipping()), train(Scale()))


def test_step_clipping_takes_the_norm_of_all_steps_together():
    first, second = (xla.shared(numpy.zeros(1, "float32"), name=name) for name in "ab")
    steps, _ = StepClipping(1.0).compute_steps(
        {
            first: tensor.constant([3.0], dtype="float32"),
            second: tensor.constant([4.0], dtype="float32"),
        }
    )

    numpy.testing.assert_allclose(
        [step.eval()[0] for step in steps.values()], [0.6, 0.8], rtol=1e-6
    )


def clipped(rule, start, gradient):
    return train(rule, start, [gradient])[0]


def test_variable_clipping_bounds_the_norm_of_the_updated_parameter():
    start, gradient = [[3.0, 0.0]], [[0.0, -4.0]]  # the updated parameter is (3, 4)

    numpy.testing.assert_allclose(
        clipped(VariableClipping(1.0), start, gradient), [[0.6, 0.8]], rtol=1e-6
    )


def test_variable_clipping_leaves_what_is_within_the_bound():
    start, gradient = [[3.0, 0.0]], [[0.0, -4.0]]

    numpy.testing.assert_array_equal(clipped(VariableClipping(5.1), start, gradient), [[3.0, 4.0]])


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (0, [[0.6, 1.0], [0.8, 0.0]]),
        (-2, [[0.6, 1.0], [0.8, 0.0]]),
        (numpy.int64(0), [[0.6, 1.0], [0.8, 0.0]]),
        (1, [[3 / numpy.sqrt(10), 1 / numpy.sqrt(10)], [1.0, 0.0]]),
        ((0, 1), numpy.array([[3.0, 1.0], [4.0, 0.0]]) / numpy.sqrt(26)),
        (None, numpy.array([[3.0, 1.0], [4.0, 0.0]]) / numpy.sqrt(26)),
    ],
)
def test_variable_clipping_sums_over_the_axes_it_is_given(axis, expected):
    result = clipped(VariableClipping(1.0, axis=axis), numpy.zeros((2, 2)), [[-3, -1], [-4, 0]])

    numpy.testing.assert_allclose(result, expected, rtol=1e-6)


def test_variable_clipping_works_on_a_vector():
    numpy.testing.assert_allclose(
        clipped(VariableClipping(1.0, axis=0), [3.0, 4.0], [0.0, 0.0]), [0.6, 0.8], rtol=1e-6
    )


def test_variable_clipping_of_a_parameter_of_zeros_gives_zeros():
    numpy.testing.assert_array_equal(
        clipped(VariableClipping(1.0), numpy.zeros((2, 2)), numpy.zeros((2, 2))),
        numpy.zeros((2, 2)),
    )


def test_variable_clipping_refuses_an_axis_that_a_parameter_does_not_have():
    bias = xla.shared(numpy.zeros(3, "float32"), name="b")

    with pytest.raises(ValueError, match=r"`axis` is \(1,\), but b has 1 axes.*Restrict"):
        VariableClipping(1.0, axis=1).compute_step(bias, bias)


def test_variable_clipping_refuses_an_axis_twice():
    with pytest.raises(ValueError, match="must not name an axis twice"):
        VariableClipping(1.0, axis=(0, 0))


@pytest.mark.parametrize("bad", [numpy.nan, numpy.inf, -numpy.inf])
@pytest.mark.parametrize("scaler", [1, 0.9])
def test_a_step_that_is_not_finite_scales_the_parameter_instead(bad, scaler):
    gradients = [numpy.ones((2, 3)), numpy.where(START == 0.5, bad, 1.0)]

    values = train(RemoveNotFinite(scaler=scaler), START, gradients)

    numpy.testing.assert_allclose(values[0], START - 1)
    numpy.testing.assert_allclose(values[1], (START - 1) * scaler, rtol=1e-6)


def test_a_step_of_finite_elements_with_an_infinite_sum_is_made():
    step = numpy.full((2, 3), 3e38)

    numpy.testing.assert_allclose(
        train(RemoveNotFinite(), numpy.zeros((2, 3)), [step])[0], -step, rtol=1e-6
    )


def test_remove_not_finite_keeps_a_later_velocity_finite():
    gradients = [numpy.ones(2), [numpy.nan, 1.0], numpy.ones(2)]

    values = train(
        CompositeRule([RemoveNotFinite(), Momentum(1.0, 0.5)]), numpy.zeros(2), gradients
    )

    # Velocities 1, 0.5, 1.25 by hand: the bad step counts as 0.
    numpy.testing.assert_allclose(values[:, 0], [-1.0, -1.5, -2.75])


def two_parameters(rule):
    first, second = (xla.shared(numpy.zeros(1, "float32"), name=name) for name in "ab")
    gradient = tensor.fvector("gradient")
    algorithm = GradientDescent(
        gradients=[(first, gradient), (second, gradient)], step_rule=rule(first, second)
    )
    algorithm.initialize()
    algorithm.process_batch({"gradient": numpy.ones(1, "float32")})
    return first.get_value()[0], second.get_value()[0]


def test_restrict_applies_a_rule_to_some_parameters_only():
    assert two_parameters(lambda a, b: Restrict(Scale(0.5), [b])) == (-1.0, -0.5)


def test_restrict_composes():
    def rule(a, b):
        return CompositeRule([Restrict(Scale(0.5), [a]), Restrict(Scale(0.25), [a, b])])

    assert two_parameters(rule) == (-0.125, -0.25)


def test_restrict_refuses_a_variable_that_is_not_trained():
    other = xla.shared(numpy.zeros(1, "float32"), name="other")

    with pytest.raises(ValueError, match="Restrict: `variables`.* other is not. Trained are: a, b"):
        two_parameters(lambda a, b: Restrict(Scale(0.5), [other]))


def test_the_components_of_a_composite_rule_are_applied_in_their_order():
    gradient = [numpy.full((1, 1), 10.0)]
    start = numpy.zeros((1, 1))

    clip_first = train(CompositeRule([StepClipping(1.0), Scale(2.0)]), start, gradient)
    scale_first = train(CompositeRule([Scale(2.0), StepClipping(1.0)]), start, gradient)

    assert clip_first[0, 0, 0] == pytest.approx(-2)
    assert scale_first[0, 0, 0] == pytest.approx(-1)


def test_a_composite_rule_refuses_a_class_and_says_what_to_do():
    with pytest.raises(TypeError, match="in position 1. Make an instance of it"):
        CompositeRule([Scale(), Adam])


def test_a_rule_that_overrides_nothing_is_refused_by_name():
    class Lazy(StepRule):
        pass

    with pytest.raises(NotImplementedError, match="Lazy must override `compute_step`"):
        train(Lazy())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdaDelta(decay_rate=1.5), "AdaDelta: `decay_rate` must be from 0 to 1; got 1.5"),
        (lambda: BasicRMSProp(decay_rate=-1), "BasicRMSProp: `decay_rate` must be from 0 to 1"),
        (lambda: RMSProp(max_scaling=0), "BasicRMSProp: `max_scaling` must be above 0; got 0"),
        (lambda: Adam(beta1=float("nan")), "Adam: `beta1` must be from 0 to 1; got nan"),
        (lambda: Adam(beta2=2), "Adam: `beta2` must be from 0 to 1; got 2"),
        (lambda: Adam(beta2="0.5"), "Adam: `beta2` must be from 0 to 1; got '0.5'"),
        (lambda: AdaDelta(decay_rate=True), "AdaDelta: `decay_rate` must be from 0 to 1; got True"),
        (lambda: RMSProp(max_scaling="9"), "BasicRMSProp: `max_scaling` must be above 0; got '9'"),
    ],
)
def test_a_hyperparameter_out_of_range_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


ALL_RULES = {
    "Scale": lambda: Scale(0.1),
    "BasicMomentum": lambda: BasicMomentum(0.9),
    "Momentum": lambda: Momentum(0.1, 0.9),
    "BasicNesterovMomentum": lambda: BasicNesterovMomentum(0.9),
    "NesterovMomentum": lambda: NesterovMomentum(0.1, 0.9),
    "AdaDelta": AdaDelta,
    "BasicRMSProp": BasicRMSProp,
    "RMSProp": lambda: RMSProp(0.1),
    "AdaGrad": AdaGrad,
    "Adam": Adam,
    "StepClipping": lambda: StepClipping(1.0),
    "VariableClipping": lambda: VariableClipping(1.0, axis=0),
    "RemoveNotFinite": lambda: RemoveNotFinite(0.1),
    "CompositeRule": lambda: CompositeRule([StepClipping(1.0), Adam()]),
}


@pytest.mark.parametrize("name", ALL_RULES)
def test_what_a_rule_makes_has_roles_and_the_dtype_and_shape_of_the_parameter(name):
    parameter = xla.shared(numpy.zeros((2, 3), "float32"), name="W")
    rule = ALL_RULES[name]()

    steps, updates = rule.compute_steps({parameter: tensor.fmatrix("gradient")})

    assert steps[parameter].type.dtype == "float32"
    for target, value in updates:
        assert has_roles(target, [ALGORITHM_BUFFER])
        assert value.dtype == target.dtype == "float32"
        if target.ndim:
            assert target.tag.for_parameter is parameter
            assert target.get_value().shape == (2, 3)
    for hyperparameter in rule.hyperparameters.values():
        assert has_roles(hyperparameter, [ALGORITHM_HYPERPARAMETER])
        assert hyperparameter.dtype == "float32"


@pytest.mark.parametrize("name", ALL_RULES)
def test_a_rule_shows_its_class_and_its_numbers(name):
    shown = repr(ALL_RULES[name]())

    assert shown.startswith(f"{name}(")
    assert "0x" not in shown


def test_a_rule_shows_each_hyperparameter():
    assert repr(Momentum(0.1, 0.9)) == "Momentum(learning_rate=0.1, momentum=0.9)"


def test_one_learning_rate_can_be_shared_by_two_rules():
    rate = xla.shared(numpy.float32(0.5), name="rate")

    rule = CompositeRule([Scale(rate), Scale(rate)])

    numpy.testing.assert_allclose(train(rule, [0.0], [[1.0]])[0], [-0.25])


def test_adam_gives_a_parameter_a_counter_of_its_own_when_asked_for_one_step():
    parameter = xla.shared(numpy.zeros(2, "float32"), name="W")

    _, updates = Adam().compute_step(parameter, tensor.fvector())

    assert [
        target.tag.name if hasattr(target.tag, "name") else target.name for target, _ in updates
    ] == ["time", "mean", "variance"]


def made(name):
    """Make an algorithm with one of the rules, that subtracts from a matrix."""
    parameter = xla.shared(START.astype("float32"), name="W")
    algorithm = GradientDescent(
        gradients=[(parameter, tensor.fmatrix("gradient"))], step_rule=ALL_RULES[name]()
    )
    algorithm.initialize()
    return algorithm


def go_on(algorithm, first):
    for gradient in GRADIENTS[first:]:
        algorithm.process_batch({"gradient": gradient.astype("float32")})
    return [target.get_value().tobytes() for target, _ in algorithm.updates]


@pytest.mark.parametrize("name", ALL_RULES)
def test_a_rule_resumes_bit_by_bit_at_every_step(name):
    algorithm, fresh = made(name), made(name)
    saved = []
    for gradient in GRADIENTS:
        state = algorithm.get_state_variables().items()
        saved.append({key: variable.get_value() for key, variable in state})
        algorithm.process_batch({"gradient": gradient.astype("float32")})
    expected = go_on(algorithm, len(GRADIENTS))

    for step, values in enumerate(saved):
        for key, variable in fresh.get_state_variables().items():
            variable.set_value(values[key])
        assert go_on(fresh, step) == expected


@pytest.mark.parametrize("name", ALL_RULES)
def test_a_rule_pickles_in_the_middle_of_training(name):
    algorithm = made(name)
    algorithm.process_batch({"gradient": GRADIENTS[0].astype("float32")})

    copy = pickle.loads(pickle.dumps(algorithm))

    assert repr(copy.step_rule) == repr(algorithm.step_rule)
    assert go_on(copy, 1) == go_on(algorithm, 1)


@pytest.mark.parametrize("name", ALL_RULES)
def test_a_rule_does_the_same_on_both_backends(name, monkeypatch):
    on_xla = train(ALL_RULES[name]())
    monkeypatch.setattr(config, "backend", "py")

    numpy.testing.assert_allclose(train(ALL_RULES[name]()), on_xla, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ALL_RULES)
def test_a_keyword_that_a_rule_does_not_take_is_refused_by_name(name):
    rule = type(ALL_RULES[name]())

    with pytest.raises(TypeError, match=rf"{rule.__name__}: unexpected argument 'rhythm'\. "):
        rule(rhythm=1)


def test_a_misspelt_hyperparameter_is_refused_with_the_nearest():
    with pytest.raises(TypeError, match=r"Adam: .* 'learning_rat'\. Did you mean 'learning_rate'"):
        Adam(learning_rat=1)
