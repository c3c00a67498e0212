import itertools

import numpy
import pytest
import scipy.special
from aesara import tensor

from bricks import xla
from bricks.cost import CTC

LABELS = numpy.array([[1, 2], [2, 0], [1, 0]])  # (label, batch)
SCORES = numpy.random.RandomState(0).standard_normal((5, 2, 3)).astype("float32")
LABEL_LENGTHS, FRAME_LENGTHS = numpy.array([3, 1]), numpy.array([5, 3])


def enumerate_alignments(labels, scores, blank):
    """Minus the logarithm of the sum over all ways of giving a class to each frame."""
    log_p = scipy.special.log_softmax(scores.astype("float64"), axis=-1)
    total = -numpy.inf
    for path in itertools.product(range(scores.shape[-1]), repeat=len(scores)):
        merged = [label for label, _ in itertools.groupby(path) if label != blank]
        if merged == list(labels):
            total = numpy.logaddexp(total, log_p[range(len(path)), path].sum())
    return -total


EXPECTED = [
    enumerate_alignments(LABELS[:n, i], SCORES[:t, i], blank=0)
    for i, (n, t) in enumerate(zip(LABEL_LENGTHS, FRAME_LENGTHS, strict=True))
]


def mask(lengths, length, dtype):
    return (numpy.arange(length)[:, None] < lengths).astype(dtype)


@pytest.mark.parametrize(
    "given",
    [
        {
            "y_mask": mask(LABEL_LENGTHS, 3, "float32"),
            "y_hat_mask": 255 * mask(FRAME_LENGTHS, 5, "uint8"),
        },
        {"y_lengths": LABEL_LENGTHS, "y_hat_lengths": FRAME_LENGTHS},
    ],
    ids=["masks", "lengths"],
)
def test_the_cost_is_that_of_all_alignments_together(given):
    y, y_hat = tensor.lmatrix("y"), tensor.tensor3("y_hat")
    ends = {n: tensor.TensorType(v.dtype, (None,) * v.ndim)(n) for n, v in given.items()}
    brick = CTC()
    outputs = [brick.costs(y, y_hat, **ends), brick.apply(y, y_hat, **ends)]

    costs, cost = xla.function([y, y_hat, *ends.values()], outputs)(LABELS, SCORES, *given.values())

    numpy.testing.assert_allclose(costs, EXPECTED, rtol=1e-5)
    numpy.testing.assert_allclose(cost, numpy.mean(EXPECTED), rtol=1e-5)


def test_another_class_may_be_the_blank():
    y, y_hat = tensor.lmatrix("y"), tensor.tensor3("y_hat")
    labels = LABELS[:2, :1] - 1

    costs = xla.function([y, y_hat], CTC(blank=-1).costs(y, y_hat))(labels, SCORES[:, :1])

    expected = enumerate_alignments(labels[:, 0], SCORES[:, 0], blank=2)
    numpy.testing.assert_allclose(costs, [expected], rtol=1e-5)


def test_more_labels_than_frames_cost_infinitely_much():
    y, y_hat = tensor.lmatrix("y"), tensor.tensor3("y_hat")

    assert (
        xla.function([y, y_hat], CTC().apply(y, y_hat))(LABELS[:, :1], SCORES[:2, :1]) == numpy.inf
    )


def test_arguments_that_do_not_fit_are_refused_in_words():
    y, y_hat, lengths = tensor.lmatrix("y"), tensor.tensor3("y_hat"), tensor.lvector("lengths")
    ctc = CTC()

    with pytest.raises(ValueError, match=r"/ctc\.costs: `y` must be integers; .* Cast them first"):
        ctc.apply(tensor.matrix("y"), y_hat)
    with pytest.raises(ValueError, match=r"`y` must have shape \(label, batch\); got .*int64"):
        ctc.apply(tensor.ltensor3("y"), y_hat)
    with pytest.raises(ValueError, match=r"/ctc\.costs: `y_hat` must have at least 3 axes"):
        ctc.apply(y, tensor.matrix("y_hat"))
    with pytest.raises(ValueError, match="give `y_mask` or `y_lengths`, not both"):
        ctc.apply(y, y_hat, y_mask=tensor.matrix(), y_lengths=lengths)
    with pytest.raises(ValueError, match="`y_hat_lengths` must be integers"):
        ctc.apply(y, y_hat, y_hat_lengths=tensor.vector())


@pytest.mark.parametrize("blank", [3, -4])
def test_a_blank_that_is_no_class_is_refused(blank):
    y, y_hat = tensor.lmatrix("y"), tensor.tensor3("y_hat")
    costs, words = CTC(blank).costs(y, y_hat), rf"^/ctc\.costs: `blank` is {blank}, .* 4 classes"

    with pytest.raises(ValueError, match=rf"{words}; got .*\(\?, \?, 3\)"):
        CTC(blank).costs(y, tensor.TensorType("float32", (None, None, 3))("y_hat"))
    with pytest.raises(AssertionError, match=rf"{words} on its last axis\."):
        xla.function([y, y_hat], costs)(LABELS, SCORES)
    with pytest.raises(ValueError, match=r"CTC: `blank` must be an integer.*; got 0\.5"):
        CTC(0.5)
