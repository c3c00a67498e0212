"""Searches that look at one continuation of each hypothesis: the best one, or one that is drawn."""

from __future__ import annotations

from typing import Any

from aesara import tensor

from bricks.aesara_expressions import of_dtype
from bricks.search.base import Search, check
from bricks.search.loop import State, minus_infinity, top
from bricks.simple import Softmax
from bricks.utils.plain import is_integer, is_number

__all__ = ["GreedySearch", "SamplingSearch"]


class GreedySearch(Search):
    """Take the most probable symbol at each step.

    Parameters
    ----------
    samples : Variable or Stepper
        The ``outputs`` of a call of ``generate`` of a sequence generator, or any other model that
        can be searched.
    """

    def _choose(self, log_probs: Any, state: State) -> tuple[Any, Any]:
        symbols = tensor.argmax(log_probs, axis=-1)
        return _themselves(symbols), symbols


class SamplingSearch(Search):
    """Draw the symbol at each step, perhaps only among those that are probable.

    First the temperature acts, then `top_k`, then `top_p`. Costs and log-probabilities are those of
    the model, without any of these.

    Parameters
    ----------
    samples : Variable or Stepper
        The ``outputs`` of a call of ``generate`` of a sequence generator, or any other model that
        can be searched.
    num_samples : int
        How many sequences to draw for each example; independently, so they may be equal.
    temperature : float
        What the logarithms of the probabilities are divided by: less than 1 makes the probable
        more probable.
    top_k : int, optional
        How many of the most probable symbols to draw from, and those of equal probability with the
        last of them.
    top_p : float, optional
        The probability, above 0 and at most 1, that the fewest most probable symbols must have
        together that are drawn from (*nucleus*), and those of equal probability with the last of
        them.
    seed : int, optional
        Of the random numbers, which go on from call to call; ``config.default_seed`` by default.

    References
    ----------
    A. Holtzman et al., *The Curious Case of Neural Text Degeneration*, ICLR 2020.
    """

    def __init__(
        self,
        samples: Any,
        num_samples: int = 1,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> None:
        from bricks.xla import RandomStream

        super().__init__(samples)
        fits = is_integer(num_samples) and num_samples >= 1
        check(fits, self, "num_samples", "an integer from 1", num_samples)
        fits = is_number(temperature) and temperature > 0
        words = "a number above 0; GreedySearch is its limit at 0"
        check(fits, self, "temperature", words, temperature)
        fits = top_k is None or (is_integer(top_k) and top_k >= 1)
        check(fits, self, "top_k", "an integer from 1, or None", top_k)
        fits = top_p is None or (is_number(top_p) and 0 < top_p <= 1)
        check(fits, self, "top_p", "a number above 0 and at most 1, or None", top_p)
        self.num_hypotheses = num_samples
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self._stream = RandomStream(seed, name="search")

    def _choose(self, log_probs: Any, state: State) -> tuple[Any, Any]:
        log_probs = log_probs / of_dtype(self.temperature, log_probs.dtype)
        if self.top_k is not None:
            number = tensor.minimum(self.top_k, log_probs.shape[-1])
            least = top(log_probs, number)[0].min(axis=-1, keepdims=True)
            log_probs = _at_least(log_probs, least)
        probabilities = Softmax().apply(log_probs)
        if self.top_p is not None:
            probabilities = _nucleus(probabilities, self.top_p)
        symbols = self._stream.categorical(pvals=probabilities)
        return _themselves(symbols), symbols


def _themselves(symbols: Any) -> Any:
    """Return parents that say that each hypothesis is continued once."""
    return tensor.zeros_like(symbols) + tensor.arange(symbols.shape[1])


def _at_least(log_probs: Any, least: Any) -> Any:
    return tensor.switch(tensor.ge(log_probs, least), log_probs, minus_infinity())


def _nucleus(probabilities: Any, share: float) -> Any:
    """Leave only the fewest most probable symbols that have a share together."""
    descending = -tensor.sort(-probabilities, axis=-1)
    before = tensor.cumsum(descending, axis=-1) - descending
    is_inside = tensor.lt(before, share)
    least = tensor.switch(is_inside, descending, 1).min(axis=-1, keepdims=True)
    inside = tensor.switch(tensor.ge(probabilities, least), probabilities, 0)
    return inside / inside.sum(axis=-1, keepdims=True)
