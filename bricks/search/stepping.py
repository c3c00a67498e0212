"""What can be searched: a model that scores the next symbol and then takes the one that was chosen.

A search keeps several *hypotheses*, sequences of symbols that are not finished yet, for each
example. All that the model remembers of a hypothesis are its *states*, arrays one of whose axes is
the batch of hypotheses; what is the same at each step are *contexts*. A step has two halves,
between which the search chooses: `Stepper.score` gives the logarithms of the probabilities of all
symbols, and `Stepper.advance` takes the symbols. States in between may be others than those at the
beginning of a step, such as a glimpse that was taken or a cache that has grown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, cast

from aesara import tensor
from aesara.graph.basic import Variable
from aesara.tensor.basic import tensor_copy

from bricks.annotations import get_annotations
from bricks.applications import ApplicationCall
from bricks.graph import ComputationGraph
from bricks.initialization import NdarrayInitialization
from bricks.sequence_generators import BaseSequenceGenerator
from bricks.sequence_generators.generators import GIVEN
from bricks.simple import Softmax

__all__ = ["GeneratorStepper", "Stepper", "TransformerStepper", "Variables"]

#: Variables by name.
Variables = Mapping[str, Any]


class Stepper(ABC):
    """The base class of models that can be searched.

    Attributes
    ----------
    inputs : list of Variable
        What has to be given, such as the batch of source sequences.
    attention_name : str or None
        Name of the state that holds, after :meth:`score`, how much of each source position this
        step attends to, of shape (batch, source); None if there is none. For a coverage penalty
        it has to be among the initial states, where only its shape matters.
    attention_mask_name : str or None
        Name of the context of shape (source, batch) that is 0 where the source is padding.
    max_length : int or None
        How many steps there is room for; None if there is no such bound.

    Examples
    --------
    A model without states, which likes the symbol that it was just given:

    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks.search import BeamSearch, Stepper
    >>> class Echo(Stepper):
    ...     def __init__(self):
    ...         self.start = tensor.lvector("start")
    ...         self.inputs = [self.start]
    ...     def contexts(self):
    ...         return {}
    ...     def initial_states(self, contexts):
    ...         return {"last": self.start}
    ...     def score(self, states, contexts):
    ...         liked = tensor.eq(tensor.arange(3), states["last"][:, None])
    ...         return tensor.log(tensor.switch(liked, 0.5, 0.25)).astype("float32"), states
    ...     def advance(self, symbols, states, contexts):
    ...         return {"last": symbols}
    >>> echo = Echo()
    >>> found = BeamSearch(echo, beam_size=2).decode({echo.start: [1, 2]}, 0, max_length=3)
    >>> [one.tolist() for one in found.best()]
    [[0], [0]]
    """

    inputs: list[Variable]
    attention_name: str | None = None
    attention_mask_name: str | None = None
    max_length: int | None = None

    @abstractmethod
    def contexts(self) -> Variables:
        """Give what is the same at each step.

        Returns
        -------
        mapping of str to Variable
            For one hypothesis of each example.
        """

    @abstractmethod
    def initial_states(self, contexts: Variables) -> Variables:
        """Give the states before the first symbol.

        Parameters
        ----------
        contexts : mapping of str to Variable
            Those of :meth:`contexts`.

        Returns
        -------
        mapping of str to Variable
            For one hypothesis of each example.
        """

    @abstractmethod
    def score(self, states: Variables, contexts: Variables) -> tuple[Any, Variables]:
        """Score the next symbol of each hypothesis.

        Parameters
        ----------
        states : mapping of str to Variable
            At the beginning of the step.
        contexts : mapping of str to Variable
            For each hypothesis.

        Returns
        -------
        log_probs : Variable of shape (batch, symbol)
            Logarithms of the probabilities of the symbols.
        states : mapping of str to Variable
            What :meth:`advance` needs.
        """

    @abstractmethod
    def advance(self, symbols: Any, states: Variables, contexts: Variables) -> Variables:
        """Take the symbols that were chosen.

        Parameters
        ----------
        symbols : Variable of shape (batch,)
            One for each hypothesis, of dtype ``int64``.
        states : mapping of str to Variable
            Those that :meth:`score` gave, of the hypotheses that are continued.
        contexts : mapping of str to Variable
            For each hypothesis.

        Returns
        -------
        mapping of str to Variable
            The states at the beginning of the next step, by the names and of the types of
            :meth:`initial_states`.
        """

    def context_axis(self, name: str) -> int | None:
        """Say which axis of a context is the batch.

        Parameters
        ----------
        name : str
            Of a context.

        Returns
        -------
        int or None
            The axis, 0 by default; None if the context is the same for all examples.
        """
        return 0

    def state_axis(self, name: str) -> int | None:
        """Say which axis of a state is the batch.

        Parameters
        ----------
        name : str
            Of a state, at the beginning of a step or between its halves.

        Returns
        -------
        int or None
            The axis, 0 by default; None if the state is the same for all hypotheses, as their
            length is.
        """
        return 0


class GeneratorStepper(Stepper):
    """A sequence generator, one step at a time.

    Parameters
    ----------
    samples : Variable
        The ``outputs`` of a call of ``generate`` of a `BaseSequenceGenerator`: contexts, initial
        states and the size of the batch are those of the call.
    context_axes : mapping of str to int, optional
        The axis of the batch, of contexts of which it is not the usual one: 1 for what is attended
        and its mask, 0 for others.

    Attributes
    ----------
    generator : BaseSequenceGenerator
        The generator.
    known_inputs : list of Variable
        All inputs of the samples, also those that a search has no use for.

    Raises
    ------
    ValueError
        If `samples` are not such outputs, or the call was given a scheme for an initial state.
    """

    def __init__(self, samples: Any, context_axes: Mapping[str, int] | None = None) -> None:
        call = _call_of(samples)
        self.generator = cast(Any, call.application.brick)
        given = {
            name.removeprefix(GIVEN): value
            for name, value in call.metadata.items()
            if name.startswith(GIVEN) and value is not None
        }
        self._contexts = {n: given[n] for n in self.generator.context_names if n in given}
        self._given_states = {n: given[n] for n in self.generator.generate.states if n in given}
        for name, value in self._given_states.items():
            is_function = callable(value) and not isinstance(value, Variable)
            if is_function or isinstance(value, NdarrayInitialization):
                raise ValueError(
                    f"{call.application.path}: `{name}` must be a variable of shape (batch, "
                    f"{self.generator.get_dim(name)}) for a search, which draws no initial states; "
                    f"got {value!r}. Give one, or override `initial_states` of the transition."
                )
        self._batch_size = given.get("batch_size", 1)
        self._context_axes = dict(context_axes or {})
        used = [*self._contexts.values(), *self._given_states.values(), self._batch_size]
        self.inputs = ComputationGraph([v for v in used if isinstance(v, Variable)]).inputs
        self.known_inputs = ComputationGraph(samples).inputs
        self._of_attention = [
            getattr(self.generator.transition, name, None)
            for name in ("attended_name", "attended_mask_name")
        ]
        if "weights" in self.generator.glimpse_names:
            self.attention_name, self.attention_mask_name = "weights", self._of_attention[1]

    def contexts(self) -> Variables:
        """Give the contexts of the call."""
        return self._contexts

    def initial_states(self, contexts: Variables) -> Variables:
        """Give the initial states of the generator, and those that the call was given."""
        initial = self.generator.initial_states(self._batch_size, as_dict=True, **self._contexts)
        return {**initial, **self._given_states}

    def score(self, states: Variables, contexts: Variables) -> tuple[Any, Variables]:
        """Take glimpses, read out and compute the probabilities of all outputs."""
        readouts, glimpses = self.generator.read_out({**states, **contexts})
        return self.generator.readout.log_probs(readouts), {**states, **glimpses}

    def advance(self, symbols: Any, states: Variables, contexts: Variables) -> Variables:
        """Compute the states after outputs."""
        following = self.generator.next_states(symbols, {**states, **contexts})
        return {**states, **following, "outputs": symbols}

    def context_axis(self, name: str) -> int | None:
        """Say which axis of a context is the batch; see `Stepper.context_axis`."""
        return self._context_axes.get(name, 1 if name in self._of_attention else 0)


class TransformerStepper(Stepper):
    """A Transformer decoder, one step at a time: its keys and values so far are among the states.

    Parameters
    ----------
    decoder : TransformerDecoder
        The decoder. How many steps there is room for is its `max_length`.
    embed : callable
        Makes inputs of shape (batch, dim) of symbols of shape (batch,), as `apply` of a
        `LookupTable` does.
    read_out : callable
        Makes unnormalized logarithms of probabilities, of shape (batch, symbol), of outputs of
        shape (batch, dim), as `apply` of a `Linear` or of a `TiedProjection` does.
    first : Variable of shape (batch,)
        The symbols before the first ones, integers.
    attended : Variable of shape (attended time, batch, feature), optional
        What is attended; only if the decoder attends.
    attended_mask : Variable of shape (attended time, batch), optional
        0 for padding.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import Linear, LookupTable
    >>> from bricks.search import BeamSearch, TransformerStepper
    >>> from bricks.transformer import DecoderBlock, SinusoidalPositions, TransformerDecoder
    >>> table, projection = LookupTable(30, 16), Linear(16, 30)
    >>> decoder = TransformerDecoder(
    ...     2, DecoderBlock(num_heads=4), dim=16, positions=SinusoidalPositions(), max_length=50)
    >>> encoded = tensor.tensor3("encoded")                    # axes: time, batch, feature
    >>> start = tensor.zeros((encoded.shape[1],), "int64")
    >>> stepper = TransformerStepper(decoder, table.apply, projection.apply, start, encoded)
    >>> BeamSearch(stepper, beam_size=4).inputs
    [encoded]
    """

    def __init__(
        self,
        decoder: Any,
        embed: Callable[[Any], Any],
        read_out: Callable[[Any], Any],
        first: Any,
        attended: Any = None,
        attended_mask: Any = None,
    ) -> None:
        self.decoder, self._embed, self._read_out = decoder, embed, read_out
        self._first, self._attended, self._attended_mask = first, attended, attended_mask
        given = [v for v in (first, attended, attended_mask) if v is not None]
        self.inputs = ComputationGraph(given).inputs
        self.max_length = decoder.max_length

    def contexts(self) -> Variables:
        """Give the keys and values of what is attended, and its mask."""
        if self._attended is None:
            return {}
        contexts = dict(self.decoder.preprocess(self._attended, as_dict=True))
        if self._attended_mask is not None:
            contexts["attended_mask"] = self._attended_mask
        return contexts

    def context_axis(self, name: str) -> int | None:
        """Say which axis of a context is the batch: the second."""
        return 1

    def initial_states(self, contexts: Variables) -> Variables:
        """Give the states of the decoder, and the symbols before the first ones."""
        states = self.decoder.initial_states(self._first.shape[0], as_dict=True)
        return {**states, "symbols": tensor.cast(self._first, "int64")}

    def score(self, states: Variables, contexts: Variables) -> tuple[Any, Variables]:
        """Decode one more step."""
        own = {name: states[name] for name in self.decoder.step.states}
        input_ = self._embed(states["symbols"])
        following = dict(self.decoder.step(input_, **own, **contexts, as_dict=True))
        scores = self._read_out(following.pop("output"))
        return Softmax().log_probabilities(scores), following

    def advance(self, symbols: Any, states: Variables, contexts: Variables) -> Variables:
        """Keep the symbols, which are the inputs of the next step."""
        return {**states, "symbols": symbols}


def _call_of(samples: Any) -> ApplicationCall:
    """Return the call of `generate` whose outputs the samples are."""
    variable = samples
    while isinstance(variable, Variable):
        for call in get_annotations(variable):
            if isinstance(call, ApplicationCall) and _generates(call, variable):
                return call
        # An application of another brick, which hands the samples on, gives a copy of them.
        is_copy = variable.owner is not None and variable.owner.op == tensor_copy
        variable = variable.owner.inputs[0] if is_copy else None
    raise ValueError(
        f"a search needs the `outputs` of a call of `generate` of a sequence generator, or a "
        f"Stepper; got {samples!r}. They are among what `generate` returns, "
        "`generate(…, as_dict=True)['outputs']`, and are found in a graph by "
        "`VariableFilter(applications=[generator.generate], name='outputs')`."
    )


def _generates(call: ApplicationCall, variable: Variable) -> bool:
    brick = cast(Any, call.application.brick)
    if not isinstance(brick, BaseSequenceGenerator) or variable.tag.name != "outputs":
        return False
    return call.application == brick.generate
