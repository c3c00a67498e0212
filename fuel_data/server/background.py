"""A stream in a process in the background, for `fuel_data.transformers.MultiProcessing`."""

import contextlib
from collections.abc import Iterator
from typing import Any

from fuel_data.server.access import OwnServer
from fuel_data.server.client import ServedStage, ServerDataStream
from fuel_data.server.errors import ServerError
from fuel_data.server.pickled import PickledStream
from fuel_data.server.protocol import HEARTBEAT

_WHO = "MultiProcessing"


class BackgroundStream(ServerDataStream):
    """A stream that a server process of its own reads; it is sent there as it is.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream, which must be possible to pickle.
    hwm : int
        How many items the process may prepare ahead.
    """

    def __init__(self, stream: Any, hwm: int) -> None:
        # What builds the stream over there; it is not told by name how, but given what.
        super().__init__(recipe="fuel_data.server.pickled:SentStream", hwm=hwm)
        self._access = OwnServer(PickledStream(stream, _WHO), HEARTBEAT)  # type: ignore[assignment]


class BackgroundStage(ServedStage):
    """An epoch that the process reads; its errors say which transformer has it.

    Its parameters are those of `ServedStage`.
    """

    def __next__(self) -> tuple:
        with _named():
            return super().__next__()

    def get_position(self) -> dict[str, Any]:
        """Give the position as plain data; see `ServedStage.get_position`."""
        with _named():
            return super().get_position()


@contextlib.contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except ServerError as error:
        message = str(error).removeprefix("ServerDataStream: ")
        raise type(error)(f"{_WHO}: {message}") from error
