"""Graphs are rewritten for XLA, in one of two profiles."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.scan.op import Scan
from aesara.tensor.math import Dot

from bricks import xla
from bricks.config import config
from bricks.xla.rewriting import rewriting_mode


@pytest.fixture(autouse=True)
def default_optimizer():
    yield
    del config.optimizer


def rewritten(inputs, outputs, optimizer="fast_run"):
    """Return the operations that are left of a graph."""
    function = aesara.function(inputs, outputs, mode=rewriting_mode(optimizer))
    return [type(node.op).__name__ for node in function.maker.fgraph.toposort()]


def test_rewrites_that_only_serve_c_are_left_out():
    x, y = tensor.matrices("x", "y")

    assert rewritten([x, y], x.dot(y) * 2 + y) == ["Dot", "Elemwise", "Elemwise"]


def test_graphs_are_made_stable():
    x = tensor.matrix("x")
    f = xla.function([x], tensor.log(tensor.special.softmax(x, axis=-1)))

    assert f(numpy.array([[0, 200]], "float32")).tolist() == [[-200, 0]]


@pytest.mark.parametrize("optimizer", ["fast_run", "fast_compile"])
def test_both_profiles_compute_the_same(optimizer):
    config.optimizer = optimizer
    x = tensor.vector("x")

    f = xla.function([x], tensor.tanh(x[1:]) * x.shape[0])

    values = numpy.linspace(-1, 1, 5, dtype="float32")
    numpy.testing.assert_allclose(f(values), numpy.tanh(values[1:]) * 5, rtol=1e-6)


@pytest.mark.parametrize(("optimizer", "num_products"), [("fast_run", 1), ("fast_compile", 2)])
def test_only_fast_run_takes_the_gradient_of_weights_out_of_the_loop(optimizer, num_products):
    x, w = tensor.tensor3("x"), tensor.matrix("w")
    states, _ = aesara.scan(
        lambda row, state, w: tensor.tanh(row + state.dot(w)),
        sequences=[x],
        outputs_info=[tensor.zeros_like(x[0])],
        non_sequences=[w],
    )
    gradient = aesara.grad(states.sum(), w)
    function = aesara.function([x, w], gradient, mode=rewriting_mode(optimizer))
    *_, backward = (n.op for n in function.maker.fgraph.toposort() if isinstance(n.op, Scan))

    products = [n for n in backward.fgraph.toposort() if isinstance(n.op, Dot)]
    assert len(products) == num_products


def test_a_long_graph_is_rewritten_without_recursion():
    x = y = tensor.vector("x")
    for _ in range(300):
        y = tensor.tanh(y) + x
    f = xla.function([x], y[1:].shape)

    assert f(numpy.zeros(4, "float32")).tolist() == [3]


def test_a_rewritten_graph_cannot_be_called():
    x = tensor.vector("x")
    function = aesara.function([x], x + 1, mode=rewriting_mode("fast_run"))

    with pytest.raises(RuntimeError, match="only rewritten, not compiled"):
        function(numpy.zeros(1, "float32"))
