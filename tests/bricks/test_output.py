"""Pipes and terminals that are closed while training runs."""

import errno
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from bricks.output import until_closed

SCRIPT = """
import sys
from bricks.main_loop import MainLoop
from extensions import FinishAfter, Printing, ProgressBar

class Stream:
    num_batches = 3
    def get_epoch_iterator(self, as_dict):
        return iter([{}] * 3)

class Algorithm:
    def initialize(self):
        pass
    def process_batch(self, batch):
        # The test closes its end of what is printed before the second batch.
        sys.stdin.readline()

bar = ProgressBar(seconds=1e-9, plain_seconds=1e-9)
loop = MainLoop(Algorithm(), Stream(), extensions=[bar, Printing(), FinishAfter(after_n_epochs=2)])
loop.run()
open(sys.argv[1], "w").write(str(loop.status["iterations_done"]))
"""


def start(tmp_path, **outputs):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, tmp_path / "done"],
        stdin=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
        **outputs,
    )


def test_training_goes_on_when_the_reader_of_a_pipe_is_gone(tmp_path):
    with start(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith("Before epoch 1")
        process.stdout.close()
        _, told = process.communicate("\n" * 6, timeout=120)

    assert (process.returncode, (tmp_path / "done").read_text()) == (0, "6")
    assert told.count("Nobody reads what is printed any more") == 1


def test_training_goes_on_when_nobody_reads_errors_either(tmp_path):
    with start(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write("\n" * 6)
        process.stdin.close()
        process.wait(timeout=120)

    assert (process.returncode, (tmp_path / "done").read_text()) == (0, "6")


def test_training_goes_on_when_the_terminal_is_closed(tmp_path):
    ours, theirs = pty.openpty()
    with start(tmp_path, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.read(ours, 10)
        os.close(ours)
        process.stdin.write("\n" * 6)
        process.stdin.close()
        process.wait(timeout=120)

    assert (process.returncode, (tmp_path / "done").read_text()) == (0, "6")


def test_another_error_of_writing_is_raised():
    with pytest.raises(OSError, match="disk"), until_closed():
        raise OSError(errno.ENOSPC, "the disk is full")
