"""The cost of label sequences of unknown alignment, and its gradient, on each backend."""

import itertools

import aesara
import jax.numpy as jnp
import numpy
import optax
import pytest
from aesara import tensor

from bricks import xla
from bricks.xla.devices import x64


@pytest.fixture(params=["xla", "py"])
def backend(request):
    return request.param


def costs_and_gradient(scores, labels, backend, **options):
    """Return the costs of sequences, and the gradient of their sum by the scores."""
    variable = tensor.TensorType(scores.dtype, shape=(None,) * 3)("scores")
    costs = xla.ctc_loss(variable, numpy.asarray(labels), **options)
    gradient = aesara.grad(costs.sum(), variable)
    return xla.function([variable], [costs, gradient], backend=backend)(scores)


def merged(alignment, blank):
    """Return the labels that an alignment stands for."""
    return [label for label, _ in itertools.groupby(alignment) if label != blank]


def cost_by_enumeration(scores, labels, blank):
    """Add up the probabilities of all alignments of a sequence, scores (time, class)."""
    logarithms = scores - numpy.log(numpy.exp(scores).sum(axis=1, keepdims=True))
    probability = sum(
        numpy.exp(sum(logarithms[time, label] for time, label in enumerate(alignment)))
        for alignment in itertools.product(range(scores.shape[1]), repeat=len(scores))
        if merged(alignment, blank) == list(labels)
    )
    return -numpy.log(probability)


def numeric_gradient(function, x):
    gradient = numpy.zeros_like(x)
    for place in numpy.ndindex(x.shape):
        moved = numpy.zeros_like(x)
        moved[place] = 1e-6
        gradient[place] = (function(x + moved) - function(x - moved)) / 2e-6
    return gradient


@pytest.mark.parametrize("blank", [3, -4])
def test_a_blank_that_is_no_class_is_refused(blank, backend):
    scores, words = numpy.zeros((2, 1, 3)), rf"3 classes of `scores`, from -3 to 2; got {blank}\."

    with pytest.raises(ValueError, match=f"^ctc_loss: `blank` must be one of the {words}"):
        xla.ctc_loss(scores, numpy.array([[1]]), blank=blank)
    with pytest.raises(ValueError, match=words):
        costs_and_gradient(scores, [[1]], backend, blank=blank)


@pytest.mark.parametrize("blank", [0.5, True, "a"])
def test_a_blank_that_is_no_number_of_a_class_is_refused(blank):
    with pytest.raises(ValueError, match=f"ctc_loss: `blank` must be an integer.*; got {blank!r}"):
        xla.ctc_loss(numpy.zeros((2, 1, 3)), numpy.array([[1]]), blank=blank)


@pytest.mark.parametrize("blank", [0, 1, -1])
@pytest.mark.parametrize("num_frames", [1, 3, 5])
def test_costs_and_gradients_are_those_of_all_alignments(backend, num_frames, blank):
    scores = numpy.random.default_rng(num_frames).normal(0, 2, size=(num_frames, 4, 3))
    one, two = [label for label in range(3) if label != blank % 3]
    # No label, one, a repeat, and different ones; as far as they fit into the frames.
    sequences = [[], [one], [two, two], [two, one]]
    sequences = [labels if num_frames > len(labels) else labels[:1] for labels in sequences]
    lengths = [len(labels) for labels in sequences]
    padded = [labels + [-7] * (2 - len(labels)) for labels in sequences]

    costs, gradient = costs_and_gradient(
        scores, padded, backend, label_lengths=numpy.array(lengths), blank=blank
    )

    for index, labels in enumerate(sequences):

        def cost(x, labels=labels):
            return cost_by_enumeration(x, labels, blank % 3)

        assert costs[index] == pytest.approx(cost(scores[:, index]), rel=1e-9, abs=1e-9)
        numpy.testing.assert_allclose(
            gradient[:, index], numeric_gradient(cost, scores[:, index]), atol=1e-7
        )


def test_frames_beyond_the_length_of_a_sequence_do_not_matter(backend):
    rng = numpy.random.default_rng(1)
    scores = rng.normal(size=(6, 2, 4))
    labels, lengths = numpy.array([[1, 2], [3, 3]]), numpy.array([4, 3])
    expected = costs_and_gradient(scores[:4, :1], labels[:1], backend)

    scores[4:, 0] = numpy.nan
    costs, gradient = costs_and_gradient(scores, labels, backend, input_lengths=lengths)

    numpy.testing.assert_allclose(costs[:1], expected[0])
    numpy.testing.assert_allclose(gradient[:4, :1], expected[1])
    assert costs[1] == pytest.approx(cost_by_enumeration(scores[:3, 1], [3, 3], 0))
    assert (gradient[4:, 0] == 0).all()
    assert (gradient[3:, 1] == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_sequences_agree_with_optax(backend, dtype):
    rng = numpy.random.default_rng(2)
    scores = rng.normal(0, 3, size=(60, 5, 7)).astype(dtype)
    labels = rng.integers(1, 7, size=(5, 12))
    frames, lengths = numpy.array([60, 50, 40, 60, 30]), numpy.array([12, 5, 12, 0, 9])

    costs, gradient = costs_and_gradient(
        scores, labels, backend, input_lengths=frames, label_lengths=lengths
    )

    with x64():
        expected = optax.ctc_loss(
            jnp.asarray(scores.transpose(1, 0, 2), "float64"),
            jnp.asarray(numpy.arange(60) >= frames[:, None], "float64"),
            jnp.asarray(labels),
            jnp.asarray(numpy.arange(12) >= lengths[:, None], "float64"),
        )
    tolerance = 2e-5 if dtype == "float32" else 1e-6
    assert costs.dtype == gradient.dtype == dtype
    numpy.testing.assert_allclose(costs, expected, rtol=tolerance)
    # Scores of a frame may be moved together.
    numpy.testing.assert_allclose(gradient.sum(axis=2), 0, atol=1e-4)


def test_both_backends_give_the_same_gradient():
    rng = numpy.random.default_rng(3)
    scores, labels = rng.normal(0, 3, size=(40, 3, 6)), rng.integers(1, 6, size=(3, 10))
    options = {"input_lengths": numpy.array([40, 33, 25]), "label_lengths": numpy.array([10, 3, 7])}

    ours = costs_and_gradient(scores, labels, "xla", **options)
    theirs = costs_and_gradient(scores, labels, "py", **options)

    for mine, expected in zip(ours, theirs, strict=True):
        numpy.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-12)


def test_labels_that_need_more_frames_cost_infinitely_much_and_have_no_gradient(backend):
    scores = numpy.random.default_rng(4).normal(size=(2, 4, 4))
    labels = numpy.array([[1, 2, 3], [1, 1, 2], [1, 1, 0], [1, 2, 0]])
    options = {"label_lengths": numpy.array([3, 3, 2, 2])}

    costs, gradient = costs_and_gradient(scores, labels, backend, **options)

    assert numpy.isinf(costs).tolist() == [True, True, True, False]
    assert (costs[:3] > 0).all()
    assert (gradient[:, :3] == 0).all()
    assert (gradient[:, 3] != 0).any()


def test_no_frames_give_a_cost_of_zero_to_no_labels(backend):
    costs, gradient = costs_and_gradient(
        numpy.zeros((3, 2, 3)),
        numpy.array([[1], [1]]),
        backend,
        input_lengths=numpy.array([0, 0]),
        label_lengths=numpy.array([0, 1]),
    )

    assert costs.tolist() == [0, numpy.inf]
    assert (gradient == 0).all()


def test_there_may_be_no_labels_at_all_and_no_sequences(backend):
    scores = numpy.random.default_rng(5).normal(size=(3, 2, 3))
    no_labels = numpy.zeros((2, 0), "int64")

    costs, _ = costs_and_gradient(scores, no_labels, backend)
    nothing, gradient = costs_and_gradient(scores[:, :0], no_labels[:0], backend)

    assert costs[0] == pytest.approx(cost_by_enumeration(scores[:, 0], [], 0))
    assert nothing.shape == (0,)
    assert gradient.shape == (3, 0, 3)


def test_what_cannot_be_a_label_or_a_length_is_not_a_number(backend):
    scores = numpy.zeros((4, 6, 3))
    labels = numpy.array([[3, 1], [-1, 1], [0, 1], [1, 2], [1, 2], [1, 2]])
    options = {
        "input_lengths": numpy.array([4, 4, 4, 5, -1, 4]),
        "label_lengths": numpy.array([2, 2, 2, 2, 2, 3]),
    }

    costs, gradient = costs_and_gradient(scores, labels, backend, **options)

    assert numpy.isnan(costs).all()
    assert numpy.isnan(gradient).all()


def test_scores_that_are_not_numbers_are_not_hidden(backend):
    scores = numpy.full((2, 1, 3), numpy.nan)

    costs, gradient = costs_and_gradient(scores, [[1]], backend)

    assert numpy.isnan(costs).all()
    assert numpy.isnan(gradient).all()


def test_logarithms_of_probabilities_are_scores_even_of_impossible_classes(backend):
    probabilities = numpy.array([[[0.5, 0.5, 0.0]], [[0.25, 0.75, 0.0]]])
    with numpy.errstate(divide="ignore"):
        scores = numpy.log(probabilities)

    costs, gradient = costs_and_gradient(scores, [[1]], backend)

    assert costs[0] == pytest.approx(-numpy.log(0.5 * 0.25 + 0.5 * 0.75 + 0.5 * 0.75))
    assert numpy.isfinite(gradient).all()


def test_lengths_and_labels_may_be_arguments_and_the_shape_is_known():
    scores, labels = tensor.ftensor3("scores"), tensor.TensorType("uint8", (None, None))("labels")
    frames, lengths = tensor.lvectors("frames", "lengths")
    costs = xla.ctc_loss(scores, labels, frames, lengths)
    f = xla.function([scores, labels, frames, lengths], [costs, costs.shape[0]])

    value, number = f(
        numpy.zeros((5, 2, 300), "float32"), numpy.array([[200], [7]], "uint8"), [5, 3], [1, 1]
    )

    assert number == 2
    # 5 + 4 + 3 + 2 + 1 alignments, of one class of 300 in each frame.
    assert value[0] == pytest.approx(-numpy.log(15) + 5 * numpy.log(300), rel=1e-5)


def test_a_second_derivative_is_refused_in_words():
    scores = tensor.dtensor3("scores")
    gradient = aesara.grad(xla.ctc_loss(scores, [[1]]).sum(), scores)

    with pytest.raises(aesara.gradient.NullTypeGradError, match="ctc_loss is differentiated once"):
        aesara.grad(gradient.sum(), scores)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((tensor.dmatrix(), [[1]]), r"`scores` must be.*\(time, batch, class\).*float"),
        ((tensor.ltensor3(), [[1]]), "`scores` must be.*float"),
        ((tensor.dtensor3(), [1]), r"`labels` must be.*\(batch, label\)"),
        ((tensor.dtensor3(), tensor.dmatrix()), "`labels` must be.*int"),
        ((tensor.dtensor3(), [[1]], 5), r"`input_lengths` must be.*\(batch,\)"),
        ((tensor.dtensor3(), [[1]], None, tensor.dvector()), "`label_lengths` must be.*int"),
    ],
)
def test_wrong_arguments_are_refused_in_words(arguments, message):
    with pytest.raises(TypeError, match=f"ctc_loss: {message}"):
        xla.ctc_loss(*arguments)


def test_the_gradient_lowers_for_cuda():
    scores = tensor.ftensor3("scores")
    gradient = aesara.grad(xla.ctc_loss(scores, [[1, 2]]).sum(), scores)

    exported = xla.export_for(
        "cuda", xla.function([scores], gradient), numpy.zeros((5, 1, 3), "float32")
    )

    assert "scatter" not in exported.mlir_module()
