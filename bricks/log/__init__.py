"""What the main loop and its extensions write down while they train, and where it is kept."""

from bricks.log.base import TrainingLog, TrainingLogBase
from bricks.log.json_lines import JSONLinesLog
from bricks.log.sqlite import SQLiteLog

BACKENDS: dict[str, type[TrainingLogBase]] = {
    "python": TrainingLog,
    "sqlite": SQLiteLog,
    "jsonlines": JSONLinesLog,
}

__all__ = ["BACKENDS", "JSONLinesLog", "SQLiteLog", "TrainingLog", "TrainingLogBase"]
