"""Arrays over a socket of one's own, without the server.

>>> import zmq
>>> with zmq.Context() as context, context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as two:
...     _ = one.bind("inproc://example"), two.connect("inproc://example")
...     send_arrays(one, [numpy.arange(3), numpy.array([["ragged"], None], dtype=object)])
...     recv_arrays(two)
[array([0, 1, 2]), array([list(['ragged']), None], dtype=object)]
"""

from collections.abc import Sequence
from typing import Any

import numpy
import zmq

from fuel_data.server.errors import WireError
from fuel_data.server.wire import pack, unpack

_STOP = {"stop": True}


def send_arrays(
    socket: zmq.Socket, arrays: Sequence[numpy.ndarray] | None, stop: bool = False
) -> None:
    """Send arrays as one message, in the format of `fuel_data.server.wire`.

    Parameters
    ----------
    socket : zmq.Socket
        Where they go.
    arrays : sequence of array
        Arrays of any dtype, shape and order; of dtype object, if what they hold can be sent.
    stop : bool, optional
        Whether to say, instead, that no more come.

    Raises
    ------
    WireError
        If something cannot be sent; nothing is sent then.
    """
    socket.send_multipart(pack(_STOP if stop else list(arrays or ())))


def recv_arrays(socket: zmq.Socket) -> list[Any]:
    """Receive what `send_arrays` sent.

    Parameters
    ----------
    socket : zmq.Socket
        Where they come from.

    Returns
    -------
    list of array
        They can be written to.

    Raises
    ------
    StopIteration
        If the other side says that no more come.
    WireError
        If the message is of another kind.
    """
    frames = [bytearray(frame) for frame in socket.recv_multipart()]
    message = unpack(frames)
    if message == _STOP:
        raise StopIteration
    if not isinstance(message, list):
        raise WireError(f"recv_arrays: expected arrays, got a {type(message).__name__}.")
    return message
