"""The order in which extensions are called, and whether the records that they look for come.

An extension can say which records of the log it reads (`records_read`) and which it writes
(`records_written`), by name. One that reads is called after those that write what it reads,
wherever it is in the list; a name that nobody writes is an error or a warning, in words.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fuel_data.utils.names import nearest_name

logger = logging.getLogger(__name__)

# What the main loop itself writes.
_OF_THE_LOOP = ("training_finish_requested", "training_finished", "got_exception")


def flat(extensions: Iterable[Any]) -> Iterator[Any]:
    """Give extensions, and after each composite one those that it consists of.

    Parameters
    ----------
    extensions : iterable of TrainingExtension
        The extensions.

    Yields
    ------
    TrainingExtension
        Each of them.
    """
    for extension in extensions:
        yield extension
        yield from flat(getattr(extension, "sub_extensions", ()))


def handler_of(extension: Any, callback: str) -> Callable | None:
    """Find what to call for a callback.

    Parameters
    ----------
    extension : TrainingExtension
        Or any object that has methods named like callbacks.
    callback : str
        The callback.

    Returns
    -------
    callable or None
        None if the extension has no use for it.
    """
    if hasattr(extension, "handler"):
        return extension.handler(callback)
    return getattr(extension, callback, None)


def in_order(extensions: Sequence[Any]) -> list[Any]:
    """Give extensions in the order in which they are called.

    Parameters
    ----------
    extensions : sequence of TrainingExtension
        A list of a main loop, or of a composite extension.

    Returns
    -------
    list of TrainingExtension
        The list as it is, but those that read records come after those that write them, and those
        with `runs_last` after the last one that is neither such a one nor one that `only_reports`.
    """
    ordered = _readers_after_writers(extensions)
    changing = [
        position
        for position, extension in enumerate(ordered)
        if not _claims(extension, "runs_last") and not _claims(extension, "only_reports")
    ]
    last = max(changing, default=-1)
    late = [e for e in ordered[: last + 1] if _claims(e, "runs_last")]
    early = [e for e in ordered[: last + 1] if not _claims(e, "runs_last")]
    return early + late + ordered[last + 1 :]


def _claims(extension: Any, flag: str) -> bool:
    return bool(getattr(extension, flag, False))


def _readers_after_writers(extensions: Sequence[Any]) -> list[Any]:
    reads = [_names(extension, "records_read") for extension in extensions]
    writes = [_names(extension, "records_written") for extension in extensions]
    waiting = list(range(len(extensions)))
    ordered = []
    while waiting:
        ready = [i for i in waiting if not any(reads[i] & writes[j] for j in waiting if j != i)]
        # Two that read from each other stay as they are.
        first = ready[0] if ready else waiting[0]
        waiting.remove(first)
        ordered.append(extensions[first])
    return ordered


def _names(extension: Any, which: str) -> set[str]:
    return set(getattr(extension, which, ()))


def check_records(extensions: Sequence[Any]) -> None:
    """Refuse a list of extensions in which one reads a record that surely none writes.

    Parameters
    ----------
    extensions : sequence of TrainingExtension
        All of a main loop.

    Raises
    ------
    ValueError
        If a record is written by none, and there is no extension that may write others than it
        says.
    """
    if not all(_claims(extension, "writes_what_it_says") for extension in flat(extensions)):
        return
    for extension, name, written in _unwritten(extensions):
        raise ValueError(
            f"{extension.name}: it looks for a record {name!r}, which no extension of this main "
            f"loop writes.{nearest_name(name, written)}"
        )


def warn_of_missing_records(extensions: Sequence[Any], log: Any) -> None:
    """Warn of records that are looked for, that no extension says it writes, and that never came.

    Parameters
    ----------
    extensions : sequence of TrainingExtension
        All of a main loop.
    log : TrainingLogBase
        Its log.
    """
    for extension, name, written in _unwritten(extensions):
        if not log.times_of(name, after=-1):
            times = (0, *log.status["_epoch_ends"][-2:], log.status["iterations_done"])
            found = {other for time in times for other in log.peek(time)}
            logger.warning(
                "%s: it looks for a record %r, of which there is none in the log so far, and which "
                "no extension says that it writes.%s If one of your own writes it later, let it "
                "say so: `records_written = (%r,)`.",
                extension.name,
                name,
                nearest_name(name, (found | written).difference(_OF_THE_LOOP)),
                name,
            )


def _unwritten(extensions: Sequence[Any]) -> Iterator[tuple[Any, str, set[str]]]:
    """Give who looks for which record that nobody says he writes, and what is written."""
    written = set().union(*(_names(extension, "records_written") for extension in flat(extensions)))
    for extension in extensions:
        for name in sorted(_names(extension, "records_read") - written - {*_OF_THE_LOOP}):
            yield extension, name, written - _names(extension, "records_written")
