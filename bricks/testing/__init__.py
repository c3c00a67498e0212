"""For people who write bricks: what holds for every brick, to be run over theirs as well."""

from bricks.testing.cases import BRICK_CASES
from bricks.testing.checks import CHECKS, BrickCase

__all__ = ["BRICK_CASES", "CHECKS", "BrickCase"]
