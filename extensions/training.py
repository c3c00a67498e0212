"""Change hyperparameters while training, and keep track of the best value of a record."""

import inspect
import logging
from collections.abc import Callable
from typing import Any

import numpy

from extensions.base import SimpleExtension

__all__ = ["SharedVariableModifier", "TrackTheBest"]

logger = logging.getLogger(__name__)

BEST_SUFFIX = "_best_so_far"


class SharedVariableModifier(SimpleExtension):
    """Set a shared variable, such as a learning rate, by a function of the number of batches.

    Parameters
    ----------
    parameter : SharedVariable
        The variable.
    function : callable
        Given the number of batches done, and the present value if it takes a second argument,
        gives the new value, which is cast to the variable's dtype.
    num_args : int, optional
        How many arguments to give, 1 or 2. By default found out from the signature: as many as
        `function` needs, and 2 only if it does not do with 1.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`. By default after each batch.
    """

    def __init__(
        self,
        parameter: Any,
        function: Callable[..., Any],
        num_args: int | None = None,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        super().__init__(name, **{"after_batch": True} | triggers)
        self.parameter = parameter
        self.function = function
        self.num_args = _num_arguments(function) if num_args is None else num_args
        if self.num_args not in (1, 2):
            raise ValueError(f"SharedVariableModifier: `num_args` must be 1 or 2; got {num_args}.")

    def do(self, which_callback: str, *args: Any) -> None:
        """Set the variable.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """
        arguments = [self.main_loop.log.status["iterations_done"]]
        if self.num_args == 2:
            arguments.append(self.parameter.get_value())
        value = numpy.asarray(self.function(*arguments), dtype=self.parameter.dtype)
        self.parameter.set_value(value)


def _num_arguments(function: Callable) -> int:
    """How many of one or two arguments to give to a function: one, if that will do."""
    try:
        # Of a bound method, this leaves out the object that it is bound to.
        signature = inspect.signature(function)
    except ValueError as error:
        raise ValueError(
            f"SharedVariableModifier: {function!r} does not say how many arguments it takes; give "
            "`num_args`."
        ) from error
    for count in (1, 2):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count
    raise TypeError(
        f"SharedVariableModifier: `function` must take the number of batches, and may take the "
        f"present value; got {function!r} with the arguments {signature}."
    )


class TrackTheBest(SimpleExtension):
    """Note when a record is better than ever.

    The best value is kept in the status as ``best_<record_name>``; when it improves, the row gets
    the record `notification_name`, which is True. Values that are not a number are never best.

    Parameters
    ----------
    record_name : str
        The record to look at.
    notification_name : str, optional
        By default ``<record_name>_best_so_far``.
    choose_best : callable
        Given two values, returns the better one.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`. By default after each epoch.
    """

    _looked_in_vain_at: int | None = None
    _has_warned = False

    def __init__(
        self,
        record_name: str,
        notification_name: str | None = None,
        choose_best: Callable[[Any, Any], Any] = min,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        self.record_name = record_name
        self.notification_name = notification_name or record_name + BEST_SUFFIX
        self.best_name = f"best_{record_name}"
        self.choose_best = choose_best
        super().__init__(name, **{"after_epoch": True} | triggers)

    @property
    def records_read(self) -> tuple[str, ...]:
        """Names of the records that this looks for: the one whose best value is tracked."""
        return (*super().records_read, self.record_name)

    @property
    def records_written(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the records that this writes: the notification."""
        return (self.notification_name,)

    def do(self, which_callback: str, *args: Any) -> None:
        """Compare the present value with the best.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """
        log = self.main_loop.log
        present = log.status["iterations_done"]
        value = log.peek(present).get(self.record_name)
        if value is None:
            self._warn_if_it_came_too_late(log)
            self._looked_in_vain_at = present
            return
        self._looked_in_vain_at = None
        if value != value:
            return
        best = log.status.get(self.best_name)
        if best is None or (value != best and self.choose_best(value, best) == value):
            log.status[self.best_name] = value
            log.current_row[self.notification_name] = True

    def _warn_if_it_came_too_late(self, log: Any) -> None:
        time = self._looked_in_vain_at
        if self._has_warned or time in (None, log.status["iterations_done"]):
            return
        if self.record_name in log.peek(time):
            self._has_warned = True
            logger.warning(
                "%s: the record %r was written to row %d after this extension had looked for it "
                "there. Put it behind the extension that writes the record, or let that one say "
                "`records_written = (%r,)`.",
                self.name,
                self.record_name,
                time,
                self.record_name,
            )
