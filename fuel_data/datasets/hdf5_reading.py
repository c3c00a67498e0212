"""Reading examples from HDF5 data sets, by memory map where the bytes lie in the file as they are.

h5py reads a scattered selection index by index, which is slow; numpy reads it from a memory map
at the speed of memory. A map is used if the values are stored in one piece, uncompressed, in a
type that numpy has too, in a local file that nobody is writing to through this handle; and only if
its first and last example are equal to those that h5py reads. Everything else goes through h5py,
in increasing order and each example once, as HDF5 demands.
"""

import math
import mmap
from typing import Any

import h5py
import numpy

from fuel_data.utils.indexing import contiguous_slice

# Of a range of examples, all are read if at least one in so many is wanted: a scattered index in
# a compressed data set costs h5py 20 microseconds, one that follows another next to nothing.
DENSE = 16
DENSE_BYTES = 2**26


def map_dataset(dataset: h5py.Dataset) -> numpy.ndarray | None:
    """Map the values of a data set into memory, if that is sure to be right.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.

    Returns
    -------
    read-only array, or None
        The values, of the data set's shape and dtype; nothing is read before it is indexed.
    """
    if not _is_plain(dataset):
        return None
    offset = dataset.id.get_offset()
    # There is none if nothing was written yet, or if the values are in another file.
    if offset is None:
        return None
    # By the open file and not by its name: another file may have that name by now.
    content = mmap.mmap(dataset.file.id.get_vfd_handle(), 0, access=mmap.ACCESS_READ)
    count = math.prod(dataset.shape)
    if offset + count * dataset.dtype.itemsize > len(content):
        return None
    array = numpy.frombuffer(content, dtype=dataset.dtype, count=count, offset=offset)
    array = array.reshape(dataset.shape)
    for index in (0, len(array) - 1):
        if array[index].tobytes() != numpy.asarray(dataset[index]).tobytes():
            return None
    return array


def _is_plain(dataset: h5py.Dataset) -> bool:
    file = dataset.file
    return (
        file.driver == "sec2"
        and file.mode == "r"
        and dataset.id.get_create_plist().get_layout() == h5py.h5d.CONTIGUOUS
        and dataset.dtype.kind in "biufcS"
        and dataset.ndim > 0
        and math.prod(dataset.shape) > 0
        # Bit fields, odd precisions and paddings have a numpy dtype and other bytes.
        and h5py.h5t.py_create(dataset.dtype, logical=True) == dataset.id.get_type()
    )


class SourceReader:
    """Reads examples of one data set.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.
    sort_indices : bool, optional
        Whether requests may be in any order and may repeat an example. If not, and the values
        cannot be mapped, a request that does not increase is refused.
    """

    def __init__(self, dataset: h5py.Dataset, sort_indices: bool = True) -> None:
        self._dataset = dataset
        self._sort_indices = sort_indices
        self._array = map_dataset(dataset)

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
        """
        if self._array is not None:
            return self._array[request].copy() if _is_view(request) else self._array[request]
        if _is_view(request):
            return self._dataset[request]
        return self._read_scattered(numpy.asarray(request))

    def _read_scattered(self, indices: numpy.ndarray) -> numpy.ndarray:
        steps = numpy.diff(indices)
        if (steps > 0).all():
            return self._read_increasing(indices)
        if not self._sort_indices:
            raise ValueError(
                f"{self._dataset.file.filename}: with sort_indices=False a request must name "
                f"increasing indices; got {indices[:10].tolist()}. Leave sort_indices at True."
            )
        unique, inverse = numpy.unique(indices, return_inverse=True)
        return self._read_increasing(unique)[inverse]

    def _read_increasing(self, indices: numpy.ndarray) -> numpy.ndarray:
        selection = contiguous_slice(indices)
        if isinstance(selection, slice):
            return self._dataset[selection]
        first, last = int(indices[0]), int(indices[-1])
        if self._is_dense(last - first + 1, len(indices)):
            return self._dataset[first : last + 1][indices - first]
        return self._dataset[indices]

    def _is_dense(self, num_examples: int, num_wanted: int) -> bool:
        example_bytes = math.prod(self._dataset.shape[1:]) * self._dataset.dtype.itemsize
        return (
            not self._dataset.dtype.hasobject
            and num_examples <= DENSE * num_wanted
            and num_examples * example_bytes <= DENSE_BYTES
        )


def _is_view(request: int | slice | numpy.ndarray) -> bool:
    return isinstance(request, (int, slice))


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
