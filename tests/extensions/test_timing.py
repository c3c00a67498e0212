"""Times of training and of reading, and times of the day."""

import datetime

import pytest

from extensions import FinishAfter, Timestamp, Timing


def set_times(timing, train, read_data):
    timing.main_loop.times |= {"train": train, "read_data": read_data, "initialization": 9.0}


@pytest.fixture
def timing(make_loop):
    timing = Timing(prefix="p")
    timing.main_loop = make_loop()
    return timing


def test_times_are_recorded_per_epoch_and_in_all(timing):
    log = timing.main_loop.log
    set_times(timing, train=6.0, read_data=2.0)
    log.status |= {"iterations_done": 3, "epochs_done": 1}
    timing.do("after_epoch")
    set_times(timing, train=7.0, read_data=2.5)
    log.status |= {"iterations_done": 6, "epochs_done": 2}
    timing.do("after_epoch")

    assert log[6] == {
        "p_time_train_this_epoch": 1.0,
        "p_time_read_data_this_epoch": 0.5,
        "p_time_train_total": 7.0,
        "p_time_read_data_total": 2.5,
    }


def test_times_per_batch_are_means_since_the_last_record(timing):
    log = timing.main_loop.log
    set_times(timing, train=6.0, read_data=2.0)
    log.status["iterations_done"] = 4
    timing.do("after_batch")

    assert log[4]["p_time_train_this_batch"] == 1.5
    assert log[4]["p_time_read_data_this_batch"] == 0.5


def test_initialization_is_recorded_at_the_beginning(timing):
    set_times(timing, train=0.0, read_data=0.0)
    timing.do("before_epoch")

    assert timing.main_loop.log[0] == {"p_time_initialization": 9.0}


def test_totals_go_on_in_a_loop_that_was_restored(timing, make_loop):
    set_times(timing, train=6.0, read_data=2.0)
    timing.main_loop.log.status |= {"iterations_done": 3, "epochs_done": 1}
    timing.do("after_epoch")
    fresh = Timing()
    fresh.main_loop = make_loop()
    set_times(fresh, train=0.5, read_data=0.5)
    fresh.set_state(timing.get_state())
    fresh.main_loop.log.status |= {"iterations_done": 6, "epochs_done": 2}
    set_times(fresh, train=1.5, read_data=0.75)
    fresh.do("after_epoch")

    assert fresh.main_loop.log[6] == {
        "time_train_this_epoch": 1.0,
        "time_read_data_this_epoch": 0.25,
        "time_train_total": 7.0,
        "time_read_data_total": 2.25,
    }


def test_the_loop_is_timed(make_loop):
    loop = make_loop(Timing(), FinishAfter(after_n_epochs=2))
    loop.run()

    assert loop.log[0]["time_initialization"] > 0
    assert 0 < loop.log[3]["time_train_total"] < loop.log[6]["time_train_total"]


def test_a_timestamp_is_the_local_time(make_loop):
    before = datetime.datetime.now()
    loop = make_loop(Timestamp(log_record="when", separator="T"), FinishAfter(after_n_epochs=1))
    loop.run()

    assert before <= datetime.datetime.fromisoformat(loop.log[3]["when"])
    assert "T" in loop.log[3]["when"]
    assert set(loop.log) == {0, 3}
