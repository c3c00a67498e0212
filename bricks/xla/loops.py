"""The lowering of Aesara's ``scan``, gradients included, to the loops of XLA.

A scan has *sequences*, of which each step reads one element; *recurrent* results, whose last
values (at the *taps*) each step reads and whose next value it computes; *accumulated* results,
buffers that each step reads and changes in several places, which only gradients have; *collected*
results, of which each step gives one element that it does not read; and *shared* variables with
updates. Aesara hands in a buffer for each recurrent result that begins with its first values, and
whose length says how many of the last values are wanted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply, Constant, Variable
from aesara.scan.op import Scan
from aesara.tensor.subtensor import Subtensor, get_idx_list
from jax import lax

from bricks.xla.errors import UnsupportedOp
from bricks.xla.lowering import Context, known_int, known_ints, lowering

#: Recurrent results of which at most so many values are wanted are carried from step to step;
#: longer ones are collected.
_LONGEST_WINDOW = 4


class _Carry(NamedTuple):
    """What a step gives to the next one."""

    step: jax.Array
    accumulated: tuple[jax.Array, ...]
    #: For each recurrent result its last values, the newest last.
    windows: tuple[tuple[jax.Array, ...], ...]
    shared: tuple[jax.Array, ...]
    #: Whether all checks of all steps held.
    holds: jax.Array


class _Recurrence(NamedTuple):
    """A recurrent result: its buffer, its taps (negative), and how its values are kept."""

    buffer: jax.Array
    taps: tuple[int, ...]
    is_collected: bool

    @property
    def num_first(self) -> int:
        """How many first values the buffer holds."""
        return -min(self.taps)

    def first_window(self) -> tuple[jax.Array, ...]:
        """Return the values before the first step."""
        values = [self.buffer[place] for place in range(self.num_first)]
        if not self.is_collected:
            missing = max(0, self.buffer.shape[0] - self.num_first)
            values = [jnp.zeros_like(values[0])] * missing + values
        return tuple(values)

    def result(self, window: Sequence[jax.Array], collected: jax.Array | None) -> jax.Array:
        """Return as many last values as the buffer is long."""
        length = self.buffer.shape[0]
        if collected is None:
            return jnp.stack(window[len(window) - length :])
        return _last(jnp.concatenate([self.buffer[: self.num_first], collected]), length)


def _last(values: jax.Array, length: int) -> jax.Array:
    """Take the last values, or add zeros behind them where there are too few."""
    surplus = values.shape[0] - length
    if surplus >= 0:
        return values[surplus:]
    return jnp.pad(values, [(0, -surplus), *[(0, 0)] * (values.ndim - 1)])


@lowering(Scan, fold=False)
def lower_scan(op: Scan, node: Apply, context: Context) -> Callable:
    """Repeat an inner graph."""
    body = context.function_of(op.fgraph)

    def scan(*operands: Any) -> Any:
        num_steps = known_int(operands[0], "the number of steps of a scan")
        loop = _Loop(op, node, body, context, operands)
        results = loop.run_until(num_steps) if op.info.as_while else loop.run(num_steps)
        return tuple(results) if len(results) > 1 else results[0]

    return scan


class _Loop:
    """A scan with its operands.

    Parameters
    ----------
    op : aesara.scan.op.Scan
    node : aesara.graph.basic.Apply
    body : function
        Computes the inner graph.
    context : Context
    operands : sequence of arrays
        Those of the node.
    """

    def __init__(
        self,
        op: Scan,
        node: Apply,
        body: Callable[..., list],
        context: Context,
        operands: Sequence[Any],
    ):
        self._op, self._node, self._body, self._context = op, node, body, context
        self._errors: list[Exception] = []
        inputs = list(operands)
        self.num_steps = int(operands[0])
        self._sequences = tuple(jnp.asarray(x)[: self.num_steps] for x in op.outer_seqs(inputs))
        self._accumulated = tuple(
            jnp.asarray(x, out.type.dtype)
            for x, out in zip(op.outer_mitmot(inputs), node.outputs, strict=False)
        )
        buffers = [*op.outer_mitsot(inputs), *op.outer_sitsot(inputs)]
        taps = [*op.info.mit_sot_in_slices, *op.info.sit_sot_in_slices]
        self._recurrences = [
            self._recurrence(jnp.asarray(x, out.type.dtype), tap)
            for x, tap, out in zip(buffers, taps, node.outputs[op.info.n_mit_mot :], strict=False)
        ]
        self._lengths = known_ints(op.outer_nitsot(inputs), "the length of what a scan collects")
        self._shared = tuple(jnp.asarray(x) for x in op.outer_shared(inputs))
        self._constant = op.outer_non_seqs(inputs)
        self._first_place = [-min(taps) for taps in op.info.mit_mot_in_slices]

    def _recurrence(self, buffer: jax.Array, taps: tuple[int, ...]) -> _Recurrence:
        length, num_first = buffer.shape[0], -min(taps)
        is_short = length <= max(num_first, _LONGEST_WINDOW)
        return _Recurrence(buffer, taps, not is_short or length > num_first + self.num_steps)

    def _start(self) -> _Carry:
        return _Carry(
            step=jnp.zeros((), jnp.int32),
            accumulated=self._accumulated,
            windows=tuple(recurrence.first_window() for recurrence in self._recurrences),
            shared=self._shared,
            holds=jnp.ones((), bool),
        )

    def _operands_of_step(self, carry: _Carry, elements: Sequence[Any]) -> list[Any]:
        """List the inner graph's operands at a step."""
        operands = list(elements)
        slices = self._op.info.mit_mot_in_slices
        for buffer, taps, first in zip(carry.accumulated, slices, self._first_place, strict=True):
            for tap in taps:
                place = carry.step + (first + tap)
                operands.append(lax.dynamic_index_in_dim(buffer, place, keepdims=False))
        for window, recurrence in zip(carry.windows, self._recurrences, strict=True):
            operands += [window[len(window) + tap] for tap in recurrence.taps]
        return [*operands, *carry.shared, *self._constant]

    def _accumulate(self, carry: _Carry, values: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        """Write what a step computed into the accumulated results."""
        remaining, changed = iter(values), []
        slices = self._op.info.mit_mot_out_slices
        for buffer, taps, first in zip(carry.accumulated, slices, self._first_place, strict=True):
            for tap in taps:
                value = jnp.broadcast_to(next(remaining), buffer.shape[1:]).astype(buffer.dtype)
                place = carry.step + (first + tap)
                buffer = lax.dynamic_update_index_in_dim(buffer, value, place, 0)
            changed.append(buffer)
        return tuple(changed)

    def _take_step(
        self, carry: _Carry, elements: Sequence[Any]
    ) -> tuple[_Carry, list[jax.Array], list[jax.Array], Any]:
        """Compute one step.

        Returns
        -------
        carry : _Carry
        recurrent : list of arrays
            The new value of each recurrent result.
        collected : list of arrays
            The element of each collected result.
        stop : array of shape (), or None
            Whether this was the last step, if the scan has a condition.
        """
        num_checks = len(self._context.checks)
        outputs = [jnp.asarray(out) for out in self._body(*self._operands_of_step(carry, elements))]
        checks = self._context.checks[num_checks:]
        del self._context.checks[num_checks:]
        self._errors = [error for _, error in checks]
        holds = carry.holds
        for condition, _ in checks:
            holds = holds & jnp.asarray(condition, bool).all()

        info, parts = self._op.info, iter(outputs)
        accumulated = self._accumulate(carry, _take(parts, info.n_mit_mot_outs))
        recurrent = [
            jnp.broadcast_to(value, window[0].shape).astype(window[0].dtype)
            for value, window in zip(_take(parts, len(carry.windows)), carry.windows, strict=True)
        ]
        collected = _take(parts, info.n_nit_sot)
        shared = _take(parts, info.n_shared_outs)
        following = _Carry(
            step=carry.step + 1,
            accumulated=accumulated,
            windows=tuple(
                (*window[1:], value) for window, value in zip(carry.windows, recurrent, strict=True)
            ),
            shared=tuple(
                new.astype(old.dtype) for new, old in zip(shared, carry.shared, strict=True)
            ),
            holds=holds,
        )
        return following, recurrent, collected, next(parts, None)

    def _check(self, carry: _Carry) -> None:
        """Hand the checks of all steps on to the graph around the scan."""
        if self._errors:
            self._context.check(carry.holds, self._errors[0])

    def run(self, num_steps: int) -> list[jax.Array]:
        """Take a number of steps.

        Parameters
        ----------
        num_steps : int

        Returns
        -------
        list of arrays
            The node's outputs.
        """

        def body(carry: _Carry, elements: Any) -> Any:
            carry, recurrent, collected, _ = self._take_step(carry, elements)
            long = [
                value
                for value, recurrence in zip(recurrent, self._recurrences, strict=True)
                if recurrence.is_collected
            ]
            return carry, (long, collected)

        carry, (long, collected) = lax.scan(body, self._start(), self._sequences, length=num_steps)
        self._check(carry)
        remaining = iter(long)
        recurrent = [
            recurrence.result(window, next(remaining) if recurrence.is_collected else None)
            for recurrence, window in zip(self._recurrences, carry.windows, strict=True)
        ]
        ends = [_last(x, length) for x, length in zip(collected, self._lengths, strict=True)]
        return [*carry.accumulated, *recurrent, *ends, *carry.shared]

    def run_until(self, num_steps: int) -> list[jax.Array]:
        """Take steps until the condition holds, but at most a number of them.

        Parameters
        ----------
        num_steps : int

        Returns
        -------
        list of arrays
            The node's outputs.

        Raises
        ------
        UnsupportedOp
            If more than the last values are wanted, because how many there are is not known.
        """
        self._shorten_results()
        start = self._start()
        first = [x[0] for x in self._sequences]
        shapes = jax.eval_shape(lambda carry: self._take_step(carry, first)[2], start)
        ends = [jnp.zeros(shape.shape, shape.dtype) for shape in shapes]

        def goes_on(state: Any) -> jax.Array:
            carry, _, stop = state
            return (carry.step < num_steps) & ~stop

        def body(state: Any) -> Any:
            carry = state[0]
            elements = [
                lax.dynamic_index_in_dim(x, carry.step, keepdims=False) for x in self._sequences
            ]
            carry, _, collected, stop = self._take_step(carry, elements)
            return carry, collected, stop.astype(bool)

        carry, ends, _ = lax.while_loop(goes_on, body, (start, ends, jnp.zeros((), bool)))
        self._check(carry)
        recurrent = [
            recurrence.result(window, None)
            for recurrence, window in zip(self._recurrences, carry.windows, strict=True)
        ]
        return [*carry.accumulated, *recurrent, *(end[None] for end in ends), *carry.shared]

    def _shorten_results(self) -> None:
        """Keep only the last values of a loop whose number of steps is not known.

        Where nothing but ``result[-1]`` is used, a result of any length will do that ends with it.
        """
        first = self._op.info.n_mit_mot
        for place, recurrence in enumerate(self._recurrences):
            length = recurrence.num_first + 1
            if recurrence.buffer.shape[0] > length or recurrence.is_collected:
                self._require_only_last(self._node.outputs[first + place], recurrence.num_first)
                short = lax.slice_in_dim(recurrence.buffer, 0, length)
                self._recurrences[place] = _Recurrence(short, recurrence.taps, False)
        first += len(self._recurrences)
        for place, length in enumerate(self._lengths):
            if length > 1:
                self._require_only_last(self._node.outputs[first + place], 0)

    def _require_only_last(self, variable: Variable, num_first: int) -> None:
        if not _only_last_is_used(variable, num_first, self._context):
            raise UnsupportedOp(
                "A scan that stops by a condition has as many values as it takes steps, and XLA "
                "needs to know how many. Use only the last one, result[-1], or compile this "
                "function with backend='py'."
            )


def _only_last_is_used(variable: Variable, num_first: int, context: Context) -> bool:
    """Tell whether ``variable[-1]`` is all that is used, perhaps after dropping first values."""
    for client in context.clients_of(variable):
        if client is None or not isinstance(client.op, Subtensor):
            return False
        (index, *others) = get_idx_list(client.inputs, client.op.idx_list)
        if others:
            return False
        if _constant(index) == -1:
            continue
        drops_first = (
            isinstance(index, slice)
            and index.stop is None
            and index.step is None
            and _constant(index.start) in range(num_first + 1)
        )
        if not drops_first or not _only_last_is_used(client.outputs[0], 0, context):
            return False
    return True


def _constant(index: Any) -> Any:
    """Return the value of a constant index."""
    return int(index.data) if isinstance(index, Constant) else index


def _take(values: Any, number: int) -> list[Any]:
    return list(itertools.islice(values, number))
