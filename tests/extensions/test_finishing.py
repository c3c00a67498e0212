"""The end of training."""

import pytest

from extensions import FinishAfter
from extensions.predicates import OnLogRecord


def test_training_ends_after_so_many_batches_also_within_an_epoch(make_loop):
    loop = make_loop(FinishAfter(after_n_batches=4))
    loop.run()

    assert loop.status["iterations_done"] == 4
    assert loop.status["epochs_done"] == 1


def test_training_ends_after_so_many_epochs(make_loop):
    loop = make_loop(FinishAfter(after_n_epochs=2))
    loop.run()

    assert loop.status["epochs_done"] == 2


def test_a_run_that_has_done_more_than_it_should_is_ended_at_once(make_loop):
    finish = FinishAfter(after_n_epochs=3)
    loop = make_loop(finish)
    loop.run()
    finish.set_conditions(after_n_epochs=1)
    loop.run()

    assert loop.status["epochs_done"] == 3


def test_other_conditions_end_training_too(make_loop):
    finish = FinishAfter().add_condition(["after_batch"], OnLogRecord("enough"))
    loop = make_loop(finish, records={5: {"enough": True}})
    loop.run()

    assert loop.status["iterations_done"] == 5


def test_a_run_is_extended_from_where_it_is_and_other_conditions_stay(make_loop):
    finish = FinishAfter(after_n_epochs=1).add_condition(["after_batch"], OnLogRecord("enough"))
    loop = make_loop(finish, records={14: {"enough": True}})
    loop.run()
    finish.extend(epochs=2)
    loop.run()
    assert loop.status["epochs_done"] == 3
    finish.extend(batches=1)
    loop.run()
    assert loop.status["iterations_done"] == 10
    finish.extend(epochs=100)
    loop.run()
    assert loop.status["iterations_done"] == 14


def test_an_extension_by_both_or_neither_is_refused():
    with pytest.raises(ValueError, match="give either `epochs` or `batches`"):
        FinishAfter().extend(epochs=1, batches=1)
    with pytest.raises(ValueError, match="give either `epochs` or `batches`"):
        FinishAfter().extend()
