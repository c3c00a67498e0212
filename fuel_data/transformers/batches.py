"""Transformers between examples and batches: `Batch`, `Unpack`, `Cache`, `Padding`."""

import bisect
import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy

from fuel_data.abstract import check_is_stream
from fuel_data.axes import labels_of, with_batch, without_batch
from fuel_data.exceptions import KindMismatchError
from fuel_data.fuels_way import is_ours
from fuel_data.iterator import Stage
from fuel_data.schemes import BatchSizeScheme, ConcatenatedScheme, ConstantScheme, IterationScheme
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import Transformer, check_examples_first, check_sources
from fuel_data.transformers.leftovers import LeftoverTransformer
from fuel_data.transformers.ragged import count_examples, ragged
from fuel_data.transformers.values import known_dtype
from fuel_data.utils.arguments import as_whole_number, whole_number


class Batch(Transformer):
    """Make batches of examples.

    Examples of one shape become an array. Examples of several shapes become an object array of
    arrays, which `Padding` makes an array of.

    Parameters
    ----------
    data_stream : AbstractDataStream
        A stream of examples.
    iteration_scheme : BatchSizeScheme
        How many examples each batch has. When its requests end, so does the epoch.
    strictness : {0, 1, 2}
        What to do with a last batch that has fewer examples than were asked for: 0 keeps it, 1
        leaves it out, 2 raises.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If the stream below gives batches, or the last batch is short and `strictness` is 2.
    """

    _takes_requests = True

    def __init__(
        self,
        data_stream: AbstractDataStream,
        iteration_scheme: IterationScheme,
        strictness: int = 0,
        **kwargs: Any,
    ) -> None:
        check_kind("Batch", data_stream, examples=True)
        _check_scheme("Batch", iteration_scheme)
        if strictness not in (0, 1, 2):
            raise ValueError(f"Batch: `strictness` must be 0, 1 or 2; got {strictness!r}.")
        self.strictness = strictness
        if kwargs.get("axis_labels") is None:
            kwargs["axis_labels"] = with_batch(labels_of(data_stream))
        super().__init__(data_stream, iteration_scheme=iteration_scheme, **kwargs)

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has; None if that is not known."""
        count, _ = self._counts()
        return count

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        _, examples = self._counts()
        return examples

    def _counts(self) -> tuple[int | None, int | None]:
        available = _available(self.data_stream, self.data_stream.num_batches)
        return _counts(self.iteration_scheme, available, self.strictness == 1)

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read the examples of one batch; see `AbstractDataStream.read`."""
        examples = list(islice(stage.child, request))
        if len(examples) < request:
            if not examples or self.strictness == 1:
                raise StopIteration
            if self.strictness == 2:
                raise ValueError(
                    f"Batch: the last batch has {len(examples)} examples instead of {request}. "
                    "Give strictness=0 to keep it, or 1 to leave it out."
                )
        return tuple(stack(column) for column in zip(*examples, strict=True))


def stack(examples: Sequence[Any]) -> numpy.ndarray:
    """Make one array of the examples of a source.

    Parameters
    ----------
    examples : sequence of array
        The examples, at least one.

    Returns
    -------
    array of shape (batch, ...)
        An object array of shape (batch,) if their shapes differ, or if they are bytes: numpy's own
        arrays of bytes lose zeros at the end.
    """
    if any(type(example) is bytes for example in examples):
        return ragged(examples)
    try:
        arrays = [numpy.asarray(example) for example in examples]
    except ValueError as error:
        raise ValueError(
            f"An example of a batch cannot become an array: {error} Make one array of each example "
            "with Mapping."
        ) from error
    if len({array.shape for array in arrays}) > 1:
        return ragged(arrays)
    return numpy.stack(arrays)


class Unpack(LeftoverTransformer):
    """Make examples of batches.

    The position is that of the stream below before the current batch, and an index in the batch.

    Parameters
    ----------
    data_stream : AbstractDataStream
        A stream of batches.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If the stream below gives examples, or the sources of a batch have different lengths.
    """

    def __init__(self, data_stream: AbstractDataStream, **kwargs: Any) -> None:
        check_kind("Unpack", data_stream, examples=False)
        check_examples_first("Unpack", data_stream)
        if kwargs.get("axis_labels") is None:
            kwargs["axis_labels"] = without_batch(labels_of(data_stream))
        super().__init__(data_stream, produces_examples=True, **kwargs)

    @property
    def num_batches(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return self.data_stream.num_examples

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return self.data_stream.num_examples

    def read(self, stage: Stage, request: Any) -> tuple:
        """Give one example of the current batch; see `AbstractDataStream.read`."""
        leftover = self.leftover(stage)
        example = tuple(_own(source[leftover.offset]) for source in leftover.batch)
        leftover.offset += 1
        self.drop_if_empty(stage)
        return example


def _own(example: Any) -> Any:
    # A view would keep its whole batch in memory for as long as the example.
    is_view = isinstance(example, numpy.ndarray) and example.base is not None
    return example.copy() if is_view else example


class Cache(LeftoverTransformer):
    """Make batches of one size of batches of another, for reading much at once.

    The position is that of the stream below before the current batch, and an index in the batch.

    Parameters
    ----------
    data_stream : AbstractDataStream
        A stream of batches.
    iteration_scheme : BatchSizeScheme
        How many examples each batch has. When its requests end, so does the epoch. The last batch
        may have fewer.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If the stream below gives examples, or the sources of a batch have different lengths.
    """

    _takes_requests = True

    def __init__(
        self, data_stream: AbstractDataStream, iteration_scheme: IterationScheme, **kwargs: Any
    ) -> None:
        check_kind("Cache", data_stream, examples=False)
        check_examples_first("Cache", data_stream)
        _check_scheme("Cache", iteration_scheme)
        super().__init__(data_stream, iteration_scheme=iteration_scheme, **kwargs)

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has; None if that is not known."""
        count, _ = self._counts()
        return count

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        _, count = self._counts()
        return count

    def _counts(self) -> tuple[int | None, int | None]:
        available = _available(self.data_stream, self.data_stream.num_examples)
        return _counts(self.iteration_scheme, available, drop_last=False)

    def read(self, stage: Stage, request: Any) -> tuple:
        """Give as many examples as asked for; see `AbstractDataStream.read`."""
        parts = []
        wanted = request
        while wanted:
            try:
                leftover = self.leftover(stage)
            except StopIteration:
                break
            end = min(leftover.offset + wanted, leftover.size)
            parts.append(tuple(source[leftover.offset : end] for source in leftover.batch))
            wanted -= end - leftover.offset
            leftover.offset = end
            self.drop_if_empty(stage)
        if not parts:
            raise StopIteration
        return tuple(_join(column) for column in zip(*parts, strict=True))


def _join(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, numpy.ndarray) for part in parts):
        if len({part.dtype == object for part in parts}) == 1 and _same_shapes(parts):
            return numpy.concatenate(parts)
        return ragged([example for part in parts for example in part])
    return [example for part in parts for example in part]


def _same_shapes(parts: Sequence[numpy.ndarray]) -> bool:
    return len({part.shape[1:] for part in parts}) == 1


class Padding(Transformer):
    """Fill examples of different lengths with zeros, and say with masks what is not filling.

    The first axis of an example, which is the second of the batch, is the one that is filled. Each
    new length is a new shape for whatever is compiled for the batches: `multiple_of` and `lengths`
    keep the shapes few.

    Parameters
    ----------
    data_stream : AbstractDataStream
        A stream of batches.
    mask_sources : sequence of str, optional
        The sources to fill, all by default. Each gets a mask behind it, with ``_mask`` at the end
        of its name.
    mask_dtype : dtype, optional
        Of the masks, ``config.floatX`` by default.
    multiple_of : int, optional
        Fill to a multiple of this length.
    lengths : sequence of int, optional
        Fill to the first of these lengths that suffices.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If an example is longer than all of `lengths`, or examples differ in other axes.
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        mask_sources: Sequence[str] | None = None,
        mask_dtype: Any = None,
        *,
        multiple_of: int | None = None,
        lengths: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        check_kind("Padding", data_stream, examples=False)
        if mask_sources is None:
            mask_sources = data_stream.sources
        check_sources("Padding", "mask_sources", mask_sources, data_stream.sources)
        check_examples_first("Padding", data_stream, mask_sources)
        self.mask_sources = tuple(mask_sources)
        for source in self.mask_sources:
            if f"{source}_mask" in data_stream.sources:
                raise ValueError(
                    f"Padding: the mask of {source!r} would be called '{source}_mask', which the "
                    "stream below has already. Rename one of them."
                )
        mask_dtype = "floatX" if mask_dtype is None else mask_dtype
        self.mask_dtype = known_dtype("Padding", "mask_dtype", mask_dtype)
        self._set_lengths(multiple_of, lengths)
        given_labels = kwargs.get("axis_labels") is not None
        super().__init__(data_stream, **kwargs)
        if not given_labels:
            self._label_masks()

    def _set_lengths(self, multiple_of: int | None, lengths: Sequence[int] | None) -> None:
        if multiple_of is not None and lengths is not None:
            raise ValueError("Padding: give `multiple_of` or `lengths`, not both.")
        self.multiple_of = self.lengths = None
        if multiple_of is not None:
            self.multiple_of = whole_number("Padding", "multiple_of", multiple_of, least=1)
        if lengths is not None:
            given = lengths if isinstance(lengths, Iterable) else ()
            self.lengths = sorted(whole_number("Padding", "lengths", n, least=0) for n in given)
            if not self.lengths:
                raise ValueError(
                    f"Padding: `lengths` must be lengths, at least one; got {lengths!r}."
                )

    def _label_masks(self) -> None:
        if self.axis_labels is None:
            return
        masks: dict[str, tuple[str, ...] | None] = {}
        for source in self.mask_sources:
            labels = self.axis_labels.get(source)
            masks[f"{source}_mask"] = None if labels is None else tuple(labels[:2])
        self.axis_labels = {**self.axis_labels, **masks}

    @property  # type: ignore[misc]
    def sources(self) -> tuple[str, ...]:
        """Names of the items of each batch, masks included."""
        names: list[str] = []
        for source in self.data_stream.sources:
            names.append(source)
            if source in self.mask_sources:
                names.append(f"{source}_mask")
        return tuple(names)

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return self.data_stream.num_examples

    def transform_batch(self, batch: tuple) -> tuple:
        """Fill one batch; see `Transformer.transform_batch`."""
        filled: list[Any] = []
        for source, data in zip(self.data_stream.sources, batch, strict=True):
            if source in self.mask_sources:
                filled.extend(self._fill(source, data))
            else:
                filled.append(data)
        return tuple(filled)

    def _fill(self, source: str, data: Any) -> tuple[numpy.ndarray, numpy.ndarray]:
        way_out = "Leave it out of `mask_sources`."
        if not count_examples("Padding", f"the source {source!r}", data, way_out):
            raise ValueError(
                f"Padding: a batch of the source {source!r} is empty, so that there is no length "
                "to fill it to. Leave it out with Filter."
            )
        examples = [numpy.asarray(example) for example in data]
        rest = self._check_examples(source, examples)
        length = self._length(source, max(len(example) for example in examples))
        # Where a list has no elements, numpy takes it for one of floats.
        filled = [example for example in examples if example.size] or examples
        dtype = numpy.result_type(*{example.dtype for example in filled})
        padded = numpy.zeros((len(examples), length, *rest), dtype=dtype)
        mask = numpy.zeros((len(examples), length), dtype=self.mask_dtype)
        for number, example in enumerate(examples):
            padded[number, : len(example)] = example
            mask[number, : len(example)] = 1
        return padded, mask

    @staticmethod
    def _check_examples(source: str, examples: list[numpy.ndarray]) -> tuple[int, ...]:
        if any(example.ndim == 0 for example in examples):
            raise ValueError(
                f"Padding: the source {source!r} has no axis to fill. Leave it out of "
                "`mask_sources`."
            )
        if any(example.dtype == object for example in examples):
            raise ValueError(
                f"Padding: the examples of the source {source!r} must be arrays of numbers or "
                "text, not of objects, as where the elements of an example differ in length too. "
                "Make one array of each example with Mapping, or leave it out of `mask_sources`."
            )
        rest = {example.shape[1:] for example in examples}
        if len(rest) > 1:
            raise ValueError(
                f"Padding: the examples of the source {source!r} must differ in their first axis "
                f"only; got the shapes {sorted({example.shape for example in examples})}."
            )
        return rest.pop()

    def _length(self, source: str, needed: int) -> int:
        if self.multiple_of is not None:
            return -(-needed // self.multiple_of) * self.multiple_of
        if self.lengths is None:
            return needed
        place = bisect.bisect_left(self.lengths, needed)
        if place == len(self.lengths):
            raise ValueError(
                f"Padding: an example of the source {source!r} is {needed} long, longer than all "
                f"of `lengths`: {self.lengths}. Add a length, or filter long examples out."
            )
        return self.lengths[place]


def check_kind(who: str, stream: AbstractDataStream, *, examples: bool) -> None:
    """Refuse a stream of batches where examples are needed, or the other way round.

    Parameters
    ----------
    who : str
        The transformer, for the error.
    stream : AbstractDataStream
        The stream below.
    examples : bool
        Whether examples are needed.

    Raises
    ------
    KindMismatchError
        If it gives the other.
    TypeError
        If it is no stream.
    """
    check_is_stream(who, "data_stream", stream)
    if stream.produces_examples != examples:
        needed, found = ("examples", "batches") if examples else ("batches", "examples")
        raise KindMismatchError(
            f"{who}: `data_stream` must give {needed}; got {stream!r}, which gives {found}. Put "
            f"{'Unpack' if examples else 'Batch'} between them."
        )


def _check_scheme(who: str, scheme: Any) -> None:
    if _gives_sizes(scheme):
        return
    way_out = "" if as_whole_number(scheme) is None else f" Write ConstantScheme({scheme})."
    raise ValueError(
        f"{who}: `iteration_scheme` must ask for numbers of examples, as ConstantScheme does; got "
        f"{scheme!r}.{way_out}"
    )


def _gives_sizes(scheme: Any) -> bool:
    if isinstance(scheme, ConcatenatedScheme):
        return all(map(_gives_sizes, scheme.schemes))
    if isinstance(scheme, BatchSizeScheme) or not is_ours(type(scheme)):
        # What a user's own class asks for is not known.
        return not getattr(scheme, "requests_examples", True)
    return False


def _available(stream: Any, count: int | None) -> float | None:
    return math.inf if getattr(stream, "_is_endless", False) else count


def _counts(scheme: Any, available: Any, drop_last: bool) -> tuple[int | None, int | None]:
    """Count the batches, and the examples in them, that a scheme makes of examples."""
    if available is None or not isinstance(scheme, ConstantScheme):
        return None, None
    if scheme.num_examples is not None and scheme.num_examples <= available:
        return scheme.num_requests, scheme.num_examples
    if available == math.inf:
        return None, None
    full, rest = divmod(available, scheme.batch_size)
    if drop_last or not rest:
        return full, full * scheme.batch_size
    return full + 1, available
