"""What can go wrong between a data server and its clients."""


class ServerError(RuntimeError):
    """The server could not give what was asked; the message says why and what to do."""


class PipelineError(ServerError):
    """The served pipeline raised; the message carries the traceback from the server."""


class WireError(ServerError):
    """A message that does not follow the wire format, or a value that it cannot carry."""


class TokenError(WireError):
    """A token that is missing or wrong."""


class StrangerError(WireError):
    """A message of a client that has not said hello to this server."""


class RecipeError(ValueError):
    """A recipe that names no stream: a wrong file, function or argument."""


class AddressError(ValueError):
    """An address that cannot be used, or not safely."""


class ConnectionLost(Exception):
    """The other side is gone. The client takes care of it; it never reaches a user."""
