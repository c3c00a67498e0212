"""The settings of bricks have their defaults, and are set in code, environment and file."""

import pytest

from bricks.config import config


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    for variable in ("BRICKS_CONFIG", "BLOCKS_CONFIG", "BRICKS_BACKEND", "BLOCKS_BACKEND"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    yield
    for key in ("backend", "optimizer"):
        delattr(config, key)


def test_the_defaults_are_those_of_blocks_and_xla():
    assert config.backend == "xla"
    assert config.device is None
    assert config.optimizer == "fast_run"
    assert config.default_seed == 1
    assert config.recursion_limit == 10000
    assert config.profile is False
    assert config.log_backend == "python"
    assert config.max_blob_size == 4096
    assert config.temp_dir is None


def test_the_database_lies_in_the_home_folder(tmp_path):
    assert config.sqlite_database == str(tmp_path / "blocks_log.sqlite")


def test_code_wins_over_environment_over_file(monkeypatch, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("backend: FAST_RUN\n")
    monkeypatch.setenv("BRICKS_CONFIG", str(settings))
    assert config.backend == "FAST_RUN"

    monkeypatch.setenv("BLOCKS_BACKEND", "FAST_COMPILE")
    assert config.backend == "FAST_COMPILE"
    monkeypatch.setenv("BRICKS_BACKEND", "c")
    assert config.backend == "c"
    config.backend = "py"
    assert config.backend == "py"


@pytest.mark.parametrize("name", [".bricksrc", ".blocksrc"])
def test_the_file_in_the_home_folder_is_read(tmp_path, name):
    (tmp_path / name).write_text("default_seed: 7\n")

    assert config.default_seed == 7


def test_the_variable_that_blocks_had_names_the_file(monkeypatch, tmp_path):
    (tmp_path / "mine").write_text("max_blob_size: 5\n")
    monkeypatch.setenv("BLOCKS_CONFIG", str(tmp_path / "mine"))

    assert config.max_blob_size == 5


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(AttributeError, match="no setting `bakend`.*backend"):
        config.bakend = "py"


def test_an_unknown_rewriting_profile_is_refused():
    with pytest.raises(ValueError, match="expected fast_run or fast_compile"):
        config.optimizer = "fast"

    assert config.optimizer == "fast_run"


def test_an_unknown_backend_is_refused_where_it_is_assigned_and_the_nearest_is_named():
    config.backend = "py"

    with pytest.raises(ValueError, match=r"`backend` cannot be 'FAST_RAN', .*'FAST_RUN'"):
        config.backend = "FAST_RAN"
    with pytest.raises(ValueError, match=r"no such backend\. Known: .*xla") as error:
        config.backend = "foo"

    assert str(error.value).count("xla") == 1
    assert config.backend == "py"


def test_an_unknown_backend_of_the_environment_is_refused_where_it_is_read(monkeypatch):
    monkeypatch.setenv("BRICKS_BACKEND", "foo")

    with pytest.raises(ValueError, match="'foo', which the environment variable BRICKS_BACKEND"):
        _ = config.backend
