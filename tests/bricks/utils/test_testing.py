import unittest

import pytest

from bricks.config import config
from bricks.utils.testing import (
    MockAlgorithm,
    MockMainLoop,
    skip_if_configuration_set,
    skip_if_not_available,
)
from extensions import FinishAfter


def test_a_mock_main_loop_calls_extensions_and_trains_nothing():
    loop = MockMainLoop(extensions=[FinishAfter(after_n_epochs=2)])

    loop.run()

    assert (loop.status["epochs_done"], loop.status["iterations_done"]) == (2, 20)
    assert loop.algorithm.batch == {"data": 9}


def test_a_mock_algorithm_is_initialized_once():
    algorithm = MockAlgorithm()
    algorithm.initialize()

    with pytest.raises(RuntimeError, match="called a second time"):
        algorithm.initialize()


def test_a_test_is_left_out_for_want_of_what_it_needs(monkeypatch, tmp_path):
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))
    (tmp_path / "here.hdf5").touch()

    skip_if_not_available(modules=["numpy"], datasets=["here.hdf5"], configurations=["backend"])
    with pytest.raises(unittest.SkipTest, match="module 'nowhere_to_be.found' is not"):
        skip_if_not_available(modules=["numpy", "nowhere_to_be.found"])
    with pytest.raises(unittest.SkipTest, match="'gone.hdf5' is in no folder of the data path"):
        skip_if_not_available(datasets=["gone.hdf5"])
    with pytest.raises(unittest.SkipTest, match="setting 'temp_dir' has no value"):
        skip_if_not_available(configurations=["temp_dir"])


def test_a_test_is_left_out_where_a_setting_does_not_suit_it(monkeypatch):
    monkeypatch.setattr(config, "optimizer", "fast_compile")

    skip_if_configuration_set("optimizer", "fast_run")
    with pytest.raises(unittest.SkipTest, match="'optimizer' is 'fast_compile': too slow"):
        skip_if_configuration_set("optimizer", "fast_compile", "too slow")
