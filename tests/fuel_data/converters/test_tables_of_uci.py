"""The tables of UCI, written here in exactly their form."""

import json
import os
import subprocess
import sys

import h5py
import numpy
import pytest
import sklearn.datasets

from fuel_data.commands.convert import main
from fuel_data.converters import adult
from fuel_data.converters.iris import CLASSES
from fuel_data.datasets import Adult, Iris


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))


def write_iris(num_lines=150):
    # Of scikit-learn's copy two flowers differ from UCI's, so the digest is another one.
    flowers = sklearn.datasets.load_iris()
    pairs = zip(flowers.data, flowers.target, strict=True)
    lines = [",".join([*map(str, row), CLASSES[target]]) for row, target in pairs]
    with open("iris.data", "w") as file:
        file.write("\n".join(lines[:num_lines]) + "\n\n")
    return flowers


def test_the_irises_are_converted_and_read():
    flowers = write_iris()

    assert main(["iris", "--any-version"]) == 0

    data = Iris(("all",))
    features, targets = data.get_data(request=slice(0, 150))
    assert (features.dtype, targets.dtype) == ("float32", "uint8")
    numpy.testing.assert_array_equal(features, flowers.data.astype("float32"))
    numpy.testing.assert_array_equal(targets, flowers.target[:, None])
    assert data.axis_labels == {"features": ("batch", "index"), "targets": ("batch", "index")}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "the SHA256 digest of the published file is 6f608b71"),
        ("1,2,3,4,Iris-x", "line 1: expected four numbers and one of Iris-setosa"),
        ("1,2,3,Iris-setosa", "line 1: expected four numbers"),
        ("1,2,3,four,Iris-setosa", "got '1,2,3,four,Iris-setosa'"),
    ],
)
def test_another_table_of_irises_is_refused(capsys, line, words):
    with open("iris.data", "w") as file:
        file.write(f"{line}\n")

    assert main(["iris", *(["--any-version"] if line else [])]) == 1

    assert words in capsys.readouterr().err
    assert os.listdir() == ["iris.data"]


RECORD = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, "
    "2174, 0, 40, United-States, <=50K"
)
RICH = RECORD.replace("<=50K", ">50K").replace("Male", "Female").replace("39", "52")


def write_adult(train=(RECORD, RICH), test=(RICH,)):
    with open("adult.data", "w") as file:
        file.write("\n".join(train) + "\n\n")
    with open("adult.test", "w") as file:
        file.write("|1x3 Cross validator\n" + "".join(f"{record}.\n" for record in test) + "\n")


def test_records_become_numbers_in_columns_that_are_always_the_same():
    unknown = RECORD.replace("State-gov", "?")
    write_adult(train=(RECORD, unknown, RICH))

    assert main(["adult", "--any-version"]) == 0

    features, targets = Adult(("train",)).get_data(request=slice(0, 2))
    names = adult.column_names()
    assert features.shape == (2, 104) and features.dtype == "float64"
    assert len(names) == len(set(names)) == 104
    set_columns = {name: value for name, value in zip(names, features[0], strict=True) if value}
    assert set_columns == {
        "age": 39,
        "workclass=State-gov": 1,
        "fnlwgt": 77516,
        "education=Bachelors": 1,
        "education-num": 13,
        "marital-status=Never-married": 1,
        "occupation=Adm-clerical": 1,
        "relationship=Not-in-family": 1,
        "race=White": 1,
        "sex=Male": 1,
        "capital-gain": 2174,
        "hours-per-week": 40,
        "native-country=United-States": 1,
    }
    assert targets.tolist() == [[False], [True]] and targets.dtype == bool
    test_features, _ = Adult(("test",)).get_data(request=slice(0, 1))
    numpy.testing.assert_array_equal(test_features[0], features[1])
    with h5py.File("adult.hdf5") as file:
        assert json.loads(file["features"].attrs["columns"]) == names


def test_every_process_writes_the_same_bytes(tmp_path):
    write_adult()
    program = [sys.executable, "-m", "fuel_data.commands.convert", "adult", "--any-version"]
    written = set()
    for seed in "01":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "0"}
        subprocess.run([*program, "-r", "same"], check=True, env=environment, capture_output=True)
        with open("same.hdf5", "rb") as file:
            written.add(file.read())

    assert len(written) == 1


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (RECORD.replace("Male", "Mal"), "adult.data, line 1: sex cannot be 'Mal'. Did you mean"),
        (RECORD.replace("39", "old"), "age must be a number; got 'old'"),
        (RECORD.replace("<=50K", "50K"), "the income must be <=50K or >50K; got '50K'"),
        (RECORD[:60], "expected 15 fields, got"),
    ],
)
def test_another_table_of_records_is_refused(capsys, record, words):
    write_adult(train=(record,))

    assert main(["adult", "--any-version"]) == 1

    assert words in capsys.readouterr().err


def test_tables_that_are_not_whole_are_refused(capsys, monkeypatch):
    write_iris(num_lines=149)
    write_adult()
    monkeypatch.setattr("fuel_data.converters.iris.DIGESTS", {})
    monkeypatch.setattr("fuel_data.converters.adult.DIGESTS", {})

    assert main(["iris"]) == main(["adult"]) == 1

    said = capsys.readouterr().err
    assert "expected 150 flowers, found 149" in said
    assert "adult.data: expected 30,162 complete records, found 2" in said
