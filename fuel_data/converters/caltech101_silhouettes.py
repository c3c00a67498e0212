"""CalTech 101 Silhouettes, a MATLAB file as one HDF5 file."""

import argparse
import os
from collections.abc import Callable

import numpy

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.inputs import add_any_version_argument, check_count, find_inputs
from fuel_data.converters.matlab import read_mat
from fuel_data.utils.progress import progress_bar

#: Side of the images → split → number of images.
SIZES = {
    16: {"train": 4082, "valid": 2257, "test": 2302},
    28: {"train": 4100, "valid": 2264, "test": 2307},
}
VARIABLES = {"train": "train", "valid": "val", "test": "test"}
NUM_CLASSES = 101


def convert_silhouettes(
    size: int,
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str | None = None,
    any_version: bool = False,
) -> tuple[str]:
    """Convert the file of one size.

    The file has the sources `features`, of shape (example, 1, size, size), of zeros and ones, with
    the axes batch, channel, height, width, and `targets`, of shape (example, 1), classes from 1 to
    101, with the axes batch, index; each of the dtype that it has in the original; and the splits
    `train`, `valid` and `test`.

    The original lists the pixels of an image column by column. Fuel took them for rows, so its
    images lie on their sides; here height is height. Nobody has published a digest of the files.

    Parameters
    ----------
    size : {16, 28}
        Height and width of the images.
    directory : path
        Folder of the file, or the file.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file, by default caltech101_silhouettes16.hdf5 or caltech101_silhouettes28.hdf5.
    any_version : bool, optional
        Whether to take a file with other numbers of images.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If the file is missing.
    ValueError
        If it is damaged, or not the expected one, or there is no such size.
    """
    if size not in SIZES:
        raise ValueError(f"CalTech 101 Silhouettes: `size` must be 16 or 28; got {size!r}.")
    (path,) = find_inputs(directory, [f"caltech101_silhouettes_{size}_split1.mat"])
    shapes: dict[str, tuple[int | None, ...]] = {}
    for variable in VARIABLES.values():
        shapes |= {f"{variable}_data": (None, size * size), f"{variable}_labels": (None, 1)}
    found = read_mat(path, shapes)
    data = []
    for split, variable in VARIABLES.items():
        images, labels = found[f"{variable}_data"], found[f"{variable}_labels"]
        check_count(path, f"{split} images", len(images), SIZES[size][split], any_version)
        _check_values(path, images, labels)
        upright = images.reshape(-1, size, size).transpose(0, 2, 1)
        data += [(split, "features", upright[:, None]), (split, "targets", labels)]
    output_filename = output_filename or f"caltech101_silhouettes{size}.hdf5"
    output = os.path.join(output_directory, output_filename)
    total = sum(values.nbytes for _, _, values in data)
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
        axes = {
            "features": ("batch", "channel", "height", "width"),
            "targets": ("batch", "index"),
        }
        fill_hdf5_file(h5file, data, axes, progress)
        record_inputs(h5file, [path])
    return (output,)


def _check_values(path: str, images: numpy.ndarray, labels: numpy.ndarray) -> None:
    if len(images) != len(labels):
        raise ValueError(f"{path}: {len(images):,} images have {len(labels):,} labels.")
    right = numpy.isin(images, (0, 1)).all() and numpy.isin(labels, range(1, NUM_CLASSES + 1)).all()
    if not right:
        raise ValueError(
            f"{path}: expected pixels of 0 and 1 and labels from 1 to {NUM_CLASSES}; there is "
            "something else in it."
        )


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `convert_silhouettes`.
    """
    subparser.add_argument(
        "size", type=int, choices=sorted(SIZES), help="height and width of the images"
    )
    add_any_version_argument(subparser)
    return convert_silhouettes
