"""Checkpoints of a small regression, and what is loaded from them."""

import logging
import os
import resource
import shutil
import signal

import numpy
import pytest

from bricks import xla
from bricks.archive import DamagedArchive
from bricks.log import JSONLinesLog, SQLiteLog, TrainingLog
from bricks.main_loop import MainLoop
from bricks.serialization import dump, load, load_state
from extensions import FinishAfter, TrainingExtension
from extensions.monitoring import TrainingDataMonitoring
from extensions.saveload import Checkpoint, Load
from extensions.training import TrackTheBest
from fuel_data.schemes import ShuffledScheme
from fuel_data.streams import DataStream


class Fails(TrainingExtension):
    """Raises an exception before the batch after some time."""

    def __init__(self, time, exception):
        super().__init__()
        self.time = time
        self.exception = exception

    def before_batch(self, batch):
        if self.main_loop.status["iterations_done"] == self.time:
            raise self.exception


class FailsAfter(TrainingExtension):
    """Raises an exception after the first batch."""

    def after_batch(self, batch):
        raise ArithmeticError("bad")


class LosesState(TrainingExtension):
    """Takes the weights away, as a step does that fails after it was given their memory."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def before_batch(self, batch):
        if self.main_loop.status["iterations_done"] == 3:
            self.weights.container.storage.device.delete()


class Costs(TrainingExtension):
    """Logs a cost for some times."""

    def __init__(self, costs):
        super().__init__()
        self.costs = costs

    def after_batch(self, batch):
        time = self.main_loop.status["iterations_done"]
        if time in self.costs:
            self.main_loop.log.current_row["cost"] = self.costs[time]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loop.zip"


def files(path):
    return sorted(os.listdir(path.parent))


def batches_in(path):
    return load_state(path)["log"]["status"]["iterations_done"]


def test_the_loop_is_saved_when_the_triggers_say_so(make_regression, path):
    task = make_regression()
    checkpoint = Checkpoint(path, every_n_batches=3, after_training=False)
    loop = task.loop(checkpoint, FinishAfter(after_n_batches=4))
    loop.run()

    assert batches_in(path) == 3
    assert loop.log[3]["saved_to"] == (str(path),)
    assert list(load_state(path)["parameters"]) == ["W"]


def test_a_row_names_a_file_once_however_often_it_is_written(make_regression, path):
    checkpoint = Checkpoint(path, after_batch=True, after_epoch=True)
    loop = make_regression().loop(checkpoint, FinishAfter(after_n_epochs=1))
    loop.run()
    loop.run()

    assert loop.log[4]["saved_to"] == (str(path),)
    assert load_state(path)["log"]["status"]["iterations_done"] == 4


def test_a_loop_is_saved_after_training_by_default(make_regression, path):
    task = make_regression()
    task.loop(Checkpoint(path), FinishAfter(after_n_batches=2)).run()

    assert batches_in(path) == 2
    assert load_state(path)["parameters"]["W"].tobytes() == task.W.get_value().tobytes()


def test_the_file_has_what_extensions_behind_the_checkpoint_did(make_regression, path):
    checkpoint = Checkpoint(path, after_batch=True, after_training=False)
    tracker = TrackTheBest("cost", after_batch=True)
    loop = make_regression().loop(checkpoint, Costs({1: 5.0}), tracker)
    loop.extensions.append(FinishAfter(after_n_batches=1))
    loop.run()
    saved = load(path)

    assert saved.log[1] == {
        "cost": 5.0,
        "cost_best_so_far": True,
        "training_finish_requested": True,
        "saved_to": (str(path),),
    }
    assert saved.status["best_cost"] == 5.0


def test_checkpoints_are_kept_up_to_a_number(make_regression, path):
    checkpoint = Checkpoint(path, after_batch=True, after_training=False, keep_last=2)
    make_regression().loop(checkpoint, FinishAfter(after_n_batches=4)).run()

    assert files(path) == ["loop-000003.zip", "loop-000004.zip", "loop.zip"]
    assert batches_in(path.with_name("loop-000003.zip")) == 3
    assert batches_in(path) == 4


def test_the_best_checkpoints_are_kept_whatever_comes_later(make_regression, path):
    checkpoint = Checkpoint(
        path, after_batch=True, after_training=False, keep_best=2, best_record="cost"
    )
    costs = Costs({1: 3.0, 2: 1.0, 3: 2.0, 4: float("nan"), 5: 4.0})
    make_regression().loop(checkpoint, costs, FinishAfter(after_n_batches=6)).run()

    assert files(path) == ["loop-best-000002.zip", "loop-best-000003.zip", "loop.zip"]
    assert batches_in(path.with_name("loop-best-000002.zip")) == 2


def test_files_that_are_kept_go_on_in_a_resumed_run(make_regression, path):
    def build(finish):
        checkpoint = Checkpoint(
            path, every_n_batches=1, after_training=False, keep_last=2, keep_best=1,
            best_record="cost", choose_best=max,
        )  # fmt: skip
        costs = Costs({1: 3.0, 2: 1.0, 3: 2.0, 4: 1.0})
        return make_regression().loop(costs, checkpoint, FinishAfter(after_n_batches=finish))

    build(2).run()
    build(4).run(resume="auto")

    assert files(path) == [
        "loop-000003.zip",
        "loop-000004.zip",
        "loop-best-000001.zip",
        "loop.zip",
    ]


def test_a_checkpoint_is_copied_where_there_are_no_links(make_regression, path, monkeypatch):
    def refuse(source, target):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    checkpoint = Checkpoint(path, keep_last=2)
    make_regression().loop(checkpoint, FinishAfter(after_n_batches=1)).run()

    assert files(path) == ["loop-000001.zip", "loop.zip"]


def test_other_attributes_are_saved_separately(make_regression, path):
    checkpoint = Checkpoint(path, save_separately=["log", "model"])
    make_regression().loop(checkpoint, FinishAfter(after_n_batches=2)).run()

    assert load(path, "log").status["iterations_done"] == 2


def test_an_attribute_that_is_not_there_is_refused(make_regression, path):
    checkpoint = Checkpoint(path, save_separately=["log", "bog"], after_batch=True)
    loop = make_regression().loop(checkpoint)

    with pytest.raises(ValueError, match="Checkpoint: the main loop has no 'bog' to save"):
        loop.run()


def test_parameters_that_do_not_belong_to_the_loop_are_refused(make_regression, path):
    other = xla.shared(numpy.float32(1), name="other")
    loop = make_regression().loop(Checkpoint(path, parameters=[other], after_batch=True))

    with pytest.raises(ValueError, match="other of `parameters` belongs neither to the model"):
        loop.run()


def test_numbers_to_keep_are_checked(path):
    with pytest.raises(ValueError, match="`keep_last` must be at least 1"):
        Checkpoint(path, keep_last=0)
    with pytest.raises(ValueError, match="`keep_best` needs `best_record`"):
        Checkpoint(path, keep_best=1)


def test_a_loop_is_not_saved_with_a_batch_that_would_be_lost(make_regression, path, caplog):
    with pytest.raises(ValueError, match="cannot be saved in `before_batch`.* Use `after_batch`"):
        Checkpoint(path, before_batch=True)
    checkpoint = Checkpoint(path, after_batch=True, on_error=True)
    loop = make_regression().loop(checkpoint, Fails(2, ArithmeticError("bad")))

    with pytest.raises(ArithmeticError):
        loop.run()
    assert batches_in(path) == 2
    assert "nothing was saved, because a batch has been drawn" in caplog.text


def test_a_checkpoint_can_be_written_on_an_error_between_two_batches(make_regression, path):
    checkpoint = Checkpoint(path, on_error=True, save_main_loop=False)
    with pytest.raises(ArithmeticError):
        make_regression().loop(checkpoint, FailsAfter()).run()
    assert batches_in(path) == 1


def test_a_path_that_cannot_be_written_is_refused_before_training(make_regression, path):
    missing = path.parent / "missing" / "loop.zip"
    loop = make_regression().loop(Checkpoint(missing), FinishAfter(after_n_batches=2))
    with pytest.raises(FileNotFoundError, match=r"Checkpoint: .*there is no folder .*missing\."):
        loop.run()
    assert loop.status["iterations_done"] == 0

    loop = make_regression().loop(Checkpoint(path.parent), FinishAfter(after_n_batches=2))
    with pytest.raises(IsADirectoryError, match="`path` must be a file; .* is a folder"):
        loop.run()
    assert loop.status["iterations_done"] == 0


def test_a_folder_that_is_gone_when_the_run_goes_on_is_told_before_the_next_batch(
    make_regression, path
):
    folder = path.parent / "folder"
    folder.mkdir()
    loop = make_regression().loop(Checkpoint(folder / "a.zip"), FinishAfter(after_n_batches=2))
    loop.run()
    shutil.rmtree(folder)
    loop.extensions[1].extend(batches=1)

    with pytest.raises(FileNotFoundError, match="Checkpoint: .*there is no folder"):
        loop.run()
    assert loop.status["iterations_done"] == 2


def test_a_folder_that_may_not_be_written_to_is_refused_before_training(
    make_regression, path, monkeypatch
):
    # As root may write everywhere, the answer of the system is given here.
    monkeypatch.setattr("extensions.saveload.os.access", lambda folder, mode: False)

    with pytest.raises(PermissionError, match="nothing may be written to the folder"):
        make_regression().loop(Checkpoint(path), FinishAfter(after_n_batches=2)).run()


def test_what_is_no_checkpoint_to_resume_from_is_refused_in_words(make_regression, path):
    loop = make_regression().loop(Checkpoint(path), FinishAfter(after_n_batches=2))
    for wrong in (True, 3):
        with pytest.raises(TypeError, match=rf"`resume` must be 'auto', .*; got {wrong}\."):
            loop.run(resume=wrong)
    with pytest.raises(IsADirectoryError, match="is a folder; expected the file of a checkpoint"):
        loop.run(resume=path.parent)
    with pytest.raises(FileNotFoundError, match=r"no checkpoint atuo\..*`run\(resume='auto'\)`"):
        loop.run(resume="atuo")


def test_a_full_disk_is_an_error_in_words_and_the_last_checkpoint_stays(make_regression, path):
    checkpoint = Checkpoint(path, keep_last=2)
    loop = make_regression().loop(checkpoint, FinishAfter(after_n_batches=2))
    loop.run()
    before, kept = path.read_bytes(), checkpoint.get_state()
    loop.extensions[1].extend(batches=1)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, old[1]))
    try:
        words = f"Checkpoint: {path} cannot be written: File too large. The checkpoint .* is still"
        with pytest.raises(OSError, match=words):
            loop.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)

    assert "saved_to" not in loop.log[3]
    assert path.read_bytes() == before
    assert files(path) == ["loop-000002.zip", "loop.zip"]
    assert checkpoint.get_state() == kept


def test_values_that_are_lost_in_a_step_are_told_and_never_saved(make_regression, path, caplog):
    task = make_regression()
    loses = LosesState(task.W)
    finish = FinishAfter(after_n_batches=6)
    checkpoint = Checkpoint(path, every_n_batches=2, on_error=True)
    loop = task.loop(checkpoint, loses, finish)

    with pytest.raises(xla.DonatedStateLost) as caught:
        loop.run()
    notes = "\n".join(caught.value.__notes__)
    assert "their values are lost, and no checkpoint is written" in notes
    assert f"The last checkpoint is {path}" in notes
    assert batches_in(path) == 2

    whole = make_regression()
    whole.loop(FinishAfter(after_n_batches=6)).run()
    loop.extensions.remove(loses)
    loop.restore(path)
    loop.run()
    assert task.W.get_value().tobytes() == whole.W.get_value().tobytes()


def test_the_same_command_starts_and_resumes_a_run(make_regression, path, caplog):
    caplog.set_level(logging.INFO)
    whole = make_regression()
    whole.loop(FinishAfter(after_n_batches=7)).run()
    killed = make_regression()
    checkpoint = Checkpoint(path, every_n_batches=2)
    with pytest.raises(ZeroDivisionError):
        killed.loop(checkpoint, Fails(5, ZeroDivisionError())).run(resume="auto")
    resumed = make_regression()
    loop = resumed.loop(Checkpoint(path, every_n_batches=2), FinishAfter(after_n_batches=7))
    loop.run(resume="auto")

    assert f"Restored {path}, after 4 batches" in caplog.text
    assert resumed.W.get_value().tobytes() == whole.W.get_value().tobytes()
    assert batches_in(path) == 7


def stop_after(task, path, num_batches, log):
    """Run, and be stopped after the checkpoint of a batch or of an epoch, which has four."""
    checkpoint = Checkpoint(path, after_batch=True, after_epoch=True, after_training=False)
    with pytest.raises(ZeroDivisionError):
        task.loop(checkpoint, Fails(num_batches, ZeroDivisionError()), log=log).run()


LOGS = {
    "python": lambda folder: TrainingLog(),
    "sqlite": lambda folder: SQLiteLog(folder / "log.sqlite"),
    "jsonlines": lambda folder: JSONLinesLog(folder / "log.jsonl"),
}
OTHER_LOGS = [(one, other) for one in LOGS for other in LOGS if "python" != other != one]
OTHER_LOGS += [("sqlite", "python")]


@pytest.mark.parametrize(("before", "after"), OTHER_LOGS)
def test_a_log_of_another_kind_is_refused_or_begun_with_the_old_counts(
    make_regression, path, before, after
):
    whole, stopped, task = make_regression(), make_regression(), make_regression()
    whole.loop(FinishAfter(after_n_batches=7)).run()
    stop_after(stopped, path, 5, LOGS[before](path.parent))
    loop = task.loop(Checkpoint(path), FinishAfter(after_n_batches=7), log=LOGS[after](path.parent))

    with pytest.raises(ValueError, match=r"log of another kind.*ignore=\['log'\]"):
        loop.run(resume="auto")
    assert loop.status["iterations_done"] == 0
    loop.run(resume="auto", ignore=["log"])
    assert (loop.status["iterations_done"], loop.status["epochs_done"]) == (7, 1)
    assert 4 not in loop.log
    assert "saved_to" in loop.log[7]
    assert task.W.get_value().tobytes() == whole.W.get_value().tobytes()
    # From now on the new log is that of the checkpoint.
    again = make_regression().loop(FinishAfter(after_n_batches=9), log=LOGS[after](path.parent))
    again.run(resume=path)
    assert "saved_to" in again.log[7]


def test_a_missing_database_is_refused_each_time_until_a_new_log_is_begun(make_regression, path):
    database = path.with_name("log.sqlite")
    stop_after(make_regression(), path, 5, SQLiteLog(database))
    database.unlink()
    task = make_regression()
    loop = task.loop(Checkpoint(path), FinishAfter(after_n_batches=7), log=SQLiteLog(database))
    for _ in range(2):
        with pytest.raises(ValueError, match="does not hold the run"):
            loop.run(resume="auto")
    loop.restore(path, ignore="log")
    loop.run()

    assert loop.status["iterations_done"] == 7


@pytest.mark.parametrize("num_batches", [5, 4])
def test_another_stream_is_refused_or_read_from_the_beginning_of_the_epoch(
    make_regression, path, num_batches
):
    stop_after(make_regression(), path, num_batches, TrainingLog())
    task = make_regression()
    scheme = ShuffledScheme(20, 10)
    stream = DataStream(task.stream.dataset, iteration_scheme=scheme)
    seen = []

    class Sees(TrainingExtension):
        def after_batch(self, batch):
            seen.append(batch["x"])

    extensions = [Sees(), FinishAfter(after_n_epochs=3)]
    loop = MainLoop(task.algorithm, stream, extensions=extensions)
    with pytest.raises(ValueError, match=r"ignore=\['stream'\]"):
        loop.run(resume=path)
    assert (loop.epoch_iterator, loop.status["iterations_done"]) == (None, 0)
    loop.run(resume=path, ignore=["stream"])

    assert loop.status["iterations_done"] == num_batches + 4
    assert loop.status["epochs_done"] == 3
    expected = []
    for epoch in (1, 2):
        expected += [x for x, _ in stream.get_epoch_iterator(epoch=epoch)]
    numpy.testing.assert_array_equal(numpy.array(seen), numpy.array(expected))


@pytest.mark.parametrize("kind", [SQLiteLog, JSONLinesLog])
def test_a_log_on_the_disk_has_each_row_once_after_a_run_was_stopped_and_resumed(
    make_regression, path, kind
):
    def loop(log_name, *extensions):
        task = make_regression()
        log = kind(path.with_name(log_name))
        costs = TrainingDataMonitoring([task.cost], every_n_batches=1)
        return task.loop(costs, *extensions, log=log)

    whole = loop("whole", FinishAfter(after_n_batches=7))
    whole.run()
    stopped = loop("log", Checkpoint(path, every_n_batches=2), Fails(5, ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        stopped.run()
    resumed = loop("log", Checkpoint(path), FinishAfter(after_n_batches=7))
    resumed.run(resume="auto")

    assert resumed.log[5]["cost"] == stopped.log[5]["cost"]
    if kind is JSONLinesLog:
        resumed.log = JSONLinesLog.read(path.with_name("log"))
    costs = [(time, resumed.log[time]["cost"]) for time in resumed.log]
    assert costs == [(time, whole.log[time]["cost"]) for time in range(1, 8)]


def test_a_finished_run_that_is_started_again_trains_no_further(make_regression, path):
    for _ in range(2):
        task = make_regression()
        loop = task.loop(Checkpoint(path), FinishAfter(after_n_batches=3))
        loop.run(resume="auto")

    assert loop.status["iterations_done"] == 3


def test_a_run_is_resumed_with_another_rate(make_regression, path):
    make_regression().loop(Checkpoint(path), FinishAfter(after_n_batches=3)).run()
    task = make_regression()
    loop = task.loop(FinishAfter(after_n_batches=4))
    loop.restore(path)
    before = task.W.get_value()
    for name, variable in task.algorithm.get_state_variables().items():
        if name.endswith((".learning_rate", ".momentum")):
            variable.set_value(numpy.float32(0))
    loop.run()

    assert loop.status["iterations_done"] == 4
    assert task.W.get_value().tobytes() == before.tobytes()


def test_a_checkpoint_before_training_does_not_overwrite_the_one_to_resume(make_regression, path):
    def loop(finish):
        checkpoint = Checkpoint(path, before_training=True, after_training=True)
        return make_regression().loop(checkpoint, FinishAfter(after_n_batches=finish))

    loop(3).run()
    again = loop(4)
    again.restore(path)

    assert batches_in(path) == 3


def test_a_damaged_checkpoint_is_not_taken_for_none(make_regression, path):
    make_regression().loop(Checkpoint(path), FinishAfter(after_n_batches=1)).run()
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(DamagedArchive, match="loop.zip"):
        make_regression().loop(Checkpoint(path)).run(resume="auto")


def test_parameters_are_loaded_before_training(make_regression, path):
    trained, fresh = make_regression(), make_regression()
    trained.loop(Checkpoint(path), FinishAfter(after_n_batches=3)).run()
    seen = []

    class Look(TrainingExtension):
        def before_epoch(self):
            seen.append(fresh.W.get_value())

    loop = fresh.loop(Load(path), Look(), FinishAfter(after_n_batches=1))
    loop.run()

    assert seen[0].tobytes() == trained.W.get_value().tobytes()
    assert loop.log[0]["loaded_from"] == str(path)
    assert loop.status["iterations_done"] == 1


def test_all_of_a_checkpoint_is_loaded_if_that_is_asked_for(make_regression, path):
    whole, trained, fresh = make_regression(), make_regression(), make_regression()
    whole_loop = whole.loop(TrainingDataMonitoring([whole.cost]), FinishAfter(after_n_batches=6))
    whole_loop.run()
    monitoring = TrainingDataMonitoring([trained.cost])
    trained.loop(monitoring, Checkpoint(path), FinishAfter(after_n_batches=3)).run()
    load_all = Load(path, load_iteration_state=True, load_log=True)
    monitoring = TrainingDataMonitoring([fresh.cost])
    loop = fresh.loop(load_all, monitoring, FinishAfter(after_n_batches=6))
    loop.run()

    assert loop.log[4]["cost"] == whole_loop.log[4]["cost"]
    assert loop.status["resumed_from"] is not None
    assert fresh.W.get_value().tobytes() == whole.W.get_value().tobytes()


def test_loading_leaves_a_run_that_is_resumed_alone(make_regression, path, tmp_path):
    other = make_regression()
    other.W.set_value(numpy.full(3, 7, dtype="float32"))
    dump(other.loop(), tmp_path / "other.zip", save_main_loop=False)
    whole = make_regression()
    whole.loop(Load(tmp_path / "other.zip"), FinishAfter(after_n_batches=4)).run()
    for finish in (2, 4):
        task = make_regression()
        extensions = [Load(tmp_path / "other.zip"), Checkpoint(path)]
        loop = task.loop(*extensions, FinishAfter(after_n_batches=finish))
        loop.run(resume="auto")
        # It is of no use any more when the run is resumed.
        (tmp_path / "other.zip").unlink(missing_ok=True)

    assert task.W.get_value().tobytes() == whole.W.get_value().tobytes()


def test_parameters_that_do_not_fit_are_refused_unless_they_are_ignored(make_regression, path):
    trained = make_regression()
    trained.loop(Checkpoint(path), FinishAfter(after_n_batches=1)).run()
    other = make_regression(numpy.ones((20, 3), dtype="float32"))
    other.W.name = "V"

    with pytest.raises(ValueError, match="(?s)missing in the state: V.*not in the main loop: W"):
        other.loop(Load(path)).run()
    loop = other.loop(Load(path, ignore=["V", "W"]), FinishAfter(after_n_batches=1))
    loop.run()
    assert loop.status["iterations_done"] == 1


def test_a_name_instead_of_names_to_ignore_is_refused(path):
    with pytest.raises(TypeError, match="`ignore` must be a list of names; got 'W'"):
        Load(path, ignore="W")


def test_only_parameters_are_loaded_from_what_is_no_checkpoint(make_regression, path):
    trained = make_regression()
    trained.W.set_value(numpy.array([4, 5, 6], dtype="float32"))
    dump("anything", path, parameters=[trained.W])
    task = make_regression()
    loop = task.loop(Load(path), FinishAfter(after_n_batches=1))
    loop._prepare()
    assert task.W.get_value().tolist() == [4, 5, 6]

    with pytest.raises(ValueError, match="no checkpoint of a main loop, so only its parameters"):
        make_regression().loop(Load(path, load_log=True)).run()


def test_a_missing_file_is_named_with_the_way_out(make_regression, path):
    path.with_name("loops.zip").touch()

    with pytest.raises(
        FileNotFoundError,
        match=r"Load: There is no checkpoint .*loop.zip. Did you mean 'loops.zip'\? `path` must be",
    ):
        make_regression().loop(Load(path)).run()
    with pytest.raises(
        FileNotFoundError,
        match=r"MainLoop.restore: There is .*mean 'loops.zip'\? `run\(resume='auto'\)` begins anew",
    ):
        make_regression().loop().restore(path)
