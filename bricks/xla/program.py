"""A rewritten graph as a program of XLA: traced, compiled for each set of shapes, and run.

A program has three groups of operands: the state, which it gives up and returns anew; what is
fixed, which it only reads; and the arguments. Shapes must be known when it is compiled. Where one
depends on an argument that is a single integer, that argument becomes a part of the signature by
itself, and each of its values is compiled for.
"""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, tee
from operator import call, itemgetter
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph
from aesara.tensor.shape import Shape, Shape_i
from aesara.tensor.type import TensorType

from bricks.xla import families  # noqa: F401 - registers the lowerings
from bricks.xla.cache import Compilation
from bricks.xla.devices import chosen_device, x64
from bricks.xla.errors import DataDependentShape
from bricks.xla.evaluation import Evaluator, make_context
from bricks.xla.health import check_compiler
from bricks.xla.memory import MemoryUse, memory_use

__all__ = ["BuildTimes", "Program"]

logger = logging.getLogger(__name__)

#: After so many compilations of one program a warning says what makes it compile again.
_MANY_COMPILATIONS = 5


@dataclass(frozen=True)
class BuildTimes:
    """How long a function took to build, in seconds.

    Parameters
    ----------
    rewrite : float
        To rewrite the graph, once for a function.
    trace : float
        To turn the graph into a program of JAX, for the latest shapes.
    compile : float
        To lower and compile that, or to find it in the cache, and to begin the first call.
    is_from_cache : bool
        Whether another process had compiled it.
    """

    rewrite: float
    trace: float = 0.0
    compile: float = 0.0
    is_from_cache: bool = False

    @property
    def total(self) -> float:
        """All of it."""
        return self.rewrite + self.trace + self.compile

    def __str__(self) -> str:
        found = " (found in the cache)" if self.is_from_cache else ""
        return (
            f"rewritten in {self.rewrite:.2f} s, traced in {self.trace:.2f} s, "
            f"compiled in {self.compile:.2f} s{found}"
        )


#: What must have held in a call: for the shapes it had, arrays of shape (). A plain dict, which JAX
#: makes in C: in Python a signal handler could raise there, while new state is nowhere.
_Checks = dict[str, list[jax.Array]]


class Program:
    """A compiled graph.

    Parameters
    ----------
    fgraph : aesara.graph.fg.FunctionGraph
        The rewritten graph. Its outputs are what is returned, then the new state.
    name : str
        For messages.
    arguments, state, fixed : sequence of int
        Which inputs of the graph belong to which group.
    updates : sequence of int
        For each input in `state`, the output that is its new value.
    num_outputs : int
        How many of the graph's outputs are returned.
    rewrite_seconds : float, optional
        How long it took to rewrite the graph.

    Raises
    ------
    UnsupportedOp
        If an operation of the graph has no lowering.
    """

    def __init__(
        self,
        fgraph: FunctionGraph,
        name: str,
        *,
        arguments: Sequence[int],
        state: Sequence[int] = (),
        fixed: Sequence[int] = (),
        updates: Sequence[int] = (),
        num_outputs: int,
        rewrite_seconds: float = 0.0,
    ):
        self.name = name
        self.num_compilations = 0
        #: How long the last compilation took, and what it followed.
        self.build_times = BuildTimes(rewrite_seconds)
        self._compilation: Compilation | None = None
        self._places = (list(state), list(fixed), list(arguments))
        self._updates = list(updates)
        self._num_outputs = num_outputs
        self._context = make_context()
        self._evaluate = Evaluator(fgraph, self._context)
        self._static: list[int] = []
        self._signatures: dict[str, tuple[Any, ...]] = {}
        self._digests: dict[str, str] = {}
        self._seen: list[tuple[tuple[int, ...], ...]] = []
        self._is_compiling = True
        #: For each key of the checks, what they stand for: other shapes may meet other conditions.
        self._errors: dict[str, list[Exception]] = {}
        self._step = jax.jit(self._trace, donate_argnums=0, static_argnums=3)

    @property
    def arguments(self) -> list[Variable]:
        """The inputs of the graph that are given at each call."""
        return [self._evaluate.fgraph.inputs[place] for place in self._places[2]]

    def _trace(
        self,
        state: list[jax.Array],
        fixed: list[jax.Array],
        arguments: list[jax.Array],
        static: tuple[int, ...],
    ) -> tuple[list[jax.Array], list[jax.Array], _Checks]:
        """Compute new state, outputs and whether all checks hold; run by JAX for each signature.

        The new state comes first: on CUDA, what is given up has been overwritten too early where
        other outputs preceded it.
        """
        start = perf_counter()
        arguments = self._merge(arguments, static)
        self._context.begin()
        operands: list[Any] = [None] * sum(map(len, self._places))
        for places, values in zip(self._places, (state, fixed, arguments), strict=True):
            for place, value in zip(places, values, strict=True):
                operands[place] = value
        results = self._evaluate(*operands)
        new_state = [
            jnp.asarray(results[update], old.dtype)
            for update, old in zip(self._updates, state, strict=True)
        ]
        outputs = [
            # A result that is an operand would be handed out as the very same array.
            jnp.array(value) if any(value is operand for operand in operands) else value
            for value in results[: self._num_outputs]
        ]
        checks = self._take_checks(str([*map(numpy.shape, operands), static]))
        for holds in checks.values():
            ok = jnp.stack(holds).all()
            new_state = [jnp.where(ok, new, old) for new, old in zip(new_state, state, strict=True)]
        if self._is_compiling:
            self._note_compilation(state, fixed, arguments, static)
            self.build_times = replace(self.build_times, trace=perf_counter() - start)
            self._compilation = Compilation()
        return new_state, outputs, checks

    def _merge(self, dynamic: Sequence[Any], static: Sequence[int]) -> list[Any]:
        """Put the static arguments back among the others, as known values."""
        arguments = list(dynamic)
        for place, value in zip(self._static, static, strict=True):
            dtype = self.arguments[place].type.dtype
            arguments.insert(place, numpy.asarray(value, dtype))
        return arguments

    def _take_checks(self, shapes: str) -> _Checks:
        """Return the conditions that the trace met, and keep the errors they stand for."""
        holds = [jnp.asarray(condition, bool).all() for condition, _ in self._context.checks]
        self._errors[shapes] = [error for _, error in self._context.checks]
        self._context.checks.clear()
        return {shapes: holds} if holds else {}

    def run(
        self,
        state: list[Any],
        fixed: list[Any],
        arguments: list[Any],
        keep: Sequence[Callable[[jax.Array], Any]] = (),
    ) -> tuple[list[jax.Array], _Checks]:
        """Run the program.

        Parameters
        ----------
        state : list of arrays
            Given up.
        fixed, arguments : list of arrays
            Arguments on the host must be copies that nobody changes.
        keep : sequence of functions
            Each is called with the new value of one array of the state.

        Returns
        -------
        outputs : list of arrays
        checks : dict
            For :meth:`raise_failed_checks`; empty if there are none.

        Raises
        ------
        GraphError
            If the graph cannot be computed with these shapes; the state is intact then.
        """
        if not self.num_compilations:
            self._check_device()
        while True:
            static: tuple[int, ...] = ()
            dynamic = arguments
            if self._static:
                static = tuple(int(arguments[place]) for place in self._static)
                dynamic = [x for place, x in enumerate(arguments) if place not in self._static]
            try:
                return self._run_and_keep((state, fixed, dynamic, static), keep)
            except DataDependentShape as error:
                self._make_static(error)
            finally:
                if self._compilation is not None:
                    self._finish_compilation()

    def _finish_compilation(self) -> None:
        """Note how long a compilation took, and log it."""
        assert self._compilation is not None
        seconds, is_from_cache = self._compilation.finish()
        self._compilation = None
        self.build_times = replace(self.build_times, compile=seconds, is_from_cache=is_from_cache)
        logger.info(
            "%s: compilation %d, arguments %s: %s",
            self.name,
            self.num_compilations,
            self._seen[-1],
            self.build_times,
        )

    def _run_and_keep(
        self, operands: tuple[Any, ...], keep: Sequence[Callable[[jax.Array], Any]]
    ) -> tuple[list[jax.Array], _Checks]:
        """Run the step and keep its new state, without a moment at which the state is nowhere.

        A signal handler that raises does so between two instructions of Python. Here the step runs
        and its state is kept within a single one, the call of `deque`.
        """
        results, results_again = tee(map(self._step, *zip(operands)))
        deque(map(call, keep, chain.from_iterable(map(itemgetter(0), results))), maxlen=0)
        _, outputs, checks = next(results_again)
        return outputs, checks

    def raise_failed_checks(self, checks: _Checks) -> None:
        """Raise the error of the first condition that did not hold.

        Parameters
        ----------
        checks : dict
            What :meth:`run` returned; reading them waits for the device.

        Raises
        ------
        Exception
            The one that the operation gave to :meth:`bricks.xla.lowering.Context.check`.
        """
        for shapes, holds in checks.items():
            for hold, error in zip(holds, self._errors[shapes], strict=True):
                if not hold:
                    raise error

    def _check_device(self) -> None:
        device = chosen_device()
        platform = jax.default_backend() if device is None else device.platform
        if platform == "cpu":
            check_compiler()

    def _make_static(self, error: DataDependentShape) -> None:
        """Make the integers that a shape depends on a part of the signature, or give up."""
        candidates = set(_scalar_ancestors(error.variables))
        new = [
            place
            for place, variable in enumerate(self.arguments)
            if variable in candidates and place not in self._static
        ]
        if not new:
            raise error
        self._static = sorted([*self._static, *new])
        names = ", ".join(str(self.arguments[place]) for place in new)
        logger.info("%s: %s reaches a shape; each value is compiled for.", self.name, names)

    def _note_compilation(
        self, state: list[Any], fixed: list[Any], arguments: list[Any], static: tuple[int, ...]
    ) -> None:
        """Count a compilation, remember its signature, and warn if there are many."""
        self.num_compilations += 1
        dynamic = [x for place, x in enumerate(arguments) if place not in self._static]
        signature = (*map(_abstract, (state, fixed, dynamic)), static)
        shapes = tuple(
            (int(x),) if place in self._static else numpy.shape(x)
            for place, x in enumerate(arguments)
        )
        self._seen.append(shapes)
        # The latest comes last, also if a changed setting of JAX compiles a signature again.
        self._signatures.pop(str(shapes), None)
        self._signatures[str(shapes)] = signature
        if self.num_compilations == _MANY_COMPILATIONS:
            logger.warning("%s", self._explain_many_compilations())

    def _explain_many_compilations(self) -> str:
        """Say which axes of which arguments changed, which sizes were seen, and what helps."""
        changes = []
        for place, variable in enumerate(self.arguments):
            name = variable.name or f"argument {place}"
            seen = [shapes[place] for shapes in self._seen]
            for axis, sizes in enumerate(zip(*seen, strict=True)):
                if len(set(sizes)) > 1:
                    what = "the value" if place in self._static else f"axis {axis}"
                    listed = ", ".join(str(size) for size in dict.fromkeys(sizes))
                    changes.append(f"{what} of {name} (seen: {listed})")
        return (
            f"{self.name} was compiled {self.num_compilations} times, because these change: "
            f"{'; '.join(changes) or 'shapes of shared variables'}. Each new shape is compiled "
            "for. Keep them few: drop the last short batch, pad to a multiple "
            "(Padding(multiple_of=...)), or group examples by length."
        )

    def digests(self) -> dict[str, str]:
        """Digest the programs that XLA was given.

        Returns
        -------
        dict of str to str
            For each set of shapes of the arguments, the latest last, hexadecimal digits that are
            equal in every process for equal graphs, shapes and versions.
        """
        for shapes, signature in self._signatures.items():
            if shapes not in self._digests:
                text = self._lower(signature).as_text()
                digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
                self._digests[shapes] = digest
        return {shapes: self._digests[shapes] for shapes in self._signatures}

    def memory(self, state: list[Any], fixed: list[Any], arguments: list[Any]) -> MemoryUse:
        """Ask XLA what memory the program needs.

        Parameters
        ----------
        state, fixed, arguments : list of arrays
            As for :meth:`run`; only shapes and dtypes matter.

        Returns
        -------
        MemoryUse
        """
        try:
            return memory_use(self._lower(self._signature(state, fixed, arguments)))
        except DataDependentShape as error:
            self._make_static(error)
            return self.memory(state, fixed, arguments)

    def _signature(
        self, state: list[Any], fixed: list[Any], arguments: list[Any]
    ) -> tuple[Any, ...]:
        """Describe operands as XLA compiles for them."""
        static = tuple(int(arguments[place]) for place in self._static)
        dynamic = [x for place, x in enumerate(arguments) if place not in self._static]
        return (*map(_abstract, (state, fixed, dynamic)), static)

    def _lower(self, signature: tuple[Any, ...]) -> Any:
        self._is_compiling = False
        try:
            with x64():
                return self._step.lower(*signature)
        finally:
            self._is_compiling = True

    def export(
        self, platform: str, state: list[Any], fixed: list[Any], arguments: list[Any]
    ) -> Any:
        """Lower the program for a platform that need not be present.

        Parameters
        ----------
        platform : str
            ``'cpu'``, ``'cuda'``, ``'rocm'`` or ``'tpu'``.
        state, fixed, arguments : list of arrays
            As for :meth:`run`; only shapes and dtypes matter.

        Returns
        -------
        jax.export.Exported
        """
        from jax import export

        self._is_compiling = False
        try:
            with x64():
                return export.export(self._step, platforms=[platform])(
                    *self._signature(state, fixed, arguments)
                )
        except DataDependentShape as error:
            self._make_static(error)
            return self.export(platform, state, fixed, arguments)
        finally:
            self._is_compiling = True


def _abstract(values: Iterable[Any]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(numpy.shape(value), value.dtype) for value in values]


def _scalar_ancestors(variables: Iterable[Variable]) -> Iterable[Variable]:
    """Find the 0-d integers without an owner that variables are computed from, not their shapes."""
    seen: set[Variable] = set()
    queue = deque(variables)
    while queue:
        variable = queue.popleft()
        if variable in seen:
            continue
        seen.add(variable)
        if variable.owner is None:
            is_tensor = isinstance(variable.type, TensorType)
            if is_tensor and variable.type.ndim == 0 and "int" in variable.type.dtype:
                yield variable
        elif not isinstance(variable.owner.op, (Shape, Shape_i)):
            queue.extend(variable.owner.inputs)
