import logging

import numpy
import pytest

from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialExampleScheme, SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Filter, FilterSources, Mapping, Merge, Rename


def stream(sources="xyz", num_examples=4, batch_size=2, labels=True):
    data = {name: numpy.arange(num_examples) + 10 * i for i, name in enumerate(sources)}
    axes = dict.fromkeys(sources, ("batch",)) if labels else None
    dataset = IndexableDataset(data, axis_labels=axes)
    dataset.metadata = {name: {"name": name} for name in sources}
    scheme = (
        SequentialScheme(num_examples, batch_size)
        if batch_size
        else SequentialExampleScheme(num_examples)
    )
    return DataStream(dataset, iteration_scheme=scheme)


def first(pipeline):
    return [part.tolist() for part in next(iter(pipeline))]


def test_filter_sources_gives_a_tuple_in_the_order_asked_for():
    filtered = FilterSources(stream(), ["z", "x"])
    assert filtered.sources == ("z", "x")
    assert type(next(iter(filtered))) is tuple
    assert first(filtered) == [[20, 21], [0, 1]]
    assert filtered.axis_labels == {"z": ("batch",), "x": ("batch",)}
    assert filtered.metadata == {"z": {"name": "z"}, "x": {"name": "x"}}
    assert (filtered.num_batches, filtered.num_examples) == (2, 4)


def test_filter_sources_refuses_a_source_that_is_not_there():
    with pytest.raises(ValueError, match="FilterSources: `sources` names 'w', which the stream"):
        FilterSources(stream(), ["w"])
    with pytest.raises(ValueError, match="got the text 'xy'"):
        FilterSources(stream(), "xy")


def test_rename_renames_sources_labels_and_metadata():
    renamed = Rename(stream(), {"x": "features"})
    assert renamed.sources == ("features", "y", "z")
    assert renamed.axis_labels == {"features": ("batch",), "y": ("batch",), "z": ("batch",)}
    assert renamed.metadata["features"] == {"name": "x"}
    assert next(renamed.get_epoch_iterator(as_dict=True))["features"].tolist() == [0, 1]
    assert renamed.num_examples == 4
    assert Rename(stream(labels=False), {}).axis_labels is None


def test_rename_can_swap():
    assert Rename(stream("xy"), {"x": "y", "y": "x"}).sources == ("y", "x")


def test_rename_refuses_two_sources_of_one_name():
    with pytest.raises(KeyError, match="two sources would be called 'y'"):
        Rename(stream(), {"x": "y"})


def test_rename_of_a_source_that_is_not_there_is_refused_ignored_or_logged(caplog):
    with pytest.raises(KeyError, match="`names` has 'w', which the stream below does not"):
        Rename(stream(), {"w": "v"})
    assert Rename(stream(), {"w": "v"}, on_non_existent="ignore").sources == ("x", "y", "z")
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        assert Rename(stream(), {"w": "v"}, on_non_existent="warn").sources == ("x", "y", "z")
    assert "`names` has 'w'" in caplog.text
    with pytest.raises(ValueError, match="must be 'raise', 'ignore' or 'warn'; got 'skip'"):
        Rename(stream(), {}, on_non_existent="skip")


def test_merge_gives_the_sources_of_all_streams_with_their_labels():
    merged = Merge([stream("xy"), stream("z", labels=False)])
    assert merged.sources == ("x", "y", "z")
    assert first(merged) == [[0, 1], [10, 11], [0, 1]]
    assert merged.axis_labels == {"x": ("batch",), "y": ("batch",), "z": None}
    assert merged.metadata == {name: {"name": name} for name in "xyz"}
    assert (merged.num_batches, merged.num_examples) == (2, 4)


def test_merge_names_the_sources_as_asked():
    merged = Merge((stream("x"), stream("x")), ("en", "fr"))
    assert merged.sources == ("en", "fr")
    assert merged.axis_labels == {"en": ("batch",), "fr": ("batch",)}
    assert next(merged.get_epoch_iterator(as_dict=True))["fr"].tolist() == [0, 1]
    given = Merge((stream("x"), stream("x")), ("en", "fr"), axis_labels={"en": ("time",)})
    assert given.axis_labels == {"en": ("time",)}
    assert Merge([stream("x", labels=False)]).axis_labels is None


def test_merge_refuses_streams_of_different_length_when_that_is_known():
    with pytest.raises(ValueError, match="equally many items in an epoch; DataStream.* has 2; "):
        Merge((stream("x"), stream("y", num_examples=6)))


def test_merge_says_which_stream_ended_before_another():
    shorter = Filter(stream("y", num_examples=6, batch_size=2), lambda data: data[0][0] < 2)
    merged = Merge((stream("x"), shorter))
    iterator = merged.get_epoch_iterator()
    next(iterator)
    with pytest.raises(ValueError, match=r"Merge: number 1 \(Filter.* of 2 streams ended after 1"):
        next(iterator)


def test_merge_refuses_batches_of_different_sizes():
    merged = Merge((stream("x"), Mapping(stream("y"), lambda data: (data[0][:1],))))
    with pytest.raises(ValueError, match=r"must give batches of one size; got \[2, 1\] examples"):
        next(iter(merged))


def test_merge_refuses_examples_beside_batches_and_names_that_do_not_fit():
    with pytest.raises(ValueError, match="must give examples, or all batches; .*Put Batch or"):
        Merge((stream("x"), stream("y", batch_size=None)))
    with pytest.raises(ValueError, match="must have at least one stream"):
        Merge(())
    with pytest.raises(ValueError, match=r"`sources` must have 2 names, one for each of \['x', '"):
        Merge((stream("x"), stream("y")), ("a",))
    with pytest.raises(ValueError, match=r"two sources have one name: \['x', 'x'\]. Give other"):
        Merge((stream("x"), stream("x")))


def test_merged_examples_may_have_any_size():
    merged = Merge((stream("x", batch_size=None), stream("y", batch_size=None)))
    assert merged.produces_examples
    assert next(iter(merged)) == (0, 0)


def test_merge_takes_no_data_without_an_epoch():
    with pytest.raises(ValueError, match="Merge.get_data: no epoch is open"):
        Merge([stream("x")]).get_data()


def test_sources_that_are_named_twice_or_not_at_all_are_refused():
    stream = IndexableDataset({"x": [1], "y": [2]}).get_example_stream()
    for sources in (["x", "x"], []):
        with pytest.raises(ValueError, match="at least one name, and each only once; got"):
            FilterSources(stream, sources)


def test_labels_of_sources_that_a_merge_does_not_have_are_refused():
    stream = IndexableDataset({"x": [1]}).get_example_stream()
    with pytest.raises(ValueError, match="Merge: `axis_labels` names 'y', which is not among"):
        Merge([stream], axis_labels={"y": ()})


def test_batches_with_the_examples_on_another_axis_can_be_merged():
    words, numbers = (
        IndexableDataset({"x": numpy.zeros((7, 6))}),
        IndexableDataset({"y": [1, 2, 3]}),
    )
    left = DataStream(words, SequentialScheme(7, 7), axis_labels={"x": ("time", "batch")})
    right = DataStream(numbers, SequentialScheme(3, 3))
    with pytest.raises(ValueError, match=r"batches of one size; got \[6, 3\] examples"):
        list(Merge([left, right]))
    assert len(list(Merge([Mapping(left, _half), right]))) == 1


def _half(batch):
    return (batch[0][:, :3],)


class Counted(DataStream):
    num_asked = 0

    @property
    def num_batches(self):
        self.num_asked += 1
        return 3

    @property
    def num_examples(self):
        self.num_asked += 1
        return 3


def test_lengths_of_merges_of_merges_are_asked_for_once():
    first = Counted(IndexableDataset({"a": [1, 2, 3]}), SequentialScheme(3, 1))
    merged = first
    for name in "bcd":
        other = DataStream(IndexableDataset({name: [1, 2, 3]}), SequentialScheme(3, 1))
        merged = Merge([merged, other])
    first.num_asked = 0
    assert (merged.num_batches, merged.num_examples) == (3, 3)
    assert first.num_asked == 2
    Merge([merged], sources="wxyz")
    assert first.num_asked == 3
