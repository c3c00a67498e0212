import pickle

import numpy
import pytest
from aesara import tensor

from bricks import Tanh, xla
from bricks.attention import SequenceContentAttention
from bricks.initialization import IsotropicGaussian
from bricks.recurrent import SimpleRecurrent
from bricks.search import BeamSearch, CandidateNotFoundError, GreedySearch
from bricks.sequence_generators import LookupFeedback, Readout, SequenceGenerator, SoftmaxEmitter


def beam_of_blocks(chain, first, width, eol, max_length, ignore_first_eol=False):
    """Beam search in which finished hypotheses keep their places, one after the other."""
    beam = [([], 0.0, False)]
    for step in range(max_length):
        candidates = []
        for sequence, cost, is_finished in beam:
            if is_finished:
                candidates.append((sequence, cost, True))
                continue
            for symbol in range(chain.log_probs.shape[1]):
                longer = [*sequence, symbol]
                ends = symbol == eol and not (ignore_first_eol and step == 0)
                candidates.append((longer, chain.cost(first, longer), ends))
        beam = sorted(candidates, key=lambda candidate: candidate[1])[:width]
    return beam


@pytest.mark.parametrize("ignore_first_eol", [False, True])
def test_blocks_call_gives_the_sequences_of_a_beam_best_first(make_chain, ignore_first_eol):
    chain = make_chain(num_symbols=5)
    expected = beam_of_blocks(chain, 2, 4, 0, 6, ignore_first_eol)

    outputs, costs = BeamSearch(chain).search(
        {chain.first: [2] * 4}, 0, 6, ignore_first_eol=ignore_first_eol
    )

    assert outputs == [sequence for sequence, _, _ in expected]
    numpy.testing.assert_allclose(costs, [cost for _, cost, _ in expected], rtol=1e-5)


def test_arrays_of_blocks_call_are_symbols_masks_and_costs_over_time(make_chain):
    chain = make_chain(num_symbols=5)
    search = BeamSearch(chain)
    assert not search.compiled
    search.compile()
    assert search.compiled
    lists, costs = search.search({"first": [2] * 3}, 0, 6)

    outputs, masks, matrix = search.search({"first": [2] * 3}, 0, 6, as_arrays=True)

    assert outputs.shape == masks.shape == matrix.shape
    numpy.testing.assert_array_equal(masks.sum(axis=0), [len(one) for one in lists])
    assert [outputs[: len(one), i].tolist() for i, one in enumerate(lists)] == lists
    numpy.testing.assert_allclose(matrix.sum(axis=0), costs, rtol=1e-5)


def test_a_beam_wider_than_the_candidates_gives_all_of_them(make_chain):
    chain = make_chain(num_symbols=3)

    outputs, _ = BeamSearch(chain).search({chain.first: [1] * 20}, 0, 2)

    # [0], then 1 and 2, each followed by any symbol.
    assert sorted(outputs) == [[0], *([a, b] for a in (1, 2) for b in (0, 1, 2))]


@pytest.mark.parametrize("length_normalization", [0.0, 1.3])
def test_a_beam_for_all_sequences_finds_the_best_of_them(make_chain, length_normalization):
    chain = make_chain(num_symbols=3, seed=3)
    search = BeamSearch(chain, 32, n_best=9, length_normalization=length_normalization)
    firsts, num_ended = [1, 2, 0], 31

    found = search.decode({chain.first: firsts}, 0, max_length=5)

    for first, sequences, costs, scores in zip(
        firsts, found.as_lists(), found.costs, found.scores, strict=True
    ):
        ended, _ = chain.all_sequences(first, 5)
        assert len(ended) == num_ended
        ranked = sorted(
            (-cost / ((5 + len(one)) / 5) ** length_normalization, cost) for one, cost in ended
        )[::-1][:9]
        numpy.testing.assert_allclose(scores, [score for score, _ in ranked], rtol=1e-5)
        numpy.testing.assert_allclose(costs, [cost for _, cost in ranked], rtol=1e-5)
        # Several sequences may cost the same, but each is found once.
        assert len({tuple(one) for one in sequences}) == 9
        numpy.testing.assert_allclose([chain.cost(first, s) for s in sequences], costs, rtol=1e-5)
    assert found.finished.all()


def test_both_backends_find_the_same(make_chain):
    chain = make_chain(num_symbols=4, seed=1)
    found = []
    for backend in ("xla", "py"):
        search = BeamSearch(chain, 3, length_normalization=0.6)
        program = search._function("decode")
        search._compiled["decode"] = xla.function(
            program.inputs,
            program.outputs,
            updates=program.updates,
            backend=backend,
            on_unused_input="ignore",
        )
        found.append(search.decode({chain.first: [1, 2]}, 0, 6))
    first, second = found

    assert first.as_lists() == second.as_lists()
    numpy.testing.assert_allclose(first.log_probs, second.log_probs, rtol=1e-5)


def test_the_program_of_a_search_lowers_for_cuda(make_chain):
    chain = make_chain()
    program = BeamSearch(chain, 3)._function("decode")

    assert xla.export_for("cuda", program, [1, 2], 0, 5, 0).platforms == ("cuda",)


def test_a_search_pickles(make_generator):
    generator, samples, (attended, mask) = make_generator()
    search = BeamSearch(samples, 3)
    values = {"attended": draw(4, 2, 3), "mask": numpy.ones((4, 2), "f4")}
    expected = search.decode(values, 0, 5)

    found = pickle.loads(pickle.dumps(search)).decode(values, 0, 5)

    assert found.as_lists() == expected.as_lists()


# Ends come soon or late, by a large or a small margin.
LINE = [[0.2, 0.8, 0.0], [0.3, 0.1, 0.6], [0.1, 0.2, 0.7]]


def test_an_end_far_below_the_best_continuation_is_not_allowed(make_chain):
    chain = make_chain(LINE)
    values = {chain.first: [0]}

    free = BeamSearch(chain, 2, n_best=20).decode(values, 0, 4)
    near = BeamSearch(chain, 2, n_best=20, max_eol_gap=1.0).decode(values, 0, 4)
    likely = BeamSearch(chain, 2, n_best=20, min_eol_log_prob=-2.0).decode(values, 0, 4)

    assert [0] in free.as_lists()[0] and [1, 2, 0] in free.as_lists()[0]
    # log(0.8 / 0.2) is 1.39, log(0.6 / 0.3) 0.69, log(0.7 / 0.1) 1.95.
    ended = near.outputs[near.finished]
    assert all(sequence[list(sequence).index(0) - 1] == 1 for sequence in ended)
    # log(0.1) is -2.3: after the symbol 2 nothing ends.
    ended = [likely.as_lists()[0][place] for place in numpy.flatnonzero(likely.finished[0])]
    assert [0] in ended and [1, 1, 0] in ended and not any(one[-2:] == [2, 0] for one in ended)


def test_an_end_that_the_rules_forbid_can_be_forced_at_the_end(make_chain):
    chain = make_chain(LINE)
    given = ({chain.first: [0]}, 0, 3)

    refused = BeamSearch(chain, 2, max_eol_gap=0.1).decode(*given)
    forced = BeamSearch(chain, 2, max_eol_gap=0.1, force_eol_at_end=True).decode(*given)

    assert not refused.finished.any() and forced.finished.all()
    assert all(one[-1] == 0 and len(one) == 3 for one in forced.as_lists()[0])


def test_empty_sequences_can_be_forbidden(make_chain):
    chain = make_chain(LINE)

    found = BeamSearch(chain, 2, allow_empty=False).decode({chain.first: [0]}, 0, 4)

    assert [0] not in found.as_lists()[0] and found.finished.all()


def test_a_gap_of_scores_ends_the_search_of_each_example_by_itself(make_chain):
    # Something that ends with probability 0.9 at once, or much later.
    chain = make_chain([[0.9, 0.1], [0.05, 0.95]])
    both = {chain.first: [0, 1]}

    whole = BeamSearch(chain, 1, n_best=3).decode(both, 0, 8)
    short = BeamSearch(chain, 1, n_best=3, score_gap=1.0, full_beam=False).decode(both, 0, 8)
    alone = BeamSearch(chain, 1, n_best=3, score_gap=1.0, full_beam=False).decode(
        {chain.first: [1]}, 0, 8
    )

    # log(0.9 / 0.1) is more than 1: the first example stops after its first end.
    assert whole.as_lists()[0] == [[0], [1, 0], [1, 1, 0]]
    assert short.as_lists()[0] == [[0]]
    assert short.as_lists()[1] == alone.as_lists()[0]


def test_sequences_that_are_cut_come_last_or_are_refused(make_chain):
    chain = make_chain([[0.5, 0.5], [0.0, 1.0]])
    search = BeamSearch(chain, 2)

    found = search.decode({chain.first: [1, 0]}, 0, 3)

    assert found.finished.tolist() == [[False, False], [True, False]]
    assert found.as_lists() == [[[1, 1, 1]], [[0], [1, 1, 1]]]
    assert numpy.isinf(found.costs[0, 1]) and found.lengths[0, 1] == 0
    message = "at most 3 symbols ends with the symbol 0 for example 0. Let `max_length`"
    with pytest.raises(CandidateNotFoundError, match=message):
        search.decode({chain.first: [1, 0]}, 0, 3, must_finish=True)


def test_a_model_without_probabilities_is_an_error(make_chain):
    broken = make_chain([[0.5, 0.5], [float("nan"), 1.0]])
    impossible = make_chain([[0.5, 0.5], [0.0, 0.0]])

    with pytest.raises(CandidateNotFoundError, match=r"examples 0, 1: the model gives .* NaN"):
        BeamSearch(broken, 2).decode({broken.first: [1, 1]}, 0, 3)
    with pytest.raises(CandidateNotFoundError, match="0: .* the probability 0 for each symbol"):
        BeamSearch(impossible, 2).search({impossible.first: [1, 1]}, 0, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"frist": [1]}, 0, 3), "BeamSearch: frist is no input.*'first'"),
        (({}, 0, 3), "no value is given for the input first"),
        (({"first": [1]}, -1, 3), "`eol_symbol` must be an integer from 0; got -1"),
        (({"first": [1]}, 0, 0), "`max_length` must be an integer from 1; got 0"),
        (({"first": [1]}, 0, True), "`max_length` must be an integer from 1; got True"),
        (({"first": [1]}, 7, 3), "`eol_symbol` must be one of the 3 symbols .*; got 7"),
    ],
)
def test_wrong_arguments_are_refused(make_chain, arguments, message):
    with pytest.raises(ValueError, match=message):
        BeamSearch(make_chain(), 2).decode(*arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, "`beam_size` must be an integer from 1; got 0"),
        ({"n_best": 2.5}, "`n_best` must be an integer from 1; got 2.5"),
        ({"score_gap": -1}, "`score_gap` must be a number from 0, or None; got -1"),
        ({"max_eol_gap": numpy.nan}, "`max_eol_gap` must be a number from 0, or None; got nan"),
        ({"length_ratio": 0}, "`length_ratio` must be a number above 0; got 0"),
        ({"length_ratio": numpy.nan}, "`length_ratio` must be a number above 0; got nan"),
        ({"length_normalization": None}, "`length_normalization` must be a number from 0; got No"),
        ({"min_eol_log_prob": "-1"}, "`min_eol_log_prob` must be a number, or None; got '-1'"),
        ({"coverage_penalty": 0.2}, "`coverage_penalty` needs attention weights"),
    ],
)
def test_wrong_settings_are_refused(make_chain, settings, message):
    with pytest.raises(ValueError, match=f"BeamSearch: {message}"):
        BeamSearch(make_chain(), **settings)


def draw(*shape, seed=0):
    return numpy.random.RandomState(seed).standard_normal(shape).astype("float32")


@pytest.fixture
def make_generator():
    """A function that makes a generator with attention, samples, and its inputs."""

    def make():
        attention = SequenceContentAttention(state_names=["states"], attended_dim=3, match_dim=2)
        readout = Readout(
            source_names=["states", "feedback", "weighted_averages"],
            readout_dim=4,
            emitter=SoftmaxEmitter(),
            feedback_brick=LookupFeedback(4, 3),
        )
        transition = SimpleRecurrent(3, Tanh())
        schemes = {"weights_init": IsotropicGaussian(1), "biases_init": IsotropicGaussian(1)}
        generator = SequenceGenerator(readout, transition, attention, seed=4, **schemes)
        generator.initialize()
        attended, mask = tensor.tensor3("attended"), tensor.matrix("mask")
        made = generator.generate(
            n_steps=3,
            batch_size=attended.shape[1],
            attended=attended,
            attended_mask=mask,
            as_dict=True,
        )
        return generator, made["outputs"], (attended, mask)

    return make


def test_the_best_sequences_of_a_generator_cost_as_much_by_teacher_forcing(make_generator):
    generator, samples, (attended, mask) = make_generator()
    outputs, outputs_mask = tensor.lmatrix("outputs"), tensor.matrix("outputs_mask")
    given = generator.evaluate(
        outputs, outputs_mask, attended=attended, attended_mask=mask, as_dict=True
    )
    rescore = xla.function(
        [outputs, outputs_mask, attended, mask], [given["costs"], given["weights"]]
    )
    contexts = [draw(5, 2, 3), numpy.array([[1, 1]] * 3 + [[1, 0]] * 2, "f4")]
    beta, alpha, ratio = 0.3, 0.8, 1.25
    search = BeamSearch(
        samples, 3, coverage_penalty=beta, length_normalization=alpha, length_ratio=ratio
    )

    found = search.decode(dict(zip(["attended", "mask"], contexts, strict=True)), 0, 6)
    costs, weights = rescore(*found.as_batch(), *(x.repeat(3, axis=1) for x in contexts))

    assert found.finished.any() and found.lengths.max() > 2
    numpy.testing.assert_allclose(-costs.T.reshape(2, 3, -1), found.log_probs, atol=1e-5)
    numpy.testing.assert_allclose(costs.sum(axis=0).reshape(2, 3), found.costs, rtol=1e-5)
    inside = found.as_batch()[1][:, :, None]
    attention = (weights * inside).sum(axis=0).reshape(2, 3, 5)
    covered = numpy.log(numpy.clip(attention / ratio, 0.001, 0.5)) * contexts[1].T[:, None]
    scores = -found.costs / ((5 + found.lengths) / 5) ** alpha
    scores += ratio * beta * covered.sum(axis=-1)
    numpy.testing.assert_allclose(found.scores, scores, rtol=1e-4)


def test_padding_and_other_examples_change_nothing(make_generator):
    _, samples, _ = make_generator()
    search = BeamSearch(samples, 3, coverage_penalty=0.3, score_gap=0.5)
    attended, mask = draw(3, 1, 3), numpy.ones((3, 1), "f4")
    longer = numpy.full((5, 2, 3), 7, "f4")
    longer[:3, 1], longer[:, 0] = attended[:, 0], draw(5, 3, seed=1)
    masks = numpy.array([[1, 1]] * 3 + [[1, 0]] * 2, "f4")

    alone = search.decode({"attended": attended, "mask": mask}, 0, 6)
    together = search.decode({"attended": longer, "mask": masks}, 0, 6)

    assert together.as_lists()[1] == alone.as_lists()[0]
    numpy.testing.assert_allclose(together.scores[1], alone.scores[0], rtol=1e-5)


def test_blocks_call_takes_the_inputs_repeated_and_rescores(make_generator):
    generator, samples, (attended, mask) = make_generator()
    outputs = tensor.lmatrix("outputs")
    costs = generator.cost_matrix(outputs, attended=attended, attended_mask=mask)
    rescore = xla.function([outputs, attended, mask], costs)
    values = [draw(5, 1, 3).repeat(4, axis=1), numpy.ones((5, 4), "f4")]

    found, masks, of_search = BeamSearch(samples).search(
        {attended: values[0], mask: values[1]}, 0, 6, as_arrays=True
    )

    again = rescore(found, *values) * masks
    numpy.testing.assert_allclose(again, of_search, atol=1e-5)


def test_nan_of_hypotheses_that_do_not_count_matters_neither_in_lists_nor_in_batches(make_chain):
    nothing_behind_the_end = make_chain([[0.6, 0.4], [numpy.nan] * 2])
    first, end = nothing_behind_the_end.first, 1

    # Two symbols: at first, two of three hypotheses are impossible.
    found = BeamSearch(nothing_behind_the_end, 3).decode({first: [0, 0]}, end, 2)
    outputs, costs = BeamSearch(nothing_behind_the_end).search({first: [0] * 3}, end, 2)
    greedy = GreedySearch(make_chain([[0.4, 0.6, 0], [numpy.nan] * 3, [0.3, 0.1, 0.6]]))
    of_two = greedy.decode({greedy.inputs[0]: [0, 2]}, end, 3)

    assert found.as_lists() == [[[1], [0, 1], [0, 0]]] * 2
    expected = -numpy.log([0.4, 0.24, 0.36])
    numpy.testing.assert_allclose(found.costs, [expected] * 2, rtol=1e-5)
    assert outputs == [[1], [0, 0], [0, 1]]
    numpy.testing.assert_allclose(costs, expected[[0, 2, 1]], rtol=1e-5)
    assert of_two.as_lists() == [[[1]], [[2, 2, 2]]]


def test_nan_in_an_example_whose_search_has_stopped_matters_not(make_chain):
    # From 0 the end, 1, is nearly sure; from 3 it comes a step later. Behind 2 nothing is known.
    chain = make_chain([[0, 0.9, 0.1, 0], [numpy.nan] * 4, [numpy.nan] * 4, [0.9, 0.1, 0, 0]])

    found = BeamSearch(chain, 1).decode({chain.first: [0, 3]}, 1, 4)

    assert found.as_lists() == [[[1]], [[0, 1]]]
