"""Random keys: the whole state of random numbers as ordinary arrays.

Each draw of a random stream has a key of its own: a shared variable of two ``uint32``
numbers, which every compiled function that uses the draw advances once per call. Keys are named,
saved, restored and kept on the device as parameters are. They are hashed from the seed, the name
of the stream and the number of the draw, so the draws of one stream do not depend on those of
another, nor on the order in which functions are compiled.

In the graph, :class:`GeneratorOfKey` makes of a key what Aesara's own random operations take, and
:class:`NextKey` advances it. XLA computes them with JAX's threefry generator; other backends
compute them with numpy's Philox, so their numbers are others, of the same distribution.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import aesara
import numpy
from aesara import tensor
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import Op
from aesara.tensor.random.type import random_generator_type

from bricks.config import config
from bricks.xla.storage import SharedArray, shared
from bricks.xla.variates import size_vector

__all__ = ["GeneratorOfKey", "KeyedStream", "NextKey", "make_key"]


class _Generator(numpy.random.Generator):
    """A generator whose copy has a state of its own, as Aesara needs; numpy 2 shares it."""

    def __copy__(self) -> numpy.random.Generator:
        return copy.deepcopy(self)


def _generator(key: numpy.ndarray, purpose: int) -> numpy.random.Generator:
    """Make a numpy generator from a key; different purposes give independent numbers."""
    words = (*(int(word) for word in key), purpose)
    return _Generator(numpy.random.Philox(numpy.random.SeedSequence(words)))


class _KeyOp(Op):
    """An operation whose operand is a key: two uint32 numbers."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        key = tensor.as_tensor_variable(*inputs)
        if key.type.dtype != "uint32" or key.type.ndim != 1:
            raise TypeError(f"{self}: a key must be a uint32 vector; got {key.type}.")
        return Apply(self, [key], [self._output_type(key)])

    def _output_type(self, key: Variable) -> Variable:
        raise NotImplementedError

    def grad(self, inputs: Sequence[Variable], gradients: Sequence[Variable]) -> list[Variable]:
        return [aesara.gradient.grad_undefined(self, 0, inputs[0], "A key is not a quantity.")]


class GeneratorOfKey(_KeyOp):
    """The random generator that a key stands for."""

    def _output_type(self, key: Variable) -> Variable:
        return random_generator_type()

    def perform(
        self, node: Apply, inputs: Sequence[Any], output_storage: list[list], params: Any = None
    ) -> None:
        output_storage[0][0] = _generator(inputs[0], purpose=0)


class NextKey(_KeyOp):
    """The key of the next call."""

    def _output_type(self, key: Variable) -> Variable:
        return key.type()

    def perform(
        self, node: Apply, inputs: Sequence[Any], output_storage: list[list], params: Any = None
    ) -> None:
        numbers = _generator(inputs[0], purpose=1).integers(0, 2**32, size=2, dtype=numpy.uint32)
        output_storage[0][0] = numbers

    def infer_shape(self, fgraph: Any, node: Apply, shapes: Sequence[tuple]) -> list[tuple]:
        """Give the shape of the next key, as Aesara asks for it: that of the key.

        Parameters
        ----------
        fgraph : aesara.graph.fg.FunctionGraph
            The graph of the node; not looked at.
        node : Apply
            The node; not looked at.
        shapes : sequence of tuple of scalar variables
            The shape of the key, ``(2,)``.

        Returns
        -------
        list of tuple of scalar variables
            The shape of the only output.
        """
        return [shapes[0]]


_generator_of_key: Callable[..., Any] = GeneratorOfKey()
_next_key: Callable[..., Any] = NextKey()


def make_key(seed: int, stream: str, draw: int) -> numpy.ndarray:
    """Hash what identifies a draw into its first key.

    Parameters
    ----------
    seed : int
    stream : str
        Name of the stream.
    draw : int
        Number of the draw in its stream.

    Returns
    -------
    uint32 array of shape (2,)
    """
    text = f"{seed}\0{stream}\0{draw}".encode()
    return numpy.frombuffer(hashlib.blake2b(text, digest_size=8).digest(), dtype="<u4").copy()


class KeyedStream:
    """A source of draws, each with its key.

    Parameters
    ----------
    seed : int, optional
        By default ``config.default_seed``.
    name : str, optional
        Two streams of one seed and different names are independent. Streams of the same seed and
        the same name give the same numbers.
    """

    def __init__(self, seed: int | None = None, name: str = "random"):
        self._seed = config.default_seed if seed is None else int(seed)
        self.name = name
        self.keys: list[SharedArray] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}(seed={self._seed}, name={self.name!r})"

    def seed(self, seed: int | None = None) -> None:
        """Start all draws of this stream anew.

        Parameters
        ----------
        seed : int, optional
            A new seed; by default the one that the stream has.
        """
        if seed is not None:
            self._seed = int(seed)
        for draw, key in enumerate(self.keys):
            key.set_value(make_key(self._seed, self.name, draw))

    def _next_generator(self) -> Variable:
        """Make the key of a new draw, and its generator."""
        draw = len(self.keys)
        key = shared(make_key(self._seed, self.name, draw), name=f"{self.name}.{draw}")
        key.tag.is_random_key = True
        key.default_update = _next_key(key)
        self.keys.append(key)
        return _generator_of_key(key)

    def _draw(self, operation: Callable[..., Any], *parameters: Any, size: Any) -> Any:
        """Draw with a key of its own."""
        size = size_vector(size)
        return operation(*parameters, size=size, rng=self._next_generator())
