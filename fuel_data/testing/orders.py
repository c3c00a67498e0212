"""Transformers that change which examples come, when, and how many at a time."""

from typing import Any

import numpy

from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ShuffledExampleScheme
from fuel_data.streams import AbstractDataStream, DataStream
from fuel_data.testing.cases import TransformerCase
from fuel_data.transformers import (
    Bucket,
    Interleave,
    LinearWeights,
    Mapping,
    Mix,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
)


def _some_length(example: tuple) -> int:
    # Those of length 3 are left out.
    return int(abs(numpy.sum(example[-1]))) % 4


def _shaken(data: tuple, rng: numpy.random.Generator) -> tuple:
    return data[::-1] if rng.uniform() < 0 else data


def _mixed(**arguments: Any) -> Any:
    def over(stream: AbstractDataStream) -> AbstractDataStream:
        other = Mapping(stream, _shaken, random=True)
        return Mix([stream, other], **arguments)

    return over


def _mixed_by_step(stream: AbstractDataStream) -> AbstractDataStream:
    weights = LinearWeights([1, 0.1], [0.1, 1], num_steps=9)
    return Take(Mix([Repeat(stream, 2), Repeat(stream, 2)], weights, num_items=4), 3)


def _interleaved(stream: AbstractDataStream) -> AbstractDataStream:
    return Interleave([Skip(stream, 1), stream], block_length=2)


def repeated_without_end(num_examples: int) -> AbstractDataStream:
    """Build a stream whose epochs end because one of those that it mixes does.

    Parameters
    ----------
    num_examples : int
        How many examples the one that ends has.

    Returns
    -------
    AbstractDataStream
    """
    data = [numpy.arange(num_examples), numpy.arange(-5, 0)]
    streams = [
        DataStream(IndexableDataset({"x": x}), ShuffledExampleScheme(len(x), seed=len(x)))
        for x in data
    ]
    return Mix([streams[0], Repeat(streams[1])], [1, 3], until="first", seed=4)


ORDERS = [
    TransformerCase("shuffled", lambda stream: Shuffle(stream, buffer_size=4), draws=True),
    TransformerCase("first five", lambda stream: Take(stream, 5)),
    TransformerCase("without the first", lambda stream: Skip(stream, 1)),
    TransformerCase("every third", lambda stream: Shard(stream, 1, 3)),
    TransformerCase("half of whole rounds", lambda stream: Shard(stream, 1, 2, remainder="drop")),
    TransformerCase("repeated", lambda stream: Repeat(stream, 2), once=True),
    TransformerCase("mixed", _mixed(weights=[2, 1]), once=True, reads_twice=True, draws=True),
    TransformerCase(
        "mixed to the end of one",
        _mixed(weights=[1, 2], until="first"),
        once=True,
        reads_twice=True,
        draws=True,
    ),
    TransformerCase("interleaved", _interleaved, once=True, reads_twice=True),
    TransformerCase(
        "bucketed",
        lambda stream: Bucket(stream, _some_length, bounds=[0, 2], batch_size=[2, 3], max_wait=4),
        kind="examples",
    ),
]

BUCKETS = [
    TransformerCase(
        "bucketed by tokens",
        lambda stream: Bucket(stream, "features", bounds=[1, 2, 4], max_tokens=8),
        kind="examples",
    ),
    TransformerCase(
        "whole buckets",
        lambda stream: Bucket(stream, "features", bounds=[2, 3], batch_size=2, drop_last=True),
        kind="examples",
    ),
]

MIXED_BY_STEP = TransformerCase("mixed by step", _mixed_by_step, reads_twice=True)
