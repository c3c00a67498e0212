"""Train an MLP on MNIST with a penalty on its weights: a script as one wrote them for Blocks."""

import logging
from argparse import ArgumentParser

from blocks.algorithms import GradientDescent, Scale
from blocks.bricks import MLP, Softmax, Tanh
from blocks.bricks.cost import CategoricalCrossEntropy, MisclassificationRate
from blocks.extensions import FinishAfter, Printing, ProgressBar, Timing
from blocks.extensions.monitoring import DataStreamMonitoring, TrainingDataMonitoring
from blocks.extensions.saveload import Checkpoint
from blocks.filter import VariableFilter
from blocks.graph import ComputationGraph
from blocks.initialization import Constant, IsotropicGaussian
from blocks.main_loop import MainLoop
from blocks.model import Model
from blocks.monitoring import aggregation
from blocks.roles import WEIGHT
from fuel.datasets import MNIST
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Flatten
from theano import tensor


def main(save_to, num_epochs):
    mlp = MLP(
        [Tanh(), Softmax()],
        [784, 100, 10],
        weights_init=IsotropicGaussian(0.01),
        biases_init=Constant(0),
    )
    mlp.initialize()
    x = tensor.matrix("features")
    y = tensor.lmatrix("targets")
    probs = mlp.apply(x)
    cost = CategoricalCrossEntropy().apply(y.flatten(), probs)
    cost.name = "cost"
    error_rate = MisclassificationRate().apply(y.flatten(), probs)
    error_rate.name = "error_rate"

    cg = ComputationGraph([cost])
    W1, W2 = VariableFilter(roles=[WEIGHT])(cg.variables)
    final_cost = cost + 0.0005 * (W1**2).sum() + 0.0005 * (W2**2).sum()
    final_cost.name = "final_cost"

    mnist_train = MNIST(("train",))
    mnist_test = MNIST(("test",))
    train_stream = Flatten(
        DataStream.default_stream(
            mnist_train, iteration_scheme=ShuffledScheme(mnist_train.num_examples, 50)
        ),
        which_sources=("features",),
    )
    test_stream = Flatten(
        DataStream.default_stream(
            mnist_test, iteration_scheme=SequentialScheme(mnist_test.num_examples, 100)
        ),
        which_sources=("features",),
    )

    algorithm = GradientDescent(
        cost=final_cost, parameters=cg.parameters, step_rule=Scale(learning_rate=0.1)
    )
    extensions = [
        Timing(),
        FinishAfter(after_n_epochs=num_epochs),
        DataStreamMonitoring([final_cost, cost, error_rate], test_stream, prefix="test"),
        TrainingDataMonitoring(
            [final_cost, error_rate, aggregation.mean(algorithm.total_gradient_norm)],
            prefix="train",
            after_epoch=True,
        ),
        Checkpoint(save_to),
        ProgressBar(),
        Printing(),
    ]
    main_loop = MainLoop(algorithm, train_stream, model=Model(final_cost), extensions=extensions)
    main_loop.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    parser = ArgumentParser()
    parser.add_argument("--num-epochs", type=int, default=2)
    parser.add_argument("save_to", nargs="?", default="mnist.pkl")
    args = parser.parse_args()
    main(args.save_to, args.num_epochs)
