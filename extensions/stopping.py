"""End training when it no longer gets better."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

from extensions.base import CompositeExtension, SimpleExtension
from extensions.predicates import OnLogRecord
from extensions.training import BEST_SUFFIX, TrackTheBest


class FinishIfNoImprovementAfter(SimpleExtension):
    """End training when a notification has not come for some time.

    Notifications are looked for in all rows since the last look, so that it does not matter how
    often this is asked to look. Until there was one, training goes on.

    Parameters
    ----------
    notification_name : str
        The record that tells of an improvement; see `TrackTheBest`.
    iterations : int, optional
        How many batches to wait for the next notification.
    epochs : int, optional
        How many epochs without a notification to wait. Exactly one of both is given.
    patience_log_record : str, optional
        The record that says how many are left. By default
        ``<notification_name>_patience_epochs`` or ``..._patience_iterations``.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`: when to look. By default after each epoch. On resumption it
        decides again where it had decided before, so that a run that was ended does not train any
        further; it records nothing then.
    """

    def __init__(
        self,
        notification_name: str,
        iterations: int | None = None,
        epochs: int | None = None,
        patience_log_record: str | None = None,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        if (epochs is None) == (iterations is None):
            raise ValueError(
                "FinishIfNoImprovementAfter: give either `iterations` or `epochs`; got "
                f"iterations={iterations!r} and epochs={epochs!r}."
            )
        self.notification_name = notification_name
        self.iterations = iterations
        self.epochs = epochs
        unit = "iterations" if epochs is None else "epochs"
        self.patience_log_record = patience_log_record or f"{notification_name}_patience_{unit}"
        self.last_best_iter: int | None = None
        self.last_best_epoch: int | None = None
        self._looked_at = -1
        super().__init__(name, **{"after_epoch": True} | triggers)

    def set_conditions(self, **triggers: Any) -> "FinishIfNoImprovementAfter":
        """Set when to look, in place of all conditions that there were.

        Parameters
        ----------
        **triggers
            As for `SimpleExtension`.

        Returns
        -------
        FinishIfNoImprovementAfter
            This extension.

        Raises
        ------
        TypeError
            If a keyword is not a trigger.
        """
        super().set_conditions(**{"on_resumption": True} | triggers)
        return self

    @property
    def records_read(self) -> tuple[str, ...]:
        """Names of the records that this looks for: the notification."""
        return (*super().records_read, self.notification_name)

    @property
    def records_written(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the records that this writes: what is left of the patience."""
        return (self.patience_log_record,)

    def update_best(self) -> None:
        """Find the latest notification; may be overridden for other criteria."""
        log = self.main_loop.log
        present = log.status["iterations_done"]
        # The row of the last look may have got its notification after it.
        times = log.times_of(self.notification_name, after=self._looked_at - 1)
        self._looked_at = present
        if times:
            self.last_best_iter = times[-1]
            # The epoch that it is in counts as a good one, up to its end.
            before = bisect_left(log.status["_epoch_ends"], times[-1])
            self.last_best_epoch = before + (times[-1] > 0)

    def do(self, which_callback: str, *args: Any) -> None:
        """Look for notifications, and end training if there were none for too long.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """
        log = self.main_loop.log
        resuming = which_callback == "on_resumption"
        # A run that was not stopped would look at this time only if it was one to look at.
        if resuming and self._looked_at != log.status["iterations_done"]:
            return
        self.update_best()
        if self.last_best_iter is None or self.last_best_epoch is None:
            return
        if self.epochs is not None:
            left = self.epochs - max(log.status["epochs_done"] - self.last_best_epoch, 0)
        else:
            left = self.iterations - (log.status["iterations_done"] - self.last_best_iter)
        if not resuming:
            log.current_row[self.patience_log_record] = left
        if left <= 0:
            log.current_row["training_finish_requested"] = True

    def get_state(self) -> dict[str, Any]:
        """Give when the latest notification came.

        Returns
        -------
        dict
            Plain data.
        """
        return {
            "last_best_iter": self.last_best_iter,
            "last_best_epoch": self.last_best_epoch,
            "looked_at": self._looked_at,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            Plain data.
        """
        self.last_best_iter = state["last_best_iter"]
        self.last_best_epoch = state["last_best_epoch"]
        self._looked_at = state["looked_at"]


class EarlyStopping(CompositeExtension):
    """Track the best value of a record, end training without improvement, save the best loop.

    Parameters
    ----------
    record_name : str
        The record to look at.
    checkpoint_extension : Checkpoint, optional
        What saves the loop when there is an improvement. It is in the list of extensions too.
    checkpoint_filename : path, optional
        Where to; given together with `checkpoint_extension`.
    notification_name : str, optional
        By default ``<record_name>_best_so_far``.
    choose_best : callable
        Given two values, returns the better one.
    iterations, epochs : int, optional
        How many batches or epochs to wait for an improvement; exactly one is given.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`: when to look. By default after each epoch.
    """

    def __init__(
        self,
        record_name: str,
        checkpoint_extension: Any = None,
        checkpoint_filename: Any = None,
        notification_name: str | None = None,
        choose_best: Callable[[Any, Any], Any] = min,
        iterations: int | None = None,
        epochs: int | None = None,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        self._check_keywords(triggers)
        if (checkpoint_extension is None) != (checkpoint_filename is None):
            raise ValueError(
                "EarlyStopping: `checkpoint_extension` and `checkpoint_filename` are given "
                "together, or not at all."
            )
        notification_name = notification_name or record_name + BEST_SUFFIX
        triggers = {"after_epoch": True} | triggers
        tracking = TrackTheBest(record_name, notification_name, choose_best, **triggers)
        stopping = FinishIfNoImprovementAfter(notification_name, iterations, epochs, **triggers)
        super().__init__([tracking, stopping], name=name)
        if checkpoint_extension is not None:
            checkpoint_extension.add_condition(
                sorted({callback for callback, _, _ in tracking.conditions}),
                OnLogRecord(notification_name),
                (checkpoint_filename,),
            )
