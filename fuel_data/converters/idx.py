"""Images and labels in IDX files, the format of MNIST and of those that took after it.

An IDX file begins with two zero bytes, a byte for the type (8: unsigned bytes) and one for the
number of axes; their sizes follow as big-endian 32-bit integers, then the values.
"""

import argparse
import dataclasses
import hashlib
import math
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import IO

import numpy

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.exceptions import MissingInputFiles
from fuel_data.utils.formats import open_
from fuel_data.utils.progress import progress_bar

DTYPES = ("float32", "float64", "bool")
AXIS_LABELS = {"features": ("batch", "channel", "height", "width"), "targets": ("batch", "index")}


@dataclasses.dataclass(frozen=True)
class IdxFile:
    """What is known of an IDX file before it is read.

    Parameters
    ----------
    split : str
        The split that it belongs to.
    source : str
        ``'features'`` for images of shape (example, height, width), ``'targets'`` for labels of
        shape (example,).
    name : str
        Its name, without ``.gz``.
    shape : tuple of int
        Its shape.
    md5 : str
        Digest of the file, unpacked.
    """

    split: str
    source: str
    name: str
    shape: tuple[int, ...]
    md5: str


def mnist_files(
    train_images: str, train_labels: str, test_images: str, test_labels: str
) -> tuple[IdxFile, ...]:
    """Describe the four files of MNIST, or of a data set that has taken over its names and shapes.

    Parameters
    ----------
    train_images, train_labels, test_images, test_labels : str
        MD5 digests of the files, unpacked.

    Returns
    -------
    tuple of IdxFile
        Train and test, each the images before the labels.
    """
    images, labels = "images-idx3-ubyte", "labels-idx1-ubyte"
    return (
        IdxFile("train", "features", f"train-{images}", (60000, 28, 28), train_images),
        IdxFile("train", "targets", f"train-{labels}", (60000,), train_labels),
        IdxFile("test", "features", f"t10k-{images}", (10000, 28, 28), test_images),
        IdxFile("test", "targets", f"t10k-{labels}", (10000,), test_labels),
    )


def read_idx(path: str | os.PathLike[str], expected: IdxFile) -> numpy.ndarray:
    """Read a file of unsigned bytes, if it is the one that is expected.

    The header is checked before memory is taken for the values.

    Parameters
    ----------
    path : path
        The file, packed if its name ends in ``.gz``.
    expected : IdxFile
        Its shape and digest.

    Returns
    -------
    uint8 array of shape `expected.shape`
        The values.

    Raises
    ------
    ValueError
        If the file is another one, too short, too long or damaged.
    """
    size = math.prod(expected.shape)
    try:
        with open_(path, "rb") as file:
            header = _read_header(file, path, expected)
            content = file.read(size + 1)
    except (EOFError, zlib.error, OSError) as error:
        # gzip says BadGzipFile, an OSError, for damage, and EOFError for a file that is cut short.
        raise ValueError(f"{path} cannot be read: {error}. Fetch the file again.") from error
    if len(content) != size:
        got = "more" if len(content) > size else f"{len(content):,}"
        raise ValueError(
            f"{path}: expected {size:,} bytes of values for the shape {expected.shape}, got {got}. "
            "Fetch the file again."
        )
    md5 = hashlib.md5(header + content, usedforsecurity=False).hexdigest()
    if md5 != expected.md5:
        raise ValueError(
            f"{path}: the MD5 digest of the unpacked file must be {expected.md5}, it is {md5}. "
            "It is damaged, or the file of another data set."
        )
    return numpy.frombuffer(content, dtype=numpy.uint8).reshape(expected.shape)


def _read_header(file: IO[bytes], path: str | os.PathLike[str], expected: IdxFile) -> bytes:
    ndim = len(expected.shape)
    header = file.read(4 + 4 * ndim)
    if header[:4] != bytes([0, 0, 8, ndim]) or len(header) < 4 + 4 * ndim:
        raise ValueError(
            f"{path}: an IDX file of bytes with {ndim} axes begins with {bytes([0, 0, 8, ndim])!r} "
            f"and {ndim} sizes; this one begins with {header!r}."
        )
    shape = struct.unpack(f">{ndim}I", header[4:])
    if shape != expected.shape:
        raise ValueError(
            f"{path}: expected the shape {expected.shape}, the header says {shape}. "
            "It is the file of another data set."
        )
    return header


def convert_idx(
    files: Sequence[IdxFile],
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str,
    dtype: str | None = None,
) -> tuple[str]:
    """Convert IDX files of images and labels.

    The file has the sources `features`, of shape (example, 1, height, width), with the axes batch,
    channel, height, width, and `targets`, uint8 of shape (example, 1), with the axes batch, index.

    Parameters
    ----------
    files : sequence of IdxFile
        The input files, each packed (``.gz``) or not.
    directory : path
        Their folder, or one of them.
    output_directory : path
        Folder to write into.
    output_filename : str
        Name of the file.
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
        If one of them is not the expected file.
    """
    paths = find_files(files, directory)
    data = []
    for file, path in zip(files, paths, strict=True):
        values = read_idx(path, file)[:, None]
        if file.source == "features":
            values = as_dtype(values, dtype)
        data.append((file.split, file.source, values))
    output = os.path.join(output_directory, output_filename)
    total = sum(values.nbytes for _, _, values in data)
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
        fill_hdf5_file(h5file, data, AXIS_LABELS, progress)
        record_inputs(h5file, paths)
    return (output,)


def mnist_converter(name: str, files: Sequence[IdxFile]) -> tuple[Callable, Callable]:
    """Make the converter of a data set that comes in the form of MNIST.

    Parameters
    ----------
    name : str
        Name of the data set.
    files : sequence of IdxFile
        From `mnist_files`.

    Returns
    -------
    convert : function
        The converter. Its file has the sources `features`, of shape (70000, 1, 28, 28), with the
        axes batch, channel, height, width, and `targets`, uint8 of shape (70000, 1), with the axes
        batch, index; and the splits `train` of 60,000 and `test` of 10,000 examples.
    fill_subparser : function
        What describes it to `fuel-convert`.
    """

    def convert(
        directory: str | os.PathLike[str],
        output_directory: str | os.PathLike[str],
        output_filename: str | None = None,
        dtype: str | None = None,
    ) -> tuple[str]:
        """Convert the four files in a folder into one HDF5 file.

        See `convert_idx`; by default the name of the output is that of the data set and the dtype.
        """
        output_filename = output_filename or default_name(name, dtype)
        return convert_idx(files, directory, output_directory, output_filename, dtype)

    def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
        """Describe the converter to `fuel-convert`; its parser gets `--dtype`."""
        add_dtype_argument(subparser)
        return convert

    convert.__name__ = convert.__qualname__ = f"convert_{name}"
    return convert, fill_subparser


def find_files(files: Sequence[IdxFile], directory: str | os.PathLike[str]) -> list[str]:
    """Find IDX files, packed or not.

    Parameters
    ----------
    files : sequence of IdxFile
        What to look for.
    directory : path
        Their folder, or one of them.

    Returns
    -------
    list of str
        Their paths.

    Raises
    ------
    MissingInputFiles
        If some are missing; all of them are named.
    """
    folder = os.path.dirname(directory) if os.path.isfile(directory) else os.fspath(directory)
    found, missing = [], []
    for file in files:
        names = [os.path.join(folder, file.name + suffix) for suffix in ("", ".gz")]
        there = [name for name in names if os.path.isfile(name)]
        found += there[:1]
        if not there:
            missing.append(f"{file.name}[.gz]")
    if missing:
        raise MissingInputFiles(f"Not in the folder {folder!r}", missing)
    return found


def as_dtype(images: numpy.ndarray, dtype: str | None) -> numpy.ndarray:
    """Give images the type that they are stored in.

    Parameters
    ----------
    images : uint8 array of any shape
        Pixels from 0 to 255.
    dtype : str, optional
        As for `convert_idx`.

    Returns
    -------
    array of the same shape
        The images, in that type.
    """
    if dtype is None:
        return images
    if dtype == "bool":
        return images >= 128
    return images.astype(dtype) / numpy.dtype(dtype).type(255)


def add_dtype_argument(subparser: argparse.ArgumentParser) -> None:
    """Add the argument `--dtype` to the parser of a converter.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        The parser.
    """
    subparser.add_argument(
        "--dtype",
        choices=DTYPES,
        help="type of the images: float32 or float64 for pixels from 0 to 1, bool for pixels of at "
        "least 128; by default uint8 from 0 to 255. The name of the file gets it as a suffix.",
    )


def default_name(name: str, dtype: str | None) -> str:
    """Give the name of the file that a converter writes.

    Parameters
    ----------
    name : str
        Name of the data set.
    dtype : str, optional
        As for `convert_idx`.

    Returns
    -------
    str
        For example ``'mnist.hdf5'`` or ``'mnist_float32.hdf5'``.
    """
    return f"{name}.hdf5" if dtype is None else f"{name}_{dtype}.hdf5"
