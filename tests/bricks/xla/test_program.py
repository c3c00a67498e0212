"""A program is compiled once for each signature, and says which it was compiled for."""

import logging
import re
import time

import numpy
import pytest
from aesara import tensor
from aesara.graph.fg import FunctionGraph

from bricks.xla.devices import x64
from bricks.xla.program import BuildTimes, Program


@pytest.fixture
def program():
    """Count up by what is given: state, then argument."""
    total, x = tensor.scalar("total"), tensor.vector("x")
    graph = FunctionGraph([total, x], [x * 2, total + x.sum()], clone=False)
    return Program(graph, "counting", arguments=[1], state=[0], updates=[1], num_outputs=1)


def run(program, length):
    kept = []
    state = [numpy.float32(1)]
    with x64():
        outputs, _ = program.run(state, [], [numpy.ones(length, "float32")], [kept.append])
    return outputs[0].tolist(), kept[0].item()


def test_new_state_is_kept_and_outputs_are_returned(program):
    assert run(program, 2) == ([2, 2], 3)


def test_each_signature_is_compiled_once_and_logged_with_its_times(program, caplog):
    caplog.set_level(logging.INFO, logger="bricks.xla.program")

    for length in (2, 3, 2, 3):
        run(program, length)

    assert program.num_compilations == 2
    messages = [record.message for record in caplog.records]
    assert len(messages) == 2
    for number, length, message in ((1, 2, messages[0]), (2, 3, messages[1])):
        assert re.fullmatch(
            rf"counting: compilation {number}, arguments \(\({length},\),\): rewritten in 0.00 s, "
            r"traced in \d.\d\d s, compiled in \d.\d\d s( \(found in the cache\))?",
            message,
        )


def test_the_times_of_a_build_are_its_parts(program):
    assert program.build_times == BuildTimes(rewrite=0.0)
    start = time.perf_counter()
    run(program, 2)
    whole = time.perf_counter() - start

    times = program.build_times
    assert times.trace > 0
    assert times.compile > 0
    assert whole / 2 < times.total <= whole
    assert str(BuildTimes(1, 2, 3, is_from_cache=True)) == (
        "rewritten in 1.00 s, traced in 2.00 s, compiled in 3.00 s (found in the cache)"
    )


def test_there_is_a_digest_for_each_signature(program):
    run(program, 2)
    first = program.digests()
    run(program, 3)
    both = program.digests()
    run(program, 2)

    assert list(first) == ["((2,),)"]
    assert list(both) == ["((2,),)", "((3,),)"]
    assert first.items() < both.items()
    assert len(set(both.values())) == 2
    assert program.digests() == both
    assert program.num_compilations == 2
