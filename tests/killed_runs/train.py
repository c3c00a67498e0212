"""A small training run with every kind of state; starts, or goes on from its checkpoint."""

import argparse
from pathlib import Path

from lockstep import BatchDigests, Lockstep

from bricks import MLP, Rectifier
from bricks.algorithms import Adam, BasicMomentum, CompositeRule, GradientDescent, StepClipping
from bricks.cost import MisclassificationRate
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, apply_dropout, apply_noise
from bricks.initialization import Constant, IsotropicGaussian
from bricks.log import JSONLinesLog, SQLiteLog, TrainingLog
from bricks.main_loop import MainLoop
from bricks.model import Model
from bricks.roles import INPUT, WEIGHT
from bricks.simple import Softmax
from extensions import FinishAfter
from extensions.monitoring import DataStreamMonitoring, TrainingDataMonitoring
from extensions.saveload import Checkpoint
from extensions.stopping import EarlyStopping
from fuel_data.server import serve
from fuel_data.streams import ServerDataStream

# isort: split
# After bricks, which sets Aesara up.
from aesara import tensor

STREAMS = Path(__file__).with_name("pipelines.py")
LOGS = {
    "python": TrainingLog,
    "jsonlines": lambda: JSONLinesLog("run.jsonl"),
    "sqlite": lambda: SQLiteLog("run.sqlite"),
}


def build_graph(seed):
    """Give the cost, the error rate, the cost with dropout and noise, and the parameters."""
    features, words = tensor.matrix("features"), tensor.matrix("words")
    mask, targets = tensor.matrix("words_mask"), tensor.lmatrix("targets")
    mlp = MLP(
        [Rectifier(), Rectifier(), None],
        [10, 16, 12, 3],
        weights_init=IsotropicGaussian(std=0.3),
        biases_init=Constant(0),
        seed=seed,
    )
    mlp.initialize()
    scores = mlp.apply(tensor.concatenate([features / 255, words * mask], axis=1))
    cost = Softmax().categorical_cross_entropy(targets.flatten(), scores).mean()
    error_rate = MisclassificationRate().apply(targets.flatten(), scores)
    cost.name, error_rate.name = "cost", "error_rate"
    graph = ComputationGraph(cost)
    inputs = VariableFilter(roles=[INPUT], bricks=mlp.linear_transformations)(graph.variables)
    weights = VariableFilter(roles=[WEIGHT])(graph.variables)
    dropped = apply_dropout(graph, inputs[1:], 0.3, seed=seed)
    (regularized,) = apply_noise(dropped, weights[:1], 0.05, seed=seed).outputs
    regularized.name = "cost"
    return cost, error_rate, regularized, graph.parameters


def build_main_loop(arguments):
    """Put everything together."""
    cost, error_rate, regularized, parameters = build_graph(arguments.seed)
    rule = CompositeRule([StepClipping(5.0), BasicMomentum(0.5), Adam(0.01)])
    settings = {"path": arguments.data, "seed": arguments.seed}
    train = ServerDataStream(
        recipe=f"{STREAMS}:train",
        arguments={**settings, "load_in_memory": arguments.in_memory},
        hwm=2,  # so that the server is still at work when it is killed
    )
    return MainLoop(
        GradientDescent(cost=regularized, parameters=parameters, step_rule=rule),
        train,
        model=Model([cost, error_rate]),
        log=LOGS[arguments.log](),
        extensions=[
            # In the middle of an epoch, so that the last position is more than a number.
            FinishAfter(after_n_batches=arguments.batches),
            TrainingDataMonitoring([regularized], prefix="train", after_epoch=True),
            TrainingDataMonitoring([regularized], prefix="recent", every_n_batches=5),
            DataStreamMonitoring(
                [cost, error_rate], serve(f"{STREAMS}:test", **settings), prefix="test"
            ),
            EarlyStopping("test_error_rate", epochs=99),
            BatchDigests(),
            Checkpoint("run.zip", every_n_batches=4),
            Lockstep(),
        ],
    )


def parse_arguments():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--log", choices=LOGS, default="python")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=45)
    return parser.parse_args()


if __name__ == "__main__":
    build_main_loop(parse_arguments()).run(resume="auto")
