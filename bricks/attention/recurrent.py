"""Recurrent bricks that attend a sequence at each of their steps."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.attention.base import AbstractAttention
from bricks.base import application
from bricks.interfaces import Initializable
from bricks.parallel import Distribute
from bricks.recurrent import BaseRecurrent, recurrent
from bricks.utils import dict_subset, pack
from fuel_data.utils.names import nearest_name

__all__ = ["AbstractAttentionRecurrent", "AttentionRecurrent"]


class AbstractAttentionRecurrent(BaseRecurrent):
    """The base class of recurrent bricks with attention, as sequence generators need them.

    A step has two halves, which a generator calls one by one, since what it emits depends on the
    glimpses, and what goes into the states on what was emitted.
    """

    @abstractmethod
    @application
    def apply(self, **kwargs: Variable) -> Any:
        """Take glimpses and compute states, for each element of sequences.

        Parameters
        ----------
        **kwargs : Variable
            Sequences, initial states and contexts.

        Returns
        -------
        list of Variable
            The states and glimpses over time.
        """

    @abstractmethod
    @application
    def take_glimpses(self, **kwargs: Variable) -> Any:
        """Look at what is attended, given the states of the step before.

        Parameters
        ----------
        **kwargs : Variable
            States, glimpses and contexts.

        Returns
        -------
        list of Variable
            The glimpses.
        """

    @abstractmethod
    @application
    def compute_states(self, **kwargs: Variable) -> Any:
        """Compute the next states, given the glimpses of this step.

        Parameters
        ----------
        **kwargs : Variable
            Elements of sequences, states, glimpses and contexts.

        Returns
        -------
        list of Variable
            The states.
        """


class AttentionRecurrent(AbstractAttentionRecurrent, Initializable):
    """A recurrent brick, the transition, into whose inputs glimpses of an attention are added.

    Glimpses become states beside those of the transition. What is attended, and its mask, are
    contexts; a third one, ``preprocessed_<attended>``, is computed once by `apply`, and has to be
    given to `do_apply` and to `take_glimpses`, which computes it where it is missing.

    Parameters
    ----------
    transition : BaseRecurrent
        The recurrent brick.
    attention : AbstractAttention
        The attention. Its sizes are pushed to it, and the names of the states that it looks at
        unless it has them.
    distribute : Brick, optional
        Adds the first glimpse to the sequences of the transition; a `Distribute` to all that are
        no masks by default.
    add_contexts : bool
        Whether what is attended and its mask are contexts of this brick only, not of the
        transition. Without, they are the first two contexts of the transition.
    attended_name : str, optional
        Name of the context that is attended; ``'attended'`` by default.
    attended_mask_name : str, optional
        Name of its mask; ``'attended_mask'`` by default.
    **kwargs
        For `Initializable`.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.attention import SequenceContentAttention
    >>> from bricks.recurrent import SimpleRecurrent
    >>> transition = SimpleRecurrent(dim=3)
    >>> attention = SequenceContentAttention(
    ...     state_names=transition.apply.states, attended_dim=4, match_dim=5)
    >>> recurrent = AttentionRecurrent(transition, attention)
    >>> recurrent.apply.states
    ['states', 'weighted_averages', 'weights']
    >>> x, attended = tensor.tensor3("x"), tensor.tensor3("attended")   # axes: time, batch, feature
    >>> states, averages, weights = recurrent.apply(inputs=x, attended=attended)
    """

    def __init__(
        self,
        transition: BaseRecurrent,
        attention: AbstractAttention,
        distribute: Any = None,
        add_contexts: bool = True,
        attended_name: str | None = None,
        attended_mask_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._sequence_names = list(transition.apply.sequences)
        self._state_names = list(transition.apply.states)
        self._context_names = list(transition.apply.contexts)
        self._glimpse_names = list(attention.take_glimpses.outputs)
        if add_contexts:
            attended_name = attended_name or "attended"
            attended_mask_name = attended_mask_name or "attended_mask"
            self._context_names += [attended_name, attended_mask_name]
        else:
            names = [*self._context_names, None, None]
            attended_name = attended_name or names[0]
            attended_mask_name = attended_mask_name or names[1]
        if attended_name not in self._context_names:
            raise ValueError(
                f"{type(self).__name__}: with add_contexts=False, what is attended must be a "
                f"context of {transition.path}, which has "
                f"{self._context_names or 'none'}; got attended_name={attended_name!r}."
            )
        if not attention.state_names:
            attention.state_names = self._state_names
        self._input_names = [name for name in self._sequence_names if "mask" not in name]
        self._mask_names = [name for name in self._sequence_names if "mask" in name]
        self.distribute = distribute or Distribute(self._input_names, self._glimpse_names[0])
        self.transition = transition
        self.attention = attention
        self.add_contexts = add_contexts
        self.attended_name = attended_name
        self.attended_mask_name = attended_mask_name
        self.preprocessed_attended_name = f"preprocessed_{attended_name}"
        #: Glimpses that the attention asks for again in the next step.
        self.previous_glimpses_needed = [
            name for name in self._glimpse_names if name in attention.take_glimpses.inputs
        ]
        children = [*kwargs.pop("children", ()), transition, attention, self.distribute]
        super().__init__(children=children, **kwargs)

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        self.attention.state_dims = self.transition.get_dims(self.attention.state_names)
        if not self.add_contexts:
            self.attention.attended_dim = self.transition.get_dim(self.attended_name)
        self.distribute.source_dim = self.attention.get_dim(self.distribute.source_name)
        self.distribute.target_dims = self.transition.get_dims(self.distribute.target_names)

    @application
    def take_glimpses(self, application: Any, **kwargs: Any) -> Any:
        """Look at what is attended, given the states of the step before.

        Parameters
        ----------
        **kwargs : Variable
            The states, glimpses of the step before, and contexts by name. The preprocessed
            context is computed if it is not given; contexts of the transition are not looked at.

        Returns
        -------
        list of Variable
            The glimpses.
        """
        self._check_names(application.path, kwargs, self._state_names + self._glimpse_names)
        looked_at = [*self.attention.state_names, *self.previous_glimpses_needed]
        missing = [n for n in [self.attended_name, *looked_at] if kwargs.get(n) is None]
        if missing:
            raise TypeError(f"{application.path}: missing {', '.join(missing)}.")
        return self.attention.take_glimpses(
            kwargs[self.attended_name],
            kwargs.get(self.preprocessed_attended_name),
            kwargs.get(self.attended_mask_name),
            as_list=True,
            **dict_subset(kwargs, looked_at),
        )

    @take_glimpses.property("outputs")
    def take_glimpses_outputs(self) -> list[str]:
        """Give the names of the glimpses.

        Returns
        -------
        list of str
            Those of the attention.
        """
        return self._glimpse_names

    @application
    def compute_states(self, application: Any, **kwargs: Any) -> Any:
        """Compute the next states of the transition, given the glimpses of this step.

        Parameters
        ----------
        **kwargs : Variable
            Elements of sequences, states, glimpses and contexts by name.

        Returns
        -------
        list of Variable
            The states.
        """
        names = self._sequence_names + self._state_names + self._glimpse_names
        self._check_names(application.path, kwargs, names)
        needed = self.distribute.apply.inputs
        missing = [name for name in needed if kwargs.get(name) is None]
        if missing:
            raise TypeError(f"{application.path}: missing {', '.join(missing)}.")
        given = {**kwargs, **self.distribute.apply(as_dict=True, **dict_subset(kwargs, needed))}
        own = [*self._sequence_names, *self._state_names, *self.transition.apply.contexts]
        states = self.transition.apply(
            iterate=False, as_dict=True, **dict_subset(given, own, must_have=False)
        )
        return [states[name] for name in self._state_names]

    @compute_states.property("outputs")
    def compute_states_outputs(self) -> list[str]:
        """Give the names of the states of the transition.

        Returns
        -------
        list of str
            Those of the transition.
        """
        return self._state_names

    @recurrent
    def do_apply(self, **kwargs: Any) -> Any:
        """Take glimpses and compute states, given the preprocessed context too.

        Parameters
        ----------
        **kwargs : Variable
            For one step: elements of sequences, states, glimpses of the step before and contexts
            by name; see `bricks.recurrent.recurrent`.

        Returns
        -------
        list of Variable
            The states and glimpses. Where a mask of the transition is 0 both stay as they are.
        """
        before = {name: kwargs.pop(name) for name in self._glimpse_names}
        contexts = dict_subset(kwargs, self.do_apply.contexts, must_have=False)
        states = dict_subset(kwargs, self._state_names)
        glimpses = self.take_glimpses(as_dict=True, **states, **before, **contexts)
        kwargs.pop(self.preprocessed_attended_name, None)
        new_states = self.compute_states(as_list=True, **kwargs, **glimpses)
        masks = [kwargs[name] for name in self._mask_names if kwargs.get(name) is not None]
        if masks:
            glimpses = {
                name: _where_masked(masks[0], glimpse, before[name])
                for name, glimpse in glimpses.items()
            }
        return [*new_states, *glimpses.values()]

    @do_apply.property("sequences")
    def do_apply_sequences(self) -> list[str]:
        """Give the names of the sequences.

        Returns
        -------
        list of str
            Those of the transition.
        """
        return self._sequence_names

    @do_apply.property("contexts")
    def do_apply_contexts(self) -> list[str]:
        """Give the names of the contexts, with the preprocessed one.

        Returns
        -------
        list of str
            Those of the transition, and those that are attended.
        """
        return [*self._context_names, self.preprocessed_attended_name]

    @do_apply.property("states")
    def do_apply_states(self) -> list[str]:
        """Give the names of the states, with the glimpses.

        Returns
        -------
        list of str
            Those of the transition, then the glimpses.
        """
        return self._state_names + self._glimpse_names

    @do_apply.property("outputs")
    def do_apply_outputs(self) -> list[str]:
        """Give the names of the outputs, which are the states.

        Returns
        -------
        list of str
            Those of the transition, then the glimpses.
        """
        return self._state_names + self._glimpse_names

    @application
    def apply(self, application: Any, **kwargs: Any) -> Any:
        """Take glimpses and compute states, for each element of sequences.

        Parameters
        ----------
        **kwargs : Variable
            Sequences of axes (time, batch, …), their mask, initial states, the context that is
            attended of axes (attended time, batch, feature) and its mask (attended time, batch),
            by name, and the options of `bricks.recurrent.recurrent`.

        Returns
        -------
        list of Variable
            The states and glimpses over time. Where the mask is 0 both stay as they are.
        """
        if kwargs.get(self.attended_name) is None:
            raise TypeError(f"{application.path}: missing {self.attended_name}.")
        preprocessed = self.attention.preprocess(kwargs[self.attended_name])
        return self.do_apply(**{self.preprocessed_attended_name: preprocessed}, **kwargs)

    @apply.delegate
    def apply_delegate(self) -> Any:
        """Give the application to ask for sequences, states and outputs.

        Returns
        -------
        BoundApplication
            `do_apply`.
        """
        return self.do_apply

    @apply.property("contexts")
    def apply_contexts(self) -> list[str]:
        """Give the names of the contexts, without the preprocessed one.

        Returns
        -------
        list of str
            Those of the transition, and those that are attended.
        """
        return self._context_names

    @application
    def initial_states(self, batch_size: Any, **kwargs: Any) -> list[Any]:
        """States and glimpses before the first step.

        Parameters
        ----------
        batch_size : int or Variable
        **kwargs : Variable
            Contexts: at least the one that is attended.

        Returns
        -------
        list of Variable
            Those of the transition, then the glimpses.
        """
        if kwargs.get(self.attended_name) is None:
            raise TypeError(
                f"{self.path}.initial_states: missing {self.attended_name}, which the first "
                "glimpses depend on."
            )
        return [
            *pack(self.transition.initial_states(batch_size, as_list=True, **kwargs)),
            *pack(self.attention.initial_glimpses(batch_size, kwargs[self.attended_name])),
        ]

    @initial_states.property("outputs")
    def initial_states_outputs(self) -> list[str]:
        """Give the names of the states, with the glimpses."""
        return self.do_apply.states

    def get_dim(self, name: str) -> Any:
        """Features of a sequence, state, glimpse or context; see `Brick.get_dim`."""
        if name in self._glimpse_names:
            return self.attention.get_dim(name)
        if name == self.preprocessed_attended_name:
            return self.attention.get_dim(self.attention.preprocess.outputs[0])
        if name == self.attended_name and self.add_contexts:
            return self.attention.get_dim("attended")
        # A mask has no features, and not every transition says so.
        is_mask = name in (self.attended_mask_name, *self._mask_names)
        return 0 if is_mask else self.transition.get_dim(name)

    def _check_names(self, path: str, given: Iterable[str], names: Iterable[str]) -> None:
        """Refuse arguments that are neither among some names nor contexts."""
        known = [*names, *self.do_apply.contexts]
        for name in given:
            if name not in known:
                raise TypeError(f"{path}: unexpected argument {name!r}.{nearest_name(name, known)}")


def _where_masked(mask: Any, new: Any, old: Any) -> Any:
    """Return the new glimpse where the mask is not 0, and the old one elsewhere."""
    axes = (0, *["x"] * (new.ndim - 1))
    return tensor.switch(tensor.neq(mask, 0).dimshuffle(axes), new, old)
