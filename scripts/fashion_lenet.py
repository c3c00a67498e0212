"""Train a LeNet with batch normalization on images of clothes, and test it by the population's.

``python scripts/fashion_lenet.py --checkpoint lenet.zip`` starts a run; the same command goes on
with it after it was stopped or killed. The data are Fashion-MNIST: ``fuel-convert fashion_mnist
--directory raw`` makes the file ``fashion_mnist.hdf5`` of them, which is looked for in the folders
of ``FUEL_DATA_PATH``. The batches come from ``image_streams.py``.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bricks import Linear, Rectifier, Softmax
from bricks.algorithms import Adam, GradientDescent
from bricks.bn import BatchNormalizedMLP, SpatialBatchNormalization
from bricks.conv import Convolutional, ConvolutionalSequence, Flattener, MaxPooling
from bricks.cost import MisclassificationRate
from bricks.graph import (
    ComputationGraph,
    apply_batch_normalization,
    get_batch_normalization_updates,
)
from bricks.initialization import Constant, IsotropicGaussian
from bricks.log import JSONLinesLog
from bricks.main_loop import MainLoop
from bricks.model import Model
from extensions import FinishAfter, Printing, ProgressBar, Timing
from extensions.monitoring import DataStreamMonitoring, NonFiniteCost, TrainingDataMonitoring
from extensions.saveload import Checkpoint
from extensions.training import TrackTheBest
from fuel_data.server import serve

# isort: split
# After bricks, which sets Aesara up.
from aesara import tensor

STREAMS = Path(__file__).with_name("image_streams.py")
IMAGE_SIZE = (28, 28)
# What of the population's statistics is taken from each batch.
MOVING_RATE = 0.01


def build_lenet(feature_maps: Sequence[int], hidden: int, **options: Any) -> list[Any]:
    """Build the bricks of a LeNet, each of which is applied to the output of the one before.

    Parameters
    ----------
    feature_maps : sequence of int
        Filters of the convolutions, each normalized, rectified and pooled.
    hidden : int
        Units of the hidden layer.
    **options
        For all bricks that are `Initializable`.

    Returns
    -------
    list of Brick
        Made of bricks of the library alone: a class of this script could only be unpickled by it.
    """
    layers: list[Any] = []
    for index, num_filters in enumerate(feature_maps):
        layers += [
            # The normalization shifts, so that a bias would make no difference.
            Convolutional((5, 5), num_filters, use_bias=False, name=f"convolution_{index}"),
            SpatialBatchNormalization(name=f"normalization_{index}"),
            Rectifier(name=f"rectifier_{index}"),
            MaxPooling((2, 2), name=f"pooling_{index}"),
        ]
    convolutions = ConvolutionalSequence(
        layers, num_channels=1, image_size=IMAGE_SIZE, name="convolutions", **options
    )
    num_features = math.prod(convolutions.get_dim("output"))
    return [
        convolutions,
        Flattener(),
        BatchNormalizedMLP([Rectifier()], [num_features, hidden], name="hidden", **options),
        Linear(hidden, 10, name="scores", **options),
    ]


def build_graph(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """Build cost and error rate as they are after training.

    Parameters
    ----------
    arguments : argparse.Namespace
        What `parse_arguments` gives.

    Returns
    -------
    cost, error_rate : Variable
        Scalars of a batch.
    """
    features, targets = tensor.matrix("features"), tensor.lmatrix("targets")
    bricks = build_lenet(
        arguments.feature_maps,
        arguments.hidden,
        weights_init=IsotropicGaussian(std=0.05),
        biases_init=Constant(0),
        seed=arguments.seed,
    )
    scores = features.reshape((features.shape[0], 1, *IMAGE_SIZE))
    for brick in bricks:
        brick.initialize()
        scores = brick.apply(scores)
    cost = Softmax().categorical_cross_entropy(targets.flatten(), scores).mean()
    error_rate = MisclassificationRate().apply(targets.flatten(), scores)
    cost.name, error_rate.name = "cost", "error_rate"
    return cost, error_rate


def build_main_loop(arguments: argparse.Namespace) -> MainLoop:
    """Put model, data, algorithm and extensions together.

    Parameters
    ----------
    arguments : argparse.Namespace
        What `parse_arguments` gives.

    Returns
    -------
    MainLoop
        Ready to run.
    """
    cost, error_rate = build_graph(arguments)
    training = apply_batch_normalization(ComputationGraph(cost))
    (training_cost,) = training.outputs
    training_cost.name = "cost"
    step_rule = Adam(arguments.learning_rate)
    algorithm = GradientDescent(
        cost=training_cost, parameters=training.parameters, step_rule=step_rule
    )
    algorithm.add_updates(
        [
            (population, (1 - MOVING_RATE) * population + MOVING_RATE * batch)
            for population, batch in get_batch_normalization_updates(training)
        ]
    )
    train = serve(
        f"{STREAMS}:train",
        dataset="fashion_mnist",
        batch_size=arguments.batch_size,
        seed=arguments.seed,
        moved=arguments.moved,
    )
    test = serve(f"{STREAMS}:test", dataset="fashion_mnist")
    checkpoint = Path(arguments.checkpoint)
    return MainLoop(
        algorithm,
        train,
        # The graph for inference: what is tested, loaded and asked is computed with the
        # population's statistics.
        model=Model([cost, error_rate]),
        log=JSONLinesLog(checkpoint.with_suffix(".jsonl")),
        extensions=[
            FinishAfter(after_n_epochs=arguments.epochs),
            Timing(),
            NonFiniteCost(),
            TrainingDataMonitoring([training_cost], prefix="train", after_epoch=True),
            DataStreamMonitoring([cost, error_rate], test, prefix="test"),
            TrackTheBest("test_error_rate"),
            Checkpoint(checkpoint, every_n_batches=arguments.checkpoint_every),
            ProgressBar(),
            Printing(),
        ],
    )


def parse_arguments(args: list[str] | None = None) -> argparse.Namespace:
    """Read the command line.

    Parameters
    ----------
    args : list of str, optional
        In place of the command line.

    Returns
    -------
    argparse.Namespace
        The arguments.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument(
        "--feature-maps", type=int, nargs=2, default=[20, 50], help="filters of the convolutions"
    )
    parser.add_argument("--hidden", type=int, default=500, help="units in the hidden layer")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument(
        "--moved",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="move training images by up to a pixel",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--checkpoint", default="lenet.zip", help="file to write, and to go on from"
    )
    parser.add_argument("--checkpoint-every", type=int, default=200, metavar="BATCHES")
    return parser.parse_args(args)


if __name__ == "__main__":
    build_main_loop(parse_arguments()).run(resume="auto")
