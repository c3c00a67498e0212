"""Whole numbers, and answers yes or no, as users hand them in: right ones and wrong ones."""

import itertools
import re

import numpy
import pytest

from fuel_data import transformers
from fuel_data.datasets import IterableDataset
from fuel_data.datasets.toy import Spiral
from fuel_data.schemes import (
    ConstantScheme,
    SampledScheme,
    SequentialScheme,
    ShuffledScheme,
    WeightedScheme,
    cross_validation,
)
from fuel_data.streams import DataStream
from fuel_data.transformers.sequences import NGrams, Window
from fuel_data.utils.arguments import seed_number, truth_value, whole_number


def words():
    rows = [numpy.arange(number, number + 1 + number % 7) for number in range(11)]
    return DataStream(IterableDataset({"x": rows}))


def batches():
    return transformers.Batch(words(), ConstantScheme(3))


MAKERS = {
    "SequentialScheme batch_size": lambda n: SequentialScheme(11, n),
    "SequentialScheme examples": lambda n: SequentialScheme(n, 3),
    "ShuffledScheme seed": lambda n: ShuffledScheme(11, 3, seed=n),
    "SampledScheme batch_size": lambda n: SampledScheme(11, n),
    "SampledScheme num_examples": lambda n: SampledScheme(11, 3, num_examples=n),
    "WeightedScheme seed": lambda n: WeightedScheme([1, 2], 3, seed=n),
    "ConstantScheme batch_size": lambda n: ConstantScheme(n, num_examples=11),
    "ConstantScheme num_examples": lambda n: ConstantScheme(3, num_examples=n),
    "ConstantScheme times": lambda n: ConstantScheme(3, times=n),
    "cross_validation num_folds": lambda n: next(
        cross_validation(SequentialScheme, 11, n, strict=False, batch_size=2)
    )[1],
    "Batch batch_size": lambda n: transformers.Batch(words(), ConstantScheme(n)),
    "Take count": lambda n: transformers.Take(words(), n),
    "Skip count": lambda n: transformers.Skip(words(), n),
    "Shard index": lambda n: transformers.Shard(words(), n, 5),
    "Shard count": lambda n: transformers.Shard(words(), 1, n),
    "Repeat times": lambda n: transformers.Repeat(words(), n),
    "Shuffle buffer_size": lambda n: transformers.Shuffle(words(), n),
    "Shuffle seed": lambda n: transformers.Shuffle(words(), 5, seed=n),
    "Mix num_items": lambda n: transformers.Mix([words(), words()], [1, 1], n),
    "Mix seed": lambda n: transformers.Mix([words(), words()], [1, 1], seed=n),
    "Interleave block_length": lambda n: transformers.Interleave([words(), words()], n),
    "LinearWeights num_steps": lambda n: transformers.Mix(
        [words(), words()], transformers.LinearWeights([1, 0], [0, 1], n), num_items=8
    ),
    "Bucket batch_size": lambda n: transformers.Bucket(words(), "x", [3, 7], n),
    "Bucket max_tokens": lambda n: transformers.Bucket(words(), "x", [2, 4], max_tokens=n),
    "Bucket max_wait": lambda n: transformers.Bucket(words(), "x", [3, 7], 9, max_wait=n),
    "Bucket bounds": lambda n: transformers.Bucket(words(), "x", [n, 7], 2),
    "Padding multiple_of": lambda n: transformers.Padding(batches(), multiple_of=n),
    "Padding lengths": lambda n: transformers.Padding(batches(), lengths=[n, 8]),
    "Window offset": lambda n: Window(n, 1, 1, True, words()),
    "Window source_window": lambda n: Window(0, n, 2, True, words()),
    "NGrams ngram_order": lambda n: NGrams(n, words()),
    "Spiral seed": lambda n: Spiral(5, seed=n).get_example_stream(),
}


def shown(made):
    """Give the first requests of a scheme, or the first items of a stream."""
    iterator = made.get_request_iterator() if hasattr(made, "get_request_iterator") else iter(made)
    return str(list(itertools.islice(iterator, 20)))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_whole_numbers_of_numpy_are_taken_as_they_are(make):
    expected = shown(make(4))
    for kind in (numpy.int64, numpy.uint64, numpy.uint8, numpy.int32, numpy.array):
        assert shown(make(kind(4))) == expected, kind


@pytest.mark.parametrize("who", MAKERS)
def test_what_is_no_whole_number_is_refused_when_it_is_handed_in(who):
    owner, name = who.split()
    owner = "ConstantScheme" if owner == "Batch" else owner
    for wrong in (2.5, 4.0, float("nan"), True, "4"):
        with pytest.raises(ValueError, match=f"^{owner}: `{name}` must be a whole number; got"):
            MAKERS[who](wrong)


def test_a_number_may_have_a_least():
    assert whole_number("Take", "count", 0, least=0) == 0
    assert whole_number("Window", "offset", numpy.int8(-3)) == -3
    with pytest.raises(ValueError, match="^Take: `count` must be at least 0; got -1\\.$"):
        whole_number("Take", "count", numpy.int64(-1), least=0)


def test_a_seed_is_the_setting_unless_given():
    assert seed_number("Mix", None) == 1
    assert seed_number("Mix", -7) == -7


@pytest.mark.parametrize("make", [bool, int, numpy.bool_, numpy.uint8, numpy.array])
def test_one_answer_of_yes_or_no_is_a_bool(make):
    assert truth_value("Filter", "predicate", make(True)) is True
    assert truth_value("Filter", "predicate", make(False)) is False


def test_one_answer_may_stand_in_an_array_and_a_count_is_one_too():
    assert truth_value("Filter", "predicate", numpy.array([[True]])) is True
    assert truth_value("Filter", "predicate", numpy.array([0])) is False
    assert truth_value("Filter", "predicate", 10**30) is True


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (None, "None, as of a function without `return`"),
        ([False], "[False]"),
        ([], "[]"),
        ("no", "'no'"),
        (0.5, "0.5"),
        (re.match("a", "a"), "<re.Match obj"),
        (numpy.float32(0), "an answer of dtype float32 and shape ()"),
        (numpy.array([True, False]), "an answer of dtype bool and shape (2,)"),
        (numpy.array([]), "an answer of dtype float64 and shape (0,)"),
        (numpy.array("no"), "an answer of dtype <U2 and shape ()"),
        (numpy.array([None]), "an answer of dtype object and shape (1,)"),
    ],
)
def test_what_python_calls_true_or_false_but_is_neither_is_refused(answer, got):
    with pytest.raises(ValueError) as error:
        truth_value("Filter", "predicate", answer, " A way out.")
    text = str(error.value)
    assert text.startswith(f"Filter: `predicate` must answer True or False; got {got}")
    assert text.endswith(
        "Return bool(...) of one answer, any(...) or all(...) of several. A way out."
    )
