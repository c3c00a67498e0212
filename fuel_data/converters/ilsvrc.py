"""ImageNet's challenges of 2010 and 2012: tar archives of JPEG files as one HDF5 file."""

import argparse
import dataclasses
import gzip
import io
import os
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.config_parser import config
from fuel_data.converters.archives import read_tar
from fuel_data.converters.base import new_hdf5_file, record_inputs
from fuel_data.converters.images import open_image
from fuel_data.converters.inputs import (
    add_any_version_argument,
    check_count,
    check_digests,
    find_inputs,
)
from fuel_data.converters.matlab import read_mat_structures
from fuel_data.datasets.hdf5_format import create_split_array
from fuel_data.exceptions import MissingInputFiles
from fuel_data.utils.pillow import import_pillow
from fuel_data.utils.progress import progress_bar

NAME_BYTES = 32
#: Of an archive of one class inside the archive of all.
CLASS_BYTES = 2**30
NUMBER = re.compile(r"_(\d{8})\.JPEG")


@dataclasses.dataclass(frozen=True)
class Challenge:
    """What is known of the files of a year.

    Parameters
    ----------
    year : int
        The year.
    devkit : str
        Name of the development kit.
    train, valid, test : tuple of str
        Names under which the archive of images may be found.
    counts : dict of str to int
        Split → number of images.
    digests : dict of str to str
        Name → digest, of those that have a published one.
    test_truth : str, optional
        Name of the text with the classes of the test images.
    patch : str, optional
        Name of the archive of images that replace damaged ones.
    """

    year: int
    devkit: str
    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    counts: Mapping[str, int]
    digests: Mapping[str, str]
    test_truth: str | None = None
    patch: str | None = None

    def find(self, directory: str | os.PathLike[str]) -> dict[str, str]:
        """Find the files.

        Parameters
        ----------
        directory : path
            Their folder, or one of them.

        Returns
        -------
        dict of str to str
            Name of the field → path.

        Raises
        ------
        MissingInputFiles
            If some are missing; all of them are named.
        """
        wanted = {"devkit": (self.devkit,), "train": self.train, "valid": self.valid}
        wanted["test"] = self.test
        for field, name in (("test_truth", self.test_truth), ("patch", self.patch)):
            if name is not None:
                wanted[field] = (name,)
        found, missing = {}, []
        for field, names in wanted.items():
            for name in names:
                try:
                    (found[field],) = find_inputs(directory, [name])
                    break
                except MissingInputFiles as error:
                    reason = error.args[0]
            else:
                missing.append(" or ".join(names))
        if missing:
            raise MissingInputFiles(reason, missing)
        return found


def convert_ilsvrc(
    challenge: Challenge,
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str,
    shuffle_seed: int | None = None,
    any_version: bool = False,
) -> tuple[str]:
    """Convert the files of a year.

    The file has the sources `encoded_images`, the bytes of JPEG files; `targets`, int16 of shape
    (example, 1), classes from 0 to 999 in the order of the development kit; and `filenames`, bytes
    of shape (example, 1); and the splits `train`, whose images stand in a shuffled order, `valid`
    and `test`. As in Fuel, its axes have no labels.

    Parameters
    ----------
    challenge : Challenge
        The year.
    directory : path
        Folder of the files, or one of them.
    output_directory : path
        Folder to write into.
    output_filename : str
        Name of the file.
    shuffle_seed : int, optional
        Seed of the order of the training images; by default the setting `default_seed`.
    any_version : bool, optional
        Whether to take files with other digests and other numbers of images.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    ImportError
        If Pillow is missing.
    MissingInputFiles
        If files are missing.
    ValueError
        If one of them is damaged, or not the expected one.
    """
    import_pillow("ILSVRC")
    paths = challenge.find(directory)
    check_digests(paths.values(), challenge.digests, any_version)
    kit = _read_devkit(paths["devkit"], challenge)
    truths = {"valid": _labels(kit.valid_truth, kit, paths["devkit"])}
    if "test_truth" in paths:
        with open(paths["test_truth"], "rb") as file:
            truths["test"] = _labels(file.read(2**24), kit, paths["test_truth"])
    counts = {"train": kit.num_train, "valid": len(truths["valid"])}
    counts["test"] = len(truths["test"]) if "test" in truths else challenge.counts["test"]
    if any_version and "test" not in truths:
        counts["test"] = sum(1 for _ in _jpegs(paths["test"], {}))
    for split, count in counts.items():
        check_count(paths["devkit"], f"{split} images", count, challenge.counts[split], any_version)
    patches = dict(_jpegs(paths["patch"], {})) if "patch" in paths else {}
    output = os.path.join(output_directory, output_filename)
    total = sum(counts.values())
    seed = config.default_seed if shuffle_seed is None else shuffle_seed
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
        ranges = _ranges(counts)
        num_targets = ranges["test" if "test" in truths else "valid"][1]
        writer = _Writer(h5file, total, num_targets, progress)
        order = numpy.random.RandomState(seed).permutation(kit.num_train)
        images = _train_images(paths["train"], kit.classes, patches, order)
        writer.write_all(images, paths["train"], ranges["train"])
        for split in ("valid", "test"):
            images = _numbered_images(paths[split], ranges[split][0], truths.get(split), patches)
            writer.write_all(images, paths[split], ranges[split])
        _write_splits(h5file, ranges, with_test_targets="test" in truths)
        record_inputs(h5file, paths.values())
    return (output,)


def _ranges(counts: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    ranges, start = {}, 0
    for split, count in counts.items():
        ranges[split] = (start, start + count)
        start += count
    return ranges


def _write_splits(
    h5file: h5py.File, ranges: Mapping[str, tuple[int, int]], with_test_targets: bool
) -> None:
    sources = ("encoded_images", "targets", "filenames")
    splits = {split: dict.fromkeys(sources, range_) for split, range_ in ranges.items()}
    if not with_test_targets:
        del splits["test"]["targets"]
    h5file.attrs["split"] = create_split_array(splits)


class _Writer:
    """The three sources, written an image at a time."""

    def __init__(self, h5file: h5py.File, total: int, num_targets: int, progress: Callable) -> None:
        bytes_ = h5py.vlen_dtype("uint8")
        self.images = h5file.create_dataset("encoded_images", (total,), bytes_)
        self.targets = h5file.create_dataset("targets", (num_targets, 1), "int16")
        self.names = h5file.create_dataset("filenames", (total, 1), f"S{NAME_BYTES}")
        self.progress = progress

    def write_all(
        self,
        images: Iterator[tuple[int, str, bytes, int | None]],
        path: str,
        range_: tuple[int, int],
    ) -> None:
        """Write the images of a split; each place must be taken once."""
        start, stop = range_
        left = numpy.ones(stop - start, dtype=bool)
        for place, name, content, label in images:
            if not start <= place < stop or not left[place - start] or len(name) > NAME_BYTES:
                raise ValueError(f"{path}: the image {name} is one too many; another archive?")
            left[place - start] = False
            self.images[place] = numpy.frombuffer(content, numpy.uint8)
            self.names[place, 0] = name.encode("utf-8")
            if label is not None:
                self.targets[place, 0] = label
            self.progress(1)
        if left.any():
            raise ValueError(
                f"{path}: expected {stop - start:,} images, {left.sum():,} of them are not there. "
                "The archive is not whole."
            )


def _train_images(
    path: str, classes: Mapping[str, int], patches: Mapping[str, bytes], order: numpy.ndarray
) -> Iterator[tuple[int, str, bytes, int | None]]:
    number = 0
    for name, archive in read_tar(path, path, CLASS_BYTES):
        class_ = posixpath.basename(name).removesuffix(".tar")
        if class_ not in classes:
            raise ValueError(f"{path}: {name!r} is no class of the development kit.")
        for image, content in _jpegs(io.BytesIO(archive), patches, f"{path}/{name}"):
            if number == len(order):
                raise ValueError(f"{path} has more than the {number:,} images of the kit.")
            yield int(order[number]), image, content, classes[class_]
            number += 1


def _numbered_images(
    path: str, start: int, truth: Sequence[int] | None, patches: Mapping[str, bytes]
) -> Iterator[tuple[int, str, bytes, int | None]]:
    for name, content in _jpegs(path, patches):
        match = NUMBER.search(name)
        number = int(match.group(1)) - 1 if match else -1
        if number < 0 or (truth is not None and number >= len(truth)):
            raise ValueError(f"{path}: there is no class for the image {name!r}.")
        yield start + number, name, content, None if truth is None else truth[number]


def _jpegs(
    archive: Any, patches: Mapping[str, bytes], where: str | None = None
) -> Iterator[tuple[str, bytes]]:
    where = where or archive
    for member, content in read_tar(archive, where):
        name = posixpath.basename(member)
        if name.lower().endswith((".jpeg", ".jpg")):
            yield name, _checked(patches.get(name, content), f"{where}/{member}")


def _checked(content: bytes, where: str) -> bytes:
    """Give the bytes of an image; in 2010 some are packed once more."""
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.open(io.BytesIO(content)) as file:
                content = file.read(2**26)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{where} cannot be unpacked: {error}.") from error
    open_image(content, where)
    return content


@dataclasses.dataclass(frozen=True)
class _Devkit:
    classes: Mapping[str, int]
    num_train: int
    labels: Mapping[int, int]
    valid_truth: bytes


def _read_devkit(path: str, challenge: Challenge) -> _Devkit:
    truth_name = f"ILSVRC{challenge.year}_validation_ground_truth.txt"
    found = {
        posixpath.basename(name): content
        for name, content in read_tar(path, path)
        if posixpath.basename(name) in ("meta.mat", truth_name)
    }
    if len(found) != 2:
        raise ValueError(f"{path}: expected meta.mat and {truth_name}, which are not both there.")
    meta, where = found["meta.mat"], f"{path}/meta.mat"
    synsets = read_mat_structures(io.BytesIO(meta), len(meta), where, "synsets")
    try:
        classes = sorted(
            (
                int(synset[f"ILSVRC{challenge.year}_ID"].item()),
                synset["WNID"].strip(),
                int(synset["num_train_images"].item()),
            )
            for synset in synsets
            if int(synset["num_children"].item()) == 0
        )
    except (KeyError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(
            f"{where}: each of the synsets must have a WNID and the numbers "
            f"ILSVRC{challenge.year}_ID, num_children and num_train_images: {error!r}."
        ) from error
    if any(number < 0 for _, _, number in classes) or len({one for _, one, _ in classes}) != len(
        classes
    ):
        raise ValueError(f"{where}: the synsets are damaged. Fetch the archive again.")
    return _Devkit(
        classes={name: label for label, (_, name, _) in enumerate(classes)},
        num_train=sum(number for _, _, number in classes),
        labels={identity: label for label, (identity, _, _) in enumerate(classes)},
        valid_truth=found[truth_name],
    )


def _labels(content: bytes, kit: _Devkit, path: str) -> list[int]:
    try:
        return [kit.labels[int(line)] for line in content.split()]
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path}: expected a class of the development kit in each line of the validation or "
            f"test ground truth; got {error}."
        ) from error


def ilsvrc_converter(challenge: Challenge) -> tuple[Callable, Callable]:
    """Make the converter of a year.

    Parameters
    ----------
    challenge : Challenge
        The year.

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
        output_filename: str = f"ilsvrc{challenge.year}.hdf5",
        shuffle_seed: int | None = None,
        any_version: bool = False,
    ) -> tuple[str]:
        """Convert the archives of a year into one HDF5 file; see `convert_ilsvrc`."""
        return convert_ilsvrc(
            challenge, directory, output_directory, output_filename, shuffle_seed, any_version
        )

    def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
        """Describe the converter to `fuel-convert`."""
        subparser.add_argument(
            "--shuffle-seed",
            type=int,
            help="seed of the order of the training images; by default the setting default_seed",
        )
        add_any_version_argument(subparser)
        return convert

    convert.__name__ = convert.__qualname__ = f"convert_ilsvrc{challenge.year}"
    return convert, fill_subparser
