"""Draws of real numbers.

Where a distribution is another one moved and scaled, the standard one is drawn and moved in the
graph, so that gradients flow to its parameters.
"""

from __future__ import annotations

from typing import Any

import aesara
import numpy
from aesara import tensor
from aesara.graph.basic import Variable

from bricks.xla import variates
from bricks.xla.keys import KeyedStream
from bricks.xla.variates import size_for

__all__ = ["ContinuousDraws"]


class ContinuousDraws(KeyedStream):
    """A source of real numbers."""

    def _moved(self, standard: Any, size: Any, loc: Any, scale: Any, dtype: str) -> Variable:
        """Draw from a standard distribution, and scale and move what was drawn."""
        loc, scale = parameter(loc, dtype), parameter(scale, dtype)
        unit = self._draw(standard(dtype=dtype), 0.0, 1.0, size=size_for(size, loc, scale))
        return unit if _is(loc, 0.0) and _is(scale, 1.0) else unit * scale + loc

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
        dtype = float_dtype(dtype)
        low, high = parameter(low, dtype), parameter(high, dtype)
        size = size_for(size, low, high)
        unit = self._draw(variates.Uniform(dtype=dtype), 0.0, 1.0, size=size)
        return unit if _is(low, 0.0) and _is(high, 1.0) else unit * (high - low) + low

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
        return self._moved(variates.Normal, size, avg, std, float_dtype(dtype))

    def truncated_normal(
        self,
        size: Any = None,
        avg: Any = 0.0,
        std: Any = 1.0,
        low: Any = -2.0,
        high: Any = 2.0,
        dtype: str = "floatX",
    ) -> Variable:
        """Draw from the normal distribution, of which only the middle is left.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the parameters.
        avg, std : number or tensor
            Mean and standard deviation before it is truncated. Gradients flow to them.
        low, high : number or tensor
            The bounds, as the number of standard deviations from the mean. No gradients flow to
            them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        dtype = float_dtype(dtype)
        avg, std = parameter(avg, dtype), parameter(std, dtype)
        low, high = parameter(low, dtype), parameter(high, dtype)
        size = size_for(size, avg, std, low, high)
        return self._draw(variates.TruncatedNormal(dtype=dtype), low, high, size=size) * std + avg

    def lognormal(
        self, size: Any = None, avg: Any = 0.0, std: Any = 1.0, dtype: str = "floatX"
    ) -> Variable:
        """Draw numbers whose logarithms are normally distributed.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the mean and the deviation.
        avg, std : number or tensor
            Mean and standard deviation of the logarithms. Gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        return tensor.exp(self.normal(size, avg, std, dtype))

    def exponential(self, size: Any = None, scale: Any = 1.0, dtype: str = "floatX") -> Variable:
        """Draw from the exponential distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of `scale`.
        scale : number or tensor
            The mean. Gradients flow to it.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        dtype = float_dtype(dtype)
        scale = parameter(scale, dtype)
        unit = self._draw(variates.Exponential(dtype=dtype), 1.0, size=size_for(size, scale))
        return unit if _is(scale, 1.0) else unit * scale

    def gumbel(
        self, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: str = "floatX"
    ) -> Variable:
        """Draw from the Gumbel distribution of largest values.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the parameters.
        loc, scale : number or tensor
            The mode, and how wide it is. Gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        return self._moved(variates.Gumbel, size, loc, scale, float_dtype(dtype))

    def laplace(
        self, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: str = "floatX"
    ) -> Variable:
        """Draw from the Laplace distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the parameters.
        loc, scale : number or tensor
            The mean, and the mean distance from it. Gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        return self._moved(variates.Laplace, size, loc, scale, float_dtype(dtype))

    def logistic(
        self, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: str = "floatX"
    ) -> Variable:
        """Draw from the logistic distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the parameters.
        loc, scale : number or tensor
            The mean, and how wide it is. Gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        return self._moved(variates.Logistic, size, loc, scale, float_dtype(dtype))

    def cauchy(
        self, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: str = "floatX"
    ) -> Variable:
        """Draw from the Cauchy distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the parameters.
        loc, scale : number or tensor
            The median, and the distance of the quartiles from it. Gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        return self._moved(variates.Cauchy, size, loc, scale, float_dtype(dtype))

    def standard_t(self, size: Any = None, df: Any = 1.0, dtype: str = "floatX") -> Variable:
        """Draw from Student's t distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of `df`.
        df : number or tensor
            Degrees of freedom. No gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        dtype = float_dtype(dtype)
        df = parameter(df, dtype)
        return self._draw(variates.StudentT(dtype=dtype), df, size=size_for(size, df))

    def gamma(
        self, size: Any = None, shape: Any = 1.0, scale: Any = 1.0, dtype: str = "floatX"
    ) -> Variable:
        """Draw from the gamma distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the parameters.
        shape : number or tensor
            The distribution's shape parameter. No gradients flow to it.
        scale : number or tensor
            The inverse of its rate. Gradients flow to it.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        dtype = float_dtype(dtype)
        shape, scale = parameter(shape, dtype), parameter(scale, dtype)
        size = size_for(size, shape, scale)
        unit = self._draw(variates.Gamma(dtype=dtype), shape, numpy.float32(1), size=size)
        return unit if _is(scale, 1.0) else unit * scale

    def beta(self, size: Any = None, a: Any = 1.0, b: Any = 1.0, dtype: str = "floatX") -> Variable:
        """Draw from the beta distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of the parameters.
        a, b : number or tensor
            The distribution's parameters; its mean is ``a / (a + b)``. No gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        dtype = float_dtype(dtype)
        a, b = parameter(a, dtype), parameter(b, dtype)
        return self._draw(variates.Beta(dtype=dtype), a, b, size=size_for(size, a, b))

    def dirichlet(self, size: Any = None, alphas: Any = None, dtype: str = "floatX") -> Variable:
        """Draw probabilities from the Dirichlet distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn, without the category axis; by default that of `alphas`.
        alphas : tensor of shape (..., category)
            The concentrations. No gradients flow to them.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape (..., category)
            Each row adds up to 1.
        """
        dtype = float_dtype(dtype)
        alphas = required("dirichlet", "alphas", "concentrations", alphas)
        size = size_for(size, alphas, taken=1)
        return self._draw(variates.Dirichlet(dtype=dtype), alphas, size=size)


def float_dtype(dtype: str) -> str:
    """Return the dtype that is meant, where ``floatX`` means the configured one.

    Parameters
    ----------
    dtype : str

    Returns
    -------
    str
    """
    return aesara.config.floatX if dtype == "floatX" else dtype


def parameter(value: Any, dtype: str) -> Any:
    """Give a tensor as it is, and a number or an array in a dtype that promotes nothing.

    Parameters
    ----------
    value : number, array or tensor
    dtype : str

    Returns
    -------
    number, array or tensor
    """
    if isinstance(value, Variable):
        return value
    return float(value) if numpy.ndim(value) == 0 else numpy.asarray(value, dtype)


def required(method: str, name: str, what: str, value: Any) -> Variable:
    """Return an argument as a tensor that has an axis.

    Parameters
    ----------
    method, name, what : str
        Of the method, of its argument, and what the argument is, for the error message.
    value : array or tensor, or None

    Returns
    -------
    tensor variable

    Raises
    ------
    TypeError
        If it is missing, or a single number.
    """
    variable = None if value is None else tensor.as_tensor_variable(value)
    if variable is None or variable.ndim == 0:
        raise TypeError(
            f"{method}: `{name}` must be an array of {what} over its last axis; got {value!r}."
        )
    return variable


def _is(value: Any, number: float) -> bool:
    """Tell whether a parameter is a number that needs no computation."""
    return isinstance(value, float) and value == number
