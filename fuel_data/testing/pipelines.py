"""One stream of every kind, and every transformer over every kind of stream.

`LEAVES` are streams over data sets, `TRANSFORMERS` are ways to put one transformer over a stream,
and `compose` puts several over a leaf. `STREAMS` is the list that the contract is checked over: a
newcomer adds a line to one of them.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from fuel_data import transformers
from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.schemes import (
    ConcatenatedScheme,
    ConstantScheme,
    SampledExampleScheme,
    SampledScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    WeightedExampleScheme,
    WeightedScheme,
)
from fuel_data.streams import AbstractDataStream, DataStream
from fuel_data.testing.cases import StreamCase, TransformerCase
from fuel_data.testing.images import IMAGES, WINDOWS
from fuel_data.testing.orders import BUCKETS, MIXED_BY_STEP, ORDERS, repeated_without_end
from fuel_data.transformers.ragged import each_element


def images(num_examples: int) -> IndexableDataset:
    """Make a data set of small images with labelled axes.

    Parameters
    ----------
    num_examples : int
        How many.

    Returns
    -------
    IndexableDataset
        ``features``, float64 of shape (batch, height 2, width 3), and ``targets``, uint8 (batch,).
    """
    features = numpy.arange(6.0 * num_examples).reshape(num_examples, 2, 3)
    targets = (numpy.arange(num_examples) * 7 % 256).astype("uint8")
    labels = {"features": ("batch", "height", "width"), "targets": ("batch",)}
    return IndexableDataset({"features": features, "targets": targets}, axis_labels=labels)


def sentences(num_examples: int) -> IndexableDataset:
    """Make a data set of sequences of different lengths.

    Parameters
    ----------
    num_examples : int
        How many.

    Returns
    -------
    IndexableDataset
        ``features``, an object array of float32 arrays of shape (time, feature 2), and ``targets``,
        a list of numbers.
    """
    lengths = [1 + number * 5 % 4 for number in range(num_examples)]
    features = numpy.empty(num_examples, dtype=object)
    for number, length in enumerate(lengths):
        features[number] = numpy.full((length, 2), number, dtype="float32")
    labels = {"features": ("batch", "time", "feature"), "targets": ("batch",)}
    data = {"features": features, "targets": list(range(num_examples))}
    return IndexableDataset(data, axis_labels=labels)


def numbers(num_examples: int) -> Iterator[int]:
    """Count, as something that can only be read from the front to the end.

    Parameters
    ----------
    num_examples : int
        How far.

    Yields
    ------
    int
    """
    yield from range(num_examples)


def _iterable(num_examples: int) -> AbstractDataStream:
    iterables = {
        "features": functools.partial(numbers, num_examples),
        "targets": range(num_examples),
    }
    return DataStream(IterableDataset(iterables))


def _over(dataset: Callable, scheme: Callable) -> Callable[[int], AbstractDataStream]:
    def build(num_examples: int) -> AbstractDataStream:
        return DataStream(dataset(num_examples), iteration_scheme=scheme(num_examples))

    return build


def _user_rng(num_examples: int) -> ShuffledScheme:
    return ShuffledScheme(num_examples, 3, rng=numpy.random.RandomState(5))


def _user_generator(num_examples: int) -> ShuffledExampleScheme:
    return ShuffledExampleScheme(num_examples, rng=numpy.random.default_rng(5))


def _concatenated(num_examples: int) -> ConcatenatedScheme:
    half = num_examples // 2
    return ConcatenatedScheme(
        [ShuffledScheme(half, 2), SequentialScheme(range(half, num_examples), 3)]
    )


def _sorted(num_examples: int) -> ShuffledScheme:
    return ShuffledScheme(num_examples, 4, sorted_indices=True, drop_last=True, seed=3)


LEAVES = [
    StreamCase("sequential examples", _over(images, SequentialExampleScheme)),
    StreamCase("shuffled examples", _over(images, ShuffledExampleScheme)),
    StreamCase("sequential batches", _over(images, lambda n: SequentialScheme(n, 3))),
    StreamCase("shuffled batches", _over(images, lambda n: ShuffledScheme(n, 3))),
    StreamCase("sorted batches", _over(images, _sorted)),
    StreamCase("chosen examples", _over(images, lambda n: ShuffledScheme(range(1, n, 2), 2))),
    StreamCase("concatenated schemes", _over(images, _concatenated)),
    StreamCase("sampled batches", _over(images, lambda n: SampledScheme(n, 3, num_examples=10))),
    StreamCase("sampled examples", _over(images, lambda n: SampledExampleScheme(n, 10))),
    StreamCase("weighted batches", _over(images, lambda n: WeightedScheme(range(n), 3, 8))),
    StreamCase("weighted examples", _over(images, lambda n: WeightedExampleScheme(range(n), 8))),
    StreamCase("ragged batches", _over(sentences, lambda n: ShuffledScheme(n, 4))),
    StreamCase("ragged examples", _over(sentences, ShuffledExampleScheme)),
    StreamCase("iterable", _iterable),
    StreamCase("rng of the user", _over(images, _user_rng), shares_rng=True),
    StreamCase("generator of the user", _over(images, _user_generator), shares_rng=True),
]


def _jitter(data: tuple, rng: numpy.random.Generator) -> tuple:
    def noisy(array: numpy.ndarray) -> numpy.ndarray:
        return array + rng.normal(size=array.shape)

    return (each_element(noisy, data[0]), *data[1:])


class DropsSome:
    """A function that leaves examples or batches out, by a generator that it holds.

    Parameters
    ----------
    seed : int
        Seed of the generator.
    """

    def __init__(self, seed: int) -> None:
        self.rng = numpy.random.RandomState(seed)

    def __call__(self, data: tuple) -> bool:
        """Draw whether to keep an item."""
        return self.rng.uniform() < 0.8


def _keeps(data: tuple) -> bool:
    last = data[-1] if isinstance(data[-1], list) else numpy.asarray(data[-1]).tolist()
    return "3" not in str(last)


def _doubled(data: tuple) -> tuple:
    return (data[0],)


def _doubled_by_name(data: dict) -> dict:
    return {"copy": next(iter(data.values()))}


def _same(data: tuple) -> tuple:
    return data


def _last_number(example: tuple) -> float:
    return -float(numpy.sum(example[-1]))


def _map(function: Callable, **arguments: Any) -> Callable:
    return lambda stream: transformers.Mapping(stream, function, **arguments)


def _twice(stream: AbstractDataStream) -> AbstractDataStream:
    left, right = (
        transformers.Rename(stream, {source: f"{side}_{source}" for source in stream.sources})
        for side in ("left", "right")
    )
    return transformers.Merge([_map(_jitter, random=True)(left), right])


def _renamed(stream: AbstractDataStream) -> AbstractDataStream:
    return transformers.Rename(stream, {stream.sources[0]: f"{stream.sources[0]}_renamed"})


def _first_last(stream: AbstractDataStream) -> AbstractDataStream:
    # The one that functions of this module look at must stay last.
    return transformers.FilterSources(stream, [stream.sources[0], stream.sources[-1]])


def _batch(size: int, strictness: int = 0, **limit: int) -> Callable:
    scheme = ConstantScheme(size, **limit)
    return lambda stream: transformers.Batch(stream, scheme, strictness=strictness)


def _cache(size: int) -> Callable:
    return lambda stream: transformers.Cache(stream, ConstantScheme(size))


def _padded(**arguments: Any) -> Callable:
    def over(stream: AbstractDataStream) -> AbstractDataStream:
        return transformers.Padding(stream, mask_sources=[stream.sources[0]], **arguments)

    return over


TRANSFORMERS = [
    TransformerCase("identity", _map(_same)),
    TransformerCase("added source", _map(_doubled, add_sources=("copy",))),
    TransformerCase(
        "added by name", _map(_doubled_by_name, add_sources=("copy",), mapping_accepts=dict)
    ),
    TransformerCase("random", _map(_jitter, random=True), draws=True),
    TransformerCase("random with a seed", _map(_jitter, random=True, seed=8), draws=True),
    TransformerCase("filter", lambda stream: transformers.Filter(stream, _keeps)),
    TransformerCase("first and last source", _first_last),
    TransformerCase("renamed", _renamed),
    TransformerCase("scaled", lambda stream: transformers.ScaleAndShift(stream, 0.5, -1)),
    TransformerCase("cast", lambda stream: transformers.Cast(stream, "float32")),
    TransformerCase("floatX", transformers.ForceFloatX),
    TransformerCase("flat", lambda s: transformers.Flatten(s, which_sources=s.sources[:1])),
    TransformerCase("merged with itself", _twice, reads_twice=True, draws=True, in_step=True),
    TransformerCase("batches of 3", _batch(3), kind="examples"),
    TransformerCase("whole batches of 2", _batch(2, strictness=1), kind="examples"),
    TransformerCase("limited batches", _batch(2, num_examples=5), kind="examples"),
    TransformerCase("unpacked", transformers.Unpack, kind="batches"),
    TransformerCase("smaller from cache", _cache(2), kind="batches"),
    TransformerCase("larger from cache", _cache(7), kind="batches"),
    TransformerCase("sorted", _map(transformers.SortMapping(_last_number)), kind="batches"),
    *ORDERS,
]

PADDINGS = [
    TransformerCase("padded", _padded(), kind="batches"),
    TransformerCase("padded to a multiple", _padded(multiple_of=4), kind="batches"),
    TransformerCase("padded to lengths", _padded(lengths=[2, 8]), kind="batches"),
]


def compose(leaf: AbstractDataStream, cases: Sequence[TransformerCase]) -> AbstractDataStream:
    """Put transformers over a stream, leaving out those that do not fit where they stand.

    Parameters
    ----------
    leaf : AbstractDataStream
        The stream below all.
    cases : sequence of TransformerCase
        From below to above.

    Returns
    -------
    AbstractDataStream
    """
    stream = leaf
    used: list[TransformerCase] = []
    for case in cases:
        kind = "examples" if stream.produces_examples else "batches"
        first = stream.sources[0]
        adds_again = (case.name.startswith("added") and "copy" in stream.sources) or (
            case.name.startswith("padded") and f"{first}_mask" in stream.sources
        )
        is_again = case.once and case in used
        differs = case.in_step and any(below.draws for below in used)
        if case.kind in ("any", kind) and not (adds_again or is_again or differs):
            stream = case.over(stream)
            used.append(case)
    return stream


def _leaf(name: str) -> StreamCase:
    return next(case for case in LEAVES if case.name == name)


def _case(leaf: StreamCase, *cases: TransformerCase, shares_rng: bool = False) -> StreamCase:
    def build(num_examples: int) -> AbstractDataStream:
        return compose(leaf.build(num_examples), cases)

    name = ", ".join([leaf.name, *(case.name for case in cases)])
    return StreamCase(name, build, shares_rng or leaf.shares_rng)


def _over_its_kind(case: TransformerCase) -> StreamCase:
    leaf = "shuffled examples" if case.kind == "examples" else "shuffled batches"
    return _case(_leaf(leaf), case)


def _named(name: str) -> TransformerCase:
    return next(case for case in TRANSFORMERS if case.name == name)


def _dropping(num_examples: int) -> AbstractDataStream:
    leaf = _leaf("shuffled batches").build(num_examples)
    return transformers.Unpack(transformers.Filter(leaf, DropsSome(seed=27)))


STREAMS = [
    *LEAVES,
    *map(_over_its_kind, TRANSFORMERS),
    *(_case(_leaf("ragged batches"), case) for case in PADDINGS),
    _case(_leaf("ragged examples"), _named("batches of 3"), PADDINGS[0]),
    _case(_leaf("rng of the user"), _named("unpacked"), _named("batches of 3")),
    _case(_leaf("shuffled batches"), *map(_named, ("unpacked", "filter", "batches of 3"))),
    _case(_leaf("iterable"), *map(_named, ("batches of 3", "random", "larger from cache"))),
    *(_case(_leaf("ragged examples"), case, PADDINGS[0]) for case in BUCKETS),
    _case(_leaf("rng of the user"), *map(_named, ("unpacked", "shuffled", "bucketed"))),
    _case(_leaf("iterable"), *map(_named, ("shuffled", "repeated", "bucketed", "unpacked"))),
    _case(_leaf("ragged batches"), *map(_named, ("interleaved", "unpacked", "every third"))),
    _case(_leaf("shuffled batches"), MIXED_BY_STEP),
    *IMAGES,
    *WINDOWS,
    StreamCase("repeated without end", repeated_without_end),
    StreamCase("function with a generator", _dropping, shares_rng=True),
]
