"""What is random over a served stream is drawn as without a server, and at no place twice."""

import contextlib
import pickle

import numpy
import pytest
import server_recipes as recipes
from server_helpers import client_of, epochs

from fuel_data.server import ServerError
from fuel_data.testing.checks import check_resumption, same_data
from fuel_data.transformers import Mapping, Merge, MultiProcessing, Rename


def drawing(stream, source):
    """Add a source that is drawn."""
    return Mapping(stream, _draw, add_sources=(source,), random=True)


def _draw(batch, rng):
    return (rng.integers(2**62, size=len(batch[0])),)


def test_a_chain_of_servers_draws_what_the_pipeline_draws_without_them():
    with contextlib.ExitStack() as stack:

        def build(serve):
            first = serve(drawing(recipes.counted(), "a"))
            second = serve(drawing(first, "b"))
            return drawing(MultiProcessing(drawing(second, "c")), "d")

        alone = epochs(build(lambda stream: stream))
        served = stack.enter_context(build(lambda stream: stack.enter_context(client_of(stream))))

        assert same_data(epochs(served), alone)
    drawn = numpy.concatenate([item[2:] for epoch in alone for item in epoch], axis=None)
    assert len({*drawn.tolist()}) == len(drawn) == 2 * 4 * 10


def test_each_branch_of_a_pipeline_draws_what_it_draws_without_servers():
    def build(serve):
        left, right = (serve(drawing(recipes.counted(), "a")) for _ in range(2))
        return drawing(Merge([left, Rename(right, {"x": "u", "y": "v", "a": "b"})]), "c")

    alone = epochs(build(lambda stream: stream))
    with client_of(drawing(recipes.counted(), "a")) as client:
        assert same_data(epochs(build(lambda _: client)), alone)
        check_resumption(lambda _: build(lambda _: client), by_pickle=False)
    assert not any(numpy.array_equal(item[2], item[5]) for item in alone[0])


def test_what_an_older_release_saved_is_refused_since_it_drew_otherwise():
    with client_of(recipes.counted()) as client:
        assert client.num_batches == 5
        client._welcome["protocol"] = 1
        saved = pickle.dumps(client)

    with pytest.raises(ServerError, match="version 1 of the protocol; now it is 2, .* begin anew"):
        pickle.loads(saved)
