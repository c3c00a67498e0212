"""Predicates of the log."""

import pickle

from bricks.log import TrainingLog
from extensions.predicates import (
    EverySeconds,
    OnLogRecord,
    Predicate,
    Reached,
    always_true,
    has_done_epochs,
)


def log_at(batches, epochs):
    log = TrainingLog()
    log.status |= {"iterations_done": batches, "epochs_done": epochs}
    return log


def test_has_done_epochs_holds_before_the_first_epoch_is_done():
    assert has_done_epochs(log_at(5, 0))
    assert not has_done_epochs(log_at(5, 1))


def test_always_true_holds():
    assert always_true(log_at(0, 0))


def test_a_count_holds_at_every_multiple_or_once():
    every, after = Predicate("every_n_batches", 3), Predicate("after_n_epochs", 3)

    assert [every(log_at(n, 0)) for n in (2, 3, 4, 6)] == [False, True, False, True]
    assert [after(log_at(0, n)) for n in (2, 3, 4, 6)] == [False, True, False, False]


def test_reached_holds_from_a_count_on():
    assert [Reached("epochs_done", 3)(log_at(0, n)) for n in (2, 3, 4)] == [False, True, True]


def test_a_record_holds_when_it_is_there_and_true_and_makes_no_row():
    log = log_at(2, 0)
    predicate = OnLogRecord("good")
    assert not predicate(log)
    assert len(log) == 0
    log[2]["good"] = True

    assert predicate(log)


def test_a_time_begins_anew_in_a_pickle(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    predicate = EverySeconds(10)
    held = []
    for seconds in (0, 9, 1, 5, 5):
        now[0] += seconds
        held.append(predicate(None))
    again = pickle.loads(pickle.dumps(predicate))
    now[0] = 3.0

    assert held == [False, False, True, False, True]
    assert not again(None)


def test_predicates_show_what_they_are():
    predicates = [Predicate("every_n_epochs", 2), Reached("epochs_done", 2), EverySeconds(1.5)]

    assert [repr(predicate) for predicate in [*predicates, OnLogRecord("good")]] == [
        "Predicate('every_n_epochs', 2)",
        "Reached('epochs_done', 2)",
        "EverySeconds(1.5)",
        "OnLogRecord('good')",
    ]
