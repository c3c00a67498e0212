"""Transformers: streams over streams."""

from fuel_data.transformers.base import (
    AgnosticSourcewiseTransformer,
    AgnosticTransformer,
    ExpectsAxisLabels,
    SourcewiseTransformer,
    Transformer,
)
from fuel_data.transformers.batches import Batch, Cache, Padding, Unpack
from fuel_data.transformers.buckets import Bucket, choose_bounds
from fuel_data.transformers.leftovers import LeftoverTransformer
from fuel_data.transformers.mapping import Filter, Mapping, SortMapping
from fuel_data.transformers.mixing import Interleave, LinearWeights, Mix, PiecewiseWeights
from fuel_data.transformers.order import Repeat, Shard, Skip, Take
from fuel_data.transformers.processes import MultiProcessing
from fuel_data.transformers.shuffling import Shuffle
from fuel_data.transformers.sources import FilterSources, Merge, Rename
from fuel_data.transformers.values import Cast, Flatten, ForceFloatX, ScaleAndShift

__all__ = [
    "AgnosticSourcewiseTransformer",
    "AgnosticTransformer",
    "Batch",
    "Bucket",
    "Cache",
    "Cast",
    "ExpectsAxisLabels",
    "Filter",
    "FilterSources",
    "Flatten",
    "ForceFloatX",
    "Interleave",
    "LeftoverTransformer",
    "LinearWeights",
    "Mapping",
    "Merge",
    "Mix",
    "MultiProcessing",
    "Padding",
    "PiecewiseWeights",
    "Rename",
    "Repeat",
    "ScaleAndShift",
    "Shard",
    "Shuffle",
    "Skip",
    "SortMapping",
    "SourcewiseTransformer",
    "Take",
    "Transformer",
    "Unpack",
    "choose_bounds",
]
