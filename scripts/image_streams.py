"""Streams of images for ``train_mlp.py``, and for a data server: this file imports no compiler.

``fuel-server scripts/image_streams.py:train --argument dataset=digits`` serves the first of them.
"""

import numpy

from fuel_data.datasets import MNIST, Digits, FashionMNIST
from fuel_data.schemes import SequentialScheme, ShuffledScheme
from fuel_data.streams import AbstractDataStream, DataStream
from fuel_data.transformers import Flatten, Mapping

DATASETS = {"digits": Digits, "mnist": MNIST, "fashion_mnist": FashionMNIST}


def shift_images(data: tuple, rng: numpy.random.Generator) -> tuple:
    """Move each image by at most one pixel along each axis.

    Parameters
    ----------
    data : tuple
        Images of shape (batch, channel, height, width), and their classes.
    rng : numpy.random.Generator
        Where the moves come from.

    Returns
    -------
    tuple
        The moved images, with zeros where nothing was, and the classes.
    """
    images, targets = data
    height, width = images.shape[2:]
    padded = numpy.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    top, left = rng.integers(0, 3, size=(2, len(images), 1, 1))
    rows = top + numpy.arange(height)[:, numpy.newaxis]
    columns = left + numpy.arange(width)
    examples = numpy.arange(len(images))[:, numpy.newaxis, numpy.newaxis]
    moved = padded.transpose(0, 2, 3, 1)[examples, rows, columns]
    return numpy.ascontiguousarray(moved.transpose(0, 3, 1, 2)), targets


def train(
    dataset: str, batch_size: int = 64, seed: int = 1, moved: bool = True
) -> AbstractDataStream:
    """Give shuffled training images.

    Parameters
    ----------
    dataset : str
        A key of `DATASETS`.
    batch_size : int
        Examples in a batch.
    seed : int
        Of the order and the moves.
    moved : bool
        Move each image by up to one pixel, anew in each epoch.

    Returns
    -------
    AbstractDataStream
        Batches of ``features``, float32 of shape (batch, feature) in [0, 1], and ``targets``,
        uint8 of shape (batch, index).
    """
    images = DATASETS[dataset](("train",))
    scheme = ShuffledScheme(images.num_examples, batch_size, seed=seed)
    stream = images.apply_default_transformers(DataStream(images, iteration_scheme=scheme))
    if moved:
        stream = Mapping(stream, shift_images, random=True, seed=seed)
    return Flatten(stream, which_sources=("features",))


def test(dataset: str, batch_size: int = 256) -> AbstractDataStream:
    """Give the test images in order.

    Parameters
    ----------
    dataset : str
        A key of `DATASETS`.
    batch_size : int
        Examples in a batch.

    Returns
    -------
    AbstractDataStream
        Batches as `train` gives them, neither shuffled nor moved.
    """
    images = DATASETS[dataset](("test",))
    scheme = SequentialScheme(images.num_examples, batch_size)
    stream = images.apply_default_transformers(DataStream(images, iteration_scheme=scheme))
    return Flatten(stream, which_sources=("features",))
