import aesara
import numpy
import pytest
from aesara import tensor
from aesara.tensor.subtensor import AdvancedIncSubtensor, AdvancedIncSubtensor1

from bricks import LookupTable, xla
from bricks.initialization import IsotropicGaussian
from bricks.xla.rewriting import rewriting_mode


def two_look_ups():
    """The gradient of a table that is looked up twice, and something is added to."""
    table = LookupTable(12, 3, weights_init=IsotropicGaussian())
    table.initialize()
    x, y = tensor.lvector("x"), tensor.lmatrix("y")
    cost = table.apply(x).sum() + (table.apply(y) ** 2).sum() + 5 * table.W.sum()
    return [x, y], tensor.grad(cost, table.W), table.W.get_value()


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_a_table_that_is_looked_up_twice_gets_both_gradients(backend):
    inputs, gradient, table = two_look_ups()

    found = xla.function(inputs, gradient, backend=backend)(
        numpy.array([1, 2, 1]), numpy.array([[1, 3]])
    )

    expected = numpy.full((12, 3), 5.0)
    expected[1] += 2
    expected[2] += 1
    expected[[1, 3]] += 2 * table[[1, 3]]
    numpy.testing.assert_allclose(found, expected, rtol=1e-6)


def test_one_table_is_incremented_twice():
    inputs, gradient, _ = two_look_ups()

    function = aesara.function(inputs, gradient, mode=rewriting_mode("fast_run"))

    (table,) = function.maker.fgraph.outputs
    increments = 0
    while table.owner is not None:
        increments += isinstance(table.owner.op, AdvancedIncSubtensor | AdvancedIncSubtensor1)
        table = table.owner.inputs[0]
    assert increments == 2
