import aesara
import numpy
import pytest
from aesara import tensor

import bricks
from bricks import MLP, Linear, Softmax, Tanh, xla
from bricks.archive import ForeignFile
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, apply_dropout, apply_noise, collect_parameters
from bricks.initialization import Constant, IsotropicGaussian
from bricks.model import Model
from bricks.roles import COLLECTOR, DROPOUT, INPUT, OUTPUT, WEIGHT
from bricks.serialization import dump

X = numpy.random.RandomState(0).standard_normal((5, 4)).astype("float32")


class Nothing:
    """Stands for what a checkpoint has beside the model."""

    name = "nothing"
    epochs_begun = 0

    def get_state(self):
        return {}


class Loop:
    def __init__(self, model):
        self.model, self.algorithm, self.epoch_iterator = model, object(), None
        self.log = self.data_stream = Nothing()
        self.extensions = []


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    x, bias = tensor.matrix("features"), tensor.scalar("temperature")
    mlp = MLP([Tanh(), None], [4, 6, 3], weights_init=IsotropicGaussian(), biases_init=Constant(0))
    mlp.initialize()
    softmax = Softmax()
    scores = mlp.apply(x) * bias
    path = tmp_path_factory.mktemp("model") / "checkpoint.zip"
    dump(Loop(Model([softmax.apply(scores), softmax.log_probabilities(scores)])), path)
    return path


def scores(path):
    with numpy.load(path) as p:
        return numpy.tanh(X @ p["/mlp/linear_0.W"]) @ p["/mlp/linear_1.W"]


def test_the_outputs_of_the_model_are_computed_by_default(path):
    probabilities, logarithms = bricks.load(path)(features=X, temperature=numpy.float32(2))

    expected = numpy.exp(2 * scores(path))
    expected /= expected.sum(axis=1, keepdims=True)
    numpy.testing.assert_allclose(probabilities, expected, rtol=1e-4)
    numpy.testing.assert_allclose(logarithms, numpy.log(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("output", ["/mlp", "/mlp.apply", "mlp_apply_output", "/mlp/linear_1"])
def test_an_output_is_chosen_by_brick_application_or_name_and_needs_only_its_inputs(path, output):
    function = bricks.load(path, outputs=output)

    assert [variable.name for variable in function.inputs] == ["features"]
    numpy.testing.assert_allclose(function(features=X), scores(path), rtol=1e-4, atol=1e-5)


def test_several_outputs_give_a_list(path):
    function = bricks.load(path, outputs=["/softmax.log_probabilities", "/mlp"])
    named = {"features": X, "temperature": numpy.float32(1)}

    values = function(*[named[variable.name] for variable in function.inputs])
    assert [value.shape for value in values] == [(5, 3), (5, 3)]


def test_an_output_that_is_not_there_is_refused_and_the_nearest_is_named(path):
    with pytest.raises(ValueError, match=r"checkpoint\.zip: .* no output '/mpl'.*'/mlp'"):
        bricks.load(path, outputs="/mpl")


def test_an_unknown_input_is_refused_in_words(path):
    with pytest.raises(TypeError, match="'feature'.*'features'"):
        bricks.load(path, outputs="/mlp")(feature=X)


def test_a_checkpoint_without_a_model_is_refused_with_the_way_out(tmp_path):
    dump(Loop(None), tmp_path / "a.zip")

    with pytest.raises(ValueError, match=r"a\.zip holds no model: it .*=Model\(cost\)"):
        bricks.load(tmp_path / "a.zip")


def test_a_file_that_is_none_is_foreign(tmp_path):
    (tmp_path / "a").write_text("text")

    with pytest.raises(ForeignFile, match="is no checkpoint"):
        bricks.load(tmp_path / "a")


def noisy_model(path):
    """Save a model of which the input is dropped, and the parameters and the output have noise."""
    x = tensor.matrix("features")
    mlp = MLP([Tanh(), None], [4, 6, 3], weights_init=IsotropicGaussian(), biases_init=Constant(0))
    mlp.initialize()
    graph = ComputationGraph(mlp.apply(x))
    dropped = VariableFilter(roles=[INPUT], bricks=[Linear])(graph.variables)
    graph = apply_dropout(graph, dropped, 0.5)
    activations = VariableFilter(roles=[OUTPUT], bricks=[Tanh])(graph.variables)
    graph = apply_dropout(graph, activations, 0.5)
    graph = apply_noise(graph, VariableFilter(roles=[WEIGHT])(graph.variables), 0.1)
    dump(Loop(Model(graph.outputs)), path)


@pytest.mark.parametrize("outputs", [None, "/mlp", "/mlp/linear_1", "mlp_apply_output"])
def test_dropout_and_noise_of_training_are_taken_out(tmp_path, outputs):
    noisy_model(tmp_path / "a.zip")

    function = bricks.load(tmp_path / "a.zip", outputs)

    numpy.testing.assert_allclose(function(X), scores(tmp_path / "a.zip"), rtol=1e-4, atol=1e-5)


def test_dropout_of_models_that_were_saved_without_its_depth_is_taken_out(tmp_path):
    x = tensor.matrix("features")
    graph = ComputationGraph(Tanh().apply(x))
    graph = apply_dropout(graph, VariableFilter(roles=[INPUT])(graph.variables), 0.5)
    (dropped,) = VariableFilter(roles=[DROPOUT])(graph.variables)
    del dropped.tag.noise_depth
    dump(Loop(Model(graph.outputs)), tmp_path / "a.zip")

    values = bricks.load(tmp_path / "a.zip")(X)
    numpy.testing.assert_allclose(values, numpy.tanh(X), rtol=1e-5)


def test_dropout_and_noise_stay_if_they_are_asked_for(tmp_path):
    noisy_model(tmp_path / "a.zip")

    function = bricks.load(tmp_path / "a.zip", stochastic=True)

    assert not numpy.allclose(function(X), function(X))


def test_dropout_and_noise_within_loops_are_taken_out(tmp_path):
    x = tensor.tensor3("features")

    def step(x, state):
        inner, _ = aesara.scan(lambda row: Tanh(name="deep").apply(row), [x])
        return Tanh().apply(inner + 0.3 * state)

    states, _ = aesara.scan(step, [x], tensor.zeros_like(x[0]))
    graph = ComputationGraph(states)
    inner = VariableFilter(roles=[OUTPUT], bricks=[Tanh])(graph.scan_variables)
    for per in ("step", "sequence"):
        graph = apply_dropout(graph, inner, 0.5, per=per)
        inner = VariableFilter(roles=[DROPOUT])(graph.scan_variables)
    graph = apply_noise(graph, inner[:1], 0.5, per="step")
    dump(Loop(Model(graph.outputs)), tmp_path / "a.zip")

    given = numpy.stack([X, 2 * X])
    first = numpy.tanh(numpy.tanh(X))
    expected = [first, numpy.tanh(numpy.tanh(2 * X) + 0.3 * first)]
    values = bricks.load(tmp_path / "a.zip")(given)
    numpy.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    random = bricks.load(tmp_path / "a.zip", stochastic=True)
    assert not numpy.allclose(random(given), random(given))


@pytest.mark.parametrize("is_used", [True, False])
def test_a_loop_that_does_not_use_what_is_random_is_not_random(tmp_path, is_used):
    x = tensor.matrix("features")
    noise = xla.RandomStream(1, name="prior").normal(x[0].shape)
    doubled, _ = aesara.scan(
        lambda row, noise: 2 * row + noise if is_used else 2 * row, [x], non_sequences=[noise]
    )
    dump(Loop(Model(Tanh().apply(doubled))), tmp_path / "a.zip")

    if is_used:
        with pytest.raises(ValueError, match=r"random keys prior\.0"):
            bricks.load(tmp_path / "a.zip")
    else:
        values = bricks.load(tmp_path / "a.zip")(X)
        numpy.testing.assert_allclose(values, numpy.tanh(2 * X), rtol=1e-5)


def test_parameters_that_are_collected_in_one_vector_are_those_that_were_trained(tmp_path):
    x = tensor.matrix("features")
    linear = Linear(4, 3, weights_init=Constant(0), biases_init=Constant(0))
    linear.initialize()
    graph = collect_parameters(ComputationGraph(linear.apply(x)), linear.parameters)
    vector = VariableFilter(roles=[COLLECTOR])(graph.shared_variables)[0]
    vector.set_value(numpy.ones_like(vector.get_value()))
    dump(Loop(Model(graph.outputs)), tmp_path / "a.zip")

    expected = numpy.repeat(X.sum(axis=1, keepdims=True) + 1, 3, axis=1)
    numpy.testing.assert_allclose(bricks.load(tmp_path / "a.zip")(X), expected, rtol=1e-5)


def test_a_model_that_is_random_by_itself_is_refused_unless_that_is_wanted(tmp_path):
    x = tensor.matrix("features")
    draws = Tanh().apply(x + xla.RandomStream(1, name="prior").normal(x.shape))
    dump(Loop(Model(draws)), tmp_path / "a.zip")

    message = r"a\.zip: .* is random: .* random keys prior\.0\. .*`stochastic=True`"
    with pytest.raises(ValueError, match=message):
        bricks.load(tmp_path / "a.zip")
    function = bricks.load(tmp_path / "a.zip", stochastic=True)
    assert not numpy.array_equal(function(X), function(X))
