"""Showing how far a long operation has come."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


class Progress:
    """How far an operation has come.

    Parameters
    ----------
    maxval : int
        The number at the end.
    bar : progressbar.ProgressBar, optional
        What shows it; by default nothing does.
    """

    def __init__(self, maxval: int, bar: Any = None) -> None:
        self.maxval = maxval
        self.value = 0
        self._bar = bar

    def __call__(self, steps: int) -> None:
        """Go on.

        Parameters
        ----------
        steps : int
            The number of steps made since the last call.
        """
        self.update(self.value + steps)

    def update(self, value: int) -> None:
        """Go to a number, as converters do that were written for Fuel.

        Parameters
        ----------
        value : int
            The number of steps made in all.
        """
        self.value = min(value, self.maxval)
        if self._bar is not None:
            self._bar.update(self.value)


@contextlib.contextmanager
def progress_bar(name: str, maxval: int, prefix: str = "Converting") -> Iterator[Progress]:
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
    Progress
        To be called with the number of steps made since the last call, or to be told by ``update``
        how many were made in all.
    """
    if not sys.stderr.isatty():
        yield Progress(maxval)
        return
    import progressbar

    widgets = [f"{prefix} {name} ", progressbar.Percentage(), " ", progressbar.Bar()]
    widgets += [" ", progressbar.ETA()]
    with progressbar.ProgressBar(max_value=maxval, widgets=widgets, fd=sys.stderr) as bar:
        yield Progress(maxval, bar)
