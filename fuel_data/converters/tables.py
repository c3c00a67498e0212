"""Reading a user's arrays from .npy, .npz and CSV files."""

import csv
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from fuel_data.utils.formats import open_
from fuel_data.utils.names import nearest_name

SUFFIXES = (".npy", ".npz", ".csv", ".csv.gz")
# From here on, float64 does not tell whole numbers apart.
LARGEST_WHOLE = 2**53
DIGITS = re.compile(r"\s*[+-]?([0-9]+)\s*")
# So many has the largest uint64.
MAX_DIGITS = 20
# What numpy raises on a file that is not whole, or not what its name says.
DAMAGE = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error)


def read_arrays(
    path: str | os.PathLike[str],
    source: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> dict[str, numpy.ndarray]:
    """Read the arrays in a file.

    Parameters
    ----------
    path : path
        A .npy file is one source, a .npz file one for each of its arrays, a .csv or .csv.gz file
        one for each of its columns.
    source : str, optional
        Name of the source in a .npy file, by default the name of the file.
    columns : dict, optional
        For CSV files: source → its columns, see `read_csv`.

    Returns
    -------
    dict of str to array
        Sources by name. The first axis of each is the examples.

    Raises
    ------
    ValueError
        If the file is of another kind, damaged, or holds what is no array of numbers.
    """
    name = os.fspath(path)
    if not name.endswith(SUFFIXES):
        raise ValueError(f"{name}: expected a file that ends in {', '.join(SUFFIXES)}.")
    if source is not None and not name.endswith(".npy"):
        raise ValueError(
            f"{source}={name}: only a .npy file takes the name of a source from the command; the "
            "arrays of .npz and the columns of CSV files have names."
        )
    if name.endswith(".npy"):
        stem = os.path.basename(name).removesuffix(".npy")
        return {source or stem: _checked(path, source or stem, _load(path))}
    if name.endswith(".npz"):
        return {key: _checked(path, key, values) for key, values in _load_archive(path).items()}
    return read_csv(path, columns)


def _load(path: str | os.PathLike[str]) -> numpy.ndarray:
    try:
        return numpy.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str | os.PathLike[str], error: Exception) -> ValueError:
    # Numpy says of pickled objects that they cannot be mapped, or that they could be allowed.
    if "object" in str(error).lower():
        return ValueError(f"{path} holds Python objects; save arrays of numbers or bytes.")
    return ValueError(f"{path} cannot be read: {error}")


def _load_archive(path: str | os.PathLike[str]) -> dict[str, numpy.ndarray]:
    # Of a damaged archive, numpy would leave the file open if it had opened it.
    with open(path, "rb") as file:
        try:
            with numpy.load(file, allow_pickle=False) as archive:
                return dict(archive)
        except DAMAGE as error:
            raise _unreadable(path, error) from error


def _checked(path: str | os.PathLike[str], source: str, array: numpy.ndarray) -> numpy.ndarray:
    if array.ndim == 0:
        raise ValueError(f"{path}: source {source!r} is one number; it needs an axis of examples.")
    if array.dtype.kind not in "biufcS":
        raise ValueError(
            f"{path}: source {source!r} must hold numbers or bytes; its dtype is {array.dtype}."
        )
    return array


def read_csv(
    path: str | os.PathLike[str], columns: Mapping[str, str] | None = None
) -> dict[str, numpy.ndarray]:
    """Read a table of numbers, whose first line names the columns.

    Parameters
    ----------
    path : path
        The file, in UTF-8, with commas, packed if its name ends in ``.gz``.
    columns : dict, optional
        Source → its columns, as ``'a,b,c'``, or ``'a:c'`` for those from a to c. By default each
        column is a source of its own name. Other columns are not looked at, and may hold text.

    Returns
    -------
    dict of str to array of shape (example, column)
        int64 if all numbers of the source are whole, or uint64 if only that holds them; otherwise
        float64. Numbers from 2**53 on are whole if they are written in digits alone, 1e17 is not.

    Raises
    ------
    ValueError
        If a name is not known or stands twice, if a cell is no number, or if whole numbers fit
        into no dtype.
    """
    try:
        return _read_table(path, columns)
    except (UnicodeDecodeError, csv.Error, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}.") from error


def _read_table(
    path: str | os.PathLike[str], columns: Mapping[str, str] | None
) -> dict[str, numpy.ndarray]:
    names = _read_names(path)
    chosen = {name: [name] for name in names}
    if columns is not None:
        chosen = {key: _choose(path, names, text) for key, text in columns.items()}
    # The columns that are read, as numbers, in the order of the file.
    used = sorted({names.index(name) for of_source in chosen.values() for name in of_source})
    table = _read_numbers(path, names, used)
    places = {names[column]: place for place, column in enumerate(used)}
    found = {}
    for source, of_source in chosen.items():
        values = table[:, [places[name] for name in of_source]]
        is_whole = bool((values == numpy.floor(values)).all())
        if is_whole and (numpy.abs(values) < LARGEST_WHOLE).all():
            values = values.astype(numpy.int64)
        elif is_whole:
            values = _read_whole(path, source, [names.index(name) for name in of_source], values)
        found[source] = values
    return found


def _read_names(path: str | os.PathLike[str]) -> list[str]:
    with open_(path, encoding="utf-8-sig") as file:
        names = next(csv.reader(file), [])
    _check_header(path, names)
    return names


def _read_numbers(
    path: str | os.PathLike[str], names: Sequence[str], used: Sequence[int]
) -> numpy.ndarray:
    """Read the columns of these numbers, as float64."""
    part: dict[str, Any] = {"usecols": used} if len(used) < len(names) else {}
    # Of a part of the columns, numpy does not look at the number of cells.
    wrong = _bad_cell(path, names, used) if part else None
    if wrong is not None:
        raise ValueError(wrong)
    with open_(path, encoding="utf-8-sig") as file:
        next(csv.reader(file))
        try:
            with warnings.catch_warnings():
                # A file without lines gets an error instead of a warning.
                warnings.simplefilter("ignore", UserWarning)
                table = numpy.loadtxt(
                    file, delimiter=",", comments=None, quotechar='"', ndmin=2, **part
                )
        except UnicodeDecodeError:
            raise
        except ValueError as error:
            raise ValueError(_bad_cell(path, names, used) or f"{path}: {error}") from error
    if table.size == 0:
        raise ValueError(f"{path} has no lines after the names of the columns.")
    if table.shape[1] != len(used):
        raise ValueError(
            f"{path}: the first line names {len(names)} columns, the others have {table.shape[1]}."
        )
    return table


def _rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Give the number of each line after the first that has cells, and its cells."""
    with open_(path, encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        next(reader)
        for cells in reader:
            if cells:
                yield reader.line_num, cells


def _read_whole(
    path: str | os.PathLike[str], source: str, columns: Sequence[int], values: numpy.ndarray
) -> numpy.ndarray:
    """Read whole numbers that float64 rounds, of which `values` are."""
    rows: list[list[Any]] = []
    for (_, cells), rounded in zip(_rows(path), values.tolist(), strict=True):
        pairs = zip(columns, rounded, strict=True)
        rows.append([_whole(cells[column], value) for column, value in pairs])
    if any(number is None for row in rows for number in row):
        return values
    low, high = min(min(row) for row in rows), max(max(row) for row in rows)
    for dtype in (numpy.int64, numpy.uint64):
        if numpy.iinfo(dtype).min <= low and high <= numpy.iinfo(dtype).max:
            return numpy.array(rows, dtype)
    raise ValueError(
        f"{path}: neither int64 nor uint64 holds the whole numbers of source {source!r}, which go "
        f"from {low:.6g} to {high:.6g}. Write them with an exponent, as 1e20, if they may be "
        "rounded to float64, or leave the column out by --columns."
    )


def _whole(cell: str, value: float) -> int | float | None:
    """Give the whole number in a cell, None if it is one that is meant to be rounded."""
    digits = DIGITS.fullmatch(cell)
    if digits is None:
        return int(value) if abs(value) < LARGEST_WHOLE else None
    # More of them take long, and fit nowhere.
    return int(cell) if len(digits[1].lstrip("0")) <= MAX_DIGITS else value


def _check_header(path: str | os.PathLike[str], names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path}: the first line has twice {', '.join(map(repr, twice))}.")
    if not all(names) or any("\0" in name for name in names):
        raise ValueError(f"{path}: the first line must name every column; it is {names}.")
    if not names or all(_is_number(name) for name in names):
        raise ValueError(f"{path}: the first line must name the columns; it is {names}.")


def _choose(path: str | os.PathLike[str], names: Sequence[str], text: str) -> list[str]:
    ends = text.split(":") if ":" in text and text not in names else []
    for name in ends or text.split(","):
        if name not in names:
            raise ValueError(f"{path} has no column {name!r}.{nearest_name(name, names)}")
    if not ends:
        return text.split(",")
    first, last = names.index(ends[0]), names.index(ends[-1])
    if len(ends) != 2 or first > last:
        raise ValueError(f"{path}: columns from one to another are 'first:last'; got {text!r}.")
    return list(names[first : last + 1])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _bad_cell(
    path: str | os.PathLike[str], names: Sequence[str], used: Sequence[int]
) -> str | None:
    """Say which cell of the columns is no number: numpy's error counts from another line."""
    for line, cells in _rows(path):
        if len(cells) != len(names):
            return (
                f"{path}, line {line}: {len(cells)} cells, and the first line names "
                f"{len(names)} columns."
            )
        for column in used:
            if not _is_number(cells[column]):
                return (
                    f"{path}, line {line}: column {names[column]!r} must hold numbers; got "
                    f"{cells[column]!r}. Write a number for each category, or leave the column out "
                    "by --columns."
                )
    return None
