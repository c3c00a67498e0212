"""Aggregation schemes: how the values that a variable takes on many batches become one value.

A scheme is attached to a variable (``variable.tag.aggregation_scheme``), most easily by the
functions at the end of this module: ``perplexity(cost_sum, num_words)``. It makes an aggregator:
accumulators, how they begin, how a batch changes them, and what is read from them at the end.

Accumulators of means are ``float64`` whatever ``floatX`` is: a sum of 100,000 batches in
``float32`` would lose three of its seven digits. They live where the parameters live, so adding to
them waits for nothing. Each has a real shape. Where an axis is of unknown length, the accumulator
has length 0 there until the first batch tells.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy
from aesara import tensor

from bricks import xla
from bricks.algorithms.batches import Batch
from bricks.algorithms.states import (
    AnyVariable,
    explicit_inputs,
)
from bricks.monitoring.quantities import MonitoredQuantity
from bricks.roles import ALGORITHM_BUFFER, add_role

__all__ = [
    "AggregationScheme",
    "Aggregator",
    "BatchMean",
    "Concatenate",
    "DataIndependent",
    "Maximum",
    "Mean",
    "Minimum",
    "MonitoredQuantity",
    "Perplexity",
    "TakeLast",
    "accumulator",
    "concatenate",
    "maximum",
    "mean",
    "minimum",
    "perplexity",
    "take_last",
]

Updates = Sequence[tuple[AnyVariable, Any]]


@dataclass
class Aggregator:
    """What computes the aggregate of one variable.

    Parameters
    ----------
    aggregation_scheme : AggregationScheme
        The scheme that made it.
    initialization_updates : list of (SharedVariable, Variable or number)
        How the accumulators begin. A number fills the accumulator, whatever its shape.
    accumulation_updates : list of (SharedVariable, Variable)
        How a batch changes the accumulators.
    readout_variable : Variable, optional
        The aggregate, as an expression of the accumulators. None if it is made by `join`.
    collected : Variable, optional
        What is taken from each batch and kept, if the aggregate is not made of accumulators.
    join : callable, optional
        Makes the aggregate of the list of collected arrays.
    """

    aggregation_scheme: "AggregationScheme"
    initialization_updates: Updates = field(default_factory=list)
    accumulation_updates: Updates = field(default_factory=list)
    readout_variable: AnyVariable | None = None
    collected: AnyVariable | None = None
    join: Callable[[list[numpy.ndarray]], numpy.ndarray] | None = None


class AggregationScheme(ABC):
    """How the values that a variable takes on many batches become one value.

    Parameters
    ----------
    variable : Variable
        The variable, whose name the aggregate has.
    """

    def __init__(self, variable: AnyVariable) -> None:
        self.variable = variable

    @abstractmethod
    def get_aggregator(self) -> Aggregator:
        """Make new accumulators and what goes with them.

        Returns
        -------
        Aggregator
            With accumulators of its own: two aggregators of one scheme are independent.
        """


class Mean(AggregationScheme):
    """The sum of the numerators over the sum of the denominators of all batches.

    Parameters
    ----------
    numerator : Variable
        Of any shape, for example the sum of the costs of a batch.
    denominator : Variable or float
        For example the number of examples in the batch. A number, 1 say, makes the mean over
        batches that forgets their sizes.
    """

    def __init__(self, numerator: AnyVariable, denominator: Any) -> None:
        self.numerator = tensor.as_tensor_variable(numerator)
        self.denominator = tensor.as_tensor_variable(denominator)
        super().__init__(self.numerator)

    def get_aggregator(self) -> Aggregator:
        numerator = accumulator(self.numerator, "numerator", 0.0, "float64")
        denominator = accumulator(self.denominator, "denominator", 0.0, "float64")
        return Aggregator(
            aggregation_scheme=self,
            initialization_updates=[(numerator, 0.0), (denominator, 0.0)],
            accumulation_updates=[
                (numerator, numerator + tensor.cast(self.numerator, "float64")),
                (denominator, denominator + tensor.cast(self.denominator, "float64")),
            ],
            readout_variable=numerator / denominator,
        )


class Perplexity(Mean):
    """The exponential of the mean of negative log-likelihoods; see `Mean`.

    Parameters
    ----------
    numerator : Variable
        The sum of the negative log-likelihoods (with the natural logarithm) of a batch.
    denominator : Variable or float
        The number of its elements, for example of its words.
    """

    def get_aggregator(self) -> Aggregator:
        aggregator = super().get_aggregator()
        aggregator.readout_variable = tensor.exp(aggregator.readout_variable)
        return aggregator


class _Folding(AggregationScheme):
    """One accumulator of the variable's own type, changed by a function of it and the value."""

    part: str

    def _fold(self, old: AnyVariable, new: AnyVariable) -> AnyVariable:
        raise NotImplementedError

    def _first(self) -> Any:
        raise NotImplementedError

    def get_aggregator(self) -> Aggregator:
        first = self._first()
        old = accumulator(self.variable, self.part, first, self.variable.dtype)
        return Aggregator(
            aggregation_scheme=self,
            initialization_updates=[(old, first)],
            accumulation_updates=[(old, self._fold(old, self.variable))],
            readout_variable=old,
        )


class Minimum(_Folding):
    """The smallest value of all batches, for each element by itself."""

    part = "minimum"

    def _fold(self, old: AnyVariable, new: AnyVariable) -> AnyVariable:
        return tensor.minimum(old, new)

    def _first(self) -> Any:
        return _limits(self.variable.dtype)[1]


class Maximum(_Folding):
    """The largest value of all batches, for each element by itself."""

    part = "maximum"

    def _fold(self, old: AnyVariable, new: AnyVariable) -> AnyVariable:
        return tensor.maximum(old, new)

    def _first(self) -> Any:
        return _limits(self.variable.dtype)[0]


class TakeLast(_Folding):
    """The value on the last batch."""

    part = "last"

    def _fold(self, old: AnyVariable, new: AnyVariable) -> AnyVariable:
        return new

    def _first(self) -> Any:
        return 0


class Concatenate(AggregationScheme):
    """The values of all batches, after each other along the first axis.

    They are collected on the host, so this is for evaluating a data set, not for the
    training function.

    Parameters
    ----------
    variable : Variable
        With at least one axis.

    Raises
    ------
    ValueError
        If the variable is a scalar.
    """

    def __init__(self, variable: AnyVariable) -> None:
        if variable.ndim == 0:
            raise ValueError(
                f"Concatenate: {variable} is a scalar and has no axis along which its values could "
                "be concatenated. Give it one: `variable.dimshuffle('x')`."
            )
        super().__init__(variable)

    def get_aggregator(self) -> Aggregator:
        return Aggregator(aggregation_scheme=self, collected=self.variable, join=numpy.concatenate)


class DataIndependent(AggregationScheme):
    """The value of a variable that no batch changes, computed when it is read."""

    def get_aggregator(self) -> Aggregator:
        return Aggregator(aggregation_scheme=self, readout_variable=self.variable)


class BatchMean(Mean):
    """The mean over the examples of a data set of something that is a mean over a batch.

    Each batch's value is weighted with the number of examples, which inputs tell.

    Parameters
    ----------
    variable : Variable
        What has the mean over a batch's examples as its value.
    axes : dict from Variable to int
        The inputs that tell the number of examples, and on which axis. They have to agree on
        the first batch, which is otherwise refused, and on all others, for which whoever has the
        batches asks `same_length`.
    """

    # Of one that comes from a checkpoint of an earlier release.
    axes: Mapping[str, int] = MappingProxyType({})

    def __init__(self, variable: AnyVariable, axes: Mapping[AnyVariable, int]) -> None:
        first, axis = next(iter(axes.items()))
        size = tensor.cast(first.shape[axis], "float64")
        super().__init__(tensor.cast(variable, "float64") * size, size)
        self.variable = variable
        self.axes = {input_.name: axis for input_, axis in axes.items()}
        self.same_length = _SameLength(variable.name, self.axes)

    def get_aggregator(self) -> Aggregator:
        aggregator = super().get_aggregator()
        _at_first_batch(aggregator.accumulation_updates[1][0], self.same_length)
        return aggregator


def accumulator(variable: AnyVariable, part: str, fill: Any, dtype: str) -> AnyVariable:
    """Make a shared variable of the shape that a variable will have.

    Parameters
    ----------
    variable : Variable
        Tells the shape.
    part : str
        What the accumulator holds; the name, until something gives it a longer one.
    fill : number
        The value of each element.
    dtype : str
        The dtype.

    Returns
    -------
    SharedVariable
        With the role ``ALGORITHM_BUFFER``. Axes of unknown length have length 0 until
        `bricks.algorithms.batches.look_at_first_batch` is called with it.
    """
    lengths = variable.type.shape
    value = numpy.full([length or 0 for length in lengths], fill, dtype=dtype)
    result = xla.shared(value, name=part, shape=lengths)
    if None in lengths:
        _at_first_batch(result, _GiveShape(variable, fill))
    result.tag.is_accumulator = True
    add_role(result, ALGORITHM_BUFFER)
    return result


def _at_first_batch(target: AnyVariable, hook: Any) -> None:
    target.tag.first_batch = [*getattr(target.tag, "first_batch", ()), hook]


def _limits(dtype: str) -> tuple[Any, Any]:
    """Give the values below and above all others of a dtype."""
    kind = numpy.dtype(dtype).kind
    if kind == "f":
        return -numpy.inf, numpy.inf
    if kind == "b":
        return False, True
    info = numpy.iinfo(dtype)
    return info.min, info.max


class _GiveShape:
    """Gives an accumulator the shape that a variable has on the first batch."""

    def __init__(self, variable: AnyVariable, fill: Any) -> None:
        self.variable = variable
        self.fill = fill

    def __call__(self, target: AnyVariable, batch: Batch) -> None:
        # An accumulator that came out of a checkpoint has its shape already.
        if target.get_value(borrow=True).size:
            return
        inputs = explicit_inputs([self.variable])
        # In Python: only shapes are computed, and no random key may be advanced.
        function = xla.function(
            inputs,
            self.variable.shape,
            on_unused_input="ignore",
            backend="py",
            no_default_updates=True,
        )
        shape = function(*[batch[variable.name] for variable in inputs])
        target.set_value(numpy.full(shape, self.fill, dtype=target.dtype))


class _SameLength:
    """Refuses a batch whose sources do not agree about the number of examples."""

    # Of one that comes from a checkpoint of an earlier release.
    axes: Mapping[str, int] = MappingProxyType({})

    def __init__(self, name: str, axes: Mapping[str, int]) -> None:
        self.name = name
        self.axes = dict(axes)

    def __call__(self, target: AnyVariable, batch: Batch) -> None:
        self.check(batch)

    def check(self, batch: Batch) -> None:
        """Refuse it; what is no batch for the graph at all is left to others to refuse."""
        shapes = [(s, axis, numpy.shape(batch[s])) for s, axis in self.axes.items() if s in batch]
        lengths = {s: (shape[axis], axis) for s, axis, shape in shapes if axis < len(shape)}
        if len({length for length, _ in lengths.values()}) > 1:
            found = ", ".join(
                f"{source} has {length}{f' on axis {axis}' if axis else ''}"
                for source, (length, axis) in lengths.items()
            )
            raise ValueError(
                f"The mean of {self.name} cannot be weighted with the number of examples in a "
                f"batch, because the first axes (or those that the stream labels 'batch') of its "
                f"inputs do not agree: {found}. Name the source that tells it "
                f"(`weighted={next(iter(lengths))!r}`), label the axes of the stream "
                "(`axis_labels`), weight nothing (`weighted=False`), or say what is summed and "
                "counted (`bricks.monitoring.mean(sum, count)`)."
            )


def mean(numerator: AnyVariable, denominator: Any = 1.0) -> AnyVariable:
    """Make a variable whose aggregate is a `Mean`.

    Parameters
    ----------
    numerator : Variable
        What is summed over batches.
    denominator : Variable or float, optional
        What is counted. The default, 1, gives the mean over batches that forgets their sizes.

    Returns
    -------
    Variable
        ``numerator / denominator``, with the numerator's name.
    """
    variable = numerator / denominator
    variable.tag.aggregation_scheme = Mean(numerator, denominator)
    variable.name = numerator.name
    return variable


def perplexity(numerator: AnyVariable, denominator: Any = 1.0) -> AnyVariable:
    """Make a variable whose aggregate is a `Perplexity`.

    Parameters
    ----------
    numerator : Variable
        Sums of negative log-likelihoods.
    denominator : Variable or float, optional
        The number of elements. The default is 1.

    Returns
    -------
    Variable
        ``exp(numerator / denominator)``, with the numerator's name.
    """
    variable = tensor.exp(numerator / denominator)
    variable.tag.aggregation_scheme = Perplexity(numerator, denominator)
    variable.name = numerator.name
    return variable


def _copy_with(scheme: type[AggregationScheme], variable: AnyVariable) -> AnyVariable:
    copy = variable.copy(variable.name)
    copy.tag.aggregation_scheme = scheme(copy)
    return copy


def take_last(variable: AnyVariable) -> AnyVariable:
    """Make a copy of a variable whose aggregate is its value on the last batch.

    Parameters
    ----------
    variable : Variable
        The variable.

    Returns
    -------
    Variable
        The copy, of the same name.
    """
    return _copy_with(TakeLast, variable)


def minimum(variable: AnyVariable) -> AnyVariable:
    """Make a copy of a variable whose aggregate is the smallest value, element by element.

    Parameters
    ----------
    variable : Variable
        The variable.

    Returns
    -------
    Variable
        The copy, of the same name.
    """
    return _copy_with(Minimum, variable)


def maximum(variable: AnyVariable) -> AnyVariable:
    """Make a copy of a variable whose aggregate is the largest value, element by element.

    Parameters
    ----------
    variable : Variable
        The variable.

    Returns
    -------
    Variable
        The copy, of the same name.
    """
    return _copy_with(Maximum, variable)


def concatenate(variable: AnyVariable) -> AnyVariable:
    """Make a copy of a variable whose aggregate is all its values along the first axis.

    Parameters
    ----------
    variable : Variable
        The variable, with at least one axis.

    Returns
    -------
    Variable
        The copy, of the same name.
    """
    return _copy_with(Concatenate, variable)
