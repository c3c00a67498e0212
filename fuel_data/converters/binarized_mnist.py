"""Hugo Larochelle's binarized MNIST, its three texts of zeros and ones as one HDF5 file."""

import argparse
import os
from collections.abc import Callable

import numpy

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.inputs import (
    add_any_version_argument,
    check_count,
    check_digests,
    find_inputs,
)
from fuel_data.utils.progress import progress_bar

SIDE = 28
#: Each pixel is a digit and what separates it from the next.
EXAMPLE_BYTES = SIDE * SIDE * 2
SPLITS = {"train": 50000, "valid": 10000, "test": 10000}
FILES = {split: f"binarized_mnist_{split}.amat" for split in SPLITS}
DIGESTS = {
    "binarized_mnist_train.amat": (
        "ad693b29f94c14277b095f5238ddefbbdaaae0939789dd2f4f0205278cee3e4d"
    ),
    "binarized_mnist_valid.amat": (
        "1de3d397c40fe8eeb33dafd4099a1f665ec01e96d9be234aaeeac8a34930e2e2"
    ),
    "binarized_mnist_test.amat": (
        "e6687bfea3f820c174f33b7865140b2a2dd2930ef786f35d45795fc193b5ab2c"
    ),
}


def convert_binarized_mnist(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "binarized_mnist.hdf5",
    any_version: bool = False,
) -> tuple[str]:
    """Convert the three files.

    The file has the source `features`, uint8 of shape (70000, 1, 28, 28), of zeros and ones, with
    the axes batch, channel, height, width; and the splits `train` of 50,000, `valid` of 10,000 and
    `test` of 10,000 images.

    Parameters
    ----------
    directory : path
        Folder of the files, or one of them.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    any_version : bool, optional
        Whether to take files with other digests and other numbers of images.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If files are missing.
    ValueError
        If one of them is damaged, or not the expected one.
    """
    paths = find_inputs(directory, FILES.values())
    check_digests(paths, DIGESTS, any_version)
    data = [
        (split, "features", _read_images(path, expected, any_version))
        for (split, expected), path in zip(SPLITS.items(), paths, strict=True)
    ]
    output = os.path.join(output_directory, output_filename)
    total = sum(values.nbytes for _, _, values in data)
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
        labels = {"features": ("batch", "channel", "height", "width")}
        fill_hdf5_file(h5file, data, labels, progress)
        record_inputs(h5file, paths)
    return (output,)


def _read_images(path: str, expected: int, any_version: bool) -> numpy.ndarray:
    size = os.path.getsize(path)
    if size % EXAMPLE_BYTES:
        raise ValueError(
            f"{path}: expected {EXAMPLE_BYTES:,} bytes for each image, a digit and a separator for "
            f"each pixel; its {size:,} bytes are no multiple of that. It is cut short, or another "
            "file."
        )
    check_count(path, "images", size // EXAMPLE_BYTES, expected, any_version)
    # A map, so that the text, which is twice as large, need not fit into memory.
    text = numpy.memmap(path, numpy.uint8, "r").reshape(-1, SIDE * SIDE, 2)
    digits = text[:, :, 0] - ord("0")
    separators = text[:, :, 1]
    line_ends = separators[:, -1] == ord("\n")
    if digits.max() > 1 or not line_ends.all() or not (separators[:, :-1] == ord(" ")).all():
        raise ValueError(
            f"{path}: expected lines of {SIDE * SIDE} digits, 0 or 1, with a space between; there "
            "is something else in it."
        )
    return digits.reshape(-1, 1, SIDE, SIDE)


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `convert_binarized_mnist`.
    """
    add_any_version_argument(subparser)
    return convert_binarized_mnist
