"""Helpers for symbolic and shared variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy
from aesara import config as aesara_config
from aesara import tensor
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Constant, Variable
from aesara.printing import Print

__all__ = [
    "check_aesara_variable",
    "check_theano_variable",
    "ipdb_breakpoint",
    "is_graph_input",
    "is_shared_variable",
    "print_shape",
    "print_sum",
    "put_hook",
    "shared_floatx",
    "shared_floatx_nans",
    "shared_floatx_zeros",
    "shared_floatx_zeros_matching",
    "shared_like",
]


def shared_floatx(
    value: Any, name: str | None = None, borrow: bool = False, dtype: Any = None, **kwargs: Any
) -> SharedVariable:
    """Make a shared variable whose value has the default float type.

    Parameters
    ----------
    value : array_like
        The value.
    name : str, optional
        The name.
    borrow : bool, optional
        Whether the array may be used as it is, when its type fits.
    dtype : dtype, optional
        Another type; ``aesara.config.floatX`` by default.
    **kwargs : object
        For :func:`bricks.xla.shared`, such as ``shape``.

    Returns
    -------
    SharedVariable
        The variable.
    """
    from bricks.xla import shared

    value = numpy.asarray(value, dtype=dtype or aesara_config.floatX)
    return shared(value, name=name, borrow=borrow, **kwargs)


def shared_floatx_zeros(shape: Any, **kwargs: Any) -> SharedVariable:
    """Make a shared variable of zeros; see :func:`shared_floatx` for the other arguments.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    **kwargs : object
        For :func:`shared_floatx`.

    Returns
    -------
    SharedVariable
        The variable.
    """
    return shared_floatx(numpy.zeros(shape), **kwargs)


def shared_floatx_nans(shape: Any, **kwargs: Any) -> SharedVariable:
    """Make a shared variable of NaN, which shows when it was never initialized.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    **kwargs : object
        For :func:`shared_floatx`.

    Returns
    -------
    SharedVariable
        The variable.
    """
    return shared_floatx(numpy.full(shape, numpy.nan), **kwargs)


def shared_floatx_zeros_matching(
    shared_variable: Any, name: str | None = None, **kwargs: Any
) -> SharedVariable:
    """Make a shared variable of zeros that has the shape and type of another.

    Parameters
    ----------
    shared_variable : SharedVariable
        The other variable.
    name : str, optional
        The name.
    **kwargs : object
        For :func:`shared_floatx`.

    Returns
    -------
    SharedVariable
        The variable, with the same static shape.
    """
    if not is_shared_variable(shared_variable):
        raise ValueError(
            f"shared_floatx_zeros_matching: expected a shared variable, got {shared_variable!r}."
        )
    shape = shared_variable.get_value(borrow=True).shape
    kwargs.setdefault("shape", shared_variable.type.shape)
    zeros = numpy.zeros(shape, dtype=shared_variable.dtype)
    return shared_floatx(zeros, name=name, dtype=zeros.dtype, **kwargs)


def shared_like(variable: Any, name: str | None = None, **kwargs: Any) -> SharedVariable:
    """Make a shared variable that can hold the values of another one.

    Parameters
    ----------
    variable : Variable or array_like
        The other one.
    name : str, optional
        The name.
    **kwargs : object
        For :func:`bricks.xla.shared`.

    Returns
    -------
    SharedVariable
        Zeros of the same dtype, static shape and number of dimensions; a dimension that is not
        known before run time has length 0.
    """
    from bricks.xla import shared

    variable = tensor.as_tensor_variable(variable)
    shape = variable.type.shape
    value = numpy.zeros([length or 0 for length in shape], dtype=variable.dtype)
    return shared(value, name=name, shape=kwargs.pop("shape", shape), **kwargs)


def is_shared_variable(variable: Any) -> bool:
    """Say whether something is a shared variable.

    Parameters
    ----------
    variable : object
        Anything.

    Returns
    -------
    bool
        Whether it is.
    """
    return isinstance(variable, SharedVariable)


def is_graph_input(variable: Any) -> bool:
    """Say whether a variable has to be given when the graph is evaluated.

    Parameters
    ----------
    variable : Variable
        A variable.

    Returns
    -------
    bool
        Whether nothing computes it and it is neither shared nor constant.
    """
    return (
        isinstance(variable, Variable)
        and variable.owner is None
        and not isinstance(variable, SharedVariable | Constant)
    )


def check_aesara_variable(variable: Any, n_dim: int | None, dtype_prefix: str | None) -> None:
    """Check the number of dimensions and the kind of dtype of a variable.

    Parameters
    ----------
    variable : Variable or array_like
        The variable.
    n_dim : int or None
        How many dimensions it must have; None for any number.
    dtype_prefix : str or None
        What its dtype must begin with, such as ``'float'``; None for any.

    Raises
    ------
    ValueError
        If it differs.
    """
    variable = tensor.as_tensor_variable(variable)
    if n_dim is not None and variable.ndim != n_dim:
        raise ValueError(f"{variable}: expected {n_dim} dimensions, got {variable.ndim}.")
    if dtype_prefix and not variable.dtype.startswith(dtype_prefix):
        raise ValueError(f"{variable}: expected dtype {dtype_prefix}…, got {variable.dtype}.")


check_theano_variable = check_aesara_variable


def put_hook(variable: Any, hook_fn: Callable, *args: Any) -> Any:
    """Call a function on the value of a variable whenever it is computed.

    Parameters
    ----------
    variable : Variable
        The variable.
    hook_fn : callable
        Called with the value and `args`.
    *args : object
        Further arguments.

    Returns
    -------
    Variable
        A copy of the variable that calls the hook, to be used in its place.

    Notes
    -----
    On the backend ``'xla'`` hooks are called in order, with copies of the values, while the device
    computes; a call of the compiled function may return a moment before its last hook does.
    ``jax.effects_barrier()`` waits for them.
    """
    return Print(global_fn=_Hook(hook_fn, args))(variable)


class _Hook:
    """What ``Print`` calls: a function of the value, without the op."""

    def __init__(self, function: Callable, args: Iterable) -> None:
        self.function, self.args = function, tuple(args)

    def __call__(self, _op: Any, value: Any) -> None:
        self.function(value, *self.args)


def _print_sum(value: Any, header: str | None) -> None:
    print(f"{header or ''}{numpy.asarray(value).sum()}")


def _print_shape(value: Any, header: str | None) -> None:
    print(f"{header or ''}{numpy.shape(value)}")


def _set_trace(value: Any, header: str | None) -> None:
    import pdb

    pdb.set_trace()


def print_sum(variable: Variable, header: str | None = None) -> Variable:
    """Print the sum of a variable whenever it is computed; see :func:`put_hook`.

    Parameters
    ----------
    variable : Variable
        The variable.
    header : str, optional
        What to print before it; the name of the variable by default.

    Returns
    -------
    Variable
        A copy to be used in its place.
    """
    return put_hook(variable, _print_sum, f"{variable.name}: " if header is None else header)


def print_shape(variable: Variable, header: str | None = None) -> Variable:
    """Print the shape of a variable whenever it is computed; see :func:`put_hook`.

    Parameters
    ----------
    variable : Variable
        The variable.
    header : str, optional
        What to print before it; the name of the variable by default.

    Returns
    -------
    Variable
        A copy to be used in its place.
    """
    return put_hook(variable, _print_shape, f"{variable.name}: " if header is None else header)


def ipdb_breakpoint(variable: Variable, header: str | None = None) -> Variable:
    """Stop in the debugger whenever a variable is computed; see :func:`put_hook`.

    Parameters
    ----------
    variable : Variable
        The variable; its value is ``value`` in the debugger.
    header : str, optional
        A name shown in the debugger as ``header``.

    Returns
    -------
    Variable
        A copy to be used in its place.
    """
    return put_hook(variable, _set_trace, header)
