import numpy
import pytest
import scipy.special
from aesara import tensor

from bricks import Linear, LookupTable, TiedProjection, xla
from bricks.cost import SampledSoftmax
from bricks.testing.examples import INIT

CLASSES, DIM = 12, 3
HIDDEN = numpy.random.RandomState(0).standard_normal((2, 2, DIM)).astype("float32")
TARGETS = numpy.array([[0, 7], [11, 3]])
MASK = numpy.array([[1, 1], [1, 0]], "float32")
PROJECTIONS = {
    "linear": lambda: Linear(DIM, CLASSES, name="scores"),
    "tied": lambda: TiedProjection(LookupTable(CLASSES, DIM), name="scores"),
    "unbiased": lambda: Linear(DIM, CLASSES, use_bias=False, name="scores"),
}


def make(projection="tied", num_sampled=4, **kwargs):
    cost = SampledSoftmax(PROJECTIONS[projection](), num_sampled, **kwargs, **INIT)
    cost.initialize()
    return cost


def scores_of(cost):
    """The scores of all classes for all hidden states, by numpy."""
    weights = cost.projection.W.get_value().astype("float64")
    weights = weights if weights.shape[0] == DIM else weights.T
    biases = cost.projection.b.get_value() if cost.projection.use_bias else 0
    return HIDDEN @ weights + biases


def expected_counts(cost):
    """How often each class is expected among those drawn."""
    if cost.distribution == "uniform":
        return numpy.full(CLASSES, cost.num_sampled / CLASSES)
    k = numpy.arange(CLASSES)
    return cost.num_sampled * numpy.log((k + 2) / (k + 1)) / numpy.log(CLASSES + 1)


@pytest.mark.parametrize(
    ("projection", "distribution"),
    [("tied", "log_uniform"), ("linear", "uniform"), ("unbiased", "log_uniform")],
)
def test_the_cost_of_given_candidates_is_that_of_the_formula(projection, distribution):
    cost = make(projection, distribution=distribution)
    y, h, candidates = tensor.lmatrix("y"), tensor.tensor3("h"), tensor.lvector("candidates")
    drawn = numpy.array([0, 5, 5, 3])

    costs = xla.function([y, h, candidates], cost.costs(y, h, candidates))(TARGETS, HIDDEN, drawn)

    scores, counts = scores_of(cost), expected_counts(cost)
    for place, target in numpy.ndenumerate(TARGETS):
        others = drawn[drawn != target]
        terms = [scores[place][target], *(scores[place][others] - numpy.log(counts[others]))]
        expected = scipy.special.logsumexp(terms) - scores[place][target]
        numpy.testing.assert_allclose(costs[place], expected, rtol=1e-4)


@pytest.mark.parametrize("distribution", ["log_uniform", "uniform"])
def test_the_sum_over_all_classes_is_estimated_without_a_bias(distribution):
    cost = make(num_sampled=64, distribution=distribution)
    y, h, mask = tensor.lmatrix("y"), tensor.tensor3("h"), tensor.matrix("mask")
    function = xla.function(
        [y, h, mask], [cost.costs(y, h), (cost.full_costs(y, h) * mask).sum() / mask.sum()]
    )

    results = [function(TARGETS, HIDDEN, MASK) for _ in range(400)]

    scores = scores_of(cost)
    own = numpy.take_along_axis(scores, TARGETS[..., None], axis=-1)[..., 0]
    full = scipy.special.logsumexp(scores, axis=-1) - own
    numpy.testing.assert_allclose(results[0][1], (full * MASK).sum() / MASK.sum(), rtol=1e-5)
    # exp(cost) is the estimated sum, over what the target alone gives.
    ratios = numpy.exp([costs.astype("float64") for costs, _ in results]) / numpy.exp(full)
    error = ratios.std(axis=0) / numpy.sqrt(len(results))
    assert (error < 0.03).all()
    assert (abs(ratios.mean(axis=0) - 1) < 4 * error).all()
    assert (ratios.std(axis=0) > 0.01).all()  # drawn anew at each step


@pytest.mark.parametrize("num_classes", [12, 2_000_000])
def test_candidates_are_drawn_log_uniformly(num_classes):
    cost = SampledSoftmax(Linear(1, num_classes), num_sampled=40_000)

    drawn = xla.function([], cost.draw_candidates())()

    assert drawn.min() == 0
    assert drawn.max() < num_classes
    # Up to class k lies a share of log(k + 2) / log(num_classes + 1), with a step at each class.
    edges = numpy.unique(numpy.geomspace(1, num_classes, 12).astype(int)) - 1
    shares = [(drawn <= edge).mean() for edge in edges]
    numpy.testing.assert_allclose(
        shares, numpy.log(edges + 2) / numpy.log(num_classes + 1), atol=0.01
    )
    # Rare classes too are told apart: hardly any comes twice.
    rare = drawn[drawn > num_classes // 2]
    assert num_classes == 12 or len(set(rare)) > 0.99 * len(rare)


def test_the_gradient_goes_to_the_classes_that_were_drawn_and_to_the_targets():
    cost = make()
    y, h = tensor.lmatrix("y"), tensor.tensor3("h")
    drawn = tensor.as_tensor([2, 5])
    gradient = tensor.grad(cost.apply(y, h, drawn), cost.projection.W)

    touched = numpy.abs(xla.function([y, h], gradient)(TARGETS, HIDDEN)).sum(axis=1) > 0

    assert set(numpy.flatnonzero(touched)) == {2, 5, *TARGETS.flatten()}


def test_the_parameters_are_those_of_the_projection():
    cost = make()

    assert len(cost.parameters) == 0
    assert [parameter.name for parameter in cost.projection.parameters] == ["b"]


def test_arguments_that_do_not_fit_are_refused_in_words():
    cost, y, h = make(), tensor.lmatrix("y"), tensor.tensor3("h")

    with pytest.raises(TypeError, match="SampledSoftmax: `projection` must be a Linear or a Tied"):
        SampledSoftmax(LookupTable(3, 2), 4)
    with pytest.raises(ValueError, match="`distribution` must be one of.*got 'log-uniform'.*mean"):
        make(distribution="log-uniform")
    with pytest.raises(ValueError, match="/sampledsoftmax cannot be allocated: `num_sampled`"):
        make(num_sampled=0)
    with pytest.raises(ValueError, match=r"/sampledsoftmax\.costs: `y` must be integers"):
        cost.apply(tensor.matrix("y"), h)
    with pytest.raises(ValueError, match=r"`y` must have the axes of `input_` without that of"):
        cost.apply(tensor.lvector("y"), h)
    with pytest.raises(ValueError, match=r"\.full_costs: `input_` must have 3 features"):
        cost.full_costs(y, tensor.TensorType("float32", (None, None, 4))("h"))
    with pytest.raises(ValueError, match=r"`candidates` must have shape \(sample,\); got"):
        cost.apply(y, h, tensor.lmatrix("candidates"))
