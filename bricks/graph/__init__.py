"""Look at graphs, and derive others from them.

:class:`ComputationGraph` (in :mod:`bricks.graph.computation`) lists the variables of a graph and
replaces some of them; :mod:`bricks.graph.noise` derives graphs with dropout and noise,
:mod:`bricks.graph.collecting` one whose parameters are slices of a vector.
"""

from bricks.graph.collecting import collect_parameters
from bricks.graph.computation import ComputationGraph
from bricks.graph.noise import apply_dropout, apply_noise

__all__ = ["ComputationGraph", "apply_dropout", "apply_noise", "collect_parameters"]
