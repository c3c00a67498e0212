import numpy
import pytest

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.reports import draw_histogram
from fuel_data.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Batch, Bucket, Filter, Mapping, Merge, Rename, Repeat

LABELS = {"image": ("batch", "height", "width"), "word": ("batch", "time"), "name": ("batch",)}


@pytest.fixture
def dataset():
    words = numpy.empty(4, dtype=object)
    for number, length in enumerate([1, 3, 3, 2]):
        words[number] = numpy.full(length, number, dtype="int32")
    images = numpy.linspace(-1, 1, 4 * 6, dtype="float32").reshape(4, 2, 3)
    images[2, 0, 0] = numpy.nan
    sources = {"image": images, "word": words, "name": ["a", "bcd", "ef", "g"]}
    return IndexableDataset(sources, axis_labels=LABELS)


@pytest.mark.parametrize("by_batches", [True, False])
def test_a_report_says_what_is_in_each_source(dataset, by_batches):
    stream = dataset.get_example_stream()
    if by_batches:
        stream = DataStream(dataset, SequentialScheme(4, 3))
    report = stream.report()
    image, word, name = (report.sources[source] for source in stream.sources)

    assert (report.num_items, report.num_examples) == (2 if by_batches else 4, 4)
    assert report.is_whole
    assert (image.dtypes, image.shape) == (["float32"], (2, 3))
    assert (image.minimum, image.maximum, image.num_not_finite) == (-1, 1, 1)
    assert image.axis_labels == (LABELS["image"] if by_batches else ("height", "width"))
    assert (word.dtypes, word.shape, word.lengths) == (["int32"], (None,), {1: 1, 2: 1, 3: 2})
    assert (name.dtypes, name.shape, name.minimum) == (["str"], (), None)
    assert name.lengths == {1: 2, 2: 1, 3: 1}


def test_examples_are_counted_along_the_batch_axis():
    words = numpy.arange(28).reshape(4, 7)
    labels = {"words": ("batch", "time"), "target": ("batch",)}
    dataset = IndexableDataset({"words": words, "target": numpy.arange(4)}, axis_labels=labels)
    turned = Mapping(
        DataStream(dataset, SequentialScheme(4, 2)),
        lambda item: (item[0].T, item[1]),
        axis_labels={"words": ("time", "batch"), "target": ("batch",)},
    )

    report = turned.report()

    assert report.num_examples == 4
    assert report.sources["words"].shape == (7,)
    assert report.sources["words"].lengths == {7: 4}
    assert report.sources["words"].axis_labels == ("time", "batch")
    assert report.sources["target"].shape == ()


def test_a_report_prints_as_a_table(dataset):
    assert str(dataset.get_example_stream().report()) == (
        "DataStream(IndexableDataset(image, word, name, 4 examples), "
        "SequentialExampleScheme(examples=4))\n"
        "    gives 4 examples of image (height, width), word (time), name ()\n"
        "read: 4 items, 4 examples, the whole epoch\n"
        "image: float32, shape (2, 3), -1 to 1, 1 not finite, axes (height, width)\n"
        "word: int32, shape (?,), 0 to 3, axes (time)\n"
        "    length 1: ############### 1\n"
        "    length 2: ############### 1\n"
        "    length 3: ############################## 2\n"
        "name: str, shape (), axes ()\n"
        "    length 1: ############################## 2\n"
        "    length 2: ############### 1\n"
        "    length 3: ############### 1"
    )


def test_a_report_reads_no_more_than_asked_for_and_says_so():
    stream = Repeat(IndexableDataset({"x": numpy.arange(5)}).get_example_stream())

    report = stream.report(num_items=12)
    assert (report.num_items, report.is_whole) == (12, False)
    assert "read: 12 items, 12 examples, not the whole epoch" in str(report)
    assert stream.report(num_items=0).num_items == 0
    with pytest.raises(ValueError, match="report: `num_items` must be at least 0 or None; got -1"):
        stream.report(num_items=-1)


def test_a_report_does_not_count_as_an_epoch_and_draws_nothing():
    rng = numpy.random.RandomState(3)
    dataset = IndexableDataset({"x": numpy.arange(6)})
    stream = DataStream(dataset, ShuffledScheme(6, 2, rng=rng))
    before = rng.get_state()[1].copy()
    stream.report()

    assert stream.epochs_begun == 0
    assert numpy.array_equal(rng.get_state()[1], before)
    assert rng.get_state()[2] == numpy.random.RandomState(3).get_state()[2]


def test_shapes_that_differ_in_rank_and_numbers_of_no_kind_are_shown():
    data = [numpy.zeros(2), numpy.zeros((2, 2)), numpy.array(1j)]
    report = DataStream(IterableDataset({"x": data})).report()

    assert report.sources["x"].shape is None
    assert str(report.sources["x"]).startswith(
        "complex128 or float64, shapes differ, 0 to 0, axes not labelled"
    )


def test_the_notes_of_transformers_are_in_the_report():
    stream = DataStream(IterableDataset({"x": [[1], [1, 2, 3], [4]]}))
    report = Bucket(stream, "x", bounds=[2], batch_size=2).report()

    assert report.notes[0][0] == "Bucket"
    assert str(report).splitlines()[-8:] == [
        "Bucket:",
        "    batches: 1",
        "    examples: 2",
        "    padding to the longest: 0",
        "    padding to the bound: 0.5",
        "    by bound: 2: 2",
        "    dropped: longer than the last bound: 1",
        "    first dropped: number 1, 3 long",
    ]


def _odd(data):
    return data[0] % 2 == 1


def test_a_stream_prints_as_a_pipeline(dataset):
    examples = IndexableDataset({"x": numpy.arange(5)}).get_example_stream()
    doubled = Mapping(Filter(examples, _odd), abs, add_sources=("y",))
    merged = Merge([Rename(doubled, {"x": "z"}), examples])

    assert str(Batch(merged, ConstantScheme(2))) == (
        "0: DataStream(IndexableDataset(x, 5 examples), SequentialExampleScheme(examples=5))\n"
        "   | Filter(predicate=_odd)\n"
        "   | Mapping(mapping=abs, add_sources=('y',), mapping_accepts=list, random=False, "
        "seed=None)\n"
        "   | Rename(names={'x': 'z'})\n"
        "1: DataStream(IndexableDataset(x, 5 examples), SequentialExampleScheme(examples=5))\n"
        "| Merge()\n"
        "| Batch(ConstantScheme(batch_size=2, times=None, num_examples=None), strictness=0)\n"
        "    gives 3 batches of z, y, x"
    )
    assert str(Filter(examples, _odd)).endswith("gives examples of x")


def test_long_arguments_are_cut():
    stream = IndexableDataset({"x": numpy.arange(5)}).get_example_stream()
    (line,) = [s for s in str(Rename(stream, {"x": "y" * 90})).splitlines() if "Rename" in s]

    assert len(line) < 80
    assert "…" in line


def test_a_histogram_has_at_most_ten_bars_that_cover_all_lengths():
    lines = draw_histogram(dict.fromkeys(range(3, 1000), 1))

    assert len(lines) == 10
    assert lines[0].startswith("length 3 to 102: ")
    assert lines[-1].startswith("length 903 to 999: ")
    assert sum(int(line.split()[-1]) for line in lines) == 997


def test_the_report_of_an_empty_stream_says_that_nothing_was_read():
    stream = DataStream(IndexableDataset({"x": numpy.zeros((0, 3))}), SequentialScheme(0, 4))

    assert str(stream.report()).endswith("x: nothing was read")
