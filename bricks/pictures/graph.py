"""The graph of a model by brick: which application gives its outputs to which."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aesara.graph.basic import Variable

from bricks.base import BRICK_DELIMITER
from bricks.pictures.calls import CallGraph, Node
from bricks.pictures.layered import place_in_layers
from bricks.pictures.svg import Box, Picture, curve, make_picture
from bricks.select import Selector
from bricks.utils.plain import is_integer

__all__ = ["draw_graph"]


def draw_graph(outputs: Any, depth: int | None = None) -> Picture:
    """Draw the applications of bricks that outputs are computed by, from above to below.

    An application shows the name of its brick with that of the brick's parent, its class and method
    and the shapes of its outputs. It is blue if the brick or one below it has parameters. An
    arrow shows, where the mouse points at it, the names of what it passes on. What is computed
    between bricks, without one, is not shown, and neither is what happens inside of loops.

    Parameters
    ----------
    outputs : Variable, iterable of Variable, or Model
        What is computed.
    depth : int, optional
        How many levels of bricks to show: with 1 the top bricks, with 2 their children in their
        place, and so on. By default all levels.

    Returns
    -------
    Picture

    Raises
    ------
    TypeError
        If something else is to be drawn.
    ValueError
        If `depth` is no positive integer.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import MLP, Softmax, Tanh
    >>> from bricks.pictures import draw_graph
    >>> y_hat = MLP([Tanh(), Softmax()], [64, 256, 10]).apply(tensor.matrix("x"))
    >>> draw_graph(y_hat, depth=1).svg.count("<g>")  # the input, the MLP, the output
    3
    """
    if depth is not None and (not is_integer(depth) or depth < 1):
        raise ValueError(
            f"draw_graph: `depth` must be an integer from 1, the top bricks; got {depth!r}."
        )
    graph = CallGraph(_outputs_of(outputs), depth)
    numbers = {node: number for number, node in enumerate(graph.nodes)}
    boxes = [_box(node) for node in graph.nodes]
    edges = {(numbers[start], numbers[end]): names for (start, end), names in graph.edges.items()}
    lines = place_in_layers(boxes, list(edges))
    curves = [
        curve(points, down=True, label=", ".join(edges[edge])) for edge, points in lines.items()
    ]
    names = ", ".join(str(output.name) for output in graph.outputs)
    points = [point for line in lines.values() for point in line]
    return make_picture(boxes, curves, f"Graph of {names}, by brick", points)


def _outputs_of(given: Any) -> list[Variable]:
    if isinstance(given, Variable):
        return [given]
    given = getattr(given, "outputs", given)
    outputs = list(given) if isinstance(given, Iterable) else [given]
    for output in outputs:
        if not isinstance(output, Variable):
            raise TypeError(
                f"draw_graph: expected variables or a Model; got {output!r}. `draw_bricks` draws "
                "bricks."
            )
    return outputs


def _box(node: Node) -> Box:
    if node.call is None:
        (variable,) = node.variables
        return Box([variable.name or "(no name)", _shape(variable)], node.kind)
    application = node.call.application
    brick = application.brick
    path = [one.name for one in brick.get_unique_path()][-2:]
    shapes = ", ".join(dict.fromkeys(map(_shape, node.variables)))
    return Box(
        [BRICK_DELIMITER.join(path), f"{type(brick).__name__}.{application.name}", shapes],
        "parameters" if Selector(brick).get_parameters() else "plain",
    )


def _shape(variable: Variable) -> str:
    shape = getattr(variable.type, "shape", ())
    text = " × ".join("?" if length is None else str(length) for length in shape)
    return f"{variable.type.dtype} {text}" if text else f"{variable.type.dtype} scalar"
