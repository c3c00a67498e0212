"""Who may look at whom, as energies: 0 where a query may look at a key, -inf where not.

Padding is told by masks of shape (time, batch) instead, 0 for padding, as everywhere.
"""

from typing import Any

import numpy
from aesara import config, tensor
from aesara.graph.basic import Variable

from bricks.utils.plain import is_integer

__all__ = ["causal_bias", "mask_to_bias", "padding_mask"]


def mask_to_bias(mask: Any) -> Any:
    """Energies to be added, from a mask.

    Parameters
    ----------
    mask : Variable of shape (query time, key time) or (batch, head, query time, key time)
        Nonzero where a query may look at a key. A length of 1 that is known stands for all.

    Returns
    -------
    Variable of the same shape
        0 there, -inf elsewhere.
    """
    return tensor.switch(tensor.neq(mask, 0), 0, -numpy.inf).astype(config.floatX)


def causal_bias(length: Any, window: Any = None) -> Any:
    """Energies with which no step looks at a later one.

    Parameters
    ----------
    length : int or Variable
        How many steps there are.
    window : int or Variable, optional
        How many steps each one sees: itself and those before it. All by default.

    Returns
    -------
    Variable of shape (query time, key time)
        0 and -inf.

    Raises
    ------
    ValueError
        If `window` is no positive integer.

    Examples
    --------
    >>> causal_bias(3, window=2).eval().tolist()
    [[0.0, -inf, -inf], [0.0, 0.0, -inf], [-inf, 0.0, 0.0]]
    """
    is_known = window is not None and not isinstance(window, Variable)
    if is_known and (not is_integer(window) or window < 1):
        raise ValueError(
            "causal_bias: `window` must be an integer from 1, since each step sees itself, or None "
            f"for all; got {window!r}."
        )
    steps = tensor.arange(length)
    distances = steps[:, None] - steps[None, :]
    allowed = tensor.ge(distances, 0)
    if window is not None:
        allowed = tensor.and_(allowed, tensor.lt(distances, window))
    return mask_to_bias(allowed)


def padding_mask(lengths: Any, max_length: Any) -> Any:
    """Mask of sequences of some lengths, padded at the end.

    Parameters
    ----------
    lengths : Variable of integers of shape (batch,)
        Steps of each sequence.
    max_length : int or Variable
        Steps of all of them with padding.

    Returns
    -------
    Variable of shape (time, batch)
        1 for the steps of a sequence, 0 for padding.

    Examples
    --------
    >>> padding_mask([1, 3], max_length=3).eval().tolist()
    [[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """
    lengths = tensor.as_tensor_variable(lengths)
    return tensor.lt(tensor.arange(max_length)[:, None], lengths[None, :]).astype(config.floatX)
