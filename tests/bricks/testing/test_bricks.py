"""The contract of bricks, over all bricks of the library."""

import importlib
import inspect
import pkgutil

import pytest

import bricks
from bricks.base import Brick
from bricks.testing import BRICK_CASES, CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", BRICK_CASES, ids=lambda case: case.name)
def test_every_brick_keeps_the_contract(case, check):
    check(case)


def test_every_brick_of_the_library_is_in_the_list():
    for module in pkgutil.walk_packages(bricks.__path__, "bricks."):
        importlib.import_module(module.name)
    listed = {type(case.build()) for case in BRICK_CASES}

    assert {brick for brick in concrete(Brick) if brick not in listed} == set()


def concrete(brick):
    """Classes of the library below one, without base classes and those of tests."""
    found = set()
    for child in brick.__subclasses__():
        found |= concrete(child)
        is_base = inspect.isabstract(child) or not hasattr(child, "apply")
        if child.__module__.startswith("bricks.") and not is_base:
            found.add(child)
    return found
