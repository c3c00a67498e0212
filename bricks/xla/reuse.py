"""What a loop computed at each step, kept for the loop that goes back through its gradient.

Aesara's gradient of a scan computes the values of each step again from its states. Here a loop
keeps those that are dear, and the loop of the gradient takes them instead. Which steps of two loops
belong together is seen from what they read: each sequence is a *view* of an array, a first place
and a step, and where one loop reads backwards what the other read or computed forwards, their
steps meet. What is kept and not taken costs nothing: XLA leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.op import HasInnerGraph
from aesara.scalar import basic as scalar
from aesara.tensor.elemwise import CAReduce, Elemwise
from aesara.tensor.math import Dot
from aesara.tensor.special import LogSoftmax, Softmax
from jax import lax

__all__ = ["FinishedLoop", "View", "Views", "dear_variables", "find_known", "is_worth_keeping"]

_CHEAP = (
    scalar.Add,
    scalar.BinaryScalarOp,
    scalar.Cast,
    scalar.Identity,
    scalar.Mul,
    scalar.Neg,
    scalar.Second,
    scalar.Sub,
    scalar.Switch,
    scalar.Sqr,
)


class View(NamedTuple):
    """Places of an array along its first axis: ``array[first + step * i]`` for ``i`` from 0."""

    array: Any
    first: int
    step: int

    def at(self, place: Any) -> jax.Array:
        """Take one place of the view.

        Parameters
        ----------
        place : int or array of shape ()

        Returns
        -------
        array
        """
        return lax.dynamic_index_in_dim(
            self.array, self.first + self.step * place, 0, keepdims=False
        )

    def read(self, num: int) -> jax.Array:
        """Take the first places of the view, in one piece.

        Parameters
        ----------
        num : int

        Returns
        -------
        array of shape (place, ...)
        """
        if self.step == 1 and self.first == 0 and num == self.array.shape[0]:
            return self.array
        last = self.first + self.step * (num - 1)
        start, stop = min(self.first, last), max(self.first, last) + 1
        part = lax.slice_in_dim(self.array, start, stop, abs(self.step))
        return part if self.step > 0 else lax.rev(part, (0,))

    def backwards(self, num: int) -> View:
        """Return the same places from the last to the first.

        Parameters
        ----------
        num : int
            How many places there are.

        Returns
        -------
        View
        """
        return View(self.array, self.first + self.step * (num - 1), -self.step)


class Views:
    """The views that were taken in a trace, what was put together in it, and its finished loops."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[Any, View]] = {}
        self._pieces: dict[int, tuple[Any, list[Any]]] = {}
        self.loops: list[FinishedLoop] = []

    def clear(self) -> None:
        """Forget everything, because another trace begins."""
        self._of.clear()
        self._pieces.clear()
        self.loops.clear()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Trace a step of a loop, or a branch, whose values cannot be had outside of it.

        So what loops inside have computed is forgotten at its end.

        Yields
        ------
        None
        """
        num_loops = len(self.loops)
        yield
        del self.loops[num_loops:]

    def part(self, x: jax.Array, part: slice) -> jax.Array:
        """Take a part of an array along its first axis.

        A part of a part is taken from the whole, so that what is turned around twice is not.

        Parameters
        ----------
        x : array
        part : slice

        Returns
        -------
        array
        """
        places = range(*part.indices(x.shape[0]))
        array, first, step = self.of(x)
        if not places:
            return x[:0]
        view = View(array, first + step * places.start, step * places.step)
        return self.noted(view.read(len(places)), view)

    def noted(self, x: jax.Array, view: View) -> jax.Array:
        """Note that an array is a view of another one.

        Parameters
        ----------
        x : array
        view : View

        Returns
        -------
        array
            The same `x`.
        """
        if x is not view.array:
            # It is kept too, so that no other array gets its identity.
            self._of[id(x)] = (x, view)
        return x

    def note_pieces(self, x: jax.Array, pieces: list[Any]) -> None:
        """Note what was written into zeros to make an array.

        Parameters
        ----------
        x : array
        pieces : list
            What was written, and where.
        """
        self._pieces[id(x)] = (x, pieces)

    def pieces_of(self, x: jax.Array) -> list[Any] | None:
        """Return what was noted of an array.

        Parameters
        ----------
        x : array

        Returns
        -------
        list or None
        """
        return self._pieces[id(x)][1] if id(x) in self._pieces else None

    def of(self, x: Any) -> View:
        """Return the view that an array is, of itself if of no other.

        Parameters
        ----------
        x : array

        Returns
        -------
        View
        """
        return self._of[id(x)][1] if id(x) in self._of else View(x, 0, 1)


class FinishedLoop(NamedTuple):
    """What a loop read and computed.

    Parameters
    ----------
    nodes : sequence of Apply
        Those of its step.
    num_steps : int
    read : list of (Variable, View)
        Variables of the step, and where their values at each step lie.
    constant : list of (Variable, array)
        Variables that have one value at all steps.
    kept : dict of Variable to View
        Values at each step that can be had.
    """

    nodes: Sequence[Apply]
    num_steps: int
    read: list[tuple[Variable, View]]
    constant: list[tuple[Variable, Any]]
    kept: dict[Variable, View]


def _is_dear(node: Apply) -> bool:
    op = node.op
    if isinstance(op, Elemwise):
        return not isinstance(op.scalar_op, _CHEAP) or isinstance(op.scalar_op, scalar.TrueDivide)
    return isinstance(op, (Dot, CAReduce, Softmax, LogSoftmax))


def dear_variables(nodes: Iterable[Apply]) -> list[Variable]:
    """List what takes long to compute: products of matrices, exponentials and the like, sums.

    Parameters
    ----------
    nodes : iterable of Apply

    Returns
    -------
    list of Variable
    """
    return [node.outputs[0] for node in nodes if _is_dear(node)]


def is_worth_keeping(value: Any, operands: Iterable[Any]) -> bool:
    """Tell whether a value of a step is no larger than what the step reads.

    Parameters
    ----------
    value : array
    operands : iterable of array
        What changes from step to step.

    Returns
    -------
    bool
    """
    largest = max((numpy.size(operand) for operand in operands), default=0)
    return isinstance(value, jax.Array) and value.size <= largest


def find_known(
    loops: Iterable[FinishedLoop],
    num_steps: int,
    nodes: Sequence[Apply],
    read: Sequence[tuple[Variable, View]],
    constant: Sequence[tuple[Variable, Any]],
) -> dict[Variable, View]:
    """Find what a loop need not compute, because one that it goes back through has kept it.

    Parameters
    ----------
    loops : iterable of FinishedLoop
    num_steps : int
        How many steps the loop takes.
    nodes : sequence of Apply
        Those of the loop's step, in order.
    read : sequence of (Variable, View)
        The sequences that it reads.
    constant : sequence of (Variable, array)
        What is the same at all steps.

    Returns
    -------
    dict of Variable to View
        Variables of the step, and where their values lie.
    """
    known: dict[Variable, View] = {}
    for loop in loops:
        # One that took fewer steps may have read a part of the same array.
        same = _same_inputs(loop, read, constant) if loop.num_steps >= num_steps else {}
        if same:
            for variable, theirs in _same_variables(loop, nodes, same).items():
                if theirs in loop.kept:
                    known[variable] = loop.kept[theirs].backwards(loop.num_steps)
    return known


def _same_inputs(
    loop: FinishedLoop,
    read: Sequence[tuple[Variable, View]],
    constant: Sequence[tuple[Variable, Any]],
) -> dict[Variable, Variable]:
    """Find what has the same value at step i and, in the other loop, at the i-th from the end."""
    backwards = {
        _identity(view.backwards(loop.num_steps)): variable for variable, view in loop.read
    }
    same = {}
    for variable, view in read:
        theirs = backwards.get(_identity(view))
        if theirs is not None:
            same[variable] = theirs
    if same:
        everywhere = {id(value): variable for variable, value in loop.constant}
        same |= {
            variable: everywhere[id(value)]
            for variable, value in constant
            if id(value) in everywhere
        }
    return same


def _identity(view: View) -> tuple[int, int, int]:
    return id(view.array), view.first, view.step


def _same_variables(
    loop: FinishedLoop, nodes: Sequence[Apply], same: Mapping[Variable, Variable]
) -> dict[Variable, Variable]:
    """Find what is computed in the same way from the same."""
    computed = {}
    for node in loop.nodes:
        if not isinstance(node.op, HasInnerGraph):
            computed[node.op, _identities(node.inputs, None)] = node
    found = dict(same)
    for node in nodes:
        if isinstance(node.op, HasInnerGraph):
            continue
        theirs = computed.get((node.op, _identities(node.inputs, found)))
        if theirs is not None:
            found.update(zip(node.outputs, theirs.outputs, strict=True))
    return {variable: theirs for variable, theirs in found.items() if variable not in same}


def _identities(
    inputs: Sequence[Variable], same: Mapping[Variable, Variable] | None
) -> tuple[Any, ...]:
    """Identify inputs: constants by their value, others by the variable of the finished loop.

    The inputs of all loops are the same objects of Aesara, numbered, so that what is not known to
    be the same must not be identified by itself.
    """
    if same is None:
        return tuple(x.signature() if isinstance(x, Constant) else x for x in inputs)
    return tuple(x.signature() if isinstance(x, Constant) else same.get(x) for x in inputs)
