"""What trains: an algorithm takes a batch and changes shared variables."""

import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy
from aesara import tensor
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Variable

from bricks import xla
from bricks.algorithms.batches import Batch, BatchInputs, describe_batch, look_at_first_batch
from bricks.algorithms.states import (
    AnyVariable,
    explicit_inputs,
    name_uniquely,
    shared_inputs,
    variable_path,
)
from bricks.roles import PARAMETER, has_roles
from fuel_data.utils.keywords import NamedKeywords
from fuel_data.utils.names import nearest_name

logger = logging.getLogger(__name__)

UpdatePairs = Mapping[AnyVariable, Any] | Iterable[tuple[AnyVariable, Any]]

_WHEN_UNUSED = ("raise", "warn", "ignore")


class TrainingAlgorithm(NamedKeywords, ABC):
    """What the main loop needs of an algorithm."""

    @abstractmethod
    def initialize(self) -> None:
        """Get ready for the first batch. The main loop calls it once, before training."""

    @abstractmethod
    def process_batch(self, batch: Batch) -> None:
        """Learn from a batch.

        Parameters
        ----------
        batch : dict from str to array
            The arrays, by source.
        """

    def check_sources(self, sources: Collection[str]) -> None:
        """See, before there is a batch, whether batches with these sources can be processed.

        Parameters
        ----------
        sources : collection of str
            The sources of the stream.
        """

    def get_state_variables(self) -> "OrderedDict[str, AnyVariable]":
        """Give everything that a checkpoint must hold beside the model's parameters.

        Returns
        -------
        OrderedDict
            From a unique name, which begins with ``algorithm/``, to a shared variable.
        """
        return OrderedDict()


class UpdatesAlgorithm(TrainingAlgorithm):
    """An algorithm that is a list of updates of shared variables, compiled to one function.

    Parameters
    ----------
    updates : list of (SharedVariable, Variable), or dict, optional
        What changes at each batch, and to what. The order is kept; a dict has one too.
    theano_func_kwargs : dict, optional
        Further arguments of `bricks.xla.function`, such as ``givens`` or ``backend``.
    on_unused_sources : {'raise', 'warn', 'ignore'}, optional
        What to do when a batch has sources that the graph does not use. ``'warn'`` warns once.
        The default is ``'raise'``.

    Raises
    ------
    ValueError
        If a variable is updated twice, or an argument is not one of those above.
    TypeError
        If a target is not shared, or would get a value of another type.
    """

    def __init__(
        self,
        updates: UpdatePairs | None = None,
        theano_func_kwargs: Mapping[str, Any] | None = None,
        on_unused_sources: str = "raise",
    ) -> None:
        if on_unused_sources not in _WHEN_UNUSED:
            raise ValueError(
                f"{type(self).__name__}: `on_unused_sources` must be 'raise', 'warn' or 'ignore'; "
                f"got {on_unused_sources!r}.{nearest_name(str(on_unused_sources), _WHEN_UNUSED)}"
            )
        self.theano_func_kwargs = dict(theano_func_kwargs or {})
        self.on_unused_sources = on_unused_sources
        self.initialized = False
        self._updates: list[tuple[AnyVariable, AnyVariable]] = []
        self._forget_function()
        if updates is not None:
            self.add_updates(updates)

    def _forget_function(self) -> None:
        self._function: Any = None
        self._batch_inputs: Any = None
        self._known_sources: frozenset[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ("_function", "_batch_inputs", "_known_sources"):
            state[name] = None
        return state

    @property
    def updates(self) -> list[tuple[AnyVariable, AnyVariable]]:
        """What changes at each batch, and to what: a copy of the list. See `add_updates`."""
        return list(self._updates)

    @updates.setter
    def updates(self, updates: UpdatePairs) -> None:
        pairs = self._pairs(updates)
        if self._same_updates(pairs) and len(pairs) == len(self._updates):
            return
        self._refuse_when_initialized(pairs)
        self._updates = []
        self._append(pairs)

    def add_updates(self, updates: UpdatePairs) -> None:
        """Let more variables change at each batch, in the same compiled function.

        Parameters
        ----------
        updates : list of (SharedVariable, Variable), or dict
            What changes, and to what. Numbers and arrays are taken as constants.

        Raises
        ------
        ValueError
            If a variable is updated twice.
        TypeError
            If a target is not shared, or would get a value of another type.
        RuntimeError
            If the function is already compiled and the updates are not among its own.
        """
        pairs = self._pairs(updates)
        if self.initialized and self._same_updates(pairs):
            return
        self._refuse_when_initialized(pairs)
        self._append(pairs)

    def _pairs(self, updates: UpdatePairs) -> list[tuple[AnyVariable, Any]]:
        if isinstance(updates, Mapping):
            updates = updates.items()
        pairs = []
        for pair in updates:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(
                    f"{type(self).__name__}: `updates` must be pairs of a shared variable and its "
                    f"new value, or a dict; got {pair!r}."
                )
            pairs.append((pair[0], pair[1]))
        return pairs

    def _same_updates(self, pairs: list[tuple[AnyVariable, Any]]) -> bool:
        known = dict(self._updates)
        return all(target in known and known[target] is value for target, value in pairs)

    def _refuse_when_initialized(self, pairs: list[tuple[AnyVariable, Any]]) -> None:
        if self.initialized:
            names = ", ".join(variable_path(target) for target, _ in pairs) or "none"
            raise RuntimeError(
                f"{type(self).__name__}: updates cannot change after `initialize`, because the "
                f"function is compiled; got updates of {names}. Add them before (an extension "
                "does it in `before_training`)."
            )

    def _append(self, pairs: list[tuple[AnyVariable, Any]]) -> None:
        known = {target for target, _ in self._updates}
        checked = []
        for target, value in pairs:
            value = self._check_update(target, value)
            if target in known:
                raise ValueError(
                    f"{type(self).__name__}: {variable_path(target)} is updated twice. A variable "
                    "gets one new value at each batch; combine the expressions into one."
                )
            known.add(target)
            checked.append((target, value))
        self._updates.extend(checked)

    def _check_update(self, target: Any, value: Any) -> AnyVariable:
        if not isinstance(target, SharedVariable):
            raise TypeError(
                f"{type(self).__name__}: only shared variables can be updated; got {target!r}."
            )
        if not isinstance(value, Variable):
            return tensor.constant(numpy.asarray(value, dtype=target.type.dtype))
        self._check_type(target, value)
        return value

    def _check_type(self, target: AnyVariable, value: AnyVariable) -> None:
        if value.dtype != target.dtype or value.ndim != target.ndim:
            cause = (
                " A float64 number or input has probably entered the graph; numpy scalars and "
                "numpy arrays are float64, Python's floats take the dtype of what they meet."
                if value.dtype == "float64"
                else ""
            )
            raise TypeError(
                f"{type(self).__name__}: the new value of {variable_path(target)} must have dtype "
                f"{target.dtype} and {target.ndim} axes, as the variable has; got {value.dtype} "
                f"and {value.ndim} axes.{cause} `tensor.cast` casts."
            )

    def initialize(self) -> None:
        """Compile the function; what the updates are cannot change afterwards."""
        self._ready_function()
        self.initialized = True

    @property
    def function(self) -> Any:
        """The compiled function; None before `initialize`."""
        return self._ready_function() if self.initialized else None

    def _ready_function(self) -> Any:
        """Compile the function unless this process has done so: pickles do not hold it."""
        if self._function is None:
            given = dict(self.theano_func_kwargs.get("givens") or ())
            expressions = [value for _, value in self._compiled_updates()]
            inputs = explicit_inputs([*expressions, *given.values()])
            inputs = [variable for variable in inputs if variable not in given]
            self._batch_inputs = BatchInputs(inputs, type(self).__name__)
            self._known_sources = None
            options = {"name": "training step", **self.theano_func_kwargs}
            self._function = xla.function(inputs, [], updates=self._compiled_updates(), **options)
        return self._function

    def _expressions(self) -> list[AnyVariable]:
        """Give all that the function computes."""
        given = dict(self.theano_func_kwargs.get("givens") or ())
        return [*(value for _, value in self._updates), *given.values()]

    def _compiled_updates(self) -> list[tuple[AnyVariable, AnyVariable]]:
        """Give the updates in the form in which they are compiled."""
        return self._updates

    def process_batch(self, batch: Batch) -> None:
        """Do all updates once, with the arrays of a batch as the graph's inputs.

        Parameters
        ----------
        batch : dict from str to array
            The arrays, by source: a source feeds the input of its name.

        Raises
        ------
        ValueError
            If sources are missing or not used, or an array has a wrong shape.
        TypeError
            If an array would have to be cast to a dtype that cannot hold its values.
        RuntimeError
            If the algorithm is not initialized.
        """
        # One comparison a batch; a batch of other sources than the last is looked at in full.
        if type(batch) is not dict or batch.keys() != self._known_sources:
            self._check_batch(batch)
        arguments = self._batch_inputs.arrange(batch)
        try:
            self._function(*arguments)
        except Exception as error:
            error.add_note(describe_batch(batch))
            raise

    def _check_batch(self, batch: Any) -> None:
        if not self.initialized:
            raise RuntimeError(
                f"{type(self).__name__}: `initialize` must be called before `process_batch`; "
                "`MainLoop.run` does it."
            )
        if not isinstance(batch, Mapping):
            raise TypeError(
                f"{type(self).__name__}: a batch must be a dict from source to array; got "
                f"{type(batch).__name__}. `get_epoch_iterator(as_dict=True)` gives dicts."
            )
        self._ready_function()
        sources = frozenset(batch)
        if sources == self._known_sources:
            return
        self.check_sources(list(batch))
        if self._known_sources is None:
            self._batch_inputs.arrange(batch)
            look_at_first_batch((target for target, _ in self._updates), batch)
        self._known_sources = sources

    def check_sources(self, sources: Collection[str]) -> None:
        """See, before there is a batch, whether batches with these sources can be processed.

        Parameters
        ----------
        sources : collection of str
            The sources of the stream.

        Raises
        ------
        ValueError
            If an input of the graph has no source, or a source is not used and
            `on_unused_sources` is ``'raise'``.
        """
        self._ready_function()
        unused = self._batch_inputs.check_sources(sources)
        if not unused or self.on_unused_sources == "ignore":
            return
        message = (
            f"{type(self).__name__}: the data has sources that the graph does not use: "
            f"{', '.join(sorted(unused))}. Its inputs are: "
            f"{', '.join(self._batch_inputs.names) or 'none'}."
        )
        if self.on_unused_sources == "raise":
            raise ValueError(
                f"{message} Leave them out (`FilterSources`, or `sources=` of the dataset), or set "
                "`on_unused_sources='ignore'`."
            )
        logger.warning(message)

    def get_state_variables(self) -> "OrderedDict[str, AnyVariable]":
        """Give everything that a checkpoint must hold beside the model's parameters.

        Returns
        -------
        OrderedDict
            From a unique name, which begins with ``algorithm/``, to a shared variable: targets
            of updates (``updates/…``), random keys (``random/…``), and what else the function
            reads (``shared/…``). Parameters (the role ``PARAMETER``) are the model's and are
            left out. Names and order are the same in each process that builds the same graph.
        """
        kept = (
            (f"algorithm/{name}", variable)
            for name, variable in self._named_state()
            if not has_roles(variable, [PARAMETER])
        )
        return name_uniquely(kept)

    def _named_state(self) -> Iterator[tuple[str, AnyVariable]]:
        """Name the state, the most telling name of a variable first."""
        read = list(shared_inputs(self._expressions()))
        for variable in read:
            if _is_random_key(variable):
                yield f"random/{variable.name or 'unnamed'}", variable
        for target, _ in self._updates:
            yield f"updates/{variable_path(target)}", target
        for variable in read:
            yield f"shared/{variable_path(variable)}", variable


def _is_random_key(variable: AnyVariable) -> bool:
    return bool(getattr(variable.tag, "is_random_key", False))
