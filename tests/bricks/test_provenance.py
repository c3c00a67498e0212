import sys
from types import SimpleNamespace

import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.config import config
from bricks.provenance import (
    describe,
    differences,
    lowered_steps,
    warn_of_another_step,
)


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


def step_of(factor):
    x = tensor.vector("x")
    algorithm = SimpleNamespace(function=xla.function([x], factor * x))
    algorithm.function(x=numpy.zeros(3, "float32"))
    algorithm.function(x=numpy.zeros(2, "float32"))
    return algorithm


def test_a_step_has_a_digest_for_each_set_of_shapes():
    digests = lowered_steps(step_of(2))

    assert list(digests) == ["((3,),)", "((2,),)"]
    assert len(set(digests.values())) == 2
    assert lowered_steps(step_of(2)) == digests


def test_an_algorithm_without_a_compiled_step_has_no_digest():
    x = tensor.vector("x")

    assert lowered_steps(SimpleNamespace(function=None)) == {}
    assert lowered_steps(SimpleNamespace(function=xla.function([x], x, backend="py"))) == {}


def test_another_step_is_a_warning_that_names_the_shapes():
    then, algorithm = lowered_steps(step_of(2)), step_of(3)

    with pytest.warns(UserWarning, match=r"shapes \(\(3,\),\) is another program than when"):
        warn_of_another_step(then, algorithm)


def test_the_same_step_or_one_for_other_shapes_is_no_warning():
    warn_of_another_step(lowered_steps(step_of(2)), step_of(2))
    warn_of_another_step({"((9,),)": "another"}, step_of(2))
