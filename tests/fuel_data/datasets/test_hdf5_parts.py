"""Joined files, whose parts must be those that were joined, where they were."""

import os
import pickle
import shutil

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.commands.convert import main as convert
from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.converters.join import join_files
from fuel_data.datasets import H5PYDataset, hdf5_digests, hdf5_parts


def write(path, first):
    """A file of four examples, as of some time ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    x = numpy.arange(first, first + 4, dtype="int16")[:, None]
    ragged = [numpy.full(1 + number, first + number, "int16") for number in range(4)]
    with new_hdf5_file(path) as h5file:
        fill_hdf5_file(h5file, [("train", "x", x), ("train", "ragged", ragged)])
    os.utime(path, (10**9, 10**9))
    return path


@pytest.fixture
def joined(tmp_path):
    """Two files of one last name in different folders, joined in a third."""
    parts = [write(tmp_path / "s1" / "p.hdf5", 0), write(tmp_path / "s2" / "p.hdf5", 10)]
    (tmp_path / "out").mkdir()
    (path,) = join_files(tmp_path, tmp_path / "out", files=[str(part) for part in parts])
    return path


@pytest.fixture
def let_time_pass(monkeypatch):
    monkeypatch.setattr("fuel_data.utils.digests._SETTLED_NANOSECONDS", -(10**10))


def values(path):
    return H5PYDataset(path, ("train",), sources=("x",)).get_data(None, slice(0, 8))[0][:, 0]


EXPECTED = [0, 1, 2, 3, 10, 11, 12, 13]


def change(path, source="x", value=7):
    """Change a value, where nothing else in the file would show it."""
    with h5py.File(path, "r+") as h5file:
        h5file[source][2] = value


def forget(path):
    """Make a joined file like one that others have joined."""
    with h5py.File(path, "r+") as h5file:
        del h5file.attrs["joined_parts"]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_parts_are_found_at_their_paths_and_not_by_their_last_names(joined, tmp_path, is_recorded):
    if not is_recorded:
        forget(joined)
    moved = tmp_path / "deep" / "er" / "j.hdf5"
    moved.parent.mkdir(parents=True)
    shutil.move(joined, moved)
    shutil.copy(tmp_path / "s2" / "p.hdf5", moved.parent)

    wanted = tmp_path / "deep" / "s1" / "p.hdf5"
    words = f"has examples in the file '../s1/p.hdf5', which is not there. Put it back as {wanted}"
    with pytest.raises(ValueError, match=words):
        values(moved)

    # What it says helps.
    shutil.copytree(tmp_path / "s1", tmp_path / "deep" / "s1")
    shutil.copytree(tmp_path / "s2", tmp_path / "deep" / "s2")
    assert values(moved).tolist() == EXPECTED


def test_a_file_of_the_path_from_the_current_folder_is_no_part_if_it_is_another(
    joined, tmp_path, monkeypatch
):
    write(tmp_path / "elsewhere" / "s1" / "p.hdf5", 100)
    (tmp_path / "elsewhere" / "here").mkdir()
    os.remove(tmp_path / "s1" / "p.hdf5")
    monkeypatch.chdir(tmp_path / "elsewhere" / "here")

    with pytest.raises(ValueError, match="s1/p.hdf5 is not the file that was joined"):
        values(joined)


def test_an_exchanged_part_is_refused_with_what_differs_and_the_way_out(joined, tmp_path):
    part = tmp_path / "s1" / "p.hdf5"
    size = part.stat().st_size
    shutil.copy(tmp_path / "s2" / "p.hdf5", part)

    with pytest.raises(ValueError) as error:
        values(joined)
    assert f"{joined}: its part " in str(error.value) and "s1/p.hdf5 is not" in str(error.value)
    assert "It differs in digests, bytes: it has been" in str(error.value)

    os.remove(part)
    with h5py.File(part, "w") as h5file:
        h5file["x"] = numpy.zeros((9, 1), "int16")
    words = rf"It differs in size, splits, .* bytes \(it had {size} bytes, has \d+\): .* join the "
    with pytest.raises(ValueError, match=words):
        values(joined)

    write(part, 0)
    assert values(joined).tolist() == EXPECTED


def test_a_part_that_is_exchanged_between_two_readings_in_one_process_is_refused(
    joined, tmp_path, let_time_pass
):
    assert values(joined).tolist() == EXPECTED
    write(tmp_path / "s2" / "p.hdf5", 20)

    with pytest.raises(ValueError, match="s2/p.hdf5 is not the file that was joined"):
        values(joined)


def test_a_part_of_a_part_is_checked_too(joined, tmp_path):
    (path,) = join_files(tmp_path, tmp_path, files=[joined])
    assert values(path).tolist() == EXPECTED
    change(tmp_path / "s2" / "p.hdf5")

    with pytest.raises(ValueError, match=r"out/j.*: its part .*s2/p.hdf5 is not the file that"):
        values(path)


@pytest.mark.parametrize("source", ["x", "ragged_shapes"])
def test_digests_of_the_parts_show_damage_where_nothing_else_does(joined, tmp_path, source):
    forget(joined)
    assert values(joined).tolist() == EXPECTED
    change(tmp_path / "s2" / "p.hdf5", source)

    for path in (joined, tmp_path / "s2" / "p.hdf5"):
        with pytest.raises(OSError, match=f"s2/p.hdf5 is damaged: source '{source}' cannot be"):
            H5PYDataset(path, ("train",))


def test_damage_beyond_the_limits_is_found_by_verify(joined, tmp_path, monkeypatch):
    forget(joined)
    change(tmp_path / "s2" / "p.hdf5")
    monkeypatch.setattr("fuel_data.datasets.hdf5.CHECKED_BYTES", 1)

    dataset = H5PYDataset(joined, ("train",), sources=("x",))

    with pytest.raises(OSError, match="s2/p.hdf5 is damaged: source 'x' cannot be"):
        dataset.verify()


def test_each_part_is_digested_once_in_a_process_and_by_verify(joined, monkeypatch, let_time_pass):
    read = []
    original = hdf5_digests.digest_source

    def note(dataset):
        read.append((dataset.file.filename[-9:], dataset.name))
        return original(dataset)

    monkeypatch.setattr(hdf5_digests, "digest_source", note)
    both = [("s1/p.hdf5", "/x"), ("s2/p.hdf5", "/x")]
    hdf5_digests._right.clear()
    values(joined)
    values(joined)
    assert read == both

    H5PYDataset(joined, ("train",), sources=("x",)).verify()
    assert read == [*both, *both]


def test_verify_names_parts_that_have_no_digests(joined, tmp_path, caplog):
    H5PYDataset(joined, ("train",)).verify()
    assert not caplog.text

    with h5py.File(tmp_path / "s2" / "p.hdf5", "r+") as h5file:
        del h5file.attrs["digests"]
    with pytest.raises(ValueError, match="It differs in (size, )?digests, bytes:"):
        values(joined)
    forget(joined)
    H5PYDataset(joined, ("train",)).verify()
    assert "nothing was checked, in " in caplog.text
    assert "s2/p.hdf5" in caplog.text and "s1/p.hdf5" not in caplog.text


def test_parts_are_checked_before_they_are_joined(joined, tmp_path, capsys):
    forget(joined)
    change(tmp_path / "s2" / "p.hdf5")

    assert convert(["join", joined, "-o", str(tmp_path), "-r", "again"]) == 1
    assert "s2/p.hdf5 is damaged: source 'x' cannot be what was written" in capsys.readouterr().err
    assert not (tmp_path / "again.hdf5").exists()


@pytest.mark.parametrize("value", [b"no JSON", b"[1]", b'{"../s1/p.hdf5": {"size": 3}}', 4])
def test_a_record_of_another_form_is_an_error_in_words(joined, value):
    with h5py.File(joined, "r+") as h5file:
        h5file.attrs[hdf5_parts.ATTRIBUTE] = numpy.bytes_(value) if value != 4 else value

    with pytest.raises(ValueError, match=r"attribute 'joined_parts' does not say .* join the p"):
        values(joined)


def test_a_changed_part_is_named_when_a_run_goes_on(tmp_path, joined):
    dataset = H5PYDataset(joined, ("train",), sources=("x",))
    assert_array_equal(dataset.get_data(None, [7, 0])[0], [[13], [0]])
    write(tmp_path / "s2" / "p.hdf5", 20)

    words = "has changed since it was first opened: it no longer fits: .*its part .*s2/p.hdf5 is no"
    with pytest.raises(ValueError, match=words):
        pickle.loads(pickle.dumps(dataset)).get_data(None, [0])
