"""What several tests of the server need."""

import contextlib
import threading
import time
from pathlib import Path

from fuel_data.server.addresses import ipc_address, make_ipc_folder
from fuel_data.server.server import Server
from fuel_data.streams import ServerDataStream

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
def serving(stream, *, hwm=10, address=None, **options):
    """Serve a stream in a thread of this process, at an address of its own if none is given."""
    with contextlib.ExitStack() as at_end:
        if address is None:
            folder = make_ipc_folder()
            at_end.callback(folder.rmdir)
            address = ipc_address(folder)
        server = at_end.enter_context(Server(address, **options))
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


@contextlib.contextmanager
def client_of(stream, **options):
    with serving(stream) as server, ServerDataStream(address=server.address, **options) as client:
        yield client


def epochs(stream, number=2):
    return [list(stream.get_epoch_iterator()) for _ in range(number)]
