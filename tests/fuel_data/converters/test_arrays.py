import json
import re

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.commands.convert import main
from fuel_data.datasets.hdf5 import H5PYDataset

X = numpy.random.default_rng(5).normal(size=(10, 3, 2)).astype("float32")
Y = numpy.arange(10)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numpy.savez(tmp_path / "train.npz", features=X[:7], targets=Y[:7])
    numpy.savez(tmp_path / "test.npz", features=X[7:], targets=Y[7:])
    numpy.savez(tmp_path / "unlabeled.npz", features=X[:4])
    numpy.save(tmp_path / "x.npy", X)
    numpy.save(tmp_path / "y.npy", Y)
    (tmp_path / "table.csv").write_text(
        "a,b,kind\n" + "".join(f"{number}.5,{-number},{number % 3}\n" for number in range(10))
    )
    return tmp_path


def read(path, split):
    dataset = H5PYDataset(path, (split,))
    return dict(zip(dataset.sources, dataset.get_data(None, slice(None)), strict=True))


def test_files_of_arrays_become_splits(folder):
    arguments = ["--train", "train.npz", "--test", "test.npz", "--split", "more", "unlabeled.npz"]

    assert main(["arrays", *arguments, "-r", "my"]) == 0

    for split, part in (("train", slice(0, 7)), ("test", slice(7, 10))):
        data = read("my.hdf5", split)
        assert_array_equal(data["features"], X[part])
        assert_array_equal(data["targets"], Y[part])
        assert data["features"].dtype == "float32"
    assert list(read("my.hdf5", "more")) == ["features"]
    with h5py.File("my.hdf5") as h5file:
        assert h5file.attrs["fuel_convert_command"].startswith(b"fuel-convert arrays --train train")
        inputs = json.loads(h5file.attrs["fuel_convert_inputs"])
    assert sorted(inputs) == ["test.npz", "train.npz", "unlabeled.npz"]


def test_sources_types_and_axes_can_be_named(folder):
    arguments = ["--train", "features=x.npy", "y.npy", "--dtype", "y=uint8"]

    assert main(["arrays", *arguments, "--axis-labels", "features=batch,time,channel"]) == 0

    dataset = H5PYDataset("arrays.hdf5", ("train",))
    assert dataset.axis_labels == {"features": ("batch", "time", "channel"), "y": ("batch",)}
    features, y = dataset.get_data(None, [9, 0])
    assert_array_equal(features, X[[9, 0]])
    assert_array_equal(y, [9, 0])
    assert y.dtype == "uint8"


def test_sources_that_a_split_lacks_are_named(folder, caplog):
    arguments = ["--train", "train.npz", "--valid", "unlabeled.npz", "--test", "table.csv"]

    assert main(["arrays", *arguments]) == 0

    (record,) = caplog.records
    assert (
        "split 'train' lacks 'a', 'b', 'kind'; split 'valid' lacks 'targets', 'a', 'b', 'kind'; "
        "split 'test' lacks 'features', 'targets'."
    ) in record.getMessage()


def test_nothing_is_said_if_all_splits_have_the_same_sources(folder, caplog):
    assert main(["arrays", "--train", "train.npz", "--test", "test.npz"]) == 0

    assert caplog.records == []


def test_a_table_is_cut_by_fractions_and_no_example_is_lost(folder):
    arguments = ["--all", "table.csv", "--fractions", "train=0.7", "valid=0.2", "test=0.1"]
    arguments += ["--columns", "features=a:b", "kind=kind"]

    assert main(["arrays", *arguments, "-r", "one"]) == 0
    assert main(["arrays", *arguments, "-r", "same"]) == 0
    assert main(["arrays", *arguments, "-r", "other", "--seed", "2"]) == 0

    parts = [read("one.hdf5", split) for split in ("train", "valid", "test")]
    assert [len(part["kind"]) for part in parts] == [7, 2, 1]
    features = numpy.concatenate([part["features"] for part in parts])
    kinds = numpy.concatenate([part["kind"] for part in parts])
    numbers = -features[:, 1]
    assert sorted(numbers) == list(range(10)) and list(numbers) != list(range(10))
    assert_array_equal(features[:, 0], numbers + 0.5)
    assert_array_equal(kinds[:, 0], numbers % 3)
    assert kinds.dtype == "int64"
    assert_array_equal(read("same.hdf5", "train")["features"], parts[0]["features"])
    assert not numpy.array_equal(read("other.hdf5", "train")["features"], parts[0]["features"])


def test_the_shuffling_is_the_same_on_every_machine(folder):
    main(["arrays", "--all", "y.npy", "--fractions", "train=0.5", "test=0.5"])

    assert read("arrays.hdf5", "train")["y"].tolist() == [0, 6, 2, 7, 5]


def test_axes_have_names_by_default(folder):
    numpy.save(folder / "z.npy", numpy.zeros((10, 4)))

    main(["arrays", "--train", "x.npy", "y.npy", "z.npy"])

    assert H5PYDataset("arrays.hdf5", ("train",)).axis_labels == {
        "x": ("batch", "index_1", "index_2"),
        "y": ("batch",),
        "z": ("batch", "index"),
    }


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "Give the inputs of each split"),
        (["--train", "x.npy", "--all", "y.npy"], 2, "--all and --fractions go together"),
        (["--all", "y.npy"], 2, "--all and --fractions go together: .* given by --train, --valid"),
        (["--split", "train", "x.npy", "--train", "x.npy"], 2, "A split is given twice"),
        (["--split", "", "x.npy"], 2, "--split needs a name and at least one input"),
        (["--split", "train"], 2, "--split needs a name and at least one input"),
        (["--train", "x.npy", "--dtype", "uint8"], 2, "--dtype takes NAME=VALUE.*got 'uint8'"),
        (["--all", "y.npy", "--fractions", "a=half"], 2, "--fractions takes NAME=NUMBER"),
        (["--train", "nope.npy", "gone.npz"], 1, "not there: ./nope.npy, ./gone.npz. Say where"),
        (["--train", "x.npy", "--dtype", "z=uint8"], 1, "--dtype: there is no source 'z'"),
        (["--train", "x.npy", "--dtype", "x=unit8"], 1, "x=unit8 is no dtype"),
        (["--train", "x.npy", "--dtype", "x=int32"], 1, "'x' has values that int32 cannot hold"),
        (["--train", "i.npy", "--dtype", "i=float32"], 1, "as float32 they would lose a part"),
        (["--train", "t.npy", "--dtype", "t=float32"], 1, "'t' is .S3 and cannot become float32"),
        (["--train", "x.npy", "--dtype", "x=S1"], 1, "'x' is .* and cannot become .S1"),
        (["--train", "h.npy", "--dtype", "h=float16"], 1, "too large for float16; they go from 1"),
        (["--train", "o.npy"], 1, "o.npy holds Python objects; save arrays of numbers or bytes"),
        (["--train", "o.npz"], 1, "o.npz holds Python objects; save arrays of numbers or bytes"),
        (["--train", "y.npy", "--axis-labels", "y=batch,index"], 1, "'y' has 1 axes, so it needs"),
        (["--train", "x.npy", "--axis-labels", "w=batch"], 1, "--axis-labels: there is no source"),
        (["--train", "train.npz", "--test", "x.npy", "targets=y.npy"], 0, ""),
        (["--train", "train.npz", "features=x.npy"], 1, "has source 'features' from another file"),
        (["--train", "train.npz", "x.npy"], 1, "must have equal lengths; got"),
        (["--train", "features=y.npy", "--test", "test.npz"], 1, "one dtype and shape in all"),
        (["--train", "x.npy", "--columns", "x=a"], 1, "there is none among the inputs"),
        (["--all", "y.npy", "--fractions", "a=0.5", "b=0.4"], 1, "positive and add up to 1"),
        (["--all", "y.npy", "--fractions", "a=0.99", "b=0.01"], 1, "leave none for b"),
        (["--all", "y.npy", "train.npz", "--fractions", "a=0.5", "b=0.5"], 1, "equal lengths"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_an_error_with_its_status(folder, capsys, arguments, status, message):
    numpy.save("t.npy", numpy.array([b"1.5", b"2"]))
    numpy.save("i.npy", numpy.array([1j]))
    numpy.save("h.npy", numpy.array([1, 1e6, numpy.nan, numpy.inf]))
    numpy.save("o.npy", numpy.array(["a", None], dtype=object))
    numpy.savez("o.npz", o=numpy.array(["a", None], dtype=object))

    assert main(["arrays", *arguments, "-o", "out"]) == status

    error = capsys.readouterr().err
    assert re.match(f"fuel-convert arrays: .*{message}", error) if status else not error
    assert [path.name for path in (folder / "out").iterdir()] == ([] if status else ["arrays.hdf5"])
