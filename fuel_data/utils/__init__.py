"""Small tools that data sets, streams and converters share."""

from fuel_data.utils.indexing import iterable_fancy_indexing, sorted_fancy_indexing
from fuel_data.utils.paths import find_in_data_path, remember_cwd
from fuel_data.utils.pickling import do_not_pickle_attributes, lazy_property_factory
from fuel_data.utils.subset import Subset

# Fuel's name for what it was called in both versions of Python.
buffer_ = memoryview

__all__ = [
    "Subset",
    "buffer_",
    "do_not_pickle_attributes",
    "find_in_data_path",
    "iterable_fancy_indexing",
    "lazy_property_factory",
    "remember_cwd",
    "sorted_fancy_indexing",
]
