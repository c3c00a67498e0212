"""Each lowering is computed alone, as the graph is written, and agrees with its operation.

The files of the families look at values, gradients, ties, kinks and empty arrays closely. Here
nothing is rewritten, so that also those operations are seen that Aesara mostly replaces, and no
lowering is forgotten.
"""

import warnings
from types import SimpleNamespace

import aesara
import aesara.scalar as scalar
import jax
import numpy
import pytest
from aesara import gradient, tensor
from aesara.compile.builders import OpFromGraph
from aesara.compile.mode import Mode
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.graph.basic import io_toposort
from aesara.graph.fg import FunctionGraph
from aesara.ifelse import ifelse
from aesara.link.vm import VMLinker
from aesara.printing import Print
from aesara.raise_op import CheckAndRaise
from aesara.tensor import (
    basic,
    blas,
    extra_ops,
    fft,
    fourier,
    nlinalg,
    nnet,
    slinalg,
    special,
    subtensor,
)
from aesara.tensor import type_other as others
from aesara.tensor.elemwise import CAReduce
from aesara.tensor.extra_ops import FillDiagonalOffset
from aesara.tensor.nnet import abstract_conv, blocksparse, neighbours
from aesara.tensor.nnet import basic as nnet_basic
from aesara.tensor.random import basic as draws
from aesara.tensor.shape import Shape_i
from aesara.tensor.signal import pool
from aesara.tensor.sort import argtopk, topk

from bricks import xla
from bricks.xla.devices import x64
from bricks.xla.evaluation import Evaluator, make_context
from bricks.xla.lowering import _LOWERINGS, find_lowering
from bricks.xla.sampling import GeneratorOfKey, make_key

HALF, TWO = (tensor.as_tensor(numpy.float64(value)) for value in (0.5, 2))
ROWS_OF_4 = tensor.as_tensor(numpy.arange(24.0).reshape(2, 3, 4) % 5)
IMAGES = tensor.as_tensor(numpy.arange(64.0).reshape(1, 2, 4, 8) % 7)
KERNELS = tensor.as_tensor(numpy.arange(16.0).reshape(2, 2, 2, 2) % 3)

#: Names of operations on any numbers, on those between 0 and 1, and on two of these.
OF_REALS = """
    abs arctan arcsinh ceil cos cosh deg2rad erf erfc erfcx exp exp2 expm1 floor neg rad2deg sgn
    sigmoid sin sinh softplus sqr tan tanh trunc isnan isinf i0 i1 j0 j1 round_half_to_even
    round_half_away_from_zero
"""
OF_FRACTIONS = """
    arccos arcsin arctanh erfinv erfcinv gamma gammaln log log10 log1p log2 psi reciprocal sqrt
    tri_gamma
"""
OF_TWO = """
    add sub mul true_divide floor_divide mod pow maximum minimum eq neq lt le gt ge arctan2
    gammainc gammaincc gammau gammal chi2sf owens_t complex complex_from_polar
"""


def conv(kind, *operands, **options):
    """A convolution, or one of its gradients, of every dimension alike."""
    operation = {
        "forward": abstract_conv.AbstractConv2d,
        "inputs": abstract_conv.AbstractConv2d_gradInputs,
        "weights": abstract_conv.AbstractConv2d_gradWeights,
    }[kind]
    return operation(**options)(*operands)


def convolutions():
    for mode, options in [
        ("valid", {}),
        ("half", {"filter_flip": False}),
        ("full", {"subsample": (2, 1)}),
        ((1, 0), {"filter_dilation": (1, 2)}),
    ]:
        options = {"border_mode": mode, **options}
        result = conv("forward", IMAGES, KERNELS, **options)
        yield result
        yield conv("inputs", KERNELS, result, IMAGES.shape[2:], **options)
        yield conv("weights", IMAGES, result, KERNELS.shape[2:], **options)


def poolings():
    for mode in ("max", "sum", "average_inc_pad", "average_exc_pad"):
        yield pool.Pool(ignore_border=True, mode=mode, ndim=2)(IMAGES, (2, 3), (2, 2), (1, 1))
        for ignored in (True, False):
            # Aesara's own gradients are wrong, or missing, with padding.
            where = (2, 3), (2, 2), (0, 0)
            result = pool.Pool(ignore_border=ignored, mode=mode, ndim=2)(IMAGES, *where)
            yield result
            if mode == "max":
                slope = pool.MaxPoolGrad(ignore_border=ignored, ndim=2)
                twice = pool.DownsampleFactorMaxGradGrad(ignore_border=ignored, ndim=2)
                yield slope(IMAGES, result, result * 2, *where)
                yield twice(IMAGES, result, IMAGES * 2, *where)
            else:
                slope = pool.AveragePoolGrad(ignore_border=ignored, mode=mode, ndim=2)
                yield slope(IMAGES, result, *where)


def elementwise(v):
    x, p, c = v.x, v.p, v.x + 1j
    for name in OF_REALS.split():
        yield getattr(tensor, name)(x)
    for name in OF_FRACTIONS.split():
        yield getattr(tensor, name)(p)
    for name in ["angle", "conj", "imag", "real"]:
        yield getattr(tensor, name)(c)
    for name in OF_TWO.split():
        yield getattr(tensor, name)(p, 2 * p)
    yield from [tensor.iv(1, p), tensor.jv(2, p)]
    for name in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
        yield getattr(tensor, name)(v.i, v.i + 5)
    yield from [~v.i, v.i // 0, v.i % 3, v.i // -2, x % 0.5, x // -0.5]
    yield from [tensor.arccosh(1 + p), tensor.log1mexp(-p), tensor.xlogx.xlogx(p)]
    yield from [tensor.xlogx.xlogy0(x, p), nnet_basic.softsign(x), nnet.hard_sigmoid(x)]
    yield from [x.clip(-0.5, 0.5), tensor.switch(x > 0, x, p), tensor.second(x, 2.0)]
    yield from [tensor.betainc(p, 2 * p, p), tensor.hyp2f1(p, 2 * p, 3 * p, p / 2)]
    yield from [x.astype(dtype) for dtype in ("int8", "int64", "float32", "float16", "bool")]


def reductions(v):
    x = v.x
    for axis in (None, 0, (0, 1)):
        yield from [x.sum(axis), x.prod(axis), x.max(axis), x.min(axis)]
        yield from [tensor.all(x > 0, axis), tensor.any(x > 0, axis)]
    yield from [CAReduce(op, (0,))(v.i) for op in (scalar.xor, scalar.and_, scalar.or_)]
    yield tensor.math.ProdWithoutZeros(axis=1)(x)
    yield from [tensor.math.Argmax(axis)(x) for axis in ((0,), (0, 1))]
    yield from [tensor.argmin(x, axis=0), *tensor.max_and_argmax(x, axis=1)]
    for mode in ("add", "mul"):
        yield from [extra_ops.CumOp(axis, mode)(x) for axis in (None, 0, 1)]


def products(v):
    x, y, s = v.x, v.p, v.s
    yield from [tensor.dot(x, y.T), tensor.dot(x[0], y.T), tensor.dot(x[0], y[0])]
    yield from [blas._dot22(x, y.T), blas._dot22scalar(x, y.T, TWO), tensor.matmul(x, y.T)]
    yield blas.gemm_no_inplace(s, TWO, x, y.T, HALF)
    yield blas.gemv_no_inplace(s[0], TWO, x, y[0], HALF)
    yield blas.ger(x, TWO, s[0], y[0])
    yield tensor.batched_dot(x[:, None, :], y[:, :, None])
    yield from [tensor.convolve(x[0], y[0], mode) for mode in ("full", "same", "valid")]


def linear_algebra(v):
    s, x = v.s, v.x
    yield from [nlinalg.inv(s), nlinalg.matrix_inverse(s), nlinalg.pinv(s), nlinalg.det(s)]
    yield nlinalg.TensorInv(1)(s)
    yield nlinalg.TensorSolve()(s, s[0])
    yield from [abs(part) for part in nlinalg.svd(s)] + [nlinalg.svd(s, compute_uv=False)]
    yield from [abs(part) for part in nlinalg.qr(s)] + [abs(nlinalg.qr(s, "r"))]
    yield from [abs(nlinalg.eig(s)[0]).sum(), nlinalg.eigh(s)[0], abs(nlinalg.eigh(s)[1])]
    values, vectors = nlinalg.eigh(s)
    yield nlinalg.EighGrad("L")(s, values, vectors, values * 2, vectors * 3)
    yield from [slinalg.eigvalsh(s, tensor.eye(s.shape[0]))]
    yield from slinalg.EigvalshGrad(lower=True)(s, tensor.eye(s.shape[0]), s[0])
    yield nlinalg.lstsq(s, s[0], -1.0)[0]
    for lower in (True, False):
        yield slinalg.Cholesky(lower=lower)(s)
        yield slinalg.SolveTriangular(lower=lower)(s, x)
        yield slinalg.SolveTriangular(lower=lower, trans=1, unit_diagonal=True)(s, x[:, 0])
    yield slinalg.cho_solve((slinalg.cholesky(s), True), x)
    yield from [slinalg.solve(s, x), slinalg.solve(s, x[:, 0], assume_a="pos")]
    yield from [slinalg.expm(s / 4), slinalg.ExpmGrad()(s / 4, s)]
    yield slinalg.solve_continuous_lyapunov(s, s)
    yield slinalg.solve_discrete_lyapunov(s / 20, s, method="bilinear")


def indices(v):
    x, i = v.x, v.i
    places = i % x.shape[0]
    mask = tensor.gt(tensor.arange(x.shape[0]), 0)
    for index in [
        0,
        slice(1, None),
        (slice(None, None, -1), 0),
        (slice(None), None),
        (x.shape[0] - 1,),
        (i[0] % x.shape[0],),
        (places,),
        (tensor.stack([places, places]),),
        (tensor.arange(x.shape[0]), i),
        (slice(None), i),
        (places, slice(0, 1)),
        (mask.nonzero()),
    ]:
        part = x[index]
        yield part
        if index != (slice(None), None):
            yield tensor.inc_subtensor(part, 1.0)
            yield tensor.set_subtensor(part, 2.0)
    yield from [tensor.inc_subtensor(x[places], x), subtensor.advanced_subtensor1(x, places)]
    for change in (subtensor.advanced_inc_subtensor1, subtensor.advanced_set_subtensor1):
        yield change(x, x[0], places)
    yield from [basic.Nonzero()(mask), basic.permute_row_elements(x, tensor.argsort(x, axis=1))]
    yield from tensor.unravel_index(i, (2, 4))
    yield tensor.ravel_multi_index((i, i), (4, 4), mode="wrap")
    yield x[others.MakeSlice()(0, 1)]


def shapes(v):
    x, n = v.x, v.x.shape[0]
    yield from [x.shape, basic.shape(x)[1], Shape_i(0)(x), x.T[:, None]]
    yield from [x.reshape((-1,)), x.reshape((n, x.shape[1], 1)), tensor.specify_shape(x, (n, None))]
    yield from [tensor.unbroadcast(x[:1], 0), tensor.addbroadcast(x[:1], 0), ViewOp()(x)]
    yield from [extra_ops.cpu_contiguous(x), DeepCopyOp()(x)]
    number = basic.scalar_from_tensor(x[0, 0])
    yield basic.tensor_from_scalar(scalar.add(number, number))
    yield from [tensor.alloc(2.0, n, 2), tensor.broadcast_to(x, (2, n, x.shape[1]))]
    yield basic.AllocEmpty("float64")(n, 2).shape
    yield from [tensor.arange(n), tensor.arange(0.0, 1.0, 0.25), tensor.eye(n, 4, 1)]
    yield from [tensor.tri(n), tensor.tri(n, 4, -1), basic.MakeVector("float64")(x[0, 0], 1.0)]
    yield from [tensor.concatenate([x, x], axis=axis) for axis in (0, 1)]
    yield from tensor.split(x, [1, n - 1], 2, axis=0)
    yield from [tensor.repeat(x, 2, axis=1), tensor.repeat(x, 2)]
    yield tensor.repeat(x, tensor.arange(n), axis=0)
    yield from [basic.ExtractDiag(1, 0, 1)(x), basic.AllocDiag()(x[0])]
    yield tensor.choose(v.i % 2, tensor.stack([v.i, -v.i]))
    yield extra_ops.fill_diagonal(v.s, 2.0)
    yield FillDiagonalOffset()(v.s, 2.0, 1)
    yield extra_ops.bartlett(n + 2)


def sorting(v):
    x = v.x
    for axis in (0, -1, None):
        yield from [tensor.sort(x, axis=axis), tensor.argsort(x, axis=axis, kind="stable")]
    yield from [topk(x, 1, sorted=False), argtopk(v.p, 1, sorted=False)]
    for side in ("left", "right"):
        yield tensor.searchsorted(tensor.sort(x[0]), x[0], side=side)
    yield extra_ops.Unique(return_counts=True)(tensor.arange(x.shape[0]) % 2)[1]


def networks(v):
    x, i = v.x, v.i
    for axis in (None, 0, 1):
        yield from [special.Softmax(axis=axis)(x), special.LogSoftmax(axis=axis)(x)]
    yield special.SoftmaxGrad(axis=1)(x, special.softmax(x, axis=1))
    yield nnet_basic.softmax_with_bias(x, x[0])
    fused = nnet_basic.crossentropy_softmax_argmax_1hot_with_bias(x, x[0], i)
    yield from fused
    yield nnet_basic.crossentropy_softmax_1hot_with_bias_dx(x[:, 0], fused[1], i)
    yield nnet_basic.crossentropy_categorical_1hot(v.p, i)
    yield nnet_basic.crossentropy_categorical_1hot_grad(x[:, 0], v.p, i)
    yield nnet_basic.Prepend_scalar_to_each_row()(HALF, x)
    yield nnet_basic.Prepend_scalar_constant_to_each_row(1.5)(x)
    yield from [nnet.elu(x), nnet.selu(x), nnet.relu(x, 0.1), nnet.ultra_fast_sigmoid(x)]
    weights, block = ROWS_OF_4[None, :, :, :3], ROWS_OF_4[:, :1, :3]
    zero = tensor.zeros((2, 1), dtype="int64")
    output = ROWS_OF_4[:, :2, :3][:, :1]
    yield blocksparse.sparse_block_gemv(
        output, weights[:, :1], block, zero, tensor.zeros((2, 1), dtype="int64")
    )
    yield blocksparse.sparse_block_outer(weights[:, :1, :, :], block, output, zero, zero)
    for mode in ("valid", "half", "wrap_centered"):
        window = (2, 2) if mode == "valid" else (3, 3)
        step = window if mode == "valid" else (1, 1)
        yield neighbours.images2neibs(IMAGES, window, step, mode=mode)


def everything_else(v):
    x = v.x
    yield from [fft.rfft(ROWS_OF_4), fft.irfft(fft.rfft(ROWS_OF_4)), fft.rfft(ROWS_OF_4, "ortho")]
    yield abs(fourier.fft(x[0], x.shape[1], 0))
    yield from [ifelse(x.sum() > 0, x, -x), CheckAndRaise(ValueError, "no")(x, x.sum() < 1e9)]
    yield Print("value", global_fn=lambda op, value: None)(x)
    inner = tensor.dmatrix()
    yield OpFromGraph([inner], [tensor.tanh(inner) * 2])(x)
    yield aesara.scan(lambda row: row * 2, sequences=[x])[0]
    yield aesara.scan(lambda row, old: row + old, x, tensor.zeros_like(x[0]))[0]
    yield gradient.ConsiderConstant()(x)
    yield from [gradient.disconnected_grad(x), gradient.grad_clip(x, -1, 1)]
    yield from [gradient.grad_scale(x, 2), gradient.zero_grad(x), gradient.undefined_grad(x)]


FAMILIES = [
    elementwise,
    reductions,
    products,
    linear_algebra,
    indices,
    shapes,
    sorting,
    networks,
    everything_else,
    lambda v: convolutions(),
    lambda v: poolings(),
]

#: What random operations are drawn with; their numbers are looked at elsewhere.
PARAMETERS = {
    "betabinom": [3, 1, 2],
    "binomial": [3, 0.5],
    "categorical": [[0.3, 0.7]],
    "choice": [4],
    "dirichlet": [[1.0, 2]],
    "integers": [0, 5],
    "multinomial": [3, [0.3, 0.7]],
    "multivariate_normal": [[0.0, 1], [[1.0, 0], [0, 1]]],
    "nbinom": [3, 0.5],
    "permutation": [4],
    "triangular": [0, 1, 2],
}


@pytest.fixture(scope="module")
def variables():
    x, p, s, i = tensor.dmatrix("x"), tensor.dmatrix("p"), tensor.dmatrix("s"), tensor.lvector("i")
    v = SimpleNamespace(x=x, p=p, s=s, i=i)
    return [x, p, s, i], [variable for family in FAMILIES for variable in family(v)]


def values(rows, columns):
    """Give values with ties and kinks, values between 0 and 1, a positive matrix, and places."""
    rng = numpy.random.default_rng(rows)
    root = rng.normal(size=(rows, rows))
    return [
        numpy.round(2 * rng.normal(size=(rows, columns))) / 2,
        rng.uniform(0.1, 0.9, size=(rows, columns)),
        root @ root.T + rows * numpy.eye(rows),
        rng.integers(0, columns, size=rows),
    ]


def computed_as_written(inputs, outputs, batch):
    """Compute a graph by XLA without any rewrite."""
    evaluate = Evaluator(FunctionGraph(inputs, outputs, clone=False), make_context())
    # It is compiled once and run once, so it need not be fast.
    quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    with x64():
        lowered = jax.jit(lambda *operands: evaluate(*operands)).lower(*batch)
        return lowered.compile(compiler_options=quick)(*batch)


@pytest.fixture(scope="module")
def draws_of_each_kind():
    generator = GeneratorOfKey()(xla.shared(make_key(1, "coverage", 0)))
    found = {}
    for operation in vars(draws).values():
        if not isinstance(operation, draws.RandomVariable) or not find_lowering(operation):
            continue
        parameters = PARAMETERS.get(operation.name, [1.5] * len(operation.ndims_params))
        found[operation.name] = operation(*parameters, rng=generator)
    return found


@pytest.mark.parametrize("sizes", [(3, 4), (1, 1)])
def test_each_lowering_alone_agrees_with_its_operation(variables, sizes):
    inputs, outputs = variables
    batch = values(*sizes)
    not_rewritten = Mode(VMLinker(use_cloop=False, c_thunks=False), optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = aesara.function(inputs, outputs, mode=not_rewritten)(*batch)

    results = computed_as_written(inputs, outputs, batch)

    for variable, mine, other in zip(outputs, results, expected, strict=True):
        numpy.testing.assert_allclose(
            numpy.asarray(mine), other, rtol=1e-6, atol=1e-9, err_msg=str(variable.owner)
        )


def test_no_lowering_is_forgotten(variables, draws_of_each_kind):
    inputs, outputs = variables
    nodes = io_toposort(inputs, [*outputs, *draws_of_each_kind.values()])
    seen = {type(node.op) for node in nodes}
    ours = [kind for kind in _LOWERINGS if kind.__module__.startswith("aesara.")]

    missing = [kind.__name__ for kind in ours if not any(issubclass(one, kind) for one in seen)]

    assert not missing
    assert len({str(node.op) for node in nodes}) > 250
