"""What commands print."""

import os
import sys


def say(text: str) -> None:
    """Print to standard output, at once, and quietly nothing if nobody reads it any more.

    Parameters
    ----------
    text : str
        One line or several, without the last line feed.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # As in `fuel-info FILE | head`. What is buffered would be an error when the process ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
