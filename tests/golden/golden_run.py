"""The run whose checkpoint is kept for each release; pickles refer to this module by its name."""

# First, because it sets Aesara up, which must come before anything imports Aesara.
import bricks  # noqa: F401

# isort: split
import numpy
from aesara import tensor

from bricks import MLP, Tanh
from bricks.algorithms import Adam, GradientDescent
from bricks.graph import ComputationGraph, apply_dropout
from bricks.initialization import Constant, IsotropicGaussian
from bricks.main_loop import MainLoop
from bricks.model import Model
from bricks.simple import Softmax
from extensions import FinishAfter
from extensions.monitoring import TrainingDataMonitoring
from extensions.saveload import Checkpoint
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ShuffledScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Mapping

NUM_EXAMPLES, BATCH_SIZE = 12, 4
# In the second of the epochs, which have three batches; and how far the run then goes on.
SAVED_AFTER, ENDS_AFTER = 5, 10
SEED = 7
RATE = 0.01
DROPPED = 0.5


def wobble(data, rng):
    """Move the features by eighths, which is exact."""
    features, targets = data
    moves = rng.integers(-2, 3, size=features.shape) / 8
    return (features + moves).astype("float32"), targets


def make_stream():
    """Give batches in an order, and with moves, that differ from epoch to epoch."""
    numbers = numpy.arange(NUM_EXAMPLES)
    features = ((numbers[:, numpy.newaxis] * 5 + numpy.arange(4) * 3) % 16 - 8) / 8
    targets = (numbers % 2)[:, numpy.newaxis]
    dataset = IndexableDataset({"features": features.astype("float32"), "targets": targets})
    scheme = ShuffledScheme(NUM_EXAMPLES, BATCH_SIZE, seed=SEED)
    return Mapping(DataStream(dataset, iteration_scheme=scheme), wobble, random=True, seed=SEED)


def build_main_loop(checkpoint, num_batches):
    """Make a loop of an MLP of 4, 3 and 2 units with dropout, trained by Adam."""
    features, targets = tensor.matrix("features"), tensor.lmatrix("targets")
    mlp = MLP(
        [Tanh(), None],
        [4, 3, 2],
        weights_init=IsotropicGaussian(0.5),
        biases_init=Constant(0.1),
        seed=SEED,
    )
    mlp.initialize()
    scores = mlp.apply(features)
    cost = Softmax().categorical_cross_entropy(targets.flatten(), scores).mean()
    cost.name = "cost"
    graph = ComputationGraph(cost)
    (hidden,) = [v for v in graph.variables if v.name == "linear_1_apply_input_"]
    (dropped,) = apply_dropout(graph, [hidden], DROPPED, seed=SEED).outputs
    dropped.name = "cost"
    return MainLoop(
        GradientDescent(cost=dropped, parameters=graph.parameters, step_rule=Adam(RATE)),
        make_stream(),
        model=Model(cost),
        extensions=[
            FinishAfter(after_n_batches=num_batches),
            TrainingDataMonitoring([dropped], prefix="batch", after_batch=True),
            TrainingDataMonitoring([dropped], prefix="train", after_epoch=True),
            Checkpoint(checkpoint),
        ],
    )
