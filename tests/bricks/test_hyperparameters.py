"""What is said when a script was changed between two runs that share a checkpoint."""

import warnings

import numpy
import pytest
from aesara import tensor

from bricks import MLP, Rectifier, Tanh, xla
from bricks.algorithms import Adam, GradientDescent
from bricks.archive import Archive
from bricks.cost import SquaredError
from bricks.graph import ComputationGraph, apply_dropout
from bricks.hyperparameters import compare_with_script, get_hyperparameters
from bricks.initialization import Constant, IsotropicGaussian
from bricks.main_loop import MainLoop
from bricks.model import Model
from extensions import FinishAfter
from extensions.saveload import Checkpoint
from extensions.training import SharedVariableModifier
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream

RATE = "algorithm/step_rule.learning_rate"


def script(path, num_batches, rate=0.002, activation=Tanh, dropout=0.3, schedule=None):
    """Build the loop of a script; what a user changes in it are the arguments."""
    x, y = tensor.matrix("x"), tensor.matrix("y")
    init = {"weights_init": IsotropicGaussian(0.5), "biases_init": Constant(0)}
    mlp = MLP([activation(), None], [2, 4, 1], seed=1, **init)
    mlp.initialize()
    hidden = mlp.apply(x)
    graph = ComputationGraph(SquaredError().apply(y, hidden))
    first = mlp.linear_transformations[1]
    (cost,) = apply_dropout(graph, [first.W], dropout, seed=1).outputs
    algorithm = GradientDescent(cost, graph.parameters, step_rule=Adam(rate))
    data = {n: numpy.ones((6, k), "float32") for n, k in (("x", 2), ("y", 1))}
    stream = DataStream(IndexableDataset(data), iteration_scheme=SequentialScheme(6, 2))
    extensions = [FinishAfter(after_n_batches=num_batches), Checkpoint(path)]
    if schedule is not None:
        learning_rate = algorithm.step_rule.learning_rate
        extensions.insert(0, SharedVariableModifier(learning_rate, schedule, after_batch=True))
    return MainLoop(algorithm, stream, model=Model(cost), extensions=extensions)


def rate_of(loop):
    return float(loop.algorithm.step_rule.learning_rate.get_value())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loop.zip"


def halve(_, rate):
    return numpy.float32(rate / 2)


def test_a_rate_that_is_changed_in_the_script_is_told_each_time_and_the_checkpoint_holds(path):
    script(path, 2, schedule=halve).run()
    for num_batches in (3, 4):
        loop = script(path, num_batches, rate=0.0001)
        with pytest.warns(UserWarning) as told:
            loop.run(resume="auto")

        (warning,) = told
        taken = 0.002 / 4
        assert str(warning.message) == (
            f"{RATE}: the script now says 0.0001 and said 0.002; the checkpoint's {taken:.7g} is "
            f"taken. To take the script's: restore(path, ignore=['{RATE}']), or "
            f"run(resume=..., ignore=['{RATE}'])."
        )
        assert rate_of(loop) == pytest.approx(taken)


def test_the_rate_of_the_script_is_taken_if_that_of_the_checkpoint_is_ignored(path):
    script(path, 2).run()
    loop = script(path, 3, rate=0.0001)
    loop.run(resume="auto", ignore=[RATE])

    assert rate_of(loop) == pytest.approx(0.0001)
    # And from now on the script has said so.
    again = script(path, 4, rate=0.0001)
    again.run(resume="auto")
    assert rate_of(again) == pytest.approx(0.0001)


def test_a_schedule_and_a_value_that_was_set_after_restoring_are_no_change_of_the_script(path):
    script(path, 2, schedule=halve).run()
    loop = script(path, 3, schedule=halve)
    loop.restore(path)
    loop.algorithm.step_rule.learning_rate.set_value(numpy.float32(0.5))
    loop.run()
    again = script(path, 4, schedule=halve)
    again.run(resume="auto")

    assert rate_of(again) == 0.125


def test_the_manifest_keeps_what_the_script_said(path):
    script(path, 2, schedule=halve).run()
    with Archive(path) as archive:
        said = archive.manifest["script_values"]

    assert said[RATE] == float(numpy.float32(0.002))


@pytest.mark.parametrize("change", [{"activation": Rectifier}, {"dropout": 0.6}])
def test_another_activation_or_dropout_is_told_at_the_first_step(path, change):
    script(path, 2).run()

    with pytest.warns(UserWarning, match=r"training step .* is another program than when"):
        script(path, 3, **change).run(resume="auto")


def test_a_manifest_without_what_the_script_said_is_not_compared():
    now = {RATE: 0.5}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compare_with_script(now, {}, {RATE: 0.25}) == now


def test_all_that_was_changed_is_in_one_warning():
    manifest = {"script_values": {"a": 1.0, "b": [1.0, 2.0], "c": 1.0, "gone": 3.0}}
    now, taken = {"a": 2.0, "b": [1.0, 3.0], "c": 2.0}, {"a": 0.5, "b": [0.0, 0.0], "c": 2.0}

    with pytest.warns(UserWarning, match=r"(?s)^a: .* says 2 and .*\nb: .*\[1.0, 3.0\]") as told:
        heeded = compare_with_script(now, manifest, taken)
    assert len(told) == 1
    assert heeded == {"a": 1.0, "b": [1.0, 2.0], "c": 2.0}


def test_only_hyperparameters_are_read():
    parameter = xla.shared(numpy.float32(1), name="w")
    algorithm = GradientDescent(parameter**2, [parameter], step_rule=Adam(0.5))

    values = get_hyperparameters(algorithm)
    assert values[RATE] == 0.5
    assert not any("mean" in name for name in values)
