"""Subsets of the examples of a data set, and the requests that may be made inside them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from fuel_data.utils.arguments import as_whole_number
from fuel_data.utils.indexing import (
    contiguous_slice,
    iterable_fancy_indexing,
    sorted_fancy_indexing,
)

Request = int | slice | Sequence[int] | numpy.ndarray


class Subset:
    """Some of the examples of a data set, as a slice or as indices.

    What is contiguous is kept as a slice. Subsets of one data set can be added. A request that
    is made inside a subset is turned into a request to the whole data set by ``subset[request]``.

    Parameters
    ----------
    list_or_slice : slice, or list or one-dimensional array of int
        The examples. Indices count from 0; a slice has no step.
    original_num_examples : int
        Number of examples of the whole data set.
    keep_order : bool, optional
        Whether the order of the indices counts, and how often each one stands there. As in Fuel,
        it does not by default: indices are sorted, and each stands there once.

    Attributes
    ----------
    original_num_examples : int
        As given.
    keep_order : bool
        As given.

    Raises
    ------
    ValueError
        If an index is negative or past the end, if a slice has a step, or if `list_or_slice` is
        neither a slice nor indices.

    Examples
    --------
    >>> Subset([4, 2, 3], 10) + Subset(slice(5, 7), 10)
    Subset(slice(2, 7, None), 10)
    >>> Subset([8, 1, 3], 10)[[2, 0]]
    [8, 1]
    """

    def __init__(
        self,
        list_or_slice: slice | Sequence[int] | numpy.ndarray,
        original_num_examples: int,
        keep_order: bool = False,
    ) -> None:
        self.original_num_examples = int(original_num_examples)
        self.keep_order = keep_order
        self._selection: slice | numpy.ndarray
        if isinstance(list_or_slice, slice):
            self._selection = _checked_slice(list_or_slice, self.original_num_examples, "Subset")
        else:
            indices = _checked_indices(list_or_slice, self.original_num_examples, "Subset")
            if not keep_order:
                indices = numpy.unique(indices)
            self._selection = contiguous_slice(indices)

    @classmethod
    def empty_subset(cls, original_num_examples: int) -> "Subset":
        """Make a subset without examples.

        Parameters
        ----------
        original_num_examples : int
            Number of examples of the whole data set.

        Returns
        -------
        Subset
            It is neutral in additions.
        """
        return cls([], original_num_examples)

    @classmethod
    def subset_of(
        cls, subset: "Subset", request: slice | Sequence[int] | numpy.ndarray
    ) -> "Subset":
        """Make the subset that a request inside another subset selects.

        Parameters
        ----------
        subset : Subset
            Where the request is made.
        request : slice, or list or array of int
            Positions inside `subset`. It may be empty.

        Returns
        -------
        Subset
            The examples, as a subset of the same whole data set.

        Raises
        ------
        ValueError
            If the request goes past the end of `subset`.
        """
        if not isinstance(request, slice) and len(request) == 0:
            selection: slice | numpy.ndarray = numpy.empty(0, dtype=numpy.int64)
        else:
            selection = subset._resolve_many(request, allow_empty=True)
        return cls(selection, subset.original_num_examples, keep_order=subset.keep_order)

    @property
    def list_or_slice(self) -> slice | list[int]:
        """The examples: a slice if they are contiguous, otherwise a list."""
        return self._selection if isinstance(self._selection, slice) else self._selection.tolist()

    @property
    def is_list(self) -> bool:
        """Whether the examples are not contiguous (or there are none)."""
        return self.is_empty or not isinstance(self._selection, slice)

    @property
    def num_examples(self) -> int:
        """Number of examples in the subset."""
        if isinstance(self._selection, slice):
            return self._selection.stop - self._selection.start
        return len(self._selection)

    @property
    def is_empty(self) -> bool:
        """Whether there is no example."""
        return self.num_examples == 0

    def get_list_representation(self) -> list[int]:
        """Give the examples as a list.

        Returns
        -------
        list of int
            The index of each example in the whole data set.
        """
        return self.indices().tolist()

    def indices(self) -> numpy.ndarray:
        """Give the examples as an array.

        Returns
        -------
        int64 array of shape (example,)
            The index of each example in the whole data set.
        """
        if isinstance(self._selection, slice):
            return numpy.arange(self._selection.start, self._selection.stop)
        return self._selection.copy()

    def plain(self) -> list[int] | numpy.ndarray:
        """Give the examples as plain data, for digests.

        Returns
        -------
        list of two int, or int64 array of shape (example,)
            Start and stop of a slice, otherwise the indices.
        """
        if isinstance(self._selection, slice):
            return [self._selection.start, self._selection.stop]
        return self.indices()

    def __add__(self, other: "Subset") -> "Subset":
        if not isinstance(other, Subset):
            return NotImplemented
        if self.original_num_examples != other.original_num_examples:
            raise ValueError(
                "Subset: only subsets of one data set can be added; got one of "
                f"{self.original_num_examples} and one of {other.original_num_examples} examples."
            )
        keep_order = self.keep_order or other.keep_order
        union: slice | numpy.ndarray | None = None if keep_order else self._joined_slice(other)
        if union is None:
            union = numpy.concatenate([self.indices(), other.indices()])
        return type(self)(union, self.original_num_examples, keep_order=keep_order)

    def _joined_slice(self, other: "Subset") -> slice | None:
        """Join slices that touch without writing their millions of indices down."""
        one, two = self._selection, other._selection
        if not isinstance(one, slice) or not isinstance(two, slice):
            return None
        if max(one.start, two.start) > min(one.stop, two.stop):
            return None
        return slice(min(one.start, two.start), max(one.stop, two.stop))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subset):
            return NotImplemented
        if self.original_num_examples != other.original_num_examples:
            return False
        if self.is_empty or other.is_empty:
            return self.is_empty and other.is_empty
        one, two = self._selection, other._selection
        if isinstance(one, slice) or isinstance(two, slice):
            return type(one) is type(two) and one == two
        return numpy.array_equal(one, two)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if isinstance(self._selection, slice) or len(self._selection) <= 8:
            shown = repr(self.list_or_slice)
        else:
            first = ", ".join(map(str, self._selection[:4]))
            shown = f"[{first}, … {len(self._selection)} indices]"
        order = ", keep_order=True" if self.keep_order else ""
        return f"Subset({shown}, {self.original_num_examples}{order})"

    def __getitem__(self, key: Request) -> int | slice | list[int]:
        """Turn a request inside the subset into one to the whole data set.

        Parameters
        ----------
        key : int, slice, or list or array of int
            Positions inside the subset; repetitions and any order are fine.

        Returns
        -------
        int, slice or list of int
            The examples' indices in the whole data set.

        Raises
        ------
        ValueError
            If the request is empty, negative, stepped, goes past the end or is something else.
        """
        resolved = self.resolve(key)
        return resolved.tolist() if isinstance(resolved, numpy.ndarray) else resolved

    def resolve(self, request: Request) -> int | slice | numpy.ndarray:
        """Turn a request inside the subset into one to the whole data set, contiguous as a slice.

        Parameters
        ----------
        request : int, slice, or list or array of int
            Positions inside the subset; repetitions and any order are fine.

        Returns
        -------
        int, slice or int64 array of shape (example,)
            An int for an int, otherwise a slice wherever the examples are contiguous and in order.

        Raises
        ------
        ValueError
            If the request is empty, negative, stepped, goes past the end or is something else.
        """
        if as_whole_number(request) is not None:
            position = _checked_indices([request], self.num_examples, "Request")[0]
            if isinstance(self._selection, slice):
                return int(self._selection.start + position)
            return int(self._selection[position])
        return self._resolve_many(request)

    def _resolve_many(self, request: Any, allow_empty: bool = False) -> slice | numpy.ndarray:
        positions: slice | numpy.ndarray
        if isinstance(request, slice):
            positions = slice_ = _checked_slice(request, self.num_examples, "Request")
            empty = slice_.stop == slice_.start
        else:
            indices = _checked_indices(request, self.num_examples, "Request")
            positions = contiguous_slice(indices)
            empty = len(indices) == 0
        if empty and not allow_empty:
            raise ValueError(f"Request {request!r} is empty: ask for one example at least.")
        if not isinstance(self._selection, slice):
            return contiguous_slice(self._selection[positions])
        offset = self._selection.start
        if isinstance(positions, slice):
            return slice(positions.start + offset, positions.stop + offset)
        return positions + offset

    def index_within_subset(
        self, indexable: Any, subset_request: Request, sort_indices: bool = False
    ) -> Any:
        """Read the examples that a request inside the subset means.

        Parameters
        ----------
        indexable : list, array, or other object with ``[]``
            The whole data set.
        subset_request : int, slice, or list or array of int
            Positions inside the subset.
        sort_indices : bool, optional
            Whether to read in increasing order, each example once, and put the result into the
            order of the request afterwards; some objects can be read in no other way.

        Returns
        -------
        example, or list or array of examples
            In the order of the request.

        Raises
        ------
        ValueError
            If the request is empty, negative, stepped, or goes past the end.
        """
        request = self.resolve(subset_request)
        if not isinstance(request, numpy.ndarray):
            return indexable[request]
        if sort_indices:
            return sorted_fancy_indexing(indexable, request)
        return iterable_fancy_indexing(indexable, request)

    @staticmethod
    def sorted_fancy_indexing(indexable: Any, request: Sequence[int] | numpy.ndarray) -> Any:
        """Read in increasing order; see `fuel_data.utils.indexing.sorted_fancy_indexing`.

        Parameters
        ----------
        indexable : array, HDF5 data set, list or other object with ``[]``
            What is read.
        request : list or array of int
            The indices, in any order, with repetitions.

        Returns
        -------
        array or list
            One example for each index, in the order of the request.
        """
        return sorted_fancy_indexing(indexable, request)

    @staticmethod
    def slice_to_numerical_args(slice_: slice, num_examples: int) -> tuple[int, int, int]:
        """Put numbers in the place of a slice's None.

        Parameters
        ----------
        slice_ : slice
            Any slice.
        num_examples : int
            What a missing stop means.

        Returns
        -------
        start, stop, step : int
            Nothing is cut off or checked.
        """
        start = 0 if slice_.start is None else slice_.start
        stop = num_examples if slice_.stop is None else slice_.stop
        step = 1 if slice_.step is None else slice_.step
        return start, stop, step


def _checked_slice(slice_: slice, num_examples: int, who: str) -> slice:
    start, stop, step = Subset.slice_to_numerical_args(slice_, num_examples)
    if step != 1:
        raise ValueError(f"{who}: a slice with a step is not supported; got {slice_!r}.")
    if start < 0 or stop < 0:
        raise ValueError(f"{who}: a slice counts from 0, without negative numbers; got {slice_!r}.")
    if start > stop:
        raise ValueError(f"{who}: a slice starts before it stops; got {slice_!r}.")
    if stop > num_examples:
        raise ValueError(f"{who}: {slice_!r} goes past the end of {num_examples} examples.")
    return slice(int(start), int(stop))


def _checked_indices(indices: Any, num_examples: int, who: str) -> numpy.ndarray:
    if not isinstance(indices, (Iterable, numpy.ndarray)) or isinstance(indices, (str, bytes)):
        raise ValueError(f"{who}: expected an int, a slice or indices; got {indices!r}.")
    array = numpy.asarray(indices if hasattr(indices, "__len__") else list(indices))
    if array.size == 0 and array.ndim <= 1:
        return numpy.empty(0, dtype=numpy.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{who}: indices are integers on one axis; got dtype {array.dtype} and shape "
            f"{array.shape}."
        )
    low, high = array.min(), array.max()
    if low < 0:
        raise ValueError(f"{who}: indices count from 0; got {low}.")
    if high >= num_examples:
        raise ValueError(f"{who}: index {high} is past the end of {num_examples} examples.")
    return array.astype(numpy.int64)
