"""Show how far the present epoch is, with what was logged last."""

import sys
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import IO, Any

import numpy

from bricks.output import until_closed
from extensions.base import TrainingExtension
from extensions.reports import format_value

_NEVER = float("inf")


class ProgressBar(TrainingExtension):
    """Draw a bar for each epoch on standard error, or print a line now and then to a file.

    Parameters
    ----------
    records : iterable of str, optional
        Which records to show on the line, as they were logged last. By default the first three
        that are numbers and no times.
    seconds : float
        How often to draw the bar on a terminal.
    plain_seconds : float
        How often to print a line when standard error is no terminal. The end of an epoch is
        printed in any case.
    name : str, optional
        What the extension is called. By default the name of its class.
    """

    only_reports = True

    def __init__(
        self,
        records: Iterable[str] | None = None,
        *,
        seconds: float = 0.1,
        plain_seconds: float = 10.0,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        if isinstance(records, str):
            raise TypeError(f"ProgressBar: `records` must be a list of names; got {records!r}.")
        self.records = None if records is None else tuple(records)
        self.seconds = seconds
        self.plain_seconds = plain_seconds
        self._forget()

    def _forget(self) -> None:
        self._line: _PlainLines | _Bar | None = None
        self._next_time = -_NEVER
        self._latest: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        passing: dict[str, Any] = {"_line": None, "_next_time": -_NEVER, "_latest": {}}
        return self.__dict__ | passing

    def get_state(self) -> dict[str, Any]:
        """Give what has to be remembered over a stop: nothing of what is shown.

        Returns
        -------
        dict
            Empty.
        """
        return {}

    def before_epoch(self) -> None:
        """Begin a bar."""
        self._begin()

    def on_resumption(self) -> None:
        """Begin a bar in the middle of an epoch."""
        if self.main_loop.status.get("epoch_started"):
            self._begin()

    def _begin(self) -> None:
        status = self.main_loop.status
        total = getattr(self.main_loop.data_stream, "num_batches", None)
        terminal = sys.stderr.isatty()
        kind: Any = _Bar if terminal else _PlainLines
        self._interval = self.seconds if terminal else self.plain_seconds
        with until_closed(sys.stderr):
            self._line = kind(f"Epoch {status['epochs_done'] + 1}", total, sys.stderr)
        self._start = status["_epoch_ends"][-1] if status["_epoch_ends"] else 0
        self._next_time = monotonic() + self._interval

    def after_batch(self, batch: Any) -> None:
        """Draw, if it is time.

        Parameters
        ----------
        batch : dict of str to array
            The batch.
        """
        log = self._main_loop.log
        row = log.peek(log.status["iterations_done"])
        if row:
            self._look_at(row)
        now = monotonic()
        if now >= self._next_time and self._line is not None:
            self._next_time = now + self._interval
            with until_closed(sys.stderr):
                self._line.show(log.status["iterations_done"] - self._start, self._metrics())

    def _look_at(self, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            if self.records is not None:
                wanted = name in self.records
            else:
                wanted = isinstance(value, float | numpy.number) and not name.startswith("time_")
            if wanted:
                self._latest[name] = value

    def after_epoch(self) -> None:
        """Draw a last time."""
        self._end(whole=True)

    def after_training(self) -> None:
        """Leave the bar as it is, if the epoch was not finished."""
        self._end(whole=False)

    def on_error(self, exception: BaseException) -> None:
        """Leave the bar as it is.

        Parameters
        ----------
        exception : Exception
            What ended training.
        """
        self._end(whole=False)

    def _end(self, whole: bool) -> None:
        if self._line is None:
            return
        status = self.main_loop.status
        self._look_at(self.main_loop.log.peek(status["iterations_done"]))
        with until_closed(sys.stderr):
            self._line.end(status["iterations_done"] - self._start, self._metrics(), whole)
        self._line = None

    def _metrics(self) -> str:
        names = self.records if self.records is not None else list(self._latest)[:3]
        shown = [(name, self._latest[name]) for name in names if name in self._latest]
        return ", ".join(f"{name} {format_value(value)}" for name, value in shown)


class _PlainLines:
    """Print a line at each call."""

    def __init__(self, title: str, total: int | None, file: IO[str]) -> None:
        self._title = title
        self._total = total
        self._file = file
        self._begun = monotonic()

    def show(self, done: int, metrics: str) -> None:
        count = f"{done}/{self._total}" if self._total else str(done)
        seconds = monotonic() - self._begun
        parts = [f"{self._title}: {count} batches", f"{seconds:.1f} s", metrics]
        print(", ".join(part for part in parts if part), file=self._file, flush=True)

    def end(self, done: int, metrics: str, whole: bool) -> None:
        self.show(done, metrics)


class _Bar:
    """Draw on a terminal."""

    def __init__(self, title: str, total: int | None, file: IO[str]) -> None:
        import progressbar

        self._total = total
        self._text = progressbar.FormatCustomText(" %(metrics)s", {"metrics": ""})
        known = [progressbar.Percentage(), " ", progressbar.Bar(), " ", progressbar.ETA()]
        widgets = [f"{title} ", progressbar.SimpleProgress(), " batches "]
        widgets += known if total else [progressbar.Timer()]
        self._bar = progressbar.ProgressBar(
            max_value=total or progressbar.UnknownLength,
            widgets=[*widgets, self._text],
            fd=file,
            # A wrong `num_batches` is no reason to stop training.
            max_error=False,
        )
        self._bar.start()

    def show(self, done: int, metrics: str) -> None:
        self._text.update_mapping(metrics=metrics)
        if self._total and done > self._total:
            self._bar.max_value = done
        self._bar.update(done, force=True)

    def end(self, done: int, metrics: str, whole: bool) -> None:
        self.show(done, metrics)
        self._bar.finish(dirty=not whole)
