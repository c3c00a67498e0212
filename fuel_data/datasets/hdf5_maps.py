"""Memory maps of HDF5 data sets whose bytes lie in the file as they are."""

import math
import mmap
import os
import weakref
from typing import Any, BinaryIO

import h5py
import numpy

from fuel_data.utils.disk import is_local

#: With more chunks, listing where they are takes seconds.
MAX_CHUNKS = 200_000
_maps: "weakref.WeakValueDictionary[tuple[int, ...], mmap.mmap]" = weakref.WeakValueDictionary()


class MappedValues:
    """Values in a memory map of their file.

    Examples are gathered from it by address, so that chunks need not follow each other.

    Parameters
    ----------
    content : buffer
        The file.
    dtype : dtype
        Of the values.
    shape : tuple of int
        Of the data set.
    offsets : int64 array of shape (piece,)
        Where each piece of `num_rows` examples begins in the file.
    num_rows : int
        Number of examples of a piece.
    """

    def __init__(
        self,
        content: Any,
        dtype: numpy.dtype,
        shape: tuple[int, ...],
        offsets: numpy.ndarray,
        num_rows: int,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self._offsets = offsets
        self._num_rows = num_rows
        self._example = math.prod(shape[1:]) * dtype.itemsize
        # An example at every address of the file: those that overlap cost nothing.
        self._examples: numpy.ndarray = numpy.ndarray(
            (len(content) - self._example + 1,), f"V{self._example}", content, strides=(1,)
        )
        self._whole = None
        if len(offsets) == 1:
            flat = numpy.frombuffer(content, dtype, math.prod(shape), int(offsets[0]))
            self._whole = flat.reshape(shape)
            # As bytes, because numpy copies all of an array that is not aligned to take from it.
            self._rows = numpy.frombuffer(content, self._examples.dtype, shape[0], int(offsets[0]))

    @property
    def whole(self) -> numpy.ndarray | None:
        """All values, as a read-only array, if they lie in one piece."""
        return self._whole

    def read(self, request: int | slice | numpy.ndarray) -> Any:
        """Copy examples.

        Parameters
        ----------
        request : int, slice, or int64 array of shape (example,)
            Which ones; it is known to be inside the data set.

        Returns
        -------
        array, or the example itself for an int
        """
        if self._whole is not None:
            if isinstance(request, numpy.ndarray):
                # Faster than an index in brackets. Nothing is clipped: the indices are inside.
                return self._as_values(self._rows.take(request, mode="clip"))
            return self._whole[request].copy()
        if isinstance(request, slice):
            return self._read_range(request.start, request.stop)
        indices = numpy.atleast_1d(request)
        pieces, rows = numpy.divmod(indices, self._num_rows)
        values = self._as_values(self._examples[self._offsets[pieces] + rows * self._example])
        return values if isinstance(request, numpy.ndarray) else values[0]

    def _as_values(self, examples: numpy.ndarray) -> numpy.ndarray:
        return examples.view(self.dtype).reshape(len(examples), *self.shape[1:])

    def _read_range(self, start: int, stop: int) -> numpy.ndarray:
        values = numpy.empty((stop - start, *self.shape[1:]), self.dtype)
        examples = values.reshape(-1).view(self._examples.dtype)
        first = start
        while first < stop:
            piece, row = divmod(first, self._num_rows)
            last = min(stop, (piece + 1) * self._num_rows)
            address = int(self._offsets[piece]) + row * self._example
            end = address + (last - first) * self._example
            # Side by side, not one at every address.
            examples[first - start : last - start] = self._examples[address : end : self._example]
            first = last
        return values


def map_values(dataset: h5py.Dataset) -> MappedValues | None:
    """Map a data set, if that is sure to be right.

    It must be stored as it is in memory: no compression, in a type that numpy has too, in a file
    on a local disk that nobody writes to through this handle. The first example and the last are
    compared with what h5py reads.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.

    Returns
    -------
    MappedValues or None
    """
    if not _is_plain(dataset):
        return None
    found = _pieces(dataset)
    content = _map_file(dataset.file.id.get_vfd_handle())
    if found is None or content is None:
        return None
    offsets, num_rows = found
    example = math.prod(dataset.shape[1:]) * dataset.dtype.itemsize
    length = num_rows * example
    if int(offsets.min()) < 0 or int(offsets.max()) + length > len(content):
        return None
    values = MappedValues(content, dataset.dtype, dataset.shape, offsets, num_rows)
    for index in (0, len(dataset) - 1):
        if numpy.asarray(values.read(index)).tobytes() != numpy.asarray(dataset[index]).tobytes():
            return None
    return values


def _is_plain(dataset: h5py.Dataset) -> bool:
    file = dataset.file
    return (
        file.driver == "sec2"
        and file.mode == "r"
        and dataset.dtype.kind in "biufcSV"
        and not dataset.dtype.hasobject
        # Of arrays as a type h5py makes axes.
        and dataset.dtype.subdtype is None
        and dataset.ndim > 0
        and math.prod(dataset.shape) > 0
        # Bit fields, odd precisions and paddings have a numpy dtype and other bytes.
        and h5py.h5t.py_create(dataset.dtype, logical=True) == dataset.id.get_type()
    )


def _map_file(descriptor: int) -> mmap.mmap | None:
    """Map an open file of this machine, once for all sources: each map costs a descriptor."""
    # By the open file and not by its name: another file may have that name by now.
    found = os.fstat(descriptor)
    # As long as it is mapped, no other file gets its number.
    key = found.st_dev, found.st_ino, found.st_size
    content = _maps.get(key)
    if content is None and is_local(descriptor):
        with _opened_again(descriptor) as file:
            content = _maps[key] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return content


def _opened_again(descriptor: int) -> BinaryIO:
    """Open a file that is open already, without the lock that HDF5 has on it.

    The map keeps a copy of its descriptor, and the copy would keep the lock as long as the map is
    there, when the file itself has been closed already.
    """
    try:
        return open(f"/proc/self/fd/{descriptor}", "rb")
    except OSError:
        return open(os.dup(descriptor), "rb")


def _pieces(dataset: h5py.Dataset) -> tuple[numpy.ndarray, int] | None:
    """Find where the values lie: the offsets of pieces, and the examples in each."""
    properties = dataset.id.get_create_plist()
    if properties.get_layout() == h5py.h5d.CONTIGUOUS:
        offset = dataset.id.get_offset()
        # There is none if nothing was written yet, or if the values are in another file.
        return None if offset is None else (numpy.array([offset]), len(dataset))
    if properties.get_layout() != h5py.h5d.CHUNKED or properties.get_nfilters():
        return None
    return _chunks(dataset)


def _chunks(dataset: h5py.Dataset) -> tuple[numpy.ndarray, int] | None:
    rows, *rest = dataset.chunks
    number = -(-len(dataset) // rows)
    if (
        tuple(rest) != dataset.shape[1:]
        or number > MAX_CHUNKS
        # Libraries differ in whether addresses of chunks count from behind the user block.
        or dataset.file.userblock_size
        or dataset.id.get_num_chunks() != number
    ):
        return None
    offsets = numpy.full(number, -1, dtype=numpy.int64)
    example = math.prod(dataset.shape[1:]) * dataset.dtype.itemsize
    whole = True

    def note(chunk: Any) -> None:
        nonlocal whole
        whole = whole and chunk.size == rows * example
        offsets[chunk.chunk_offset[0] // rows] = chunk.byte_offset

    dataset.id.chunk_iter(note)
    return (offsets, rows) if whole else None
