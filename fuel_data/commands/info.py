"""The command `fuel-info`: what is in an HDF5 file, and where it comes from.

Exit status: 0 if the file could be read, 1 if not, 2 if the command was called wrongly.
"""

import argparse
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.commands.output import say, tidy, writing
from fuel_data.converters.provenance import read_provenance
from fuel_data.datasets import hdf5_format
from fuel_data.datasets.hdf5_files import damage_in_words, find_dataset, open_file
from fuel_data.datasets.hdf5_reading import SourceReader
from fuel_data.datasets.hdf5_virtual import files_of
from fuel_data.previews import is_png_name, png, preview
from fuel_data.reports import draw_histogram
from fuel_data.utils.files import atomic_write
from fuel_data.utils.parsers import Parser, positive
from fuel_data.utils.paths import find_in_data_path

# Of a larger source, the range is that of some examples: reading it all could take an hour.
RANGE_BYTES = 2**28
RANGE_PIECES = 64
MAX_CLASSES = 12
NUM_EXAMPLES = 40
OF_PREVIEW = ("split", "sources", "num_examples")


@tidy("fuel-info", "no file is half written")
def main(args: Sequence[str] | None = None) -> int:
    """Print what is in a file.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        0 if the file could be read, 1 if not. A wrong argument ends the process with 2.
    """
    parser = _parser()
    options = parser.parse_args(args)
    filename = options.filename
    if options.preview is None and any(map(vars(options).get, OF_PREVIEW)):
        parser.error("--split, --sources and --num-examples go with --preview.")
    if options.preview is not None and not is_png_name(options.preview):
        parser.error(
            f"--preview writes a PNG file; name it FILE.png instead of {options.preview!r}."
        )
    path = filename
    try:
        if os.path.isdir(filename):
            raise IsADirectoryError(f"{filename} is a folder; name a file in it.")
        path = filename if os.path.exists(filename) else find_in_data_path(filename)
        if options.preview is not None:
            _write_preview(path, options)
            say(f"{options.preview}: {os.path.getsize(options.preview):,} bytes")
            return 0
        with open_file(path) as h5file, damage_in_words(path):
            lines = [path, *_provenance_lines(h5file), *_part_lines(h5file)]
            lines += [*_source_lines(h5file), *_split_lines(h5file)]
        say("\n".join(lines))
    except (OSError, ValueError, ImportError) as error:
        who = "" if path in str(error) else f"{filename}: "
        print(f"fuel-info: {who}{error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="fuel-info",
        description="Print splits, sources and provenance of an HDF5 file, or draw some examples.",
        epilog="Exit status: 0 if the file could be read, 1 if not, 2 if called wrongly.",
    )
    parser.add_argument("filename", help="the file, looked for in the data path too")
    parser.add_argument(
        "--preview",
        metavar="FILE.png",
        help="draw a sheet of examples into this file instead (needs Pillow)",
    )
    parser.add_argument("--split", help="with --preview: the split, by default the first")
    parser.add_argument(
        "--sources", nargs="+", metavar="SOURCE", help="with --preview: by default all"
    )
    parser.add_argument(
        "--num-examples",
        type=positive(int),
        help=f"with --preview: how many (default {NUM_EXAMPLES})",
    )
    return parser


def _write_preview(path: str, options: argparse.Namespace) -> None:
    number = NUM_EXAMPLES if options.num_examples is None else options.num_examples
    sheet = png(preview(path, options.split, options.sources, number))
    with (
        writing(options.preview, "choose another file by --preview"),
        atomic_write(options.preview) as file,
    ):
        file.write(sheet)


def _provenance_lines(h5file: h5py.File) -> Iterator[str]:
    found = read_provenance(h5file)
    yield "provenance"
    for key in ("command", "date", "format", "converter"):
        yield f"  {key:10} {found[key] or 'not recorded'}"
    for key in ("libraries", "inputs"):
        if not found[key]:
            yield f"  {key:10} not recorded"
            continue
        yield f"  {key}"
        width = max(map(len, found[key]))
        for name, value in sorted(found[key].items()):
            yield f"    {name:{width}} {value}"


def _part_lines(h5file: h5py.File) -> Iterator[str]:
    """List the other files that have the values, which must be there: HDF5 would give zeros."""
    datasets = [find_dataset(h5file, name) for name in hdf5_format.get_all_sources(h5file)]
    paths = files_of(h5file, datasets)
    if not paths:
        return
    yield "virtual: values are in other files"
    folder = os.path.dirname(os.path.realpath(h5file.filename))
    names = [os.path.relpath(os.path.realpath(path), folder) for path in paths]
    width = max(map(len, names))
    for name, path in zip(names, paths, strict=True):
        yield f"  {name:{width}} {os.path.getsize(path):,} bytes"


def _source_lines(h5file: h5py.File) -> Iterator[str]:
    described = hdf5_format.describe_sources(h5file)
    yield "sources"
    width = max(map(len, described), default=0)
    for source, (is_ragged, labels) in described.items():
        axes = ", ".join(label or "?" for label in labels or ()) or "no labels"
        dataset = find_dataset(h5file, source)
        yield f"  {source:{width}} {_kind(dataset, is_ragged)}, axes: {axes}"
        indent = " " * (width + 3)
        for line in (*_range_lines(dataset), *_length_lines(dataset, labels)):
            yield indent + line
    names = hdf5_format.class_names(h5file)
    if names is not None:
        yield f"  classes: {_classes(names)}"


def _range_lines(dataset: h5py.Dataset) -> Iterator[str]:
    """Say between which values a source lies, from as many examples as are quickly read."""
    base = h5py.check_vlen_dtype(dataset.dtype) or dataset.dtype
    if getattr(base, "kind", None) not in list("biuf") or not dataset.size:
        return
    pieces = list(_pieces(dataset))
    values = [piece[numpy.isfinite(piece)] for piece in pieces]
    values = [piece for piece in values if piece.size]
    not_finite = sum(piece.size for piece in pieces) - sum(piece.size for piece in values)
    if values:
        low, high = min(piece.min() for piece in values), max(piece.max() for piece in values)
        # Large whole numbers would lose digits.
        shown = [
            f"{value:g}" if value.dtype.kind == "f" else str(int(value)) for value in (low, high)
        ]
        yield f"from {' to '.join(shown)}{_how_many(dataset)}"
    if not_finite:
        yield f"{not_finite:,} values are not finite{_how_many(dataset)}"


def _rows(dataset: h5py.Dataset) -> tuple[int, bool]:
    """Give how many examples are read for the range, and whether these are all."""
    is_vlen = h5py.check_vlen_dtype(dataset.dtype) is not None
    # What an example of variable length has is not known before it is read.
    example = 2**16 if is_vlen else math.prod(dataset.shape[1:]) * dataset.dtype.itemsize
    rows = max(1, RANGE_BYTES // max(1, example))
    return min(len(dataset), rows), len(dataset) <= rows


def _how_many(dataset: h5py.Dataset) -> str:
    rows, is_all = _rows(dataset)
    return "" if is_all else f" (of {rows:,} examples that were looked at)"


def _pieces(dataset: h5py.Dataset) -> Iterator[numpy.ndarray]:
    rows, is_all = _rows(dataset)
    count = min(RANGE_PIECES, rows)
    size = rows // count
    # It reads each part of a joined file by itself, and says where one is damaged.
    reader = SourceReader(dataset)
    for number in range(count):
        last = number == count - 1
        start = number * size if is_all else number * (len(dataset) - size) // max(1, count - 1)
        piece = reader.read(slice(start, len(dataset) if last and is_all else start + size))
        if piece.dtype == object:
            piece = numpy.concatenate([numpy.ravel(item) for item in piece.ravel()])
        yield numpy.atleast_1d(piece)


def _length_lines(dataset: h5py.Dataset, labels: Sequence[str] | None) -> Iterator[str]:
    """Draw how long the examples of a ragged source are, along each axis that varies."""
    if h5py.check_vlen_dtype(dataset.dtype) is None or not len(dataset):
        return
    scales = hdf5_format.scales(dataset)
    if "shapes" not in scales:
        rows, is_all = _rows(dataset)
        lengths = Counter(map(len, SourceReader(dataset).read(slice(0, rows))))
        if len(lengths) > 1:
            yield from draw_histogram(lengths)
            if not is_all:
                yield f"of the first {rows:,} examples"
        return
    shapes = SourceReader(scales["shapes"]).read(slice(0, len(scales["shapes"])))
    for axis in range(shapes.shape[1]):
        sizes, counts = numpy.unique(shapes[:, axis], return_counts=True)
        name = labels[axis + 1] if labels and len(labels) > axis + 1 else f"axis {axis + 1}"
        if len(sizes) == 1:
            yield f"{name}: {sizes[0]}"
            continue
        yield f"{name}:"
        lengths = Counter(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))
        yield from (f"  {line}" for line in draw_histogram(lengths))


def _classes(names: Sequence[str]) -> str:
    left = len(names) - MAX_CLASSES
    return ", ".join(names[:MAX_CLASSES]) + (f" and {left:,} more" if left > 0 else "")


def _kind(dataset: h5py.Dataset, ragged: bool) -> str:
    base: Any = h5py.check_vlen_dtype(dataset.dtype)
    if base is None:
        return f"{dataset.dtype} {dataset.shape}"
    note = "ragged" if ragged else "variable length"
    return f"{getattr(base, '__name__', base)} {dataset.shape}, {note}"


def _split_lines(h5file: h5py.File) -> Iterator[str]:
    rows = hdf5_format.split_rows(h5file)
    yield "splits"
    width = max((len(row.split) for row in rows), default=0)
    for split in hdf5_format.get_all_splits(h5file):
        for row in rows:
            if row.split == split and row.available:
                yield f"  {split:{width}} {row.source}: {_extent(h5file, row)}"


def _extent(h5file: h5py.File, row: hdf5_format.SplitRow) -> str:
    count = hdf5_format.count_examples(h5file, row)
    if not row.indices:
        extent = f"{count} examples, {row.start} to {row.stop}"
    elif count == len(h5file[row.indices]):
        extent = f"{count} examples by indices"
    else:
        extent = f"{count} examples by {len(h5file[row.indices])} indices"
    return extent if row.comment == "." else f"{extent} ({row.comment})"


if __name__ == "__main__":
    sys.exit(main())
