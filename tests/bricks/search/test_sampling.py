import numpy
import pytest

from bricks.search import GreedySearch, SamplingSearch

# After the symbols 0 and 1 the same happens; 0 ends.
FALLING = [0.4, 0.3, 0.2, 0.1]
PROBABILITIES = [FALLING, FALLING, FALLING[::-1], [0.7, 0.1, 0.1, 0.1]]


def test_greedy_search_takes_the_most_probable_symbol(make_chain):
    chain = make_chain(PROBABILITIES)
    firsts = [2, 0, 3]

    found = GreedySearch(chain).decode({chain.first: firsts}, 0, 5)
    lists, costs = GreedySearch(chain).search({chain.first: firsts}, 0, 5)

    assert found.as_lists() == [[[3, 0]], [[0]], [[0]]]
    # Blocks' call takes each column for an example.
    assert lists == [[3, 0], [0], [0]]
    expected = [-numpy.log(0.4 * 0.7), -numpy.log(0.4), -numpy.log(0.7)]
    numpy.testing.assert_allclose(found.costs[:, 0], expected, rtol=1e-5)
    numpy.testing.assert_allclose(costs, expected, rtol=1e-5)
    numpy.testing.assert_allclose(found.log_probs[0, 0], numpy.log([0.4, 0.7]), rtol=1e-5)


def first_symbols(search, chain, first=0):
    found = search.decode({chain.first: [first, first]}, 0, 1)
    return found.outputs.reshape(-1), found


NUM_SAMPLES = 4000


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0.4, 0.3, 0.2, 0.1]),
        ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
        # 0.4 alone is not enough; 0.4 and 0.3 are.
        ({"top_p": 0.55}, [4 / 7, 3 / 7, 0, 0]),
        ({"top_k": 3, "top_p": 0.8}, [4 / 9, 3 / 9, 2 / 9, 0]),
    ],
    ids=str,
)
def test_symbols_are_drawn_with_their_probabilities(make_chain, settings, expected):
    chain = make_chain(PROBABILITIES)
    search = SamplingSearch(chain, NUM_SAMPLES, seed=3, **settings)

    symbols, found = first_symbols(search, chain)

    shares = numpy.bincount(symbols, minlength=4) / len(symbols)
    # Four standard deviations of the share of 8000 draws are 0.023 at most.
    numpy.testing.assert_allclose(shares, expected, atol=0.023)
    assert (shares[numpy.equal(expected, 0)] == 0).all()
    # Costs are the model's, whatever was drawn from.
    own = -numpy.log(numpy.take(PROBABILITIES[0], found.outputs[..., 0]))
    numpy.testing.assert_allclose(found.costs, own, rtol=1e-5)


def test_samples_go_on_from_call_to_call_and_depend_on_the_seed(make_chain):
    chain = make_chain(PROBABILITIES)
    one, same = SamplingSearch(chain, 50, seed=1), SamplingSearch(chain, 50, seed=1)

    first, second = first_symbols(one, chain)[0], first_symbols(one, chain)[0]
    again = first_symbols(same, chain)[0]
    (key,) = same._stream.keys
    key.set_value(SamplingSearch(chain, 50, seed=2)._stream.keys or key.get_value() + 1)
    other = first_symbols(same, chain)[0]

    numpy.testing.assert_array_equal(first, again)
    assert (first != second).any() and (other != second).any()


def test_samples_end_and_stay_ended(make_chain):
    chain = make_chain(PROBABILITIES)

    found = SamplingSearch(chain, 200, seed=1).decode({chain.first: [2]}, 0, 4)

    for sequence, cost in zip(found.as_lists()[0], found.costs[0], strict=True):
        assert 0 not in sequence[:-1]
        numpy.testing.assert_allclose(cost, chain.cost(2, sequence), rtol=1e-5)
    assert (found.outputs[~(numpy.arange(4) < found.lengths[..., None])] == 0).all()
    numpy.testing.assert_array_equal(
        found.finished, found.outputs[0, numpy.arange(200), found.lengths[0] - 1][None] == 0
    )
    # It ends with the probability 0.1 at first, so not all and not none do.
    assert 0 < (found.lengths == 1).sum() < 60


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_samples": 0}, "`num_samples` must be an integer from 1; got 0"),
        ({"num_samples": 2.5}, "`num_samples` must be an integer from 1; got 2.5"),
        ({"temperature": 0}, "`temperature` must be a number above 0; GreedySearch is its limit"),
        ({"top_k": 0}, "`top_k` must be an integer from 1, or None; got 0"),
        ({"top_k": True}, "`top_k` must be an integer from 1, or None; got True"),
        ({"top_p": 1.5}, "`top_p` must be a number above 0 and at most 1, or None; got 1.5"),
    ],
)
def test_wrong_settings_are_refused(make_chain, settings, message):
    with pytest.raises(ValueError, match=f"SamplingSearch: {message}"):
        SamplingSearch(make_chain(), **settings)
