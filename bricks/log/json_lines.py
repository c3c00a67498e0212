"""A log that is also a text file, one line of JSON per row, to be followed while training runs.

Every line is a JSON object (RFC 8259): ``iterations_done`` and the records of that time. Numbers
that JSON cannot hold as they are (``float32``, arrays, ``nan``) stand as plain numbers, lists or
strings, and ``_types`` says what they were, so that `JSONLinesLog.read` gives back the same bits::

    {"iterations_done": 12, "cost": 0.25, "_types": {"cost": "<f4"}}

A row is written in one piece, and flushed, when training has gone on to the next batch, at the end
of an epoch, or when the log is flushed; ``tail -f`` shows it then. Records that come later to a row
that was already written make a second line of that time, which holds only these; ``_removed`` names
records that were deleted. The first line of the file says which log it is.

When a run is resumed from a checkpoint, the lines that a killed run wrote after that checkpoint are
cut off, so that no row is lost and none stands there twice.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy

from bricks.log.base import _NO_RECORDS, Row, TrainingLog, TrainingLogBase
from bricks.log.plain import columns_to_rows, decode, encode, rows_to_columns

logger = logging.getLogger(__name__)

_TIME = "iterations_done"
_TYPES = "_types"
_REMOVED = "_removed"
_RESERVED = (_TIME, _TYPES, _REMOVED)
_ARRAY = "__array__"
_NOT_FINITE = "__float__"


class JSONLinesLog(TrainingLogBase):
    """A log in memory and in a file with one line of JSON per row.

    Parameters
    ----------
    path : path
        The file. It is made by the first row; a file of another run that stands there is renamed
        to ``<path>.1`` (or the next number that is free).
    uuid : UUID, optional
        The identity of this run. A new one by default.
    """

    def __init__(
        self, path: str | os.PathLike[str] = "training_log.jsonl", uuid: UUID | None = None
    ) -> None:
        super().__init__(uuid)
        self.path = Path(path).absolute()
        self._rows: dict[int, dict[str, Any]] = {}
        # By time, the names of the records that the file does not show as they are; a dict of None
        # because it keeps their order.
        self._unwritten: dict[int, dict[str, None]] = {}
        self._latest_unwritten = -1
        self._attached = False
        self._file_id = self.h_uuid
        self._offset = 0

    def __getitem__(self, time: int) -> MutableMapping[str, Any]:
        time = self._checked(time)
        if self._latest_unwritten < time:
            self._write_before(time)
        return Row(self._rows.setdefault(time, {}), self._note_change, time)

    def __iter__(self) -> Iterator[int]:
        return (time for time, records in self._rows.items() if records)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_attached": False}

    def peek(self, time: int) -> Mapping[str, Any]:
        if self._unwritten and self._latest_unwritten < time:
            self._write_before(time)
        return self._rows.get(time, _NO_RECORDS)

    def flush(self) -> None:
        """Write all rows to the file, also that of the present."""
        self._write_before(self._latest_unwritten + 1)

    def resume(self) -> None:
        """Begin a new run that continues this one, in the same file."""
        super().resume()
        self._attached = False

    def get_state(self) -> dict[str, Any]:
        """Give the whole log as plain data, for a checkpoint.

        Returns
        -------
        plain data
            The identity, the status, the records as columns, and how far the file shows them.

        Raises
        ------
        TypeError
            If a record cannot be plain data; the message names it.
        """
        return self._identity() | {
            "rows": rows_to_columns(self._rows.items()),
            "file_id": self._file_id,
            "offset": self._offset,
            "unwritten": [[time, list(names)] for time, names in self._unwritten.items()],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take the place of the log that `get_state` was asked of.

        Lines that its file got later are cut off when the next row is written.

        Parameters
        ----------
        state : plain data
            What `get_state` gave. All that this log held in memory is dropped; `path` stays.

        Raises
        ------
        ValueError
            If it is the state of a log of another kind.
        """
        self._check_kind(state, "rows", "file_id")
        rows = columns_to_rows(state["rows"])
        self._set_identity(state)
        self._attached = False
        self._rows = rows
        self._file_id = state["file_id"]
        self._offset = int(state["offset"])
        self._unwritten = {int(time): dict.fromkeys(names) for time, names in state["unwritten"]}
        self._latest_unwritten = max(self._unwritten, default=-1)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> TrainingLog:
        """Read the file of such a log, also while training runs.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        TrainingLog
            The rows, with the types that were logged; the status is not in the file. A last line
            that is not whole yet is left out.

        Raises
        ------
        ValueError
            If this is not the file of such a log.
        """
        log = TrainingLog()
        lines = Path(path).read_bytes().splitlines(keepends=True)
        if not lines or _header_id(lines[0]) is None:
            raise ValueError(f"JSONLinesLog.read: {path} is not the file of a JSONLinesLog.")
        for line in lines[1:]:
            if line.endswith(b"\n"):
                _read_line(line, log)
        return log

    def _note_change(self, time: int, name: str, records: dict[str, Any]) -> None:
        self._unwritten.setdefault(time, {})[name] = None
        self._latest_unwritten = max(self._latest_unwritten, time)

    def _write_before(self, time: int) -> None:
        due = sorted(done for done in self._unwritten if done < time)
        if not due:
            return
        lines = b"".join(self._line(done, self._unwritten[done]) for done in due)
        if not self._attached:
            self._attach()
        # Unbuffered: one call writes all, so that a reader does not see half of it for long.
        with open(self.path, "ab", buffering=0) as file:
            file.write(lines)
        self._offset += len(lines)
        for done in due:
            del self._unwritten[done]
        self._latest_unwritten = max(self._unwritten, default=-1)

    def _line(self, time: int, names: Mapping[str, None]) -> bytes:
        records = self._rows.get(time, _NO_RECORDS)
        line: dict[str, Any] = {_TIME: time}
        types = {}
        for name in names:
            if name in _RESERVED:
                raise ValueError(f"JSONLinesLog: {name!r} cannot be the name of a record.")
            if name in records:
                line[name], kind = _value_to_json(records[name])
                if kind is not None:
                    types[name] = kind
        removed = [name for name in names if name not in records]
        line |= ({_TYPES: types} if types else {}) | ({_REMOVED: removed} if removed else {})
        return json.dumps(line, allow_nan=False).encode() + b"\n"

    def _attach(self) -> None:
        """Make the file hold exactly the lines that were written by this log."""
        known = _file_id(self.path)
        if known is not None and known != self._file_id:
            _move_aside(self.path)
            known = None
        if known is None or self.path.stat().st_size < self._offset or not self._offset:
            self._write_again()
        os.truncate(self.path, self._offset)
        self._attached = True

    def _write_again(self) -> None:
        header = {"format": "firebrick log 1", "log": self._file_id}
        lines = [json.dumps(header).encode() + b"\n"]
        for time, records in self._rows.items():
            names = {name: None for name in records if name not in self._unwritten.get(time, ())}
            if names:
                lines.append(self._line(time, names))
        content = b"".join(lines)
        self.path.write_bytes(content)
        self._offset = len(content)


def _file_id(path: Path) -> str | None:
    """Identity of the log in a file: '' if it is none, None if there is no file or no content."""
    try:
        with open(path, "rb") as file:
            first = file.readline()
    except FileNotFoundError:
        return None
    return (_header_id(first) or "") if first else None


def _header_id(line: bytes) -> str | None:
    try:
        header = json.loads(line)
    except ValueError:
        return None
    return header.get("log") if isinstance(header, dict) else None


def _move_aside(path: Path) -> None:
    number = 1
    while (aside := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    path.rename(aside)
    logger.info("%s belonged to another run and was renamed to %s.", path, aside)


def _value_to_json(value: Any) -> tuple[Any, str | None]:
    """Give a value as JSON for people, and what it was if that does not show."""
    if isinstance(value, numpy.ndarray | numpy.generic) and _is_number(value.dtype):
        shape = "" if isinstance(value, numpy.generic) else str(list(value.shape))
        wide = value.astype(numpy.float64) if value.dtype.kind == "f" else value
        return _finite(wide.tolist()), value.dtype.str + shape
    if type(value) is float and not numpy.isfinite(value):
        return str(value), "float"
    plain = encode(value)
    if plain is None or type(plain) in (bool, int, float, str):
        return plain, None
    return _plain_to_json(plain), "plain"


def _plain_to_json(plain: Any) -> Any:
    if isinstance(plain, numpy.ndarray):
        content = {"dtype": plain.dtype.str, "shape": plain.shape, "bytes": plain.tobytes().hex()}
        return {_ARRAY: content}
    if isinstance(plain, list):
        return [_plain_to_json(item) for item in plain]
    if isinstance(plain, dict):
        return {key: _plain_to_json(item) for key, item in plain.items()}
    if isinstance(plain, float) and not numpy.isfinite(plain):
        return {_NOT_FINITE: str(plain)}
    return plain


def _is_number(dtype: numpy.dtype) -> bool:
    # JSON numbers are doubles: they hold every value of the smaller kinds, and no long double.
    return dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize <= 8)


def _finite(values: Any) -> Any:
    if isinstance(values, list):
        return [_finite(value) for value in values]
    if isinstance(values, float) and not numpy.isfinite(values):
        return str(values)
    return values


def _value_from_json(value: Any, kind: str | None) -> Any:
    if kind is None:
        return value
    if kind == "float":
        return float(value)
    if kind == "plain":
        return decode(_plain_from_json(value))
    dtype, bracket, _ = kind.partition("[")
    shape = json.loads(kind[len(dtype) :]) if bracket else ()
    wide = numpy.array(value, dtype=numpy.float64 if "f" in dtype else dtype)
    array = wide.astype(dtype).reshape(shape)
    return array if bracket else array[()]


def _plain_from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _NOT_FINITE in value:
        return float(value[_NOT_FINITE])
    if _ARRAY in value:
        content = value[_ARRAY]
        flat = numpy.frombuffer(bytes.fromhex(content["bytes"]), dtype=content["dtype"])
        return flat.reshape(content["shape"]).copy()
    return {key: _plain_from_json(item) for key, item in value.items()}


def _read_line(line: bytes, log: TrainingLog) -> None:
    records = json.loads(line)
    row = log[records.pop(_TIME)]
    types = records.pop(_TYPES, {})
    for name in records.pop(_REMOVED, ()):
        row.pop(name, None)
    for name, value in records.items():
        row[name] = _value_from_json(value, types.get(name))
