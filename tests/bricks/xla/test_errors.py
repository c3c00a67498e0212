"""Nodes and variables are described by the brick that made them."""

import numpy
import pytest
from aesara import tensor
from aesara.graph.fg import FunctionGraph

from bricks import MLP, Linear, Tanh, xla
from bricks.xla.errors import describe_node, describe_variable


def test_a_variable_is_described_by_name_type_and_application():
    output = Linear(3, 2, name="first").apply(tensor.matrix("x"))

    assert describe_variable(output).endswith("of /first.apply")
    assert describe_variable(tensor.vector("x")) == "'x' (TensorType(float32, (?,)))"
    assert describe_variable(tensor.scalar()) == "an unnamed variable (TensorType(float32, ()))"


def test_a_parameter_is_described_by_the_path_of_its_brick():
    mlp = MLP([Tanh()], [3, 2], name="net")
    mlp.allocate()

    weights = mlp.linear_transformations[0].W

    assert describe_variable(weights).endswith("of /net/linear_0")


def test_a_node_is_described_by_what_is_computed_from_it():
    x = tensor.matrix("x")
    linear = Linear(3, 2, name="first")
    output = linear.apply(x * 2)
    graph = FunctionGraph([x, *linear.parameters], [output], clone=False)
    node = next(node for node in graph.toposort() if node.inputs[0] is x)

    words = describe_node(node, graph.clients)
    assert words.startswith("near /first.apply: Elemwise{mul,no_inplace}(x, ")


def test_a_wrong_width_names_the_brick():
    mlp = MLP([Tanh()], [3, 2], name="net")
    mlp.allocate()
    x = tensor.matrix("x")
    f = xla.function([x], mlp.apply(x))

    words = r"^/net/linear_0\.apply: dot\(x, W\) cannot be computed from .*\(4, 5\), .*\(3, 2\)"
    with pytest.raises(xla.GraphError, match=words):
        f(numpy.zeros((4, 5), "float32"))


def test_what_stands_before_or_behind_a_brick_is_only_near_it():
    x, y = tensor.matrices("x", "y")
    brick, words = Tanh(name="squash"), r"^near /squash\.apply: .*mul.* cannot be computed"

    for output in brick.apply(x * y), brick.apply(x) * y:
        f = xla.function([x, y], output)
        with pytest.raises(xla.GraphError, match=words):
            f(numpy.zeros((4, 5), "float32"), numpy.zeros((4, 3), "float32"))


def test_an_operation_that_no_brick_is_near_stands_alone():
    x, y = tensor.matrices("x", "y")
    f = xla.function([x, y], tensor.dot(x, y))

    with pytest.raises(xla.GraphError, match=r"^dot\(x, y\) cannot be computed from "):
        f(numpy.zeros((4, 5), "float32"), numpy.zeros((4, 3), "float32"))
