"""Boxes of text, lines between them, and the picture they make as SVG."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

__all__ = ["Box", "Picture", "Point", "curve", "make_picture"]

#: Pixels from the left and from above.
Point = tuple[float, float]

_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
#: Sizes in pixels. A letter of the font is at most this share of its size wide, whichever it is.
_SIZE, _SMALL, _LETTER, _LINE = 13, 11, 0.62, 17
_PADDING = 9

#: What colours mean: fill and border.
COLOURS = {
    "plain": ("#f4f6f9", "#7b8794"),
    "parameters": ("#e3eefb", "#3a76b8"),
    "input": ("#e8f5e9", "#43864b"),
    "output": ("#fdf0dc", "#b9770e"),
}


class Picture:
    """A picture as SVG, which notebooks show.

    Parameters
    ----------
    svg : str
        The whole document.

    Attributes
    ----------
    svg : str
        The whole document.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path : path_like
            Its name, such as ``'model.svg'``.
        """
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        """Show the picture in a notebook."""
        return self.svg


@dataclass
class Box:
    """A box with lines of text: the first one large, the others small.

    Parameters
    ----------
    lines : sequence of str
        The text, at least one line.
    kind : str
        What it stands for: a key of `COLOURS`.
    x, y : float
        The place of its centre, in pixels from the left and from above; set by the layout.
    """

    lines: Sequence[str]
    kind: str = "plain"
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Pixels from left to right."""
        sizes = [_SIZE] + [_SMALL] * (len(self.lines) - 1)
        widest = max(
            len(line) * _LETTER * size for line, size in zip(self.lines, sizes, strict=True)
        )
        return widest + 2 * _PADDING

    @property
    def height(self) -> float:
        """Pixels from top to bottom."""
        return len(self.lines) * _LINE + _PADDING

    @property
    def top(self) -> float:
        """Where it begins."""
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        """Where it ends."""
        return self.y + self.height / 2

    @property
    def left(self) -> float:
        """Where it begins, from the left."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """Where it ends, from the left."""
        return self.x + self.width / 2

    def to_svg(self) -> str:
        """Draw the box with its text.

        Returns
        -------
        str
            An element of SVG.
        """
        fill, border = COLOURS[self.kind]
        round_ = 12 if self.kind in ("input", "output") else 4
        parts = [
            f'<rect x="{self.left:.1f}" y="{self.top:.1f}" width="{self.width:.1f}" '
            f'height="{self.height:.1f}" rx="{round_}" fill="{fill}" stroke="{border}"/>'
        ]
        for i, line in enumerate(self.lines):
            baseline = self.top + _PADDING / 2 + _LINE * (i + 0.75)
            size, colour = (_SMALL, "#52606d") if i else (_SIZE, "#1f2933")
            parts.append(
                f'<text x="{self.x:.1f}" y="{baseline:.1f}" font-size="{size}" fill="{colour}" '
                f'text-anchor="middle">{escape(line)}</text>'
            )
        return "<g>" + "".join(parts) + "</g>"


def curve(
    points: Iterable[Point],
    *,
    down: bool,
    dashed: bool = False,
    arrow: bool = True,
    label: str = "",
) -> str:
    """Draw a smooth line through points, which leaves and enters each of them in one direction.

    Parameters
    ----------
    points : iterable of tuple of float
        Pixels from the left and from above.
    down : bool
        Whether it goes from the top to the bottom; from the left to the right otherwise.
    dashed : bool
        Whether it is dashed.
    arrow : bool
        Whether it ends with an arrow.
    label : str
        What is shown where the mouse points at it.

    Returns
    -------
    str
        An element of SVG.
    """
    (x, y), *rest = points
    path = f"M{x:.1f},{y:.1f}"
    for to_x, to_y in rest:
        if down:
            middle = (y + to_y) / 2
            path += f" C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
        else:
            middle = (x + to_x) / 2
            path += f" C{middle:.1f},{y:.1f} {middle:.1f},{to_y:.1f} {to_x:.1f},{to_y:.1f}"
        x, y = to_x, to_y
    extra = ' stroke-dasharray="4 3"' if dashed else ""
    extra += ' marker-end="url(#arrow)"' if arrow else ""
    title = f"<title>{escape(label)}</title>" if label else ""
    return f'<path d="{path}" fill="none" stroke="#8a96a3"{extra}>{title}</path>'


def make_picture(
    boxes: Sequence[Box], curves: Sequence[str], title: str, points: Iterable[Point] = ()
) -> Picture:
    """Put boxes and curves into one document.

    Parameters
    ----------
    boxes : sequence of Box
        With their places.
    curves : sequence of str
        What is drawn below the boxes.
    title : str
        What the picture shows, for those who cannot see it.
    points : iterable of tuple of float
        What the curves pass through, where that may lie outside of the boxes.

    Returns
    -------
    Picture
    """
    margin = 12
    across = [x for x, _ in points] + [x for box in boxes for x in (box.left, box.right)] or [0.0]
    down = [y for box in boxes for y in (box.top, box.bottom)] or [0.0]
    left, top = min(across) - margin, min(down) - margin
    width, height = max(across) + margin - left, max(down) + margin - top
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{left:.1f} {top:.1f} {width:.1f} {height:.1f}" font-family="{_FONT}">\n'
        f"<title>{escape(title)}</title>\n"
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0.5 L8,4 L0,7.5 z" fill="#8a96a3"/>'
        "</marker></defs>\n"
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        'fill="white"/>\n' + "\n".join([*curves, *(box.to_svg() for box in boxes)]) + "\n</svg>\n"
    )
