"""Beam search, as Blocks had it and as it is done today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
from aesara import config, tensor

from bricks.aesara_expressions import as_float
from bricks.search.base import Search, check, rank
from bricks.search.loop import (
    Beams,
    State,
    is_symbol,
    minus_infinity,
    pick,
    repeat_loop,
    top,
    write,
)
from bricks.utils.plain import is_integer, is_number

__all__ = ["BeamSearch"]

#: Between these a source position counts as covered, after Lingvo; GNMT's upper one is 1.
_LEAST_COVERED, _MOST_COVERED = 0.001, 0.5


class BeamSearch(Search):
    """Keep the most probable hypotheses at each step.

    :meth:`search` is that of Blocks: hypotheses that are finished keep their places in the beam,
    and the settings below do not matter. In :meth:`decode` a hypothesis that is finished leaves the
    beam to the others and competes for a place among the best; the search of an example ends when
    none in the beam can come among them any more, or by `score_gap`.

    Parameters
    ----------
    samples : Variable or Stepper
        The ``outputs`` of a call of ``generate`` of a sequence generator, or any other model that
        can be searched.
    beam_size : int
        How many unfinished hypotheses to keep for each example.
    n_best : int, optional
        How many finished ones to return; `beam_size` by default.
    length_normalization : float
        The power α of the length by which scores are divided: ``((5 + length) / 5) ** α``. With 0
        short sequences are preferred.
    coverage_penalty : float
        The weight β of what is added to the scores of those that attended to all of the source:
        the sum over its positions of the logarithm of their attention, cut to 0.001 and 0.5.
    length_ratio : float
        How long targets are, compared with sources, where coverage is reckoned; above 0.
    score_gap : float, optional
        The search of an example ends when the best unfinished hypothesis is less probable than the
        best finished one by more than this, in nats. Lingvo has 3.
    full_beam : bool
        Whether it ends so only when there are `n_best` finished ones.
    max_eol_gap : float, optional
        An end is allowed only if it is less probable than the best continuation of the same
        hypothesis by at most this, in nats. Lingvo has 5.
    min_eol_log_prob : float, optional
        An end is allowed only if the logarithm of its probability is larger.
    force_eol_at_end : bool
        Whether any end is allowed as the last of the `max_length` symbols.
    allow_empty : bool
        Whether the end may be the first symbol.

    References
    ----------
    Y. Wu et al., *Google's Neural Machine Translation System*, 2016, section 7; J. Shen et al.,
    *Lingvo: a Modular and Scalable Framework for Sequence-to-Sequence Modeling*, 2019.
    """

    columns_compete = True

    def __init__(
        self,
        samples: Any,
        beam_size: int = 4,
        n_best: int | None = None,
        length_normalization: float = 0.0,
        coverage_penalty: float = 0.0,
        length_ratio: float = 1.0,
        score_gap: float | None = None,
        full_beam: bool = True,
        max_eol_gap: float | None = None,
        min_eol_log_prob: float | None = None,
        force_eol_at_end: bool = False,
        allow_empty: bool = True,
    ) -> None:
        super().__init__(samples)
        self.num_hypotheses = beam_size
        self.n_best = beam_size if n_best is None else n_best
        self.length_normalization = length_normalization
        self.coverage_penalty, self.length_ratio = coverage_penalty, length_ratio
        self.score_gap, self.full_beam = score_gap, full_beam
        self.max_eol_gap, self.min_eol_log_prob = max_eol_gap, min_eol_log_prob
        self.force_eol_at_end, self.allow_empty = force_eol_at_end, allow_empty
        self._check_settings()

    def _check_settings(self) -> None:
        for name, value in {"beam_size": self.num_hypotheses, "n_best": self.n_best}.items():
            check(is_integer(value) and value >= 1, self, name, "an integer from 1", value)
        for name in ("length_normalization", "coverage_penalty"):
            value = getattr(self, name)
            check(is_number(value) and value >= 0, self, name, "a number from 0", value)
        for name in ("score_gap", "max_eol_gap"):
            value = getattr(self, name)
            fits = value is None or (is_number(value) and value >= 0)
            check(fits, self, name, "a number from 0, or None", value)
        ratio, least = self.length_ratio, self.min_eol_log_prob
        check(is_number(ratio) and ratio > 0, self, "length_ratio", "a number above 0", ratio)
        fits = least is None or is_number(least)
        check(fits, self, "min_eol_log_prob", "a number, or None", least)
        if self.coverage_penalty and self.stepper.attention_name is None:
            raise ValueError(
                "BeamSearch: `coverage_penalty` needs attention weights, and the model has none. "
                "Give the generator an attention whose glimpses have `weights`, or set "
                "`attention_name` of the stepper."
            )

    def _choose(self, log_probs: Any, state: State) -> tuple[Any, Any]:
        candidates = state["totals"][:, :, None] + log_probs
        width, number = candidates.shape[1], candidates.shape[2]
        _, places = top(candidates.flatten(2), width)
        return places // number, places % number

    def _ranked(self, which: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
        ranked = rank(arrays)
        if which == "search":
            return ranked
        return {n: a[:, : self.n_best] if numpy.ndim(a) > 1 else a for n, a in ranked.items()}

    def _graph(self, which: str, beams: Beams, settings: State) -> tuple[State, Any]:
        if which == "search":
            final, updates = super()._graph(which, beams, settings)
            # In Blocks' search what is finished has no precedence.
            return {**final, "finished": tensor.ones_like(final["finished"])}, updates
        return _Decoding(self, beams, settings).run()


class _Decoding:
    """The loop of `BeamSearch.decode`."""

    def __init__(self, search: BeamSearch, beams: Beams, settings: State) -> None:
        self._search, self._beams, self._settings = search, beams, settings

    def run(self) -> tuple[State, Any]:
        """Build the loop.

        Returns
        -------
        arrays : State
            What is found, by name.
        updates : mapping
            Of shared variables.
        """
        start = self._beams.start(self._settings["max_length"], self._settings["eol_symbol"])
        start |= self._start_of_done(start["outputs"])
        constants = dict(self._beams.contexts)
        if self._search.coverage_penalty:
            start["coverage"], constants[" weights"] = self._start_of_coverage(start["totals"])
        constants |= {" eol": self._settings["eol_symbol"], " most": self._settings["max_length"]}
        final, updates = repeat_loop(self._step, start, constants, self._settings["max_length"])
        return self._found(final), updates

    def _start_of_done(self, outputs: Any) -> State:
        """Give the places of finished hypotheses, which are empty."""
        num_examples, _, time = (outputs.shape[axis] for axis in range(3))
        shape = (num_examples, self._search.n_best)
        no_score = tensor.alloc(minus_infinity(), *shape)
        return {
            "done outputs": tensor.zeros((*shape, time), "int64"),
            "done log_probs": tensor.zeros((*shape, time), config.floatX),
            "done lengths": tensor.zeros(shape, "int64"),
            "done totals": no_score,
            "done scores": no_score,
            "stopped": tensor.zeros((num_examples,), "bool"),
            "is_nan": tensor.zeros((num_examples,), "bool"),
            "num_symbols": tensor.constant(0, dtype="int64"),
        }

    def _start_of_coverage(self, totals: Any) -> tuple[Any, Any]:
        """Give how much of each source position was attended to, and what positions weigh."""
        stepper, contexts = self._search.stepper, self._beams.contexts
        try:
            attention = self._beams.start_of(str(stepper.attention_name))
        except KeyError:
            raise ValueError(
                f"BeamSearch: `coverage_penalty` needs the attention {stepper.attention_name!r} "
                "among the states before the first symbol. Let `initial_states` of the "
                f"{type(stepper).__name__} give zeros of its shape, (batch, source)."
            ) from None
        shape = (totals.shape[0], totals.shape[1], attention.shape[1])
        nothing = tensor.zeros(shape, config.floatX)
        if stepper.attention_mask_name not in contexts:
            return nothing, tensor.ones_like(nothing)
        mask = as_float(contexts[stepper.attention_mask_name])
        return nothing, mask.T.reshape(shape, ndim=3)

    def _step(self, state: State, given: State) -> tuple[State, Any]:
        """Take a step; tell whether the search of all examples ends."""
        log_probs, pending = self._beams.score(state, given)
        # What a model gives for hypotheses that count no more may be NaN.
        counts = _count(state)[:, :, None]
        log_probs = tensor.switch(counts, log_probs, minus_infinity())
        is_nan = tensor.or_(state["is_nan"], tensor.isnan(log_probs).any(axis=(1, 2)))
        number, width = log_probs.shape[2], log_probs.shape[1]
        candidates = state["totals"][:, :, None] + log_probs
        coverage = {}
        if "coverage" in state:
            weights = pending[str(self._search.stepper.attention_name)]
            weights = weights.reshape(state["coverage"].shape, ndim=3)
            coverage["coverage"] = state["coverage"] + weights

        done = self._done(state, log_probs, candidates, coverage, given)
        is_eol = is_symbol(given[" eol"], number)
        going_on = tensor.switch(is_eol, minus_infinity(), candidates).flatten(2)
        totals, places = top(going_on, width)
        parents, symbols = places // number, places % number
        taken = log_probs[tensor.arange(parents.shape[0])[:, None], parents, symbols]
        following = {
            **done,
            "step": state["step"] + 1,
            "totals": totals,
            "lengths": state["lengths"] + 1,
            "outputs": write(pick(state["outputs"], parents), state["step"], symbols),
            "log_probs": write(pick(state["log_probs"], parents), state["step"], taken),
            "is_nan": is_nan,
            "num_symbols": number,
            **{name: pick(value, parents) for name, value in coverage.items()},
            **self._beams.advance(pending, parents, symbols, given),
        }
        following["stopped"] = self._stops(state, following, given)
        return following, tensor.or_(following["stopped"].all(), is_nan.any())

    def _done(
        self, state: State, log_probs: Any, candidates: Any, coverage: State, given: State
    ) -> State:
        """Let hypotheses that may end now compete with those that have ended."""
        eol, step = given[" eol"], state["step"]
        ends = candidates[:, :, eol]
        is_allowed = self._allowed(state, log_probs[:, :, eol], candidates, given)
        scores = self._score(ends, step + 1, coverage.get("coverage"), given)
        is_allowed = tensor.and_(is_allowed, tensor.invert(state["stopped"])[:, None])
        scores = tensor.switch(is_allowed, scores, minus_infinity())
        new = {
            "outputs": write(state["outputs"], step, tensor.zeros_like(state["lengths"]) + eol),
            "log_probs": write(state["log_probs"], step, log_probs[:, :, eol]),
            "lengths": state["lengths"] + 1,
            "totals": ends,
            "scores": scores,
        }
        both = {
            name: tensor.concatenate([state[f"done {name}"], value], axis=1)
            for name, value in new.items()
        }
        _, places = top(both["scores"], self._search.n_best)
        return {f"done {name}": pick(value, places) for name, value in both.items()}

    def _allowed(self, state: State, log_probs: Any, candidates: Any, given: State) -> Any:
        """Tell which hypotheses may end now."""
        search, eol = self._search, given[" eol"]
        ends = candidates[:, :, eol]
        is_allowed = tensor.gt(ends, minus_infinity())
        if search.max_eol_gap is not None:
            best = candidates.max(axis=-1)
            is_allowed = tensor.and_(is_allowed, tensor.ge(ends, best - search.max_eol_gap))
        if search.min_eol_log_prob is not None:
            is_allowed = tensor.and_(is_allowed, tensor.gt(log_probs, search.min_eol_log_prob))
        if search.force_eol_at_end:
            is_last = tensor.eq(state["step"] + 1, given[" most"])
            is_possible = tensor.gt(ends, minus_infinity())
            is_allowed = tensor.or_(is_allowed, tensor.and_(is_last, is_possible))
        if not search.allow_empty:
            is_allowed = tensor.and_(is_allowed, tensor.gt(state["step"], 0))
        return is_allowed

    def _score(self, totals: Any, length: Any, coverage: Any, given: State) -> Any:
        """Normalize by length, and add what coverage gives."""
        scores = totals / self._divisor(length)
        if coverage is None:
            return scores
        search = self._search
        share = tensor.clip(coverage / search.length_ratio, _LEAST_COVERED, _MOST_COVERED)
        covered = (tensor.log(share) * given[" weights"]).sum(axis=-1)
        return scores + search.length_ratio * search.coverage_penalty * covered

    def _divisor(self, length: Any) -> Any:
        exponent = self._search.length_normalization
        if not exponent:
            return numpy.asarray(1, config.floatX)
        return ((5 + as_float(length)) / 5) ** numpy.asarray(exponent, config.floatX)

    def _stops(self, state: State, following: State, given: State) -> Any:
        """Tell of which examples the search ends."""
        search, totals = self._search, following["totals"]
        # No logarithm of a probability is positive, so the largest length gives the best score.
        bound = totals / self._divisor(given[" most"])
        if "coverage" in following:
            most = (numpy.log(_MOST_COVERED) * given[" weights"]).sum(axis=-1)
            bound += search.length_ratio * search.coverage_penalty * most.astype(config.floatX)
        worst = following["done scores"].min(axis=1)
        stops = tensor.ge(worst, bound.max(axis=1))
        if search.score_gap is not None:
            best = following["done totals"].max(axis=1)
            is_hopeless = tensor.lt(totals.max(axis=1), best - search.score_gap)
            if search.full_beam:
                is_hopeless = tensor.and_(is_hopeless, tensor.gt(worst, minus_infinity()))
            stops = tensor.or_(stops, is_hopeless)
        return tensor.or_(state["stopped"], stops)

    def _found(self, final: State) -> State:
        """Give what ended, and what did not because the time was over."""
        constants = {" weights": None}
        coverage = final.get("coverage")
        if coverage is not None:
            constants[" weights"] = self._start_of_coverage(final["totals"])[1]
        scores = self._score(final["totals"], final["step"], coverage, constants)
        cut_off = {
            "outputs": final["outputs"],
            "log_probs": final["log_probs"],
            "lengths": final["lengths"],
            "totals": final["totals"],
            "scores": tensor.switch(_count(final), scores, minus_infinity()),
        }
        arrays = {
            name: tensor.concatenate([final[f"done {name}"], value], axis=1)
            for name, value in cut_off.items()
        }
        has_ended = tensor.ones_like(final["done lengths"], dtype="bool")
        not_ended = tensor.zeros_like(final["lengths"], dtype="bool")
        arrays["finished"] = tensor.concatenate([has_ended, not_ended], axis=1)
        arrays["is_nan"], arrays["num_symbols"] = final["is_nan"], final["num_symbols"]
        arrays["is_impossible"] = tensor.isinf(arrays["scores"]).all(axis=1)
        return arrays


def _count(state: State) -> Any:
    """Tell which hypotheses are possible, of examples whose search goes on."""
    is_possible = tensor.gt(state["totals"], minus_infinity())
    return tensor.and_(is_possible, tensor.invert(state["stopped"])[:, None])
