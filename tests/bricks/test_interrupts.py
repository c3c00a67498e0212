"""Signals as flags, and scripts that get real ones."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bricks.interrupts import Signals


def test_signals_are_counted_and_the_old_handlers_come_back():
    old = signal.getsignal(signal.SIGTERM)
    signals = Signals()
    with signals:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)

    assert (signals.received, signals.terminated, signals.interrupts) == (True, True, 1)
    assert signal.getsignal(signal.SIGTERM) is old


def test_nothing_is_done_outside_of_the_main_thread():
    handlers = []

    def enter():
        with Signals():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert handlers == [signal.getsignal(signal.SIGINT)]


SCRIPT = """
import pathlib, sys
from bricks.main_loop import MainLoop
from extensions import TrainingExtension

class Stream:
    def get_epoch_iterator(self, as_dict):
        return iter([{"x": index} for index in range(3)])

class Algorithm:
    def initialize(self):
        pass
    def process_batch(self, batch):
        # Epochs and batches go on for ever, one for each line that the test sends.
        print("batch", flush=True)
        sys.stdin.readline()

class Mark(TrainingExtension):
    def after_training(self):
        print("after_training", flush=True)

loop = MainLoop(Algorithm(), Stream(), extensions=[Mark()])
loop.run()
print("done", loop.status["iterations_done"], flush=True)
sys.exit(loop.exit_status)
"""


@pytest.fixture
def trainer(tmp_path):
    """Run a script that processes a batch for each line that it is sent."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    with process:
        yield process
        process.kill()


def signal_in_batch(process, *numbers):
    """Wait until the next batch is being processed, send signals, let the batch go on."""
    assert process.stdout.readline() == "batch\n"
    for number in numbers:
        process.send_signal(number)
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_script_that_gets_sigterm_ends_after_the_batch_and_exits_with_143(trainer):
    signal_in_batch(trainer)
    signal_in_batch(trainer, signal.SIGTERM)
    out, err = trainer.communicate(timeout=60)

    assert out == "after_training\ndone 2\n"
    assert "SIGTERM received" in err
    assert trainer.returncode == 143


def test_a_script_that_gets_sigint_ends_after_the_epoch_and_exits_with_130(trainer):
    signal_in_batch(trainer, signal.SIGINT)
    signal_in_batch(trainer)
    signal_in_batch(trainer)
    out, _ = trainer.communicate(timeout=60)

    assert out == "after_training\ndone 3\n"
    assert trainer.returncode == 130


def test_a_script_that_gets_sigint_twice_ends_after_the_batch(trainer):
    signal_in_batch(trainer, signal.SIGINT)
    signal_in_batch(trainer, signal.SIGINT)
    out, _ = trainer.communicate(timeout=60)

    assert out == "after_training\ndone 2\n"
    assert trainer.returncode == 130
