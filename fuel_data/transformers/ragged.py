"""Ragged sources: examples of different shapes, as an object array or a list of arrays."""

import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy


def each_element(function: Callable[[Any], Any], data: Any) -> Any:
    """Apply a function to an array, or to each element of a ragged one.

    Parameters
    ----------
    function : function from array to array
        What is applied.
    data : array, object array of arrays, or list of arrays
        A ragged source is an object array, or a list, with one array for each example.

    Returns
    -------
    array, object array of arrays, or list of arrays
    """
    if isinstance(data, list) and len({numpy.shape(element) for element in data}) > 1:
        return [function(numpy.asarray(element)) for element in data]
    if not isinstance(data, numpy.ndarray) or data.dtype != object:
        return function(numpy.asarray(data))
    return ragged([function(numpy.asarray(element)) for element in data])


def count_examples(who: str, name: str, data: Any, way_out: str) -> int:
    """Count the examples that one source of a batch has.

    Parameters
    ----------
    who : str
        Who needs them, for the error.
    name : str
        Which source it is, for the error.
    data : array, object array of arrays, or list
        The source.
    way_out : str
        The last sentence of the error.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is a single item, such as the mean of a batch.

    Examples
    --------
    >>> count_examples("Unpack", "the source 'mean'", 0.5, "Leave it out with FilterSources.")
    Traceback (most recent call last):
    ValueError: Unpack: the source 'mean' must have an item for each example of a batch; got 0.5. \
Leave it out with FilterSources.
    """
    try:
        return len(data)
    except TypeError:
        raise ValueError(
            f"{who}: {name} must have an item for each example of a batch; got "
            f"{reprlib.repr(data)}. {way_out}"
        ) from None


def ragged(elements: Sequence[Any]) -> numpy.ndarray:
    """Make an object array of examples that have different shapes.

    Parameters
    ----------
    elements : sequence of array
        The examples.

    Returns
    -------
    object array of shape (batch,)
    """
    array = numpy.empty(len(elements), dtype=object)
    for number, element in enumerate(elements):
        array[number] = element
    return array
