"""Pictures of models: the tree of their bricks, and their graph by brick, as SVG.

A :class:`Picture` shows itself in a notebook, and is saved by :meth:`Picture.save`. Nothing but
Python is needed to draw it.
"""

from bricks.pictures.graph import draw_graph
from bricks.pictures.svg import Picture
from bricks.pictures.tree import draw_bricks

__all__ = ["Picture", "draw_bricks", "draw_graph"]
