"""Costs as cases for `bricks.testing.checks`."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy

from bricks.cost import (
    CTC,
    AbsoluteError,
    BinaryCrossEntropy,
    CategoricalCrossEntropy,
    CosineDistance,
    HuberError,
    MisclassificationRate,
    SampledSoftmax,
    SquaredError,
)
from bricks.lookup import LookupTable, TiedProjection
from bricks.testing.checks import BrickCase
from bricks.testing.examples import INIT, cross_entropy, draw_floats, draw_probabilities, softmax

__all__ = ["COST_CASES"]

_BITS = numpy.array([[0, 1, 1, 0, 1], [1, 0, 0, 0, 1], [0, 0, 1, 1, 1]], dtype="uint8")
_SCORES = draw_floats(3, 5)
_TARGETS = (
    numpy.array([0, 4, 2]),
    numpy.array([[0], [4], [2]], dtype="uint8"),
    draw_probabilities(3, 5, seed=3),
)


def _cost(
    build: Callable[[], Any], y: numpy.ndarray, y_hat: numpy.ndarray, function: Callable[..., Any]
) -> BrickCase:
    return BrickCase(
        f"{build().name}-{y.dtype}-{y.ndim}",
        build,
        {"y": y, "y_hat": y_hat},
        lambda _, y, y_hat: function(y, y_hat),
        wrong_shapes={"y": (), "y_hat": (7,)},
    )


def _error_rate(y: numpy.ndarray, scores: numpy.ndarray) -> Any:
    y = y[..., 0] if y.shape[-1:] == (1,) else y
    numbers = y.argmax(axis=-1) if y.ndim == scores.ndim else y
    return (numbers != scores.argmax(axis=-1)).mean()


def _smoothed(y: numpy.ndarray, p: numpy.ndarray) -> Any:
    return (0.8 * cross_entropy(y, p) - 0.2 * numpy.log(p).mean(axis=-1)).mean()


def _huber(y: numpy.ndarray, y_hat: numpy.ndarray) -> Any:
    difference = abs(y - y_hat)
    costs = numpy.where(difference < 0.5, difference**2 / 2, 0.5 * (difference - 0.25))
    return costs.sum(axis=1).mean()


def _cosine(y: numpy.ndarray, y_hat: numpy.ndarray) -> Any:
    lengths = numpy.linalg.norm(y, axis=-1) * numpy.linalg.norm(y_hat, axis=-1)
    return (1 - (y * y_hat).sum(axis=-1) / lengths).mean()


def _sampled(parameters: Any, y: Any, input_: Any, candidates: Any) -> numpy.ndarray:
    """Uniform candidates of eight classes, each expected ``len(candidates) / 8`` times."""
    path = "/sampledsoftmax/tiedprojection"
    scores = input_ @ parameters[f"{path}/lookuptable.W"].T + parameters[f"{path}.b"]
    costs = numpy.empty(y.shape)
    for place, target in numpy.ndenumerate(y):
        others = scores[place][candidates[candidates != target]] + numpy.log(8 / len(candidates))
        own = scores[place][target]
        costs[place] = numpy.log(numpy.exp(own) + numpy.exp(others).sum()) - own
    return costs


def _ctc(
    _: Any, y: numpy.ndarray, y_hat: numpy.ndarray, y_mask: Any, y_hat_mask: Any
) -> numpy.ndarray:
    """Add up all ways of giving a class to each frame that leave the labels."""
    costs = []
    for i, (num_labels, num_frames) in enumerate(
        zip(y_mask.sum(axis=0).astype(int), y_hat_mask.sum(axis=0).astype(int), strict=True)
    ):
        p, total = softmax(y_hat[:num_frames, i]), 0.0
        for path in itertools.product(range(p.shape[1]), repeat=num_frames):
            merged = [label for label, _ in itertools.groupby(path) if label]
            if merged == list(y[:num_labels, i]):
                total += numpy.prod(p[range(num_frames), path])
        costs.append(-numpy.log(total))
    return numpy.array(costs)


#: All costs, in all their ways of being used that differ.
COST_CASES: tuple[BrickCase, ...] = (
    _cost(
        BinaryCrossEntropy,
        _BITS,
        draw_probabilities(3, 5),
        lambda y, p: -(y * numpy.log(p) + (1 - y) * numpy.log1p(-p)).sum(axis=1).mean(),
    ),
    _cost(AbsoluteError, _BITS, _SCORES, lambda y, p: abs(y - p).sum(axis=1).mean()),
    _cost(SquaredError, _BITS, _SCORES, lambda y, p: ((y - p) ** 2).sum(axis=1).mean()),
    _cost(lambda: HuberError(delta=0.5), _BITS, _SCORES, _huber),
    _cost(CosineDistance, _BITS, _SCORES, _cosine),
    *(
        _cost(brick, y, draw_probabilities(3, 5), function)
        for brick, function in {
            CategoricalCrossEntropy: lambda y, p: cross_entropy(y, p).mean(),
            MisclassificationRate: _error_rate,
        }.items()
        for y in _TARGETS
    ),
    _cost(
        lambda: CategoricalCrossEntropy(label_smoothing=0.2, name="smoothed"),
        _TARGETS[0],
        draw_probabilities(3, 5),
        _smoothed,
    ),
    BrickCase(
        "sampledsoftmax",
        lambda: SampledSoftmax(
            TiedProjection(LookupTable(8, 4)), num_sampled=3, distribution="uniform", **INIT
        ),
        {
            "y": numpy.array([[0, 7], [2, 2]]),
            "input_": draw_floats(2, 2, 4),
            "candidates": numpy.array([5, 2, 1]),
        },
        _sampled,
        application="costs",
        wrong_shapes={"y": (2,), "input_": (2, 2, 5), "candidates": ()},
    ),
    BrickCase(
        "ctc",
        CTC,
        {
            "y": numpy.array([[1, 2], [1, 0]]),
            "y_hat": draw_floats(4, 2, 3),
            "y_mask": numpy.array([[1, 1], [1, 0]], "float32"),
            "y_hat_mask": numpy.array([[1, 1], [1, 1], [1, 1], [1, 0]], "float32"),
        },
        _ctc,
        application="costs",
        wrong_shapes={"y": (2,), "y_hat": (4, 2), "y_hat_mask": (4,)},
        sequences={
            "y_mask": {"y": 0, "y_mask": 0},
            "y_hat_mask": {"y_hat": 0, "y_hat_mask": 0},
        },
    ),
)
