"""Convolutions, poolings and normalizations as cases, with references that loop over places."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from bricks.bn import BatchNormalization, BatchNormalizedMLP, SpatialBatchNormalization
from bricks.conv import (
    AveragePooling,
    Convolutional,
    ConvolutionalSequence,
    ConvolutionalTranspose,
    Flattener,
    MaxPooling,
    Pooling,
)
from bricks.initialization import IsotropicGaussian
from bricks.normalization import GroupNormalization, LayerNormalization, RMSNormalization
from bricks.simple import Logistic, Tanh
from bricks.testing.checks import BrickCase
from bricks.testing.examples import INIT, WEIGHTS, draw_floats

__all__ = ["CONV_CASES"]

_MASK = numpy.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "float32")
_OVER_TIME = {"mask": {"input_": 2, "mask": 1}}
_STATISTICS = {"scale_init": IsotropicGaussian(0.5, 1), "shift_init": IsotropicGaussian(0.5)}


def _places(
    lengths: Sequence[int], sizes: Sequence[int], step: int, dilation: int
) -> tuple[list[int], list[tuple[Any, Any]]]:
    """Count the places of a window on each axis; give each with the elements it covers."""
    spans = [(size - 1) * dilation + 1 for size in sizes]
    counts = [(length - span) // step + 1 for length, span in zip(lengths, spans, strict=True)]
    places: list[tuple[Any, Any]] = []
    for place in itertools.product(*map(range, counts)):
        starts = [index * step for index in place]
        ends = zip(starts, spans, strict=True)
        covered = [slice(start, start + span, dilation) for start, span in ends]
        places.append(((..., *place), (..., *covered)))
    return counts, places


def _surround(x: numpy.ndarray, border: Any, value: float = 0.0) -> numpy.ndarray:
    return numpy.pad(x, [(0, 0), (0, 0), *border], constant_values=value)


def _convolve(
    x: numpy.ndarray, W: numpy.ndarray, border: Any, step: int = 1, dilation: int = 1
) -> numpy.ndarray:
    """Convolve place by place; the filters are flipped."""
    axes = tuple(range(2, x.ndim))
    x, W = _surround(x, border), numpy.flip(W, axes)
    groups = x.shape[1] // W.shape[1]
    x = x.reshape(len(x), groups, W.shape[1], *x.shape[2:])
    W = W.reshape(groups, len(W) // groups, *W.shape[1:])
    counts, places = _places(x.shape[3:], W.shape[3:], step, dilation)
    output = numpy.zeros((len(x), W.shape[0] * W.shape[1], *counts), x.dtype)
    for place, covered in places:
        patches = x[covered].reshape(len(x), groups, -1)
        products = numpy.einsum("bgi,gfi->bgf", patches, W.reshape(*W.shape[:2], -1))
        output[place] = products.reshape(len(x), -1)
    return output


def _transpose(
    x: numpy.ndarray, W: numpy.ndarray, border: Any, step: int, edge: int = 0
) -> numpy.ndarray:
    """Add up what each element spreads over the output; W has the groups in its first axis."""
    groups, axes = x.shape[1] // W.shape[1], tuple(range(2, x.ndim))
    W = numpy.flip(W, axes).reshape(groups, len(W) // groups, *W.shape[1:])
    x = x.reshape(len(x), groups, -1, *x.shape[2:])
    lengths = [
        (n - 1) * step + size + edge for n, size in zip(x.shape[3:], W.shape[3:], strict=True)
    ]
    output = numpy.zeros((len(x), groups, W.shape[1], *lengths), x.dtype)
    for place in itertools.product(*map(range, x.shape[3:])):
        starts = [index * step for index in place]
        ends = zip(starts, W.shape[3:], strict=True)
        covered: Any = (..., *(slice(start, start + size) for start, size in ends))
        here: Any = (..., *place)
        output[covered] += numpy.einsum("bgc,gfc...->bgf...", x[here], W)
    output = output.reshape(len(x), -1, *lengths)
    cut = zip(border, lengths, strict=True)
    kept: Any = (..., *(slice(low, length - high) for (low, high), length in cut))
    return output[kept]


def _pool(
    x: numpy.ndarray, sizes: Sequence[int], step: int, border: Any, function: Any, fill: float
) -> numpy.ndarray:
    axes = tuple(range(2, x.ndim))
    x = _surround(x, border, fill)
    counts, places = _places(x.shape[2:], sizes, step, 1)
    output = numpy.zeros((*x.shape[:2], *counts), x.dtype)
    for place, covered in places:
        output[place] = function(x[covered], axis=axes)
    return output


def _of_each_sequence(function: Callable, input_: numpy.ndarray, mask: numpy.ndarray) -> Any:
    """Apply a function to each sequence alone, and put zeros behind what comes out."""
    whole = function(input_[:1])
    output = numpy.zeros((len(input_), *whole.shape[1:]), input_.dtype)
    for number, length in enumerate(mask.astype(bool).sum(axis=1)):
        alone = function(input_[number : number + 1, :, :length])
        output[number, :, : alone.shape[2]] = alone[0]
    return output


def _convolution(
    name: str, brick: Callable[..., Any], x: tuple[int, ...], border: Any, **options: Any
) -> BrickCase:
    """Make the case of a `Convolutional`."""

    def reference(p: Any, input_: numpy.ndarray) -> numpy.ndarray:
        W, b = p["/convolutional.W"], p.get("/convolutional.b", numpy.zeros(1))
        b = b.reshape(len(b), *(b.shape[1:] or [1] * (input_.ndim - 2)))
        return _convolve(input_, W, border, **options) + b

    wrong = {"input_": (x[0], x[1] + 1, *x[2:])}
    return BrickCase(name, brick, {"input_": draw_floats(*x)}, reference, wrong_shapes=wrong)


def _transposed(
    name: str, brick: Callable[..., Any], x: tuple[int, ...], border: Any, **options: Any
) -> BrickCase:
    """Make the case of a `ConvolutionalTranspose`."""

    def reference(p: Any, input_: numpy.ndarray) -> numpy.ndarray:
        W = p["/convolutionaltranspose.W"]
        b = p["/convolutionaltranspose.b"].reshape(-1, *[1] * (input_.ndim - 2))
        return _transpose(input_, W, border, **options) + b

    wrong = {"input_": (x[0], x[1] + 1, *x[2:])}
    return BrickCase(name, brick, {"input_": draw_floats(*x)}, reference, wrong_shapes=wrong)


def _over_time(
    name: str,
    brick: Callable[..., Any],
    function: Any,
    channels: int = 2,
    behind: tuple[int, ...] = (),
    offset: float = 0,
) -> BrickCase:
    """Make a case with a mask, whose sequences come out as they would alone."""

    def reference(p: Any, input_: numpy.ndarray, mask: numpy.ndarray) -> numpy.ndarray:
        return _of_each_sequence(lambda x: function(p, x), input_, mask)

    x = draw_floats(2, channels, 5, *behind) + offset
    inputs = {"input_": x.astype("float32"), "mask": _MASK}
    wrong: dict[str, tuple[int, ...]] = {"mask": (2,)}
    return BrickCase(name, brick, inputs, reference, wrong_shapes=wrong, sequences=_OVER_TIME)


def _pooling(name: str, brick: Callable[..., Any], *how: Any) -> BrickCase:
    """Make the case of a pooling of 5 by 4 elements."""
    inputs = {"input_": draw_floats(2, 3, 5, 4)}
    wrong = {"input_": (4,)}
    return BrickCase(name, brick, inputs, lambda _, input_: _pool(input_, *how), wrong_shapes=wrong)


def _at(b: numpy.ndarray, ndim: int) -> numpy.ndarray:
    """Give numbers for channels the axes of a batch."""
    return b.reshape(1, -1, *[1] * (ndim - 2))


def _normalize(
    x: numpy.ndarray, axes: Any, epsilon: float, counts: numpy.ndarray | None = None
) -> numpy.ndarray:
    """Normalize over some axes, where only some elements may count."""
    counts = numpy.broadcast_to(True if counts is None else counts, x.shape)
    mean = x.mean(axis=axes, keepdims=True, where=counts)
    variance = ((x - mean) ** 2).mean(axis=axes, keepdims=True, where=counts)
    return numpy.where(counts, (x - mean) / numpy.sqrt(variance + epsilon), 0)


def _scaled(p: Any, path: str, x: numpy.ndarray, names: Any = ("scale", "shift")) -> Any:
    scale, shift = (p[f"{path}.{name}"] for name in names)
    return x * _at(scale, x.ndim) + _at(shift, x.ndim)


def _in_training(build: Callable[[], Any]) -> Callable[[], Any]:
    """Build a batch normalization that stays in the mode of training."""

    def built() -> Any:
        return build().__enter__()

    return built


def _batch_normalization(p: Any, input_: numpy.ndarray, mask: Any = None) -> numpy.ndarray:
    path = "/batchnormalization"
    counts = None if mask is None else mask.astype(bool).T[:, :, None]
    x = _normalize(input_, tuple(range(input_.ndim - 1)), 1e-4, counts)
    output = x * p[f"{path}.batch_norm_scale"] + p[f"{path}.batch_norm_shift"]
    return output if counts is None else numpy.where(counts, output, 0)


def _batch_inference(p: Any, input_: numpy.ndarray) -> numpy.ndarray:
    mean, stdev, scale, shift = (
        p[f"/batchnormalization.{name}"]
        for name in ("population_mean", "population_stdev", "batch_norm_scale", "batch_norm_shift")
    )
    return (input_ - mean) / stdev * scale + shift


def _spatial(p: Any, input_: numpy.ndarray, mask: numpy.ndarray) -> numpy.ndarray:
    counts = mask.astype(bool)[:, None]
    names = ("batch_norm_scale", "batch_norm_shift")
    x = _normalize(input_, (0, 2), 1e-4, counts)
    return numpy.where(counts, _scaled(p, "/spatialbatchnormalization", x, names), 0)


def _normalized_mlp(p: Any, input_: numpy.ndarray) -> numpy.ndarray:
    x = input_
    for layer in range(2):
        path = f"/batchnormalizedmlp/batch_norm_activation_{layer}/batchnormalization"
        x = x @ p[f"/batchnormalizedmlp/linear_{layer}.W"] - p[f"{path}.population_mean"]
        x = x / p[f"{path}.population_stdev"] * p[f"{path}.batch_norm_scale"]
        x = x + p[f"{path}.batch_norm_shift"]
        x = x if layer else numpy.tanh(x)
    return x


def _group(p: Any, x: numpy.ndarray) -> numpy.ndarray:
    grouped = x.reshape(len(x), 2, -1, *x.shape[2:])
    normalized = _normalize(grouped, tuple(range(2, grouped.ndim)), 1e-5).reshape(x.shape)
    return _scaled(p, "/groupnormalization", normalized)


def _layer(p: Any, input_: numpy.ndarray) -> numpy.ndarray:
    x = _normalize(input_, (1, 2), 1e-5)
    return x * p["/layernormalization.scale"] + p["/layernormalization.shift"]


def _rms(p: Any, input_: numpy.ndarray) -> numpy.ndarray:
    root = numpy.sqrt((input_**2).mean(axis=-1, keepdims=True) + 1e-6)
    return input_ / root * p["/rmsnormalization.scale"]


def _sequence(p: Any, x: numpy.ndarray) -> numpy.ndarray:
    path = "/convolutionalsequence"
    W, b = p[f"{path}/convolutional.W"], p[f"{path}/convolutional.b"]
    hidden = 1 / (1 + numpy.exp(-_convolve(x, W, [(1, 1)]) - _at(b, 3)))
    hidden = _pool(hidden, (2,), 2, [(0, hidden.shape[2] % 2)], numpy.max, -numpy.inf)
    W, b = p[f"{path}/second.W"], p[f"{path}/second.b"]
    return numpy.tanh(_convolve(hidden, W, [(1, 1)]) + _at(b, 3))


def _make_sequence() -> ConvolutionalSequence:
    return ConvolutionalSequence(
        [
            Convolutional((3,), 3),
            Logistic(),
            MaxPooling(2, ignore_border=False),
            Convolutional((3,), 2, name="second"),
            Tanh(),
        ],
        num_channels=2,
        image_size=(None,),
        border_mode="half",
        **INIT,
    )


def _one_convolution(p: Any, x: numpy.ndarray, border: Any, **options: Any) -> numpy.ndarray:
    convolved = _convolve(x, p["/convolutional.W"], border, **options)
    return convolved + _at(p["/convolutional.b"], x.ndim)


_CONVOLUTIONS = (
    _convolution(
        "convolutional",
        lambda: Convolutional((2, 3), 4, 3, image_size=(4, 5), tied_biases=False, **INIT),
        (2, 3, 4, 5),
        [(0, 0)] * 2,
    ),
    _convolution(
        "convolutional-half-with-steps-and-groups",
        lambda: Convolutional(
            (2, 3), 4, 4, step=2, border_mode="half", num_groups=2, use_bias=False, **WEIGHTS
        ),
        (2, 4, 4, 5),
        [(1, 1), (1, 1)],
        step=2,
    ),
    _convolution(
        "convolutional-full-with-dilation",
        lambda: Convolutional((2, 2), 2, 3, border_mode="full", dilation=2, **INIT),
        (2, 3, 3, 4),
        [(2, 2), (2, 2)],
        dilation=2,
    ),
    _convolution(
        "convolutional-of-volumes",
        lambda: Convolutional((2, 1, 2), 2, 2, border_mode=("causal", 0, (0, 1)), **INIT),
        (1, 2, 3, 2, 3),
        [(1, 0), (0, 0), (0, 1)],
    ),
    _over_time(
        "convolutional-causal-with-a-mask",
        lambda: Convolutional(3, 2, 2, border_mode="causal", dilation=2, **INIT),
        lambda p, x: _one_convolution(p, x, [(4, 0)], dilation=2),
    ),
    _over_time(
        "convolutional-valid-with-steps-and-a-mask",
        lambda: Convolutional((2,), 2, 2, step=2, **INIT),
        lambda p, x: _one_convolution(p, x, [(0, 0)], step=2),
    ),
    _over_time(
        "convolutional-of-spectra-with-a-mask",
        lambda: Convolutional((3, 2), 2, 1, step=(2, 1), border_mode=("half", "valid"), **INIT),
        lambda p, x: _one_convolution(p, numpy.ascontiguousarray(x), [(1, 1), (0, 0)], step=2),
        channels=1,
        behind=(2,),
    ),
    _transposed(
        "convolutionaltranspose",
        lambda: ConvolutionalTranspose(
            (3, 2), 4, 4, step=2, border_mode="half", num_groups=2, unused_edge=1, **INIT
        ),
        (2, 4, 2, 3),
        [(1, 1), (1, 1)],
        step=2,
        edge=1,
    ),
    _transposed(
        "convolutionaltranspose-of-volumes",
        lambda: ConvolutionalTranspose((2, 1, 2), 2, 2, border_mode=("causal", 0, 0), **INIT),
        (1, 2, 3, 2, 2),
        [(0, 1), (0, 0), (0, 0)],
        step=1,
    ),
    _over_time(
        "convolutionaltranspose-with-a-mask",
        lambda: ConvolutionalTranspose(3, 2, 2, step=2, border_mode="causal", **INIT),
        lambda p, x: (
            _transpose(x, p["/convolutionaltranspose.W"], [(0, 2)], 2)
            + _at(p["/convolutionaltranspose.b"], 3)
        ),
    ),
)

_POOLINGS = (
    _pooling(
        "maxpooling",
        lambda: MaxPooling((3, 2), step=2, padding=1),
        (3, 2),
        2,
        [(1, 1)] * 2,
        numpy.max,
        -numpy.inf,
    ),
    _pooling(
        "pooling-sum",
        lambda: Pooling("sum", (2, 3), 2, None, False, 0),
        (2, 3),
        2,
        [(0, 1), (0, 1)],
        numpy.sum,
        0,
    ),
    _pooling(
        "averagepooling",
        lambda: AveragePooling((2, 2), 1, padding=1, include_padding=True),
        (2, 2),
        1,
        [(1, 1)] * 2,
        numpy.mean,
        0,
    ),
    _over_time(
        "maxpooling-with-a-mask",
        lambda: MaxPooling(3, step=2, padding=1),
        lambda _, x: _pool(x, (3,), 2, [(1, 1)], numpy.max, -numpy.inf),
        # So that zeros behind the end would be the largest.
        offset=-4,
    ),
    _over_time(
        "averagepooling-with-a-mask",
        lambda: AveragePooling(2, ignore_border=False),
        lambda _, x: _pool(x, (2,), 2, [(0, x.shape[2] % 2)], numpy.nanmean, numpy.nan),
    ),
    BrickCase(
        "flattener",
        Flattener,
        {"input_": draw_floats(2, 2, 3)},
        lambda _, input_: input_.reshape(2, 6),
        wrong_shapes={},
    ),
    _over_time("convolutionalsequence", _make_sequence, _sequence),
)

_NORMALIZATIONS = (
    BrickCase(
        "batchnormalization",
        lambda: BatchNormalization(3, **_STATISTICS),
        {"input_": draw_floats(4, 3)},
        _batch_inference,
        wrong_shapes={"input_": (4, 2)},
    ),
    BrickCase(
        "batchnormalization-of-each-element-in-training",
        _in_training(lambda: BatchNormalization((2, 3), **_STATISTICS)),
        {"input_": draw_floats(4, 2, 3)},
        lambda p, input_: (
            _normalize(input_, 0, 1e-4) * p["/batchnormalization.batch_norm_scale"]
            + p["/batchnormalization.batch_norm_shift"]
        ),
        wrong_shapes={"input_": (4, 3, 2)},
    ),
    BrickCase(
        "batchnormalization-over-time-in-training",
        _in_training(lambda: BatchNormalization(3, **_STATISTICS)),
        {"input_": draw_floats(5, 2, 3), "mask": _MASK.T},
        lambda p, input_, mask: _batch_normalization(p, input_, mask.T),
        wrong_shapes={"mask": (5, 2, 3)},
        sequences={"mask": {"input_": 0, "mask": 0}},
    ),
    BrickCase(
        "spatialbatchnormalization-in-training",
        _in_training(lambda: SpatialBatchNormalization((2, None), **_STATISTICS)),
        {"input_": draw_floats(2, 2, 5), "mask": _MASK},
        _spatial,
        wrong_shapes={"input_": (2, 3, 5), "mask": (2, 2, 5)},
        sequences=_OVER_TIME,
    ),
    BrickCase(
        "batchnormalizedmlp",
        lambda: BatchNormalizedMLP([Tanh(), None], [3, 4, 2], **WEIGHTS),
        {"input_": draw_floats(4, 3)},
        _normalized_mlp,
        wrong_shapes={"input_": (4, 2)},
    ),
    BrickCase(
        "layernormalization",
        lambda: LayerNormalization((2, 3), **_STATISTICS),
        {"input_": 100 + draw_floats(4, 2, 3)},
        _layer,
        wrong_shapes={"input_": (4, 3, 3)},
    ),
    BrickCase(
        "rmsnormalization",
        lambda: RMSNormalization(3, scale_init=IsotropicGaussian(0.5, 1)),
        {"input_": draw_floats(2, 4, 3)},
        _rms,
        wrong_shapes={"input_": (2, 4, 2)},
    ),
    _over_time(
        "groupnormalization", lambda: GroupNormalization(2, 4, **_STATISTICS), _group, channels=4
    ),
)

#: The bricks of `bricks.conv`, `bricks.bn` and `bricks.normalization`.
CONV_CASES: tuple[BrickCase, ...] = (*_CONVOLUTIONS, *_POOLINGS, *_NORMALIZATIONS)
