"""Street View House Numbers: whole numbers with boxes (format 1), or single digits (format 2)."""

import argparse
import os
import posixpath
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import h5py
import numpy

from fuel_data.converters.archives import read_tar
from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.images import decode_image
from fuel_data.converters.inputs import (
    add_any_version_argument,
    check_count,
    check_digests,
    find_inputs,
)
from fuel_data.converters.matlab import read_mat
from fuel_data.converters.pieces import RaggedSource
from fuel_data.datasets.hdf5_format import create_split_array
from fuel_data.utils.progress import progress_bar

#: Format → split → number of images.
COUNTS = {
    1: {"train": 33402, "test": 13068, "extra": 202353},
    2: {"train": 73257, "test": 26032, "extra": 531131},
}
#: Of format 2; nobody has published digests of format 1.
DIGESTS = {
    "train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
    "test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
    "extra_32x32.mat": "a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3",
}
#: Source of format 1 → field of a box, and dtype.
BOXES = {
    "bbox_heights": ("height", "uint16"),
    "bbox_widths": ("width", "uint16"),
    "bbox_lefts": ("left", "uint16"),
    "bbox_tops": ("top", "uint16"),
    "bbox_labels": ("label", "uint8"),
}
ZERO = 10
Boxes = dict[str, dict[str, numpy.ndarray]]


def convert_svhn(
    which_format: int,
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str | None = None,
    any_version: bool = False,
) -> tuple[str]:
    """Convert one of the two formats.

    Parameters
    ----------
    which_format : {1, 2}
        See `convert_svhn_format_1` and `convert_svhn_format_2`.
    directory : path
        Folder of the input files, or one of them.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file, by default svhn_format_1.hdf5 or svhn_format_2.hdf5.
    any_version : bool, optional
        Whether to take files with other digests and other numbers of images.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If input files are missing.
    ValueError
        If one of them is damaged, or not the expected one, or there is no such format.
    """
    converters = {1: convert_svhn_format_1, 2: convert_svhn_format_2}
    if which_format not in converters:
        raise ValueError(f"SVHN: `which_format` must be 1 or 2; got {which_format!r}.")
    output_filename = output_filename or f"svhn_format_{which_format}.hdf5"
    return converters[which_format](directory, output_directory, output_filename, any_version)


def convert_svhn_format_1(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "svhn_format_1.hdf5",
    any_version: bool = False,
) -> tuple[str]:
    """Convert the images of house numbers of any size, with a box around each digit.

    The file has ragged sources, whose first axis is batch: `features`, uint8, with the axes
    channel, height, width, and for the digits of an image `bbox_heights`, `bbox_widths`,
    `bbox_lefts`, `bbox_tops`, uint16, in pixels (boxes that begin outside the image begin at 0),
    and `bbox_labels`, uint8, the digits, with the axis bounding_box; and the splits `train` of
    33,402, `test` of 13,068 and `extra` of 202,353 images.

    Parameters
    ----------
    directory : path
        Folder of train.tar.gz, test.tar.gz and extra.tar.gz, or one of them.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    any_version : bool, optional
        Whether to take archives with other numbers of images.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If archives are missing.
    ValueError
        If one of them is damaged, or not the expected one.
    """
    counts = COUNTS[1]
    paths = find_inputs(directory, [f"{split}.tar.gz" for split in counts])
    boxes = {}
    for (split, expected), path in zip(counts.items(), paths, strict=True):
        boxes[split] = _read_boxes(path, output_directory)
        check_count(path, "images", len(boxes[split]), expected, any_version)
    output = os.path.join(output_directory, output_filename)
    total = sum(map(len, boxes.values()))
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
        images, boxes_ = ("batch", "channel", "height", "width"), ("batch", "bounding_box")
        sources = {
            source: RaggedSource(h5file, source, total, dtype, axes, "uint16")
            for source, dtype, axes in (
                ("features", "uint8", images),
                *((source, dtype, boxes_) for source, (_, dtype) in BOXES.items()),
            )
        }
        start, ranges = 0, {}
        for split, path in zip(counts, paths, strict=True):
            _write_images(path, boxes[split], sources, start, progress)
            ranges[split] = (start, start + len(boxes[split]))
            start += len(boxes[split])
        h5file.attrs["split"] = create_split_array(
            {split: dict.fromkeys(sources, range_) for split, range_ in ranges.items()}
        )
        record_inputs(h5file, paths)
    return (output,)


def _write_images(
    path: str, boxes: Boxes, sources: Mapping[str, RaggedSource], start: int, progress: Callable
) -> None:
    places = {name: start + number for number, name in enumerate(boxes)}
    for name, content in _pngs(path):
        place = places.pop(name, None)
        if place is None:
            raise ValueError(
                f"{path}: digitStruct.mat says nothing of {name}, or the archive has it twice."
            )
        sources["features"].write(place, decode_image(content, f"{path}/{name}"))
        for source, values in boxes[name].items():
            sources[source].write(place, values)
        progress(1)
    if places:
        raise ValueError(
            f"{path} lacks {len(places):,} images of which digitStruct.mat speaks, such as "
            f"{next(iter(places))}. Fetch it again."
        )


def _pngs(path: str) -> Iterator[tuple[str, bytes]]:
    for name, content in read_tar(path, path):
        if name.endswith(".png"):
            yield posixpath.basename(name), content


def _read_boxes(path: str, folder: str | os.PathLike[str]) -> Boxes:
    """Read the boxes of an archive: name of the image → source → values."""
    found = None
    # To the end, where the check sum of the archive is: HDF5 gets nothing that is damaged.
    for name, content in read_tar(path, path):
        if posixpath.basename(name) == "digitStruct.mat":
            found = content
    if found is None:
        raise ValueError(f"{path}: expected images and a digitStruct.mat, which is not there.")
    # HDF5 reads files faster than objects of Python.
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(found)
        file.flush()
        return _read_digit_struct(file.name, f"{path}/digitStruct.mat")


def _read_digit_struct(path: str, where: str) -> Boxes:
    try:
        with h5py.File(path, mode="r") as h5file:
            struct = h5file["digitStruct"]
            names, boxes = struct["name"][:, 0], struct["bbox"][:, 0]
            found = {
                _text(h5file[name]): _read_box(h5file, h5file[box])
                for name, box in zip(names, boxes, strict=True)
            }
    # HDF5 says OSError, RuntimeError, KeyError, TypeError, ... to what is damaged.
    except Exception as error:
        raise ValueError(
            f"{where} is not the MATLAB file of names and boxes that was expected: {error}. Fetch "
            "the archive again."
        ) from error
    if len(found) != len(names):
        raise ValueError(f"{where} names an image twice. Fetch the archive again.")
    return found


def _text(characters: h5py.Dataset) -> str:
    return "".join(chr(character) for character in characters[:, 0])


def _read_box(h5file: h5py.File, box: h5py.Group) -> dict[str, numpy.ndarray]:
    found = {
        source: _checked(source, _numbers(h5file, box[field])).astype(dtype)
        for source, (field, dtype) in BOXES.items()
    }
    if len({len(values) for values in found.values()}) != 1:
        raise ValueError(f"{box.name} has more of one thing than of another")
    return found


def _numbers(h5file: h5py.File, values: h5py.Dataset) -> numpy.ndarray:
    """Read a number for each digit: MATLAB keeps one as it is, several as references."""
    column = values[:, 0]
    if column.dtype != object:
        return column
    return numpy.array([h5file[reference][0, 0] for reference in column])


def _checked(source: str, values: numpy.ndarray) -> numpy.ndarray:
    if source == "bbox_labels":
        if not numpy.isin(values, range(1, ZERO + 1)).all():
            raise ValueError(f"labels must be 1 to {ZERO}; got {values}")
        return numpy.where(values == ZERO, 0, values)
    clipped = numpy.maximum(values, 0)
    if not (clipped < 2**16).all():
        raise ValueError(f"{source} must be numbers of pixels; got {values}")
    return clipped


def convert_svhn_format_2(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "svhn_format_2.hdf5",
    any_version: bool = False,
) -> tuple[str]:
    """Convert the digits of 32 x 32 pixels; it takes about 2 GB of memory.

    The file has the sources `features`, uint8 of shape (example, 3, 32, 32), with the axes batch,
    channel, height, width, and `targets`, uint8 of shape (example, 1), the digits, with the axes
    batch, index; and the splits `train` of 73,257, `test` of 26,032 and `extra` of 531,131 images.

    Parameters
    ----------
    directory : path
        Folder of train_32x32.mat, test_32x32.mat and extra_32x32.mat, or one of them.
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
    paths = find_inputs(directory, DIGESTS)
    check_digests(paths, DIGESTS, any_version)
    data: list[tuple[str, str, Any]] = []
    for (split, expected), path in zip(COUNTS[2].items(), paths, strict=True):
        found = read_mat(path, {"X": (32, 32, 3, None), "y": (None, 1)})
        images, labels = found["X"], found["y"]
        check_count(path, "images", images.shape[3], expected, any_version)
        right = images.dtype == numpy.uint8 and len(labels) == images.shape[3]
        if not right or not numpy.isin(labels, range(1, ZERO + 1)).all():
            raise ValueError(
                f"{path}: expected images X of bytes and a label y from 1 to {ZERO} for each; got "
                f"X of {images.dtype} {images.shape} and y of shape {labels.shape}."
            )
        targets = numpy.where(labels == ZERO, 0, labels).astype(numpy.uint8)
        # From height, width, channel, example.
        data += [(split, "features", images.transpose(3, 2, 0, 1)), (split, "targets", targets)]
    output = os.path.join(output_directory, output_filename)
    total = sum(values.nbytes for _, _, values in data)
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
        axes = {
            "features": ("batch", "channel", "height", "width"),
            "targets": ("batch", "index"),
        }
        fill_hdf5_file(h5file, data, axes, progress)
        record_inputs(h5file, paths)
    return (output,)


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `convert_svhn`.
    """
    subparser.add_argument(
        "which_format",
        metavar="FORMAT",
        type=int,
        choices=sorted(COUNTS),
        help="1 for whole numbers with boxes, 2 for single digits of 32 x 32 pixels",
    )
    add_any_version_argument(subparser)
    return convert_svhn
