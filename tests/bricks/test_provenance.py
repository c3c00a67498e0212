import sys

import numpy

from bricks.config import config
from bricks.provenance import describe, differences, lowered_step


class Step:
    """Stands for a compiled step, and counts how often it is lowered."""

    def __init__(self):
        self.num_compilations, self.count = 1, 0

    def lowered_digest(self):
        self.count += 1
        if self.num_compilations == 0:
            raise RuntimeError("has not been called")
        return f"digest {self.num_compilations}"


class Algorithm:
    def __init__(self, function):
        self.function = function


def test_this_process_differs_from_itself_in_nothing():
    assert differences(describe()) == []


def test_versions_device_and_command_are_described():
    description = describe()

    assert description["libraries"]["numpy"] == numpy.__version__
    assert description["device"].startswith("cpu")
    assert description["command"] == sys.orig_argv
    assert description["threads"] >= 1


def test_each_difference_is_named_and_what_is_not_said_does_not_differ():
    manifest = {"libraries": {"numpy": "1.0"}, "threads": 9999, "command": ["other"]}

    first, second = differences(manifest)
    assert first == f"numpy 1.0 (now {numpy.__version__})"
    assert second.startswith("threads 9999 (now ")


def test_another_backend_is_a_difference():
    manifest = describe()
    config.backend = "py"
    try:
        assert "backend xla (now py)" in differences(manifest)
    finally:
        del config.backend


def test_a_step_is_lowered_once_for_each_time_it_is_compiled():
    step = Step()
    algorithm = Algorithm(step)

    assert [lowered_step(algorithm) for _ in range(3)] == ["digest 1"] * 3
    step.num_compilations = 2
    assert lowered_step(algorithm) == "digest 2"
    assert step.count == 2


def test_an_algorithm_without_a_compiled_step_has_no_digest():
    step = Step()
    step.num_compilations = 0

    assert lowered_step(Algorithm(step)) is None
    assert lowered_step(Algorithm(None)) is None
