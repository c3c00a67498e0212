"""From symbolic graphs to machine code, through XLA.

``function`` compiles a graph as ``aesara.function`` does; ``shared`` makes shared variables whose
values live on the device; ``RandomStream`` draws random numbers whose state is ordinary arrays.
``ctc_loss`` is the cost of a label sequence of unknown alignment, ``einsum`` multiplies arrays by
the names of their axes. ``wrap`` makes an operation of a function of JAX; ``lowering`` registers
how an operation of one's own is computed.
"""

from __future__ import annotations

from typing import Any

from bricks.xla.contraction import einsum
from bricks.xla.ctc import ctc_loss
from bricks.xla.errors import (
    DataDependentShape,
    DonatedStateLost,
    GraphError,
    UnsupportedOp,
    WrongCompiler,
)
from bricks.xla.functions import Function, function
from bricks.xla.linker import register
from bricks.xla.lowering import Context, lowering
from bricks.xla.memory import MemoryUse
from bricks.xla.program import BuildTimes
from bricks.xla.sampling import RandomStream
from bricks.xla.storage import SharedArray, shared, state_is_lost
from bricks.xla.wrapping import wrap

__all__ = [
    "BuildTimes",
    "Context",
    "DataDependentShape",
    "DonatedStateLost",
    "Function",
    "GraphError",
    "MemoryUse",
    "RandomStream",
    "SharedArray",
    "UnsupportedOp",
    "WrongCompiler",
    "ctc_loss",
    "einsum",
    "export_for",
    "function",
    "lowering",
    "shared",
    "state_is_lost",
    "wrap",
]

register()


def export_for(platform: str, compiled: Function, *args: Any) -> Any:
    """Lower a compiled function for a platform that need not be present.

    Parameters
    ----------
    platform : str
        ``'cpu'``, ``'cuda'``, ``'rocm'`` or ``'tpu'``.
    compiled : Function
    *args : array
        Example arguments; their shapes and dtypes matter.

    Returns
    -------
    jax.export.Exported
    """
    return compiled.export_for(platform, *args)
