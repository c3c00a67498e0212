from itertools import combinations

import pytest

from bricks.pictures.layered import place_in_layers
from bricks.pictures.svg import Box

#: Graphs that can be drawn without crossings, with boxes in an order that would cross them.
PLANAR = {
    "two chains": (8, [(0, 3), (1, 2), (2, 5), (3, 4), (4, 7), (5, 6)]),
    "a tree": (7, [(0, 2), (0, 1), (1, 6), (1, 3), (2, 4), (2, 5)]),
    "past a chain": (5, [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (0, 4)]),
    "a late input": (5, [(0, 1), (1, 2), (2, 4), (3, 4)]),
}


def draw(num_boxes, edges):
    boxes = [Box(["x" * (3 + 7 * (i % 3))] * (1 + i % 3)) for i in range(num_boxes)]
    return boxes, place_in_layers(boxes, edges)


@pytest.mark.parametrize("name", PLANAR)
def test_what_can_be_drawn_without_crossings_is(name):
    _, lines = draw(*PLANAR[name])

    pieces = [piece for line in lines.values() for piece in zip(line, line[1:], strict=False)]
    for one, other in combinations(pieces, 2):
        assert not crosses(one, other)


def crosses(one, other):
    """Whether two pieces of lines, which share their layers or have none in common, cross."""
    (a, b), (c, d) = sorted(one, key=lambda p: p[1]), sorted(other, key=lambda p: p[1])
    top, bottom = max(a[1], c[1]), min(b[1], d[1])
    if bottom - top < 1:
        return False
    before, after = at(a, b, top) - at(c, d, top), at(a, b, bottom) - at(c, d, bottom)
    return before * after < -1e-6


def at(start, end, y):
    return start[0] + (end[0] - start[0]) * (y - start[1]) / (end[1] - start[1])


@pytest.mark.parametrize("name", PLANAR)
def test_arrows_go_down_past_the_boxes_that_they_do_not_belong_to(name):
    boxes, lines = draw(*PLANAR[name])

    for (start, end), line in lines.items():
        assert line[0][1] == boxes[start].bottom
        assert line[-1][1] == boxes[end].top
        heights = [y for _, y in line]
        assert heights == sorted(heights)
        for number, box in enumerate(boxes):
            inside = [x for x, y in line if box.top < y < box.bottom and box.left < x < box.right]
            assert not inside or number in (start, end)


def test_what_is_used_late_stands_just_above_its_use():
    boxes, _ = draw(*PLANAR["a late input"])

    assert boxes[3].y == pytest.approx(boxes[2].y, abs=40)
    assert boxes[3].y > boxes[1].y


def test_nothing_at_all_can_be_drawn():
    assert draw(0, []) == ([], {})
