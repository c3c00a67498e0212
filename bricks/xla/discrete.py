"""Draws of integers, of categories, and of the order of things."""

from __future__ import annotations

from functools import partial
from typing import Any

import aesara
from aesara import tensor
from aesara.graph.basic import Variable

from bricks.xla import variates
from bricks.xla.continuous import ContinuousDraws, parameter, required
from bricks.xla.variates import size_for

__all__ = ["DiscreteDraws"]


class DiscreteDraws(ContinuousDraws):
    """A source of integers, of categories, and of the order of things."""

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
        p = parameter(p, aesara.config.floatX)
        unit = self.uniform(size_for(size, p), dtype=aesara.config.floatX)
        return tensor.cast(tensor.lt(unit, p), dtype)

    def binomial(
        self, size: Any = None, n: Any = 1, p: Any = 0.5, dtype: str = "int64"
    ) -> Variable:
        """Draw how many of `n` trials succeed.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of `n` and `p`.
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
        p = parameter(p, aesara.config.floatX)
        counts = self._draw(variates.Binomial(), n, p, size=size_for(size, n, p))
        return tensor.cast(counts, dtype)

    def poisson(self, size: Any = None, lam: Any = 1.0, dtype: str = "int64") -> Variable:
        """Draw from the Poisson distribution.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of `lam`.
        lam : number or tensor
            The mean. XLA draws -1 where it is negative or no number; other backends raise.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        lam = parameter(lam, aesara.config.floatX)
        counts = self._draw(variates.Poisson(), lam, size=size_for(size, lam))
        return tensor.cast(counts, dtype)

    def geometric(self, size: Any = None, p: Any = 0.5, dtype: str = "int64") -> Variable:
        """Draw the number of the first trial that succeeds, at least 1.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default that of `p`.
        p : number or tensor
            Probability that a trial succeeds.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape `size`
        """
        p = parameter(p, aesara.config.floatX)
        return tensor.cast(self._draw(variates.Geometric(), p, size=size_for(size, p)), dtype)

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
        return self._draw(variates.Integers(), low, high, size=size_for(size, low, high))

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
        pvals = required("categorical", "pvals", "probabilities", pvals)
        size = size_for(size, pvals, taken=1)
        return tensor.cast(self._draw(variates.Categorical(), pvals, size=size), dtype)

    def multinomial(
        self, size: Any = None, n: Any = 1, pvals: Any = None, dtype: str = "int64"
    ) -> Variable:
        """Draw how often each category comes up in `n` trials.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn, without the category axis; by default that of `n` and `pvals`.
        n : int or tensor, optional
        pvals : tensor of shape (..., category)
            Probabilities, which add up to 1.
        dtype : str, optional

        Returns
        -------
        tensor variable of shape (..., category)
            One-hot rows if `n` is 1.
        """
        pvals = required("multinomial", "pvals", "probabilities", pvals)
        if isinstance(n, int) and n == 1:
            places = self.categorical(size, pvals)
            categories = tensor.arange(pvals.shape[-1])
            return tensor.cast(tensor.eq(tensor.shape_padright(places), categories), dtype)
        size = size_for(size, tensor.shape_padright(tensor.as_tensor_variable(n)), pvals, taken=1)
        return tensor.cast(self._draw(variates.Multinomial(), n, pvals, size=size), dtype)

    def choice(
        self, size: Any = None, a: Any = None, replace: bool = True, p: Any = None
    ) -> Variable:
        """Draw elements of an array.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            Shape of what is drawn; by default a single element.
        a : tensor of shape (element, ...), or int
            What is drawn from; a number stands for the integers below it. Gradients flow to the
            elements.
        replace : bool, optional
            Whether an element may be drawn again.
        p : tensor of shape (element,), optional
            Probability of each element, all together 1; by default all are alike. Without
            replacement they are those of the next draw, among what is left.

        Returns
        -------
        tensor variable of shape (*size, ...)
        """
        if a is None:
            raise TypeError("choice: `a`, the elements or their number, must be given.")
        a = tensor.as_tensor_variable(a)
        num_elements = a if a.ndim == 0 else a.shape[0]
        p = p if p is None else required("choice", "p", "probabilities", p)
        if replace and p is not None:
            places = self.categorical(size if size is not None else (), p)
        elif replace:
            places = self.integers(size, 0, num_elements)
        else:
            draw = partial(variates.Choice(dtype="int64"), replace=False, p=p)
            places = self._draw(draw, tensor.arange(num_elements, dtype="int64"), size=size)
        return places if a.ndim == 0 else a[places]

    def permutation(self, size: Any = None, n: Any = None, dtype: str = "int64") -> Variable:
        """Draw permutations of the integers below `n`.

        Parameters
        ----------
        size : sequence of int or of symbolic integers, or a symbolic vector
            How many permutations, without the axis of the integers; by default a single one.
        n : int or symbolic integer
        dtype : str, optional

        Returns
        -------
        tensor variable of shape (*size, n)
        """
        if n is None or tensor.as_tensor_variable(n).ndim:
            raise TypeError(
                f"permutation: `n` must be the number of integers to permute; got {n!r}. For the "
                "elements of an array call shuffle."
            )
        n = tensor.cast(tensor.as_tensor_variable(n), "int64")
        return tensor.cast(self._draw(variates.Order(), n, size=size), dtype)

    def shuffle(self, x: Any, axis: int = 0) -> Variable:
        """Put what lies along an axis in random order.

        Parameters
        ----------
        x : tensor
        axis : int, optional
            Slices along it stay whole.

        Returns
        -------
        tensor variable of the shape of `x`
            Gradients flow to `x`.
        """
        x = tensor.as_tensor_variable(x)
        order = self.permutation(n=x.shape[axis])
        return tensor.take(x, order, axis=axis)
