import numpy
import pytest
from aesara import tensor

from bricks import Linear, LookupTable, Softmax, xla
from bricks.algorithms import Adam, GradientDescent
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian
from bricks.transformer import (
    DecoderBlock,
    EncoderBlock,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    TransformerDecoder,
    TransformerEncoder,
)


def schemes(deviation=0.3):
    return {"weights_init": IsotropicGaussian(deviation), "biases_init": Constant(0)}


def test_steps_give_what_a_decoder_gives_at_once_and_nan_after_the_last_place():
    block = DecoderBlock(num_heads=2, attended_dim=6, positions=RotaryPositions())
    decoder = TransformerDecoder(
        1, block, dim=8, positions=SinusoidalPositions(), max_length=3, **schemes()
    )
    decoder.initialize()
    x, attended, mask = tensor.tensor3("x"), tensor.tensor3("attended"), tensor.matrix("mask")
    at_once = decoder.apply(x, attended=attended, attended_mask=mask)
    contexts = {**decoder.preprocess(attended, as_dict=True), "attended_mask": mask}
    step = one_step(decoder, [attended, mask], tensor.matrix("x"), contexts)
    rng = numpy.random.RandomState(0)
    values = [rng.standard_normal(shape).astype("float32") for shape in ((3, 2, 8), (5, 2, 6))]
    values.append(numpy.array([[1, 1], [1, 1], [1, 0], [1, 0], [1, 0]], "float32"))

    expected = xla.function([x, attended, mask], at_once)(*values)
    states = first_states(decoder, 2)
    for t in range(3):
        found, *states = step(*values[1:], values[0][t], *states)
        numpy.testing.assert_allclose(found, expected[t], 1e-4, 1e-5)
    beyond, *states = step(*values[1:], values[0][0], *states)

    assert numpy.isnan(beyond).all()
    assert (
        decoder.step.states == decoder.initial_states.outputs == ["position", "keys_0", "values_0"]
    )
    assert decoder.get_dims(["keys_0", "attended_values_0", "position", "input_"]) == [8, 8, 0, 8]


def one_step(decoder, inputs, x, contexts, embed=lambda x: x, read=lambda y: y):
    """A function of the inputs, of what a step takes and of the states."""
    initial = decoder.initial_states(tensor.lscalar("batch_size"), as_dict=True)
    states = {name: state.type(name=name) for name, state in initial.items()}
    after = decoder.step(embed(x), **states, **contexts, as_dict=True)
    output = read(after.pop("output"))
    return xla.function([*inputs, x, *states.values()], [output, *after.values()])


def first_states(decoder, batch_size):
    """Zeros, by a function without arguments."""
    return xla.function([], decoder.initial_states(batch_size))()


SYMBOLS, LENGTH, BATCH, START = 6, 4, 32, 6


def test_a_transformer_learns_to_reverse_and_generates_step_by_step():
    table = LookupTable(SYMBOLS + 1, 32, weights_init=IsotropicGaussian(1))
    encoder = TransformerEncoder(
        1,
        EncoderBlock(4, hidden_dim=32),
        dim=32,
        positions=LearnedPositions(LENGTH),
        **schemes(0.2),
    )
    decoder = TransformerDecoder(
        1,
        DecoderBlock(4, hidden_dim=32),
        dim=32,
        positions=LearnedPositions(LENGTH),
        max_length=LENGTH,
        **schemes(0.2),
    )
    readout = Linear(32, SYMBOLS, **schemes(0.2))
    for brick in (table, encoder, decoder, readout):
        brick.initialize()
    source, target = tensor.lmatrix("source"), tensor.lmatrix("target")
    encoded = encoder.apply(table.apply(source))
    before = tensor.concatenate([tensor.full_like(target[:1], START), target[:-1]])
    scores = readout.apply(decoder.apply(table.apply(before), attended=encoded))
    cost = Softmax().categorical_cross_entropy(target, scores).mean()
    algorithm = GradientDescent(
        cost=cost, parameters=ComputationGraph(cost).parameters, step_rule=Adam(0.005)
    )
    algorithm.initialize()
    rng = numpy.random.RandomState(0)
    for _ in range(200):
        symbols = rng.randint(0, SYMBOLS, (LENGTH, BATCH))
        algorithm.process_batch({"source": symbols, "target": symbols[::-1].copy()})

    last = tensor.lvector("last")
    step = one_step(
        decoder,
        [source],
        last,
        decoder.preprocess(encoded, as_dict=True),
        embed=table.apply,
        read=lambda y: readout.apply(y).argmax(axis=-1),
    )
    symbols = rng.randint(0, SYMBOLS, (LENGTH, BATCH))
    chosen, states = numpy.full(BATCH, START), first_states(decoder, BATCH)
    generated = []
    for _ in range(LENGTH):
        chosen, *states = step(symbols, chosen, *states)
        generated.append(chosen)

    assert (numpy.array(generated) == symbols[::-1]).mean() > 0.95


def test_a_stack_refuses_what_it_cannot_stack_and_steps_without_their_states():
    x = tensor.matrix("x")
    with pytest.raises(TypeError, match="TransformerDecoder: `prototype` must be a DecoderBlock"):
        TransformerDecoder(1, EncoderBlock(2), dim=4)
    with pytest.raises(ValueError, match=r"`num_layers` must be.*0"):
        TransformerDecoder(0, DecoderBlock(2), dim=4).allocate()
    decoder = TransformerDecoder(1, DecoderBlock(2, attends=False), dim=4)
    with pytest.raises(TypeError, match=r"step: missing keys_0, values_0\. States come from"):
        decoder.step(x, position=tensor.lvector())
    with pytest.raises(TypeError, match=r"step: unexpected argument 'key_0'.*keys_0"):
        decoder.step(x, key_0=x)
    assert decoder.step.contexts == []
    assert decoder.step.inputs == ["input_", "position", "keys_0", "values_0"]
