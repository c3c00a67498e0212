"""Showing how far a long operation has come."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def progress_bar(name: str, maxval: int, prefix: str = "Converting") -> Iterator[Any]:
    """Show the progress of a block on the terminal, and nothing if there is none.

    Parameters
    ----------
    name : str
        What is worked on.
    maxval : int
        The number at the end.
    prefix : str, optional
        What is done with it.

    Yields
    ------
    function
        To be called with the number of steps made since the last call.
    """
    if not sys.stderr.isatty():
        yield lambda steps: None
        return
    import progressbar

    widgets = [f"{prefix} {name} ", progressbar.Percentage(), " ", progressbar.Bar()]
    widgets += [" ", progressbar.ETA()]
    with progressbar.ProgressBar(max_value=maxval, widgets=widgets, fd=sys.stderr) as bar:
        yield lambda steps: bar.update(min(bar.value + steps, maxval))
