"""Reading a pickle of plain values and arrays of bytes, and nothing else.

A pickle is a program. Here it may build dicts, lists, numbers and texts, by the instructions that
Python 2 wrote, and arrays of unsigned bytes. It reaches no function of numpy or of anybody else:
the three names that numpy's arrays need stand for functions of this module.
"""

import io
import math
import pickle
import pickletools
from typing import Any

import numpy

# The instructions of Python 2's protocols, without persistent identities, old-style instances and
# registered extensions.
INSTRUCTIONS = {
    *("PROTO", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE"),
    *("EMPTY_DICT", "DICT", "EMPTY_LIST", "LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2"),
    *("TUPLE3", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "INT", "BININT", "BININT1"),
    *("BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT", "STRING", "BINSTRING"),
    *("SHORT_BINSTRING", "UNICODE", "BINUNICODE", "PUT", "BINPUT", "LONG_BINPUT", "GET"),
    *("BINGET", "LONG_BINGET", "GLOBAL", "REDUCE", "BUILD"),
}
MODULES = ("numpy.core.multiarray", "numpy._core.multiarray", "numpy")


def load_plain_pickle(content: bytes, name: str) -> Any:
    """Load a pickle of dicts, lists, numbers, texts and arrays of unsigned bytes.

    Parameters
    ----------
    content : bytes
        The pickle, as Python 2 wrote it.
    name : str
        What to call it in errors.

    Returns
    -------
    object
        What it holds. Texts of Python 2 are str of the same code points (Latin-1).

    Raises
    ------
    ValueError
        If it is damaged, or asks for anything else.
    """
    try:
        _check_instructions(content)
        return _plain(_Unpickler(io.BytesIO(content), encoding="latin1").load())
    # A damaged program fails in whatever way its next instruction does.
    except Exception as error:
        raise ValueError(
            f"{name} is not the pickle that was expected, of plain values and arrays of bytes: "
            f"{error or type(error).__name__}."
        ) from error


def _check_instructions(content: bytes) -> None:
    """Look at the program before it runs: no unknown instruction, no giant list of memories."""
    for instruction, argument, position in pickletools.genops(content):
        if instruction.name not in INSTRUCTIONS:
            raise ValueError(f"the instruction {instruction.name} at byte {position}")
        if "PUT" in instruction.name and int(argument or 0) > len(content):
            raise ValueError(f"the memory {argument} at byte {position}")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = {"_reconstruct": _empty_array, "ndarray": "ndarray", "dtype": _Dtype}
        if module not in MODULES or name not in known:
            raise ValueError(f"it asks for {module}.{name}")
        return known[name]


def _empty_array(*_: Any) -> "_Array":
    return _Array()


class _Dtype:
    def __init__(self, kind: str, *_: Any) -> None:
        if kind != "u1":
            raise ValueError(f"an array of dtype {kind!r}")

    def __setstate__(self, state: Any) -> None:
        """Do nothing: of single bytes, the order and the like say nothing."""


class _Array:
    values: numpy.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, content = state
        if not isinstance(dtype, _Dtype):
            raise ValueError("an array without a dtype")
        content = content.encode("latin1")
        if min(shape, default=0) < 0 or math.prod(shape) != len(content):
            raise ValueError(f"an array of shape {shape} of {len(content):,} bytes")
        array = numpy.frombuffer(content, numpy.uint8)
        self.values = array.reshape(shape, order="F" if is_fortran else "C")


def _plain(value: Any) -> Any:
    """Put arrays in the place of what stands for them, in the dict that the pickle holds."""
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} instead of a dict")
    return {key: item.values if isinstance(item, _Array) else item for key, item in value.items()}
