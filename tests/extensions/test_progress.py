"""The progress of an epoch, on a terminal and in a file."""

import io
import pickle
import re
import sys

import numpy
import progressbar
import pytest

from extensions import FinishAfter, ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def text(self):
        return re.sub("\x1b\\[[0-9;]*m", "", self.getvalue())


def use_terminal(monkeypatch):
    """Let standard error be a terminal; in the test itself, since pytest sets it before."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    # progressbar2 draws on what standard error was when it was imported.
    monkeypatch.setattr(progressbar.streams, "original_stderr", terminal)
    return terminal


RECORDS = {1: {"cost": 0.5, "time_train_total": 1.0, "note": "text"}, 3: {"cost": 0.25}}


def lines(capsys):
    # Seconds differ from run to run.
    parts = [line.split(", ") for line in capsys.readouterr().err.splitlines()]
    return [", ".join([first, *rest]) for first, _, *rest in parts]


def test_lines_are_printed_when_it_is_no_terminal(make_loop, capsys):
    make_loop(FinishAfter(after_n_epochs=2), ProgressBar(plain_seconds=1e-9), records=RECORDS).run()

    assert lines(capsys) == [
        "Epoch 1: 1/3 batches, cost 0.5",
        "Epoch 1: 2/3 batches, cost 0.5",
        "Epoch 1: 3/3 batches, cost 0.25",
        "Epoch 1: 3/3 batches, cost 0.25",
        "Epoch 2: 1/3 batches, cost 0.25",
        "Epoch 2: 2/3 batches, cost 0.25",
        "Epoch 2: 3/3 batches, cost 0.25",
        "Epoch 2: 3/3 batches, cost 0.25",
    ]


def test_only_the_end_of_an_epoch_is_printed_when_it_is_short(make_loop, capsys):
    make_loop(FinishAfter(after_n_epochs=2), ProgressBar(), records=RECORDS).run()

    assert lines(capsys) == ["Epoch 1: 3/3 batches, cost 0.25", "Epoch 2: 3/3 batches, cost 0.25"]


def test_the_records_to_show_can_be_chosen(make_loop, capsys):
    bar = ProgressBar(records=["error", "cost"], plain_seconds=1e-9)
    records = {1: {"cost": 0.5, "error": numpy.float32(0.125), "other": 1.0}}
    make_loop(FinishAfter(after_n_batches=1), bar, records=records).run()

    assert lines(capsys)[0] == "Epoch 1: 1/3 batches, error 0.125, cost 0.5"


def test_a_name_instead_of_names_is_refused():
    with pytest.raises(TypeError, match="`records` must be a list of names; got 'cost'"):
        ProgressBar(records="cost")


def test_an_unknown_number_of_batches_is_left_out(make_loop, capsys):
    loop = make_loop(FinishAfter(after_n_epochs=1), ProgressBar())
    loop.data_stream.get_epoch_iterator = lambda as_dict: iter([{}, {}])
    loop.data_stream.num_batches = None
    loop.run()

    assert lines(capsys) == ["Epoch 1: 2 batches"]


def test_a_bar_is_drawn_on_a_terminal(make_loop, monkeypatch):
    terminal = use_terminal(monkeypatch)
    make_loop(FinishAfter(after_n_epochs=1), ProgressBar(seconds=1e-9), records=RECORDS).run()
    drawn = terminal.text()

    assert "Epoch 1 2 of 3 batches  66%" in drawn
    assert "Epoch 1 3 of 3 batches 100%" in drawn
    assert "cost 0.25" in drawn
    assert drawn.endswith("\n")


@pytest.mark.parametrize("total", [None, 2])
def test_a_bar_survives_a_number_of_batches_that_is_unknown_or_wrong(make_loop, monkeypatch, total):
    terminal = use_terminal(monkeypatch)
    loop = make_loop(FinishAfter(after_n_epochs=1), ProgressBar(seconds=1e-9))
    loop.data_stream.get_epoch_iterator = lambda as_dict: iter([{}, {}, {}])
    loop.data_stream.num_batches = total
    loop.run()

    assert loop.status["epochs_done"] == 1
    assert "Epoch 1 3 " in terminal.text()


def test_a_bar_goes_on_in_the_middle_of_an_epoch(make_loop, capsys):
    finish = FinishAfter(after_n_batches=5)
    loop = make_loop(finish, ProgressBar())
    loop.run()
    finish.extend(batches=1)
    loop.run()

    assert lines(capsys) == [
        "Epoch 1: 3/3 batches",
        "Epoch 2: 2/3 batches",
        "Epoch 2: 3/3 batches",
    ]


def test_a_bar_ends_when_training_fails(make_loop, capsys):
    class Bad(Exception):
        pass

    def fail(batch):
        raise Bad

    loop = make_loop(ProgressBar())
    loop.algorithm.process_batch = fail
    with pytest.raises(Bad):
        loop.run()

    assert lines(capsys) == ["Epoch 1: 0/3 batches"]


def test_a_bar_is_pickled_without_what_it_draws(make_loop, monkeypatch):
    use_terminal(monkeypatch)
    bar = ProgressBar()
    loop = make_loop(bar)
    bar.main_loop = loop
    bar.before_epoch()

    assert pickle.loads(pickle.dumps(bar)).seconds == bar.seconds
