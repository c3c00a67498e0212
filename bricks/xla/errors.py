"""What goes wrong between a graph and its machine code, said in words.

Nodes of a graph are described by the variable they compute, and by the brick and application
that made it, which bricks note in ``variable.tag.annotations``. Aesara's rewriting drops such
notes from what it makes itself, so the nearest variable that has them stands in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy
from aesara.graph.basic import Apply, Variable, io_toposort
from aesara.graph.op import HasInnerGraph
from aesara.tensor.basic import tensor_copy

from bricks.roles import INPUT, has_roles

__all__ = [
    "DataDependentShape",
    "DonatedStateLost",
    "GraphError",
    "UnsupportedOp",
    "WrongCompiler",
    "describe_node",
    "describe_variable",
    "note_makers",
]

#: How many variables are looked at in search of one that a brick made.
_SEARCH_LIMIT = 200


class GraphError(ValueError):
    """A graph cannot be computed with the shapes, dtypes or values that were given.

    Attributes
    ----------
    is_located : bool
        Whether the message says which operation it was.
    """

    is_located = False


class UnsupportedOp(NotImplementedError):
    """A graph has an operation that cannot be compiled by XLA here.

    Attributes
    ----------
    is_located : bool
        Whether the message says which operation it was.
    """

    is_located = False


class DataDependentShape(GraphError):
    """A shape, a bound or a count depends on values that are only known at run time.

    Parameters
    ----------
    message : str
        What would have to be known.
    value : object, optional
        The value that is not known when the graph is traced.
    variables : sequence of aesara variables, optional
        The variables of the graph that hold it, once they were found.
    """

    def __init__(self, message: str, value: Any = None, variables: Sequence[Variable] = ()):
        super().__init__(message)
        self.value = value
        self.variables = list(variables)


class DonatedStateLost(RuntimeError):
    """The values of shared variables are gone, because a call that updates them failed half-way."""


class WrongCompiler(RuntimeError):
    """The installed jaxlib computes wrong results on this machine."""


def _name_of_maker(annotation: Any) -> str | None:
    """Name an annotation: a brick, or the call of a brick's application."""
    application = getattr(annotation, "application", None)
    if application is not None:
        brick = getattr(application, "brick", None)
        name = getattr(application, "application_name", None) or getattr(application, "name", "")
        return f"{_path_of_brick(brick)}.{name}"
    if hasattr(annotation, "name") and hasattr(annotation, "children"):
        return _path_of_brick(annotation)
    return None


def _path_of_brick(brick: Any) -> str:
    """Return ``/mlp/linear_0`` for a brick that knows its parents, else its name."""
    if hasattr(brick, "get_unique_path"):
        return "/" + "/".join(part.name for part in brick.get_unique_path())
    return f"/{getattr(brick, 'name', brick)}"


def makers_of(variable: Variable) -> list[str]:
    """List the bricks and applications that a variable's annotations name, the innermost last."""
    annotations = getattr(variable.tag, "annotations", None) or ()
    names = [_name_of_maker(annotation) for annotation in annotations]
    names += getattr(variable.tag, "makers", ())
    return list(dict.fromkeys(name for name in names if name))


def note_makers(outputs: Iterable[Variable]) -> None:
    """Note on each variable that an application gave out which one it was.

    Applications annotate copies, which rewriting takes away; the notes are for messages only.

    Parameters
    ----------
    outputs : iterable of variables
        Of a graph that is going to be rewritten.
    """
    for node in io_toposort([], list(outputs)):
        if isinstance(node.op, HasInnerGraph):
            note_makers(node.op.inner_outputs)
        if node.op != tensor_copy or node.inputs[0].owner is None:
            continue
        source = node.inputs[0]
        # What an application was given was made before it.
        if has_roles(node.outputs[0], [INPUT]):
            continue
        # From the inputs on, so that the innermost application comes first.
        if "makers" not in source.tag.__dict__ and not makers_of(source):
            source.tag.makers = makers_of(node.outputs[0])


def _neighbours(variable: Variable, clients: Any) -> Iterable[Variable]:
    """List the variables computed from one, where clients are known, and those it comes from."""
    for client, _ in clients.get(variable, ()) if clients is not None else ():
        yield from getattr(client, "outputs", ())
    if variable.owner is not None:
        yield from variable.owner.inputs


def _nearest_maker(start: Sequence[Variable], clients: Any) -> str | None:
    """Find who made one of these variables, or else the variable nearest to them."""
    seen, queue = set(start), deque(start)
    while queue and len(seen) < _SEARCH_LIMIT:
        variable = queue.popleft()
        makers = makers_of(variable)
        if makers:
            return makers[-1]
        for neighbour in _neighbours(variable, clients):
            if neighbour not in seen:
                seen.add(neighbour)
                queue.append(neighbour)
    return None


def _is_part_of(node: Apply, maker: str) -> bool:
    """Tell whether an operation is surely its maker's: the result is, or a parameter in it."""
    if any(maker in makers_of(variable) for variable in node.outputs):
        return True
    # What an application gave out names that too, a parameter its brick alone.
    brick = maker.partition(".")[0]
    return any(makers_of(variable) == [brick] for variable in node.inputs)


def describe_variable(variable: Variable) -> str:
    """Name a variable and its type, and the brick that made it where one did.

    Parameters
    ----------
    variable : aesara variable

    Returns
    -------
    str
        For example ``'x' (float32 matrix), of /mlp/linear_0.apply``.
    """
    name = f"'{variable.name}'" if variable.name else "an unnamed variable"
    kind = f" ({variable.type})"
    makers = makers_of(variable)
    return name + kind + (f", of {makers[-1]}" if makers else "")


def describe_node(node: Apply, clients: Any = None) -> str:
    """Name the brick that made an operation of a graph, the operation, and its operands.

    Parameters
    ----------
    node : aesara.graph.basic.Apply
        The operation in its graph.
    clients : mapping, optional
        The ``clients`` of its :class:`~aesara.graph.fg.FunctionGraph`; they let the brick be found
        from what is computed with the result.

    Returns
    -------
    str
        For example ``/mlp/linear_0.apply: dot(x, W)``. It begins with ``near`` if the operation
        may also be one before or behind the brick's own.
    """
    operands = ", ".join(variable.name or f"<{variable.type}>" for variable in node.inputs)
    maker = _nearest_maker(node.outputs, clients)
    if maker is None:
        maker = _nearest_maker(node.inputs, None)
    operation = f"{node.op}({operands})"
    if maker is None:
        return operation
    return f"{'' if _is_part_of(node, maker) else 'near '}{maker}: {operation}"


def describe_value(value: Any) -> str:
    """Give the dtype and the shape of an array."""
    return f"{getattr(value, 'dtype', type(value).__name__)}{numpy.shape(value)}"
