"""The tree of bricks: who is whose child, and which parameters each has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bricks.base import Brick
from bricks.pictures.svg import Box, Picture, curve, make_picture

__all__ = ["draw_bricks"]

_ROW_GAP, _COLUMN_GAP = 10, 36


def draw_bricks(bricks: Any) -> Picture:
    """Draw bricks and all below them, parents to the left of their children.

    A brick shows its name, its class and the shapes of its own parameters. One that has several
    parents stands beside the first, and a dashed line leads to it from the others.

    Parameters
    ----------
    bricks : Brick, iterable of Brick, or Model
        The bricks at the top.

    Returns
    -------
    Picture

    Examples
    --------
    >>> from bricks import MLP, Tanh
    >>> from bricks.pictures import draw_bricks
    >>> picture = draw_bricks(MLP([Tanh(), None], [64, 256, 10]))
    >>> picture.svg[:4]
    '<svg'
    """
    tree = _Tree(_top_bricks(bricks))
    columns = _place_columns(tree)
    curves = []
    for parent, child, is_first in tree.edges:
        start, end = tree.boxes[id(parent)], tree.boxes[id(child)]
        begin = columns[tree.depths[id(parent)]]
        # From the end of the column, so that no line runs behind a wider neighbour.
        points = [(start.right, start.y), (begin, start.y), (end.left, end.y)]
        curves.append(curve(points, down=False, dashed=not is_first, arrow=False))
    names = ", ".join(brick.name for brick in tree.tops)
    return make_picture(list(tree.boxes.values()), curves, f"Bricks of {names}")


def _top_bricks(bricks: Any) -> list[Brick]:
    if isinstance(bricks, Brick):
        return [bricks]
    tops = list(getattr(bricks, "top_bricks", bricks))
    for brick in tops:
        if not isinstance(brick, Brick):
            raise TypeError(f"draw_bricks: expected bricks or a Model; got {brick!r}.")
    return tops


class _Tree:
    """Bricks with their boxes, each brick once, and the edges between them."""

    def __init__(self, tops: Iterable[Brick]) -> None:
        self.tops = list(tops)
        self.boxes: dict[int, Box] = {}
        self.depths: dict[int, int] = {}
        self.edges: list[tuple[Brick, Brick, bool]] = []
        self._next_y = 0.0
        for brick in self.tops:
            self._add(brick, depth=0)

    def _add(self, brick: Brick, depth: int) -> Box:
        """Place a brick in the middle of its children, which stand below each other."""
        box = self.boxes[id(brick)] = Box(*_describe(brick))
        self.depths[id(brick)] = depth
        begin, places = self._next_y, []
        for child in dict.fromkeys(brick.children):
            if child is None:
                continue
            is_first = id(child) not in self.boxes
            self.edges.append((brick, child, is_first))
            if is_first:
                places.append(self._add(child, depth + 1).y)
        if places:
            box.y = max((places[0] + places[-1]) / 2, begin + box.height / 2)
        else:
            box.y = begin + box.height / 2
        self._next_y = max(self._next_y, box.bottom + _ROW_GAP)
        return box


def _describe(brick: Brick) -> tuple[list[str], str]:
    """Text and kind of the box of a brick."""
    lines = [brick.name, type(brick).__name__]
    parameters = [one for one in getattr(brick, "parameters", ()) if one is not None]
    for parameter in parameters:
        shape = " × ".join(map(str, parameter.get_value(borrow=True).shape)) or "scalar"
        lines.append(f"{parameter.name}: {shape}")
    return lines, "parameters" if parameters else "plain"


def _place_columns(tree: _Tree) -> list[float]:
    """Set where boxes stand from the left; return where each column of them ends."""
    ends, left = [], 0.0
    for depth in range(max(tree.depths.values(), default=-1) + 1):
        boxes = [box for key, box in tree.boxes.items() if tree.depths[key] == depth]
        for box in boxes:
            box.x = left + box.width / 2
        ends.append(left + max(box.width for box in boxes))
        left = ends[-1] + _COLUMN_GAP
    return ends
