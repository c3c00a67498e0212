"""Aggregates over data sets and along with training, against numpy over all examples."""

import logging
import pickle

import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.algorithms import GradientDescent, Scale, UpdatesAlgorithm
from bricks.monitoring import (
    AggregationBuffer,
    AggregationScheme,
    Aggregator,
    DatasetEvaluator,
    MonitoredQuantity,
    MonitoredQuantityBuffer,
    concatenate,
    maximum,
    mean,
    minimum,
    perplexity,
    take_last,
)
from bricks.roles import ALGORITHM_BUFFER, PARAMETER, add_role, has_roles

DATA = numpy.random.RandomState(3).normal(size=(10, 3)).astype("float32")


class Batches:
    """A stream of batches that counts its epochs."""

    def __init__(self, *batches):
        self.batches = batches
        self.epochs = []

    def get_epoch_iterator(self, as_dict=False, epoch=None):
        assert as_dict
        self.epochs.append(epoch)
        return iter(self.batches)


def cut(*sizes):
    """Cut the data into batches of these sizes."""
    ends = numpy.cumsum(sizes)
    parts = [DATA[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    return Batches(*[{"x": part} for part in parts])


def named(variable, name):
    variable.name = name
    return variable


@pytest.fixture
def x():
    return tensor.fmatrix("x")


def evaluate(variable, stream, **options):
    (value,) = DatasetEvaluator([variable], **options).evaluate(stream).values()
    return value


def test_the_default_mean_is_that_over_examples_however_they_are_cut(x):
    cost = named((x**2).mean(), "cost")

    uneven, even = evaluate(cost, cut(4, 4, 2)), evaluate(cost, cut(5, 5))

    assert uneven == pytest.approx((DATA.astype("float64") ** 2).mean(), rel=1e-6)
    assert uneven == pytest.approx(even, rel=1e-6)
    assert isinstance(uneven, float)


def test_the_mean_over_batches_is_there_on_request(x):
    cost = named((x**2).mean(), "cost")
    expected = numpy.mean([(part**2).mean() for part in (DATA[:4], DATA[4:8], DATA[8:])])

    assert evaluate(cost, cut(4, 4, 2), weighted=False) == pytest.approx(expected, rel=1e-6)
    assert evaluate(mean(cost, 1.0), cut(4, 4, 2)) == pytest.approx(expected, rel=1e-6)
    assert evaluate(mean(cost), cut(4, 4, 2)) == pytest.approx(expected, rel=1e-6)


def test_a_mean_of_what_has_axes_is_taken_element_by_element(x):
    columns = named(x.mean(axis=0), "columns")

    value = evaluate(columns, cut(4, 4, 2))

    numpy.testing.assert_allclose(value, DATA.mean(axis=0), rtol=1e-5)
    assert value.dtype == "float64"


def test_a_mean_of_integers_is_not_truncated():
    y = tensor.ivector("y")
    wrong = named(y.max(), "largest")
    stream = Batches(*[{"y": numpy.array([i], "int32")} for i in (1, 2)])

    assert evaluate(wrong, stream) == 1.5


def test_sums_and_counts_may_be_given(x):
    positive = named(mean((x * (x > 0)).sum(), (x > 0).sum()), "positive")

    value = evaluate(positive, cut(4, 4, 2))

    assert value == pytest.approx(DATA[DATA > 0].mean(dtype="float64"), rel=1e-6)


def test_perplexity_is_the_exponential_of_the_mean_over_elements(x):
    value = evaluate(named(perplexity((x**2).sum(), x.size), "perplexity"), cut(4, 4, 2))

    assert value == pytest.approx(numpy.exp((DATA.astype("float64") ** 2).mean()), rel=1e-6)


def test_the_last_value_is_taken_whatever_its_shape(x):
    rows = named(x.sum(axis=1), "rows")

    value = evaluate(take_last(rows), cut(4, 4, 2))

    numpy.testing.assert_allclose(value, DATA[8:].sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize(("scheme", "function"), [(minimum, numpy.min), (maximum, numpy.max)])
def test_extremes_of_scalars_and_of_elements(x, scheme, function):
    evaluator = DatasetEvaluator(
        [
            scheme(named(x.max(), "scalar")),
            scheme(named(x.mean(axis=0), "columns")),
            scheme(named(tensor.cast(x.shape[0], "int32"), "size")),
            scheme(named(x.max() > 2, "large")),
        ]
    )

    values = evaluator.evaluate(cut(4, 4, 2))

    parts = [DATA[:4], DATA[4:8], DATA[8:]]
    assert values["scalar"] == function([part.max() for part in parts])
    numpy.testing.assert_allclose(
        values["columns"], function([part.mean(axis=0) for part in parts], axis=0), rtol=1e-5
    )
    assert values["size"] == function([4, 4, 2])
    assert values["large"] == function([bool(part.max() > 2) for part in parts])


def test_values_are_concatenated_over_batches(x):
    rows = named(x.sum(axis=1), "rows")

    values = DatasetEvaluator([concatenate(rows)]).evaluate(cut(4, 4, 2))

    numpy.testing.assert_allclose(values["rows"], DATA.sum(axis=1), rtol=1e-5)


def test_a_scalar_cannot_be_concatenated(x):
    with pytest.raises(ValueError, match="Concatenate: .* is a scalar.*dimshuffle"):
        concatenate(x.sum())


def test_a_scheme_of_the_users_own_works(x):
    class Sum(AggregationScheme):
        def get_aggregator(self):
            total = xla.shared(numpy.float32(5), name="total")
            return Aggregator(
                aggregation_scheme=self,
                initialization_updates=[(total, tensor.zeros_like(total))],
                accumulation_updates=[(total, total + self.variable)],
                readout_variable=total,
            )

    total = named(x.sum(), "sum")
    total.tag.aggregation_scheme = Sum(total)

    assert evaluate(total, cut(5, 5)) == pytest.approx(DATA.sum(), rel=1e-5)


def test_what_depends_on_no_data_is_read_without_reading_the_stream():
    weight = xla.shared(numpy.array([3.0, 4.0], "float32"), name="W")
    stream = cut(10)

    value = evaluate(named((weight**2).sum(), "norm"), stream)

    assert value == 25
    assert stream.epochs == []


def test_two_epochs_do_not_disturb_each_other(x):
    evaluator = DatasetEvaluator([named(x.mean(), "mean"), concatenate(named(x[:, 0], "first"))])

    first, second = evaluator.evaluate(cut(4, 4, 2)), evaluator.evaluate(cut(4, 4, 2))

    assert first["mean"] == second["mean"]
    numpy.testing.assert_array_equal(first["first"], second["first"])


def test_the_epoch_can_be_chosen(x):
    stream = cut(10)

    DatasetEvaluator([named(x.mean(), "mean")]).evaluate(stream, epoch=7)

    assert stream.epochs == [7]


def test_values_come_in_the_order_of_the_variables(x):
    variables = [named(x.sum(), name) for name in "dbca"] + [concatenate(named(x[0], "aa"))]
    variables.insert(1, CountExamples([x]))

    values = DatasetEvaluator(variables).evaluate(cut(4, 4, 2))

    assert list(values) == ["d", "CountExamples", "b", "c", "a", "aa"]


def test_sources_that_nothing_depends_on_are_left_out(x):
    stream = Batches({"x": DATA, "y": numpy.zeros(10, "float32")})

    assert evaluate(named(x.mean(), "mean"), stream) == pytest.approx(DATA.mean(), rel=1e-5)


def test_updates_are_made_at_each_batch(x):
    count = xla.shared(numpy.int64(0), name="count")

    evaluate(named(x.mean(), "mean"), cut(4, 4, 2), updates=[(count, count + 1)])

    assert count.get_value() == 3


def test_noise_differs_from_batch_to_batch(x):
    noise = xla.RandomStream(seed=1, name="noise").normal(x.shape)
    noisy = concatenate(named((0 * x + noise)[:, 0], "noisy"))

    value = evaluate(noisy, cut(5, 5))

    assert not numpy.array_equal(value[:5], value[5:])


def test_random_keys_and_updated_variables_are_the_evaluators_state(x):
    noise = xla.RandomStream(seed=1, name="noise").normal(x.shape)
    count = xla.shared(numpy.int64(0), name="count")
    evaluator = DatasetEvaluator([named((x * noise).mean(), "noisy")], updates={count: count + 1})

    assert list(evaluator.get_state_variables()) == ["random/noise.0", "updates/count"]


def test_an_evaluator_goes_on_after_a_pickle(x):
    evaluator = DatasetEvaluator([named(x.mean(), "mean"), concatenate(named(x[:, 0], "first"))])
    first = evaluator.evaluate(cut(4, 4, 2))

    second = pickle.loads(pickle.dumps(evaluator)).evaluate(cut(4, 4, 2))

    assert first["mean"] == second["mean"]


def test_the_weight_is_the_number_of_examples_of_the_inputs_that_matter():
    x, y = tensor.fmatrix("x"), tensor.fvector("y")
    only_x = named(x.mean(), "only_x")
    both = named((x.mean(axis=1) * y).mean(), "both")
    stream = Batches(*[{"x": DATA[a:b], "y": DATA[a:b, 0]} for a, b in ((0, 4), (4, 8), (8, 10))])

    values = DatasetEvaluator([only_x, both]).evaluate(stream)

    assert values["only_x"] == pytest.approx(DATA.mean(), rel=1e-5)
    assert values["both"] == pytest.approx((DATA.mean(axis=1) * DATA[:, 0]).mean(), rel=1e-5)


def time_major():
    x, y = tensor.fmatrix("x"), tensor.fvector("y")
    cost = named((x.mean(axis=0) * y).mean(), "cost")
    stream = Batches(*[{"x": DATA[a:b].T, "y": DATA[a:b, 0]} for a, b in ((0, 8), (8, 10))])
    return cost, stream


def test_inputs_that_do_not_agree_about_the_number_are_refused_with_the_ways_out():
    cost, stream = time_major()

    with pytest.raises(
        ValueError, match="mean of cost cannot be weighted.*x has 3, y has 8.*False"
    ):
        evaluate(cost, stream)


def test_the_source_that_tells_the_number_can_be_named():
    cost, stream = time_major()

    value = evaluate(cost, stream, weighted="y")

    assert value == pytest.approx((DATA.mean(axis=1) * DATA[:, 0]).mean(), rel=1e-5)


def test_a_source_that_tells_the_number_must_be_an_input(x):
    with pytest.raises(ValueError, match="`weighted` must be.*got 'y'. Known: x"):
        DatasetEvaluator([named(x.mean(), "mean")], weighted="y")


def test_scalars_do_not_tell_the_number(x):
    cost = named(x.mean() * tensor.fscalar("scale"), "cost")
    stream = Batches({"x": DATA[:8], "scale": 2.0}, {"x": DATA[8:], "scale": 2.0})

    assert evaluate(cost, stream) == pytest.approx(2 * DATA.mean(), rel=1e-5)


def test_a_mean_of_100000_batches_keeps_its_digits(x):
    evaluator = DatasetEvaluator([named(x.mean(), "mean")])
    evaluator.initialize_aggregators()
    evaluator.process_batch({"x": DATA[:1]})
    # As if there had been 99,900 batches of 1 with the mean 0.1; then come 100 others.
    numerator, denominator = (target for target, _ in evaluator.buffer.accumulation_updates)
    numerator.set_value(numpy.float64(9990.0))
    denominator.set_value(numpy.float64(99900.0))
    for _ in range(100):
        evaluator.process_batch({"x": numpy.full((1, 3), 1e-3, "float32")})

    value = evaluator.get_aggregated_values()["mean"]

    assert value == pytest.approx((9990.0 + 0.1) / 100000, rel=1e-8)
    assert denominator.get_value() == 100000


def test_monitoring_does_not_complain_about_its_own_float64(x, caplog):
    # A name of its own: what was reported once in this process is not reported again.
    with caplog.at_level(logging.WARNING):
        evaluate(named(x.mean(), "reported"), cut(5, 5))

    assert caplog.messages == []


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_backends_agree(x, backend, monkeypatch):
    from bricks.config import config

    monkeypatch.setattr(config, "backend", backend)
    variables = [
        named(x.mean(), "mean"),
        named(x.mean(axis=0), "columns"),
        maximum(named(x.max(), "max")),
        concatenate(named(x[:, 0], "first")),
    ]

    values = DatasetEvaluator(variables).evaluate(cut(4, 4, 2))

    assert values["mean"] == pytest.approx(DATA.mean(), rel=1e-5)
    numpy.testing.assert_allclose(values["columns"], DATA.mean(axis=0), rtol=1e-5)
    assert values["max"] == DATA.max()
    numpy.testing.assert_array_equal(values["first"], DATA[:, 0])


@pytest.mark.parametrize("owner", [AggregationBuffer, DatasetEvaluator])
def test_names_are_needed_and_unique(x, owner):
    with pytest.raises(ValueError, match=rf"{owner.__name__}: everything monitored needs a name"):
        owner([x[0, 0] + 1])
    with pytest.raises(ValueError, match="'mean' is in positions 0 and 1. Rename one"):
        owner([named(x.mean(), "mean"), named(x.sum(), "mean")])


def test_what_is_no_variable_is_refused():
    with pytest.raises(TypeError, match="got <class .*CountExamples'> in position 0"):
        DatasetEvaluator([CountExamples])


def test_a_batch_before_initialization_is_refused(x):
    evaluator = DatasetEvaluator([named(x.mean(), "mean")])

    with pytest.raises(RuntimeError, match="call `initialize_aggregators` before `process_batch`"):
        evaluator.process_batch({"x": DATA})
    with pytest.raises(RuntimeError, match="call `initialize_aggregators`, then process batches"):
        evaluator.get_aggregated_values()
    with pytest.raises(RuntimeError, match="AggregationBuffer: call `initialize_aggregators`"):
        AggregationBuffer([named(x.mean(), "mean")]).get_aggregated_values()


def test_an_empty_stream_is_refused(x):
    with pytest.raises(ValueError, match="there was no batch, so mean cannot be computed"):
        evaluate(named(x.mean(), "mean"), Batches())


def test_a_missing_source_is_refused_with_the_nearest(x):
    with pytest.raises(ValueError, match="DatasetEvaluator: the graph has an input 'x'.* Known: y"):
        evaluate(named(x.mean(), "mean"), Batches({"y": DATA}))


def test_a_shape_that_changes_is_explained(x):
    rows = named(x.sum(axis=1), "rows")

    with pytest.raises(xla.GraphError) as caught:
        evaluate(rows, cut(4, 4, 2))

    assert "rows must have one shape on all batches" in caught.value.__notes__[-1]


class CountExamples(MonitoredQuantity):
    def initialize(self):
        self.count = 0

    def aggregate(self, x):
        self.count += len(x)

    def get_aggregated_value(self):
        return self.count


def test_a_quantity_is_computed_in_python_from_what_it_requires(x):
    assert evaluate(CountExamples([x], name="count"), cut(4, 4, 2)) == 10


def test_a_quantity_that_requires_nothing_sees_each_batch():
    class CountBatches(CountExamples):
        def aggregate(self):
            self.count += 1

    assert evaluate(CountBatches(), cut(4, 4, 2)) == 3


def test_quantities_share_what_they_require(x):
    y = x * 2
    buffer = MonitoredQuantityBuffer(
        [CountExamples([x], "a"), CountExamples([y], "b"), CountExamples([x], "c")]
    )
    assert buffer.requires == [x, y]

    buffer.initialize_quantities()
    buffer.aggregate_quantities([DATA[:4], DATA[:2]])

    assert buffer.get_aggregated_values() == {"a": 4, "b": 2, "c": 4}


def test_the_state_of_quantities_can_be_put_into_others(x):
    first, second = (MonitoredQuantityBuffer([CountExamples([x])]) for _ in range(2))
    first.initialize_quantities()
    first.aggregate_quantities([DATA])

    second.set_state(first.get_state())

    assert second.get_aggregated_values() == {"CountExamples": 10}
    with pytest.raises(ValueError, match="must have the quantities CountExamples; got other"):
        second.set_state({"other": {}})


def test_quantities_have_to_be_initialized(x):
    buffer = MonitoredQuantityBuffer([CountExamples([x])])

    with pytest.raises(RuntimeError, match="call `initialize_quantities` before"):
        buffer.get_aggregated_values()


def training(x, variables=None, **options):
    """Make training of ``mean(x W)`` that is monitored along the way."""
    weight = xla.shared(numpy.ones(3, "float32"), name="W")
    add_role(weight, PARAMETER)
    cost = named((x * weight).mean(), "cost")
    norm = named((weight**2).sum(), "norm")
    buffer = AggregationBuffer([cost, norm, *(variables or ())], use_take_last=True, **options)
    algorithm = GradientDescent(cost=cost, step_rule=Scale(1.0))
    algorithm.add_updates(buffer.accumulation_updates)
    buffer.initialize_aggregators()
    algorithm.initialize()
    return algorithm, buffer, weight


def test_values_along_with_training_are_those_before_the_step(x):
    algorithm, buffer, weight = training(x)
    expected, norms = [], []
    for part in (DATA[:4], DATA[4:8], DATA[8:]):
        before = weight.get_value().astype("float64")
        expected.append((part * before).mean() * len(part))
        norms.append((before**2).sum())
        algorithm.process_batch({"x": part})

    values = buffer.get_aggregated_values()

    assert values["cost"] == pytest.approx(sum(expected) / 10, rel=1e-5)
    assert values["norm"] == pytest.approx(norms[-1], rel=1e-6)


def test_a_cost_that_is_not_finite_is_seen_where_the_step_is_held(x):
    weight = xla.shared(numpy.float32(1), name="W")
    cost = named((tensor.log(x) * weight).mean(), "cost")
    buffer = AggregationBuffer([cost])
    buffer.initialize_aggregators()
    algorithm = GradientDescent(cost=cost, parameters=[weight])
    algorithm.add_updates(buffer.accumulation_updates)
    algorithm.hold_on_non_finite()
    algorithm.initialize()

    algorithm.process_batch({"x": numpy.ones((2, 2), "float32")})
    assert buffer.get_aggregated_values()["cost"] == 0
    algorithm.process_batch({"x": -numpy.ones((2, 2), "float32")})

    assert weight.get_value() == 1
    assert numpy.isnan(buffer.get_aggregated_values()["cost"])


def test_what_depends_on_no_data_is_read_after_the_step_unless_taken_along(x):
    weight = xla.shared(numpy.float32(1), name="W")
    buffer = AggregationBuffer([named(weight * 1, "copy")])
    algorithm = UpdatesAlgorithm([(weight, weight + 1), *buffer.accumulation_updates])
    algorithm.initialize()
    buffer.initialize_aggregators()
    algorithm.process_batch({})

    assert buffer.get_aggregated_values() == {"copy": 2}


def test_accumulators_begin_anew(x):
    algorithm, buffer, _ = training(x, [named(x.mean(axis=0), "columns")])
    algorithm.process_batch({"x": DATA[:4]})
    buffer.initialize_aggregators()
    algorithm.process_batch({"x": DATA[4:8]})

    numpy.testing.assert_allclose(
        buffer.get_aggregated_values()["columns"], DATA[4:8].mean(axis=0), rtol=1e-5
    )


def test_accumulators_are_state_of_the_algorithm(x):
    algorithm, buffer, _ = training(x)

    state = algorithm.get_state_variables()

    assert [name for name in state if "monitoring" in name] == [
        "algorithm/updates/monitoring/cost.numerator",
        "algorithm/updates/monitoring/cost.denominator",
        "algorithm/updates/monitoring/norm.last",
    ]
    assert all(has_roles(target, [ALGORITHM_BUFFER]) for target, _ in buffer.accumulation_updates)


def test_a_run_restored_in_the_middle_of_an_epoch_logs_the_same_averages(x):
    parts = [{"x": part} for part in (DATA[:4], DATA[4:8], DATA[8:])]
    variables = [named(x.mean(axis=0), "columns"), maximum(named(x.max(axis=1).sum(), "max"))]
    algorithm, buffer, weight = training(x, variables)
    algorithm.process_batch(parts[0])
    saved = {k: v.get_value() for k, v in algorithm.get_state_variables().items()}
    saved_weight = weight.get_value()

    y = tensor.fmatrix("x")
    variables = [named(y.mean(axis=0), "columns"), maximum(named(y.max(axis=1).sum(), "max"))]
    other, other_buffer, other_weight = training(y, variables)
    for name, variable in other.get_state_variables().items():
        variable.set_value(saved[name])
    other_weight.set_value(saved_weight)
    for continued in (algorithm, other):
        for part in parts[1:]:
            continued.process_batch(part)

    ours, theirs = buffer.get_aggregated_values(), other_buffer.get_aggregated_values()
    numpy.testing.assert_equal(ours, theirs)


def test_a_pickled_training_goes_on_with_its_averages(x):
    algorithm, buffer, _ = training(x)
    algorithm.process_batch({"x": DATA[:4]})

    copies = pickle.loads(pickle.dumps((algorithm, buffer)))
    for continued in (algorithm, copies[0]):
        continued.process_batch({"x": DATA[4:8]})

    assert copies[1].get_aggregated_values() == buffer.get_aggregated_values()


def test_two_buffers_of_the_same_names_have_a_state_each(x):
    algorithm = UpdatesAlgorithm([])
    for _ in range(2):
        buffer = AggregationBuffer([named(x.mean(), "mean")])
        algorithm.add_updates(buffer.accumulation_updates)

    assert list(algorithm.get_state_variables()) == [
        "algorithm/updates/monitoring/mean.numerator",
        "algorithm/updates/monitoring/mean.denominator",
        "algorithm/updates/monitoring/mean.numerator_2",
        "algorithm/updates/monitoring/mean.denominator_2",
    ]


def test_monitoring_compiles_the_training_function_once(x):
    algorithm, buffer, _ = training(
        x, [named(x.mean(axis=0), "columns"), take_last(named(x.sum(axis=1), "rows"))]
    )
    for _ in range(3):
        algorithm.process_batch({"x": DATA[:4]})

    assert algorithm.function.num_compilations == 1


def test_monitoring_does_not_change_the_random_numbers_of_training(x):
    def trained(monitored):
        z = tensor.fmatrix("x")
        noise = xla.RandomStream(seed=1, name="noise").normal(z.shape[1:])
        total = xla.shared(numpy.zeros(3, "float32"), name="total")
        columns = named(z.mean(axis=0) * noise, "columns")
        algorithm = UpdatesAlgorithm([(total, total + columns)])
        if monitored:
            algorithm.add_updates(AggregationBuffer([columns]).accumulation_updates)
        algorithm.initialize()
        for _ in range(2):
            algorithm.process_batch({"x": DATA})
        return total.get_value()

    numpy.testing.assert_array_equal(trained(False), trained(True))


def test_values_cannot_be_concatenated_along_with_training(x):
    with pytest.raises(
        ValueError, match="rows is aggregated by Concatenate.*only `DatasetEvaluator`"
    ):
        AggregationBuffer([concatenate(named(x.sum(axis=1), "rows"))])


def test_a_mean_without_a_batch_is_not_a_number(x):
    buffer = AggregationBuffer([named(x.mean(), "mean")])
    buffer.initialize_aggregators()

    assert numpy.isnan(buffer.get_aggregated_values()["mean"])
