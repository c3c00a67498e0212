"""Reading examples from HDF5 data sets, each in the way that is fastest for how it is stored.

h5py reads a scattered selection index by index, which is slow. Values that lie in the file as they
are, in one piece or in chunks, are gathered from a memory map of the file. Compressed chunks are
read whole and kept for a while. A virtual data set is read by the parts that it is made of. What is
left goes through h5py, in increasing order and each example once, as HDF5 demands.
"""

import math
from typing import Any

import h5py
import numpy

from fuel_data.datasets.hdf5_chunks import (
    CACHE_BYTES,
    ChunkedValues,
    as_indices,
    is_in_chunks,
    read_values,
)
from fuel_data.datasets.hdf5_maps import MappedValues, map_values
from fuel_data.datasets.hdf5_virtual import Part, find_parts, other_files
from fuel_data.utils.indexing import contiguous_slice

# Of a range of examples, all are read if at least one in so many is wanted: a scattered index
# costs h5py 20 microseconds, one that follows another next to nothing.
DENSE = 16
DENSE_BYTES = 2**26


def map_dataset(dataset: h5py.Dataset) -> numpy.ndarray | None:
    """Map the values of a data set into memory, if they lie in one piece and that is safe.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.

    Returns
    -------
    read-only array, or None
        The values, of the data set's shape and dtype; nothing is read before it is indexed.
    """
    values = map_values(dataset)
    return None if values is None else values.whole


class SourceReader:
    """Reads examples of one data set.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.
    sort_indices : bool, optional
        Whether requests may be in any order and may repeat an example. If not, a request that does
        not increase is refused where HDF5 could not answer it.
    cache_bytes : int, optional
        How much memory compressed chunks may take that were read before.

    Raises
    ------
    ValueError
        If values are in other files, and these are not there or too short.
    """

    def __init__(
        self,
        dataset: h5py.Dataset,
        sort_indices: bool = True,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._dataset = dataset
        self._sort_indices = sort_indices
        self._mapped: MappedValues | None = None
        self._chunked: ChunkedValues | None = None
        # It checks them.
        other_files(dataset)
        self._parts: list[tuple[Part, SourceReader]] = [
            (part, SourceReader(part.dataset, sort_indices, cache_bytes))
            for part in find_parts(dataset)
        ]
        if not self._parts:
            self._mapped = map_values(dataset)
        if self._mapped is None and is_in_chunks(dataset, cache_bytes):
            self._chunked = ChunkedValues(dataset, cache_bytes)

    @property
    def way(self) -> str:
        """How examples are read: 'map', 'chunks', 'parts' or 'h5py'."""
        if self._parts:
            return "parts"
        if self._mapped is not None:
            return "map"
        return "h5py" if self._chunked is None else "chunks"

    def read(self, request: int | slice | numpy.ndarray) -> Any:
        """Read examples.

        Parameters
        ----------
        request : int, slice, or int64 array of shape (example,)
            Which ones; it is known to be inside the data set.

        Returns
        -------
        array, or the example itself for an int
            A copy, in the order of the request.

        Raises
        ------
        ValueError
            If the request does not increase and `sort_indices` is not set.
        OSError
            If the file is damaged there.
        """
        if self._mapped is not None:
            return self._mapped.read(request)
        if isinstance(request, int):
            one = self.way == "h5py"
            return self._ask(request) if one else self.read(numpy.array([request]))[0]
        if self._parts:
            return self._read_parts(as_indices(request))
        if isinstance(request, slice):
            return self._read_range(request)
        return self._read_scattered(numpy.asarray(request))

    def _ask(self, selection: Any) -> Any:
        return read_values(self._dataset, selection)

    def _read_range(self, request: slice) -> numpy.ndarray:
        if self._chunked is None:
            return self._ask(request)
        # Of long ranges each chunk is read once anyway, and would push others out of the cache.
        is_long = request.stop - request.start >= self._chunked.num_rows
        if is_long and not self._chunked.holds_all:
            return self._ask(request)
        return self._chunked.read_range(request.start, request.stop)

    def _read_parts(self, indices: numpy.ndarray) -> numpy.ndarray:
        found = numpy.empty((len(indices), *self._dataset.shape[1:]), self._dataset.dtype)
        for part, reader in self._parts:
            here = numpy.flatnonzero((indices >= part.start) & (indices < part.stop))
            if len(here):
                wanted = indices[here] - part.start + part.offset
                found[here] = reader.read(contiguous_slice(wanted))
        return found

    def _read_scattered(self, indices: numpy.ndarray) -> numpy.ndarray:
        if self._chunked is not None:
            return self._chunked.read(indices)
        if not len(indices):
            return self._ask(slice(0, 0))
        increasing = (numpy.diff(indices) > 0).all()
        if not increasing and not self._sort_indices:
            raise ValueError(
                f"{self._dataset.file.filename}: with sort_indices=False a request must name "
                f"increasing indices; got {indices[:10].tolist()}. Leave sort_indices at True."
            )
        if increasing:
            return self._read_increasing(indices)
        unique, inverse = numpy.unique(indices, return_inverse=True)
        return self._read_increasing(unique)[inverse]

    def _read_increasing(self, indices: numpy.ndarray) -> numpy.ndarray:
        selection = contiguous_slice(indices)
        if isinstance(selection, slice):
            return self._ask(selection)
        first, last = int(indices[0]), int(indices[-1])
        if self._is_dense(last - first + 1, len(indices)):
            return self._ask(slice(first, last + 1))[indices - first]
        return self._ask(indices)

    def _is_dense(self, num_examples: int, num_wanted: int) -> bool:
        example_bytes = math.prod(self._dataset.shape[1:]) * self._dataset.dtype.itemsize
        return (
            not self._dataset.dtype.hasobject
            and num_examples <= DENSE * num_wanted
            and num_examples * example_bytes <= DENSE_BYTES
        )


def unfold(flat: numpy.ndarray, shapes: numpy.ndarray) -> numpy.ndarray:
    """Give flat examples their shapes.

    Parameters
    ----------
    flat : object array of shape (example,), or one flat array
        What a variable-length data set holds.
    shapes : integer array of shape (example, axis), or (axis,) for one example
        Their shapes.

    Returns
    -------
    object array of shape (example,), or one array
        Copies of the examples.
    """
    if shapes.ndim == 1:
        return numpy.array(flat).reshape(shapes)
    unfolded = numpy.empty(len(flat), dtype=object)
    for index, (example, shape) in enumerate(zip(flat, shapes, strict=True)):
        unfolded[index] = numpy.array(example).reshape(shape)
    return unfolded
