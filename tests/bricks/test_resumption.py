"""A real training run is stopped, saved, and goes on bit for bit, both ways."""

import os
import subprocess
import sys

import numpy
import pytest
from aesara import tensor

from bricks import MLP, Softmax, Tanh
from bricks.algorithms import GradientDescent, Momentum
from bricks.archive import Archive
from bricks.cost import CategoricalCrossEntropy
from bricks.graph import ComputationGraph, apply_dropout
from bricks.initialization import Constant, IsotropicGaussian
from bricks.main_loop import MainLoop
from bricks.model import Model
from bricks.serialization import dump, load, load_state
from bricks.state import get_state, set_state
from extensions import FinishAfter
from extensions.monitoring import TrainingDataMonitoring
from extensions.saveload import Checkpoint
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ShuffledScheme
from fuel_data.streams import DataStream

NUM_BATCHES = 6


def build(num_batches, seed=1):
    """Make a loop of three batches an epoch, with dropout, momentum, a shuffle and monitoring."""
    x, y = tensor.matrix("features"), tensor.lmatrix("targets")
    init = {"weights_init": IsotropicGaussian(0.3), "biases_init": Constant(0)}
    mlp = MLP([Tanh(), Softmax()], [4, 40, 3], seed=seed, **init)
    mlp.initialize()
    cost = CategoricalCrossEntropy().apply(y.flatten(), mlp.apply(x))
    graph = apply_dropout(ComputationGraph(cost), [mlp.linear_transformations[1].W], 0.2, seed=seed)
    (dropped,) = graph.outputs
    dropped.name = "cost"
    algorithm = GradientDescent(
        cost=dropped, parameters=graph.parameters, step_rule=Momentum(0.1, 0.9)
    )
    rng = numpy.random.RandomState(0)
    data = {
        "features": rng.standard_normal((24, 4)).astype("float32"),
        "targets": rng.randint(0, 3, (24, 1)),
    }
    stream = DataStream(IndexableDataset(data), iteration_scheme=ShuffledScheme(24, 8))
    monitoring = TrainingDataMonitoring([dropped], prefix="train", after_batch=True)
    extensions = [monitoring, FinishAfter(after_n_batches=num_batches)]
    return MainLoop(algorithm, stream, model=Model(cost), extensions=extensions)


def continue_to_the_end(loop):
    """Let a loop that stopped earlier go on to the last batch."""
    loop.extensions[-1].set_conditions(after_n_batches=NUM_BATCHES)
    loop.log.current_row.pop("training_finish_requested", None)
    loop.run()
    return loop


def arrays_and_costs(loop):
    state = get_state(loop)
    arrays = {
        name: array.tobytes()
        for part in ("parameters", "persistent", "algorithm")
        for name, array in state[part].items()
    }
    costs = [loop.log[time].get("train_cost") for time in range(1, NUM_BATCHES + 1)]
    return arrays, costs, state["stream"]


@pytest.fixture(scope="module")
def uninterrupted():
    loop = build(NUM_BATCHES)
    loop.run()
    return arrays_and_costs(loop)


# In the middle of an epoch, at its end, and after the first batch of the next.
@pytest.fixture(params=[2, 3, 4])
def stopped(request, tmp_path):
    loop = build(request.param)
    loop.run()
    dump(loop, tmp_path / "checkpoint.zip")
    return tmp_path / "checkpoint.zip"


def test_the_pickled_loop_goes_on_bit_for_bit(stopped, uninterrupted):
    loop = load(stopped)

    assert arrays_and_costs(continue_to_the_end(loop)) == uninterrupted


def test_a_loop_built_anew_gets_the_state_and_goes_on_bit_for_bit(stopped, uninterrupted):
    loop = build(NUM_BATCHES, seed=2)
    loop.restore(stopped)

    assert arrays_and_costs(continue_to_the_end(loop)) == uninterrupted


def test_a_loop_can_be_saved_before_its_first_step(tmp_path, uninterrupted):
    path = tmp_path / "checkpoint.zip"
    loop = build(1)
    loop.extensions.insert(1, Checkpoint(str(path), before_first_epoch=True, after_training=False))
    loop.run()

    assert arrays_and_costs(continue_to_the_end(load(path))) == uninterrupted


def test_another_seed_gives_another_run(uninterrupted):
    loop = build(NUM_BATCHES, seed=2)
    loop.run()

    assert arrays_and_costs(loop)[0] != uninterrupted[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "checkpoint.zip"
    loop = build(NUM_BATCHES)
    loop.run()
    dump(loop, path)
    return path


def test_the_state_is_the_same_from_the_loop_and_from_the_file(trained):
    loop = load(trained)

    found, expected = load_state(trained), get_state(loop)
    assert found["stream"] == expected["stream"]
    assert list(found["algorithm"]) == list(expected["algorithm"])
    other = build(NUM_BATCHES, seed=2)
    other.restore(trained)
    set_state(other, found)
    assert arrays_and_costs(other) == arrays_and_costs(loop)


def test_the_checkpoint_holds_parameters_buffers_and_random_keys_by_name(trained):
    with numpy.load(trained) as arrays:
        names = set(arrays.files)
        assert arrays["/mlp/linear_0.W"].shape == (4, 40)
    with Archive(trained) as archive:
        manifest = archive.manifest
        pickled = archive.member("main_loop.pkl")
        weights = archive["/mlp/linear_0.W"].tobytes()

    assert any("velocity" in name and "/mlp/linear_0.W" in name for name in names)
    assert any(name.startswith("algorithm/random/") for name in names)
    assert manifest["roles"]["/mlp/linear_0.W"] == ["WEIGHT"]
    assert [len(digest) for digest in manifest["lowered_steps"].values()] == [32]
    assert weights not in pickled


USE = """
import sys
import bricks
import numpy
function = bricks.load(sys.argv[1], outputs="/mlp")
assert "fuel_data.datasets" not in sys.modules and "extensions" not in sys.modules
assert "bricks.main_loop" not in sys.modules
print([variable.name for variable in function.inputs])
features = numpy.load(sys.argv[2])
numpy.save(sys.argv[3], function(features=features))
"""


def test_a_trained_model_is_used_in_a_new_process_without_script_or_data(trained, tmp_path):
    features = numpy.random.RandomState(3).standard_normal((5, 4)).astype("float32")
    numpy.save(tmp_path / "in.npy", features)

    run = subprocess.run(
        [sys.executable, "-c", USE, trained, tmp_path / "in.npy", tmp_path / "out.npy"],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert run.stdout == "['features']\n"
    with numpy.load(trained) as p:
        hidden = numpy.tanh(features @ p["/mlp/linear_0.W"] + p["/mlp/linear_0.b"])
        scores = numpy.exp(hidden @ p["/mlp/linear_1.W"] + p["/mlp/linear_1.b"])
    expected = scores / scores.sum(axis=1, keepdims=True)
    numpy.testing.assert_allclose(numpy.load(tmp_path / "out.npy"), expected, rtol=1e-4)
