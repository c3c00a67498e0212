"""How the first values of parameters are drawn.

A scheme makes an array of a shape from a generator (:meth:`NdarrayInitialization.generate`), or
sets a shared variable to one (:meth:`NdarrayInitialization.initialize`). Arrays have the dtype
``aesara.config.floatX``.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy
from aesara import config as aesara_config
from numpy.random import RandomState

from bricks.utils.plain import is_number, pack, repr_attrs

__all__ = [
    "Constant",
    "Identity",
    "IsotropicGaussian",
    "NdarrayInitialization",
    "Orthogonal",
    "Sparse",
    "SparseND",
    "Uniform",
]

Shape = Sequence[int]


class NdarrayInitialization(ABC):
    """The base class of schemes of initialization."""

    #: The arguments of the constructor, shown by ``repr``.
    _shown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return repr_attrs(self, *self._shown)

    @abstractmethod
    def generate(self, rng: RandomState, shape: Shape) -> numpy.ndarray:
        """Return an array of first values.

        Parameters
        ----------
        rng : numpy.random.RandomState
            What the numbers are drawn from.
        shape : sequence of int
            The shape.

        Returns
        -------
        array
            The values, of dtype ``aesara.config.floatX``.
        """

    def initialize(self, var: Any, rng: RandomState, shape: Shape | None = None) -> None:
        """Set a shared variable to first values.

        Parameters
        ----------
        var : SharedVariable
            The variable.
        rng : numpy.random.RandomState
            What the numbers are drawn from.
        shape : sequence of int, optional
            The shape; by default the one that the variable has.
        """
        shape = var.get_value(borrow=True).shape if shape is None else tuple(shape)
        value = self.generate(rng, shape)
        if value.shape != tuple(shape):
            raise ValueError(
                f"{type(self).__name__}: {var.name!r} must get a value of shape {shape}; "
                f"got one of {value.shape}."
            )
        var.set_value(value.astype(var.dtype, copy=False))


def _floatx(values: Any) -> numpy.ndarray:
    return numpy.asarray(values, dtype=aesara_config.floatX)


class Constant(NdarrayInitialization):
    """The same value everywhere, or a given array.

    Parameters
    ----------
    constant : float or array_like
        The value; an array must broadcast to the shape of the parameter.
    """

    _shown = ("constant",)

    def __init__(self, constant: Any) -> None:
        self._constant = numpy.asarray(constant)

    @property
    def constant(self) -> numpy.ndarray:
        """The value."""
        return self._constant

    def generate(self, rng: RandomState, shape: Shape) -> numpy.ndarray:
        try:
            return _floatx(numpy.broadcast_to(self._constant, tuple(shape))).copy()
        except ValueError as error:
            raise ValueError(
                f"Constant: `constant` of shape {self._constant.shape} does not broadcast to "
                f"{tuple(shape)}."
            ) from error


class IsotropicGaussian(NdarrayInitialization):
    """Normally distributed values.

    Parameters
    ----------
    std : float, optional
        The standard deviation, at least 0.
    mean : float, optional
        The mean.
    """

    _shown = ("std", "mean")

    def __init__(self, std: float = 1, mean: float = 0) -> None:
        self.mean, self.std = mean, std

    def generate(self, rng: RandomState, shape: Shape) -> numpy.ndarray:
        return _floatx(rng.normal(self.mean, self.std, size=tuple(shape)))


class Uniform(NdarrayInitialization):
    """Uniformly distributed values.

    Parameters
    ----------
    mean : float, optional
        The mean.
    width : float, optional
        The difference between the largest and the smallest value; or give `std`.
    std : float, optional
        The standard deviation, ``width / sqrt(12)``.

    Raises
    ------
    ValueError
        If neither or both of `width` and `std` are given.
    """

    _shown = ("mean", "width")

    def __init__(
        self, mean: float = 0.0, width: float | None = None, std: float | None = None
    ) -> None:
        if (width is None) == (std is None):
            raise ValueError(
                f"Uniform: give one of `width` and `std`; got width={width!r} and std={std!r}."
            )
        self.mean = mean
        self.width = width if std is None else math.sqrt(12) * std

    def generate(self, rng: RandomState, shape: Shape) -> numpy.ndarray:
        half = self.width / 2  # type: ignore[operator]
        return _floatx(rng.uniform(self.mean - half, self.mean + half, size=tuple(shape)))


class Identity(NdarrayInitialization):
    """Ones on the diagonal of a matrix, zeros elsewhere.

    Parameters
    ----------
    mult : float, optional
        What stands on the diagonal instead of 1.
    """

    _shown = ("mult",)

    def __init__(self, mult: float = 1) -> None:
        self.mult = mult

    def generate(self, rng: RandomState, shape: Shape) -> numpy.ndarray:
        rows, columns = _matrix_shape(self, shape)
        return _floatx(self.mult * numpy.eye(rows, columns))


class Orthogonal(NdarrayInitialization):
    """Matrices whose rows, or columns if there are fewer of them, are orthonormal.

    Parameters
    ----------
    scale : float, optional
        What the matrix is multiplied by.

    References
    ----------
    A. Saxe, J. McClelland, S. Ganguli, *Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks*, ICLR 2014.
    """

    _shown = ("scale",)

    def __init__(self, scale: float = 1) -> None:
        self.scale = scale

    def generate(self, rng: RandomState, shape: Shape) -> numpy.ndarray:
        rows, columns = _matrix_shape(self, shape)
        tall = rng.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = numpy.linalg.qr(tall)
        # The signs make the factorization unique, and the distribution uniform.
        q = q * numpy.where(numpy.diag(r) < 0, -1.0, 1.0)
        return _floatx(self.scale * (q if rows >= columns else q.T))


def _matrix_shape(scheme: NdarrayInitialization, shape: Shape) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(
            f"{type(scheme).__name__}: only matrices can be drawn; got shape {tuple(shape)}."
        )
    return shape[0], shape[1]


class SparseND(NdarrayInitialization):
    """Values of another scheme in a few places, chosen at random within each unit.

    Parameters
    ----------
    axis : int or sequence of int
        The axes that count the units; the other axes lie within a unit. With ``(0, 1)`` each
        ``W[i, j]`` is a unit.
    num_init : int or float
        How many places of each unit get a value; a float, above 0 and at most 1, is their share.
    weights_init : NdarrayInitialization
        The scheme for those places.
    sparse_init : NdarrayInitialization, optional
        The scheme for the others; zeros by default.
    """

    _shown: tuple[str, ...] = ("axis", "num_init", "weights_init", "sparse_init")

    def __init__(
        self,
        axis: int | Sequence[int],
        num_init: float,
        weights_init: NdarrayInitialization,
        sparse_init: NdarrayInitialization | None = None,
    ) -> None:
        self.axis = axis
        is_count = isinstance(num_init, numbers.Integral)
        if not is_number(num_init) or num_init <= 0 or (num_init > 1 and not is_count):
            raise ValueError(
                f"{type(self).__name__}: `num_init` must be a positive integer or a share above 0 "
                f"and at most 1; got {num_init!r}."
            )
        self.num_init = num_init
        self.weights_init = weights_init
        self.sparse_init = Constant(0.0) if sparse_init is None else sparse_init

    def _places(self, size: int) -> int:
        """Return how many of the `size` places of a unit get a value."""
        count = int(
            self.num_init if isinstance(self.num_init, numbers.Integral) else self.num_init * size
        )
        if count > size:
            raise ValueError(
                f"{type(self).__name__}: `num_init` is {count}, but a unit has {size} places."
            )
        return count

    def generate(self, rng: RandomState, shape: Shape) -> numpy.ndarray:
        shape = tuple(shape)
        axes = [axis % len(shape) for axis in pack(self.axis)]
        within = [axis for axis in range(len(shape)) if axis not in axes]
        order = [*axes, *within]
        units = math.prod(shape[axis] for axis in axes)
        size = math.prod(shape[axis] for axis in within)
        count = self._places(size)
        others = self.sparse_init.generate(rng, shape)
        flat = numpy.transpose(others, order).reshape(units, size).copy()
        values = self.weights_init.generate(rng, (units, count))
        for unit in range(units):
            flat[unit, rng.permutation(size)[:count]] = values[unit]
        values = flat.reshape([shape[axis] for axis in order])
        return _floatx(numpy.ascontiguousarray(numpy.transpose(values, numpy.argsort(order))))


class Sparse(SparseND):
    """Values of another scheme in a few places of each row; see :class:`SparseND`.

    Parameters
    ----------
    num_init : int or float
        How many places of each row get a value, or which share of them.
    weights_init : NdarrayInitialization
        The scheme for those places.
    sparse_init : NdarrayInitialization, optional
        The scheme for the others; zeros by default.

    References
    ----------
    J. Martens, *Deep learning via Hessian-free optimization*, ICML 2010.
    """

    _shown: tuple[str, ...] = ("num_init", "weights_init", "sparse_init")

    def __init__(
        self,
        num_init: float,
        weights_init: NdarrayInitialization,
        sparse_init: NdarrayInitialization | None = None,
    ) -> None:
        super().__init__(0, num_init, weights_init, sparse_init)
