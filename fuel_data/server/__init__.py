"""A data server: a process that reads a stream ahead for the training process::

    stream = serve("pipelines.py:train_stream", batch_size=128)

starts one by itself. ``fuel-server`` and `start_server` are for servers that run on their own, to
which ``ServerDataStream(address=...)`` connects. What goes over the socket is described in
`fuel_data.server.protocol` and `fuel_data.server.wire`.
"""

from fuel_data.server.arrays import recv_arrays, send_arrays
from fuel_data.server.client import ServerDataStream, serve
from fuel_data.server.errors import AddressError, PipelineError, RecipeError, ServerError, WireError
from fuel_data.server.server import start_server

__all__ = [
    "AddressError",
    "PipelineError",
    "RecipeError",
    "ServerDataStream",
    "ServerError",
    "WireError",
    "recv_arrays",
    "send_arrays",
    "serve",
    "start_server",
]
