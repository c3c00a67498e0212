"""Random streams draw from the right distributions, reproducibly, with keys that are arrays."""

import pickle

import aesara
import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.config import config
from bricks.xla.sampling import GeneratorOfKey, make_key

PROBABILITIES = numpy.array([0.2, 0.5, 0.3], "float32")


@pytest.fixture(params=["xla", "py"], autouse=True)
def backend(request):
    config.backend = request.param
    yield request.param
    del config.backend


def draw(build, seed=3, calls=1):
    """Return what a stream of a seed draws in each of some calls."""
    function = xla.function([], build(xla.RandomStream(seed)))
    values = [function() for _ in range(calls)]
    return values[0] if calls == 1 else values


@pytest.mark.parametrize(
    ("build", "mean", "deviation"),
    [
        (lambda s: s.uniform((200, 50)), 0.5, 12**-0.5),
        (lambda s: s.uniform((200, 50), -1, 3), 1, 4 * 12**-0.5),
        (lambda s: s.normal((200, 50)), 0, 1),
        (lambda s: s.normal((200, 50), avg=2, std=3), 2, 3),
        (lambda s: s.bernoulli((200, 50), 0.3), 0.3, 0.21**0.5),
        (lambda s: s.binomial((200, 50), p=0.8), 0.8, 0.16**0.5),
        (lambda s: s.binomial((200, 50), n=10, p=0.3), 3, 2.1**0.5),
        (lambda s: s.integers((200, 50), 2, 6), 3.5, 1.25**0.5),
        (lambda s: s.random_integers((200, 50), 2, 5), 3.5, 1.25**0.5),
        (lambda s: s.categorical((10000,), PROBABILITIES), 1.1, 0.7),
        (lambda s: s.multinomial((10000,), pvals=PROBABILITIES)[:, 1], 0.5, 0.5),
        (lambda s: s.multinomial((10000,), n=4, pvals=PROBABILITIES)[:, 1], 2, 1),
    ],
)
def test_draws_have_the_mean_and_deviation_of_their_distribution(build, mean, deviation):
    values = draw(build)

    # Four standard errors of 10000 draws.
    assert abs(values.mean() - mean) < 4 * deviation / 100
    assert abs(values.std() - deviation) < 0.05 * deviation


def test_bounds_are_kept():
    uniform = draw(lambda s: s.uniform((10000,), -2, -1))
    integers = draw(lambda s: s.integers((10000,), 2, 6))

    assert uniform.min() >= -2
    assert uniform.max() < -1
    assert set(integers) == {2, 3, 4, 5}
    assert set(draw(lambda s: s.random_integers((1000,), 2, 6))) == {2, 3, 4, 5, 6}


def test_a_multinomial_draw_of_one_trial_is_one_hot():
    rows = draw(lambda s: s.multinomial(pvals=numpy.tile(PROBABILITIES, (50, 1))))

    assert rows.shape == (50, 3)
    assert rows.sum(axis=1).tolist() == [1] * 50
    assert set(rows.ravel()) == {0, 1}


def test_each_row_of_probabilities_has_its_own_draw():
    certain = numpy.eye(3, dtype="float32")[[2, 0, 1, 1]]

    assert draw(lambda s: s.categorical(pvals=certain)).tolist() == [2, 0, 1, 1]


@pytest.mark.parametrize(
    ("build", "dtype"),
    [
        (lambda s: s.uniform((2,)), "float32"),
        (lambda s: s.normal((2,), dtype="float64"), "float64"),
        (lambda s: s.uniform((2,), 0, 2, dtype="float64"), "float64"),
        (lambda s: s.bernoulli((2,)), "int64"),
        (lambda s: s.binomial((2,), n=5, p=0.5, dtype="float32"), "float32"),
        (lambda s: s.integers((2,)), "int64"),
        (lambda s: s.multinomial((2,), pvals=PROBABILITIES, dtype="float32"), "float32"),
    ],
)
def test_draws_have_the_dtype_that_was_asked_for(build, dtype):
    assert build(xla.RandomStream(1)).dtype == dtype
    assert draw(build).dtype == dtype


def test_a_size_may_be_symbolic():
    x = tensor.matrix("x")
    stream = xla.RandomStream(1)
    data = numpy.zeros((4, 3), "float32")

    by_parts = xla.function([x], stream.uniform((x.shape[0], 2)))(data)
    by_vector = xla.function([x], stream.normal(x.shape))(data)

    assert (by_parts.shape, by_vector.shape) == ((4, 2), (4, 3))


def test_the_size_is_that_of_the_parameters_by_default():
    means = numpy.array([-1e3, 0, 1e3], "float32")

    values = draw(lambda s: s.normal(avg=tensor.constant(means)))

    assert numpy.round(values / 1e3).tolist() == [-1, 0, 1]


def test_a_single_number_can_be_drawn():
    assert draw(lambda s: s.uniform()).shape == ()


def test_gradients_flow_to_the_parameters_of_a_distribution():
    mean, deviation = tensor.scalars("mean", "deviation")
    noise = xla.RandomStream(1).normal((100,), mean, deviation)
    slopes = aesara.grad(noise.mean(), [mean, deviation])

    value, of_mean, of_deviation = xla.function([mean, deviation], [noise.mean(), *slopes])(2, 3)

    assert of_mean == pytest.approx(1)
    assert value == pytest.approx(2 + 3 * of_deviation, rel=1e-4)


def test_each_call_draws_anew_and_a_seed_repeats_it_all():
    first, second = draw(lambda s: s.uniform((5,)), calls=2)
    again, again_second = draw(lambda s: s.uniform((5,)), calls=2)

    assert set(first).isdisjoint(second)
    numpy.testing.assert_array_equal(first, again)
    numpy.testing.assert_array_equal(second, again_second)
    assert set(first).isdisjoint(draw(lambda s: s.uniform((5,)), seed=4))


def test_reseeding_a_stream_starts_its_draws_anew():
    stream = xla.RandomStream(1)
    f = xla.function([], stream.uniform((3,)))
    first = f()

    stream.seed()
    numpy.testing.assert_array_equal(f(), first)
    stream.seed(2)
    assert set(f()).isdisjoint(first)


def test_the_default_seed_is_that_of_the_configuration():
    assert repr(xla.RandomStream()) == "RandomStream(seed=1, name='random')"


def test_draws_of_one_stream_differ_within_a_call():
    first, second = draw(lambda s: [s.uniform((5,)), s.uniform((5,))])

    assert set(first).isdisjoint(second)


def test_a_draw_used_twice_is_one_draw():
    def doubled(stream):
        noise = stream.uniform((5,))
        return [noise, noise * 2]

    once, twice = draw(doubled)

    numpy.testing.assert_array_equal(once * 2, twice)


def test_no_two_seeds_streams_or_draws_share_a_key():
    keys = {
        tuple(make_key(seed, stream, number))
        for seed in range(20)
        for stream in ("a", "b", "/mlp/dropout", "1", "")
        for number in range(20)
    }

    assert len(keys) == 20 * 5 * 20


def test_draws_in_other_streams_do_not_change_those_of_a_stream():
    alone = xla.RandomStream(1, name="mine")
    expected = xla.function([], alone.uniform((3,)))()

    other, mine = xla.RandomStream(1, name="other"), xla.RandomStream(1, name="mine")
    other.uniform((3,))
    other.normal((3,))

    numpy.testing.assert_array_equal(xla.function([], mine.uniform((3,)))(), expected)


def test_a_key_is_a_named_shared_array_that_advances_once_a_call():
    stream = xla.RandomStream(1, name="noise")
    values = [stream.uniform((2,)), stream.uniform((2,))]
    f = xla.function([], [values[0], values[0] + values[1]])
    before = [key.get_value() for key in stream.keys]

    f()

    assert [key.name for key in stream.keys] == ["noise.0", "noise.1"]
    assert all(key.tag.is_random_key for key in stream.keys)
    assert all(key.dtype == "uint32" and key.ndim == 1 for key in stream.keys)
    after = [key.get_value() for key in stream.keys]
    assert not any(numpy.array_equal(*pair) for pair in zip(before, after, strict=True))


def test_setting_the_keys_back_repeats_the_numbers():
    stream = xla.RandomStream(1)
    f = xla.function([], stream.normal((3,)))
    f()
    saved = stream.keys[0].get_value()

    expected = [f(), f()]
    stream.keys[0].set_value(saved)

    numpy.testing.assert_array_equal([f(), f()], expected)


def test_a_pickled_graph_goes_on_with_the_same_numbers():
    f = xla.function([], xla.RandomStream(1).normal((3,)))
    f()

    loaded = pickle.loads(pickle.dumps(f))

    numpy.testing.assert_array_equal(loaded(), f())


def test_a_key_that_is_no_vector_of_uint32_is_refused():
    with pytest.raises(TypeError, match="a key must be a uint32 vector; got"):
        GeneratorOfKey()(tensor.vector("x"))


def noisy_walk(stream, x):
    """Return a loop with two draws in each step, and what updates their keys."""

    def step(row, state):
        kept = stream.bernoulli(row.shape, 0.5, dtype="float64")
        return state * kept + row * stream.normal(row.shape, dtype="float64")

    return aesara.scan(step, sequences=[x], outputs_info=[numpy.zeros(2)])


def test_each_step_of_a_loop_has_another_draw_and_its_key_advances_once_a_call():
    x, stream = tensor.dmatrix("x"), xla.RandomStream(1)
    values, updates = aesara.scan(lambda row: row + stream.normal(row.shape), sequences=[x])
    f = xla.function([x], values, updates=updates)
    keys = [stream.keys[0].get_value()]

    numbers = []
    for _ in range(3):
        numbers.append(f(numpy.zeros((4, 5))))
        keys.append(stream.keys[0].get_value())

    assert len(stream.keys) == 1
    assert len({number for call in numbers for number in call.ravel()}) == 3 * 4 * 5
    assert len({tuple(key) for key in keys}) == 4


def test_a_loop_that_is_pickled_or_whose_keys_are_restored_goes_on_with_the_same_numbers():
    x, stream = tensor.dmatrix("x"), xla.RandomStream(1)
    values, updates = noisy_walk(stream, x)
    f = xla.function([x], values, updates=updates)
    data = numpy.ones((5, 2))
    f(data)
    pickled, saved = pickle.dumps(f), [key.get_value() for key in stream.keys]
    expected = [f(data), f(data)]

    loaded = pickle.loads(pickled)
    numpy.testing.assert_array_equal([loaded(data), loaded(data)], expected)

    other = xla.RandomStream(99)
    values, updates = noisy_walk(other, x)
    restored = xla.function([x], values, updates=updates)
    restored(data)
    for key, value in zip(other.keys, saved, strict=True):
        key.set_value(value)
    numpy.testing.assert_array_equal([restored(data), restored(data)], expected)


def test_the_gradient_of_a_loop_with_draws_is_that_of_the_numbers_it_drew():
    x, stream = tensor.dmatrix("x"), xla.RandomStream(1)

    def step(row, state):
        return tensor.tanh(state * row + row * stream.normal(row.shape, dtype="float64"))

    values, updates = aesara.scan(step, sequences=[x], outputs_info=[numpy.ones(3)])
    cost = values[-1].sum()
    f = xla.function([x], [cost, aesara.grad(cost, x)], updates=updates)
    key = stream.keys[0].get_value()

    def at(data):
        stream.keys[0].set_value(key)
        return f(data)

    data = numpy.random.default_rng(0).uniform(0.5, 1.5, size=(4, 3))
    _, slope = at(data)
    for place in [(0, 0), (1, 2), (3, 1)]:
        moved = numpy.zeros_like(data)
        moved[place] = 1e-6
        expected = (at(data + moved)[0] - at(data - moved)[0]) / 2e-6
        assert slope[place] == pytest.approx(expected, rel=1e-5, abs=1e-8)


def test_a_random_state_of_aesara_is_refused_with_the_way_out(backend):
    values = aesara.tensor.random.utils.RandomStream(1).normal(size=(3,))

    if backend == "py":
        assert xla.function([], values)().shape == (3,)
        return
    with pytest.raises(xla.UnsupportedOp, match="random state of Aesara.*bricks.xla.RandomStream"):
        xla.function([], values)
