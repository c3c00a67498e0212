"""Shapes are worked out when they are asked for, and are those that numpy would give."""

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.graph.fg import FunctionGraph
from aesara.scan.utils import until
from aesara.tensor.subtensor import advanced_subtensor
from aesara.tensor.type_other import SliceConstant, slicetype

from bricks import xla
from bricks.xla.rewriting import rewriting_mode
from bricks.xla.shape_inference import LazyShapes, SharedLength, SliceLength


def shapes_of(outputs):
    """Return the shapes that are known of a graph."""
    graph = FunctionGraph(outputs=outputs, clone=False)
    feature = LazyShapes()
    graph.attach_feature(feature)
    return feature.shape_of


def compiled_shape(inputs, output):
    """Compile the shape of a variable, and return the function and its operations."""
    function = xla.function(inputs, output.shape)
    prepared = aesara.function(inputs, output.shape, mode=rewriting_mode("fast_run"))
    return function, [node.op for node in prepared.maker.fgraph.toposort()]


def test_no_shape_is_worked_out_before_it_is_asked_for():
    x = tensor.matrix("x")
    y = tensor.tanh(x).dot(x.T)
    shapes = shapes_of([y])

    assert len(shapes) == 0
    assert len(shapes[y]) == 2
    assert y in shapes
    assert x in shapes


def test_a_long_chain_needs_no_recursion():
    x = y = tensor.vector("x")
    for _ in range(5000):
        y = -y
    shapes = shapes_of([y])

    assert shapes[y] == shapes[x]


SLICES = [
    slice(1, None),
    slice(None, -1),
    slice(None, None, -1),
    slice(5, 1, -2),
    slice(-3, None, 2),
    slice(4, 2),
    slice(-100, 100, 3),
]


@pytest.mark.parametrize("index", SLICES, ids=str)
def test_the_length_of_a_slice_is_that_of_numpy(index):
    x = tensor.vector("x")
    shape, operations = compiled_shape([x], x[index])

    for length in (0, 1, 6):
        array = numpy.zeros(length, "float32")
        assert shape(array).tolist() == list(array[index].shape)
    assert not any(isinstance(op, tensor.subtensor.Subtensor) for op in operations)


def test_a_slice_whose_bounds_are_arguments_has_their_length():
    x, start, step = tensor.vector("x"), tensor.lscalar("start"), tensor.lscalar("step")
    shape, _ = compiled_shape([x, start, step], x[start::step])
    array = numpy.zeros(7, "float32")

    for bounds in ((2, 3), (-1, -2)):
        assert shape(array, *bounds).tolist() == list(array[bounds[0] :: bounds[1]].shape)


def test_the_length_of_a_slice_of_what_is_declared_is_a_constant():
    x = tensor.TensorType("float32", shape=(7, None))("x")

    assert shapes_of([x[1:]])[x[1:].owner.inputs[0]][0].data == 7
    part = x[1:]
    assert shapes_of([part])[part][0].data == 6


def test_constant_slices_beside_places_are_seen():
    x = tensor.matrix("x")
    columns = SliceConstant(slicetype, slice(1, 3))
    part = advanced_subtensor(x, numpy.array([0, 2, 1]), columns)
    shape, _ = compiled_shape([x], part)

    assert shape(numpy.zeros((4, 9), "float32")).tolist() == [3, 2]


def test_operands_of_one_length_take_one_of_them():
    x, y = tensor.vectors("x", "y")
    _, operations = compiled_shape([x, y], (x + y) * x - tensor.exp(y))

    assert sum(isinstance(op, SharedLength) for op in operations) == 1
    assert len(operations) <= 4


def test_lengths_that_differ_are_refused_although_nothing_else_is_computed():
    x, y = tensor.vectors("x", "y")
    gradient = xla.function([x, y], aesara.grad((x + y).sum(), x))

    ones = numpy.ones(3, "float32")
    assert gradient(ones, ones).tolist() == [1, 1, 1]
    with pytest.raises(xla.GraphError, match=r"lengths 1 and 3 meet along one axis.*addbroadcast"):
        gradient(ones[:1], ones)


def test_equal_lengths_are_dropped():
    x, y = tensor.vectors("x", "y")
    length = SharedLength()(x.shape[0], y.shape[0], x.shape[0])
    prepared = aesara.function([x, y], length, mode=rewriting_mode("fast_run"))

    (node,) = (n for n in prepared.maker.fgraph.toposort() if isinstance(n.op, SharedLength))
    assert len(node.inputs) == 2


def test_a_length_that_depends_on_data_is_refused_with_the_way_out():
    x = tensor.lvector("x")
    f = xla.function([x], SliceLength(None, True, None)(x.shape[0], x.sum()))

    with pytest.raises(xla.DataDependentShape, match="a length must be known.*backend='py'"):
        f(numpy.arange(3))


def test_shapes_of_what_a_scan_collects_are_found_without_running_it():
    x, w = tensor.matrix("x"), tensor.matrix("w")
    (kept, collected), _ = aesara.scan(
        lambda row, state, w: (state + row, tensor.outer(row, row.dot(w))),
        sequences=[x],
        outputs_info=[tensor.zeros_like(x[0]), None],
        non_sequences=[w],
    )
    batch = numpy.ones((4, 3), "float32"), numpy.ones((3, 2), "float32")

    for result, expected in ((kept, [4, 3]), (collected, [4, 3, 2])):
        shape, operations = compiled_shape([x, w], result)
        assert shape(*batch).tolist() == expected
        assert "Scan" not in [type(op).__name__ for op in operations]


def test_the_number_of_steps_of_an_until_is_left_to_it():
    x = tensor.vector("x")
    values, _ = aesara.scan(
        lambda element, total: (total + element, until(total > 3)),
        sequences=[x],
        outputs_info=[tensor.zeros((), dtype=x.dtype)],
    )
    prepared = aesara.function([x], values.shape[0], mode=rewriting_mode("fast_run"))

    assert any(type(node.op).__name__ == "Scan" for node in prepared.maker.fgraph.toposort())
