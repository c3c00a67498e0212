"""Algorithms that train: updates, gradient descent, and step rules to combine.

`UpdatesAlgorithm` and `GradientDescent` are what a main loop drives. Step rules turn gradients
into steps: `Scale`, the families of momentum (`Momentum`, `NesterovMomentum`) and of adaptive
rates (`AdaDelta`, `RMSProp`, `AdaGrad`, `Adam`), bounds (`StepClipping`, `VariableClipping`,
`RemoveNotFinite`), and what combines them (`CompositeRule`, `Restrict`). `find_non_finite` says
where a cost went wrong.
"""

from bricks.algorithms.adaptive import AdaDelta, AdaGrad, Adam, BasicRMSProp, RMSProp
from bricks.algorithms.base import TrainingAlgorithm, UpdatesAlgorithm
from bricks.algorithms.clipping import RemoveNotFinite, StepClipping, VariableClipping
from bricks.algorithms.diagnosis import find_non_finite
from bricks.algorithms.gradient_descent import GradientDescent
from bricks.algorithms.momentum import (
    BasicMomentum,
    BasicNesterovMomentum,
    Momentum,
    NesterovMomentum,
)
from bricks.algorithms.rules import CompositeRule, Restrict, Scale, StepRule

__all__ = [
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "BasicMomentum",
    "BasicNesterovMomentum",
    "BasicRMSProp",
    "CompositeRule",
    "GradientDescent",
    "Momentum",
    "NesterovMomentum",
    "RMSProp",
    "RemoveNotFinite",
    "Restrict",
    "Scale",
    "StepClipping",
    "StepRule",
    "TrainingAlgorithm",
    "UpdatesAlgorithm",
    "VariableClipping",
    "find_non_finite",
]
