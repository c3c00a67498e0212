"""Leave out what a scan computes and nobody uses."""

from __future__ import annotations

import itertools
from typing import Any

from aesara.graph.basic import Apply, Variable, graph_inputs
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter
from aesara.scan.op import Scan
from aesara.scan.utils import compress_outs

__all__ = ["drop_unused_results"]


@node_rewriter([Scan])
def drop_unused_results(fgraph: FunctionGraph, node: Apply) -> Any:
    """Leave the results of a scan out that are used neither after it nor in its other results.

    Where Aesara moves a sum of products out of a loop, the sum in the loop stays, unused.

    Parameters
    ----------
    fgraph : FunctionGraph
        The graph.
    node : Apply
        A scan.

    Returns
    -------
    dict or bool
        What takes the place of its outputs; False if it stays.
    """
    unused = _unused_results(fgraph, node)
    if not unused:
        return False
    inputs, outputs, info, outer_inputs, places = compress_outs(node.op, unused, node.inputs)
    op = Scan(
        inputs,
        outputs,
        info,
        mode=node.op.mode,
        truncate_gradient=node.op.truncate_gradient,
        name=node.op.name,
        allow_gc=node.op.allow_gc,
    )
    results = op.make_node(*outer_inputs).outputs
    replacements: dict[Any, Any] = {
        # The condition of an `until` has a place too, but is no output.
        node.outputs[old]: results[new]
        for old, new in places.items()
        if old < len(node.outputs)
    }
    replacements["remove"] = [node]
    return replacements


def _unused_results(fgraph: FunctionGraph, node: Apply) -> list[int]:
    """List the places of results that can be left out."""
    op, info = node.op, node.op.info
    taps = _taps(op)
    candidates = [place for place in taps if not fgraph.clients.get(node.outputs[place])]
    if not candidates:
        return []
    # Of what a scan accumulates, a step may compute several values.
    shift = info.n_mit_mot_outs - info.n_mit_mot
    needed = set(
        graph_inputs(
            output
            for place, output in enumerate(op.inner_outputs, start=-shift)
            if place not in candidates
        )
    )
    found = [place for place in candidates if needed & set(taps[place])]
    while found:
        needed.update(graph_inputs(op.inner_outputs[place + shift] for place in found))
        candidates = [place for place in candidates if place not in found]
        found = [place for place in candidates if needed & set(taps[place])]
    return candidates


def _taps(op: Scan) -> dict[int, list[Variable]]:
    """Map the place of each recurrent and collected result to the values that a step reads."""
    info = op.info
    first = info.n_seqs + sum(map(len, info.mit_mot_in_slices))
    remaining = iter(op.inner_inputs[first:])
    slices = [*info.mit_sot_in_slices, *info.sit_sot_in_slices, *[()] * info.n_nit_sot]
    return {
        place: list(itertools.islice(remaining, len(taps)))
        for place, taps in enumerate(slices, start=info.n_mit_mot)
    }
