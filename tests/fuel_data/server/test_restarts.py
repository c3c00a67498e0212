"""Servers that somebody starts by hand are killed and started again, and clients just go on."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import server_recipes as recipes
from server_helpers import RECIPES, serving, wait_until

from fuel_data.server import ServerError
from fuel_data.streams import ServerDataStream
from fuel_data.testing.checks import same_data

ROOT = str(Path(__file__).parents[3])
TRANSPORTS = pytest.mark.parametrize("transport", ["ipc", "tcp"])


@pytest.fixture
def address(folder, transport):
    """Give an address at which nobody listens."""
    if transport == "ipc":
        yield f"ipc://{folder}/by-hand"
        # A server that is killed leaves its socket.
        (folder / "by-hand").unlink(missing_ok=True)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    yield f"tcp://127.0.0.1:{port}"


@pytest.fixture
def start(address, tmp_path):
    """Start `fuel-server` as a process, by hand as it were."""
    started = []
    ready = tmp_path / "ready"

    def start():
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "fuel_data.commands.serve", f"{RECIPES}:random"]
        options = ["--address", address, "--ready-file", str(ready)]
        environment = {**os.environ, "PYTHONPATH": ROOT}
        started.append(
            subprocess.Popen([*command, *options], env=environment, stdout=subprocess.DEVNULL)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def has_message(iterator):
    connection = iterator._stage._connection
    return bool(connection._socket.poll(0))


@TRANSPORTS
def test_a_request_that_reaches_the_next_server_leads_to_a_new_hello(address):
    reference = list(recipes.random().get_epoch_iterator())
    items = []
    with ServerDataStream(address=address, hwm=1, timeout=20) as client:
        with serving(recipes.random(), address=address):
            iterator = client.get_epoch_iterator()
        for _ in range(3):
            with serving(recipes.random(), address=address):
                items += [next(iterator) for _ in range(2)]
                wait_until(lambda: has_message(iterator))
            # Asks for one more, which waits until ZeroMQ has connected again.
            items.append(next(iterator))
            with serving(recipes.random(), address=address):
                wait_until(lambda: has_message(iterator))
                items.append(next(iterator))
        with serving(recipes.random(), address=address):
            items += list(iterator)

    assert same_data(items, reference)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
@TRANSPORTS
def test_the_sequence_is_the_same_whenever_the_server_is_started_again(
    address, start, how, tmp_path
):
    reference = list(recipes.random().get_epoch_iterator())
    server = start()
    items = []
    with ServerDataStream(address=address, hwm=4, timeout=20) as client:
        iterator = client.get_epoch_iterator()
        for moment, waits in ((3, True), (9, False), (10, True), (20, False)):
            items += [next(iterator) for _ in range(moment - len(items))]
            server.send_signal(how)
            server.wait(10)
            if has_message(iterator):
                # What has come already is handed out, and as much is asked for.
                items.append(next(iterator))
            server = start()
            if waits:
                wait_until((tmp_path / "ready").exists)
        items += list(iterator)

    assert same_data(items, reference)


@pytest.mark.parametrize("transport", ["ipc"])
def test_a_loss_long_after_the_hello_is_waited_for_as_long_as_any(address):
    with ServerDataStream(address=address, timeout=0.5) as client:
        with serving(recipes.random(), address=address):
            assert client.sources == ("x", "y")
            hello = time.monotonic()
            wait_until(lambda: time.monotonic() - hello > 0.6)
        begin = time.monotonic()
        with pytest.raises(ServerError, match="no server answers"):
            next(client.get_epoch_iterator())

        assert time.monotonic() - begin > 0.5
