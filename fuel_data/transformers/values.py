"""Transformers of the values of each source: `Flatten`, `ScaleAndShift`, `Cast`, `ForceFloatX`."""

import contextlib
from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any

import numpy

from fuel_data.axes import BATCH, FEATURE
from fuel_data.config_parser import config
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import (
    AgnosticSourcewiseTransformer,
    SourcewiseTransformer,
    check_examples_first,
)
from fuel_data.transformers.ragged import each_element, ragged
from fuel_data.utils.names import nearest_name


class Flatten(SourcewiseTransformer):
    """Make one axis, ``'feature'``, of all axes of an example.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    which_sources : sequence of str, optional
        The sources to flatten, all by default.
    **kwargs
        See `Transformer`.
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        which_sources: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_stream, which_sources=which_sources, **kwargs)
        if not self.produces_examples:
            check_examples_first("Flatten", data_stream, self.which_sources)
        if kwargs.get("axis_labels") is None and self.axis_labels is not None:
            flat = (FEATURE,) if self.produces_examples else (BATCH, FEATURE)
            self.axis_labels = {
                source: flat if source in self.which_sources else labels
                for source, labels in self.axis_labels.items()
            }

    def transform_source_example(self, source_example: Any, source_name: str) -> numpy.ndarray:
        """Flatten one example to the shape (feature,)."""
        with _in_words(self, source_name, source_example, "be flattened"):
            return numpy.asarray(source_example).reshape(-1)

    def transform_source_batch(self, source_batch: Any, source_name: str) -> Any:
        """Flatten a batch to the shape (batch, feature), or each example of a ragged one."""
        with _in_words(self, source_name, source_batch, "be flattened"):
            return self._flatten_batch(source_batch)

    def _flatten_batch(self, source_batch: Any) -> Any:
        if isinstance(source_batch, numpy.ndarray) and source_batch.dtype != object:
            # Not -1: it cannot be inferred where an axis has no length.
            features = int(numpy.prod(source_batch.shape[1:]))
            return source_batch.reshape(len(source_batch), features)
        flat = each_element(lambda array: array, source_batch)
        if isinstance(flat, numpy.ndarray) and flat.dtype != object:
            return self._flatten_batch(flat)
        return each_element(lambda array: array.reshape(-1), flat)


class ScaleAndShift(AgnosticSourcewiseTransformer):
    """Give ``data * scale + shift``.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    scale, shift : float or array
        Numbers do not widen float32 data; arrays do as numpy has it. Whole numbers times a whole
        `scale` are reckoned as int64: a uint8 does not overflow.
    which_sources : sequence of str, optional
        The sources to change, all by default.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If `scale` or `shift` is no number; when an item is read, if a source holds none.
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        scale: Any,
        shift: Any,
        which_sources: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_stream, which_sources=which_sources, **kwargs)
        self.scale = _number_or_array("scale", scale)
        self.shift = _number_or_array("shift", shift)
        self._has_whole_scale = _is_whole(self.scale)

    def transform_any_source(self, source_data: Any, source_name: str) -> Any:
        """Scale and shift one source, keeping its shape."""
        with _in_words(self, source_name, source_data, "be scaled and shifted"):
            return each_element(self._scale_and_shift, source_data)

    def _scale_and_shift(self, array: numpy.ndarray) -> numpy.ndarray:
        if self._has_whole_scale and _is_whole(array):
            array = array.astype(numpy.promote_types(array.dtype, numpy.int64))
        return array * self.scale + self.shift


def _is_whole(value: Any) -> bool:
    return numpy.asarray(value).dtype.kind in "biu"


def _number_or_array(name: str, value: Any) -> Any:
    if not _is_of_numbers(value):
        raise ValueError(
            f"ScaleAndShift: `{name}` must be a number or an array of numbers; got {value!r}."
        )
    if isinstance(value, (numpy.generic, numpy.ndarray)) and value.ndim == 0:
        # A 0-d float64 would widen float32 data under numpy 2 but not under numpy 1.
        return value.item()
    return value


def _is_of_numbers(value: Any) -> bool:
    try:
        kind = numpy.asarray(value).dtype.kind
    except ValueError:  # lists of different lengths
        return False
    # Fractions become objects, and a shift may be a span of time.
    is_object = isinstance(value, (Number, numpy.ndarray))
    return kind in "biufcm" or (kind == "O" and is_object)


class Cast(AgnosticSourcewiseTransformer):
    """Change the dtype.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    dtype : dtype or str
        The new dtype; ``'floatX'`` is ``config.floatX``.
    which_sources : sequence of str, optional
        The sources to change, all by default.
    **kwargs
        See `Transformer`.

    Raises
    ------
    TypeError
        If numpy knows no such dtype.
    ValueError
        When an item is read, if a source cannot be cast, or complex numbers were to become real.
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        dtype: Any,
        which_sources: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_stream, which_sources=which_sources, **kwargs)
        self.dtype = known_dtype("Cast", "dtype", dtype)

    def transform_any_source(self, source_data: Any, source_name: str) -> Any:
        """Cast one source, keeping its shape."""
        with _in_words(self, source_name, source_data, f"become {self.dtype}"):
            return each_element(self._cast, source_data)

    def _cast(self, array: numpy.ndarray) -> numpy.ndarray:
        if array.dtype.kind == "c" and self.dtype.kind not in "cO":
            raise ValueError("its imaginary parts would be lost")
        return array.astype(self.dtype)


def known_dtype(who: str, argument: str, dtype: Any) -> numpy.dtype:
    """Make a dtype of an argument.

    Parameters
    ----------
    who : str
        The transformer, for the error.
    argument : str
        The argument, for the error.
    dtype : dtype or str
        What the user handed in; ``'floatX'`` is ``config.floatX``.

    Returns
    -------
    dtype

    Raises
    ------
    TypeError
        If numpy knows no such dtype.
    """
    try:
        return numpy.dtype(config.floatX if dtype == "floatX" else dtype)
    except (TypeError, ValueError) as error:
        names = {numpy.dtype(code).name for code in numpy.typecodes["All"]}
        raise TypeError(
            f"{who}: `{argument}` must be a dtype of numpy or 'floatX'; got {dtype!r}."
            f"{nearest_name(str(dtype), {*names, 'floatX'})}"
        ) from error


class ForceFloatX(AgnosticSourcewiseTransformer):
    """Cast what is an array of floating point numbers to ``config.floatX``.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    which_sources : sequence of str, optional
        The sources to look at, all by default.
    **kwargs
        See `Transformer`.
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        which_sources: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_stream, which_sources=which_sources, **kwargs)
        self.dtype = numpy.dtype(config.floatX)

    def transform_any_source(self, source_data: Any, source_name: str) -> Any:
        """Cast one source if it holds floating point numbers, keeping its shape."""
        is_array = isinstance(source_data, numpy.ndarray)
        if is_array and source_data.dtype.kind == "O" and source_data.ndim > 0:
            return ragged([self._cast(element) for element in source_data])
        return self._cast(source_data)

    def _cast(self, data: Any) -> Any:
        is_float = isinstance(data, (numpy.ndarray, numpy.generic)) and data.dtype.kind == "f"
        return data.astype(self.dtype, copy=False) if is_float else data


@contextlib.contextmanager
def _in_words(stream: SourcewiseTransformer, source: str, data: Any, what: str) -> Iterator[None]:
    """Name transformer, source and kind of data where numpy cannot do what is asked."""
    try:
        yield
    except (TypeError, ValueError) as error:
        others = tuple(name for name in stream.which_sources if name != source)
        # A TypeError of numpy says no more than the dtype does.
        reason = f": {error}" if isinstance(error, ValueError) else ""
        leave_out = f"Leave it out by which_sources={others}, or map" if others else "Map"
        raise ValueError(
            f"{type(stream).__name__}: the source {source!r} cannot {what}, it is "
            f"{_describe(data)}{reason}. {leave_out} it to numbers first."
        ) from error


def _describe(data: Any) -> str:
    dtype = getattr(data, "dtype", None)
    if dtype is not None and not dtype.hasobject:
        return f"of dtype {dtype}"
    is_many = isinstance(data, (list, tuple)) or getattr(data, "ndim", 0) > 0
    if is_many and len(data):
        return f"{type(data).__name__} of {type(data[0]).__name__}"
    return f"of type {type(data).__name__}"
