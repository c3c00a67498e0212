import pickle

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.compile.mode import Mode
from aesara.graph.rewriting.utils import rewrite_graph

from bricks.graph import ComputationGraph
from bricks.saturation import Preferred, log_softmax_of, logits_of, unless_replaced

X = numpy.array([[1, 2], [3, 4]], "float32")


def test_logits_are_moved_as_the_probabilities_were():
    x = tensor.matrix("x")
    moved = logits_of(tensor.sigmoid(x).T.copy()[1:].flatten())

    assert aesara.function([x], moved, mode="FAST_COMPILE")(X).tolist() == [2, 4]


@pytest.mark.parametrize("source_of", [logits_of, log_softmax_of])
@pytest.mark.parametrize("function", [tensor.tanh, tensor.exp, lambda x: x, lambda x: x + x])
def test_what_is_neither_a_sigmoid_nor_a_softmax_has_no_source(source_of, function):
    assert source_of(function(tensor.matrix("x")).T) is None


def test_the_logarithms_of_a_softmax_keep_its_axis():
    x = tensor.matrix("x")
    logarithms = log_softmax_of(tensor.special.softmax(x, axis=0).T)

    expected = (X - numpy.log(numpy.exp(X).sum(axis=0))).T
    value = aesara.function([x], logarithms, mode="FAST_COMPILE")(X)
    numpy.testing.assert_allclose(value, expected, rtol=1e-5)


def preferred(x):
    """One where the probabilities are still those of the logits, zero where they are not."""
    probabilities = tensor.sigmoid(x).T
    logits = logits_of(probabilities)
    ones, zeros = tensor.ones_like(logits), tensor.zeros_like(logits)
    return probabilities, unless_replaced(ones, zeros, probabilities, logits)


@pytest.mark.parametrize("optimizer", [None, "fast_compile", "fast_run"])
@pytest.mark.parametrize("replaced", [False, True])
def test_the_choice_is_made_with_and_without_rewrites_and_after_pickling(optimizer, replaced):
    x = tensor.matrix("x")
    probabilities, chosen = preferred(x)
    if replaced:
        chosen = ComputationGraph(chosen).replace({probabilities: x + 1}).outputs[0]
    x, chosen = pickle.loads(pickle.dumps([x, chosen]))

    value = aesara.function([x], chosen, mode=Mode("py", optimizer))(X)

    numpy.testing.assert_array_equal(value, numpy.full((2, 2), 0 if replaced else 1))


def test_nothing_of_what_is_not_chosen_is_left_in_the_graph():
    x = tensor.matrix("x")
    probabilities = tensor.sigmoid(x)
    logits = logits_of(probabilities)
    chosen = unless_replaced(logits + 1, tensor.log(probabilities), probabilities, logits)

    graph = rewrite_graph(chosen, include=("fast_run",))

    nodes = aesara.graph.basic.io_toposort([x], [graph])
    assert len(nodes) == 1
    assert not any(isinstance(node.op, Preferred) for node in nodes)
