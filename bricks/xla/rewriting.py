"""What Aesara does with a graph before XLA compiles it, and the Aesara modes that stand in for XLA.

Aesara handles givens and updates, and rewrites the graph: it simplifies, stabilizes and merges.
Rewrites that only serve C code (working in place, fusion, BLAS, convolutions as matrix products)
are left out, because XLA does that itself.
"""

from __future__ import annotations

import functools
from typing import Any

import aesara
from aesara.compile.mode import Mode, get_mode, optdb, predefined_modes
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import in2out
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.link.basic import Container, PerformLinker
from aesara.link.utils import map_storage
from aesara.link.vm import VMLinker

from bricks.xla.increments import chain_increments
from fuel_data.utils.names import nearest_name

__all__ = ["aesara_mode", "rewrite_copy", "rewriting_mode"]

_ONLY_FOR_C = (
    "AbstractConvCheck",
    "BlasOpt",
    "conv_gemm",
    "conv_opts",
    "cxx",
    "cxx_only",
    "fusion",
    "inplace",
    "jax",
    "local_abstractconv_check",
    "scan_inplace",
    "scan_make_inplace",
)

#: The first takes the shape of what is written through places and a slice for another one, and
#: raises. So does the second, where one table is looked up twice; `bricks.xla.increments` is right.
_WRONG = ("local_useless_inc_subtensor_alloc", "pre_local_IncSubtensor_serialize")

# Where Aesara has its own: just before the graph is brought into its canonical form.
optdb.register("chain_increments", in2out(chain_increments), "fast_run", position=0.99)

#: Rewrites that cost much of the building time and save little of the running time.
_SLOW_TO_BUILD = ("scan_save_mem", "local_subtensor_merge")


class _NullLinker(PerformLinker):
    """Lets Aesara prepare a graph without compiling anything."""

    required_rewrites = ()

    def make_all(self, input_storage=None, output_storage=None, storage_map=None):
        """Return the containers that a function needs, and nothing to call."""
        fgraph = self.fgraph
        inputs, outputs, storage_map = map_storage(
            fgraph, self.schedule(fgraph), input_storage, output_storage, storage_map
        )

        def run() -> None:
            raise RuntimeError("This function was only rewritten, not compiled.")

        run.allow_gc = False
        run.storage_map = storage_map
        return (
            run,
            list(map(Container, fgraph.inputs, inputs)),
            [
                Container(variable, store, readonly=True)
                for variable, store in zip(fgraph.outputs, outputs, strict=True)
            ],
            [],
            [],
        )


def rewrites(optimizer: str) -> RewriteDatabaseQuery:
    """Select the rewrites of a profile.

    Parameters
    ----------
    optimizer : {'fast_run', 'fast_compile'}

    Returns
    -------
    aesara.graph.rewriting.db.RewriteDatabaseQuery
    """
    slow = _SLOW_TO_BUILD if optimizer == "fast_compile" else ()
    return RewriteDatabaseQuery(include=["fast_run"], exclude=[*_ONLY_FOR_C, *_WRONG, *slow])


def rewrite_copy(fgraph: FunctionGraph, optimizer: str) -> FunctionGraph:
    """Rewrite a copy of a graph that an operation holds, which Aesara leaves as it was written.

    Parameters
    ----------
    fgraph : aesara.graph.fg.FunctionGraph
    optimizer : {'fast_run', 'fast_compile'}

    Returns
    -------
    aesara.graph.fg.FunctionGraph
        With inputs and outputs in the same order.
    """
    copy = fgraph.clone()
    _rewriter(optimizer).rewrite(copy)
    return copy


@functools.cache
def _rewriter(optimizer: str) -> Any:
    return optdb.query(rewrites(optimizer))


def rewriting_mode(optimizer: str) -> Mode:
    """Return the mode in which ``aesara.function`` rewrites a graph and compiles nothing.

    Parameters
    ----------
    optimizer : {'fast_run', 'fast_compile'}

    Returns
    -------
    aesara.compile.mode.Mode
    """
    return Mode(_NullLinker(), rewrites(optimizer))


def aesara_mode(backend: str) -> Mode:
    """Return the Aesara mode that a backend names.

    Parameters
    ----------
    backend : str
        ``'py'`` for Aesara's virtual machine in pure Python, ``'c'`` for compiled C, or the name
        of a mode of Aesara.

    Returns
    -------
    aesara.compile.mode.Mode

    Raises
    ------
    ValueError
        If there is no such mode, or no C compiler for ``'c'``.
    """
    if backend == "py":
        return Mode(VMLinker(use_cloop=False, c_thunks=False), rewrites("fast_run"))
    if backend == "c":
        if not aesara.config.cxx:
            raise ValueError(
                "backend 'c' needs a C++ compiler, which is switched off. Set "
                "AESARA_FLAGS=cxx=g++ before bricks is imported, or choose 'xla' or 'py'."
            )
        return get_mode("FAST_RUN")
    if backend not in predefined_modes:
        known = {"xla", "py", "c", *predefined_modes}
        raise ValueError(f"backend: there is no {backend!r}.{nearest_name(backend, known)}")
    return get_mode(backend)
