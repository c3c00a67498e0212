"""What a data server and its clients say to each other.

A server has a ROUTER socket, each open epoch of a client a DEALER socket. Every message is a dict
in the format of `fuel_data.server.wire`, with a ``type``:

======== ============ ==========================================================================
type     from         holds
======== ============ ==========================================================================
hello    client       ``protocol``, ``token``
welcome  server       ``protocol`` and what the stream says of itself: ``sources``,
                      ``produces_examples``, ``axis_labels``, ``metadata`` (open: unknown keys are
                      passed on; dtypes are among it where they are known), ``num_batches``,
                      ``num_examples``, ``height`` in its pipeline, ``rngs`` (see below) before it
                      was read, ``digest``, ``pipeline`` (its repr)
refused  server       ``reason``: another protocol, a wrong token, a message out of order;
                      ``token``: whether it is the token; ``hello``: whether it is that the client
                      has not said hello
open     client       ``epoch``, ``branch``, ``credits``; ``state`` to begin after that position,
                      or ``rngs`` to begin at the front with them
opened   server       ``state`` and ``rngs`` before the first batch; ``hwm``: how many batches are
                      prepared ahead at most, whatever the credits
more     client       ``credits``: how many batches more the client can take
batch    server       ``epoch`` and ``index`` of the batch, ``data`` (one item for each source) and
                      the ``state`` of the served iterator and the ``rngs`` after it
end      server       ``epoch``, ``index`` (how many batches there were), ``state`` and ``rngs``
left     server       nothing: the epoch was left for another client; open it again
error    server       ``reason``: why the stream could not be opened or read, ``traceback``
alive    server       nothing: asks the transport whether the client is still there
======== ============ ==========================================================================

*Order.* A connection says hello once, then opens epochs, one after the other: the next may be
opened when the last was ended. An epoch that is left in the middle is left with its connection.

*Flow.* A server sends as many batches as it was given credits for, and prepares none beyond, so the
queues between the two are bounded by the client's `hwm`. The client gives credits back in lots as
it hands batches out. After a loss it begins with one batch and asks for one more ahead with each
that comes, since a batch over which a server dies takes those with it that wait to be sent.

*Positions.* The client keeps the state that came with the last batch that it handed out, which is
plain data. Nothing else is needed to go on: after a loss it opens the epoch at this state, with the
same or another server, and the first batch that comes is the next one. Batches that were prepared
beyond it are thrown away with the connection. A batch whose number is not the expected one counts
as a loss.

*Places.* What is random depends on where it stands in the pipeline, whichever processes read it. So
the client says on which branch of its pipeline it reads the stream, and the server how high the
stream stands there, from which the client counts on.

*Reconnections.* ZeroMQ connects again by itself, perhaps to a server that was started in the place
of the one that said welcome; what waits to be sent goes there. That server has heard no hello, and
says so, which the client takes for the loss that it is: it says hello on a fresh connection.

*Generators with a memory*, which users hand in as ``rng=``, draw from epoch to epoch on. Preparing
draws ahead, and a new server begins anew, so the states of all of them, ``rngs``, come with each
batch, and the client sends those that it saw last when it opens an epoch at its front. One epoch of
such a pipeline is open at a time: opening it leaves the others, whose clients open them again, at
their states, when they read on.

*Life signs.* ZeroMQ's own heartbeats go both ways, answered by its I/O threads: neither a batch
that takes minutes nor code that holds Python's lock looks like a death. A process that is killed
closes its connections at once, one that hangs or is cut off is noticed after one missed heartbeat.
The client learns it from the socket's monitor; the server, when it cannot send to the client any
more. Server and client use the same interval.
"""

from typing import Any

from fuel_data.abstract import height_of
from fuel_data.axes import labels_of
from fuel_data.randomness import rng_states, rngs_of_stream
from fuel_data.server.errors import WireError

PROTOCOL_VERSION = 2
HEARTBEAT = 2.0
"""Seconds between two signs of life, and how long one is waited for."""
HEARTBEATS = 0.001, 1e6
"""The least and the most that it may be; ZeroMQ counts milliseconds, in 32 bits."""

# A client sends positions, of which the buffers of transformers may be a part, and no batches.
MAX_CLIENT_FRAME = 1 << 28
MAX_HELLO = 1 << 16
"""How many bytes are read of a client that has not said hello."""


def describe_stream(stream: Any) -> dict[str, Any]:
    """Make the welcome of a server.

    Parameters
    ----------
    stream : AbstractDataStream
        What is served.

    Returns
    -------
    dict
        The message.
    """
    return {
        "type": "welcome",
        "protocol": PROTOCOL_VERSION,
        "sources": tuple(stream.sources),
        "produces_examples": bool(stream.produces_examples),
        "axis_labels": labels_of(stream),
        "metadata": dict(stream.metadata),
        "num_batches": stream.num_batches,
        "num_examples": stream.num_examples,
        "height": height_of(stream),
        "rngs": rng_states(rngs_of_stream(stream)),
        "digest": stream.digest(),
        "pipeline": repr(stream),
    }


Fields = dict[str, dict[str, tuple[type, ...]]]
"""What there must be in a message of each type. Unknown fields are passed over."""

FROM_CLIENT: Fields = {
    "hello": {"protocol": (int,), "token": (str, type(None))},
    "open": {
        "epoch": (int,),
        "branch": (str,),
        "credits": (int,),
        "state": (dict, type(None)),
        "rngs": (list, type(None)),
    },
    "more": {"credits": (int,)},
}
FROM_SERVER: Fields = {
    "welcome": {
        "protocol": (int,),
        "sources": (tuple,),
        "produces_examples": (bool,),
        "axis_labels": (dict, type(None)),
        "metadata": (dict,),
        "num_batches": (object,),
        "num_examples": (object,),
        "height": (str,),
        "rngs": (list,),
        "digest": (str,),
        "pipeline": (str,),
    },
    # Those of other versions of the protocol too.
    "refused": {"reason": (str,)},
    "opened": {"state": (dict,), "rngs": (list,), "hwm": (int,)},
    "batch": {
        "epoch": (int,),
        "index": (int,),
        "data": (tuple,),
        "state": (dict,),
        "rngs": (list,),
    },
    "end": {"epoch": (int,), "index": (int,), "state": (dict,), "rngs": (list,)},
    "left": {},
    "error": {"reason": (str,), "traceback": (str,)},
    "alive": {},
}


def check_message(message: Any, known: Fields) -> dict[str, Any]:
    """Refuse what is no message of the other side.

    Parameters
    ----------
    message : object
        What was received.
    known : dict
        What may be: `FROM_CLIENT`, `FROM_SERVER` or a part of it.

    Returns
    -------
    dict
        The message.

    Raises
    ------
    WireError
        If it is of no type that may be, or a field is missing or of another type.
    """
    kind = message.get("type") if isinstance(message, dict) else None
    if not isinstance(kind, str) or kind not in known:
        raise WireError(f"expected one of the messages {', '.join(known)}; got {message!r:.80}.")
    for field, types in known[kind].items():
        value = message.get(field, ...)
        if not isinstance(value, types) or (isinstance(value, int) and value < 0):
            raise WireError(f"the field {field!r} of {kind!r} is missing or wrong.")
    return message


def set_heartbeat(socket: Any, heartbeat: float) -> None:
    """Make a socket notice that the other side hangs.

    Parameters
    ----------
    socket : zmq.Socket
        Before it is bound or connected.
    heartbeat : float
        Seconds.
    """
    milliseconds = round(heartbeat * 1000)
    socket.heartbeat_ivl = milliseconds
    socket.heartbeat_timeout = milliseconds
    # Credits bound the queues. A full queue would stop the reading of heartbeats too.
    socket.set_hwm(0)
    socket.linger = 0
