"""Parts that do not fit are refused when a pipeline is built; and iterators of other libraries."""

import subprocess
import sys
import warnings

import numpy
import pytest

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.schemes import (
    ConcatenatedScheme,
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel_data.streams import DataStream
from fuel_data.testing import check_resumption
from fuel_data.transformers import Batch, Cast, Mapping


@pytest.fixture
def dataset():
    return IndexableDataset({"x": numpy.arange(5)}, axis_labels={"x": ("batch",)})


@pytest.mark.parametrize(
    "scheme",
    [
        SequentialScheme(6, 2),
        ShuffledScheme([0, 5, 1], 2),
        SequentialExampleScheme(range(5, -1, -1)),
        WeightedScheme([1] * 6, 2),
        ConcatenatedScheme([SequentialScheme(3, 2), SequentialScheme(6, 2)]),
    ],
)
def test_a_scheme_that_asks_for_examples_that_are_not_there_is_refused(dataset, scheme):
    with pytest.raises(
        ValueError,
        match=r"^DataStream: .*Scheme\(.*\) asks for example 5, but "
        r"IndexableDataset\(x, 5 examples\) has the examples 0 to 4\.$",
    ):
        DataStream(dataset, scheme)


def test_a_scheme_may_ask_for_a_part_of_the_examples(dataset):
    assert len(DataStream(dataset, SequentialScheme(4, 2))) == 2
    assert len(DataStream(dataset, SequentialScheme(0, 2))) == 0


def test_a_data_set_that_takes_no_requests_is_refused_a_scheme():
    with pytest.raises(
        ValueError, match="is read from the front to the end and takes no requests; got Sequential"
    ):
        DataStream(IterableDataset("abc"), SequentialScheme(3, 2))


def test_a_data_set_that_answers_requests_needs_a_scheme(dataset):
    with pytest.raises(ValueError, match="so the stream needs an `iteration_scheme`. Give one"):
        DataStream(dataset)


@pytest.mark.parametrize(
    "make",
    [
        lambda d, **k: DataStream(d, SequentialScheme(5, 2), **k),
        lambda d, **k: Cast(d.get_example_stream(), "int8", **k),
        lambda d, **k: Mapping(d.get_example_stream(), abs, **k),
        lambda d, **k: Batch(d.get_example_stream(), ConstantScheme(2), **k),
    ],
)
def test_labels_of_a_source_that_is_not_there_are_refused(dataset, make):
    with pytest.raises(
        ValueError, match="`axis_labels` names 'xx', which is not.* Did you mean 'x'"
    ):
        make(dataset, axis_labels={"xx": ("batch",)})
    assert make(dataset, axis_labels={"x": ("index",)}).axis_labels == {"x": ("index",)}


def test_an_iterator_is_a_context_manager_and_can_be_read_on(dataset):
    with dataset.get_example_stream().get_epoch_iterator() as iterator:
        next(iterator)
    assert [x for (x,) in iterator] == [1, 2, 3, 4]


def test_nothing_of_ours_needs_picklable_itertools():
    # Version 0.1.1 cannot be imported beside setuptools 82 and later.
    code = (
        "import sys; sys.modules['pkg_resources'] = sys.modules['picklable_itertools'] = None;"
        "import fuel_data.datasets, fuel_data.streams, fuel_data.transformers, fuel_data.testing"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def itertools_that_pickle():
    with warnings.catch_warnings():
        # Of pkg_resources, which it imports.
        warnings.simplefilter("ignore")
        import picklable_itertools
    return picklable_itertools


def test_iterators_of_picklable_itertools_are_sources_that_resume(itertools_that_pickle):
    def build(num_examples):
        words = itertools_that_pickle.imap(str, range(num_examples))
        numbers = itertools_that_pickle.chain(range(3), range(num_examples - 3))
        return DataStream(IterableDataset({"word": words, "number": numbers}))

    assert list(build(5))[-1] == ("4", 1)
    check_resumption(build)


def test_an_epoch_over_an_iterator_that_would_go_on_after_its_end_has_ended(itertools_that_pickle):
    below_two = itertools_that_pickle.takewhile((2).__gt__, [0, 1, 5, 0])
    iterator = DataStream(IterableDataset({"x": below_two})).get_epoch_iterator()

    assert [list(iterator), list(iterator)] == [[(0,), (1,)], []]


def test_files_that_copies_would_read_in_another_encoding_are_refused(
    itertools_that_pickle, tmp_path
):
    # These bytes are text in UTF-8 too, but another one.
    (tmp_path / "x.txt").write_text("Ã¶\n", "latin-1")
    with open(tmp_path / "x.txt", encoding="latin-1") as file:
        lines = itertools_that_pickle.imap(str.strip, itertools_that_pickle.file_iterator(file))
        with pytest.raises(
            ValueError,
            match=r"source 'x' reads .*x.txt as latin-1 by .*, whose copies read it as .*"
            r"functools.partial\(open, '.*x.txt', encoding='latin-1'\), or use TextFile",
        ):
            IterableDataset({"x": lines})


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_other_files_of_picklable_itertools_are_sources(itertools_that_pickle, tmp_path, mode):
    (tmp_path / "x.txt").write_text("a\nö\n", "utf-8")
    encoding = "utf-8" if mode == "r" else None
    with open(tmp_path / "x.txt", mode, encoding=encoding) as file:
        lines = IterableDataset({"x": itertools_that_pickle.file_iterator(file)})
        state = lines.open()
        found = [lines.get_data(state)[0] for _ in range(2)]
        state[0]._f.close()
        assert found == list(file)


def test_what_is_no_data_set_or_no_scheme_is_refused(dataset):
    with pytest.raises(TypeError, match=r"`dataset` must be a data set; got \[1, 2\]. Put Indexab"):
        DataStream([1, 2])
    with pytest.raises(TypeError, match="`iteration_scheme` must be a scheme, .*; got 2"):
        DataStream(dataset, 2)


def test_the_state_of_a_stream_is_not_taken_for_that_of_an_iterator(dataset):
    stream = dataset.get_example_stream()
    iterator = stream.get_epoch_iterator()
    with pytest.raises(ValueError, match="what get_state.. of an iterator gave; it has only"):
        iterator.set_state(stream.get_state())
    with pytest.raises(ValueError, match="what get_state.. of a stream, between two epochs gave"):
        stream.set_state(iterator.get_state())
