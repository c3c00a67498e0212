from collections import OrderedDict

import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.monitoring import AggregationBuffer
from bricks.state import get_state, named_extensions, parameter_path, set_state
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ShuffledScheme
from fuel_data.streams import DataStream

WEIGHTS = "/mlp/linear_0.W"
VELOCITY = "algorithm/step_rule.velocity[/mlp/linear_0.W]"


class Variables:
    """Stands for a model and for an algorithm: they only have to name their variables."""

    def __init__(self, seed):
        rng = numpy.random.default_rng(seed)

        def named(*names):
            values = rng.standard_normal((len(names), 2, 3)).astype("float32")
            variables = [xla.shared(v, name=n) for n, v in zip(names, values, strict=True)]
            return OrderedDict(zip(names, variables, strict=True))

        self.parameters = named(WEIGHTS, "/mlp/linear_1.W")
        self.persistent = named("/mlp/bn.mean")
        self.state = named(VELOCITY, "algorithm/step_rule.learning_rate")

    def get_parameter_dict(self):
        return self.parameters

    def get_persistent_dict(self):
        return self.persistent

    def get_state_variables(self):
        return self.state


class Part:
    """Stands for a log, an extension, a stream or its iterator."""

    def __init__(self, name="part", state=None):
        self.name, self.state = name, state or {}
        self.epochs_begun = 0

    def get_state(self):
        return self.state

    def set_state(self, state):
        self.state = state

    def digest(self):
        return self.name

    def get_epoch_iterator(self, as_dict=False, epoch=None):
        return Part(f"iterator of epoch {epoch}")


class Loop:
    def __init__(self, seed=0, extensions=(), iterator=None):
        self.model = self.algorithm = Variables(seed)
        self.log = Part("log", {"rows": seed})
        self.data_stream = Part("stream")
        self.epoch_iterator = iterator
        self.extensions = list(extensions)


def values(loop):
    state = get_state(loop)
    return {
        name: array
        for part in ("parameters", "persistent", "algorithm")
        for name, array in state[part].items()
    }


def test_the_state_has_every_value_by_its_name():
    loop = Loop()

    state = get_state(loop)

    assert list(state) == ["parameters", "persistent", "algorithm", "log", "extensions", "stream"]
    assert list(state["parameters"]) == [WEIGHTS, "/mlp/linear_1.W"]
    assert list(state["algorithm"]) == [VELOCITY, "algorithm/step_rule.learning_rate"]
    numpy.testing.assert_array_equal(
        state["persistent"]["/mlp/bn.mean"], loop.model.persistent["/mlp/bn.mean"].get_value()
    )


def test_the_state_is_a_copy():
    loop = Loop()
    state = get_state(loop)

    state["parameters"][WEIGHTS][...] = 7

    assert not (loop.model.parameters[WEIGHTS].get_value() == 7).any()


def test_a_loop_that_gets_the_state_of_another_has_the_same_bits():
    first, second = Loop(0, [Part("a", {"best": 1.5})]), Loop(1, [Part("a", {"best": None})])

    set_state(second, get_state(first))

    for name, value in values(first).items():
        assert values(second)[name].tobytes() == value.tobytes()
    assert second.extensions[0].state == {"best": 1.5}
    assert second.log.state == {"rows": 0}


def test_an_accumulator_whose_shape_the_first_batch_gives_takes_that_of_the_state():
    features = tensor.fmatrix("features")
    columns = features.mean(axis=0).copy(name="columns")
    first, second = Loop(0), Loop(0)
    for loop in (first, second):
        pairs = AggregationBuffer([columns]).accumulation_updates
        loop.algorithm.state = OrderedDict((target.name, target) for target, _ in pairs)
    mean = first.algorithm.state["monitoring/columns.numerator"]
    mean.set_value(numpy.arange(3.0))

    set_state(second, get_state(first))

    restored = second.algorithm.state["monitoring/columns.numerator"].get_value()
    numpy.testing.assert_array_equal(restored, [0, 1, 2])


def test_only_the_parts_that_are_asked_for_are_restored():
    first, second = Loop(0), Loop(1)
    before = values(second)

    set_state(second, get_state(first), parts=["parameters"])

    numpy.testing.assert_array_equal(values(second)[WEIGHTS], values(first)[WEIGHTS])
    numpy.testing.assert_array_equal(values(second)[VELOCITY], before[VELOCITY])
    assert second.log.state == {"rows": 1}


def test_an_unknown_part_is_refused_and_the_nearest_is_named():
    with pytest.raises(ValueError, match="no part 'parameter' .* 'parameters'"):
        set_state(Loop(), get_state(Loop()), parts=["parameter"])
    with pytest.raises(ValueError, match="the state has no 'log'; it has parameters"):
        set_state(Loop(), {"parameters": {}}, parts=["log"])


def changed_state():
    state = get_state(Loop(0, [Part("gone", {"best": 1})]))
    state["parameters"]["/mlp/linear_9.W"] = state["parameters"].pop("/mlp/linear_1.W")
    state["parameters"][WEIGHTS] = numpy.zeros((2, 4), "float32")
    state["algorithm"][VELOCITY] = numpy.zeros((2, 3), "float64")
    return state


def test_everything_that_does_not_fit_is_in_one_error_and_nothing_is_changed():
    loop = Loop(1)
    before = values(loop)

    with pytest.raises(ValueError, match="does not fit") as error:
        set_state(loop, changed_state())

    assert str(error.value) == (
        "the state does not fit the main loop, and nothing was changed:\n"
        "  missing in the state: /mlp/linear_1.W\n"
        "  not in the main loop: /mlp/linear_9.W, extensions/gone\n"
        f"  of another shape or dtype: {WEIGHTS} (float32 of shape (2, 4) in the state, float32 of "
        f"shape (2, 3) in the main loop), {VELOCITY} (float64 of shape (2, 3) in the state, "
        "float32 of shape (2, 3) in the main loop)\n"
        "Name in `ignore` what shall stay as it is in the main loop ('*' stands for any text), or "
        "build the main loop as it was."
    )
    for name, value in before.items():
        numpy.testing.assert_array_equal(values(loop)[name], value)


def test_what_is_ignored_stays_as_it_is():
    loop = Loop(1)
    before = values(loop)

    set_state(loop, changed_state(), ignore=["/mlp/linear_*", VELOCITY, "extensions/gone"])

    numpy.testing.assert_array_equal(values(loop)[WEIGHTS], before[WEIGHTS])
    numpy.testing.assert_array_equal(values(loop)[VELOCITY], before[VELOCITY])
    numpy.testing.assert_array_equal(values(loop)["/mlp/bn.mean"], values(Loop(0))["/mlp/bn.mean"])


def test_a_name_to_ignore_that_nothing_has_is_refused():
    with pytest.raises(ValueError, match="nothing is called '/mlp/linear_0.w'.*'/mlp/linear_0.W'"):
        set_state(Loop(), get_state(Loop()), ignore="/mlp/linear_0.w")


def test_extensions_without_state_may_come_and_go():
    first, second = Loop(0, [Part("printing")]), Loop(1, [Part("progress")])

    set_state(second, get_state(first))

    assert second.extensions[0].state == {}


def test_extensions_of_one_name_are_numbered():
    loop = Loop(0, [Part("a", {"n": 1}), Part("b"), Part("a", {"n": 2}), Part("a", {"n": 3})])

    assert list(named_extensions(loop)) == ["a", "b", "a#2", "a#3"]
    assert get_state(loop)["extensions"]["a#3"] == {"n": 3}


def test_the_position_in_the_middle_of_an_epoch_is_restored():
    first, second = Loop(0, iterator=Part("iterator", {"epoch": 4, "index": 3})), Loop(1)
    first.data_stream.epochs_begun = 6

    set_state(second, get_state(first), parts=["stream"])

    assert second.epoch_iterator.name == "iterator of epoch 4"
    assert second.epoch_iterator.state == {"epoch": 4, "index": 3}
    assert second.data_stream.epochs_begun == 6


def test_between_epochs_the_stream_is_put_before_the_next_one():
    first, second = Loop(0), Loop(1, iterator=Part("iterator"))
    first.data_stream.epochs_begun = 2

    set_state(second, get_state(first), parts=["stream"])

    assert second.epoch_iterator is None
    assert second.data_stream.epochs_begun == 2


def shuffled():
    dataset = IndexableDataset({"x": numpy.arange(10)})
    return DataStream(dataset, ShuffledScheme(10, 2, rng=numpy.random.RandomState(4)))


def orders(stream, num_epochs):
    return [[x.tolist() for (x,) in stream] for _ in range(num_epochs)]


def test_between_epochs_generators_that_were_handed_in_stay_where_they_are():
    expected = orders(shuffled(), 3)
    first, second = Loop(0), Loop(5)
    first.data_stream, second.data_stream = shuffled(), shuffled()
    first.epoch_iterator = second.epoch_iterator = None
    orders(first.data_stream, 1)

    set_state(second, get_state(first), parts=["stream"])

    assert orders(second.data_stream, 2) == expected[1:]


def test_generators_of_a_loop_that_refuses_its_state_stay_where_they_are():
    first, second = Loop(0), LoopThatRefuses("log")
    first.data_stream, second.data_stream = shuffled(), shuffled()
    first.epoch_iterator = second.epoch_iterator = None
    orders(first.data_stream, 1)

    with pytest.raises(ValueError):
        set_state(second, get_state(first), parts=["stream", "log"])

    assert orders(second.data_stream, 2) == orders(shuffled(), 2)


def test_another_pipeline_is_refused_between_epochs():
    other = Loop(1)
    other.data_stream.name = "other"

    with pytest.raises(ValueError, match="pipeline stream, the main loop's stream is of other"):
        set_state(other, get_state(Loop(0)), parts=["stream"])


def test_a_variable_of_two_parts_is_saved_in_the_first():
    loop = Loop()
    loop.algorithm.state["algorithm/target"] = loop.model.persistent["/mlp/bn.mean"]

    assert "algorithm/target" not in get_state(loop)["algorithm"]


def test_without_a_model_the_parameters_of_the_algorithm_are_named():
    loop = Loop()
    loop.model = None
    loop.algorithm.parameters = [xla.shared(numpy.zeros(2), name="W")]

    assert list(get_state(loop)["parameters"]) == ["W"]


def test_two_parameters_of_one_name_are_refused():
    loop = Loop()
    loop.model = None
    loop.algorithm.parameters = [xla.shared(numpy.zeros(2), name="W") for _ in range(2)]

    with pytest.raises(ValueError, match="two parameters are called 'W'"):
        get_state(loop)


def test_a_parameter_without_brick_and_name_is_refused():
    with pytest.raises(ValueError, match=r"shape \(2,\) belongs to no brick and has no name"):
        parameter_path(xla.shared(numpy.zeros(2)))


def test_values_that_were_lost_on_the_device_are_refused(monkeypatch):
    loop = Loop()
    lost = loop.model.parameters[WEIGHTS]
    monkeypatch.setattr(xla, "state_is_lost", lambda variables: lost in variables, raising=False)

    with pytest.raises(xla.DonatedStateLost, match=f"values of {WEIGHTS} were lost.*checkpoint"):
        get_state(loop)


class Refusing(Part):
    """Refuses every state that it is given but its own."""

    def set_state(self, state):
        if state != self.state:
            raise ValueError(f"{self.name} refuses its state")


class LoopThatRefuses(Loop):
    """With a log, an extension or a stream that refuses its state."""

    def __init__(self, who):
        kinds = [Refusing if who == name else Part for name in ("log", "extension", "iterator")]
        log, extension, iterator = kinds
        super().__init__(1, [Part("first", {"n": 1}), extension("second", {"n": 1})])
        self.epoch_iterator = Part("iterator", {"epoch": 0, "index": 1})
        self.log = log("log", {"rows": 1})
        self.data_stream.get_epoch_iterator = lambda as_dict, epoch: self._open(iterator)

    def _open(self, kind):
        self.data_stream.epochs_begun = 99
        return kind("iterator")


@pytest.mark.parametrize("who", ["log", "second", "iterator"])
def test_a_loop_one_of_whose_parts_refuses_its_state_stays_as_it_was(who):
    first = Loop(0, [Part("first", {"n": 5}), Part("second", {"n": 5})])
    first.epoch_iterator = Part("iterator", {"epoch": 4, "index": 3})
    loop = LoopThatRefuses({"second": "extension"}.get(who, who))
    before, arrays = get_state(loop), values(loop)

    with pytest.raises(ValueError, match=f"{who} refuses its state"):
        set_state(loop, get_state(first))

    after = get_state(loop)
    for part in ("log", "extensions", "stream"):
        assert after[part] == before[part]
    for name, array in values(loop).items():
        numpy.testing.assert_array_equal(array, arrays[name])


def test_a_loop_that_refuses_nothing_takes_it_all():
    first = Loop(0, [Part("first", {"n": 5}), Part("second", {"n": 5})])
    first.epoch_iterator = Part("iterator", {"epoch": 4, "index": 3})
    loop = LoopThatRefuses(None)
    set_state(loop, get_state(first))

    assert loop.log.state == {"rows": 0}
    assert loop.epoch_iterator.state == {"epoch": 4, "index": 3}
    assert [extension.state for extension in loop.extensions] == [{"n": 5}, {"n": 5}]
    numpy.testing.assert_array_equal(values(loop)[WEIGHTS], values(first)[WEIGHTS])
