"""Blocks' place of :mod:`bricks.annotations`."""

from bricks.annotations import Annotation, add_annotation

__all__ = ["Annotation", "add_annotation"]
