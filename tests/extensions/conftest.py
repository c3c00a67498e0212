"""Loops to try extensions on: one without any computation, and a small regression."""

# First, because it sets Aesara up, which must come before anything imports Aesara.
import bricks  # noqa: F401

# isort: split
import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.algorithms import GradientDescent, Momentum
from bricks.main_loop import MainLoop
from bricks.roles import PARAMETER, add_role
from extensions import TrainingExtension
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ShuffledScheme
from fuel_data.streams import DataStream


class Nothing:
    """An algorithm that does nothing."""

    def initialize(self):
        pass

    def process_batch(self, batch):
        pass


class Batches:
    """Epochs of empty batches."""

    def __init__(self, num_batches):
        self.num_batches = num_batches

    def get_epoch_iterator(self, as_dict):
        return iter([{} for _ in range(self.num_batches)])


class Script(TrainingExtension):
    """Logs what it was told to, by time, after the batch."""

    def __init__(self, records):
        super().__init__()
        self.records = records

    def after_batch(self, batch):
        time = self.main_loop.status["iterations_done"]
        self.main_loop.log[time].update(self.records.get(time, {}))


@pytest.fixture
def make_loop():
    """Build a loop that computes nothing, and logs `records` by time after the batches."""

    def make(*extensions, records=None, num_batches=3, **arguments):
        script = [] if records is None else [Script(records)]
        extensions = [*script, *extensions]
        return MainLoop(Nothing(), Batches(num_batches), extensions=extensions, **arguments)

    return make


class Regression:
    """A linear regression on 20 examples in batches of 6, shuffled."""

    def __init__(self, x=None):
        generator = numpy.random.RandomState(0)
        self.x = generator.randn(20, 3).astype("float32") if x is None else x
        self.y = self.x @ numpy.array([1, 2, 3], dtype="float32")
        data = {"x": self.x, "y": self.y}
        self.stream = DataStream(IndexableDataset(data), iteration_scheme=ShuffledScheme(20, 6))
        self.W = xla.shared(numpy.zeros(3, dtype="float32"), name="W")
        add_role(self.W, PARAMETER)
        features, targets = tensor.matrix("x"), tensor.vector("y")
        self.error = features.dot(self.W) - targets
        self.cost = (self.error**2).mean()
        self.cost.name = "cost"
        self.rule = Momentum(learning_rate=0.1, momentum=0.5)
        self.algorithm = GradientDescent(cost=self.cost, parameters=[self.W], step_rule=self.rule)

    def loop(self, *extensions, **arguments):
        return MainLoop(self.algorithm, self.stream, extensions=extensions, **arguments)


@pytest.fixture(scope="session")
def make_regression():
    """Give the class of a regression to build."""
    return Regression
