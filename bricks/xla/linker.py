"""The Aesara mode ``'xla'``: ``aesara.function(..., mode='xla')``.

Aesara keeps the values of shared variables on the host between calls, so a function of this mode
is right but slower than one of :func:`bricks.xla.function`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from aesara.compile.mode import Mode, predefined_modes, register_mode
from aesara.graph.fg import FunctionGraph
from aesara.link.basic import JITLinker

from bricks.xla.devices import x64
from bricks.xla.program import Program
from bricks.xla.rewriting import rewrites

__all__ = ["XlaLinker", "register"]


class XlaLinker(JITLinker):
    """Computes a whole graph by XLA."""

    required_rewrites = ()
    fgraph: FunctionGraph

    def fgraph_convert(self, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> Program:
        """Make a program of a graph."""
        return Program(
            fgraph,
            "aesara function",
            arguments=range(len(fgraph.inputs)),
            num_outputs=len(fgraph.outputs),
        )

    def create_thunk_inputs(self, storage_map: dict) -> list[Any]:
        """List where the values of the graph's inputs lie."""
        return [storage_map[variable] for variable in self.fgraph.inputs]

    def jit_compile(self, fn: Any) -> Callable[..., list[numpy.ndarray]]:
        """Return the function of host arrays that runs a program."""

        def run(*values: Any) -> list[numpy.ndarray]:
            with x64():
                outputs, checks = fn.run([], [], [numpy.array(value) for value in values])
            fn.raise_failed_checks(checks)
            return [numpy.array(output) for output in outputs]

        return run


def register() -> None:
    """Make the mode known to Aesara, once."""
    if "xla" not in predefined_modes:
        register_mode("xla", Mode(XlaLinker(), rewrites("fast_run")))
