"""Clients of servers that somebody else starts. Those that start their own are in `test_client`."""

import contextlib
import os
import socket
import threading
import time

import pytest
import server_recipes as recipes
import zmq
from numpy.testing import assert_equal
from server_helpers import serving, wait_until

from fuel_data.server import ServerError, WireError
from fuel_data.server.addresses import TokenFile
from fuel_data.server.protocol import describe_stream
from fuel_data.server.server import Server
from fuel_data.server.wire import pack
from fuel_data.streams import ServerDataStream
from fuel_data.testing.checks import same_data
from fuel_data.transformers import Mapping

WELCOME = describe_stream(recipes.in_order())
STATE = recipes.in_order().get_epoch_iterator().get_state()
OPENED = {"type": "opened", "state": STATE, "rngs": [], "hwm": 1}


def test_a_server_and_a_client_that_are_told_nothing_find_each_other(folder):
    with (
        Server() as server,
        ServerDataStream(("x",), False) as client,
        waiting(client, lambda: list(client.get_epoch_iterator())) as results,
    ):
        thread = threading.Thread(target=server.serve, args=(recipes.in_order(),))
        thread.start()
        wait_until(lambda: results)
        server.stop()
        thread.join(10)

    assert same_data(results[0], list(recipes.in_order().get_epoch_iterator()))


def test_the_client_finds_the_token_of_a_server_of_the_same_user(folder):
    with (
        serving(recipes.in_order(), address="tcp://127.0.0.1:0") as server,
        ServerDataStream(address=server.address) as client,
    ):
        assert client.num_batches == 5
        assert len(list(folder.rglob("*.token"))) == 1
    assert list(folder.rglob("*.token")) == []


def test_a_wrong_token_is_an_error_at_once():
    with (
        serving(recipes.in_order(), token="right") as server,
        ServerDataStream(address=server.address, token="wrong") as client,
        pytest.raises(ServerError, match="the server refuses: the token is missing or wrong"),
    ):
        next(client.get_epoch_iterator())


def test_a_server_that_is_not_there_yet_is_waited_for(folder):
    address = f"ipc://{folder}/late"
    results = []
    with ServerDataStream(address=address) as client:
        reader = threading.Thread(target=lambda: results.append(client.sources))
        reader.start()
        with serving(recipes.in_order(), address=address):
            reader.join(10)

    assert results == [("x",)]


@pytest.fixture
def port():
    """Give a port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def waiting(client, read):
    """Read in a thread, which waits for a server when the block begins."""
    results, checks = [], []
    check = client._access._check

    def checking():
        checks.append(None)
        check()

    client._access._check = checking
    reader = threading.Thread(target=lambda: results.append(read()), daemon=True)
    reader.start()
    # The first may be that of the loss, before it connects again.
    wait_until(lambda: len(checks) > 2)
    yield results
    reader.join(10)


def test_the_token_of_a_server_that_starts_after_its_client_is_found(port):
    address = f"tcp://127.0.0.1:{port}"
    with (
        ServerDataStream(address=address) as client,
        waiting(client, lambda: client.sources) as results,
        serving(recipes.in_order(), address=address),
    ):
        wait_until(lambda: results)

    assert results == [("x",)]


def test_the_token_of_a_server_that_was_started_again_is_found(port):
    address = f"tcp://127.0.0.1:{port}"
    reference = list(recipes.random().get_epoch_iterator())
    with ServerDataStream(address=address, hwm=2) as client:
        with serving(recipes.random(), address=address):
            iterator = client.get_epoch_iterator()
            items = [next(iterator) for _ in range(7)]
        # As a server that was killed leaves it.
        TokenFile(address).write("of the server before")
        with (
            waiting(client, lambda: list(iterator)) as results,
            serving(recipes.random(), address=address),
        ):
            wait_until(lambda: results)

    assert same_data(items + results[0], reference)


def test_a_token_that_is_in_no_file_is_asked_for_in_the_end(port):
    address = f"tcp://127.0.0.1:{port}"
    with (
        serving(recipes.in_order(), address=address, token="right"),
        ServerDataStream(address=address, timeout=0.2) as client,
        pytest.raises(ServerError, match="the server refuses: the token .*Give `token=`"),
    ):
        next(client.get_epoch_iterator())


def test_a_server_that_never_comes_is_an_error_that_says_what_to_do(folder):
    with (
        ServerDataStream(address=f"ipc://{folder}/never", timeout=0.1) as client,
        pytest.raises(ServerError, match="no server answers at ipc://.* for 0.1 sec.*fuel-server"),
    ):
        next(client.get_epoch_iterator())


def test_a_server_that_is_waited_for_is_named_once_with_the_end_of_the_wait(folder, caplog):
    with ServerDataStream(address=f"ipc://{folder}/never", timeout=1.4) as client:
        client._access.patience = 0.1
        with pytest.raises(ServerError, match="no server answers"):
            next(client.get_epoch_iterator())

    words = f"waiting for a server to answer at ipc://{folder}/never, for 1 seconds more"
    assert [record.getMessage() for record in caplog.records] == [f"ServerDataStream: {words}"]


def test_a_server_that_answers_soon_is_not_waited_for_aloud(caplog):
    with (
        serving(recipes.in_order()) as server,
        ServerDataStream(address=server.address) as client,
    ):
        list(client.get_epoch_iterator())

    assert caplog.records == []


def test_a_server_that_was_started_again_at_its_address_is_found_and_goes_on(folder):
    address = f"ipc://{folder}/again"
    reference = list(recipes.random().get_epoch_iterator())
    with ServerDataStream(address=address, hwm=2) as client:
        with serving(recipes.random(), address=address):
            iterator = client.get_epoch_iterator()
            items = [next(iterator) for _ in range(7)]
        with serving(recipes.random(), address=address):
            items += list(iterator)

    assert same_data(items, reference)


def test_another_pipeline_at_the_address_is_an_error(folder):
    address = f"ipc://{folder}/other"
    with ServerDataStream(address=address, hwm=1) as client:
        with serving(recipes.counted(seed=1), address=address):
            iterator = client.get_epoch_iterator()
            next(iterator)
        with (
            serving(recipes.counted(seed=2), address=address),
            pytest.raises(ServerError, match="now serves another pipeline, DataStream"),
        ):
            list(iterator)


def test_what_is_no_data_server_is_given_up(folder):
    with socket.socket(socket.AF_UNIX) as other, contextlib.ExitStack() as stack:
        other.bind(f"{folder}/other")
        other.listen()
        done = threading.Event()

        def hang_up():
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    other.accept()[0].close()

        stack.callback(os.unlink, f"{folder}/other")
        other.settimeout(0.1)
        thread = threading.Thread(target=hang_up)
        thread.start()
        stack.callback(thread.join)
        stack.callback(done.set)
        client = ServerDataStream(address=f"ipc://{folder}/other", timeout=0.3)

        with pytest.raises(ServerError, match="no server answers"):
            next(client.get_epoch_iterator())


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([[b"hello"]], "the message does not follow the format"),
        ([pack(["hello"])], r"one of the messages welcome, .*; got \['hello'\]. Correct the add"),
        ([pack({"type": "welcome", "protocol": 2})], "the field 'sources' of 'welcome' is miss"),
        ([pack({**WELCOME, "protocol": 3})], "speaks version 3 of the protocol. Correct .* inst"),
        ([pack(WELCOME), pack({"type": "end"})], "the messages opened, .*; got {'type': 'end'"),
        ([pack(WELCOME), pack(OPENED), pack({"type": "batch"})], "field 'epoch' of 'batch' is"),
    ],
)
def test_what_answers_otherwise_than_a_data_server_is_named(folder, answers, words):
    address = f"ipc://{folder}/other"

    def answer():
        to_hello, *to_open = answers
        identity, *_ = other.recv_multipart()
        other.send_multipart([identity, *to_hello])
        if to_open:
            other.recv_multipart()
        for frames in to_open:
            other.send_multipart([identity, *frames])

    with (
        zmq.Context() as context,
        context.socket(zmq.ROUTER) as other,
        ServerDataStream(address=address, hwm=1) as client,
    ):
        other.bind(address)
        other.linger, other.rcvtimeo = 0, 10_000
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(WireError, match=f"at {address} is no data server .*{words}"):
            next(client.get_epoch_iterator())
        thread.join()
    os.unlink(f"{folder}/other")


def test_a_batch_that_takes_many_heartbeats_is_waited_for():
    def wait(batch):
        time.sleep(0.5)
        return batch

    with (
        serving(Mapping(recipes.in_order(2), wait), heartbeat=0.05) as server,
        ServerDataStream(address=server.address, heartbeat=0.05, timeout=0.1) as client,
    ):
        assert_equal(list(client.get_epoch_iterator()), [([0, 1],)])
