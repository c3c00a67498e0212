"""The name that Blocks had for `bricks.config`, and the class that its settings are made by."""

from bricks.config import config
from fuel_data.config_parser import Configuration

__all__ = ["Configuration", "config"]
