"""Lowerings of what is computed element by element, and of reductions.

JAX and Aesara promote dtypes differently (int32 with float32 is float32 for one and float64 for
the other), so operands are converted to what Aesara computes in before the function of JAX sees
them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import aesara.scalar.basic as scalar
import aesara.scalar.math as special
import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Apply
from aesara.scalar.basic import ScalarOp
from aesara.tensor import xlogx
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.math import MulWithoutZeros
from aesara.tensor.nnet.basic import ScalarSoftsign
from aesara.tensor.nnet.sigm import UltraFastScalarSigmoid
from jax import lax
from jax.scipy import special as jax_special

from bricks.xla.errors import GraphError, UnsupportedOp
from bricks.xla.lowering import Context, lowering
from bricks.xla.special_functions import INTEGER_ORDER, SPECIAL


def _chain(function: Callable) -> Callable:
    """Extend a function of two arrays to any number of them."""
    return lambda *arrays: functools.reduce(function, arrays)


def _clip(x: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    return jnp.where(x < low, low, jnp.where(x > high, high, x))


def _x_log_y(x: jax.Array, y: jax.Array) -> jax.Array:
    """Compute x log y, 0 where x is 0."""
    return jnp.where(x == 0, jnp.zeros_like(x), x * jnp.log(jnp.where(x == 0, 1, y)))


def _log1mexp(x: jax.Array) -> jax.Array:
    """Compute log(1 - exp(x)) for negative x, as accurately near 0 as far from it."""
    near = x > -numpy.log(2.0)
    return jnp.where(near, jnp.log(-jnp.expm1(x)), jnp.log1p(-jnp.exp(x)))


def _round_half_away(x: jax.Array) -> jax.Array:
    return jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5)


def _multiply_without_zeros(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(x == 0, y, jnp.where(y == 0, x, x * y))


def _floor_divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """Divide and round down; an integer divided by 0 is 0, as numpy has it."""
    if jnp.issubdtype(x.dtype, jnp.floating):
        # Numpy's quotient by 0 is infinite, and that of JAX is NaN.
        return jnp.where(y == 0, x / y, jnp.floor_divide(x, jnp.where(y == 0, 1, y)))
    return jnp.where(y == 0, jnp.zeros_like(x), jnp.floor_divide(x, jnp.where(y == 0, 1, y)))


def _modulo(x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the rest of a division, with the sign of the divisor; 0 for an integer by 0."""
    if jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.mod(x, y)
    return jnp.where(y == 0, jnp.zeros_like(x), jnp.mod(x, jnp.where(y == 0, 1, y)))


def _mean_of(*arrays: jax.Array) -> jax.Array:
    return _chain(jnp.add)(*arrays) / len(arrays)


#: Computed in the dtype of the output.
_ARITHMETIC: dict[type, Callable] = {
    scalar.Abs: jnp.abs,
    scalar.Add: _chain(jnp.add),
    scalar.ArcCos: jnp.arccos,
    scalar.ArcCosh: jnp.arccosh,
    scalar.ArcSin: jnp.arcsin,
    scalar.ArcSinh: jnp.arcsinh,
    scalar.ArcTan: jnp.arctan,
    scalar.ArcTan2: jnp.arctan2,
    scalar.ArcTanh: jnp.arctanh,
    scalar.Ceil: jnp.ceil,
    scalar.Clip: _clip,
    scalar.Cos: jnp.cos,
    scalar.Cosh: jnp.cosh,
    scalar.Deg2Rad: jnp.deg2rad,
    scalar.Exp: jnp.exp,
    scalar.Exp2: jnp.exp2,
    scalar.Expm1: jnp.expm1,
    scalar.Floor: jnp.floor,
    scalar.FloorDivide: _floor_divide,
    scalar.Identity: lambda x: x,
    scalar.Log: jnp.log,
    scalar.Log10: jnp.log10,
    scalar.Log1p: jnp.log1p,
    scalar.Log2: jnp.log2,
    scalar.Mean: _mean_of,
    scalar.Mod: _modulo,
    scalar.Mul: _chain(jnp.multiply),
    scalar.Neg: jnp.negative,
    scalar.Pow: jnp.power,
    scalar.Rad2Deg: jnp.rad2deg,
    scalar.Reciprocal: jnp.reciprocal,
    scalar.RoundHalfAwayFromZero: _round_half_away,
    scalar.RoundHalfToEven: jnp.round,
    scalar.ScalarMaximum: _chain(jnp.maximum),
    scalar.ScalarMinimum: _chain(jnp.minimum),
    scalar.Sgn: jnp.sign,
    scalar.Sin: jnp.sin,
    scalar.Sinh: jnp.sinh,
    scalar.Sqr: jnp.square,
    scalar.Sqrt: jnp.sqrt,
    scalar.Sub: jnp.subtract,
    scalar.Tan: jnp.tan,
    scalar.Tanh: jnp.tanh,
    scalar.TrueDivide: jnp.true_divide,
    scalar.Trunc: jnp.trunc,
    scalar.AND: _chain(jnp.bitwise_and),
    scalar.OR: _chain(jnp.bitwise_or),
    scalar.XOR: _chain(jnp.bitwise_xor),
    scalar.Invert: jnp.invert,
    special.Erf: lax.erf,
    special.Erfc: lax.erfc,
    special.Erfinv: lax.erf_inv,
    special.Gamma: jax_special.gamma,
    special.GammaInc: jax_special.gammainc,
    special.GammaIncC: jax_special.gammaincc,
    special.GammaLn: lax.lgamma,
    special.I0: jax_special.i0,
    special.I1: jax_special.i1,
    special.Log1mexp: _log1mexp,
    special.Psi: lax.digamma,
    special.Sigmoid: jax.nn.sigmoid,
    special.Softplus: jax.nn.softplus,
    special.TriGamma: lambda x: jax_special.polygamma(1, x),
    MulWithoutZeros: _multiply_without_zeros,
    ScalarSoftsign: lambda x: x / (1 + jnp.abs(x)),
    UltraFastScalarSigmoid: jax.nn.sigmoid,
    xlogx.XlogX: lambda x: _x_log_y(x, x),
    xlogx.XlogY0: _x_log_y,
    **SPECIAL,
}

#: Computed in the dtype that numpy promotes the operands to; the result is a truth value.
_COMPARISONS: dict[type, Callable] = {
    scalar.EQ: jnp.equal,
    scalar.GE: jnp.greater_equal,
    scalar.GT: jnp.greater,
    scalar.IsInf: jnp.isinf,
    scalar.IsNan: jnp.isnan,
    scalar.LE: jnp.less_equal,
    scalar.LT: jnp.less,
    scalar.NEQ: jnp.not_equal,
}


#: Computed in the dtypes that the operands have, because one of them is complex.
_COMPLEX: dict[type, Callable] = {
    scalar.Angle: jnp.angle,
    scalar.Complex: lambda x, y: lax.complex(*jnp.broadcast_arrays(x, y)),
    scalar.ComplexFromPolar: lambda r, angle: lax.complex(
        *jnp.broadcast_arrays(r * jnp.cos(angle), r * jnp.sin(angle))
    ),
    scalar.Conj: jnp.conj,
    scalar.Imag: jnp.imag,
    scalar.Real: jnp.real,
}


def _complex_function(op: ScalarOp, node: Apply) -> Callable | None:
    """Return the function of an operation that makes or takes apart complex numbers."""
    dtype = node.outputs[0].type.dtype
    if isinstance(op, (scalar.Complex, scalar.ComplexFromPolar)):
        return _converting(_COMPLEX[type(op)], "float64" if dtype == "complex128" else "float32")
    operand = node.inputs[0].type.dtype
    if type(op) in _COMPLEX:
        return _converting(_COMPLEX[type(op)], operand)
    if isinstance(op, scalar.Abs) and operand.startswith("complex"):
        return _converting(jnp.abs, operand)
    return None


def _is_in_range(op: Any) -> Callable:
    """Compare with two bounds, either of which may belong to the range."""
    above = jnp.greater if op.openlow else jnp.greater_equal
    below = jnp.less if op.openhi else jnp.less_equal
    return lambda x, low, high: above(x, low) & below(x, high)


def _integer_order_function(op: ScalarOp, dtype: Any) -> Callable:
    """Convert the operand of a Bessel function, and leave its order known."""
    function = INTEGER_ORDER[type(op)]
    return lambda order, x: function(order, jnp.asarray(x, dtype))


def _scalar_function(op: ScalarOp, node: Apply) -> Callable:
    """Return the function of arrays that a scalar operation stands for.

    Parameters
    ----------
    op : aesara.scalar.basic.ScalarOp
    node : aesara.graph.basic.Apply
        A node whose inputs and outputs have the operation's dtypes.

    Raises
    ------
    UnsupportedOp
        If there is none.
    """
    dtype = node.outputs[0].type.dtype
    if isinstance(op, scalar.Cast):
        return lambda x: jnp.asarray(x).astype(dtype)
    if isinstance(op, scalar.Switch):
        return lambda condition, x, y: jnp.where(
            jnp.asarray(condition) != 0, jnp.asarray(x, dtype), jnp.asarray(y, dtype)
        )
    if isinstance(op, scalar.Second):
        return lambda x, y: jnp.broadcast_to(
            jnp.asarray(y, dtype), numpy.broadcast_shapes(numpy.shape(x), numpy.shape(y))
        )
    if isinstance(op, scalar.Composite):
        return _composite_function(op)
    complex_function = _complex_function(op, node)
    if complex_function is not None:
        return complex_function
    if type(op) in INTEGER_ORDER:
        return _integer_order_function(op, dtype)
    if type(op) in _COMPARISONS or isinstance(op, scalar.InRange):
        operand_dtype = numpy.result_type(*(variable.type.dtype for variable in node.inputs))
        function = _COMPARISONS.get(type(op)) or _is_in_range(op)
        return _converting(function, operand_dtype)
    if type(op) in _ARITHMETIC:
        return _converting(_ARITHMETIC[type(op)], dtype)
    raise UnsupportedOp(
        f"XLA has no lowering for the scalar operation {op}. Write the expression with other "
        "operations, or compile this function with backend='py'."
    )


def _converting(function: Callable, dtype: Any) -> Callable:
    """Make a function convert its operands first."""
    return lambda *arrays: function(*(jnp.asarray(array, dtype) for array in arrays))


def _composite_function(op: scalar.Composite) -> Callable:
    """Return the function of a scalar operation that is made of others."""
    steps = [(node, _scalar_function(node.op, node)) for node in op.fgraph.toposort()]

    def composite(*arrays: Any) -> Any:
        values = dict(zip(op.fgraph.inputs, arrays, strict=True))
        for node, function in steps:
            operands = (values.get(x, getattr(x, "data", None)) for x in node.inputs)
            values[node.outputs[0]] = jnp.asarray(function(*operands), node.outputs[0].type.dtype)
        results = tuple(values[variable] for variable in op.fgraph.outputs)
        return results if len(results) > 1 else results[0]

    return composite


def _refuse_run_time_broadcasting(node: Apply, shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuse to repeat a dimension of length 1 that the graph does not know to be of length 1.

    Aesara's gradient is only right for the broadcasting that it knows of.
    """
    for axis, lengths in enumerate(zip(*shapes, strict=True)):
        if max(lengths) == min(lengths):
            continue
        for variable, length in zip(node.inputs, lengths, strict=True):
            if length == 1 and not variable.type.broadcastable[axis]:
                name = f"'{variable.name}'" if variable.name else "an operand"
                raise GraphError(
                    f"axis {axis} of {name} has length 1 and would be repeated to {max(lengths)}, "
                    f"but its type, {variable.type}, does not say so, and its gradient would be "
                    "wrong. Declare the length, for example with "
                    "aesara.tensor.addbroadcast(x, axis) or tensor.col/row, or give "
                    "arrays of equal lengths"
                )


@lowering(Elemwise)
def lower_elemwise(op: Elemwise, node: Apply, context: Context) -> Callable:
    """Compute element by element, with the broadcasting that the graph declares."""
    function = _scalar_function(op.scalar_op, node)
    if node.outputs[0].type.ndim == 0 or len(node.inputs) == 1:
        return function

    def elemwise(*arrays: Any) -> Any:
        _refuse_run_time_broadcasting(node, [numpy.shape(array) for array in arrays])
        return function(*arrays)

    return elemwise


@lowering(ScalarOp)
def lower_scalar(op: ScalarOp, node: Apply, context: Context) -> Callable:
    """Compute a single number."""
    return _scalar_function(op, node)


_REDUCTIONS: dict[type, Callable] = {
    scalar.Add: jnp.sum,
    scalar.Mul: jnp.prod,
    scalar.ScalarMaximum: jnp.max,
    scalar.ScalarMinimum: jnp.min,
    scalar.AND: jnp.all,
    scalar.OR: jnp.any,
}

#: How integers are reduced bit by bit: the value to begin with, and the function of two.
_BITWISE_REDUCTIONS: dict[type, tuple[int, Callable]] = {
    scalar.AND: (-1, lax.bitwise_and),
    scalar.OR: (0, lax.bitwise_or),
    scalar.XOR: (0, lax.bitwise_xor),
}


def _bitwise_reduction(op: CAReduce, node: Apply) -> Callable:
    """Reduce truth values or integers bit by bit."""
    start, function = _BITWISE_REDUCTIONS[type(op.scalar_op)]
    source = node.inputs[0].type
    axes = range(source.ndim) if op.axis is None else op.axis
    first = numpy.asarray(start).astype(source.dtype)
    return lambda x: lax.reduce(jnp.asarray(x), first, function, tuple(axes))


@lowering(CAReduce)
def lower_reduction(op: CAReduce, node: Apply, context: Context) -> Callable:
    """Reduce over axes, in the accumulator's dtype for sums and products.

    Aesara adds float32 up in float64, because C adds one number after another. XLA adds in a tree,
    which is as accurate in float32 and up to three times faster.
    """
    function = _REDUCTIONS.get(type(op.scalar_op))
    if isinstance(op.scalar_op, MulWithoutZeros):
        return _product_without_zeros(op)
    is_bool = node.inputs[0].type.dtype == "bool"
    if type(op.scalar_op) in _BITWISE_REDUCTIONS and not (is_bool and function):
        return _bitwise_reduction(op, node)
    if function is None:
        raise UnsupportedOp(f"XLA has no lowering for a reduction by {op.scalar_op}.")
    if function not in (jnp.sum, jnp.prod):
        return lambda x: function(jnp.asarray(x), axis=op.axis)
    dtype = node.outputs[0].type.dtype
    accumulator = getattr(op, "acc_dtype", None) or dtype
    if (dtype, accumulator) == ("float32", "float64"):
        accumulator = dtype
    return lambda x: function(jnp.asarray(x), axis=op.axis, dtype=accumulator)


def _product_without_zeros(op: CAReduce) -> Callable:
    """Multiply what is not 0; the product of nothing but zeros is 0."""

    def product(x: Any) -> jax.Array:
        x = jnp.asarray(x)
        result = jnp.prod(jnp.where(x == 0, 1, x), axis=op.axis, dtype=x.dtype)
        return jnp.where(jnp.all(x == 0, axis=op.axis), jnp.zeros_like(result), result)

    return product


@lowering(DimShuffle)
def lower_dimshuffle(op: DimShuffle, node: Apply, context: Context) -> Callable:
    """Drop, reorder and add axes."""
    kept = [axis for axis in op.new_order if axis != "x"]
    dropped = tuple(axis for axis in range(node.inputs[0].type.ndim) if axis not in kept)
    order = tuple(sorted(kept).index(axis) for axis in kept)
    added = tuple(place for place, axis in enumerate(op.new_order) if axis == "x")

    def dimshuffle(x: Any) -> jax.Array:
        x = lax.squeeze(jnp.asarray(x), dropped)
        return lax.expand_dims(lax.transpose(x, order), added)

    return dimshuffle
