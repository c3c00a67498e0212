"""SIGHUP, which comes when the terminal is closed."""

import signal

import pytest

from bricks.main_loop import MainLoop
from extensions import FinishAfter, TrainingExtension


@pytest.fixture(autouse=True)
def noticed_hangups():
    """Let SIGHUP be noticed also when the tests themselves run under nohup."""
    old = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, old)


class Triples:
    def get_epoch_iterator(self, as_dict):
        return iter([{}] * 3)


class Nothing:
    def initialize(self):
        pass

    def process_batch(self, batch):
        pass


class Recorder(TrainingExtension):
    """Sends signals after a batch, and writes down which callbacks come then."""

    def __init__(self, time, *signals):
        super().__init__()
        self.time = time
        self.signals = signals
        self.calls = []

    def after_batch(self, batch):
        if self.main_loop.status["iterations_done"] == self.time:
            for number in self.signals:
                signal.raise_signal(number)

    def on_interrupt(self):
        self.calls.append("on_interrupt")

    def after_training(self):
        self.calls.append("after_training")


def test_sighup_ends_training_like_sigterm_and_has_an_exit_status_of_its_own(caplog):
    recorder = Recorder(2, signal.SIGHUP, signal.SIGTERM)
    loop = MainLoop(Nothing(), Triples(), extensions=[recorder])
    loop.run()

    assert loop.status["iterations_done"] == 2
    assert recorder.calls == ["on_interrupt", "after_training"]
    assert loop.exit_status == 129
    assert "SIGHUP received: training ends after this batch" in caplog.text


def test_sighup_that_is_ignored_as_under_nohup_changes_nothing():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    extensions = [Recorder(1, signal.SIGHUP), FinishAfter(after_n_epochs=2)]
    loop = MainLoop(Nothing(), Triples(), extensions=extensions)
    loop.run()

    assert (loop.status["epochs_done"], loop.exit_status) == (2, 0)
