"""Reading many examples at once from lists, arrays and HDF5 data sets."""

from collections.abc import Sequence
from typing import Any

import numpy


def contiguous_slice(indices: numpy.ndarray) -> slice | numpy.ndarray:
    """Give the slice that is meant by contiguous indices.

    Parameters
    ----------
    indices : int64 array of shape (example,)
        Indices that are not negative.

    Returns
    -------
    slice or array
        A slice if each index is the one before plus 1, otherwise (and if empty) the array itself.
    """
    if len(indices) == 0:
        return indices
    first, last = int(indices[0]), int(indices[-1])
    # The ends are compared first: nearly every shuffled request is told apart by them alone.
    if last - first != len(indices) - 1 or not (numpy.diff(indices) == 1).all():
        return indices
    return slice(first, last + 1)


def iterable_fancy_indexing(iterable: Any, request: Sequence[int] | numpy.ndarray) -> Any:
    """Index arrays, and whatever else has ``[]``, with a list of indices.

    Parameters
    ----------
    iterable : array, HDF5 data set, list or other object with ``[]``
        What is read.
    request : list or array of int
        The indices.

    Returns
    -------
    array or list
        ``iterable[request]`` for what numpy can see as an array, otherwise a list of items.
    """
    if hasattr(iterable, "__array__"):
        return iterable[request]
    return [iterable[index] for index in request]


def sorted_fancy_indexing(indexable: Any, request: Sequence[int] | numpy.ndarray) -> Any:
    """Read in increasing order, each index once, and answer in the order of the request.

    Parameters
    ----------
    indexable : array, HDF5 data set, list or other object with ``[]``
        What is read. HDF5 can be read in increasing order only.
    request : list or array of int
        The indices, in any order, with repetitions.

    Returns
    -------
    array or list
        What ``iterable_fancy_indexing(indexable, request)`` gives for an array in memory.
    """
    unique, inverse = numpy.unique(numpy.asarray(request), return_inverse=True)
    found = iterable_fancy_indexing(indexable, unique)
    return iterable_fancy_indexing(found, inverse)
