import hashlib
import json
import os
import resource
import shutil

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.commands.convert import main
from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.converters.join import join_files
from fuel_data.datasets import H5PYDataset

LABELS = {"x": ("batch", "feature"), "sound": ("batch", "time", "channel")}
X = numpy.arange(40).reshape(20, 2)
SOUNDS = [numpy.full((1 + number % 3, 2), number, "float32") for number in range(20)]
NAMES = [f"né {number}" for number in range(20)]


def write(path, first, num_train, num_test, **arguments):
    """A file with some of the examples above."""
    path.parent.mkdir(exist_ok=True)
    middle, last = first + num_train, first + num_train + num_test
    data = [
        (split, source, values[part])
        for split, part in (("train", slice(first, middle)), ("test", slice(middle, last)))
        for source, values in (("x", X), ("sound", SOUNDS), ("name", NAMES))
        if part.start < part.stop
    ]
    with new_hdf5_file(path) as h5file:
        fill_hdf5_file(h5file, data, LABELS, **arguments)


def read(path, split, request, sources=("x", "sound", "name")):
    dataset = H5PYDataset(path, (split,), sources=sources)
    return dataset, dict(zip(sources, dataset.get_data(None, request), strict=True))


def test_splits_of_files_are_joined_by_name_and_read_like_one(tmp_path, monkeypatch):
    folder = tmp_path / "shards"
    write(folder / "a.hdf5", 0, 5, 3)
    write(folder / "b.hdf5", 8, 4, 0)
    write(folder / "c.hdf5", 12, 6, 2)
    monkeypatch.chdir(tmp_path)

    names = [f"shards/{name}.hdf5" for name in "abc"]
    assert main(["join", *names, "-o", "shards", "-r", "all"]) == 0

    # The folder may go elsewhere, but stay together.
    shutil.move(folder, tmp_path / "there")
    for split, expected in (("train", [*range(5), *range(8, 18)]), ("test", [5, 6, 7, 18, 19])):
        for order in (slice(0, len(expected)), numpy.arange(len(expected))[::-2]):
            dataset, found = read(tmp_path / "there" / "all.hdf5", split, order)
            numbers = numpy.array(expected)[order]
            assert dataset.num_examples == len(expected)
            assert_array_equal(found["x"], X[numbers])
            assert [bytes(name).decode() for name in found["name"]] == [NAMES[i] for i in numbers]
            for got, number in zip(found["sound"], numbers, strict=True):
                assert_array_equal(got, SOUNDS[number])
                assert got.dtype == "float32"
    assert dataset.axis_labels == {**LABELS, "name": None}
    with h5py.File(tmp_path / "there" / "all.hdf5") as h5file:
        assert h5file.attrs["fuel_convert_command"].startswith(b"fuel-convert join shards/a.hdf5")
        inputs = json.loads(h5file.attrs["fuel_convert_inputs"])
        assert h5file["x"].id.get_offset() is None and h5file["x"].is_virtual
    assert inputs == {
        f"{name}.hdf5": hashlib.sha256(
            (tmp_path / "there" / f"{name}.hdf5").read_bytes()
        ).hexdigest()
        for name in "abc"
    }


def test_on_a_terminal_bars_show_how_many_parts_and_bytes_are_read(tmp_path, make_terminal):
    paths = [tmp_path / "a.hdf5", tmp_path / "b.hdf5"]
    for path in paths:
        write(path, 0, 3, 0)
    terminal = make_terminal()

    assert main(["join", *map(str, paths), "-o", str(tmp_path), "-r", "all"]) == 0

    for verb in ("Checking", "Digesting"):
        assert f"{verb} the parts of all.hdf5   0%" in terminal.shown()
        assert f"{verb} the parts of all.hdf5 100%" in terminal.shown()


def test_splits_by_indices_stay_so_beside_ranges(tmp_path):
    write(tmp_path / "a.hdf5", 0, 6, 0)
    write(tmp_path / "b.hdf5", 6, 6, 0)
    with h5py.File(tmp_path / "a.hdf5", "r+") as h5file:
        h5file["chosen"] = [4, 1, 1]
        rows = {"train": dict.fromkeys(("x", "sound"), (0, 0, h5file["chosen"].ref))}
        h5file.attrs["split"] = H5PYDataset.create_split_array(rows)
        del h5file.attrs["digests"]
    with h5py.File(tmp_path / "b.hdf5", "r+") as h5file:
        rows = {"train": dict.fromkeys(("x", "sound"), (2, 5))}
        h5file.attrs["split"] = H5PYDataset.create_split_array(rows)
        del h5file.attrs["digests"]

    (path,) = join_files(tmp_path, tmp_path, files=["a.hdf5", "b.hdf5"])

    dataset = H5PYDataset(path, ("train",), sources=("x", "sound"))
    ordered = H5PYDataset(path, ("train",), sources=("x", "sound"), keep_order=True)
    assert_array_equal(dataset.get_data(None, slice(0, 5))[0], X[[1, 4, 8, 9, 10]])
    x, sound = ordered.get_data(None, slice(0, 6))
    assert_array_equal(x, X[[4, 1, 1, 8, 9, 10]])
    assert [int(values[0, 0]) for values in sound] == [4, 1, 1, 8, 9, 10]
    # Both sources refer to the same indices, so that nobody need compare them.
    with h5py.File(path) as h5file:
        assert len({h5file[row["indices"]].name for row in h5file.attrs["split"]}) == 1


def test_joined_files_can_be_joined_again_and_lie_elsewhere(tmp_path):
    write(tmp_path / "one" / "a.hdf5", 0, 3, 0, storage=None)
    write(tmp_path / "two" / "b.hdf5", 3, 4, 0)
    write(tmp_path / "two" / "c.hdf5", 7, 2, 0)
    (inner,) = join_files(tmp_path / "two", tmp_path / "two", files=["b.hdf5", "c.hdf5"])
    (tmp_path / "three").mkdir()

    (path,) = join_files(tmp_path, tmp_path / "three", files=["one/a.hdf5", inner])

    _, found = read(path, "train", [8, 0, 3, 7])
    assert_array_equal(found["x"], X[[8, 0, 3, 7]])
    assert [int(values[0, 0]) for values in found["sound"]] == [8, 0, 3, 7]


def test_texts_of_several_lengths_become_those_of_the_largest(tmp_path):
    for name, values in (("a", [b"a", b"bb"]), ("b", [b"four"])):
        with new_hdf5_file(tmp_path / name) as h5file:
            fill_hdf5_file(h5file, [("train", "file", numpy.array(values))])

    (path,) = join_files(tmp_path, tmp_path, files=["a", "b"])

    (found,) = H5PYDataset(path, ("train",)).get_data(None, [2, 0, 1])
    assert found.tolist() == [b"four", b"a", b"bb"] and found.dtype == "S4"


def test_classes_must_be_the_same(tmp_path, capsys):
    for name, classes in (("a", ["cat", "dog"]), ("b", ["cat", "owl"]), ("c", ["cat", "dog"])):
        with new_hdf5_file(tmp_path / name) as h5file:
            fill_hdf5_file(h5file, [("all", "targets", numpy.array([[0], [1]]))])
            h5file.create_dataset("class_names", data=classes, dtype=h5py.string_dtype())
    with new_hdf5_file(tmp_path / "d") as h5file:
        fill_hdf5_file(h5file, [("all", "targets", numpy.array([[0], [1]]))])

    join = ["join", "-d", str(tmp_path), "-o", str(tmp_path), "a"]
    assert main([*join, "b"]) == 1
    assert (
        f"{tmp_path}/b: the classes are cat, owl, in {tmp_path}/a cat, dog, so equal numbers"
        in (capsys.readouterr().err)
    )
    assert main([*join, "d"]) == 1
    assert "/d: the classes are not named, in " in capsys.readouterr().err
    assert main([*join, "c"]) == 0
    with h5py.File(tmp_path / "joined.hdf5") as h5file:
        assert h5file["class_names"].asstr()[()].tolist() == ["cat", "dog"]


def test_class_names_that_are_no_texts_are_no_names(tmp_path):
    _write_one(tmp_path / "a", numpy.zeros((2, 1)))
    for value in ([1, 2], None):
        with h5py.File(tmp_path / "a", "r+") as h5file:
            if value is None:
                del h5file["class_names"]
                h5file.create_group("class_names")
            else:
                h5file["class_names"] = value
        (path,) = join_files(tmp_path, tmp_path, files=["a"])

        with h5py.File(path) as h5file:
            assert "class_names" not in h5file


def test_damage_is_found_before_a_file_is_joined(tmp_path, capsys):
    _write_one(tmp_path / "a", numpy.zeros((2, 1)))
    with h5py.File(tmp_path / "a", "r+") as h5file:
        h5file["x"][1] = 1

    assert main(["join", "-d", str(tmp_path), "-o", str(tmp_path), "a"]) == 1
    assert f"{tmp_path}/a is damaged: source 'x'" in capsys.readouterr().err


def _write_one(path, values, source="x", labels=("batch", "index"), split="train"):
    with new_hdf5_file(path) as h5file:
        fill_hdf5_file(h5file, [(split, source, values)], {source: labels})


@pytest.mark.parametrize(
    ("values", "arguments", "words"),
    [
        (
            X.astype("int16"),
            {},
            r"b.hdf5: source 'x' must be int64, shape \(2,\) for each example, axes batch, index, "
            r"as in .*a.hdf5; it is int16, shape \(2,\) for each example",
        ),
        (X[:, :1], {}, r"it is int64, shape \(1,\) for each example, axes batch, index\. Convert"),
        (
            X,
            {"labels": ("batch", "time")},
            "it is int64, .*, axes batch, time. Convert one of",
        ),
        (
            SOUNDS,
            {"labels": ("batch", "time", "channel")},
            "it is float32 of variable length, 2 axes of any length for each example, axes batch, ",
        ),
        (X, {"source": "y"}, "split 'train' must have the sources x, as in .*a.hdf5; it has y"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, values, arguments, words):
    _write_one(tmp_path / "a.hdf5", X)
    _write_one(tmp_path / "b.hdf5", values, **arguments)

    with pytest.raises(ValueError, match=words):
        join_files(tmp_path, tmp_path, files=["a.hdf5", "b.hdf5"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.hdf5", "b.hdf5"]


def test_wrong_calls_are_refused(tmp_path, capsys):
    _write_one(tmp_path / "a%b.hdf5", X)
    _write_one(tmp_path / "c.hdf5", X)
    with h5py.File(tmp_path / "other.hdf5", "w") as h5file:
        h5file["x"] = X
    join = ["join", "-d", str(tmp_path), "-o", str(tmp_path)]
    for arguments, status, words in (
        (["c.hdf5", "missing.hdf5"], 1, "These files are not there: missing.hdf5."),
        (["c.hdf5", "a%b.hdf5"], 1, "reads a % in the name of a file as a number to fill in"),
        (["c.hdf5", "-r", "c.hdf5"], 1, "the place of one of its parts. Choose another name by -r"),
        (["c.hdf5", "other.hdf5"], 1, "other.hdf5 has no root attribute 'split'"),
        (
            ["c.hdf5", "--compression", "gzip"],
            2,
            "fuel-convert join: the values stay where they are, so",
        ),
    ):
        assert main([*join, *arguments]) == status
        assert words in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a%b.hdf5", "c.hdf5", "other.hdf5"]


def test_a_split_that_another_file_lacks_has_the_examples_of_the_one(tmp_path):
    _write_one(tmp_path / "a.hdf5", X[:3])
    _write_one(tmp_path / "b.hdf5", X[3:5], split="test")
    _write_one(tmp_path / "c.hdf5", X[:0], split="none")

    (path,) = join_files(tmp_path, tmp_path, files=["a.hdf5", "b.hdf5", "c.hdf5"])

    assert_array_equal(H5PYDataset(path, ("test",)).get_data(None, slice(0, 2))[0], X[3:5])
    assert_array_equal(H5PYDataset(path, ("train", "test")).get_data(None, [4, 0])[0], X[[4, 0]])
    assert H5PYDataset(path, ("none",)).num_examples == 0


def test_more_files_than_may_be_open_are_refused_with_the_way_out(tmp_path):
    _write_one(tmp_path / "0", X)
    names = [str(number) for number in range(20)]
    for name in names[1:]:
        shutil.copy(tmp_path / "0", tmp_path / name)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 10, hard))
    try:
        with pytest.raises(OSError, match="^20 files are more than may be open.* `ulimit -n`, or"):
            join_files(tmp_path, tmp_path, files=names)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
