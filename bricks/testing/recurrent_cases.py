"""The recurrent bricks as cases for `bricks.testing.checks`."""

from typing import Any

import numpy

from bricks.initialization import IsotropicGaussian
from bricks.recurrent import SimpleRecurrent
from bricks.testing.checks import BrickCase
from bricks.testing.examples import WEIGHTS, draw_floats

#: Two sequences, of three steps and of two.
_MASK = numpy.array([[1, 1], [1, 1], [1, 0]], dtype="float32")
_OVER_TIME = {"mask": {"inputs": 0, "mask": 0}}


def _repeat(step: Any, mask: Any, states: list[Any], *sequences: Any) -> list[numpy.ndarray]:
    """Collect the states over time; masked ones stay as they were."""
    collected: list[list[Any]] = [[] for _ in states]
    for index in range(len(sequences[0])):
        new = step(*(sequence[index] for sequence in sequences), *states)
        if mask is not None:
            keep = mask[index][:, None]
            new = [keep * n + (1 - keep) * old for n, old in zip(new, states, strict=True)]
        states = new
        for values, state in zip(collected, states, strict=True):
            values.append(state)
    return [numpy.array(values) for values in collected]


def _first(p: Any, path: str, batch: int) -> numpy.ndarray:
    return numpy.repeat(p[path][None], batch, axis=0)


def _simple(p: Any, inputs: Any, mask: Any = None, path: str = "/simplerecurrent") -> Any:
    initial = _first(p, f"{path}.initial_state", inputs.shape[1])
    return _repeat(lambda x, h: [numpy.tanh(x + h @ p[f"{path}.W"])], mask, [initial], inputs)


#: All recurrent bricks, in all their ways of being used that differ.
RECURRENT_CASES: tuple[BrickCase, ...] = (
    BrickCase(
        "simplerecurrent",
        lambda: SimpleRecurrent(3, **WEIGHTS),
        {"inputs": draw_floats(3, 2, 3), "mask": _MASK},
        _simple,
        wrong_shapes={"inputs": (3, 2, 4)},
        sequences=_OVER_TIME,
    ),
    BrickCase(
        "simplerecurrent-without-a-mask",
        lambda: SimpleRecurrent(3, weights_init=IsotropicGaussian(0.5)),
        {"inputs": draw_floats(3, 2, 3)},
        _simple,
    ),
)
