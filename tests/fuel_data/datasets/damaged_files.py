"""Damage an HDF5 file in many ways and read it: a program, because HDF5 may end its process.

``python damaged_files.py FILE FOLDER FIRST LAST`` does the cases FIRST to before LAST and writes a
line for each: its number before it begins, then what came of it.
"""

import faulthandler
import random
import sys
from pathlib import Path

import numpy

from fuel_data.datasets import H5PYDataset


def damage(content: bytes, case: int) -> bytes:
    """Cut the content short, flip bits in it, or overwrite a part of it."""
    draw = random.Random(f"damage {case}")
    damaged = bytearray(content)
    kind = draw.choice(["cut", "bit", "bit", "header bit", "bits", "block"])
    if kind == "cut":
        return bytes(damaged[: draw.randrange(len(damaged))])
    if kind == "block":
        start = draw.randrange(len(damaged))
        stop = min(len(damaged), start + draw.choice([1, 4, 64, 512]))
        damaged[start:stop] = draw.randbytes(stop - start)
        return bytes(damaged)
    end = len(damaged) if kind != "header bit" else min(4096, len(damaged))
    for _ in range(draw.randint(2, 8) if kind == "bits" else 1):
        damaged[draw.randrange(end)] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def read(path: Path, load_in_memory: bool) -> dict[str, list]:
    """Read all there is, in the order of the file and scattered."""
    found = {}
    for split in ("train", "test"):
        with H5PYDataset(path, (split,), load_in_memory=load_in_memory) as dataset:
            backwards = numpy.arange(dataset.num_examples)[::-1]
            for request in (slice(None), backwards[::2], int(backwards[0])):
                data = dataset.get_data(None, request)
                found[f"{split} {request}"] = [plain(values) for values in data]
    return found


def plain(values):
    """Lists and numbers, which can be compared."""
    if isinstance(values, numpy.ndarray) and values.dtype == object:
        return [plain(value) for value in values]
    return values.tolist() if hasattr(values, "tolist") else values


def main() -> None:
    """Do the cases."""
    path, folder, first, last = sys.argv[1:]
    content = Path(path).read_bytes()
    expected = read(Path(path), False)
    target = Path(folder) / "damaged.hdf5"
    for case in range(int(first), int(last)):
        # A call of HDF5 that does not come back cannot be interrupted, only told of.
        faulthandler.dump_traceback_later(20, exit=True)
        print(case, end=" ", flush=True)
        target.write_bytes(damage(content, case))
        for load_in_memory in (False, True):
            try:
                found = read(target, load_in_memory)
            except (OSError, ValueError) as error:
                print("refused" if str(target) in str(error) else f"NAMELESS {error}", end=" ")
            except BaseException as error:
                print(f"ERROR {type(error).__name__}: {error}", end=" ")
            else:
                print("whole" if found == expected else "WRONG", end=" ")
        print(flush=True)


if __name__ == "__main__":
    main()
