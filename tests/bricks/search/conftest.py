"""A Markov chain that can be searched, and what numpy finds in it by trying everything."""

import itertools

import numpy
import pytest
from aesara import tensor

from bricks.search import Stepper


class Chain(Stepper):
    """Each symbol depends on the one before it, and the first one on what is given."""

    def __init__(self, probabilities):
        with numpy.errstate(divide="ignore"):
            self.log_probs = numpy.log(numpy.asarray(probabilities, "float32"))
        self.first = tensor.lvector("first")
        self.inputs = [self.first]

    def contexts(self):
        return {"table": tensor.as_tensor_variable(self.log_probs)}

    def context_axis(self, name):
        return None

    def initial_states(self, contexts):
        return {"last": self.first}

    def score(self, states, contexts):
        return contexts["table"][states["last"]], states

    def advance(self, symbols, states, contexts):
        return {"last": symbols}

    def cost(self, first, sequence):
        pairs = zip([first, *sequence[:-1]], sequence, strict=True)
        return -sum(float(self.log_probs[pair]) for pair in pairs)

    def all_sequences(self, first, max_length, eol=0):
        """All sequences that end, with their costs, and all that are cut."""
        symbols = [s for s in range(self.log_probs.shape[1]) if s != eol]
        ended, cut = [], []
        for length in range(max_length + 1):
            for body in itertools.product(symbols, repeat=length):
                if length < max_length:
                    ended.append(([*body, eol], self.cost(first, [*body, eol])))
                else:
                    cut.append(([*body], self.cost(first, body)))
        return ended, cut


@pytest.fixture
def make_chain():
    """A function that makes a chain, of given probabilities or of random ones."""

    def make(probabilities=None, num_symbols=3, seed=0):
        if probabilities is None:
            logits = 1.5 * numpy.random.RandomState(seed).standard_normal((num_symbols,) * 2)
            probabilities = numpy.exp(logits) / numpy.exp(logits).sum(axis=1, keepdims=True)
        return Chain(probabilities)

    return make
