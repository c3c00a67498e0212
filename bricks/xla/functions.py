"""Functions compiled from symbolic graphs: ``aesara.function``, with XLA behind it.

:func:`function` takes what ``aesara.function`` takes and gives a :class:`Function`. Which compiler
stands behind it is ``config.backend``: XLA, or a mode of Aesara to debug with and to check
against. Shared variables that a function updates stay on the device.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import aesara
import numpy
from aesara.graph.basic import Apply, Variable, io_toposort
from aesara.graph.utils import MissingInputError
from aesara.link.basic import Container
from aesara.scalar.basic import Cast
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.random.type import RandomType
from aesara.tensor.type import TensorType

from bricks.config import config
from bricks.utils.plain import change_recursion_limit
from bricks.xla.devices import chosen_device, place, x64
from bricks.xla.errors import (
    DonatedStateLost,
    GraphError,
    UnsupportedOp,
    describe_node,
    note_makers,
)
from bricks.xla.memory import MemoryUse
from bricks.xla.program import BuildTimes, Program
from bricks.xla.rewriting import aesara_mode, rewriting_mode
from bricks.xla.storage import DeviceStorage
from fuel_data.utils.names import nearest_name

__all__ = ["Function", "function"]

logger = logging.getLogger(__name__)

_reported_upcasts: set[str] = set()


def function(
    inputs: Sequence[Variable],
    outputs: Any = None,
    updates: Any = None,
    givens: Any = None,
    name: str | None = None,
    on_unused_input: str = "raise",
    backend: str | None = None,
    *,
    no_default_updates: Any = False,
    allow_input_downcast: bool | None = None,
    on_device: bool = False,
) -> Function:
    """Compile a graph.

    Parameters
    ----------
    inputs : sequence of variables
        What the function is called with, by position or by name.
    outputs : variable, or list or dict of them, optional
        What it returns, in the same form. Without outputs it returns None, and does not wait for
        the device.
    updates : mapping or list of pairs, optional
        Shared variables and their new values after each call.
    givens : mapping or list of pairs, optional
        Variables of the graph and what replaces them.
    name : str, optional
        For messages.
    on_unused_input : {'raise', 'warn', 'ignore'}, optional
        What to do with an input that the graph does not use.
    backend : str, optional
        ``'xla'``, ``'py'``, ``'c'`` or a mode of Aesara; by default ``config.backend``.
    no_default_updates : bool or list of shared variables, optional
        Which shared variables, of those with a ``default_update``, are left as they are.
    allow_input_downcast : bool, optional
        Whether arguments of a wider dtype are accepted; by default only Python's floats are.
    on_device : bool, optional
        Leave outputs on the device: the call does not wait for them, numpy converts them when they
        are used, and they stay valid. Only XLA heeds it.

    Returns
    -------
    Function

    Raises
    ------
    UnsupportedOp
        If XLA cannot compute an operation of the graph.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> x, total = tensor.dvector("x"), xla.shared(0.0, name="total")
    >>> add = xla.function([x], [2 * x, x.sum()], updates={total: total + x.sum()})
    >>> add([1.0, 2.0])
    [array([2., 4.]), array(3.)]
    >>> add(x=[4.0]), total.get_value().item()
    ([array([8.]), array(4.)], 7.0)
    """
    return Function(
        inputs,
        outputs,
        _Options(
            updates=_pairs(updates),
            givens=_pairs(givens),
            name=name,
            on_unused_input=on_unused_input,
            backend=backend,
            no_default_updates=no_default_updates,
            allow_input_downcast=allow_input_downcast,
            on_device=on_device,
        ),
    )


def _pairs(mapping: Any) -> list[tuple[Variable, Any]]:
    """Return a mapping, or pairs, as a list of pairs."""
    if mapping is None:
        return []
    if isinstance(mapping, (str, bytes)) or not isinstance(mapping, Iterable):
        raise TypeError(
            "function: `updates` and `givens` must be mappings or lists of pairs of variables; got "
            f"{mapping!r}. The compiler is chosen by `backend`."
        )
    return list(mapping.items() if isinstance(mapping, Mapping) else mapping)


@dataclass
class _Options:
    """How a function is compiled: what :func:`function` was given."""

    updates: list[tuple[Variable, Any]]
    givens: list[tuple[Variable, Any]]
    name: str | None
    on_unused_input: str
    backend: str | None
    no_default_updates: Any
    allow_input_downcast: bool | None
    on_device: bool

    def aesara_function(self, inputs: Sequence[Variable], outputs: Any, mode: Any) -> Any:
        """Let Aesara prepare the graph, and compile it if the mode does."""
        name = self.name or "function"
        twice = [str(x) for x, count in Counter(x for x, _ in self.updates).items() if count > 1]
        if twice:
            raise ValueError(
                f"{name}: `updates` has several new values for {', '.join(twice)}. Give one; if "
                "all changes are to be made, write it as their sum."
            )
        # Aesara follows a graph by functions that call themselves, as deep as the graph.
        depth = max(sys.getrecursionlimit(), config.recursion_limit)
        try:
            with change_recursion_limit(depth):
                return aesara.function(
                    list(inputs),
                    outputs,
                    updates=self.updates,
                    givens=self.givens,
                    name=self.name,
                    mode=mode,
                    on_unused_input=self.on_unused_input,
                    no_default_updates=self.no_default_updates,
                )
        except MissingInputError as error:
            given = ", ".join(map(str, inputs)) or "none"
            raise MissingInputError(
                f"{name}: what is computed depends on an input that is not among `inputs` "
                f"({given}). Add it, or replace it by `givens`. {error}"
            ) from error


class Function:
    """A compiled graph, called like a Python function.

    Made by :func:`function`. A pickle or a copy holds the graph and is compiled again when it is
    first called.

    Parameters
    ----------
    inputs : sequence of variables
        What it is called with.
    outputs : variable, list or dict of them, or None
        What it returns, in the same form.
    options : object
        What else :func:`function` was given.

    Attributes
    ----------
    inputs : list of variables
    outputs : variable, list or dict of them, or None
    updates : list of (shared variable, variable)
    name : str
    backend : str
        What compiled it.
    num_compilations : int
        For how many signatures XLA compiled it so far.
    build_times : BuildTimes
        How long it took to rewrite, and to trace and compile for the latest signature.
    """

    def __init__(self, inputs: Sequence[Variable], outputs: Any, options: _Options):
        for variable in inputs:
            if not isinstance(variable, Variable):
                raise TypeError(f"function: `inputs` must be symbolic variables; got {variable!r}.")
        self.inputs = list(inputs)
        self.outputs = outputs
        self._options = options
        self._engine: _XlaEngine | _AesaraEngine | None = None
        self._places = {
            variable.name: place for place, variable in enumerate(inputs) if variable.name
        }
        self._get_engine()

    @property
    def updates(self) -> list[tuple[Variable, Any]]:
        """The shared variables that are updated, and their new values."""
        return self._options.updates

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return self._options.name or "function"

    @property
    def backend(self) -> str:
        """What compiles the function."""
        return self._options.backend or config.backend

    @property
    def num_compilations(self) -> int:
        """For how many signatures XLA compiled the function so far."""
        return self._get_engine().num_compilations

    @property
    def build_times(self) -> BuildTimes:
        """How long the function took to build, for the latest signature."""
        return self._get_engine().build_times

    def __repr__(self) -> str:
        names = ", ".join(str(variable) for variable in self.inputs)
        return f"<{self.name}({names}) compiled by {self.backend}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs and apply the updates.

        Parameters
        ----------
        *args, **kwargs : array
            One for each input, by position or by the input's name. They are copied, so they may
            be changed as soon as the call returns.

        Returns
        -------
        array, or list or dict of them, or None
            As `outputs` has it.

        Raises
        ------
        TypeError
            If an argument is missing, unknown, or of the wrong dtype or number of axes.
        GraphError
            If the graph cannot be computed with these shapes. Shared variables are unchanged.
        DonatedStateLost
            If the device failed while it ran, so that the updated variables are gone.
        """
        engine = self._engine or self._get_engine()
        if kwargs or len(args) != len(self.inputs):
            return engine.call(self._arrange(args, kwargs))
        return engine.call(args)

    def lowered_digest(self) -> str:
        """Digest the program that XLA compiled last.

        Returns
        -------
        str
            Hexadecimal digits; equal in every process for equal graphs, shapes and versions.

        Raises
        ------
        RuntimeError
            If the function has not been called yet, or XLA does not compile it.
        """
        digests = self.lowered_digests()
        if not digests:
            raise RuntimeError(
                f"{self.name} has not been called, so there is nothing to digest. Call it first."
            )
        return list(digests.values())[-1]

    def lowered_digests(self) -> dict[str, str]:
        """Digest every program that XLA compiled for this function.

        Returns
        -------
        dict of str to str
            The digest for each set of shapes of the arguments, the latest last.

        Raises
        ------
        RuntimeError
            If XLA does not compile the function.
        """
        return self._xla_engine("digested").program.digests()

    def export_for(self, platform: str, *args: Any) -> Any:
        """Lower the function for a platform that need not be present.

        Parameters
        ----------
        platform : str
            ``'cpu'``, ``'cuda'``, ``'rocm'`` or ``'tpu'``.
        *args : array
            Example arguments; their shapes and dtypes matter.

        Returns
        -------
        jax.export.Exported
        """
        return self._xla_engine("exported").export(platform, args)

    def memory(self, *args: Any) -> MemoryUse:
        """Ask XLA what memory a call needs; nothing is computed.

        Parameters
        ----------
        *args : array
            Example arguments; their shapes and dtypes matter.

        Returns
        -------
        MemoryUse
            Bytes of arguments, outputs, donated and temporary memory.

        Raises
        ------
        RuntimeError
            If XLA does not compile the function.
        """
        return self._xla_engine("measured").memory(args)

    def _xla_engine(self, verb: str) -> _XlaEngine:
        engine = self._get_engine()
        if not isinstance(engine, _XlaEngine):
            raise RuntimeError(
                f"{self.name} is compiled by {self.backend!r}; only what XLA compiles can be "
                f"{verb}."
            )
        return engine

    def _get_engine(self) -> _XlaEngine | _AesaraEngine:
        if self._engine is None:
            roots = self._roots()
            note_makers(roots)
            _report_upcasts(roots)
            make = _XlaEngine if self.backend == "xla" else _AesaraEngine
            self._engine = make(self)
        return self._engine

    def _roots(self) -> list[Variable]:
        """List the variables that the function computes."""
        outputs = self.outputs
        if outputs is None:
            outputs = []
        elif isinstance(outputs, Mapping):
            outputs = list(outputs.values())
        elif not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        values = [*outputs, *(value for _, value in self.updates)]
        return [value for value in values if isinstance(value, Variable)]

    def _arrange(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Put arguments given by name among those given by position."""
        if len(args) > len(self.inputs):
            raise TypeError(
                f"{self.name} takes {len(self.inputs)} arguments, {len(args)} were given."
            )
        values = dict(enumerate(args))
        for name, value in kwargs.items():
            if name not in self._places:
                raise TypeError(
                    f"{self.name} has no input {name!r}.{nearest_name(name, self._places)}"
                )
            if self._places[name] in values:
                raise TypeError(f"{self.name}: input {name!r} was given twice.")
            values[self._places[name]] = value
        missing = [
            str(variable) for index, variable in enumerate(self.inputs) if index not in values
        ]
        if missing:
            raise TypeError(f"{self.name} was called without {', '.join(missing)}.")
        return [values[index] for index in range(len(self.inputs))]


def _report_upcasts(roots: Iterable[Variable]) -> None:
    """Say once where a graph leaves float32 for float64 although floatX is float32."""
    if aesara.config.floatX != "float32":
        return
    for node in io_toposort([], list(roots)):
        if not isinstance(node.op, Elemwise) or isinstance(node.op.scalar_op, Cast):
            continue
        if not _is_upcast(node):
            continue
        where = describe_node(node)
        if where not in _reported_upcasts:
            _reported_upcasts.add(where)
            logger.warning(
                "%s is computed in float64 although floatX is float32: an operand is float64, or "
                "an integer meets a float. Cast it to floatX.",
                where,
            )


def _is_upcast(node: Apply) -> bool:
    """Tell whether float64 begins here: not where all is float64, or some was so before."""
    is_wide = [getattr(x.type, "dtype", "") == "float64" for x in node.inputs]
    came_wide = any(
        wide and x.owner is not None for wide, x in zip(is_wide, node.inputs, strict=True)
    )
    return node.outputs[0].type.dtype == "float64" and not all(is_wide) and not came_wide


class _AesaraEngine:
    """Calls a function that Aesara compiled."""

    num_compilations = 0

    def __init__(self, owner: Function):
        options = owner._options
        start = perf_counter()
        self._function = options.aesara_function(
            owner.inputs, owner.outputs, aesara_mode(owner.backend)
        )
        self.build_times = BuildTimes(perf_counter() - start)
        self._returns_nothing = owner.outputs is None
        for container in self._function.input_storage[: len(owner.inputs)]:
            container.allow_downcast = options.allow_input_downcast

    def call(self, args: Sequence[Any]) -> Any:
        """Compute the outputs and apply the updates."""
        for container in self._function.input_storage:
            # C code looks into the list itself, so the value must be on the host before.
            if isinstance(container.storage, DeviceStorage):
                _ = container.storage[0]
        outputs = self._function(*args)
        return None if self._returns_nothing else outputs


class _HostStorage:
    """The storage of a shared variable that is not ours: its values stay on the host."""

    def __init__(self, storage: list[Any]):
        self._storage = storage
        self._new: list[Any] = []

    def on_device(self) -> Any:
        """Copy the value to the device."""
        self.to_host()
        return place(numpy.array(self._storage[0]))

    def keeper(self) -> Callable[[Any], Any]:
        """Return the function that keeps a new value, until it is brought to the host."""
        return self._new.append

    def to_host(self) -> None:
        """Bring a new value to the host, if there is one."""
        if self._new:
            self._storage[0] = numpy.array(self._new[-1])
            self._new.clear()

    def is_lost(self) -> bool:
        """Tell that the value is not lost: what is given up is a copy."""
        return False


class _XlaEngine:
    """Calls a program of XLA with the values of arguments and shared variables."""

    def __init__(self, owner: Function):
        options = owner._options
        self._name = owner.name
        self._on_device = options.on_device
        self._allow_downcast = options.allow_input_downcast
        self._outputs = owner.outputs
        start = perf_counter()
        prepared = options.aesara_function(
            owner.inputs, owner.outputs, rewriting_mode(config.optimizer)
        )
        self._keep_storages(prepared, perf_counter() - start)
        self._types = [variable.type for variable in owner.inputs]
        self._names = [str(variable) for variable in owner.inputs]
        self._device = chosen_device()

    def _keep_storages(self, prepared: Any, rewrite_seconds: float) -> None:
        """Find where the values of shared variables lie, and make the program that uses them."""
        fgraph = prepared.maker.fgraph
        output_of = {source: output for output, source in fgraph.update_mapping.items()}
        arguments: list[int] = []
        state: list[int] = []
        fixed: list[int] = []
        for index, declared in enumerate(prepared.maker.expanded_inputs):
            is_shared = declared.shared or declared.implicit
            group = arguments if not is_shared else state if index in output_of else fixed
            group.append(index)
        storages = list(map(_storage, prepared.input_storage, fgraph.inputs))
        self._state = [storages[index] for index in state]
        self._fixed = [storages[index] for index in fixed]
        self._keep = [storage.keeper() for storage in self._state]
        self._foreign = [store for store in self._state if isinstance(store, _HostStorage)]
        self._update_names = ", ".join(str(fgraph.inputs[index]) for index in state)
        self.program = Program(
            fgraph,
            self._name,
            arguments=arguments,
            state=state,
            fixed=fixed,
            updates=[output_of[index] for index in state],
            num_outputs=len(fgraph.outputs) - len(output_of),
            rewrite_seconds=rewrite_seconds,
        )

    @property
    def num_compilations(self) -> int:
        return self.program.num_compilations

    @property
    def build_times(self) -> BuildTimes:
        return self.program.build_times

    def call(self, args: Sequence[Any]) -> Any:
        """Compute the outputs and apply the updates."""
        with x64():
            arguments = self._convert(args)
            state = [storage.on_device() for storage in self._state]
            fixed = [storage.on_device() for storage in self._fixed]
            try:
                outputs, checks = self.program.run(state, fixed, arguments, self._keep)
            except Exception as error:
                self._tell_of_lost_state(error)
                raise
            for storage in self._foreign:
                storage.to_host()
            return self._finish(outputs, checks)

    def _finish(self, outputs: Sequence[Any], checks: Any) -> Any:
        """Look at the checks and bring the outputs into the form that was asked for."""
        if not outputs and not checks:
            return self._packed([])
        try:
            self.program.raise_failed_checks(checks)
            if not self._on_device:
                outputs = [numpy.array(output) for output in outputs]
        except RuntimeError as error:
            self._tell_of_lost_state(error)
            raise
        return self._packed(outputs)

    def _packed(self, outputs: Sequence[Any]) -> Any:
        if self._outputs is None:
            return None
        if isinstance(self._outputs, Mapping):
            # Aesara keeps the outputs of a mapping in the order of their sorted names.
            return dict(zip(sorted(self._outputs), outputs, strict=True))
        return list(outputs) if isinstance(self._outputs, (list, tuple)) else outputs[0]

    def _tell_of_lost_state(self, error: Exception) -> None:
        if not isinstance(error, GraphError) and any(store.is_lost() for store in self._state):
            raise DonatedStateLost(
                f"{self._name} failed while it ran, after the old values of what it updates "
                f"({self._update_names}) were given up: {error}. Set them anew, for example from "
                "the last checkpoint, before going on."
            ) from error

    def _convert(self, args: Sequence[Any]) -> list[Any]:
        """Check arguments and copy them, because JAX reads host arrays after the call returned."""
        values = []
        for index, (value, type_) in enumerate(zip(args, self._types, strict=True)):
            if not (
                type(value) is numpy.ndarray
                and value.dtype == type_.dtype
                and value.ndim == type_.ndim
                and not any(type_.shape)
            ):
                value = self._filter(index, value)
            values.append(numpy.array(value))
        return values if self._device is None else [place(value) for value in values]

    def _filter(self, index: int, value: Any) -> numpy.ndarray:
        """Convert an argument as Aesara does, or refuse it in words."""
        if not isinstance(value, numpy.generic | int | float | bool):
            value = numpy.asarray(value)
        try:
            return self._types[index].filter(value, allow_downcast=self._allow_downcast)
        except (TypeError, ValueError) as error:
            got = numpy.asarray(value)
            raise TypeError(
                f"{self._name}: argument {index}, {self._names[index]!r}, must be "
                f"{self._types[index]}; got {got.dtype} of shape {got.shape}. {error}"
            ) from error

    def export(self, platform: str, args: Sequence[Any]) -> Any:
        """Lower the program for a platform, with the shapes of these arguments."""
        with x64():
            return self.program.export(platform, *self._operands(args))

    def memory(self, args: Sequence[Any]) -> MemoryUse:
        """Ask what memory the program needs, with the shapes of these arguments."""
        with x64():
            return self.program.memory(*self._operands(args))

    def _operands(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        state = [storage.on_device() for storage in self._state]
        fixed = [storage.on_device() for storage in self._fixed]
        return state, fixed, self._convert(args)


def _storage(container: Container, variable: Variable) -> DeviceStorage | _HostStorage:
    """Return the place of a shared variable's value, for one of ours and for a foreign one."""
    if isinstance(container.storage, DeviceStorage):
        return container.storage
    if isinstance(variable.type, RandomType):
        raise UnsupportedOp(
            f"{variable} is a random state of Aesara, which XLA cannot carry. Draw random numbers "
            "from bricks.xla.RandomStream."
        )
    if not isinstance(variable.type, TensorType):
        raise UnsupportedOp(f"{variable} is of {variable.type}; XLA computes with tensors only.")
    return _HostStorage(container.storage)
