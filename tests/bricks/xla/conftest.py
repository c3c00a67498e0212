"""What the tests of lowerings share: a graph is computed by XLA and by Aesara, and compared."""

import warnings

import aesara
import numpy
import pytest
from aesara.compile.mode import Mode
from aesara.link.vm import VMLinker
from aesara.tensor.type import TensorType

from bricks import xla


def _with_gradients(inputs, outputs):
    """Add the gradients of the sum of the squares of all outputs by all inputs that are floats."""
    costs = [(out**2).sum() for out in outputs if out.dtype.startswith("float")]
    wrt = [x for x in inputs if x.dtype.startswith("float")]
    if not costs or not wrt:
        return outputs
    return outputs + aesara.grad(sum(costs), wrt, disconnected_inputs="ignore")


@pytest.fixture(scope="session")
def assert_agrees():
    """Return a function that computes a graph twice and compares, for several batches."""
    # Evaluates a graph as it is written, so that a wrong rewrite is noticed too.
    not_rewritten = Mode(VMLinker(use_cloop=False, c_thunks=False), optimizer=None)

    def assert_agrees(build, batches, *, gradients=True, rtol=1e-6, atol=1e-9):
        inputs = [TensorType(x.dtype, shape=(None,) * x.ndim)() for x in batches[0]]
        outputs = build(*inputs)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        if gradients:
            outputs = _with_gradients(inputs, outputs)
        ours = xla.function(inputs, outputs, on_unused_input="ignore")
        with warnings.catch_warnings():
            # Aesara's own evaluation uses what newer versions of numpy warn of.
            warnings.simplefilter("ignore")
            theirs = aesara.function(inputs, outputs, mode=not_rewritten, on_unused_input="ignore")
            expected = [theirs(*batch) for batch in batches]
        for batch, references in zip(batches, expected, strict=True):
            for mine, reference, variable in zip(ours(*batch), references, outputs, strict=True):
                assert mine.dtype == variable.dtype
                numpy.testing.assert_allclose(mine, reference, rtol=rtol, atol=atol)

    return assert_agrees
