"""Products of arrays by the names of their axes, as ``numpy.einsum`` writes them.

Aesara has no such operation. This one is made of its transpositions, reshapes and products of
stacks of matrices, so it has gradients of any order, on every backend.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from aesara import tensor

__all__ = ["einsum"]

#: Stand for the axes under an ellipsis, the last one first.
_HIDDEN = "⑳⑲⑱⑰⑯⑮⑭⑬⑫⑪⑩⑨⑧⑦⑥⑤④③②①"


class _Named(NamedTuple):
    """An array and the names of its axes."""

    array: Any
    axes: str

    def ordered(self, axes: str) -> _Named:
        """Bring the axes into an order."""
        return _Named(self.array.transpose(*map(self.axes.index, axes)), axes)

    def summed_over_all_but(self, axes: str) -> _Named:
        """Add up over every axis that is not among those."""
        places = [place for place, name in enumerate(self.axes) if name not in axes]
        if not places:
            return self
        kept = "".join(name for name in self.axes if name in axes)
        return _Named(self.array.sum(axis=places), kept)


def einsum(subscripts: str, *operands: Any) -> Any:
    """Multiply arrays and add up over axes, which are named by letters.

    Parameters
    ----------
    subscripts : str
        The axes of each operand, separated by commas, then ``->`` and those of the result, such as
        ``'bqd,bkd->bqk'``. What the result does not name is added up. ``...`` stands for further
        axes, as many in each operand that has it.
    *operands : array
        One for each.

    Returns
    -------
    tensor variable
        Of the axes that the result names.

    Raises
    ------
    ValueError
        If the subscripts do not fit the operands, an operand names an axis twice, or the result
        names one that no operand has.

    Notes
    -----
    Axes of one name must have one length; a length of 1 is not repeated. Operands are multiplied
    from the left to the right.

    Examples
    --------
    >>> import bricks
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> query, key = tensor.dtensor3s("query", "key")
    >>> scores = xla.einsum("bqd,bkd->bqk", query, key)
    >>> xla.function([query, key], scores)([[[1, 2]]], [[[3, 4], [5, 6]]])
    array([[[11., 17.]]])
    """
    arrays = [tensor.as_tensor_variable(operand) for operand in operands]
    names, result = _parse(subscripts, [array.ndim for array in arrays])
    named = [_Named(array, axes) for array, axes in zip(arrays, names, strict=True)]
    product = named[0].summed_over_all_but(result + "".join(names[1:]))
    for place, factor in enumerate(named[1:], start=2):
        product = _multiply(product, factor, result + "".join(names[place:]))
    return product.ordered(result).array


def _parse(subscripts: str, ndims: Sequence[int]) -> tuple[list[str], str]:
    """Return the names of the axes of each operand, and of the result."""
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    names = left.split(",")
    if not arrow:
        raise ValueError(
            f"einsum: `subscripts` must name the axes of the result behind '->'; got "
            f"{subscripts!r}. Write 'ij,jk->ik'."
        )
    if len(names) != len(ndims):
        raise ValueError(f"einsum: {subscripts!r} is for {len(names)} operands; got {len(ndims)}.")
    hidden = ""
    for place, ndim in enumerate(ndims):
        letters = names[place].replace("...", "")
        more = ndim - len(letters)
        if more < 0 or (more and "..." not in names[place]):
            raise ValueError(
                f"einsum: operand {place} of {subscripts!r} has {ndim} axes, but "
                f"{names[place]!r} names {len(letters)}."
            )
        own = _HIDDEN[len(_HIDDEN) - more :]
        if "..." in names[place]:
            if hidden and own != hidden:
                raise ValueError(
                    f"einsum: '...' must stand for as many axes in each operand of {subscripts!r}; "
                    f"got {len(hidden)} and {more}. Reshape an operand."
                )
            hidden = own
        names[place] = names[place].replace("...", own)
    result = result.replace("...", hidden)
    _check_names(subscripts, names, result)
    return names, result


def _check_names(subscripts: str, names: Sequence[str], result: str) -> None:
    for axes in (*names, result):
        twice = [name for name, count in Counter(axes).items() if count > 1]
        if twice:
            raise ValueError(
                f"einsum: {subscripts!r} names axis {twice[0]!r} twice in one array. Take the "
                "diagonal first, with tensor.diagonal."
            )
    unknown = [name for name in result if name not in "".join(names)]
    if unknown:
        raise ValueError(
            f"einsum: the result of {subscripts!r} names axis {unknown[0]!r}, which no operand has."
        )


def _multiply(x: _Named, y: _Named, needed: str) -> _Named:
    """Multiply two arrays, and add up over the axes that are needed no more."""
    x = x.summed_over_all_but(y.axes + needed)
    y = y.summed_over_all_but(x.axes + needed)
    common = [name for name in x.axes if name in y.axes]
    stacked = "".join(name for name in common if name in needed)
    summed = "".join(name for name in common if name not in needed)
    rows = "".join(name for name in x.axes if name not in common)
    columns = "".join(name for name in y.axes if name not in common)
    x, y = x.ordered(stacked + rows + summed), y.ordered(stacked + summed + columns)
    lengths = {**_lengths(y), **_lengths(x)}
    x_matrices = _grouped(x, [stacked, rows, summed], lengths)
    y_matrices = _grouped(y, [stacked, summed, columns], lengths)
    if stacked:
        product = tensor.batched_dot(x_matrices, y_matrices)
    else:
        product = tensor.dot(x_matrices, y_matrices)
    axes = stacked + rows + columns
    return _Named(product.reshape([lengths[name] for name in axes], ndim=len(axes)), axes)


def _lengths(named: _Named) -> dict[str, Any]:
    return {name: named.array.shape[place] for place, name in enumerate(named.axes)}


def _grouped(named: _Named, groups: Sequence[str], lengths: dict[str, Any]) -> Any:
    """Join the axes of each group to one; without a first group, to a matrix."""
    groups = groups if groups[0] else groups[1:]
    shape = [math.prod(lengths[name] for name in group) for group in groups]
    return named.array.reshape(shape, ndim=len(groups))
