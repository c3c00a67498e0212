"""From a batch to the arguments of a compiled function: names, types and what a first batch tells.

A batch is a dict from source to array. Its sources are matched to the *names* of the inputs of a
graph, and everything that can be wrong with it is said here, by source, before a compiled function
(which may have given its state away by then) sees it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy

from bricks.algorithms.states import AnyVariable
from fuel_data.utils.names import nearest_name

Batch = Mapping[str, Any]


class BatchInputs:
    """The inputs of a graph, by the names of the sources that feed them.

    Parameters
    ----------
    inputs : sequence of Variable
        The inputs, in the order in which a compiled function takes them.
    owner : str
        Who asks, for messages.

    Raises
    ------
    ValueError
        If an input has no name, or two have the same.
    """

    def __init__(self, inputs: Sequence[AnyVariable], owner: str) -> None:
        self.inputs = list(inputs)
        self.owner = owner
        self.names = [self._name(variable) for variable in self.inputs]
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise ValueError(
                f"{owner}: two different inputs of the graph are called {twice[0]!r}, so a source "
                "cannot be matched to one of them. Give each input a name of its own, or use one "
                "variable for both."
            )
        self._kinds = [
            (name, numpy.dtype(variable.dtype), variable.ndim, _known_lengths(variable), variable)
            for name, variable in zip(self.names, self.inputs, strict=True)
        ]

    def _name(self, variable: AnyVariable) -> str:
        if not variable.name:
            raise ValueError(
                f"{self.owner}: an input of the graph ({variable.type}) has no name, so no source "
                "of a batch can be matched to it. Name it, as in `tensor.matrix('features')`."
            )
        return variable.name

    def check_sources(self, sources: Collection[str]) -> list[str]:
        """See that every input has its source.

        Parameters
        ----------
        sources : collection of str
            The sources of a batch or of a stream.

        Returns
        -------
        list of str
            The sources that no input takes.

        Raises
        ------
        ValueError
            If an input has no source.
        """
        for name in self.names:
            if name not in sources:
                raise ValueError(
                    f"{self.owner}: the graph has an input {name!r}, but the data has no source of "
                    f"that name.{nearest_name(name, sources)} Sources are matched to the names of "
                    "the graph's inputs; rename one of them (`Rename` renames sources)."
                )
        return [source for source in sources if source not in self.names]

    def arrange(self, batch: Batch) -> list[Any]:
        """Put the arrays of a batch in the order of the inputs.

        Parameters
        ----------
        batch : mapping from str to array
            The batch, with all sources; see `check_sources`.

        Returns
        -------
        list of array
            One for each input, of its dtype and number of axes.

        Raises
        ------
        TypeError
            If an array would have to be cast to a dtype that cannot hold all its values.
        ValueError
            If an array has another number of axes, or another length where the input's is fixed.
        """
        values = []
        for name, dtype, ndim, lengths, variable in self._kinds:
            value = batch[name]
            if type(value) is not numpy.ndarray or value.dtype != dtype:
                value = self._cast(name, value, dtype)
            if value.ndim != ndim or lengths:
                self._check_shape(name, value, variable)
            values.append(value)
        return values

    def _cast(self, name: str, value: Any, dtype: numpy.dtype) -> Any:
        given = getattr(value, "dtype", None)
        if given is not None and given == dtype and hasattr(value, "ndim"):
            return value
        # Other numbers are refused below.
        if _is_taken(value, dtype):
            return numpy.asarray(value, dtype=dtype)
        array = _as_array(value)
        if array is None or array.dtype == object:
            raise TypeError(
                f"{self.owner}: source {name!r} must be one array of dtype {dtype}; got "
                f"{type(value).__name__} of arrays or objects of different shapes or kinds. "
                "`Padding` makes one array of arrays of different lengths."
            )
        if not numpy.can_cast(array.dtype, dtype, "safe"):
            way_out = (
                f"Put `ForceFloatX(stream, which_sources=({name!r},))`, or `Cast`, at the end of "
                "the stream"
                if array.dtype.kind == "f" and dtype.kind == "f"
                else f"Put `Cast(stream, {dtype.name!r}, which_sources=({name!r},))` at the end of "
                "the stream, or give the input the dtype of the data"
            )
            raise TypeError(
                f"{self.owner}: source {name!r} must have dtype {dtype}, as the graph's input has; "
                f"got {array.dtype}, whose values {dtype} cannot all hold. {way_out}."
            )
        return array.astype(dtype)

    def _check_shape(self, name: str, value: Any, variable: AnyVariable) -> None:
        lengths = variable.type.shape
        if value.ndim == variable.ndim and all(
            known is None or known == length
            for known, length in zip(lengths, value.shape, strict=True)
        ):
            return
        expected = ", ".join("any" if length is None else str(length) for length in lengths)
        raise ValueError(
            f"{self.owner}: source {name!r} must have {variable.ndim} axes of length ({expected}), "
            f"as the graph's input has; got an array of shape {value.shape}. `Flatten` flattens "
            "all axes but the first; a `Mapping` can do the rest."
        )


def _known_lengths(variable: AnyVariable) -> bool:
    return any(length is not None for length in variable.type.shape)


def _is_taken(value: Any, dtype: numpy.dtype) -> bool:
    """Tell whether a value is a number of Python that may become one of a dtype."""
    if isinstance(value, float):
        return dtype.kind in "fc"
    if not isinstance(value, int):
        return False
    return dtype.kind not in "iu" or numpy.iinfo(dtype).min <= value <= numpy.iinfo(dtype).max


def _as_array(value: Any) -> numpy.ndarray | None:
    try:
        return numpy.asarray(value)
    except ValueError:
        return None


def describe_batch(batch: Batch) -> str:
    """Describe the arrays of a batch, as a note for an error.

    Parameters
    ----------
    batch : mapping from str to array
        The batch.

    Returns
    -------
    str
        One line with each source's dtype and shape.
    """
    parts = [
        f"{name}: {getattr(value, 'dtype', type(value).__name__)} {numpy.shape(value)}"
        for name, value in batch.items()
    ]
    return f"The batch was {'; '.join(parts)}."


def look_at_first_batch(variables: Iterable[AnyVariable], batch: Batch) -> None:
    """Call what some shared variables want to be called with the first batch.

    State whose shape depends on the data (an accumulator for a vector of unknown length, say)
    has a list of callables in ``tag.first_batch``. Each is called with the variable and the
    batch before the function that updates the variable runs first, once a process.

    Parameters
    ----------
    variables : iterable of SharedVariable
        What the function updates.
    batch : mapping from str to array
        The batch.
    """
    for variable in variables:
        for hook in getattr(variable.tag, "first_batch", ()):
            hook(variable, batch)
