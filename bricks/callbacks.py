"""Which extensions a main loop calls at which stage of training, and how long each takes."""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from bricks.ordering import handler_of
from bricks.output import until_closed

CALLBACKS = (
    "before_training",
    "on_resumption",
    "before_epoch",
    "before_batch",
    "after_batch",
    "after_epoch",
    "after_training",
    "on_error",
    "on_interrupt",
)


def find_handlers(
    extensions: Iterable[Any], times: dict[str, float] | None = None
) -> dict[str, list[Callable]]:
    """Find what to call for each callback.

    Parameters
    ----------
    extensions : iterable of TrainingExtension
        In the order in which to call them.
    times : dict of str to float, optional
        Where to add up the seconds that each extension takes in each callback.

    Returns
    -------
    dict of str to list of callable
        By the name of the callback; extensions that have no use for it are left out.
    """
    found: dict[str, list[Callable]] = {callback: [] for callback in CALLBACKS}
    for extension in extensions:
        for callback, handlers in found.items():
            handler = handler_of(extension, callback)
            if handler is not None:
                key = f"{callback}: {extension.name}"
                handlers.append(handler if times is None else _timed(handler, key, times))
    return found


def print_times(times: dict[str, float]) -> None:
    """Print seconds by name, the longest first.

    Parameters
    ----------
    times : dict of str to float
        Seconds.
    """
    width = max(len(name) for name in times)
    with until_closed():
        for name, seconds in sorted(times.items(), key=lambda item: -item[1]):
            print(f"{name:<{width}}  {seconds:12.6f} s", flush=True)


def _timed(handler: Callable, key: str, times: dict[str, float]) -> Callable:
    def timed(*args: Any) -> None:
        start = perf_counter()
        try:
            handler(*args)
        finally:
            times[key] = times.get(key, 0.0) + perf_counter() - start

    return timed
