"""What a person wants to see of a stream: its parts, and what is in it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy

from fuel_data.axes import examples_first

_MAX_SHOWN = 60
_BAR_WIDTH = 30
_MAX_BARS = 10


def draw(stream: Any, left_out: tuple[str, ...]) -> str:
    """Draw a pipeline, one line for each stream, in the order in which data pass.

    Parameters
    ----------
    stream : AbstractDataStream
        The top of the pipeline.
    left_out : tuple of str
        Names of attributes that are no arguments of a stream.

    Returns
    -------
    str
        What is read from stands above what reads from it.

    Examples
    --------
    >>> import numpy
    >>> from fuel_data.datasets import IndexableDataset
    >>> from fuel_data.schemes import ConstantScheme
    >>> from fuel_data.transformers import Batch, Rename
    >>> examples = IndexableDataset({"x": numpy.arange(5)}).get_example_stream()
    >>> print(Batch(Rename(examples, {"x": "y"}), ConstantScheme(2)))
    DataStream(IndexableDataset(x, 5 examples), SequentialExampleScheme(examples=5))
    | Rename(names={'x': 'y'})
    | Batch(ConstantScheme(batch_size=2, times=None, num_examples=None), strictness=0)
        gives 3 batches of y
    """
    return "\n".join([*_draw_parts(stream, left_out), f"    gives {_describe_items(stream)}"])


def _draw_parts(stream: Any, left_out: tuple[str, ...]) -> Iterator[str]:
    # A stream of another library has neither parts nor arguments that we know of.
    children = stream._children() if hasattr(stream, "_children") else ()
    if not children:
        yield repr(stream)
        return
    if len(children) == 1:
        yield from _draw_parts(children[0], left_out)
    else:
        for number, child in enumerate(children):
            first, *rest = _draw_parts(child, left_out)
            yield f"{number}: {first}"
            yield from (f"   {line}" for line in rest)
    scheme = getattr(stream, "iteration_scheme", None)
    shown = [] if scheme is None else [repr(scheme)]
    shown += [
        f"{name}={_shorten(value)}"
        for name, value in vars(stream).items()
        if not name.startswith("_") and name not in (*left_out, "iteration_scheme")
    ]
    yield f"| {type(stream).__name__}({', '.join(shown)})"


def _shorten(value: Any) -> str:
    text = getattr(value, "__qualname__", None) or repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _describe_items(stream: Any) -> str:
    count, kind = stream.num_batches, "examples" if stream.produces_examples else "batches"
    sources = []
    for source in stream.sources:
        axes = (stream.axis_labels or {}).get(source)
        sources.append(source if axes is None else f"{source} ({', '.join(axes)})")
    return f"{'' if count is None else f'{count} '}{kind} of {', '.join(sources)}"


@dataclass
class SourceReport:
    """What is in one source of a stream.

    Parameters
    ----------
    dtypes : list of str
        Types of the elements; ``str`` for text.
    shape : tuple of int or None
        Shape of an example; None for an axis along which examples differ. None as a whole if they
        differ in their number of axes.
    axis_labels : tuple of str or None
        Names of the axes, of batches if the stream gives batches.
    minimum, maximum : float or None
        Range of the finite numbers; None if there are none.
    num_not_finite : int
        How many elements are NaN or infinite.
    lengths : dict of int to int
        How many examples have which length: along their first axis, or of text. Empty for scalars.
    """

    dtypes: list[str] = field(default_factory=list)
    shape: tuple[int | None, ...] | None = None
    axis_labels: tuple[str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    num_not_finite: int = 0
    lengths: dict[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.dtypes:
            return "nothing was read"
        shape = "shapes differ" if self.shape is None else f"shape {_show_shape(self.shape)}"
        parts = [" or ".join(self.dtypes), shape]
        if self.minimum is not None:
            parts.append(f"{self.minimum:g} to {self.maximum:g}")
        if self.num_not_finite:
            parts.append(f"{self.num_not_finite} not finite")
        labels = self.axis_labels
        parts.append("axes not labelled" if labels is None else f"axes ({', '.join(labels)})")
        lines = [", ".join(parts)]
        if len(self.lengths) > 1:
            lines += draw_histogram(self.lengths)
        return "\n    ".join(lines)


def _show_shape(shape: tuple[int | None, ...]) -> str:
    shown = ", ".join("?" if size is None else str(size) for size in shape)
    return f"({shown},)" if len(shape) == 1 else f"({shown})"


@dataclass
class Report:
    """What is in a stream; see `AbstractDataStream.report`.

    Parameters
    ----------
    pipeline : str
        The stream, drawn.
    num_items : int
        How many examples or batches were read.
    num_examples : int
        How many examples were in them.
    is_whole : bool
        Whether that was the whole epoch.
    sources : dict of str to SourceReport
        What is in each source.
    notes : list of (str, dict)
        What the transformers have noticed, from below to above; see `AbstractDataStream.notes`.
    """

    pipeline: str
    num_items: int
    num_examples: int
    is_whole: bool
    sources: dict[str, SourceReport]
    notes: list[tuple[str, dict[str, Any]]]

    def __str__(self) -> str:
        extent = "the whole epoch" if self.is_whole else "not the whole epoch"
        lines = [
            self.pipeline,
            f"read: {self.num_items} items, {self.num_examples} examples, {extent}",
        ]
        lines += [f"{source}: {found}" for source, found in self.sources.items()]
        for stream, notes in self.notes:
            lines.append(f"{stream}:")
            lines += [f"    {name}: {_show_note(value)}" for name, value in notes.items()]
        return "\n".join(lines)


def _show_note(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_show_note(item)}" for name, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_show_note, value)) or "none"
    return str(value)


def report_on(stream: Any, iterator: Any, num_items: int | None) -> Report:
    """Read items and say what is in them.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream.
    iterator : DataIterator
        One of its epochs, at the beginning.
    num_items : int or None
        How many items are read at most, None for the whole epoch.

    Returns
    -------
    Report
    """
    if num_items is not None and num_items < 0:
        raise ValueError(f"report: `num_items` must be at least 0 or None; got {num_items}.")
    labels: Mapping[str, Any] = stream.axis_labels or {}
    summaries = [_Summary() for _ in stream.sources]
    num_read = num_examples = 0
    for item in islice(iterator, num_items):
        num_read += 1
        if stream.produces_examples:
            batch = [[example] for example in item]
        else:
            batch = [
                examples_first(data, labels.get(source))
                for source, data in zip(stream.sources, item, strict=True)
            ]
        num_examples += len(batch[0]) if batch else 0
        for summary, examples in zip(summaries, batch, strict=True):
            summary.add(examples)
    is_whole = num_items is None or num_read < num_items or stream.num_batches == num_read
    sources = {
        source: summary.finish(labels.get(source))
        for source, summary in zip(stream.sources, summaries, strict=True)
    }
    # An iterator of another library makes no notes.
    notes = iterator.notes() if hasattr(iterator, "notes") else []
    return Report(str(stream), num_read, num_examples, is_whole, sources, notes)


class _Summary:
    """What the examples of one source have shown so far."""

    def __init__(self) -> None:
        self.dtypes: Counter[str] = Counter()
        self.shapes: set[tuple[int, ...]] = set()
        self.lengths: Counter[int] = Counter()
        self.extremes: list[float] = []
        self.num_not_finite = 0

    def add(self, examples: Any) -> None:
        if isinstance(examples, numpy.ndarray) and examples.dtype.kind in "biufc":
            self._add_array(examples, examples.shape[1:], len(examples))
            return
        for example in examples:
            if isinstance(example, (str, bytes)):
                self.dtypes[type(example).__name__] += 1
                self.shapes.add(())
                self.lengths[len(example)] += 1
            else:
                array = numpy.asarray(example)
                self._add_array(array, array.shape, 1)

    def _add_array(self, array: numpy.ndarray, shape: tuple[int, ...], count: int) -> None:
        self.dtypes[str(array.dtype)] += 1
        self.shapes.add(shape)
        if shape:
            self.lengths[shape[0]] += count
        if array.dtype.kind in "biuf" and array.size:
            finite = array
            if array.dtype.kind == "f":
                finite = array[numpy.isfinite(array)]
                self.num_not_finite += array.size - finite.size
            if finite.size:
                self.extremes = [
                    min([*self.extremes, float(finite.min())]),
                    max([*self.extremes, float(finite.max())]),
                ]

    def finish(self, axis_labels: Any) -> SourceReport:
        minimum, maximum = self.extremes or (None, None)
        return SourceReport(
            dtypes=sorted(self.dtypes),
            shape=_common_shape(self.shapes),
            axis_labels=None if axis_labels is None else tuple(axis_labels),
            minimum=minimum,
            maximum=maximum,
            num_not_finite=self.num_not_finite,
            lengths=dict(sorted(self.lengths.items())),
        )


def _common_shape(shapes: Iterable[tuple[int, ...]]) -> tuple[int | None, ...] | None:
    shapes = list(shapes)
    if len({len(shape) for shape in shapes}) != 1:
        return None
    sizes_by_axis = (set(sizes) for sizes in zip(*shapes, strict=True))
    return tuple(sizes.pop() if len(sizes) == 1 else None for sizes in sizes_by_axis)


def draw_histogram(lengths: Mapping[int, int]) -> list[str]:
    """Draw how many examples have which length.

    Parameters
    ----------
    lengths : dict of int to int
        Counts by length, at least one.

    Returns
    -------
    list of str
        At most ten lines, each for a range of lengths.

    Examples
    --------
    >>> print("\\n".join(draw_histogram({1: 4, 2: 8, 30: 2})))
    length 1 to 3: ############################## 12
    length 28 to 30: ##### 2
    """
    shortest, longest = min(lengths), max(lengths)
    width = -(-(longest - shortest + 1) // _MAX_BARS)
    counts: Counter[int] = Counter()
    for length, count in lengths.items():
        counts[(length - shortest) // width] += count
    lines = []
    for number in sorted(counts):
        first = shortest + number * width
        last = min(first + width - 1, longest)
        shown = f"{first}" if first == last else f"{first} to {last}"
        bar = "#" * max(1, round(_BAR_WIDTH * counts[number] / max(counts.values())))
        lines.append(f"length {shown}: {bar} {counts[number]}")
    return lines
