"""Where a step stands in its sequence, told to bricks that would not know.

Positions are counted from 0 at the first step of the array, padding included; pad at the end.

Two kinds: :class:`SinusoidalPositions` and :class:`LearnedPositions` are added to the input of a
stack. :class:`RotaryPositions` and :class:`RelativePositions` act within each attention, and
depend on the distance of two steps only.
"""

import math
from abc import abstractmethod
from typing import Any

import numpy
from aesara import config, tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, lengths_of
from bricks.base import Brick, application, lazy
from bricks.checks import check_sizes, describe
from bricks.interfaces import Initializable, check_last_dim, draw_parameter
from bricks.lookup import LookupTable
from bricks.simple import allocate_weights

__all__ = [
    "AddedPositions",
    "AttentionPositions",
    "LearnedPositions",
    "RelativePositions",
    "RotaryPositions",
    "SinusoidalPositions",
]


class AddedPositions(Brick):
    """The base class of encodings of positions that are added to the input of a stack.

    Parameters
    ----------
    dim : int
        Features. Needed for allocation.
    **kwargs
        For `Brick`.
    """

    @lazy(allocation=["dim"])
    def __init__(self, dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dim = dim

    @abstractmethod
    @application(inputs=["positions"], outputs=["encodings"])
    def encode(self, positions: Variable) -> Variable:
        """Encode positions as vectors.

        Parameters
        ----------
        positions : Variable of integers of shape (...)

        Returns
        -------
        Variable of shape (..., dim)
        """

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Any:
        """Add the encodings of 0, 1, … to the steps of sequences.

        Parameters
        ----------
        input_ : Variable of shape (time, batch, dim)

        Returns
        -------
        Variable of shape (time, batch, dim)
        """
        check_sequences(self, "apply", "input_", input_, self.dim)
        encodings = self.encode(tensor.arange(lengths_of(input_)[0]))
        return as_float(input_) + encodings[:, None, :]

    @application(inputs=["input_", "position"], outputs=["output"])
    def step(self, input_: Variable, position: Variable) -> Any:
        """Add the encodings of given positions to one step of sequences.

        Parameters
        ----------
        input_ : Variable of shape (batch, dim)
        position : Variable of integers of shape (batch,)

        Returns
        -------
        Variable of shape (batch, dim)
        """
        return as_float(input_) + self.encode(position)

    def get_dim(self, name: str) -> Any:
        """`dim` for ``'input_'`` and outputs, 0 for positions; see `Brick.get_dim`."""
        if name in ("input_", "output", "encodings"):
            return self.dim
        return 0 if name in ("position", "positions") else super().get_dim(name)


class SinusoidalPositions(AddedPositions):
    """Sines and cosines of geometrically spaced wavelengths, without parameters.

    Feature ``2 i`` of position ``p`` is ``sin(p / longest ** (2 i / dim))``, feature ``2 i + 1``
    the cosine.

    Parameters
    ----------
    dim : int
        Features. Needed for allocation.
    longest : float
        The longest wavelength, divided by 2 π.
    **kwargs
        For `Brick`.

    References
    ----------
    A. Vaswani et al., *Attention Is All You Need*, NIPS 2017, section 3.5.
    """

    @lazy(allocation=["dim"])
    def __init__(self, dim: int, longest: float = 10000.0, **kwargs: Any) -> None:
        super().__init__(dim, **kwargs)
        self.longest = longest

    def _allocate(self) -> None:
        check_sizes(self, dim=self.dim)

    @application(inputs=["positions"], outputs=["encodings"])
    def encode(self, positions: Variable) -> Any:
        """Encode positions, of any shape, as vectors; see `AddedPositions.encode`."""
        features = numpy.arange(self.dim)
        rates = self.longest ** (-(features // 2 * 2) / self.dim)
        # A sine shifted by a quarter of a turn is a cosine.
        shifts = features % 2 * math.pi / 2
        angles = tensor.shape_padright(as_float(positions)) * rates.astype(config.floatX)
        return tensor.sin(angles + shifts.astype(config.floatX))


class LearnedPositions(AddedPositions, Initializable):
    """A vector for each position, learned as the table of the child ``table``.

    Parameters
    ----------
    length : int
        How many positions there are. At others the output is NaN, as `LookupTable` gives it.
    dim : int
        Features. Needed for allocation.
    **kwargs
        For `Initializable`; there are no biases.
    """

    has_biases = False

    @lazy(allocation=["dim"])
    def __init__(self, length: int, dim: int, **kwargs: Any) -> None:
        super().__init__(dim, **kwargs)
        self.length = length
        self.table = LookupTable(length=length, name="table")
        self.children = [*self.children, self.table]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        self.table.length, self.table.dim = self.length, self.dim

    @application(inputs=["positions"], outputs=["encodings"])
    def encode(self, positions: Variable) -> Variable:
        """Look the vectors of positions up; see `AddedPositions.encode`."""
        return self.table.apply(positions)


class AttentionPositions(Brick):
    """The base class of what tells an attention about the distances of steps.

    Subclasses override one of the two methods.
    """

    def rotate(self, heads: Any, positions: Any) -> Any:
        """Change queries or keys after their positions.

        Parameters
        ----------
        heads : Variable of shape (time, batch, head, head_dim)
            Queries or keys.
        positions : Variable of integers of shape (time,) or (time, batch)
            Where they stand.

        Returns
        -------
        Variable of shape (time, batch, head, head_dim)
            The same by default.
        """
        return heads

    def bias(self, query_positions: Any, key_positions: Any, num_heads: int) -> Any:
        """Compute what is added to the energies.

        Parameters
        ----------
        query_positions : Variable of integers of shape (query time,) or (query time, batch)
            Where the queries stand.
        key_positions : Variable of integers of shape (key time,)
            Where the keys stand.
        num_heads : int
            How many heads there are.

        Returns
        -------
        Variable of shape (head, query time, key time), with (batch,) in front or not; or None
            Nothing by default.
        """
        return None


class RotaryPositions(AttentionPositions):
    """Rotate pairs of features of queries and keys, by angles in proportion to the position.

    So the scalar product of a query and a key depends on their distance only. Feature ``i`` makes
    a pair with feature ``i + head_dim / 2``; the angle is ``position / longest ** (2 i /
    head_dim)``. There are no parameters.

    Parameters
    ----------
    longest : float
        The longest wavelength, divided by 2 π.
    **kwargs
        For `Brick`.

    References
    ----------
    J. Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding*, 2021.
    """

    def __init__(self, longest: float = 10000.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.longest = longest

    @application(inputs=["heads", "positions"], outputs=["output"])
    def apply(self, heads: Variable, positions: Variable) -> Any:
        """Rotate queries or keys.

        Parameters
        ----------
        heads : Variable of shape (time, batch, head, head_dim)
        positions : Variable of integers of shape (time,) or (time, batch)

        Returns
        -------
        Variable of shape (time, batch, head, head_dim)
        """
        head_dim = heads.type.shape[-1]
        if head_dim is None or head_dim % 2:
            raise ValueError(
                f"{self.path}.apply: `heads` must have an even number of features, known before "
                f"run time, to be rotated in pairs; got {describe(heads)}."
            )
        half = head_dim // 2
        rates = (self.longest ** (-numpy.arange(half) / half)).astype(heads.dtype)
        angles = tensor.shape_padright(as_float(positions, heads.dtype)) * rates
        angles = angles[:, None, None, :] if angles.ndim == 2 else angles[:, :, None, :]
        sines, cosines = tensor.sin(angles), tensor.cos(angles)
        first, second = heads[..., :half], heads[..., half:]
        turned = [first * cosines - second * sines, second * cosines + first * sines]
        return tensor.concatenate(turned, axis=-1)

    def rotate(self, heads: Any, positions: Any) -> Any:
        """Rotate queries or keys, by `apply`; see `AttentionPositions.rotate`."""
        return self.apply(heads, positions)


class RelativePositions(AttentionPositions, Initializable):
    """Add a learned number to the energy of two steps: one for each head and bucket of distances.

    Small distances have buckets of their own; larger ones share buckets that grow in proportion,
    and from `max_distance` there is one for all. The parameter is ``W`` of shape (num_buckets,
    num_heads).

    Parameters
    ----------
    num_heads : int
        Heads. Needed for allocation; pushed by the attention.
    num_buckets : int
        How many buckets there are.
    max_distance : int
        Distance from which all share the last bucket, which begins somewhat before it.
    bidirectional : bool
        Whether keys after the query have buckets: half of them. Without, as for causal attention,
        they are taken to be at the distance 0.
    **kwargs
        For `Initializable`; there are no biases.

    References
    ----------
    C. Raffel et al., *Exploring the Limits of Transfer Learning with a Unified Text-to-Text
    Transformer*, JMLR 21, 2020, section 2.1; after P. Shaw, J. Uszkoreit, A. Vaswani,
    *Self-Attention with Relative Position Representations*, NAACL 2018.
    """

    has_biases = False

    @lazy(allocation=["num_heads"])
    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional

    @property
    def W(self) -> Any:
        """The numbers, of shape (num_buckets, num_heads)."""
        return self.parameters[0]

    def _allocate(self) -> None:
        check_sizes(
            self,
            num_heads=self.num_heads,
            num_buckets=self.num_buckets,
            max_distance=self.max_distance,
        )
        one_side = self._buckets_of_a_side()
        if one_side < 2 or self.max_distance <= one_side // 2:
            raise ValueError(
                f"{self.path} cannot be allocated: `num_buckets` must be at least 2, or 4 if "
                f"`bidirectional`, and `max_distance` above {one_side // 2}, the number of "
                "distances with a bucket of their own; got "
                f"num_buckets={self.num_buckets}, max_distance={self.max_distance}."
            )
        allocate_weights(self, "W", (self.num_buckets, self.num_heads))

    def _initialize(self) -> None:
        draw_parameter(self, "weights_init", self.W)

    def _buckets_of_a_side(self) -> int:
        return self.num_buckets // 2 if self.bidirectional else self.num_buckets

    @application(inputs=["query_positions", "key_positions"], outputs=["bias"])
    def apply(self, query_positions: Variable, key_positions: Variable) -> Any:
        """Numbers for all pairs of a query and a key.

        Parameters
        ----------
        query_positions : Variable of integers of shape (query time,) or (query time, batch)
        key_positions : Variable of integers of shape (key time,)

        Returns
        -------
        Variable of shape (head, query time, key time), with (batch,) in front or not
        """
        distances = key_positions - tensor.shape_padright(query_positions.T)
        numbers = self.W[self._buckets(distances)]
        axes = list(range(numbers.ndim))
        return numbers.dimshuffle([*axes[:-3], axes[-1], axes[-3], axes[-2]])

    def bias(self, query_positions: Any, key_positions: Any, num_heads: int) -> Any:
        """Numbers for all pairs, by `apply`; see `AttentionPositions.bias`."""
        return self.apply(query_positions, key_positions)

    def _buckets(self, distances: Any) -> Any:
        """Return the bucket of each distance, key minus query."""
        one_side = self._buckets_of_a_side()
        if self.bidirectional:
            first, sizes = tensor.gt(distances, 0) * one_side, abs(distances)
        else:
            first, sizes = 0, tensor.maximum(-distances, 0)
        table = tensor.constant(_bucket_of_each_size(one_side, self.max_distance))
        return first + table[tensor.minimum(sizes, self.max_distance)]


def _bucket_of_each_size(num_buckets: int, max_distance: int) -> numpy.ndarray:
    """Return the buckets of the distances from 0 to the largest on one side."""
    sizes, exact = numpy.arange(max_distance + 1), num_buckets // 2
    growth = (num_buckets - exact) / math.log(max_distance / exact)
    # Distances at which a bucket begins must not fall below it by rounding.
    grown = exact + numpy.log(numpy.maximum(sizes, exact) / exact) * growth + 1e-9
    return numpy.where(sizes < exact, sizes, numpy.minimum(grown, num_buckets - 1)).astype("int64")


def check_sequences(
    brick: Brick, application_name: str, argument: str, variable: Any, dim: Any
) -> None:
    """Refuse what is not known to have the axes (time, batch, feature).

    Parameters
    ----------
    brick : Brick
        The brick that is applied.
    application_name : str
        Of its application.
    argument : str
        Of its input.
    variable : Variable
        The input.
    dim : int
        Features that it must have.

    Raises
    ------
    ValueError
        If it has another number of axes, or of features as far as known.
    """
    if variable.ndim != 3:
        raise ValueError(
            f"{brick.path}.{application_name}: `{argument}` must have the axes (time, batch, "
            f"feature); got {describe(variable)}. Of batches first make time the first axis: "
            "`x.dimshuffle(1, 0, 2)`."
        )
    check_last_dim(brick, variable, dim, argument, application_name)
