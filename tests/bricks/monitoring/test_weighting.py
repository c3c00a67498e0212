"""Means over examples where time comes first: which axis tells how many examples there are."""

import numpy
import pytest
from aesara import tensor

from bricks.monitoring import DatasetEvaluator


def named(variable, name):
    variable.name = name
    return variable


def evaluate(variable, stream, **arguments):
    return DatasetEvaluator([variable], **arguments).evaluate(stream)[variable.name]


class Batches:
    """The same batches at each epoch; their axes may have names."""

    def __init__(self, *batches, **axis_labels):
        self.batches = batches
        self.axis_labels = axis_labels

    def get_epoch_iterator(self, as_dict):
        return iter(self.batches)


def time_major_of_square_first_batch():
    """Sequences with time first; the first batch has as many steps as examples."""
    rng = numpy.random.RandomState(0)
    shapes = ((4, 4, 2), (9, 2, 2))
    return [
        {"x": rng.rand(*shape).astype("float32"), "y": rng.rand(shape[1]).astype("float32")}
        for shape in shapes
    ]


def product():
    x, y = tensor.ftensor3("x"), tensor.fvector("y")
    return named((x.mean(axis=(0, 2)) * y).mean(), "cost")


def mean_product(batches):
    products = [batch["x"].mean(axis=(0, 2)) * batch["y"] for batch in batches]
    return numpy.concatenate(products).mean()


def test_lengths_that_agree_by_accident_on_the_first_batch_are_refused_on_the_second():
    stream = Batches(*time_major_of_square_first_batch())

    with pytest.raises(ValueError, match=r"weighted.*x has 9, y has 2.*label the axes"):
        evaluate(product(), stream)


@pytest.mark.parametrize("labelled", [["x"], ["x", "y"]])
@pytest.mark.parametrize("weighted", [True, "x"])
def test_the_axis_that_the_stream_calls_batch_tells_the_number(labelled, weighted):
    batches = time_major_of_square_first_batch()
    labels = {"x": ("time", "batch", "feature"), "y": ("batch",)}
    stream = Batches(*batches, **{name: labels[name] for name in labelled})

    value = evaluate(product(), stream, weighted=weighted)

    assert value == pytest.approx(mean_product(batches), rel=1e-5)


def test_labelled_axes_have_to_agree_too():
    batch = {"x": numpy.zeros((4, 3, 2), "float32"), "y": numpy.zeros(3, "float32")}
    stream = Batches(batch, x=("batch", "time", "feature"), y=("batch",))

    with pytest.raises(ValueError, match="x has 4, y has 3"):
        evaluate(product(), stream)
    stream.axis_labels = {"x": ("time", "feature", "batch"), "y": ("batch",)}
    with pytest.raises(ValueError, match="x has 2 on axis 2, y has 3"):
        evaluate(product(), stream)


def test_an_evaluator_reads_streams_with_other_axes_one_after_the_other():
    batches = time_major_of_square_first_batch()
    stream = Batches(*batches, x=("time", "batch", "feature"), y=("batch",))
    evaluator = DatasetEvaluator([product()])
    single = {"x": numpy.ones((2, 2, 2), "float32"), "y": numpy.ones(2, "float32")}

    assert evaluator.evaluate(Batches(single))["cost"] == 1.0
    assert evaluator.evaluate(stream)["cost"] == pytest.approx(mean_product(batches), rel=1e-5)
    assert evaluator.evaluate(Batches(single))["cost"] == 1.0


def test_labels_without_a_batch_axis_change_nothing():
    x, data = tensor.fmatrix("x"), numpy.random.RandomState(0).rand(10, 3).astype("float32")
    stream = Batches({"x": data[:8]}, {"x": data[8:]}, x=("feature", "index"))

    assert evaluate(named(x.mean(), "mean"), stream) == pytest.approx(data.mean(), rel=1e-5)
