"""Bricks that generate sequences, and that say what given sequences cost.

A :class:`SequenceGenerator` is made of a *transition*, a recurrent brick, and a *readout*. At each
step

* *glimpses* are taken of what is attended, if there is attention, given the states so far;
* the readout *merges* states, glimpses and the feedback of the output before into a vector;
* its *emitter* draws the next output given that vector, or says what a given output costs;
* its *feedback brick* turns the output into a vector, which a *fork* makes the inputs of the
  transition of; these and the glimpses give the next states.

:mod:`bricks.search` finds the most probable outputs.
"""

from bricks.sequence_generators.emitters import (
    AbstractEmitter,
    AbstractFeedback,
    LookupFeedback,
    SoftmaxEmitter,
    TrivialEmitter,
    TrivialFeedback,
)
from bricks.sequence_generators.generators import (
    BaseSequenceGenerator,
    FakeAttentionRecurrent,
    SequenceGenerator,
)
from bricks.sequence_generators.readouts import AbstractReadout, Readout

__all__ = [
    "AbstractEmitter",
    "AbstractFeedback",
    "AbstractReadout",
    "BaseSequenceGenerator",
    "FakeAttentionRecurrent",
    "LookupFeedback",
    "Readout",
    "SequenceGenerator",
    "SoftmaxEmitter",
    "TrivialEmitter",
    "TrivialFeedback",
]
