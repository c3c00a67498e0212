"""Recurrent bricks, and the decorator that makes one of a single step."""

from bricks.recurrent.architectures import SimpleRecurrent
from bricks.recurrent.base import BaseRecurrent, recurrent

__all__ = ["BaseRecurrent", "SimpleRecurrent", "recurrent"]
