"""What a main loop is made with."""

import pytest

from bricks.log import JSONLinesLog, TrainingLog
from bricks.main_loop import MainLoop


def test_an_unknown_log_backend_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="`log_backend` must be one of .* Did you mean 'sqlite'"):
        MainLoop(None, None, log_backend="sqllite")


def test_the_log_backend_is_chosen_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert type(MainLoop(None, None, log_backend="jsonlines").log) is JSONLinesLog
    assert type(MainLoop(None, None).log) is TrainingLog


def test_an_unknown_keyword_is_refused_with_the_nearest():
    with pytest.raises(TypeError, match="MainLoop: .*'extension'. Did you mean 'extensions'"):
        MainLoop(None, None, extension=[])
