"""The models whose training steps are timed, built with bricks and Aesara as their user would.

Each is a :class:`Model` in :data:`MODELS`. ``model.build()`` gives the compiled step and a batch,
so that ``step(*batch)`` trains on it and returns the cost before that; ``small=True`` gives the
same model with a few units, for tests. The file imports none of its neighbours, so it can be
loaded by its path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy

from bricks import MLP, Linear, LookupTable, NDimensionalSoftmax, Rectifier, Softmax, xla
from bricks.algorithms import GradientDescent, Scale
from bricks.initialization import Constant, IsotropicGaussian
from bricks.utils import shared_floatx

# isort: split
# After bricks, which sets Aesara up.
import aesara
from aesara import tensor
from aesara.tensor.nnet import conv2d
from aesara.tensor.signal.pool import pool_2d

LEARNING_RATE = 0.1
SCHEMES = {"weights_init": IsotropicGaussian(0.05), "biases_init": Constant(0)}

Batch = list[numpy.ndarray]
Sizes = Mapping[str, int]


class Graph(NamedTuple):
    """A cost, what it is a function of, and data.

    Parameters
    ----------
    inputs : list of Variable
        In the order of `batch`.
    cost : Variable
        A scalar.
    parameters : dict
        Shared variables by the names that all implementations use.
    batch : list of array
        What the step is timed with.
    """

    inputs: list[Any]
    cost: Any
    parameters: dict[str, Any]
    batch: Batch


class Model(NamedTuple):
    """A model to time.

    Parameters
    ----------
    name : str
        On the command line.
    title : str
        In the table.
    make : function
        Gives the :class:`Graph` for sizes.
    sizes, small_sizes : dict of str to int
        Those that are timed, and those of quick tests.
    """

    name: str
    title: str
    make: Callable[[Sizes], Graph]
    sizes: Sizes
    small_sizes: Sizes

    def graph(self, small: bool = False) -> Graph:
        """Give the cost and its parameters, with their first values.

        Parameters
        ----------
        small : bool, optional
            Whether to take the sizes of quick tests.

        Returns
        -------
        Graph
        """
        return self.make(self.small_sizes if small else self.sizes)

    def arrays(self, small: bool = False) -> tuple[dict[str, numpy.ndarray], Batch]:
        """Give first values and data, for implementations that share them.

        Parameters
        ----------
        small : bool, optional
            Whether to take the sizes of quick tests.

        Returns
        -------
        parameters : dict of str to array
        batch : list of array
        """
        graph = self.graph(small)
        values = {name: variable.get_value() for name, variable in graph.parameters.items()}
        return values, graph.batch

    def build(self, small: bool = False) -> tuple[xla.Function, Batch]:
        """Compile the training step: the cost, its gradients, and an update of all parameters.

        Parameters
        ----------
        small : bool, optional
            Whether to take the sizes of quick tests.

        Returns
        -------
        step : bricks.xla.Function
            Trains on a batch and returns the cost before that.
        batch : list of array
        """
        graph = self.graph(small)
        return compile_step(graph), graph.batch


def compile_step(graph: Graph) -> xla.Function:
    """Compile a step of gradient descent.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    bricks.xla.Function
        Trains on a batch and returns the cost before that.
    """
    algorithm = GradientDescent(
        graph.cost, parameters=list(graph.parameters.values()), step_rule=Scale(LEARNING_RATE)
    )
    return xla.function(graph.inputs, graph.cost, updates=algorithm.updates, name="step")


def _features(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(sum(shape)).standard_normal(shape, dtype=numpy.float32)


def _integers(stop: int, *shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(stop + sum(shape)).integers(0, stop, shape)


def _weights(name: str, *shape: int) -> Any:
    """Make a weight that belongs to no brick."""
    value = 0.05 * numpy.random.default_rng(sum(shape)).standard_normal(shape)
    return shared_floatx(value, name=name, shape=shape)


def _linear(name: str, input_dim: int, output_dim: int) -> Linear:
    seed = input_dim + output_dim
    return _initialized(Linear(input_dim, output_dim, name=name, seed=seed, **SCHEMES))


def _table(name: str, length: int, dim: int) -> LookupTable:
    scheme = IsotropicGaussian(0.05)
    return _initialized(LookupTable(length, dim, name=name, seed=length, weights_init=scheme))


def _initialized(brick: Any) -> Any:
    brick.initialize()
    return brick


def _cross_entropy(targets: Any, scores: Any) -> Any:
    return Softmax().categorical_cross_entropy(targets, scores).mean()


def mlp(sizes: Sizes) -> Graph:
    """Make a perceptron with two hidden layers of rectifiers.

    Parameters
    ----------
    sizes : dict
        ``batch``, ``features``, ``hidden`` and ``classes``.

    Returns
    -------
    Graph
    """
    features, targets = tensor.matrix("features"), tensor.lvector("targets")
    dims = [sizes["features"], sizes["hidden"], sizes["hidden"], sizes["classes"]]
    brick = _initialized(MLP([Rectifier(), Rectifier(), None], dims, seed=1, **SCHEMES))
    parameters = {}
    for number, layer in enumerate(brick.linear_transformations):
        parameters |= {f"W{number}": layer.W, f"b{number}": layer.b}
    return Graph(
        [features, targets],
        _cross_entropy(targets, brick.apply(features)),
        parameters,
        [
            _features(sizes["batch"], sizes["features"]),
            _integers(sizes["classes"], sizes["batch"]),
        ],
    )


def lstm(sizes: Sizes) -> Graph:
    """Make a recurrent network of long short-term memory that classifies sequences by its end.

    Parameters
    ----------
    sizes : dict
        ``steps``, ``batch``, ``features``, ``units`` and ``classes``.

    Returns
    -------
    Graph
    """
    features, targets = tensor.tensor3("features"), tensor.lvector("targets")
    units = sizes["units"]
    fork = _linear("fork", sizes["features"], 4 * units)
    readout = _linear("readout", units, sizes["classes"])
    recurrent = _weights("U", units, 4 * units)

    def step(gates: Any, state: Any, cell: Any, recurrent: Any) -> tuple[Any, Any]:
        gates = gates + tensor.dot(state, recurrent)
        # In the order of PyTorch: input, forget, cell, output.
        new, keep, candidate, shown = (
            gates[:, number * units : (number + 1) * units] for number in range(4)
        )
        cell = tensor.sigmoid(keep) * cell + tensor.sigmoid(new) * tensor.tanh(candidate)
        return tensor.sigmoid(shown) * tensor.tanh(cell), cell

    start = tensor.zeros((features.shape[1], units))
    (states, _), _ = aesara.scan(
        step,
        sequences=fork.apply(features),
        outputs_info=[start, start],
        non_sequences=recurrent,
    )
    return Graph(
        [features, targets],
        _cross_entropy(targets, readout.apply(states[-1])),
        {"W": fork.W, "b": fork.b, "U": recurrent, "Wo": readout.W, "bo": readout.b},
        [
            _features(sizes["steps"], sizes["batch"], sizes["features"]),
            _integers(sizes["classes"], sizes["batch"]),
        ],
    )


def _gated_update(inputs: Any, gates: Any, state: Any, recurrent: Any, units: int) -> Any:
    """Compute the next state of gated recurrent units.

    Parameters
    ----------
    inputs : Variable of shape (batch, unit)
        What reaches the candidate beside the reset state.
    gates : Variable of shape (batch, 2 * unit)
        Scores of update and reset.
    state : Variable of shape (batch, unit)
    recurrent : Variable of shape (unit, unit)
    units : int
    """
    gates = tensor.sigmoid(gates)
    update, reset = gates[:, :units], gates[:, units:]
    candidate = tensor.tanh(inputs + tensor.dot(reset * state, recurrent))
    return update * candidate + (1 - update) * state


def attention(sizes: Sizes) -> Graph:
    """Make an encoder and a decoder of gated recurrent units, with attention between them.

    Parameters
    ----------
    sizes : dict
        ``source`` and ``target``, the two lengths, ``batch``, ``units``, ``embedding`` and
        ``words``.

    Returns
    -------
    Graph
    """
    source, target = tensor.lmatrix("source"), tensor.lmatrix("target")
    units, words = sizes["units"], sizes["words"]
    tables = [_table(name, words, sizes["embedding"]) for name in ("source", "target")]
    encoder_fork = _linear("encoder_fork", sizes["embedding"], 3 * units)
    decoder_fork = _linear("decoder_fork", sizes["embedding"], 3 * units)
    keys_of, readout = _linear("keys", units, units), _linear("readout", 2 * units, words)
    weights = {
        "encoder_Ug": _weights("encoder_Ug", units, 2 * units),
        "encoder_Uc": _weights("encoder_Uc", units, units),
        "Ug": _weights("Ug", units, 2 * units),
        "Uc": _weights("Uc", units, units),
        "Cg": _weights("Cg", units, 2 * units),
        "Cc": _weights("Cc", units, units),
        "Q": _weights("Q", units, units),
        "v": _weights("v", units),
    }

    def encode(inputs: Any, state: Any, gates_weights: Any, candidate_weights: Any) -> Any:
        gates = inputs[:, : 2 * units] + tensor.dot(state, gates_weights)
        return _gated_update(inputs[:, 2 * units :], gates, state, candidate_weights, units)

    def decode(inputs: Any, state: Any, annotations: Any, keys: Any, *others: Any) -> Any:
        state_to_gates, state_to_candidate, to_gates, to_candidate, query, energy = others
        match = tensor.tanh(keys + tensor.dot(state, query))
        attended = tensor.special.softmax(tensor.dot(match, energy), axis=0)
        context = (attended[:, :, None] * annotations).sum(axis=0)
        gates = inputs[:, : 2 * units] + tensor.dot(state, state_to_gates)
        gates = gates + tensor.dot(context, to_gates)
        inputs = inputs[:, 2 * units :] + tensor.dot(context, to_candidate)
        return _gated_update(inputs, gates, state, state_to_candidate, units), context

    start = tensor.zeros((source.shape[1], units))
    annotations, _ = aesara.scan(
        encode,
        sequences=encoder_fork.apply(tables[0].apply(source)),
        outputs_info=start,
        non_sequences=[weights["encoder_Ug"], weights["encoder_Uc"]],
    )
    (states, contexts), _ = aesara.scan(
        decode,
        sequences=decoder_fork.apply(tables[1].apply(target[:-1])),
        outputs_info=[start, None],
        non_sequences=[
            annotations,
            keys_of.apply(annotations),
            *(weights[name] for name in ("Ug", "Uc", "Cg", "Cc", "Q", "v")),
        ],
    )
    scores = readout.apply(tensor.concatenate([states, contexts], axis=2))
    cost = NDimensionalSoftmax().categorical_cross_entropy(target[1:], scores, extra_ndim=1).mean()
    parameters = {
        "source_table": tables[0].W,
        "target_table": tables[1].W,
        "encoder_W": encoder_fork.W,
        "encoder_b": encoder_fork.b,
        "W": decoder_fork.W,
        "b": decoder_fork.b,
        "K": keys_of.W,
        "k": keys_of.b,
        "Wo": readout.W,
        "bo": readout.b,
        **weights,
    }
    batch = [
        _integers(words, sizes["source"], sizes["batch"]),
        _integers(words, sizes["target"] + 1, sizes["batch"]),
    ]
    return Graph([source, target], cost, parameters, batch)


def conv(sizes: Sizes) -> Graph:
    """Make a network of two convolutions, each with rectifiers and pooled, and a linear layer.

    Parameters
    ----------
    sizes : dict
        ``batch``, ``length`` of an image's side, ``first`` and ``second`` for the filters, and
        ``classes``.

    Returns
    -------
    Graph
    """
    features, targets = tensor.tensor4("features"), tensor.lvector("targets")
    channels, parameters, hidden = 3, {}, features
    for number, filters in enumerate((sizes["first"], sizes["second"])):
        kernel = _weights(f"K{number}", filters, channels, 3, 3)
        bias = shared_floatx(numpy.zeros(filters), name=f"c{number}", shape=(filters,))
        parameters |= {f"K{number}": kernel, f"c{number}": bias}
        hidden = conv2d(hidden, kernel, border_mode="half", filter_flip=False)
        hidden = tensor.maximum(hidden + bias[None, :, None, None], 0)
        hidden = pool_2d(hidden, (2, 2), ignore_border=True)
        channels = filters
    length = sizes["length"] // 4
    readout = _linear("readout", channels * length * length, sizes["classes"])
    scores = readout.apply(hidden.flatten(2))
    return Graph(
        [features, targets],
        _cross_entropy(targets, scores),
        {**parameters, "W": readout.W, "b": readout.b},
        [
            _features(sizes["batch"], 3, sizes["length"], sizes["length"]),
            _integers(sizes["classes"], sizes["batch"]),
        ],
    )


def _normalize(x: Any, scale: Any) -> Any:
    """Normalize the last axis and scale it."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / tensor.sqrt(variance + 1e-5) * scale


def _attend(x: Any, projections: Linear, output: Linear, heads: int) -> Any:
    """Attend from each step to those up to it, with several heads."""
    batch, steps, width = x.shape[0], x.shape[1], projections.input_dim
    parts = projections.apply(x).reshape((batch, steps, 3, heads, width // heads))
    query, key, value = (
        parts[:, :, number].dimshuffle(0, 2, 1, 3).reshape((batch * heads, steps, width // heads))
        for number in range(3)
    )
    scores = tensor.batched_dot(query, key.dimshuffle(0, 2, 1))
    scores = scores * numpy.float32((width // heads) ** -0.5)
    places = tensor.arange(steps)
    scores = tensor.switch(places[:, None] >= places, scores, -1e9)
    attended = tensor.batched_dot(tensor.special.softmax(scores, axis=-1), value)
    attended = attended.reshape((batch, heads, steps, width // heads)).dimshuffle(0, 2, 1, 3)
    return output.apply(attended.reshape((batch, steps, width)))


def transformer(sizes: Sizes) -> Graph:
    """Make a language model of two blocks of self-attention.

    Parameters
    ----------
    sizes : dict
        ``batch``, ``steps``, ``width``, ``heads``, ``words``.

    Returns
    -------
    Graph
    """
    words, targets = tensor.lmatrix("words"), tensor.lmatrix("targets")
    width = sizes["width"]
    table = _table("table", sizes["words"], width)
    readout = _linear("readout", width, sizes["words"])
    places = _weights("places", sizes["steps"], width)
    parameters = {"table": table.W, "places": places, "Wo": readout.W, "bo": readout.b}
    hidden = table.apply(words) + places
    for block in range(2):
        scales = [
            shared_floatx(numpy.ones(width), name=f"scale{number}", shape=(width,))
            for number in range(2)
        ]
        bricks = {
            name: _linear(f"{name}{block}", *dims)
            for name, dims in {
                "P": (width, 3 * width),
                "A": (width, width),
                "F": (width, 4 * width),
                "G": (4 * width, width),
            }.items()
        }
        for name, brick in bricks.items():
            parameters |= {f"{name}{block}": brick.W, f"{name.lower()}{block}": brick.b}
        parameters |= {f"scale{block}{number}": scale for number, scale in enumerate(scales)}
        normal = _normalize(hidden, scales[0])
        hidden = hidden + _attend(normal, bricks["P"], bricks["A"], sizes["heads"])
        inner = tensor.maximum(bricks["F"].apply(_normalize(hidden, scales[1])), 0)
        hidden = hidden + bricks["G"].apply(inner)
    scores = readout.apply(_normalize(hidden, 1))
    cost = NDimensionalSoftmax().categorical_cross_entropy(targets, scores, extra_ndim=1).mean()
    batch = [_integers(sizes["words"], sizes["batch"], sizes["steps"]) for _ in range(2)]
    return Graph([words, targets], cost, parameters, batch)


def embedding(sizes: Sizes) -> Graph:
    """Make a model that predicts a word from the mean of the vectors of others.

    Parameters
    ----------
    sizes : dict
        ``batch``, ``context``, ``words`` and ``width``.

    Returns
    -------
    Graph
    """
    words, targets = tensor.lmatrix("words"), tensor.lvector("targets")
    table = _table("table", sizes["words"], sizes["width"])
    readout = _linear("readout", sizes["width"], sizes["words"])
    scores = readout.apply(table.apply(words).mean(axis=1))
    return Graph(
        [words, targets],
        _cross_entropy(targets, scores),
        {"table": table.W, "W": readout.W, "b": readout.b},
        [
            _integers(sizes["words"], sizes["batch"], sizes["context"]),
            _integers(sizes["words"], sizes["batch"]),
        ],
    )


def overhead(sizes: Sizes) -> Graph:
    """Make a cost of many small parameters, whose step is nearly nothing but its call.

    Parameters
    ----------
    sizes : dict
        ``parameters``, how many.

    Returns
    -------
    Graph
    """
    x = tensor.matrix("x")
    parameters = {
        f"W{number}": _weights(f"W{number}", 8, 8) for number in range(sizes["parameters"])
    }
    cost = sum((x * parameter).sum() for parameter in parameters.values())
    return Graph([x], cost, parameters, [_features(8, 8)])


MODELS = [
    Model(
        "mlp",
        "MLP 784-500-500-10, batch 128",
        mlp,
        {"batch": 128, "features": 784, "hidden": 500, "classes": 10},
        {"batch": 8, "features": 12, "hidden": 6, "classes": 4},
    ),
    Model(
        "lstm",
        "LSTM 128-256, 50 steps, batch 32",
        lstm,
        {"steps": 50, "batch": 32, "features": 128, "units": 256, "classes": 10},
        {"steps": 5, "batch": 3, "features": 4, "units": 6, "classes": 4},
    ),
    Model(
        "attention",
        "GRU, decoder with attention, 20 + 20 steps",
        attention,
        {"source": 20, "target": 20, "batch": 32, "units": 256, "embedding": 128, "words": 1000},
        {"source": 4, "target": 3, "batch": 2, "units": 6, "embedding": 5, "words": 7},
    ),
    Model(
        "conv",
        "conv net on 32 × 32 × 3, batch 64",
        conv,
        {"batch": 64, "length": 32, "first": 32, "second": 64, "classes": 10},
        {"batch": 2, "length": 8, "first": 3, "second": 4, "classes": 4},
    ),
    Model(
        "transformer",
        "transformer, 2 layers of width 256, batch 8 × 64",
        transformer,
        {"batch": 8, "steps": 64, "width": 256, "heads": 4, "words": 1000},
        {"batch": 2, "steps": 5, "width": 8, "heads": 2, "words": 7},
    ),
    Model(
        "embedding",
        "embedding 50,000 × 256, softmax over 50,000",
        embedding,
        {"batch": 64, "context": 8, "words": 50_000, "width": 256},
        {"batch": 3, "context": 2, "words": 9, "width": 4},
    ),
]

#: What a call costs beside the computation.
OVERHEADS = [
    Model(f"overhead{number}", f"{number} parameters of 8 × 8", overhead, sizes, sizes)
    for number in (10, 100)
    for sizes in [{"parameters": number}]
]
