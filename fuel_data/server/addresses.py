"""Where a server listens, and who may connect.

The default is one socket in a folder that only the user can enter, for servers and clients: in
``$XDG_RUNTIME_DIR`` or ``~/.cache``, or beside the temporary files if these cannot be written; one
that a client starts for itself gets a fresh folder. TCP is for the loopback, and needs a token; a
server that is given none makes one and leaves it in a file that only the user can read, where a
client of the same user finds it, also that of a server which starts after the client or in the
place of one that was killed. ``FUEL_SERVER_TOKEN`` in the environment of both is the other way.
"""

import contextlib
import errno
import fcntl
import ipaddress
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import time
from pathlib import Path

from fuel_data.server.errors import AddressError, ServerError

_TOKEN_VARIABLE = "FUEL_SERVER_TOKEN"
# `sun_path` has 108 bytes on Linux, 104 on others, with a zero at the end.
_MAX_IPC_PATH = 103
_PREFIX = "fuel-"
# With room for the names of folders and sockets below that for temporary files.
_LONGEST_NAME = len("/fuel_data-4294967295/server")
# Seconds after which a folder without a living server is taken for left.
_TIME_TO_START = 60
_MAX_PORT = 65535
_TCP = re.compile(r"tcp://(?P<host>[^/]+):(?P<port>\d+)")


def make_ipc_folder() -> Path:
    """Make a fresh folder of mode 0700 whose path is short enough for a socket.

    Folders that servers left when they were killed together with their owners are removed.

    Returns
    -------
    Path
        Under the folder for temporary files, or under ``/tmp`` if that is too deep.

    Raises
    ------
    ServerError
        If it cannot be made.
    """
    try:
        parent = _temporary_folder()
        _remove_left_folders(Path(parent))
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    except OSError as error:
        raise ServerError(
            f"address: there is no folder for the socket of a server ({error.strerror}). Make room "
            "in the folder for temporary files, or set TMPDIR to one that can be written."
        ) from error


def _temporary_folder() -> str:
    """Give the folder for temporary files, or /tmp if it is too deep for sockets."""
    parent = tempfile.gettempdir()
    return parent if len(os.fsencode(parent)) <= _MAX_IPC_PATH - _LONGEST_NAME else "/tmp"


def hold_folder(folder: Path) -> int:
    """Mark a folder as that of a living server, until the process ends or closes the descriptor.

    Parameters
    ----------
    folder : Path
        From `make_ipc_folder`.

    Returns
    -------
    int
        A file descriptor.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _remove_left_folders(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        # Somebody else may remove it at the same time.
        with contextlib.suppress(OSError):
            about = folder.lstat()
            new = time.time() - about.st_mtime < _TIME_TO_START
            if new or about.st_uid != os.getuid() or not stat.S_ISDIR(about.st_mode):
                continue
            os.close(hold_folder(folder))
            shutil.rmtree(folder, ignore_errors=True)


def default_address() -> str:
    """Name the socket of the user's server, if nothing else is said.

    Returns
    -------
    str
        ``ipc://…``, in a folder of mode 0700: in ``$XDG_RUNTIME_DIR``, in ``~/.cache``, or, if it
        cannot be made there, in the folder for temporary files.

    Raises
    ------
    AddressError
        If none of them can be made.
    """
    return f"ipc://{_users_folder()}/server"


def _users_folder() -> Path:
    """Make the folder of the user's sockets and tokens; nobody else can enter it."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or Path.home() / ".cache") / "fuel_data"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        return folder
    except OSError as error:
        # In a container or a batch job, the home may be missing or not writable.
        why = f"{folder} cannot be made ({error.strerror})"
    folder = Path(_temporary_folder()) / f"fuel_data-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
        # Others can make files there, too, and would be given the tokens.
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
            raise FileExistsError(errno.EEXIST, "it is somebody else's")
        folder.chmod(0o700)
    except OSError as error:
        raise AddressError(
            f"address: there is no folder for the default one: {why}, nor {folder} "
            f"({error.strerror}). Say where to listen and connect, by --address of fuel-server and "
            "`address` in Python, or set XDG_RUNTIME_DIR to a folder of your own."
        ) from error
    return folder


def ipc_address(folder: Path) -> str:
    """Name the socket in a folder.

    Parameters
    ----------
    folder : Path
        From `make_ipc_folder`.

    Returns
    -------
    str
        ``ipc://…``
    """
    return f"ipc://{folder}/s"


def check_address(address: str) -> str:
    """Refuse an address that cannot be used, or not safely.

    Parameters
    ----------
    address : str
        ``ipc://PATH`` or ``tcp://HOST:PORT``; port 0 stands for any that is free.

    Returns
    -------
    str
        The address, with the host as a number.

    Raises
    ------
    AddressError
        If it is neither, if the path is too long, if the host is not the loopback, or if there is
        no such port.
    """
    if not isinstance(address, str) or "\0" in address:
        raise AddressError(
            f"address: expected text, 'ipc://PATH' or 'tcp://127.0.0.1:PORT', got {address!r}."
        )
    if address.startswith("ipc://") and address[6:] and not address.startswith("ipc://@"):
        length = len(os.fsencode(address[6:]))
        if length > _MAX_IPC_PATH:
            raise AddressError(
                f"address: the path of {address!r} has {length} bytes, a socket's may have "
                f"{_MAX_IPC_PATH}. Use a shorter one, for example under /tmp."
            )
        return address
    match = _TCP.fullmatch(address)
    if match is None:
        raise AddressError(
            f"address: expected 'ipc://PATH' or 'tcp://127.0.0.1:PORT', got {address!r}."
        )
    host, port = match["host"], match["port"]
    number = check_host(host, port)
    if int(port) > _MAX_PORT:
        raise AddressError(
            f"address: the port of {address!r} must be at most {_MAX_PORT}. Give the one at which "
            "the server is to listen."
        )
    return f"tcp://{number}:{port}"


def check_host(host: str, port: int | str | None) -> str:
    """Refuse a host that is not the loopback.

    Parameters
    ----------
    host : str
        A name or a number.
    port : int, str or None
        The port, for the error; None if it was not given.

    Returns
    -------
    str
        The host as a number.

    Raises
    ------
    AddressError
        If it is another machine, or all of them.
    """
    if host == "localhost":
        return "127.0.0.1"
    with contextlib.suppress(ValueError):
        number = ipaddress.IPv4Address(host)
        if number.is_loopback:
            return str(number)
    shown = "PORT" if port is None else port
    address = f"tcp://{host}:{shown}"
    raise AddressError(
        f"address: {address!r} is not on this machine's loopback. Data is not encrypted on its "
        f"way, so it stays on one machine; serve at tcp://127.0.0.1:{shown} and reach it from "
        f"another machine through 'ssh -L {shown}:127.0.0.1:{shown} HOST'."
    )


def refuse_busy_path(address: str) -> None:
    """Refuse the path of a socket that answers, or of a file that is none.

    ZeroMQ would take its place without a word.

    Parameters
    ----------
    address : str
        Checked.

    Raises
    ------
    ServerError
        If the path is taken, or its folder is missing.
    """
    if not address.startswith("ipc://"):
        return
    path = Path(address[6:])
    if not path.parent.is_dir():
        raise ServerError(f"address: the folder of {address!r} does not exist. Make it first.")
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise ServerError(f"address: {path} exists and is no socket. Choose another path.")
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(ConnectionRefusedError):
        probe.connect(str(path))
        raise busy(address)


def busy(address: str) -> ServerError:
    """Make the error for an address that is taken.

    Parameters
    ----------
    address : str
        The address.

    Returns
    -------
    ServerError
    """
    return ServerError(
        f"address: another process already listens at {address}. Stop it, or choose another "
        "address."
    )


class TokenFile:
    """The file in which a server leaves the token that it made for a port.

    Parameters
    ----------
    address : str
        A TCP address with its final port.
    """

    def __init__(self, address: str) -> None:
        self.path = _users_folder() / f"{address.rpartition(':')[2]}.token"

    def write(self, token: str) -> None:
        """Leave a token, readable by the user only.

        Parameters
        ----------
        token : str
            The token.

        Raises
        ------
        ServerError
            If it cannot be written.
        """
        try:
            self.path.unlink(missing_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w") as file:
                file.write(token)
        except OSError as error:
            raise ServerError(
                f"token: {self.path} could not be written ({error.strerror}). Make room there, or "
                "set FUEL_SERVER_TOKEN for the server and its clients."
            ) from error

    def read(self) -> str | None:
        """Read the token, if there is one.

        Returns
        -------
        str or None
        """
        try:
            return self.path.read_text()
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def given_token(token: str | None) -> str | None:
    """Find the token that the user gave to a server or its client.

    Parameters
    ----------
    token : str or None
        The argument.

    Returns
    -------
    str or None
        The argument, or that of the environment. An empty one is none: nobody would ask for it.

    Raises
    ------
    AddressError
        If it is no text.
    """
    if not isinstance(token, str | None):
        raise AddressError(f"token: expected text, got {type(token).__name__}.")
    return token or os.environ.get(_TOKEN_VARIABLE) or None


def new_token() -> str:
    """Make a token that cannot be guessed.

    Returns
    -------
    str
    """
    return secrets.token_hex(16)
