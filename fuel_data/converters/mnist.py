"""MNIST, its four IDX files as one HDF5 file."""

import argparse
import os
from collections.abc import Callable

from fuel_data.converters.idx import add_dtype_argument, convert_idx, default_name, mnist_files

FILES = mnist_files(
    train_images="6bbc9ace898e44ae57da46a324031adb",
    train_labels="a25bea736e30d166cdddb491f175f624",
    test_images="2646ac647ad5339dbf082846283269ea",
    test_labels="27ae3e4e09519cfbb04c329615203637",
)


def convert_mnist(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str | None = None,
    dtype: str | None = None,
) -> tuple[str]:
    """Convert MNIST.

    The file has the sources `features`, of shape (70000, 1, 28, 28), with the axes batch, channel,
    height, width, and `targets`, uint8 of shape (70000, 1), with the axes batch, index; and the
    splits `train` of 60,000 and `test` of 10,000 examples.

    Parameters
    ----------
    directory : path
        Folder of the four files, packed (``.gz``) or not, or one of them.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file, by default ``mnist.hdf5``, or ``mnist_DTYPE.hdf5``.
    dtype : str, optional
        ``'float32'`` or ``'float64'`` for pixels from 0 to 1, ``'bool'`` for pixels of at least
        128; by default uint8 from 0 to 255.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If input files are missing.
    ValueError
        If one of them is not the original file.
    """
    name = output_filename or default_name("mnist", dtype)
    return convert_idx(FILES, directory, output_directory, name, dtype)


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments, to which `--dtype` is added.

    Returns
    -------
    function
        `convert_mnist`.
    """
    add_dtype_argument(subparser)
    return convert_mnist
