"""Every brick of the library as a case for `bricks.testing.checks`. A new one adds its line."""

from collections.abc import Callable
from typing import Any

import numpy

from bricks.base import Brick
from bricks.initialization import IsotropicGaussian
from bricks.lookup import LookupTable, TiedProjection
from bricks.parallel import Distribute, Fork, Merge, Parallel
from bricks.sequences import MLP, FeedforwardSequence, Sequence
from bricks.simple import (
    Bias,
    Identity,
    LeakyRectifier,
    Linear,
    LinearMaxout,
    Logistic,
    Maxout,
    NDimensionalSoftmax,
    Rectifier,
    Softmax,
    Softplus,
    Tanh,
)
from bricks.testing.attention_cases import ATTENTION_CASES
from bricks.testing.checks import BrickCase
from bricks.testing.conv_cases import CONV_CASES
from bricks.testing.cost_cases import COST_CASES
from bricks.testing.examples import (
    INIT,
    WEIGHTS,
    cross_entropy,
    draw_floats,
    draw_probabilities,
    linear,
    softmax,
)
from bricks.testing.generator_cases import GENERATOR_CASES
from bricks.testing.recurrent_cases import RECURRENT_CASES

_NAMES = ["a", "b"]


def _activation(brick: type[Brick], function: Callable[[numpy.ndarray], numpy.ndarray]) -> Any:
    name = brick.__name__.lower()
    inputs = {"input_": draw_floats(3, 4)}
    return BrickCase(name, brick, inputs, lambda _, input_: function(input_))


def _linear_maxout(parameters: Any, input_: numpy.ndarray) -> numpy.ndarray:
    pieces = linear(parameters, "/linearmaxout/linear", input_)
    return pieces.reshape(*input_.shape[:-1], 2, 3).max(axis=-1)


def _mlp(parameters: Any, input_: numpy.ndarray) -> numpy.ndarray:
    hidden = numpy.tanh(linear(parameters, "/mlp/linear_0", input_))
    return softmax(linear(parameters, "/mlp/linear_1", hidden))


def _distribute(parameters: Any, source: Any, a: Any, b: Any) -> list[numpy.ndarray]:
    return [
        target + linear(parameters, f"/distribute/fork_{name}", source)
        for name, target in {"a": a, "b": b}.items()
    ]


_X = {"input_": draw_floats(3, 4)}
_TWO = {"a": draw_floats(3, 4), "b": draw_floats(3, 5, seed=1)}
_CLASSES = numpy.array([0, 4, 2])
_SCORES = draw_floats(3, 5)
_BITS = numpy.array([[0, 1, 1, 0, 1], [1, 0, 0, 0, 1], [0, 0, 1, 1, 1]], dtype="uint8")

#: All bricks, in all their ways of being used that differ.
BRICK_CASES: tuple[BrickCase, ...] = (
    BrickCase(
        "linear",
        lambda: Linear(4, 2, **INIT),
        _X,
        lambda p, input_: linear(p, "/linear", input_),
        wrong_shapes={"input_": (3, 5)},
    ),
    BrickCase(
        "linear-without-bias-on-bytes",
        lambda: Linear(5, 2, use_bias=False, **WEIGHTS),
        {"input_": _BITS},
        lambda p, input_: linear(p, "/linear", input_),
        wrong_shapes={"input_": (3, 4)},
    ),
    BrickCase(
        "linear-over-time",
        lambda: Linear(4, 2, **INIT),
        {"input_": draw_floats(2, 3, 4)},
        lambda p, input_: linear(p, "/linear", input_),
        wrong_shapes={"input_": (2, 3, 5)},
    ),
    BrickCase(
        "bias",
        lambda: Bias(4, biases_init=IsotropicGaussian(1)),
        _X,
        lambda p, input_: input_ + p["/bias.b"],
        wrong_shapes={"input_": (3, 5)},
    ),
    BrickCase(
        "maxout",
        lambda: Maxout(num_pieces=2),
        _X,
        lambda _, input_: input_.reshape(3, 2, 2).max(axis=-1),
        wrong_shapes={"input_": (3, 5)},
    ),
    BrickCase(
        "linearmaxout",
        lambda: LinearMaxout(4, 2, 3, **INIT),
        _X,
        _linear_maxout,
        wrong_shapes={"input_": (3, 5)},
    ),
    _activation(Identity, lambda x: x),
    _activation(Tanh, numpy.tanh),
    _activation(Logistic, lambda x: 1 / (1 + numpy.exp(-x))),
    _activation(Softplus, lambda x: numpy.log1p(numpy.exp(x))),
    _activation(Rectifier, lambda x: numpy.maximum(x, 0)),
    _activation(LeakyRectifier, lambda x: numpy.where(x > 0, x, 0.01 * x)),
    _activation(Softmax, softmax),
    BrickCase(
        "softmax-log-probabilities",
        Softmax,
        _X,
        lambda _, input_: numpy.log(softmax(input_)),
        application="log_probabilities",
    ),
    BrickCase(
        "softmax-cross-entropy-of-classes",
        Softmax,
        {"y": _CLASSES, "x": _SCORES},
        lambda _, y, x: cross_entropy(y, softmax(x)),
        application="categorical_cross_entropy",
        wrong_shapes={"y": (), "x": (5,)},
    ),
    BrickCase(
        "softmax-cross-entropy-of-a-distribution",
        Softmax,
        {"y": draw_probabilities(3, 5), "x": _SCORES},
        lambda _, y, x: cross_entropy(y, softmax(x)),
        application="categorical_cross_entropy",
        wrong_shapes={"x": (5,)},
    ),
    BrickCase(
        "ndimensionalsoftmax",
        NDimensionalSoftmax,
        {"input_": draw_floats(2, 3, 4)},
        lambda _, input_: softmax(input_),
        options={"extra_ndim": 1},
    ),
    BrickCase(
        "ndimensionalsoftmax-cross-entropy",
        NDimensionalSoftmax,
        {"y": numpy.array([[0, 1, 4], [3, 2, 0]]), "x": draw_floats(2, 3, 5)},
        lambda _, y, x: cross_entropy(y, softmax(x)),
        application="categorical_cross_entropy",
        options={"extra_ndim": 1},
        wrong_shapes={"x": (5,)},
    ),
    BrickCase(
        "lookuptable",
        lambda: LookupTable(5, 3, **WEIGHTS),
        {"indices": numpy.array([[0, 4, 4], [1, 0, 2]])},
        lambda p, indices: p["/lookuptable.W"][indices],
    ),
    BrickCase(
        "tiedprojection",
        lambda: TiedProjection(LookupTable(5, 4), **INIT),
        _X,
        lambda p, input_: input_ @ p["/tiedprojection/lookuptable.W"].T + p["/tiedprojection.b"],
        wrong_shapes={"input_": (3, 5)},
    ),
    BrickCase(
        "sequence",
        lambda: Sequence([Tanh(), Softmax()]),
        _X,
        lambda _, input_: softmax(numpy.tanh(input_)),
    ),
    BrickCase(
        "feedforwardsequence",
        lambda: FeedforwardSequence([Linear(4, 2, **INIT), Tanh()]),
        _X,
        lambda p, input_: numpy.tanh(linear(p, "/feedforwardsequence/linear", input_)),
        wrong_shapes={"input_": (3, 5)},
    ),
    BrickCase(
        "mlp",
        lambda: MLP([Tanh(), Softmax()], [4, 3, 2], **INIT),
        _X,
        _mlp,
        wrong_shapes={"input_": (3, 5)},
    ),
    BrickCase(
        "parallel",
        lambda: Parallel(_NAMES, [4, 5], [2, 3], Linear(), **INIT),
        _TWO,
        lambda p, a, b: [
            linear(p, "/parallel/linear_a", a),
            linear(p, "/parallel/linear_b", b),
        ],
        wrong_shapes={"a": (3, 5)},
    ),
    BrickCase(
        "fork",
        lambda: Fork(_NAMES, 4, output_dims=[2, 3], **INIT),
        _X,
        lambda p, input_: [linear(p, f"/fork/fork_{name}", input_) for name in _NAMES],
        wrong_shapes={"input_": (3, 5)},
    ),
    BrickCase(
        "distribute",
        lambda: Distribute(_NAMES, "source", [4, 5], 2, **WEIGHTS),
        {"source": draw_floats(3, 2, seed=2), **_TWO},
        _distribute,
        wrong_shapes={"source": (3, 3), "a": (3, 5)},
    ),
    BrickCase(
        "merge",
        lambda: Merge(_NAMES, [4, 5], 2, **WEIGHTS),
        _TWO,
        lambda p, a, b: linear(p, "/merge/linear_a", a) + linear(p, "/merge/linear_b", b),
        wrong_shapes={"b": (3, 4)},
    ),
    *COST_CASES,
    *RECURRENT_CASES,
    *CONV_CASES,
    *ATTENTION_CASES,
    *GENERATOR_CASES,
)
