"""Gradients of several look-ups in one table, added up in place.

The gradient of each look-up is a table of zeros that is incremented in places. A sum of such tables
is turned into one table that is incremented again and again. Aesara has a rewrite for that
(``pre_local_IncSubtensor_serialize``), which raises as soon as the length of a table is known,
because the type of an increment forgets it.
"""

from __future__ import annotations

from typing import Any

from aesara.graph.basic import Apply, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import copy_stack_trace, node_rewriter
from aesara.tensor.math import add
from aesara.tensor.subtensor import AdvancedIncSubtensor, AdvancedIncSubtensor1, IncSubtensor

__all__ = ["chain_increments"]

_INCREMENTS = (IncSubtensor, AdvancedIncSubtensor1, AdvancedIncSubtensor)


@node_rewriter([add])
def chain_increments(fgraph: FunctionGraph, node: Apply) -> Any:
    """Turn a sum of tables that were incremented into one table that is incremented in turn.

    Parameters
    ----------
    fgraph : FunctionGraph
        The graph.
    node : Apply
        A sum: ``x + inc(b, c) + inc(d, e)`` becomes ``inc(inc(x + b + d, c), e)``.

    Returns
    -------
    list of Variable, or bool
        What takes the place of its output; False if nothing does.
    """
    wanted = node.outputs[0].type
    increments = [one for one in node.inputs if _is_increment(fgraph, one, wanted)]
    if not increments:
        return False
    rest = [one for one in node.inputs if one not in increments]
    terms = rest + [one.owner.inputs[0] for one in increments]
    table: Any = terms[0] if len(terms) == 1 else add(*terms)
    for one in increments:
        table = one.owner.op(table, *one.owner.inputs[1:])
        copy_stack_trace([*node.outputs, one], table)
    return [wanted.filter_variable(table)]


def _is_increment(fgraph: FunctionGraph, variable: Variable, wanted: Any) -> bool:
    """Tell whether a term is a table that was incremented and is needed for nothing else."""
    owner: Any = variable.owner
    return (
        owner is not None
        and isinstance(owner.op, _INCREMENTS)
        and not owner.op.set_instead_of_inc
        and variable.type.dtype == wanted.dtype
        and variable.type.broadcastable == wanted.broadcastable
        and owner.inputs[0].type.broadcastable == wanted.broadcastable
        and len(fgraph.clients[variable]) == 1
    )
