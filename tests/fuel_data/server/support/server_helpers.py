"""What several tests of the server need."""

import contextlib
import threading
import time
from pathlib import Path

from fuel_data.server.server import Server

RECIPES = str(Path(__file__).with_name("server_recipes.py"))


def wait_until(claim, seconds=20):
    """Wait for a claim to hold; fail if it does not in time."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def processes_naming(text):
    """Give the ids of the living processes whose command line has a text in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


@contextlib.contextmanager
def serving(stream, *, hwm=10, **options):
    """Serve a stream in a thread of this process."""
    with Server(**options) as server:
        failures = []

        def run():
            try:
                server.serve(stream, hwm=hwm)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield server
        finally:
            server.stop()
            thread.join(10)
            assert not thread.is_alive()
        assert not failures
