"""Dogs vs. Cats, Kaggle's two archives of photographs as one HDF5 file."""

import argparse
import os
import posixpath
import re
from collections.abc import Callable

import numpy

from fuel_data.converters.archives import ZipImages
from fuel_data.converters.base import label_axes, new_hdf5_file, record_inputs
from fuel_data.converters.images import decode_image
from fuel_data.converters.inputs import add_any_version_argument, check_count, find_inputs
from fuel_data.converters.pieces import RaggedSource
from fuel_data.datasets.hdf5_format import create_split_array
from fuel_data.utils.progress import progress_bar

TRAIN, TEST = "dogs_vs_cats.train.zip", "dogs_vs_cats.test1.zip"
COUNTS = {TRAIN: 25000, TEST: 12500}
#: Fuel's: the order of its files stays.
SEED = 123522
NAMES = {TRAIN: re.compile(r"(cat|dog)\.\d+\.jpg"), TEST: re.compile(r"()(\d+)\.jpg")}


def convert_dogs_vs_cats(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "dogs_vs_cats.hdf5",
    any_version: bool = False,
) -> tuple[str]:
    """Convert the photographs.

    The file has the sources `image_features`, ragged, uint8, with the axes batch, channel, height,
    width, and `targets`, uint8 of shape (25000, 1), 0 for a cat and 1 for a dog, with the axes
    batch, index; and the splits `train` of 25,000 photographs, shuffled as in Fuel, and `test` of
    12,500, which has no targets. Nobody has published a digest of the archives.

    Parameters
    ----------
    directory : path
        Folder of dogs_vs_cats.train.zip and dogs_vs_cats.test1.zip, or one of them: Kaggle's
        train.zip and test1.zip.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    any_version : bool, optional
        Whether to take archives with other numbers of photographs.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    ImportError
        If Pillow is missing.
    MissingInputFiles
        If archives are missing.
    ValueError
        If one of them is damaged, or not the expected one.
    """
    paths = find_inputs(directory, COUNTS)
    with ZipImages(paths[0]) as train, ZipImages(paths[1]) as test:
        members = [
            (archive, path, name)
            for archive, path, names in (
                (train, paths[0], _shuffled(_photographs(paths[0], train, any_version))),
                (test, paths[1], _by_number(_photographs(paths[1], test, any_version))),
            )
            for name in names
        ]
        targets = numpy.array(
            [
                [posixpath.basename(name).startswith("dog")]
                for archive, _, name in members
                if archive is train
            ],
            dtype=numpy.uint8,
        )
        output = os.path.join(output_directory, output_filename)
        total = len(members)
        with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
            axes = ("batch", "channel", "height", "width")
            images = RaggedSource(h5file, "image_features", total, "uint8", axes)
            for index, (archive, path, name) in enumerate(members):
                images.write(index, decode_image(archive.read(name), f"{path}/{name}"))
                progress(1)
            label_axes(h5file.create_dataset("targets", data=targets), ("batch", "index"))
            cut = len(targets)
            h5file.attrs["split"] = create_split_array(
                {
                    "train": {"image_features": (0, cut), "targets": (0, cut)},
                    "test": {"image_features": (cut, total)},
                }
            )
            record_inputs(h5file, paths)
    return (output,)


def _photographs(path: str, archive: ZipImages, any_version: bool) -> list[str]:
    kind = os.path.basename(path)
    names = [name for name in archive.names if NAMES[kind].fullmatch(posixpath.basename(name))]
    if len(names) < len(archive.names):
        other = next(name for name in archive.names if name not in names)
        raise ValueError(f"{path}: {other!r} is no name of a photograph in Kaggle's archive.")
    check_count(path, "photographs", len(names), COUNTS[kind], any_version)
    return names


def _shuffled(names: list[str]) -> list[str]:
    numpy.random.RandomState(SEED).shuffle(names)
    return names


def _by_number(names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: int(posixpath.basename(name)[:-4]))


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `convert_dogs_vs_cats`.
    """
    add_any_version_argument(subparser)
    return convert_dogs_vs_cats
