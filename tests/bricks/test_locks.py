"""One file of checkpoints, and several runs that want to write to it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from bricks.locks import CheckpointInUse, claimed
from bricks.main_loop import MainLoop
from extensions import FinishAfter, TrainingExtension
from extensions.saveload import Checkpoint
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream

ROOT = Path(__file__).parents[2]
CLAIM = """
import sys
from bricks.locks import claimed
with claimed([sys.argv[1]]):
    print("claimed", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loop.zip"


@pytest.fixture
def other_process(path):
    """A process that has claimed the path."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "claimed\n"
        yield process
        process.kill()


class Nothing:
    def initialize(self):
        pass

    def process_batch(self, batch):
        pass


class Calls(TrainingExtension):
    """Calls a function after the first batch."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def after_batch(self, batch):
        if self.main_loop.status["iterations_done"] == 1:
            self.function()


def make_loop(path, *extensions):
    ends = FinishAfter(after_n_batches=3)
    checkpoint = Checkpoint(path, save_main_loop=False)
    dataset = IndexableDataset({"x": numpy.arange(6)})
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(6, 2))
    return MainLoop(Nothing(), stream, extensions=[*extensions, ends, checkpoint])


def test_a_run_to_the_file_of_another_process_is_refused_and_that_process_is_named(
    path, other_process
):
    words = rf"loop\.zip belongs to .*: process {other_process.pid} on {socket.gethostname()}\. "
    loop = make_loop(path)
    for _ in range(2):
        with pytest.raises(CheckpointInUse, match=words):
            loop.run(resume="auto")
    assert loop.status["iterations_done"] == 0


def test_the_claim_ends_with_the_process_however_that_dies(path, other_process):
    other_process.send_signal(signal.SIGKILL)
    other_process.wait()
    make_loop(path).run()

    assert os.listdir(path.parent) == ["loop.zip"]


def test_a_second_run_in_the_same_process_is_refused_while_the_first_goes_on(path):
    def run_another():
        with pytest.raises(CheckpointInUse, match=f"process {os.getpid()} "):
            make_loop(path).run()

    make_loop(path, Calls(run_another)).run()


def test_a_loop_is_run_again_in_one_process_and_leaves_no_claim(path):
    loop = make_loop(path)
    loop.run()
    loop.run()
    with pytest.raises(ZeroDivisionError):
        make_loop(path, Calls(lambda: 1 / 0)).run()

    assert os.listdir(path.parent) == ["loop.zip"]


def test_two_names_of_one_file_are_one_claim(path, tmp_path):
    (tmp_path / "link.zip").symlink_to(path)

    first = claimed([path, tmp_path / "link.zip", os.fspath(path)])
    with first, pytest.raises(CheckpointInUse), claimed([tmp_path / "link.zip"]):
        pass


def test_nothing_is_claimed_where_no_file_can_be_made(tmp_path):
    with claimed([tmp_path / "missing" / "loop.zip"]):
        assert os.listdir(tmp_path) == []


def test_a_claim_that_was_removed_while_it_was_waited_for_is_made_anew(path, monkeypatch):
    lock = path.with_name(".loop.zip.lock")
    real_open, removed = os.open, []

    def open_and_lose(name, *arguments):
        descriptor = real_open(name, *arguments)
        if not removed:
            # As the last owner does at the end of its run.
            os.unlink(name)
            removed.append(name)
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose)
    with claimed([path]):
        assert lock.exists()
        assert removed == [os.fspath(lock)]
