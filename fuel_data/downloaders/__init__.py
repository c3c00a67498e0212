"""Downloaders: each fetches the files of one data set, checked by their digests.

A downloader is a function ``download(directory, clear, **arguments)`` that gives the paths of the
files, together with a function ``fill_subparser(subparser)`` that adds its arguments to a parser
and returns the downloader. Modules that are named in the setting ``extra_downloaders`` list theirs,
as this one does, in ``all_downloaders``.
"""

from fuel_data.downloaders import fashion_mnist, mnist

all_downloaders = (
    ("fashion_mnist", fashion_mnist.fill_subparser),
    ("mnist", mnist.fill_subparser),
)
