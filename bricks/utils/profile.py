"""Where the time goes: seconds that named parts of a program take, parts within parts."""

from __future__ import annotations

import sys
from time import perf_counter
from types import TracebackType
from typing import TextIO

__all__ = ["Profile", "Timer"]


class Profile:
    """Seconds of parts of a program, which are entered and left one within the other.

    Attributes
    ----------
    total : dict of tuple of str to float
        Seconds of each part, by the names from the outermost part down to it.
    current : list of str
        The parts that have been entered and not left.

    Examples
    --------
    >>> profile = Profile()
    >>> with Timer("epoch", profile):
    ...     for _ in range(3):
    ...         with Timer("batch", profile):
    ...             pass
    >>> list(profile.total)
    [('epoch', 'batch'), ('epoch',)]
    """

    def __init__(self) -> None:
        self.total: dict[tuple[str, ...], float] = {}
        self.current: list[str] = []
        self._order: dict[tuple[str, ...], None] = {}

    def enter(self, name: str) -> None:
        """Enter a part.

        Parameters
        ----------
        name : str
            Its name, within the part that was entered last.
        """
        self.current.append(name)
        self._order.setdefault(tuple(self.current))

    def exit(self, t: float) -> None:
        """Leave the part that was entered last.

        Parameters
        ----------
        t : float
            The seconds that it took.

        Raises
        ------
        RuntimeError
            If none was entered.
        """
        if not self.current:
            raise RuntimeError("Profile.exit: no part has been entered. Use `Timer`, which pairs.")
        key = tuple(self.current)
        self.total[key] = self.total.get(key, 0.0) + t
        self.current.pop()

    def report(self, f: TextIO | None = None) -> None:
        """Print seconds and shares of all parts, those within a part below it.

        Parameters
        ----------
        f : file, optional
            Of text; by default standard error.
        """
        f = sys.stderr if f is None else f
        done = [key for key in self._order if key in self.total]
        width = max((2 * (len(key) - 1) + len(key[-1]) for key in done), default=0)
        whole = sum(seconds for key, seconds in self.total.items() if len(key) == 1)
        for key in _by_parent(done):
            above = self.total.get(key[:-1], whole)
            share = self.total[key] / above if above else 0.0
            label = "  " * (len(key) - 1) + key[-1]
            print(f"{label:<{width}}  {self.total[key]:10.3f} s  {share:6.1%}", file=f)


def _by_parent(keys: list[tuple[str, ...]], parent: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Put parts in the order in which they were entered, each before those within it."""
    found = []
    for key in keys:
        if key[:-1] == parent:
            found += [key, *_by_parent(keys, key)]
    return found


class Timer:
    """A context whose seconds are added to a profile.

    Parameters
    ----------
    name : str
        Of the part.
    profile : Profile
        Where they are added.
    """

    def __init__(self, name: str, profile: Profile) -> None:
        self.name = name
        self.profile = profile

    def __enter__(self) -> Timer:
        self.profile.enter(self.name)
        self._start = perf_counter()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.profile.exit(perf_counter() - self._start)
