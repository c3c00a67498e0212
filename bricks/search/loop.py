"""The one loop of every search: score, choose, take the hypotheses that are continued, advance.

The hypotheses of all examples lie one behind the other in one batch, those of the first example
first. All that the loop carries is a dictionary of variables by name, :data:`State`; the states of
the model are among them, with :data:`OF_MODEL` before their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aesara
import numpy
from aesara import config, tensor
from aesara.scan.utils import until
from aesara.tensor.sort import topk_and_argtopk

from bricks.search.stepping import Stepper, Variables

__all__ = [
    "Beams",
    "State",
    "is_symbol",
    "minus_infinity",
    "pick",
    "repeat_loop",
    "top",
    "write",
]

State = dict[str, Any]
OF_MODEL = "model "


def minus_infinity() -> Any:
    """Return minus infinity in the dtype of scores.

    Returns
    -------
    numpy scalar
    """
    return numpy.asarray(-numpy.inf, config.floatX)


def is_symbol(symbol: Any, number: Any) -> Any:
    """Tell where in a row of all symbols one stands.

    Parameters
    ----------
    symbol : Variable of shape (...)
    number : int or Variable
        How many symbols there are.

    Returns
    -------
    Variable of shape (..., number)
    """
    return tensor.eq(tensor.arange(number), tensor.shape_padright(symbol))


def top(scores: Any, number: Any) -> tuple[Any, Any]:
    """Find the largest elements of the last axis.

    Parameters
    ----------
    scores : Variable of shape (..., candidate)
    number : int or Variable
        How many to find.

    Returns
    -------
    values, places : Variable of shape (..., number)
        Of equal elements, XLA takes the first.
    """
    return topk_and_argtopk(scores, number, axis=scores.ndim - 1, sorted=False)


def pick(values: Any, parents: Any) -> Any:
    """Take what belongs to some hypotheses of each example.

    Parameters
    ----------
    values : Variable of shape (example, hypothesis, ...)
    parents : Variable of shape (example, chosen)
        Which hypotheses.

    Returns
    -------
    Variable of shape (example, chosen, ...)
    """
    return values[tensor.arange(parents.shape[0])[:, None], parents]


def write(buffer: Any, step: Any, values: Any) -> Any:
    """Put values into a buffer at a step.

    Parameters
    ----------
    buffer : Variable of shape (example, hypothesis, time)
    step : Variable
        A scalar.
    values : Variable of shape (example, hypothesis)

    Returns
    -------
    Variable of shape (example, hypothesis, time)
    """
    is_now = is_symbol(step, buffer.shape[-1])
    return tensor.switch(is_now, tensor.shape_padright(values), buffer)


class Beams:
    """The hypotheses of a batch of examples, as many for each, and the model that continues them.

    Parameters
    ----------
    stepper : Stepper
        The model.
    num_hypotheses : int or None
        How many to keep for each example of the stepper's batch. None if the stepper's batch are
        the hypotheses of a single example already.
    are_copies : bool
        Whether hypotheses of one example compete, so that only the first one counts as long as they
        are the same.

    Attributes
    ----------
    contexts : dict of str to Variable
        For each hypothesis.
    """

    def __init__(
        self, stepper: Stepper, num_hypotheses: int | None, are_copies: bool = False
    ) -> None:
        self.stepper = stepper
        self._are_copies = are_copies
        contexts = stepper.contexts()
        states = stepper.initial_states(contexts)
        axes = {name: stepper.state_axis(name) for name in states}
        counted = next(name for name, axis in axes.items() if axis is not None)
        self._batch_size = states[counted].shape[axes[counted]]
        self._num_hypotheses = num_hypotheses
        copies = num_hypotheses or 1
        self.contexts = {
            name: _repeat(context, copies, stepper.context_axis(name))
            for name, context in contexts.items()
        }
        self._states = {name: _repeat(v, copies, axes[name]) for name, v in states.items()}

    def start(self, max_length: Any, eol_symbol: Any) -> State:
        """Give what is carried into the first step.

        Parameters
        ----------
        max_length : int or Variable
            How many symbols a hypothesis may have.
        eol_symbol : int or Variable
            What the buffer of symbols is filled with.

        Returns
        -------
        State
            The states of the model; ``step``, a scalar; ``totals`` and ``lengths`` of shape
            (example, hypothesis); ``outputs`` and ``log_probs`` of shape (example, hypothesis,
            time).
        """
        shape = (self._batch_size, self._num_hypotheses)
        if self._num_hypotheses is None:
            shape = (1, self._batch_size)
        totals = tensor.zeros(shape, config.floatX)
        if self._are_copies:
            is_copy = tensor.gt(tensor.arange(shape[1]), 0)
            totals = tensor.switch(is_copy, minus_infinity(), totals)
        eol_symbols = tensor.alloc(tensor.cast(eol_symbol, "int64"), *shape, max_length)
        return {
            "step": tensor.constant(0, dtype="int64"),
            "totals": totals,
            "lengths": tensor.zeros(shape, "int64"),
            "outputs": eol_symbols,
            "log_probs": tensor.zeros((*shape, max_length), config.floatX),
            **{OF_MODEL + name: value for name, value in self._states.items()},
        }

    def start_of(self, name: str) -> Any:
        """Give a state of the model before the first step.

        Parameters
        ----------
        name : str
            Of the state.

        Returns
        -------
        Variable
            For all hypotheses.
        """
        return self._states[name]

    def score(self, state: State, contexts: Variables) -> tuple[Any, State]:
        """Let the model score the next symbols.

        Parameters
        ----------
        state : State
            At the beginning of the step.
        contexts : mapping of str to Variable
            As they are called in the loop.

        Returns
        -------
        log_probs : Variable of shape (example, hypothesis, symbol)
        pending : dict of str to Variable
            For :meth:`advance`.
        """
        states = {n.removeprefix(OF_MODEL): v for n, v in state.items() if n.startswith(OF_MODEL)}
        log_probs, pending = self.stepper.score(states, self._own(contexts))
        shape = (*state["totals"].shape, log_probs.shape[-1])
        return log_probs.astype(config.floatX).reshape(shape, ndim=3), dict(pending)

    def advance(self, pending: Variables, parents: Any, symbols: Any, contexts: Variables) -> State:
        """Let the model take the symbols that were chosen.

        Parameters
        ----------
        pending : mapping of str to Variable
            What :meth:`score` gave.
        parents, symbols : Variable of shape (example, hypothesis)
            Which hypotheses of the same example are continued, and by what.
        contexts : mapping of str to Variable
            As they are called in the loop.

        Returns
        -------
        State
        """
        num_examples, width = parents.shape[0], parents.shape[1]
        places = (tensor.arange(num_examples)[:, None] * width + parents).flatten()
        taken = {}
        for name, value in pending.items():
            axis = self.stepper.state_axis(name)
            taken[name] = value if axis is None else tensor.take(value, places, axis=axis)
        following = self.stepper.advance(symbols.flatten(), taken, self._own(contexts))
        return {OF_MODEL + name: following[name] for name in self._states}

    def _own(self, contexts: Variables) -> Variables:
        return {name: contexts[name] for name in self.contexts}


def _repeat(variable: Any, copies: int, axis: int | None) -> Any:
    if copies == 1 or axis is None:
        return variable
    return tensor.repeat(variable, copies, axis=axis)


def repeat_loop(
    step: Callable[[State, State], tuple[State, Any]],
    start: State,
    constants: State,
    most: Any,
) -> tuple[State, Any]:
    """Repeat a step until it says that it was the last.

    Parameters
    ----------
    step : callable
        Takes what is carried and the constants, by name; returns what is carried next, by the same
        names, and a variable that tells whether to stop.
    start : State
        What is carried into the first step.
    constants : State
        What the step uses beside that and shared variables.
    most : int or Variable
        How many steps to take at most.

    Returns
    -------
    final : State
        What the last step gave.
    updates : mapping
        Of shared variables, such as random keys.
    """
    names, fixed = list(start), list(constants)

    def body(*args: Any) -> Any:
        carried = dict(zip(names, args, strict=False))
        given = dict(zip(fixed, args[len(names) :], strict=True))
        following, stops = step(carried, given)
        return [following[name] for name in names], until(stops)

    results, updates = aesara.scan(
        body,
        outputs_info=[tensor.unbroadcast(v, *range(v.ndim)) for v in start.values()],
        non_sequences=list(constants.values()),
        n_steps=most,
        return_list=True,
        name="search",
    )
    return {name: result[-1] for name, result in zip(names, results, strict=True)}, updates
