"""One process that makes messages for another."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import shutil
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import zmq

# How long what a producer has sent may still be on its way when it has ended, in milliseconds.
_ON_ITS_WAY = 1000


class ProducerError(RuntimeError):
    """A producer failed, or ended while the consumer waited for a message."""


class ProducerSocket(zmq.Socket):
    """The socket of a consumer, which does not wait for a producer that has ended."""

    def watch(self, process: Any, errors: Any) -> None:
        """Say whose messages come.

        Parameters
        ----------
        process : multiprocessing.Process
            The producer.
        errors : multiprocessing.connection.Connection
            Where it says why it fails.
        """
        # Attributes of a socket are options of ZeroMQ, unless they go in this way.
        self.__dict__["producer"] = (process, errors)

    def recv(self, flags: int = 0, copy: bool = True, track: bool = False) -> Any:
        """Receive one frame; see `zmq.Socket.recv`, which all other ways of receiving call.

        Parameters
        ----------
        flags : int, optional
            As for `zmq.Socket.recv`.
        copy, track : bool, optional
            As for `zmq.Socket.recv`.

        Returns
        -------
        bytes or zmq.Frame

        Raises
        ------
        ProducerError
            If no message comes any more.
        """
        if not flags & zmq.NOBLOCK and not self.poll(0):
            self._wait()
        return super().recv(flags, copy, track)

    def _wait(self) -> None:
        process, errors = self.__dict__["producer"]
        poller = zmq.Poller()
        poller.register(self, zmq.POLLIN)
        poller.register(process.sentinel, zmq.POLLIN)
        ready = dict(poller.poll())
        if self in ready or self.poll(_ON_ITS_WAY):
            return
        status, report = _end_of(process, errors)
        raise ProducerError(
            report
            or f"the producer ended (exit status {status}) while the consumer waited for another "
            "message."
        )


def producer_consumer(
    producer: Callable[[zmq.Socket], Any],
    consumer: Callable[[zmq.Socket], Any],
    addr: str | None = None,
    port: int | None = None,
    context: zmq.Context | None = None,
) -> Any:
    """Run a producer in a process of its own and a consumer in this one.

    Parameters
    ----------
    producer : function of a socket
        Sends messages on a PUSH socket. It must be a function of a module, or a
        `functools.partial` of one with arguments that can be pickled.
    consumer : function of a socket
        Receives the messages, in order, on a PULL socket.
    addr : str, optional
        Where they meet, such as ``'tcp://127.0.0.1'``; by default in a folder that only this user
        can enter, or there if `port` is given.
    port : int, optional
        Port for `addr`; by default one that is free.
    context : zmq.Context, optional
        The context of the consumer's socket.

    Returns
    -------
    object
        What the consumer returns. The producer is ended then, if it has not ended before.

    Raises
    ------
    ProducerError
        If the producer fails, with its traceback, dies, or ends while the consumer waits.
    ValueError
        If the producer cannot be handed to another process.
    """
    with contextlib.ExitStack() as at_end:
        if context is None:
            context = at_end.enter_context(zmq.Context())
        socket = ProducerSocket(context, zmq.PULL)
        at_end.callback(socket.close, linger=0)
        address, folder = at_end.enter_context(_bind(socket, addr, port))
        errors, process = _start(producer, address, folder)
        at_end.callback(errors.close)
        at_end.callback(_end, process)
        socket.watch(process, errors)
        result = consumer(socket)
        # What can be read is a report, or the end of a producer that has ended.
        if errors.poll():
            status, report = _end_of(process, errors)
            if report or status:
                raise ProducerError(report or f"the producer died (exit status {status}).")
        return result


@contextlib.contextmanager
def _bind(
    socket: zmq.Socket, addr: str | None, port: int | None
) -> Iterator[tuple[str, str | None]]:
    """Give the address, and the folder that was made for it if there is one."""
    if addr is None and port is None:
        folder = tempfile.mkdtemp(prefix="producer-")
        try:
            socket.bind(f"ipc://{folder}/socket")
            yield f"ipc://{folder}/socket", folder
        finally:
            # The producer has done it already, if it ever ran.
            shutil.rmtree(folder, ignore_errors=True)
        return
    addr = addr or "tcp://127.0.0.1"
    if port is None:
        yield f"{addr}:{socket.bind_to_random_port(addr)}", None
        return
    socket.bind(f"{addr}:{port}")
    yield f"{addr}:{port}", None


def _start(producer: Callable, address: str, folder: str | None) -> tuple[Any, Any]:
    # Never by fork: the threads of this process, ZeroMQ's own among them, would not be there.
    spawn = multiprocessing.get_context("spawn")
    errors, theirs = spawn.Pipe(duplex=False)
    arguments = (producer, address, folder, theirs)
    process = spawn.Process(target=_produce, args=arguments, daemon=True)
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        errors.close()
        raise ValueError(
            f"producer_consumer: `producer` must be a function of a module, or a functools.partial "
            f"of one, to be run in another process; got {producer!r}: {error}"
        ) from error
    finally:
        theirs.close()
    return errors, process


def _produce(producer: Callable, address: str, folder: str | None, errors: Any) -> None:
    threading.Thread(target=_end_with_consumer, args=(folder,), daemon=True).start()
    try:
        with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
            _connect(socket, address)
            # Nobody else needs it, and whoever is killed from now on leaves nothing.
            _remove(folder)
            producer(socket)
    except BaseException:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


def _connect(socket: zmq.Socket, address: str) -> None:
    """Connect, and wait until it is done."""
    with socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED) as monitor:
        socket.connect(address)
        monitor.recv_multipart()
        socket.disable_monitor()


def _remove(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_consumer(folder: str | None) -> None:
    consumer = multiprocessing.parent_process()
    assert consumer is not None
    # Another child of the consumer may keep the pipe open that tells of its end, so the parent's
    # number is looked at, too.
    while consumer.is_alive() and os.getppid() == consumer.pid:
        consumer.join(1)
    _remove(folder)
    os._exit(1)


def _end(process: Any) -> None:
    process.terminate()
    process.join()
    process.close()


def _end_of(process: Any, errors: Any) -> tuple[int, str]:
    """Wait for the end of a producer that ends; give its exit status, and its report or ''."""
    report = ""
    with contextlib.suppress(EOFError):
        report = f"the producer failed:\n{errors.recv()}"
    process.join()
    return process.exitcode, report
