"""Integers, categories and orders come up as often as they should, on each backend."""

import itertools

import aesara
import numpy
import pytest
from aesara import tensor
from scipy import stats

from bricks import xla

#: Chance that one comparison raises a false alarm with a seed drawn at random; the seeds are fixed.
FALSE_ALARM = 1e-4
NUMBER = 10000
P = [0.2, 0.5, 0.0, 0.3]


class Table:
    """A distribution over the first integers."""

    def __init__(self, chances):
        self.chances = numpy.asarray(chances)

    def pmf(self, values):
        padded = numpy.append(self.chances, 0)
        return padded[numpy.minimum(values, len(self.chances))]


#: name -> how it is drawn, and its distribution.
CASES = {
    "bernoulli": (lambda s, n: s.bernoulli((n,), 0.3), Table([0.7, 0.3])),
    "binomial": (lambda s, n: s.binomial((n,), 10, 0.3), stats.binom(10, 0.3)),
    "binomial of many trials": (lambda s, n: s.binomial((n,), 300, 0.9), stats.binom(300, 0.9)),
    "poisson": (lambda s, n: s.poisson((n,), 2.5), stats.poisson(2.5)),
    "poisson of a large mean": (lambda s, n: s.poisson((n,), 60), stats.poisson(60)),
    "geometric": (lambda s, n: s.geometric((n,), 0.25), stats.geom(0.25)),
    "integers": (lambda s, n: s.integers((n,), 2, 7), stats.randint(2, 7)),
    "inclusive integers": (lambda s, n: s.random_integers((n,), 2, 7), stats.randint(2, 8)),
    "categorical": (lambda s, n: s.categorical((n,), P), Table(P)),
    "multinomial": (lambda s, n: s.multinomial((n,), 3, P)[:, 1], stats.binom(3, 0.5)),
    "multinomial of many trials": (
        lambda s, n: s.multinomial((n,), 20, P)[:, 3],
        stats.binom(20, 0.3),
    ),
    "choice": (lambda s, n: s.choice((n,), 5), stats.randint(0, 5)),
    "choice with chances": (lambda s, n: s.choice((n,), 4, p=P), Table(P)),
}


@pytest.fixture(scope="module", params=["xla", "py"])
def backend(request):
    return request.param


@pytest.fixture(scope="module")
def drawn(backend):
    """Two calls' numbers of each distribution."""
    stream = xla.RandomStream(12)
    draws = {name: build(stream, NUMBER // 2) for name, (build, _) in CASES.items()}
    function = xla.function([], draws, backend=backend)
    first, second = function(), function()
    return {name: numpy.concatenate([first[name], second[name]]) for name in CASES}


def chance_of_counts(values, distribution):
    """Return how likely counts as unlikely as these are, by a chi-square test."""
    top = int(values.max()) + 1
    expected = distribution.pmf(numpy.arange(top)) * len(values)
    counts = numpy.bincount(values, minlength=top)
    assert counts[expected == 0].sum() == 0
    frequent = expected >= 10
    # What is rare is one class, so that its expected count is not small.
    counts = numpy.append(counts[frequent], len(values) - counts[frequent].sum())
    expected = numpy.append(expected[frequent], len(values) - expected[frequent].sum())
    if expected[-1] < 1:
        counts, expected = counts[:-1], expected[:-1] * counts[:-1].sum() / expected[:-1].sum()
    return stats.chisquare(counts, expected).pvalue


@pytest.mark.parametrize("name", CASES)
def test_draws_come_up_as_often_as_their_distribution_says(drawn, name):
    assert chance_of_counts(drawn[name], CASES[name][1]) > FALSE_ALARM


@pytest.mark.parametrize("n", [10**5, 10**9])
def test_many_trials_are_counted_exactly(backend, n):
    successes = xla.function([], xla.RandomStream(1).binomial((2000,), n, 0.5), backend=backend)()

    # Four standard errors of mean and deviation.
    assert abs(successes.mean() - n / 2) < 4 * numpy.sqrt(n / 4 / 2000)
    assert abs(successes.std() / numpy.sqrt(n / 4) - 1) < 4 / numpy.sqrt(4000)
    assert set(successes % 2) == {0, 1}


@pytest.mark.parametrize("mean", [10.5, 1e6, 1e9])
def test_poisson_variables_of_large_means_follow_their_distribution(backend, mean):
    counts = xla.function([], xla.RandomStream(2).poisson((5000,), mean), backend=backend)()

    # Counts of a large mean are nearly continuous after a part of one is added.
    parts = numpy.random.default_rng(0).uniform(size=counts.shape)
    distribution = stats.poisson(mean)
    levels = distribution.cdf(counts) - distribution.pmf(counts) * parts
    assert stats.kstest(levels, "uniform").pvalue > FALSE_ALARM


def test_certain_and_impossible_trials_are_exact(backend):
    p = numpy.array([0, 1, 0, 1], "float32")
    n = numpy.array([5, 5, 0, 1000])

    counts = xla.function([], xla.RandomStream(1).binomial(None, n, p), backend=backend)()

    assert counts.tolist() == [0, 5, 0, 1000]


def test_counts_of_categories_add_up_to_the_trials_of_each_row(backend):
    n, p = tensor.lvector("n"), tensor.fmatrix("p")
    counts = xla.RandomStream(1).multinomial((50, 2), n, p)
    trials, chances = numpy.array([7, 100]), numpy.array([[0.1, 0.6, 0.3], [0, 1, 0]], "float32")

    values = xla.function([n, p], counts, backend=backend)(trials, chances)

    assert values.shape == (50, 2, 3)
    numpy.testing.assert_array_equal(values.sum(axis=-1), numpy.tile(trials, (50, 1)))
    assert (values[:, 1] == [0, 100, 0]).all()
    assert chance_of_counts(values[:, 0, 1], stats.binom(7, 0.6)) > FALSE_ALARM


def test_probabilities_that_add_up_to_about_one_are_accepted(backend):
    p = numpy.full(7, numpy.float32(1) / numpy.float32(7)) * numpy.float32(1 + 1e-6)
    stream = xla.RandomStream(1)
    draws = [
        stream.categorical((1000,), p),
        stream.multinomial((10,), 20, p),
        stream.choice((5,), 7, replace=False, p=p),
    ]

    places, counts, chosen = xla.function([], draws, backend=backend)()

    assert set(places) == set(range(7))
    assert (counts.sum(axis=1) == 20).all()
    assert len(set(chosen)) == 5


def test_a_choice_without_replacement_repeats_nothing(backend):
    stream, x = xla.RandomStream(1), tensor.dmatrix("x")
    draws = [stream.choice((2, 3), 6, replace=False), stream.choice((2,), x, replace=False)]
    function = xla.function([x], draws, backend=backend)

    numbers, rows = function(numpy.arange(12.0).reshape(4, 3))

    assert sorted(numbers.ravel()) == [0, 1, 2, 3, 4, 5]
    assert rows.shape == (2, 3)
    assert len(set(rows[:, 0])) == 2
    assert set(rows[:, 0]) <= {0, 3, 6, 9}


def test_pairs_without_replacement_come_up_in_turn_of_what_is_left(backend):
    p = numpy.array([0.5, 0.3, 0.2])
    draw = xla.RandomStream(5).choice((2,), 3, replace=False, p=p)
    function = xla.function([], draw, backend=backend)
    pairs = numpy.array([function() for _ in range(2000)])

    expected = {(i, j): p[i] * p[j] / (1 - p[i]) for i, j in itertools.permutations(range(3), 2)}
    counts = [(pairs == pair).all(axis=1).sum() for pair in expected]
    chances = numpy.array(list(expected.values())) * len(pairs)
    assert stats.chisquare(counts, chances).pvalue > FALSE_ALARM


def test_all_orders_are_as_likely(backend):
    orders = xla.function([], xla.RandomStream(1).permutation((6000,), 4), backend=backend)()

    assert (numpy.sort(orders, axis=1) == [0, 1, 2, 3]).all()
    _, counts = numpy.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_the_length_of_a_permutation_may_be_an_argument(backend):
    n = tensor.lscalar("n")
    function = xla.function([n], xla.RandomStream(1).permutation(n=n), backend=backend)

    assert [sorted(function(length)) for length in (3, 0, 1)] == [[0, 1, 2], [], [0]]


def test_what_is_shuffled_stays_whole_and_gets_its_gradient(backend):
    x, weights = tensor.dmatrix("x"), tensor.dmatrix("weights")
    stream = xla.RandomStream(1)
    rows, columns = stream.shuffle(x), stream.shuffle(x, axis=1)
    slope = aesara.grad((rows * weights).sum(), x)
    function = xla.function([x, weights], [rows, columns, slope], backend=backend)

    data = numpy.arange(30.0).reshape(10, 3)
    shuffled, turned, slopes = function(data, data)

    order = shuffled[:, 0].astype(int) // 3
    assert sorted(order) == list(range(10))
    numpy.testing.assert_array_equal(shuffled, data[order])
    numpy.testing.assert_array_equal(slopes[order], data)
    assert not numpy.array_equal(shuffled, data)
    numpy.testing.assert_array_equal(numpy.sort(turned, axis=1), data)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_draws_have_the_dtype_that_was_asked_for(backend, dtype):
    stream = xla.RandomStream(1)
    draws = [
        stream.poisson((2,), 3, dtype=dtype),
        stream.geometric((2,), dtype=dtype),
        stream.permutation((2,), 3, dtype=dtype),
    ]

    assert {value.dtype.name for value in xla.function([], draws, backend=backend)()} == {dtype}


def test_what_is_missing_is_asked_for():
    stream = xla.RandomStream(1)

    with pytest.raises(TypeError, match="choice: `a`, the elements or their number, must be given"):
        stream.choice((2,))
    with pytest.raises(TypeError, match="categorical: `pvals` must be an array of probabilities"):
        stream.categorical((2,))
    with pytest.raises(TypeError, match="permutation: `n` must be the number.*call shuffle"):
        stream.permutation(tensor.lvector("x"))
    with pytest.raises(TypeError, match="permutation: `n` must be the number"):
        stream.permutation((2,), numpy.arange(3))


def test_more_elements_than_there_are_cannot_be_chosen_without_replacement(backend):
    function = xla.function([], xla.RandomStream(1).choice((3,), 2, replace=False), backend=backend)

    with pytest.raises(ValueError, match="larger|[Cc]annot take"):
        function()
