"""Log values as plain data and back, without losing a type or a bit.

Plain data has arrays, but neither numpy's scalars nor tuples. A value that has these is written as
a dict with one key that says what it was; `decode` gives back exactly what `encode` was given.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import numpy

_SCALAR = "__scalar__"
_TUPLE = "__tuple__"
_MAPPING = "__mapping__"
_UUID = "__uuid__"
_TAGS = {_SCALAR, _TUPLE, _MAPPING, _UUID}


def encode(value: Any) -> Any:
    """Give a value of a log as plain data.

    Parameters
    ----------
    value : None, bool, int, float, str, UUID, array, numpy scalar, or list, tuple, dict of them
        Arrays and numpy scalars have any dtype but object.

    Returns
    -------
    plain data
        What `decode` turns back into `value`, types included.

    Raises
    ------
    TypeError
        If `value` holds anything else.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, numpy.generic) and value.dtype != object:
        return {_SCALAR: numpy.asarray(value)}
    if isinstance(value, numpy.ndarray) and value.dtype != object:
        return value
    if isinstance(value, UUID):
        return {_UUID: value.hex}
    if isinstance(value, tuple):
        return {_TUPLE: [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return _encode_mapping(value)
    raise TypeError(
        f"a {type(value).__name__} cannot be saved: log numbers, strings, arrays, or lists, tuples "
        f"and dicts of them; got {value!r}."
    )


def _encode_mapping(value: Mapping) -> dict:
    if all(type(key) is str for key in value) and not _TAGS.intersection(value):
        return {key: encode(item) for key, item in value.items()}
    return {_MAPPING: [[encode(key), encode(item)] for key, item in value.items()]}


def decode(plain: Any) -> Any:
    """Give back the value that `encode` made plain.

    Parameters
    ----------
    plain : plain data
        What `encode` gave.

    Returns
    -------
    object
        The value, with its types.
    """
    if isinstance(plain, list):
        return [decode(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        (tag, content) = next(iter(plain.items()))
        if tag == _SCALAR:
            return content[()]
        if tag == _TUPLE:
            return tuple(decode(item) for item in content)
        if tag == _UUID:
            return UUID(content)
        if tag == _MAPPING:
            return {decode(key): decode(item) for key, item in content}
    return {key: decode(item) for key, item in plain.items()}


def rows_to_columns(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """Give rows as columns, so that a long log is a few arrays and not many small ones.

    Parameters
    ----------
    rows : iterable of (int, mapping from str)
        Times and their records.

    Returns
    -------
    plain data
        ``times``, an int64 array of shape (row,); ``layouts``, the lists of names that rows have;
        ``layout``, an array of shape (row,) that says which one; and ``columns``, for each name
        its values in the order of the rows that have it: one array of shape (value,) where all
        are numbers of one kind, otherwise a list.

    Raises
    ------
    TypeError
        If a value cannot be plain data; the message names the record and the time.
    """
    filled = [(time, records) for time, records in rows if records]
    layouts: dict[tuple[str, ...], int] = {}
    layout = [layouts.setdefault(tuple(records), len(layouts)) for _, records in filled]
    columns: dict[str, list[tuple[int, Any]]] = {}
    for time, records in filled:
        for name, value in records.items():
            columns.setdefault(name, []).append((time, value))
    return {
        "times": numpy.array([time for time, _ in filled], dtype=numpy.int64),
        "layouts": [list(names) for names in layouts],
        "layout": numpy.array(layout, dtype=numpy.int64),
        "columns": {name: _column(name, column) for name, column in columns.items()},
    }


def _column(name: str, column: list[tuple[int, Any]]) -> dict[str, Any]:
    values = [value for _, value in column]
    kinds = {_kind(value) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind == "float":
        return {"kind": kind, "values": numpy.array(values, dtype=numpy.float64)}
    if kind == "bool":
        return {"kind": kind, "values": numpy.array(values, dtype=bool)}
    if kind == "int" and all(-(2**63) <= value < 2**63 for value in values):
        return {"kind": kind, "values": numpy.array(values, dtype=numpy.int64)}
    if kind is not None and kind.startswith("scalar"):
        return {"kind": "scalar", "values": numpy.array(values, dtype=values[0].dtype)}
    encoded = []
    for time, value in column:
        try:
            encoded.append(encode(value))
        except TypeError as error:
            raise TypeError(f"record {name!r} at time {time}: {error}") from None
    return {"kind": "any", "values": encoded}


def _kind(value: Any) -> str | None:
    if type(value) in (bool, int, float):
        return type(value).__name__
    # Strings and dates keep their own dtype; only numbers stack without being changed.
    if isinstance(value, numpy.generic) and value.dtype.kind in "biufc":
        return f"scalar {value.dtype.str}"
    return None


def columns_to_rows(state: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Give back the rows that `rows_to_columns` turned into columns.

    Parameters
    ----------
    state : plain data
        What `rows_to_columns` gave.

    Returns
    -------
    dict of int to dict
        Times and their records, in their order.
    """
    columns = {name: iter(_values(column)) for name, column in state["columns"].items()}
    times, layout = state["times"].tolist(), state["layout"].tolist()
    return {
        time: {name: next(columns[name]) for name in state["layouts"][number]}
        for time, number in zip(times, layout, strict=True)
    }


def _values(column: Mapping[str, Any]) -> list[Any]:
    if column["kind"] == "any":
        return [decode(value) for value in column["values"]]
    if column["kind"] == "scalar":
        return list(column["values"])
    return column["values"].tolist()
