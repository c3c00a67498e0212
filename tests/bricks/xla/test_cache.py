"""Compiled programs are kept for the next process, and nothing that happens to them stops a run."""

import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.config import config
from bricks.xla import cache

ROOT = Path(__file__).parents[3]

# A recurrent step with momentum, whose parameters are given up at each call.
TRAINING = """
import hashlib, json, sys
from bricks import xla
import aesara, jax, numpy
from aesara import tensor

rng = numpy.random.default_rng(0)
x, y = tensor.tensor3("x"), tensor.matrix("y")
w = xla.shared(rng.normal(size=(16, 16)).astype("float32") * 0.1, "w")
states, _ = aesara.scan(
    lambda row, state, w: tensor.tanh(row + state.dot(w)),
    sequences=[x], outputs_info=[tensor.zeros_like(x[0])], non_sequences=[w])
cost = ((states[-1] - y) ** 2).mean()
velocity = xla.shared(numpy.zeros((16, 16), "float32"), "velocity")
change = numpy.float32(0.9) * velocity - numpy.float32(0.5) * aesara.grad(cost, w)
step = xla.function([x, y], cost, updates=[(velocity, change), (w, w + change)])
batches = rng.normal(size=(4, 5, 8, 16)).astype("float32")
losses = [float(step(batches[0], batches[1, 0])) for _ in range(100)]
print(json.dumps({
    "is_from_cache": step.build_times.is_from_cache,
    "first_and_last": [losses[0], losses[-1]],
    "bits": hashlib.sha256(w.get_value().tobytes() + velocity.get_value().tobytes()).hexdigest(),
}))
"""


def start_training(folder):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", TRAINING],
        env={**os.environ, "BRICKS_COMPILATION_CACHE": str(folder), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(output)


@pytest.fixture
def folder(tmp_path):
    """Let programs be kept in a folder of the test's own."""
    config.compilation_cache = tmp_path / "programs"
    yield tmp_path / "programs"
    del config.compilation_cache
    cache._unusable.clear()


def compile_anew(factor=3):
    """Compile and call a small function, and return it."""
    x = tensor.vector("x")
    f = xla.function([x], tensor.tanh(x) * numpy.float32(factor))
    result = f(numpy.array([0.5], "float32"))
    numpy.testing.assert_allclose(result, factor * numpy.tanh([0.5]), rtol=1e-6)
    return f


def entries(folder):
    return sorted(folder.glob("*/*-cache"))


def test_a_second_process_compiles_nothing_and_trains_to_the_same_bits(tmp_path):
    first = finish(start_training(tmp_path / "programs"))
    second, without = start_training(tmp_path / "programs"), start_training("")
    second, without = finish(second), finish(without)

    assert [run["is_from_cache"] for run in (first, second, without)] == [False, True, False]
    assert first["bits"] == second["bits"] == without["bits"]
    assert first["first_and_last"][1] < first["first_and_last"][0]


def test_two_processes_may_fill_one_folder_at_once(tmp_path):
    both = [start_training(tmp_path) for _ in range(2)]
    both = [finish(process) for process in both]

    assert both[0]["bits"] == both[1]["bits"]
    assert len(entries(tmp_path)) == 1


def test_a_program_is_found_again(folder):
    assert not compile_anew().build_times.is_from_cache
    assert compile_anew().build_times.is_from_cache
    assert not compile_anew(factor=4).build_times.is_from_cache
    assert len(entries(folder)) == 2


def test_a_script_that_logs_reads_nothing_of_jax_about_its_cache(folder, caplog):
    caplog.set_level(logging.INFO)

    xla.function([], tensor.constant(2.0) + 1)()

    assert [record for record in caplog.records if "compilation 1" in record.getMessage()]
    assert not [record for record in caplog.records if "compilation_cache" in record.name]


def test_the_default_folder_is_among_the_caches_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert config.compilation_cache == tmp_path / "firebrick" / "programs"

    monkeypatch.delenv("XDG_CACHE_HOME")
    assert config.compilation_cache == Path.home() / ".cache" / "firebrick" / "programs"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert config.compilation_cache == Path.home() / "Library/Caches/firebrick/programs"


def test_an_empty_setting_is_no_cache(folder):
    config.compilation_cache = ""

    assert not any(compile_anew().build_times.is_from_cache for _ in range(2))
    assert not folder.exists()


@pytest.mark.parametrize("content", [b"", b"garbage", None], ids=["empty", "garbage", "truncated"])
def test_a_damaged_entry_is_thrown_away_and_compiled_anew(folder, caplog, content):
    caplog.set_level(logging.WARNING)
    compile_anew()
    (entry,) = entries(folder)
    entry.write_bytes(entry.read_bytes()[:200] if content is None else content)

    assert not compile_anew().build_times.is_from_cache
    assert not compile_anew().build_times.is_from_cache
    assert compile_anew().build_times.is_from_cache
    assert not caplog.messages


def test_an_entry_whose_time_was_never_written_keeps_no_other_out(folder, caplog):
    compile_anew()
    (time,) = folder.glob("*/*-atime")
    time.unlink()

    # Some versions of JAX fail once, upon which the folder is emptied.
    compile_anew(factor=4)
    compile_anew(factor=4)
    assert compile_anew(factor=4).build_times.is_from_cache
    assert not caplog.messages


def test_a_folder_that_cannot_be_made_is_one_warning(folder, caplog):
    folder.write_text("a file")

    for factor in (3, 4):
        assert not compile_anew(factor).build_times.is_from_cache

    (message,) = (m for m in caplog.messages if "cache" in m)
    assert "cannot be used, so every process compiles anew" in message
    assert "config.compilation_cache" in message


def test_a_folder_without_room_is_one_warning(folder, caplog, monkeypatch):
    def no_room(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_room)
    for factor in (3, 4):
        assert not compile_anew(factor).build_times.is_from_cache

    (message,) = (m for m in caplog.messages if "cache" in m)
    assert "No space left on device" in message


def test_a_folder_that_is_only_readable_is_read(folder, caplog, monkeypatch):
    compile_anew()
    monkeypatch.setattr(cache, "_is_writable", lambda folder: False)

    def refuse(self, data):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)

    assert compile_anew().build_times.is_from_cache
    assert not compile_anew(factor=4).build_times.is_from_cache
    assert not caplog.messages


def test_programs_of_another_processor_or_another_number_of_them_are_not_found(folder, monkeypatch):
    compile_anew()
    for name in ("processor", "processor_features", "_number_of_processors"):
        with monkeypatch.context() as patch:
            patch.setattr(cache, name, lambda: 17)
            cache._machine.cache_clear()
            assert not compile_anew().build_times.is_from_cache
    cache._machine.cache_clear()
    assert compile_anew().build_times.is_from_cache


def test_the_oldest_programs_go_when_there_are_too_many(folder, monkeypatch):
    compile_anew()
    (entry,) = entries(folder)
    monkeypatch.setattr(cache, "_MAX_BYTES", int(1.5 * entry.stat().st_size))

    compile_anew(factor=4)

    assert len(entries(folder)) == 1
    assert not compile_anew().build_times.is_from_cache


def test_what_the_user_compiles_and_the_users_settings_are_left_alone(folder):
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [getattr(jax.config, name) for name in names]

    compile_anew()
    jax.jit(lambda x: x * 17 + 4)(numpy.ones(3))

    assert len(entries(folder)) == 1
    assert [getattr(jax.config, name) for name in names] == before


def test_the_settings_come_back_when_a_compilation_fails(folder, monkeypatch):
    before = jax.config.jax_compilation_cache_dir
    x = tensor.vector("x")
    f = xla.function([x], x + 1)
    step = f._engine.program._step

    def interrupted(*operands):
        step.lower(*operands)
        raise KeyboardInterrupt

    monkeypatch.setattr(f._engine.program, "_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        f(numpy.ones(2, "float32"))

    assert jax.config.jax_compilation_cache_dir == before
    assert compile_anew().num_compilations == 1


def test_other_warnings_are_handed_on(folder):
    with pytest.warns(UserWarning, match="something else"):
        window = cache._Window(folder)
        warnings.warn("something else", UserWarning, stacklevel=1)
        window.close()
