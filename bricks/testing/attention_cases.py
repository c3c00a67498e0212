"""Attention and Transformers as cases for `bricks.testing.checks`."""

from math import erf
from typing import Any

import numpy

from bricks.attention import (
    AttentionRecurrent,
    DotProductAttention,
    LocationSensitiveAttention,
    SequenceContentAttention,
)
from bricks.recurrent import SimpleRecurrent
from bricks.testing.checks import BrickCase
from bricks.testing.examples import INIT, WEIGHTS, draw_floats, linear, softmax
from bricks.transformer import (
    GELU,
    DecoderBlock,
    EncoderBlock,
    LearnedPositions,
    MultiHeadAttention,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
    Swish,
    TransformerDecoder,
    TransformerEncoder,
)

_SIZES: dict[str, Any] = {"state_names": ["states"], "state_dims": [3], "attended_dim": 4}
_ATTENDED = draw_floats(5, 2, 4)
_STATES = draw_floats(2, 3, seed=1)
#: Two sequences, of five steps and of three.
_ATTENDED_MASK = numpy.array([[1, 1], [1, 1], [1, 1], [1, 0], [1, 0]], "float32")
_MASK = numpy.array([[1, 1], [1, 1], [1, 0]], "float32")
_LOOKED_AT = {"attended_mask": {"attended": 0, "attended_mask": 0}}


def _weigh(energies: numpy.ndarray, mask: Any) -> numpy.ndarray:
    """Normalize energies of axes (time, batch)."""
    if mask is not None:
        energies = numpy.where(mask > 0, energies, -numpy.inf)
    return softmax(energies.T).T


def _glimpse(weights: numpy.ndarray, attended: numpy.ndarray) -> list[numpy.ndarray]:
    return [numpy.einsum("tb,tbf->bf", weights, attended), weights.T]


def _matched(p: Any, path: str, attended: Any, states: Any) -> tuple[Any, Any]:
    states = linear(p, path + "/state_trans/linear_states", states)
    return linear(p, path + "/preprocess", attended), states


def _additive(
    p: Any,
    attended: Any,
    states: Any,
    attended_mask: Any = None,
    path: str = "/sequencecontentattention",
) -> list[numpy.ndarray]:
    vectors, state = _matched(p, path, attended, states)
    energies = numpy.tanh(vectors + state) @ p[path + "/energy_comp/linear.W"]
    return _glimpse(_weigh(energies[..., 0], attended_mask), attended)


def _dot_product(p: Any, attended: Any, states: Any, attended_mask: Any) -> list[numpy.ndarray]:
    vectors, state = _matched(p, "/dotproductattention", attended, states)
    energies = (vectors * state).sum(axis=-1) / numpy.sqrt(6)
    return _glimpse(_weigh(energies, attended_mask), attended)


def _located(
    p: Any, attended: Any, states: Any, weights: Any, attended_mask: Any
) -> list[numpy.ndarray]:
    path = "/locationsensitiveattention"
    vectors, state = _matched(p, path, attended, states)
    filters = p[path + "/location_conv.W"][:, 0]
    # What `numpy.convolve` does with a filter of odd length is a convolution, in the middle.
    filtered = [[numpy.convolve(row, one, "same") for one in filters] for row in weights]
    located = numpy.moveaxis(numpy.array(filtered), 2, 0) @ p[path + "/location_trans.W"]
    energies = numpy.tanh(vectors + state + located) @ p[path + "/energy_comp/linear.W"]
    return _glimpse(_weigh(energies[..., 0], attended_mask), attended)


def _attending(
    p: Any, inputs: Any, mask: Any, attended: Any, attended_mask: Any
) -> list[numpy.ndarray]:
    path = "/attentionrecurrent"
    batch = inputs.shape[1]
    states = numpy.repeat(p[path + "/simplerecurrent.initial_state"][None], batch, axis=0)
    glimpses = [numpy.zeros((batch, 4)), numpy.zeros((batch, len(attended)))]
    collected = []
    for x, m in zip(inputs, mask, strict=True):
        m = m[:, None]
        where = path + "/sequencecontentattention"
        new = _additive(p, attended, states, attended_mask, where)
        total = x + linear(p, path + "/distribute/fork_inputs", new[0])
        next_states = numpy.tanh(total + states @ p[path + "/simplerecurrent.W"])
        states = m * next_states + (1 - m) * states
        glimpses = [m * n + (1 - m) * old for n, old in zip(new, glimpses, strict=True)]
        collected.append([states, *glimpses])
    return [numpy.array(values) for values in zip(*collected, strict=True)]


def _heads(x: numpy.ndarray, num_heads: int) -> numpy.ndarray:
    """Split (time, batch, feature) to (batch, head, time, feature)."""
    return x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2, 0, 3)


def _rotated(x: numpy.ndarray) -> numpy.ndarray:
    """Rotate heads of axes (batch, head, time, feature), as complex numbers."""
    time, half = x.shape[2], x.shape[3] // 2
    rates = 10000.0 ** (-numpy.arange(half) / half)
    turns = numpy.exp(1j * numpy.arange(time)[:, None] * rates)
    turned = (x[..., :half] + 1j * x[..., half:]) * turns
    return numpy.concatenate([turned.real, turned.imag], axis=-1)


def multi_head(
    parameters: Any,
    path: str,
    query: numpy.ndarray,
    key: numpy.ndarray,
    num_heads: int,
    *,
    key_mask: Any = None,
    causal: bool = False,
    rotary: bool = False,
    bias: Any = 0,
) -> list[numpy.ndarray]:
    """Compute what a `MultiHeadAttention` at a path computes.

    Parameters
    ----------
    parameters : mapping of str to array
        By path.
    path : str
        Of the brick.
    query, key : array of shape (time, batch, feature)
    num_heads : int
        Heads.
    key_mask : array of shape (key time, batch), optional
        0 for padding.
    causal : bool
        Whether no query sees a later key.
    rotary : bool
        Whether there are `RotaryPositions`.
    bias : array, optional
        Energies to add.

    Returns
    -------
    list of array
        The output of shape (query time, batch, feature), and the weights of shape (batch, head,
        query time, key time), 0 for a query that sees no key.
    """
    queries, keys, values = (
        _heads(linear(parameters, f"{path}/{name}", x), num_heads)
        for name, x in {"query": query, "key": key, "value": key}.items()
    )
    if rotary:
        queries, keys = _rotated(queries), _rotated(keys)
    energies = queries @ keys.swapaxes(2, 3) / numpy.sqrt(queries.shape[-1]) + bias
    if causal:
        later = numpy.triu(numpy.ones(energies.shape[-2:]), 1) > 0
        energies = numpy.where(later, -numpy.inf, energies)
    if key_mask is not None:
        energies = numpy.where(key_mask.T[:, None, None, :] > 0, energies, -numpy.inf)
    sees = numpy.isfinite(energies).any(axis=-1, keepdims=True)
    weights = softmax(numpy.where(sees, energies, 0)) * sees
    averages = (weights @ values).transpose(2, 0, 1, 3).reshape(*query.shape[:2], -1)
    return [linear(parameters, path + "/output", averages), weights]


def _normalized(p: Any, path: str, x: numpy.ndarray) -> numpy.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return centred / deviation * p[path + ".scale"] + p[path + ".shift"]


def _encoder(p: Any, input_: Any, mask: Any) -> numpy.ndarray:
    """A post-norm layer with rectifiers after sinusoidal positions."""
    path = "/transformerencoder/layer_0"
    angles = numpy.arange(len(input_))[:, None] * numpy.array([1, 0.01])
    encodings = numpy.stack([numpy.sin(angles), numpy.cos(angles)], axis=-1).reshape(-1, 1, 4)
    x = input_ + encodings
    x = x + multi_head(p, path + "/attention", x, x, 2, key_mask=mask)[0]
    x = _normalized(p, path + "/attention_norm", x)
    hidden = numpy.maximum(linear(p, path + "/feedforward/hidden", x), 0)
    x = x + linear(p, path + "/feedforward/output", hidden)
    return _normalized(p, path + "/feedforward_norm", x)


def _decoder(
    p: Any, input_: Any, attended: Any, attended_mask: Any, mask: Any = None
) -> numpy.ndarray:
    """A pre-norm layer with SwiGLU and rotary positions after learned ones."""
    top = "/transformerdecoder"
    path = top + "/layer_0"
    x = input_ + p[top + "/learnedpositions/table.W"][: len(input_), None]
    y = _normalized(p, path + "/attention_norm", x)
    y = multi_head(p, path + "/attention", y, y, 2, causal=True, rotary=True, key_mask=mask)[0]
    x = x + y
    y = _normalized(p, path + "/cross_attention_norm", x)
    where = path + "/cross_attention"
    x = x + multi_head(p, where, y, attended, 2, key_mask=attended_mask)[0]
    y = _normalized(p, path + "/feedforward_norm", x)
    hidden = linear(p, path + "/feedforward/hidden", y)
    gated = hidden / (1 + numpy.exp(-hidden)) * linear(p, path + "/feedforward/gate", y)
    x = x + linear(p, path + "/feedforward/output", gated)
    return _normalized(p, top + "/norm", x)


def _build_decoder() -> TransformerDecoder:
    block = DecoderBlock(
        num_heads=2,
        attended_dim=3,
        hidden_dim=5,
        activation=Swish(),
        gated=True,
        positions=RotaryPositions(),
    )
    return TransformerDecoder(1, block, dim=4, positions=LearnedPositions(6), max_length=6, **INIT)


def _relative(p: Any, query: Any, key_mask: Any) -> list[numpy.ndarray]:
    # Distances 0 and 1 have buckets of their own, 2 and 3 share the next.
    distances = numpy.arange(len(query))[:, None] - numpy.arange(len(query))[None, :]
    buckets = numpy.array([0, 1, 2, 2, 3, 3])[numpy.maximum(distances, 0)]
    bias = numpy.moveaxis(p["/multiheadattention/relativepositions.W"][buckets], 2, 0)
    path = "/multiheadattention"
    return multi_head(p, path, query, query, 2, key_mask=key_mask, causal=True, bias=bias)


def _activation(brick: Any, function: Any) -> BrickCase:
    inputs = {"input_": draw_floats(3, 4)}
    return BrickCase(brick.__name__.lower(), brick, inputs, lambda _, input_: function(input_))


#: Attention of recurrent bricks, and Transformers.
ATTENTION_CASES: tuple[BrickCase, ...] = (
    BrickCase(
        "sequencecontentattention",
        lambda: SequenceContentAttention(match_dim=6, **_SIZES, **INIT),
        {"attended": _ATTENDED, "states": _STATES, "attended_mask": _ATTENDED_MASK},
        _additive,
        application="take_glimpses",
        wrong_shapes={
            "attended": (2, 2, 5),
            "states": (2, 4),
            "attended_mask": (2, 2, 1),
        },
        sequences=_LOOKED_AT,
    ),
    BrickCase(
        "sequencecontentattention-without-a-mask",
        lambda: SequenceContentAttention(match_dim=6, **_SIZES, **INIT),
        {"attended": _ATTENDED, "states": _STATES},
        _additive,
        application="take_glimpses",
    ),
    BrickCase(
        "dotproductattention",
        lambda: DotProductAttention(match_dim=6, scaled=True, **_SIZES, **INIT),
        {"attended": _ATTENDED, "states": _STATES, "attended_mask": _ATTENDED_MASK},
        _dot_product,
        application="take_glimpses",
        wrong_shapes={"states": (2, 4)},
        sequences=_LOOKED_AT,
    ),
    BrickCase(
        "locationsensitiveattention",
        lambda: LocationSensitiveAttention(
            match_dim=6, num_filters=2, filter_length=3, **_SIZES, **INIT
        ),
        {
            "attended": _ATTENDED,
            "states": _STATES,
            "weights": softmax(draw_floats(2, 5, seed=2)) * _ATTENDED_MASK.T,
            "attended_mask": _ATTENDED_MASK.astype("uint8"),
        },
        _located,
        application="take_glimpses",
        wrong_shapes={"weights": (2, 2, 2)},
    ),
    BrickCase(
        "attentionrecurrent",
        lambda: AttentionRecurrent(
            SimpleRecurrent(3),
            SequenceContentAttention(match_dim=6, attended_dim=4),
            **INIT,
        ),
        {
            "inputs": draw_floats(3, 2, 3, seed=3),
            "mask": _MASK,
            "attended": _ATTENDED,
            "attended_mask": _ATTENDED_MASK,
        },
        _attending,
        wrong_shapes={"inputs": (2, 2, 5), "attended": (2, 2, 5)},
        sequences={"mask": {"inputs": 0, "mask": 0}, **_LOOKED_AT},
    ),
    BrickCase(
        "multiheadattention-across",
        lambda: MultiHeadAttention(num_heads=2, query_dim=6, key_dim=4, **INIT),
        {"query": draw_floats(3, 2, 6), "key": _ATTENDED, "key_mask": _ATTENDED_MASK},
        lambda p, query, key, key_mask: multi_head(
            p, "/multiheadattention", query, key, 2, key_mask=key_mask
        ),
        application="attend",
        wrong_shapes={"query": (2, 6), "key": (2, 2, 3), "key_mask": (2,)},
        sequences={"key_mask": {"key": 0, "key_mask": 0}},
    ),
    BrickCase(
        "multiheadattention-causal-with-relative-positions",
        lambda: MultiHeadAttention(
            num_heads=2,
            query_dim=4,
            causal=True,
            positions=RelativePositions(num_buckets=4, max_distance=8, bidirectional=False),
            **INIT,
        ),
        {"query": _ATTENDED, "key_mask": _ATTENDED_MASK[::-1].astype("uint8")},
        _relative,
        application="attend",
        wrong_shapes={"query": (2, 2, 3)},
    ),
    BrickCase(
        "transformerencoder",
        lambda: TransformerEncoder(
            1,
            EncoderBlock(num_heads=2, hidden_dim=5, norm_first=False),
            dim=4,
            positions=SinusoidalPositions(),
            **INIT,
        ),
        {"input_": _ATTENDED, "mask": _ATTENDED_MASK},
        _encoder,
        wrong_shapes={"input_": (2, 2, 5), "mask": (2, 2, 2)},
        sequences={"mask": {"input_": 0, "mask": 0}},
    ),
    BrickCase(
        "transformerdecoder",
        _build_decoder,
        {
            "input_": _ATTENDED[:4],
            "attended": draw_floats(5, 2, 3, seed=4),
            "attended_mask": _ATTENDED_MASK,
        },
        _decoder,
        wrong_shapes={"input_": (2, 2, 5), "attended": (2, 2, 4)},
        sequences=_LOOKED_AT,
    ),
    BrickCase(
        "learnedpositions",
        lambda: LearnedPositions(5, dim=4, **WEIGHTS),
        {"input_": _ATTENDED},
        lambda p, input_: input_ + p["/learnedpositions/table.W"][:, None],
        wrong_shapes={"input_": (2, 2, 3)},
    ),
    _activation(GELU, lambda x: x * (1 + numpy.vectorize(erf)(x / numpy.sqrt(2))) / 2),
    _activation(Swish, lambda x: x / (1 + numpy.exp(-x))),
)
