"""Transformers: streams over streams."""

from fuel_data.transformers.base import (
    AgnosticSourcewiseTransformer,
    AgnosticTransformer,
    ExpectsAxisLabels,
    SourcewiseTransformer,
    Transformer,
)
from fuel_data.transformers.batches import Batch, Cache, Padding, Unpack
from fuel_data.transformers.leftovers import LeftoverTransformer
from fuel_data.transformers.mapping import Filter, Mapping, SortMapping
from fuel_data.transformers.sources import FilterSources, Merge, Rename
from fuel_data.transformers.values import Cast, Flatten, ForceFloatX, ScaleAndShift

__all__ = [
    "AgnosticSourcewiseTransformer",
    "AgnosticTransformer",
    "Batch",
    "Cache",
    "Cast",
    "ExpectsAxisLabels",
    "Filter",
    "FilterSources",
    "Flatten",
    "ForceFloatX",
    "LeftoverTransformer",
    "Mapping",
    "Merge",
    "Padding",
    "Rename",
    "ScaleAndShift",
    "SortMapping",
    "SourcewiseTransformer",
    "Transformer",
    "Unpack",
]
