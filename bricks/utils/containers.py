"""A list that notices what enters and leaves it."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any

__all__ = ["AnnotatingList"]


class AnnotatingList(MutableSequence):
    """A list that calls a method for each element that is put in or taken out.

    Parameters
    ----------
    items : iterable, optional
        The first elements.

    Notes
    -----
    Subclasses override :meth:`_setitem` and :meth:`_delitem`.
    """

    def __init__(self, items: Iterable | None = None) -> None:
        self._items: list = []
        for item in items or ():
            self.append(item)

    def __repr__(self) -> str:
        return repr(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AnnotatingList):
            return self._items == other._items
        return self._items == other

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __len__(self) -> int:
        return len(self._items)

    def __add__(self, other: Iterable) -> list:
        return self._items + list(other)

    def __radd__(self, other: Iterable) -> list:
        return list(other) + self._items

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice):
            for old in self._items[key]:
                self._delitem(old)
            new = list(value)
            self._items[key] = new
            for item in new:
                self._setitem(item)
            return
        self._delitem(self._items[key])
        self._items[key] = value
        self._setitem(value)

    def __delitem__(self, key: Any) -> None:
        leaving = self._items[key] if isinstance(key, slice) else [self._items[key]]
        del self._items[key]
        for item in leaving:
            self._delitem(item)

    def insert(self, index: int, value: Any) -> None:
        """Put an element before the one at `index`."""
        self._items.insert(index, value)
        self._setitem(value)

    def _setitem(self, value: Any) -> None:
        """Notice that `value` has entered the list."""

    def _delitem(self, value: Any) -> None:
        """Notice that `value` leaves the list."""
