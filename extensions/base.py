"""The base classes of extensions.

An extension overrides callbacks (`TrainingExtension`), or says what it does and lets its user say
when (`SimpleExtension`, with *triggers*). The main loop calls it only for what it overrides or was
asked for, so that an extension costs nothing at the other batches.

What an extension has to remember over a stop is given as plain data by `get_state` and put back by
`set_state`; what it writes to the log is remembered anyway. An extension of one's own need not
override them: the attributes that have changed since it got its main loop are its state, as long
as they are plain data (numbers, strings, arrays, and lists, tuples and dicts of them); a warning
names those that are not when a checkpoint is written. Arguments that have not changed are those of
the script that resumes. Override both where something that changes must *not* be remembered.

An extension that looks for records of the log says so in `records_read`, and one that writes some
in `records_written`, as a class attribute or a property: then the order of the list does not
matter, and a misspelt name is told (see `bricks.ordering`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any

from bricks.ordering import in_order
from extensions.memory import Remembering
from extensions.predicates import (
    EverySeconds,
    OnLogRecord,
    Predicate,
    always_true,
    has_done_epochs,
)
from fuel_data.utils.keywords import NamedKeywords
from fuel_data.utils.names import nearest_name

CALLBACKS = (
    "before_training",
    "on_resumption",
    "before_epoch",
    "before_batch",
    "after_batch",
    "after_epoch",
    "after_training",
    "on_error",
    "on_interrupt",
)
_WITH_ARGUMENT = ("before_batch", "after_batch", "on_error")


def callback(method: Callable) -> Callable:
    """Mark a method as a callback of the main loop, as Blocks did; it changes nothing.

    Parameters
    ----------
    method : callable
        The method.

    Returns
    -------
    callable
        The same.
    """
    return method


class TrainingExtension(NamedKeywords, Remembering):
    """What can be given to a main loop. Override the callbacks that are of use.

    Parameters
    ----------
    name : str, optional
        What the extension is called. By default the name of its class.

    Attributes
    ----------
    main_loop : MainLoop
        The loop, from before `before_training` on.
    runs_last : bool
        Whether this saves the loop and is therefore called after those that change its state.
    only_reports : bool
        Whether this changes neither the loop nor the log nor any state of its own that counts.
    records_read : tuple of str
        Names of the records of the log that this looks for; it is called after those that write
        them.
    records_written : tuple of str
        Names of the records that this writes.
    """

    runs_last = False
    only_reports = False
    records_written: tuple[str, ...] = ()

    def __init__(self, name: str | None = None) -> None:
        self.name = type(self).__name__ if name is None else name

    @property
    def main_loop(self) -> Any:
        """The loop that this extension is part of."""
        if "_main_loop" not in self.__dict__:
            raise ValueError(
                f"{self.name}: there is no main loop yet; it is known from `before_training` on."
            )
        return self._main_loop

    @main_loop.setter
    def main_loop(self, value: Any) -> None:
        self._main_loop = value
        self._note_first_attributes()

    @property
    def records_read(self) -> tuple[str, ...]:
        """Names of the records of the log that this looks for."""
        return ()

    @property
    def writes_what_it_says(self) -> bool:
        """Whether `records_written` has all names: true of the classes of this package alone."""
        return self._is_of_this_package

    def __repr__(self) -> str:
        name = "" if self.name == type(self).__name__ else f" {self.name!r}"
        return f"<{type(self).__name__}{name}>"

    def handler(self, callback_name: str) -> Callable | None:
        """Give what the main loop is to call for a callback.

        Parameters
        ----------
        callback_name : str
            One of the callbacks.

        Returns
        -------
        callable or None
            None if this extension has no use for it.
        """
        if type(self).dispatch is not TrainingExtension.dispatch:
            return partial(self.dispatch, callback_name)
        if getattr(type(self), callback_name) is getattr(TrainingExtension, callback_name):
            return None
        return getattr(self, callback_name)

    def dispatch(self, callback_invoked: str, *from_main_loop: Any) -> None:
        """Call the callback of a name.

        Parameters
        ----------
        callback_invoked : str
            Its name.
        *from_main_loop
            The batch or the exception, if the callback takes one.
        """
        getattr(self, callback_invoked)(*from_main_loop)

    def before_training(self) -> None:
        """Called once, before the algorithm is initialized."""

    def on_resumption(self) -> None:
        """Called when training goes on after it was stopped."""

    def before_epoch(self) -> None:
        """Called before each epoch."""

    def before_batch(self, batch: Any) -> None:
        """Called before a batch is processed.

        Parameters
        ----------
        batch : dict of str to array
            The batch.
        """

    def after_batch(self, batch: Any) -> None:
        """Called after a batch was processed and counted.

        Parameters
        ----------
        batch : dict of str to array
            The batch.
        """

    def after_epoch(self) -> None:
        """Called after each epoch, when it has been counted."""

    def after_training(self) -> None:
        """Called when training has ended without an exception."""

    def on_error(self, exception: BaseException) -> None:
        """Called when an exception has ended training.

        Parameters
        ----------
        exception : Exception
            It is raised again afterwards.
        """

    def on_interrupt(self) -> None:
        """Called between two batches when SIGINT or SIGTERM was received."""


class SimpleExtension(TrainingExtension):
    """An extension that does one thing, at the times that its user chooses.

    Subclasses override `do`. Triggers given to the constructor take the place of the defaults that
    the subclass gives for the same keyword; ``after_epoch=False`` switches a default off.

    Parameters
    ----------
    name : str, optional
        What the extension is called. By default the name of its class.
    before_training, before_first_epoch, before_epoch, before_batch : bool
        Whether to act then.
    after_batch, after_epoch, after_training : bool
        Whether to act then.
    on_resumption, on_interrupt, on_error : bool
        Whether to act then.
    every_n_batches, every_n_epochs : int
        Act after each so many of them.
    after_n_batches, after_n_epochs : int
        Act once, when so many are done.
    every_n_seconds, every_n_minutes : float
        Act after a batch when so much time has passed.

    Raises
    ------
    TypeError
        If a keyword is not a trigger.
    ValueError
        If a number is less than 1.

    Examples
    --------
    An extension of one's own:

    >>> from aesara import tensor
    >>> from bricks.algorithms import UpdatesAlgorithm
    >>> from bricks.main_loop import MainLoop
    >>> from bricks.utils import shared_floatx
    >>> from extensions import FinishAfter
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> class Tell(SimpleExtension):
    ...     def do(self, which_callback, *args):
    ...         batches = self.main_loop.status["iterations_done"]
    ...         print(f"{which_callback}: {batches} batches, total {total.get_value():g}")
    >>> x, total = tensor.scalar("x"), shared_floatx(0.0, name="total")
    >>> main_loop = MainLoop(
    ...     UpdatesAlgorithm(updates=[(total, total + x)]),
    ...     DataStream(IterableDataset({"x": [1.0, 2.0, 3.0]})),
    ...     extensions=[Tell(every_n_batches=2, after_epoch=True), FinishAfter(after_n_epochs=1)],
    ... )
    >>> main_loop.run()
    after_batch: 2 batches, total 3
    after_epoch: 3 batches, total 6
    """

    BOOLEAN_TRIGGERS = frozenset((*CALLBACKS, "before_first_epoch"))
    INTEGER_TRIGGERS = frozenset(
        ("every_n_batches", "every_n_epochs", "after_n_batches", "after_n_epochs")
    )
    TIME_TRIGGERS = frozenset(("every_n_seconds", "every_n_minutes"))
    TRIGGERS = BOOLEAN_TRIGGERS | INTEGER_TRIGGERS | TIME_TRIGGERS

    def __init__(self, name: str | None = None, **triggers: Any) -> None:
        super().__init__(name)
        self._conditions: list[tuple[str, Callable, tuple]] = []
        self._check_keywords(triggers)
        self.set_conditions(**triggers)

    def _check_keywords(self, triggers: Iterable[str]) -> None:
        """Refuse what is left of a constructor's keywords and no trigger."""
        # What the bases take, too: a subclass hands on what it does not know.
        bases: Sequence[Any] = type(self).__mro__[:-1]
        constructors = [signature(base.__init__) for base in bases]
        parameters = [p for c in constructors for p in list(c.parameters.values())[1:]]
        known = {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        for name in triggers:
            if name not in self.TRIGGERS:
                raise TypeError(
                    f"{type(self).__name__}: {name!r} is neither an argument nor a trigger."
                    f"{nearest_name(name, self.TRIGGERS | known)}"
                )

    @property
    def conditions(self) -> list[tuple[str, Callable, tuple]]:
        """Callback, predicate of the log and further arguments of `do`, for each condition."""
        return list(self._conditions)

    @property
    def records_read(self) -> tuple[str, ...]:
        """Names of the records that conditions look for; a subclass may add others."""
        predicates = [predicate for _, predicate, _ in self._conditions]
        return tuple(p.record_name for p in predicates if isinstance(p, OnLogRecord))

    def set_conditions(self, **triggers: Any) -> "SimpleExtension":
        """Set the triggers, in place of all conditions that there were.

        Parameters
        ----------
        **triggers
            As for the constructor.

        Returns
        -------
        SimpleExtension
            This extension.

        Raises
        ------
        TypeError
            If a keyword is not a trigger; the conditions stay as they were.
        """
        for trigger in triggers:
            if trigger not in self.TRIGGERS:
                raise TypeError(
                    f"{type(self).__name__}: {trigger!r} is no trigger."
                    f"{nearest_name(trigger, self.TRIGGERS)}"
                )
        # A number 0 is refused by the predicate; False and None switch a trigger off.
        wanted = {t: v for t, v in triggers.items() if v is not None and v is not False}
        conditions = [self._condition(trigger, value) for trigger, value in wanted.items()]
        self._conditions = []
        for callback_name, predicate in conditions:
            self.add_condition([callback_name], predicate)
        self._changed()
        return self

    def _condition(self, trigger: str, value: Any) -> tuple[str, Callable]:
        if trigger in self.INTEGER_TRIGGERS:
            callback_name = "after_epoch" if trigger.endswith("epochs") else "after_batch"
            return callback_name, Predicate(trigger, value)
        if trigger in self.TIME_TRIGGERS:
            return "after_batch", EverySeconds(value * 60 if trigger.endswith("minutes") else value)
        if value is not True and value != 1:
            raise TypeError(
                f"{type(self).__name__}: `{trigger}` must be True or False; got {value!r}."
            )
        if trigger == "before_first_epoch":
            return "before_epoch", has_done_epochs
        return trigger, always_true

    def add_condition(
        self,
        callbacks_names: Sequence[str],
        predicate: Callable[[Any], bool] | None = None,
        arguments: Iterable[Any] | None = None,
    ) -> "SimpleExtension":
        """Act at further times.

        Parameters
        ----------
        callbacks_names : list of str
            The callbacks at which to look.
        predicate : callable, optional
            Given the log, tells whether to act. By default always.
        arguments : iterable, optional
            What `do` gets after the arguments of the callback.

        Returns
        -------
        SimpleExtension
            This extension.

        Raises
        ------
        TypeError
            If `callbacks_names` is no list or tuple.
        ValueError
            If a name is not that of a callback, or `predicate` cannot be called.
        """
        if not isinstance(callbacks_names, list | tuple):
            raise TypeError(
                f"{self.name}: `callbacks_names` must be a list of names; got {callbacks_names!r}."
            )
        if predicate is not None and not callable(predicate):
            raise ValueError(f"{self.name}: `predicate` must be callable; got {predicate!r}.")
        for name in callbacks_names:
            if name not in CALLBACKS:
                raise ValueError(
                    f"{self.name}: {name!r} is not a callback.{nearest_name(str(name), CALLBACKS)}"
                )
        for name in callbacks_names:
            condition = (str(name), predicate or always_true, tuple(arguments or ()))
            self._conditions.append(condition)
        self._changed()
        return self

    def _changed(self) -> None:
        if "_main_loop" in self.__dict__:
            self._main_loop.extensions_changed()

    def do(self, which_callback: str, *args: Any) -> None:
        """Do what this extension is for.

        Parameters
        ----------
        which_callback : str
            The callback at which the condition held.
        *args
            The arguments of the callback, then those of the condition; `parse_args` tells them
            apart.
        """
        raise NotImplementedError(f"{type(self).__name__} must override `do`.")

    def handler(self, callback_name: str) -> Callable | None:
        """Give what the main loop is to call for a callback.

        Parameters
        ----------
        callback_name : str
            One of the callbacks.

        Returns
        -------
        callable or None
            None if no condition is about this callback.
        """
        if type(self).dispatch is not SimpleExtension.dispatch:
            return partial(self.dispatch, callback_name)
        own = getattr(self, callback_name) if self._overrides(callback_name) else None
        return self._conditions_handler(callback_name, own)

    def _conditions_handler(self, callback_name: str, own: Callable | None = None) -> Any:
        conditions = [c[1:] for c in self._conditions if c[0] == callback_name]
        return partial(self._act, callback_name, own, conditions) if conditions else own

    def _overrides(self, callback_name: str) -> bool:
        return getattr(type(self), callback_name) is not getattr(TrainingExtension, callback_name)

    def _act(
        self,
        callback_name: str,
        own: Callable | None,
        conditions: list[tuple[Callable, tuple]],
        *from_main_loop: Any,
    ) -> None:
        if own is not None:
            own(*from_main_loop)
        log = self._main_loop.log
        for predicate, arguments in conditions:
            if predicate is always_true or predicate(log):
                self.do(callback_name, *from_main_loop, *arguments)

    def dispatch(self, callback_invoked: str, *from_main_loop: Any) -> None:
        """Act if a condition holds.

        Parameters
        ----------
        callback_invoked : str
            The name of the callback.
        *from_main_loop
            The batch or the exception, if the callback takes one.
        """
        handler = self.handler(callback_invoked)
        if handler is not None:
            handler(*from_main_loop)

    @staticmethod
    def parse_args(which_callback: str, args: Sequence[Any]) -> tuple[tuple, tuple]:
        """Tell the arguments of a callback from those of a condition.

        Parameters
        ----------
        which_callback : str
            The callback that `do` was given.
        args : sequence
            The other arguments that it was given.

        Returns
        -------
        from_main_loop : tuple
            The batch or the exception, if the callback takes one.
        from_user : tuple
            The `arguments` of the condition.
        """
        count = 1 if which_callback in _WITH_ARGUMENT else 0
        return tuple(args[:count]), tuple(args[count:])


class CompositeExtension(SimpleExtension):
    """Several extensions that are used as one.

    Parameters
    ----------
    sub_extensions : iterable of TrainingExtension
        The extensions.
    run_before_children : bool
        Whether this extension's own `do` and callbacks come before those of the others.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`: when to call `do`.
    """

    def __init__(
        self,
        sub_extensions: Iterable[TrainingExtension],
        run_before_children: bool = True,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        self.sub_extensions = list(sub_extensions)
        self.run_before_children = run_before_children
        super().__init__(name, **triggers)

    @property
    def runs_last(self) -> bool:  # type: ignore[override]
        """Whether one of the extensions saves the loop."""
        return any(extension.runs_last for extension in self.sub_extensions)

    @property
    def records_read(self) -> tuple[str, ...]:
        """Names of the records that the extensions look for, but those that they write."""
        read = [super().records_read, *(e.records_read for e in self.sub_extensions)]
        return tuple(name for names in read for name in names if name not in self.records_written)

    @property
    def records_written(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the records that the extensions write."""
        return tuple(name for e in self.sub_extensions for name in e.records_written)

    @property
    def main_loop(self) -> Any:
        """The loop that this extension is part of."""
        return TrainingExtension.main_loop.fget(self)  # type: ignore[attr-defined]

    @main_loop.setter
    def main_loop(self, value: Any) -> None:
        self._main_loop = value
        self._note_first_attributes()
        for extension in self.sub_extensions:
            extension.main_loop = value

    def do(self, which_callback: str, *args: Any) -> None:
        """Do nothing beside what the extensions do; may be overridden.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """

    def handler(self, callback_name: str) -> Callable | None:
        """Give what the main loop is to call for a callback.

        Parameters
        ----------
        callback_name : str
            One of the callbacks.

        Returns
        -------
        callable or None
            None if neither this extension nor one of its own has a use for it.
        """
        own = super().handler(callback_name)
        ordered = in_order(self.sub_extensions)
        handlers = [extension.handler(callback_name) for extension in ordered]
        handlers.insert(0 if self.run_before_children else len(handlers), own)
        wanted = [handler for handler in handlers if handler is not None]
        if len(wanted) < 2:
            return wanted[0] if wanted else None
        return partial(_call_all, wanted)

    def get_state(self) -> dict[str, Any]:
        """Give the states of the extensions.

        Returns
        -------
        dict
            By position and name; only of those that have one. Beside them what a subclass has
            itself, as for any extension.
        """
        states = {key: extension.get_state() for key, extension in self._keyed()}
        return super().get_state() | {key: state for key, state in states.items() if state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            Plain data.

        Raises
        ------
        ValueError
            If it is about an extension that is not there.
        """
        known = dict(self._keyed())
        own = {key: value for key, value in state.items() if ":" not in key}
        super().set_state(own)
        for key in state.keys() - own.keys():
            if key not in known:
                raise ValueError(
                    f"{self.name}: there is no extension {key!r} to give a state to."
                    f"{nearest_name(key, known)}"
                )
        for key, extension in known.items():
            if key in state:
                extension.set_state(state[key])

    def _keyed(self) -> list[tuple[str, TrainingExtension]]:
        return [(f"{i}:{e.name}", e) for i, e in enumerate(self.sub_extensions)]


def _call_all(handlers: Sequence[Callable], *arguments: Any) -> None:
    for handler in handlers:
        handler(*arguments)
