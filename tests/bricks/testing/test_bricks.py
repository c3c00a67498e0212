"""The contract of bricks, over all bricks of the library."""

import importlib
import pkgutil

import pytest

import bricks
from bricks.base import Brick
from bricks.testing import BRICK_CASES, CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", BRICK_CASES, ids=lambda case: case.name)
def test_every_brick_keeps_the_contract(case, check):
    check(case)


#: What is there to be derived from.
BASES = {
    "AbstractAttention",
    "AbstractAttentionRecurrent",
    "AbstractEmitter",
    "AbstractFeedback",
    "AbstractReadout",
    "Activation",
    "AddedPositions",
    "AttentionPositions",
    "BaseRecurrent",
    "BaseSequenceGenerator",
    "Cost",
    "CostMatrix",
    "DimensionPreserving",
    "Feedforward",
    "GenericSequenceAttention",
    "Initializable",
    "LinearLike",
    "MatchingAttention",
    "Random",
    "RNGMixin",
}


def test_every_brick_of_the_library_occurs_in_a_case():
    for module in pkgutil.walk_packages(bricks.__path__, "bricks."):
        importlib.import_module(module.name)
    occurring = {type(brick) for case in BRICK_CASES for brick in tree_of(case.build())}
    missing = {brick.__name__ for brick in public_bricks() if brick not in occurring}

    assert missing == BASES


def public_bricks():
    """All classes of bricks that the library offers."""
    found, stack = set(), [Brick]
    while stack:
        for child in stack.pop().__subclasses__():
            stack.append(child)
            if child.__module__.startswith("bricks.") and not child.__name__.startswith("_"):
                found.add(child)
    return found


def tree_of(brick):
    """A brick and all below it, made as far as they are made by being allocated."""
    brick.allocate()
    yield brick
    for child in brick.children:
        yield from tree_of(child)


def test_names_of_cases_are_different():
    names = [case.name for case in BRICK_CASES]

    assert sorted(set(names)) == sorted(names)
