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
from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.graph.rewriting.basic import in2out
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.link.basic import Container, PerformLinker
from aesara.link.utils import map_storage
from aesara.link.vm import VMLinker
from aesara.scan.op import Scan

from bricks.xla.increments import chain_increments
from bricks.xla.powers import specialize_powers
from bricks.xla.scan_results import drop_unused_results
from bricks.xla.shape_inference import ShapesOnDemand, drop_equal_lengths
from fuel_data.utils.names import nearest_name

__all__ = ["aesara_mode", "rewrite_copy", "rewrite_step", "rewriting_mode"]

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
#: The third fails where the shape of its base has become known; `bricks.xla.powers` does not.
_WRONG = (
    "local_useless_inc_subtensor_alloc",
    "pre_local_IncSubtensor_serialize",
    "local_pow_specialize",
)

# Where Aesara has its own: just before the graph is brought into its canonical form.
optdb.register("chain_increments", in2out(chain_increments), "fast_run", position=0.99)
optdb["specialize"].register("specialize_powers", specialize_powers, "fast_run")

#: What is done otherwise where XLA compiles: shapes are worked out when they are asked for, the
#: parts of a part are left to XLA, and a loop keeps only what is used of its results when it is
#: lowered (:mod:`bricks.xla.loops`). Written in Aesara's operations, each is a thousand nodes.
_DONE_OTHERWISE = ("ShapeOpt", "local_subtensor_merge", "scan_save_mem")

#: Rewrites that cost building time and save running time: they move products out of loops.
_SLOW_TO_BUILD = ("scan_pushout",)

#: The tag of our own rewrites, which other modes of Aesara do not ask for.
_OURS = "firebrick"

optdb.register("shapes_on_demand", ShapesOnDemand(), _OURS, position=0.1)
optdb["canonicalize"].register("drop_equal_lengths", drop_equal_lengths, _OURS)
optdb["scan_eqopt2"].register(
    "drop_unused_results", in2out(drop_unused_results, ignore_newtrees=True), _OURS
)


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
    """Select the rewrites of a profile, for graphs that XLA compiles.

    Parameters
    ----------
    optimizer : {'fast_run', 'fast_compile'}

    Returns
    -------
    aesara.graph.rewriting.db.RewriteDatabaseQuery
    """
    slow = _SLOW_TO_BUILD if optimizer == "fast_compile" else ()
    return RewriteDatabaseQuery(
        include=["fast_run", _OURS],
        exclude=[*_ONLY_FOR_C, *_WRONG, *_DONE_OTHERWISE, *slow],
    )


def _rewrites_of_aesara() -> RewriteDatabaseQuery:
    """Select the rewrites for graphs that Aesara evaluates."""
    return RewriteDatabaseQuery(include=["fast_run"], exclude=[*_ONLY_FOR_C, *_WRONG])


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


def rewrite_step(node: Any, kind: type[Op], rewriter: Any) -> list[Variable] | None:
    """Rewrite the step of a loop before anything is moved out of it, as Aesara does first.

    Parameters
    ----------
    node : aesara.graph.basic.Apply
        A scan.
    kind : type
        Of the operations that `rewriter` takes out; without one, here or in a loop inside, nothing
        is done.
    rewriter : aesara.graph.rewriting.basic.GraphRewriter
        Makes the graph smaller if it does anything.

    Returns
    -------
    list of variables, or None
        What the new scan gives; None if there is nothing to rewrite.
    """
    op = node.op
    step = FunctionGraph(op.inner_inputs, op.inner_outputs, clone=True, copy_inputs=False)
    if not any(isinstance(inner.op, (kind, Scan)) for inner in step.apply_nodes):
        return None
    num_nodes = len(step.apply_nodes)
    rewriter.rewrite(step)
    if len(step.apply_nodes) == num_nodes:
        return None
    new = Scan(
        step.inputs,
        step.outputs,
        op.info,
        mode=op.mode,
        truncate_gradient=op.truncate_gradient,
        name=op.name,
        profile=op.profile,
        allow_gc=op.allow_gc,
        strict=op.strict,
    )
    return new.make_node(*node.inputs).outputs


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
        return Mode(VMLinker(use_cloop=False, c_thunks=False), _rewrites_of_aesara())
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
