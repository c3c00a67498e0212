"""Every operation that XLA can compute agrees with Aesara's own evaluation, gradients included."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.compile.builders import OpFromGraph
from aesara.compile.mode import Mode
from aesara.ifelse import ifelse
from aesara.link.vm import VMLinker
from aesara.raise_op import Assert
from aesara.tensor import extra_ops, nnet, slinalg
from aesara.tensor.nnet import basic as nnet_basic
from aesara.tensor.type import TensorType

from bricks import xla

#: name -> (function of symbolic inputs, function of (rng, n, m) that gives their values)
CASES = {}

#: Evaluates a graph as it is written, so that a wrong rewrite is noticed too.
NOT_REWRITTEN = Mode(VMLinker(use_cloop=False, c_thunks=False), optimizer=None)

#: The two shapes that every graph is computed with.
SIZES = [(4, 5), (7, 3)]


def case(name, build, make=lambda rng, n, m: [rng.normal(size=(n, m))]):
    """Add a line to the table; by default the graph has one matrix as its input."""
    CASES[name] = (build, make)


def positive(rng, n, m):
    return [rng.uniform(0.2, 0.8, size=(n, m))]


def two_matrices(rng, n, m):
    return [rng.normal(size=(n, m)), rng.normal(size=(n, m))]


def stack(rng, n, m):
    return [rng.normal(size=(n, m, 3))]


def square(rng, n, m):
    return [rng.normal(size=(n, n))]


def two_squares(rng, n, m):
    return [rng.normal(size=(n, n)), rng.normal(size=(n, n))]


def matrix_and_places(rng, n, m):
    return [rng.normal(size=(n, m)), rng.integers(0, m, size=n)]


def probabilities_and_targets(rng, n, m):
    scores = rng.uniform(0.1, 1, size=(n, m))
    return [scores / scores.sum(axis=1, keepdims=True), rng.integers(0, m, size=n)]


def integers(rng, n, m):
    return [rng.integers(-9, 10, size=(n, m))]


# Elementwise
for function in [
    "abs",
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arctan",
    "arcsinh",
    "sqr",
    "neg",
    "sgn",
    "ceil",
    "floor",
    "round",
    "round_half_away_from_zero",
    "trunc",
    "sigmoid",
    "softplus",
    "erf",
    "erfc",
    "isnan",
    "isinf",
]:
    case(function, getattr(tensor, function))
for function in [
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "arcsin",
    "arccos",
    "arctanh",
    "inv",
    "gammaln",
    "psi",
    "erfinv",
]:
    case(function, getattr(tensor, function), positive)
for function in (tensor.deg2rad, tensor.rad2deg):
    case(function.name, function)
case("erfcinv", lambda x: tensor.erfcinv(x), positive)
case("arccosh", lambda x: tensor.arccosh(1 + x), positive)
case("gamma", tensor.gamma, positive)
case("log1mexp", lambda x: tensor.log1mexp(-x), positive)
case("softsign", lambda x: nnet_basic.softsign(x))
case("arctan2", tensor.arctan2, two_matrices)
case("arithmetic", lambda x, y: [x + y, x - y, x * y, x / y, -x], two_matrices)
case(
    "power",
    lambda x, y: x ** (3 * y),
    lambda r, n, m: [r.uniform(0.1, 2, (n, m)), r.normal(size=(n, m))],
)
case("division with rest", lambda x: [x // 3, x % 3, x // -4, x % -4], integers)
case("division with rest of floats", lambda x: [x // 0.3, x % 0.3])
case("division of integers", lambda x: x / 7, integers)
case("bits", lambda x: [x & 6, x | 1, x ^ 5, ~x], integers)
case("truth", lambda x: [(x > 0) & (x < 1), (x > 0) | (x < -1), ~(x > 0), tensor.xor(x > 0, x < 1)])
case(
    "comparison",
    lambda x, y: [x > y, x >= y, x < y, x <= y, tensor.eq(x, y), tensor.neq(x, y)],
    two_matrices,
)
case("comparison of an integer with a float", lambda x: [x > 0.5, tensor.eq(x, 2.0)], integers)
case("extremes", lambda x, y: [tensor.maximum(x, y), tensor.minimum(x, 0.1)], two_matrices)
case("clip", lambda x: x.clip(-0.5, 0.5))
case("switch", lambda x: tensor.switch(x > 0, x**2, -x))
case("a number as condition", lambda x: tensor.switch(x, 1.5, x), integers)
case("fill", lambda x: tensor.fill(x, 3.0) + tensor.ones_like(x) * tensor.zeros_like(x))
case("casts", lambda x: [x.astype(t) for t in ("int32", "int8", "float32", "float16", "bool")])
case("integer with float32", lambda x: x + x.astype("float32") / 2, integers)
case("xlogx", lambda x: [tensor.xlogx.xlogx(x), tensor.xlogx.xlogy0(x, x)], positive)
case("broadcasting", lambda x: x + x.mean(axis=0) + x.mean(axis=1, keepdims=True) + x[0, 0])
case("clipped gradient", lambda x: aesara.gradient.grad_clip(x, -0.1, 0.1) ** 2)
case("scaled gradient", lambda x: aesara.gradient.grad_scale(x, 3) ** 2)
case("constant for the gradient", lambda x: x * aesara.gradient.disconnected_grad(x))
case(
    "second derivative", lambda x: aesara.grad((aesara.grad(tensor.tanh(x).sum(), x) ** 2).sum(), x)
)

# Reductions
for axis in (None, 0, 1):
    case(
        f"reductions over {axis}",
        lambda x, axis=axis: [
            x.sum(axis),
            x.mean(axis),
            x.prod(axis),
            x.max(axis),
            x.min(axis),
            x.var(axis),
            x.norm(2, axis),
        ],
    )
case("all and any", lambda x: [tensor.all(x > -1, axis=0), tensor.any(x > 1, axis=1)])
case("sum of truth values", lambda x: [(x > 0).sum(), tensor.mean(x > 0)])
case("sum of integers", lambda x: [x.sum(), x.prod(axis=0), x.mean()], integers)
case("reduction over several axes", lambda x: [x.sum((0, 2)), x.max((1, 2))], stack)
case("logsumexp", lambda x: tensor.logsumexp(x, axis=1))
case("product without zeros", lambda x: tensor.math.ProdWithoutZeros(axis=1)(x), integers)
case("argmax", lambda x: [tensor.argmax(x, axis=1), tensor.argmax(x), tensor.argmin(x, axis=0)])
case("max and argmax", lambda x: list(tensor.max_and_argmax(x, axis=1)))
case("argmax over two axes", lambda x: tensor.argmax(x, axis=(0, 2)), stack)

# Axes and shapes
case("dimshuffle", lambda x: [x.dimshuffle(1, "x", 0), x.dimshuffle("x", 0, 1, "x")])
case("transpose", lambda x: [x.T, x.swapaxes(0, 1)])
case("squeeze", lambda x: tensor.addbroadcast(x[:, :1], 1).squeeze())
case("reshape", lambda x: [x.reshape((-1, x.shape[2])), x.flatten(), x.flatten(2)], stack)
case("reshape to computed lengths", lambda x: x.reshape((x.shape[0] * x.shape[1], 1)))
case(
    "reshape to joined shapes",
    lambda x: x.reshape(tensor.concatenate([x.shape[:1], [3, -1]])),
    stack,
)
case("shape", lambda x: [x.shape, x.shape[0] * 2, x.size])
case(
    "new arrays",
    lambda x: [tensor.zeros((x.shape[0], 7)), tensor.alloc(3.0, x.shape[1]), tensor.ones((2,))],
)
case("repeated along an axis", lambda x: tensor.alloc(x[0], 6, x.shape[1]))
case(
    "arange",
    lambda x: [
        tensor.arange(x.shape[0]),
        tensor.arange(1, 9, 2),
        x[:, 0] * tensor.arange(x.shape[0]),
    ],
)
case("arange of floats", lambda x: tensor.arange(0.0, 2.0, 0.25) + x[0, 0])
case("large arange", lambda x: tensor.arange(5000) * x[0, 0])
case("eye", lambda x: [tensor.eye(4, 5, 1), tensor.eye(x.shape[0]), tensor.identity_like(x)])
case("triangles", lambda x: [tensor.tri(x.shape[0]), tensor.tril(x), tensor.triu(x, 1)])
case(
    "join", lambda x: [tensor.concatenate([x, x * 2, x[:1]], axis=0), tensor.stack([x, -x], axis=1)]
)
case("join of dtypes", lambda x: tensor.concatenate([x, tensor.ones_like(x, dtype="int8")], axis=1))
case("stacked numbers", lambda x: tensor.stack([x.sum(), x.max(), tensor.as_tensor(1.0)]))
case("split", lambda x: tensor.split(x, [2, x.shape[0] - 2], 2, axis=0))
case(
    "repeat and tile",
    lambda x: [tensor.repeat(x, 3, axis=1), tensor.repeat(x, 2), tensor.tile(x, (2, 1))],
)
case("repeat by counts", lambda x: tensor.repeat(x > 0, tensor.arange(x.shape[0]), axis=0))
case(
    "padding",
    lambda x: [tensor.shape_padleft(x, 2), tensor.shape_padright(x), tensor.shape_padaxis(x, 1)],
)
case("broadcast to a shape", lambda x: tensor.broadcast_to(x, (2, x.shape[0], x.shape[1])))
case("diagonals", lambda x: [tensor.diag(x), tensor.diagonal(x, 1), tensor.diag(x[0])], square)
case("fill diagonal", lambda x: tensor.fill_diagonal(x, 2.0), square)
case("roll and diff", lambda x: [tensor.roll(x, 1, axis=1), tensor.diff(x, axis=0)])
case("choose", lambda x, i: tensor.choose(i % 2, tensor.stack([i, -i])), matrix_and_places)
case("declared broadcasting", lambda x: tensor.addbroadcast(x[:1], 0) + x)

# Products
case("dot", lambda x, y: [x.dot(y.T), x.dot(y[0]), x[0].dot(y[0]), x[0].dot(y.T)], two_matrices)
case("dot of dtypes", lambda x: x.dot(x.T.astype("float32")))
case(
    "tensordot",
    lambda x, y: [tensor.tensordot(x, y, axes=[[0], [0]]), tensor.outer(x[0], y[0])],
    two_matrices,
)
case("batched dot", lambda x: tensor.batched_dot(x, x.dimshuffle(0, 2, 1)), stack)
case("batched dot with vectors", lambda x: tensor.batched_dot(x, x[:, 0]), stack)
case(
    "cumulation", lambda x: [tensor.cumsum(x, axis=0), tensor.cumprod(x, axis=1), tensor.cumsum(x)]
)
case("sort", lambda x: [tensor.sort(x, axis=1), tensor.sort(x, axis=0)])
case("argsort", lambda x: tensor.argsort(x, axis=1))
case("searchsorted", lambda x: tensor.searchsorted(tensor.sort(x[0]), x[1]))
case("inverse", lambda x: tensor.nlinalg.matrix_inverse(x + 9 * tensor.eye(x.shape[0])), square)
case("determinant", lambda x: tensor.nlinalg.det(x), square)
case("solve", lambda x, y: slinalg.solve(x + 9 * tensor.eye(x.shape[0]), y), two_squares)
case("cholesky", lambda x: slinalg.cholesky(x.dot(x.T) + tensor.eye(x.shape[0])), square)

# Indices
case("slices", lambda x: [x[1:3], x[::-1, ::2], x[-2:, 1:-1], x[0], x[:, -1], x[1, 2]])
case("slices by shapes", lambda x: [x[x.shape[0] // 2 :], x[:, : x.shape[1] - 1]])
case("empty slice", lambda x: x[2:2])
case("slice of one element", lambda x: x[1:2] * x[0:1])
case("index computed from data", lambda x, i: x[i[0]] + x[:, i[1]].sum(), matrix_and_places)
case("rows by places", lambda x, i: x[i % 3], matrix_and_places)
case("table lookup by a matrix", lambda x, i: x[tensor.stack([i, i]) % 4], matrix_and_places)
case("columns by places", lambda x, i: x[:, i], matrix_and_places)
case("elements by places", lambda x, i: x[tensor.arange(i.shape[0]), i], matrix_and_places)
case("negative places", lambda x, i: x[-1 - i % 3], matrix_and_places)
case("take", lambda x, i: x.take(i % 3, axis=0), matrix_and_places)
case("one-hot", lambda i: extra_ops.to_one_hot(i, 9), lambda r, n, m: [r.integers(0, 9, n)])
for change in (tensor.set_subtensor, tensor.inc_subtensor):
    name = change.__name__
    case(f"{name} of rows", lambda x, c=change: c(x[1:3], x[:2] * 2))
    case(f"{name} of a row", lambda x, c=change: c(x[-1], x[0] * 2))
    case(f"{name} of columns backwards", lambda x, c=change: c(x[:, ::-2], x[:, ::2] * 2))
    case(f"{name} of every second row", lambda x, c=change: c(x[::2], 3.0))
    case(f"{name} of an element", lambda x, c=change: c(x[1, 2], x[0, 0]))
    case(f"{name} of everything", lambda x, c=change: c(x[:], x.sum(axis=0)))
    case(f"{name} of nothing", lambda x, c=change: c(x[2:2], 1.0))
    case(f"{name} of a computed row", lambda x, i, c=change: c(x[i[0] % 3], 1.0), matrix_and_places)
    case(
        f"{name} of different places",
        lambda x, i, c=change: c(x[tensor.arange(i.shape[0]), i], x[:, 0]),
        matrix_and_places,
    )
case(
    "increments of one place add up",
    lambda x, i: tensor.inc_subtensor(x[i * 0], x),
    matrix_and_places,
)

# Softmax and cross-entropy
case("softmax", lambda x: [tensor.special.softmax(x, axis=a) for a in (-1, 0, None)])
case("log-softmax", lambda x: [tensor.special.log_softmax(x, axis=a) for a in (-1, 0)])
case("logarithm of a softmax", lambda x: tensor.log(tensor.special.softmax(x, axis=-1)))
case("softmax of a biased product", lambda x: tensor.special.softmax(x.dot(x.T) + x[:, 0], axis=-1))
case(
    "binary cross-entropy",
    lambda x, y: nnet.binary_crossentropy(tensor.sigmoid(x), tensor.sigmoid(y)),
    two_matrices,
)
case(
    "cross-entropy of places",
    lambda p, i: nnet.categorical_crossentropy(p, i),
    probabilities_and_targets,
)
case(
    "cross-entropy of a softmax",
    lambda x, i: nnet.categorical_crossentropy(tensor.special.softmax(x, axis=-1), i),
    matrix_and_places,
)
case(
    "cross-entropy of a softmax with distributions",
    lambda x, y: nnet.categorical_crossentropy(
        tensor.special.softmax(x, axis=-1), tensor.special.softmax(y, axis=-1)
    ),
    two_matrices,
)
case(
    "fused cross-entropy",
    lambda x, i: list(nnet.crossentropy_softmax_argmax_1hot_with_bias(x, x[0] * 0 + 1, i)),
    matrix_and_places,
)
case(
    "second derivative of a cross-entropy",
    lambda x, y: aesara.grad(
        aesara.grad(
            nnet.categorical_crossentropy(
                tensor.special.softmax(x, axis=-1), tensor.special.softmax(y, axis=-1)
            ).sum(),
            x,
        ).norm(2),
        x,
    ),
    two_matrices,
)

# Conditions and inner graphs
case("ifelse", lambda x: ifelse(x.sum() > 0, x * 2, x - 1))
case("ifelse of several", lambda x: ifelse(x.sum() > 0, [x * 2, x[0]], [x - 1, x[1]]))
case("ifelse by a shape", lambda x: ifelse(tensor.gt(x.shape[0], 5), x[:2], x[:3]))
case("assert", lambda x: Assert("no rows")(x, tensor.ge(x.shape[0], 1), x.sum() < 1e9) * 2)


@pytest.fixture(scope="module")
def inner_graph():
    x, y = tensor.dmatrices("x", "y")
    return OpFromGraph([x, y], [tensor.tanh(x) * y, x.sum(axis=0)])


def symbolic(value):
    return TensorType(value.dtype, shape=(None,) * value.ndim)()


def outputs_and_gradients(inputs, outputs):
    """Return the outputs, and the gradients of their sum of squares where there are any."""
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    cost = sum((out**2).sum() for out in outputs if out.dtype.startswith("float"))
    wrt = [x for x in inputs if x.dtype.startswith("float")]
    if not isinstance(cost, aesara.graph.basic.Variable) or not wrt:
        return outputs
    return outputs + aesara.grad(cost, wrt, disconnected_inputs="ignore")


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_aesara(name):
    build, make = CASES[name]
    rng = numpy.random.default_rng(len(name))
    batches = [make(rng, *sizes) for sizes in SIZES]
    inputs = [symbolic(value) for value in batches[0]]
    outputs = outputs_and_gradients(inputs, build(*inputs))

    ours = xla.function(inputs, outputs, on_unused_input="ignore")
    theirs = aesara.function(inputs, outputs, mode=NOT_REWRITTEN, on_unused_input="ignore")

    for batch in batches:
        for mine, expected, variable in zip(ours(*batch), theirs(*batch), outputs, strict=True):
            assert mine.dtype == variable.dtype == expected.dtype
            numpy.testing.assert_allclose(mine, expected, rtol=1e-6, atol=1e-7)


def test_an_inner_graph_is_computed_in_place(inner_graph):
    x, y = tensor.dmatrices("x", "y")
    outputs = outputs_and_gradients([x, y], inner_graph(x * 2, y))
    batch = [numpy.arange(6.0).reshape(2, 3), numpy.ones((2, 3))]

    results = xla.function([x, y], outputs)(*batch)

    expected = xla.function([x, y], outputs, backend="py")(*batch)
    for mine, other in zip(results, expected, strict=True):
        numpy.testing.assert_allclose(mine, other)


def test_an_index_outside_its_axis_reads_nan_and_writes_nothing():
    x, i = tensor.dvector("x"), tensor.lvector("i")
    read = xla.function([x, i], [x[i], tensor.inc_subtensor(x[i], 10.0)])

    values, written = read(numpy.array([1.0, 2.0]), numpy.array([1, 2]))

    numpy.testing.assert_array_equal(values, [2.0, numpy.nan])
    numpy.testing.assert_array_equal(written, [1.0, 12.0])


def test_a_known_index_outside_its_axis_is_refused():
    x = tensor.matrix("x")

    with pytest.raises(xla.GraphError, match="index 5 is out of bounds for axis 0 of length 2"):
        xla.function([x], x[5])(numpy.zeros((2, 3), "float32"))


def test_print_shows_the_value_each_time(capfd):
    x = tensor.dvector("x")
    show = xla.function([x], aesara.printing.Print("{x} is", attrs=["shape", "max"])(x) * 2)

    show(numpy.array([1.0, 3.0]))
    show(numpy.array([1.0, 4.0]))

    import jax

    jax.effects_barrier()
    printed = capfd.readouterr().out
    assert "{x} is max = 3" in printed
    assert "{x} is max = 4" in printed
