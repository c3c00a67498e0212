"""A run that draws random numbers in each step of a loop goes on bit for bit, both ways."""

import os
import signal

import aesara
import numpy
import pytest
from aesara import tensor

from bricks import Linear, xla
from bricks.algorithms import GradientDescent, Momentum
from bricks.initialization import Constant, IsotropicGaussian
from bricks.main_loop import MainLoop
from bricks.model import Model
from bricks.serialization import dump, load
from bricks.state import get_state
from extensions import FinishAfter, TrainingExtension
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ShuffledScheme
from fuel_data.streams import DataStream

NUM_BATCHES = 5


class Terminate(TrainingExtension):
    """Sends a signal while the second batch is computed, which then is the last one."""

    def before_batch(self, batch):
        if self.main_loop.status["iterations_done"] == 1:
            os.kill(os.getpid(), signal.SIGTERM)


def build(seed=1):
    """Make a loop over batches of sequences, whose states get noise and dropout in each step."""
    x, y = tensor.tensor3("features"), tensor.matrix("targets")
    init = {"weights_init": IsotropicGaussian(0.3), "biases_init": Constant(0)}
    encoder, decoder = (
        Linear(*dims, name=name, seed=seed, **init)
        for name, dims in (("encoder", (2, 4)), ("decoder", (4, 1)))
    )
    for brick in (encoder, decoder):
        brick.initialize()
    stream = xla.RandomStream(seed, name="noise")

    def step(x, h):
        mask = stream.binomial(h.shape, p=0.7, dtype=h.dtype)
        return tensor.tanh(x + h * mask + stream.normal(h.shape, std=0.1))

    inputs = encoder.apply(x).dimshuffle(1, 0, 2)
    states, updates = aesara.scan(step, inputs, tensor.zeros_like(inputs[0]))
    cost = ((decoder.apply(states[-1]) - y) ** 2).mean()
    cost.name = "cost"
    model = Model(cost)
    algorithm = GradientDescent(
        cost=cost, parameters=model.parameters, step_rule=Momentum(0.1, 0.9)
    )
    algorithm.add_updates(updates)
    rng = numpy.random.RandomState(0)
    data = {
        "features": rng.standard_normal((12, 5, 2)).astype("float32"),
        "targets": rng.standard_normal((12, 1)).astype("float32"),
    }
    batches = DataStream(IndexableDataset(data), iteration_scheme=ShuffledScheme(12, 4))
    finish = FinishAfter(after_n_batches=NUM_BATCHES)
    return MainLoop(algorithm, batches, model=model, extensions=[finish]), stream


def everything(loop):
    state = get_state(loop)
    arrays = {
        name: array.tobytes()
        for part in ("parameters", "persistent", "algorithm")
        for name, array in state[part].items()
    }
    return arrays, state["stream"]


@pytest.fixture(scope="module")
def uninterrupted():
    loop, stream = build()
    first = [key.get_value().tolist() for key in stream.keys]
    loop.run()
    assert [key.get_value().tolist() for key in stream.keys] != first
    return everything(loop)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """The checkpoint of a run that was interrupted in its second batch."""
    loop, _ = build()
    loop.extensions.append(Terminate())
    path = tmp_path_factory.mktemp("interrupted") / "checkpoint.zip"
    loop.run()
    assert loop.status["iterations_done"] == 2
    loop.extensions.pop()
    dump(loop, path)
    return path


def go_on(loop):
    loop.log.current_row.pop("training_finish_requested", None)
    loop.run()
    return loop


def test_the_pickled_loop_goes_on_bit_for_bit(interrupted, uninterrupted):
    assert everything(go_on(load(interrupted))) == uninterrupted


def test_a_loop_built_anew_gets_the_state_and_goes_on_bit_for_bit(interrupted, uninterrupted):
    loop, _ = build(seed=2)
    loop.restore(interrupted)

    assert everything(go_on(loop)) == uninterrupted
