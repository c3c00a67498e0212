"""The name that Blocks had for `bricks.log.base`."""

from bricks.log.base import TrainingLog, TrainingLogBase

__all__ = ["TrainingLog", "TrainingLogBase"]
