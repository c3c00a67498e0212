"""Time reading shuffled batches from HDF5 beside memory maps, PyTorch, Grain and webdataset.

Every reader runs in a process of its own, reads one epoch that does not count and then some that
do, and sums every byte of each batch. The processes take turns; the table has medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy
import readers

CHECKOUT = Path(__file__).parents[2]
TITLES = {
    "map": "numpy memory map (the floor)",
    "firebrick": "firebrick, in one piece",
    "firebrick-list": "the same, its `get_data` alone",
    "firebrick-chunks": "firebrick, chunks, not compressed",
    "firebrick-gzip": "firebrick, gzip",
    "firebrick-gzip-small": "the same, cache of 4 MiB",
    "firebrick-zstd": "firebrick, zstd",
    "firebrick-zstd-small": "the same, cache of 4 MiB",
    "h5py": "h5py, fancy selection, in one piece",
    "h5py-gzip": "h5py, fancy selection, gzip",
    "h5py-zstd": "h5py, fancy selection, zstd",
    "torch": "DataLoader, `__getitems__` on the map",
    "torch-workers": "the same, 2 persistent workers",
    "torch-h5py": "DataLoader, item by item over h5py, 2 workers",
    "grain": "Grain, on the map",
    "webdataset": "webdataset, buffer of 5,000",
    "firebrick-slices": "firebrick, in order",
    "h5py-slices": "h5py, slices in order",
    "jpeg-firebrick": "firebrick, ragged source",
    "jpeg-h5py": "h5py, fancy selection",
    "jpeg-torch": "DataLoader, files in a folder",
    "jpeg-torch-h5py": "DataLoader, item by item over h5py",
    "jpeg-grain": "Grain, files in a folder",
    "jpeg-webdataset": "webdataset, buffer of 1,000",
}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench hdf5",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    readers.add_dataset_directory(parser)
    parser.add_argument("--rounds", type=int, default=3, help="processes of each reader; 3")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of each process; 3")
    parser.add_argument("--only", nargs="+", choices=TITLES, help="these readers alone")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        print(json.dumps(readers.time_epochs(options.reader, options.folder, options.epochs)))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-hdf5-") as folder:
        readers.prepare(Path(folder), options.dataset_directory)
        results = run(folder, options.only or list(TITLES), options.rounds, options.epochs)
    print(report(results))
    return 0


def run(folder: str, names: list[str], rounds: int, epochs: int) -> dict[str, dict]:
    """Let the readers take turns.

    Parameters
    ----------
    folder : str
        What `readers.prepare` filled.
    names : list of str
    rounds, epochs : int

    Returns
    -------
    dict of str to dict
        What each measured: ``seconds`` of epochs, ``sum`` of what was read, or ``failure``.
    """
    results: dict[str, dict] = {}
    for _ in range(rounds):
        for name in names:
            found = _one(name, folder, epochs)
            before = results.setdefault(name, {"seconds": [], "sum": found.get("sum")})
            if "failure" in found or found["sum"] != before["sum"]:
                before["failure"] = found.get("failure", "another sum than before")
                continue
            before["seconds"] += found["seconds"]
    return results


def _one(name: str, folder: str, epochs: int) -> dict:
    command = [sys.executable, __file__, "--reader", name, "--folder", folder]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [*command, "--epochs", str(epochs)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
    )
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or ["no word"])[-1][:80]}
    return json.loads(done.stdout.splitlines()[-1])


def report(results: dict[str, dict]) -> str:
    """Write the table.

    Parameters
    ----------
    results : dict
        From `run`.

    Returns
    -------
    str
    """
    lines = []
    for title, prefix, floor in (
        ("60,000 images of 784 bytes, batches of 500", "", "map"),
        ("3,000 JPEGs of 2 to 20 kB, batches of 50, encoded", "jpeg-", "jpeg-h5py"),
    ):
        lines += ["", f"{title}: ms an epoch, and × {TITLES[floor].split(' (')[0]}", ""]
        base = results.get(floor, {}).get("seconds")
        sums = set()
        for name, result in results.items():
            if name.startswith("jpeg-") != bool(prefix):
                continue
            if "failure" in result or not result["seconds"]:
                lines.append(f"{TITLES[name]:<48} – {result.get('failure', '')}")
                continue
            sums |= {result["sum"]} - {None}
            median = statistics.median(result["seconds"])
            ratio = f"{median / statistics.median(base):8.2f}" if base else ""
            lines.append(f"{TITLES[name]:<48} {median * 1000:9.1f} {ratio}")
        same = "Whoever read all has the same sum of all bytes."
        lines.append(same if len(sums) <= 1 else f"SUMS DIFFER: {sums}")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    return textwrap.dedent("\n".join(lines)) + f"\n\n{machine}, numpy {numpy.__version__}"


if __name__ == "__main__":
    sys.exit(main())
