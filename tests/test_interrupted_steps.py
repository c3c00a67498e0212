"""A training step fails or is interrupted while XLA computes it, with the memory of the parameters.

The step calls back into Python from the compiled program, so what happens there happens in the
middle of it, after the old parameters and buffers were given up.
"""

import os
import signal

# First, because it sets Aesara up, which must come before anything imports Aesara.
import bricks  # noqa: F401

# isort: split
import jax
import numpy
import pytest
from aesara import tensor
from aesara.graph.basic import Apply
from aesara.graph.op import Op

from bricks import MLP, Softmax, Tanh, xla
from bricks.algorithms import Adam, GradientDescent
from bricks.archive import Archive
from bricks.cost import CategoricalCrossEntropy
from bricks.graph import ComputationGraph, apply_dropout
from bricks.initialization import Constant, IsotropicGaussian
from bricks.main_loop import MainLoop
from bricks.model import Model
from bricks.serialization import load_state
from bricks.state import get_state
from extensions import FinishAfter, TrainingExtension
from extensions.monitoring import TrainingDataMonitoring
from extensions.saveload import Checkpoint
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ShuffledScheme
from fuel_data.streams import DataStream

NUM_BATCHES = 8
EVERY = 2


class Watched(Op):
    """Gives its input back, and calls a function whenever it is computed."""

    __props__ = ()

    actions: dict = {}
    num_calls = 0

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage, params=None):
        output_storage[0][0] = inputs[0]

    @classmethod
    def call(cls, value):
        cls.num_calls += 1
        cls.actions.get(cls.num_calls, lambda: None)()
        return numpy.asarray(value)


@xla.lowering(Watched, fold=False)
def lower_watched(op, node, context):
    def watched(x):
        return jax.pure_callback(Watched.call, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    return watched


@pytest.fixture(autouse=True)
def watch(monkeypatch):
    """Begin to count anew."""
    monkeypatch.setattr(Watched, "actions", {})
    monkeypatch.setattr(Watched, "num_calls", 0)


def build(path):
    """Make a loop of four batches an epoch, which saves itself every second batch."""
    x, y = tensor.matrix("features"), tensor.lmatrix("targets")
    init = {"weights_init": IsotropicGaussian(0.3), "biases_init": Constant(0)}
    mlp = MLP([Tanh(), Softmax()], [4, 6, 3], seed=1, **init)
    mlp.initialize()
    cost = CategoricalCrossEntropy().apply(y.flatten(), mlp.apply(Watched()(x)))
    graph = ComputationGraph(cost)
    weights = mlp.linear_transformations[1].W
    (dropped,) = apply_dropout(graph, [weights], 0.2, seed=1).outputs
    dropped.name = "cost"
    rng = numpy.random.RandomState(0)
    data = {
        "features": rng.standard_normal((24, 4)).astype("float32"),
        "targets": rng.randint(0, 3, (24, 1)),
    }
    return MainLoop(
        GradientDescent(cost=dropped, parameters=graph.parameters, step_rule=Adam(0.01)),
        DataStream(IndexableDataset(data), iteration_scheme=ShuffledScheme(24, 6)),
        model=Model(cost),
        extensions=[
            FinishAfter(after_n_batches=NUM_BATCHES),
            TrainingDataMonitoring([dropped], prefix="train", after_batch=True),
            Checkpoint(path, every_n_batches=EVERY, on_error=True, save_main_loop=False),
        ],
    )


def end_of(loop):
    """Give what a loop has come to, bit for bit."""
    state = get_state(loop)
    arrays = {
        name: array.tobytes()
        for part in ("parameters", "algorithm")
        for name, array in state[part].items()
    }
    costs = [loop.log[time]["train_cost"] for time in range(1, NUM_BATCHES + 1)]
    return arrays, costs, state["stream"]


@pytest.fixture
def undisturbed(tmp_path, watch):
    """Train without any interruption."""
    loop = build(tmp_path / "undisturbed.zip")
    loop.run()
    assert Watched.num_calls == NUM_BATCHES
    Watched.num_calls = 0
    return end_of(loop)


def fail():
    raise ZeroDivisionError("out of luck")


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


class Interrupts(TrainingExtension):
    """Sends SIGINT twice before a batch, so that training is to stop as soon as possible."""

    def before_batch(self, batch):
        if self.main_loop.status["iterations_done"] == 5:
            interrupt()
            interrupt()


def test_an_exception_in_a_step_names_the_last_checkpoint_from_which_the_loop_goes_on(
    undisturbed, tmp_path
):
    path = tmp_path / "loop.zip"
    Watched.actions = {6: fail}
    loop = build(path)

    with pytest.raises(xla.DonatedStateLost, match="(?s)failed while it.*out of luck") as caught:
        loop.run()

    notes = "\n".join(caught.value.__notes__)
    assert "their values are lost, and no checkpoint is written" in notes
    assert f"The last checkpoint is {path}" in notes
    assert loop.exit_status == 1
    with Archive(path) as archive:
        archive.verify()
    assert load_state(path)["log"]["status"]["iterations_done"] == 4
    loop.restore(path)
    loop.run()
    assert end_of(loop) == undisturbed


def test_an_interrupt_in_a_step_lets_it_come_to_its_end(undisturbed, tmp_path):
    Watched.actions = {6: interrupt}
    loop = build(tmp_path / "loop.zip")
    loop.run()

    assert loop.exit_status == 130
    assert loop.status["iterations_done"] == 8
    loop.run()
    assert end_of(loop) == undisturbed


def interrupt_twice():
    interrupt()
    interrupt()


def test_a_third_interrupt_in_a_step_neither_loses_nor_repeats_its_batch(undisturbed, tmp_path):
    Watched.actions = {6: interrupt}
    loop = build(tmp_path / "loop.zip")
    loop.extensions.append(Interrupts())

    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert loop.status["iterations_done"] == 6
    assert not loop.state_is_lost()
    del loop.extensions[-1]
    loop.run()
    assert end_of(loop) == undisturbed


def test_a_fourth_interrupt_breaks_a_step_and_is_told_like_any_exception(undisturbed, tmp_path):
    path = tmp_path / "loop.zip"
    Watched.actions = {6: interrupt_twice}
    loop = build(path)
    loop.extensions.append(Interrupts())

    with pytest.raises(xla.DonatedStateLost, match="(?s)failed.*KeyboardInterrupt") as caught:
        loop.run()

    assert f"The last checkpoint is {path}" in "\n".join(caught.value.__notes__)
    with Archive(path) as archive:
        archive.verify()
    del loop.extensions[-1]
    loop.restore(path)
    loop.run()
    assert end_of(loop) == undisturbed
