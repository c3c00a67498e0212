"""The log of a training run: records by time, and the status of the run.

Time is the number of batches that the run has processed. ``log[time]`` is a row: a dict from record
names to values. Rows are made by the first record that is written to them. A value that has been
logged is replaced, never changed in place.
"""

import abc
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any
from uuid import UUID, uuid4

from bricks.log.plain import columns_to_rows, decode, encode, rows_to_columns

_NO_RECORDS: dict[str, Any] = {}
# What a status says of the runs before, whose rows only their own log has.
_LINEAGE = ("resumed_from", "_resumed_at")


class TrainingLogBase(abc.ABC):
    """What all logs have in common: the status, the identity, and the views of the present.

    Parameters
    ----------
    uuid : UUID, optional
        The identity of this run. A new one by default.

    Attributes
    ----------
    status : dict
        ``iterations_done``, ``epochs_done``, ``_epoch_ends`` (times at which epochs ended),
        ``resumed_from`` (the identity of the run that this one continues, or None), and what the
        main loop and the extensions add. Its values are plain data.
    """

    uuid: UUID

    def __init__(self, uuid: UUID | None = None) -> None:
        self.uuid = uuid4() if uuid is None else uuid
        self.status: dict[str, Any] = {
            "iterations_done": 0,
            "epochs_done": 0,
            "_epoch_ends": [],
            "resumed_from": None,
        }

    @abc.abstractmethod
    def __getitem__(self, time: int) -> MutableMapping[str, Any]:
        """Give the row of `time`, to be read and written."""

    @abc.abstractmethod
    def __iter__(self) -> Iterator[int]:
        """Iterate over the times that have records."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """Count the times that have records."""

    @abc.abstractmethod
    def peek(self, time: int) -> Mapping[str, Any]:
        """Give the row of `time` for reading only, without making one.

        Parameters
        ----------
        time : int
            How many batches were done.

        Returns
        -------
        mapping
            The records; empty if there are none.
        """

    @abc.abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Give the whole log as plain data, for a checkpoint.

        Returns
        -------
        plain data
            What `set_state` takes.
        """

    @abc.abstractmethod
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take the place of the log that `get_state` was asked of.

        Parameters
        ----------
        state : plain data
            What `get_state` gave, in a log of the same class. If it is refused, nothing has
            changed.
        """

    def __setitem__(self, time: int, records: Mapping[str, Any]) -> None:
        row = self[time]
        row.clear()
        row.update(records)

    def __contains__(self, time: object) -> bool:
        return isinstance(time, int) and time >= 0 and bool(self.peek(time))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.h_uuid}: {len(self)} rows, "
            f"{self.status['iterations_done']} batches and "
            f"{self.status['epochs_done']} epochs done>"
        )

    @property
    def h_uuid(self) -> str:
        """The identity of this run as 32 hexadecimal digits."""
        return self.uuid.hex

    @property
    def current_row(self) -> MutableMapping[str, Any]:
        """The row of the present, to be read and written."""
        return self[self.status["iterations_done"]]

    @property
    def previous_row(self) -> MutableMapping[str, Any]:
        """The row of one batch ago.

        Raises
        ------
        ValueError
            If no batch has been done.
        """
        return self[self.status["iterations_done"] - 1]

    @property
    def last_epoch_row(self) -> MutableMapping[str, Any]:
        """The row in which the latest epoch ended.

        Raises
        ------
        ValueError
            If no epoch has ended.
        """
        ends = self.status["_epoch_ends"]
        if not ends:
            raise ValueError(f"{type(self).__name__}.last_epoch_row: no epoch has ended yet.")
        return self[ends[-1]]

    def resume(self) -> None:
        """Begin a new run that continues this one: a new identity, the old one kept beside it."""
        self.status["resumed_from"] = self.h_uuid
        self.uuid = uuid4()

    def forget(self, names: Iterable[str]) -> None:
        """Take records out of the present row.

        Parameters
        ----------
        names : iterable of str
            The names; those that are not there do not matter.
        """
        present = self.status["iterations_done"]
        there = self.peek(present)
        for name in [name for name in names if name in there]:
            del self[present][name]

    # Not abstract: a log in memory has nothing to do here.
    def flush(self) -> None:  # noqa: B027
        """Put on the disk what is held back, in logs that write to it."""

    def times_of(self, name: str, after: int) -> list[int]:
        """Find the times at which a record was written.

        Parameters
        ----------
        name : str
            The name of the record.
        after : int
            Only times later than this one.

        Returns
        -------
        list of int
            The times up to the present, in order.
        """
        present = self.status["iterations_done"]
        return [time for time in range(after + 1, present + 1) if name in self.peek(time)]

    def begin_at(self, state: Mapping[str, Any]) -> None:
        """Begin a new log where the run of another log, of any kind, was.

        Parameters
        ----------
        state : plain data
            What `get_state` of the other log gave. Its status is taken, its records are not.
        """
        own = {name: self.status[name] for name in _LINEAGE if name in self.status}
        taken = decode(state["status"])
        self.status = {n: value for n, value in taken.items() if n not in _LINEAGE} | own

    def _identity(self) -> dict[str, Any]:
        return {"uuid": self.h_uuid, "status": encode(self.status)}

    def _check_kind(self, state: Mapping[str, Any], *parts: str) -> None:
        """Refuse the state of a log of another class, before anything is changed."""
        missing = [part for part in parts if part not in state]
        if missing:
            raise ValueError(
                f"{type(self).__name__}: the state is that of a log of another kind: it has "
                f"{', '.join(state)}, but no {' and no '.join(missing)}. Build the main loop with "
                "the kind of log that it had (`log=`, or the setting `log_backend`), or begin a "
                "new log: `restore(path, ignore=['log'])`, or `run(resume=path, ignore=['log'])`."
            )

    def _set_identity(self, state: Mapping[str, Any]) -> None:
        self.uuid, self.status = UUID(state["uuid"]), decode(state["status"])

    def _checked(self, time: int) -> int:
        if not hasattr(time, "__index__") or isinstance(time, bool) or time < 0:
            raise ValueError(
                f"{type(self).__name__}: a time is a number of batches, an int of at least 0; "
                f"got {time!r}."
            )
        return operator.index(time)


class Row(MutableMapping[str, Any]):
    """A row of a log that must know of every change.

    Parameters
    ----------
    records : dict
        The records, held by the log.
    changed : callable
        Called with the time, the name and all records after one was written or deleted.
    time : int
        The time of the row.
    """

    __slots__ = ("_changed", "_records", "_time")

    def __init__(
        self, records: dict[str, Any], changed: Callable[[int, str, dict], None], time: int
    ) -> None:
        self._records = records
        self._changed = changed
        self._time = time

    def __getitem__(self, name: str) -> Any:
        return self._records[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._records[name] = value
        self._changed(self._time, name, self._records)

    def __delitem__(self, name: str) -> None:
        del self._records[name]
        self._changed(self._time, name, self._records)

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return repr(self._records)


class TrainingLog(dict, TrainingLogBase):
    """A log in memory: a dict from times to rows, which are dicts.

    It lives as long as the main loop and is saved and restored with it.

    Parameters
    ----------
    uuid : UUID, optional
        The identity of this run. A new one by default.
    """

    def __init__(self, uuid: UUID | None = None) -> None:
        dict.__init__(self)
        TrainingLogBase.__init__(self, uuid)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, time: int) -> MutableMapping[str, Any]:
        row = dict.get(self, time)
        if row is None:
            row = {}
            dict.__setitem__(self, self._checked(time), row)
        return row

    def __setitem__(self, time: int, records: Mapping[str, Any]) -> None:
        dict.__setitem__(self, self._checked(time), dict(records))

    def __reduce__(self) -> tuple:
        return type(self), (), self.__dict__, None, iter(list(self.items()))

    __repr__ = TrainingLogBase.__repr__
    __contains__ = dict.__contains__
    __iter__ = dict.__iter__
    __len__ = dict.__len__

    def peek(self, time: int) -> Mapping[str, Any]:
        return dict.get(self, time, _NO_RECORDS)

    def forget(self, names: Iterable[str]) -> None:
        """Take records out of the present row, and the row out of the log if none is left.

        Parameters
        ----------
        names : iterable of str
            The names; those that are not there do not matter.
        """
        super().forget(names)
        present = self.status["iterations_done"]
        if not self.peek(present):
            self.pop(present, None)

    def get_state(self) -> dict[str, Any]:
        """Give the whole log as plain data, for a checkpoint.

        Returns
        -------
        plain data
            The identity, the status, and the records as columns.

        Raises
        ------
        TypeError
            If a record cannot be plain data; the message names it.
        """
        return self._identity() | {"rows": rows_to_columns(self.items())}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take the place of the log that `get_state` was asked of.

        Parameters
        ----------
        state : plain data
            What `get_state` gave. All that this log held is dropped.

        Raises
        ------
        ValueError
            If it is the state of a log in a database, which has no rows.
        """
        self._check_kind(state, "rows")
        rows = columns_to_rows(state["rows"])
        self._set_identity(state)
        self.clear()
        self.update(rows)
