"""What is wrong with a graph is said in words: where, what was met, and the way out."""

import logging
import re

import aesara
import numpy
import pytest
from aesara import tensor
from aesara.compile.ops import as_op
from aesara.graph.utils import MissingInputError
from aesara.ifelse import ifelse
from aesara.scan.utils import until

from bricks import MLP, Softmax, Tanh, xla
from bricks.base import Brick, application
from bricks.initialization import Constant


@as_op(itypes=[tensor.dmatrix], otypes=[tensor.dmatrix])
def reverse(x):
    return x[::-1]


class Reversal(Brick):
    @application(inputs=["x"], outputs=["y"])
    def apply(self, x):
        return reverse(x)


class Squeeze(Brick):
    @application(inputs=["x"], outputs=["y"])
    def apply(self, x):
        return tensor.exp(x[x > 0])


X, Y = tensor.dmatrix("x"), tensor.dmatrix("y")
FEATURES = tensor.matrix("features")
COUNT = xla.shared(numpy.float64(1), name="count")
ONES = numpy.ones


def network(features):
    init = {"weights_init": Constant(0), "biases_init": Constant(0)}
    mlp = MLP([Tanh(), Softmax()], [3, 4, 2], name="net", **init)
    mlp.initialize()
    return mlp.apply(features)


def steps_until_large(x):
    return aesara.scan(lambda h: (h * 2, until(h.sum() > 5)), outputs_info=[x], n_steps=9)[0]


#: name -> (inputs, output, arguments, options, class, parts of the message in their order)
WRONG = {
    "a wrong width": (
        [FEATURES],
        network,
        [ONES((5, 7), "float32")],
        {},
        xla.GraphError,
        ["/net/linear_0.apply: dot(features, W) cannot", "float32(5, 7), float32(3, 4)"],
    ),
    "a wrong dtype": (
        [FEATURES],
        network,
        [ONES((5, 3))],
        {},
        TypeError,
        [
            "wrong: argument 0, 'features', must be",
            "float32",
            "got float64 of shape (5, 3)",
            "cast",
        ],
    ),
    "too few axes": (
        [FEATURES],
        network,
        [ONES(3, "float32")],
        {},
        TypeError,
        ["wrong: argument 0, 'features'", "got float32 of shape (3,)", "expected 2, got 1"],
    ),
    "an argument that is missing": (
        [X, Y],
        lambda x, y: x + y,
        [ONES((1, 1))],
        {},
        TypeError,
        ["wrong was called without y"],
    ),
    "an input that is missing": (
        [X],
        lambda x: x + Y,
        [],
        {},
        MissingInputError,
        ["wrong: what is computed depends on an input that is not among `inputs` (x)", "(y)"],
    ),
    "an input that is not used": (
        [X, Y],
        lambda x, y: x * 2,
        [],
        {},
        aesara.compile.function.types.UnusedInputError,
        ["input variable at index 1 is not part", ": y.", "on_unused_input='ignore'"],
    ),
    "two updates of one variable": (
        [],
        lambda: COUNT * 2,
        [],
        {"updates": [(COUNT, COUNT + 1), (COUNT, COUNT * 2)]},
        ValueError,
        ["wrong: `updates` has several new values for count", "their sum"],
    ),
    "an operation without lowering": (
        [X],
        lambda x: Reversal(name="reversal").apply(x),
        [],
        {},
        xla.UnsupportedOp,
        ["/reversal.apply: FromFunctionOp{reverse}", "xla.lowering", "backend='py'"],
    ),
    "a mask that selects": (
        [X],
        lambda x: Squeeze(name="squeeze").apply(x),
        [ONES((2, 2))],
        {},
        xla.DataDependentShape,
        ["/squeeze.apply", "how many elements a mask selects", "tensor.switch(mask, x, 0)"],
    ),
    "places of what is not zero": (
        [X],
        lambda x: x.nonzero()[0],
        [ONES((2, 2))],
        {},
        xla.DataDependentShape,
        ["Nonzero(x)", "must be known when the graph is compiled", "backend='py'"],
    ),
    "a length that is computed from data": (
        [X],
        lambda x: tensor.zeros((x.sum().astype("int64"),)),
        [ONES((2, 2))],
        {},
        xla.DataDependentShape,
        ["the shape of a new array must be known", "derive it from the shape of an input"],
    ),
    "broadcasting that is not declared": (
        [X, Y],
        lambda x, y: x + y,
        [ONES((3, 2)), ONES((1, 2))],
        {},
        xla.GraphError,
        ["add", "(x, y): axis 0 of 'y' has length 1", "gradient would be wrong", "addbroadcast"],
    ),
    "an index outside": (
        [X],
        lambda x: x[5],
        [ONES((3, 2))],
        {},
        xla.GraphError,
        ["Subtensor", "(x, ", "index 5 is out of bounds for axis 0 of length 3"],
    ),
    "branches that differ": (
        [X, Y],
        lambda x, y: ifelse(x.sum() > 0, x, y),
        [ONES((2, 2)), ONES((3, 2))],
        {},
        xla.GraphError,
        ["x, y): the branches of an ifelse have shapes (2, 2) and (3, 2)", "XLA needs equal ones"],
    ),
    "all values of a loop that stops by itself": (
        [X],
        steps_until_large,
        [ONES((2, 2))],
        {},
        xla.UnsupportedOp,
        ["scan_fn", "Use only the last one, result[-1]", "tensor.switch", "backend='py'"],
    ),
    "an unknown backend": (
        [X],
        lambda x: x * 2,
        [],
        {"backend": "xlaa"},
        ValueError,
        ["backend: there is no 'xlaa'", "Did you mean 'xla'?"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_says_where_what_and_the_way_out(name):
    inputs, build, arguments, options, kind, parts = WRONG[name]

    with pytest.raises(kind) as error:
        xla.function(inputs, build(*inputs), name="wrong", **options)(*arguments)

    assert re.search(".*".join(map(re.escape, parts)), str(error.value), re.DOTALL), error.value


def test_an_error_in_the_step_of_a_loop_names_the_application_there():
    x, width = tensor.dtensor3("x"), tensor.dmatrix("weights")

    class Step(Brick):
        @application(inputs=["x", "h"], outputs=["new"])
        def apply(self, x, h):
            return tensor.tanh(x + tensor.dot(h, width))

    step = Step(name="step")
    states, _ = aesara.scan(step.apply, sequences=[x], outputs_info=[tensor.zeros_like(x[0])])

    with pytest.raises(xla.GraphError, match=r"/step\.apply.*float64\(2, 3\), float64\(4, 3\)"):
        xla.function([x, width], states)(ONES((5, 2, 3)), ONES((4, 3)))


def test_the_warning_about_many_shapes_says_what_changes_and_what_helps(caplog):
    n, table = tensor.lscalar("length"), tensor.dmatrix("table")
    f = xla.function([table, n], table[:n].sum(), name="summing")

    for length in range(5):
        f(ONES((5 + length % 2, 3)), length)

    (message,) = (r.message for r in caplog.records if r.levelno == logging.WARNING)
    assert message == (
        "summing was compiled 5 times, because these change: axis 0 of table (seen: 5, 6); the "
        "value of length (seen: 0, 1, 2, 3, 4). Each new shape is compiled for. Keep them few: "
        "drop the last short batch, pad to a multiple (Padding(multiple_of=...)), or group "
        "examples by length."
    )
