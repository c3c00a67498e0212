"""Values over a data set and along with training, checked against numpy."""

import pickle
from collections import deque

import numpy
import pytest
from aesara import tensor
from numpy.testing import assert_allclose

from bricks import xla
from bricks.algorithms import UpdatesAlgorithm
from bricks.main_loop import MainLoop
from bricks.monitoring import MonitoredQuantity
from bricks.serialization import dump
from extensions import FinishAfter, TrainingExtension
from extensions.monitoring import DataStreamMonitoring, NonFiniteCost, TrainingDataMonitoring
from extensions.saveload import Checkpoint


class LargestError(MonitoredQuantity):
    def initialize(self):
        self.largest = 0.0

    def aggregate(self, error):
        self.largest = max(self.largest, float(numpy.abs(error).max()))

    def get_aggregated_value(self):
        return self.largest


class Batches(TrainingExtension):
    """Keeps the batches, and the weights before each of them."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights
        self.seen = []

    def before_batch(self, batch):
        self.seen.append((batch["x"].copy(), batch["y"].copy(), self.weights.get_value()))

    def errors(self):
        return [x @ weights - y for x, y, weights in self.seen]


def test_a_data_set_is_monitored_before_and_after_each_epoch(make_regression):
    task = make_regression()
    monitoring = DataStreamMonitoring([task.cost], task.stream, prefix="valid", suffix="set")
    loop = task.loop(monitoring, FinishAfter(after_n_epochs=2))
    loop.run()
    last = numpy.mean((task.x @ task.W.get_value() - task.y) ** 2)

    assert list(loop.log) == [0, 4, 8]
    assert_allclose(loop.log[0]["valid_cost_set"], numpy.mean(task.y**2), rtol=1e-5)
    assert_allclose(loop.log[8]["valid_cost_set"], last, rtol=1e-5)


def test_monitoring_the_training_stream_does_not_change_the_training(make_regression):
    alone, monitored = make_regression(), make_regression()
    alone.loop(FinishAfter(after_n_epochs=3)).run()
    extension = DataStreamMonitoring([monitored.cost], monitored.stream, every_n_batches=3)
    monitored.loop(extension, FinishAfter(after_n_epochs=3)).run()

    assert monitored.W.get_value().tobytes() == alone.W.get_value().tobytes()


def test_a_data_set_is_monitored_in_any_stream(make_regression):
    task = make_regression()

    class OldStream:
        def get_epoch_iterator(self, as_dict):
            return iter([{"x": task.x, "y": task.y}])

    loop = task.loop(DataStreamMonitoring([task.cost], OldStream()), FinishAfter(after_n_epochs=1))
    loop.run()

    assert_allclose(loop.log[0]["cost"], numpy.mean(task.y**2), rtol=1e-5)


def test_each_evaluation_is_an_epoch_of_its_own_also_in_a_resumed_run(make_regression):
    task = make_regression()
    epochs = []

    class Recording:
        sources = ("x", "y")

        def get_epoch_iterator(self, as_dict, epoch):
            epochs.append(epoch)
            return iter([{"x": task.x, "y": task.y}])

    monitoring = DataStreamMonitoring([task.cost], Recording())
    task.loop(monitoring, FinishAfter(after_n_epochs=2)).run()
    fresh = DataStreamMonitoring([task.cost], Recording())
    fresh.set_state(monitoring.get_state())
    fresh.main_loop = monitoring.main_loop
    fresh.do("after_epoch")

    assert epochs == [0, 1, 2, 3]


def test_a_state_about_other_variables_is_refused(make_regression):
    task = make_regression()
    monitoring = DataStreamMonitoring([task.cost], task.stream)

    with pytest.raises(ValueError, match="the state is about .*noise.* evaluating changes"):
        monitoring.set_state({"evaluations": 1, "variables": {"random/noise": numpy.zeros(2)}})


def test_training_is_monitored_before_each_step_by_the_mean_over_examples(make_regression):
    task = make_regression()
    batches = Batches(task.W)
    monitoring = TrainingDataMonitoring([task.cost], prefix="train")
    loop = task.loop(batches, monitoring, FinishAfter(after_n_epochs=2))
    loop.run()
    errors = batches.errors()

    assert list(loop.log) == [4, 8]
    assert_allclose(
        [loop.log[4]["train_cost"], loop.log[8]["train_cost"]],
        [numpy.mean(numpy.concatenate(part) ** 2) for part in (errors[:4], errors[4:])],
        rtol=1e-5,
    )


def test_training_values_begin_anew_after_each_record(make_regression):
    task = make_regression()
    batches = Batches(task.W)
    monitoring = TrainingDataMonitoring([task.cost], every_n_batches=1)
    loop = task.loop(batches, monitoring, FinishAfter(after_n_batches=6))
    loop.run()

    assert_allclose(
        [loop.log[time]["cost"] for time in range(1, 7)],
        [numpy.mean(error**2) for error in batches.errors()],
        rtol=1e-5,
    )


def test_two_triggers_after_one_batch_make_one_record(make_regression):
    task = make_regression()
    monitoring = TrainingDataMonitoring([task.cost], every_n_batches=2, after_epoch=True)
    loop = task.loop(monitoring, FinishAfter(after_n_epochs=1))
    loop.run()

    assert numpy.isfinite(loop.log[4]["cost"])


def test_blocks_trigger_before_training_is_taken_as_it_was_meant(make_regression):
    task = make_regression()
    monitoring = TrainingDataMonitoring([task.cost], before_training=True, after_epoch=True)
    loop = task.loop(monitoring, FinishAfter(after_n_epochs=1))
    loop.run()

    assert list(loop.log) == [4]


def test_quantities_in_python_see_the_values_of_every_batch(make_regression):
    task = make_regression()
    batches = Batches(task.W)
    quantity = LargestError([task.error], name="largest")
    monitoring = TrainingDataMonitoring([quantity, task.cost], prefix="train")
    loop = task.loop(batches, monitoring, FinishAfter(after_n_epochs=1))
    loop.run()

    expected = max(numpy.abs(error).max() for error in batches.errors())
    assert_allclose(loop.log[4]["train_largest"], expected, rtol=1e-5)
    assert list(loop.log[4])[:2] == ["train_largest", "train_cost"]


def test_quantities_in_python_compile_nothing_after_the_first_epoch(make_regression):
    task, finish = make_regression(), FinishAfter(after_n_epochs=1)
    loop = task.loop(TrainingDataMonitoring([LargestError([task.error])]), finish)
    loop.run()
    compilations = task.algorithm.function.num_compilations
    finish.extend(epochs=2)
    loop.run()

    assert task.algorithm.function.num_compilations == compilations


def monitored(task, finish):
    quantities = [task.cost, task.algorithm.total_gradient_norm, LargestError([task.error])]
    return task.loop(
        TrainingDataMonitoring(quantities),
        DataStreamMonitoring([task.cost], task.stream, prefix="valid"),
        FinishAfter(after_n_batches=finish),
    )


def rows(loop):
    return {time: dict(loop.log[time]) for time in loop.log}


@pytest.fixture(scope="module")
def rows_of_the_whole_run(make_regression):
    loop = monitored(make_regression(), finish=8)
    loop.run()
    return rows(loop)


@pytest.mark.parametrize("how", ["pickle", "restore"])
@pytest.mark.parametrize("stop", [1, 3, 4, 6])
def test_averages_of_a_run_that_is_resumed_within_an_epoch_are_the_same_bits(
    make_regression, rows_of_the_whole_run, tmp_path, stop, how
):
    stopped = monitored(make_regression(), finish=stop)
    stopped.run()
    if how == "pickle":
        again = pickle.loads(pickle.dumps(stopped))
        again.extensions[-1].set_conditions(after_n_batches=8)
    else:
        dump(stopped, tmp_path / "checkpoint.zip", save_main_loop=False)
        again = monitored(make_regression(), finish=8)
        again.restore(tmp_path / "checkpoint.zip")
    again.run()

    assert rows(again) == rows_of_the_whole_run


def test_an_algorithm_without_a_function_to_compute_more_is_refused(make_regression, make_loop):
    task = make_regression()

    with pytest.raises(TypeError, match="must be an `UpdatesAlgorithm`.*got Nothing"):
        make_loop(TrainingDataMonitoring([task.cost])).run()


def test_a_cost_that_is_not_finite_stops_training_and_names_where(make_regression):
    x = numpy.ones((20, 3), dtype="float32")
    x[13, 1] = 1e30
    task = make_regression(x)
    loop = task.loop(NonFiniteCost(), FinishAfter(after_n_epochs=1))

    with pytest.raises(FloatingPointError, match="The cost or a gradient is not finite, after"):
        loop.run()
    assert "first value that is not finite is" in loop.log.current_row["non_finite"]
    assert numpy.isfinite(task.W.get_value()).all()


def test_a_source_that_is_not_finite_is_named(make_regression):
    x = numpy.ones((20, 3), dtype="float32")
    x[13, 1] = numpy.nan
    loop = make_regression(x).loop(NonFiniteCost(), FinishAfter(after_n_epochs=1))

    with pytest.raises(FloatingPointError, match="Source 'x' of the batch is not finite"):
        loop.run()


def test_training_ends_as_usual_if_that_is_asked_for(make_regression):
    x = numpy.full((20, 3), 1e30, dtype="float32")
    task = make_regression(x)
    loop = task.loop(NonFiniteCost(finish=True), FinishAfter(after_n_epochs=1))
    loop.run()

    assert loop.status["iterations_done"] == 1
    assert loop.log[1]["training_finished"]
    assert numpy.isfinite(task.W.get_value()).all()


def test_a_finite_cost_trains_the_same_bits_with_and_without_the_watch(make_regression):
    with_watch, without = make_regression(), make_regression()
    with_watch.loop(NonFiniteCost(), FinishAfter(after_n_epochs=2)).run()
    without.loop(FinishAfter(after_n_epochs=2)).run()

    assert with_watch.W.get_value().tobytes() == without.W.get_value().tobytes()


def test_an_algorithm_without_a_cost_is_not_watched(make_loop):
    with pytest.raises(TypeError, match="must be a `GradientDescent`"):
        make_loop(NonFiniteCost()).run()


class TimeMajor:
    """Sequences with time first; the first batch has as many steps as examples."""

    def __init__(self, axis_labels):
        rng = numpy.random.RandomState(0)
        shapes = ((4, 4, 2), (9, 2, 2))
        self.axis_labels = axis_labels
        self.batches = [
            {"x": rng.rand(*shape).astype("float32"), "y": rng.rand(shape[1]).astype("float32")}
            for shape in shapes
        ]

    def get_epoch_iterator(self, as_dict):
        return iter(self.batches)

    def mean(self):
        products = [batch["x"].mean(axis=(0, 2)) * batch["y"] for batch in self.batches]
        return numpy.concatenate(products).mean()


def monitor_time_major(stream, monitoring):
    x, y = tensor.ftensor3("x"), tensor.fvector("y")
    cost = (x.mean(axis=(0, 2)) * y).mean()
    cost.name = "cost"
    total = xla.shared(numpy.float32(0), name="total")
    algorithm = UpdatesAlgorithm(updates=[(total, total + x.sum() * y.sum())])
    extension = monitoring(cost)
    loop = MainLoop(algorithm, stream, extensions=[extension, FinishAfter(after_n_epochs=1)])
    loop.run()
    return loop.log[2]["cost"]


MONITORING = [
    lambda cost: TrainingDataMonitoring([cost]),
    lambda cost: DataStreamMonitoring([cost], TimeMajor(AXES), before_first_epoch=False),
]
AXES = {"x": ("time", "batch", "feature"), "y": ("batch",)}


@pytest.mark.parametrize("monitoring", MONITORING, ids=["training", "data stream"])
def test_means_are_weighted_by_the_axis_that_the_stream_calls_batch(monitoring):
    stream = TimeMajor(AXES)

    assert_allclose(monitor_time_major(stream, monitoring), stream.mean(), rtol=1e-5)


def test_training_data_of_which_the_number_of_examples_is_not_clear_are_refused():
    with pytest.raises(ValueError, match=r"The mean of cost .*x has 9, y has 2"):
        monitor_time_major(TimeMajor(None), MONITORING[0])


def test_a_buffer_that_is_pickled_keeps_the_axes():
    x, y = tensor.ftensor3("x"), tensor.fvector("y")
    cost = (x.mean(axis=(0, 2)) * y).mean()
    cost.name = "cost"
    buffer = TrainingDataMonitoring([cost])._buffer.with_axis_labels(AXES)

    assert pickle.loads(pickle.dumps(buffer)).axis_labels == AXES


class ErrorsBeyond(MonitoredQuantity):
    """Counts what is beyond a limit, by a function, in a container of some class."""

    def __init__(self, limit, measure, container, **arguments):
        super().__init__(**arguments)
        self.limit = limit
        self.measure = measure
        self.container = container

    def initialize(self):
        self.seen = self.container()

    def aggregate(self, error):
        self.seen += self.container(e for e in error.tolist() if self.measure(e) > self.limit)

    def get_aggregated_value(self):
        return len(self.seen)


def loop_with_quantity(make_regression, container, limit, *extensions):
    task = make_regression()
    measure = lambda error: abs(error)  # noqa: E731  # of those that cannot be pickled
    quantity = ErrorsBeyond(limit, measure, container, requires=[task.error], name="beyond")
    return task.loop(TrainingDataMonitoring([quantity]), *extensions)


@pytest.mark.parametrize("container", [list, tuple])
def test_a_quantity_made_with_a_function_is_saved_and_goes_on(make_regression, tmp_path, container):
    path = tmp_path / "x.zip"
    whole = loop_with_quantity(make_regression, container, 0.5, FinishAfter(after_n_epochs=1))
    whole.run()
    checkpoint = Checkpoint(path, save_main_loop=False)
    finish = FinishAfter(after_n_batches=2)
    loop_with_quantity(make_regression, container, 0.5, finish, checkpoint).run()
    again = loop_with_quantity(make_regression, container, 0.5, FinishAfter(after_n_epochs=1))
    again.restore(path)
    again.run()

    assert again.log[4]["beyond"] == whole.log[4]["beyond"] > 0


def test_the_arguments_of_a_quantity_are_those_of_the_script(make_regression, tmp_path):
    path = tmp_path / "x.zip"
    checkpoint = Checkpoint(path, save_main_loop=False)
    finish = FinishAfter(after_n_batches=2)
    loop_with_quantity(make_regression, list, 0.5, finish, checkpoint).run()
    again = loop_with_quantity(make_regression, list, 99, FinishAfter(after_n_epochs=1))
    again.restore(path)

    assert again.extensions[0]._quantities.quantities[0].limit == 99


def test_a_quantity_that_cannot_be_saved_is_told_after_the_first_batch(make_regression, tmp_path):
    checkpoint = Checkpoint(tmp_path / "x.zip", save_main_loop=False)
    loop = loop_with_quantity(make_regression, deque, -1, FinishAfter(after_n_epochs=3), checkpoint)

    with pytest.raises(
        TypeError,
        match=r"beyond: .* `seen` \(deque\) has changed .*Let ErrorsBeyond override `get_state`",
    ):
        loop.run()
    assert loop.status["iterations_done"] == 1


def test_a_quantity_that_cannot_be_saved_is_no_matter_where_nothing_is_saved(make_regression):
    loop = loop_with_quantity(make_regression, deque, -1, FinishAfter(after_n_epochs=1))
    loop.run()

    assert loop.log[4]["beyond"] == 20
