"""Streams of encoded images and of windows over sequences. Building the first needs Pillow."""

import functools
import io
from collections.abc import Callable
from typing import Any

import numpy

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.schemes import ShuffledExampleScheme, ShuffledScheme
from fuel_data.streams import AbstractDataStream, DataStream
from fuel_data.testing.cases import StreamCase
from fuel_data.transformers.defaults import ToBytes
from fuel_data.transformers.image import (
    ImagesFromBytes,
    MinimumImageDimensions,
    Random2DRotation,
    RandomFixedSizeCrop,
)
from fuel_data.transformers.ragged import ragged
from fuel_data.transformers.sequences import NGrams, Window
from fuel_data.utils.pillow import import_pillow


def encoded_images(num_examples: int) -> IndexableDataset:
    """Make a data set of PNG images of several sizes, as HDF5 files keep them.

    Parameters
    ----------
    num_examples : int
        How many.

    Returns
    -------
    IndexableDataset
        ``features``, uint8 arrays of shape (bytes,), and ``targets``, a list of numbers.
    """
    pillow = import_pillow("encoded_images")
    files = []
    for number in range(num_examples):
        shape = (5 + number % 3, 6, 3)
        pixels = (numpy.arange(numpy.prod(shape)) * 7 + number) % 256
        file = io.BytesIO()
        pillow.fromarray(pixels.astype("uint8").reshape(shape)).save(file, "PNG")
        files.append(numpy.frombuffer(file.getvalue(), "uint8"))
    data = {"features": ragged(files), "targets": list(range(num_examples))}
    return IndexableDataset(data, axis_labels={"features": ("batch", "bytes"), "targets": None})


def _decoded(scheme: Any, num_examples: int) -> AbstractDataStream:
    stream = DataStream(encoded_images(num_examples), iteration_scheme=scheme(num_examples))
    return ImagesFromBytes(ToBytes(stream, which_sources=["features"]), which_sources=["features"])


def _of_batches(num_examples: int) -> AbstractDataStream:
    return _decoded(functools.partial(ShuffledScheme, batch_size=3), num_examples)


def _of_examples(num_examples: int) -> AbstractDataStream:
    return _decoded(ShuffledExampleScheme, num_examples)


def _changed(
    below: Callable[[int], AbstractDataStream], make_rng: Any, num_examples: int
) -> AbstractDataStream:
    drawing = {"seed": 3} if make_rng is None else {"rng": make_rng(3)}
    features: dict[str, Any] = {"which_sources": ["features"]}
    enlarged = MinimumImageDimensions(below(num_examples), (6, 7), "bilinear", **features)
    rotated = Random2DRotation(enlarged, 0.3, **drawing, **features)
    return RandomFixedSizeCrop(rotated, (5, 4), seed=4, **features)


def _sequences(num_examples: int) -> AbstractDataStream:
    rows = [numpy.arange(number, number + number * 5 % 4) for number in range(num_examples)]
    return DataStream(IterableDataset({"features": rows}, axis_labels={"features": ("time",)}))


IMAGES = [
    StreamCase("images, batches", functools.partial(_changed, _of_batches, None)),
    StreamCase("images, examples", functools.partial(_changed, _of_examples, None)),
    StreamCase(
        "images, rng of the user",
        functools.partial(_changed, _of_batches, numpy.random.RandomState),
        shares_rng=True,
    ),
]

WINDOWS = [
    StreamCase("windows", lambda n: Window(-1, 1, 2, True, _sequences(n))),
    StreamCase("n-grams", lambda n: NGrams(2, _sequences(n))),
]
