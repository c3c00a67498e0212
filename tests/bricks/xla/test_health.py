"""Releases of jaxlib that are wrong on the CPU are refused, by number and by a test."""

import json

import jaxlib
import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.xla import health


@pytest.fixture(autouse=True)
def fresh_check(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    health.check_compiler.cache_clear()
    yield
    health.check_compiler.cache_clear()


@pytest.mark.parametrize("version", ["0.7.1", "0.7.2", "0.8.0", "0.8.1", "0.8.2"])
def test_a_wrong_release_is_refused_when_a_function_is_compiled(monkeypatch, version):
    monkeypatch.setattr(jaxlib, "__version__", version)
    x = tensor.scalar("x")

    with pytest.raises(xla.WrongCompiler, match=f"jaxlib {version} computes wrong.*jax<0.7.1"):
        xla.function([x], x + 1)(1)


@pytest.mark.parametrize("version", ["0.6.2", "0.7.0", "0.8.3", "0.9.0", "0.12.0.1"])
def test_other_releases_are_not(version):
    assert not health.is_refused(version)


def test_the_installed_release_passes_and_is_tested_once(monkeypatch, tmp_path):
    health.check_compiler()

    results = json.loads((tmp_path / "firebrick" / "compiler_checks.json").read_text())
    assert list(results.values()) == [True]
    assert next(iter(results)).startswith(jaxlib.__version__)

    def fail():
        raise AssertionError("tested twice")

    monkeypatch.setattr(health, "donated_steps_are_right", fail)
    health.check_compiler.cache_clear()
    health.check_compiler()


def test_a_release_that_fails_the_test_is_refused(monkeypatch):
    losses = {True: numpy.array([2.0, 1.5]), False: numpy.array([2.0, 1.0])}
    monkeypatch.setattr(health, "_losses", lambda donate: losses[donate])

    with pytest.raises(xla.WrongCompiler, match="steps that give their parameters up disagree"):
        health.check_compiler()


def test_a_folder_that_cannot_be_written_does_not_matter(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(health, "donated_steps_are_right", lambda: True)

    health.check_compiler()
