"""Time the steps of one implementation, in a process of its own, when told to.

``python worker.py MODULE NAME DATA DEVICE`` builds the step ``NAME`` of ``in_bricks``, ``in_jax``
or ``in_torch`` and writes a line of JSON with what it found. Then each line that it reads is a
number of steps, and it answers with the seconds that each took.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import Any

import numpy

#: So many first costs are compared between the implementations.
NUM_COMPARED = 4


def read_data(path: str) -> tuple[dict[str, int], dict[str, numpy.ndarray], list[numpy.ndarray]]:
    """Read what all implementations begin with.

    Parameters
    ----------
    path : str
        Of an archive that the benchmark wrote.

    Returns
    -------
    sizes : dict of str to int
    parameters : dict of str to array
    batch : list of array
    """
    with numpy.load(path) as archive:
        sizes = json.loads(str(archive["sizes"]))
        parameters = {
            name.removeprefix("parameter "): archive[name]
            for name in archive.files
            if name.startswith("parameter ")
        }
        names = sorted(name for name in archive.files if name.startswith("batch "))
        return sizes, parameters, [archive[name] for name in names]


def time_steps(step: Any, batch: list[numpy.ndarray], number: int) -> list[float]:
    """Take steps and give the seconds of each.

    Parameters
    ----------
    step : function
        Returns the cost, for which it waits.
    batch : list of array
    number : int
        Of steps.

    Returns
    -------
    list of float
    """
    seconds = []
    for _ in range(number):
        start = time.perf_counter()
        step(batch)
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Build the step, then answer until the input ends."""
    module, name, path, device = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # What libraries print must not come among the answers.
    os.dup2(2, 1)
    sizes, parameters, batch = read_data(path)
    step = importlib.import_module(module).Step(name, sizes, parameters, batch, device)
    costs = [step(batch) for _ in range(NUM_COMPARED)]
    seconds = min(time_steps(step, batch, 3))
    answers.write(json.dumps({"costs": costs, "seconds": seconds, **step.figures()}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(time_steps(step, batch, int(line))) + "\n")


if __name__ == "__main__":
    main()
