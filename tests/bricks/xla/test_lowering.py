"""A lowering can be registered for an operation of one's own."""

import aesara
import jax.numpy as jnp
import numpy
import pytest
from aesara import tensor
from aesara.graph.basic import Apply
from aesara.graph.op import Op

from bricks import xla
from bricks.xla.lowering import find_lowering, known_int, known_ints


class Cubed(Op):
    """Raises to the third power; it has no lowering of its own."""

    __props__ = ()

    def make_node(self, x):
        x = tensor.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage, params=None):
        output_storage[0][0] = inputs[0] ** 3


class Tripled(Cubed):
    """An operation that a test registers."""


class TripledInPlace(Tripled):
    """Inherits the lowering of its base class."""


@pytest.fixture
def registered():
    @xla.lowering(Tripled)
    def lower_tripled(op, node, context):
        return lambda x: jnp.asarray(x) * 3

    return lower_tripled


def test_a_registered_operation_is_compiled_and_so_are_its_subclasses(registered):
    x = tensor.dvector("x")

    f = xla.function([x], [Tripled()(x), TripledInPlace()(x)])

    assert [out.tolist() for out in f(numpy.array([1.0, 2.0]))] == [[3, 6]] * 2


def test_an_operation_that_was_not_registered_is_refused():
    x = tensor.dvector("x")

    assert find_lowering(Cubed()) is None
    with pytest.raises(xla.UnsupportedOp, match=r"Cubed\(x\), of class Cubed"):
        xla.function([x], Cubed()(x))
    assert xla.function([x], Cubed()(x), backend="py")(numpy.array([2.0])).tolist() == [8]


def test_the_result_gets_the_dtype_that_the_graph_declares():
    class Counted(Cubed):
        def make_node(self, x):
            return Apply(self, [x], [tensor.lscalar()])

    @xla.lowering(Counted)
    def lower_counted(op, node, context):
        return lambda x: jnp.asarray(x.size, "int32") + x.astype("int32").sum() * 0

    x = tensor.dvector("x")

    assert xla.function([x], Counted()(x))(numpy.zeros(3)).dtype == "int64"


def test_known_values_become_integers():
    assert known_int(numpy.int64(3), "a length") == 3
    assert known_ints(numpy.array([1, 2]), "a shape") == (1, 2)


def test_an_unknown_value_is_refused_with_what_it_is():
    with pytest.raises(xla.DataDependentShape, match="a length must be known"):
        known_int(jnp.ones(()), "a length")
    with pytest.raises(xla.DataDependentShape, match="a shape must be known"):
        known_ints(jnp.ones(2), "a shape")


def test_an_inner_graph_fails_with_the_place_in_it():
    x = tensor.vector("x")
    inner = aesara.compile.builders.OpFromGraph([x], [tensor.zeros((x.sum().astype("int64"),))])

    with pytest.raises(xla.DataDependentShape, match="Alloc.*shape of a new array"):
        xla.function([x], inner(x * 2))(numpy.ones(2, "float32"))


def test_an_integer_that_reaches_a_shape_in_an_inner_graph_is_compiled_for():
    n, m = tensor.lscalars("n", "m")
    inner = aesara.compile.builders.OpFromGraph([n], [tensor.arange(n)])

    f = xla.function([m], inner(m + 1))

    assert [f(m).tolist() for m in (1, 2)] == [[0, 1], [0, 1, 2]]
