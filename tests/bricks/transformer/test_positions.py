import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.initialization import IsotropicGaussian
from bricks.transformer import (
    LearnedPositions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)


def test_products_of_rotated_vectors_depend_on_their_distance_only():
    rotary = RotaryPositions()
    heads = tensor.TensorType("float32", (None, None, None, 6))("heads")
    positions = tensor.lvector("positions")
    rotate = xla.function([heads, positions], rotary.apply(heads, positions))
    vector = numpy.random.RandomState(0).standard_normal((2, 1, 1, 6)).astype("float32")

    def product(first, second):
        one, other = rotate(vector, numpy.array([first, second]))[:, 0, 0]
        return one @ other

    numpy.testing.assert_allclose(product(0, 3), product(20, 23), rtol=1e-4)
    numpy.testing.assert_allclose(product(0, 0), product(9, 9), rtol=1e-4)
    assert abs(product(0, 3) - product(3, 0)) > 1e-2
    # The first pair turns by one radian a step, and length is kept.
    turned = rotate(vector, numpy.array([0, 1]))[1, 0, 0]
    (x, y), (u, v) = vector[1, 0, 0, [0, 3]], turned[[0, 3]]
    numpy.testing.assert_allclose(u + 1j * v, (x + 1j * y) * numpy.exp(1j), rtol=1e-5)
    numpy.testing.assert_allclose((turned**2).sum(), (vector[1] ** 2).sum(), rtol=1e-5)


def test_an_odd_number_of_features_cannot_be_rotated():
    heads = tensor.TensorType("float32", (None, None, None, 5))("heads")

    with pytest.raises(ValueError, match=r"/rotarypositions\.apply: `heads` must have an even num"):
        RotaryPositions().apply(heads, tensor.lvector())


def test_buckets_are_those_of_t5():
    distances = numpy.array([-200, -128, -64, -16, -8, -7, -1, 0, 1, 7, 8, 16, 127, 200])
    both = RelativePositions(1, weights_init=IsotropicGaussian())
    before = RelativePositions(1, bidirectional=False, weights_init=IsotropicGaussian())
    positions = tensor.lvector("positions")
    biases = []
    for brick in (both, before):
        brick.initialize()
        brick.W.set_value(numpy.arange(32, dtype="float32")[:, None])
        biases.append(brick.apply(tensor.zeros((1,), "int64"), positions)[0, 0])

    of_both, of_before = xla.function([positions], biases)(distances)

    # Half of the buckets for each side; half of these for single distances; and then doubling:
    # 8 + floor(8 log(d / 8) / log(16)), and 16 + floor(16 log(d / 16) / log(8)) for one side.
    assert of_both.tolist() == [15, 15, 14, 10, 8, 7, 1, 0, 17, 23, 24, 26, 31, 31]
    assert of_before.tolist() == [31, 31, 26, 16, 8, 7, 1, 0, 0, 0, 0, 0, 0, 0]


def test_too_few_buckets_are_refused():
    with pytest.raises(ValueError, match="`num_buckets` must be at least 2, or 4 if `bidirect.*=2"):
        RelativePositions(1, num_buckets=2).allocate()
    with pytest.raises(ValueError, match="`max_distance` above 8, the number of distances with"):
        RelativePositions(1, max_distance=8).allocate()


def test_one_step_gets_the_encoding_that_it_gets_among_all():
    sinusoidal = SinusoidalPositions(6, longest=100.0)
    learned = LearnedPositions(4, dim=6, weights_init=IsotropicGaussian())
    learned.initialize()
    x, position = tensor.tensor3("x"), tensor.lvector("position")
    outputs = []
    for brick in (sinusoidal, learned):
        outputs += [brick.apply(x), brick.step(x[0], position)]
    zeros = numpy.zeros((4, 2, 6), "float32")

    found = xla.function([x, position], outputs)(zeros, numpy.array([2, 4]))

    of_all, of_one, learned_of_all, learned_of_one = found
    rates = 100.0 ** (-numpy.array([0, 2, 4]) / 6)
    turns = numpy.arange(5)[:, None] * rates
    expected = numpy.stack([numpy.sin(turns), numpy.cos(turns)], axis=-1).reshape(5, 6)
    numpy.testing.assert_allclose(of_all[:, 0], expected[:4], 1e-5, 1e-6)
    numpy.testing.assert_allclose(of_one, expected[[2, 4]], 1e-5, 1e-6)
    numpy.testing.assert_array_equal(learned_of_one[0], learned_of_all[2, 1])
    assert numpy.isnan(learned_of_one[1]).all()
    with pytest.raises(ValueError, match=r"`input_` must have the axes \(time, batch, feature\); "):
        sinusoidal.apply(tensor.matrix())
