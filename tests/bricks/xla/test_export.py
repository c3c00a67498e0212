"""Every family of operations lowers for CUDA, on a machine that has none."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.ifelse import ifelse
from aesara.tensor import fft, nlinalg, nnet, slinalg
from aesara.tensor.sort import topk
from aesara.tensor.special import softmax

from bricks import xla

#: of a square matrix and places
GRAPHS = {
    "elementwise": lambda x, i: [tensor.tanh(x), x // 2, x % 2, abs(x) ** 1.5, tensor.erfcx(x)],
    "Bessel functions": lambda x, i: [tensor.j0(x), tensor.i1(x), tensor.owens_t(x, x)],
    "incomplete functions": lambda x, i: [tensor.gammainc(x, x), tensor.betainc(x, x, x)],
    "reductions": lambda x, i: [x.sum(0), x.max(), x.var(), tensor.argmax(x, axis=1)],
    "shapes": lambda x, i: [tensor.concatenate([x, x]), tensor.repeat(x, 2), tensor.roll(x, 1)],
    "indices": lambda x, i: [x[i], x[i, i], x[1:, ::-1], tensor.inc_subtensor(x[i], 1.0)],
    "sorting": lambda x, i: [tensor.sort(x), topk(x, 2, sorted=False), tensor.searchsorted(i, i)],
    "cumulation": lambda x, i: [tensor.cumsum(x, 0), tensor.cumprod(x, 1)],
    "products": lambda x, i: [x.dot(x), tensor.batched_dot(x[None], x[None])],
    "solutions": lambda x, i: [slinalg.solve(x, x), slinalg.solve_triangular(x, x)],
    "factors": lambda x, i: [slinalg.cholesky(x.dot(x.T)), *nlinalg.qr(x)],
    "inverses": lambda x, i: [nlinalg.matrix_inverse(x), nlinalg.det(x)],
    "pseudo-inverse": lambda x, i: nlinalg.pinv(x),
    "eigenvalues": lambda x, i: list(nlinalg.eigh(x)),
    "singular values": lambda x, i: list(nlinalg.svd(x)),
    "exponential of a matrix": lambda x, i: slinalg.expm(x),
    "Fourier transform": lambda x, i: fft.irfft(fft.rfft(x)),
    "cross-entropy": lambda x, i: nnet.categorical_crossentropy(softmax(x, axis=-1), i),
    "branches": lambda x, i: ifelse(x.sum() > 0, tensor.exp(x), x),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_family_and_its_gradients_lower_for_cuda(name):
    x, i = tensor.fmatrix("x"), tensor.lvector("i")
    outputs = GRAPHS[name](x, i)
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    # These have no gradient in Aesara.
    if name not in ("factors", "singular values"):
        cost = sum((out**2).sum() for out in outputs if out.dtype.startswith("float"))
        outputs.append(aesara.grad(cost, x))
    compute = xla.function([x, i], outputs, on_unused_input="ignore")

    exported = xla.export_for("cuda", compute, numpy.eye(3, dtype="float32"), numpy.arange(3))

    assert exported.platforms == ("cuda",)
