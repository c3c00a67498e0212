import numpy
import pytest
from aesara import tensor

from bricks import Linear, LookupTable, Softmax, Tanh, xla
from bricks.base import application
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian
from bricks.interfaces import Initializable
from bricks.recurrent import SimpleRecurrent
from bricks.search import (
    BeamSearch,
    GeneratorStepper,
    GreedySearch,
    Stepper,
    TransformerStepper,
)
from bricks.sequence_generators import (
    LookupFeedback,
    Readout,
    SequenceGenerator,
    SoftmaxEmitter,
    TrivialEmitter,
)
from bricks.transformer import DecoderBlock, SinusoidalPositions, TransformerDecoder

LENGTH, NUM_SYMBOLS = 6, 4
WEIGHTS = numpy.random.RandomState(0).standard_normal((LENGTH, NUM_SYMBOLS, NUM_SYMBOLS)) * 2


class Cached(Stepper):
    """Scores depend on all symbols so far, which are kept as the keys of a Transformer are."""

    def __init__(self):
        self.first = tensor.lvector("first")
        self.inputs = [self.first]

    def contexts(self):
        return {}

    def initial_states(self, contexts):
        cache = tensor.zeros((LENGTH, self.first.shape[0]), "int64")
        return {"cache": cache, "position": tensor.constant(0, dtype="int64"), "last": self.first}

    def state_axis(self, name):
        return {"cache": 1, "position": None, "last": 0}[name]

    def score(self, states, contexts):
        position = states["position"]
        is_now = tensor.eq(tensor.arange(LENGTH), position)[:, None]
        cache = tensor.switch(is_now, states["last"], states["cache"])
        is_past = tensor.le(tensor.arange(LENGTH), position)[:, None, None]
        weights = tensor.constant(WEIGHTS.astype("float32"))
        looked_up = weights[tensor.arange(LENGTH)[:, None], cache]
        scores = tensor.switch(is_past, looked_up, 0).sum(axis=0)
        log_probs = scores - tensor.logsumexp(scores, axis=1, keepdims=True)
        return log_probs, {"cache": cache, "position": position}

    def advance(self, symbols, states, contexts):
        return {**states, "position": states["position"] + 1, "last": symbols}

    def cost(self, first, sequence):
        given, total = [first, *sequence[:-1]], 0.0
        for step, symbol in enumerate(sequence):
            scores = sum(WEIGHTS[i, one] for i, one in enumerate(given[: step + 1]))
            total += numpy.log(numpy.exp(scores).sum()) - scores[symbol]
        return total


def test_a_cache_along_another_axis_is_searched_like_any_state():
    model = Cached()

    found = BeamSearch(model, 5).decode({model.first: [1, 3]}, 0, LENGTH)

    for first, sequences, costs in zip([1, 3], found.as_lists(), found.costs, strict=True):
        expected = [model.cost(first, sequence) for sequence in sequences]
        numpy.testing.assert_allclose(costs, expected, rtol=1e-4)
        assert len({tuple(sequence) for sequence in sequences}) == 5


def test_the_best_sequences_of_a_transformer_cost_as_much_when_all_steps_are_taken_at_once():
    schemes = {"weights_init": IsotropicGaussian(0.7), "biases_init": IsotropicGaussian(0.5)}
    table = LookupTable(NUM_SYMBOLS, 4, weights_init=IsotropicGaussian(1))
    projection = Linear(4, NUM_SYMBOLS, **schemes)
    block = DecoderBlock(num_heads=2, hidden_dim=8, attended_dim=3)
    decoder = TransformerDecoder(
        2, block, 4, positions=SinusoidalPositions(), max_length=LENGTH, **schemes
    )
    for brick in (table, projection, decoder):
        brick.initialize()
    # Ends are rare.
    projection.b.set_value(numpy.array([-3, 0, 0, 0], "float32"))
    attended, mask = tensor.tensor3("attended"), tensor.matrix("mask")
    first, given = tensor.lvector("first"), tensor.lmatrix("given")
    scores = projection.apply(
        decoder.apply(table.apply(given), attended=attended, attended_mask=mask)
    )
    at_once = xla.function([given, attended, mask], Softmax().log_probabilities(scores))
    contexts = [
        numpy.random.RandomState(1).standard_normal((5, 2, 3)).astype("float32"),
        numpy.array([[1, 1]] * 3 + [[1, 0]] * 2, "float32"),
    ]
    stepper = TransformerStepper(
        decoder, table.apply, projection.apply, first, attended, attended_mask=mask
    )

    values = {first: [1, 2], attended: contexts[0], mask: contexts[1]}
    found = BeamSearch(stepper, 3).decode(values, 0, LENGTH)
    outputs, inside = found.as_batch()
    before = numpy.concatenate([numpy.repeat([[1, 2]], 3, axis=1), outputs[:-1]])
    log_probs = at_once(before, *(x.repeat(3, axis=1) for x in contexts))

    taken = numpy.take_along_axis(log_probs, outputs[:, :, None], axis=2)[:, :, 0] * inside
    assert found.lengths.max() > 2
    numpy.testing.assert_allclose(-taken.sum(axis=0).reshape(2, 3), found.costs, rtol=1e-4)


def make_generator(emitter=None):
    readout = Readout(
        source_names=["states"],
        readout_dim=NUM_SYMBOLS,
        emitter=emitter or SoftmaxEmitter(),
        feedback_brick=None if emitter else LookupFeedback(NUM_SYMBOLS, 3),
    )
    schemes = {"weights_init": IsotropicGaussian(1), "biases_init": IsotropicGaussian(1)}
    generator = SequenceGenerator(readout, SimpleRecurrent(3, Tanh()), **schemes)
    generator.initialize()
    return generator


class Sampler(Initializable):
    def __init__(self, generator, **kwargs):
        super().__init__(children=[generator], **kwargs)
        self.generator = generator

    @application
    def apply(self, states):
        return self.generator.generate(
            n_steps=4, batch_size=states.shape[0], states=states, as_dict=True
        )["outputs"]


def test_samples_are_known_however_they_were_handed_on():
    generator = make_generator()
    states = tensor.matrix("states")
    handed_on = Sampler(generator).apply(states)
    (found,) = VariableFilter(applications=[generator.generate], name="outputs")(
        ComputationGraph(handed_on).variables
    )

    steppers = [GeneratorStepper(samples) for samples in (handed_on, found)]

    assert all(stepper.generator is generator for stepper in steppers)
    assert [stepper.inputs for stepper in steppers] == [[states], [states]]


def test_a_search_begins_with_the_states_that_were_given():
    generator = make_generator()
    states = tensor.matrix("states")
    search = GreedySearch(Sampler(generator).apply(states))
    values = numpy.array([[-9, 9, 9], [9, -9, -9]], "f4")

    both = search.decode({states: values}, 0, 1)
    alone = search.decode({states: values[1:]}, 0, 1)

    assert both.costs[0] != both.costs[1]
    numpy.testing.assert_allclose(both.costs[1], alone.costs[0], rtol=1e-5)


def test_training_goes_on_without_compiling_a_search_again():
    generator = make_generator()
    states = tensor.matrix("states")
    search = GreedySearch(Sampler(generator).apply(states))
    values = {states: numpy.zeros((1, 3), "f4")}
    search.decode(values, 0, 1)

    generator.readout.post_merge.b.set_value(numpy.array([0, 0, 0, 50], "f4"))

    assert search.decode(values, 0, 1).as_lists() == [[[3]]]


def test_what_is_no_sample_is_refused():
    generator = make_generator()
    made = generator.generate(n_steps=2, batch_size=3, as_dict=True)

    for wrong in (made["states"], made["costs"], tensor.matrix("x"), 3):
        with pytest.raises(ValueError, match="a search needs the `outputs` of a call of `genera"):
            BeamSearch(wrong)


def test_an_emitter_without_probabilities_cannot_be_searched():
    generator = make_generator(TrivialEmitter())
    outputs = generator.generate(n_steps=2, batch_size=3, as_dict=True)["outputs"]

    message = r"readout.log_probs: TrivialEmitter gives no probabilities.*use SoftmaxEmitter"
    with pytest.raises(ValueError, match=message):
        GreedySearch(outputs).decode({}, 0, 3)


class ProbabilitiesOnly(SoftmaxEmitter):
    log_probs = None


def test_an_emitter_with_probabilities_alone_can_be_searched():
    costs = []
    for emitter in (SoftmaxEmitter, ProbabilitiesOnly):
        generator = make_generator()
        generator.readout.emitter.__class__ = emitter
        samples = generator.generate(n_steps=2, batch_size=1, as_dict=True)["outputs"]
        costs.append(BeamSearch(samples, 3).decode({}, 0, 3).costs)

    numpy.testing.assert_allclose(costs[0], costs[1], rtol=1e-4)


class WithoutTheFirst(SoftmaxEmitter):
    @application
    def probs(self, readouts):
        allowed = tensor.constant(numpy.array([0, 1, 1, 1], "f4"))
        return self.softmax.apply(readouts) * allowed


def test_the_probabilities_that_the_most_derived_emitter_gives_are_searched():
    generator = make_generator()
    generator.readout.emitter.__class__ = WithoutTheFirst
    generator.readout.post_merge.b.set_value(numpy.array([50, 0, 9, 0], "f4"))
    samples = generator.generate(n_steps=2, batch_size=1, as_dict=True)["outputs"]

    assert GreedySearch(samples).decode({}, 0, 2).as_lists() == [[[2, 2]]]


def test_a_search_of_more_steps_than_a_decoder_has_room_for_is_refused():
    block = DecoderBlock(num_heads=1, attends=False)
    decoder = TransformerDecoder(1, block, dim=2, max_length=2)
    first = tensor.lvector("first")
    stepper = TransformerStepper(decoder, LookupTable(3, 2).apply, Linear(2, 3).apply, first)

    assert stepper.max_length == 2
    message = r"GreedySearch: `max_length` must be at most 2, the steps .*; got 3\. Make the decod"
    with pytest.raises(ValueError, match=message):
        GreedySearch(stepper).decode({first: [0]}, 2, 3)


def test_initial_states_that_are_schemes_are_refused():
    samples = make_generator().generate(
        n_steps=2, batch_size=1, states=Constant(0.5), as_dict=True
    )["outputs"]

    message = r"sequencegenerator\.generate: `states` .*got <?.*Constant.*initial_states"
    with pytest.raises(ValueError, match=message):
        GreedySearch(samples)


class AttendingInScoreOnly(Cached):
    attention_name = "weights"

    def score(self, states, contexts):
        log_probs, states = super().score(states, contexts)
        return log_probs, {**states, "weights": tensor.ones((log_probs.shape[0], 3)) / 3}


def test_attention_that_is_no_initial_state_cannot_be_added_up():
    model = AttendingInScoreOnly()

    message = r"BeamSearch: `coverage_penalty` needs .*'weights' .*`initial_states`"
    with pytest.raises(ValueError, match=message):
        BeamSearch(model, 2, coverage_penalty=0.1).decode({model.first: [0]}, 0, 2)
