"""Recurrent bricks, and the decorator that makes one of a single step.

The step of a brick is repeated by :func:`recurrent` (in :mod:`bricks.recurrent.base`).
:mod:`bricks.recurrent.architectures` has the usual bricks, :mod:`bricks.recurrent.variants` other
long short-term memories, :mod:`bricks.recurrent.misc` what is made of several: both directions,
stacks.
"""

from bricks.recurrent.architectures import LSTM, GatedRecurrent, SimpleRecurrent
from bricks.recurrent.base import BaseRecurrent, recurrent
from bricks.recurrent.misc import RECURRENTSTACK_SEPARATOR, Bidirectional, RecurrentStack
from bricks.recurrent.variants import LayerNormalizedLSTM, ProjectedLSTM

__all__ = [
    "BaseRecurrent",
    "Bidirectional",
    "GatedRecurrent",
    "LSTM",
    "LayerNormalizedLSTM",
    "ProjectedLSTM",
    "RECURRENTSTACK_SEPARATOR",
    "RecurrentStack",
    "SimpleRecurrent",
    "recurrent",
]
