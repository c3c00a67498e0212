"""What commands print, and what they say when they cannot write or are stopped."""

import contextlib
import errno
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fuel_data.utils.tracebacks import describe_in_their_code

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class WriteError(OSError):
    """Something could not be written; the text says what, why, and the way out."""


def say(text: str) -> None:
    """Print to standard output, at once, and quietly nothing if nobody reads it any more.

    Parameters
    ----------
    text : str
        One line or several, without the last line feed.

    Raises
    ------
    WriteError
        If there is no room for it.
    """
    # A terminal may lack letters, and names on the disk need be no text.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        # As in `fuel-info FILE | head`.
        _forget_output()
    except OSError as error:
        _forget_output()
        raise WriteError(f"standard output could not be written: {error.strerror}.") from error


def _forget_output() -> None:
    # What is buffered would be an error when the process ends.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextlib.contextmanager
def writing(
    path: str | os.PathLike[str],
    way_out: str,
    left: str = "",
    below: str | os.PathLike[str] | None = None,
) -> Iterator[None]:
    """Say of errors of the system what could not be written, why, and the way out.

    Parameters
    ----------
    path : path
        What the block writes.
    way_out : str
        What else could be chosen, as in ``'choose another folder by -o'``.
    left : str, optional
        A sentence on what is there now.
    below : path, optional
        If the block reads other files, too: where those are that it writes. Errors of other files
        pass as they are.

    Yields
    ------
    None
        The block writes.

    Raises
    ------
    WriteError
        If it could not.
    """
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        is_full = error.errno in _FULL
        if error.errno is None or not (is_full or below is None or _is_below(error, below)):
            raise
        reason = error.strerror
        if isinstance(error, FileExistsError) and reason == os.strerror(errno.EEXIST):
            reason = "There is something that is no folder"
        folder = os.path.dirname(path)
        if isinstance(error, FileNotFoundError) and folder and not os.path.exists(folder):
            reason = f"There is no folder {os.fspath(folder)!r}"
        advice = f"Make room there, or {way_out}." if is_full else f"{way_out.capitalize()}."
        sentences = [f"{os.fspath(path)!r} could not be written: {reason}.", left, advice]
        raise WriteError(" ".join(filter(None, sentences))) from error


def _is_below(error: OSError, folder: str | os.PathLike[str]) -> bool:
    if not isinstance(error.filename, str):
        return False
    folder = os.path.realpath(folder)
    return os.path.commonpath([folder, os.path.realpath(error.filename)]) == folder


def end_in_their_code(program: str, error: Exception) -> int:
    """End a command that failed in code of the user's, with the lines of that code.

    Parameters
    ----------
    program : str
        Its name.
    error : Exception
        What was caught. If no code of the user's ran, it is raised again, as an error of ours.

    Returns
    -------
    int
        The exit status, 1.
    """
    shown = describe_in_their_code(error)
    if shown is None:
        raise error
    print(f"{program}: the code of it failed:\n{shown}", file=sys.stderr)
    return 1


def tidy(program: str, left: str) -> Callable[[Callable], Callable]:
    """Decorate a command so that it tidies up and says so when it is interrupted or terminated.

    Parameters
    ----------
    program : str
        Its name.
    left : str
        What is there then, as in ``'no file is half written'``.

    Returns
    -------
    function
        The decorator. The exit status is 128 and the number of the signal, as shells have it.
    """

    def decorate(main: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(main)
        def run(args: Sequence[str] | None = None) -> int:
            try:
                with _terminated_by_exception():
                    return main(args)
            except KeyboardInterrupt as error:
                number = signal.SIGTERM if isinstance(error, _Terminated) else signal.SIGINT
                word = "terminated" if number == signal.SIGTERM else "interrupted"
                print(f"{program}: {word}; {left}.", file=sys.stderr)
                return 128 + number

        return run

    return decorate


class _Terminated(KeyboardInterrupt):
    """The process is asked to end."""


@contextlib.contextmanager
def _terminated_by_exception() -> Iterator[None]:
    """End the block by an exception when the process is asked to end, as batch systems do."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def end(*_: Any) -> None:
        raise _Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
