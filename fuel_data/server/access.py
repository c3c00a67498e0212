"""How a client gets to a server: to one of its own, or to one that runs somewhere.

Both connect, and both are told of losses; they differ in what they do about them, and in when they
give up.
"""

import contextlib
import logging
import re
import time
from typing import Any, Protocol

from fuel_data.server.addresses import TokenFile, check_address, given_token
from fuel_data.server.connection import Connection
from fuel_data.server.errors import AddressError, ConnectionLost, ServerError, TokenError
from fuel_data.server.pickled import PickledStream
from fuel_data.server.process import ServerProcess
from fuel_data.server.recipe import Recipe

MAX_RESTARTS = 3
# Between two attempts, for what answers at the address may be no data server.
_PAUSE = 0.05
_PATIENCE = 30.0
# Shorter: nobody may be there at all.
_PATIENCE_AT_ADDRESS = 3.0

logger = logging.getLogger(__name__)


class Access(Protocol):
    """What a stream needs to know of its server."""

    def connect(self) -> Connection:
        """Say hello.

        Returns
        -------
        Connection
            The server has answered on it.

        Raises
        ------
        ConnectionLost
            If the server goes away meanwhile.
        """

    def lost(self, connection: Connection | None) -> None:
        """Get ready to connect again after a loss.

        Parameters
        ----------
        connection : Connection or None
            The one that was lost; None if the server was lost while saying hello.

        Raises
        ------
        ServerError
            If the server is given up.
        """

    def progressed(self) -> None:
        """Take note that a batch has come."""

    def close(self) -> None:
        """Let go of the server; `connect` may be called again."""


class OwnServer:
    """A server that is started when it is needed, and again when it dies.

    Parameters
    ----------
    recipe : Recipe or PickledStream
        What it serves.
    heartbeat : float
        Seconds between two signs of life.
    start_timeout : float
        Seconds in which a process must begin to listen, which it does before it builds the stream.

    Attributes
    ----------
    process : ServerProcess or None
        The server, if it was started.
    patience : float
        Seconds after which a warning says what is waited for, again and again.
    """

    def __init__(
        self, recipe: Recipe | PickledStream, heartbeat: float, start_timeout: float = 60.0
    ) -> None:
        self.recipe = recipe
        self.heartbeat = heartbeat
        self.start_timeout = start_timeout
        self.patience = _PATIENCE
        self.process: ServerProcess | None = None
        self._losses = 0
        self._warn_at = 0.0

    def connect(self) -> Connection:
        """Say hello, to a new server if there is none; see `Access`.

        Returns
        -------
        Connection
            To the process that this object started.
        """
        if self.process is None:
            self.process = ServerProcess(self.recipe, self.heartbeat)
        self._warn_at = self.process.age() + self.patience
        return Connection(self.process.address, None, self.heartbeat, self._check)

    def _check(self) -> None:
        assert self.process is not None
        if self.process.exit_status() is not None:
            raise ConnectionLost("the server ended before it answered")
        if not self.process.listens() and self.process.age() > self.start_timeout:
            raise ConnectionLost("the server does not begin to listen")
        if self.process.age() > self._warn_at:
            self._warn_at = self.process.age() + self.patience
            logger.warning(
                "ServerDataStream: waiting for %d seconds for %s to build its stream; the server "
                "is process %d",
                self.process.age(),
                self,
                self.process.pid,
            )

    def lost(self, connection: Connection | None) -> None:
        """End the server, which hangs or is dead, and count; see `Access`.

        Parameters
        ----------
        connection : Connection or None
            The one that was lost; None if the server was lost while saying hello.

        Raises
        ------
        ServerError
            If the server could not be started, or died too often without giving a batch.
        """
        process = self.process
        if process is None or (connection is not None and connection.address != process.address):
            return  # another iterator of the stream was here before
        self.process = None
        with contextlib.closing(process):
            self._count_loss(process, connection)

    def _count_loss(self, process: ServerProcess, connection: Connection | None) -> None:
        status = process.end()
        if connection is None and status > 0:
            raise ServerError(
                f"ServerDataStream: no server could be started for {self}.{process.last_lines()}"
            )
        self._losses += 1
        if self._losses > MAX_RESTARTS:
            self._losses = 0
            raise ServerError(
                f"ServerDataStream: the server for {self} died {MAX_RESTARTS + 1} times and gave "
                "no batch in between. Read the stream in this process to see why."
                f"{process.last_lines()}"
            )

    def progressed(self) -> None:
        """Forget the losses; see `Access`."""
        self._losses = 0

    def close(self) -> None:
        """End the server; see `Access`."""
        if self.process is not None:
            self.process.close()
            self.process = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "process": None, "_losses": 0}

    def __repr__(self) -> str:
        return f"recipe={self.recipe.target!r}, arguments={self.recipe.arguments!r}"


class RunningServer:
    """A server that somebody else starts.

    Parameters
    ----------
    address : str
        Where it listens.
    token : str or None
        What it wants to hear; found in the environment or in its file if it is None.
    timeout : float
        Seconds after which it is given up if it cannot be reached.
    heartbeat : float
        Seconds between two signs of life.

    Attributes
    ----------
    patience : float
        Seconds after which a warning says, once, what is waited for and until when.
    """

    def __init__(self, address: str, token: str | None, timeout: float, heartbeat: float) -> None:
        self.address = check_address(address)
        if re.fullmatch(r"tcp://.*:0+", self.address):
            raise AddressError(
                f"ServerDataStream: no server can be reached at the port 0 of {address!r}, which "
                "lets a server choose one. Give the port that it says it serves at."
            )
        given_token(token)  # refuses what is no text; the environment may change until it is read
        self.token = token
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.patience = _PATIENCE_AT_ADDRESS
        self._lost_at: float | None = None
        self._has_warned = False
        self._refusal: TokenError | None = None

    def connect(self) -> Connection:
        """Say hello, waiting for the server if need be; see `Access`.

        Returns
        -------
        Connection
            To the address.
        """
        is_first = self._lost_at is None
        if is_first:
            self._begin_to_wait()
        connection = self._say_hello()
        if is_first:
            # A loss long after this hello has all of `timeout` for itself.
            self._lost_at = None
        return connection

    def _say_hello(self) -> Connection:
        token = given_token(self.token)
        if token is not None or not self.address.startswith("tcp://"):
            return Connection(self.address, token, self.heartbeat, self._check)
        return self._connect_by_token_file()

    def _connect_by_token_file(self) -> Connection:
        token = TokenFile(self.address).read()
        try:
            connection = Connection(self.address, token, self.heartbeat, self._check)
        except TokenError as error:
            # Of a server that started since, or was killed: the next attempt finds the new token.
            self._refusal = error
            raise ConnectionLost("the token in the file is not that of the server") from error
        self._refusal = None
        return connection

    def _begin_to_wait(self) -> None:
        self._lost_at = time.monotonic()
        self._has_warned = False

    def _check(self) -> None:
        if self._lost_at is None:
            return
        waited = time.monotonic() - self._lost_at
        if waited > self.timeout:
            self._lost_at = None
            if self._refusal is not None:
                raise self._refusal
            raise ServerError(
                f"ServerDataStream: no server answers at {self.address} for {self.timeout:g} "
                f"seconds. Start one with 'fuel-server RECIPE --address {self.address}', or "
                "correct the address; the next read tries again."
            )
        if waited > self.patience and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "ServerDataStream: waiting for a server to answer at %s, for %.0f seconds more",
                self.address,
                self.timeout - waited,
            )

    def lost(self, connection: Connection | None) -> None:
        """Wait a little, or give up; see `Access`.

        Parameters
        ----------
        connection : Connection or None
            The one that was lost; not looked at, for there is one address only.

        Raises
        ------
        ServerError
            If for `timeout` seconds the server has not answered, or wanted another token than that
            in its file.
        """
        if self._lost_at is None:
            self._begin_to_wait()
        self._check()
        time.sleep(_PAUSE)

    def progressed(self) -> None:
        """Forget the loss; see `Access`."""
        self._lost_at = None

    def close(self) -> None:
        """Do nothing: the server is not ours; see `Access`."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lost_at": None, "_refusal": None}

    def __repr__(self) -> str:
        return f"address={self.address!r}"
