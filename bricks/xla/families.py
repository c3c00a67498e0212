"""The families of operations that XLA can compute; importing this module registers them."""

from bricks.xla import algebra, control, draws, elemwise, indexing, loops, nnet, shapes

__all__ = ["algebra", "control", "draws", "elemwise", "indexing", "loops", "nnet", "shapes"]
