"""Functions of JAX as operations of Aesara: what a graph lacks can be written in JAX.

:func:`wrap` makes the operation. It infers what the function returns by tracing it, its gradients
are those of ``jax.vjp``, and it is computed by JAX on every backend.
"""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from aesara import tensor
from aesara.gradient import DisconnectedType
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import Op
from aesara.tensor.type import TensorType

from bricks.xla.devices import x64
from bricks.xla.lowering import Context, lowering

__all__ = ["wrap"]

#: Lengths that stand in for those that are not known when a graph is built; many numbers divide
#: them, and what is 1 for all of them is taken to be 1 always.
_TRIAL_LENGTHS = (12, 24)


def wrap(
    function: Callable[..., Any] | None = None,
    *,
    outputs: TensorType | Sequence[TensorType] | None = None,
    differentiable: Sequence[int] | None = None,
) -> Any:
    """Make an operation of a pure function of JAX; usable as a decorator.

    Parameters
    ----------
    function : function
        Takes arrays and returns an array or a tuple of them. It must have no side effects, and its
        shapes must depend on shapes only. Arguments that are no arrays are bound by
        :func:`functools.partial`.
    outputs : TensorType or sequence of them, optional
        What it returns. By default the function is traced: exactly if all lengths of the inputs
        are known; otherwise dtypes and numbers of axes are found, and axes of length 1.
    differentiable : sequence of int, optional
        Places of the inputs that gradients flow to; by default all inputs of real numbers. Integers
        have no gradient.

    Returns
    -------
    Wrapped
        An operation, to be called with symbolic variables. It returns a variable, or a list of
        them if the function returns several arrays.

    Notes
    -----
    Gradients are those of ``jax.vjp``, of any order. A graph with the operation can be pickled if
    the function can be imported: define it at the top level of a module.

    Examples
    --------
    >>> import aesara, bricks, jax
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> @xla.wrap
    ... def smooth_maximum(x):
    ...     return jax.nn.logsumexp(x, axis=-1)
    >>> x = tensor.dmatrix("x")
    >>> highest = smooth_maximum(x)
    >>> highest.type
    TensorType(float64, (?,))
    >>> slope = aesara.grad(highest.sum(), x)
    >>> f = xla.function([x], [highest, slope])
    >>> [out.round(3).tolist() for out in f([[0, 0], [0, 100]])]
    [[0.693, 100.0], [[0.5, 0.5], [0.0, 1.0]]]

    Several results, types that are declared, and an input without gradient:

    >>> def pick(x, place):
    ...     return x[place], x.sum()
    >>> first, total = xla.wrap(pick, outputs=[tensor.dscalar, tensor.dscalar])(x[0], 0)
    >>> xla.function([x], [first, total])([[1, 2]])
    [array(1.), array(3.)]
    """
    if function is None:
        return functools.partial(wrap, outputs=outputs, differentiable=differentiable)
    if isinstance(outputs, TensorType):
        outputs = [outputs]
    return Wrapped(
        function,
        None if outputs is None else tuple(outputs),
        None if differentiable is None else tuple(differentiable),
    )


class Wrapped(Op):
    """An operation that a function of JAX computes; made by :func:`wrap`.

    Parameters
    ----------
    function : function
        Of arrays.
    types : tuple of TensorType, optional
        What it returns.
    differentiable : tuple of int, optional
        Places of the inputs that gradients flow to.

    Raises
    ------
    TypeError
        If the function cannot be called, or a type is no TensorType.
    """

    __props__ = ("function", "types", "differentiable")

    def __init__(
        self,
        function: Callable[..., Any],
        types: tuple[TensorType, ...] | None = None,
        differentiable: tuple[int, ...] | None = None,
    ):
        if not callable(function):
            raise TypeError(f"xla.wrap: `function` must be a function of JAX; got {function!r}.")
        for type_ in types or ():
            if not isinstance(type_, TensorType):
                raise TypeError(
                    "xla.wrap: `outputs` must be types of Aesara, such as tensor.fmatrix or "
                    f"TensorType('float32', (None, 1)); got {type_!r}."
                )
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.types = types
        self.differentiable = differentiable

    def __str__(self) -> str:
        return f"xla.wrap({_name_of(self.function)})"

    def __reduce__(self) -> Any:
        module = sys.modules.get(getattr(self.function, "__module__", None) or "")
        name = getattr(self.function, "__qualname__", "")
        if getattr(module, name, None) is self:
            # It was decorated, so its name now stands for the operation.
            return name
        try:
            pickle.dumps(self.function)
        except Exception as error:
            raise pickle.PicklingError(
                f"{self} cannot be pickled, because its function cannot be imported: {error}. "
                "Define the function at the top level of a module."
            ) from error
        return Wrapped, (self.function, self.types, self.differentiable)

    def __copy__(self) -> Wrapped:
        return self

    def __deepcopy__(self, memo: dict) -> Wrapped:
        return self

    def make_node(self, *inputs: Any) -> Apply:
        """Make the node of some inputs, with what the function returns for them."""
        operands = [tensor.as_tensor_variable(x) for x in inputs]
        self._check_places(operands)
        types = self.types or _infer(self, [operand.type for operand in operands])
        return Apply(self, operands, [type_() for type_ in types])

    def _check_places(self, operands: Sequence[Variable]) -> None:
        for place in self.differentiable or ():
            if place not in range(len(operands)) or not _is_real(operands[place]):
                kinds = ", ".join(str(operand.type) for operand in operands)
                raise TypeError(
                    f"{self}: `differentiable` names input {place}, which is no input of real "
                    f"numbers; the inputs are {kinds}."
                )

    def compute(self, *operands: Any) -> tuple[jax.Array, ...]:
        """Call the function.

        Parameters
        ----------
        *operands : array

        Returns
        -------
        tuple of arrays
            One for each output, also if it is a single one.

        Raises
        ------
        TypeError
            If the function returns something else than arrays, or than what was declared.
        """
        returned = self.function(*map(jnp.asarray, operands))
        results = tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
        for result in results:
            if not isinstance(result, (jax.Array, numpy.ndarray, numpy.generic, int, float)):
                raise TypeError(
                    f"{self} must return an array, or a tuple of arrays; got "
                    f"{type(result).__name__}"
                )
        arrays = tuple(map(jnp.asarray, results))
        if self.types is not None:
            _check_declared(self, arrays)
        return arrays

    def perform(
        self, node: Apply, inputs: Sequence[Any], output_storage: list[list], params: Any = None
    ) -> None:
        """Compute without a graph around it."""
        with x64():
            results = self.compute(*inputs)
            for storage, result, output in zip(output_storage, results, node.outputs, strict=True):
                storage[0] = numpy.array(result, output.type.dtype)

    def _differentiable_places(self, inputs: Sequence[Variable]) -> tuple[int, ...]:
        if self.differentiable is not None:
            return self.differentiable
        return tuple(place for place, variable in enumerate(inputs) if _is_real(variable))

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Real outputs are connected to the inputs that gradients flow to."""
        places = self._differentiable_places(node.inputs)
        are_real = [_is_real(output) for output in node.outputs]
        return [
            [place in places and is_real for is_real in are_real]
            for place in range(len(node.inputs))
        ]

    def L_op(
        self, inputs: Sequence[Any], outputs: Sequence[Any], gradients: Sequence[Any]
    ) -> list[Variable]:
        """Compute the gradients by an operation of the same kind."""
        places = self._differentiable_places(inputs)
        connected = tuple(
            place
            for place, gradient in enumerate(gradients)
            if not isinstance(gradient.type, DisconnectedType) and _is_real(outputs[place])
        )
        slopes: list[Variable] = [DisconnectedType()() for _ in inputs]
        if not (places and connected):
            return slopes
        pullback: Any = Wrapped(
            _Pullback(self, places, connected),
            tuple(inputs[place].type for place in places),
            (*places, *range(len(inputs), len(inputs) + len(connected))),
        )
        results = pullback(*inputs, *(gradients[place] for place in connected))
        for place, slope in zip(places, results if len(places) > 1 else [results], strict=True):
            slopes[place] = slope
        return slopes


@dataclass(frozen=True)
class _Pullback:
    """The gradients of a wrapped function, as a function of its inputs and those of its outputs.

    Parameters
    ----------
    operation : Wrapped
    places : tuple of int
        Of the inputs that gradients flow to.
    connected : tuple of int
        Places of the outputs whose gradients are given.
    """

    operation: Wrapped
    places: tuple[int, ...]
    connected: tuple[int, ...]

    @property
    def __name__(self) -> str:
        return f"gradient of {_name_of(self.operation.function)}"

    def __call__(self, *operands: jax.Array) -> tuple[jax.Array, ...]:
        num_inputs = len(operands) - len(self.connected)
        inputs, gradients = list(operands[:num_inputs]), operands[num_inputs:]

        def function(*values: jax.Array) -> list[jax.Array]:
            for place, value in zip(self.places, values, strict=True):
                inputs[place] = value
            results = self.operation.compute(*inputs)
            return [results[place] for place in self.connected]

        results, pull = jax.vjp(function, *(operands[place] for place in self.places))
        return pull(
            [
                jnp.broadcast_to(gradient, result.shape).astype(result.dtype)
                for gradient, result in zip(gradients, results, strict=True)
            ]
        )


@lowering(Wrapped, fold=False)
def lower_wrapped(op: Wrapped, node: Apply, context: Context) -> Callable:
    """Call the function."""

    def wrapped(*operands: Any) -> Any:
        results = op.compute(*operands)
        return results if len(results) > 1 else results[0]

    return wrapped


def _is_real(variable: Variable) -> bool:
    return str(variable.type.dtype).startswith("float")


def _name_of(function: Any) -> str:
    inner = getattr(function, "func", function)
    return getattr(inner, "__name__", None) or type(inner).__name__


def _check_declared(operation: Wrapped, arrays: Sequence[jax.Array]) -> None:
    """Refuse results that differ from the declared ones in number or shape."""
    types = operation.types or ()
    fits = len(arrays) == len(types) and all(
        len(type_.shape) == array.ndim
        and all(length in (None, own) for length, own in zip(type_.shape, array.shape, strict=True))
        for type_, array in zip(types, arrays, strict=True)
    )
    if not fits:
        declared = ", ".join(str(type_) for type_ in types)
        returned = ", ".join(f"{array.dtype}{array.shape}" for array in arrays)
        raise TypeError(f"{operation} returned {returned}, but {declared} was declared")


def _infer(operation: Wrapped, types: Sequence[TensorType]) -> list[TensorType]:
    """Find out what a function returns by tracing it.

    Raises
    ------
    TypeError
        If it cannot be traced, or what it returns is no tensor or depends on lengths that are not
        known.
    """
    is_exact = all(None not in type_.shape for type_ in types)
    known = {length for type_ in types for length in type_.shape if length not in (None, 1)}
    found, failure = [], None
    for length in (1,) if is_exact else (*_TRIAL_LENGTHS, *sorted(known)):
        try:
            found.append(_trace(operation, types, length))
        except Exception as error:
            failure = failure or error
    if not found:
        inputs = ", ".join(str(type_) for type_ in types)
        hint = "" if is_exact else " Declare what it returns with `outputs`, or fix lengths."
        raise TypeError(
            f"{operation} cannot be traced with {inputs}: {failure}.{hint}"
        ) from failure
    kinds = {tuple((result.dtype, len(result.shape)) for result in results) for results in found}
    if len(kinds) > 1:
        raise TypeError(
            f"{operation} returns arrays whose number, dtype or number of axes depends on the "
            "lengths of its inputs. Declare what it returns with `outputs`."
        )
    return [_common_type(operation, results, is_exact) for results in zip(*found, strict=True)]


def _trace(
    operation: Wrapped, types: Sequence[TensorType], length: int
) -> Sequence[jax.ShapeDtypeStruct]:
    """Trace a function with a length in the place of those that are not known."""
    operands = [
        jax.ShapeDtypeStruct([length if n is None else n for n in type_.shape], type_.dtype)
        for type_ in types
    ]
    with x64():
        return jax.eval_shape(operation.compute, *operands)


def _common_type(
    operation: Wrapped, results: Iterable[jax.ShapeDtypeStruct], is_exact: bool
) -> TensorType:
    """Return the type of a result that was traced with several lengths."""
    shapes = [result.shape for result in results]
    dtype = next(iter(results)).dtype
    if is_exact:
        lengths = list(shapes[0])
    else:
        is_sure = len(shapes) > 1
        lengths = [
            1 if is_sure and set(axis) == {1} else None for axis in zip(*shapes, strict=True)
        ]
    try:
        return TensorType(str(dtype), shape=tuple(lengths))
    except TypeError as error:
        raise TypeError(
            f"{operation} returns {dtype}, which is no dtype of Aesara. Cast it in the function."
        ) from error
