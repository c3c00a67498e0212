import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuel_data.config_parser import Configuration, boolean, config, folders, fraction, whole, words
from fuel_data.exceptions import ConfigurationError


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.delenv("TEST_COLOUR", raising=False)
    (tmp_path / "rc").touch()
    monkeypatch.setenv("TEST_CONFIG", str(tmp_path / "rc"))
    settings = Configuration(env_var="TEST_CONFIG", path="~/.does-not-exist")
    settings.add_config("colour", str, default="blue", env_var="TEST_COLOUR")
    settings.add_config("size", int)
    return settings


def test_code_comes_before_environment_before_file_before_default(settings, tmp_path, monkeypatch):
    assert settings.colour == "blue"
    (tmp_path / "rc").write_text("colour: green\n")
    assert settings.colour == "green"
    monkeypatch.setenv("TEST_COLOUR", "red")
    assert settings.colour == "red"
    settings.colour = "white"
    assert settings.colour == "white"
    del settings.colour
    assert settings.colour == "red"


def test_a_setting_without_value_is_an_error_that_says_how_to_set_it(settings):
    with pytest.raises(ConfigurationError, match="`size` is not set. Assign config.size, or write"):
        settings.size  # noqa: B018


def test_hasattr_tells_whether_a_setting_has_a_value(settings):
    assert not hasattr(settings, "size")
    assert not hasattr(settings, "no_such_setting")
    settings.size = 3
    assert hasattr(settings, "size")


def test_an_unknown_setting_names_the_nearest(settings):
    with pytest.raises(AttributeError, match="no setting `color`. Did you mean 'colour'"):
        settings.color  # noqa: B018
    with pytest.raises(AttributeError, match="no setting `sise`. Did you mean 'size'"):
        settings.sise = 2


def test_an_unknown_key_in_the_file_names_the_nearest_and_the_file(settings, tmp_path):
    (tmp_path / "rc").write_text("colur: green\n")
    with pytest.raises(ValueError, match="rc sets `colur`, which is no setting. Did you mean 'co"):
        settings.colour  # noqa: B018


def test_an_empty_file_sets_nothing(settings, tmp_path):
    (tmp_path / "rc").write_text("# nothing yet\n")
    assert settings.colour == "blue"


def test_a_file_that_is_no_mapping_or_no_yaml_is_an_error_in_words(settings, tmp_path):
    (tmp_path / "rc").write_text("- colour\n")
    with pytest.raises(ValueError, match="must hold lines `key: value`; got list"):
        settings.colour  # noqa: B018
    (tmp_path / "rc").write_text("colour: [\n")
    with pytest.raises(ValueError, match="rc is not valid YAML"):
        settings.colour  # noqa: B018


def test_a_file_that_the_environment_names_must_be_there(settings, tmp_path, monkeypatch):
    (tmp_path / "rc").unlink()
    with pytest.raises(ValueError, match="variable TEST_CONFIG names .*rc, where there is no file"):
        settings.colour  # noqa: B018
    monkeypatch.setenv("TEST_CONFIG", "")
    assert settings.colour == "blue"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "rc cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b"colour: gr\xfcn\n"), "rc is no text in UTF-8"),
    ],
    ids=["folder", "latin-1"],
)
def test_a_file_that_cannot_be_read_is_named(settings, tmp_path, make, words):
    (tmp_path / "rc").unlink()
    make(tmp_path / "rc")
    with pytest.raises(ValueError, match=words):
        settings.colour  # noqa: B018


def test_a_value_of_the_wrong_type_says_where_it_came_from(settings, tmp_path):
    (tmp_path / "rc").write_text("size: many\n")
    with pytest.raises(ValueError, match="`size` cannot be 'many', which the file .*rc says"):
        settings.size  # noqa: B018


def test_a_file_that_changes_is_read_again(settings, tmp_path):
    (tmp_path / "rc").write_text("size: 1\n")
    assert settings.size == 1
    (tmp_path / "rc").write_text("size: 20\n")
    assert settings.size == 20


def test_an_empty_variable_means_no_extra_modules(monkeypatch):
    monkeypatch.setenv("FUEL_EXTRA_CONVERTERS", "")
    monkeypatch.setenv("FUEL_EXTRA_DOWNLOADERS", "one two")
    assert config.extra_converters == []
    assert config.extra_downloaders == ["one", "two"]


def test_the_data_path_has_a_default_under_the_users_data_directory(monkeypatch):
    monkeypatch.delenv("FUEL_DATA_PATH", raising=False)
    monkeypatch.setenv("FUEL_CONFIG", os.devnull)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert config.data_path == ["/somewhere/fuel"]
    monkeypatch.delenv("XDG_DATA_HOME")
    assert config.data_path == [str(Path.home() / ".local/share/fuel")]
    monkeypatch.setattr(sys, "platform", "darwin")
    assert config.data_path == [str(Path.home() / "Library/Application Support/fuel")]


def test_the_data_path_is_split_as_path_is(monkeypatch):
    monkeypatch.setenv("FUEL_DATA_PATH", f"/one{os.pathsep}/two")
    assert config.data_path == ["/one", "/two"]


def test_defaults_are_usable(monkeypatch):
    monkeypatch.setenv("FUEL_CONFIG", os.devnull)
    monkeypatch.delenv("FUEL_FLOATX", raising=False)
    monkeypatch.delenv("FUEL_DEFAULT_SEED", raising=False)
    monkeypatch.delenv("FUEL_MAX_DISK_USAGE", raising=False)
    assert (config.floatX, config.default_seed, config.local_data_path) == ("float32", 1, "")
    assert config.max_disk_usage == 0.9


def test_booleans_are_read_from_words():
    assert [boolean(word) for word in ("yes", "True", "1", 1, True)] == [True] * 5
    assert [boolean(word) for word in ("no", "false", "0", "", False)] == [False] * 5
    with pytest.raises(ValueError, match="expected true or false, got 'maybe'"):
        boolean("maybe")


def test_a_setting_of_type_bool_understands_false():
    settings = Configuration()
    settings.add_config("loud", bool, default="false")
    assert settings.loud is False


def test_a_part_of_a_disk_is_a_number_above_0_and_at_most_1():
    assert [fraction(value) for value in ("0.9", 0.5, 1)] == [0.9, 0.5, 1.0]
    for wrong in (0, "1.5", "-0.1", "nan"):
        with pytest.raises(ValueError, match="expected a number above 0 and at most 1"):
            fraction(wrong)


def test_a_whole_number_is_not_cut_from_another():
    assert [whole(value) for value in ("12", 12, 12.0)] == [12, 12, 12]
    with pytest.raises(ValueError, match="expected a whole number"):
        whole(1.9)


def test_a_line_of_the_file_without_a_value_sets_nothing(monkeypatch, tmp_path):
    (tmp_path / "fuelrc").write_text("local_data_path:\ndefault_seed: 7\n")
    monkeypatch.setenv("FUEL_CONFIG", str(tmp_path / "fuelrc"))
    for name in ("FUEL_LOCAL_DATA_PATH", "FUEL_DEFAULT_SEED"):
        monkeypatch.delenv(name, raising=False)

    assert (config.local_data_path, config.default_seed) == ("", 7)


def test_words_and_folders_are_read_from_text_and_lists():
    assert words(["a", "b"]) == words(" a  b ") == ["a", "b"]
    assert folders(["/a", Path("/b")]) == ["/a", "/b"]
    assert folders(Path("/a")) == ["/a"]


def test_importing_the_package_is_cheap():
    code = "import sys, fuel_data; print([m for m in ('yaml', 'h5py', 'zmq') if m in sys.modules])"
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert output.strip() == "[]"


def test_a_file_that_was_written_for_fuel_is_read(monkeypatch, tmp_path):
    (tmp_path / "fuelrc").write_text("local_data_path: /tmp\nfloatX: float64\ndata_path: /data\n")
    monkeypatch.setenv("FUEL_CONFIG", str(tmp_path / "fuelrc"))
    for name in ("FUEL_FLOATX", "FUEL_DATA_PATH"):
        monkeypatch.delenv(name, raising=False)

    assert (config.floatX, config.data_path) == ("float64", ["/data"])
