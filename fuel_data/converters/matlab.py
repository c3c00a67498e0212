"""Reading MATLAB's files of versions 5 to 7 (``.mat``): numbers, text, cells and structures.

Such a file is a header of 128 bytes and a list of elements: eight bytes that tell type and size,
and then the content. A variable is an element of elements (flags, sizes, name, values), packed by
zlib as a rule. Sizes are compared with what the file can hold before memory is taken.
"""

import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy

HEADER = 128
PIECE = 2**20
#: No packed byte gives more than this many.
EXPANSION = 1032
DEPTH = 8
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, CHAR = 1, 2, 4
#: Type of stored values → their dtype.
STORED = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
    16: "u1",
    17: "u2",
    18: "u4",
}
#: Class of a variable → its dtype; values may be stored in a smaller one.
CLASSES = {
    6: "f8",
    7: "f4",
    8: "i1",
    9: "u1",
    10: "i2",
    11: "u2",
    12: "i4",
    13: "u4",
    14: "i8",
    15: "u8",
}
TEXTS = {1: "latin1", 2: "latin1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}


def read_mat(
    path: str | os.PathLike[str], shapes: Mapping[str, Sequence[int | None]]
) -> dict[str, numpy.ndarray]:
    """Read arrays of numbers from a file.

    Parameters
    ----------
    path : path
        The file.
    shapes : mapping of str to sequence of int or None
        Name of the variable → its shape, with None for an axis of any size.

    Returns
    -------
    dict of str to array
        The variables, in Fortran's order, as MATLAB keeps them.

    Raises
    ------
    ValueError
        If the file is damaged, cut short or of another format, or if a variable is missing, has
        another shape or is no array of numbers.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        return _read_variables(file, os.path.getsize(path), name, shapes)


def read_mat_structures(content: IO[bytes], size: int, name: str, variable: str) -> list[dict]:
    """Read an array of structures from a file.

    Parameters
    ----------
    content : file open for bytes
        The file.
    size : int
        Its number of bytes.
    name : str
        What to call it in errors.
    variable : str
        Name of the variable.

    Returns
    -------
    list of dict
        For each structure, field → array, str, or list of them.

    Raises
    ------
    ValueError
        As for `read_mat`.
    """
    found = _read_variables(content, size, name, {variable: None})[variable]
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ValueError(f"{name}: the variable {variable!r} must be an array of structures.")
    return found


def _read_variables(file: IO[bytes], size: int, name: str, shapes: Mapping[str, Any]) -> dict:
    try:
        found = dict(_wanted(file, size, shapes))
    except (_Damage, zlib.error, UnicodeDecodeError, MemoryError) as error:
        raise ValueError(
            f"{name} cannot be read as a MATLAB file of version 5 to 7: {error}. Fetch it again."
        ) from error
    missing = [variable for variable in shapes if variable not in found]
    if missing:
        raise ValueError(f"{name}: expected the variables {', '.join(missing)}, which it lacks.")
    return found


class _Damage(Exception):
    pass


class _Bytes:
    """The content of an element, of which no more is given than it says it has."""

    def __init__(self, file: Any, size: int, order: str) -> None:
        self.file, self.left, self.order = file, size, order

    def read(self, size: int) -> bytes:
        if size > self.left:
            raise _Damage(f"an element ends after {self.left:,} of {size:,} bytes")
        self.left -= size
        content = self.file.read(size)
        if len(content) != size:
            raise _Damage("it is cut short")
        return content

    def numbers(self, code: str, size: int) -> tuple[int, ...]:
        content = self.read(size)
        count = size // struct.calcsize(code)
        return struct.unpack_from(f"{self.order}{count}{code}", content)

    def skip(self) -> None:
        while self.left:
            self.read(min(self.left, PIECE))

    def element(self) -> tuple[int, "_Bytes", int]:
        """Give the type of the next element, its content, and the bytes that pad it."""
        (first,) = self.numbers("I", 4)
        if first >> 16:
            # A small element: its size in the upper half, its content in the next four bytes.
            if first >> 16 > 4:
                raise _Damage(f"a small element of {first >> 16} bytes")
            return first & 0xFFFF, self.part(first >> 16), 4 - (first >> 16)
        (size,) = self.numbers("I", 4)
        return first, self.part(size), -size % 8 if first != COMPRESSED else 0

    def part(self, size: int) -> "_Bytes":
        if size > self.left:
            raise _Damage(f"an element of {size:,} bytes where {self.left:,} are left")
        return _Bytes(self, size, self.order)

    def small(self, limit: int = 2**16) -> tuple[int, bytes]:
        """Read the next element whole."""
        kind, content, padding = self.element()
        if content.left > limit:
            raise _Damage(f"{content.left:,} bytes for a name or a size")
        value = content.read(content.left)
        self.read(min(padding, self.left))
        return kind, value


class _Unpacked:
    """What zlib packed, given as a file gives it."""

    def __init__(self, packed: _Bytes) -> None:
        self.packed, self.zlib = packed, zlib.decompressobj()

    def read(self, size: int) -> bytes:
        pieces, left = [], size
        while left:
            source = self.zlib.unconsumed_tail
            if not source and self.packed.left:
                source = self.packed.read(min(self.packed.left, PIECE))
            piece = self.zlib.decompress(source, left)
            if not piece and not source:
                break
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def end(self) -> None:
        """Have the check sum looked at."""
        if self.read(1) or not self.zlib.eof:
            raise _Damage("a packed element is cut short, or goes on after its end")


def _wanted(file: IO[bytes], size: int, shapes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    header = file.read(HEADER)
    if header[:8] == b"\x89HDF\r\n\x1a\n" or header[124:126] == b"\x00\x02":
        raise _Damage("it is of version 7.3, an HDF5 file")
    orders = {b"IM": "<", b"MI": ">"}
    if len(header) < HEADER or header[126:] not in orders:
        raise _Damage(f"it begins with {header[:20]!r}")
    top = _Bytes(file, size - HEADER, orders[header[126:]])
    seen = set()
    while top.left:
        kind, content, padding = top.element()
        unpacked = None
        if kind == COMPRESSED:
            packed, unpacked = content, _Unpacked(content)
            content = _Bytes(unpacked, EXPANSION * packed.left, top.order)
            kind, content, _ = content.element()
        if kind != MATRIX:
            raise _Damage(f"an element of type {kind} where a variable was expected")
        variable, value = _read_variable(content, shapes)
        if variable in seen:
            raise _Damage(f"the variable {variable!r} stands there twice")
        seen.add(variable)
        content.skip()
        if unpacked is not None:
            unpacked.end()
            packed.skip()
        top.read(min(padding, top.left))
        if variable in shapes:
            yield variable, value


def _read_variable(content: _Bytes, shapes: Mapping[str, Any]) -> tuple[str, Any]:
    kind, dims, name = _read_header(content)
    if name not in shapes:
        return name, None
    return name, _read_value(content, kind, dims, name, shapes[name], 0)


def _read_header(content: _Bytes) -> tuple[int, tuple[int, ...], str]:
    _, flags = content.small()
    _, sizes = content.small()
    _, name = content.small()
    if len(flags) != 8 or len(sizes) < 8 or len(sizes) > 128 or len(sizes) % 4:
        raise _Damage("flags or sizes of a variable are damaged")
    dims = struct.unpack(f"{content.order}{len(sizes) // 4}i", sizes)
    (word,) = struct.unpack_from(f"{content.order}I", flags)
    if min(dims) < 0 or word & 0x800:
        raise _Damage(f"the variable {name!r} has negative sizes or complex values")
    return word & 0xFF, dims, name.decode("latin1")


def _read_value(
    content: _Bytes, kind: int, dims: tuple[int, ...], name: str, shape: Any, depth: int
) -> Any:
    if shape is not None:
        fits = len(shape) == len(dims)
        fits = fits and all(one in (None, two) for one, two in zip(shape, dims, strict=True))
        if kind not in CLASSES or not fits:
            axes = ", ".join("any" if axis is None else str(axis) for axis in shape)
            raise _Damage(
                f"the variable {name!r} must be an array of numbers of shape ({axes}); it is of "
                f"class {kind} and shape {dims}"
            )
    if depth > DEPTH:
        raise _Damage("structures inside each other without end")
    if kind in CLASSES:
        return _read_numbers(content, CLASSES[kind], dims)
    if kind == CHAR:
        return _read_text(content, math.prod(dims))
    if kind == CELL:
        return [_read_inner(content, depth) for _ in range(_count(content, math.prod(dims)))]
    if kind == STRUCT:
        return _read_structures(content, math.prod(dims), depth)
    raise _Damage(f"the variable {name!r} is of class {kind}, which is not read here")


def _count(content: _Bytes, count: int) -> int:
    """Check that so many elements fit, each with eight bytes at least."""
    if count * 8 > content.left:
        raise _Damage(f"{count:,} values where {content.left:,} bytes are left")
    return count


def _read_numbers(content: _Bytes, dtype: str, dims: tuple[int, ...]) -> numpy.ndarray:
    kind, stored, padding = content.element()
    count = math.prod(dims)
    if kind not in STORED or stored.left != count * numpy.dtype(STORED[kind]).itemsize:
        raise _Damage(f"{stored.left:,} bytes of type {kind} for the shape {dims}")
    source = numpy.dtype(content.order + STORED[kind])
    # Nothing is touched before it is filled, so a file that lies about its size takes no memory.
    values = numpy.empty(count, dtype)
    step = PIECE // source.itemsize
    for start in range(0, count, step):
        stop = min(start + step, count)
        values[start:stop] = numpy.frombuffer(stored.read((stop - start) * source.itemsize), source)
    content.read(min(padding, content.left))
    return values.reshape(dims, order="F")


def _read_text(content: _Bytes, count: int) -> str:
    kind, text = content.small(4 * min(count, PIECE))
    if kind not in TEXTS:
        raise _Damage(f"a text of type {kind}")
    order = "be" if content.order == ">" else "le"
    encoding = TEXTS[kind]
    if encoding in ("utf-16", "utf-32"):
        encoding += f"-{order}"
    return text.decode(encoding)


def _read_inner(content: _Bytes, depth: int) -> Any:
    kind, inner, padding = content.element()
    if kind != MATRIX:
        raise _Damage(f"an element of type {kind} in a cell or structure")
    if not inner.left:
        return numpy.empty((0, 0))
    class_, dims, name = _read_header(inner)
    value = _read_value(inner, class_, dims, name, None, depth + 1)
    inner.skip()
    content.read(min(padding, content.left))
    return value


def _read_structures(content: _Bytes, count: int, depth: int) -> list[dict]:
    _, length = content.small()
    _, names = content.small()
    (width,) = struct.unpack(f"{content.order}i", length) if len(length) == 4 else (0,)
    if width <= 0 or len(names) % width:
        raise _Damage("the names of the fields of a structure are damaged")
    fields = [
        names[start : start + width].split(b"\0")[0].decode("latin1")
        for start in range(0, len(names), width)
    ]
    _count(content, count * max(1, len(fields)))
    return [{field: _read_inner(content, depth) for field in fields} for _ in range(count)]
