"""Extensions of one's own remember their attributes, however a run goes on."""

import pickle

import numpy
import pytest

from bricks.serialization import dump, load_state
from extensions import CompositeExtension, FinishAfter, Printing, SimpleExtension, TrainingExtension
from extensions.saveload import Checkpoint


class Counting(TrainingExtension):
    """As one wrote them for Blocks."""

    def __init__(self, step=1, **arguments):
        super().__init__(**arguments)
        self.step = step
        self.n = 0
        self.times = []

    def before_training(self):
        self.sums = {"n": numpy.float32(0)}

    def after_batch(self, batch):
        self.n += self.step
        self.times.append((self.n, "batch"))
        self.sums["n"] += numpy.float32(self.n)


def remembered(extension):
    return extension.n, extension.times, extension.sums


def stopped_and_restored(make_loop, path, extension, fresh):
    loop = make_loop(extension, FinishAfter(after_n_batches=2))
    loop.run()
    dump(loop, path, save_main_loop=False)
    again = make_loop(fresh, FinishAfter(after_n_batches=5))
    again.restore(path)
    return loop, again


@pytest.fixture
def make_loop(make_regression):
    return lambda *extensions: make_regression().loop(*extensions)


def test_what_changed_goes_on_in_a_loop_that_is_restored_by_name(make_loop, tmp_path):
    whole = Counting()
    make_loop(whole, FinishAfter(after_n_batches=5)).run()
    again = Counting()
    _, loop = stopped_and_restored(make_loop, tmp_path / "x.zip", Counting(), again)
    loop.run()

    assert remembered(again) == remembered(whole)
    assert again.n == 5
    assert type(again.times[0]) is tuple
    assert type(again.sums["n"]) is numpy.float32


def test_it_goes_on_in_a_loop_that_was_pickled_and_is_restored_later(make_loop, tmp_path):
    loop = make_loop(Counting(), FinishAfter(after_n_batches=2))
    loop.run()
    loop = pickle.loads(pickle.dumps(loop))
    dump(loop, tmp_path / "x.zip", save_main_loop=False)
    again = make_loop(Counting(), FinishAfter(after_n_batches=5))
    again.restore(tmp_path / "x.zip")

    assert remembered(again.extensions[0]) == remembered(loop.extensions[0])


def test_an_argument_that_has_not_changed_is_that_of_the_script(make_loop, tmp_path):
    again = Counting(step=10)
    _, loop = stopped_and_restored(make_loop, tmp_path / "x.zip", Counting(), again)
    loop.run()

    assert again.n == 2 + 3 * 10


def test_a_loop_that_went_on_is_put_back(make_loop, tmp_path):
    loop = make_loop(Counting(), FinishAfter(after_n_batches=2), Checkpoint(tmp_path / "x.zip"))
    loop.extensions[2].set_conditions(before_first_epoch=True)
    loop.run()
    loop.restore(tmp_path / "x.zip")

    assert remembered(loop.extensions[0]) == (0, [], {"n": 0})


def test_the_parts_of_a_composite_extension_and_itself_remember(make_loop, tmp_path):
    class Both(CompositeExtension):
        def after_batch(self, batch):
            self.batches = getattr(self, "batches", 0) + 1

    again = Both([Counting(), Counting(step=2, name="two")])
    first = Both([Counting(), Counting(step=2, name="two")])
    stopped_and_restored(make_loop, tmp_path / "x.zip", first, again)

    assert again.batches == 2
    assert [part.n for part in again.sub_extensions] == [2, 4]


def test_an_extension_that_only_remembers_attributes_may_come_and_go(make_loop, tmp_path):
    stopped_and_restored(make_loop, tmp_path / "x.zip", Counting(), Printing(after_epoch=False))
    stopped_and_restored(make_loop, tmp_path / "x.zip", Printing(after_epoch=False), Counting())


class Collecting(SimpleExtension):
    def __init__(self, **triggers):
        self.seen = set()
        self.file = None
        super().__init__(**triggers)

    def do(self, which_callback, *args):
        self.seen.add(self.main_loop.status["iterations_done"])
        self.file = object()


class Knowing(Collecting):
    def get_state(self):
        return {"seen": sorted(self.seen)}


def test_what_changed_and_cannot_be_saved_is_told_once(make_loop, tmp_path, caplog):
    checkpoint = Checkpoint(tmp_path / "x.zip", save_main_loop=False, every_n_batches=1)
    collecting = Collecting(after_batch=True)
    make_loop(collecting, checkpoint, FinishAfter(after_n_batches=3)).run()

    told = [r.getMessage() for r in caplog.records if r.name == "extensions.memory"]
    assert told == [
        "Collecting: `seen`, `file` changed while training and cannot be restored from a "
        "checkpoint by name, being no plain data. Override `get_state` and `set_state` of "
        "Collecting to remember it, or to say that this need not be."
    ]


def test_who_says_what_it_remembers_is_believed(make_loop, tmp_path, caplog):
    knowing = Knowing(after_batch=True)
    loop = make_loop(knowing, FinishAfter(after_n_batches=2))
    loop.run()
    dump(loop, tmp_path / "x.zip", save_main_loop=False)

    assert load_state(tmp_path / "x.zip")["extensions"]["Knowing"] == {"seen": [1, 2]}
    assert [r for r in caplog.records if r.name == "extensions.memory"] == []
