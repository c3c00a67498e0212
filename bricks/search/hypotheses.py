"""What a search finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

__all__ = ["CandidateNotFoundError", "Hypotheses"]


class CandidateNotFoundError(Exception):
    """There is no sequence to return."""


@dataclass(frozen=True)
class Hypotheses:
    """Sequences of symbols that a search found, some for each example.

    Parameters
    ----------
    outputs : int64 array of shape (example, hypothesis, time)
        The symbols, that of the end of line included, and that same symbol behind the end. Behind
        hypotheses that there are not, it is everywhere.
    lengths : int64 array of shape (example, hypothesis)
        Number of symbols, that of the end of line included; 0 where there is no hypothesis.
    log_probs : array of shape (example, hypothesis, time)
        Logarithms of the probabilities of the symbols, 0 behind the end.
    scores : array of shape (example, hypothesis)
        What the hypotheses are ranked by; minus infinity where there is none.
    costs : array of shape (example, hypothesis)
        Negative logarithms of the probabilities of the sequences, in nats.
    finished : bool array of shape (example, hypothesis)
        Whether the sequence ended with the symbol of the end of line.
    """

    outputs: numpy.ndarray
    lengths: numpy.ndarray
    log_probs: numpy.ndarray
    scores: numpy.ndarray
    costs: numpy.ndarray
    finished: numpy.ndarray

    def __len__(self) -> int:
        return len(self.outputs)

    def best(self) -> list[numpy.ndarray]:
        """Give the first hypothesis of each example.

        Returns
        -------
        list of int64 array of shape (time,)
            Cut behind the end of line.
        """
        return [self.outputs[i, 0, : self.lengths[i, 0]] for i in range(len(self))]

    def as_lists(self) -> list[list[list[int]]]:
        """Give all hypotheses as lists.

        Returns
        -------
        list of list of list of int
            The symbols of each hypothesis of each example, cut behind the end of line.
        """
        return [
            [self.outputs[i, j, :n].tolist() for j, n in enumerate(lengths) if n]
            for i, lengths in enumerate(self.lengths)
        ]

    def as_batch(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Give all hypotheses as a batch, such as ``cost_matrix`` takes.

        Returns
        -------
        outputs : int64 array of shape (time, example * hypothesis)
            Those of the first example first.
        mask : array of shape (time, example * hypothesis)
            0 behind the end.
        """
        time = self.outputs.shape[-1]
        outputs = self.outputs.reshape(-1, time).T
        mask = numpy.arange(time)[:, None] < self.lengths.reshape(-1)
        return numpy.ascontiguousarray(outputs), mask.astype(self.log_probs.dtype)


def cut(arrays: dict[str, Any], eol_symbol: int) -> Hypotheses:
    """Make hypotheses of the arrays of a search, without the time that none of them uses.

    Parameters
    ----------
    arrays : dict of str to array
        ``outputs`` and ``log_probs`` of shape (example, hypothesis, time); ``lengths``, ``totals``,
        ``scores`` and ``finished`` of shape (example, hypothesis).
    eol_symbol : int
        What stands behind the end.

    Returns
    -------
    Hypotheses
    """
    exists = numpy.isfinite(arrays["scores"])
    lengths = numpy.where(exists, arrays["lengths"], 0)
    time = int(lengths.max(initial=0))
    is_inside = numpy.arange(time) < lengths[..., None]
    return Hypotheses(
        outputs=numpy.where(is_inside, arrays["outputs"][..., :time], eol_symbol),
        lengths=lengths,
        log_probs=numpy.where(is_inside, arrays["log_probs"][..., :time], 0),
        scores=numpy.where(exists, arrays["scores"], -numpy.inf),
        costs=numpy.where(exists, -arrays["totals"], numpy.inf),
        finished=arrays["finished"] & exists,
    )
