"""Costs: how far predictions are from targets. The targets come first: ``apply(y, y_hat)``.

``apply`` gives a scalar, the mean over the batch. For weights and masks there are the costs of each
feature (``cost_matrix``, of shape (batch, feature)) or of each example (``costs``) to multiply by
them: ``(cost.costs(y, y_hat) * mask).sum() / mask.sum()``. `MisclassificationRate` has neither.
"""

from bricks.cost.alignment import CTC
from bricks.cost.base import Cost, CostMatrix
from bricks.cost.categories import CategoricalCrossEntropy, MisclassificationRate
from bricks.cost.features import (
    AbsoluteError,
    BinaryCrossEntropy,
    CosineDistance,
    HuberError,
    SquaredError,
)
from bricks.cost.sampled import SampledSoftmax

__all__ = [
    "CTC",
    "AbsoluteError",
    "BinaryCrossEntropy",
    "CategoricalCrossEntropy",
    "CosineDistance",
    "Cost",
    "CostMatrix",
    "HuberError",
    "MisclassificationRate",
    "SampledSoftmax",
    "SquaredError",
]
