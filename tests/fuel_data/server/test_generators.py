"""Generators with a memory, handed in as ``rng=``, go on where they were behind servers, too."""

import contextlib

import pytest
import server_recipes as recipes
from numpy.testing import assert_equal
from server_helpers import client_of, epochs, serving

from fuel_data.streams import ServerDataStream
from fuel_data.testing.checks import same_data


def test_a_generator_with_a_memory_is_not_ahead_after_an_epoch_that_was_left():
    own = recipes.with_generator()
    next(own.get_epoch_iterator())
    with client_of(recipes.with_generator()) as client:
        next(client.get_epoch_iterator())

        assert same_data(epochs(client), epochs(own))


def test_iterators_that_share_a_generator_do_not_disturb_each_other():
    own = recipes.noise()
    next(own.get_epoch_iterator())
    reference = list(recipes.noise().get_epoch_iterator()), list(own.get_epoch_iterator())
    with client_of(recipes.noise(), hwm=1) as client:
        one = client.get_epoch_iterator()
        first = [next(one)]
        two = client.get_epoch_iterator()
        second = [next(two)]
        pairs = list(zip(one, two, strict=True))

    assert same_data(first + [pair[0] for pair in pairs], reference[0])
    assert same_data(second + [pair[1] for pair in pairs], reference[1])


def test_a_generator_of_two_branches_goes_on_where_it_was_with_another_server():
    reference = list(recipes.sharing_a_generator())
    with client_of(recipes.sharing_a_generator()) as client:
        iterator = client.get_epoch_iterator()
        first, state = [next(iterator) for _ in range(2)], iterator.get_state()
    with client_of(recipes.sharing_a_generator()) as client:
        iterator = client.get_epoch_iterator()
        iterator.set_state(state)

        assert same_data(first + list(iterator), reference)


@contextlib.contextmanager
def chain_of_servers(length, folder):
    """Give a client of a server that is a client of a server, and so on, at the same addresses."""
    stream = recipes.with_generator()
    with contextlib.ExitStack() as stack:
        for number in range(length):
            server = stack.enter_context(serving(stream, address=f"ipc://{folder}/{number}"))
            stream = stack.enter_context(ServerDataStream(address=server.address))
        yield stream


@pytest.mark.parametrize("length", [1, 2])
def test_epochs_go_on_from_every_state_after_servers_were_started_again(length, folder):
    own = recipes.with_generator()
    reference = epochs(own, 1)
    state_of_own = own.get_state()
    reference += epochs(own, 2)
    with chain_of_servers(length, folder) as client:
        assert same_data(epochs(client, 1), reference[:1])
        between = client.get_state()
        iterator = client.get_epoch_iterator()
        assert same_data(list(iterator), reference[1])
        end = iterator.get_state()

    assert_equal(between, state_of_own)
    with chain_of_servers(length, folder):
        assert same_data(epochs(client, 1), reference[2:])
    with chain_of_servers(length, folder) as other:
        other.set_state(between)
        assert same_data(epochs(other), reference[1:])
        other.get_epoch_iterator().set_state(end)
        assert same_data(epochs(other, 1), reference[2:])


def test_a_report_moves_no_generator_on():
    with client_of(recipes.with_generator()) as client:
        next(client.get_epoch_iterator())
        before = client.get_state()
        client.report()

        assert_equal(client.get_state(), before)
