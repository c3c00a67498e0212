import os

import pytest

from fuel_data.utils import find_in_data_path, remember_cwd


def test_a_file_is_found_in_the_first_folder_that_has_it(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "x.hdf5").touch()
    (tmp_path / "c" / "x.hdf5").touch()
    monkeypatch.setenv("HERE", str(tmp_path))
    folders = [str(tmp_path / "a"), "$HERE/b", str(tmp_path / "c")]
    monkeypatch.setenv("FUEL_DATA_PATH", os.pathsep.join(folders))

    assert find_in_data_path("x.hdf5") == str(tmp_path / "b" / "x.hdf5")


def test_a_file_that_is_nowhere_is_an_error_with_the_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))

    with pytest.raises(OSError, match=f"'x.hdf5' is in no folder of the data path .{tmp_path}."):
        find_in_data_path("x.hdf5")


def test_an_empty_data_path_is_an_error_that_says_so(monkeypatch):
    monkeypatch.setenv("FUEL_DATA_PATH", "")
    words = "'x.hdf5' cannot be looked for: the data path is empty. Set FUEL_DATA_PATH to the"

    with pytest.raises(OSError, match=words):
        find_in_data_path("x.hdf5")


def test_the_folder_is_remembered_also_after_an_error(tmp_path):
    before = os.getcwd()

    with pytest.raises(KeyError), remember_cwd():
        os.chdir(tmp_path)
        raise KeyError

    assert os.getcwd() == before
