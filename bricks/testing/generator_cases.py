"""The bricks of sequence generation as cases for `bricks.testing.checks`."""

from typing import Any

import numpy

from bricks.attention import SequenceContentAttention
from bricks.recurrent import SimpleRecurrent
from bricks.sequence_generators import (
    LookupFeedback,
    Readout,
    SequenceGenerator,
    SoftmaxEmitter,
    TrivialEmitter,
    TrivialFeedback,
)
from bricks.simple import Tanh
from bricks.testing.checks import BrickCase
from bricks.testing.examples import INIT, WEIGHTS, draw_floats, linear, softmax

#: Two sequences of symbols, of three and of two.
_SYMBOLS = numpy.array([[1, 3], [0, 2], [2, 0]])
_MASK = numpy.array([[1, 1], [1, 1], [1, 0]], dtype="float32")
_ATTENDED = draw_floats(4, 2, 3, seed=1)
_ATTENDED_MASK = numpy.array([[1, 1], [1, 1], [1, 1], [0, 1]], dtype="float32")


def _generator(*sources: str, **options: Any) -> SequenceGenerator:
    readout = Readout(
        source_names=["states", "feedback", *sources],
        readout_dim=4,
        emitter=SoftmaxEmitter(initial_output=3),
        feedback_brick=LookupFeedback(4, 3),
    )
    return SequenceGenerator(readout, SimpleRecurrent(2, Tanh()), **options, **INIT)


def _attentive_generator() -> SequenceGenerator:
    attention = SequenceContentAttention(state_names=["states"], attended_dim=3, match_dim=2)
    return _generator("weighted_averages", attention=attention)


def _costs(
    p: Any, outputs: Any, mask: Any, attended: Any = None, attended_mask: Any = None
) -> numpy.ndarray:
    """Cost each symbol, one step after the other, as the generator takes them to generate."""
    top = "/sequencegenerator"
    has_attention = attended is not None
    kind = "att_trans" if has_attention else "with_fake_attention"
    transition = f"{top}/{kind}/simplerecurrent"
    table = p[f"{top}/readout/lookupfeedback/lookuptable.W"]
    states = numpy.repeat(p[f"{transition}.initial_state"][None], outputs.shape[1], axis=0)
    before, costs = numpy.full(outputs.shape[1], 3), numpy.zeros(outputs.shape)
    for step, symbols in enumerate(outputs):
        sources = {"states": states, "feedback": table[before]}
        if has_attention:
            sources["weighted_averages"] = _glimpse(p, states, attended, attended_mask)
        readouts = p[f"{top}/readout/bias.b"] + sum(
            linear(p, f"{top}/readout/merge/linear_{name}", x) for name, x in sources.items()
        )
        is_counted = mask[step] > 0
        symbols = numpy.where(is_counted, symbols, 0)
        costs[step] = -numpy.log(softmax(readouts)[numpy.arange(len(symbols)), symbols])
        costs[step] = numpy.where(is_counted, costs[step], 0)
        inputs = linear(p, f"{top}/fork/fork_inputs", table[symbols])
        if has_attention:
            added = f"{top}/att_trans/distribute/fork_inputs"
            inputs = inputs + linear(p, added, sources["weighted_averages"])
        new = numpy.tanh(inputs + states @ p[f"{transition}.W"])
        states, before = numpy.where(is_counted[:, None], new, states), symbols
    return costs


def _glimpse(p: Any, states: Any, attended: Any, attended_mask: Any) -> numpy.ndarray:
    top = "/sequencegenerator/att_trans/sequencecontentattention"
    matched = linear(p, f"{top}/preprocess", attended)
    matched = matched + states @ p[f"{top}/state_trans/linear_states.W"]
    energies = (numpy.tanh(matched) @ p[f"{top}/energy_comp/linear.W"])[..., 0]
    weights = softmax(numpy.where(attended_mask > 0, energies, -1e30).T)
    return numpy.einsum("bt,tbf->bf", weights, attended)


def _cross_entropies(_: Any, readouts: Any, outputs: Any) -> numpy.ndarray:
    probabilities = numpy.take_along_axis(softmax(readouts), outputs[..., None], axis=-1)
    return -numpy.log(probabilities[..., 0])


#: All bricks of sequence generation, in all their ways of being used that differ.
GENERATOR_CASES: tuple[BrickCase, ...] = (
    BrickCase(
        "sequencegenerator",
        _generator,
        {"outputs": _SYMBOLS, "mask": _MASK},
        _costs,
        application="cost_matrix",
        wrong_shapes={"outputs": (3,)},
        sequences={"mask": {"outputs": 0, "mask": 0}},
    ),
    BrickCase(
        "sequencegenerator-with-attention",
        _attentive_generator,
        {
            "outputs": _SYMBOLS,
            "mask": _MASK,
            "attended": _ATTENDED,
            "attended_mask": _ATTENDED_MASK,
        },
        _costs,
        application="cost_matrix",
        wrong_shapes={"attended": (4, 2, 5)},
        sequences={
            "mask": {"outputs": 0, "mask": 0},
            "attended_mask": {"attended": 0, "attended_mask": 0},
        },
    ),
    BrickCase(
        "trivialemitter",
        lambda: TrivialEmitter(4),
        {"readouts": draw_floats(3, 4)},
        lambda _, readouts: readouts,
        application="emit",
    ),
    BrickCase(
        "softmaxemitter",
        SoftmaxEmitter,
        {"readouts": draw_floats(3, 2, 4), "outputs": _SYMBOLS},
        _cross_entropies,
        application="cost",
        wrong_shapes={"readouts": (4,)},
    ),
    BrickCase(
        "trivialfeedback",
        lambda: TrivialFeedback(4),
        {"outputs": draw_floats(3, 4)},
        lambda _, outputs: outputs,
        application="feedback",
    ),
    BrickCase(
        "lookupfeedback",
        lambda: LookupFeedback(4, 3, **WEIGHTS),
        {"outputs": _SYMBOLS},
        lambda p, outputs: p["/lookupfeedback/lookuptable.W"][outputs],
        application="feedback",
    ),
)
