"""Epochs of a stream, by their number where the stream can be asked for one."""

import inspect
from typing import Any


def takes_number(stream: Any) -> bool:
    """Tell whether a stream can be asked for an epoch by its number.

    Parameters
    ----------
    stream : DataStream
        Any stream, also one of a user's own.

    Returns
    -------
    bool
        Whether its ``get_epoch_iterator`` takes `epoch`.
    """
    return "epoch" in inspect.signature(stream.get_epoch_iterator).parameters


def open_epoch(stream: Any, number: int, num_done: int = 0) -> Any:
    """Begin an epoch of a stream, or go to a place in it.

    Parameters
    ----------
    stream : DataStream
        Any. One that cannot be asked for a number gives its next epoch.
    number : int
        Which epoch, counted from 0. So others who read the stream in between do not change what
        is trained on.
    num_done : int
        How many batches to leave out; they are read.

    Returns
    -------
    iterator
        Of dicts.

    Raises
    ------
    StopIteration
        If the stream has no such epoch.
    """
    chosen = {"epoch": number} if takes_number(stream) else {}
    iterator = stream.get_epoch_iterator(as_dict=True, **chosen)
    for _ in range(num_done):
        next(iterator)
    return iterator
