"""The recurrent bricks as cases for `bricks.testing.checks`."""

from typing import Any

import numpy

from bricks.recurrent import (
    LSTM,
    Bidirectional,
    GatedRecurrent,
    LayerNormalizedLSTM,
    ProjectedLSTM,
    RecurrentStack,
    SimpleRecurrent,
)
from bricks.testing.checks import BrickCase
from bricks.testing.examples import INIT, WEIGHTS, draw_floats, linear

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


def _sigmoid(x: numpy.ndarray) -> numpy.ndarray:
    return 1 / (1 + numpy.exp(-x))


def _normalized(x: numpy.ndarray) -> numpy.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def _lstm(p: Any, inputs: Any, mask: Any = None, path: str = "/lstm") -> Any:
    def get(name: str, otherwise: Any = 0) -> Any:
        return p.get(f"{path}.{name}", otherwise)

    is_normalized = f"{path}.inputs_scale" in p

    def step(x: Any, h: Any, c: Any) -> list[Any]:
        total = x + h @ get("W_state")
        if is_normalized:
            from_states = _normalized(h @ get("W_state")) * get("states_scale")
            total = _normalized(x) * get("inputs_scale") + from_states + get("shift")
        i, f, z, o = numpy.split(total, 4, axis=-1)
        i, f = _sigmoid(i + c * get("W_cell_to_in")), _sigmoid(f + c * get("W_cell_to_forget"))
        c = f * c + i * numpy.tanh(z)
        shown = _normalized(c) * get("cells_scale") + get("cells_shift") if is_normalized else c
        h = _sigmoid(o + c * get("W_cell_to_out")) * numpy.tanh(shown)
        return [h @ get("W_projection", numpy.eye(h.shape[1])), c]

    batch = inputs.shape[1]
    initial = [_first(p, f"{path}.initial_{name}", batch) for name in ("state", "cells")]
    return _repeat(step, mask, initial, inputs)


def _gated(p: Any, inputs: Any, gate_inputs: Any, mask: Any, path: str = "/gatedrecurrent") -> Any:
    def step(x: Any, gates: Any, h: Any) -> list[Any]:
        update, reset = numpy.split(_sigmoid(gates + h @ p[f"{path}.state_to_gates"]), 2, axis=-1)
        candidate = numpy.tanh(x + (h * reset) @ p[f"{path}.state_to_state"])
        return [update * candidate + (1 - update) * h]

    initial = _first(p, f"{path}.initial_state", inputs.shape[1])
    return _repeat(step, mask, [initial], inputs, gate_inputs)


def _bidirectional(p: Any, inputs: Any, mask: Any) -> Any:
    forward = _simple(p, inputs, mask, "/bidirectional/forward")
    backward = _simple(p, inputs[::-1], mask[::-1], "/bidirectional/backward")
    return [
        numpy.concatenate([one, other[::-1]], axis=2)
        for one, other in zip(forward, backward, strict=True)
    ]


def _stack(p: Any, mask: Any, **inputs: Any) -> Any:
    path = "/recurrentstack"
    below = _simple(p, inputs["inputs"], mask, f"{path}/simplerecurrent#0")[0]
    fed = linear(p, f"{path}/fork_1/fork_inputs", below) + inputs.get("inputs#1", 0)
    return [below, *_simple(p, fed, mask, f"{path}/simplerecurrent#1")]


def _stack_of_two(**options: Any) -> RecurrentStack:
    schemes = INIT if not options.get("skip_connections") else WEIGHTS
    return RecurrentStack([SimpleRecurrent(3), SimpleRecurrent(2)], **options, **schemes)


_INPUTS = draw_floats(3, 2, 3)
_FOR_LSTM = {"inputs": draw_floats(3, 2, 8), "mask": _MASK}

#: All recurrent bricks, in all their ways of being used that differ.
RECURRENT_CASES: tuple[BrickCase, ...] = (
    BrickCase(
        "simplerecurrent",
        lambda: SimpleRecurrent(3, **WEIGHTS),
        {"inputs": _INPUTS, "mask": _MASK},
        _simple,
        wrong_shapes={"inputs": (3, 2, 4)},
        sequences=_OVER_TIME,
    ),
    BrickCase(
        "lstm",
        lambda: LSTM(2, **WEIGHTS),
        _FOR_LSTM,
        _lstm,
        wrong_shapes={"inputs": (3, 2, 7)},
        sequences=_OVER_TIME,
    ),
    BrickCase(
        "gatedrecurrent",
        lambda: GatedRecurrent(3, **WEIGHTS),
        {"inputs": _INPUTS, "gate_inputs": draw_floats(3, 2, 6, seed=1), "mask": _MASK},
        _gated,
        wrong_shapes={"gate_inputs": (3, 2, 3), "inputs": (3, 2, 6)},
        sequences={"mask": {"inputs": 0, "gate_inputs": 0, "mask": 0}},
    ),
    BrickCase(
        "projectedlstm",
        lambda: ProjectedLSTM(2, 3, use_peepholes=False, **WEIGHTS),
        _FOR_LSTM,
        lambda p, **inputs: _lstm(p, **inputs, path="/projectedlstm"),
        wrong_shapes={"inputs": (3, 2, 12)},
        sequences=_OVER_TIME,
    ),
    BrickCase(
        "layernormalizedlstm",
        lambda: LayerNormalizedLSTM(2, **WEIGHTS),
        _FOR_LSTM,
        lambda p, **inputs: _lstm(p, **inputs, path="/layernormalizedlstm"),
        wrong_shapes={"inputs": (3, 2, 7)},
        sequences=_OVER_TIME,
    ),
    BrickCase(
        "bidirectional",
        lambda: Bidirectional(SimpleRecurrent(3), **WEIGHTS),
        {"inputs": _INPUTS, "mask": _MASK},
        _bidirectional,
        wrong_shapes={"inputs": (3, 2, 4)},
        sequences=_OVER_TIME,
    ),
    BrickCase(
        "recurrentstack",
        _stack_of_two,
        {"inputs": _INPUTS, "mask": _MASK},
        _stack,
        wrong_shapes={"inputs": (3, 2, 4)},
        sequences=_OVER_TIME,
    ),
    BrickCase(
        "recurrentstack-with-skip-connections-in-one-loop",
        lambda: _stack_of_two(skip_connections=True),
        {"inputs": _INPUTS, "inputs#1": draw_floats(3, 2, 2, seed=1), "mask": _MASK},
        _stack,
        options={"low_memory": True},
        wrong_shapes={"inputs#1": (3, 2, 4)},
        sequences={"mask": {"inputs": 0, "inputs#1": 0, "mask": 0}},
    ),
)
