"""Write the golden checkpoint of this release, and what is to be found in it.

Run once for each release, with the default versions installed, from the root of the checkout::

    AESARA_FLAGS=traceback__limit=0 python tests/golden/write.py 0.1.0

(Without traces of where variables were made, the file is smaller and names no folder.) It writes
``0.1.0.zip``, the checkpoint of the run in ``golden_run.py`` after 5 of its batches, and
``0.1.0.npz``, what the run is at after 5 and after 10 batches. The latter is computed here by
numpy in float64, with none of the library's graph, gradients, step rules or monitoring: only the
first parameters, the batches and the bits of the random keys are taken from elsewhere.
"""

import os
import sys
import tempfile
from pathlib import Path

import golden_run
import jax
import numpy
from golden_run import BATCH_SIZE, DROPPED, ENDS_AFTER, RATE, SAVED_AFTER

from bricks.archive import Archive
from bricks.graph import ComputationGraph
from bricks.serialization import load_parameters

HERE = Path(__file__).resolve().parent
KEY = "algorithm/random/dropout/mlp/linear_1.apply.input_.0"


def main(release):
    """Write both files."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        loop = golden_run.build_main_loop("golden.zip", SAVED_AFTER)
        first = {name: v.get_value() for name, v in loop.model.get_parameter_dict().items()}
        shared = ComputationGraph(loop.algorithm.cost).shared_variables
        (key,) = [v for v in shared if getattr(v.tag, "is_random_key", False)]
        expected = Reference(first, key.get_value()).train(batches())
        loop.run()
        check_by_eye(load_parameters("golden.zip"), expected)
        Path("golden.zip").rename(HERE / f"{release}.zip")
    with Archive(HERE / f"{release}.zip") as archive:
        print(archive.manifest["libraries"], archive.manifest["command"])
    numpy.savez(HERE / f"{release}.npz", **expected)


def batches():
    """Give the batches of the run, read outside of it."""
    stream, found = golden_run.make_stream(), []
    while len(found) < ENDS_AFTER:
        found += list(stream.get_epoch_iterator())
    return found[:ENDS_AFTER]


class Reference:
    """The same training by hand.

    Parameters
    ----------
    parameters : dict of str to array
        The first ones.
    key : uint32 array of shape (2,)
        The first one of the masks.
    """

    def __init__(self, parameters, key):
        self.parameters = {name: value.astype("float64") for name, value in parameters.items()}
        self.means = {name: numpy.zeros_like(value) for name, value in self.parameters.items()}
        self.variances = {name: numpy.zeros_like(value) for name, value in self.parameters.items()}
        self.key = jax.random.wrap_key_data(key, impl="threefry2x32")
        self.steps = 0

    def train(self, batches):
        """Process all batches; give what is to be compared, by name."""
        expected = {
            "features": numpy.stack([features for features, _ in batches]),
            "targets": numpy.stack([targets for _, targets in batches]),
        }
        costs = []
        for features, targets in batches:
            cost, gradients = self.differentiate(features.astype("float64"), targets[:, 0])
            costs.append(cost)
            self.step(gradients)
            if self.steps in (SAVED_AFTER, ENDS_AFTER):
                expected |= self.state()
        return expected | {"costs": numpy.array(costs)}

    def mask(self):
        """Draw which of the hidden units are left; move on to the next key."""
        self.key, generator = jax.random.split(self.key)
        uniform = jax.random.uniform(jax.random.split(generator)[1], (BATCH_SIZE, 3), "float32")
        return numpy.asarray(uniform) < 1 - DROPPED

    def differentiate(self, features, targets):
        """Compute the cross-entropy of the classes, and its gradients, by backpropagation."""
        one, other = "/mlp/linear_0", "/mlp/linear_1"
        p = self.parameters
        hidden = numpy.tanh(features @ p[f"{one}.W"] + p[f"{one}.b"])
        left = self.mask() / (1 - DROPPED)
        scores = numpy.exp((hidden * left) @ p[f"{other}.W"] + p[f"{other}.b"])
        probabilities = scores / scores.sum(axis=1, keepdims=True)
        cost = -numpy.log(probabilities[numpy.arange(BATCH_SIZE), targets]).mean()
        of_scores = (probabilities - numpy.eye(2)[targets]) / BATCH_SIZE
        of_hidden = (of_scores @ p[f"{other}.W"].T) * left * (1 - hidden**2)
        return cost, {
            f"{other}.W": (hidden * left).T @ of_scores,
            f"{other}.b": of_scores.sum(axis=0),
            f"{one}.W": features.T @ of_hidden,
            f"{one}.b": of_hidden.sum(axis=0),
        }

    def step(self, gradients):
        """Make a step of Adam."""
        self.steps += 1
        rate = RATE * numpy.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        for name, gradient in gradients.items():
            self.means[name] = 0.9 * self.means[name] + 0.1 * gradient
            self.variances[name] = 0.999 * self.variances[name] + 0.001 * gradient**2
            root = numpy.sqrt(self.variances[name])
            self.parameters[name] = self.parameters[name] - rate * self.means[name] / (root + 1e-8)

    def state(self):
        """Give parameters, buffers and the key, by the number of batches and their names."""
        named = {
            **self.parameters,
            **{f"algorithm/step_rule.mean[{name}]": v for name, v in self.means.items()},
            **{f"algorithm/step_rule.variance[{name}]": v for name, v in self.variances.items()},
            KEY: numpy.asarray(jax.random.key_data(self.key)),
        }
        return {f"{self.steps} {name}": value.copy() for name, value in named.items()}


def check_by_eye(parameters, expected):
    """Print how far the checkpoint is from the reference."""
    for name, value in parameters.items():
        print(name, "differs by at most", abs(value - expected[f"{SAVED_AFTER} {name}"]).max())


if __name__ == "__main__":
    main(sys.argv[1])
