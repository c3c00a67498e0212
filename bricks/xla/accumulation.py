"""What the gradient of a scan accumulates, without a buffer that each step changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["Accumulation"]


class Accumulation(NamedTuple):
    """A buffer that each step of a scan reads and changes in several places.

    Places are counted from that of the step. What a step reads was either written by an earlier
    one, at a place further on, or stands in the buffer from the beginning. So the last written
    values are handed from step to step, the others come as a sequence, and the buffer is put
    together at the end. Were it handed on itself, XLA would copy it whole at each step.

    Parameters
    ----------
    buffer : array of shape (place, ...)
        What it holds before the first step.
    read, written : tuple of int
        The places that a step reads and writes.
    """

    buffer: jax.Array
    read: tuple[int, ...]
    written: tuple[int, ...]

    @classmethod
    def of_taps(
        cls, buffer: jax.Array, read: Sequence[int], written: Sequence[int]
    ) -> Accumulation:
        """Make one of taps, which Aesara counts so that the first one read may be negative.

        Parameters
        ----------
        buffer : array of shape (place, ...)
        read, written : sequence of int
            Taps.

        Returns
        -------
        Accumulation
        """
        first = min(read)
        return cls(buffer, tuple(i - first for i in read), tuple(i - first for i in written))

    def _writer(self, place: int) -> int | None:
        """Find the written place from which values reach a place that is read, if there is one."""
        return min((further for further in self.written if further > place), default=None)

    def _num_kept(self, writer: int) -> int:
        """Count how many of the last values written at a place are needed."""
        return max([writer - place for place in self.read if self._writer(place) == writer] or [1])

    def first_windows(self) -> tuple[tuple[jax.Array, ...], ...]:
        """Give the last written values before the first step.

        Returns
        -------
        tuple of tuples of arrays
            For each place that is written, the newest last.
        """
        return tuple(
            tuple(self.buffer[place] for place in range(writer - self._num_kept(writer), writer))
            for writer in self.written
        )

    def sequences(self, num_steps: int) -> list[tuple[jax.Array, slice]]:
        """Tell what is read at places to which nothing has been written before.

        Parameters
        ----------
        num_steps : int

        Returns
        -------
        list of (array of shape (place, ...), slice)
            For each such place the array, and the part of it that all steps read.
        """
        return [
            (self.buffer, slice(place, place + num_steps))
            for place in self.read
            if self._writer(place) is None
        ]

    def read_values(
        self, windows: Sequence[tuple[jax.Array, ...]], elements: Iterator[jax.Array]
    ) -> list[jax.Array]:
        """Give what a step reads.

        Parameters
        ----------
        windows : sequence of tuples of arrays
            The last written values.
        elements : iterator of arrays
            Gives the step's elements of :meth:`sequences`.

        Returns
        -------
        list of arrays
            For each place that is read.
        """
        window_of = dict(zip(self.written, windows, strict=True))
        values = []
        for place in self.read:
            writer = self._writer(place)
            values.append(next(elements) if writer is None else window_of[writer][place - writer])
        return values

    def shifted(
        self, windows: Sequence[tuple[jax.Array, ...]], values: Sequence[jax.Array]
    ) -> tuple[tuple[jax.Array, ...], ...]:
        """Give the last written values after a step.

        Parameters
        ----------
        windows : sequence of tuples of arrays
            Those before the step.
        values : sequence of arrays
            What the step writes.

        Returns
        -------
        tuple of tuples of arrays
        """
        shape, dtype = self.buffer.shape[1:], self.buffer.dtype
        return tuple(
            (*window[1:], jnp.broadcast_to(value, shape).astype(dtype))
            for window, value in zip(windows, values, strict=True)
        )

    def result(self, values: Sequence[jax.Array]) -> jax.Array:
        """Put what all steps wrote into the buffer.

        Parameters
        ----------
        values : sequence of arrays of shape (step, ...)
            For each place that is written.

        Returns
        -------
        array of shape (place, ...)
        """
        buffer = self.buffer
        # Where two of them overlap, the step that wrote further on came first.
        for place in sorted(self.written, reverse=True):
            written = values[self.written.index(place)]
            buffer = lax.dynamic_update_slice_in_dim(buffer, written, place, 0)
        return buffer
