"""Schedules of hyperparameters, and the best value so far."""

import functools

import numpy
import pytest

from bricks import xla
from extensions import FinishAfter, TrainingExtension
from extensions.monitoring import DataStreamMonitoring
from extensions.training import SharedVariableModifier, TrackTheBest


class Schedule:
    def of_time(self, time):
        return time / 10

    def of_both(self, time, old):
        return old + time


def halve(time, old):
    return old / 2


def with_default(time, scale=10):
    return time * scale


FUNCTIONS = [
    (lambda time: 2 * time, [2, 4, 6]),
    (Schedule().of_time, [0.1, 0.2, 0.3]),
    (Schedule().of_both, [9, 11, 14]),
    (halve, [4, 2, 1]),
    (with_default, [10, 20, 30]),
    (functools.partial(halve, old=3), [1.5, 1.5, 1.5]),
    (float, [1, 2, 3]),
    (abs, [1, 2, 3]),
]


@pytest.mark.parametrize(("function", "values"), FUNCTIONS)
def test_a_variable_is_set_by_functions_of_every_kind(make_loop, function, values):
    rate = xla.shared(numpy.float32(8), name="rate")
    seen = []
    recording = SharedVariableModifier(rate, function)
    loop = make_loop(recording, FinishAfter(after_n_batches=3))
    loop.algorithm.process_batch = lambda batch: seen.append(rate.get_value())
    loop.run()

    assert [*seen[1:], rate.get_value()] == numpy.array(values, dtype="float32").tolist()
    assert rate.get_value().dtype == numpy.float32


def test_the_number_of_arguments_can_be_given(make_loop):
    rate = xla.shared(numpy.float32(8), name="rate")
    modifier = SharedVariableModifier(rate, lambda *args: sum(args), num_args=2)
    make_loop(modifier, FinishAfter(after_n_batches=1)).run()

    assert rate.get_value() == 9


def test_the_triggers_can_be_chosen(make_loop):
    rate = xla.shared(numpy.float32(8), name="rate")
    modifier = SharedVariableModifier(rate, halve, after_batch=False, after_epoch=True)
    make_loop(modifier, FinishAfter(after_n_epochs=2)).run()

    assert rate.get_value() == 2


def test_functions_with_other_arguments_are_refused():
    rate = xla.shared(numpy.float32(8), name="rate")
    with pytest.raises(TypeError, match=r"`function` must take the number of batches.*\(a, b, c\)"):
        SharedVariableModifier(rate, lambda a, b, c: a)
    with pytest.raises(TypeError, match=r"with the arguments \(\)"):
        SharedVariableModifier(rate, lambda: 1)
    with pytest.raises(ValueError, match="`num_args` must be 1 or 2; got 3"):
        SharedVariableModifier(rate, halve, num_args=3)


def costs(*values):
    return {time + 1: {"cost": value} for time, value in enumerate(values)}


def best_times(loop, name="cost_best_so_far"):
    return [time for time in loop.log if loop.log[time].get(name)]


def test_improvements_are_noted_when_they_are_there(make_loop):
    tracker = TrackTheBest("cost", after_batch=True)
    values = (3.0, 3.0, 2.0, 2.5, float("nan"), 1.0)
    loop = make_loop(tracker, FinishAfter(after_n_batches=6), records=costs(*values))
    loop.run()

    assert best_times(loop) == [1, 3, 6]
    assert loop.status["best_cost"] == 1.0


def test_values_that_are_no_number_are_never_best(make_loop):
    tracker = TrackTheBest("cost", after_batch=True)
    records = costs(float("nan"), 5.0, 6.0)
    loop = make_loop(tracker, FinishAfter(after_n_batches=3), records=records)
    loop.run()

    assert best_times(loop) == [2]


def test_what_is_better_can_be_chosen(make_loop):
    tracker = TrackTheBest("cost", "good", choose_best=max, after_batch=True)
    loop = make_loop(tracker, FinishAfter(after_n_batches=3), records=costs(1.0, 3.0, 2.0))
    loop.run()

    assert best_times(loop, "good") == [1, 2]
    assert loop.status["best_cost"] == 3.0


def test_a_row_without_the_record_is_no_improvement_and_is_not_made(make_loop):
    tracker = TrackTheBest("cost", after_batch=True)
    loop = make_loop(tracker, Writes(every_n_epochs=9), FinishAfter(after_n_batches=2))
    loop.run()

    assert list(loop.log) == [2]
    assert "best_cost" not in loop.status


def test_the_best_is_kept_with_its_type(make_loop):
    tracker = TrackTheBest("cost", after_batch=True)
    records = costs(numpy.float32(0.1))
    loop = make_loop(tracker, FinishAfter(after_n_batches=1), records=records)
    loop.run()

    assert loop.status["best_cost"].dtype == numpy.float32


class Writes(TrainingExtension):
    """Logs a cost after each epoch, or after some of them."""

    def __init__(self, every_n_epochs=1):
        super().__init__()
        self.every_n_epochs = every_n_epochs

    def after_epoch(self):
        if self.main_loop.status["epochs_done"] % self.every_n_epochs == 0:
            self.main_loop.log.current_row["cost"] = 1.0


class WritesAndSaysSo(Writes):
    records_written = ("cost",)


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_a_record_that_comes_after_the_look_is_told_once(make_loop, caplog):
    loop = make_loop(TrackTheBest("cost"), Writes(), FinishAfter(after_n_epochs=4))
    loop.run()

    assert warnings_of(caplog) == [
        "TrackTheBest: the record 'cost' was written to row 3 after this extension had looked for "
        "it there. Put it behind the extension that writes the record, or let that one say "
        "`records_written = ('cost',)`."
    ]


def test_the_order_does_not_matter_if_the_writer_says_so(make_loop, caplog):
    loop = make_loop(TrackTheBest("cost"), WritesAndSaysSo(), FinishAfter(after_n_epochs=4))
    loop.run()

    assert best_times(loop) == [3]
    assert warnings_of(caplog) == []


@pytest.mark.parametrize("num_epochs", [1, 2, 5])
def test_a_record_that_never_came_is_told_once(make_loop, caplog, num_epochs):
    tracker = TrackTheBest("csot")
    loop = make_loop(Writes(), tracker, FinishAfter(after_n_epochs=num_epochs))
    loop.run()

    assert warnings_of(caplog) == [
        "TrackTheBest: it looks for a record 'csot', of which there is none in the log so far, and "
        "which no extension says that it writes. Did you mean 'cost'? If one of your own writes it "
        "later, let it say so: `records_written = ('csot',)`."
    ]


def test_a_record_that_comes_rarely_and_is_announced_is_no_reason_to_warn(make_loop, caplog):
    writer = WritesAndSaysSo(every_n_epochs=3)
    loop = make_loop(writer, TrackTheBest("cost"), FinishAfter(after_n_epochs=4))
    loop.run()

    assert best_times(loop) == [9]
    assert warnings_of(caplog) == []


def test_a_record_that_surely_never_comes_is_refused_before_training(make_regression):
    task = make_regression()
    monitoring = DataStreamMonitoring([task.cost], task.stream, prefix="test")
    loop = task.loop(monitoring, TrackTheBest("tset_cost"), FinishAfter(after_n_epochs=2))

    with pytest.raises(
        ValueError,
        match=r"TrackTheBest: it looks for a record 'tset_cost', which no extension of this main "
        r"loop writes\. Did you mean 'test_cost'\?",
    ):
        loop.run()
    assert loop.status["iterations_done"] == 0
