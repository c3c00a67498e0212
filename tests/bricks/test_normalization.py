import numpy
import pytest
from aesara import tensor

from bricks import GroupNormalization, LayerNormalization, RMSNormalization, xla
from bricks.initialization import Constant
from bricks.roles import BIAS, PARAMETER, WEIGHT, has_roles


def draw(*shape):
    return numpy.random.RandomState(0).standard_normal(shape).astype("float32")


def built(brick):
    brick.initialize()
    return brick


def test_features_far_from_zero_are_normalized_exactly():
    x = tensor.matrix("x")
    value = (5000 + draw(3, 50)).astype("float32")
    images = x.reshape((3, 2, 5, 5))
    outputs = [
        built(LayerNormalization(50)).apply(x),
        built(GroupNormalization(1, 2)).apply(images).reshape((3, 50)),
    ]

    found = xla.function([x], outputs)(value)

    wide = value.astype("float64")
    mean, variance = wide.mean(axis=1, keepdims=True), wide.var(axis=1, keepdims=True)
    for output in found:
        assert output.dtype == "float32"
        # The numbers themselves are steps of 0.0005 apart.
        numpy.testing.assert_allclose(output, (wide - mean) / numpy.sqrt(variance), atol=2e-3)


def test_equal_features_have_a_finite_gradient():
    x = tensor.matrix("x")
    bricks = [LayerNormalization(4), RMSNormalization(4)]
    costs = [(built(brick).apply(x) ** 2).sum() for brick in bricks]

    gradients = xla.function([x], [tensor.grad(cost, x) for cost in costs])(
        numpy.zeros((2, 4), "float32")
    )

    assert all(numpy.isfinite(gradient).all() for gradient in gradients)


def test_a_group_for_each_channel_normalizes_each_alone():
    x = tensor.tensor4("x")
    value = draw(2, 3, 4, 5)

    found = xla.function([x], built(GroupNormalization(3, 3)).apply(x))(value)

    numpy.testing.assert_allclose(found.mean(axis=(2, 3)), 0, atol=1e-6)
    numpy.testing.assert_allclose(found.std(axis=(2, 3)), 1, rtol=1e-4)


def test_what_a_mask_leaves_out_does_not_count_even_if_it_is_nan():
    x, mask = tensor.tensor3("x"), tensor.matrix("mask")
    value, ones = draw(1, 2, 4), numpy.array([[1, 1, 1, 0]], "float32")
    value[..., 3] = numpy.nan
    brick = built(GroupNormalization(1, 2))
    output = brick.apply(x, mask)
    slope = tensor.grad((output**3).sum(), x)

    found, slopes = xla.function([x, mask], [output, slope])(value, ones)
    (alone,) = xla.function([x], [brick.apply(x)])(value[..., :3])

    numpy.testing.assert_allclose(found[..., :3], alone, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_array_equal(found[..., 3], 0)
    assert numpy.isfinite(slopes).all()


def test_scales_are_no_weights_and_shifts_are_biases():
    layer = built(LayerNormalization((2, 3), scale_init=Constant(2), shift_init=Constant(1)))
    group, root = built(GroupNormalization(2, 4)), built(RMSNormalization(3))

    assert [p.name for p in layer.parameters] == ["scale", "shift"]
    assert layer.scale.type.shape == (2, 3) and group.scale.type.shape == (4,)
    assert has_roles(layer.scale, [PARAMETER]) and not has_roles(layer.scale, [WEIGHT])
    assert has_roles(layer.shift, [BIAS])
    assert [p.name for p in root.parameters] == ["scale"]
    assert [p.get_value().mean() for p in layer.parameters] == [2, 1]


def test_scales_and_shifts_may_be_left_out():
    for brick in (
        LayerNormalization(3, learn_scale=False, learn_shift=False),
        RMSNormalization(3, learn_scale=False),
        GroupNormalization(1, 3, learn_scale=False, learn_shift=False),
    ):
        assert list(built(brick).parameters) == []


def test_dimensions_are_known_by_name():
    layer, group = LayerNormalization(3), GroupNormalization(2, 4, (5, None))
    layer.output_dim = 6

    assert layer.get_dim("input_") == layer.input_dim == layer.output_dim == 6
    assert group.get_dim("output") == group.output_dim == (4, 5, None)
    assert group.get_dim("mask") == 0
    with pytest.raises(ValueError, match="/layernormalization: the dimension of 'x' is not known"):
        layer.get_dim("x")


REFUSED = {
    "groups that do not divide": (
        lambda: GroupNormalization(3, 4).allocate(),
        "^/groupnormalization cannot be allocated: `num_groups`, 3, must divide num_channels=4",
    ),
    "other channels": (
        lambda: GroupNormalization(2, 4).apply(tensor.TensorType("float32", (2, 3, 5))("x")),
        r"^/groupnormalization\.apply: `input_` must have 4 channels on axis 1; got .*\(2, 3, 5\)",
    ),
    "a mask without time": (
        lambda: GroupNormalization(2, 4).apply(tensor.matrix("x"), tensor.matrix("mask")),
        "`input_` must have at least 3 axes",
    ),
    "other lengths": (
        lambda: LayerNormalization((2, 3)).apply(tensor.TensorType("float32", (4, 2, 5))("x")),
        r"^/layernormalization\.apply: `input_` must have the lengths \(2, 3\) on its last axes",
    ),
    "too few axes": (
        lambda: LayerNormalization((2, 3)).apply(tensor.vector("x")),
        "`input_` must have at least 2 axes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_words(name):
    act, words = REFUSED[name]

    with pytest.raises(ValueError, match=words):
        act()
