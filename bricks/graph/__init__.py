"""Look at graphs, and derive others from them.

:class:`ComputationGraph` (in :mod:`bricks.graph.computation`) lists the variables of a graph and
replaces some of them; :mod:`bricks.graph.noise` derives graphs with dropout and noise,
:mod:`bricks.graph.bn` those in which batch normalization uses the batch's own statistics,
:mod:`bricks.graph.collecting` one whose parameters are slices of a vector, and
:mod:`bricks.graph.rematerialization` one whose gradient needs less memory.
"""

from bricks.graph.bn import (
    apply_batch_normalization,
    batch_normalization,
    get_batch_normalization_updates,
)
from bricks.graph.collecting import collect_parameters
from bricks.graph.computation import ComputationGraph
from bricks.graph.noise import apply_dropout, apply_noise
from bricks.graph.rematerialization import rematerialize

__all__ = [
    "ComputationGraph",
    "apply_batch_normalization",
    "apply_dropout",
    "apply_noise",
    "batch_normalization",
    "collect_parameters",
    "get_batch_normalization_updates",
    "rematerialize",
]
