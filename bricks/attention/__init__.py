"""Attention of recurrent bricks over sequences: where to look, and how it is wired in.

Sequences have the axes (time, batch, feature), states and glimpses (batch, feature), masks (time,
batch). :mod:`bricks.transformer` has attention of many heads, which takes all steps at once.
"""

from bricks.attention.base import (
    AbstractAttention,
    GenericSequenceAttention,
    ShallowEnergyComputer,
)
from bricks.attention.location import LocationSensitiveAttention
from bricks.attention.matching import (
    DotProductAttention,
    MatchingAttention,
    SequenceContentAttention,
)
from bricks.attention.recurrent import AbstractAttentionRecurrent, AttentionRecurrent
from bricks.attention.softmax import softmax_where

__all__ = [
    "AbstractAttention",
    "AbstractAttentionRecurrent",
    "AttentionRecurrent",
    "DotProductAttention",
    "GenericSequenceAttention",
    "LocationSensitiveAttention",
    "MatchingAttention",
    "SequenceContentAttention",
    "ShallowEnergyComputer",
    "softmax_where",
]
