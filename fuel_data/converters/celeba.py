"""CelebA, its aligned faces and their 40 attributes as one HDF5 file."""

import argparse
import os
from collections.abc import Callable

import numpy

from fuel_data.converters.archives import ZipImages
from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.images import open_image, pixels
from fuel_data.converters.inputs import (
    add_any_version_argument,
    check_count,
    check_digests,
    find_inputs,
)
from fuel_data.converters.pieces import OnDemand
from fuel_data.utils.pillow import import_pillow
from fuel_data.utils.progress import progress_bar

IMAGES, ATTRIBUTES, PARTITION = (
    "img_align_celeba.zip",
    "list_attr_celeba.txt",
    "list_eval_partition.txt",
)
DIGESTS = {
    IMAGES: "46fb89443c578308acf364d7d379fe1b9efb793042c0af734b6112e4fd3a8c74",
    ATTRIBUTES: "f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0",
}
SPLITS = {"train": 162770, "valid": 19867, "test": 19962}
NUM_IMAGES = sum(SPLITS.values())
NUM_ATTRIBUTES = 40
HEIGHT, WIDTH = 218, 178
LARGEST_TEXT = 2**26


def convert_celeba(
    which_format: str,
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str | None = None,
    any_version: bool = False,
) -> tuple[str]:
    """Convert the faces in one of two sizes.

    The file has the sources `features`, uint8 of shape (202599, 3, 218, 178) or (202599, 3, 64,
    64), with the axes batch, channel, height, width, and `targets`, uint8 of shape (202599, 40),
    1 where the face has the attribute, with the axes batch, index; and the splits `train` of
    162,770, `valid` of 19,867 and `test` of 19,962 faces. It takes 23 GB, or 2.5.

    Parameters
    ----------
    which_format : {'aligned_cropped', '64'}
        The faces as they are, or scaled to 64 x 78 pixels by Lanczos' filter, of which the 64 rows
        in the middle are kept.
    directory : path
        Folder of img_align_celeba.zip and list_attr_celeba.txt, or one of them.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file, by default celeba_aligned_cropped.hdf5 or celeba_64.hdf5.
    any_version : bool, optional
        Whether to take files with other digests and numbers of faces. Then list_eval_partition.txt
        must be there too, which says to which split a face belongs.

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
        If one of them is damaged, or not the expected one, or there is no such format.
    """
    formats = {"aligned_cropped": (HEIGHT, WIDTH), "64": (64, 64)}
    if which_format not in formats:
        raise ValueError(
            f"CelebA: `which_format` must be {' or '.join(formats)}; got {which_format!r}."
        )
    import_pillow("CelebA")
    names = [IMAGES, ATTRIBUTES, *([PARTITION] if any_version else [])]
    paths = find_inputs(directory, names)
    check_digests(paths, DIGESTS, any_version)
    attributes = _read_attributes(paths[1], any_version)
    splits = _read_partition(paths[2], list(attributes)) if any_version else SPLITS
    output_filename = output_filename or f"celeba_{which_format}.hdf5"
    output = os.path.join(output_directory, output_filename)
    shape = (len(attributes), 3, *formats[which_format])
    targets = numpy.array(list(attributes.values()), dtype=numpy.uint8)
    total = int(numpy.prod(shape)) + targets.nbytes
    with (
        ZipImages(paths[0]) as archive,
        new_hdf5_file(output) as h5file,
        progress_bar(output_filename, total) as progress,
    ):
        faces = _find_faces(paths[0], archive, list(attributes))
        data, start = [], 0
        for split, count in splits.items():
            part = _Faces(archive, paths[0], faces[start : start + count], which_format == "64")
            data += [
                (split, "features", OnDemand((count, *shape[1:]), "uint8", part.decode)),
                (split, "targets", targets[start : start + count]),
            ]
            start += count
        axes = {
            "features": ("batch", "channel", "height", "width"),
            "targets": ("batch", "index"),
        }
        fill_hdf5_file(h5file, data, axes, progress)
        record_inputs(h5file, paths)
    return (output,)


class _Faces:
    """Some faces of the archive, by number."""

    def __init__(self, archive: ZipImages, path: str, members: list[str], small: bool) -> None:
        self.archive, self.path, self.members, self.small = archive, path, members, small

    def decode(self, index: int) -> numpy.ndarray:
        member = self.members[index]
        where = f"{self.path}/{member}"
        image = open_image(self.archive.read(member), where)
        if image.size != (WIDTH, HEIGHT):
            raise ValueError(
                f"{where} must have {HEIGHT} x {WIDTH} pixels; it has {image.height} x "
                f"{image.width}."
            )
        face = pixels(image, where)
        if not self.small:
            return face
        image_module = import_pillow("CelebA")
        image = image_module.fromarray(numpy.ascontiguousarray(face.transpose(1, 2, 0)))
        image = image.resize((64, 78), image_module.Resampling.LANCZOS)
        return pixels(image.crop((0, 7, 64, 71)), where)


def _find_faces(path: str, archive: ZipImages, names: list[str]) -> list[str]:
    members = {os.path.basename(member): member for member in archive.names}
    missing = [name for name in names if name not in members]
    if missing:
        raise ValueError(
            f"{path} lacks {len(missing):,} of the {len(names):,} faces in {ATTRIBUTES}, such as "
            f"{missing[0]}. Fetch it again."
        )
    return [members[name] for name in names]


def _lines(path: str) -> list[str]:
    if os.path.getsize(path) > LARGEST_TEXT:
        raise ValueError(f"{path} has more than {LARGEST_TEXT:,} bytes; it is another file.")
    with open(path, encoding="latin-1") as file:
        return file.read().splitlines()


def _read_attributes(path: str, any_version: bool) -> dict[str, list[bool]]:
    """Read the table: name of the image → whether it has each attribute."""
    lines = _lines(path)
    if len(lines) < 3 or not lines[0].strip().isdigit() or len(lines[1].split()) != NUM_ATTRIBUTES:
        raise ValueError(
            f"{path}: expected the number of faces in the first line and the names of "
            f"{NUM_ATTRIBUTES} attributes in the second; it is another file."
        )
    found = {}
    for number, line in enumerate(lines[2:], 3):
        name, *values = line.split() or [""]
        if len(values) != NUM_ATTRIBUTES or not set(values) <= {"1", "-1"} or name in found:
            raise ValueError(
                f"{path}, line {number}: expected the name of another face and {NUM_ATTRIBUTES} "
                f"times 1 or -1; got {line[:60]!r}."
            )
        found[name] = [value == "1" for value in values]
    check_count(path, "faces", len(found), int(lines[0]), any_version=False)
    check_count(path, "faces", len(found), NUM_IMAGES, any_version)
    return found


def _read_partition(path: str, names: list[str]) -> dict[str, int]:
    """Count the faces of each split, which must follow each other."""
    rows = [line.split() for line in _lines(path)]
    numbers = [row[-1] for row in rows if row]
    in_order = numbers == sorted(numbers) and set(numbers) <= {"0", "1", "2"}
    if [row[0] for row in rows if row] != names or not in_order:
        raise ValueError(
            f"{path}: expected a line for each face of {ATTRIBUTES}, in the same order, with its "
            "split, 0, 1 or 2, in increasing order."
        )
    return {split: numbers.count(str(number)) for number, split in enumerate(SPLITS)}


def convert_celeba_aligned_cropped(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "celeba_aligned_cropped.hdf5",
    any_version: bool = False,
) -> tuple[str]:
    """Convert the faces as they are; see `convert_celeba`.

    Parameters
    ----------
    directory : path
        As for `convert_celeba`.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    any_version : bool, optional
        As for `convert_celeba`.

    Returns
    -------
    tuple of str
        Path of the file.
    """
    return convert_celeba(
        "aligned_cropped", directory, output_directory, output_filename, any_version
    )


def convert_celeba_64(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "celeba_64.hdf5",
    any_version: bool = False,
) -> tuple[str]:
    """Convert the faces at 64 x 64 pixels; see `convert_celeba`.

    Parameters
    ----------
    directory : path
        As for `convert_celeba`.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    any_version : bool, optional
        As for `convert_celeba`.

    Returns
    -------
    tuple of str
        Path of the file.
    """
    return convert_celeba("64", directory, output_directory, output_filename, any_version)


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `convert_celeba`.
    """
    subparser.add_argument(
        "which_format",
        choices=("aligned_cropped", "64"),
        help="faces as they are, or of 64 x 64 pixels",
    )
    add_any_version_argument(subparser)
    return convert_celeba
