"""What a deep network's training step needs when its blocks are computed again for the gradient."""

from __future__ import annotations

import statistics
import time

import models
import numpy

from bricks import MLP, Sequence, Tanh, xla
from bricks.graph import ComputationGraph, rematerialize

# isort: split
# After bricks, which sets Aesara up.
from aesara import tensor

SIZES = {"batch": 512, "width": 256, "inner": 1024, "blocks": 16}
SMALL_SIZES = {"batch": 8, "width": 4, "inner": 16, "blocks": 3}


def build(sizes: models.Sizes, *, again: bool) -> tuple[xla.Function, models.Batch]:
    """Compile the training step of a stack of blocks.

    Parameters
    ----------
    sizes : dict
        ``batch``, ``width``, ``inner`` and ``blocks``.
    again : bool
        Whether the blocks are computed again for the gradient.

    Returns
    -------
    step : bricks.xla.Function
    batch : list of array
    """
    dims = [sizes["width"], sizes["inner"], sizes["width"]]
    blocks = [
        MLP([Tanh(), Tanh()], dims, name=f"block_{number}", seed=number, **models.SCHEMES)
        for number in range(sizes["blocks"])
    ]
    stack = Sequence([block.apply for block in blocks])
    stack.initialize()
    x = tensor.matrix("x")
    graph = ComputationGraph((stack.apply(x) ** 2).mean())
    if again:
        graph = rematerialize(graph, bricks=blocks)
    parameters = {f"p{place}": parameter for place, parameter in enumerate(graph.parameters)}
    batch = [numpy.ones((sizes["batch"], sizes["width"]), numpy.float32)]
    return models.compile_step(models.Graph([x], graph.outputs[0], parameters, batch)), batch


def rows(repetitions: int, *, small: bool) -> list[list[str]]:
    """Measure memory and time with all values kept and with blocks computed again.

    Parameters
    ----------
    repetitions : int
        Steps that are timed of each, in turns.
    small : bool
        Whether to take the sizes of quick tests.

    Returns
    -------
    list of list of str
        A table, the heading first.
    """
    sizes = SMALL_SIZES if small else SIZES
    steps = {again: build(sizes, again=again) for again in (False, True)}
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for number in range(repetitions + 1):
        for again, (step, batch) in steps.items():
            start = time.perf_counter()
            step(*batch)
            # The first one compiles.
            seconds[again] += [time.perf_counter() - start] if number else []
    table = [[f"{sizes['blocks']} blocks", "buffers, MiB", "beside arguments, MiB", "ms per step"]]
    for again, (step, batch) in steps.items():
        memory = step.memory(*batch)
        table.append(
            [
                "computed again" if again else "all kept",
                f"{memory.total / 2**20:.1f}",
                f"{memory.temporary / 2**20:.1f}",
                f"{1000 * statistics.median(seconds[again]):.1f}",
            ]
        )
    return table
