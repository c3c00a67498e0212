"""A server process of one's own: started by its owner, and gone when the owner is.

The owner starts it by exec, in a session of its own, so that an interrupt at the owner's terminal
does not reach it. The first line on its standard input is the recipe, and after it comes what the
recipe sends along, if anything; the pipe then stays open, and its end is the owner's end, however
that came about. The owner's process id is looked at too, for a
forked child of the owner may hold the pipe open. What the server prints goes to the owner's
standard error; the last lines are kept for error messages. The error that ends it is not printed
too if the owner raises it.
"""

import collections
import contextlib
import json
import os
import select
import shutil
import signal
import site
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import IO

from fuel_data.server.addresses import ipc_address, make_ipc_folder
from fuel_data.server.errors import RecipeError
from fuel_data.server.pickled import PickledStream, SentStream
from fuel_data.server.recipe import Recipe, build_from_plain

LAST_WORDS = "\x1efuel-server: "
"""Before the error that ends a server, which its owner raises."""

_LAST_LINES = 40
_MAX_WAIT_FOR_END = 5.0
_MAX_WAIT_FOR_DEATH = 1.0


class ServerProcess:
    """A running server of a recipe.

    Parameters
    ----------
    recipe : Recipe or PickledStream
        What it serves.
    heartbeat : float
        Seconds between two signs of life.

    Attributes
    ----------
    address : str
        Where it listens, or will.
    pid : int
        Its process id.
    """

    def __init__(self, recipe: Recipe | PickledStream, heartbeat: float) -> None:
        job = _describe(recipe)
        folder = make_ipc_folder()
        self.address = ipc_address(folder)
        command = [sys.executable, "-m", "fuel_data.commands.serve", recipe.target]
        options = ["--address", self.address, "--heartbeat", str(heartbeat)]
        try:
            self._process = subprocess.Popen(
                [*command, *options, "--owner", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=_environment(),
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.pid = self._process.pid
        self._started = time.monotonic()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._output = _Output(self._process.stdout)
        self.close = weakref.finalize(
            self, _end, self._process, self._output, folder, os.getpid()
        )  # fmt: skip
        # If it died already, whoever connects will see that, and its last lines.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(job)
            self._process.stdin.flush()

    def listens(self) -> bool:
        """Tell whether it has made its socket.

        Returns
        -------
        bool
        """
        return os.path.exists(self.address.removeprefix("ipc://"))

    def age(self) -> float:
        """Tell how long ago it was started.

        Returns
        -------
        float
            Seconds.
        """
        return time.monotonic() - self._started

    def exit_status(self) -> int | None:
        """Tell how it ended.

        Returns
        -------
        int or None
            None while it runs, the negated number of a signal that killed it.
        """
        return self._process.poll()

    def end(self) -> int:
        """Wait a little for its end, which shows already, and end it if it hangs.

        What it left is let go of by `close`.

        Returns
        -------
        int
            The exit status, the negated number of a signal that killed it.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_MAX_WAIT_FOR_DEATH)
        self._process.kill()
        return self._process.wait()

    def last_lines(self) -> str:
        """Give the end of what it printed, and all of the error that ended it.

        Returns
        -------
        str
            Indented, after a heading; empty if it printed nothing.
        """
        if self._process.poll() is not None:
            self._output.join()
        lines = self._output.take()
        return "\nIts last lines:\n" + "".join(f"    {line}" for line in lines) if lines else ""


def _describe(recipe: Recipe | PickledStream) -> bytes:
    if isinstance(recipe, Recipe):
        return json.dumps(recipe.to_plain()).encode() + b"\n"
    plain, payload = recipe.to_plain(), recipe.payload()
    return json.dumps({**plain, "payload": len(payload)}).encode() + b"\n" + payload


def _environment() -> dict[str, str]:
    """Let the server import the same fuel_data, if that is not installed."""
    folder = str(Path(__file__).parents[2])
    if folder in (*site.getsitepackages(), site.getusersitepackages()):
        return dict(os.environ)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, folder])}


class _Output:
    """What a process prints: shown as it comes, but for the error that ends it."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lines: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._last_words: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for raw in self._pipe:
            line = raw.decode(errors="replace")
            if self._last_words or line.startswith(LAST_WORDS):
                self._last_words.append(line.removeprefix(LAST_WORDS[0]))
            else:
                self._lines.append(line)
                _show(line)

    def take(self) -> list[str]:
        """Give the last lines to someone who says them, so that they need not be shown."""
        last_words, self._last_words = self._last_words, []
        return [*self._lines, *last_words]

    def join(self) -> None:
        """Wait a little for the last lines."""
        self._reader.join(1)

    def close(self) -> None:
        """Show what nobody took."""
        self.join()
        if not self._reader.is_alive():
            self._pipe.close()
        last_words, self._last_words = self._last_words, []
        for line in last_words:
            _show(line)


def _show(line: str) -> None:
    # The owner may have closed its standard error.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(line)


def _end(process: subprocess.Popen, output: _Output, folder: Path, owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked child of the owner, which has a copy of all this
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_MAX_WAIT_FOR_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    output.close()
    shutil.rmtree(folder, ignore_errors=True)


def receive_recipe() -> Recipe | SentStream:
    """Read the recipe, or the stream itself, that the owner of this process sent.

    Returns
    -------
    Recipe or SentStream
        With a method `build`.

    Raises
    ------
    RecipeError
        If the owner ended before all of it came.
    """
    line = sys.stdin.buffer.readline()
    if not line:
        raise RecipeError("recipe: the owner of this server ended before it sent one.")
    plain = json.loads(line)
    if "payload" not in plain:
        return build_from_plain(**plain)
    size = plain.pop("payload")
    payload = sys.stdin.buffer.read(size)
    if len(payload) < size:
        raise RecipeError("recipe: the owner of this server ended before it sent all of a stream.")
    return SentStream(payload, **plain)


def end_with_owner(owner: int, heartbeat: float, folder: Path) -> None:
    """Watch the owner of this process in a thread, and end when it has ended.

    Standard input is read from here on, so the recipe must have been.
    The process gets SIGTERM, and is ended without ceremony if it still lives a heartbeat later.

    Parameters
    ----------
    owner : int
        Process id of the owner, which is the parent.
    heartbeat : float
        Seconds between two looks.
    folder : Path
        Removed in the end.
    """
    threading.Thread(target=_watch, args=(owner, heartbeat, folder), daemon=True).start()


def _watch(owner: int, heartbeat: float, folder: Path) -> None:
    while os.getppid() == owner:
        readable, _, _ = select.select([0], [], [], heartbeat / 2)
        if readable and not os.read(0, 1024):
            break
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(heartbeat / 2)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
