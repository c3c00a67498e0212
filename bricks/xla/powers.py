"""Powers with constant exponents as squares, roots and reciprocals.

Aesara does this too (``local_pow_specialize``), but fails where other rewrites have found out more
about the shape of the base than was known when the power was written, as happens to gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from aesara import tensor
from aesara.graph.basic import Constant
from aesara.graph.rewriting.basic import node_rewriter

__all__ = ["specialize_powers"]

_BY_EXPONENT: dict[float, Callable[[Any], Any]] = {
    2: tensor.square,
    1: lambda base: base,
    0.5: tensor.sqrt,
    0: tensor.ones_like,
    -0.5: lambda base: tensor.reciprocal(tensor.sqrt(base)),
    -1: tensor.reciprocal,
    -2: lambda base: tensor.reciprocal(tensor.square(base)),
}


@node_rewriter([tensor.pow])
def specialize_powers(fgraph: Any, node: Any) -> list[Any] | None:
    """Write a power without ``pow``, if its exponent is one constant of a few.

    Parameters
    ----------
    fgraph : aesara.graph.fg.FunctionGraph
        The graph of the node; not looked at.
    node : Apply
        A power.

    Returns
    -------
    list of Variable or None
        What replaces the power, if something does.
    """
    base, exponent = node.inputs
    if not isinstance(exponent, Constant) or any(n != 1 for n in exponent.type.shape):
        return None
    number = float(numpy.asarray(exponent.data).item())
    if number not in _BY_EXPONENT:
        return None
    return [tensor.cast(_BY_EXPONENT[number](base), node.outputs[0].type.dtype)]
