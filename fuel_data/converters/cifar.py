"""CIFAR-10 and CIFAR-100: pickles in a tar archive as one HDF5 file."""

import argparse
import dataclasses
import hashlib
import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from fuel_data.converters.archives import read_tar
from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.inputs import add_any_version_argument, check_count, find_inputs
from fuel_data.converters.pickles import load_plain_pickle
from fuel_data.utils.progress import progress_bar

SIDE = 32
PIXELS = 3 * SIDE * SIDE


@dataclasses.dataclass(frozen=True)
class Batch:
    """What is known of a pickle before it is read.

    Parameters
    ----------
    split : str
        The split that it belongs to.
    member : str
        Its name in the archive, without the folder.
    num_examples : int
        How many images it has.
    md5 : str
        Its digest.
    """

    split: str
    member: str
    num_examples: int
    md5: str


def convert_cifar(
    archive: str,
    batches: Sequence[Batch],
    labels: Mapping[str, tuple[str, int]],
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str,
    any_version: bool = False,
) -> tuple[str]:
    """Convert an archive of pickles of images of 32 x 32 pixels.

    The file has the source `features`, uint8 of shape (example, 3, 32, 32), with the axes batch,
    channel, height, width, and those of `labels`, uint8 of shape (example, 1), with the axes batch,
    index.

    Parameters
    ----------
    archive : str
        Name of the archive.
    batches : sequence of Batch
        The pickles in it, in the order of the examples.
    labels : mapping of str to (str, int)
        Source → key in the pickles, and the number of classes.
    directory : path
        Folder of the archive, or the archive itself.
    output_directory : path
        Folder to write into.
    output_filename : str
        Name of the file.
    any_version : bool, optional
        Whether to take pickles with other digests and other numbers of images.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If the archive is missing.
    ValueError
        If it is damaged, or not the expected one.
    """
    (path,) = find_inputs(directory, [archive])
    found = _read_batches(path, batches, labels, any_version)
    data = []
    for split in dict.fromkeys(batch.split for batch in batches):
        parts = [found[batch.member] for batch in batches if batch.split == split]
        for source in parts[0]:
            data.append((split, source, numpy.concatenate([part[source] for part in parts])))
    axes: dict[str, Sequence[str]] = dict.fromkeys(labels, ("batch", "index"))
    axes["features"] = ("batch", "channel", "height", "width")
    output = os.path.join(output_directory, output_filename)
    total = sum(values.nbytes for _, _, values in data)
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
        fill_hdf5_file(h5file, data, axes, progress)
        record_inputs(h5file, [path])
    return (output,)


def _read_batches(
    path: str,
    batches: Sequence[Batch],
    labels: Mapping[str, tuple[str, int]],
    any_version: bool,
) -> dict[str, dict[str, numpy.ndarray]]:
    expected = {batch.member: batch for batch in batches}
    found: dict[str, dict[str, numpy.ndarray]] = {}
    for name, content in read_tar(path, path):
        batch = expected.get(posixpath.basename(name))
        if batch is None:
            continue
        if batch.member in found:
            raise ValueError(f"{path}: the archive has {batch.member!r} twice. Fetch it again.")
        found[batch.member] = _read_batch(f"{path}/{name}", content, batch, labels, any_version)
    missing = [member for member in expected if member not in found]
    if missing:
        raise ValueError(
            f"{path}: expected an archive with {', '.join(expected)}; it lacks "
            f"{', '.join(missing)}. It is not whole, or the archive of another data set."
        )
    return found


def _read_batch(
    name: str,
    content: bytes,
    batch: Batch,
    labels: Mapping[str, tuple[str, int]],
    any_version: bool,
) -> dict[str, numpy.ndarray]:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 != batch.md5 and not any_version:
        raise ValueError(
            f"{name}: the MD5 digest must be {batch.md5}, it is {md5}. It is damaged or another "
            "version; fetch the archive again, or convert it as it is by --any-version."
        )
    values = load_plain_pickle(content, name)
    images = values.get("data")
    is_right = isinstance(images, numpy.ndarray) and images.dtype == numpy.uint8
    if not is_right or images.shape[1:] != (PIXELS,):
        got = type(images).__name__
        if isinstance(images, numpy.ndarray):
            got = f"{images.dtype} of shape {images.shape}"
        raise ValueError(
            f"{name}: 'data' must be a uint8 array of shape (image, {PIXELS}); got {got}."
        )
    check_count(name, "images", len(images), batch.num_examples, any_version)
    # The file names the sources by the alphabet, as Fuel does.
    return {
        "features": images.reshape(-1, 3, SIDE, SIDE),
        **{
            source: _labels(name, key, values.get(key), len(images), num_classes)
            for source, (key, num_classes) in labels.items()
        },
    }


def _labels(name: str, key: str, values: Any, num_examples: int, num_classes: int) -> numpy.ndarray:
    if isinstance(values, numpy.ndarray) and values.ndim == 1:
        values = values.tolist()
    right = isinstance(values, list) and len(values) == num_examples
    if right:
        right = all(type(value) is int and 0 <= value < num_classes for value in values)
    if not right:
        raise ValueError(
            f"{name}: {key!r} must be a list of {num_examples:,} classes from 0 to "
            f"{num_classes - 1}."
        )
    return numpy.array(values, dtype=numpy.uint8)[:, None]


def cifar_converter(
    name: str, archive: str, batches: Sequence[Batch], labels: Mapping[str, tuple[str, int]]
) -> tuple[Callable, Callable]:
    """Make the converter of one of the two data sets.

    Parameters
    ----------
    name : str
        Name of the data set.
    archive : str
        Name of the archive.
    batches : sequence of Batch
        The pickles in it.
    labels : mapping of str to (str, int)
        Source → key in the pickles, and the number of classes.

    Returns
    -------
    convert : function
        The converter.
    fill_subparser : function
        What describes it to `fuel-convert`.
    """

    def convert(
        directory: str | os.PathLike[str],
        output_directory: str | os.PathLike[str],
        output_filename: str = f"{name}.hdf5",
        any_version: bool = False,
    ) -> tuple[str]:
        """Convert the archive of pickles into one HDF5 file; see `convert_cifar`."""
        return convert_cifar(
            archive, batches, labels, directory, output_directory, output_filename, any_version
        )

    def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
        """Describe the converter to `fuel-convert`; its parser gets `--any-version`."""
        add_any_version_argument(subparser)
        return convert

    convert.__name__ = convert.__qualname__ = f"convert_{name}"
    return convert, fill_subparser
