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
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply, Constant, Variable
from aesara.scan.op import Scan
from aesara.tensor.shape import SpecifyShape
from aesara.tensor.subtensor import Subtensor, get_idx_list
from jax import lax

from bricks.xla.accumulation import Accumulation
from bricks.xla.errors import UnsupportedOp
from bricks.xla.lowering import Context, known_int, known_ints, lowering
from bricks.xla.reuse import FinishedLoop, View, dear_variables, find_known, is_worth_keeping

#: Recurrent results of which at most so many values are wanted are carried from step to step;
#: longer ones are collected.
_LONGEST_WINDOW = 4


class _Carry(NamedTuple):
    """What a step gives to the next one."""

    step: jax.Array
    #: For each accumulated result, for each place that is written, what was written last.
    written: tuple[tuple[tuple[jax.Array, ...], ...], ...]
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

    def shortened(self, length: int) -> _Recurrence:
        """Return the same of which only so many last values are wanted, and are carried."""
        return _Recurrence(self.buffer[:length], self.taps, False)

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
        body: Any,
        context: Context,
        operands: Sequence[Any],
    ):
        self._op, self._node, self._body, self._context = op, node, body, context
        self._errors: list[Exception] = []
        inputs = list(operands)
        self.num_steps = int(operands[0])
        self._accumulations = [
            Accumulation.of_taps(jnp.asarray(x, out.type.dtype), *taps)
            for x, out, *taps in zip(
                op.outer_mitmot(inputs),
                node.outputs,
                op.info.mit_mot_in_slices,
                op.info.mit_mot_out_slices,
                strict=False,
            )
        ]
        self._num_sequences = op.info.n_seqs
        self._sequences = tuple(
            context.views.part(x, part)
            for x, part in [
                *((jnp.asarray(x), slice(self.num_steps)) for x in op.outer_seqs(inputs)),
                *(x for one in self._accumulations for x in one.sequences(self.num_steps)),
            ]
        )
        # A gradient goes from the end of everything to its beginning. So does its loop in XLA, and
        # what Aesara turned around for it is read as it lies.
        self._is_backwards = bool(op.info.n_mit_mot)
        buffers = [*op.outer_mitsot(inputs), *op.outer_sitsot(inputs)]
        taps = [*op.info.mit_sot_in_slices, *op.info.sit_sot_in_slices]
        self._recurrences = [
            self._recurrence(jnp.asarray(x, out.type.dtype), tap)
            for x, tap, out in zip(buffers, taps, node.outputs[op.info.n_mit_mot :], strict=False)
        ]
        self._lengths = known_ints(op.outer_nitsot(inputs), "the length of what a scan collects")
        self._shared = tuple(jnp.asarray(x) for x in op.outer_shared(inputs))
        self._constant = op.outer_non_seqs(inputs)
        self._read = [context.views.of(x) for x in op.outer_seqs(inputs)]
        self._known = self._find_known()
        self._dear = dear_variables(body.nodes) if _has_gradient(node, context) else []
        self._dear_values: dict[Variable, jax.Array] = {}

    def _find_known(self) -> dict[Variable, View]:
        """Find what a loop that this one goes back through has computed already."""
        if not self._op.info.n_mit_mot:
            return {}
        fgraph = self._body.fgraph
        return find_known(
            self._context.views.loops,
            self.num_steps,
            self._body.nodes,
            list(zip(fgraph.inputs, self._read, strict=False)),
            self._constants(),
        )

    def _constants(self) -> list[tuple[Variable, Any]]:
        """Pair the variables of a step that have one value at all steps with these values."""
        inputs = self._body.fgraph.inputs
        return list(zip(inputs[len(inputs) - len(self._constant) :], self._constant, strict=True))

    def _recurrence(self, buffer: jax.Array, taps: tuple[int, ...]) -> _Recurrence:
        length, num_first = buffer.shape[0], -min(taps)
        is_short = length <= max(num_first, _LONGEST_WINDOW)
        return _Recurrence(buffer, taps, not is_short or length > num_first + self.num_steps)

    def _start(self) -> _Carry:
        return _Carry(
            step=jnp.zeros((), jnp.int32),
            written=tuple(one.first_windows() for one in self._accumulations),
            windows=tuple(recurrence.first_window() for recurrence in self._recurrences),
            shared=self._shared,
            holds=jnp.ones((), bool),
        )

    def _operands_of_step(self, carry: _Carry, elements: Sequence[Any]) -> list[Any]:
        """List the inner graph's operands at a step."""
        operands = list(elements[: self._num_sequences])
        remaining = iter(elements[self._num_sequences :])
        for accumulation, windows in zip(self._accumulations, carry.written, strict=True):
            operands += accumulation.read_values(windows, remaining)
        for window, recurrence in zip(carry.windows, self._recurrences, strict=True):
            operands += [window[len(window) + tap] for tap in recurrence.taps]
        return [*operands, *carry.shared, *self._constant]

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
        operands = self._operands_of_step(carry, elements)
        given = {variable: view.at(carry.step) for variable, view in self._known.items()}
        with self._context.views.inside():
            results = self._body(*operands, given=given, wanted=self._dear)
        outputs = list(map(jnp.asarray, results[: len(results) - len(self._dear)]))
        changing = operands[: len(operands) - len(self._constant)]
        self._dear_values = {
            variable: value
            for variable, value in zip(self._dear, results[len(outputs) :], strict=True)
            if is_worth_keeping(value, changing)
        }
        checks = self._context.checks[num_checks:]
        del self._context.checks[num_checks:]
        self._errors = [error for _, error in checks]
        holds = carry.holds
        for condition, _ in checks:
            holds = holds & jnp.asarray(condition, bool).all()

        info, parts = self._op.info, iter(outputs)
        written = [
            accumulation.shifted(windows, _take(parts, len(windows)))
            for accumulation, windows in zip(self._accumulations, carry.written, strict=True)
        ]
        recurrent = [
            jnp.broadcast_to(value, window[0].shape).astype(window[0].dtype)
            for value, window in zip(_take(parts, len(carry.windows)), carry.windows, strict=True)
        ]
        collected = _take(parts, info.n_nit_sot)
        shared = _take(parts, info.n_shared_outs)
        following = _Carry(
            step=carry.step + 1,
            written=tuple(written),
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

        kept = self._keep_few()

        def body(state: Any, elements: Any) -> Any:
            carry, lasts = state
            carry, recurrent, collected, _ = self._take_step(carry, elements)
            long = [
                value
                for value, recurrence in zip(recurrent, self._recurrences, strict=True)
                if recurrence.is_collected
            ]
            lasts = [(*last[1:], collected[place]) for place, last in zip(kept, lasts, strict=True)]
            rest = [value for place, value in enumerate(collected) if place not in kept]
            newest = [[window[-1] for window in windows] for windows in carry.written]
            return (carry, lasts), (long, rest, newest, list(self._dear_values.values()))

        start = self._start()
        (carry, lasts), results = lax.scan(
            body,
            (start, self._first_lasts(start, kept)),
            tuple(map(self._in_order, self._sequences)),
            length=num_steps,
            reverse=self._is_backwards,
        )
        long, rest, written, dear = jax.tree.map(self._in_order, results)
        self._check(carry)
        remaining = iter(long)
        recurrent = [
            recurrence.result(window, next(remaining) if recurrence.is_collected else None)
            for recurrence, window in zip(self._recurrences, carry.windows, strict=True)
        ]
        ends = self._ends(dict(zip(kept, lasts, strict=True)), iter(rest))
        accumulated = map(Accumulation.result, self._accumulations, written)
        if self._dear:
            self._note_finished(
                [*recurrent, *ends], dict(zip(self._dear_values, dear, strict=True))
            )
        return [*accumulated, *recurrent, *ends, *carry.shared]

    def _in_order(self, values: jax.Array) -> jax.Array:
        """Bring values of all steps from the order of the steps into that of memory, and back."""
        return self._context.views.part(values, slice(None, None, -1 if self._is_backwards else 1))

    def _note_finished(self, results: list[jax.Array], dear: dict[Variable, jax.Array]) -> None:
        """Let the loop of the gradient take what this one has computed.

        Parameters
        ----------
        results : list of arrays
            The recurrent and the collected ones.
        dear : dict of Variable to array
            Values at all steps.
        """
        inner = self._body.fgraph
        op, inputs, outputs = self._op, inner.inputs, inner.outputs
        read = list(zip(op.inner_seqs(inputs), self._read, strict=True))
        kept = {variable: View(values, 0, 1) for variable, values in dear.items()}
        windows = _grouped([*op.inner_mitsot(inputs), *op.inner_sitsot(inputs)], self._recurrences)
        computed = [*op.inner_mitsot_outs(outputs), *op.inner_sitsot_outs(outputs)]
        for result, one, taps, output in zip(
            results, self._recurrences, windows, computed, strict=False
        ):
            if result.shape[0] == one.num_first + self.num_steps:
                whole = View(result, one.num_first, 1)
                read += [
                    (variable, whole._replace(first=one.num_first + tap))
                    for variable, tap in zip(taps, one.taps, strict=True)
                ]
                read.append((output, whole))
        collected = zip(op.inner_nitsot_outs(outputs), results[len(computed) :], strict=True)
        read += [(x, View(y, 0, 1)) for x, y in collected if y.shape[0] == self.num_steps]
        self._context.views.loops.append(
            FinishedLoop(self._body.nodes, self.num_steps, read, self._constants(), kept)
        )

    def _keep_few(self) -> dict[int, int]:
        """Shorten the recurrent results of which only a few last values are used.

        Returns
        -------
        dict of int to int
            The collected results of which this holds, and how many values.
        """
        for place, wanted in enumerate(self._wanted_of_recurrences()):
            recurrence = self._recurrences[place]
            if wanted is not None and wanted <= _LONGEST_WINDOW:
                length = recurrence.num_first + max(wanted, 1)
                if length < recurrence.buffer.shape[0] <= recurrence.num_first + self.num_steps:
                    self._recurrences[place] = recurrence.shortened(length)
        return {
            place: max(wanted, 1)
            for place, wanted in enumerate(self._wanted_of_collected())
            if wanted is not None
            and wanted <= _LONGEST_WINDOW
            and max(wanted, 1) < self._lengths[place] <= self.num_steps
        }

    def _first_lasts(self, start: _Carry, kept: dict[int, int]) -> list[tuple[jax.Array, ...]]:
        """Return zeros in the place of the last values of collected results."""
        if not kept:
            return []
        first = [x[0] for x in self._sequences]
        shapes = jax.eval_shape(lambda carry: self._take_step(carry, first)[2], start)
        zeros = [jnp.zeros(shapes[place].shape, shapes[place].dtype) for place in kept]
        return [(zero,) * number for zero, number in zip(zeros, kept.values(), strict=True)]

    def _ends(
        self, lasts: dict[int, tuple[jax.Array, ...]], rest: Iterator[jax.Array]
    ) -> list[jax.Array]:
        """Return the collected results, or the last values of those of which few are used."""
        return [
            jnp.stack(lasts[place]) if place in lasts else _last(next(rest), length)
            for place, length in enumerate(self._lengths)
        ]

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
        return [*recurrent, *(end[None] for end in ends), *carry.shared]

    def _shorten_results(self) -> None:
        """Keep only the last values of a loop whose number of steps is not known.

        Where nothing but ``result[-1]`` is used, a result of any length will do that ends with it.
        """
        wanted = [*self._wanted_of_recurrences(), *self._wanted_of_collected()]
        lengths = [recurrence.num_first + 1 for recurrence in self._recurrences]
        is_long = [
            recurrence.is_collected or recurrence.buffer.shape[0] > length
            for recurrence, length in zip(self._recurrences, lengths, strict=True)
        ]
        is_long += [length > 1 for length in self._lengths]
        if any(
            long and (number is None or number > 1)
            for long, number in zip(is_long, wanted, strict=True)
        ):
            raise UnsupportedOp(
                "A scan that stops by a condition has as many values as it takes steps, and XLA "
                "needs to know how many. Use only the last one, result[-1]; or take a fixed number "
                "of steps, and keep the state by tensor.switch once the condition holds, which has "
                "a gradient too; or compile this function with backend='py'."
            )
        self._recurrences = [
            recurrence.shortened(length) if long else recurrence
            for recurrence, length, long in zip(self._recurrences, lengths, is_long, strict=False)
        ]

    def _wanted_of_recurrences(self) -> list[int | None]:
        """Tell how many of the last values of each recurrent result are used."""
        outputs = self._node.outputs[self._op.info.n_mit_mot :]
        return [
            _wanted(output, recurrence.num_first, self._context)
            for output, recurrence in zip(outputs, self._recurrences, strict=False)
        ]

    def _wanted_of_collected(self) -> list[int | None]:
        """Tell how many of the last values of each collected result are used."""
        outputs = self._op.outer_nitsot_outs(self._node.outputs)
        return [_wanted(output, 0, self._context) for output in outputs]


def _grouped(
    variables: Sequence[Variable], recurrences: Sequence[_Recurrence]
) -> list[list[Variable]]:
    """Divide the variables of a step by the recurrent result whose values they are."""
    remaining = iter(variables)
    return [_take(remaining, len(recurrence.taps)) for recurrence in recurrences]


def _has_gradient(node: Apply, context: Context) -> bool:
    """Tell whether a loop of a gradient goes back through a scan."""
    waiting = list(node.outputs)
    while waiting:
        for client in context.clients_of(waiting.pop()):
            if client is None:
                continue
            if isinstance(client.op, Scan) and client.op.info.n_mit_mot:
                return True
            if isinstance(client.op, (SpecifyShape, Subtensor)):
                waiting += client.outputs
    return False


def _wanted(variable: Variable, num_first: int, context: Context) -> int | None:
    """Count the last values of a result that are used, perhaps after dropping first values.

    Returns
    -------
    int or None
        None if values are used whose distance from the end is not known.
    """
    most = 0
    for client in context.clients_of(variable):
        if client is None or not isinstance(client.op, Subtensor):
            return None
        (index, *others) = get_idx_list(client.inputs, client.op.idx_list)
        if isinstance(index, slice):
            number = None if others else _wanted_through_slice(client, index, num_first, context)
        else:
            number = _from_the_end(index)
        if number is None:
            return None
        most = max(most, number)
    return most


def _wanted_through_slice(
    client: Apply, index: slice, num_first: int, context: Context
) -> int | None:
    """Count the last values that are used of a slice."""
    if index.stop is not None or index.step is not None:
        return None
    start = _constant(index.start)
    if isinstance(start, int) and 0 <= start <= num_first:
        return _wanted(client.outputs[0], num_first - start, context)
    return _from_the_end(start)


def _from_the_end(index: Any) -> int | None:
    """Tell how far from the end a constant, negative place is."""
    place = _constant(index)
    return -place if isinstance(place, int) and place < 0 else None


def _constant(index: Any) -> Any:
    """Return the value of a constant index."""
    return int(index.data) if isinstance(index, Constant) else index


def _take(values: Any, number: int) -> list[Any]:
    return list(itertools.islice(values, number))
