"""How much memory a compiled program needs."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["MemoryUse", "memory_use"]


class MemoryUse(NamedTuple):
    """The memory that a program needs, in bytes.

    Parameters
    ----------
    arguments : int
        What it is given: arguments, shared variables, constants.
    outputs : int
        What it returns, the new values of shared variables included.
    donated : int
        How much of the outputs lies where arguments were.
    temporary : int
        What it needs while it runs, beside all that.
    """

    arguments: int
    outputs: int
    donated: int
    temporary: int

    @property
    def total(self) -> int:
        """What is needed at once, at most."""
        return self.arguments + self.outputs - self.donated + self.temporary


def memory_use(lowered: Any) -> MemoryUse:
    """Compile a program and ask XLA what memory it planned for it.

    Parameters
    ----------
    lowered : jax.stages.Lowered

    Returns
    -------
    MemoryUse
    """
    planned = lowered.compile().memory_analysis()
    return MemoryUse(
        arguments=planned.argument_size_in_bytes,
        outputs=planned.output_size_in_bytes,
        donated=planned.alias_size_in_bytes,
        temporary=planned.temp_size_in_bytes,
    )
