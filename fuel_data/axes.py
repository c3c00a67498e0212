"""The vocabulary of axis names.

An axis of a source has a name, so that transformers and bricks can check what they are given
instead of guessing from the rank. Any name is allowed; these are the ones that the library itself
uses and that converters write into HDF5 files.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

BATCH = "batch"
TIME = "time"
FEATURE = "feature"
CHANNEL = "channel"
HEIGHT = "height"
WIDTH = "width"
INDEX = "index"

AxisLabels = Mapping[str, tuple[str, ...] | None]


def without_batch(axis_labels: AxisLabels | None) -> AxisLabels | None:
    """Give the labels of single examples.

    Parameters
    ----------
    axis_labels : dict from source to tuple of str or None, or None
        The labels of batches.

    Returns
    -------
    dict or None
        The same without `BATCH`.
    """
    if axis_labels is None:
        return None
    return {
        source: None if labels is None else tuple(label for label in labels if label != BATCH)
        for source, labels in axis_labels.items()
    }


def with_batch(axis_labels: AxisLabels | None) -> AxisLabels | None:
    """Give the labels of batches.

    Parameters
    ----------
    axis_labels : dict from source to tuple of str or None, or None
        The labels of single examples.

    Returns
    -------
    dict or None
        The same with `BATCH` in front of each.
    """
    if axis_labels is None:
        return None
    return {
        source: None if labels is None else (BATCH, *labels)
        for source, labels in axis_labels.items()
    }


def examples_first(values: Any, labels: Sequence[str] | None) -> Any:
    """Turn a batch so that its first axis is the examples.

    Parameters
    ----------
    values : array or list
        A batch of one source.
    labels : sequence of str or None
        Names of its axes. Without `BATCH` among them the examples are on the first axis.

    Returns
    -------
    array or list
        The same values, not copied.

    Examples
    --------
    >>> examples_first(numpy.zeros((7, 2)), ("time", "batch")).shape
    (2, 7)
    """
    axis = list(labels).index(BATCH) if labels and BATCH in labels else 0
    return numpy.moveaxis(values, axis, 0) if 0 < axis < numpy.ndim(values) else values
