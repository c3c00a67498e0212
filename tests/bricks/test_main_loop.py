"""The life of a main loop, with a stream and an algorithm that stand for real ones."""

import logging
import os
import pickle
import signal
import threading

import pytest

from bricks.log import JSONLinesLog, SQLiteLog
from bricks.main_loop import MainLoop, TrainingFinish
from extensions import CompositeExtension, FinishAfter, SimpleExtension, TrainingExtension


class Numbers:
    """Epochs of batches ``{'x': epoch * 100 + index}``."""

    def __init__(self, num_batches=3, num_epochs=None):
        self.num_batches = num_batches
        self.num_epochs = num_epochs
        self.sources = ("x",)
        self.next_epoch = 0

    def get_epoch_iterator(self, as_dict=False, epoch=None):
        assert as_dict
        epoch = self.next_epoch if epoch is None else epoch
        if epoch == self.num_epochs:
            raise StopIteration
        self.next_epoch = epoch + 1
        return NumbersIterator(self, epoch)


class NumbersIterator:
    def __init__(self, stream, epoch):
        self.stream = stream
        self.epoch = epoch
        self.index = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.index == self.stream.num_batches:
            raise StopIteration
        self.index += 1
        return {"x": self.epoch * 100 + self.index}

    def get_state(self):
        return {"epoch": self.epoch, "index": self.index}

    def set_state(self, state):
        self.epoch, self.index = state["epoch"], state["index"]
        self.stream.next_epoch = self.epoch + 1


class Memory:
    """An algorithm that remembers its batches, and does what it is told at some of them."""

    def __init__(self, actions=None):
        self.seen = []
        self.num_initializations = 0
        self.actions = actions or {}

    def initialize(self):
        self.num_initializations += 1

    def process_batch(self, batch):
        if batch["x"] in self.actions:
            self.actions.pop(batch["x"])()
        self.seen.append(batch["x"])


class Recorder(TrainingExtension):
    """Writes down every callback."""

    def __init__(self, name="recorder", calls=None):
        super().__init__(name)
        self.calls = [] if calls is None else calls

    def before_training(self):
        self.calls.append((self.name, "before_training"))

    def on_resumption(self):
        self.calls.append((self.name, "on_resumption"))

    def before_epoch(self):
        self.calls.append((self.name, "before_epoch"))

    def before_batch(self, batch):
        self.calls.append((self.name, "before_batch", batch["x"]))

    def after_batch(self, batch):
        self.calls.append((self.name, "after_batch", batch["x"]))

    def after_epoch(self):
        self.calls.append((self.name, "after_epoch"))

    def after_training(self):
        self.calls.append((self.name, "after_training"))

    def on_error(self, exception):
        self.calls.append((self.name, "on_error", str(exception)))

    def on_interrupt(self):
        self.calls.append((self.name, "on_interrupt"))

    def names(self):
        return [call[1] for call in self.calls]


class Act(SimpleExtension):
    """Calls a function."""

    def __init__(self, function, **triggers):
        self.function = function
        super().__init__(**triggers)

    def do(self, which_callback, *args):
        self.function()


class Saver(TrainingExtension):
    """Pickles the loop after every batch."""

    runs_last = True

    def __init__(self):
        super().__init__()
        self.pickles = []

    def __getstate__(self):
        return self.__dict__ | {"pickles": []}

    def after_batch(self, batch):
        self.pickles.append(pickle.dumps(self.main_loop))


class LogsItsBatches(TrainingExtension):
    def after_batch(self, batch):
        self.main_loop.log.current_row["x"] = batch["x"]

    def after_epoch(self):
        self.main_loop.log.current_row["epochs"] = self.main_loop.status["epochs_done"]


def make_loop(*extensions, actions=None, num_batches=3, num_epochs=None, **arguments):
    stream = Numbers(num_batches, num_epochs)
    return MainLoop(Memory(actions), stream, extensions=extensions, **arguments)


def send(number):
    return lambda: os.kill(os.getpid(), number)


def fail():
    raise ArithmeticError("the step failed")


@pytest.fixture(autouse=True)
def handlers_are_put_back():
    old = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in old} == old


def test_the_callbacks_come_in_the_order_of_a_life():
    recorder = Recorder()
    make_loop(recorder, FinishAfter(after_n_epochs=2), num_batches=2).run()

    assert recorder.calls == [
        ("recorder", "before_training"),
        ("recorder", "before_epoch"),
        ("recorder", "before_batch", 1),
        ("recorder", "after_batch", 1),
        ("recorder", "before_batch", 2),
        ("recorder", "after_batch", 2),
        ("recorder", "after_epoch"),
        ("recorder", "before_epoch"),
        ("recorder", "before_batch", 101),
        ("recorder", "after_batch", 101),
        ("recorder", "before_batch", 102),
        ("recorder", "after_batch", 102),
        ("recorder", "after_epoch"),
        ("recorder", "after_training"),
    ]


def test_extensions_are_called_in_the_order_of_the_list():
    calls = []
    make_loop(Recorder("b", calls), Recorder("a", calls), FinishAfter(after_n_batches=1)).run()

    assert [name for name, callback, *_ in calls if callback == "after_batch"] == ["b", "a"]


def test_batches_and_epochs_are_counted_before_the_callbacks_after_them():
    loop = make_loop(FinishAfter(after_n_epochs=2), LogsItsBatches())
    loop.run()

    assert loop.status["iterations_done"] == 6
    assert loop.status["epochs_done"] == 2
    assert loop.status["_epoch_ends"] == [3, 6]
    assert loop.log[3] == {"x": 3, "epochs": 1}
    assert loop.log[6] == {
        "x": 103,
        "epochs": 2,
        "training_finish_requested": True,
        "training_finished": True,
    }


def test_an_extension_that_saves_is_called_after_those_that_change_something():
    calls = []
    saver, reporter = Recorder("saver", calls), Recorder("reporter", calls)
    saver.runs_last = reporter.only_reports = True
    make_loop(saver, reporter, Recorder("changer", calls), FinishAfter(after_n_batches=1)).run()

    order = [name for name, callback, *_ in calls if callback == "after_batch"]
    assert order == ["reporter", "changer", "saver"]


def test_an_extension_that_saves_keeps_its_place_before_those_that_only_report():
    calls = []
    saver, reporter = Recorder("saver", calls), Recorder("reporter", calls)
    saver.runs_last = reporter.only_reports = True
    make_loop(FinishAfter(after_n_batches=1), Recorder("changer", calls), saver, reporter).run()

    order = [name for name, callback, *_ in calls if callback == "after_batch"]
    assert order == ["changer", "saver", "reporter"]


def test_only_callbacks_that_are_of_use_are_dispatched():
    loop = make_loop(LogsItsBatches(), FinishAfter(after_n_epochs=1))
    loop._prepare()
    wanted = {name: len(handlers) for name, handlers in loop._handlers.items() if handlers}

    assert wanted == {"after_batch": 1, "after_epoch": 2, "on_resumption": 1}


def test_an_extension_may_raise_that_training_is_finished():
    def finish():
        raise TrainingFinish

    calls = []
    loop = make_loop(Act(finish, after_n_batches=2), Recorder("recorder", calls))
    loop.run()

    assert loop.status["iterations_done"] == 2
    assert calls[-1][:2] == ("recorder", "after_training")
    assert loop.log.current_row["training_finished"]
    assert loop.exit_status == 0


def test_conditions_that_are_added_while_the_loop_runs_count_at_once():
    finish = FinishAfter()
    loop = make_loop(
        finish, Act(lambda: finish.set_conditions(after_n_batches=5), after_n_batches=2)
    )
    loop.run()

    assert loop.status["iterations_done"] == 5


def test_an_old_style_extension_that_overrides_dispatch_gets_every_callback():
    calls = []

    class Everything(TrainingExtension):
        def dispatch(self, callback_invoked, *from_main_loop):
            calls.append(callback_invoked)

    make_loop(Everything(), FinishAfter(after_n_batches=1)).run()

    assert calls == [
        "before_training",
        "before_epoch",
        "before_batch",
        "after_batch",
        "after_training",
    ]


def test_a_stream_that_ends_runs_after_training():
    recorder = Recorder()
    loop = make_loop(recorder, num_epochs=2)
    loop.run()

    assert recorder.names()[-2:] == ["after_epoch", "after_training"]
    assert loop.status["epochs_done"] == 2
    assert loop.exit_status == 0


def test_an_epoch_without_batches_is_refused_in_words():
    with pytest.raises(ValueError, match="the stream gave an epoch without a single batch"):
        make_loop(num_batches=0).run()


def test_an_exception_reaches_all_extensions_and_is_raised_again():
    first, second = Recorder("first"), Recorder("second")
    loop = make_loop(first, second, actions={2: fail})

    with pytest.raises(ArithmeticError, match="the step failed"):
        loop.run()
    assert first.calls[-1] == ("first", "on_error", "the step failed")
    assert second.calls[-1] == ("second", "on_error", "the step failed")
    assert "after_training" not in first.names()
    assert "ArithmeticError: the step failed" in loop.log[1]["got_exception"]
    assert loop.exit_status == 1


def test_an_extension_that_fails_in_on_error_does_not_hide_the_first_exception(caplog):
    class Fails(TrainingExtension):
        def on_error(self, exception):
            raise KeyError("on_error")

    recorder = Recorder()
    with pytest.raises(ArithmeticError, match="the step failed"):
        make_loop(Fails(), recorder, actions={2: fail}).run()
    assert recorder.names()[-1] == "on_error"
    assert "an extension's on_error failed too" in caplog.text


def test_the_old_handlers_are_back_while_extensions_hear_of_an_exception():
    seen = []

    class Looks(TrainingExtension):
        def on_error(self, exception):
            seen.append(signal.getsignal(signal.SIGINT))

    with pytest.raises(ArithmeticError):
        make_loop(Looks(), actions={2: fail}).run()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_an_exception_in_after_training_is_an_error_too():
    recorder = Recorder()

    with pytest.raises(ArithmeticError):
        make_loop(Act(fail, after_training=True), recorder, num_epochs=1).run()
    assert recorder.names()[-1] == "on_error"


def test_a_batch_that_failed_is_processed_again_when_training_goes_on():
    loop = make_loop(FinishAfter(after_n_epochs=1), actions={2: fail})
    with pytest.raises(ArithmeticError):
        loop.run()
    assert loop.batch_in_flight
    loop.run()

    assert loop.algorithm.seen == [1, 2, 3]
    assert not loop.batch_in_flight
    assert "got_exception" not in loop.log[1]


def test_a_stopped_loop_goes_on_where_it_was():
    recorder = Recorder()
    finish = FinishAfter(after_n_batches=4)
    loop = make_loop(recorder, finish)
    loop.run()
    finish.set_conditions(after_n_batches=7)
    loop.run()

    assert loop.algorithm.seen == [1, 2, 3, 101, 102, 103, 201]
    assert loop.algorithm.num_initializations == 1
    assert recorder.names().count("before_training") == 1
    assert recorder.names().count("on_resumption") == 1
    assert recorder.names().count("before_epoch") == 3


def test_a_finished_loop_that_is_run_again_does_no_further_batch():
    recorder = Recorder()
    loop = make_loop(recorder, FinishAfter(after_n_epochs=2))
    loop.run()
    loop.run()

    assert loop.status["iterations_done"] == 6
    assert recorder.names()[-2:] == ["on_resumption", "after_training"]


def test_resuming_takes_the_end_of_the_last_run_out_of_the_log():
    finish = FinishAfter(after_n_batches=2)
    loop = make_loop(finish)
    loop.run()
    assert loop.log[2]["training_finished"] is True
    finish.extend(batches=1)
    loop.run()

    assert "training_finished" not in loop.log[2]
    assert "training_finish_requested" not in loop.log[2]
    assert loop.status["resumed_from"] is not None


def test_an_extension_that_was_added_later_is_introduced():
    finish = FinishAfter(after_n_batches=2)
    loop = make_loop(finish)
    loop.run()
    finish.set_conditions(after_n_batches=3)
    late = Recorder("late")
    loop.extensions.append(late)
    loop.run()

    assert late.names()[:2] == ["before_training", "on_resumption"]
    assert loop.algorithm.num_initializations == 1


@pytest.mark.parametrize("position", range(6))
def test_the_pickle_of_every_batch_ends_like_the_loop_that_was_not_stopped(position):
    saver = Saver()
    loop = make_loop(LogsItsBatches(), FinishAfter(after_n_epochs=2), saver)
    loop.run()
    again = pickle.loads(saver.pickles[position])
    assert again.status["iterations_done"] == position + 1
    again.run()

    assert again.algorithm.seen == loop.algorithm.seen
    assert dict(again.log) == dict(loop.log)
    assert again.status == loop.status | {"resumed_from": again.status["resumed_from"]}
    assert again.algorithm.num_initializations == 1


@pytest.mark.parametrize("kind", [SQLiteLog, JSONLinesLog])
def test_a_pickled_loop_goes_on_in_a_log_on_the_disk(kind, tmp_path):
    saver = Saver()
    log = kind(tmp_path / "log")
    loop = make_loop(LogsItsBatches(), FinishAfter(after_n_epochs=2), saver, log=log)
    loop.run()
    expected = {time: dict(log[time]) for time in log}
    again = pickle.loads(saver.pickles[3])
    again.run()

    assert {time: dict(again.log[time]) for time in again.log} == expected


def test_a_loop_that_runs_is_not_run_again():
    loop = make_loop(num_epochs=1)
    loop.extensions.append(Act(loop.run, after_n_batches=2))

    with pytest.raises(RuntimeError, match="this loop is running already"):
        loop.run()


def test_extensions_are_found_by_name_also_inside_of_others():
    inner = Recorder("inner")
    outer = CompositeExtension([inner], name="outer")
    loop = make_loop(outer, Recorder("twice"), Recorder("twice"))

    assert loop.find_extension("inner") is inner
    with pytest.raises(ValueError, match="2 are named 'twice'"):
        loop.find_extension("twice")
    with pytest.raises(ValueError, match="no extension is named 'iner'. Did you mean 'inner'"):
        loop.find_extension("iner")


def test_sources_that_do_not_fit_are_seen_before_the_first_batch():
    class Strict(Memory):
        def check_sources(self, sources):
            raise ValueError(f"no use for {sources}")

    loop = MainLoop(Strict(), Numbers())

    with pytest.raises(ValueError, match=r"no use for \('x',\)"):
        loop.run()
    assert not loop.batch_in_flight


def test_the_first_interrupt_finishes_the_epoch(caplog):
    recorder = Recorder()
    loop = make_loop(recorder, actions={102: send(signal.SIGINT)})
    loop.run()

    assert loop.algorithm.seen == [1, 2, 3, 101, 102, 103]
    assert recorder.names()[-2:] == ["after_epoch", "after_training"]
    assert recorder.calls.index(("recorder", "on_interrupt")) == (
        recorder.calls.index(("recorder", "after_batch", 102)) + 1
    )
    assert loop.exit_status == 130
    assert "training ends after this epoch" in caplog.text


def test_the_second_interrupt_finishes_the_batch():
    recorder = Recorder()
    actions = {101: send(signal.SIGINT), 102: send(signal.SIGINT)}
    loop = make_loop(recorder, actions=actions)
    loop.run()

    assert loop.algorithm.seen == [1, 2, 3, 101, 102]
    assert recorder.names()[-3:] == ["after_batch", "on_interrupt", "after_training"]
    assert recorder.names().count("on_interrupt") == 2
    assert loop.exit_status == 130


def interrupt(times):
    def act():
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)

    return act


def test_the_third_interrupt_stops_at_once_and_its_batch_is_not_lost():
    recorder = Recorder()
    finish = FinishAfter(after_n_epochs=1)
    once = [interrupt(3)]
    act = Act(lambda: once and once.pop()(), before_batch=True)
    loop = make_loop(recorder, finish, act)

    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert loop.algorithm.seen == []
    assert recorder.names()[-2:] == ["before_batch", "on_error"]
    loop.run()
    assert loop.algorithm.seen == [1, 2, 3]


def test_a_third_interrupt_in_a_step_waits_for_the_end_of_its_batch():
    recorder = Recorder()
    finish = FinishAfter(after_n_epochs=1)
    loop = make_loop(recorder, finish, actions={2: interrupt(3)})

    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert loop.algorithm.seen == [1, 2]
    assert recorder.names()[-2:] == ["after_batch", "on_error"]
    loop.run()
    assert loop.algorithm.seen == [1, 2, 3]
    assert recorder.names().count("after_batch") == 3


def test_the_fourth_interrupt_stops_a_step():
    recorder = Recorder()
    loop = make_loop(recorder, actions={2: interrupt(4)})

    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert loop.algorithm.seen == [1]
    assert recorder.names()[-2:] == ["before_batch", "on_error"]


def test_an_interrupted_loop_is_run_again_as_in_a_notebook():
    actions = {2: send(signal.SIGINT), 102: send(signal.SIGTERM)}
    loop = make_loop(FinishAfter(after_n_epochs=3), actions=actions)
    statuses = []
    while loop.status["epochs_done"] < 3:
        loop.run()
        statuses.append(loop.exit_status)

    assert loop.algorithm.seen == [1, 2, 3, 101, 102, 103, 201, 202, 203]
    assert statuses == [130, 143, 0]


def test_sigterm_finishes_the_batch_and_a_second_one_changes_nothing():
    def terminate_twice():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)

    recorder = Recorder()
    loop = make_loop(recorder, actions={2: terminate_twice})
    loop.run()

    assert loop.algorithm.seen == [1, 2]
    assert recorder.names()[-3:] == ["after_batch", "on_interrupt", "after_training"]
    assert loop.exit_status == 143


def test_sigterm_after_the_last_batch_of_an_epoch_leaves_the_epoch_to_the_next_run():
    recorder = Recorder()
    loop = make_loop(recorder, FinishAfter(after_n_epochs=1), actions={3: send(signal.SIGTERM)})
    loop.run()
    assert "after_epoch" not in recorder.names()
    loop.run()

    assert recorder.names()[-3:] == ["on_resumption", "after_epoch", "after_training"]
    assert loop.algorithm.seen == [1, 2, 3]


def test_a_signal_that_comes_before_the_first_batch_is_not_lost():
    loop = make_loop(Act(send(signal.SIGTERM), before_training=True))
    loop.run()

    assert loop.algorithm.seen == []
    assert loop.exit_status == 143


def test_a_signal_that_was_ignored_stays_ignored():
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        loop = make_loop(FinishAfter(after_n_epochs=2), actions={1: send(signal.SIGINT)})
        loop.run()
    finally:
        signal.signal(signal.SIGINT, old)

    assert loop.status["epochs_done"] == 2


def test_a_loop_runs_in_a_thread():
    loop = make_loop(FinishAfter(after_n_epochs=2))
    thread = threading.Thread(target=loop.run)
    thread.start()
    thread.join()

    assert loop.status["iterations_done"] == 6


def test_the_times_of_reading_and_training_are_measured():
    loop = make_loop(FinishAfter(after_n_epochs=2))
    loop.run()

    assert set(loop.times) == {"initialization", "read_data", "train"}
    assert all(seconds > 0 for seconds in loop.times.values())


def test_the_profile_is_printed_when_the_setting_asks_for_it(monkeypatch, capsys):
    monkeypatch.setenv("BRICKS_PROFILE", "1")
    make_loop(Recorder(), FinishAfter(after_n_epochs=1)).run()
    printed = capsys.readouterr().out

    assert "train " in printed
    assert "after_batch: recorder" in printed


def test_automatic_resumption_without_anywhere_to_look_is_refused():
    with pytest.raises(ValueError, match="needs a `Checkpoint` extension"):
        make_loop().run(resume="auto")


def test_automatic_resumption_begins_anew_where_there_is_no_checkpoint(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    loop = make_loop(num_epochs=1)
    loop.run(resume="auto", checkpoint=tmp_path / "missing.zip")

    assert loop.status["epochs_done"] == 1
    assert "training begins anew" in caplog.text


def test_the_representation_says_what_was_done():
    loop = make_loop(Recorder(), num_epochs=2)
    loop.run()

    expected = "<MainLoop of Memory: 6 batches and 2 epochs done; extensions: recorder>"
    assert repr(loop) == expected


def test_iteration_state_is_the_stream_and_the_position():
    loop = make_loop(FinishAfter(after_n_batches=1))
    loop.run()
    stream, iterator = loop.iteration_state

    assert stream is loop.data_stream
    assert iterator.get_state() == {"epoch": 0, "index": 1}
