"""Random numbers whose whole state is ordinary arrays.

Each draw of a :class:`RandomStream` has a key of its own: a shared variable of two ``uint32``
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
from aesara.tensor.random import basic as distributions
from aesara.tensor.random.type import random_generator_type

from bricks.config import config
from bricks.xla.storage import SharedArray, shared

__all__ = ["GeneratorOfKey", "NextKey", "RandomStream"]


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


class RandomStream:
    """A source of symbolic random variables, as Theano's ``MRG_RandomStreams`` was.

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
        return f"RandomStream(seed={self._seed}, name={self.name!r})"

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

    def _draw(self, distribution: Any, *parameters: Any, size: Any, dtype: str) -> Variable:
        return distribution(
            *parameters, size=_as_size(size), rng=self._next_generator(), dtype=dtype
        )

    def uniform(
        self, size: Any = None, low: Any = 0.0, high: Any = 1.0, dtype: str = "floatX"
    ) -> Variable:
        """Draw from the uniform distribution over ``[low, high)``.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the bounds.
        low, high : number or tensor
            The bounds. Gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        dtype = _float_dtype(dtype)
        low, high = _constant(low, dtype), _constant(high, dtype)
        size = _size_or_shape(size, low, high)
        unit = self._draw(distributions.UniformRV(dtype=dtype), 0.0, 1.0, size=size, dtype=dtype)
        return unit if (low, high) == (0.0, 1.0) else unit * (high - low) + low

    def normal(
        self, size: Any = None, avg: Any = 0.0, std: Any = 1.0, dtype: str = "floatX"
    ) -> Variable:
        """Draw from the normal distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the mean and the deviation.
        avg, std : number or tensor
            Mean and standard deviation. Gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        dtype = _float_dtype(dtype)
        avg, std = _constant(avg, dtype), _constant(std, dtype)
        size = _size_or_shape(size, avg, std)
        unit = self._draw(distributions.NormalRV(dtype=dtype), 0.0, 1.0, size=size, dtype=dtype)
        return unit if (avg, std) == (0.0, 1.0) else unit * std + avg

    def bernoulli(self, size: Any = None, p: Any = 0.5, dtype: str = "int64") -> Variable:
        """Draw ones with probability `p`, zeros otherwise.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of `p`.
        p : number or tensor
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        p = _constant(p, aesara.config.floatX)
        unit = self.uniform(_size_or_shape(size, p), dtype=aesara.config.floatX)
        return tensor.cast(tensor.lt(unit, p), dtype)

    def binomial(
        self, size: Any = None, n: Any = 1, p: Any = 0.5, dtype: str = "int64"
    ) -> Variable:
        """Draw how many of `n` trials succeed.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of `p`.
        n : int or tensor, optional
        p : number or tensor, optional
            Probability that a trial succeeds.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        if isinstance(n, int) and n == 1:
            return self.bernoulli(size, p, dtype)
        p = _constant(p, aesara.config.floatX)
        counts = self._draw(
            distributions.binomial, n, p, size=_size_or_shape(size, n, p), dtype="int64"
        )
        return tensor.cast(counts, dtype)

    def integers(self, size: Any = None, low: Any = 0, high: Any = 2) -> Variable:
        """Draw integers of ``[low, high)``, each as likely as the others.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the bounds.
        low, high : int or tensor
            The bounds; `high` is excluded.

        Returns
        -------
        int64 tensor variable of shape `size`
        """
        size = _size_or_shape(size, low, high)
        return self._draw(distributions.integers, low, high, size=size, dtype="int64")

    def random_integers(self, size: Any = None, low: Any = 0, high: Any = 1) -> Variable:
        """Draw integers of ``[low, high]``, as :meth:`integers` with `high` included.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the bounds.
        low, high : int or tensor
            The bounds; both can be drawn.

        Returns
        -------
        int64 tensor variable of shape `size`
        """
        return self.integers(size, low, high + 1)

    def categorical(self, size: Any = None, pvals: Any = None, dtype: str = "int64") -> Variable:
        """Draw places, each with its probability.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of `pvals` without its last axis.
        pvals : tensor of shape (..., category)
            Probabilities, which add up to 1.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        pvals = tensor.as_tensor_variable(pvals)
        places = self._draw(distributions.categorical, pvals, size=size, dtype="int64")
        return tensor.cast(places, dtype)

    def multinomial(
        self, size: Any = None, n: Any = 1, pvals: Any = None, dtype: str = "int64"
    ) -> Variable:
        """Draw how often each category comes up in `n` trials.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn, without the category axis; by default that of `pvals`.
        n : int, optional
        pvals : tensor of shape (..., category)
            Probabilities, which add up to 1.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape (..., category)
            One-hot rows if `n` is 1.
        """
        pvals = tensor.as_tensor_variable(pvals)
        if isinstance(n, int) and n == 1:
            places = self.categorical(size, pvals)
            categories = tensor.arange(pvals.shape[-1])
            return tensor.cast(tensor.eq(tensor.shape_padright(places), categories), dtype)
        counts = self._draw(distributions.multinomial, n, pvals, size=size, dtype="int64")
        return tensor.cast(counts, dtype)


def _float_dtype(dtype: str) -> str:
    return aesara.config.floatX if dtype == "floatX" else dtype


def _constant(value: Any, dtype: str) -> Any:
    """Give a tensor as it is, and a number or an array in a dtype that promotes nothing."""
    if isinstance(value, Variable):
        return value
    return float(value) if numpy.ndim(value) == 0 else numpy.asarray(value, dtype)


def _as_size(size: Any) -> Any:
    """Give a shape in the form that Aesara's random operations take."""
    return size if size is None or isinstance(size, Variable) else tuple(size)


def _size_or_shape(size: Any, *parameters: Any) -> Any:
    """Return the size that was asked for, else the shape of the parameters together."""
    if size is not None:
        return size
    tensors = [tensor.as_tensor_variable(parameter) for parameter in parameters]
    if all(parameter.ndim == 0 for parameter in tensors):
        return None
    return tensor.add(*tensors).shape if len(tensors) > 1 else tensors[0].shape
