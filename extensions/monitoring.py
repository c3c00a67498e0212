"""Monitor variables over a data set and along with training, and watch for values gone wrong."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy
from aesara import tensor
from aesara.graph.basic import Variable

from bricks import xla
from bricks.algorithms import UpdatesAlgorithm, find_non_finite
from bricks.monitoring import (
    AggregationBuffer,
    DatasetEvaluator,
    MonitoredQuantity,
    MonitoredQuantityBuffer,
    take_last,
)
from extensions.base import SimpleExtension
from fuel_data.state import split_arrays

SEPARATOR = "_"


class MonitoringExtension(SimpleExtension):
    """What extensions that write monitored values to the log have in common.

    Parameters
    ----------
    prefix, suffix : str, optional
        What to put before and after the names, with an underscore.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`.
    """

    def __init__(
        self,
        prefix: str | None = None,
        suffix: str | None = None,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        self.prefix = prefix
        self.suffix = suffix
        super().__init__(name, **triggers)

    def record_name(self, variable: Any) -> str:
        """Give the name under which a variable is recorded.

        Parameters
        ----------
        variable : Variable, MonitoredQuantity or str
            The variable, or its name.

        Returns
        -------
        str
            Prefix, name and suffix.
        """
        name = variable if isinstance(variable, str) else variable.name
        return SEPARATOR.join(part for part in (self.prefix, name, self.suffix) if part)

    def add_records(self, log: Any, record_tuples: Iterable[tuple[str, Any]]) -> None:
        """Write values to the present row.

        Parameters
        ----------
        log : TrainingLogBase
            The log.
        record_tuples : iterable of (str, object)
            Names without prefix and suffix, and values.
        """
        row = log.current_row
        for name, value in record_tuples:
            row[self.record_name(name)] = value


class DataStreamMonitoring(MonitoringExtension):
    """Compute variables over an epoch of a stream that is not trained on.

    Each evaluation reads an epoch of its own number (0, 1, 2, …) where the stream can be asked for
    one, so that a run that is resumed sees the same data as one that was not stopped.

    Parameters
    ----------
    variables : list of Variable or MonitoredQuantity
        What to compute, with unique names. By default the mean over the examples.
    data_stream : DataStream
        What gives the batches.
    updates : list of (SharedVariable, Variable), or dict, optional
        Further updates, made at each batch.
    weighted : bool or str
        How the default mean weights batches; see `bricks.monitoring.AggregationBuffer`.
    prefix, suffix : str, optional
        What to put before and after the names, with an underscore.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`. By default before the first epoch and after each epoch.
    """

    def __init__(
        self,
        variables: Sequence[Any],
        data_stream: Any,
        updates: Any = None,
        weighted: bool | str = True,
        prefix: str | None = None,
        suffix: str | None = None,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        defaults = {"before_first_epoch": True, "after_epoch": True}
        super().__init__(prefix, suffix, name, **defaults | triggers)
        self.data_stream = data_stream
        self._evaluator = DatasetEvaluator(variables, updates, weighted=weighted)
        self._num_evaluations = 0

    @property
    def records_written(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the records that this writes."""
        return tuple(self.record_name(name) for name in self._evaluator.names)

    def do(self, which_callback: str, *args: Any) -> None:
        """Evaluate, and record the values.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """
        parameters = inspect.signature(self.data_stream.get_epoch_iterator).parameters
        epoch = self._num_evaluations if "epoch" in parameters else None
        values = self._evaluator.evaluate(self.data_stream, epoch=epoch)
        self._num_evaluations += 1
        self.add_records(self.main_loop.log, values.items())

    def get_state(self) -> dict[str, Any]:
        """Give how often it was evaluated, and what evaluating changes.

        Returns
        -------
        dict
            Plain data.
        """
        variables = self._evaluator.get_state_variables()
        values = {name: variable.get_value() for name, variable in variables.items()}
        return {"evaluations": self._num_evaluations, "variables": values}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            Plain data.

        Raises
        ------
        ValueError
            If it is about other variables.
        """
        variables = self._evaluator.get_state_variables()
        if set(variables) != set(state["variables"]):
            raise ValueError(
                f"{self.name}: the state is about {sorted(state['variables'])}; evaluating changes "
                f"{sorted(variables)} here. Build the extension as it was, or leave it out of what "
                "is restored."
            )
        for name, variable in variables.items():
            variable.set_value(state["variables"][name])
        self._num_evaluations = state["evaluations"]


class TrainingDataMonitoring(MonitoringExtension):
    """Compute variables on the batches that are trained on, without a further pass.

    What is needed is computed by the training function itself, before it changes the parameters.
    The values are recorded, and begin anew, when a trigger says so. They are part of the state of
    the algorithm: a run that is resumed in the middle of an epoch records the same values.

    Parameters
    ----------
    variables : list of Variable or MonitoredQuantity
        What to compute, with unique names. By default the mean over the examples; a variable that
        depends on no data is read along with the last batch.
    weighted : bool or str
        How the default mean weights batches; see `bricks.monitoring.AggregationBuffer`.
    prefix, suffix : str, optional
        What to put before and after the names, with an underscore.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`. After each epoch, if none is given.
    """

    # Whether it was tried.
    _can_be_saved = False

    def __init__(
        self,
        variables: Sequence[Any],
        weighted: bool | str = True,
        prefix: str | None = None,
        suffix: str | None = None,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        super().__init__(prefix, suffix, name, **triggers or {"after_epoch": True})
        quantities = [v for v in variables if isinstance(v, MonitoredQuantity)]
        others = [v for v in variables if not isinstance(v, MonitoredQuantity)]
        self._names = [variable.name for variable in variables]
        self._buffer = AggregationBuffer(others, use_take_last=True, weighted=weighted)
        self._quantities = MonitoredQuantityBuffer(quantities)
        required = self._quantities.requires
        # The same variable may be monitored too, with a scheme of its own.
        named = [take_last(v.copy(f"required_{i}")) for i, v in enumerate(required)]
        self._required = AggregationBuffer(named, use_take_last=True)
        targets = [target for target, _ in self._required.accumulation_updates]
        self._empty = [(target, target.get_value()) for target in targets]
        self._reading: Any = None
        self._recorded_at = -1

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_reading": None}

    @property
    def records_written(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the records that this writes."""
        return tuple(self.record_name(name) for name in self._names)

    def before_training(self) -> None:
        """Let the training function compute the variables.

        Raises
        ------
        TypeError
            If the algorithm is not an `UpdatesAlgorithm`.
        """
        algorithm = self.main_loop.algorithm
        if not isinstance(algorithm, UpdatesAlgorithm):
            raise TypeError(
                f"{self.name}: the algorithm must be an `UpdatesAlgorithm`, whose function can "
                f"compute more; got {type(algorithm).__name__}. `DataStreamMonitoring` works with "
                "any."
            )
        labels = getattr(self.main_loop.data_stream, "axis_labels", None)
        self._buffer = self._buffer.with_axis_labels(labels)
        for buffer in (self._buffer, self._required):
            algorithm.add_updates(buffer.accumulation_updates)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._buffer.initialize_aggregators()
        self._required.initialize_aggregators()
        self._quantities.initialize_quantities()

    def before_batch(self, batch: Any) -> None:
        """Refuse a batch of which it is not clear how many examples it has.

        Parameters
        ----------
        batch : dict of str to array
            The batch.

        Raises
        ------
        ValueError
            If the sources do not agree about it.
        """
        self._buffer.check_batch(batch)

    def after_batch(self, batch: Any) -> None:
        """Give the values of a batch to the quantities that are computed in Python.

        Parameters
        ----------
        batch : dict of str to array
            The batch.

        Raises
        ------
        TypeError
            If checkpoints are written, and a quantity's state is no plain data.
        """
        values = self._required.get_aggregated_values()
        self._quantities.aggregate_quantities(list(values.values()))
        if not self._can_be_saved and self.main_loop.checkpoint_paths():
            # Now, and not hours later, when the first checkpoint is written.
            split_arrays(self._quantities.get_state())
            self._can_be_saved = True
        # What has been handed on need not be saved, and its shape would be that of a batch.
        for target, value in self._empty:
            target.set_value(value)

    def handler(self, callback_name: str) -> Any:
        """Give what the main loop is to call for a callback.

        Parameters
        ----------
        callback_name : str
            One of the callbacks.

        Returns
        -------
        callable or None
            None if this extension has no use for it.
        """
        needed = {
            "after_batch": bool(self._quantities.quantities),
            "before_batch": self._buffer.compares_lengths,
        }
        if not needed.get(callback_name, True):
            return self._conditions_handler(callback_name)
        return super().handler(callback_name)

    def do(self, which_callback: str, *args: Any) -> None:
        """Record the values since the last record, and begin anew.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """
        present = self.main_loop.log.status["iterations_done"]
        # Two triggers may hold after one batch; and Blocks had `before_training` as a trigger for
        # what the method of this name does here.
        if present == self._recorded_at or which_callback == "before_training":
            return
        self._recorded_at = present
        values = self._read_and_begin_anew()
        values |= self._quantities.get_aggregated_values()
        self._quantities.initialize_quantities()
        self.add_records(self.main_loop.log, ((name, values[name]) for name in self._names))

    def _read_and_begin_anew(self) -> dict[str, Any]:
        """Read the aggregates and begin anew in one call, so that nothing leaves the device."""
        readouts = self._buffer.readout_variables
        if self._reading is None:
            begin = self._buffer.initialization_updates
            updates = [(target, _filled(target, value)) for target, value in begin]
            self._reading = xla.function([], list(readouts.values()), updates=updates)
        values = zip(readouts, self._reading(), strict=True)
        return {name: value[()].item() if not value.ndim else value for name, value in values}

    def get_state(self) -> dict[str, Any]:
        """Give the time of the last record, and what the quantities in Python have aggregated.

        Returns
        -------
        dict
            Plain data. The rest is part of the algorithm's state.
        """
        return {"recorded_at": self._recorded_at, "quantities": self._quantities.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            Plain data.
        """
        self._quantities.set_state(state["quantities"])
        self._recorded_at = state["recorded_at"]


def _filled(target: Any, value: Any) -> Any:
    """Give an expression for the value with which an accumulator begins."""
    if isinstance(value, Variable):
        return value
    return tensor.fill(target, tensor.constant(numpy.asarray(value, dtype=target.dtype)))


class NonFiniteCost(SimpleExtension):
    """Stop as soon as the cost or a gradient is not finite, and say where it went wrong.

    The training function counts such batches, and leaves parameters, buffers and random keys as
    they were before them. When there is one, the graph is computed again, value by value, and the
    first brick and variable that is not finite is named in the error and in the record
    ``non_finite``. Until then, the cost of this extension is to read one number after each batch.

    Parameters
    ----------
    finish : bool
        Whether to end training as usual (`after_training`, so that a checkpoint is written) and
        not by an exception.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`: when to look. By default after each batch, so that the batch is
        at hand.
    """

    records_written = ("non_finite",)

    def __init__(self, finish: bool = False, name: str | None = None, **triggers: Any) -> None:
        super().__init__(name, **triggers or {"after_batch": True})
        self.finish = finish
        self._count = xla.shared(numpy.zeros((), dtype="int32"), name="non_finite_batches")
        # The algorithm goes on counting when it holds everything else.
        self._count.tag.is_accumulator = True

    def before_training(self) -> None:
        """Let the training function look at the cost.

        Raises
        ------
        TypeError
            If the algorithm is not a `GradientDescent`.
        """
        algorithm = self.main_loop.algorithm
        if not hasattr(algorithm, "hold_on_non_finite"):
            raise TypeError(
                f"{self.name}: the algorithm must be a `GradientDescent`, which has a cost and "
                f"gradients; got {type(algorithm).__name__}."
            )
        algorithm.hold_on_non_finite()
        watched = [algorithm.total_gradient_norm]
        watched += [] if algorithm.cost is None else [algorithm.cost]
        bad = [tensor.isnan(variable) | tensor.isinf(variable) for variable in watched]
        any_bad = bad[0] if len(bad) == 1 else bad[0] | bad[1]
        algorithm.add_updates([(self._count, self._count + tensor.cast(any_bad, "int32"))])

    def on_resumption(self) -> None:
        """Forget what was found before."""
        self._count.set_value(numpy.zeros((), dtype="int32"))

    def do(self, which_callback: str, *args: Any) -> None:
        """Look whether there was such a batch.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments; the batch, after a batch.

        Raises
        ------
        FloatingPointError
            If there was one, unless `finish` is set.
        """
        if not self._count.get_value():
            return
        batch, _ = self.parse_args(which_callback, args)
        where = find_non_finite(self.main_loop.algorithm, batch[0]) if batch else None
        message = (
            "The cost or a gradient is not finite, after "
            f"{self.main_loop.status['iterations_done']} batches. "
            f"{where or 'The batch that did it is no longer at hand.'}"
        )
        self.main_loop.log.current_row["non_finite"] = message
        if not self.finish:
            raise FloatingPointError(message)
        self.main_loop.log.current_row["training_finish_requested"] = True
