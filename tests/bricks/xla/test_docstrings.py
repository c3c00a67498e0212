"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest

import bricks  # noqa: F401 - sets Aesara up


@pytest.mark.parametrize("module", ["ctc", "lowering", "sampling", "wrapping"])
def test_examples_give_what_they_say(module):
    results = doctest.testmod(importlib.import_module(f"bricks.xla.{module}"))

    assert results.attempted > 0
    assert results.failed == 0
