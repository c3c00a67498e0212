"""Checks of the contract of streams.

Each takes `build`, a function from a number of examples to a new stream over about that many. It
must build the same stream each time. A check says what is wrong by an AssertionError.
"""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from fuel_data.state import join_arrays, split_arrays
from fuel_data.streams import AbstractDataStream

Build = Callable[[int], AbstractDataStream]

_NUM_EXAMPLES = 11


def same_data(left: Any, right: Any) -> bool:
    """Tell whether two items are the same bit by bit.

    Parameters
    ----------
    left, right : object
        Arrays, numbers, text, and tuples, lists and dicts of them.

    Returns
    -------
    bool
        False if types, dtypes, shapes or any bits differ.
    """
    if type(left) is not type(right):
        return False
    if isinstance(left, (numpy.ndarray, numpy.generic)):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        if left.dtype == object:
            return all(map(same_data, left.ravel(), right.ravel()))
        return left.tobytes() == right.tobytes()
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(same_data, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same_data(left[k], right[k]) for k in left)
    return bool(left == right)


def check_resumption(
    build: Build,
    num_epochs: int = 2,
    num_examples: int = _NUM_EXAMPLES,
    *,
    by_pickle: bool = True,
) -> None:
    """Check that saving and restoring at any step changes nothing that follows.

    The position is saved before the first item, after each and after the end of each epoch: by
    pickle, and as plain data given to a newly built stream. The rest of the epoch and all later
    epochs must be the same bit by bit.

    Parameters
    ----------
    build : function from int to AbstractDataStream
        Builds the stream.
    num_epochs : int
        How many epochs are read.
    num_examples : int
        What `build` is given.
    by_pickle : bool
        Whether to pickle too. What cannot be pickled, such as a lambda, can still have a state.

    Raises
    ------
    AssertionError
        If something differs.
    """
    reference = _read_epochs(build(num_examples), num_epochs)
    stream = build(num_examples)
    for epoch in range(num_epochs):
        iterator = stream.get_epoch_iterator()
        for step in range(len(reference[epoch]) + 2):
            where = f"saved in epoch {epoch} at step {step}"
            for way, restored in _restore(iterator, build, num_examples, by_pickle):
                rest = _read_on(restored, num_epochs)
                expected = [reference[epoch][step:], *reference[epoch + 1 :]]
                assert same_data(rest, expected), f"{way}, {where}: the rest is not the same"
            item = next(iterator, None)
            given = reference[epoch][step : step + 1]
            assert same_data(item, given[0] if given else None), f"saving disturbed, {where}"


def _restore(iterator: Any, build: Build, num_examples: int, by_pickle: bool) -> Iterator:
    state = join_arrays(*split_arrays(iterator.get_state()))
    if by_pickle:
        # First, because restoring a state below moves generators on that streams may share.
        yield "by pickle", pickle.loads(pickle.dumps(iterator))
    fresh = build(num_examples).get_epoch_iterator()
    fresh.set_state(state)
    yield "as plain data", fresh


def _read_on(iterator: Any, num_epochs: int) -> list[list]:
    epochs = [list(iterator)]
    for _ in range(iterator.epoch + 1, num_epochs):
        epochs.append(list(iterator.data_stream.get_epoch_iterator()))
    return epochs


def _read_epochs(stream: AbstractDataStream, num_epochs: int) -> list[list]:
    return [list(stream.get_epoch_iterator()) for _ in range(num_epochs)]


def check_position_is_small(
    build: Build, num_examples: tuple[int, int] = (40, 1000), growth: int = 100
) -> None:
    """Check that the position does not grow with the data set.

    Parameters
    ----------
    build : function from int to AbstractDataStream
        Builds the stream.
    num_examples : tuple of (int, int)
        What `build` is given: a few, and many.
    growth : int
        By how many bytes the position over many may be larger: the numbers in it have more digits.

    Raises
    ------
    AssertionError
        If the plain data, or what the iterator's pickle has beyond the stream's, grow more.
    """
    small, large = (_position_sizes(build(count)) for count in num_examples)
    for kind in small:
        assert large[kind] - small[kind] <= growth, (
            f"the position as {kind} grows with the data set: {small[kind]} bytes over "
            f"{num_examples[0]} examples, {large[kind]} over {num_examples[1]}"
        )


def _position_sizes(stream: AbstractDataStream) -> dict[str, int]:
    iterator = stream.get_epoch_iterator()
    for _ in range(3):
        next(iterator)
    text, arrays = split_arrays(iterator.get_state())
    sizes = {"plain data": len(text) + sum(array.nbytes for array in arrays.values())}
    try:
        sizes["pickle"] = len(pickle.dumps(iterator)) - len(pickle.dumps(stream))
    except (AttributeError, pickle.PicklingError):
        # Streams with lambdas have their position as plain data only.
        return sizes
    return sizes


def check_independent_iterators(build: Build, num_examples: int = _NUM_EXAMPLES) -> None:
    """Check that iterators of one stream do not disturb each other.

    Two epochs are read in turns, an epoch is left in the middle, and an earlier one is read again.

    Parameters
    ----------
    build : function from int to AbstractDataStream
        Builds the stream.
    num_examples : int
        What `build` is given.

    Raises
    ------
    AssertionError
        If an epoch is not what it is when it is read alone.
    """
    reference = _read_epochs(build(num_examples), 2)
    stream = build(num_examples)
    first, second = stream.get_epoch_iterator(), stream.get_epoch_iterator()
    in_turns: tuple[list, list] = ([], [])
    for _ in range(max(map(len, reference)) + 1):
        for iterator, items in zip((first, second), in_turns, strict=True):
            items.extend([item] if (item := next(iterator, None)) is not None else [])
    assert same_data(list(in_turns), reference), "two iterators that are read in turns disturb"

    stream = build(num_examples)
    next(stream.get_epoch_iterator())
    after_break = list(stream.get_epoch_iterator())
    assert same_data(after_break, reference[1]), "an epoch that was left leaks into the next"
    again = stream.get_epoch_iterator(epoch=0)
    assert (again.epoch, stream.epochs_begun) == (0, 1), "epoch= does not set the count"
    assert same_data(list(again), reference[0]), "an epoch is not the same when asked for again"


def check_items_are_own(build: Build, num_examples: int = _NUM_EXAMPLES) -> None:
    """Check that who changes an item changes neither the data nor an item that comes later.

    Every array and list of an item is changed in place before the next one is read.

    Parameters
    ----------
    build : function from int to AbstractDataStream
        Builds the stream.
    num_examples : int
        What `build` is given.

    Raises
    ------
    AssertionError
        If a later item is not what it is when nothing is changed.
    """
    reference = copy.deepcopy(_read_epochs(build(num_examples), 2))
    stream = build(num_examples)
    for epoch, expected in enumerate(reference):
        iterator = stream.get_epoch_iterator()
        for step, item in enumerate(iterator):
            assert same_data(item, expected[step]), (
                f"item {step} of epoch {epoch} is another one if those before it are changed"
            )
            _change(item)


def _change(value: Any) -> None:
    is_array = isinstance(value, numpy.ndarray)
    if is_array and value.dtype.kind in "biufc" and value.flags.writeable:
        value[...] = value == 0
    elif isinstance(value, (tuple, list)) or (is_array and value.dtype == object):
        for part in value.ravel() if is_array else value:
            _change(part)
    if isinstance(value, list):
        value.append(None)


def check_items(build: Build, num_examples: int = _NUM_EXAMPLES) -> None:
    """Check that the items are what the stream says of them.

    Parameters
    ----------
    build : function from int to AbstractDataStream
        Builds the stream.
    num_examples : int
        What `build` is given.

    Raises
    ------
    AssertionError
        If items are no tuples in the order of `sources`, or `as_dict` gives others, or a label is
        missing or does not fit the shape, or a length that is known is wrong.
    """
    stream = build(num_examples)
    items = list(stream.get_epoch_iterator(epoch=0))
    assert items, "there is no item"
    sources = stream.sources
    assert type(sources) is tuple and len(set(sources)) == len(sources), f"sources: {sources}"
    for item in items:
        assert type(item) is tuple, f"an item is a {type(item).__name__}"
        assert len(item) == len(sources), f"an item has {len(item)} parts for {sources}"
    dicts = list(build(num_examples).get_epoch_iterator(as_dict=True, epoch=0))
    assert same_data(dicts, [dict(zip(sources, item, strict=True)) for item in items]), "as_dict"
    _check_labels(stream, items)
    _check_counts(stream, items)
    assert repr(stream), "there is no repr"


def _check_labels(stream: AbstractDataStream, items: list[tuple]) -> None:
    if stream.axis_labels is None:
        return
    assert set(stream.axis_labels) <= set(stream.sources), "labels of sources that are not given"
    missing = set(stream.sources) - set(stream.axis_labels)
    assert not missing, f"no labels for {missing}"
    for item in items:
        for source, data in zip(stream.sources, item, strict=True):
            labels = stream.axis_labels[source]
            if labels is not None and isinstance(data, numpy.ndarray) and data.dtype != object:
                assert len(labels) == numpy.ndim(data), f"{source}: {labels}, {numpy.shape(data)}"


def _check_counts(stream: AbstractDataStream, items: list[tuple]) -> None:
    if stream.num_batches is not None:
        assert stream.num_batches == len(stream) == len(items), f"num_batches is not {len(items)}"
    if stream.num_examples is not None:
        sizes = [1 if stream.produces_examples else len(item[0]) for item in items]
        assert stream.num_examples == sum(sizes), f"num_examples is not {sum(sizes)}"


def check_digest(build: Build, num_examples: int = _NUM_EXAMPLES) -> None:
    """Check that the digest tells the pipeline and not the position.

    Parameters
    ----------
    build : function from int to AbstractDataStream
        Builds the stream.
    num_examples : int
        What `build` is given.

    Raises
    ------
    AssertionError
        If it changes while the stream is read, or does not change with the data.
    """
    stream = build(num_examples)
    before = stream.digest()
    list(stream.get_epoch_iterator())
    assert stream.digest() == before == build(num_examples).digest(), "reading changes the digest"
    assert build(num_examples + 1).digest() != before, "other data have the same digest"


def check_contract(build: Build, *, by_pickle: bool = True, shares_rng: bool = False) -> None:
    """Run all checks of this module.

    Parameters
    ----------
    build : function from int to AbstractDataStream
        Builds the stream.
    by_pickle : bool
        Whether to check pickling.
    shares_rng : bool
        Whether the stream draws from a generator that was handed in, so that its iterators must be
        used one after the other.

    Raises
    ------
    AssertionError
        If one of them fails.
    """
    check_resumption(build, by_pickle=by_pickle)
    check_position_is_small(build)
    check_items(build)
    check_items_are_own(build)
    check_digest(build)
    if not shares_rng:
        check_independent_iterators(build)
