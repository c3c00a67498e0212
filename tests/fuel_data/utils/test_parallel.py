import contextlib
import functools
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import zmq

from fuel_data.utils import parallel
from fuel_data.utils.parallel import ProducerError, producer_consumer


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(parallel, "_ON_ITS_WAY", 300)


def count(sender, number, fail_after=None, end_after=None):
    for index in range(number):
        if index == fail_after:
            raise KeyError("no such image")
        if index == end_after:
            os._exit(3)
        sender.send_pyobj(index)


def die_after_three(sender):
    count(sender, 3)
    sender.close()
    sender.context.term()
    os._exit(3)


def receive(receiver, number):
    return [receiver.recv_pyobj() for _ in range(number)]


def receive_and_wait_for_the_end(receiver, number):
    received = receive(receiver, number)
    (producer,) = multiprocessing.active_children()
    producer.join()
    return received


def receive_endpoint(receiver):
    return receiver.recv_pyobj(), receiver.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0")


def test_the_consumer_gets_all_in_order_and_the_producer_is_ended():
    # It would go on for ever.
    endless = functools.partial(count, number=10**9)

    result = producer_consumer(endless, functools.partial(receive, number=100))

    assert result == list(range(100))


def test_a_given_port_is_used():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    one = functools.partial(count, number=1)
    assert producer_consumer(one, receive_endpoint, port=port) == (0, f"tcp://127.0.0.1:{port}")


def test_an_address_gets_a_free_port():
    one = functools.partial(count, number=1)

    first, endpoint = producer_consumer(one, receive_endpoint, addr="tcp://127.0.0.1")

    assert first == 0
    assert endpoint.startswith("tcp://127.0.0.1:")


def test_a_producer_that_fails_is_an_error_with_its_traceback():
    failing = functools.partial(count, number=5, fail_after=2)

    with pytest.raises(ProducerError, match=r"(?s)failed:.*in count.*KeyError: 'no such image'"):
        producer_consumer(failing, functools.partial(receive, number=5))


def test_a_producer_may_end_before_the_consumer_does():
    consumer = functools.partial(receive_and_wait_for_the_end, number=3)

    assert producer_consumer(functools.partial(count, number=3), consumer) == [0, 1, 2]
    with pytest.raises(ProducerError, match=r"(?s)failed:.*KeyError: 'no such image'"):
        producer_consumer(functools.partial(count, number=4, fail_after=3), consumer)
    with pytest.raises(ProducerError, match=r"the producer died \(exit status 3\)\.$"):
        producer_consumer(die_after_three, consumer)


PROGRAM = """
import os
from fuel_data.utils.parallel import producer_consumer

def produce(sender):
    while True:
        sender.send_pyobj(os.getpid())

def consume(receiver):
    while True:
        print(receiver.recv_pyobj(), flush=True)
        input()

if __name__ == "__main__":
    producer_consumer(produce, consume)
"""


def test_the_producer_of_a_consumer_that_is_killed_ends(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {"PYTHONPATH": str(Path(parallel.__file__).parents[2]), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, tmp_path / "program.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    ) as consumer:
        producer = os.pidfd_open(int(consumer.stdout.readline()))
        consumer.kill()
    try:
        ended, _, _ = select.select([producer], [], [], 10)

        assert ended
        assert os.listdir(tmp_path) == ["program.py"]
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(producer, signal.SIGKILL)
        os.close(producer)


LATE = """
import os, signal, zmq
from fuel_data.utils.parallel import producer_consumer

if __name__ == "__main__":
    producer_consumer(os.getcwd, zmq.Socket.recv)
else:
    # The producer imports this before it can connect.
    os.kill(os.getppid(), signal.SIGKILL)
"""


def test_a_consumer_that_is_killed_before_the_producer_runs_leaves_nothing_either(tmp_path):
    (tmp_path / "program.py").write_text(LATE)
    environment = {"PYTHONPATH": str(Path(parallel.__file__).parents[2]), "TMPDIR": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        # The producer holds the pipe, too: when this comes back, both have ended.
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
        timeout=30,
    )

    assert process.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["program.py"]


def test_nothing_is_left_while_the_consumer_works(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def look(receiver):
        receiver.recv_pyobj()
        return os.listdir(tmp_path)

    assert producer_consumer(functools.partial(count, number=1), look) == []


def test_a_producer_that_dies_is_an_error_after_what_it_has_sent():
    received = []

    def collect(receiver):
        while True:
            received.append(receiver.recv_pyobj())

    with pytest.raises(ProducerError, match=r"ended \(exit status 0\) while the consumer waited"):
        producer_consumer(functools.partial(count, number=3), collect)
    assert received == [0, 1, 2]
    with pytest.raises(ProducerError, match="exit status 3"):
        producer_consumer(functools.partial(count, number=9, end_after=0), collect)


def test_what_cannot_go_to_another_process_is_refused():
    with pytest.raises(ValueError, match="`producer` must be a function of a module"):
        producer_consumer(lambda sender: None, receive)


def test_a_process_that_cannot_be_started_is_the_error_and_leaves_nothing(monkeypatch, tmp_path):
    def fail(process):
        raise OSError("no more processes")

    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with pytest.raises(OSError, match="no more processes"):
        producer_consumer(functools.partial(count, number=1), receive)
    assert list(tmp_path.iterdir()) == []
