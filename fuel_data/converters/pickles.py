"""Reading a pickle of plain values and arrays of numbers, and nothing else.

A pickle is a program. Here it may build dicts, lists, numbers, texts and bytes, by the instructions
that Python 2 and 3 write, and arrays of numbers. It reaches no function of numpy or of anybody
else: the names that numpy's arrays and the bytes of old protocols need stand for functions of this
module, which it can call and not change.
"""

import io
import math
import pickle
import pickletools
from collections.abc import Callable
from typing import Any

import numpy

# The instructions of all protocols, without persistent identities, instances of classes, registered
# extensions, sets, and buffers that lie elsewhere.
INSTRUCTIONS = {
    *("PROTO", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE"),
    *("EMPTY_DICT", "DICT", "EMPTY_LIST", "LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2"),
    *("TUPLE3", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "INT", "BININT", "BININT1"),
    *("BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT", "STRING", "BINSTRING"),
    *("SHORT_BINSTRING", "UNICODE", "BINUNICODE", "PUT", "BINPUT", "LONG_BINPUT", "GET"),
    *("BINGET", "LONG_BINGET", "GLOBAL", "REDUCE", "BUILD"),
    *("FRAME", "MEMOIZE", "STACK_GLOBAL", "SHORT_BINUNICODE", "SHORT_BINBYTES", "BINBYTES"),
    *("BINBYTES8", "BYTEARRAY8"),
}
#: What numpy calls the dtypes of numbers, after the order of their bytes.
NUMBERS = ("b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")


def load_plain_pickle(content: bytes, name: str) -> Any:
    """Load a pickle of dicts, lists, numbers, texts, bytes and arrays of numbers.

    Parameters
    ----------
    content : bytes
        The pickle, as Python 2 or 3 wrote it.
    name : str
        What to call it in errors.

    Returns
    -------
    dict
        What it holds. Texts of Python 2 are str of the same code points (Latin-1), and so are keys
        that are bytes.

    Raises
    ------
    ValueError
        If it is damaged, or asks for anything else.
    """
    try:
        _check_instructions(content)
        return _plain(_Unpickler(content).load())
    # A damaged program fails in whatever way its next instruction does.
    except Exception as error:
        raise ValueError(
            f"{name} is not the pickle that was expected, of plain values and arrays of numbers: "
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
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        # What is known must not refer to this object: Python would never free it after an error,
        # as it does not see what lies on the stack of an unpickler.
        self._known = _Makers(len(content)).known()

    def find_class(self, module: str, name: str) -> Any:
        # Since its version 2, numpy calls its modules so.
        old_module = module.replace("numpy._core.", "numpy.core.")
        if (old_module, name) not in self._known:
            raise ValueError(f"it asks for {module}.{name}")
        return self._known[old_module, name]


class _Makers:
    """What makes the arrays, numbers and bytes of one pickle.

    Parameters
    ----------
    num_bytes : int
        How many bytes the pickle has.
    """

    def __init__(self, num_bytes: int) -> None:
        self._left_to_encode = num_bytes

    def known(self) -> dict[tuple[str, str], Any]:
        """Give, for each name that a pickle may ask for, what it gets."""
        return {
            ("numpy.core.multiarray", "_reconstruct"): _Function(lambda *_: _Array(self.encoded)),
            ("numpy.core.multiarray", "scalar"): _Function(self.number),
            ("numpy.core.numeric", "_frombuffer"): _Function(_array),
            ("numpy", "ndarray"): "ndarray",
            ("numpy", "dtype"): _Function(_Dtype),
            ("_codecs", "encode"): _Function(self.encoded),
            ("builtins", "bytes"): _Function(_bytes),
            ("__builtin__", "bytes"): _Function(_bytes),
        }

    def number(self, dtype: Any, content: Any) -> int | float | bool:
        return _array(self.encoded(content), dtype, (), "C").item()

    def encoded(self, content: Any, encoding: str = "latin1") -> bytes:
        """Give bytes, which are texts in pickles of Python 2, and before protocol 3 of Python 3."""
        if not isinstance(content, str):
            return content
        if encoding not in ("latin1", "latin-1"):
            raise ValueError("a text of another encoding")
        # Each stands there once; one that is taken a thousand times would fill the memory.
        self._left_to_encode -= len(content)
        if self._left_to_encode < 0:
            raise ValueError("more bytes than the file has")
        return content.encode("latin1")


class _Array:
    """Stands for an array until its state is there."""

    values: numpy.ndarray

    def __init__(self, encoded: Callable[[Any], bytes]) -> None:
        self._encoded = encoded

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, content = state
        order = "F" if is_fortran else "C"
        self.values = _array(self._encoded(content), dtype, shape, order)


class _Dtype:
    """Stands for a dtype of numbers."""

    def __init__(self, kind: str, *_: Any) -> None:
        # Of what is no text, the representation could be without end.
        if not isinstance(kind, str) or kind not in NUMBERS:
            shown = f" {kind!r:.20}" if isinstance(kind, str) else " that is no text"
            raise ValueError(f"an array of dtype{shown}")
        self.kind = kind
        self.dtype = numpy.dtype(kind)

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        if not isinstance(order, str) or order not in ("<", ">", "|", "="):
            raise ValueError("an unknown order of bytes")
        self.dtype = numpy.dtype(order + self.kind)


class _Function:
    """A function that a pickle can call, and not change.

    Parameters
    ----------
    function : function
        Any.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise ValueError("it would change a function")


def _array(content: Any, dtype: Any, shape: Any, order: str) -> numpy.ndarray:
    """Make an array of its bytes, once it is known that these are as many as it has."""
    if not isinstance(dtype, _Dtype) or not isinstance(content, (bytes, bytearray)):
        raise ValueError("an array without a dtype or content")
    if not isinstance(shape, tuple) or not all(type(size) is int for size in shape):
        raise ValueError("an array whose shape is not whole numbers")
    num_bytes = math.prod(shape) * dtype.dtype.itemsize
    if min(shape, default=0) < 0 or num_bytes != len(content):
        raise ValueError(f"an array of shape {shape} of {len(content):,} bytes")
    return numpy.frombuffer(content, dtype.dtype).reshape(shape, order=order)  # type: ignore


def _bytes(*arguments: Any) -> bytes:
    # So are empty ones written before protocol 3; of a number, there would be as many zeros.
    if arguments:
        raise ValueError("bytes of another length than none")
    return b""


def _plain(value: Any) -> dict[Any, Any]:
    """Put arrays in the place of what stands for them, in the dict that the pickle holds."""
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} instead of a dict")
    return {
        key.decode("latin1") if isinstance(key, bytes) else key: (
            item.values if isinstance(item, _Array) else item
        )
        for key, item in value.items()
    }
