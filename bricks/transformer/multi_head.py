"""Attention of several heads, over all steps at once or one step at a time."""

import functools
import math
from typing import Any

import numpy
from aesara import config, tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import lengths_of
from bricks.attention.softmax import softmax_where
from bricks.base import application, lazy
from bricks.checks import check_sizes, describe
from bricks.interfaces import Initializable, check_last_dim
from bricks.simple import Linear
from bricks.transformer.positions import AttentionPositions, check_sequences

__all__ = ["MultiHeadAttention"]


class MultiHeadAttention(Initializable):
    """Scaled dot-product attention of several heads.

    Sequences have the axes (time, batch, feature) and masks (time, batch), as for recurrent
    bricks. The children ``query``, ``key``, ``value`` and ``output`` are linear.

    Parameters
    ----------
    num_heads : int
        Heads.
    query_dim : int
        Features of the queries. Needed for allocation.
    key_dim : int, optional
        Features of the keys, and of the values unless `value_dim` is given; those of the queries
        by default.
    value_dim : int, optional
        Features of the values.
    head_dim : int, optional
        Features of a head; those of the queries divided by `num_heads` by default.
    output_dim : int, optional
        Features of the output; those of the queries by default.
    causal : bool
        Whether a query sees only keys that do not stand after it.
    positions : AttentionPositions, optional
        `RotaryPositions` or `RelativePositions`.
    **kwargs
        For `Initializable`. `use_bias` reaches the children only if it is given.

    Notes
    -----
    Nothing here knows of dropout: `bricks.graph.apply_dropout` replaces variables of the graph.
    The weights are ``VariableFilter(roles=[OUTPUT],
    applications=[MultiHeadAttention.compute_weights])``, what a head sees is the output of
    ``compute_averages``, the output that of ``apply``.

    References
    ----------
    A. Vaswani et al., *Attention Is All You Need*, NIPS 2017, section 3.2.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.transformer import MultiHeadAttention
    >>> attention = MultiHeadAttention(num_heads=4, query_dim=32, causal=True)
    >>> x, mask = tensor.tensor3("x"), tensor.matrix("mask")   # axes: time, batch, feature
    >>> y = attention.apply(x, key_mask=mask)                  # of the shape of x
    >>> y, weights = attention.attend(x, key_mask=mask)        # weights: batch, head, query, key

    Sequences look at others when these are given as the keys:

    >>> across = MultiHeadAttention(num_heads=4, query_dim=32, key_dim=16, name="across")
    >>> y = across.apply(x, tensor.tensor3("source"), key_mask=tensor.matrix("source_mask"))
    """

    @lazy(allocation=["query_dim"])
    def __init__(
        self,
        num_heads: int,
        query_dim: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        head_dim: int | None = None,
        output_dim: int | None = None,
        causal: bool = False,
        positions: AttentionPositions | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.head_dim = head_dim
        self.output_dim = output_dim
        self.causal = causal
        self.positions: Any = positions
        self.query, self.key, self.value, self.output = (
            Linear(name=name) for name in ("query", "key", "value", "output")
        )
        own = [self.query, self.key, self.value, self.output]
        self.children = [*self.children, *own, *([positions] if positions else [])]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        check_sizes(self, num_heads=self.num_heads, query_dim=self.query_dim)
        if not self.head_dim and self.query_dim % self.num_heads:
            raise ValueError(
                f"{self.path} cannot be allocated: `query_dim` must be a multiple of `num_heads` "
                f"unless `head_dim` is given; got query_dim={self.query_dim}, "
                f"num_heads={self.num_heads}."
            )
        heads_dim = self.num_heads * self._head_dim
        self.query.input_dim, self.query.output_dim = self.query_dim, heads_dim
        self.key.input_dim, self.key.output_dim = self.get_dim("key"), heads_dim
        self.value.input_dim, self.value.output_dim = self.get_dim("value"), heads_dim
        self.output.input_dim, self.output.output_dim = heads_dim, self.get_dim("output")
        if "use_bias" in self.__dict__:
            for child in (self.query, self.key, self.value, self.output):
                child.use_bias = self.use_bias
        if hasattr(self.positions, "num_heads"):
            self.positions.num_heads = self.num_heads

    @property
    def _head_dim(self) -> Any:
        return self.head_dim or self.query_dim // self.num_heads

    @application(inputs=["query", "key", "value", "key_mask", "bias"], outputs=["output"])
    def apply(
        self,
        query: Variable,
        key: Any = None,
        value: Any = None,
        key_mask: Any = None,
        bias: Any = None,
    ) -> Any:
        """Let each query look at the keys, and average the values.

        Parameters
        ----------
        query : Variable of shape (query time, batch, query_dim)
        key : Variable of shape (key time, batch, key_dim), optional
            The queries by default.
        value : Variable of shape (key time, batch, value_dim), optional
            The keys by default.
        key_mask : Variable of shape (key time, batch), optional
            0 for padding, which no query sees.
        bias : Variable, optional
            Energies to add, of shape (query time, key time) or (batch, head, query time, key
            time); -inf where a query must not see a key. Lengths of 1 that are known stand for
            all. See `bricks.transformer.masks`.

        Returns
        -------
        Variable of shape (query time, batch, output_dim)
            A query that sees no key gets nothing but the bias of the child ``output``.
        """
        return self._attend("apply", query, key, value, key_mask, bias)[0]

    @application(
        inputs=["query", "key", "value", "key_mask", "bias"], outputs=["output", "weights"]
    )
    def attend(
        self,
        query: Variable,
        key: Any = None,
        value: Any = None,
        key_mask: Any = None,
        bias: Any = None,
    ) -> Any:
        """Do what `apply` does, and return the weights too.

        Parameters
        ----------
        query : Variable of shape (query time, batch, query_dim)
        key : Variable of shape (key time, batch, key_dim), optional
        value : Variable of shape (key time, batch, value_dim), optional
        key_mask : Variable of shape (key time, batch), optional
        bias : Variable, optional
            See `apply`.

        Returns
        -------
        output : Variable of shape (query time, batch, output_dim)
        weights : Variable of shape (batch, head, query time, key time)
            With the sum 1 over the keys; all 0 for a query that sees none.
        """
        return self._attend("attend", query, key, value, key_mask, bias)

    def _attend(self, name: str, query: Any, key: Any, value: Any, mask: Any, bias: Any) -> Any:
        if key is None and value is not None:
            raise ValueError(f"{self.path}.{name}: `value` needs its `key`.")
        key = query if key is None else key
        value = key if value is None else value
        check_sequences(self, name, "query", query, self.query_dim)
        check_sequences(self, name, "key", key, self.get_dim("key"))
        check_sequences(self, name, "value", value, self.get_dim("value"))
        keys, values = self.preprocess(key, value)
        return self._look(name, query, keys, values, mask, bias)

    @application(inputs=["key", "value"], outputs=["keys", "values"])
    def preprocess(self, key: Variable, value: Any = None) -> Any:
        """Do what does not depend on the queries, and so is done once for all steps.

        Parameters
        ----------
        key : Variable of shape (key time, batch, key_dim)
        value : Variable of shape (key time, batch, value_dim), optional
            The keys by default.

        Returns
        -------
        keys, values : Variable of shape (key time, batch, num_heads × head_dim)
            For `apply_preprocessed`.
        """
        keys = self._rotate(self.key.apply(key), tensor.arange(lengths_of(key)[0]))
        return [keys, self.value.apply(key if value is None else value)]

    @application(inputs=["query", "keys", "values", "key_mask", "bias"], outputs=["output"])
    def apply_preprocessed(
        self,
        query: Variable,
        keys: Variable,
        values: Variable,
        key_mask: Any = None,
        bias: Any = None,
    ) -> Any:
        """Do what `apply` does, with keys and values that `preprocess` made.

        Parameters
        ----------
        query : Variable of shape (query time, batch, query_dim)
        keys, values : Variable of shape (key time, batch, num_heads × head_dim)
        key_mask : Variable of shape (key time, batch), optional
        bias : Variable, optional
            See `apply`.

        Returns
        -------
        Variable of shape (query time, batch, output_dim)
        """
        name = "apply_preprocessed"
        check_sequences(self, name, "query", query, self.query_dim)
        check_sequences(self, name, "keys", keys, self.get_dim("keys"))
        check_sequences(self, name, "values", values, self.get_dim("values"))
        return self._look(name, query, keys, values, key_mask, bias)[0]

    @application(
        inputs=["query", "keys", "values", "position"], outputs=["output", "keys", "values"]
    )
    def step(self, query: Variable, keys: Variable, values: Variable, position: Variable) -> Any:
        """Let one more step of sequences look at itself and at the steps before it.

        Step by step, from ``initial_states`` and ``position`` 0, the outputs are those of a causal
        attention's `apply`.

        Parameters
        ----------
        query : Variable of shape (batch, query_dim)
        keys, values : Variable of shape (batch, max_length, num_heads × head_dim)
            Those of the steps before.
        position : Variable of integers of shape (batch,)
            How many steps there were before, in each example.

        Returns
        -------
        output : Variable of shape (batch, output_dim)
            NaN where `position` is not below the length of `keys`: there was no place left.
        keys, values : Variable of shape (batch, max_length, num_heads × head_dim)
            With those of this step.
        """
        self._check_step(query, keys, values, position)
        length, here = lengths_of(keys)[1], position[None, :]
        places = tensor.arange(length)
        is_new = tensor.eq(places[None, :], position[:, None])[:, :, None]
        new_key = self._rotate(self.key.apply(query)[None], here)[0]
        keys = tensor.switch(is_new, new_key[:, None, :], keys)
        values = tensor.switch(is_new, self.value.apply(query)[:, None, :], values)
        queries = self._rotate(self.query.apply(query)[None], here)
        is_before = tensor.le(places[None, :], position[:, None])
        weights = self.compute_weights(
            self._heads(queries, (1, 2, 0, 3)),
            self._heads(keys, (0, 2, 1, 3)),
            is_before[:, None, None, :],
            self._position_bias(here, places),
        )
        averages = self.compute_averages(weights, self._heads(values, (0, 2, 1, 3)))
        output = self.output.apply(averages[0])
        is_full = tensor.ge(position, length)[:, None]
        return [tensor.switch(is_full, _nan(output), output), keys, values]

    @application(outputs=["keys", "values"])
    def initial_states(self, batch_size: Any, max_length: Any) -> Any:
        """States of `step` before the first one: zeros.

        Parameters
        ----------
        batch_size : int or Variable
            Examples in the batch.
        max_length : int or Variable
            How many steps there will be at most.

        Returns
        -------
        keys, values : Variable of shape (batch, max_length, num_heads × head_dim)
        """
        shape = (batch_size, max_length, self.get_dim("keys"))
        return [tensor.zeros(shape, config.floatX), tensor.zeros(shape, config.floatX)]

    @application(inputs=["queries", "keys", "allowed", "bias"], outputs=["weights"])
    def compute_weights(
        self, queries: Variable, keys: Variable, allowed: Any = None, bias: Any = None
    ) -> Any:
        """Compute the weights from the queries and keys of each head.

        Parameters
        ----------
        queries : Variable of shape (batch, head, query time, head_dim)
        keys : Variable of shape (batch, head, key time, head_dim)
        allowed : Variable of truth values, optional
            Where weights may be, broadcastable to (batch, head, query time, key time).
        bias : Variable, optional
            Finite energies to add, broadcastable to the same.

        Returns
        -------
        Variable of shape (batch, head, query time, key time)
        """
        scaled = queries * numpy.asarray(1 / math.sqrt(self._head_dim), queries.dtype)
        energies = _multiply(scaled, keys.dimshuffle(0, 1, 3, 2))
        return softmax_where(energies if bias is None else energies + bias, allowed)

    @application(inputs=["weights", "values"], outputs=["averages"])
    def compute_averages(self, weights: Variable, values: Variable) -> Any:
        """Average the values of each head.

        Parameters
        ----------
        weights : Variable of shape (batch, head, query time, key time)
        values : Variable of shape (batch, head, key time, head_dim)

        Returns
        -------
        Variable of shape (query time, batch, num_heads × head_dim)
            The heads side by side.
        """
        averages = _multiply(weights, values).dimshuffle(2, 0, 1, 3)
        time, batch, _, _ = lengths_of(averages)
        return averages.reshape((time, batch, self.get_dim("values")), ndim=3)

    def get_dim(self, name: str) -> Any:
        """Features of an input, an output or a state; see `Brick.get_dim`."""
        if name in ("key_mask", "bias", "position", "weights"):
            return 0
        if name in ("keys", "values"):
            return self.num_heads * self._head_dim
        own = {
            "query": self.query_dim,
            "key": self.key_dim or self.query_dim,
            "value": self.value_dim or self.key_dim or self.query_dim,
            "output": self.output_dim or self.query_dim,
        }
        return own[name] if name in own else super().get_dim(name)

    def _look(self, name: str, query: Any, keys: Any, values: Any, mask: Any, bias: Any) -> Any:
        """Return the output and the weights."""
        times = [tensor.arange(lengths_of(sequence)[0]) for sequence in (query, keys)]
        queries = self._rotate(self.query.apply(query), times[0])
        allowed, bias = self._restrictions(name, times, mask, bias)
        weights = self.compute_weights(
            self._heads(queries, (1, 2, 0, 3)), self._heads(keys, (1, 2, 0, 3)), allowed, bias
        )
        averages = self.compute_averages(weights, self._heads(values, (1, 2, 0, 3)))
        return [self.output.apply(averages), weights]

    def _restrictions(self, name: str, times: Any, mask: Any, bias: Any) -> Any:
        """Return where weights may be, and finite energies to add; each may be None."""
        allowed = []
        if self.causal:
            allowed.append(tensor.ge(times[0][:, None], times[1][None, :])[None, None])
        if mask is not None:
            self._check_axes(name, "key_mask", mask, "(key time, batch)", 2)
            allowed.append(tensor.neq(mask, 0).dimshuffle(1, "x", "x", 0))
        biases = [self._position_bias(*times)]
        if bias is not None:
            words = "(query time, key time) or (batch, head, query time, key time)"
            self._check_axes(name, "bias", bias, words, 2, 4)
            bias = bias[None, None] if bias.ndim == 2 else bias
            # NaN is no mask: it comes out again.
            is_allowed = tensor.neq(bias, -numpy.inf)
            allowed.append(is_allowed)
            biases.append(tensor.switch(is_allowed, bias, 0).astype(config.floatX))
        return _combine(tensor.and_, allowed), _combine(tensor.add, biases)

    def _position_bias(self, query_positions: Any, key_positions: Any) -> Any:
        """Return the energies that positions add, with all four axes, or None."""
        if self.positions is None:
            return None
        bias = self.positions.bias(query_positions, key_positions, self.num_heads)
        return bias[None] if bias is not None and bias.ndim == 3 else bias

    def _rotate(self, sequence: Any, positions: Any) -> Any:
        """Turn the heads of a sequence after their positions, if these are told in this way."""
        if self.positions is None:
            return sequence
        rotated = self.positions.rotate(self._heads(sequence), positions)
        return rotated.reshape(lengths_of(sequence), ndim=3)

    def _heads(self, sequence: Any, axes: Any = (0, 1, 2, 3)) -> Any:
        """Split the features of (first, second, feature) into heads, and reorder the axes."""
        first, second, _ = lengths_of(sequence)
        heads = sequence.reshape((first, second, self.num_heads, self._head_dim), ndim=4)
        return heads.dimshuffle(axes)

    def _check_step(self, query: Any, keys: Any, values: Any, position: Any) -> None:
        self._check_axes("step", "query", query, "(batch, feature)", 2)
        check_last_dim(self, query, self.query_dim, "query", "step")
        for name, variable in {"keys": keys, "values": values}.items():
            self._check_axes("step", name, variable, "(batch, max_length, feature)", 3)
            check_last_dim(self, variable, self.get_dim(name), name, "step")
        self._check_axes("step", "position", position, "(batch,)", 1)

    def _check_axes(
        self, application: str, name: str, variable: Any, words: str, *ndims: int
    ) -> None:
        if variable.ndim not in ndims:
            raise ValueError(
                f"{self.path}.{application}: `{name}` must have the axes {words}; got "
                f"{describe(variable)}."
            )


def _multiply(x: Any, y: Any) -> Any:
    """Multiply the matrices of each example and head."""
    batch, head, rows, inner = lengths_of(x)
    columns = lengths_of(y)[-1]
    product = tensor.batched_dot(
        x.reshape((batch * head, rows, inner), ndim=3),
        y.reshape((batch * head, inner, columns), ndim=3),
    )
    return product.reshape((batch, head, rows, columns), ndim=4)


def _combine(operation: Any, variables: Any) -> Any:
    """Combine those that are there, or return None."""
    present = [variable for variable in variables if variable is not None]
    return functools.reduce(operation, present) if present else None


def _nan(like: Any) -> numpy.ndarray:
    return numpy.asarray(numpy.nan, like.dtype)
