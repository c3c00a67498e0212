"""Files that are cut short or damaged are refused, or read as they were: never otherwise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.converters.storage import Storage

PROGRAM = Path(__file__).with_name("damaged_files.py")
NUM_EXAMPLES = 40


def write(path):
    """Sources of all kinds: in one piece, compressed, ragged, text."""
    draw = numpy.random.default_rng(0)
    numbers = numpy.arange(NUM_EXAMPLES * 6, dtype="int16").reshape(-1, 2, 3)
    packed = numpy.arange(NUM_EXAMPLES * 4, dtype="float32").reshape(-1, 4)
    ragged = [draw.normal(size=(1 + number % 3, 2)) for number in range(NUM_EXAMPLES)]
    words = [f"word {number}" for number in range(NUM_EXAMPLES)]
    sources = {"numbers": numbers, "packed": packed, "ragged": ragged, "words": words}
    data = [
        (split, source, values[rows])
        for split, rows in (("train", slice(0, 30)), ("test", slice(30, None)))
        for source, values in sources.items()
    ]
    labels = {"numbers": ("batch", "height", "width"), "ragged": ("batch", "time", "feature")}
    with new_hdf5_file(path) as h5file:
        fill_hdf5_file(h5file, data, labels, storage={"packed": Storage("gzip", chunk_examples=7)})


def outcomes(tmp_path, first, last):
    write(tmp_path / "whole.hdf5")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "whole.hdf5"), str(tmp_path)]
        + [str(first), str(last)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        timeout=60 + (last - first) / 5,
    )
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-2000:]}"
    return done.stdout.splitlines()


def check(lines, number):
    wrong = [line for line in lines if not re.fullmatch(r"\d+( (refused|whole)){2} ", line)]
    assert not wrong, wrong[:5]
    assert len(lines) == number
    assert sum("refused" in line for line in lines) > number / 3
    assert sum("whole" in line for line in lines) > number / 20


def test_a_damaged_file_is_refused_or_whole(tmp_path):
    check(outcomes(tmp_path, 0, 300), 300)


@pytest.mark.soak
def test_a_damaged_file_is_refused_or_whole_thousands_of_times(tmp_path):
    for first in range(0, 3000, 500):
        check(outcomes(tmp_path, first, first + 500), 500)
