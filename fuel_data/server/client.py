"""The client: a stream that another process reads; see `serve`."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fuel_data.axes import AxisLabels, of_sources
from fuel_data.iterator import FORMAT, OpaqueStage
from fuel_data.randomness import rng_states, set_rng_states
from fuel_data.server.access import Access, OwnServer, RunningServer
from fuel_data.server.addresses import check_host, default_address
from fuel_data.server.connection import Connection
from fuel_data.server.errors import ConnectionLost, ServerError
from fuel_data.server.protocol import (
    HEARTBEAT,
    HEARTBEATS,
    PROTOCOL_VERSION,
)
from fuel_data.server.recipe import Recipe
from fuel_data.server.server import address_of
from fuel_data.streams import AbstractDataStream
from fuel_data.utils.arguments import number_of_seconds, whole_number


def serve(recipe: str, /, **arguments: Any) -> "ServerDataStream":
    """Make a stream that a server process of its own reads.

    Parameters
    ----------
    recipe : str
        ``'module:function'`` or ``'file.py:function'``; the function builds a stream and returns
        it. See `fuel_data.server.recipe`.
    **arguments
        Its arguments: None, numbers, text, lists and dicts of them.

    Returns
    -------
    ServerDataStream
        The process starts when the stream is first read, or asked for its sources, and ends with
        `close` or with this process, however that ends.

    Raises
    ------
    RecipeError
        If the file does not exist, or an argument is of another kind.

    Examples
    --------
    The function that builds the stream, in ``pipelines.py``::

        def train_stream(batch_size):
            train = MNIST(("train",))
            scheme = ShuffledScheme(train.num_examples, batch_size)
            return DataStream(train, iteration_scheme=scheme)

    The training script, which starts the server by this one line::

        stream = serve("pipelines.py:train_stream", batch_size=128)
        for features, targets in stream.get_epoch_iterator():
            ...
    """
    return ServerDataStream(recipe=recipe, arguments=arguments)


class ServerDataStream(AbstractDataStream):
    """A stream that a server reads, in a process of its own.

    It gives exactly what the served stream gives in this process, random numbers included, and so
    do transformers over it. It goes on exactly where it was when the server was killed or this
    process continues from a checkpoint: the position of its iterators is that of the served ones.
    Arrays belong to the receiver and can be written to. One thread at a time may use it.

    Parameters
    ----------
    sources : sequence of str, optional
        What the server is expected to give; an error says so if it gives other sources.
    produces_examples : bool, optional
        Likewise.
    host : str
        Of a running server, a name of the loopback; it needs a `port`.
    port : int, optional
        Of a running server. Without `port`, `address` and `recipe`, it is looked for where
        `start_server` and ``fuel-server`` listen if they are not told either: at a socket in a
        folder of the user's.
    hwm : int
        How many batches the server may prepare ahead.
    axis_labels : dict from source to tuple of str or None, optional
        What the server is expected to say, as `sources`.
    recipe : str, optional
        How to build the stream; see `serve`. A server process is then started and ended by need.
    arguments : mapping of str to plain data, optional
        The arguments of `recipe`.
    address : str, optional
        Where a running server listens, in place of `host` and `port`.
    token : str, optional
        What a running server wants to hear; by default that of the environment variable
        ``FUEL_SERVER_TOKEN``, or that which a server of the same user left for its port.
    timeout : float
        Seconds after which a running server is given up if it cannot be reached.
    heartbeat : float
        Seconds between two signs of life.

    Raises
    ------
    AddressError, RecipeError
        If the server cannot be where the arguments say.
    ValueError
        If a number is none that may be.
    """

    def __init__(
        self,
        sources: Sequence[str] | None = None,
        produces_examples: bool | None = None,
        host: str = "localhost",
        port: int | None = None,
        hwm: int = 10,
        axis_labels: AxisLabels | None = None,
        *,
        recipe: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        address: str | None = None,
        token: str | None = None,
        timeout: float = 60.0,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        # What the base sets of a stream, the server says of this one.
        self.iteration_scheme = None
        self.epochs_begun = 0
        self._expected: dict[str, Any] = {
            "sources": None if sources is None else tuple(sources),
            "produces_examples": produces_examples,
            "axis_labels": axis_labels,
        }
        self._hwm = whole_number("ServerDataStream", "hwm", hwm, least=1)
        timeout = number_of_seconds("ServerDataStream", "timeout", timeout, 0, math.inf)
        heartbeat = number_of_seconds("ServerDataStream", "heartbeat", heartbeat, *HEARTBEATS)
        self._access: Access
        if recipe is None:
            if arguments is not None:
                raise ValueError("ServerDataStream: `arguments` are those of a `recipe`.")
            check_host(host, port)
            where = address_of(port, address, host) or default_address()
            self._access = RunningServer(where, token, timeout, heartbeat)
        elif address is not None or port is not None:
            raise ValueError("ServerDataStream: give a `recipe` or an address, not both.")
        else:
            self._access = OwnServer(Recipe(recipe, arguments), heartbeat)
        self._welcome: dict[str, Any] | None = None
        self._idle: list[Connection] = []
        self._rngs: list[DistantGenerator] | None = None
        self._was_lost = False

    def _said(self, name: str) -> Any:
        expected = self._expected.get(name)
        if expected is not None and self._welcome is None:
            return expected
        if self._welcome is None:
            self._release(self._connect())
        assert self._welcome is not None
        return self._welcome[name]

    @property  # type: ignore[misc]
    def sources(self) -> tuple[str, ...]:
        """Names of the items of each example or batch."""
        return self._said("sources")

    @property  # type: ignore[misc]
    def produces_examples(self) -> bool:
        """Whether the items are single examples, not batches."""
        return self._said("produces_examples")

    @property
    def axis_labels(self) -> AxisLabels | None:  # type: ignore[override]
        """Names of the axes by source."""
        return self._said("axis_labels")

    @property
    def metadata(self) -> dict[str, dict[str, Any]]:  # type: ignore[override]
        """Open information on each source."""
        return self._said("metadata")

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has, examples or batches; None if that is not known."""
        return self._said("num_batches")

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has, in batches or not; None if that is not known."""
        return self._said("num_examples")

    @property
    def _height(self) -> str:
        """How high it stands: where the served stream does; see `height_over`."""
        return self._said("height")

    def digest(self) -> str:
        """Give the digest of the served pipeline; see `AbstractDataStream.digest`."""
        return self._said("digest")

    def identity(self) -> dict[str, Any]:
        """Say which pipeline is served, and how high those over it stand, for their digests."""
        served = {"served": self.digest(), "height": self._height}
        return {"class": type(self).__qualname__, **served}

    def all_rngs(self) -> list[Any]:
        """Give where the generators with a memory stand that the server draws from.

        Returns
        -------
        list of DistantGenerator
            As after what was read last, whatever the server has prepared since.
        """
        if self._rngs is None:
            self._rngs = [DistantGenerator(state) for state in self._said("rngs")]
        return list(self._rngs)

    def get_data(self, request: Any = None) -> tuple:
        """Refuse: a position belongs to an epoch's iterator, not to the stream."""
        raise ValueError(
            "ServerDataStream.get_data: read next(stream.get_epoch_iterator()) instead."
        )

    def open_stage(self, epoch: int, branch: str = "") -> Any:
        """Open an epoch; see `AbstractDataStream.open_stage`.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        branch : str
            Tells the branches of a pipeline apart, for random keys.

        Returns
        -------
        ServedStage
        """
        return ServedStage(self, epoch, f"{branch}/{self._height}")

    def close(self) -> None:
        """End the server if it is our own, and the connections. Reading starts it again."""
        while self._idle:
            self._idle.pop().close()
        self._access.close()

    def _connect(self) -> Connection:
        """Connect, or reuse a connection whose epoch has ended, and check what is served."""
        if self._idle:
            return self._idle.pop()
        while True:
            try:
                connection = self._access.connect()
                break
            except ConnectionLost:
                self._access.lost(None)
        try:
            self._check_welcome(connection.welcome)
        except ServerError:
            connection.close()
            raise
        self._welcome = connection.welcome
        return connection

    def _check_welcome(self, welcome: dict[str, Any]) -> None:
        for name, expected in self._expected.items():
            if name == "axis_labels" and expected is not None:
                # A data set knows those of sources that it was not asked for, too.
                expected = of_sources(expected, welcome["sources"])
            if expected is not None and expected != welcome[name]:
                raise ServerError(
                    f"ServerDataStream: `{name}` must be {expected!r} as it was given, but the "
                    f"server's is {welcome[name]!r}. It serves {welcome['pipeline']}."
                )
        if self._welcome is not None and self._welcome["digest"] != welcome["digest"]:
            raise ServerError(
                f"ServerDataStream: the server now serves another pipeline, "
                f"{welcome['pipeline']}; before it was {self._welcome['pipeline']}. Serve the same "
                "stream with the same arguments, seeds and data, or make a new ServerDataStream."
            )

    def _release(self, connection: Connection) -> None:
        self._idle.append(connection)

    def _progressed(self) -> None:
        self._was_lost = False
        self._access.progressed()

    def _lost(self, connection: Connection | None) -> None:
        """Take note that a connection broke, or raise if there is no hope."""
        if connection is not None:
            connection.close()
        self._was_lost = True
        self._access.lost(connection)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = (state["_welcome"] or {}).get("protocol", PROTOCOL_VERSION)
        if version != PROTOCOL_VERSION:
            raise ServerError(
                "ServerDataStream: this was saved by a release whose servers speak version "
                f"{version} of the protocol; now it is {PROTOCOL_VERSION}, and what is random over "
                "a server would be drawn otherwise. Go on with that release, or begin anew."
            )
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._access!r})"


class DistantGenerator:
    """Where a generator with a memory stands that another process draws from.

    `rng_state` and `set_rng_state` take it for one of numpy.

    Parameters
    ----------
    state : plain data
        From `rng_state`.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    @property
    def bit_generator(self) -> "DistantGenerator":
        """What has the state."""
        return self


class ServedStage(OpaqueStage):
    """An epoch that a server reads; see `fuel_data.iterator.Stage`.

    Parameters
    ----------
    stream : ServerDataStream
        Whose stage this is.
    epoch : int
        Number of the epoch.
    place : str
        Place in the pipeline, which the server reads on the same branch.
    """

    def __init__(self, stream: ServerDataStream, epoch: int, place: str) -> None:
        self.stream = stream
        self.epoch = epoch
        self.place = place
        self._position: dict[str, Any] | None = None
        self._index = 0
        self._connection: Connection | None = None
        self._handed_out = 0
        # How many batches are prepared ahead: now, and at most.
        self._ahead = 0
        self._limit = 0
        self._ended = False

    def __next__(self) -> tuple:
        if self._ended:
            raise StopIteration
        message = self._try(self._receive)
        self._go_to(message)
        self.stream._progressed()
        if message["type"] == "end":
            self._ended = True
            self._release()
            raise StopIteration
        assert self._connection is not None
        self._handed_out += 1
        if self._ahead < self._limit:
            self._ahead += 1
            self._ask_for(self._handed_out + 1)
        # In lots, for a message costs about as much as a small batch.
        elif self._handed_out >= max(1, self._limit // 2):
            self._ask_for(self._handed_out)
        return message["data"]

    def _ask_for(self, credits: int) -> None:
        assert self._connection is not None
        self._connection.send({"type": "more", "credits": credits})
        self._handed_out = 0

    def _release(self) -> None:
        assert self._connection is not None
        self.stream._release(self._connection)
        self._connection = None

    def _go_to(self, message: dict[str, Any]) -> None:
        self._position = message["state"]["position"]
        self._index = message["state"]["index"]
        set_rng_states(self.stream.all_rngs(), message["rngs"])

    def _try(self, action: Callable[[], Any]) -> Any:
        """Do something with the server, and again with the next one if it dies over it."""
        while True:
            try:
                return action()
            except ConnectionLost:
                connection, self._connection = self._connection, None
                self.stream._lost(connection)

    def _receive(self) -> dict[str, Any]:
        message = self._open().receive("batch", "end", "left")
        while message["type"] == "left":
            self._release()
            message = self._open().receive("batch", "end", "left")
        if (message["epoch"], message["index"]) != (self.epoch, self._index):
            # A message was taken and then lost to an interrupt.
            raise ConnectionLost(f"batch {self._index} was expected, {message['index']} came")
        return message

    def _open(self) -> Connection:
        if self._connection is not None:
            return self._connection
        connection = self._connection = self.stream._connect()
        state = rngs = None
        if self._position is None:
            rngs = rng_states(self.stream.all_rngs())
        else:
            state = {
                "format": FORMAT,
                "pipeline": connection.welcome["digest"],
                "epoch": self.epoch,
                "index": self._index,
                "position": self._position,
            }
        # A server that dies over a batch takes those with it that wait to be sent. So the next one
        # is asked for one batch, and for one more ahead with each that comes.
        careful = self.stream._was_lost
        connection.send(
            {
                "type": "open",
                "epoch": self.epoch,
                "branch": self.place.rpartition("/")[0],
                "credits": 0 if careful else self.stream._hwm,
                "state": state,
                "rngs": rngs,
            }
        )
        opened = connection.receive("opened")
        self._go_to(opened)
        self._limit = min(self.stream._hwm, opened["hwm"])
        self._ahead = 1 if careful else self._limit
        self._handed_out = 0
        if careful:
            self._ask_for(1)
        return connection

    def get_position(self) -> dict[str, Any]:
        """Give the position of the served stage as plain data; see `Stage.get_position`.

        Returns
        -------
        dict
            What came with the latest item. The server is asked if nothing has come yet.
        """
        if self._position is None:
            self._try(self._open)
        assert self._position is not None
        return self._position

    def set_position(self, position: dict[str, Any]) -> None:
        """Go to a position of this epoch; see `Stage.set_position`.

        Parameters
        ----------
        position : dict
            From `get_position`.
        """
        self.close()
        self._ended = False
        self._position = position
        self._index = position.get("index", 0)
        if self.stream.all_rngs():
            # They go to where they were, too, which the server knows.
            self._try(self._open)

    def close(self) -> None:
        """Leave the server. The next read comes back to it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
