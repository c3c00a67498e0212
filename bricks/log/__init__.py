"""What the main loop and its extensions write down while they train, and where it is kept."""

from bricks.config import config
from bricks.log.base import TrainingLog, TrainingLogBase
from bricks.log.json_lines import JSONLinesLog
from bricks.log.sqlite import SQLiteLog
from fuel_data.utils.names import nearest_name

BACKENDS: dict[str, type[TrainingLogBase]] = {
    "python": TrainingLog,
    "sqlite": SQLiteLog,
    "jsonlines": JSONLinesLog,
}

__all__ = ["BACKENDS", "JSONLinesLog", "SQLiteLog", "TrainingLog", "TrainingLogBase", "make_log"]


def make_log(backend: str | None = None) -> TrainingLogBase:
    """Make the log of a main loop.

    Parameters
    ----------
    backend : {'python', 'sqlite', 'jsonlines'}, optional
        What holds it. By default the setting ``log_backend``.

    Returns
    -------
    TrainingLogBase
        An empty one.

    Raises
    ------
    ValueError
        If there is no such backend.
    """
    if backend is None:
        backend = config.log_backend
    if backend not in BACKENDS:
        raise ValueError(
            f"MainLoop: `log_backend` must be one of {', '.join(BACKENDS)}; got {backend!r}."
            f"{nearest_name(str(backend), BACKENDS)}"
        )
    return BACKENDS[backend]()
