"""Default transformers that several data sets have."""

from collections.abc import Sequence
from typing import Any

import numpy

from fuel_data.axes import BATCH
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import SourcewiseTransformer
from fuel_data.transformers.image import ImagesFromBytes
from fuel_data.transformers.values import Cast, ScaleAndShift


class ToBytes(SourcewiseTransformer):
    """Give the memory of arrays as ``bytes``.

    HDF5 files keep encoded images as arrays of uint8.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    **kwargs
        See `SourcewiseTransformer`.

    Notes
    -----
    A batch becomes a list. The axes are labelled ``'bytes'``, after ``'batch'`` in batches.

    Examples
    --------
    >>> from fuel_data.datasets import IterableDataset
    >>> words = {"word": [numpy.array([104, 105], dtype="uint8")]}
    >>> list(ToBytes(IterableDataset(words).get_example_stream()).get_epoch_iterator())
    [(b'hi',)]
    """

    def __init__(self, data_stream: AbstractDataStream, **kwargs: Any) -> None:
        super().__init__(data_stream, **kwargs)
        if kwargs.get("axis_labels") is None:
            labels = ("bytes",) if self.produces_examples else (BATCH, "bytes")
            below = dict.fromkeys(self.sources) | dict(self.axis_labels or {})
            self.axis_labels = below | dict.fromkeys(self.which_sources, labels)

    def transform_source_example(self, source_example: Any, source_name: str) -> bytes:
        """Give one array as bytes; see `SourcewiseTransformer.transform_source_example`."""
        return numpy.asarray(source_example).tobytes()

    def transform_source_batch(self, source_batch: Any, source_name: str) -> list[bytes]:
        """Give the arrays of a batch as bytes; see `SourcewiseTransformer`."""
        return [numpy.asarray(example).tobytes() for example in source_batch]


def uint8_pixels_to_floatX(which_sources: Sequence[str]) -> tuple[tuple[Any, list, dict], ...]:
    """Describe the transformers that turn pixels from 0 to 255 into floatX from 0 to 1.

    Parameters
    ----------
    which_sources : sequence of str
        The sources that have pixels.

    Returns
    -------
    tuple of (transformer, arguments, keywords)
        As `Dataset.default_transformers` has it.
    """
    return (
        (ScaleAndShift, [1 / 255, 0], {"which_sources": which_sources}),
        (Cast, ["floatX"], {"which_sources": which_sources}),
    )


def rgb_images_from_encoded_bytes(
    which_sources: Sequence[str],
) -> tuple[tuple[Any, list, dict], ...]:
    """Describe the transformers that decode images to RGB.

    Parameters
    ----------
    which_sources : sequence of str
        The sources that have encoded images.

    Returns
    -------
    tuple of (transformer, arguments, keywords)
        As `Dataset.default_transformers` has it.
    """
    return (
        (ToBytes, [], {"which_sources": which_sources}),
        (ImagesFromBytes, [], {"which_sources": which_sources}),
    )
