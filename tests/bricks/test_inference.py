import numpy
import pytest
from aesara import tensor

import bricks
from bricks import MLP, Softmax, Tanh
from bricks.archive import ForeignFile
from bricks.initialization import Constant, IsotropicGaussian
from bricks.model import Model
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
