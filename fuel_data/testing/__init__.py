"""The contract of streams, as checks that anybody can run over their own.

`STREAMS` lists how to build one stream of every kind; the tests of the library run `check_contract`
over all of it. Whoever writes a data set, scheme or transformer writes a function that builds a
stream with it and does the same:

>>> import numpy
>>> from fuel_data.datasets import IndexableDataset
>>> from fuel_data.schemes import ShuffledScheme
>>> from fuel_data.streams import DataStream
>>> from fuel_data.testing import check_contract
>>> def build(num_examples):
...     dataset = IndexableDataset({"x": numpy.arange(num_examples)})
...     return DataStream(dataset, iteration_scheme=ShuffledScheme(num_examples, batch_size=3))
>>> check_contract(build)
"""

from fuel_data.testing.cases import StreamCase, TransformerCase
from fuel_data.testing.checks import (
    check_contract,
    check_digest,
    check_independent_iterators,
    check_items,
    check_items_are_own,
    check_position_is_small,
    check_resumption,
    same_data,
)
from fuel_data.testing.pipelines import LEAVES, STREAMS, TRANSFORMERS, compose

__all__ = [
    "LEAVES",
    "STREAMS",
    "TRANSFORMERS",
    "StreamCase",
    "TransformerCase",
    "check_contract",
    "check_digest",
    "check_independent_iterators",
    "check_items",
    "check_items_are_own",
    "check_position_is_small",
    "check_resumption",
    "compose",
    "same_data",
]
