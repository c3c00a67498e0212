"""Fisher's irises, the table `iris.data` of UCI, as an HDF5 file."""

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
    read_rows,
)

FILE = "iris.data"
DIGESTS = {FILE: "6f608b71a7317216319b4d27b4d9bc84e6abd734eda7872b71a458569e2656c0"}
NUM_EXAMPLES = 150
CLASSES = ("Iris-setosa", "Iris-versicolor", "Iris-virginica")


def convert_iris(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "iris.hdf5",
    any_version: bool = False,
) -> tuple[str]:
    """Convert the table.

    The file has the sources `features`, float32 of shape (150, 4): length and width of the sepal,
    then of the petal, in cm, with the axes batch, index; and `targets`, uint8 of shape (150, 1):
    0 for setosa, 1 for versicolor, 2 for virginica, with the axes batch, index. The one split is
    `all`.

    Parameters
    ----------
    directory : path
        Folder of the file, or the file.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    any_version : bool, optional
        Whether to take a file with another digest and another number of flowers.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If the file is missing.
    ValueError
        If it is damaged, or not the expected one.
    """
    (path,) = find_inputs(directory, [FILE])
    check_digests([path], DIGESTS, any_version)
    features, targets = _read(path)
    check_count(path, "flowers", len(features), NUM_EXAMPLES, any_version)
    data = [("all", "features", features), ("all", "targets", targets)]
    output = os.path.join(output_directory, output_filename)
    with new_hdf5_file(output) as h5file:
        fill_hdf5_file(h5file, data, dict.fromkeys(("features", "targets"), ("batch", "index")))
        record_inputs(h5file, [path])
    return (output,)


def _read(path: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    features, targets = [], []
    for line, row in read_rows(path):
        if not row:
            continue
        try:
            *numbers, name = row
            lengths = [float(number) for number in numbers]
            target = CLASSES.index(name)
            if len(lengths) != 4:
                raise ValueError(f"{len(lengths)} numbers")
        except ValueError as error:
            raise ValueError(
                f"{path}, line {line}: expected four numbers and one of {', '.join(CLASSES)}; got "
                f"{','.join(row)!r}."
            ) from error
        features.append(lengths)
        targets.append([target])
    return numpy.array(features, "float32").reshape(-1, 4), numpy.array(targets, "uint8")


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `convert_iris`.
    """
    add_any_version_argument(subparser)
    return convert_iris
