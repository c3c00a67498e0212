import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.initialization import IsotropicGaussian
from bricks.roles import OUTPUT
from bricks.transformer import MultiHeadAttention, RelativePositions, causal_bias

SCHEMES = {"weights_init": IsotropicGaussian(0.5), "biases_init": IsotropicGaussian(0.5)}
X = numpy.random.RandomState(0).standard_normal((4, 2, 6)).astype("float32")


def attention(**options):
    brick = MultiHeadAttention(num_heads=2, query_dim=6, **options, **SCHEMES)
    brick.initialize()
    return brick


def test_a_query_that_sees_nothing_gets_the_bias_and_no_gradient_is_nan():
    brick, x = attention(), tensor.tensor3("x")
    forbidden = numpy.zeros((4, 4), "float32")
    forbidden[1] = -numpy.inf
    output, weights = brick.attend(x, bias=tensor.constant(forbidden))
    gradient = tensor.grad((output[1] ** 2).sum(), x)

    found, shares, slopes = xla.function([x], [output, weights, gradient])(X)

    b = brick.output.b.get_value()
    numpy.testing.assert_array_equal(found[1], numpy.stack([b, b]))
    assert not shares[:, :, 1].any()
    numpy.testing.assert_allclose(shares.sum(axis=-1)[:, :, [0, 2, 3]], 1, rtol=1e-6)
    assert not slopes.any()


def test_an_output_of_causal_attention_has_no_gradient_by_later_inputs():
    brick, x = attention(causal=True), tensor.tensor3("x")
    biased = MultiHeadAttention(num_heads=2, query_dim=6, name="biased", **SCHEMES)
    biased.initialize()
    for mine, other in zip(biased.children, brick.children, strict=True):
        mine.W.set_value(other.W.get_value())
        mine.b.set_value(other.b.get_value())
    output = brick.apply(x)
    gradient = tensor.grad((output[1] * tensor.arange(6)).sum(), x)
    by_bias = biased.apply(x, bias=causal_bias(4))

    found, same, slopes = xla.function([x], [output, by_bias, gradient])(X)

    numpy.testing.assert_allclose(found, same, 1e-5, 1e-6)
    assert not slopes[2:].any()
    assert slopes[:2].all()


def test_keys_and_values_may_be_prepared_once():
    brick = attention(key_dim=5, value_dim=3, head_dim=4, output_dim=7)
    query, key, value = (tensor.tensor3(name) for name in ("query", "key", "value"))
    whole = brick.apply(query, key, value)
    prepared = brick.apply_preprocessed(query, *brick.preprocess(key, value))

    found, same = xla.function([query, key, value], [whole, prepared])(
        X, X[:3, :, :5], X[:3, :, :3]
    )

    assert found.shape == (4, 2, 7)
    numpy.testing.assert_allclose(found, same, 1e-5, 1e-6)
    assert brick.get_dims(["query", "key", "value", "keys", "output"]) == [6, 5, 3, 8, 7]


def test_steps_with_relative_positions_give_what_all_at_once_do():
    brick = attention(causal=True, positions=RelativePositions(bidirectional=False))
    x, keys, values = (tensor.tensor3(name) for name in ("x", "keys", "values"))
    query, position = tensor.matrix("query"), tensor.lvector("position")
    step = xla.function([query, keys, values, position], brick.step(query, keys, values, position))
    cache = [numpy.zeros((2, 4, 6), "float32")] * 2

    expected = xla.function([x], brick.apply(x))(X)
    for t in range(4):
        found, *cache = step(X[t], *cache, numpy.array([t, t]))
        numpy.testing.assert_allclose(found, expected[t], 1e-4, 1e-5)


def test_weights_are_found_and_replaced_by_application():
    brick, x = attention(), tensor.tensor3("x")
    graph = ComputationGraph(brick.apply(x))
    find = VariableFilter(roles=[OUTPUT], applications=[MultiHeadAttention.compute_weights])
    (weights,) = find(graph.variables)

    (without,) = graph.replace({weights: tensor.zeros_like(weights)}).outputs

    found = xla.function([x], without)(X)
    numpy.testing.assert_array_equal(found, numpy.broadcast_to(brick.output.b.get_value(), X.shape))


def test_nan_in_a_bias_is_no_mask():
    brick, x, bias = attention(), tensor.tensor3("x"), tensor.matrix("bias")
    energies = numpy.zeros((4, 4), "float32")
    energies[1] = [numpy.nan, 0, 0, -numpy.inf]

    found = xla.function([x, bias], brick.apply(x, bias=bias))(X, energies)

    numpy.testing.assert_array_equal(numpy.isnan(found).all(axis=(1, 2)), [0, 1, 0, 0])
    assert not numpy.isnan(found[[0, 2, 3]]).any()


def test_what_does_not_fit_is_refused_in_words():
    brick, x = attention(), tensor.tensor3("x")

    with pytest.raises(
        ValueError, match=r"`query` must have the axes \(time, batch, feature\); .*d"
    ):
        brick.apply(tensor.matrix("x"))
    with pytest.raises(ValueError, match=r"/multiheadattention\.apply: `value` needs its `key`"):
        brick.apply(x, value=x)
    with pytest.raises(ValueError, match=r"`bias` must have the axes \(query time, key time\) or "):
        brick.apply(x, bias=tensor.tensor3())
    with pytest.raises(ValueError, match=r"step: `keys` must have the axes \(batch, max_length, f"):
        brick.step(x[0], x[0], x, tensor.lvector())
    with pytest.raises(ValueError, match="`query_dim` must be a multiple of `num_heads`.*=5"):
        MultiHeadAttention(num_heads=2, query_dim=5).allocate()
