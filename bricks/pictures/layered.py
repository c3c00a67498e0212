"""Where the boxes of a directed graph stand: in layers, every arrow from above to below.

After K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
structures", *IEEE Transactions on Systems, Man, and Cybernetics* 11, 1981: layers by the longest
path, points in the layers that a long arrow passes, an order in each layer with few crossings, and
places that leave arrows as straight as the order allows.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from bricks.pictures.svg import Box, Point

__all__ = ["place_in_layers"]

_LAYER_GAP, _BOX_GAP, _POINT_WIDTH = 34, 22, 8
_SWEEPS = 12

Edge = tuple[int, int]


def place_in_layers(boxes: Sequence[Box], edges: Sequence[Edge]) -> dict[Edge, list[Point]]:
    """Set the places of boxes, and return the points that each arrow passes.

    Parameters
    ----------
    boxes : sequence of Box
        In an order in which every arrow leads from an earlier one to a later one.
    edges : sequence of tuple of int
        The arrows, by the numbers of their boxes.

    Returns
    -------
    dict of tuple of int to list of tuple of float
        For each arrow the points from its start to its end, in pixels.
    """
    layers = _layers(len(boxes), edges)
    layout = _Layout(boxes, layers)
    chains = {edge: layout.add_chain(*edge) for edge in dict.fromkeys(edges)}
    layout.order()
    layout.place()
    return {edge: layout.points(chain) for edge, chain in chains.items()}


def _layers(num_boxes: int, edges: Sequence[Edge]) -> list[int]:
    """Number of the layer of each box: below all it comes from, and just above what it goes to."""
    layers = [0] * num_boxes
    for start, end in sorted(edges, key=lambda edge: edge[1]):
        layers[end] = max(layers[end], layers[start] + 1)
    # What only begins arrows comes down to where it is used.
    for start in {s for s, _ in edges} - {e for _, e in edges}:
        layers[start] = min(layers[end] for s, end in edges if s == start) - 1
    return layers


class _Layout:
    """Boxes, and points on long arrows, in layers. Both are numbers: boxes first."""

    def __init__(self, boxes: Sequence[Box], layer_of: Sequence[int]) -> None:
        self.boxes = boxes
        self.layer_of = list(layer_of)
        self.widths = [box.width for box in boxes]
        self.layers: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
        for number, layer in enumerate(layer_of):
            self.layers[layer].append(number)
        self.above: dict[int, list[int]] = {number: [] for number in range(len(boxes))}
        self.below: dict[int, list[int]] = {number: [] for number in range(len(boxes))}
        self.x: list[float] = []

    def add_chain(self, start: int, end: int) -> list[int]:
        """Add an arrow with a point in each layer that it passes."""
        chain = [start]
        for layer in range(self.layer_of[start] + 1, self.layer_of[end]):
            number = len(self.layer_of)
            self.layer_of.append(layer)
            self.widths.append(_POINT_WIDTH)
            self.layers[layer].append(number)
            self.above[number], self.below[number] = [], []
            chain.append(number)
        chain.append(end)
        for upper, lower in zip(chain, chain[1:], strict=False):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        return chain

    def order(self) -> None:
        """Order each layer so that few arrows cross, and keep the best order that was met."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(2 * _SWEEPS):
            downwards = sweep % 2 == 0
            layers = self.layers[1:] if downwards else self.layers[-2::-1]
            neighbours = self.above if downwards else self.below
            rank = self._ranks()
            for layer in layers:
                layer.sort(key=lambda n: _middle([rank[m] for m in neighbours[n]], rank[n]))
                rank.update({number: place for place, number in enumerate(layer)})
            self._swap_neighbours()
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self.layers], crossings
        self.layers = best

    def _ranks(self) -> dict[int, float]:
        return {n: float(place) for layer in self.layers for place, n in enumerate(layer)}

    def _swap_neighbours(self) -> None:
        """Swap neighbours in a layer as long as that leaves fewer crossings."""
        rank = self._ranks()
        for layer in self.layers:
            for i in range(len(layer) - 1):
                one, other = layer[i], layer[i + 1]
                if self._cross(one, other, rank) > self._cross(other, one, rank):
                    layer[i], layer[i + 1] = other, one
                    rank[one], rank[other] = rank[other], rank[one]

    def _cross(self, left: int, right: int, rank: dict[int, float]) -> int:
        """How often the arrows of two boxes cross if one stands to the left of the other."""
        return sum(
            rank[a] > rank[b]
            for neighbours in (self.above, self.below)
            for a in neighbours[left]
            for b in neighbours[right]
        )

    def _crossings(self) -> int:
        rank, crossings = self._ranks(), 0
        for layer in self.layers:
            # Where the arrows from further left end, in order: those beyond are crossed.
            ends: list[float] = []
            for number in layer:
                own = [rank[end] for end in self.below[number]]
                crossings += sum(len(ends) - bisect_right(ends, end) for end in own)
                for end in own:
                    insort(ends, end)
        return crossings

    def place(self) -> None:
        """Set the places: down by the height of the layers, across by the neighbours."""
        self._place_down()
        self.x = [0.0] * len(self.layer_of)
        for layer in self.layers:
            self._set_row(layer, [0.0] * len(layer))
        # Upwards last: most models have several inputs that lead to one output.
        for sweep in range(2 * _SWEEPS):
            downwards = sweep % 2 == 0
            for layer in self.layers if downwards else self.layers[::-1]:
                wanted = []
                for number in layer:
                    near, far = self.above[number], self.below[number]
                    near = (near or far) if downwards else (far or near)
                    wanted.append(_middle([self.x[m] for m in near], self.x[number]))
                self._set_row(layer, wanted)
        for number, box in enumerate(self.boxes):
            box.x = self.x[number]

    def _place_down(self) -> None:
        top = 0.0
        self.tops, self.bottoms = [], []
        for layer in self.layers:
            heights = [self.boxes[n].height for n in layer if n < len(self.boxes)]
            height = max(heights, default=0.0)
            for number in layer:
                if number < len(self.boxes):
                    self.boxes[number].y = top + height / 2
            self.tops.append(top)
            self.bottoms.append(top + height)
            top += height + _LAYER_GAP

    def _set_row(self, layer: list[int], wanted: list[float]) -> None:
        """Place a layer as near as possible to where its boxes want to be, without overlaps.

        The least squares under the constraint of an order: neighbours that would overlap are pooled
        into blocks, which stand at the mean of what their members want.
        """
        offsets = [0.0]
        for left, right in zip(layer, layer[1:], strict=False):
            both = (self.widths[left] + self.widths[right]) / 2
            offsets.append(offsets[-1] + both + _BOX_GAP)
        blocks: list[tuple[float, int]] = []
        for target, offset in zip(wanted, offsets, strict=True):
            total, count = target - offset, 1
            while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
                other, others = blocks.pop()
                total, count = total + other, count + others
            blocks.append((total, count))
        means = [total / count for total, count in blocks for _ in range(count)]
        for number, mean, offset in zip(layer, means, offsets, strict=True):
            self.x[number] = mean + offset

    def points(self, chain: list[int]) -> list[Point]:
        """The points that an arrow passes: out of a box, straight through layers, into a box."""
        start, *between, end = chain
        begin = self._port(start, self.below[start], chain[1])
        finish = self._port(end, self.above[end], chain[-2])
        points = [(begin, self.boxes[start].bottom), (begin, self.bottoms[self.layer_of[start]])]
        for number in between:
            layer = self.layer_of[number]
            points += [(self.x[number], self.tops[layer]), (self.x[number], self.bottoms[layer])]
        points += [(finish, self.tops[self.layer_of[end]]), (finish, self.boxes[end].top)]
        return list(dict.fromkeys(points))

    def _port(self, number: int, neighbours: list[int], neighbour: int) -> float:
        """Where the arrow from or to a neighbour meets a box: side by side, in their order."""
        in_order = sorted(neighbours, key=lambda other: self.x[other])
        room = (self.widths[number] - 4 * _POINT_WIDTH) / max(len(in_order) - 1, 1)
        place = in_order.index(neighbour) - (len(in_order) - 1) / 2
        return self.x[number] + place * min(room, 2 * _POINT_WIDTH)


def _middle(places: list[float], otherwise: float) -> float:
    """The mean of places, or another place if there are none."""
    return sum(places) / len(places) if places else otherwise
