"""Time shuffled reading of compressed sources, for each compression and size of chunk.

The same images are written once for each. An epoch of shuffled batches is read into an empty cache
that holds all, again out of it, through a cache of 4 MiB, and by h5py's selection of scattered
indices; then all are read in order. Ways of reading take turns; the table has medians.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy
import readers

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.converters.storage import Storage
from fuel_data.datasets import H5PYDataset

STORAGES = [
    Storage(),
    Storage(chunk_examples=64),
    *(
        Storage(name, chunk_examples=rows)
        for name in ("gzip", "zstd", "blosc", "lzf")
        for rows in (1, 3, 10, 64)
    ),
]
SMALL_CACHE = 2**22
#: What unpacks chunks for each example takes long: it reads this part of an epoch.
PART = 8
COLUMNS = {
    "first": "first",
    "later": "later",
    "small": "4 MiB",
    "fancy": "h5py",
    "ordered": "in order",
    "slices": "slices",
}

Batches = list[numpy.ndarray]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench storage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    readers.add_dataset_directory(parser)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each; 3")
    options = parser.parse_args()
    images = readers.read_images(options.dataset_directory)
    order = numpy.random.default_rng(0).permutation(len(images))
    batches = numpy.split(order, len(images) // readers.BATCH)
    print(f"{'compression':<12} {'chunk':>5} {'MB':>6}", *(f"{c:>9}" for c in COLUMNS.values()))
    with tempfile.TemporaryDirectory(prefix="bench-storage-") as folder:
        for number, storage in enumerate(STORAGES):
            path = Path(folder) / f"{number}.hdf5"
            with new_hdf5_file(path) as h5file:
                fill_hdf5_file(h5file, [("train", "x", images)], storage=storage)
            found = measure(path, batches, options.rounds)
            size = path.stat().st_size / 1e6
            title = f"{storage.compression or 'none':<12} {storage.chunk_examples or '–':>5}"
            figures = (f"{found[name]:9.1f}" for name in COLUMNS)
            print(title, f"{size:6.1f}", *figures, flush=True)
            path.unlink()
    print(
        f"Milliseconds an epoch of {len(images):,} images in batches of {readers.BATCH}. "
        f"{os.cpu_count()} cores, {platform.machine()}, h5py {h5py.__version__}"
    )


def measure(path: Path, batches: Batches, rounds: int) -> dict[str, float]:
    """Read in every way, in turns.

    Parameters
    ----------
    path : Path
        Of the file.
    batches : list of int arrays of shape (example,)
        The indices of each batch.
    rounds : int
        How often.

    Returns
    -------
    dict of str to float
        Milliseconds of an epoch, for each of `COLUMNS`.
    """
    times: dict[str, list[float]] = {name: [] for name in COLUMNS}
    part = batches[: len(batches) // PART]
    starts = range(0, len(batches) * readers.BATCH, readers.BATCH)
    ranges = [slice(start, start + readers.BATCH) for start in starts]
    for _ in range(rounds):
        large, small, ordered = _open(path), _open(path, cache_bytes=SMALL_CACHE), _open(path)
        times["first"].append(_time(large, batches))
        times["later"].append(_time(large, batches))
        times["small"].append(PART * _time(small, part))
        times["ordered"].append(_time(ordered, ranges))
        with h5py.File(path) as h5file:
            values = h5file["x"]
            # It takes indices in increasing order only.
            increasing = [numpy.sort(indices) for indices in part]
            times["fancy"].append(PART * _time(values.__getitem__, increasing))
            times["slices"].append(_time(values.__getitem__, ranges))
    return {name: statistics.median(seconds) * 1000 for name, seconds in times.items()}


def _open(path: Path, **options: int) -> Callable[[Any], numpy.ndarray]:
    dataset = H5PYDataset(path, ("train",), **options)
    # Opening is done, and does not count, when the first example is there.
    dataset.get_data(request=[0])
    return lambda request: dataset.get_data(request=request)[0]


def _time(read: Callable[[Any], Any], requests: list) -> float:
    started = time.perf_counter()
    for request in requests:
        read(request)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
