"""The registry from Aesara's operations to functions of JAX.

A *lowering* is registered for a class of operations, and is used for its subclasses too::

    @lowering(Dot)
    def lower_dot(op, node, context):
        def dot(x, y):
            return jnp.dot(x, y)

        return dot

It is given the operation, its node in the graph and a :class:`Context`, and returns a function
of the node's inputs. These are arrays of JAX, or numpy arrays and scalars where the value is
known while the graph is traced (see :mod:`bricks.xla.evaluation`). The function returns the
output, or a tuple of them if the node has several; their dtypes are made what the graph declares.

A family of operations is a module that registers its lowerings; :mod:`bricks.xla.families` lists
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy
from aesara.graph.basic import Apply, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op

from bricks.xla.errors import DataDependentShape
from bricks.xla.reuse import Views

__all__ = [
    "Context",
    "Lowering",
    "find_lowering",
    "is_known",
    "known_int",
    "known_ints",
    "lowering",
]


class Lowering(NamedTuple):
    """How a class of operations is computed.

    Parameters
    ----------
    make : function
        ``make(op, node, context)`` gives the function of the node's inputs.
    fold : bool
        Whether the operation's own ``perform`` may compute it when all inputs are known.
    size : function, optional
        ``size(*inputs)`` is the number of elements of the result, for operations that make a large
        result from small inputs.
    """

    make: Callable[[Op, Apply, Context], Callable]
    fold: bool
    size: Callable[..., int] | None


class Context:
    """What lowerings need to know beyond their node.

    Parameters
    ----------
    evaluate : function
        ``evaluate(fgraph, context)`` gives a function of a graph's inputs that returns the list of
        its outputs; for operations that hold a graph.
    """

    def __init__(self, evaluate: Callable[[FunctionGraph, Context], Callable[..., list]]):
        self._evaluate = evaluate
        self._graphs: list[FunctionGraph] = []
        #: Conditions that must hold at run time, met in the present trace: (scalar, error).
        self.checks: list[tuple[jax.Array, Exception]] = []
        #: What loops of the present trace read, and what they have computed.
        self.views = Views()

    def begin(self) -> None:
        """Forget what belongs to the trace before, because another one begins."""
        self.checks.clear()
        self.views.clear()

    def enter(self, fgraph: FunctionGraph) -> None:
        """Make a graph known whose nodes are going to be lowered.

        Parameters
        ----------
        fgraph : aesara.graph.fg.FunctionGraph
            The graph; :meth:`clients_of` looks in it from now on.
        """
        self._graphs.append(fgraph)

    def clients_of(self, variable: Variable) -> list[Apply | None]:
        """List the nodes that use a variable, and None where it is an output of its graph.

        Parameters
        ----------
        variable : aesara variable
            Of a graph whose nodes are lowered.

        Returns
        -------
        list of Apply or None
            One entry for each use, so a node that uses it twice is there twice.
        """
        return [
            client if isinstance(client, Apply) else None
            for fgraph in self._graphs
            for client, _ in fgraph.clients.get(variable, ())
        ]

    def function_of(self, fgraph: FunctionGraph) -> Callable[..., list]:
        """Return the function that computes an inner graph.

        Parameters
        ----------
        fgraph : aesara.graph.fg.FunctionGraph

        Returns
        -------
        function
            Of the graph's inputs; it returns the list of the outputs.
        """
        return self._evaluate(fgraph, self)

    def check(self, condition: Any, error: Exception) -> None:
        """Require a condition, now if it is known, otherwise each time the function is called.

        Parameters
        ----------
        condition : array of shape () or bool
        error : Exception
            Raised where it does not hold.
        """
        if is_known(condition):
            if not numpy.all(condition):
                raise error
        else:
            self.checks.append((condition, error))


_LOWERINGS: dict[type, Lowering] = {}


def lowering(
    *classes: type, fold: bool = True, size: Callable[..., int] | None = None
) -> Callable[[Callable], Callable]:
    """Register a lowering for classes of operations.

    Parameters
    ----------
    *classes : type
        Subclasses of :class:`aesara.graph.op.Op`.
    fold : bool, optional
        False for operations that must not be computed while the graph is traced.
    size : function, optional
        See :class:`Lowering`.

    Returns
    -------
    function
        A decorator that returns what it decorates.

    Examples
    --------
    An operation of one's own computes with numpy in ``perform``; a lowering is what XLA needs:

    >>> import jax.numpy as jnp
    >>> from aesara import tensor
    >>> from aesara.graph.basic import Apply
    >>> from aesara.graph.op import Op
    >>> from bricks import xla
    >>> class Hypotenuse(Op):
    ...     __props__ = ()
    ...
    ...     def make_node(self, a, b):
    ...         a, b = map(tensor.as_tensor_variable, (a, b))
    ...         return Apply(self, [a, b], [a.type()])
    ...
    ...     def perform(self, node, inputs, output_storage, params=None):
    ...         output_storage[0][0] = numpy.hypot(*inputs)
    >>> @xla.lowering(Hypotenuse)
    ... def lower_hypotenuse(op, node, context):
    ...     return lambda a, b: jnp.hypot(a, b)
    >>> a, b = tensor.dvectors("a", "b")
    >>> xla.function([a, b], Hypotenuse()(a, b))([3, 5], [4, 12])
    array([ 5., 13.])
    """

    def register(make: Callable) -> Callable:
        for class_ in classes:
            _LOWERINGS[class_] = Lowering(make, fold, size)
        return make

    return register


def find_lowering(op: Op) -> Lowering | None:
    """Return the lowering of an operation's class, or of the nearest class it inherits from.

    Parameters
    ----------
    op : Op
        The operation.

    Returns
    -------
    Lowering or None
        None if none is registered.
    """
    for class_ in type(op).__mro__:
        if class_ in _LOWERINGS:
            return _LOWERINGS[class_]
    return None


def is_known(value: Any) -> bool:
    """Tell whether a value is known while the graph is traced.

    Parameters
    ----------
    value : object
        An operand of a lowering.

    Returns
    -------
    bool
        False for arrays of JAX, traced or not; True for numpy's and for anything else.
    """
    return not isinstance(value, jax.Array)


def known_int(value: Any, what: str) -> int:
    """Return a value that must be known while the graph is traced.

    Parameters
    ----------
    value : array of shape () or int
    what : str
        What it is, for the error message.

    Returns
    -------
    int

    Raises
    ------
    DataDependentShape
        If it is only known at run time.
    """
    if not is_known(value):
        raise DataDependentShape(f"{what} must be known when the graph is compiled", value)
    return int(value)


def known_ints(values: Sequence[Any] | Any, what: str) -> tuple[int, ...]:
    """Return values that must all be known, as :func:`known_int` does one.

    Parameters
    ----------
    values : sequence of int or of arrays of shape (), or array of shape (value,)
        Such as the lengths of a shape.
    what : str
        What they are, for the error message.

    Returns
    -------
    tuple of int
        The same values.

    Raises
    ------
    DataDependentShape
        If one of them is only known at run time.
    """
    if not is_known(values):
        raise DataDependentShape(f"{what} must be known when the graph is compiled", values)
    return tuple(known_int(value, what) for value in values)
