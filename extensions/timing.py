"""Record how long things take, and when they happened."""

import datetime
from collections.abc import Mapping
from typing import Any

from extensions.base import SimpleExtension

_ACTIONS = ("train", "read_data")


class Timing(SimpleExtension):
    """Record the seconds that training and reading the data took.

    After each epoch ``time_train_this_epoch``, ``time_train_total``, ``time_read_data_this_epoch``
    and ``time_read_data_total``; with ``every_n_batches`` also ``time_train_this_batch`` and
    ``time_read_data_this_batch``, means over the batches since the last record. Before training
    ``time_initialization`` is recorded in the row of the first epoch's beginning. The totals go on
    when a run is resumed.

    Parameters
    ----------
    prefix : str
        What to put before the names, with an underscore.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`. By default before the first epoch, after each epoch and after
        training.
    """

    def __init__(self, prefix: str = "", name: str | None = None, **triggers: Any) -> None:
        self.prefix = f"{prefix}_" if prefix else ""
        # What runs before that are not in this loop's own clock took.
        self._earlier = dict.fromkeys(_ACTIONS, 0.0)
        self._last: dict[str, dict[str, float]] = {}
        defaults = dict.fromkeys(("before_first_epoch", "after_epoch", "after_training"), True)
        super().__init__(name, **defaults | triggers)

    @property
    def records_written(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the records that this writes."""
        times = ("total", "this_epoch", "this_batch")
        names = [f"time_{action}_{time}" for action in _ACTIONS for time in times]
        return tuple(self.prefix + name for name in ("time_initialization", *names))

    def do(self, which_callback: str, *args: Any) -> None:
        """Record the times.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """
        row = self.main_loop.log.current_row
        if which_callback in ("before_training", "before_epoch"):
            row[f"{self.prefix}time_initialization"] = self.main_loop.times["initialization"]
            return
        totals = self._totals()
        level = {"after_epoch": "epoch", "after_batch": "batch"}.get(which_callback)
        if level is not None:
            self._record_since_last(row, level, totals)
        for action in _ACTIONS:
            row[f"{self.prefix}time_{action}_total"] = totals[action]

    def _record_since_last(self, row: Any, level: str, totals: Mapping[str, float]) -> None:
        status = self.main_loop.status
        done = status["epochs_done" if level == "epoch" else "iterations_done"]
        nothing: dict[str, float] = dict.fromkeys((*_ACTIONS, "done"), 0)
        last = self._last.get(level, nothing)
        for action in _ACTIONS:
            mean = (totals[action] - last[action]) / max(done - last["done"], 1)
            row[f"{self.prefix}time_{action}_this_{level}"] = mean
        self._last[level] = {**totals, "done": done}

    def _totals(self) -> dict[str, float]:
        times = self.main_loop.times
        return {action: self._earlier[action] + times[action] for action in _ACTIONS}

    def get_state(self) -> dict[str, Any]:
        """Give the totals.

        Returns
        -------
        dict
            Plain data.
        """
        last = {level: dict(values) for level, values in self._last.items()}
        return {"totals": self._totals(), "last": last}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            Plain data.
        """
        times = self.main_loop.times
        self._earlier = {action: state["totals"][action] - times[action] for action in _ACTIONS}
        self._last = {level: dict(values) for level, values in state["last"].items()}


class Timestamp(SimpleExtension):
    """Record the date and the time.

    Parameters
    ----------
    log_record : str
        The name of the record.
    separator : str
        What stands between date and time.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`. By default before and after training, after each epoch, on
        resumption, on an interrupt and on an error.
    """

    def __init__(
        self,
        log_record: str = "timestamp",
        separator: str = " ",
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        self.log_record = log_record
        self.separator = separator
        at_stages = ("before_training", "after_epoch", "after_training")
        at_breaks = ("on_resumption", "on_interrupt", "on_error")
        super().__init__(name, **dict.fromkeys(at_stages + at_breaks, True) | triggers)

    @property
    def records_written(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the records that this writes."""
        return (self.log_record,)

    def do(self, which_callback: str, *args: Any) -> None:
        """Record the present time.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """
        self.main_loop.log.current_row[self.log_record] = self.get_timestamp()

    def get_timestamp(self) -> str:
        """Give the present local time; may be overridden.

        Returns
        -------
        str
            As ISO 8601 writes it, but for the separator.
        """
        return datetime.datetime.now().isoformat(self.separator)
