"""The softmax that leaves positions out."""

from typing import Any

import numpy
from aesara import tensor
from aesara.tensor import special
from aesara.tensor.var import TensorVariable as Variable

__all__ = ["softmax_where"]


def softmax_where(energies: Variable, allowed: Any = None, axis: int = -1) -> Any:
    """Softmax over some positions of an axis, with the weight 0 for the others.

    Parameters
    ----------
    energies : Variable of any shape
        Floating-point numbers. What stands where nothing is allowed does not matter, and gets the
        gradient 0.
    allowed : Variable of truth values, optional
        Where weights may be, broadcastable to the energies; everywhere by default.
    axis : int
        The axis over which weights have the sum 1.

    Returns
    -------
    Variable of the shape of the energies
        Where no position is allowed, all weights are 0; neither they nor their gradients are NaN.
    """
    # The op itself: the function of Aesara warns of vectors, and of what it once did to them.
    softmax = special.Softmax(axis=axis)
    if allowed is None:
        return softmax(energies)
    # So far below any energy that its exponential is exactly 0, and no infinity, whose
    # difference with itself would be NaN.
    lowest = numpy.asarray(numpy.finfo(energies.dtype).min / 2, energies.dtype)
    weights = softmax(tensor.switch(allowed, energies, lowest))
    return tensor.switch(allowed, weights, numpy.asarray(0, energies.dtype))
