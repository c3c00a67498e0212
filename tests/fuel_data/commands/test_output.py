import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuel_data.commands.convert import main as convert

ROOT = str(Path(__file__).parents[3])


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "command",
    [
        ["info", "digits.hdf5"],
        ["convert", "digits", "-r", "again.hdf5"],
        ["download", "mnist", "--clear"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_whose_reader_has_left_ends_quietly(tmp_path, command, unbuffered):
    convert(["digits", "-o", str(tmp_path)])
    name, *arguments = command
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        process = subprocess.run(
            [sys.executable, "-m", f"fuel_data.commands.{name}", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ROOT, "PYTHONUNBUFFERED": unbuffered},
            stdout=write_end,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(write_end)

    assert "Broken" not in process.stderr
    assert process.returncode == 0
    assert (name != "convert") or (tmp_path / "again.hdf5").exists()
