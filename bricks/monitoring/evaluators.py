"""What computes monitored values: over a data set, or along with training."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy
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
from bricks.monitoring.aggregation import (
    AggregationScheme,
    Aggregator,
    BatchMean,
    DataIndependent,
    Mean,
    TakeLast,
)
from bricks.monitoring.names import unique_names
from bricks.monitoring.quantities import MonitoredQuantity, MonitoredQuantityBuffer
from fuel_data.axes import BATCH, AxisLabels
from fuel_data.utils.names import nearest_name


class AggregationBuffer:
    """The accumulators of several variables, and what goes with them.

    Its `accumulation_updates` are given to the function that sees the batches, for example
    with `UpdatesAlgorithm.add_updates`: then the values are those *before* the step, cost no
    further pass, and the accumulators are part of the algorithm's state.

    Parameters
    ----------
    variables : sequence of Variable
        With unique names. A variable with ``tag.aggregation_scheme`` is aggregated by that
        scheme. The others, by default, as the mean over all examples, see `weighted`.
    use_take_last : bool, optional
        Whether variables that depend on no input are read along with the last batch (and so
        before the last step), instead of when the values are asked for. The default is False.
    weighted : bool or str, optional
        How the default mean weights batches. True (the default): with the number of examples
        in a batch, which the inputs that the variable depends on tell: those that have an axis
        labelled ``batch`` by its length, or, if there are none, all that are no scalars by the
        length of their first axis. They have to agree (see `check_batch`). The name of an input:
        with what that one tells, for all variables (where sequences have time first and no
        labels, name an input that has not). False: all batches alike, as in Blocks.
    axis_labels : dict from str to tuple of str or None, optional
        The names of the axes of the inputs, by the names of the inputs, as streams have them.

    Attributes
    ----------
    variable_names : list of str
        The names.
    initialization_updates, accumulation_updates : list of (SharedVariable, Variable)
        How the accumulators begin, and how a batch changes them.
    readout_variables : OrderedDict
        From name to the aggregate, as an expression of the accumulators.

    Raises
    ------
    ValueError
        If a name is missing or used twice, `weighted` names no input, or a scheme collects
        values on the host, which only `DatasetEvaluator` does.
    """

    # Of buffers that come from a checkpoint of an earlier release.
    axis_labels: AxisLabels = MappingProxyType({})
    _same_lengths: Sequence[Any] = ()

    def __init__(
        self,
        variables: Sequence[AnyVariable],
        use_take_last: bool = False,
        weighted: bool | str = True,
        axis_labels: AxisLabels | None = None,
    ) -> None:
        self.variables = list(variables)
        self.axis_labels = dict(axis_labels or {})
        self.variable_names = unique_names(self.variables, "AggregationBuffer")
        self.use_take_last = use_take_last
        self.weighted = weighted
        self._named_input = self._find_named_input()
        self._aggregators = [self._aggregator(variable) for variable in self.variables]
        means = self._batch_means.values()
        self._same_lengths = [scheme.same_length for scheme in means if len(scheme.axes) > 1]
        self.initialization_updates = [
            pair for aggregator in self._aggregators for pair in aggregator.initialization_updates
        ]
        self.accumulation_updates = [
            pair for aggregator in self._aggregators for pair in aggregator.accumulation_updates
        ]
        self.readout_variables = self._readouts()
        self._initialized = False
        self._functions: dict[str, Any] = {}

    @property
    def _batch_means(self) -> dict[str, BatchMean]:
        named = zip(self.variable_names, self._aggregators, strict=True)
        schemes = [(name, aggregator.aggregation_scheme) for name, aggregator in named]
        return {name: scheme for name, scheme in schemes if isinstance(scheme, BatchMean)}

    @property
    def compares_lengths(self) -> bool:
        """Whether `check_batch` has anything to do."""
        return bool(self._same_lengths)

    def check_batch(self, batch: Batch) -> None:
        """Refuse a batch whose sources do not agree about the number of examples.

        To be called with every batch by who has them; it costs next to nothing.

        Parameters
        ----------
        batch : dict from str to array
            The arrays, by source.

        Raises
        ------
        ValueError
            If the number of examples, with which a mean is weighted, is not clear.
        """
        for same_length in self._same_lengths:
            same_length.check(batch)

    def with_axis_labels(self, axis_labels: AxisLabels | None) -> Self:
        """Give a buffer that knows the axes of a stream.

        Parameters
        ----------
        axis_labels : dict from str to tuple of str or None, or None
            The labels of the stream.

        Returns
        -------
        AggregationBuffer
            This one, if the labels make no difference; otherwise one with accumulators of its own.
        """
        if dict(axis_labels or {}) == self.axis_labels:
            return self
        other = type(self)(self.variables, self.use_take_last, self.weighted, axis_labels)
        here, there = self._batch_means, other._batch_means
        if all(scheme.axes == there[name].axes for name, scheme in here.items()):
            self.axis_labels = other.axis_labels
            return self
        return other

    def _readouts(self) -> "OrderedDict[str, AnyVariable]":
        for name, aggregator in zip(self.variable_names, self._aggregators, strict=True):
            if aggregator.collected is not None:
                raise ValueError(
                    f"AggregationBuffer: {name} is aggregated by "
                    f"{type(aggregator.aggregation_scheme).__name__}, which collects the values of "
                    "all batches on the host; only `DatasetEvaluator` (`DataStreamMonitoring`) can."
                )
        named = zip(self.variable_names, self._aggregators, strict=True)
        return OrderedDict((name, aggregator.readout_variable) for name, aggregator in named)

    def _find_named_input(self) -> AnyVariable | None:
        if isinstance(self.weighted, bool):
            return None
        inputs = {variable.name: variable for variable in explicit_inputs(self.variables)}
        found = inputs.get(self.weighted)
        if found is None or found.ndim == 0:
            known = [name for name, variable in inputs.items() if name and variable.ndim]
            raise ValueError(
                f"AggregationBuffer: `weighted` must be True, False or the name of an input with a "
                f"first axis; got {self.weighted!r}.{nearest_name(self.weighted, known)}"
            )
        return found

    def _aggregator(self, variable: AnyVariable) -> Aggregator:
        scheme = getattr(variable.tag, "aggregation_scheme", None) or self._scheme(variable)
        aggregator = scheme.get_aggregator()
        for target, _ in aggregator.accumulation_updates:
            target.name = f"monitoring/{variable.name}.{target.name or 'accumulator'}"
        return aggregator

    def _scheme(self, variable: AnyVariable) -> AggregationScheme:
        inputs = explicit_inputs([variable])
        if not inputs:
            return TakeLast(variable) if self.use_take_last else DataIndependent(variable)
        if self._named_input is not None:
            return BatchMean(variable, {self._named_input: self._axis(self._named_input) or 0})
        labelled = {v: axis for v in inputs if (axis := self._axis(v)) is not None}
        tell = labelled or {v: 0 for v in inputs if v.ndim}
        if not self.weighted or not tell:
            return Mean(variable, 1.0)
        return BatchMean(variable, tell)

    def _axis(self, variable: AnyVariable) -> int | None:
        labels = self.axis_labels.get(variable.name) or ()
        axis = list(labels).index(BATCH) if BATCH in labels else None
        return None if axis is None or axis >= variable.ndim else axis

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_functions": {}}

    def initialize_aggregators(self) -> None:
        """Let the accumulators begin anew."""
        symbolic = []
        for target, value in self.initialization_updates:
            if isinstance(value, Variable):
                symbolic.append((target, value))
            else:
                shape = target.get_value(borrow=True).shape
                target.set_value(numpy.full(shape, value, dtype=target.dtype))
        if symbolic:
            if "initialize" not in self._functions:
                self._functions["initialize"] = xla.function([], [], updates=symbolic)
            self._functions["initialize"]()
        self._initialized = True

    def get_aggregated_values(self) -> "OrderedDict[str, Any]":
        """Read the aggregates of all batches since `initialize_aggregators`.

        Returns
        -------
        OrderedDict
            From name to a Python number, or to an array if the variable has axes. Means are
            ``float64``. Where there was no batch, a mean is not a number.

        Raises
        ------
        RuntimeError
            If `initialize_aggregators` was never called.
        """
        if not self._initialized:
            raise RuntimeError(
                "AggregationBuffer: call `initialize_aggregators`, then process batches, before "
                "`get_aggregated_values`."
            )
        if not self.readout_variables:
            return OrderedDict()
        if "read" not in self._functions:
            self._functions["read"] = xla.function([], list(self.readout_variables.values()))
        values = self._functions["read"]()
        return OrderedDict(
            (name, _plain(value))
            for name, value in zip(self.readout_variables, values, strict=True)
        )


class _CollectingBuffer(AggregationBuffer):
    """An aggregation buffer that also keeps, on the host, what some aggregators collect."""

    def _readouts(self) -> "OrderedDict[str, AnyVariable]":
        named = list(zip(self.variable_names, self._aggregators, strict=True))
        self._collecting = [(name, a) for name, a in named if a.collected is not None]
        self.collected_variables = [a.collected for _, a in self._collecting]
        self._collected: list[list[numpy.ndarray]] = [[] for _ in self._collecting]
        return OrderedDict((name, a.readout_variable) for name, a in named if a.collected is None)

    def initialize_aggregators(self) -> None:
        super().initialize_aggregators()
        self._collected = [[] for _ in self._collecting]

    def collect(self, values: Sequence[numpy.ndarray]) -> None:
        """Keep what was collected from a batch."""
        for kept, value in zip(self._collected, values, strict=True):
            kept.append(numpy.asarray(value))

    def get_aggregated_values(self) -> "OrderedDict[str, Any]":
        values = super().get_aggregated_values()
        for (name, aggregator), kept in zip(self._collecting, self._collected, strict=True):
            values[name] = aggregator.join(kept)  # type: ignore[misc]
        return OrderedDict((name, values[name]) for name in self.variable_names)


def _plain(value: Any) -> Any:
    array = numpy.asarray(value)
    return array.item() if array.ndim == 0 else array


class DatasetEvaluator:
    """Computes aggregates of variables over a data set.

    Parameters
    ----------
    variables : sequence of Variable or MonitoredQuantity
        With unique names; see `AggregationBuffer` for how they are aggregated.
    updates : list of (SharedVariable, Variable), or dict, optional
        Further updates, made at each batch.
    weighted : bool or str, optional
        How the default mean weights batches; see `AggregationBuffer`. The default, True, gives
        the mean over the examples of the data set, however they are cut into batches.

    Raises
    ------
    ValueError
        If a name is missing or used twice, or `weighted` names no input.
    TypeError
        If something is neither a variable nor a quantity.

    Notes
    -----
    Random keys are advanced at each batch, as in training: noise differs from batch to batch,
    and a key that is shared with the training function goes on from where that left it.
    """

    def __init__(
        self,
        variables: Sequence[AnyVariable | MonitoredQuantity],
        updates: Mapping[AnyVariable, AnyVariable]
        | Iterable[tuple[AnyVariable, AnyVariable]]
        | None = None,
        weighted: bool | str = True,
    ) -> None:
        for position, variable in enumerate(variables):
            if not isinstance(variable, Variable | MonitoredQuantity):
                raise TypeError(
                    "DatasetEvaluator: `variables` must be variables or instances of "
                    f"MonitoredQuantity; got {variable!r} in position {position}."
                )
        self.names = unique_names(variables, "DatasetEvaluator")
        self.updates = list(updates.items() if isinstance(updates, Mapping) else updates or ())
        self.buffer = _CollectingBuffer(
            [v for v in variables if isinstance(v, Variable)], weighted=weighted
        )
        self.monitored_quantities_buffer = MonitoredQuantityBuffer(
            [v for v in variables if isinstance(v, MonitoredQuantity)]
        )
        self._num_batches: int | None = None
        self._function: Any = None
        self._batch_inputs: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None, "_batch_inputs": None}

    @property
    def _all_updates(self) -> list[tuple[AnyVariable, Any]]:
        return [*self.buffer.accumulation_updates, *self.updates]

    @property
    def _outputs(self) -> list[AnyVariable]:
        return [*self.buffer.collected_variables, *self.monitored_quantities_buffer.requires]

    @property
    def needs_batches(self) -> bool:
        """Whether anything depends on the data."""
        return bool(
            self._all_updates or self._outputs or self.monitored_quantities_buffer.quantities
        )

    def _ready_function(self, batch: Batch) -> None:
        """Compile the function unless this process has done so: pickles do not hold it."""
        if self._function is None:
            expressions = [*self._outputs, *(value for _, value in self._all_updates)]
            inputs = explicit_inputs([v for v in expressions if isinstance(v, Variable)])
            batch_inputs = BatchInputs(inputs, "DatasetEvaluator")
            batch_inputs.check_sources(batch.keys())
            batch_inputs.arrange(batch)
            look_at_first_batch((target for target, _ in self._all_updates), batch)
            self._function = xla.function(
                inputs, self._outputs, updates=self._all_updates, name="evaluation"
            )
            self._batch_inputs = batch_inputs

    def initialize_aggregators(self) -> None:
        """Forget all batches."""
        self.buffer.initialize_aggregators()
        self.monitored_quantities_buffer.initialize_quantities()
        self._num_batches = 0

    def process_batch(self, batch: Batch) -> None:
        """Take a batch into account. Sources that no variable depends on are left out.

        Parameters
        ----------
        batch : dict from str to array
            The arrays, by source.

        Raises
        ------
        RuntimeError
            If `initialize_aggregators` was not called.
        ValueError
            If an input has no source, or an array a wrong shape.
        TypeError
            If an array would have to be cast to a dtype that cannot hold its values.
        """
        if self._num_batches is None:
            raise RuntimeError(
                "DatasetEvaluator: call `initialize_aggregators` before `process_batch`, or use "
                "`evaluate`."
            )
        self._ready_function(batch)
        self._batch_inputs.check_sources(batch.keys())
        arguments = self._batch_inputs.arrange(batch)
        self.buffer.check_batch(batch)
        try:
            values = self._function(*arguments)
        except Exception as error:
            error.add_note(self._explain(batch))
            raise
        split = len(self.buffer.collected_variables)
        self.buffer.collect(values[:split])
        self.monitored_quantities_buffer.aggregate_quantities(values[split:])
        self._num_batches += 1

    def _explain(self, batch: Batch) -> str:
        note = f"While monitoring {', '.join(self.names)}. {describe_batch(batch)}"
        with_axes = [v.name for v in self.buffer.variables if v.ndim]
        if with_axes:
            note += (
                f" {', '.join(with_axes)} must have one shape on all batches, unless aggregated by "
                "`take_last` or `concatenate`."
            )
        return note

    def get_aggregated_values(self) -> "OrderedDict[str, Any]":
        """Read the aggregates of all batches since `initialize_aggregators`.

        Returns
        -------
        OrderedDict
            From name to value, in the order of `variables`.

        Raises
        ------
        RuntimeError
            If `initialize_aggregators` was never called.
        ValueError
            If there was no batch and something depends on the data.
        """
        if self._num_batches is None:
            raise RuntimeError(
                "DatasetEvaluator: call `initialize_aggregators`, then process batches, before "
                "`get_aggregated_values`, or use `evaluate`."
            )
        if self._num_batches == 0 and self.needs_batches:
            raise ValueError(
                f"DatasetEvaluator: there was no batch, so {', '.join(self.names)} cannot be "
                "computed. The stream may be empty, or its epoch may have been read already."
            )
        values = self.buffer.get_aggregated_values()
        values.update(self.monitored_quantities_buffer.get_aggregated_values())
        return OrderedDict((name, values[name]) for name in self.names)

    def evaluate(self, data_stream: Any, epoch: int | None = None) -> "OrderedDict[str, Any]":
        """Compute the aggregates over one epoch of a stream.

        Parameters
        ----------
        data_stream : stream
            Gives batches. It is not read if nothing depends on the data. If it labels axes
            (`axis_labels`), its batches are weighted by the length of those called ``batch``.
        epoch : int, optional
            Which epoch; by default the stream's next one. It matters where the stream is
            shuffled or random.

        Returns
        -------
        OrderedDict
            From name to value, in the order of `variables`.

        Raises
        ------
        ValueError
            If the stream gives no batch, or batches that do not fit; see `process_batch`.
        """
        buffer = self.buffer.with_axis_labels(getattr(data_stream, "axis_labels", None))
        if buffer is not self.buffer:
            self.buffer, self._function = buffer, None
        self.initialize_aggregators()
        if self.needs_batches:
            chosen = {} if epoch is None else {"epoch": epoch}
            for batch in data_stream.get_epoch_iterator(as_dict=True, **chosen):
                self.process_batch(batch)
        return self.get_aggregated_values()

    def get_state_variables(self) -> "OrderedDict[str, AnyVariable]":
        """Give what evaluating changes beside the accumulators, for a checkpoint.

        Returns
        -------
        OrderedDict
            From a unique name to a shared variable: random keys (``random/…``) and targets of
            `updates` (``updates/…``).
        """
        values = [value for _, value in self._all_updates if isinstance(value, Variable)]
        keys = [
            (f"random/{variable.name or 'unnamed'}", variable)
            for variable in shared_inputs([*values, *self._outputs])
            if getattr(variable, "default_update", None) is not None
        ]
        targets = [(f"updates/{variable_path(target)}", target) for target, _ in self.updates]
        return name_uniquely([*keys, *targets])
