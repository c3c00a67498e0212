"""The 1,797 handwritten digits that come with this package, as an HDF5 file."""

import argparse
import importlib.resources
import os
from collections.abc import Callable

import numpy

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.utils.formats import open_
from fuel_data.utils.progress import progress_bar

TEST_EVERY = 5


def convert_digits(
    directory: str | os.PathLike[str] | None,
    output_directory: str | os.PathLike[str],
    output_filename: str = "digits.hdf5",
) -> tuple[str]:
    """Convert the digits of UCI's Optical Recognition of Handwritten Digits.

    The file has the sources `features`, uint8 of shape (1797, 1, 8, 8), from 0 to 16, with the
    axes batch, channel, height, width, and `targets`, uint8 of shape (1797, 1), with the axes
    batch, index; and the splits `train` of 1,437 and `test` of 360 examples.

    The split is ours, because UCI's training part is not among these images. It is fixed by this
    rule: order the images by class, and within a class as UCI has them; of that list, every fifth
    from the first on is a test image. So each class has a fifth of its images in the test split,
    up to one. Within a split the images stand in UCI's order. The same 13 people wrote both
    splits, as with a random split; it says nothing about the hand of another writer.

    Parameters
    ----------
    directory : path or None
        Not used: the images come with the package.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.

    Returns
    -------
    tuple of str
        Path of the file.
    """
    source = os.fspath(str(importlib.resources.files("fuel_data.datasets") / "data/digits.csv.gz"))
    with open_(source) as file:
        table = numpy.loadtxt(file, delimiter=",", dtype=numpy.uint8)
    features = table[:, :64].reshape(-1, 1, 8, 8)
    targets = table[:, 64:]
    train, test = split_digits(targets[:, 0])
    output = os.path.join(output_directory, output_filename)
    data = [
        (split, name, array[indices])
        for split, indices in (("train", train), ("test", test))
        for name, array in (("features", features), ("targets", targets))
    ]
    with (
        new_hdf5_file(output) as h5file,
        progress_bar(output_filename, table.nbytes) as progress,
    ):
        labels = {
            "features": ("batch", "channel", "height", "width"),
            "targets": ("batch", "index"),
        }
        fill_hdf5_file(h5file, data, labels, progress)
        record_inputs(h5file, [source])
    return (output,)


def split_digits(classes: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Split examples by the rule that `convert_digits` describes.

    Parameters
    ----------
    classes : integer array of shape (example,)
        The class of each example.

    Returns
    -------
    train, test : int64 arrays of shape (example,)
        Increasing indices.
    """
    by_class = numpy.argsort(classes, kind="stable")
    is_test = numpy.zeros(len(classes), dtype=bool)
    is_test[by_class[::TEST_EVERY]] = True
    return numpy.flatnonzero(~is_test), numpy.flatnonzero(is_test)


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments: there are none of its own.

    Returns
    -------
    function
        `convert_digits`.
    """
    return convert_digits
