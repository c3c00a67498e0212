"""Downloaders: each fetches the files of one data set, checked by their digests.

A downloader is a function ``download(directory, clear, **arguments)`` that gives the paths of the
files, together with a function ``fill_subparser(subparser)`` that adds its arguments to a parser
and returns the downloader. Modules that are named in the setting ``extra_downloaders`` list theirs,
as this one does, in ``all_downloaders``.
"""

from fuel_data.downloaders import (
    adult,
    binarized_mnist,
    caltech101_silhouettes,
    celeba,
    cifar10,
    cifar100,
    dogs_vs_cats,
    fashion_mnist,
    ilsvrc2010,
    ilsvrc2012,
    iris,
    mnist,
    one_billion_word,
    svhn,
    youtube_audio,
)
from fuel_data.downloaders.downloader import Downloader

__all__ = ["Downloader", "all_downloaders"]

all_downloaders = (
    ("adult", adult.fill_subparser),
    ("binarized_mnist", binarized_mnist.fill_subparser),
    ("caltech101_silhouettes", caltech101_silhouettes.fill_subparser),
    ("celeba", celeba.fill_subparser),
    ("cifar10", cifar10.fill_subparser),
    ("cifar100", cifar100.fill_subparser),
    ("dogs_vs_cats", dogs_vs_cats.fill_subparser),
    ("fashion_mnist", fashion_mnist.fill_subparser),
    ("ilsvrc2010", ilsvrc2010.fill_subparser),
    ("ilsvrc2012", ilsvrc2012.fill_subparser),
    ("iris", iris.fill_subparser),
    ("mnist", mnist.fill_subparser),
    ("one_billion_word", one_billion_word.fill_subparser),
    ("svhn", svhn.fill_subparser),
    ("youtube_audio", youtube_audio.fill_subparser),
)
