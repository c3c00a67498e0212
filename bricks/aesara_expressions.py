"""Expressions that bricks, algorithms and users' scripts build again and again."""

from collections.abc import Iterable
from typing import Any

import numpy
from aesara import config, tensor
from aesara.gradient import Rop
from aesara.graph.basic import Variable as AnyVariable
from aesara.tensor.var import TensorVariable as Variable

__all__ = ["as_float", "hessian_times_vector", "l2_norm", "lengths_of", "of_dtype"]


def as_float(variable: Any, dtype: str | None = None) -> Variable:
    """Make a variable of integers or truth values one of floating-point numbers.

    Without this, 64-bit integers (and 32-bit ones) that meet ``float32`` give ``float64``.

    Parameters
    ----------
    variable : Variable or array_like
        Any. One that is floating-point already is returned as it is.
    dtype : str, optional
        The dtype wanted; ``aesara.config.floatX`` by default.

    Returns
    -------
    Variable
        Of the same shape.
    """
    variable = tensor.as_tensor_variable(variable)
    if variable.dtype.startswith(("float", "complex")):
        return variable
    return variable.astype(dtype or config.floatX)


def of_dtype(value: Any, dtype: str) -> Any:
    """Make a number a constant of a dtype.

    Aesara would round numbers of Python to ``floatX``, and widen what meets those of numpy.

    Parameters
    ----------
    value : float or Variable
        The number. A variable is returned as it is.
    dtype : str
        The dtype of what it meets.

    Returns
    -------
    array or Variable
        Without axes, if it was a number.
    """
    return value if isinstance(value, AnyVariable) else numpy.asarray(value, dtype)


def lengths_of(variable: Variable) -> list[Any]:
    """Lengths of the axes of a variable: numbers where they are known, variables elsewhere.

    Parameters
    ----------
    variable : Variable
        Of any shape.

    Returns
    -------
    list of int or Variable
        Unlike ``variable.shape``, it does not forget what is known.
    """
    known = variable.type.shape
    return [variable.shape[i] if known[i] is None else known[i] for i in range(variable.ndim)]


def l2_norm(tensors: Iterable[Any], squared: bool = False) -> Variable:
    """Norm of several tensors together, as if they were one long vector.

    Parameters
    ----------
    tensors : iterable of Variable
        Any shapes, at least one tensor.
    squared : bool
        Whether to return the square of the norm.

    Returns
    -------
    Variable
        A scalar. Its gradient is 0, not NaN, where all elements are 0.

    Raises
    ------
    ValueError
        If there are no tensors.
    """
    # Not a power of 2, which Aesara refuses to rewrite if more is known of the shape by then.
    squares = [tensor.sum(tensor.square(as_float(one))) for one in tensors]
    if not squares:
        raise ValueError("l2_norm: expected at least one tensor; got none.")
    total = sum(squares[1:], squares[0])
    if squared:
        return total
    is_zero = tensor.eq(total, 0)
    return tensor.switch(is_zero, 0, tensor.sqrt(tensor.switch(is_zero, 1, total)))


def hessian_times_vector(
    gradient: Variable, parameter: Variable, vector: Variable, r_op: bool = False
) -> Any:
    """Product of a cost's matrix of second derivatives with a vector, without that matrix.

    Parameters
    ----------
    gradient : Variable
        Gradient of the cost with respect to `parameter`, of its shape.
    parameter : Variable
        What the cost is derived by.
    vector : Variable
        What the matrix is multiplied by, of the shape of `parameter`.
    r_op : bool
        Whether to use Aesara's R operator, which not all operations have.

    Returns
    -------
    Variable
        Of the shape of `parameter`.

    References
    ----------
    B. A. Pearlmutter, "Fast exact multiplication by the Hessian", *Neural Computation* 6, 1994.
    """
    if r_op:
        return Rop(gradient, parameter, vector)
    product = tensor.sum(gradient * vector)
    return tensor.grad(product, parameter, consider_constant=[vector])
