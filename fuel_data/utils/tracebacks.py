"""Errors in code of the user's that a command runs: shown with where they are in that code."""

import os
import sysconfig
import traceback
from collections.abc import Iterator

import h5py
import numpy

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NOT_THEIRS = (_PACKAGE, *(os.path.dirname(module.__file__ or "") for module in (h5py, numpy)))


def describe_in_their_code(error: BaseException) -> str | None:
    """Describe an error by its traceback, from the first line that is the user's.

    Parameters
    ----------
    error : BaseException
        An error that was caught.

    Returns
    -------
    str or None
        The end of the traceback, as Python prints it. None if no code of the user's ran: what is
        wrong is then said by the error itself.

    Examples
    --------
    >>> import pickle
    >>> try:
    ...     pickle.loads(b"no pickle")
    ... except pickle.UnpicklingError as error:
    ...     print(describe_in_their_code(error))  # doctest: +ELLIPSIS
      File "<doctest ...>", line 2, in <module>
        pickle.loads(b"no pickle")
    _pickle.UnpicklingError: invalid load key, 'n'.
    """
    shown = traceback.TracebackException.from_exception(error)
    parts = list(_chain(shown))
    for part in parts:
        part.stack = traceback.StackSummary.from_list(_from_theirs(part.stack))
    if not any(part.stack or issubclass(part.exc_type, SyntaxError) for part in parts):
        return None
    lines = [line for line in shown.format() if not line.startswith("Traceback (most recent")]
    return "".join(lines).rstrip("\n")


def _chain(shown: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    yield shown
    cause = shown.__cause__
    if cause is None and not shown.__suppress_context__:
        cause = shown.__context__
    if cause is not None:
        yield from _chain(cause)


def _from_theirs(stack: traceback.StackSummary) -> list[traceback.FrameSummary]:
    for number, frame in enumerate(stack):
        if _is_theirs(frame.filename):
            return list(stack[number:])
    return []


def _is_theirs(filename: str) -> bool:
    # What is compiled from Cython is named by where it was built.
    if filename.startswith("<frozen") or filename.endswith((".pyx", ".pxd", ".pxi")):
        return False
    if any(_is_in(filename, folder) for folder in _NOT_THEIRS):
        return False
    # Where Python is no virtual environment, packages lie inside its library.
    is_package = "site-packages" in filename or "dist-packages" in filename
    return is_package or not _is_in(filename, sysconfig.get_path("stdlib"))


def _is_in(filename: str, folder: str) -> bool:
    return os.path.abspath(filename).startswith(os.path.join(folder, ""))
