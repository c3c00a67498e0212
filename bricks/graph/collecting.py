"""Derive a graph whose parameters are slices of one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from bricks.graph.computation import ComputationGraph
from bricks.roles import COLLECTED, COLLECTOR, add_role
from bricks.utils.variables import shared_floatx

__all__ = ["collect_parameters"]


def collect_parameters(
    computation_graph: ComputationGraph, parameters: Iterable[Any]
) -> ComputationGraph:
    """Return a graph in which parameters are slices of one vector, which is learned instead.

    Parameters
    ----------
    computation_graph : ComputationGraph
        The graph.
    parameters : iterable of SharedVariable
        The parameters, all of one dtype.

    Returns
    -------
    ComputationGraph
        The new graph. Its vector of role COLLECTOR starts with the values of the parameters, one
        after the other; the slices have the role COLLECTED and ``tag.replacement_of``.

    Raises
    ------
    ValueError
        If there is no parameter, or their dtypes differ.
    """
    parameters = list(dict.fromkeys(parameters))
    dtypes = sorted({parameter.dtype for parameter in parameters})
    if len(dtypes) != 1:
        raise ValueError(
            "collect_parameters: `parameters` must be shared variables of one dtype; "
            f"got {len(parameters)} of {', '.join(dtypes) or 'no dtype'}."
        )
    values = [parameter.get_value(borrow=True) for parameter in parameters]
    flat = numpy.concatenate([value.ravel() for value in values])
    collector: Any = shared_floatx(flat, name="collected_parameters", dtype=dtypes[0])
    add_role(collector, COLLECTOR)
    replacements, start = {}, 0
    for parameter, value in zip(parameters, values, strict=True):
        piece = collector[start : start + value.size].reshape(value.shape)
        piece.name = parameter.name
        piece.tag.replacement_of = parameter
        add_role(piece, COLLECTED)
        replacements[parameter] = piece
        start += value.size
    return computation_graph.replace(replacements)
