"""Search for the most probable sequences of a model, or draw some.

:class:`BeamSearch`, :class:`GreedySearch` and :class:`SamplingSearch` have the same two calls:
``search(input_values, eol_symbol, max_length)`` returns lists, as in Blocks, and
``decode(input_values, eol_symbol, max_length)`` returns :class:`Hypotheses` for each example of a
batch. They search what is sampled by a sequence generator, a Transformer decoder
(:class:`TransformerStepper`), or any other :class:`Stepper`.
"""

from bricks.search.base import Search
from bricks.search.beam import BeamSearch
from bricks.search.hypotheses import CandidateNotFoundError, Hypotheses
from bricks.search.sampling import GreedySearch, SamplingSearch
from bricks.search.stepping import GeneratorStepper, Stepper, TransformerStepper

__all__ = [
    "BeamSearch",
    "CandidateNotFoundError",
    "GeneratorStepper",
    "GreedySearch",
    "Hypotheses",
    "SamplingSearch",
    "Search",
    "Stepper",
    "TransformerStepper",
]
