"""Messages as multipart frames: one JSON header, then raw buffers. Nothing is ever unpickled.

The header is ``[WIRE_VERSION, node]``. A node says how a value is built:

======================================== ==========================================================
node                                     value
======================================== ==========================================================
``null``, boolean, number, string        itself
``["list", node, ...]``                  list; ``"tuple"`` likewise
``["dict", [key, ...], node, ...]``      dict with string keys
``["bytes", size]``                      the next buffer as bytes
``["array", dtype, shape, order]``       the next buffer as an array, ``order`` is ``C`` or ``F``
``["scalar", dtype]``                    the next buffer as a numpy scalar
``["objects", shape, node, ...]``        array of objects, in C order
``["ragged", shape, dtype, shapes]``     objects that are arrays of one dtype and one number of
                                         axes, one after the other in the next buffer; ``shape`` is
                                         that of the array of objects, or ``null`` for a list
======================================== ==========================================================

A dtype is numpy's string (``"<f4"``) or, if it has fields, numpy's description of it as in an
``.npy`` file. Every size is compared with the buffer that came before memory is taken, and arrays
are views of the received buffers: writable, since nobody else holds them.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from fuel_data.server.errors import WireError

WIRE_VERSION = 1
_MAX_DEPTH = 32
_KINDS = "?biufcSUVmM"


def pack(value: Any) -> list[Any]:
    """Turn a value into frames.

    Parameters
    ----------
    value : object
        None, bool, int, float, str, bytes, numpy array or scalar, or list, tuple and dict (with
        string keys) of them. Arrays may have any shape, order and dtype, fields included, and may
        hold objects, if these are values as described here.

    Returns
    -------
    list of bytes and memoryview
        The header and the buffers. The buffers look into the arrays of `value`, where these are
        contiguous: send or copy them before the arrays change.

    Raises
    ------
    WireError
        If something in `value` cannot be sent; the message says which type.
    """
    buffers: list[Any] = []
    node = _describe(value, buffers, _MAX_DEPTH)
    header = json.dumps([WIRE_VERSION, node], separators=(",", ":"))
    return [header.encode(), *buffers]


def unpack(frames: Sequence[Any]) -> Any:
    """Build the value that `pack` was given.

    Parameters
    ----------
    frames : sequence of buffers
        The header and the buffers. Arrays are views of the buffers, and are writable if those are.

    Returns
    -------
    object
        Equal to the packed value, with the same types, dtypes and shapes; array scalars and
        subclasses of arrays come back as numpy scalars and plain arrays.

    Raises
    ------
    WireError
        If the frames do not follow the format.
    """
    if not frames:
        raise WireError("unpack: expected a header and buffers, got no frame at all.")
    buffers = iter(memoryview(frame) for frame in frames[1:])
    try:
        version, node = json.loads(bytes(memoryview(frames[0])))
        if version != WIRE_VERSION:
            raise WireError(
                f"unpack: this side speaks version {WIRE_VERSION} of the wire format, the message "
                f"is in version {version!r}. Install the same release on both sides."
            )
        value = _build(node, buffers, _MAX_DEPTH)
    except WireError:
        raise
    except Exception as error:  # numpy raises all kinds of them at a dtype, SyntaxError too
        raise WireError(f"unpack: the message does not follow the format: {error}") from error
    if sum(1 for _ in buffers):
        raise WireError("unpack: the message has more buffers than its header describes.")
    return value


def _describe(value: Any, buffers: list[Any], depth: int) -> Any:
    if depth == 0:
        raise WireError(f"pack: values nest more than {_MAX_DEPTH} deep.")
    if isinstance(value, numpy.ndarray):
        return _describe_array(value, buffers, depth)
    if isinstance(value, numpy.generic):
        buffers.append(value.tobytes())
        return ["scalar", _dtype_to_plain(value.dtype)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        buffers.append(value)
        return ["bytes", len(value)]
    if isinstance(value, dict):
        return _describe_dict(value, buffers, depth)
    if isinstance(value, list) and _packs_as_ragged(value):
        return _describe_ragged(None, value, buffers)
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, *(_describe(item, buffers, depth - 1) for item in value)]
    raise WireError(
        f"pack: cannot send a {type(value).__module__}.{type(value).__qualname__}. Sources may "
        "hold numpy arrays and scalars, numbers, strings, bytes, and lists, tuples and dicts of "
        "them."
    )


def _describe_dict(value: dict[Any, Any], buffers: list[Any], depth: int) -> list[Any]:
    wrong = [key for key in value if type(key) is not str]
    if wrong:
        raise WireError(f"pack: keys of a dict must be strings, got {wrong[0]!r}.")
    return ["dict", list(value), *(_describe(item, buffers, depth - 1) for item in value.values())]


def _describe_array(array: numpy.ndarray, buffers: list[Any], depth: int) -> list[Any]:
    if isinstance(array, numpy.ma.MaskedArray):
        raise WireError("pack: cannot send a masked array; send its data and its mask as sources.")
    if array.dtype == object:
        items = array.ravel().tolist()
        if _packs_as_ragged(items):
            return _describe_ragged(array.shape, items, buffers)
        nodes = (_describe(item, buffers, depth - 1) for item in items)
        return ["objects", list(array.shape), *nodes]
    dtype = _dtype_to_plain(array.dtype)
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    buffers.append(_array_bytes(array.T if order == "F" else array))
    return ["array", dtype, list(array.shape), order]


def _describe_ragged(
    shape: tuple[int, ...] | None, items: list[numpy.ndarray], buffers: list[Any]
) -> list[Any]:
    dtype = _dtype_to_plain(items[0].dtype)
    buffers.append(b"".join(_array_bytes(item) for item in items))
    return ["ragged", shape, dtype, [item.shape for item in items]]


def _packs_as_ragged(items: list[Any]) -> bool:
    if len(items) < 2 or type(items[0]) is not numpy.ndarray or items[0].dtype == object:
        return False
    dtype, ndim = items[0].dtype, items[0].ndim
    return all(
        type(item) is numpy.ndarray and item.dtype == dtype and item.ndim == ndim for item in items
    )


def _array_bytes(array: numpy.ndarray) -> memoryview | bytes:
    if array.nbytes == 0:
        return b""
    # A view as bytes, since the buffer protocol does not export dates.
    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8).data


def _dtype_to_plain(dtype: numpy.dtype) -> Any:
    try:
        plain = dtype.str if dtype.names is None else dtype.descr
        if not dtype.hasobject and _plain_to_dtype(plain) == dtype:
            return plain
    except (TypeError, ValueError, WireError):
        pass
    raise WireError(
        f"pack: cannot send the dtype {dtype}. Numbers, booleans, dates, fixed strings and "
        "fields of them can be sent, and arrays of objects whose items can be sent."
    )


def _build(node: Any, buffers: Iterator[memoryview], depth: int) -> Any:
    if not isinstance(node, list):
        if isinstance(node, dict):
            raise WireError("unpack: a header holds no objects, got one.")
        return node
    if depth == 0:
        raise WireError(f"unpack: values nest more than {_MAX_DEPTH} deep.")
    kind, *rest = node
    if kind == "array":
        return _build_array(_next_buffer(buffers), *rest)
    if kind in ("list", "tuple"):
        items = [_build(item, buffers, depth - 1) for item in rest]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return _build_dict(rest[0], [_build(item, buffers, depth - 1) for item in rest[1:]])
    if kind == "scalar":
        return _build_array(_next_buffer(buffers), rest[0], [], "C")[()]
    if kind == "objects":
        return _fill(rest[0], [_build(item, buffers, depth - 1) for item in rest[1:]])
    if kind == "ragged":
        return _build_ragged(_next_buffer(buffers), *rest)
    if kind == "bytes":
        return _build_bytes(_next_buffer(buffers), *rest)
    raise WireError(f"unpack: unknown kind of value {kind!r}.")


def _next_buffer(buffers: Iterator[memoryview]) -> memoryview:
    for buffer in buffers:
        return buffer
    raise WireError("unpack: the message has fewer buffers than its header describes.")


def _build_dict(keys: list[str], items: list[Any]) -> dict[str, Any]:
    if not all(isinstance(key, str) for key in keys):
        raise WireError("unpack: keys of a dict must be strings.")
    return dict(zip(keys, items, strict=True))


def _build_bytes(buffer: memoryview, size: int) -> bytes:
    _check_size("bytes", size, buffer)
    return bytes(buffer)


def _build_array(buffer: memoryview, descr: Any, shape: list[int], order: Any) -> numpy.ndarray:
    dtype = _plain_to_dtype(descr)
    if order not in ("C", "F"):
        raise WireError(f"unpack: the order of an array must be C or F, got {order!r}.")
    _check_size("an array", _num_items(shape) * dtype.itemsize, buffer)
    array: numpy.ndarray = numpy.ndarray(shape, dtype, buffer=buffer, order=order)
    # Small messages share one receive buffer, where numbers may lie at odd addresses.
    return array if array.flags.aligned else array.copy(order="A")


def _build_ragged(
    buffer: memoryview, shape: list[int] | None, descr: Any, shapes: list[list[int]]
) -> numpy.ndarray | list[numpy.ndarray]:
    dtype = _plain_to_dtype(descr)
    sizes = [_num_items(item) * dtype.itemsize for item in shapes]
    _check_size("ragged arrays", sum(sizes), buffer)
    items: list[numpy.ndarray] = []
    start = 0
    for item_shape, size in zip(shapes, sizes, strict=True):
        # Items of one dtype that lie one after the other in an aligned buffer are aligned.
        items.append(numpy.ndarray(item_shape, dtype, buffer=buffer, offset=start))
        start += size
    if items and not items[0].flags.aligned:
        items = [item.copy() for item in items]
    return items if shape is None else _fill(shape, items)


def _fill(shape: list[int], items: list[Any]) -> numpy.ndarray:
    if _num_items(shape) != len(items):
        raise WireError(f"unpack: an array of shape {shape} cannot hold {len(items)} objects.")
    array = numpy.empty(len(items), dtype=object)
    # One by one: numpy would look into items that are sequences.
    for place, item in enumerate(items):
        array[place] = item
    return array.reshape(shape)


def _num_items(shape: list[int]) -> int:
    if not all(type(length) is int and length >= 0 for length in shape):
        raise WireError(f"unpack: a shape must be a list of lengths, got {shape!r}.")
    return math.prod(shape)


def _check_size(what: str, expected: int, buffer: memoryview) -> None:
    if expected != buffer.nbytes:
        raise WireError(
            f"unpack: the header describes {what} of {expected} bytes, the buffer has "
            f"{buffer.nbytes}."
        )


def _plain_to_dtype(plain: Any) -> numpy.dtype:
    dtype = numpy.lib.format.descr_to_dtype(_restore_tuples(plain))
    if dtype.hasobject or dtype.kind not in _KINDS:
        raise WireError(f"unpack: an array cannot have the dtype {dtype}.")
    return dtype


def _restore_tuples(plain: Any) -> Any:
    """Undo what JSON does to numpy's description of fields, ``[(name, dtype, shape), ...]``."""
    if isinstance(plain, str):
        return plain
    return [
        (
            tuple(name) if isinstance(name, list) else name,
            _restore_tuples(dtype),
            *(tuple(length) for length in shape),
        )
        for name, dtype, *shape in plain
    ]
