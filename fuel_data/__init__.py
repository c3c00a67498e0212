"""Data sets, streams, transformers and the server that feeds them to a training process."""

from fuel_data.config_parser import config

__all__ = ["config"]
