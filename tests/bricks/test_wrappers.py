import pickle

import numpy
import pytest
from aesara import tensor

from bricks import Brick, NDimensionalSoftmax, Softmax, application, xla
from bricks.wrappers import BrickWrapper, WithExtraDims


class Pair(Brick):
    @application(inputs=["a", "b"], outputs=["sum", "scaled"])
    def apply(self, a, b, factor=2):
        """Document it."""
        return a + b, factor * a

    def helper(self):
        return 3


class PairOverTime(Pair):
    decorators = [WithExtraDims()]


def test_extra_axes_are_folded_and_come_back():
    a, b = tensor.tensor4("a"), tensor.tensor4("b")
    outputs = PairOverTime().apply(a, b=b, factor=3, extra_ndim=2)
    values = numpy.arange(24, dtype="float32").reshape(1, 2, 3, 4)

    total, scaled = xla.function([a, b], outputs)(values, values)

    numpy.testing.assert_array_equal(total, 2 * values)
    numpy.testing.assert_array_equal(scaled, 3 * values)


def test_without_extra_axes_the_application_is_the_wrapped_one():
    a = tensor.matrix("a")
    brick = PairOverTime()

    assert brick.apply.inputs == ["a", "b"] and brick.apply.outputs == ["sum", "scaled"]
    assert type(brick).apply.__doc__ == "Document it."
    assert len(brick.apply(a, a)) == 2
    assert brick.helper() == 3


def test_known_lengths_are_still_known():
    x = tensor.TensorType("float32", (None, None, 4))("x")

    assert NDimensionalSoftmax().apply(x, extra_ndim=1).type.shape == (None, None, 4)


def test_an_input_with_too_few_axes_is_refused():
    with pytest.raises(ValueError, match=r"/softmax\.apply: with extra_ndim=2, .*3 axes"):
        NDimensionalSoftmax(name="softmax").apply(tensor.matrix("x"), extra_ndim=2)


def test_wrapped_bricks_and_their_graphs_are_pickled():
    x = tensor.tensor3("x")
    output = NDimensionalSoftmax().apply(x, extra_ndim=1)

    loaded_x, loaded = pickle.loads(pickle.dumps((x, output)))

    values = numpy.zeros((2, 3, 4), "float32")
    numpy.testing.assert_array_equal(xla.function([loaded_x], loaded)(values), values + 0.25)


def test_a_wrapper_of_a_users_own_gets_every_application():
    names = []

    class Listing(BrickWrapper):
        def wrap(self, wrapped, namespace):
            names.append(wrapped.name)

    type("Listed", (Softmax,), {"decorators": [Listing()]})

    assert sorted(names) == ["apply", "categorical_cross_entropy", "log_probabilities"]
