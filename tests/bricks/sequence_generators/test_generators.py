import numpy
import pytest
from aesara import tensor

from bricks import Tanh, xla
from bricks.attention import SequenceContentAttention
from bricks.base import application
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian
from bricks.recurrent import LSTM, GatedRecurrent, RecurrentStack, SimpleRecurrent
from bricks.roles import COST
from bricks.sequence_generators import (
    LookupFeedback,
    Readout,
    SequenceGenerator,
    SoftmaxEmitter,
    TrivialEmitter,
)

NUM_SYMBOLS = 4


def make_generator(sources=("states", "feedback"), transition=None, attention=None, **options):
    options.setdefault("weights_init", IsotropicGaussian(1))
    options.setdefault("biases_init", Constant(0))
    generator = SequenceGenerator(
        Readout(
            source_names=list(sources),
            readout_dim=NUM_SYMBOLS,
            emitter=SoftmaxEmitter(),
            feedback_brick=LookupFeedback(NUM_SYMBOLS, 3),
        ),
        transition or SimpleRecurrent(2, Tanh()),
        attention=attention,
        **options,
    )
    generator.initialize()
    return generator


def make_attentive_generator(transition=None):
    attention = SequenceContentAttention(state_names=["states"], attended_dim=3, match_dim=2)
    sources = ["states", "feedback", "weighted_averages"]
    return make_generator(sources, transition or GatedRecurrent(2), attention)


def draw(*shape, seed=0):
    return numpy.random.RandomState(seed).standard_normal(shape).astype("float32")


def test_the_cost_is_the_mean_of_the_sums_of_the_cost_matrix():
    generator = make_generator()
    x, mask = tensor.lmatrix("x"), tensor.matrix("mask")
    cost, costs = generator.cost(x, mask), generator.cost_matrix(x, mask)
    (per_element,) = VariableFilter(name="per_sequence_element")(ComputationGraph(cost).variables)
    symbols, values = [[1, 3], [0, 2], [2, 0]], numpy.array([[1, 1], [1, 1], [1, 0]], "f4")

    total, matrix, mean = xla.function([x, mask], [cost, costs, per_element])(symbols, values)

    assert matrix.shape == (3, 2) and matrix[2, 1] == 0 and (matrix.ravel()[:5] > 0).all()
    numpy.testing.assert_allclose(total, matrix.sum(axis=0).mean(), rtol=1e-6)
    numpy.testing.assert_allclose(mean, matrix.sum() / 5, rtol=1e-6)
    assert len(VariableFilter(roles=[COST])(ComputationGraph(cost).variables)) == 1


def test_what_was_generated_costs_as_much_when_it_is_given():
    generator = make_attentive_generator()
    attended, mask = tensor.tensor3("attended"), tensor.matrix("mask")
    contexts = {"attended": attended, "attended_mask": mask}
    made = generator.generate(n_steps=5, batch_size=3, as_dict=True, **contexts)
    assert list(made) == ["states", "outputs", "weighted_averages", "weights", "costs"]
    outputs = tensor.lmatrix("outputs")
    given = generator.evaluate(outputs, as_dict=True, **contexts)
    values = [draw(6, 3, 3), numpy.tri(6, 3, dtype="float32")]

    found = xla.function([attended, mask], made)(*values)
    names = ["costs", "weights", "states"]
    compute = xla.function([outputs, attended, mask], [given[name] for name in names])
    costs, weights, states = compute(found["outputs"], *values)

    numpy.testing.assert_allclose(found["costs"], costs, rtol=1e-5)
    numpy.testing.assert_allclose(found["weights"], weights, rtol=1e-5)
    # Generation gives the states after each output, teacher forcing those before it.
    numpy.testing.assert_allclose(found["states"][:-1], states[1:], rtol=1e-5)
    assert found["weights"].shape == (5, 3, 6)
    assert found["outputs"].dtype == "int64"


def test_outputs_are_drawn_with_their_probabilities_anew_in_each_step_and_call():
    generator = make_generator(weights_init=Constant(0))
    probabilities = numpy.array([0.5, 0.3, 0.15, 0.05])
    generator.readout.post_merge.b.set_value(numpy.log(probabilities).astype("float32"))
    outputs = generator.generate(n_steps=100, batch_size=80, as_dict=True)["outputs"]
    function = ComputationGraph(outputs).get_function()

    (first,), (second,) = function(), function()

    for drawn in (first, second):
        shares = numpy.bincount(drawn.ravel(), minlength=NUM_SYMBOLS) / drawn.size
        # Four standard deviations of the share of 8000 draws are 0.022 at most.
        numpy.testing.assert_allclose(shares, probabilities, atol=0.022)
    pairs = [(first[0], first[1]), (first, second), (first[:, 0], first[:, 1])]
    # Independent draws agree with the probability of the sum of the squares, 0.365.
    assert all((one == other).mean() < 0.6 for one, other in pairs)


def test_draws_depend_on_the_seed_of_the_emitter_and_go_on_from_saved_keys():
    def compile_samples(seed):
        generator = make_generator(seed=1)
        generator.readout.emitter.theano_seed = seed
        graph = ComputationGraph(generator.generate(n_steps=20, batch_size=2)[1])
        (key,) = [v for v in graph.shared_variables if hasattr(v.tag, "is_random_key")]
        return graph.get_function(), key

    (one, key), (same, _), (other, _) = map(compile_samples, (5, 5, 6))
    first = one()[0]

    numpy.testing.assert_array_equal(same()[0], first)
    assert (other()[0] != first).any()
    saved = key.get_value()
    second = one()[0]
    key.set_value(saved)
    numpy.testing.assert_array_equal(one()[0], second)


def test_one_step_is_taken_with_iterate_false():
    generator = make_generator()
    states, outputs = tensor.matrix("states"), tensor.lvector("outputs")
    step = generator.generate(outputs=outputs, states=states, iterate=False, as_dict=True)
    evaluated = generator.cost_matrix(tensor.stack([outputs, step["outputs"]]))
    initial = generator.initial_states(2, as_dict=True)
    function = xla.function([states, outputs], [step["outputs"], step["costs"], evaluated])

    zero = xla.function([], initial["states"])()
    emitted, costs, matrix = function(zero, [0, 0])

    # The initial output is 0 too: the same step, whether given or emitted.
    assert emitted.shape == costs.shape == (2,)
    twice = matrix[0][emitted == 0]
    numpy.testing.assert_allclose(costs[emitted == 0], twice, rtol=1e-5)


def test_initial_states_are_returned_and_taken():
    generator = make_generator()
    states = tensor.matrix("states")
    made = generator.generate(
        n_steps=2, batch_size=3, states=states, return_initial_states=True, as_dict=True
    )
    given = draw(3, 2)

    found, outputs = xla.function([states], [made["states"], made["outputs"]])(given)

    numpy.testing.assert_array_equal(found[0], given)
    assert outputs.shape == (3, 3) and (outputs[0] == 0).all()


def test_sequences_in_pieces_cost_as_much_as_whole_ones():
    # Without feedback in the readout, all that is handed on are the states.
    generator = make_generator(sources=["states"])
    x, states = tensor.lmatrix("x"), tensor.matrix("states")
    costs = generator.cost_matrix(x, states=states)
    (last,) = VariableFilter(name="states_final_value", applications=[generator.cost_matrix])(
        ComputationGraph(costs).variables
    )
    function = xla.function([x, states], [costs, last])
    symbols, zeros = numpy.random.RandomState(0).randint(0, 4, (6, 2)), numpy.zeros((2, 2), "f4")

    whole, _ = function(symbols, zeros)
    first, handed_on = function(symbols[:3], zeros)
    second, _ = function(symbols[3:], handed_on)

    numpy.testing.assert_allclose(numpy.concatenate([first, second]), whole, rtol=1e-5)


def test_states_and_glimpses_are_auxiliary_variables_of_the_cost():
    generator = make_attentive_generator(LSTM(2))
    attended = tensor.tensor3("attended")
    graph = ComputationGraph(generator.cost(tensor.lmatrix("x"), attended=attended))
    found = VariableFilter(applications=[generator.cost_matrix], name_regex="(states|cells|w)")

    names = sorted(variable.tag.name for variable in found(graph.auxiliary_variables))

    carried = ["cells", "states", "weighted_averages", "weights"]
    assert names == sorted([*carried, *(f"{name}_final_value" for name in carried)])


def test_the_samples_are_found_by_the_application():
    generator = make_attentive_generator()
    made = generator.generate(n_steps=3, batch_size=2, attended=tensor.tensor3("attended"))
    found = VariableFilter(applications=[generator.generate], name="outputs")

    assert found(ComputationGraph(made[1]).variables) == [made[1]]
    assert generator.generate.states == ["states", "outputs", "weighted_averages", "weights"]
    assert generator.generate.contexts == ["attended", "attended_mask"]


def test_a_stack_of_transitions_gets_inputs_at_each_level():
    stack = RecurrentStack([SimpleRecurrent(2, Tanh()), SimpleRecurrent(3, Tanh())])
    generator = make_generator(["states", "states#1"], stack)

    assert generator.get_dim("states#1") == 3
    assert generator.fork.output_names == ["inputs"]
    made = generator.generate(n_steps=3, batch_size=2, as_dict=True)
    assert list(made) == ["states", "states#1", "outputs", "costs"]


class SquaredEmitter(TrivialEmitter):
    @application
    def cost(self, readouts, outputs):
        return ((readouts - outputs) ** 2).sum(axis=-1)


def test_real_valued_outputs_are_fed_back_as_they_are():
    generator = SequenceGenerator(
        Readout(readout_dim=2, source_names=["states"], emitter=SquaredEmitter()),
        SimpleRecurrent(3, Tanh()),
        weights_init=IsotropicGaussian(1),
        biases_init=IsotropicGaussian(1),
    )
    generator.initialize()
    x = tensor.tensor3("x")
    made = generator.generate(n_steps=4, batch_size=2, as_dict=True)
    function = xla.function([x], [made["outputs"], made["costs"], generator.cost_matrix(x)])

    outputs, costs, _ = function(numpy.zeros((4, 2, 2), "f4"))
    _, _, of_itself = function(outputs)
    _, _, of_others = function(outputs + 1)

    # What is emitted is what is expected; the first one does not depend on what is fed back.
    assert outputs.shape == (4, 2, 2) and (outputs[1] != outputs[0]).all()
    numpy.testing.assert_allclose(costs, 0, atol=1e-6)
    numpy.testing.assert_allclose(of_itself, 0, atol=1e-6)
    numpy.testing.assert_allclose(of_others[0], 2, rtol=1e-5)


def test_a_readout_alone_emits_at_no_cost_what_it_computes():
    readout = Readout(
        source_names=["states"], readout_dim=3, weights_init=Constant(2), biases_init=Constant(1)
    )
    readout.source_dims = [2]
    readout.initialize()
    x = tensor.tensor3("x")
    outputs = readout.emit(readout.readout(states=x, other=x))
    function = xla.function([x], [outputs, readout.cost(outputs, outputs)])

    value, costs = function(numpy.ones((4, 5, 2), "f4"))

    numpy.testing.assert_array_equal(value, numpy.full((4, 5, 3), 5))
    numpy.testing.assert_array_equal(costs, numpy.zeros((4, 5)))


def test_a_source_that_there_is_not_is_an_error_with_the_nearest_one():
    match = r"/sequencegenerator cannot be allocated.*source 'state', .*'states'"
    with pytest.raises(ValueError, match=match):
        make_generator(sources=["state"])


@pytest.mark.parametrize("method", ["cost", "cost_matrix", "evaluate"])
def test_an_unknown_context_is_an_error_with_the_nearest_one(method):
    generator = make_attentive_generator()
    x, attended = tensor.lmatrix("x"), tensor.tensor3("attended")

    with pytest.raises(TypeError, match="/sequencegenerator.*'atended'.*'attended'"):
        getattr(generator, method)(x, atended=attended)


def test_sequences_without_a_batch_are_refused():
    with pytest.raises(ValueError, match=r"cost_matrix: `outputs` must have the axes \(time, b"):
        make_generator().cost_matrix(tensor.lvector("x"))


def test_looking_up_outputs_that_are_no_integers_is_an_error():
    generator = SequenceGenerator(
        Readout(readout_dim=2, source_names=["states"], feedback_brick=LookupFeedback(4, 3)),
        SimpleRecurrent(2, Tanh()),
    )
    with pytest.raises(ValueError, match="lookupfeedback looks integers up.*SoftmaxEmitter"):
        generator.allocate()


def test_a_readout_without_sizes_of_its_sources_is_an_error():
    with pytest.raises(ValueError, match=r"/readout cannot be allocated: `source_dims` .*'states'"):
        Readout(source_names=["states"], readout_dim=2).allocate()


def test_a_missing_source_is_an_error_of_the_readout():
    readout = Readout(source_names=["states"], readout_dim=2)
    readout.source_dims = [2]
    with pytest.raises(ValueError, match=r"/readout.readout: the source 'states'.*: state\."):
        readout.readout(state=tensor.matrix("state"))
