"""Converters: each turns the files of one data set into an HDF5 file of Fuel's format.

A converter is a function ``convert(directory, output_directory, output_filename=..., **arguments)``
that returns the paths of the files it has written, together with a function
``fill_subparser(subparser)`` that adds its arguments to a parser and returns the converter. Modules
that are named in the setting ``extra_converters`` list theirs, as this one does, in
``all_converters``.
"""

from fuel_data.converters import (
    adult,
    arrays,
    binarized_mnist,
    caltech101_silhouettes,
    celeba,
    cifar10,
    cifar100,
    digits,
    dogs_vs_cats,
    fashion_mnist,
    ilsvrc2010,
    ilsvrc2012,
    image_folder,
    iris,
    join,
    mnist,
    stream,
    svhn,
    youtube_audio,
)
from fuel_data.converters.converter import Converter
from fuel_data.converters.provenance import CONVERT_VERSION as __version__

__all__ = ["Converter", "__version__", "all_converters"]

all_converters = (
    ("adult", adult.fill_subparser),
    ("arrays", arrays.fill_subparser),
    ("binarized_mnist", binarized_mnist.fill_subparser),
    ("caltech101_silhouettes", caltech101_silhouettes.fill_subparser),
    ("celeba", celeba.fill_subparser),
    ("cifar10", cifar10.fill_subparser),
    ("cifar100", cifar100.fill_subparser),
    ("digits", digits.fill_subparser),
    ("dogs_vs_cats", dogs_vs_cats.fill_subparser),
    ("fashion_mnist", fashion_mnist.fill_subparser),
    ("ilsvrc2010", ilsvrc2010.fill_subparser),
    ("ilsvrc2012", ilsvrc2012.fill_subparser),
    ("image_folder", image_folder.fill_subparser),
    ("iris", iris.fill_subparser),
    ("join", join.fill_subparser),
    ("mnist", mnist.fill_subparser),
    ("stream", stream.fill_subparser),
    ("svhn", svhn.fill_subparser),
    ("youtube_audio", youtube_audio.fill_subparser),
)
