import logging

import numpy
import pytest

from fuel_data.datasets import IndexableDataset
from fuel_data.exceptions import AxisLabelsMismatchError
from fuel_data.schemes import SequentialExampleScheme, SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import (
    AgnosticSourcewiseTransformer,
    AgnosticTransformer,
    Cast,
    ExpectsAxisLabels,
    ScaleAndShift,
    SourcewiseTransformer,
    Transformer,
    Unpack,
)


@pytest.fixture
def dataset():
    return IndexableDataset({"x": numpy.arange(4), "y": numpy.arange(4) * 10})


@pytest.fixture
def batches(dataset):
    return DataStream(dataset, iteration_scheme=SequentialScheme(4, 2))


@pytest.fixture
def examples(dataset):
    return DataStream(dataset, iteration_scheme=SequentialExampleScheme(4))


class OnlyExamples(Transformer):
    def transform_example(self, example):
        return [item + 1 for item in example]


class OnlyBatchSources(SourcewiseTransformer):
    def transform_source_batch(self, source_batch, source_name):
        return [source_name] * len(source_batch)


class Swap(AgnosticTransformer):
    def transform_any(self, data):
        return data[::-1]


class Named(AgnosticSourcewiseTransformer):
    def transform_any_source(self, source_data, source_name):
        return source_name


def test_a_transformer_of_examples_gives_tuples(examples):
    assert next(iter(OnlyExamples(examples))) == (1, 1)


def test_a_transformer_of_examples_over_batches_is_refused_when_it_is_made(batches):
    with pytest.raises(ValueError, match="OnlyExamples: the stream below gives batches, but `tran"):
        OnlyExamples(batches)


def test_a_transformer_of_batches_of_a_source_over_examples_is_refused(examples, batches):
    assert next(iter(OnlyBatchSources(batches, which_sources=["y"])))[1] == ["y", "y"]
    with pytest.raises(ValueError, match="but `transform_source_example` is not defined"):
        OnlyBatchSources(examples)


def test_examples_over_batches_are_refused_unless_read_makes_them(batches):
    with pytest.raises(ValueError, match="gives batches, but this should give examples. Put Batch"):
        Swap(batches, produces_examples=True)


def test_agnostic_transformers_take_both(examples, batches):
    assert next(iter(Swap(examples))) == (0, 0)
    assert next(iter(Swap(batches)))[0].tolist() == [0, 10]
    assert next(iter(Named(examples))) == ("x", "y")


def test_only_the_sources_that_are_named_are_transformed(examples):
    assert list(Named(examples, which_sources=("y",)))[1] == (1, "y")


def test_a_source_that_is_not_there_is_refused_with_the_nearest():
    data = IndexableDataset({"features": numpy.arange(4), "targets": numpy.arange(4)})
    with pytest.raises(ValueError, match="Named: `which_sources` names 'feature', .*'features'"):
        Named(data.get_example_stream(), which_sources=("feature",))
    with pytest.raises(ValueError, match=r"got the text 'features'. Write \('features',\)"):
        Cast(data.get_example_stream(), "float32", which_sources="features")


def test_an_unknown_argument_is_refused_with_the_nearest(batches):
    with pytest.raises(TypeError, match="argument 'which_source'. Did you mean 'which_sources'"):
        Cast(batches, "float32", which_source=("x",))
    with pytest.raises(TypeError, match="Unpack: unexpected argument 'axis_lables'. Did you mean"):
        Unpack(batches, axis_lables=None)


def test_a_transformer_that_takes_no_requests_says_so(batches):
    with pytest.raises(ValueError, match="Swap: takes no requests; got"):
        next(iter(Swap(batches, iteration_scheme=SequentialScheme(4, 2))))


def test_what_a_scheme_says_otherwise_is_refused(batches):
    with pytest.raises(ValueError, match="`produces_examples` is True, but the iteration scheme"):
        Swap(batches, True, iteration_scheme=SequentialScheme(4, 2))


class Ends(AgnosticTransformer):
    def transform_any(self, data):
        return next(iter(()))


def test_a_function_that_raises_stop_iteration_does_not_cut_the_epoch_short(batches):
    with pytest.raises(RuntimeError, match="Ends: the function that it applies raised StopIterati"):
        list(Ends(batches))


def test_labels_and_metadata_pass_unless_given(dataset):
    dataset.axis_labels = {"x": ("batch",), "y": None}
    dataset.metadata = {"x": {"unit": "m"}}
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(4, 2))
    passed = ScaleAndShift(stream, 1, 0)
    assert (passed.axis_labels, passed.metadata) == (stream.axis_labels, stream.metadata)
    assert passed.axis_labels is not stream.axis_labels
    assert ScaleAndShift(stream, 1, 0, axis_labels={"x": ("a",)}).axis_labels == {"x": ("a",)}


def test_sources_can_be_named_by_assignment(batches):
    stream = Swap(batches)
    stream.sources = ["y", "x"]
    assert stream.sources == ("y", "x")


def test_lengths_pass_through_what_gives_one_for_one(batches):
    assert (Swap(batches).num_batches, Cast(batches, "int8").num_examples) == (2, 4)
    assert Swap(batches).num_examples is None


class Expecting(Swap, ExpectsAxisLabels):
    pass


def test_axes_that_are_expected_are_checked_once(batches, caplog):
    stream = Expecting(batches)
    with pytest.raises(AxisLabelsMismatchError, match=r"must have the axes \('a', 'b'\); got"):
        stream.verify_axis_labels(("a", "b"), ("b", "a"), "x")
    with caplog.at_level(logging.WARNING):
        stream.verify_axis_labels(("a",), None, "y")
        stream.verify_axis_labels(("a",), None, "y")
    assert len(caplog.records) == 1
    assert "the axes of 'y' are not labelled" in caplog.text
    assert stream.digest() == Expecting(batches).digest()


def test_held_data_are_copied_into_the_state(batches):
    class Counts(Transformer):
        def start(self, stage):
            stage.held["sizes"] = []

        def read(self, stage, request):
            data = next(stage.child)
            stage.held["sizes"].append(len(data[0]))
            return data

    iterator = Counts(batches).get_epoch_iterator()
    next(iterator)
    state = iterator.get_state()
    next(iterator)
    assert state["position"]["held"] == {"sizes": [2]}


def test_a_transformer_of_the_library_that_takes_no_scheme_refuses_one(batches):
    # The requests would have ended the epoch, and nobody would have known.
    with pytest.raises(ValueError, match="Cast: takes no `iteration_scheme`; got SequentialScheme"):
        Cast(batches, "float32", iteration_scheme=SequentialScheme(2, 2))


@pytest.mark.parametrize("wrong", [[1, 2], None, IndexableDataset({"x": [1]}), Swap])
def test_what_is_no_stream_is_refused(wrong):
    for over in (Swap, Unpack, lambda stream: Named(stream, which_sources=("x",))):
        with pytest.raises(TypeError, match=": `data_stream` must be a stream; got"):
            over(wrong)
