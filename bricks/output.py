"""Output that nobody reads any more, which is no reason to stop training."""

import contextlib
import errno
import logging
import os
import sys
from collections.abc import Iterator
from typing import IO

logger = logging.getLogger(__name__)

# A pipe whose reader is gone (`train.py | head`), a terminal that was closed.
_CLOSED = (errno.EPIPE, errno.EIO)


@contextlib.contextmanager
def until_closed(file: IO[str] | None = None) -> Iterator[None]:
    """Give a context in which a file is written to that may be closed at its other end.

    What the process writes to it from then on is dropped, and a warning is logged once.

    Parameters
    ----------
    file : file, optional
        Of text. By default standard output.

    Yields
    ------
    None

    Raises
    ------
    OSError
        If writing fails in another way.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _CLOSED:
            raise
        _drop(sys.stdout if file is None else file)
        logger.warning("Nobody reads what is printed any more (%s); training goes on.", error)
        # The warning may have gone the same way, and would fail again when Python exits.
        try:
            sys.stderr.flush()
        except OSError:
            _drop(sys.stderr)


def _drop(file: IO[str]) -> None:
    # As the documentation of Python's `signal` advises: what is left in the buffer goes there too.
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, file.fileno())
        finally:
            os.close(nowhere)
