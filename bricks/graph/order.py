"""The nodes of a graph in the order in which a reader writes them."""

from __future__ import annotations

from collections.abc import Container, Iterable

from aesara.graph.basic import Apply, Variable

__all__ = ["nodes_below"]


def nodes_below(outputs: Iterable[Variable], stops: Container[Variable] = ()) -> list[Apply]:
    """Return the nodes that outputs are computed by.

    Parameters
    ----------
    outputs : iterable of Variable
        The outputs.
    stops : container of Variable, optional
        Variables that are taken as given: what is below them is left out.

    Returns
    -------
    list of Apply
        Each once, after those that it needs; what a node's first input needs comes first. The order
        depends on the graph alone.
    """

    def makers(variables: Iterable[Variable]) -> list[Apply]:
        return [v.owner for v in variables if v.owner is not None and v not in stops]

    order: dict[Apply, None] = {}
    stack = makers(outputs)[::-1]
    while stack:
        missing = [node for node in makers(stack[-1].inputs) if node not in order]
        if not missing:
            order.setdefault(stack.pop())
        stack.extend(reversed(missing))
    return list(order)
