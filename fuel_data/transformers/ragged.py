"""Ragged sources: examples of different shapes, as an object array or a list of arrays."""

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
