"""The arithmetic of the models written in PyTorch, eager and compiled.

Parameters have the names and shapes of the models. Where PyTorch has a kernel for the whole, as
for the LSTM, it is used.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from typing import Any

import numpy
import torch
from torch.nn import functional

LEARNING_RATE = 0.1

Parameters = Mapping[str, torch.Tensor]
Sizes = Mapping[str, int]


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.linear(x, weight.t(), bias)


def _cross_entropy(targets: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(scores.flatten(0, -2), targets.flatten())


def mlp(p: Parameters, sizes: Sizes, features: torch.Tensor, targets: torch.Tensor) -> Any:
    """Compute the cost of the perceptron; see `models.mlp`."""
    hidden = features
    for number in range(2):
        hidden = functional.relu(_linear(hidden, p[f"W{number}"], p[f"b{number}"]))
    return _cross_entropy(targets, _linear(hidden, p["W2"], p["b2"]))


def lstm(p: Parameters, sizes: Sizes, features: torch.Tensor, targets: torch.Tensor) -> Any:
    """Compute the cost of the LSTM with PyTorch's own; see `models.lstm`."""
    start = features.new_zeros(1, features.shape[1], sizes["units"])
    # Its kernel adds two biases, and has its weights transposed.
    weights = [p["W"].t(), p["U"].t(), p["b"], torch.zeros_like(p["b"])]
    state = torch.lstm(features, (start, start), weights, True, 1, 0.0, True, False, False)[1][0]
    return _cross_entropy(targets, _linear(state, p["Wo"], p["bo"]))


def _gated_update(inputs: Any, gates: Any, state: Any, recurrent: Any) -> torch.Tensor:
    update, reset = torch.sigmoid(gates).chunk(2, dim=-1)
    candidate = torch.tanh(torch.addmm(inputs, reset * state, recurrent))
    return update * candidate + (1 - update) * state


def attention(p: Parameters, sizes: Sizes, source: torch.Tensor, target: torch.Tensor) -> Any:
    """Compute the cost of the decoder with attention; see `models.attention`."""
    units = sizes["units"]
    start = p["K"].new_zeros(source.shape[1], units)
    inputs = _linear(p["source_table"][source], p["encoder_W"], p["encoder_b"])
    state, states = start, []
    for step in inputs.unbind():
        gates = torch.addmm(step[:, : 2 * units], state, p["encoder_Ug"])
        state = _gated_update(step[:, 2 * units :], gates, state, p["encoder_Uc"])
        states.append(state)
    annotations = torch.stack(states)
    keys = _linear(annotations, p["K"], p["k"])
    inputs = _linear(p["target_table"][target[:-1]], p["W"], p["b"])
    state, outputs = start, []
    for step in inputs.unbind():
        energies = torch.tanh(keys + state @ p["Q"]) @ p["v"]
        attended = torch.softmax(energies, dim=0)
        context = (attended[:, :, None] * annotations).sum(dim=0)
        gates = torch.addmm(step[:, : 2 * units], state, p["Ug"])
        gates = torch.addmm(gates, context, p["Cg"])
        to_candidate = torch.addmm(step[:, 2 * units :], context, p["Cc"])
        state = _gated_update(to_candidate, gates, state, p["Uc"])
        outputs.append(torch.cat([state, context], dim=-1))
    return _cross_entropy(target[1:], _linear(torch.stack(outputs), p["Wo"], p["bo"]))


def conv(p: Parameters, sizes: Sizes, features: torch.Tensor, targets: torch.Tensor) -> Any:
    """Compute the cost of the network of convolutions; see `models.conv`."""
    hidden = features
    for number in range(2):
        hidden = functional.conv2d(hidden, p[f"K{number}"], p[f"c{number}"], padding=1)
        hidden = functional.max_pool2d(functional.relu(hidden), 2)
    return _cross_entropy(targets, _linear(hidden.flatten(1), p["W"], p["b"]))


def _attend(parts: torch.Tensor, heads: int) -> torch.Tensor:
    batch, steps, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
    parts = parts.reshape(batch, steps, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    attended = functional.scaled_dot_product_attention(*parts.unbind(), is_causal=True)
    return attended.transpose(1, 2).reshape(batch, steps, width)


def transformer(p: Parameters, sizes: Sizes, words: torch.Tensor, targets: torch.Tensor) -> Any:
    """Compute the cost of the transformer; see `models.transformer`."""
    width = (sizes["width"],)
    hidden = p["table"][words] + p["places"]
    for k in range(2):
        normal = functional.layer_norm(hidden, width, p[f"scale{k}0"])
        attended = _attend(_linear(normal, p[f"P{k}"], p[f"p{k}"]), sizes["heads"])
        hidden = hidden + _linear(attended, p[f"A{k}"], p[f"a{k}"])
        normal = functional.layer_norm(hidden, width, p[f"scale{k}1"])
        inner = functional.relu(_linear(normal, p[f"F{k}"], p[f"f{k}"]))
        hidden = hidden + _linear(inner, p[f"G{k}"], p[f"g{k}"])
    return _cross_entropy(targets, _linear(functional.layer_norm(hidden, width), p["Wo"], p["bo"]))


def embedding(p: Parameters, sizes: Sizes, words: torch.Tensor, targets: torch.Tensor) -> Any:
    """Compute the cost of the model with the large table; see `models.embedding`."""
    vectors = functional.embedding(words, p["table"]).mean(dim=1)
    return _cross_entropy(targets, _linear(vectors, p["W"], p["b"]))


def overhead(p: Parameters, sizes: Sizes, x: torch.Tensor) -> Any:
    """Compute the cost of a model of many small parameters; see `models.overhead`."""
    return sum((x * parameter).sum() for parameter in p.values())


COSTS = {
    "mlp": mlp,
    "lstm": lstm,
    "attention": attention,
    "conv": conv,
    "transformer": transformer,
    "embedding": embedding,
    "overhead10": overhead,
    "overhead100": overhead,
}


class Step:
    """A training step.

    Parameters
    ----------
    name : str
        Of the model, with ``" compiled"`` for one that ``torch.compile`` compiles.
    sizes : dict
        Of the model.
    parameters : dict of str to array
        First values.
    batch : list of array
        For which it is compiled.
    device : str
        Such as ``'cpu'``.
    """

    def __init__(
        self,
        name: str,
        sizes: Sizes,
        parameters: Mapping[str, numpy.ndarray],
        batch: list[numpy.ndarray],
        device: str,
    ):
        name, _, is_compiled = name.partition(" ")
        self._device, self._sizes = device, dict(sizes)
        self._parameters = {
            name: torch.tensor(value, device=device, requires_grad=True)
            for name, value in parameters.items()
        }
        self._optimizer = torch.optim.SGD(self._parameters.values(), lr=LEARNING_RATE)
        self._cost = COSTS[name]
        start = time.perf_counter()
        if is_compiled:
            self._cost = torch.compile(self._cost, dynamic=False)
            self._gradients(batch)
        self._build = {"compile": time.perf_counter() - start}

    def _gradients(self, batch: list[numpy.ndarray]) -> torch.Tensor:
        arrays = [torch.from_numpy(array).to(self._device) for array in batch]
        self._optimizer.zero_grad()
        cost = self._cost(self._parameters, self._sizes, *arrays)
        cost.backward()
        return cost

    def __call__(self, batch: list[numpy.ndarray]) -> float:
        """Train on a batch and return the cost before that."""
        cost = self._gradients(batch)
        self._optimizer.step()
        return cost.item()

    def figures(self) -> dict[str, Any]:
        """Give what is measured beside the time of a step.

        Returns
        -------
        dict
            ``build``, seconds by stage; ``peak``, bytes that the process took at most;
            ``version``.
        """
        return {
            "build": self._build,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "version": f"PyTorch {torch.__version__.partition('+')[0]}",
        }
