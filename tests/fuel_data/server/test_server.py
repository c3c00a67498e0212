import contextlib
import itertools
import socket
import stat
import threading
from pathlib import Path

import numpy
import pytest
import server_recipes as recipes
import zmq
from numpy.testing import assert_equal
from server_helpers import serving, wait_until

from fuel_data.server.addresses import TokenFile
from fuel_data.server.errors import AddressError, ServerError
from fuel_data.server.pipeline import STOP, Pipeline
from fuel_data.server.server import Server, start_server
from fuel_data.server.wire import pack, unpack
from fuel_data.transformers import Mapping

HELLO = {"type": "hello", "protocol": 2, "token": None}
OPEN = {"type": "open", "epoch": 0, "branch": "", "credits": 2, "state": None, "rngs": None}


class Peer:
    """A client that sends what a test tells it."""

    def __init__(self, context, address, identity):
        self.socket = context.socket(zmq.DEALER)
        if identity is not None:
            self.socket.routing_id = identity
        self.socket.linger = 0
        self.socket.connect(address)

    def send(self, *messages):
        for message in messages:
            self.socket.send_multipart(pack(message))

    def receive(self):
        assert self.socket.poll(10_000), "the server is silent"
        return unpack(self.socket.recv_multipart())

    def is_silent(self, milliseconds=50):
        return not self.socket.poll(milliseconds)


@pytest.fixture
def connect():
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(zmq.Context())

        def connect(server, identity=None):
            peer = Peer(context, server.address, identity)
            stack.callback(peer.socket.close)
            return peer

        yield connect


def test_the_welcome_says_what_the_stream_is(connect):
    stream = recipes.counted()
    stream.metadata = {"x": {"unit": "volt", "dtype": "int64"}}
    with serving(stream) as server:
        peer = connect(server)
        peer.send(HELLO)
        welcome = peer.receive()

    assert welcome.pop("pipeline").startswith("DataStream(")
    assert welcome == {
        "type": "welcome",
        "protocol": 2,
        "sources": ("x", "y"),
        "produces_examples": False,
        "axis_labels": {"x": ("batch", "feature"), "y": ("batch",)},
        "metadata": {"x": {"unit": "volt", "dtype": "int64"}},
        "num_batches": 5,
        "num_examples": 10,
        "height": "0",
        "rngs": [],
        "digest": recipes.counted().digest(),
    }


def test_batches_are_numbered_and_carry_the_state_after_them(connect):
    reference = recipes.counted().get_epoch_iterator(epoch=3)
    with serving(recipes.counted()) as server:
        peer = connect(server)
        peer.send(HELLO, {**OPEN, "epoch": 3, "credits": 10})
        peer.receive()
        assert peer.receive() == {
            "type": "opened",
            "state": reference.get_state(),
            "rngs": [],
            "hwm": 10,
        }
        for index in range(5):
            message = peer.receive()
            data = next(reference)
            assert (message["type"], message["epoch"], message["index"]) == ("batch", 3, index)
            assert_equal(message["data"], data)
            assert message["state"] == reference.get_state()
        message = peer.receive()

    assert (message["type"], message["epoch"], message["index"]) == ("end", 3, 5)


def test_no_more_batches_come_than_there_are_credits(connect):
    with serving(recipes.in_order()) as server:
        peer = connect(server)
        peer.send(HELLO, OPEN)
        first = [peer.receive()["type"] for _ in range(4)]
        silent = peer.is_silent()
        peer.send({"type": "more", "credits": 1})
        fifth = peer.receive()
        silent_again = peer.is_silent()

    assert first == ["welcome", "opened", "batch", "batch"]
    assert silent
    assert fifth["index"] == 2
    assert silent_again


def test_the_server_prepares_no_more_than_its_own_limit(connect):
    with serving(recipes.in_order(), hwm=1) as server:
        peer = connect(server)
        peer.send(HELLO, {**OPEN, "credits": 100})

        assert [peer.receive()["type"] for _ in range(3)] == ["welcome", "opened", "batch"]
        assert peer.is_silent()


def test_each_client_has_its_own_position(connect):
    with serving(recipes.in_order()) as server:
        one, two = connect(server), connect(server)
        one.send(HELLO, {**OPEN, "credits": 3})
        two.send(HELLO, {**OPEN, "credits": 1})
        indices = {
            peer: [peer.receive().get("index") for _ in range(2 + number)]
            for peer, number in ((one, 3), (two, 1))
        }
        one.send({"type": "more", "credits": 1})
        one.receive()
        silent = two.is_silent()

    assert indices[one] == [None, None, 0, 1, 2]
    assert indices[two] == [None, None, 0]
    assert silent


def test_an_epoch_begins_after_a_state(connect):
    reference = recipes.counted().get_epoch_iterator(epoch=1)
    next(reference), next(reference)
    with serving(recipes.counted()) as server:
        peer = connect(server)
        peer.send(HELLO, {**OPEN, "epoch": 1, "state": reference.get_state()})
        peer.receive(), peer.receive()
        message = peer.receive()

    assert message["index"] == 2
    assert_equal(message["data"], next(reference))


def test_a_state_of_another_pipeline_is_an_error(connect):
    state = recipes.counted(seed=2).get_epoch_iterator().get_state()
    with serving(recipes.counted(seed=1)) as server:
        peer = connect(server)
        peer.send(HELLO, {**OPEN, "state": state})
        peer.receive()
        message = peer.receive()

    assert message["type"] == "error"
    assert message["reason"].startswith("ValueError: set_state: the state is of the")


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{**HELLO, "protocol": 9}], "speaks version 2 of the protocol, the client 9. Install"),
        ([OPEN], "the client sent 'open' before it said hello"),
        ([{"type": "dance"}], "expected one of the messages hello, open, more; got {'type'"),
        ([7], "expected one of the messages"),
        ([{"type": ["hello"]}], "expected one of the messages hello, open, more; got {'type'"),
        ([{**OPEN, "credits": -1}], "the field 'credits' of 'open' is missing or wrong"),
        ([{**HELLO, "token": 2**16 * "x"}], "sent a large message before it said hello"),
        ([{"type": "open", "epoch": 0}], "the field 'branch' of 'open' is missing or wrong"),
        ([{**OPEN, "state": "s"}], "the field 'state' of 'open' is missing or wrong"),
    ],
)
def test_a_message_out_of_order_is_refused_and_the_server_goes_on(connect, messages, reason):
    with serving(recipes.in_order()) as server:
        peer, other = connect(server), connect(server)
        peer.send(*messages)
        answer = peer.receive()
        other.send(HELLO)

        assert other.receive()["type"] == "welcome"
    assert answer["type"] == "refused"
    assert reason in answer["reason"]


@pytest.mark.parametrize("header", [b"\x80\x04pickle", b'[1,["array","(,)f4,i4",[0],"C"]]'])
def test_frames_that_are_no_message_are_refused_and_the_server_goes_on(connect, header):
    with serving(recipes.in_order()) as server:
        peer = connect(server)
        peer.socket.send_multipart([header, b""])
        answer = peer.receive()
        peer.send(HELLO)

        assert peer.receive()["type"] == "welcome"
    assert "does not follow the format" in answer["reason"]


@pytest.mark.parametrize("wrong", ["wrong", "\ud800"])
def test_a_wrong_token_is_refused(connect, wrong):
    with serving(recipes.in_order(), token="right") as server:
        peer = connect(server)
        peer.send({**HELLO, "token": wrong}, OPEN)
        answers = [peer.receive() for _ in range(2)]
        peer.send({**HELLO, "token": "right"})

        assert peer.receive()["type"] == "welcome"
    assert [answer["type"] for answer in answers] == ["refused", "refused"]
    assert "Give `token=`, or set FUEL_SERVER_TOKEN" in answers[0]["reason"]


def test_tcp_without_a_token_makes_one(connect):
    with serving(recipes.in_order(), address="tcp://127.0.0.1:0") as server:
        peer = connect(server)
        peer.send(HELLO)

        assert not server.address.endswith(":0")
        assert peer.receive()["type"] == "refused"


def test_a_server_removes_its_token_before_another_can_have_its_port(monkeypatch):
    server = Server("tcp://127.0.0.1:0")
    port = int(server.address.rpartition(":")[2])
    remove = TokenFile.remove

    def remove_while_bound(file):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        remove(file)

    monkeypatch.setattr(TokenFile, "remove", remove_while_bound)
    server.close()

    assert TokenFile(server.address).read() is None


def test_a_client_is_answered_while_the_pipeline_works_on_a_batch(connect):
    begun, go_on = threading.Event(), threading.Event()

    def wait(batch):
        begun.set()
        assert go_on.wait(10)
        return batch

    with serving(Mapping(recipes.in_order(), wait)) as server:
        one, two = connect(server), connect(server)
        one.send(HELLO, OPEN)
        assert begun.wait(10)
        two.send(HELLO)
        answered = two.receive()["type"]
        go_on.set()

    assert answered == "welcome"


class _Watched:
    """A stream that tells when its iterators are closed."""

    def __init__(self, stream):
        self._stream = stream
        self.closed = threading.Event()

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def get_epoch_iterator(self, **options):
        iterator = self._stream.get_epoch_iterator(**options)
        close = iterator.close

        def closing():
            self.closed.set()
            close()

        iterator.close = closing
        return iterator


def test_a_client_may_name_itself_like_an_order_to_the_pipeline(connect):
    with serving(recipes.in_order()) as server:
        peer = connect(server, STOP)
        peer.send(HELLO, OPEN)

        assert [peer.receive()["type"] for _ in range(3)] == ["welcome", "opened", "batch"]


def test_the_epoch_of_a_client_that_went_away_is_closed(connect):
    stream = _Watched(recipes.in_order())
    with serving(stream, heartbeat=0.05) as server:
        peer = connect(server)
        peer.send(HELLO, OPEN)
        for _ in range(4):
            peer.receive()
        peer.socket.close()

        assert stream.closed.wait(10)


def test_clients_that_went_away_are_forgotten_while_others_go_all_the_time(connect):
    with serving(recipes.in_order(), heartbeat=0.2) as server:
        num_gone = itertools.count(1)

        def is_one_forgotten():
            peer = connect(server)
            peer.send(HELLO)
            peer.receive()
            peer.socket.close()
            return len(server._clients) < next(num_gone)

        wait_until(is_one_forgotten)


def test_a_value_that_cannot_be_sent_is_an_error_at_its_batch(connect):
    with serving(Mapping(recipes.in_order(), lambda batch: (set(),))) as server:
        peer = connect(server)
        peer.send(HELLO, OPEN)
        peer.receive(), peer.receive()

        assert "cannot send a builtins.set" in peer.receive()["reason"]


class _Fragile(list):
    """A list of which nobody gets the items."""

    def __iter__(self):
        raise ZeroDivisionError("it broke")


def test_a_value_that_breaks_when_it_is_sent_is_an_error_at_its_batch(connect):
    with serving(Mapping(recipes.in_order(), lambda batch: (_Fragile([1, 2]),))) as server:
        peer = connect(server)
        peer.send(HELLO, OPEN)
        peer.receive(), peer.receive()

        assert peer.receive()["reason"] == "ZeroDivisionError: it broke"


def test_a_server_ends_in_words_if_it_can_read_no_further(monkeypatch):
    monkeypatch.setattr(Pipeline, "_take_orders", lambda pipeline: False)

    with Server() as server, pytest.raises(ServerError, match="reads the stream has ended"):
        server.serve(recipes.in_order())


def test_a_batch_whose_memory_is_used_again_is_sent_as_it_was(connect):
    buffer = numpy.zeros((2, 100_000), dtype="int64")  # ZeroMQ copies small ones anyway

    def reuse(batch):
        buffer[:] = batch[0][:, None]
        return (buffer,)

    with serving(Mapping(recipes.in_order(), reuse)) as server:
        peer = connect(server)
        peer.send(HELLO, {**OPEN, "credits": 10})
        peer.receive(), peer.receive()
        wait_until(lambda: buffer[0, -1] == 8)
        batches = [peer.receive()["data"][0][:, -1].tolist() for _ in range(5)]

    assert batches == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


def test_the_default_address_is_for_the_user_only_and_a_second_server_there_is_refused(folder):
    with Server() as server:
        path = Path(server.address.removeprefix("ipc://"))
        modes = [stat.S_IMODE(place.stat().st_mode) for place in (path.parent, path)]
        with pytest.raises(ServerError, match="already listens at ipc://.*choose another address"):
            Server()

    assert modes == [0o700, 0o700]
    assert not path.exists()


def test_a_socket_in_a_folder_that_others_can_enter_is_for_the_user_only(folder):
    folder.chmod(0o755)
    with Server(f"ipc://{folder}/mine"):
        assert stat.S_IMODE((folder / "mine").stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["ipc", "tcp"])
def test_a_busy_address_is_an_error_in_words(kind, folder):
    address = f"ipc://{folder}/busy" if kind == "ipc" else "tcp://127.0.0.1:0"
    with (
        Server(address) as server,
        pytest.raises(ServerError, match=f"another process already listens at {server.address}"),
    ):
        Server(server.address)


def test_the_socket_of_a_server_that_was_killed_is_used_again(folder):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{folder}/s")

    with Server(f"ipc://{folder}/s"):
        pass


def test_port_and_address_together_are_refused():
    with pytest.raises(AddressError, match="give `port` or `address`, not both; got 1, 'ipc://a'"):
        start_server(recipes.in_order(), port=1, address="ipc://a")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hwm": 0}, "start_server: `hwm` must be at least 1; got 0"),
        ({"heartbeat": float("inf")}, "start_server: `heartbeat` must be a number .*; got inf"),
        ({"token": 7}, "token: expected text, got int"),
        ({"data_stream": recipes.in_order().dataset}, "Put a DataStream over the data set"),
        ({"data_stream": recipes.in_order}, "`data_stream` must be a stream; got <function"),
    ],
)
def test_start_server_refuses_what_it_cannot_serve(folder, options, words):
    options = {"data_stream": recipes.in_order(), "address": f"ipc://{folder}/s", **options}

    with pytest.raises((TypeError, ValueError), match=words):
        start_server(**options)
