import numpy
import pytest
from aesara import tensor

import bricks
from bricks import GroupNormalization, LayerNormalization, Linear, Softmax, Tanh, xla
from bricks.algorithms import GradientDescent, Scale
from bricks.bn import BatchNormalization, BatchNormalizedMLP, SpatialBatchNormalization
from bricks.conv import Convolutional, ConvolutionalSequence
from bricks.graph import (
    ComputationGraph,
    apply_batch_normalization,
    get_batch_normalization_updates,
)
from bricks.initialization import Constant, IsotropicGaussian
from bricks.main_loop import MainLoop
from bricks.model import Model
from bricks.recurrent import LayerNormalizedLSTM
from bricks.roles import (
    BATCH_NORM_POPULATION_MEAN,
    BATCH_NORM_POPULATION_STDEV,
    BATCH_NORM_SCALE_PARAMETER,
    BATCH_NORM_SHIFT_PARAMETER,
    BIAS,
    PARAMETER,
    PERSISTENT,
    WEIGHT,
    has_roles,
)
from bricks.serialization import dump
from bricks.state import get_state, set_state

X = tensor.matrix("x")


def draw(*shape, seed=0):
    return numpy.random.RandomState(seed).standard_normal(shape).astype("float32")


def built(brick):
    brick.initialize()
    return brick


def test_a_new_brick_changes_nothing_before_training():
    x = draw(4, 3)

    value = xla.function([X], built(BatchNormalization(3)).apply(X))(x)

    numpy.testing.assert_allclose(value, x, rtol=1e-6)


def test_the_mode_of_training_ends_with_the_context_even_by_an_error():
    brick = built(BatchNormalization(3))

    def is_training():
        (call,) = {
            annotation
            for annotation in brick.apply(X).tag.annotations
            if hasattr(annotation, "metadata")
        }
        return call.metadata["training_mode"]

    with brick:
        with brick:
            pass
        assert is_training()
    assert not is_training()
    with pytest.raises(KeyError), brick:
        raise KeyError
    assert not is_training()


def test_names_roles_and_shapes_are_those_of_blocks():
    brick = built(SpatialBatchNormalization((3, 5, 4)))
    scale, shift = brick.parameters

    assert (scale, shift) == (brick.scale, brick.shift)
    assert [p.name for p in brick.parameters] == ["batch_norm_scale", "batch_norm_shift"]
    assert has_roles(scale, [BATCH_NORM_SCALE_PARAMETER]) and not has_roles(scale, [WEIGHT])
    assert has_roles(shift, [BATCH_NORM_SHIFT_PARAMETER]) and has_roles(shift, [BIAS])
    assert brick.persistent == [brick.population_mean, brick.population_stdev]
    assert has_roles(brick.population_mean, [BATCH_NORM_POPULATION_MEAN])
    assert has_roles(brick.population_stdev, [BATCH_NORM_POPULATION_STDEV])
    for variable in [*brick.parameters, *brick.persistent]:
        assert has_roles(variable, [PERSISTENT])
        assert variable.type.shape == (3, 1, 1)
    assert not has_roles(brick.population_mean, [PARAMETER])


def test_with_mean_only_nothing_is_scaled():
    brick = built(BatchNormalization(2, mean_only=True))
    x = draw(5, 2)
    with brick:
        training = brick.apply(X)
    brick.population_mean.set_value(numpy.array([1, 2], "float32"))

    inference, training = xla.function([X], [brick.apply(X), training])(x)

    assert [p.name for p in brick.parameters] == ["batch_norm_shift"]
    assert brick.population_stdev is None and brick.scale is None
    numpy.testing.assert_allclose(inference, x - [1, 2], rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(training, x - x.mean(axis=0), rtol=1e-5, atol=1e-6)


def test_scales_and_shifts_may_be_left_out():
    brick = built(BatchNormalization(2, learn_scale=False, learn_shift=False))

    assert list(brick.parameters) == []
    assert (brick.scale, brick.shift) == (None, None)


def test_initializing_again_forgets_the_population():
    brick = built(BatchNormalization(2, scale_init=Constant(3), shift_init=Constant(4)))
    brick.population_stdev.set_value(numpy.array([5, 6], "float32"))
    brick.initialize()

    values = [v.get_value().tolist() for v in [*brick.parameters, *brick.persistent]]
    assert values == [[3, 3], [4, 4], [0, 0], [1, 1]]


def test_what_a_mask_leaves_out_does_not_count_even_if_it_is_nan():
    brick = built(BatchNormalization(2))
    x, mask = draw(4, 2), numpy.array([1, 0, 1, 1], "uint8")
    x[1] = numpy.nan
    mask_input = tensor.TensorType("uint8", (None,))("mask")
    with brick:
        output = brick.apply(X, mask_input)
    gradients = tensor.grad((output**3).sum(), [X, *brick.parameters])

    value, *slopes = xla.function([X, mask_input], [output, *gradients])(x, mask)

    kept = x[[0, 2, 3]].astype("float64")
    expected = (kept - kept.mean(axis=0)) / numpy.sqrt(kept.var(axis=0) + 1e-4)
    numpy.testing.assert_allclose(value[[0, 2, 3]], expected, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_array_equal(value[1], 0)
    assert all(numpy.isfinite(slope).all() for slope in slopes)


def test_a_mask_that_leaves_everything_out_makes_no_nan():
    brick = built(SpatialBatchNormalization((2, None)))
    x, mask = tensor.tensor3("x"), tensor.matrix("mask")
    with brick:
        output = brick.apply(x, mask)

    statistics = [batch for _, batch in get_batch_normalization_updates(ComputationGraph(output))]
    values = xla.function([x, mask], [output, *statistics])(
        draw(2, 2, 3), numpy.zeros((2, 3), "float32")
    )

    numpy.testing.assert_array_equal(values[0], 0)
    assert all(numpy.isfinite(value).all() for value in values)


def test_statistics_far_from_zero_are_exact():
    brick = built(BatchNormalization(2))
    x = (5000 + draw(64, 2)).astype("float32")
    with brick:
        output = brick.apply(X)

    value = xla.function([X], output)(x)

    wide = x.astype("float64")
    expected = (wide - wide.mean(axis=0)) / numpy.sqrt(wide.var(axis=0) + 1e-4)
    assert value.dtype == "float32"
    # The numbers themselves are steps of 0.0005 apart.
    numpy.testing.assert_allclose(value, expected, atol=2e-3)


def test_dimensions_are_known_by_name():
    brick = BatchNormalization(3)
    spatial = SpatialBatchNormalization((3, 4, 4))

    assert [brick.get_dim(name) for name in ("input_", "output", "mask")] == [3, 3, 0]
    assert spatial.get_dim("output") == spatial.output_dim == (3, 4, 4)
    assert (spatial.num_channels, spatial.image_size) == (3, (4, 4))
    assert spatial.normalization_axes == (0, 2, 3)
    with pytest.raises(ValueError, match="/batchnormalization: the dimension of 'input' is not"):
        brick.get_dim("input")


REFUSED = {
    "a number of channels alone": (
        lambda: SpatialBatchNormalization(3),
        r"^SpatialBatchNormalization: `input_dim` must be the channels and the lengths behind",
    ),
    "no axis behind the channels": (
        lambda: SpatialBatchNormalization((3,)).allocate(),
        r"must have a length, or None, for each axis behind the channels; got \(3,\)",
    ),
    "broadcastable of other length": (
        lambda: BatchNormalization((3, 4), broadcastable=(True,)).allocate(),
        r"`broadcastable` must have a truth value for each of the 2 axes.*got \(True,\)",
    ),
    "an unknown length with a mean of its own": (
        lambda: BatchNormalization((3, None)).allocate(),
        r"`input_dim\[1\]` must be a positive integer; got None",
    ),
    "too few axes": (
        lambda: BatchNormalization((3, 4)).apply(X),
        r"^/batchnormalization\.apply: `input_` must have the shape \(batch, 3, 4\); got",
    ),
    "other features": (
        lambda: BatchNormalization(3).apply(tensor.TensorType("float32", (None, 4))("x")),
        r"must have the shape \(\.\.\., 3\); got .*\(\?, 4\)",
    ),
    "a mask of other length": (
        lambda: BatchNormalization(3).apply(
            tensor.TensorType("float32", (5, 3))("x"), tensor.TensorType("float32", (4,))("m")
        ),
        r"^/batchnormalization\.apply: `mask` must have the axes \[0\] of `input_`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_words(name):
    act, words = REFUSED[name]

    with pytest.raises(ValueError, match=words):
        act()


@pytest.mark.parametrize("epsilon", [-1e-4, numpy.nan, True, "0"])
def test_an_epsilon_that_is_no_number_from_0_is_refused(epsilon):
    message = f"cannot be allocated: `epsilon` must be a number from 0; got {epsilon!r}"
    for brick in (
        BatchNormalization(3, epsilon=epsilon),
        LayerNormalization(3, epsilon=epsilon),
        GroupNormalization(1, 3, epsilon=epsilon),
        LayerNormalizedLSTM(3, epsilon=epsilon),
    ):
        with pytest.raises(ValueError, match=message):
            brick.allocate()


@pytest.mark.parametrize(
    ("brick", "shape", "words"),
    [
        (BatchNormalization(3), (2, 4), r"the shape \(\.\.\., 3\)\. Set `input_dim`"),
        (SpatialBatchNormalization((3, None)), (2, 4, 5), r"the shape \(batch, 3, \?\)\. Set"),
        (GroupNormalization(1, 3), (2, 4, 5), r"3 channels on axis 1\. Reorder"),
    ],
)
def test_what_turns_out_not_to_fit_is_refused_in_the_same_words(brick, shape, words):
    x = tensor.TensorType("float32", (None,) * len(shape))("x")
    output = built(brick).apply(x)

    with pytest.raises(AssertionError, match=rf"^{brick.path}\.apply: `input_` must have {words}"):
        xla.function([x], output)(draw(*shape))


def test_the_mean_may_be_taken_over_the_features_too():
    brick = built(BatchNormalization(3, broadcastable=(True,), epsilon=0))
    with brick:
        output = brick.apply(X)
    pairs = get_batch_normalization_updates(ComputationGraph(output))
    x = draw(4, 3)

    found, mean, stdev = xla.function([X], [output, *(batch for _, batch in pairs)])(x)

    numpy.testing.assert_allclose(found, (x - x.mean()) / x.std(), rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose([mean, stdev], [[x.mean()], [x.std()]], rtol=1e-5)
    assert [population.get_value().shape for population, _ in pairs] == [(1,), (1,)]


def test_layers_of_a_batch_normalized_mlp_are_made_of_a_prototype_and_have_no_bias():
    prototype = Linear(name="layer", weights_init=IsotropicGaussian(1))
    mlp = BatchNormalizedMLP([Tanh(), None], [4, 3, 2], prototype, conserve_memory=False)
    mlp.initialize()

    assert [layer.name for layer in mlp.linear_transformations] == ["layer_0", "layer_1"]
    assert [len(layer.parameters) for layer in mlp.linear_transformations] == [1, 1]
    assert [n.input_dim for n in mlp.normalizations] == [3, 2]
    assert not mlp.conserve_memory
    mlp.conserve_memory = True
    assert mlp.normalizations[1].conserve_memory
    graph = Model(mlp.apply(X))
    path = "/batchnormalizedmlp/batch_norm_activation_1/batchnormalization."
    assert path + "batch_norm_scale" in graph.get_parameter_dict()
    assert path + "population_mean" in graph.get_persistent_dict()


def test_channels_and_lengths_come_from_the_layer_before():
    each, spatial = BatchNormalization(), SpatialBatchNormalization()
    ConvolutionalSequence(
        [spatial, Convolutional((2, 2), 4), each], num_channels=3, image_size=(5, 5)
    ).allocate()

    assert spatial.population_mean.type.shape == (3, 1, 1)
    assert each.population_mean.type.shape == (4, 4, 4)


def make_main_loop(seed, is_training_model):
    mlp = BatchNormalizedMLP(
        [Tanh(), None], [4, 3, 2], weights_init=IsotropicGaussian(1), seed=seed
    )
    mlp.initialize()
    targets = tensor.lvector("targets")
    cost = Softmax().categorical_cross_entropy(targets, mlp.apply(X)).mean()
    training = apply_batch_normalization(ComputationGraph(cost))
    algorithm = GradientDescent(cost=training.outputs[0], step_rule=Scale(0.1))
    algorithm.add_updates(
        (population, 0.5 * population + 0.5 * batch)
        for population, batch in get_batch_normalization_updates(training)
    )
    model = Model(training.outputs if is_training_model else cost)
    main_loop = MainLoop(algorithm, data_stream=None, model=model)
    return main_loop, xla.function([X, targets], cost)


@pytest.mark.parametrize("is_training_model", [False, True])
def test_statistics_are_in_the_checkpoint_and_come_back_by_name(is_training_model, tmp_path):
    main_loop, cost = make_main_loop(1, is_training_model)
    batch = {"x": draw(6, 4), "targets": numpy.array([0, 1, 1, 0, 1, 0])}
    main_loop.algorithm.initialize()
    main_loop.algorithm.process_batch(batch)
    saved = get_state(main_loop)
    other, other_cost = make_main_loop(2, is_training_model)
    set_state(other, saved, parts=["parameters", "persistent"])

    folder = "/batchnormalizedmlp/batch_norm_activation_"
    assert list(saved["persistent"]) == [
        f"{folder}{layer}/batchnormalization.population_{name}"
        for layer in range(2)
        for name in ("mean", "stdev")
    ]
    assert all((value != 0).all() and (value != 1).all() for value in saved["persistent"].values())
    assert not any(
        "population" in name for part in ("parameters", "algorithm") for name in saved[part]
    )
    assert other_cost(*batch.values()) == cost(*batch.values())


def test_a_model_that_is_loaded_from_a_file_normalizes_by_the_population(tmp_path):
    main_loop, cost = make_main_loop(1, is_training_model=False)
    batch = {"x": draw(6, 4), "targets": numpy.array([0, 1, 1, 0, 1, 0])}
    main_loop.algorithm.initialize()
    main_loop.algorithm.process_batch(batch)
    dump(main_loop, tmp_path / "model.zip")

    function = bricks.load(tmp_path / "model.zip")

    assert function(**batch) == cost(*batch.values())
