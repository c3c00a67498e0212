"""A log in an SQLite database, which several runs can share and others can read meanwhile.

Two tables: ``entries(uuid, time, key, value, type)`` and ``status(uuid, key, value)``, with the
identity of a run as hexadecimal digits. Ints, floats and strings stand in `value` as they are.
``type`` says what else a value was: the dtype of a numpy scalar (`value` is its number), ``npy``
(`value` holds the bytes of an ``.npy`` file), ``json`` (`value` is JSON text). Nothing is pickled.

What is logged is held in memory and written in one short transaction: when a batch is done and
the last writing is `flush_seconds` ago, at the end of every epoch, when a checkpoint is made, and
when training ends or fails. A kill loses at most the records since then, and never a part of a
transaction; the run then goes on from its checkpoint, which wrote all before it.

A resumed run has a new identity and reads what the runs before it wrote, up to the point at which
each of them was resumed. What a killed run wrote beyond its last checkpoint stays in the database
under its own identity and is not seen by the run that continues it.
"""

import base64
import contextlib
import io
import json
import os
import sqlite3
import time as clock
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy

from bricks.log.base import _NO_RECORDS, Row, TrainingLogBase
from bricks.log.plain import decode, encode

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    uuid TEXT NOT NULL, time INTEGER NOT NULL, key TEXT NOT NULL, value, type TEXT,
    PRIMARY KEY (uuid, time, key)
);
CREATE TABLE IF NOT EXISTS status (
    uuid TEXT NOT NULL, key TEXT NOT NULL, value TEXT, PRIMARY KEY (uuid, key)
);
"""

# The runs that the present one continues, with the time up to which (exclusive) each one counts.
_LINEAGE = """
WITH RECURSIVE lineage (uuid, until, age) AS (
    SELECT :uuid, 9223372036854775807, 0
    UNION ALL
    SELECT json_extract(origin.value, '$'), min(until, json_extract(since.value, '$')), age + 1
    FROM lineage
    JOIN status AS origin ON origin.uuid = lineage.uuid AND origin.key = 'resumed_from'
    JOIN status AS since ON since.uuid = lineage.uuid AND since.key = '_resumed_at'
    WHERE json_type(origin.value) = 'text'
)
"""


class SQLiteLog(TrainingLogBase):
    """A log in an SQLite database.

    Parameters
    ----------
    database : path, optional
        The file of the database, which is made if it is missing. By default the setting
        ``sqlite_database``.
    flush_seconds : float
        How often to write, at most, while batches are processed.
    uuid : UUID, optional
        The identity of this run. A new one by default.
    """

    def __init__(
        self,
        database: str | os.PathLike[str] | None = None,
        flush_seconds: float = 1.0,
        uuid: UUID | None = None,
    ) -> None:
        super().__init__(uuid)
        if database is None:
            from bricks.config import config

            database = config.sqlite_database
        self.database = Path(database).expanduser().absolute()
        self.flush_seconds = flush_seconds
        self.status["_resumed_at"] = 0
        self._connection: sqlite3.Connection | None = None
        # Rows that were written to by this run and of which all records are known.
        self._rows: dict[int, dict[str, Any]] = {}
        self._unwritten: dict[tuple[int, str], dict[str, Any]] = {}
        # No row of the database is later than this one.
        self._latest_stored = -1
        self._last_flush = clock.monotonic()
        self._must_be_stored = False

    def __getstate__(self) -> dict[str, Any]:
        self.flush()
        kept = self._kept_rows()
        return self.__dict__ | {"_connection": None, "_rows": kept, "_last_flush": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._last_flush = clock.monotonic()
        self._must_be_stored = True

    def __getitem__(self, time: int) -> MutableMapping[str, Any]:
        time = self._checked(time)
        self._flush_when_due(time)
        if time not in self._rows:
            stored = self._stored_row(time) if time <= self._latest_stored else {}
            self._rows[time] = stored
        return Row(self._rows[time], self._note_change, time)

    def __iter__(self) -> Iterator[int]:
        self.flush()
        query = _LINEAGE + "SELECT DISTINCT time FROM entries JOIN lineage USING (uuid) "
        query += "WHERE time < until ORDER BY time"
        return iter([time for (time,) in self._query(query)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def peek(self, time: int) -> Mapping[str, Any]:
        self._flush_when_due(time)
        if time in self._rows:
            return self._rows[time]
        return self._stored_row(time) if time <= self._latest_stored else _NO_RECORDS

    def times_of(self, name: str, after: int) -> list[int]:
        self.flush()
        query = _LINEAGE + "SELECT DISTINCT time FROM entries JOIN lineage USING (uuid) "
        query += "WHERE time < until AND time > :after AND time <= :present AND key = :name "
        query += "ORDER BY time"
        present = self.status["iterations_done"]
        return [t for (t,) in self._query(query, after=after, present=present, name=name)]

    def flush(self) -> None:
        """Write all that is held in memory, and the status, in one transaction.

        Raises
        ------
        OSError
            If the database cannot be written.
        ValueError
            If this log was restored or unpickled, and its database does not hold its rows.
        """
        self._last_flush = clock.monotonic()
        if self._must_be_stored:
            # Or the run would be in this database from now on, without its rows.
            self._check_stored(self.uuid)
            self._must_be_stored = False
        with self._transaction() as connection:
            for (time, name), records in self._unwritten.items():
                self._write_record(connection, time, name, records)
            status = [
                (self.h_uuid, key, _to_json(encode(value))) for key, value in self.status.items()
            ]
            connection.executemany("INSERT OR REPLACE INTO status VALUES (?, ?, ?)", status)
        self._latest_stored = max([self._latest_stored, *(time for time, _ in self._unwritten)])
        self._unwritten.clear()
        self._rows = self._kept_rows()

    def resume(self) -> None:
        """Begin a new run that continues this one: its rows before the present one are kept.

        Raises
        ------
        ValueError
            If the database does not hold the run that is to be continued.
        """
        if self._must_be_stored or self._unwritten:
            self.flush()
        present = self.status["iterations_done"]
        row = dict(self.peek(present))
        super().resume()
        self.status["_resumed_at"] = present
        self._rows = {present: row}
        self._unwritten = {(present, name): row for name in row}
        self.flush()

    def get_state(self) -> dict[str, Any]:
        """Give what a checkpoint needs to find the rest of the log in the database.

        Returns
        -------
        plain data
            The identity, the status, the database and the present row. The rows before it are not
            copied: they are in the database.
        """
        self.flush()
        row = dict(self.peek(self.status["iterations_done"]))
        return self._identity() | {"database": str(self.database), "row": encode(row)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take the place of the log that `get_state` was asked of.

        Parameters
        ----------
        state : plain data
            What `get_state` gave. `database` stays the one that this log was given.

        Raises
        ------
        ValueError
            If it is the state of a log of another kind, or the database does not hold the rows.
        """
        self._check_kind(state, "row")
        self._check_stored(UUID(state["uuid"]))
        row = decode(state["row"])
        self._set_identity(state)
        self._rows = {self.status["iterations_done"]: row}
        self._unwritten = {}
        self._latest_stored = self.status["iterations_done"]
        self._must_be_stored = True

    def _check_stored(self, uuid: UUID) -> None:
        query = "SELECT count(*) FROM status WHERE uuid = :uuid"
        if not self.database.exists() or not self._query(query, uuid=uuid.hex)[0][0]:
            raise ValueError(
                f"SQLiteLog: {self.database} does not hold the run {uuid.hex} that is to be "
                "continued. Put the database there, or begin a new log: "
                "`restore(path, ignore=['log'])`, or `run(resume=path, ignore=['log'])`."
            )

    def _note_change(self, time: int, name: str, records: dict[str, Any]) -> None:
        self._unwritten[time, name] = records

    def _flush_when_due(self, time: int) -> None:
        # Only a time that is new says that the rows before it are done.
        if self._unwritten and time not in self._rows and time > self._latest_stored:
            now = clock.monotonic()
            if now - self._last_flush > self.flush_seconds:
                self.flush()

    def _kept_rows(self) -> dict[int, dict[str, Any]]:
        present = self.status["iterations_done"]
        return {time: row for time, row in self._rows.items() if time >= present - 1}

    def _stored_row(self, time: int) -> dict[str, Any]:
        query = _LINEAGE + "SELECT key, value, type FROM entries JOIN lineage USING (uuid) "
        query += "WHERE time = :time AND time < until ORDER BY age DESC, entries.rowid"
        records = self._query(query, time=time)
        return {key: _value_from_columns(value, kind) for key, value, kind in records}

    def _write_record(
        self, connection: sqlite3.Connection, time: int, name: str, records: dict[str, Any]
    ) -> None:
        if name in records:
            value, kind = _value_to_columns(records[name])
            entry = (self.h_uuid, time, name, value, kind)
            connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", entry)
        else:
            where = "DELETE FROM entries WHERE uuid = ? AND time = ? AND key = ?"
            connection.execute(where, (self.h_uuid, time, name))

    def _query(self, query: str, **arguments: Any) -> list[tuple]:
        with self._transaction() as connection:
            return connection.execute(query, {"uuid": self.h_uuid} | arguments).fetchall()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._connection is None:
                # The loop may run in another thread than the one that made the log.
                self._connection = sqlite3.connect(
                    self.database, timeout=60, check_same_thread=False
                )
                self._connection.executescript(_SCHEMA)
            with self._connection as connection:
                yield connection
        except sqlite3.Error as error:
            raise OSError(f"SQLiteLog: {self.database} cannot be used: {error}.") from error


def _value_to_columns(value: Any) -> tuple[Any, str | None]:
    """Give a value as SQLite stores it, and what it was if that does not show."""
    if type(value) in (int, float, str) and _is_stored_as_it_is(value):
        return value, None
    if isinstance(value, numpy.generic) and value.dtype.kind in "biuf" and value.itemsize <= 8:
        number = value.item()
        if _is_stored_as_it_is(number):
            return number, value.dtype.str
    if isinstance(value, numpy.ndarray) and value.dtype != object:
        buffer = io.BytesIO()
        numpy.save(buffer, value, allow_pickle=False)
        return buffer.getvalue(), "npy"
    return _to_json(encode(value)), "json"


def _is_stored_as_it_is(value: Any) -> bool:
    # SQLite turns nan into NULL and has ints of 64 bits only.
    if isinstance(value, float):
        return value == value
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _value_from_columns(value: Any, kind: str | None) -> Any:
    if kind is None:
        return value
    if kind == "json":
        return decode(_from_json(value))
    if kind == "npy":
        return numpy.load(io.BytesIO(value), allow_pickle=False)
    return numpy.dtype(kind).type(value)


def _to_json(plain: Any) -> str:
    return json.dumps(plain, default=_array_to_json)


def _array_to_json(array: numpy.ndarray) -> dict[str, str]:
    buffer = io.BytesIO()
    numpy.save(buffer, array, allow_pickle=False)
    return {"__npy__": base64.b64encode(buffer.getvalue()).decode()}


def _from_json(text: str) -> Any:
    return json.loads(text, object_hook=_array_from_json)


def _array_from_json(item: dict[str, Any]) -> Any:
    if item.keys() != {"__npy__"}:
        return item
    content = base64.b64decode(item["__npy__"])
    return numpy.load(io.BytesIO(content), allow_pickle=False)
