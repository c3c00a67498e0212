"""Which nodes of a graph are needed for one branch of an ``ifelse`` only.

These are computed when that branch is taken, and not before: the other branch costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.ifelse import IfElse
from aesara.tensor.type import discrete_dtypes

__all__ = ["Path", "paths_of"]

#: The branches that a node is inside of, the outermost first: nodes of ``ifelse``, and whether
#: it is the first or the second branch.
Path = tuple[tuple[Apply, int], ...]


def _common_start(paths: Sequence[Path]) -> Path:
    """Return the branches that all paths are inside of."""
    shortest = min(paths, key=len)
    for depth, branch in enumerate(shortest):
        if any(path[depth] != branch for path in paths):
            return shortest[:depth]
    return shortest


def _is_lazy(node: Apply) -> bool:
    """Tell whether a node computes one branch only.

    Whole numbers without axes are lengths, as a rule. They must stay known, and cost nothing.
    """
    return isinstance(node.op, IfElse) and not all(
        getattr(out.type, "ndim", 1) == 0 and out.type.dtype in discrete_dtypes
        for out in node.outputs
    )


def _path_of_use(client: Apply, place: int, paths: dict[Apply, Path]) -> Path:
    """Return where a node's input is needed, which an ``ifelse`` needs in one of its branches."""
    path = paths[client]
    if place == 0 or not _is_lazy(client):
        return path
    return (*path, (client, 0 if place <= client.op.n_outs else 1))


def paths_of(fgraph: FunctionGraph) -> dict[Apply, Path]:
    """Tell for each node inside of which branches all that needs it lies.

    Parameters
    ----------
    fgraph : aesara.graph.fg.FunctionGraph

    Returns
    -------
    dict of aesara.graph.basic.Apply to tuple
        An empty tuple for what is always needed.
    """
    paths: dict[Apply, Path] = {}
    for node in reversed(fgraph.toposort()):
        uses: list[Path] = [
            _path_of_use(client, place, paths) if isinstance(client, Apply) else ()
            for variable in node.outputs
            for client, place in fgraph.clients.get(variable, ())
        ]
        paths[node] = _common_start(uses) if uses else ()
    return paths
