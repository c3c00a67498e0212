"""The command `fuel-info`: what is in an HDF5 file, and where it comes from.

Exit status: 0 if the file could be read, 1 if not, 2 if the command was called wrongly.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import h5py

from fuel_data.commands.output import say
from fuel_data.converters.provenance import read_provenance
from fuel_data.datasets import hdf5_format
from fuel_data.utils.paths import find_in_data_path


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
    parser = argparse.ArgumentParser(
        prog="fuel-info",
        description="Print splits, sources and provenance of an HDF5 file.",
        epilog="Exit status: 0 if the file could be read, 1 if not, 2 if called wrongly.",
    )
    parser.add_argument("filename", help="the file, looked for in the data path too")
    filename = parser.parse_args(args).filename
    try:
        path = filename if os.path.exists(filename) else find_in_data_path(filename)
        with h5py.File(path, mode="r") as h5file:
            lines = [path, *_provenance_lines(h5file), *_source_lines(h5file)]
            lines += _split_lines(h5file)
    except (OSError, ValueError) as error:
        print(f"fuel-info: {filename}: {error}", file=sys.stderr)
        return 1
    say("\n".join(lines))
    return 0


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


def _source_lines(h5file: h5py.File) -> Iterator[str]:
    ragged = hdf5_format.get_vlen_sources(h5file)
    labels = hdf5_format.get_axis_labels(h5file)
    sources = hdf5_format.get_all_sources(h5file)
    yield "sources"
    width = max(map(len, sources))
    for source in sources:
        axes = ", ".join(label or "?" for label in labels[source] or ()) or "no labels"
        yield f"  {source:{width}} {_kind(h5file[source], source in ragged)}, axes: {axes}"


def _kind(dataset: h5py.Dataset, ragged: bool) -> str:
    base: Any = h5py.check_vlen_dtype(dataset.dtype)
    if base is None:
        return f"{dataset.dtype} {dataset.shape}"
    note = "ragged" if ragged else "variable length"
    return f"{getattr(base, '__name__', base)} {dataset.shape}, {note}"


def _split_lines(h5file: h5py.File) -> Iterator[str]:
    rows = hdf5_format.split_rows(h5file)
    yield "splits"
    width = max(len(row.split) for row in rows)
    for split in hdf5_format.get_all_splits(h5file):
        for row in rows:
            if row.split == split and row.available:
                yield f"  {split:{width}} {row.source}: {_extent(h5file, row)}"


def _extent(h5file: h5py.File, row: hdf5_format.SplitRow) -> str:
    if row.indices:
        extent = f"{len(h5file[row.indices])} examples by indices"
    else:
        extent = f"{row.stop - row.start} examples, {row.start} to {row.stop}"
    return extent if row.comment == "." else f"{extent} ({row.comment})"


if __name__ == "__main__":
    sys.exit(main())
