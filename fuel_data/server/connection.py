"""A client's connection to a server, for one epoch at a time."""

import weakref
from collections.abc import Callable
from typing import Any

import zmq

from fuel_data.server.errors import (
    ConnectionLost,
    PipelineError,
    ServerError,
    TokenError,
    WireError,
)
from fuel_data.server.protocol import (
    FROM_SERVER,
    MAX_CLIENT_FRAME,
    PROTOCOL_VERSION,
    Fields,
    check_message,
    set_heartbeat,
)
from fuel_data.server.wire import pack, unpack

_CHECK_EVERY_MS = 50
# Not for ever: an interrupt that comes just before a wait is seen after it.
_WAIT_MS = 1000
# A server that starts is found this soon after it listens.
_RECONNECT_MS = 10


class Connection:
    """A socket that has said hello.

    Parameters
    ----------
    address : str
        Of the server, which need not be there yet.
    token : str or None
        What the server wants to hear.
    heartbeat : float
        Seconds between two signs of life.
    check : function
        Called again and again until the server answers the hello; raises to give up.

    Attributes
    ----------
    address : str
        As given.
    welcome : dict
        What the server said of its stream.

    Raises
    ------
    TokenError
        If the server wants another token.
    ServerError
        If it refuses for another reason.
    ConnectionLost
        If it goes away.
    """

    def __init__(
        self, address: str, token: str | None, heartbeat: float, check: Callable[[], None]
    ) -> None:
        self.address = address
        self._socket: Any = zmq.Context.instance().socket(zmq.DEALER)
        set_heartbeat(self._socket, heartbeat)
        self._socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
        self._monitor: Any = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        # A socket that is left to the garbage collector would leave its monitor open.
        self._close = weakref.finalize(self, _close, self._socket, self._monitor)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)
        try:
            self._socket.connect(address)
            self.send({"type": "hello", "protocol": PROTOCOL_VERSION, "token": token})
            self.welcome = self._receive(("welcome",), check)
        except BaseException:
            self.close()
            raise

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; it waits in a queue if need be.

        Parameters
        ----------
        message : dict
            As in `fuel_data.server.protocol`.

        Raises
        ------
        ServerError
            If it is larger than what a server takes.
        """
        frames = pack(message)
        size = max(memoryview(frame).nbytes for frame in frames)
        if size > MAX_CLIENT_FRAME:
            raise ServerError(
                f"ServerDataStream: the position has {size} bytes in one piece, of which a server "
                f"takes {MAX_CLIENT_FRAME} at most. A transformer of the served stream holds it "
                "back: let it hold less, or read the stream in this process."
            )
        self._socket.send_multipart(frames)

    def receive(self, *kinds: str) -> dict[str, Any]:
        """Wait for the next message, as long as the server is there.

        Parameters
        ----------
        *kinds : str
            Of which type it must be.

        Returns
        -------
        dict
            The message.

        Raises
        ------
        ServerError
            If it is a refusal.
        PipelineError
            If it is an error of the pipeline.
        WireError
            If it is no message of such a type.
        ConnectionLost
            If there is no further message and the server is gone, or another is in its place.
        """
        return self._receive(kinds, check=None)

    def _receive(self, kinds: tuple[str, ...], check: Callable[[], None] | None) -> dict[str, Any]:
        known = {kind: FROM_SERVER[kind] for kind in (*kinds, "refused", "error", "alive")}
        while True:
            message = self._unpack(self._wait_for_frames(check), known)
            kind = message["type"]
            if kind == "refused" and message.get("hello"):
                raise ConnectionLost("another server has taken the place of the one said hello to")
            if kind == "refused":
                error = TokenError if message.get("token") else ServerError
                raise error(f"ServerDataStream: the server refuses: {message['reason']}")
            if kind == "error":
                raise PipelineError(
                    f"ServerDataStream: in the server's pipeline: {message['reason']}\n\n"
                    f"The server's traceback:\n{message['traceback']}"
                )
            if kind != "alive":
                return message

    def _unpack(self, frames: list[Any], known: Fields) -> dict[str, Any]:
        try:
            message = check_message(unpack(frames), known)
            version = message.get("protocol", PROTOCOL_VERSION)
            if version != PROTOCOL_VERSION:
                raise WireError(f"it speaks version {version} of the protocol.")
            return message
        except WireError as error:
            raise WireError(
                f"ServerDataStream: what answers at {self.address} is no data server of this "
                f"release: {error} Correct the address, or install the same release on both sides."
            ) from error

    def _wait_for_frames(self, check: Callable[[], None] | None) -> list[Any]:
        while True:
            events = dict(self._poller.poll(_CHECK_EVERY_MS if check else _WAIT_MS))
            if self._socket in events:
                return self._socket.recv_multipart(copy=False)
            if self._monitor in events:
                raise ConnectionLost("the connection to the server broke")
            if check is not None:
                check()

    def close(self) -> None:
        """Leave the server."""
        self._close()


def _close(socket: zmq.Socket, monitor: zmq.Socket) -> None:
    socket.disable_monitor()
    monitor.close()
    socket.close(linger=0)
