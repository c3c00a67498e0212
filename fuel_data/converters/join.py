"""Several HDF5 files as one, which refers to their values and has none of its own."""

import argparse
import contextlib
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import h5py
import numpy

from fuel_data.converters.base import UsageError, final_folder, new_hdf5_file, record_inputs
from fuel_data.converters.storage import Storage, storage_of
from fuel_data.datasets import hdf5_format
from fuel_data.datasets.hdf5_files import damage_in_words, open_file
from fuel_data.datasets.hdf5_parts import write_parts
from fuel_data.datasets.hdf5_virtual import check_values
from fuel_data.exceptions import MissingInputFiles
from fuel_data.utils.progress import progress_bar

DESCRIPTION = """\
Join HDF5 files into one, as a virtual data set: the new file is small and
refers to the FILEs, which must stay where they are in relation to it. Splits of
one name are joined, in the order of the FILEs. Files that have a source both
must have it with one type, shape of the examples and axes.
"""
EXAMPLES = """\
example:
  fuel-convert join shards/part-*.hdf5 -o shards -r all.hdf5

"""


def join_files(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "joined.hdf5",
    *,
    files: Sequence[str],
) -> tuple[str]:
    """Join files.

    Parameters
    ----------
    directory : path
        Where the files are, if they are not in the current folder.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    files : sequence of str
        Files of Fuel's format. Their order is that of the examples of each split.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If files are missing.
    OSError
        If one cannot be read or is damaged, or there are more than may be open at once.
    ValueError
        If sources or classes do not fit together, or the values were to be compressed.
    """
    if storage_of("", None) != Storage():
        raise UsageError(
            "the values stay where they are, so they cannot be compressed anew. Leave "
            "--compression and --chunk-examples out, or convert the parts with them."
        )
    paths = [_find(directory, file) for file in files]
    missing = [path for path in paths if not os.path.isfile(path)]
    if missing:
        raise MissingInputFiles("These files are not there", missing)
    folder = os.path.realpath(final_folder(output_directory))
    output = os.path.join(output_directory, output_filename)
    with contextlib.ExitStack() as open_files:
        try:
            parts = [_Part(open_files.enter_context(open_file(path)), folder) for path in paths]
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            raise OSError(
                f"{len(paths):,} files are more than may be open at once, and who reads the joined "
                "file has all of them open. Raise the limit, by `ulimit -n`, or join fewer."
            ) from error
        if os.path.join(folder, output_filename) in [part.path for part in parts]:
            raise ValueError(
                f"{output_filename} would take the place of one of its parts. Choose another name "
                "by -r, or another folder by -o."
            )
        with progress_bar(f"the parts of {output_filename}", len(parts), "Checking") as progress:
            for part in parts:
                with damage_in_words(part.h5file.filename):
                    check_values(part.h5file, part.sources)
                part.check_like(parts)
                progress(1)
        splits, blocks = _plan(parts)
        total = sum(map(os.path.getsize, paths))
        with (
            new_hdf5_file(output) as h5file,
            progress_bar(f"the parts of {output_filename}", total, "Digesting") as progress,
        ):
            for source, of_source in blocks.items():
                _write_source(h5file, source, of_source)
            _write_splits(h5file, splits)
            _write_classes(h5file, parts)
            write_parts(h5file, {part.reference: part.h5file for part in parts})
            record_inputs(h5file, paths, progress)
    return (output,)


def _find(directory: str | os.PathLike[str], file: str) -> str:
    path = os.path.join(directory, file)
    return path if os.path.isfile(path) else file


class _Part:
    """One of the files.

    Parameters
    ----------
    h5file : h5py.File
        The file, open.
    folder : str
        Where the file will be that refers to it.
    """

    def __init__(self, h5file: h5py.File, folder: str) -> None:
        self.h5file = h5file
        self.path = os.path.realpath(h5file.filename)
        self.reference = os.path.relpath(self.path, folder)
        if "%" in self.reference:
            raise ValueError(
                f"{h5file.filename}: HDF5 reads a % in the name of a file as a number to fill in; "
                "rename it."
            )
        self.sources = hdf5_format.describe_sources(h5file)
        self.rows = [row for row in hdf5_format.split_rows(h5file) if row.available]

    def check_like(self, parts: Sequence["_Part"]) -> None:
        """Refuse a file that has a source in another way than the first one that has it."""
        for source in self.sources:
            first = next(part for part in parts if source in part.sources)
            got, expected = self._kind(source), first._kind(source)
            if got != expected:
                raise ValueError(
                    f"{self.h5file.filename}: source {source!r} must be {expected}, as in "
                    f"{first.h5file.filename}; it is {got}. Convert one of them anew."
                )

    def _kind(self, source: str) -> str:
        dataset = self.h5file[source]
        is_ragged, labels = self.sources[source]
        vlen = h5py.check_vlen_dtype(dataset.dtype)
        # Texts of several lengths become those of the largest.
        name = dataset.dtype.kind if dataset.dtype.kind in "SU" else dataset.dtype
        dtype = f"{vlen} of variable length" if vlen else name
        dimensions = hdf5_format.scales(dataset)["shapes"].shape[1] if is_ragged else None
        shape = f"{dimensions} axes of any length" if is_ragged else f"shape {dataset.shape[1:]}"
        axes = f"axes {', '.join(labels)}" if labels else "no axis labels"
        return f"{dtype}, {shape} for each example, {axes}"


class _Block(NamedTuple):
    """Examples of a source that follow each other in one of the files, and in the joined one."""

    part: _Part
    dataset: h5py.Dataset
    start: int
    stop: int
    # Where a split has them in another order, or not all: their places in the file.
    chosen: numpy.ndarray | None

    @property
    def length(self) -> int:
        return self.stop - self.start


class _Split(NamedTuple):
    """What a split has of a source: a range, or indices."""

    start: int
    stop: int
    indices: numpy.ndarray | None


def _plan(
    parts: Sequence[_Part],
) -> tuple[dict[str, dict[str, _Split]], dict[str, list[_Block]]]:
    """Say where the examples of each source come from, split after split, and where splits are."""
    splits: dict[str, dict[str, _Split]] = {}
    blocks: dict[str, list[_Block]] = {}
    ends: dict[str, int] = {}
    for name, of_split in _by_split(parts).items():
        _check_sources(name, of_split)
        for source in dict.fromkeys(row.source for _, row in of_split):
            added = [_block(part, row) for part, row in of_split if row.source == source]
            start = ends.get(source, 0)
            stop = ends[source] = start + sum(block.length for block in added)
            splits.setdefault(name, {})[source] = _Split(start, stop, _indices(added, start))
            blocks.setdefault(source, []).extend(added)
    return splits, blocks


def _by_split(parts: Sequence[_Part]) -> dict[str, list[tuple[_Part, hdf5_format.SplitRow]]]:
    found: dict[str, list[tuple[_Part, hdf5_format.SplitRow]]] = {}
    for part in parts:
        for row in part.rows:
            found.setdefault(row.split, []).append((part, row))
    return found


def _check_sources(split: str, rows: Sequence[tuple[_Part, hdf5_format.SplitRow]]) -> None:
    """Refuse a split that has other sources in another file: its examples would lose pace."""
    sources: dict[str, list[str]] = {}
    for part, row in rows:
        sources.setdefault(part.h5file.filename, []).append(row.source)
    (first, expected), *others = ((file, sorted(names)) for file, names in sources.items())
    for file, names in others:
        if names != expected:
            raise ValueError(
                f"{file}: split {split!r} must have the sources {', '.join(expected)}, as in "
                f"{first}; it has {', '.join(names)}."
            )


def _block(part: _Part, row: hdf5_format.SplitRow) -> _Block:
    dataset = part.h5file[row.source]
    chosen, start, stop = None, row.start, row.stop
    if row.indices:
        chosen = part.h5file[row.indices][()].astype("int64")
        start, stop = (int(chosen.min()), int(chosen.max()) + 1) if len(chosen) else (0, 0)
    if not 0 <= start <= stop <= len(dataset):
        raise ValueError(
            f"{part.h5file.filename}: split {row.split!r} has the examples {start} to {stop} of "
            f"source {row.source!r}, which has {len(dataset)}."
        )
    return _Block(part, dataset, start, stop, chosen)


def _indices(blocks: Sequence[_Block], start: int) -> numpy.ndarray | None:
    """Give the places of examples in the joined source, or None if they follow each other."""
    if all(block.chosen is None for block in blocks):
        return None
    places = []
    for block in blocks:
        in_file = numpy.arange(block.start, block.stop) if block.chosen is None else block.chosen
        places.append(in_file - block.start + start)
        start += block.length
    return numpy.concatenate(places)


def _write_source(h5file: h5py.File, source: str, blocks: Sequence[_Block]) -> None:
    dataset = _write_virtual(h5file, source, blocks)
    _, labels = blocks[0].part.sources[source]
    for axis, label in enumerate((labels or ())[: dataset.ndim]):
        dataset.dims[axis].label = label
    scales = hdf5_format.scales(blocks[0].dataset)
    if "shapes" not in scales:
        return
    of_shapes = [
        block._replace(dataset=hdf5_format.scales(block.dataset)["shapes"]) for block in blocks
    ]
    written = {"shapes": _write_virtual(h5file, f"{source}_shapes", of_shapes)}
    if "shape_labels" in scales:
        values = scales["shape_labels"][()]
        written["shape_labels"] = h5file.create_dataset(f"{source}_shape_labels", data=values)
    for name, scale in written.items():
        scale.make_scale(name)
        dataset.dims[0].attach_scale(scale)


def _write_virtual(h5file: h5py.File, name: str, blocks: Sequence[_Block]) -> h5py.Dataset:
    # Texts of several lengths become those of the largest; all else has one type.
    dtype = max((block.dataset.dtype for block in blocks), key=lambda dtype: dtype.itemsize)
    total = sum(block.length for block in blocks)
    shape = (total, *blocks[0].dataset.shape[1:])
    if not total:
        return h5file.create_dataset(name, shape, dtype)
    layout = h5py.VirtualLayout(shape, dtype)
    start = 0
    for block in blocks:
        if block.length:
            found = block.dataset
            values = h5py.VirtualSource(block.part.reference, found.name, found.shape, found.dtype)
            layout[start : start + block.length] = values[block.start : block.stop]
            start += block.length
    return h5file.create_virtual_dataset(name, layout)


def _write_splits(h5file: h5py.File, splits: Mapping[str, Mapping[str, _Split]]) -> None:
    entries: dict[str, dict[str, Sequence[Any]]] = {}
    for name, of_split in splits.items():
        # Sources of a split that have the same indices refer to the same ones.
        written: dict[bytes, h5py.Reference] = {}
        for source, (start, stop, indices) in of_split.items():
            entry: Sequence[Any] = (start, stop)
            if indices is not None:
                content = indices.tobytes()
                if content not in written:
                    place = f"{name}_{source}_indices"
                    written[content] = h5file.create_dataset(place, data=indices).ref
                entry = (start, stop, written[content])
            entries.setdefault(name, {})[source] = entry
    h5file.attrs["split"] = hdf5_format.create_split_array(entries)


def _write_classes(h5file: h5py.File, parts: Sequence[_Part]) -> None:
    """Take over the names of the classes, which the numbers in `targets` stand for."""
    first, *others = parts
    names = _class_names(first)
    for part in others:
        if _class_names(part) != names:
            raise ValueError(
                f"{part.h5file.filename}: the classes are {_shown(_class_names(part))}, in "
                f"{first.h5file.filename} {_shown(names)}, so equal numbers in `targets` are not "
                "equal classes. Convert them with the same classes."
            )
    if names is not None:
        data = [*map(os.fsencode, names)]
        h5file.create_dataset("class_names", data=data, dtype=h5py.string_dtype())


def _class_names(part: _Part) -> list[str] | None:
    return None if "class_names" in part.sources else hdf5_format.class_names(part.h5file)


def _shown(names: Sequence[str] | None) -> str:
    if names is None:
        return "not named"
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `join_files`.
    """
    subparser.description = DESCRIPTION
    subparser.epilog = EXAMPLES + (subparser.epilog or "")
    subparser.add_argument("files", nargs="+", metavar="FILE", help="the files, in order")
    return join_files
