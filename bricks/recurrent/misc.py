"""Recurrent bricks made of others: in both directions, and one upon the other."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aesara import tensor

from bricks.aesara_expressions import lengths_of
from bricks.base import application
from bricks.checks import check_same_shape
from bricks.interfaces import Initializable
from bricks.parallel import Fork
from bricks.recurrent.base import BaseRecurrent, recurrent
from bricks.simple import Linear
from fuel_data.utils.names import nearest_name

__all__ = ["Bidirectional", "RECURRENTSTACK_SEPARATOR", "RecurrentStack"]

#: What stands before the level in the names of what upper levels of a stack take and return.
RECURRENTSTACK_SEPARATOR = "#"

#: What is the same for all levels of a stack.
_SHARED = ("mask",)


class Bidirectional(Initializable):
    """Two copies of a recurrent brick, of which one goes through the sequences backwards.

    Parameters
    ----------
    prototype : BaseRecurrent
        Copied for the children ``forward`` and ``backward``.
    **kwargs
        For `Initializable`.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.recurrent import SimpleRecurrent
    >>> both = Bidirectional(SimpleRecurrent(3))
    >>> both.get_dim("inputs"), both.get_dim("states")
    (3, 6)
    >>> both.apply(tensor.tensor3("x"), mask=tensor.matrix("mask"))
    bidirectional_apply_states
    """

    has_biases = False

    def __init__(self, prototype: Any, **kwargs: Any) -> None:
        self.prototype = prototype
        both = [copy.deepcopy(prototype) for _ in range(2)]
        for child, name in zip(both, ("forward", "backward"), strict=True):
            child.name = name
        kwargs["children"] = [*kwargs.get("children", ()), *both]
        super().__init__(**kwargs)
        self.forward, self.backward = both

    @application
    def apply(self, application: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """Apply both, and join what they return for the same elements along the last axis.

        Parameters
        ----------
        *args, **kwargs : Variable
            Sequences (of axes time, batch, ...), initial states for both, and contexts of the
            prototype.

        Returns
        -------
        list of Variable of shape (time, batch, 2 * dim)
            The outputs of the prototype, in the order of the sequences.
        """
        for name in ("iterate", "reverse", "return_initial_states"):
            if name in kwargs:
                raise TypeError(
                    f"{application.path}: unexpected argument {name!r}. Both directions go "
                    "through whole sequences; apply `forward` and `backward` for anything else."
                )
        forward = self.forward.apply(*args, as_list=True, **kwargs)
        backward = self.backward.apply(*args, reverse=True, as_list=True, **kwargs)
        return [
            tensor.concatenate([one, other[::-1]], axis=2)
            for one, other in zip(forward, backward, strict=True)
        ]

    @apply.delegate
    def apply_delegate(self) -> Any:
        """Give the application that tells what is taken and returned.

        Returns
        -------
        BoundApplication
            Of the child ``forward``.
        """
        return self.forward.apply

    def get_dim(self, name: str) -> Any:
        """Features of an input, and twice those of an output of a child; see `Brick.get_dim`."""
        dim = self.forward.get_dim(name)
        return 2 * dim if name in self.apply.outputs else dim


class RecurrentStack(BaseRecurrent, Initializable):
    """Recurrent bricks one upon the other, each fed by the states of the one below.

    The names of what the lowest brick takes and returns are its own; those of the others get a
    suffix with their level: ``states``, ``states#1``, ``states#2``. Masks and contexts are shared
    by all levels, so they have no suffix.

    Parameters
    ----------
    transitions : list of BaseRecurrent
        From the lowest to the highest. Their names get their level behind them: ``lstm#0``.
    fork_prototype : Feedforward, optional
        Copied for what each level's sequences (but the mask) get from the states below; a `Linear`
        by default, with biases unless there are skip connections.
    states_name : str
        Which output of a level feeds the next one.
    skip_connections : bool
        Whether each level takes sequences of its own too, to which what comes from below is added.
        A `Fork` with the output names ``stack.apply.sequences`` (but the mask) makes them all.
    **kwargs
        For `Initializable`.

    References
    ----------
    A. Graves, *Generating Sequences With Recurrent Neural Networks*, 2013, arXiv:1308.0850.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.recurrent import LSTM, SimpleRecurrent
    >>> stack = RecurrentStack([SimpleRecurrent(3), LSTM(2)], skip_connections=True)
    >>> stack.apply.sequences, stack.apply.states
    (['inputs', 'mask', 'inputs#1'], ['states', 'states#1', 'cells#1'])
    >>> stack.get_dims(["inputs", "inputs#1", "cells#1"])
    [3, 8, 2]
    >>> stack.apply(tensor.tensor3("x"))
    [recurrentstack_apply_states, recurrentstack_apply_states#1, recurrentstack_apply_cells#1]
    """

    def __init__(
        self,
        transitions: Sequence[Any],
        fork_prototype: Any = None,
        states_name: str = "states",
        skip_connections: bool = False,
        **kwargs: Any,
    ) -> None:
        self.transitions = list(transitions)
        if not self.transitions:
            raise ValueError(f"{type(self).__name__}: `transitions` must not be empty.")
        for level, transition in enumerate(self.transitions):
            transition.name += f"{RECURRENTSTACK_SEPARATOR}{level}"
        self.states_name = states_name
        self.skip_connections = skip_connections
        prototype = fork_prototype or Linear(use_bias=not skip_connections)
        self.forks = [
            Fork(self._fed(level), name=f"fork_{level}", prototype=prototype)
            for level in range(1, len(self.transitions))
        ]
        kwargs["children"] = [*kwargs.get("children", ()), *self.transitions, *self.forks]
        super().__init__(**kwargs)
        self._check_names()

    def _check_names(self) -> None:
        for level, transition in enumerate(self.transitions[:-1]):
            if self.states_name not in transition.apply.outputs:
                raise ValueError(
                    f"{self.path}: `states_name` must be an output of each level; "
                    f"{self.states_name!r} is none of level {level}, which has "
                    f"{', '.join(transition.apply.outputs)}."
                )
        for level, transition in enumerate(self.transitions[1:], 1):
            if not self._fed(level):
                raise ValueError(
                    f"{self.path}: {transition.name} takes no sequence beside "
                    f"{' and '.join(_SHARED)}, so the level below cannot feed it."
                )
        names = [*self._names("states"), *self._names("sequences")]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"{self.path}: {', '.join(twice)} would be the name of two things. Rename what "
                f"ends in {RECURRENTSTACK_SEPARATOR} and a number in the lower levels."
            )

    def _fed(self, level: int) -> list[str]:
        """Return the sequences of a level that the level below feeds."""
        return [n for n in self.transitions[level].apply.sequences if n not in _SHARED]

    def _names(self, kind: str) -> list[str]:
        """Return the names of all levels' sequences, states, outputs or contexts."""
        found: list[str] = []
        for level, transition in enumerate(self.transitions):
            for own in getattr(transition.apply, kind):
                is_fed = kind == "sequences" and level and not self.skip_connections
                if is_fed and own not in _SHARED:
                    continue
                name = self._with_level(kind, own, level)
                is_shared = kind == "contexts" or own in _SHARED
                if not (is_shared and name in found):
                    found.append(name)
        return found

    def _with_level(self, kind: str, name: str, level: int) -> str:
        """Return the name that the stack gives to what a level calls by another."""
        if not level or kind == "contexts" or name in _SHARED:
            return name
        return f"{name}{RECURRENTSTACK_SEPARATOR}{level}"

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        for level, fork in enumerate(self.forks, 1):
            fork.input_dim = self.transitions[level - 1].get_dim(self.states_name)
            fork.output_dims = self.transitions[level].get_dims(fork.output_names)

    def get_dim(self, name: str) -> Any:
        """Features of what a level takes or returns, by the stack's name; see `Brick.get_dim`."""
        for level, transition in enumerate(self.transitions):
            for kind in ("sequences", "states", "outputs", "contexts"):
                for own in getattr(transition.apply, kind):
                    if self._with_level(kind, own, level) == name:
                        return transition.get_dim(own)
        return super().get_dim(name)

    def _arguments(self, level: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a level is given of the arguments of the stack, by its own names."""
        apply = self.transitions[level].apply
        arguments = {}
        for kind in ("sequences", "states", "contexts"):
            for own in getattr(apply, kind):
                name = self._with_level(kind, own, level)
                if given.get(name) is not None:
                    arguments[own] = given[name]
        return arguments

    def _feed(self, level: int, below: Any, arguments: dict[str, Any]) -> None:
        """Add to a level's sequences what comes from the states of the level below."""
        fork = self.forks[level - 1]
        for name, value in fork.apply(below, as_dict=True).items():
            if name in arguments:
                own = self._with_level("sequences", name, level)
                both = {own: arguments[name], "what comes from below": value}
                check_same_shape(self.apply.path, **both)
                value = value + arguments[name]
            arguments[name] = value

    @recurrent
    def do_apply(self, **kwargs: Any) -> list[Any]:
        """Take one step of all levels, or repeat that in one loop; see `recurrent`.

        Parameters
        ----------
        **kwargs : Variable
            By the names of the stack.

        Returns
        -------
        list of Variable
            The outputs of all levels.
        """
        outputs: list[Any] = []
        below: Any = None
        for level, transition in enumerate(self.transitions):
            arguments = self._arguments(level, kwargs)
            if level:
                self._feed(level, below, arguments)
            own = transition.apply(iterate=False, as_dict=True, **arguments)
            outputs += own.values()
            below = own.get(self.states_name)
        return outputs

    @do_apply.property("sequences")
    def do_apply_sequences(self) -> list[str]:
        """Give the names of the sequences.

        Returns
        -------
        list of str
            Those of the lowest level; with skip connections of all.
        """
        return self._names("sequences")

    @do_apply.property("states")
    def do_apply_states(self) -> list[str]:
        """Give the names of the states.

        Returns
        -------
        list of str
            Those of all levels.
        """
        return self._names("states")

    @do_apply.property("outputs")
    def do_apply_outputs(self) -> list[str]:
        """Give the names of the outputs.

        Returns
        -------
        list of str
            Those of all levels.
        """
        return self._names("outputs")

    @do_apply.property("contexts")
    def do_apply_contexts(self) -> list[str]:
        """Give the names of the contexts.

        Returns
        -------
        list of str
            Those of all levels, each once.
        """
        return self._names("contexts")

    @application
    def apply(
        self,
        application: Any,
        *args: Any,
        low_memory: bool = False,
        iterate: bool = True,
        reverse: bool = False,
        return_initial_states: bool = False,
        scan_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Apply all levels, by a loop for each.

        Parameters
        ----------
        *args, **kwargs : Variable
            Sequences, initial states and contexts, by the names of the stack; by position in the
            order of ``apply.sequences``. Also ``n_steps`` and ``batch_size``.
        low_memory : bool
            Whether to do all in one loop, which remembers less and takes longer.
        iterate, reverse, return_initial_states : bool
            As in `recurrent`.
        scan_kwargs : mapping of str to object, optional
            As in `recurrent`, for each of the loops.

        Returns
        -------
        list of Variable of shape (time, batch, dim)
            The outputs of all levels.
        """
        given = {**dict(zip(application.sequences, args, strict=False)), **kwargs}
        given = {name: value for name, value in given.items() if value is not None}
        self._check_known(application, args, given)
        options: dict[str, Any] = {"return_initial_states": return_initial_states}
        if scan_kwargs is not None:
            options["scan_kwargs"] = scan_kwargs
        if low_memory or not iterate:
            return self.do_apply(iterate=iterate, reverse=reverse, as_list=True, **options, **given)
        if reverse:
            for name in application.sequences:
                if name in given:
                    given[name] = given[name][::-1]
        return self._apply_by_level(given, options)

    @apply.delegate
    def apply_delegate(self) -> Any:
        """Give the application that tells what is taken and returned.

        Returns
        -------
        BoundApplication
            ``do_apply``.
        """
        return self.do_apply

    def _check_known(self, bound: Any, args: Sequence[Any], given: Mapping[str, Any]) -> None:
        """Refuse arguments of other names, and more of them by position than there are."""
        known = [*bound.sequences, *bound.states, *bound.contexts, "n_steps", "batch_size"]
        for name in given:
            if name not in known:
                raise TypeError(
                    f"{bound.path}: unexpected argument {name!r}.{nearest_name(name, known)}"
                )
        if len(args) > len(bound.sequences):
            raise TypeError(
                f"{bound.path}: only sequences can be given by position: "
                f"{', '.join(bound.sequences)}. Give states and contexts by name."
            )

    def _apply_by_level(self, given: dict[str, Any], options: dict[str, Any]) -> list[Any]:
        """Apply each level to whole sequences."""
        sizes: dict[str, Any] = {
            name: given[name] for name in ("n_steps", "batch_size") if name in given
        }
        outputs: list[Any] = []
        below: Any = None
        for level, transition in enumerate(self.transitions):
            arguments = self._arguments(level, given)
            if level:
                self._feed(level, below, arguments)
            else:
                sizes = {**_sizes(map(arguments.get, transition.apply.sequences)), **sizes}
            own = transition.apply(as_dict=True, **options, **sizes, **arguments)
            outputs += own.values()
            below = own.get(self.states_name)
            if options["return_initial_states"] and self.states_name in transition.apply.states:
                below = below[1:]
        return outputs

    @application
    def initial_states(self, batch_size: Any, **kwargs: Any) -> list[Any]:
        """Return the initial states of all levels; see `BaseRecurrent.initial_states`."""
        found: list[Any] = []
        for level, transition in enumerate(self.transitions):
            arguments = self._arguments(level, kwargs)
            found += transition.initial_states(batch_size, as_list=True, **arguments)
        return found

    @initial_states.property("outputs")
    def initial_states_outputs(self) -> list[str]:
        """Give the names of the states.

        Returns
        -------
        list of str
            Those of all levels.
        """
        return self.apply.states


def _sizes(sequences: Iterable[Any]) -> dict[str, Any]:
    """Return the number of steps and examples of the first sequence that tells both.

    Upper levels could tell them too, but only from all that is below.
    """
    for sequence in sequences:
        if sequence is not None and sequence.ndim > 1:
            return dict(zip(("n_steps", "batch_size"), lengths_of(sequence), strict=False))
    return {}
