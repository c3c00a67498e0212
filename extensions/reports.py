"""Print what the log says."""

from collections.abc import Mapping
from typing import Any

import numpy

from bricks.output import until_closed
from extensions.base import SimpleExtension

_TITLES = {
    "before_training": "Before training",
    "on_resumption": "Training goes on",
    "before_epoch": "Before epoch {next_epoch}",
    "after_epoch": "Epoch {epochs_done} done",
    "after_training": "Training has ended",
    "on_interrupt": "Interrupted",
    "on_error": "Training was stopped by an exception",
}
_HIDDEN = ("got_exception",)


class Printing(SimpleExtension):
    """Print the records of the present row, one a line, as long as somebody reads them.

    Parameters
    ----------
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`. By default before the first epoch, on resumption, after each
        epoch, after training and on an interrupt.
    """

    only_reports = True

    def __init__(self, name: str | None = None, **triggers: Any) -> None:
        callbacks = ("before_first_epoch", "on_resumption", "after_epoch", "after_training")
        defaults = dict.fromkeys((*callbacks, "on_interrupt"), True)
        super().__init__(name, **defaults | triggers)

    def do(self, which_callback: str, *args: Any) -> None:
        """Print the present row.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held; the title says which.
        *args
            Its arguments.
        """
        log = self.main_loop.log
        row = log.peek(log.status["iterations_done"])
        with until_closed():
            print(format_row(title_of(which_callback, log.status), row), flush=True)


def title_of(which_callback: str, status: Mapping[str, Any]) -> str:
    """Say where training is.

    Parameters
    ----------
    which_callback : str
        The callback.
    status : mapping
        The status of the log.

    Returns
    -------
    str
        One line.
    """
    title = _TITLES.get(which_callback, which_callback.replace("_", " ").capitalize())
    title = title.format(epochs_done=status["epochs_done"], next_epoch=status["epochs_done"] + 1)
    return f"{title} ({status['iterations_done']} batches, {status['epochs_done']} epochs)"


def format_row(title: str, records: Mapping[str, Any]) -> str:
    """Lay records out below a title, names and values aligned.

    Parameters
    ----------
    title : str
        The first line.
    records : mapping of str to object
        The records.

    Returns
    -------
    str
        Lines; values on the same column.
    """
    shown = {name: format_value(v) for name, v in records.items() if name not in _HIDDEN}
    width = max(map(len, shown), default=0)
    return "\n".join([title, *(f"    {name:<{width}}  {text}" for name, text in shown.items())])


def format_value(value: Any) -> str:
    """Give a value in a few characters.

    Parameters
    ----------
    value : object
        A value of the log.

    Returns
    -------
    str
        Six digits of a float; of a large array its kind and its range.
    """
    if isinstance(value, float | numpy.floating):
        return f"{value:.6g}"
    if isinstance(value, numpy.ndarray) and value.ndim == 0:
        return format_value(value[()])
    if isinstance(value, numpy.ndarray) and value.size > 8:
        ordered = value.dtype.kind in "fiu"
        range_ = f" from {value.min():.6g} to {value.max():.6g}" if ordered else ""
        return f"{value.dtype} array of shape {value.shape}{range_}"
    if isinstance(value, numpy.ndarray):
        return numpy.array2string(value, precision=6, separator=", ").replace("\n", "")
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item) for item in value)
    return str(value)
