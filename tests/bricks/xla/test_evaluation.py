"""What follows from shapes is computed while a graph is traced."""

import jax
import numpy
import pytest
from aesara import tensor
from aesara.graph.fg import FunctionGraph

from bricks import xla
from bricks.xla import families  # noqa: F401 - registers the lowerings
from bricks.xla.devices import x64
from bricks.xla.evaluation import Evaluator, make_context


def primitives(inputs, outputs, *values):
    """Return the names of the operations that JAX sees."""
    evaluate = Evaluator(FunctionGraph(inputs, outputs, clone=False), make_context())
    with x64():
        return [str(equation.primitive) for equation in jax.make_jaxpr(evaluate)(*values).eqns]


def test_arithmetic_of_shapes_leaves_nothing_to_compile():
    x = tensor.matrix("x")
    length = tensor.prod(x.shape) * 2 + tensor.arange(x.shape[0]).max()

    assert primitives([x], [length], numpy.zeros((2, 3), "float32")) == []


def test_a_large_constant_array_is_left_to_xla():
    x = tensor.vector("x")

    assert "add" in primitives([x], [tensor.arange(10000) + 1], numpy.zeros(1, "float32"))


def test_a_known_condition_chooses_a_branch_without_computing_a_choice():
    from aesara.ifelse import ifelse

    x = tensor.vector("x")
    chosen = ifelse(tensor.gt(x.shape[0], 1), tensor.exp(x), x)

    assert primitives([x], [chosen], numpy.zeros(2, "float32")) == ["exp"]


def test_an_error_names_what_came():
    x, y = tensor.vectors("x", "y")
    evaluate = Evaluator(FunctionGraph([x, y], [x.dot(y)], clone=False), make_context())

    with pytest.raises(xla.GraphError, match=r"dot\(x, y\) .* from float32\(2,\), float32\(3,\)"):
        evaluate(numpy.zeros(2, "float32"), jax.numpy.zeros(3, "float32"))
