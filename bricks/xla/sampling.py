"""Random streams: symbolic random variables whose whole state is ordinary arrays."""

from __future__ import annotations

from bricks.xla.discrete import DiscreteDraws
from bricks.xla.keys import GeneratorOfKey, NextKey, make_key

__all__ = ["GeneratorOfKey", "NextKey", "RandomStream", "make_key"]


class RandomStream(DiscreteDraws):
    """A source of symbolic random variables, as Theano's ``MRG_RandomStreams`` was.

    Each draw has a random key, a shared variable in `keys`, which every function that uses the
    draw advances once per call (see :mod:`bricks.xla.keys`).

    Parameters
    ----------
    seed : int, optional
        By default ``config.default_seed``.
    name : str, optional
        Two streams of one seed and different names are independent. Streams of the same seed and
        the same name give the same numbers.

    Attributes
    ----------
    keys : list of shared variables
        One for each draw, in the order in which they were made.

    Examples
    --------
    >>> import bricks
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> x = tensor.dmatrix("x")
    >>> noisy = x + xla.RandomStream(1).normal(x.shape, std=0.1)
    >>> xla.function([x], noisy)([[1, 2, 3]]).shape
    (1, 3)
    """
