"""Random operations of Aesara, made in microseconds and drawn with care.

Aesara's own way to make the node of a draw folds the constants of everything that the size is
computed from: some milliseconds for each draw, and more the deeper the net is. What is made here
knows of a size what its type says. Where numpy is stricter than its user can be (probabilities
rounded to float32 do not add up to 1) the numbers are drawn accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from aesara import tensor
from aesara.graph.basic import Apply, Constant, Variable
from aesara.tensor.basic import MakeVector, get_scalar_constant_value, get_vector_length
from aesara.tensor.exceptions import NotScalarConstantError
from aesara.tensor.random import basic
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.shape import Shape, specify_shape
from aesara.tensor.type import TensorType, all_dtypes
from scipy import special

__all__ = [
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Choice",
    "Dirichlet",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "Integers",
    "Laplace",
    "Logistic",
    "Multinomial",
    "Normal",
    "Order",
    "Poisson",
    "StudentT",
    "TruncatedNormal",
    "Uniform",
    "size_for",
    "size_vector",
    "truncated_normal_quantile",
]


def size_vector(size: Any) -> Variable:
    """Return a size as a vector of int64 whose length is known.

    Parameters
    ----------
    size : int, sequence of integers or of symbolic integers, symbolic vector, or None

    Returns
    -------
    tensor variable of shape (axis,)

    Raises
    ------
    TypeError
        If it is no vector of integers.
    ValueError
        If its length is not known.
    """
    if size is None:
        return tensor.constant(numpy.zeros(0, "int64"))
    if isinstance(size, int | numpy.integer):
        size = [size]
    if not isinstance(size, Variable):
        size = tuple(size)
        if not size:
            return size_vector(None)
    vector = tensor.as_tensor_variable(size)
    if vector.ndim != 1 or vector.dtype not in tensor.type.integer_dtypes:
        raise TypeError(
            f"`size` must be integers, or a vector of integers; got {size} of {vector.type}."
        )
    vector = tensor.cast(vector, "int64")
    if vector.type.shape[0] is not None:
        return vector
    try:
        # A loop copies its step with other variables in place of these, which must be as long.
        return specify_shape(vector, (get_vector_length(vector),))
    except ValueError as error:
        raise ValueError(
            f"`size` must have a known number of axes; got {size}. Give a tuple of integers."
        ) from error


def size_for(size: Any, *parameters: Any, taken: int = 0) -> Variable:
    """Return the size of draws with parameters: the one asked for, else that of the parameters.

    Parameters
    ----------
    size : as for :func:`size_vector`
    *parameters : number, array or tensor
    taken : int, optional
        How many last axes of a parameter one draw takes.

    Returns
    -------
    tensor variable of shape (axis,)

    Raises
    ------
    ValueError
        If the parameters have more axes than the size, or lengths that do not fit it.
    """
    tensors = [tensor.as_tensor_variable(parameter) for parameter in parameters]
    if taken:
        # One element of each stands for it.
        tensors = [parameter[(..., *[0] * taken)] for parameter in tensors]
    if size is None:
        if all(parameter.ndim == 0 for parameter in tensors):
            return size_vector(None)
        return (tensor.add(*tensors) if len(tensors) > 1 else tensors[0]).shape
    vector = size_vector(size)
    lengths = _lengths(vector)
    for parameter in tensors:
        shape = parameter.type.shape
        ends = lengths[len(lengths) - len(shape) :]
        if len(shape) > len(lengths) or not all(map(_fits, shape, ends)):
            raise ValueError(
                f"the parameter {parameter} of a random draw has shape {shape}, which does not "
                f"broadcast to the size {tuple(lengths)} of the draw. Give a larger size."
            )
    return vector


def _fits(length: int | None, wanted: int | None) -> bool:
    """Tell whether an axis may be broadcast to a length, as far as both are known."""
    return length in (None, 1) or wanted in (None, length)


def _lengths(size: Variable) -> list[int | None]:
    """List the lengths that a size says without computing anything."""
    if isinstance(size, Constant):
        return [int(length) for length in size.data]
    if size.owner is not None and isinstance(size.owner.op, Shape):
        return list(size.owner.inputs[0].type.shape)
    if size.owner is not None and isinstance(size.owner.op, MakeVector):
        return [_length(length) for length in size.owner.inputs]
    return [None] * size.type.shape[0]


def _length(length: Variable) -> int | None:
    try:
        return int(get_scalar_constant_value(length, only_process_constants=False, max_recur=3))
    except NotScalarConstantError:
        return None


class _Quick(RandomVariable):
    """A random operation that makes its node without a look at the graph."""

    def make_node(self, *inputs: Any) -> Apply:
        rng, size, _, *parameters = inputs
        size = size_vector(size)
        operands = [
            parameter if isinstance(parameter, Variable) else tensor.as_tensor_variable(parameter)
            for parameter in parameters
        ]
        lengths = [*_lengths(size), *self._support(operands)]
        number = all_dtypes.index(self.dtype)
        return Apply(
            self,
            [rng, size, tensor.constant(number, dtype="int64"), *operands],
            [rng.type(), TensorType(self.dtype, shape=tuple(lengths))()],
        )

    def _support(self, parameters: Sequence[Variable]) -> Sequence[int | None]:
        """List the known lengths of the axes of one draw."""
        return ()


class Uniform(_Quick, basic.UniformRV):
    """Uniform draws."""


class Normal(_Quick, basic.NormalRV):
    """Normal draws."""


class Exponential(_Quick, basic.ExponentialRV):
    """Exponential draws."""


class Gumbel(_Quick, basic.GumbelRV):
    """Gumbel draws."""


class Laplace(_Quick, basic.LaplaceRV):
    """Laplace draws."""


class Logistic(_Quick, basic.LogisticRV):
    """Logistic draws."""


class Cauchy(_Quick, basic.CauchyRV):
    """Cauchy draws."""


class Gamma(_Quick, basic.GammaRV):
    """Gamma draws."""


class Beta(_Quick, basic.BetaRV):
    """Beta draws."""


class StudentT(_Quick, basic.StudentTRV):
    """Draws from Student's t distribution."""


class Poisson(_Quick, basic.PoissonRV):
    """Poisson draws."""


class Geometric(_Quick, basic.GeometricRV):
    """Geometric draws."""


class Binomial(_Quick, basic.BinomialRV):
    """Binomial draws."""


class Integers(_Quick, basic.IntegersRV):
    """Integers, each as likely as the others."""


class TruncatedNormal(_Quick):
    """Standard normal draws that lie between bounds."""

    name = "truncated_normal"
    ndim_supp = 0
    ndims_params = (0, 0)
    dtype = "floatX"

    @classmethod
    def rng_fn(cls, rng: Any, low: Any, high: Any, size: Any) -> numpy.ndarray:
        """Draw with numpy, by the inverse of the distribution function."""
        if size is None:
            size = numpy.broadcast_shapes(numpy.shape(low), numpy.shape(high))
        units = rng.uniform(size=size)
        return truncated_normal_quantile(units, low, high, numpy, special.ndtr, special.ndtri)


def truncated_normal_quantile(
    unit: Any, low: Any, high: Any, numpy_like: Any, ndtr: Callable, ndtri: Callable
) -> Any:
    """Return the quantile of a truncated standard normal distribution.

    Parameters
    ----------
    unit : array
        Between 0 and 1.
    low, high : array
        The bounds.
    numpy_like : module
        ``numpy`` or ``jax.numpy``.
    ndtr, ndtri : function
        The normal distribution function and its inverse.

    Returns
    -------
    array
    """
    # Floats are dense near 0 and not near 1, so what lies above 0 is drawn below it.
    is_mirrored = numpy_like.asarray(low) > 0
    least = numpy_like.where(is_mirrored, -high, low)
    most = numpy_like.where(is_mirrored, -low, high)
    below = ndtr(least)
    value = ndtri(below + unit * (ndtr(most) - below))
    value = numpy_like.clip(value, least, most)
    return numpy_like.where(is_mirrored, -value, value)


class Dirichlet(_Quick, basic.DirichletRV):
    """Draws from Dirichlet distributions."""

    def _support(self, parameters: Sequence[Variable]) -> Sequence[int | None]:
        return parameters[0].type.shape[-1:]

    @classmethod
    def rng_fn(cls, rng: Any, alphas: Any, size: Any) -> numpy.ndarray:
        """Draw with numpy, for any number of axes of parameters."""
        shape = alphas.shape if size is None else (*size, alphas.shape[-1])
        draws = rng.standard_gamma(numpy.broadcast_to(alphas, shape).astype("float64"))
        return draws / draws.sum(axis=-1, keepdims=True)


class Categorical(_Quick, basic.CategoricalRV):
    """Places, each with its probability."""

    @classmethod
    def rng_fn(cls, rng: Any, p: Any, size: Any) -> numpy.ndarray:
        """Draw with numpy, from probabilities that add up to about 1."""
        levels = numpy.cumsum(p, axis=-1, dtype="float64")
        levels /= levels[..., -1:]
        units = rng.uniform(size=p.shape[:-1] if size is None else size)
        return (units[..., None] >= levels).sum(axis=-1)


class Multinomial(_Quick, basic.MultinomialRV):
    """How often each category comes up."""

    def _support(self, parameters: Sequence[Variable]) -> Sequence[int | None]:
        return parameters[1].type.shape[-1:]

    @classmethod
    def rng_fn(cls, rng: Any, n: Any, p: Any, size: Any) -> numpy.ndarray:
        """Draw with numpy, from probabilities that add up to about 1."""
        p = numpy.asarray(p, "float64")
        p = p / p.sum(axis=-1, keepdims=True)
        if size is None:
            size = numpy.broadcast_shapes(numpy.shape(n), p.shape[:-1])
        return rng.multinomial(
            numpy.broadcast_to(n, size), numpy.broadcast_to(p, (*size, p.shape[-1]))
        )


class Choice(_Quick, basic.ChoiceRV):
    """Elements of a vector, with or without replacement."""

    @classmethod
    def rng_fn(cls, rng: Any, a: Any, p: Any, replace: Any, size: Any) -> numpy.ndarray:
        """Draw with numpy, from probabilities that add up to about 1."""
        if p is not None:
            p = numpy.asarray(p, "float64")
            p = p / p.sum()
        return numpy.asarray(rng.choice(a, size, bool(replace), p))


class Order(_Quick):
    """The integers below a number, in random order."""

    name = "order"
    ndim_supp = 1
    ndims_params = (0,)
    dtype = "int64"

    def _support(self, parameters: Sequence[Variable]) -> Sequence[int | None]:
        return (_length(parameters[0]),)

    def _supp_shape_from_params(
        self, dist_params: Sequence[Variable], **kwargs: Any
    ) -> tuple[Variable, ...]:
        return (dist_params[0],)

    @classmethod
    def rng_fn(cls, rng: Any, n: Any, size: Any) -> numpy.ndarray:
        """Draw with numpy."""
        return rng.permuted(numpy.broadcast_to(numpy.arange(n), (*(size or ()), int(n))), axis=-1)
