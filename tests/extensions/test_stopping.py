"""The end of training without improvement."""

import pickle

import pytest

from bricks.serialization import load
from extensions import FinishAfter, Predicate, TrainingExtension
from extensions.monitoring import DataStreamMonitoring, TrainingDataMonitoring
from extensions.saveload import Checkpoint
from extensions.stopping import EarlyStopping, FinishIfNoImprovementAfter


def good_at(*times):
    return {time: {"good": True} for time in times}


def test_training_ends_when_the_iterations_are_over(make_loop):
    stopping = FinishIfNoImprovementAfter("good", iterations=4, after_batch=True)
    loop = make_loop(stopping, records=good_at(1, 3))
    loop.run()

    assert loop.status["iterations_done"] == 7
    assert loop.log[5]["good_patience_iterations"] == 2


def test_training_ends_when_the_epochs_are_over(make_loop):
    stopping = FinishIfNoImprovementAfter("good", epochs=2, patience_log_record="left")
    loop = make_loop(stopping, records=good_at(3, 6))
    loop.run()

    assert loop.status["epochs_done"] == 4
    assert [loop.log[time]["left"] for time in (3, 6, 9, 12)] == [2, 2, 1, 0]


def test_training_ends_although_the_patience_is_no_multiple_of_the_interval(make_loop):
    stopping = FinishIfNoImprovementAfter("good", iterations=4)
    loop = make_loop(stopping, records=good_at(1))
    loop.run()

    assert loop.status["iterations_done"] == 6
    assert loop.log[6]["good_patience_iterations"] == -1


def test_a_notification_between_two_looks_counts(make_loop):
    stopping = FinishIfNoImprovementAfter("good", epochs=1)
    loop = make_loop(stopping, records=good_at(2, 4, 5))
    loop.run()

    assert stopping.last_best_iter == 5
    assert stopping.last_best_epoch == 2
    assert loop.status["epochs_done"] == 3


def test_a_notification_that_comes_after_the_look_at_its_row_counts(make_loop):
    class Late(TrainingExtension):
        def after_epoch(self):
            if self.main_loop.status["epochs_done"] == 1:
                self.main_loop.log.current_row["good"] = True

    stopping = FinishIfNoImprovementAfter("good", iterations=4)
    make_loop(stopping, Late(), FinishAfter(after_n_epochs=2)).run()

    assert stopping.last_best_iter == 3


def test_training_goes_on_until_there_was_a_first_notification(make_loop):
    stopping = FinishIfNoImprovementAfter("good", iterations=1, after_batch=True)
    loop = make_loop(stopping, FinishAfter(after_n_batches=10), records={})
    loop.run()

    assert loop.status["iterations_done"] == 10


def test_a_run_that_was_ended_does_not_train_any_further(make_loop):
    stopping = FinishIfNoImprovementAfter("good", epochs=1)
    loop = make_loop(stopping, records=good_at(3))
    loop.run()
    loop.run()

    assert loop.status["epochs_done"] == 2


def test_a_run_goes_on_with_more_patience(make_loop):
    stopping = FinishIfNoImprovementAfter("good", epochs=1)
    loop = make_loop(stopping, records=good_at(3))
    loop.run()
    stopping.epochs = 3
    loop.run()

    assert loop.status["epochs_done"] == 4


def test_patience_goes_on_in_a_resumed_run(make_loop):
    stopping = FinishIfNoImprovementAfter("good", iterations=4, after_batch=True)
    fresh = FinishIfNoImprovementAfter("good", iterations=4, after_batch=True)
    finish = FinishAfter(after_n_batches=5)
    loop = make_loop(stopping, finish, records=good_at(3))
    loop.run()
    fresh.set_state(stopping.get_state())
    loop.extensions.remove(finish)
    loop.extensions[loop.extensions.index(stopping)] = fresh
    loop.run()

    assert loop.status["iterations_done"] == 7


@pytest.mark.parametrize("arguments", [{}, {"iterations": 1, "epochs": 1}])
def test_one_kind_of_patience_is_asked_for(arguments):
    with pytest.raises(ValueError, match="give either `iterations` or `epochs`"):
        FinishIfNoImprovementAfter("good", **arguments)


def costs(*values):
    return {3 * (epoch + 1): {"cost": value} for epoch, value in enumerate(values)}


def test_early_stopping_ends_training_and_notes_the_best(make_loop):
    loop = make_loop(EarlyStopping("cost", epochs=2), records=costs(3, 2, 4, 5, 1))
    loop.run()

    assert loop.status["epochs_done"] == 4
    assert loop.status["best_cost"] == 2
    assert [time for time in loop.log if "cost_best_so_far" in loop.log[time]] == [3, 6]


def test_early_stopping_for_the_largest_value(make_loop):
    stopping = EarlyStopping("cost", choose_best=max, iterations=4)
    loop = make_loop(stopping, records=costs(1, 3, 2, 2))
    loop.run()

    assert loop.status["iterations_done"] == 12


def test_early_stopping_saves_the_best_wherever_the_checkpoint_is_in_the_list(make_loop, tmp_path):
    saved = []

    class Saves(Checkpoint):
        def _save(self, path):
            saved.append((self.main_loop.status["epochs_done"], path))

    checkpoint = Saves(tmp_path / "last.zip", after_training=False)
    stopping = EarlyStopping("cost", checkpoint, tmp_path / "best.zip", epochs=2)
    make_loop(checkpoint, stopping, records=costs(3, 2, 4, 5)).run()

    assert saved == [(1, str(tmp_path / "best.zip")), (2, str(tmp_path / "best.zip"))]


def test_early_stopping_needs_both_the_checkpoint_and_its_file(tmp_path):
    with pytest.raises(ValueError, match="`checkpoint_extension` and `checkpoint_filename`"):
        EarlyStopping("cost", Checkpoint(tmp_path / "x"), epochs=1)
    with pytest.raises(ValueError, match="`checkpoint_extension` and `checkpoint_filename`"):
        EarlyStopping("cost", checkpoint_filename="x", epochs=1)


def test_early_stopping_has_a_state(make_loop):
    stopping = EarlyStopping("cost", epochs=2)
    make_loop(stopping, FinishAfter(after_n_epochs=2), records=costs(3, 4)).run()
    fresh = EarlyStopping("cost", epochs=2)
    fresh.set_state(stopping.get_state())

    assert fresh.sub_extensions[1].last_best_epoch == 1
    assert pickle.loads(pickle.dumps(stopping)).sub_extensions[1].last_best_epoch == 1


def build_stopping_early(make_regression, folder, times=(), **patience):
    """A loop of four batches an epoch whose cost, from some time on, does not fall far enough."""
    task = make_regression()
    stopping = EarlyStopping("cost", choose_best=lowest_by_far, **patience)
    checkpoint = Checkpoint(folder / "unused.zip", after_training=False)
    for condition, number in times:
        callback = "after_epoch" if condition == "after_n_epochs" else "after_batch"
        path = folder / f"{condition}_{number}.zip"
        checkpoint.add_condition([callback], Predicate(condition, number), [path])
    finish = FinishAfter(after_n_epochs=9)
    return task.loop(TrainingDataMonitoring([task.cost]), stopping, checkpoint, finish)


def lowest_by_far(value, best):
    return value if value < best - 1 else best


def rows_of(loop):
    rows = {time: dict(loop.log[time]) for time in loop.log}
    for row in rows.values():
        row.pop("saved_to", None)
    return {time: row for time, row in rows.items() if row}


@pytest.mark.parametrize("patience", [{"epochs": 2}, {"iterations": 6}], ids=["epochs", "batches"])
@pytest.mark.parametrize("how", ["pickle", "restore"])
def test_a_run_that_was_stopped_and_goes_on_logs_what_one_that_was_not_logs(
    make_regression, tmp_path, patience, how
):
    # In the middle of an epoch, before and after the patience is over; at the ends of epochs.
    times = [("after_n_batches", number) for number in (2, 5, 14, 15, 16)]
    times += [("after_n_epochs", number) for number in (1, 2, 4)]
    whole = build_stopping_early(make_regression, tmp_path, times, **patience)
    whole.run()
    assert whole.log[16]["training_finish_requested"]

    for condition, number in times:
        path = tmp_path / f"{condition}_{number}.zip"
        again = load(path) if how == "pickle" else None
        if again is None:
            again = build_stopping_early(make_regression, tmp_path, **patience)
            again.restore(path)
        again.run()

        assert rows_of(again) == rows_of(whole), path.name


@pytest.mark.parametrize("reverse", [False, True])
def test_early_stopping_works_wherever_the_monitoring_is_in_the_list(
    make_regression, tmp_path, reverse
):
    task = make_regression()
    checkpoint = Checkpoint(tmp_path / "last.zip", after_training=False)
    best = tmp_path / "best.zip"
    extensions = [
        checkpoint,
        EarlyStopping("test_cost", checkpoint, best, choose_best=lowest_by_far, epochs=1),
        FinishAfter(after_n_epochs=9),
        DataStreamMonitoring([task.cost], task.stream, prefix="test"),
    ]
    loop = task.loop(*extensions[:: -1 if reverse else 1])
    loop.run()

    assert loop.status["best_test_cost"] < 1
    assert [time for time in loop.log if "test_cost_best_so_far" in loop.log[time]] == [4]
    assert loop.log[4]["saved_to"] == (str(best),)
    assert loop.status["epochs_done"] == 2
