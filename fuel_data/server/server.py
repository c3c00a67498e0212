"""The server: one thread that talks to the clients, one that reads the stream."""

import contextlib
import hmac
import logging
import os
import time
from pathlib import Path
from typing import Any

import zmq

from fuel_data.abstract import check_is_stream
from fuel_data.server.addresses import (
    TokenFile,
    busy,
    check_address,
    default_address,
    given_token,
    new_token,
    refuse_busy_path,
)
from fuel_data.server.errors import (
    AddressError,
    ServerError,
    StrangerError,
    TokenError,
    WireError,
)
from fuel_data.server.pipeline import STOP, Pipeline
from fuel_data.server.protocol import (
    FROM_CLIENT,
    HEARTBEAT,
    HEARTBEATS,
    MAX_CLIENT_FRAME,
    MAX_HELLO,
    PROTOCOL_VERSION,
    check_message,
    describe_stream,
    set_heartbeat,
)
from fuel_data.server.wire import pack, unpack
from fuel_data.utils.arguments import number_of_seconds, whole_number
from fuel_data.utils.files import atomic_write

logger = logging.getLogger(__name__)

_INSIDE = "inproc://pipeline"
_MAX_WAIT_FOR_PIPELINE = 1.0


def start_server(
    data_stream: Any,
    port: int | None = None,
    hwm: int = 10,
    address: str | None = None,
    token: str | None = None,
    *,
    heartbeat: float = HEARTBEAT,
    ready_file: str | os.PathLike[str] | None = None,
) -> None:
    """Serve a stream until the process is interrupted.

    Parameters
    ----------
    data_stream : AbstractDataStream
        What is served. Each client has its own position in it.
    port : int, optional
        Serve at this port of the loopback; not together with `address`.
    hwm : int
        How many batches are prepared ahead for one client at most.
    address : str, optional
        ``'ipc://PATH'`` or ``'tcp://127.0.0.1:PORT'``. Without `port` and `address`, a socket in a
        folder that only the user can enter, at which a client looks that is told nothing either.
    token : str, optional
        What a client must know; by default ``FUEL_SERVER_TOKEN`` of the environment. TCP needs one:
        if none is given, it is made, and left where clients of the same user find it.
    heartbeat : float
        Seconds between two signs of life.
    ready_file : path, optional
        Where the address is written once clients can connect.

    Raises
    ------
    ServerError
        If the address is taken.
    AddressError
        If the address is not one of the kinds above.
    TypeError
        If what is to be served is no stream.
    """
    with Server(address_of(port, address), token=token, heartbeat=heartbeat) as server:
        logger.info("serving at %s", server.address)
        server.serve(data_stream, hwm=hwm, ready_file=ready_file)


def address_of(port: int | None, address: str | None, host: str = "127.0.0.1") -> str | None:
    """Make one address of Fuel's arguments and ours.

    Parameters
    ----------
    port : int or None
        A port of `host`.
    address : str or None
        A whole address.
    host : str
        The loopback.

    Returns
    -------
    str or None
        None if neither is given.

    Raises
    ------
    AddressError
        If both are.
    """
    if port is None:
        return address
    if address is not None:
        raise AddressError(f"address: give `port` or `address`, not both; got {port}, {address!r}.")
    return f"tcp://{host}:{port}"


class Server:
    """A bound server, which serves when it is told.

    Parameters
    ----------
    address : str, optional
        As in `start_server`.
    token : str, optional
        As in `start_server`.
    heartbeat : float
        Seconds between two signs of life.
    is_own : bool
        Whether its client started it, at a socket in a fresh folder. It asks for no token then,
        whatever the environment has for others.

    Attributes
    ----------
    address : str
        The whole address, with the port that was chosen.

    Raises
    ------
    ServerError
        If the address is taken.
    AddressError
        If it is no address of this machine.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        heartbeat: float = HEARTBEAT,
        is_own: bool = False,
    ) -> None:
        self._heartbeat = number_of_seconds("start_server", "heartbeat", heartbeat, *HEARTBEATS)
        self._path: Path | None = None
        self._token_file: TokenFile | None = None
        address = check_address(default_address() if address is None else address)
        self._context = zmq.Context()
        self._inside = self._context.socket(zmq.PAIR)
        self._inside.set_hwm(0)
        self._inside.linger = 0
        self._inside.bind(_INSIDE)
        self._stop_read, self._stop_write = os.pipe()
        # Sockets of a thread that goes on would block the end of the context.
        self._pipeline_ended = True
        self._router = self._context.socket(zmq.ROUTER)
        self._monitor = self._router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            self.address = self._bind(address)
            self._token = None if is_own else self._choose_token(token)
        except BaseException:
            self.close()
            raise
        self._clients: set[bytes] = set()
        # How often clients are still to be looked after, and when next.
        self._looks = 0
        self._look_at = 0.0

    def _bind(self, address: str) -> str:
        router = self._router
        set_heartbeat(router, self._heartbeat)
        # Sending to a client that is gone is an error, from which we learn that it is gone.
        router.router_mandatory = 1
        router.maxmsgsize = MAX_CLIENT_FRAME
        refuse_busy_path(address)
        umask = os.umask(0o077)
        try:
            router.bind(address.removesuffix(":0") + ":*" if address.endswith(":0") else address)
        except zmq.ZMQError as error:
            if error.errno == zmq.EADDRINUSE:
                raise busy(address) from error
            raise ServerError(f"address: cannot listen at {address}: {error}") from error
        finally:
            os.umask(umask)
        if address.startswith("ipc://"):
            self._path = Path(address[6:])
        return router.getsockopt_string(zmq.LAST_ENDPOINT)

    def _choose_token(self, token: str | None) -> str | None:
        token = given_token(token)
        if token is None and self.address.startswith("tcp://"):
            token = new_token()
            self._token_file = TokenFile(self.address)
            self._token_file.write(token)
        return token

    def serve(
        self,
        stream: Any,
        *,
        hwm: int = 10,
        ready_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """Serve a stream until `stop` is called.

        Parameters
        ----------
        stream : AbstractDataStream
            What is served.
        hwm : int
            How many batches are prepared ahead for one client at most.
        ready_file : path, optional
            Where the address is written once clients can connect.
        """
        hwm = whole_number("start_server", "hwm", hwm, least=1)
        check_is_stream("start_server", "data_stream", stream)
        welcome = pack(describe_stream(stream))
        pipeline = Pipeline(stream, self._context, _INSIDE, hwm)
        self._pipeline_ended = False
        pipeline.start()
        try:
            if ready_file is not None:
                with atomic_write(ready_file, "w") as file:
                    file.write(self.address)
            self._talk(welcome)
        finally:
            # Nobody may be there to hear it.
            with contextlib.suppress(zmq.Again):
                self._inside.send(STOP, zmq.NOBLOCK)
            pipeline.join(_MAX_WAIT_FOR_PIPELINE)
            self._pipeline_ended = not pipeline.is_alive()

    def stop(self) -> None:
        """Make `serve` return, from any thread or a signal handler."""
        os.write(self._stop_write, b"s")

    def _talk(self, welcome: list[Any]) -> None:
        poller = zmq.Poller()
        for source in (self._router, self._inside, self._monitor, self._stop_read):
            poller.register(source, zmq.POLLIN)
        while True:
            # Not for ever: a signal that comes just before would not be seen.
            events = dict(poller.poll(round(self._heartbeat * 250)))
            if self._stop_read in events:
                return
            if self._inside in events:
                self._pass_on()
            if self._router in events:
                self._answer(welcome)
            if self._monitor in events:
                self._monitor.recv_multipart()
                if not self._looks:
                    self._look_at = time.monotonic() + self._heartbeat
                # The next look may come too early for this one, and others go all the time.
                self._looks = 2
            if self._looks and time.monotonic() >= self._look_at:
                self._looks -= 1
                self._look_at = time.monotonic() + self._heartbeat
                self._look_after_clients()

    def _pass_on(self) -> None:
        identity, *frames = self._inside.recv_multipart(copy=False)
        if not frames:
            raise ServerError("server: the thread that reads the stream has ended unexpectedly.")
        self._send(identity.bytes, frames)

    def _answer(self, welcome: list[Any]) -> None:
        first, *frames = self._router.recv_multipart(copy=False)
        identity = first.bytes
        try:
            if identity not in self._clients and sum(map(len, frames)) > MAX_HELLO:
                raise StrangerError("the client sent a large message before it said hello.")
            message = check_message(unpack(frames), FROM_CLIENT)
            if message["type"] == "hello":
                self._check_hello(message)
                self._clients.add(identity)
                self._send(identity, welcome)
            elif identity not in self._clients:
                raise StrangerError(f"the client sent {message['type']!r} before it said hello.")
            else:
                self._inside.send_multipart([identity, *frames], copy=False)
        except WireError as error:
            refusal = {
                "type": "refused",
                "reason": str(error),
                "token": isinstance(error, TokenError),
                "hello": isinstance(error, StrangerError),
            }
            self._send(identity, pack(refusal))

    def _check_hello(self, message: dict[str, Any]) -> None:
        if message["protocol"] != PROTOCOL_VERSION:
            raise WireError(
                f"the server speaks version {PROTOCOL_VERSION} of the protocol, the client "
                f"{message['protocol']!r}. Install the same release on both sides."
            )
        # Of characters beyond ASCII, `compare_digest` takes bytes only.
        given = (message["token"] or "").encode(errors="surrogatepass")
        wanted = (self._token or "").encode(errors="surrogatepass")
        if wanted and not hmac.compare_digest(given, wanted):
            raise TokenError(
                "the token is missing or wrong. Give `token=`, or set FUEL_SERVER_TOKEN, as for "
                "the server."
            )

    def _send(self, identity: bytes, frames: list[Any]) -> None:
        try:
            self._router.send_multipart([identity, *frames], copy=False)
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            if identity in self._clients:
                self._clients.remove(identity)
                self._inside.send_multipart([identity, *pack({"type": "close"})])

    def _look_after_clients(self) -> None:
        for identity in list(self._clients):
            self._send(identity, pack({"type": "alive"}))

    def close(self) -> None:
        """Stop listening, and remove what was made for it."""
        # While the port is ours: the next server there leaves its token in the same file.
        if self._token_file is not None:
            self._token_file.remove()
        self._router.disable_monitor()
        self._monitor.close()
        self._router.close()
        self._inside.close()
        if self._pipeline_ended:
            self._context.term()
        os.close(self._stop_read)
        os.close(self._stop_write)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
