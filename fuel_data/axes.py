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


def labels_of(stream: Any) -> AxisLabels | None:
    """Give the labels of the sources that a stream or data set has now, and of no others.

    A data set knows those of all that it provides, of which a part may be chosen.

    Parameters
    ----------
    stream : AbstractDataStream or Dataset
        What may have `axis_labels`.

    Returns
    -------
    dict from source to tuple of str or None, or None
        None if it has no labels.
    """
    labels = getattr(stream, "axis_labels", None)
    return None if labels is None else of_sources(labels, stream.sources)


def of_sources(by_source: Mapping[str, Any], sources: Sequence[str]) -> dict[str, Any]:
    """Keep what is said of some sources.

    Parameters
    ----------
    by_source : dict of str to object
        What is said of each source, perhaps also of others.
    sources : sequence of str
        The sources.

    Returns
    -------
    dict of str to object
        In the order of `sources`.

    Examples
    --------
    >>> of_sources({"features": 1, "targets": 2}, ("targets", "index"))
    {'targets': 2}
    """
    return {source: by_source[source] for source in sources if source in by_source}


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
