"""The thread in which a server reads its stream.

It is the only one that touches the stream. It takes orders and gives messages through one socket
inside the process, so that the thread that talks to the clients can always answer.
"""

import threading
import traceback
from collections import OrderedDict
from typing import Any

import zmq

from fuel_data.abstract import makes_own_iterators
from fuel_data.iterator import DataIterator
from fuel_data.randomness import rng_states, rngs_of_stream, set_rng_states
from fuel_data.server.wire import pack, unpack

STOP = b"stop"


class Pipeline(threading.Thread):
    """Read a stream for any number of clients.

    Parameters
    ----------
    stream : AbstractDataStream
        What is read.
    context : zmq.Context
        That of the server.
    endpoint : str
        Where the server's thread has bound its end, a PAIR socket.
    hwm : int
        How many batches are prepared for one client at most.
    """

    def __init__(self, stream: Any, context: zmq.Context, endpoint: str, hwm: int) -> None:
        # A batch that never ends must not keep the process alive.
        super().__init__(name="fuel pipeline", daemon=True)
        self._stream = stream
        self._hwm = hwm
        self._context = context
        self._endpoint = endpoint
        # In the order in which they are served; each batch sends its client to the end.
        self._sessions: OrderedDict[bytes, _Session] = OrderedDict()

    def run(self) -> None:
        """Work until told to stop. The server is told when the work is over, however it ended."""
        self._socket: Any = self._context.socket(zmq.PAIR)
        self._socket.set_hwm(0)
        self._socket.linger = 0
        self._socket.connect(self._endpoint)
        try:
            while self._take_orders():
                ready = [key for key, session in self._sessions.items() if session.credits]
                if ready:
                    self._sessions.move_to_end(ready[0])
                    self._send(ready[0], self._sessions[ready[0]].read())
        finally:
            self._socket.send(STOP)
            self._socket.close()

    def _take_orders(self) -> bool:
        """Take all orders that wait, or wait for one if there is nothing else to do."""
        idle = not any(session.credits for session in self._sessions.values())
        while self._socket.poll(None if idle else 0):
            identity, *frames = self._socket.recv_multipart()
            # A client may have chosen any identity, that of `STOP` too.
            if not frames:
                return False
            self._obey(identity, unpack(frames))
            idle = False
        return True

    def _obey(self, identity: bytes, order: dict[str, Any]) -> None:
        if order["type"] == "open":
            self._drop(identity)
            self._open(identity, order)
        elif order["type"] == "more" and identity in self._sessions:
            self._sessions[identity].give(order["credits"])
        elif order["type"] == "close":
            self._drop(identity)

    def _open(self, identity: bytes, order: dict[str, Any]) -> None:
        session = _Session(self._stream, self._hwm)
        answer = session.open(order)
        if answer.get("rngs"):
            for other in list(self._sessions):
                self._send(other, {"type": "left"})
        self._sessions[identity] = session
        self._send(identity, answer)

    def _drop(self, identity: bytes) -> None:
        session = self._sessions.pop(identity, None)
        if session is not None:
            session.close()

    def _send(self, identity: bytes, message: dict[str, Any]) -> None:
        try:
            frames = pack(message)
        except Exception as error:  # of a class of the user's too, by which a value came
            message = _failure(error)
            frames = pack(message)
        if message["type"] in ("end", "error", "left"):
            self._drop(identity)
        # Copied here: the stream may use the memory of its batch for the next one.
        self._socket.send_multipart([identity, *frames], copy=True)


class _Session:
    """One epoch, as one client reads it."""

    def __init__(self, stream: Any, hwm: int) -> None:
        self.credits = 0
        self._stream = stream
        self._hwm = hwm
        self._iterator: Any = None
        self._rngs: list[Any] = []

    def open(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            self._rngs = rngs_of_stream(self._stream)
            if order["rngs"] is not None:
                set_rng_states(self._rngs, order["rngs"])
            self._iterator = self._begin(order["epoch"], order["branch"])
            if order["state"] is not None:
                self._iterator.set_state(order["state"])
            standing = self._standing()
        except BaseException as error:  # sys.exit() in a pipeline too
            return _failure(error)
        self.give(order["credits"])
        return {"type": "opened", **standing, "hwm": self._hwm}

    def _begin(self, epoch: int, branch: str) -> Any:
        if makes_own_iterators(self._stream):
            return self._stream.get_epoch_iterator(epoch=epoch)
        return DataIterator(self._stream, epoch=epoch, branch=branch)

    def _standing(self) -> dict[str, Any]:
        return {"state": self._iterator.get_state(), "rngs": rng_states(self._rngs)}

    def give(self, number: int) -> None:
        self.credits = min(self.credits + number, self._hwm)

    def read(self) -> dict[str, Any]:
        iterator = self._iterator
        place = {"epoch": iterator.epoch, "index": iterator.index}
        self.credits -= 1
        try:
            try:
                message = {"type": "batch", **place, "data": next(iterator)}
            except StopIteration:
                message = {"type": "end", **place}
            message.update(self._standing())
        except BaseException as error:  # sys.exit() in a pipeline too
            return _failure(error)
        return message

    def close(self) -> None:
        if self._iterator is not None:
            self._iterator.close()


def _failure(error: BaseException) -> dict[str, Any]:
    return {
        "type": "error",
        "reason": f"{type(error).__name__}: {error}",
        "traceback": "".join(traceback.format_exception(error)),
    }
