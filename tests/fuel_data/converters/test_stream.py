import json
import re

import h5py
import numpy
import pytest

from fuel_data.commands.convert import main
from fuel_data.converters.stream import convert_streams
from fuel_data.datasets import H5PYDataset, IndexableDataset, IterableDataset
from fuel_data.schemes import ConstantScheme, SequentialExampleScheme, SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Batch, Mapping

LABELS = {"x": ("batch", "height", "width"), "words": ("batch", "time"), "name": ("batch",)}


def dataset(num_examples=7):
    words = [list(range(number % 3)) for number in range(num_examples)]
    data = {
        "x": numpy.arange(num_examples * 6, dtype="float32").reshape(num_examples, 2, 3),
        "words": words,
        "name": [f"né{number}" for number in range(num_examples)],
        "y": numpy.arange(num_examples, dtype="uint8"),
    }
    return IndexableDataset(data, axis_labels=LABELS)


def batches(num_examples=7):
    return DataStream(dataset(num_examples), iteration_scheme=SequentialScheme(num_examples, 3))


def examples(num_examples=7):
    scheme = SequentialExampleScheme(num_examples)
    return DataStream(dataset(num_examples), iteration_scheme=scheme)


def read(path, split="train", **arguments):
    with H5PYDataset(path, (split,), **arguments) as found:
        data = found.get_data(request=slice(0, found.num_examples))
        return dict(zip(found.sources, data, strict=True)), found


@pytest.mark.parametrize("build", [batches, examples])
def test_a_stream_comes_back_from_the_file_example_by_example(tmp_path, build):
    (path,) = convert_streams({"train": build()}, tmp_path)

    data, found = read(path)

    numpy.testing.assert_array_equal(data["x"], dataset().x)
    assert (data["x"].dtype, data["y"].dtype) == ("float32", "uint8")
    assert data["y"].tolist() == list(range(7))
    assert [words.tolist() for words in data["words"]] == dataset().words
    assert [str(name, "utf-8") if isinstance(name, bytes) else name for name in data["name"]] == (
        dataset().name
    )
    assert found.axis_labels == {**LABELS, "y": ("batch",)}
    assert [entry.name for entry in tmp_path.iterdir()] == ["stream.hdf5"]


def test_shapes_that_differ_between_splits_make_a_ragged_source(tmp_path):
    def of_size(size):
        return IndexableDataset({"x": numpy.full((2, size, size), size)}).get_example_stream()

    (path,) = convert_streams({"small": of_size(1), "large": of_size(2)}, tmp_path, "sizes.hdf5")

    assert [x.tolist() for x in read(path, "small")[0]["x"]] == [[[1]], [[1]]]
    assert [x.shape for x in read(path, "large")[0]["x"]] == [(2, 2), (2, 2)]


def test_a_batch_axis_elsewhere_becomes_the_first(tmp_path):
    def time_first(batch):
        return (numpy.swapaxes(batch[0], 0, 1),)

    data = IndexableDataset({"x": numpy.arange(12).reshape(4, 3)})
    stream = DataStream(data, iteration_scheme=SequentialScheme(4, 2))
    turned = Mapping(stream, time_first)
    turned.axis_labels = {"x": ("time", "batch")}

    (path,) = convert_streams({"train": turned}, tmp_path)

    data, found = read(path)
    numpy.testing.assert_array_equal(data["x"], numpy.arange(12).reshape(4, 3))
    assert found.axis_labels == {"x": ("batch", "time")}


def test_epochs_follow_each_other_and_a_stream_without_end_is_cut(tmp_path):
    (path,) = convert_streams({"train": batches(2)}, tmp_path, epochs=3)
    assert read(path)[0]["y"].tolist() == [0, 1] * 3
    (path,) = convert_streams({"train": batches()}, tmp_path, num_examples=5)
    assert read(path)[0]["y"].tolist() == [0, 1, 2, 3, 4]

    endless = Batch(DataStream(IterableDataset(Forever())), ConstantScheme(4))
    (path,) = convert_streams({"train": endless}, tmp_path, num_examples=6)
    assert read(path)[0]["data"].tolist() == [1] * 6


class Forever:
    def __iter__(self):
        while True:
            yield 1


def _mixed(values):
    return DataStream(IterableDataset({"x": values}))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, 2.5], "split 'train', source 'x' must all have one dtype; got float64 after int64"),
        ([1, "one"], "split 'train', source 'x' are texts and numbers"),
        ([], "The stream of split 'train' gives no examples"),
        ([[[1], [2, 3]]], "An example of split 'train', source 'x' is no array: setting an array"),
        ([None], "split 'train', source 'x' are objects of Python, such as NoneType, which HDF5"),
        ([numpy.datetime64("2020-01-01")], "'x' has the dtype datetime64.*, which HDF5 has not"),
        (
            [[1], [[2]]],
            "Source 'x': ragged examples must be numbers of one dtype with the same num",
        ),
    ],
)
def test_what_cannot_be_saved_is_refused_and_leaves_nothing(tmp_path, values, words):
    with pytest.raises(ValueError, match=words):
        convert_streams({"train": _mixed(values)}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_sources_of_different_lengths_are_refused(tmp_path):
    cut = Mapping(batches(), lambda batch: (batch[0][:1], *batch[1:]))

    with pytest.raises(ValueError, match="'train' have different numbers of examples: {'x': 1, 'w"):
        convert_streams({"train": cut}, tmp_path)


RECIPE = """
import numpy
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Mapping

def double(batch):
    return (2 * batch[0],)

def stream(first=0):
    data = IndexableDataset({"x": numpy.arange(first, first + 4)})
    return Mapping(DataStream(data, iteration_scheme=SequentialScheme(4, 3)), double)

def nothing():
    return None

def refuse_seven(batch):
    if 7 in batch[0]:
        raise KeyError("seven")
    return batch

def failing(first=0):
    return Mapping(DataStream(IndexableDataset({'x': numpy.arange(9)}),
        iteration_scheme=SequentialScheme(9, 3)), refuse_seven)

def misbuilt(first=0):
    return Mapping(stream(), double, add_sources="x")

def of_two_types(first=0):
    return Mapping(stream(), lambda batch: (batch[0] * (1 if batch[0][0] else 0.5),))
"""


def test_the_command_saves_recipes_and_says_what_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prepared_stream.py").write_text(RECIPE)
    recipe = f"{tmp_path}/prepared_stream.py:stream"
    command = ["stream", "--train", recipe, "--split", "more", recipe, "--argument", "first=5"]

    assert main([*command, "-o", str(tmp_path / "out"), "--compression", "gzip"]) == 0

    path = tmp_path / "out" / "stream.hdf5"
    assert read(path)[0]["x"].tolist() == read(path, "more")[0]["x"].tolist() == [10, 12, 14, 16]
    with h5py.File(path) as file:
        pipelines = json.loads(file.attrs["fuel_convert_pipelines"])
        assert list(json.loads(file.attrs["fuel_convert_inputs"])) == ["prepared_stream.py"]
        assert file["x"].compression == "gzip"
    assert set(pipelines) == {"train", "more"}
    assert "Mapping(" in pipelines["train"]["pipeline"]
    assert main(["stream", "--train", "prepared_stream.py:stream", "-d", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "Give the recipe of each split once"),
        (["--train", "a:b", "--split", "train", "a:b"], 2, "Give the recipe of each split once"),
        (["--split", "", "a:b"], 2, "--split needs a name, as in --split small RECIPE"),
        (["--train", "a:b", "--argument", "x=1", "--argument", "x=2"], 1, "'x' is given twice"),
        (["--train", "missing.py:b"], 1, "there is no file"),
        (["--train", "prepared_stream.py:nothing"], 1, "must return a data stream"),
        (["--train", "prepared_stream.py:steam"], 1, "Did you mean 'stream'"),
    ],
)
def test_wrong_calls_are_refused_in_words(tmp_path, monkeypatch, capsys, arguments, status, words):
    (tmp_path / "prepared_stream.py").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)

    assert main(["stream", *arguments]) == status

    assert words in capsys.readouterr().err
    assert [entry.suffix for entry in tmp_path.iterdir() if entry.is_file()] == [".py"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            "failing",
            r"fuel-convert stream: the code of a recipe failed:\n"
            r'  File ".*/failing_stream.py", line \d+, in refuse_seven\n'
            r'    raise KeyError\("seven"\)\n'
            r"KeyError: 'seven'\nThe stream of split 'valid' had given 6 examples before.\n",
        ),
        (
            "misbuilt",
            r"fuel-convert stream: the code of a recipe failed:\n"
            r'  File ".*/failing_stream.py", line \d+, in misbuilt\n(.*\n)*'
            r"ValueError: Mapping: `add_sources` must be a sequence of names; .*\n",
        ),
        (
            "of_two_types",
            r"fuel-convert stream: The examples of split 'valid', source 'x' must all have one "
            r"dtype; got int64 after float64. Put Cast over the stream.\n",
        ),
    ],
)
def test_an_error_in_the_code_of_a_recipe_is_shown_by_its_lines(
    tmp_path, monkeypatch, capsys, function, words
):
    (tmp_path / "failing_stream.py").write_text(RECIPE)
    (tmp_path / "stream.hdf5").write_text("old")
    monkeypatch.chdir(tmp_path)
    recipe = f"failing_stream.py:{function}"

    assert main(["stream", "--train", "failing_stream.py:stream", "--valid", recipe]) == 1

    assert re.fullmatch(words, capsys.readouterr().err)
    assert (tmp_path / "stream.hdf5").read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.is_file()) == [
        "failing_stream.py",
        "stream.hdf5",
    ]
