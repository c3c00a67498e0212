"""What all searches have in common: their calls, and the loop of those that keep what is finished.

A search is compiled once into one program, whose loop runs on the device; only what is found comes
back. XLA compiles it anew for each shape of the inputs and each `max_length`, so keep these few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy
from aesara import tensor

from bricks.search.hypotheses import CandidateNotFoundError, Hypotheses, cut
from bricks.search.loop import (
    Beams,
    State,
    is_symbol,
    minus_infinity,
    pick,
    repeat_loop,
    write,
)
from bricks.search.stepping import GeneratorStepper, Stepper
from bricks.utils.plain import is_integer
from fuel_data.utils.names import nearest_name

__all__ = ["Search", "check", "rank"]

#: Names of the settings of a call, which are inputs of the compiled program.
_SETTINGS = ("eol_symbol", "max_length", "ignore_first_eol")


class Search(ABC):
    """The base class of searches.

    Parameters
    ----------
    samples : Variable or Stepper
        The ``outputs`` of a call of ``generate`` of a sequence generator, or any other model that
        can be searched.
    """

    #: How many hypotheses there are for each example.
    num_hypotheses = 1
    #: Whether hypotheses of one example compete. Those of :meth:`search` are then all columns.
    columns_compete = False

    def __init__(self, samples: Any) -> None:
        self.stepper = samples if isinstance(samples, Stepper) else GeneratorStepper(samples)
        self.inputs = list(self.stepper.inputs)
        self._compiled: dict[str, Any] = {}

    @property
    def compiled(self) -> bool:
        """Whether :meth:`search` has been prepared."""
        return "search" in self._compiled

    def compile(self) -> None:
        """Prepare :meth:`search`, which does so by itself when it is first called."""
        self._function("search")

    def search(
        self,
        input_values: Mapping[Any, Any],
        eol_symbol: int,
        max_length: int,
        ignore_first_eol: bool = False,
        as_arrays: bool = False,
    ) -> tuple[Any, ...]:
        """Find sequences, as many as the inputs have columns.

        Parameters
        ----------
        input_values : mapping of Variable or str to array
            Values of the inputs. For a beam search all columns must be the same example, repeated
            as often as the beam is wide; otherwise they may be different examples.
        eol_symbol : int
            The symbol that ends a sequence.
        max_length : int
            How many symbols a sequence may have; those that are not finished then are cut.
        ignore_first_eol : bool
            Whether that symbol ends no sequence as its first one.
        as_arrays : bool
            Whether to return arrays in place of lists.

        Returns
        -------
        outputs : list of list of int, or array of shape (time, sequence)
            The symbols, that of the end of line included; of a beam search the best sequence
            first. Sequences that are impossible are left out.
        masks : array of shape (time, sequence)
            0 behind the end; only with `as_arrays`.
        costs : list of float, or array of shape (time, sequence)
            Negative logarithms of the probabilities of the sequences, or of each symbol.

        Raises
        ------
        CandidateNotFoundError
            If no sequence is possible, because the model gives NaN or only zeros.
        ValueError
            If an input is missing or unknown, or a number is out of range.
        """
        found = self._run("search", input_values, eol_symbol, max_length, int(ignore_first_eol))
        keep = found.lengths > 0
        outputs, log_probs = found.outputs[keep], found.log_probs[keep]
        lengths = found.lengths[keep]
        if as_arrays:
            mask = numpy.arange(outputs.shape[-1])[:, None] < lengths
            return outputs.T, mask.astype(log_probs.dtype), -log_probs.T
        lists = [row[:n].tolist() for row, n in zip(outputs, lengths, strict=True)]
        return lists, found.costs[keep].tolist()

    def decode(
        self,
        input_values: Mapping[Any, Any],
        eol_symbol: int,
        max_length: int,
        must_finish: bool = False,
    ) -> Hypotheses:
        """Find sequences for each example of a batch.

        Parameters
        ----------
        input_values : mapping of Variable or str to array
            Values of the inputs, for a batch of examples.
        eol_symbol : int
            The symbol that ends a sequence.
        max_length : int
            How many symbols a sequence may have, that of the end included.
        must_finish : bool
            Whether an example without any finished sequence is an error.

        Returns
        -------
        Hypotheses
            Those that are finished first; samples in the order in which they were drawn.

        Raises
        ------
        CandidateNotFoundError
            If no sequence is possible for an example, because the model gives NaN or only zeros,
            or none is finished and `must_finish`.
        ValueError
            If an input is missing or unknown, or a number is out of range.
        """
        found = self._run("decode", input_values, eol_symbol, max_length, 0)
        unfinished = numpy.flatnonzero(~found.finished.any(axis=1))
        if must_finish and unfinished.size:
            raise CandidateNotFoundError(
                f"no sequence of at most {max_length} symbols ends with the symbol {eol_symbol} "
                f"for {_examples(unfinished)}. Let `max_length` be larger, loosen the rules for "
                "the end, or take unfinished ones by `must_finish=False`."
            )
        return found

    def _run(
        self,
        which: str,
        input_values: Mapping[Any, Any],
        eol_symbol: int,
        max_length: int,
        ignore_first_eol: int,
    ) -> Hypotheses:
        for name, number, least in (("eol_symbol", eol_symbol, 0), ("max_length", max_length, 1)):
            fits = is_integer(number) and number >= least
            check(fits, self, name, f"an integer from {least}", number)
        room = self.stepper.max_length
        if room is not None and max_length > room:
            raise ValueError(
                f"{type(self).__name__}: `max_length` must be at most {room}, the steps the "
                f"decoder has room for; got {max_length}. Make the decoder with a larger "
                "`max_length`."
            )
        values = self._arrange(input_values)
        settings = dict(zip(_SETTINGS, (eol_symbol, max_length, ignore_first_eol), strict=True))
        arrays = self._function(which)(*values, **settings)
        if eol_symbol >= arrays["num_symbols"]:
            raise ValueError(
                f"{type(self).__name__}: `eol_symbol` must be one of the {arrays['num_symbols']} "
                f"symbols that the model scores; got {eol_symbol}."
            )
        for problem, what in (("is_nan", "NaN"), ("is_impossible", "0 for each symbol")):
            examples = numpy.flatnonzero(arrays[problem])
            if examples.size:
                raise CandidateNotFoundError(
                    f"{type(self).__name__}: no sequence is possible for {_examples(examples)}: "
                    f"the model gives the probability {what}."
                )
        return cut(self._ranked(which, arrays), int(eol_symbol))

    def _arrange(self, given: Mapping[Any, Any]) -> list[Any]:
        """Put the values of the inputs into their order."""
        known = [*self.inputs, *getattr(self.stepper, "known_inputs", ())]
        names = [str(variable.name) for variable in known]
        for key in given:
            if key not in known and key not in names:
                raise ValueError(
                    f"{type(self).__name__}: {key} is no input.{nearest_name(str(key), names)}"
                )
        for variable in self.inputs:
            if variable not in given and variable.name not in given:
                raise ValueError(
                    f"{type(self).__name__}: no value is given for the input {variable}."
                )
        return [given[v] if v in given else given[v.name] for v in self.inputs]

    def _function(self, which: str) -> Any:
        """Return the program of a call, made when it is first asked for."""
        from bricks import xla

        if which not in self._compiled:
            width = None if which == "search" and self.columns_compete else self.num_hypotheses
            settings = {name: tensor.lscalar(name) for name in _SETTINGS}
            beams = Beams(self.stepper, width, are_copies=self.columns_compete)
            outputs, updates = self._graph(which, beams, settings)
            self._compiled[which] = xla.function(
                [*self.inputs, *settings.values()],
                outputs,
                updates=updates,
                on_unused_input="ignore",
                name=f"{type(self).__name__}.{which}",
            )
        return self._compiled[which]

    def _graph(self, which: str, beams: Beams, settings: State) -> tuple[State, Any]:
        """Build the loop in which hypotheses that are finished keep their places."""
        start = beams.start(settings["max_length"], settings["eol_symbol"])
        is_false = tensor.zeros_like(start["lengths"], dtype="bool")
        start |= {"finished": is_false, "is_nan": is_false.any(axis=1)}
        start["num_symbols"] = tensor.constant(0, dtype="int64")
        constants = {**beams.contexts, **{f" {name}": v for name, v in settings.items()}}

        def step(state: State, given: State) -> tuple[State, Any]:
            settings = {name: given[f" {name}"] for name in _SETTINGS}
            return self._step(beams, state, given, settings)

        final, updates = repeat_loop(step, start, constants, settings["max_length"])
        totals = final["totals"]
        wanted = ("outputs", "log_probs", "lengths", "totals", "finished", "num_symbols", "is_nan")
        arrays = {name: final[name] for name in wanted}
        arrays["scores"] = totals
        arrays["is_impossible"] = tensor.isinf(totals).all(axis=1)
        return arrays, updates

    def _step(
        self, beams: Beams, state: State, contexts: State, settings: State
    ) -> tuple[State, Any]:
        """Take a step; tell whether all hypotheses are finished then."""
        log_probs, pending = beams.score(state, contexts)
        number, finished = log_probs.shape[-1], state["finished"]
        # What a model gives for hypotheses that have ended, or are impossible, may be NaN.
        counts = tensor.and_(tensor.invert(finished), tensor.gt(state["totals"], minus_infinity()))
        is_idle = tensor.and_(tensor.isnan(log_probs), tensor.invert(counts)[:, :, None])
        log_probs = tensor.switch(is_idle, minus_infinity(), log_probs)
        is_nan = tensor.or_(state["is_nan"], tensor.isnan(log_probs).any(axis=(1, 2)))
        # A finished hypothesis can only be continued by its end, at no cost.
        of_finished = tensor.switch(is_symbol(settings["eol_symbol"], number), 0, minus_infinity())
        log_probs = tensor.switch(finished[:, :, None], of_finished, log_probs)
        parents, symbols = self._choose(log_probs, state)
        taken = log_probs[tensor.arange(parents.shape[0])[:, None], parents, symbols]
        was_finished = pick(finished, parents)
        ends = tensor.eq(symbols, settings["eol_symbol"])
        may_end = tensor.or_(
            tensor.gt(state["step"], 0), tensor.eq(settings["ignore_first_eol"], 0)
        )
        now_finished = tensor.or_(was_finished, tensor.and_(ends, may_end))
        following = {
            "step": state["step"] + 1,
            "totals": pick(state["totals"], parents) + taken,
            "lengths": pick(state["lengths"], parents) + tensor.invert(was_finished),
            "outputs": write(pick(state["outputs"], parents), state["step"], symbols),
            "log_probs": write(pick(state["log_probs"], parents), state["step"], taken),
            "finished": now_finished,
            "is_nan": is_nan,
            "num_symbols": number,
            **beams.advance(pending, parents, symbols, contexts),
        }
        return following, tensor.or_(now_finished.all(), is_nan.any())

    @abstractmethod
    def _choose(self, log_probs: Any, state: State) -> tuple[Any, Any]:
        """Choose which hypotheses of each example are continued, and by which symbols.

        Parameters
        ----------
        log_probs : Variable of shape (example, hypothesis, symbol)
        state : State
            What is carried.

        Returns
        -------
        parents, symbols : Variable of shape (example, hypothesis)
        """

    def _ranked(self, which: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Put the hypotheses of each example into the order in which they are returned."""
        return dict(arrays)


def check(holds: Any, search: Search, name: str, words: str, got: Any) -> None:
    """Refuse a setting.

    Parameters
    ----------
    holds : bool
        Whether the setting is as it must be.
    search : Search
        Whose setting it is.
    name : str
        Of the setting.
    words : str
        What it must be.
    got : object
        What it is.

    Raises
    ------
    ValueError
        If `holds` is not true.
    """
    if not holds:
        raise ValueError(f"{type(search).__name__}: `{name}` must be {words}; got {got!r}.")


def _examples(places: numpy.ndarray) -> str:
    shown = ", ".join(map(str, places[:5]))
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return f"example{'s' if len(places) > 1 else ''} {shown}{more}"


def rank(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Sort the hypotheses of each example, those that are finished and those of high score first.

    Parameters
    ----------
    arrays : mapping of str to array
        Of shape (example, hypothesis, ...), or without that axis.

    Returns
    -------
    dict of str to array
    """
    is_last = ~numpy.isfinite(arrays["scores"])
    order = numpy.lexsort((-arrays["scores"], ~arrays["finished"], is_last), axis=-1)
    rows = numpy.arange(len(order))[:, None]
    return {
        name: array[rows, order] if numpy.ndim(array) > 1 else array
        for name, array in arrays.items()
    }
