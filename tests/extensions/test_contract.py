"""What every extension promises. A new one adds one line to `DESCRIPTORS`."""

import importlib
import inspect
import json
import pickle
import pkgutil

import numpy
import pytest

import extensions
from bricks.serialization import dump
from extensions import (
    CompositeExtension,
    FinishAfter,
    Printing,
    ProgressBar,
    SimpleExtension,
    Timestamp,
    Timing,
    TrainingExtension,
)
from extensions.monitoring import (
    DataStreamMonitoring,
    MonitoringExtension,
    NonFiniteCost,
    TrainingDataMonitoring,
)
from extensions.saveload import Checkpoint, Load
from extensions.stopping import EarlyStopping, FinishIfNoImprovementAfter
from extensions.training import SharedVariableModifier, TrackTheBest
from fuel_data.state import join_arrays, split_arrays

BASES = (TrainingExtension, SimpleExtension, MonitoringExtension)
TIMES = ("time_", "timestamp")


def halve(time, old):
    return old / 2


# How to build each extension, given a regression and a folder.
DESCRIPTORS = {
    Checkpoint: lambda task, folder: Checkpoint(
        folder / "loop.zip", every_n_batches=2, keep_last=2, keep_best=1, best_record="cost"
    ),
    CompositeExtension: lambda task, folder: CompositeExtension(
        [TrackTheBest("cost"), FinishIfNoImprovementAfter("cost_best_so_far", epochs=9)]
    ),
    DataStreamMonitoring: lambda task, folder: DataStreamMonitoring(
        [task.cost], task.stream, prefix="valid"
    ),
    EarlyStopping: lambda task, folder: EarlyStopping("cost", epochs=9),
    FinishAfter: lambda task, folder: FinishAfter(after_n_epochs=2),
    FinishIfNoImprovementAfter: lambda task, folder: FinishIfNoImprovementAfter(
        "cost", iterations=99
    ),
    Load: lambda task, folder: Load(folder / "pretrained.zip"),
    NonFiniteCost: lambda task, folder: NonFiniteCost(),
    Printing: lambda task, folder: Printing(),
    ProgressBar: lambda task, folder: ProgressBar(),
    SharedVariableModifier: lambda task, folder: SharedVariableModifier(
        task.rule.learning_rate, halve, every_n_batches=3, after_batch=False
    ),
    Timestamp: lambda task, folder: Timestamp(),
    Timing: lambda task, folder: Timing(every_n_batches=2),
    TrackTheBest: lambda task, folder: TrackTheBest("cost"),
    TrainingDataMonitoring: lambda task, folder: TrainingDataMonitoring(
        [task.algorithm.total_gradient_norm]
    ),
}


def classes():
    """Find all extensions that this package defines."""
    for module in pkgutil.iter_modules(extensions.__path__, "extensions."):
        for value in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(value) and issubclass(value, TrainingExtension):
                yield value


def by_name(cls):
    return cls.__name__


every_extension = pytest.mark.parametrize("cls", sorted(DESCRIPTORS, key=by_name), ids=by_name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_regression):
    folder = tmp_path_factory.mktemp("contract")
    pretrained = Checkpoint(folder / "pretrained.zip")
    make_regression().loop(pretrained, FinishAfter(after_n_batches=1)).run()
    return folder


def build(cls, make_regression, folder, finish):
    """A loop with the extension, a record `cost` that others look at, and an end."""
    task = make_regression()
    cost = TrainingDataMonitoring([task.cost], name="cost")
    extension = DESCRIPTORS[cls](task, folder)
    return task.loop(cost, extension, FinishAfter(after_n_batches=finish, name="end"))


def outcome(loop):
    """All that must not depend on where a run was stopped."""
    weights = loop.algorithm.parameters[0].get_value()
    rows = {
        time: {name: value for name, value in loop.log[time].items() if not name.startswith(TIMES)}
        for time in loop.log
    }
    return weights.tobytes(), {time: row for time, row in rows.items() if row}


def without_times(state):
    return {} if "totals" in state else state


def assert_same_state(state, expected):
    text, arrays = split_arrays(without_times(state))
    expected_text, expected_arrays = split_arrays(without_times(expected))
    assert json.loads(text) == json.loads(expected_text)
    assert {key: array.tobytes() for key, array in arrays.items()} == {
        key: array.tobytes() for key, array in expected_arrays.items()
    }


def test_every_extension_is_described():
    assert set(classes()) - set(BASES) == set(DESCRIPTORS)


@every_extension
def test_it_has_a_name_and_shows_itself(cls, make_regression, folder):
    extension = DESCRIPTORS[cls](make_regression(), folder)

    assert extension.name == cls.__name__
    assert repr(extension) == f"<{cls.__name__}>"


@every_extension
def test_it_is_pickled_before_it_is_used(cls, make_regression, folder):
    extension = DESCRIPTORS[cls](make_regression(), folder)

    assert pickle.loads(pickle.dumps(extension)).name == extension.name


@every_extension
def test_it_takes_a_name_and_refuses_what_is_no_trigger(cls, make_regression, folder):
    parameters = inspect.signature(cls).parameters
    required = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    arguments = {
        "sub_extensions": [],
        "variables": [],
        "function": abs,
        "record_name": "cost",
        "notification_name": "good",
        "path": folder / "x",
    }
    given = {name: arguments.get(name) for name in required}
    if cls in (EarlyStopping, FinishIfNoImprovementAfter):
        given["epochs"] = 1

    assert cls(**given, name="mine").name == "mine"
    with pytest.raises(TypeError, match="after_epok"):
        cls(**given, after_epok=True)


@pytest.fixture(scope="module")
def outcome_of_the_whole_run(make_regression, folder):
    """Run each loop once without a stop, for both ways to resume it."""
    outcomes = {}

    def of(cls):
        if cls not in outcomes:
            loop = build(cls, make_regression, folder, finish=8)
            loop.run()
            outcomes[cls] = outcome(loop)
        return outcomes[cls]

    return of


@every_extension
@pytest.mark.parametrize("how", ["pickle", "restore"])
def test_a_run_with_it_that_is_stopped_ends_as_if_it_was_not(
    cls, make_regression, outcome_of_the_whole_run, folder, tmp_path, how
):
    stopped = build(cls, make_regression, folder, finish=3)
    stopped.run()
    if how == "pickle":
        again = pickle.loads(pickle.dumps(stopped))
        again.find_extension("end").set_conditions(after_n_batches=8)
    else:
        dump(stopped, tmp_path / "stopped.zip", save_main_loop=False)
        again = build(cls, make_regression, folder, finish=8)
        again.restore(tmp_path / "stopped.zip")
    again.run()

    weights, rows = outcome(again)
    if cls is Checkpoint:
        # One is written where the run was stopped, too.
        del rows[3]
    assert (weights, rows) == outcome_of_the_whole_run(cls)


@every_extension
def test_its_state_is_plain_and_comes_back(cls, make_regression, folder):
    loop = build(cls, make_regression, folder, finish=4)
    loop.run()
    state = loop.extensions[1].get_state()
    fresh = build(cls, make_regression, folder, finish=4)
    fresh._prepare()
    fresh.extensions[1].set_state(join_arrays(*split_arrays(state)))

    assert_same_state(fresh.extensions[1].get_state(), state)


def test_the_states_of_this_test_hold_arrays_exactly():
    with pytest.raises(AssertionError):
        assert_same_state({"a": numpy.float32([1])}, {"a": numpy.float32([2])})
