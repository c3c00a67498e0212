"""What a model holds, as a table: its parameters and its statistics, by path."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Summary", "SummaryRow"]


class SummaryRow(NamedTuple):
    """One parameter, or one array of statistics, of a model.

    Parameters
    ----------
    path : str
        Its name in the model, such as ``'/mlp/linear_0.W'``.
    shape : tuple of int
        Its shape.
    size : int
        How many numbers it holds.
    dtype : str
        Of one of them.
    roles : tuple of str
        What it is, such as ``('WEIGHT',)``.
    num_bytes : int
        How much memory its value takes.
    """

    path: str
    shape: tuple[int, ...]
    size: int
    dtype: str
    roles: tuple[str, ...]
    num_bytes: int


class Summary:
    """The parameters of a model and its other persistent arrays. It prints as a table.

    Parameters
    ----------
    parameters : mapping of str to SharedVariable
        By path.
    persistent : mapping of str to SharedVariable
        Those that are saved with the model and not learned, such as statistics of a data set.

    Attributes
    ----------
    parameters, persistent : tuple of SummaryRow
        A row for each.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import MLP, Tanh
    >>> from bricks.model import Model
    >>> model = Model(MLP([Tanh(), None], [64, 256, 10]).apply(tensor.matrix("x")))
    >>> print(model.summary())
    parameters       shape       size  role    dtype
    ---------------  --------  ------  ------  -------
    /mlp/linear_0.W  64 × 256  16,384  WEIGHT  float32
    /mlp/linear_0.b  256          256  BIAS    float32
    /mlp/linear_1.W  256 × 10   2,560  WEIGHT  float32
    /mlp/linear_1.b  10            10  BIAS    float32
    ---------------  --------  ------  ------  -------
    4 parameters               19,210          75.0 KiB
    >>> model.summary().num_parameters
    19210
    """

    def __init__(self, parameters: Mapping[str, Any], persistent: Mapping[str, Any]) -> None:
        self.parameters = tuple(_row(path, one) for path, one in parameters.items())
        self.persistent = tuple(_row(path, one) for path, one in persistent.items())

    @property
    def num_parameters(self) -> int:
        """How many numbers are learned."""
        return sum(row.size for row in self.parameters)

    @property
    def num_bytes(self) -> int:
        """How much memory parameters and persistent arrays take, without the algorithm's."""
        return sum(row.num_bytes for row in (*self.parameters, *self.persistent))

    def sizes_by_role(self) -> dict[str, int]:
        """Say how many numbers are learned in each role.

        Returns
        -------
        dict of str to int
            By the name of the role, in the order of the parameters.
        """
        sizes: dict[str, int] = {}
        for row in self.parameters:
            for role in row.roles:
                sizes[role] = sizes.get(role, 0) + row.size
        return sizes

    def __str__(self) -> str:
        sections = [("parameters", "parameter", self.parameters)]
        if self.persistent:
            sections.append(("persistent", "persistent array", self.persistent))
        lines: list[Sequence[str]] = []
        for title, singular, rows in sections:
            lines += [[], [title, "shape", "size", "role", "dtype"], []]
            lines += map(_cells, rows)
            size = f"{sum(row.size for row in rows):,}"
            memory = _memory(sum(row.num_bytes for row in rows))
            count = f"{len(rows)} {singular}{'' if len(rows) == 1 else 's'}"
            lines += [[], [count, "", size, "", memory]]
        return _table(lines[1:])

    def __repr__(self) -> str:
        return str(self)


def _row(path: str, variable: Any) -> SummaryRow:
    value = variable.get_value(borrow=True)
    roles = tuple(map(repr, getattr(variable.tag, "roles", ())))
    size = math.prod(value.shape)
    return SummaryRow(
        path, tuple(value.shape), size, str(value.dtype), roles, size * value.dtype.itemsize
    )


def _cells(row: SummaryRow) -> list[str]:
    shape = " × ".join(map(str, row.shape)) or "scalar"
    return [row.path, shape, f"{row.size:,}", ", ".join(row.roles), row.dtype]


def _memory(num_bytes: float) -> str:
    """Return a number of bytes in the unit that suits it."""
    if num_bytes < 1024:
        return f"{num_bytes:,.0f} bytes"
    power = min(int(math.log(num_bytes, 1024)), 3)
    return f"{num_bytes / 1024**power:,.1f} {('KiB', 'MiB', 'GiB')[power - 1]}"


def _table(lines: Iterable[Sequence[str]]) -> str:
    """Align cells in columns, sizes to the right. A line without cells becomes a rule."""
    lines = list(lines)
    rows = [line for line in lines if line]
    # What stands last in a row is of no width: the total of the memory may be longer.
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    widths.append(max(len(row[4]) for row in rows if row[4].isalnum()))
    text = []
    for line in lines:
        cells = line or ["-" * width for width in widths]
        aligned = [
            cell.rjust(width) if i == 2 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        text.append("  ".join(aligned).rstrip())
    return "\n".join(text)
