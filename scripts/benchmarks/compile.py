"""Time compiled training steps beside the same arithmetic by hand in JAX and in PyTorch.

Each implementation runs in a process of its own, all of them from the same parameters and on the
same batch. In each round every one takes some steps, in turns, so that what disturbs the machine
disturbs all; the first rounds do not count. Before, the costs of some steps are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import deep
import models
import numpy

CHECKOUT = Path(__file__).parents[2]
PYTHONS = {
    "default": sys.executable,
    "modern": str(CHECKOUT / ".venvs/bench-modern/bin/python"),
    "torch": str(CHECKOUT / ".venvs/bench-torch/bin/python"),
}
#: Rounds that do not count.
NUM_DROPPED = 2
SECONDS_PER_ROUND = 0.25
#: How far costs of the same step may lie apart, relatively.
TOLERANCE = 1e-3
BY_HAND = ("JAX", "JAX, backward by hand")


class Contestant(NamedTuple):
    """One implementation of a model on one stack.

    Parameters
    ----------
    title : str
        In messages and in the table.
    stack : {'default', 'modern', 'torch'}
        Whose interpreter runs it.
    module, step : str
        What :mod:`worker` builds.
    """

    title: str
    stack: str
    module: str
    step: str


class Result(NamedTuple):
    """What was measured of a contestant.

    Parameters
    ----------
    seconds : list of float
        The median of the steps of each round; empty if there is none.
    figures : dict
        What the worker told of itself.
    failure : str
        Why there is nothing.
    """

    seconds: list[float]
    figures: dict[str, Any]
    failure: str = ""

    @property
    def median(self) -> float:
        """The median of all rounds, in seconds; NaN if there is none."""
        return statistics.median(self.seconds) if self.seconds else float("nan")


class WorkerFailed(Exception):
    """A worker did not answer."""


class Worker:
    """A process that builds and times one contestant.

    Parameters
    ----------
    contestant : Contestant
    data : Path
        What all implementations begin with.
    device : str
        Such as ``'cpu'``.
    """

    def __init__(self, contestant: Contestant, data: Path, device: str):
        self._log = data.with_name(f"{contestant.title}, {contestant.stack}.log")
        program = str(Path(__file__).with_name("worker.py"))
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    PYTHONS[contestant.stack],
                    program,
                    contestant.module,
                    contestant.step,
                    str(data),
                    device,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Building is timed cold. The checkout is found where it is not installed.
                env={
                    **os.environ,
                    "BRICKS_COMPILATION_CACHE": "",
                    "JAX_ENABLE_COMPILATION_CACHE": "false",
                    "PYTHONPATH": str(CHECKOUT),
                },
            )

    def answer(self, patience: float) -> Any:
        """Wait for an answer.

        Parameters
        ----------
        patience : float
            Seconds to wait.

        Returns
        -------
        object

        Raises
        ------
        WorkerFailed
            If there is none.
        """
        ready, _, _ = select.select([self._process.stdout], [], [], patience)
        if not ready:
            raise WorkerFailed(f"not ready after {patience:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            lines = self._log.read_text().strip().splitlines() or ["it ended without a word"]
            raise WorkerFailed(lines[-1])
        return json.loads(line)

    def time(self, number: int, patience: float) -> float:
        """Let it take steps.

        Parameters
        ----------
        number : int
            Of steps.
        patience : float
            Seconds to wait.

        Returns
        -------
        float
            The median of their seconds.
        """
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return statistics.median(self.answer(patience))

    def stop(self) -> None:
        """End the process, which waits for its input to end."""
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def contestants(model: models.Model, arguments: argparse.Namespace) -> Iterator[Contestant]:
    """List what is timed of a model.

    Parameters
    ----------
    model : models.Model
    arguments : argparse.Namespace

    Yields
    ------
    Contestant
    """
    for stack in arguments.stacks:
        yield Contestant("firebrick", stack, "in_bricks", model.name)
        yield Contestant(BY_HAND[0], stack, "in_jax", model.name)
        if model.name == "lstm":
            yield Contestant(BY_HAND[1], stack, "in_jax", "lstm by hand")
    if arguments.torch:
        yield Contestant("PyTorch", "torch", "in_torch", model.name)
        if not model.name.startswith("overhead"):
            yield Contestant("PyTorch compiled", "torch", "in_torch", f"{model.name} compiled")


def write_data(model: models.Model, path: Path, *, small: bool) -> None:
    """Write what all implementations begin with.

    Parameters
    ----------
    model : models.Model
    path : Path
        Of the archive.
    small : bool
        Whether to take the sizes of quick tests.
    """
    parameters, batch = model.arrays(small)
    sizes = dict(model.small_sizes if small else model.sizes)
    numpy.savez(
        path,
        sizes=json.dumps(sizes),
        **{f"parameter {name}": value for name, value in parameters.items()},
        **{f"batch {place}": value for place, value in enumerate(batch)},
    )


def measure(
    model: models.Model, arguments: argparse.Namespace, folder: Path
) -> dict[Contestant, Result]:
    """Time all implementations of a model in turns.

    Parameters
    ----------
    model : models.Model
    arguments : argparse.Namespace
    folder : Path
        For files.

    Returns
    -------
    dict of Contestant to Result
    """
    data = folder / f"{model.name}.npz"
    write_data(model, data, small=arguments.quick)
    results: dict[Contestant, Result] = {}
    workers: dict[Contestant, Worker] = {}
    try:
        for contestant in contestants(model, arguments):
            if not Path(PYTHONS[contestant.stack]).exists():
                results[contestant] = Result([], {}, "not installed")
                continue
            workers[contestant] = Worker(contestant, data, arguments.device)
            _start(contestant, workers, results, arguments.patience)
        check_costs(model, results)
        for number in range(NUM_DROPPED + arguments.repetitions):
            for contestant, worker in workers.items():
                seconds, figures, _ = results[contestant]
                steps = int(min(max(SECONDS_PER_ROUND / figures["seconds"], 1), 500))
                taken = worker.time(3 if arguments.quick else steps, arguments.patience)
                if number >= NUM_DROPPED:
                    seconds.append(taken)
        for contestant in workers:
            milliseconds = 1000 * results[contestant].median
            took = f"{contestant.title}, {contestant.stack}: {milliseconds:.3f} ms"
            print(f"  {took}", file=sys.stderr)
    finally:
        for worker in workers.values():
            worker.stop()
    return results


def _start(
    contestant: Contestant,
    workers: dict[Contestant, Worker],
    results: dict[Contestant, Result],
    patience: float,
) -> None:
    """Wait until a worker is ready, or note why it is not."""
    start = time.perf_counter()
    print(f"  {contestant.title}, {contestant.stack} …", end="", file=sys.stderr, flush=True)
    try:
        results[contestant] = Result([], workers[contestant].answer(patience))
        print(f" ready after {time.perf_counter() - start:.1f} s", file=sys.stderr)
    except WorkerFailed as error:
        workers.pop(contestant).stop()
        results[contestant] = Result([], {}, str(error))
        print(f" failed: {error}", file=sys.stderr)


def check_costs(model: models.Model, results: dict[Contestant, Result]) -> None:
    """Require that all implementations compute the same.

    Parameters
    ----------
    model : models.Model
    results : dict of Contestant to Result

    Raises
    ------
    SystemExit
        If the costs of their first steps differ.
    """
    costs = {c: result.figures["costs"] for c, result in results.items() if result.figures}
    for contestant, theirs in costs.items():
        first = next(iter(costs))
        if not numpy.allclose(theirs, costs[first], rtol=TOLERANCE, atol=0):
            raise SystemExit(
                f"{model.name}: the costs of the first steps must agree; {first.title} "
                f"({first.stack}) has {costs[first]}, {contestant.title} ({contestant.stack}) "
                f"{theirs}."
            )


class Comparison(NamedTuple):
    """What one stack is compared with.

    Parameters
    ----------
    ours, jax, torch, compiled : Result or None
        `jax` is the faster of those by hand.
    """

    ours: Result
    jax: Result
    torch: Result | None
    compiled: Result | None


def compare(results: dict[Contestant, Result], stack: str) -> Comparison:
    """Choose what stands in one line of the table.

    Parameters
    ----------
    results : dict of Contestant to Result
    stack : str

    Returns
    -------
    Comparison
    """
    of_stack = {c.title: result for c, result in results.items() if c.stack == stack}
    of_torch = {c.title: result for c, result in results.items() if c.stack == "torch"}
    by_hand = [of_stack[title] for title in BY_HAND if title in of_stack]
    return Comparison(
        of_stack["firebrick"],
        min(by_hand, key=lambda result: result.median if result.seconds else float("inf")),
        of_torch.get("PyTorch"),
        of_torch.get("PyTorch compiled"),
    )


def _time(result: Result | None) -> str:
    if result is None:
        return "–"
    if not result.seconds:
        return "failed"
    milliseconds = 1000 * result.median
    return f"{milliseconds:.3f}" if milliseconds < 1 else f"{milliseconds:.2f}"


def failures(measured: dict[str, dict[Contestant, Result]]) -> str:
    """Say why figures are missing.

    Parameters
    ----------
    measured : dict of str to (dict of Contestant to Result)
        By the title of the model.

    Returns
    -------
    str
        A line for each.
    """
    return "".join(
        f"{contestant.title}, {contestant.stack}, failed on {title}: {result.failure}\n"
        for title, results in measured.items()
        for contestant, result in results.items()
        if result.failure
    )


def _ratio(ours: Result, other: Result | None) -> str:
    if other is None or not other.seconds or not ours.seconds:
        return "–"
    return f"{ours.median / other.median:.2f}"


def time_rows(measured: dict[str, dict[Contestant, Result]], stacks: Sequence[str]) -> list[list]:
    """Make the table of times, in milliseconds, and ratios.

    Parameters
    ----------
    measured : dict of str to (dict of Contestant to Result)
        By the title of the model.
    stacks : sequence of str

    Returns
    -------
    list of list of str
        The heading first.
    """
    rows = [
        ["model", "stack", "firebrick", "JAX", "×", "PyTorch", "×", "compiled", "×"],
    ]
    for title, results in measured.items():
        for stack in stacks:
            ours, jax, torch, compiled = compare(results, stack)
            row = [title, stack, _time(ours), _time(jax), _ratio(ours, jax)]
            for other in (torch, compiled):
                row += [_time(other), _ratio(ours, other)]
            rows.append(row)
    return rows


def cost_rows(measured: dict[str, dict[Contestant, Result]], stacks: Sequence[str]) -> list[list]:
    """Make the table of what building takes, and of memory.

    Parameters
    ----------
    measured : dict of str to (dict of Contestant to Result)
        By the title of the model.
    stacks : sequence of str

    Returns
    -------
    list of list of str
        The heading first.
    """
    rows = [["model", "stack", "building, s", "JAX, s", "buffers, MiB", "JAX, MiB", "×"]]
    for title, results in measured.items():
        for stack in stacks:
            ours, jax, _, _ = compare(results, stack)
            row = [title, stack]
            for result in (ours, jax):
                stages = result.figures.get("build", {})
                row.append(" + ".join(f"{took:.1f}" for took in stages.values()))
            sizes = [result.figures.get("memory") for result in (ours, jax)]
            row += ["–" if size is None else f"{size / 2**20:.1f}" for size in sizes]
            row.append("–" if None in sizes else f"{sizes[0] / sizes[1]:.2f}")
            rows.append(row)
    return rows


def overhead_rows(
    measured: dict[str, dict[Contestant, Result]], stacks: Sequence[str]
) -> list[list]:
    """Make the table of what a call costs, in microseconds.

    Parameters
    ----------
    measured : dict of str to (dict of Contestant to Result)
        By the title of the model.
    stacks : sequence of str

    Returns
    -------
    list of list of str
        The heading first.
    """
    rows = [["a step of", "stack", "firebrick, µs", "JAX, µs", "difference, µs", "PyTorch, µs"]]
    for title, results in measured.items():
        for stack in stacks:
            ours, jax, torch, _ = compare(results, stack)
            cells = [f"{1e6 * (result.median):.0f}" for result in (ours, jax)]
            row = [title, stack, *cells, f"{1e6 * (ours.median - jax.median):.0f}"]
            rows.append([*row, "–" if torch is None else f"{1e6 * torch.median:.0f}"])
    return rows


def render(rows: list[list[str]], *, rst: bool) -> str:
    """Align a table, as plain text or as a simple table of reStructuredText.

    Parameters
    ----------
    rows : list of list of str
        The heading first.
    rst : bool

    Returns
    -------
    str
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    rule = "  ".join(("=" if rst else "-") * width for width in widths)
    body = [lines[0], rule, *lines[1:]]
    return "\n".join([rule, *body, rule] if rst else body) + "\n"


def describe_machine(measured: dict[str, dict[Contestant, Result]]) -> str:
    """Say what the figures come from.

    Parameters
    ----------
    measured : dict of str to (dict of Contestant to Result)

    Returns
    -------
    str
    """
    versions = {
        result.figures["version"]
        for results in measured.values()
        for result in results.values()
        if result.figures
    }
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ] or [platform.processor()]
    machine = f"{os.cpu_count()} cores of {names[0]}"
    return "; ".join([machine, f"Python {platform.python_version()}", *sorted(versions)]) + "."


def parse_arguments(args: list[str] | None = None) -> argparse.Namespace:
    """Read the command line.

    Parameters
    ----------
    args : list of str, optional
        In place of the command line.

    Returns
    -------
    argparse.Namespace
    """
    names = [*(model.name for model in models.MODELS), "overhead", "deep"]
    parser = argparse.ArgumentParser(prog="scripts/bench compile", description=__doc__)
    parser.add_argument(
        "--models",
        nargs="+",
        choices=names,
        metavar="NAME",
        default=names,
        help=", ".join(names),
    )
    parser.add_argument(
        "--stacks", nargs="+", choices=["default", "modern"], default=["default", "modern"]
    )
    parser.add_argument("--no-torch", dest="torch", action="store_false", help="without PyTorch")
    parser.add_argument("--device", default="cpu", help="cpu (the default) or cuda")
    parser.add_argument("--repetitions", type=int, default=15, help="rounds that count")
    parser.add_argument(
        "--patience",
        type=float,
        default=300,
        metavar="SECONDS",
        help="for one implementation to get ready",
    )
    parser.add_argument("--rst", action="store_true", help="tables of reStructuredText")
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that it works")
    return parser.parse_args(args)


def main(args: list[str] | None = None) -> None:
    """Measure, and print tables.

    Parameters
    ----------
    args : list of str, optional
        In place of the command line.
    """
    arguments = parse_arguments(args)
    chosen = [model for model in models.MODELS if model.name in arguments.models]
    calls = models.OVERHEADS if "overhead" in arguments.models else []
    measured: dict[str, dict[Contestant, Result]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for model in [*chosen, *calls]:
            print(model.title, file=sys.stderr)
            measured[model.title] = measure(model, arguments, Path(folder))
    print(describe_machine(measured) + "\n")
    titles = {model.title for model in chosen}
    of_models = {title: results for title, results in measured.items() if title in titles}
    of_calls = {title: results for title, results in measured.items() if title not in titles}
    stacks = arguments.stacks
    if of_models:
        print("Milliseconds per training step, and how many times those of the other:\n")
        print(render(time_rows(of_models, stacks), rst=arguments.rst))
        print(failures(of_models))
        print(
            "Building (rewriting the graph, tracing, compiling; by hand the last two) and memory:\n"
        )
        print(render(cost_rows(of_models, stacks), rst=arguments.rst))
    if "deep" in arguments.models:
        table = deep.rows(arguments.repetitions, small=arguments.quick)
        print(render(table, rst=arguments.rst))
    if of_calls:
        print(render(overhead_rows(of_calls, stacks), rst=arguments.rst))


if __name__ == "__main__":
    main()
