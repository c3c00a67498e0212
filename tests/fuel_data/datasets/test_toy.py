import numpy
import pytest

from fuel_data import config
from fuel_data.datasets.toy import Spiral, SwissRoll
from fuel_data.schemes import ShuffledScheme
from fuel_data.streams import DataStream
from fuel_data.testing import check_contract


def test_points_of_a_spiral_lie_on_their_arms():
    spiral = Spiral(num_examples=200, classes=3, cycles=2, seed=5)
    features, position, label = spiral.get_data(request=slice(0, 200))

    assert (features.dtype, position.dtype, label.dtype) == ("float32", "float32", "uint8")
    assert features.shape == (200, 2) and position.shape == label.shape == (200,)
    numpy.testing.assert_allclose(
        numpy.hypot(*features.T.astype("float64")), (1 + 2 * position) / 3, atol=1e-6
    )
    turned = numpy.arctan2(*features.T.astype("float64")) / (2 * numpy.pi) - label / 3 - position
    numpy.testing.assert_allclose(turned, numpy.rint(turned), atol=1e-5)
    assert 0 <= position.min() < 0.1 and 1.9 < position.max() <= 2
    assert set(label.tolist()) == {0, 1, 2}


def test_a_swiss_roll_is_its_sheet_rolled_up():
    features, position = SwissRoll(num_examples=200, seed=5).get_data(request=slice(0, 200))

    along, across = position.T.astype("float64")
    radius = numpy.hypot(features[:, 0], features[:, 2])
    numpy.testing.assert_allclose(radius, (1 + 2 * along) / 3, atol=1e-6)
    numpy.testing.assert_array_equal(features[:, 1], position[:, 1])
    assert features.dtype == position.dtype == "float32"
    assert 0 <= along.min() < 0.1 and 0.9 < along.max() <= 1
    assert -1 <= across.min() < -0.9 and 0.9 < across.max() <= 1


@pytest.mark.parametrize("kind", [Spiral, SwissRoll])
def test_noise_has_the_asked_deviation_and_the_seed_decides_all(kind, monkeypatch):
    clean, noisy = (kind(2000, noise=noise, seed=3).features for noise in (0, 0.5))

    assert numpy.std(noisy - clean) == pytest.approx(0.5, rel=0.05)
    monkeypatch.setattr(config, "default_seed", 3)
    numpy.testing.assert_array_equal(kind(2000).features, clean)
    assert kind(9).identity() != kind(9, seed=4).identity()


@pytest.mark.parametrize("kind", [Spiral, SwissRoll])
def test_streams_over_them_keep_the_contract(kind):
    check_contract(lambda n: DataStream(kind(n), iteration_scheme=ShuffledScheme(n, 3)))


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        (Spiral, {"classes": 0}, "`classes` must be from 1 to 256; got 0"),
        (Spiral, {"cycles": 0}, "`cycles` must be positive; got 0"),
        (Spiral, {"noise": -1}, "Spiral: `noise` must not be negative; got -1"),
        (SwissRoll, {"num_examples": 0}, "SwissRoll: `num_examples` must be at least 1; got 0"),
    ],
)
def test_numbers_out_of_range_are_refused(kind, arguments, words):
    with pytest.raises(ValueError, match=words):
        kind(**arguments)
