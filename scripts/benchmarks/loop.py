"""Measure what the main loop costs per batch, over the bare compiled step.

The loop runs with monitoring of the training data, a progress bar and printing. The same batches
are given to the bare step, without monitoring, in turns; the difference is what the loop costs.
"""

import argparse
import contextlib
import io
import statistics
from collections.abc import Callable
from time import perf_counter

import numpy

from bricks import MLP, Rectifier, Softmax
from bricks.algorithms import Adam, GradientDescent
from bricks.initialization import Constant, IsotropicGaussian
from bricks.main_loop import MainLoop
from bricks.model import Model
from extensions import FinishAfter, Printing, ProgressBar
from extensions.monitoring import TrainingDataMonitoring
from fuel_data.datasets import IterableDataset
from fuel_data.streams import DataStream

# isort: split
# After bricks, which sets Aesara up.
from aesara import tensor


def build_algorithm() -> GradientDescent:
    """Make the training step of an MLP.

    Returns
    -------
    GradientDescent
        For ``features`` of shape (batch, 64) and ``targets`` of shape (batch, 1).
    """
    features, targets = tensor.matrix("features"), tensor.lmatrix("targets")
    initialization = {"weights_init": IsotropicGaussian(0.05), "biases_init": Constant(0)}
    mlp = MLP([Rectifier(), Rectifier(), None], [64, 256, 256, 10], **initialization)
    mlp.initialize()
    cost = Softmax().categorical_cross_entropy(targets.flatten(), mlp.apply(features)).mean()
    cost.name = "cost"
    return GradientDescent(cost=cost, step_rule=Adam(0.001))


def make_batches(number: int, batch_size: int = 64) -> list[dict[str, numpy.ndarray]]:
    """Draw batches.

    Parameters
    ----------
    number : int
        How many.
    batch_size : int
        Examples in each.

    Returns
    -------
    list of dict
        ``features``, float32, and ``targets``, int64.
    """
    rng = numpy.random.default_rng(1)
    return [
        {
            "features": rng.random((batch_size, 64), dtype=numpy.float32),
            "targets": rng.integers(0, 10, (batch_size, 1)),
        }
        for _ in range(number)
    ]


def bare_step(batches: list[dict[str, numpy.ndarray]]) -> Callable[[], float]:
    """Prepare the bare step.

    Parameters
    ----------
    batches : list of dict
        What it processes.

    Returns
    -------
    function
        Which processes all batches and gives the seconds.
    """
    algorithm = build_algorithm()
    algorithm.initialize()
    step = algorithm.function
    parameter = algorithm.parameters[0]

    def run() -> float:
        start = perf_counter()
        for batch in batches:
            step(**batch)
        parameter.get_value()
        return perf_counter() - start

    return run


def whole_loop(batches: list[dict[str, numpy.ndarray]]) -> Callable[[], float]:
    """Prepare a main loop with monitoring, progress and printing.

    Parameters
    ----------
    batches : list of dict
        An epoch.

    Returns
    -------
    function
        Which runs one more epoch and gives the seconds.
    """
    algorithm = build_algorithm()
    sources = {name: [batch[name] for batch in batches] for name in batches[0]}
    stream = DataStream(IterableDataset(sources))
    finish = FinishAfter(after_n_epochs=1)
    loop = MainLoop(
        algorithm,
        stream,
        model=Model(algorithm.cost),
        extensions=[
            finish,
            TrainingDataMonitoring(
                [algorithm.cost, algorithm.total_gradient_norm], prefix="train", after_epoch=True
            ),
            ProgressBar(),
            Printing(),
        ],
    )
    parameter = algorithm.parameters[0]

    def run() -> float:
        start = perf_counter()
        loop.run()
        parameter.get_value()
        seconds = perf_counter() - start
        finish.set_conditions(after_n_epochs=loop.status["epochs_done"] + 1)
        return seconds

    return run


def main() -> None:
    """Print the two times per batch and their difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=2000, help="in each repetition")
    parser.add_argument("--repetitions", type=int, default=9)
    arguments = parser.parse_args()
    batches = make_batches(arguments.batches)
    step, loop = bare_step(batches), whole_loop(batches)
    seconds: dict[str, list[float]] = {"step": [], "loop": []}
    for repetition in range(arguments.repetitions + 1):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            times = {"step": step(), "loop": loop()}
        # The first one compiles.
        for name in seconds if repetition else ():
            seconds[name].append(times[name])
    per_batch = {name: [1e6 * s / len(batches) for s in seconds[name]] for name in seconds}
    for name, title in (("step", "bare compiled step"), ("loop", "main loop")):
        ordered = sorted(per_batch[name])
        print(
            f"{title:<20} {statistics.median(ordered):8.1f} µs per batch "
            f"(from {ordered[0]:.1f} to {ordered[-1]:.1f})"
        )
    costs = [a - b for a, b in zip(per_batch["loop"], per_batch["step"], strict=True)]
    print(f"{'the loop costs':<20} {statistics.median(costs):8.1f} µs per batch (goal: under 100)")


if __name__ == "__main__":
    main()
