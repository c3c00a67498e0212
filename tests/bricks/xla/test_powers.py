import numpy
import pytest
from aesara import tensor
from aesara.graph.fg import FunctionGraph

from bricks import xla
from bricks.xla.powers import specialize_powers

EXPONENTS = [2, 1, 0.5, 0, -0.5, -1, -2, 3]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_powers_are_those_of_numpy(dtype):
    x = tensor.TensorType(dtype, (None, None))("x")
    exponents = [e for e in EXPONENTS if dtype == "float32" or e >= 0]
    value = numpy.array([[1, 2], [3, 4]], dtype)

    powers = [x ** numpy.asarray(e, "int8" if e == int(e) else "float32") for e in exponents]
    for backend in ("xla", "py"):
        for exponent, found, power in zip(
            exponents, xla.function([x], powers, backend=backend)(value), powers, strict=True
        ):
            assert found.dtype == power.dtype
            numpy.testing.assert_allclose(found, value.astype(float) ** exponent, rtol=1e-6)


@pytest.mark.parametrize("exponent", EXPONENTS[:-1])
def test_a_base_of_which_more_is_known_by_now_is_no_obstacle(exponent):
    x, y = tensor.matrix("x"), tensor.matrix("y")
    general, specific = x + 1, tensor.specify_shape(y, (None, 3))
    constant = tensor.constant(numpy.array([[exponent]], "float32"))
    graph = FunctionGraph([x, y], [general**constant], clone=False)
    node = graph.outputs[0].owner
    graph.replace(general, specific, import_missing=True)

    (new,) = specialize_powers.transform(graph, node)
    graph.replace(node.outputs[0], new)

    assert "pow" not in str(graph.toposort())


def test_a_vector_of_exponents_is_left_alone():
    x = tensor.matrix("x")
    power = x ** numpy.array([2, 1], "int8")

    assert not specialize_powers.transform(FunctionGraph([x], [power], clone=False), power.owner)
