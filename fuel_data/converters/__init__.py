"""Converters: each turns the files of one data set into an HDF5 file of Fuel's format.

A converter is a function ``convert(directory, output_directory, output_filename=..., **arguments)``
that returns the paths of the files it has written, together with a function
``fill_subparser(subparser)`` that adds its arguments to a parser and returns the converter. Modules
that are named in the setting ``extra_converters`` list theirs, as this one does, in
``all_converters``.
"""

from fuel_data.converters import arrays, digits, fashion_mnist, mnist
from fuel_data.converters.provenance import CONVERT_VERSION as __version__

__all__ = ["__version__", "all_converters"]

all_converters = (
    ("arrays", arrays.fill_subparser),
    ("digits", digits.fill_subparser),
    ("fashion_mnist", fashion_mnist.fill_subparser),
    ("mnist", mnist.fill_subparser),
)
