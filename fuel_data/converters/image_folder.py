"""A folder of images, with a folder for each class, as one HDF5 file."""

import argparse
import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.converters.base import UsageError, label_axes, new_hdf5_file, record_folder
from fuel_data.converters.folders import SUFFIXES, ImageTree, class_of
from fuel_data.converters.images import fill_size, open_image, pixels, upright
from fuel_data.converters.pieces import OnDemand, RaggedSource
from fuel_data.converters.sources import write_source
from fuel_data.converters.storage import storage_of
from fuel_data.datasets.hdf5_format import create_split_array
from fuel_data.randomness import key, permutation
from fuel_data.utils.pillow import import_pillow
from fuel_data.utils.progress import progress_bar

logger = logging.getLogger(__name__)

FILE_BYTES = 2**28
MODES = {"rgb": "RGB", "grey": "L"}
#: Modes of Pillow with transparency.
ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")

DESCRIPTION = """\
Turn a folder of images into an HDF5 file.

The folder given by -d has a folder for each class, DIRECTORY/CLASS/IMAGE, or with
--splits a folder for each split before, DIRECTORY/SPLIT/CLASS/IMAGE. Classes are
numbered in the order of their names; the data set class_names of the file has them.

Sources: image_features, pixels of images of any size; or features, with --size, of
one size; or encoded_images, with --encoded, the bytes of the files. targets are the
numbers of the classes, filenames the paths of the images in DIRECTORY.
"""
EXAMPLES = """\
examples:
  fuel-convert image_folder -d birds --fractions train=0.8 test=0.2 -r birds.hdf5
  fuel-convert image_folder -d birds --splits train test --size 64 64

"""


def convert_image_folder(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "image_folder.hdf5",
    *,
    splits: Sequence[str] | None = None,
    fractions: Mapping[str, float] | None = None,
    seed: int = 1,
    size: tuple[int, int] | None = None,
    color: str = "rgb",
    encoded: bool = False,
    skip_damaged: bool = False,
) -> tuple[str]:
    """Convert a folder of images.

    The file has the sources `targets`, the number of the class, of shape (example, 1), with the
    axes batch, index; `filenames`, the path of the image in the folder, of shape (example, 1); and
    one of `features`, uint8 of shape (example, channel, height, width), if `size` is given;
    `encoded_images`, the bytes of the files, if they are to be kept `encoded`; otherwise
    `image_features`, ragged, uint8, with the axes batch, channel, height, width. Its data set
    `class_names` has the name of each class. Pixels are turned as the EXIF data say.

    Parameters
    ----------
    directory : path
        The folder. Below a class, images may lie in further folders; folders may be links. What is
        hidden (its name begins with a dot), lies in no folder of a class or is not named like an
        image is left out, with a warning.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    splits : sequence of str, optional
        Folders above those of the classes, each of which becomes a split.
    fractions : dict of str to float, optional
        Splits to make, and their parts, which add up to 1, of the shuffled images. Without
        `splits` and `fractions` there is one split, ``'all'``.
    seed : int, optional
        Seed of that shuffling, which is the same on every machine.
    size : tuple of int, optional
        Height and width: images are scaled to cover it, by Lanczos' filter, and what stands over
        is cut off on both sides.
    color : {'rgb', 'grey'}, optional
        With three channels or one.
    encoded : bool, optional
        Whether to keep the files as they are.
    skip_damaged : bool, optional
        Whether to leave out images and folders that cannot be read, and log their names.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    ImportError
        If Pillow is missing.
    ValueError
        If there is no image, an image is damaged, a folder cannot be listed, or arguments do not
        fit together.
    """
    import_pillow("A converter of images")
    _check_arguments(splits, fractions, size, color, encoded)
    folder = os.fspath(directory)
    # As a shell completes them, they end with a slash.
    splits = [os.path.normpath(split) for split in splits or ()]
    tree = ImageTree(folder, skip_damaged)
    found = tree.find(splits)
    if skip_damaged:
        found = {split: _readable(folder, names, MODES[color]) for split, names in found.items()}
    classes = sorted({class_of(name, split) for split, names in found.items() for name in names})
    if not classes:
        raise ValueError(
            f"{folder}: there is no image in it. Expected {'SPLIT/' if splits else ''}CLASS/IMAGE, "
            f"where IMAGE ends in {', '.join(SUFFIXES)}."
        )
    numbers = {name: number for number, name in enumerate(classes)}
    labels = {name: numbers[class_of(name, split)] for split in found for name in found[split]}
    if not splits:
        found = _cut(found[""], fractions, seed)
    names = [name for of_split in found.values() for name in of_split]
    output = os.path.join(output_directory, output_filename)
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, len(names)) as progress:
        images = _Images(tree, names, MODES[color], size, progress)
        source = images.write(h5file, encoded)
        _write_labels(h5file, names, [labels[name] for name in names], classes)
        sources, start, ranges = (source, "targets", "filenames"), 0, {}
        for split, of_split in found.items():
            ranges[split] = dict.fromkeys(sources, (start, start + len(of_split)))
            start += len(of_split)
        h5file.attrs["split"] = create_split_array(ranges)
        record_folder(h5file, folder, names, "images")
    tree.remarks.log()
    return (output,)


def _check_arguments(
    splits: Sequence[str] | None,
    fractions: Mapping[str, float] | None,
    size: tuple[int, int] | None,
    color: str,
    encoded: bool,
) -> None:
    if "" in (splits or ()) or "" in (fractions or ()):
        raise UsageError("Every split needs a name; one of them is empty.")
    if splits and fractions:
        raise UsageError("Give the folders of the splits, or fractions to make splits, not both.")
    if fractions and (abs(sum(fractions.values()) - 1) > 1e-6 or min(fractions.values()) <= 0):
        raise UsageError(f"Fractions must be positive and add up to 1; got {dict(fractions)}.")
    if encoded and size:
        raise UsageError("Files that stay encoded keep their size: give a size, or keep them.")
    if size and min(size) < 1:
        raise UsageError(f"A size is a height and a width of at least 1; got {tuple(size)}.")
    if color not in MODES:
        raise UsageError(f"Colour must be {' or '.join(MODES)}; got {color!r}.")


def _readable(folder: str, names: list[str], mode: str) -> list[str]:
    good = []
    for name in names:
        try:
            pixels(_open(folder, name), name, mode)
        except ValueError as error:
            logger.warning("fuel-convert image_folder: left out: %s", error)
        else:
            good.append(name)
    return good


def _open(folder: str, name: str) -> Any:
    return open_image(_read(folder, name), os.path.join(folder, name))


def _read(folder: str, name: str) -> bytes:
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > FILE_BYTES:
        raise ValueError(f"{path} has more than {FILE_BYTES:,} bytes.")
    return content


def _cut(
    names: list[str], fractions: Mapping[str, float] | None, seed: int
) -> dict[str, list[str]]:
    if not fractions:
        return {"all": names}
    order = permutation(key(seed, "fuel-convert image_folder", 0), len(names))
    bounds = numpy.rint(numpy.cumsum(list(fractions.values())) * len(names)).astype(int)
    parts = dict(zip(fractions, numpy.split(order, bounds[:-1]), strict=True))
    empty = [split for split, part in parts.items() if len(part) == 0]
    if empty:
        raise ValueError(f"Fractions: {len(names)} images leave none for {', '.join(empty)}.")
    return {split: [names[index] for index in part] for split, part in parts.items()}


class _Images:
    """The images, written into a source."""

    def __init__(
        self,
        tree: ImageTree,
        names: list[str],
        mode: str,
        size: tuple[int, int] | None,
        progress: Callable[[int], None],
    ) -> None:
        self.folder, self.remarks = tree.folder, tree.remarks
        self.names, self.mode, self.size = names, mode, size
        self.progress = progress

    def write(self, h5file: h5py.File, encoded: bool) -> str:
        """Write them, and give the name of the source."""
        axes = ("batch", "channel", "height", "width")
        if encoded:
            bytes_ = h5py.vlen_dtype("uint8")
            dataset = h5file.create_dataset("encoded_images", (len(self.names),), bytes_)
            label_axes(dataset, ("batch",))
            for index in range(len(self.names)):
                dataset[index] = self.read_encoded(index)
            return "encoded_images"
        if self.size is None:
            ragged = RaggedSource(h5file, "image_features", len(self.names), "uint8", axes)
            for index in range(len(self.names)):
                ragged.write(index, self.decode(index))
            return "image_features"
        shape = (len(self.names), len(self.mode), *self.size)
        values: Any = OnDemand(shape, "uint8", self.decode)
        write_source(h5file, "features", [values], axes, storage_of("features", None), None)
        return "features"

    def decode(self, index: int) -> numpy.ndarray:
        """Decode an image, scaled to the size if there is one, and remark what is lost."""
        with _naming_the_way_out():
            image, where = self._open(index)
            if _has_frames(image):
                self.remarks.add("of several frames the first is taken", where)
            if image.mode in ALPHA or "transparency" in image.info:
                self.remarks.add("transparency is dropped", where)
            return self._pixels(image, where)

    def _open(self, index: int) -> tuple[Any, str]:
        where = os.path.join(self.folder, self.names[index])
        return open_image(_read(self.folder, self.names[index]), where), where

    def _pixels(self, image: Any, where: str) -> numpy.ndarray:
        image = fill_size(image, where, self.size) if self.size else upright(image, where)
        self.progress(1)
        return pixels(image, where, self.mode)

    def read_encoded(self, index: int) -> numpy.ndarray:
        """Read a file, once it is known that it can be decoded."""
        with _naming_the_way_out():
            self._pixels(*self._open(index))
            return numpy.frombuffer(_read(self.folder, self.names[index]), numpy.uint8)


@contextlib.contextmanager
def _naming_the_way_out() -> Iterator[None]:
    """Say of an image that cannot be read how the others can be converted."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error} Or leave out what cannot be read, by --skip-damaged.") from error


def _has_frames(image: Any) -> bool:
    try:
        return getattr(image, "is_animated", False)
    # Pillow looks at all frames of some formats, and fails on damage in many ways. What of the
    # first one is damaged is found when it is decoded.
    except Exception:
        return True


def _write_labels(
    h5file: h5py.File, names: Sequence[str], labels: Sequence[int], classes: Sequence[str]
) -> None:
    dtype = numpy.min_scalar_type(len(classes) - 1)
    targets = h5file.create_dataset("targets", data=numpy.array(labels, dtype)[:, None])
    paths = [os.fsencode(name) for name in names]
    filenames = h5file.create_dataset("filenames", data=numpy.array(paths)[:, None])
    for dataset in (targets, filenames):
        label_axes(dataset, ("batch", "index"))
    h5file.create_dataset(
        "class_names", data=[*map(os.fsencode, classes)], dtype=h5py.string_dtype()
    )


def _fraction(text: str) -> tuple[str, float]:
    name, _, part = text.partition("=")
    try:
        number = float(part)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected NAME=PART, got {text!r}") from error
    if not name:
        raise argparse.ArgumentTypeError(f"expected NAME=PART with a name, got {text!r}")
    return name, number


def _convert_by_command(
    directory: str, output_directory: str, output_filename: str = "image_folder.hdf5", **rest: Any
) -> tuple[str]:
    """Convert what the command line says."""
    fractions = rest.pop("fractions")
    if fractions and len(dict(fractions)) < len(fractions):
        raise UsageError("--fractions takes NAME=PART, each name once.")
    return convert_image_folder(
        directory, output_directory, output_filename, fractions=dict(fractions or ()), **rest
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
        The converter, which takes them.
    """
    subparser.description = DESCRIPTION
    subparser.epilog = EXAMPLES + (subparser.epilog or "")
    subparser.add_argument("--splits", nargs="+", metavar="FOLDER", help="folders that are splits")
    subparser.add_argument(
        "--fractions",
        nargs="+",
        type=_fraction,
        metavar="NAME=PART",
        help="splits and their parts, which add up to 1, of the shuffled images",
    )
    subparser.add_argument("--seed", type=int, default=1, help="seed of that shuffling (default 1)")
    subparser.add_argument(
        "--size",
        nargs=2,
        type=int,
        metavar=("HEIGHT", "WIDTH"),
        help="scale and cut images to one size",
    )
    subparser.add_argument("--color", choices=sorted(MODES), default="rgb", help="default: rgb")
    subparser.add_argument("--encoded", action="store_true", help="keep the files as they are")
    subparser.add_argument(
        "--skip-damaged", action="store_true", help="leave images out that cannot be read"
    )
    return _convert_by_command
