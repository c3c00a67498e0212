"""Fuel's name for the module `fuel_data.datasets.one_billion_word`."""

from fuel_data.datasets.one_billion_word import OneBillionWord

__all__ = ["OneBillionWord"]
