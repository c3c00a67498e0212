"""Vectors of variable length whose numbers are in the other byte order than this machine's.

h5py gives their bytes as they are in the file and calls them native, so every number is wrong.
"""

import functools
from collections.abc import Iterator
from typing import Any

import h5py
import numpy


def with_right_vectors(dataset: h5py.Dataset) -> h5py.Dataset:
    """Make sure that vectors of a data set are read as the numbers that they are.

    Parameters
    ----------
    dataset : h5py.Dataset
        Any data set of an open file.

    Returns
    -------
    h5py.Dataset
        The same, or one that turns the bytes of what it reads.

    Raises
    ------
    ValueError
        If it has such vectors in records, in arrays or in vectors: there they stay wrong.
    """
    dtype = dataset.dtype
    if not any(map(_is_turned, _bases(dtype))) or h5py_reads_vectors_rightly():
        return dataset
    base = h5py.check_vlen_dtype(dtype)
    if _is_turned(base) and base.subdtype is None:
        return TurnedVectors(dataset.id)
    raise ValueError(
        f"{dataset.file.filename}: {dataset.name} cannot be a source: it has vectors inside other "
        "types, with numbers in a byte order that is not this machine's, which h5py reads wrongly. "
        "Write it again with native numbers."
    )


class TurnedVectors(h5py.Dataset):
    """A data set of vectors of numbers in the other byte order, which come in the native one.

    It is made, as any data set of h5py, from its identifier.
    """

    @property
    def dtype(self) -> numpy.dtype:
        """The type of what is read."""
        base = h5py.check_vlen_dtype(super().dtype)
        return h5py.vlen_dtype(base.newbyteorder("="))

    def __getitem__(self, args: Any, new_dtype: numpy.dtype | None = None) -> Any:
        # By the type in the file, whatever h5py makes of others.
        found = super().__getitem__(args, new_dtype or super().dtype)
        if not found.dtype.hasobject:
            return found.byteswap()
        for vector in found.flat:
            vector.byteswap(inplace=True)
        return found


def _is_turned(base: Any) -> bool:
    # Of records in vectors h5py says rightly which byte order each number has. Of arrays numpy says
    # that they are native, whatever their numbers are.
    return isinstance(base, numpy.dtype) and not base.base.isnative and base.names is None


def _bases(dtype: numpy.dtype) -> Iterator[Any]:
    """Find the types of the numbers of all vectors in a type, at any depth."""
    base = h5py.check_vlen_dtype(dtype)
    if isinstance(base, numpy.dtype):
        yield base
        yield from _bases(base)
    elif dtype.subdtype is not None:
        yield from _bases(dtype.subdtype[0])
    for name in dtype.names or ():
        yield from _bases(dtype[name])


@functools.cache
def h5py_reads_vectors_rightly() -> bool:
    """Tell whether h5py reads vectors in the other byte order as what they are.

    Returns
    -------
    bool
        Of h5py 3.16 it is not true. A small file in memory shows it.
    """
    turned = numpy.dtype("u2").newbyteorder("S")
    with h5py.File("vectors", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("x", (1,), dtype=h5py.vlen_dtype(turned))
        dataset[0] = numpy.array([1], dtype=turned)
        return int(dataset[0][0]) == 1
