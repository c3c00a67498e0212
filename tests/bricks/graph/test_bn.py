import numpy
import pytest
from aesara import scan, tensor

from bricks import Tanh, xla
from bricks.bn import BatchNormalization, BatchNormalizedMLP
from bricks.filter import VariableFilter
from bricks.graph import (
    ComputationGraph,
    apply_batch_normalization,
    apply_dropout,
    batch_normalization,
    get_batch_normalization_updates,
)
from bricks.initialization import IsotropicGaussian
from bricks.roles import (
    BATCH_NORM_DIVISOR,
    BATCH_NORM_MINIBATCH_ESTIMATE,
    BATCH_NORM_OFFSET,
    BATCH_NORM_POPULATION_STATISTICS,
    INPUT,
)

X = tensor.matrix("x")
VALUES = numpy.random.RandomState(0).standard_normal((6, 3)).astype("float32")


def make_mlp(**options):
    mlp = BatchNormalizedMLP(
        [Tanh(), None], [3, 4, 2], weights_init=IsotropicGaussian(1), seed=1, **options
    )
    mlp.initialize()
    return mlp


def normalize(x):
    return (x - x.mean(axis=0)) / numpy.sqrt(x.var(axis=0) + 1e-4)


def test_both_ways_to_the_graph_for_training_lead_to_the_same():
    mlp = make_mlp()
    graph = ComputationGraph(mlp.apply(X))
    with batch_normalization(mlp):
        applied = mlp.apply(X)
    derived = apply_batch_normalization(graph)

    first, second = xla.function([X], [applied, derived.outputs[0]])(VALUES)

    weights = [layer.W.get_value().astype("float64") for layer in mlp.linear_transformations]
    expected = normalize(numpy.tanh(normalize(VALUES @ weights[0])) @ weights[1])
    numpy.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_array_equal(first, second)
    assert derived.outputs[0].name == graph.outputs[0].name
    # The graph that was given, and the bricks, stay as they were.
    assert VariableFilter(roles=[BATCH_NORM_MINIBATCH_ESTIMATE])(graph.variables) == []
    assert apply_batch_normalization(derived) is derived


def test_statistics_of_the_batch_are_paired_with_those_of_the_population():
    mlp = make_mlp()
    graph = apply_batch_normalization(ComputationGraph(mlp.apply(X)))
    pairs = get_batch_normalization_updates(graph)

    found = xla.function([X], [batch for _, batch in pairs])(VALUES)

    first, second = mlp.normalizations
    assert [population for population, _ in pairs] == [*first.persistent, *second.persistent]
    hidden = VALUES.astype("float64") @ mlp.linear_transformations[0].W.get_value()
    numpy.testing.assert_allclose(found[0], hidden.mean(axis=0), rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(found[1], numpy.sqrt(hidden.var(axis=0) + 1e-4), rtol=1e-5)
    assert [batch.dtype for batch in found] == ["float32"] * 4


def test_statistics_follow_the_graph_that_they_are_asked_of():
    mlp = make_mlp()
    graph = apply_batch_normalization(ComputationGraph(mlp.apply(X)))
    inputs = VariableFilter(roles=[INPUT], bricks=mlp.linear_transformations[1:])(graph.variables)
    dropped = apply_dropout(graph, inputs, 0.5, seed=1)
    updates = get_batch_normalization_updates(dropped)
    before = get_batch_normalization_updates(graph)

    of_second, plain = xla.function([X], [updates[2][1], before[2][1]])(VALUES)

    assert numpy.abs(of_second - plain).max() > 1e-3


def test_statistics_have_roles_in_both_modes():
    brick = BatchNormalization(3)
    graph = ComputationGraph(brick.apply(X))
    training = apply_batch_normalization(graph)

    for one in (graph, training):
        for role in (BATCH_NORM_OFFSET, BATCH_NORM_DIVISOR):
            (found,) = VariableFilter(roles=[role], bricks=[brick])(one.variables)
            assert found.ndim == 2
    population = VariableFilter(roles=[BATCH_NORM_POPULATION_STATISTICS])
    assert population(graph.variables) == brick.persistent
    assert population(training.variables) == []


def test_only_the_mean_is_updated_where_only_the_mean_is_used():
    brick = BatchNormalization(3, mean_only=True)
    with brick:
        graph = ComputationGraph(brick.apply(X))

    assert [one for one, _ in get_batch_normalization_updates(graph)] == [brick.population_mean]


def test_a_mask_stays_where_it_was():
    brick = BatchNormalization(3)
    brick.initialize()
    mask = tensor.vector("mask")
    graph = apply_batch_normalization(ComputationGraph(brick.apply(X, mask)))
    ones = numpy.array([1, 1, 1, 1, 0, 0], "float32")

    value = xla.function([X, mask], graph.outputs[0])(VALUES, ones)

    numpy.testing.assert_allclose(value[:4], normalize(VALUES[:4]), rtol=1e-4, atol=1e-5)
    numpy.testing.assert_array_equal(value[4:], 0)


def test_bricks_below_are_found_and_set_back_even_after_an_error():
    mlp = make_mlp()
    with pytest.raises(KeyError), batch_normalization(mlp):
        raise KeyError

    with pytest.raises(ValueError, match="no batch normalization in the mode of training was fou"):
        get_batch_normalization_updates(ComputationGraph(mlp.apply(X)))


def test_a_brick_that_is_applied_twice_has_two_statistics():
    brick = BatchNormalization(3, name="twice")
    with brick:
        graph = ComputationGraph(brick.apply(brick.apply(X)))

    with pytest.raises(ValueError, match="/twice is applied several times.*allow_duplicates=True"):
        get_batch_normalization_updates(graph)
    pairs = get_batch_normalization_updates(graph, allow_duplicates=True)
    assert [population for population, _ in pairs] == brick.persistent * 2


def test_a_brick_in_the_step_of_a_loop_is_refused():
    brick = BatchNormalization(3, name="inside")
    brick.allocate()
    steps, _ = scan(lambda x: brick.apply(x), sequences=[tensor.tensor3("xs")])

    with pytest.raises(ValueError, match="/inside is applied in the step of a loop.*LayerNormali"):
        apply_batch_normalization(ComputationGraph(steps))


def test_statistics_in_the_step_of_a_loop_are_not_left_out_of_the_updates():
    outside, inside = (BatchNormalization(3, name=name) for name in ("outside", "inside"))
    with batch_normalization(outside, inside):
        steps, _ = scan(inside.apply, sequences=[outside.apply(tensor.tensor3("xs"))])

    message = "updates: /inside is applied in the step of a loop.*or use LayerNormalization there"
    with pytest.raises(ValueError, match=message):
        get_batch_normalization_updates(ComputationGraph(steps))
