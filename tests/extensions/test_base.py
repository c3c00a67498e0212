"""When an extension is called, and what it is given."""

import pytest

from extensions import (
    CompositeExtension,
    FinishAfter,
    ProgressBar,
    SimpleExtension,
    TrainingExtension,
)
from extensions.predicates import OnLogRecord
from extensions.saveload import Checkpoint
from extensions.stopping import EarlyStopping
from extensions.training import TrackTheBest


class Count(SimpleExtension):
    def __init__(self, **triggers):
        self.calls = []
        super().__init__(**triggers)

    def do(self, which_callback, *args):
        from_main_loop, from_user = self.parse_args(which_callback, args)
        time = self.main_loop.status["iterations_done"] if self.main_loop else None
        self.calls.append((which_callback, time, from_main_loop, from_user))

    def times(self):
        return [time for _, time, _, _ in self.calls]

    def callbacks(self):
        return [callback for callback, _, _, _ in self.calls]


@pytest.mark.parametrize(
    ("trigger", "times"),
    [
        ({"before_training": True}, [0]),
        ({"before_first_epoch": True}, [0]),
        ({"before_epoch": True}, [0, 3, 6]),
        ({"before_batch": True}, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ({"after_batch": True}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"after_epoch": True}, [3, 6, 9]),
        ({"after_training": True}, [9]),
        ({"on_resumption": True}, []),
        ({"on_error": True}, []),
        ({"on_interrupt": True}, []),
        ({"every_n_batches": 4}, [4, 8]),
        ({"every_n_epochs": 2}, [6]),
        ({"after_n_batches": 4}, [4]),
        ({"after_n_epochs": 2}, [6]),
        ({"every_n_seconds": 1e-9}, [2, 3, 4, 5, 6, 7, 8, 9]),
        ({"every_n_minutes": 1000}, []),
        ({"after_batch": False}, []),
        ({"every_n_batches": None}, []),
        ({"every_n_batches": 6, "after_epoch": True}, [3, 6, 6, 9]),
        ({}, []),
    ],
)
def test_an_extension_acts_when_its_triggers_say_so(make_loop, trigger, times):
    count = Count(**trigger)
    make_loop(count, FinishAfter(after_n_epochs=3)).run()

    assert count.times() == times


def test_every_trigger_is_covered_by_the_test_above():
    known = (
        SimpleExtension.BOOLEAN_TRIGGERS
        | SimpleExtension.INTEGER_TRIGGERS
        | SimpleExtension.TIME_TRIGGERS
    )
    mark = test_an_extension_acts_when_its_triggers_say_so.pytestmark[0]

    assert {name for trigger, _ in mark.args[1] for name in trigger} == known


def test_an_unknown_trigger_is_refused_with_the_nearest():
    with pytest.raises(TypeError, match="'every_n_batch' is neither .* mean 'every_n_batches'"):
        Count(every_n_batch=1)


@pytest.mark.parametrize("number", [0, -1, 1.5, "1", True])
def test_a_number_of_batches_that_is_none_is_refused(number):
    with pytest.raises(ValueError, match="`every_n_batches` must be a number of at least 1; got"):
        Count(every_n_batches=number)


@pytest.mark.parametrize("seconds", [0, -1.0, "1", True])
def test_a_time_that_is_none_is_refused(seconds):
    with pytest.raises(ValueError, match="must be more than 0; got"):
        Count(every_n_seconds=seconds)


def test_a_number_for_a_trigger_that_is_yes_or_no_is_refused():
    with pytest.raises(TypeError, match="`after_epoch` must be True or False; got 2"):
        Count(after_epoch=2)


def test_conditions_are_set_anew(make_loop):
    count = Count(after_batch=True)
    count.set_conditions(after_epoch=True).add_condition(["after_training"])
    make_loop(count, FinishAfter(after_n_epochs=2)).run()

    assert count.callbacks() == ["after_epoch", "after_epoch", "after_training"]


def test_conditions_stay_when_new_ones_are_refused():
    count = Count(after_epoch=True)
    before = count.conditions
    with pytest.raises(TypeError):
        count.set_conditions(after_batch=True, after_epock=True)

    assert count.conditions == before


def test_a_condition_has_a_predicate_and_arguments(make_loop):
    count = Count()
    count.add_condition(["after_batch", "after_epoch"], OnLogRecord("good"), ("file",))
    records = {2: {"good": True}, 4: {"good": False}, 6: {"good": 1}}
    make_loop(count, FinishAfter(after_n_epochs=2), records=records).run()

    assert count.calls == [
        ("after_batch", 2, ({},), ("file",)),
        ("after_batch", 6, ({},), ("file",)),
        ("after_epoch", 6, (), ("file",)),
    ]


def test_a_condition_that_makes_no_sense_is_refused():
    count = Count()
    with pytest.raises(TypeError, match="`callbacks_names` must be a list of names; got 'after_b"):
        count.add_condition("after_batch")
    with pytest.raises(ValueError, match="'after_bath' is not a callback. Did you mean 'after_bat"):
        count.add_condition(["after_bath"])
    with pytest.raises(ValueError, match="`predicate` must be callable; got 3"):
        count.add_condition(["after_batch"], 3)


def test_an_extension_that_acts_and_overrides_a_callback_does_both(make_loop):
    class Both(Count):
        def after_epoch(self):
            self.calls.append(("overridden", None, (), ()))

    both = Both(after_epoch=True)
    make_loop(both, FinishAfter(after_n_epochs=1)).run()

    assert both.callbacks() == ["overridden", "after_epoch"]


def test_an_extension_that_does_not_say_what_it_does_is_refused(make_loop):
    with pytest.raises(NotImplementedError, match="SimpleExtension must override `do`"):
        make_loop(SimpleExtension(after_batch=True)).run()


def test_the_loop_is_not_there_before_training():
    with pytest.raises(ValueError, match="Count: there is no main loop yet"):
        _ = Count().main_loop


def test_a_name_is_that_of_the_class_unless_one_is_given():
    assert TrainingExtension().name == "TrainingExtension"
    assert Count(name="mine").name == "mine"
    assert repr(Count(name="mine")) == "<Count 'mine'>"


def test_an_extension_without_state_refuses_one():
    extension = TrainingExtension()
    extension.set_state({})

    with pytest.raises(ValueError, match=r"this extension has no state; got \['x'\]"):
        extension.set_state({"x": 1})


def test_dispatch_calls_what_the_loop_would_call(make_loop):
    count = Count(after_batch=True)
    make_loop(count)
    count.main_loop = make_loop()
    count.dispatch("after_batch", {"x": 1})
    count.dispatch("after_epoch")

    assert count.calls == [("after_batch", 0, ({"x": 1},), ())]


class Parent(CompositeExtension):
    def __init__(self, calls, *args, **kwargs):
        self.all_calls = calls
        super().__init__(*args, **kwargs)

    def do(self, which_callback, *args):
        self.all_calls.append("parent")


class Child(TrainingExtension):
    def __init__(self, calls, name, state=None):
        super().__init__(name)
        self.calls = calls
        self.state = state

    def after_epoch(self):
        self.calls.append(self.name)

    def get_state(self):
        return {} if self.state is None else {"state": self.state}

    def set_state(self, state):
        self.state = state["state"]


@pytest.mark.parametrize(
    ("first", "order"), [(True, ["parent", "a", "b"]), (False, ["a", "b", "parent"])]
)
def test_a_composite_calls_its_own_before_or_after_the_others(make_loop, first, order):
    calls = []
    children = [Child(calls, "a"), Child(calls, "b")]
    composite = Parent(calls, children, run_before_children=first, after_epoch=True)
    make_loop(composite, FinishAfter(after_n_epochs=1)).run()

    assert calls == order


def test_a_composite_calls_those_that_save_after_the_others(make_loop):
    calls = []
    children = [Child(calls, "saver"), Child(calls, "changer")]
    children[0].runs_last = True
    composite = CompositeExtension(children)
    make_loop(composite, Child(calls, "other"), FinishAfter(after_n_epochs=1)).run()

    assert calls == ["other", "changer", "saver"]


def test_a_composite_has_the_states_of_the_others():
    composite = CompositeExtension([Child([], "a", 1), Child([], "b"), Child([], "a", 3)])
    fresh = CompositeExtension([Child([], "a", 0), Child([], "b"), Child([], "a", 0)])
    fresh.set_state(composite.get_state())

    assert composite.get_state() == {"0:a": {"state": 1}, "2:a": {"state": 3}}
    assert [child.state for child in fresh.sub_extensions] == [1, None, 3]
    with pytest.raises(ValueError, match="no extension '1:a' to give a state to"):
        fresh.set_state({"1:a": {}})


def test_a_composite_of_nothing_is_never_called(make_loop):
    loop = make_loop(CompositeExtension([TrainingExtension()]))
    loop._prepare()

    assert not any(loop._handlers.values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda **keywords: Checkpoint("x", **keywords),
            "Checkpoint: 'keeplast' .*Did you mean 'keep_last'",
        ),
        (
            lambda **keywords: FinishAfter(**keywords),
            r"FinishAfter: 'keeplast' is neither an argument nor a trigger\. Known: after_batch",
        ),
        (
            lambda **keywords: EarlyStopping("cost", epochs=1, **keywords),
            "EarlyStopping: 'keeplast' ",
        ),
        (lambda **keywords: ProgressBar(**keywords), "ProgressBar: .*'keeplast'. Known: name, p"),
    ],
)
def test_an_unknown_keyword_is_refused_and_the_nearest_argument_is_named(make, message):
    with pytest.raises(TypeError, match=message):
        make(keeplast=3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EarlyStopping("cost", epoch=1), "EarlyStopping: 'epoch' .*mean 'epochs'"),
        (lambda: TrackTheBest("cost", choosebest=max), "mean 'choose_best'"),
        (lambda: TrackTheBest("cost", after_epok=True), "mean 'after_epoch'"),
        (lambda: TrackTheBest("cost", nme="x"), "mean 'name'"),
        (lambda: ProgressBar(second=1), "mean 'seconds'"),
        (lambda: FinishAfter().set_conditions(after_n_epoch=1), "no trigger.*'after_n_epochs'"),
    ],
)
def test_the_nearest_of_a_misspelt_keyword_is_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()


class Wider(TrackTheBest):
    def __init__(self, record_name, width=1, **rest):
        super().__init__(record_name, **rest)


def test_the_arguments_of_a_base_are_known_too():
    with pytest.raises(TypeError, match="Wider: 'choosebest' .*mean 'choose_best'"):
        Wider("cost", choosebest=max)
    with pytest.raises(TypeError, match="Wider: 'widht' .*mean 'width'"):
        Wider("cost", widht=2)
