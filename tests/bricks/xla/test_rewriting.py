"""Graphs are rewritten for XLA, in one of two profiles."""

import aesara
import numpy
import pytest
from aesara import tensor

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


def test_a_rewritten_graph_cannot_be_called():
    x = tensor.vector("x")
    function = aesara.function([x], x + 1, mode=rewriting_mode("fast_run"))

    with pytest.raises(RuntimeError, match="only rewritten, not compiled"):
        function(numpy.zeros(1, "float32"))
