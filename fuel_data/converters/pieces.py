"""Sources that do not fit into memory: computed as they are written, or written one by one."""

from collections.abc import Callable, Sequence
from typing import Any

import h5py
import numpy


class OnDemand:
    """An array for `fill_hdf5_file` whose examples are computed when they are written.

    Parameters
    ----------
    shape : tuple of int
        Its shape, examples first.
    dtype : dtype
        Its dtype.
    compute : function
        ``compute(index)`` gives the example of that index.

    Attributes
    ----------
    shape : tuple of int
        As given.
    dtype : dtype
        As given.

    Examples
    --------
    >>> squares = OnDemand((4,), "int64", lambda index: index**2)
    >>> squares[1:3]
    array([1, 4])
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, compute: Callable[[int], Any]) -> None:
        self.shape, self.dtype = tuple(shape), numpy.dtype(dtype)
        self._compute = compute

    @property
    def nbytes(self) -> int:
        """Number of bytes of the whole array."""
        return int(numpy.prod(self.shape)) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: slice) -> numpy.ndarray:
        indices = range(*key.indices(len(self)))
        values = numpy.empty((len(indices), *self.shape[1:]), self.dtype)
        for position, index in enumerate(indices):
            values[position] = self._compute(index)
        return values


class RaggedSource:
    """A ragged source, of which one example after the other is written, in any order.

    Parameters
    ----------
    h5file : h5py.File
        A file open for writing.
    source : str
        Its name.
    num_examples : int
        How many there will be.
    dtype : dtype
        Of the values.
    axis_labels : sequence of str
        The first for the examples, then those of an example.
    shape_dtype : dtype, optional
        Of the sizes.

    Attributes
    ----------
    dataset : h5py.Dataset
        The source.

    Examples
    --------
    >>> import tempfile
    >>> from fuel_data.converters.base import new_hdf5_file
    >>> with tempfile.TemporaryDirectory() as folder, new_hdf5_file(f"{folder}/x.hdf5") as h5file:
    ...     words = RaggedSource(h5file, "words", 2, "uint8", ("batch", "letter"))
    ...     words.write(1, numpy.array([7, 8, 9], "uint8"))
    ...     words.write(0, numpy.array([5], "uint8"))
    ...     h5file["words_shapes"][()].tolist(), h5file["words"][1].tolist()
    ([[1], [3]], [7, 8, 9])
    """

    def __init__(
        self,
        h5file: h5py.File,
        source: str,
        num_examples: int,
        dtype: Any,
        axis_labels: Sequence[str],
        shape_dtype: Any = "int32",
    ) -> None:
        self.dataset = h5file.create_dataset(source, (num_examples,), h5py.vlen_dtype(dtype))
        self.dataset.dims[0].label = axis_labels[0]
        self._shapes = h5file.create_dataset(
            f"{source}_shapes", (num_examples, len(axis_labels) - 1), shape_dtype
        )
        names = numpy.array([label.encode("utf-8") for label in axis_labels[1:]])
        labels = h5file.create_dataset(f"{source}_shapes_labels", data=names)
        for scale, values in (("shapes", self._shapes), ("shape_labels", labels)):
            values.make_scale(scale)
            self.dataset.dims[0].attach_scale(values)

    def write(self, index: int, example: numpy.ndarray) -> None:
        """Write an example.

        Parameters
        ----------
        index : int
            Its place.
        example : array
            The example, of any sizes.

        Raises
        ------
        ValueError
            If it is too large for the dtype of the sizes.
        """
        largest = numpy.iinfo(self._shapes.dtype).max
        if max(example.shape, default=0) > largest:
            raise ValueError(
                f"Source {self.dataset.name.lstrip('/')!r}: an example of shape {example.shape} "
                f"has more than {largest:,} values along an axis."
            )
        self.dataset[index] = example.ravel()
        self._shapes[index] = example.shape
