"""Train an MLP with dropout on images that a server process feeds it.

``python scripts/train_mlp.py --checkpoint mlp.zip`` starts a run; the same command goes on with it
after it was stopped or killed. Copy this script and ``image_streams.py`` to begin your own.
"""

import argparse
from pathlib import Path

from bricks import MLP, Rectifier, Softmax
from bricks.algorithms import Adam, GradientDescent
from bricks.cost import MisclassificationRate
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, apply_dropout
from bricks.initialization import Constant, IsotropicGaussian
from bricks.log import JSONLinesLog
from bricks.main_loop import MainLoop
from bricks.model import Model
from bricks.roles import INPUT
from extensions import FinishAfter, Printing, ProgressBar
from extensions.monitoring import DataStreamMonitoring, NonFiniteCost, TrainingDataMonitoring
from extensions.saveload import Checkpoint
from extensions.training import TrackTheBest
from fuel_data.server import serve

# isort: split
# After bricks, which sets Aesara up.
from aesara import tensor

STREAMS = Path(__file__).with_name("image_streams.py")
NUM_FEATURES = {"digits": 64, "mnist": 784, "fashion_mnist": 784}
# What does well on each data set, where the command line does not say otherwise.
DEFAULTS = {
    "digits": {"epochs": 100, "hidden": 256, "learning_rate": 0.001, "moved": True},
    "mnist": {"epochs": 10, "hidden": 512, "learning_rate": 0.001, "moved": True},
    "fashion_mnist": {"epochs": 12, "hidden": 512, "learning_rate": 0.0005, "moved": False},
}


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
    features, targets = tensor.matrix("features"), tensor.lmatrix("targets")
    dims = [NUM_FEATURES[arguments.dataset], arguments.hidden, arguments.hidden, 10]
    mlp = MLP(
        [Rectifier(), Rectifier(), None],
        dims,
        weights_init=IsotropicGaussian(std=0.05),
        biases_init=Constant(0),
        seed=arguments.seed,
    )
    mlp.initialize()
    scores = mlp.apply(features)
    cost = Softmax().categorical_cross_entropy(targets.flatten(), scores).mean()
    error_rate = MisclassificationRate().apply(targets.flatten(), scores)
    cost.name, error_rate.name = "cost", "error_rate"

    graph = ComputationGraph(cost)
    layer_inputs = VariableFilter(roles=[INPUT], bricks=mlp.linear_transformations)(graph.variables)
    regularized = apply_dropout(graph, layer_inputs[1:], 0.2, seed=arguments.seed)
    (regularized_cost,) = regularized.outputs
    regularized_cost.name = "cost"
    algorithm = GradientDescent(
        cost=regularized_cost,
        parameters=graph.parameters,
        step_rule=Adam(arguments.learning_rate),
    )
    train = serve(
        f"{STREAMS}:train",
        dataset=arguments.dataset,
        batch_size=64,
        seed=arguments.seed,
        moved=arguments.moved,
    )
    test = serve(f"{STREAMS}:test", dataset=arguments.dataset)
    checkpoint = Path(arguments.checkpoint)
    return MainLoop(
        algorithm,
        train,
        model=Model([cost, error_rate]),
        log=JSONLinesLog(checkpoint.with_suffix(".jsonl")),
        extensions=[
            FinishAfter(after_n_epochs=arguments.epochs),
            NonFiniteCost(),
            TrainingDataMonitoring([regularized_cost], prefix="train", after_epoch=True),
            TrainingDataMonitoring(
                [regularized_cost], prefix="batch", every_n_batches=arguments.log_every
            ),
            DataStreamMonitoring([cost, error_rate], test, prefix="test"),
            TrackTheBest("test_error_rate"),
            Checkpoint(checkpoint, every_n_batches=arguments.checkpoint_every),
            ProgressBar(),
            Printing(every_n_epochs=arguments.print_every, after_epoch=False),
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
    parser.add_argument("--dataset", choices=sorted(NUM_FEATURES), default="digits")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--hidden", type=int, help="units in each hidden layer")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument(
        "--moved",
        action=argparse.BooleanOptionalAction,
        help="move training images by up to a pixel",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", default="mlp.zip", help="file to write, and to go on from")
    parser.add_argument("--checkpoint-every", type=int, default=200, metavar="BATCHES")
    parser.add_argument("--log-every", type=int, default=100, metavar="BATCHES")
    parser.add_argument("--print-every", type=int, default=10, metavar="EPOCHS")
    arguments = parser.parse_args(args)
    for name, value in DEFAULTS[arguments.dataset].items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    return arguments


if __name__ == "__main__":
    build_main_loop(parse_arguments()).run(resume="auto")
