"""One graph is lowered to one program in every process, whatever its hashes are."""

import os
import subprocess
import sys
from pathlib import Path

PROCESSES = 10

SCRIPT = """
import bricks
import aesara
import numpy
from aesara import tensor
from aesara.tensor.nnet import conv2d
from bricks import MLP, Softmax, Tanh, xla
from bricks.algorithms import AdaDelta, CompositeRule, GradientDescent, StepClipping
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph, apply_dropout, rematerialize
from bricks.initialization import Constant, IsotropicGaussian
from bricks.roles import INPUT

images, targets = tensor.tensor4("images"), tensor.lvector("targets")
kernels = xla.shared(numpy.ones((2, 1, 2, 2), "float32"), name="kernels")
stream = xla.RandomStream(1, name="noise")
hidden = conv2d(images, kernels).flatten(3).dimshuffle(2, 0, 1)
states, updates = aesara.scan(
    lambda x, h: tensor.tanh(x + h + stream.normal(h.shape)),
    sequences=[hidden],
    outputs_info=[tensor.zeros_like(hidden[0])],
)
mlp = MLP([Tanh(), Softmax()], [2, 4, 3], weights_init=IsotropicGaussian(0.1),
          biases_init=Constant(0), seed=1)
mlp.initialize()
scores = mlp.apply(states[-1])
graph = ComputationGraph(-tensor.log(scores)[tensor.arange(targets.shape[0]), targets].mean())
inputs = VariableFilter(roles=[INPUT], bricks=mlp.linear_transformations)(graph.variables)
graph = rematerialize(apply_dropout(graph, inputs, 0.5, seed=2), [Tanh])
algorithm = GradientDescent(
    cost=graph.outputs[0], parameters=[kernels, *graph.parameters],
    step_rule=CompositeRule([StepClipping(1), AdaDelta()]),
)
algorithm.add_updates(updates)
step = xla.function([images, targets], graph.outputs[0], updates=algorithm.updates)
step(numpy.ones((2, 1, 3, 3), "float32"), [0, 2])
print(step.lowered_digest())
"""


def test_ten_processes_with_different_hashes_lower_one_program():
    root = str(Path(__file__).parents[3])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    results = [process.communicate(timeout=240) for process in processes]

    assert [process.returncode for process in processes] == [0] * PROCESSES, results
    digests = {output.strip() for output, _ in results}
    assert len(digests) == 1
    assert len(digests.pop()) == 32
