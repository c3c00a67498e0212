"""Lowerings of sorting and searching, and of what picks elements by their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Apply, Constant
from aesara.tensor import extra_ops
from aesara.tensor.shape import SpecifyShape
from aesara.tensor.sort import ArgSortOp, SortOp, TopKOp
from jax import lax

from bricks.xla.errors import DataDependentShape, GraphError
from bricks.xla.lowering import Context, is_known, known_int, lowering

__all__: list[str] = []


@lowering(SortOp)
def lower_sort(op: Any, node: Apply, context: Context) -> Callable:
    """Sort along an axis, whatever the kind of sort: XLA's is stable."""
    return lambda x, axis: jnp.sort(jnp.asarray(x), axis=known_int(axis, "the axis to sort along"))


@lowering(ArgSortOp)
def lower_argsort(op: Any, node: Apply, context: Context) -> Callable:
    """Find the order that sorts along an axis; equal elements keep theirs."""

    def argsort(x: Any, axis: Any) -> jax.Array:
        return jnp.argsort(jnp.asarray(x), axis=known_int(axis, "the axis to sort along"))

    return argsort


@lowering(TopKOp, fold=False)
def lower_top(op: TopKOp, node: Apply, context: Context) -> Callable:
    """Find the largest elements along an axis, or the smallest for a negative number of them.

    Aesara leaves their order open; here the most extreme comes first, and of equal ones the first.
    """

    def top(x: Any, count: Any) -> Any:
        x, count = jnp.asarray(x), known_int(count, "how many elements to find")
        length = x.shape[op.axis]
        if not 0 < abs(count) <= length:
            raise GraphError(
                f"1 to {length} elements can be found along axis {op.axis} of an array of shape "
                f"{x.shape}, or as many of the smallest by a negative number; got {count}"
            )
        rows = jnp.moveaxis(x, op.axis, -1)
        if count > 0:
            values, places = lax.top_k(rows, count)
        else:
            places = jnp.argsort(rows, axis=-1)[..., :-count]
            values = jnp.take_along_axis(rows, places, axis=-1)
        found = [values] * op.return_values + [places] * op.return_indices
        results = tuple(jnp.moveaxis(part, -1, op.axis) for part in found)
        return results if len(results) > 1 else results[0]

    return top


@lowering(extra_ops.SearchsortedOp)
def lower_searchsorted(op: Any, node: Apply, context: Context) -> Callable:
    """Find where values belong in a sorted vector."""

    def searchsorted(x: Any, values: Any, sorter: Any = None) -> jax.Array:
        x = jnp.asarray(x) if sorter is None else jnp.asarray(x)[jnp.asarray(sorter)]
        return jnp.searchsorted(x, jnp.asarray(values), side=op.side)

    return searchsorted


def _declared_number(node: Apply, axis: int, context: Context) -> int | None:
    """Return the length that the graph declares for the elements that ``unique`` will find."""
    for client in context.clients_of(node.outputs[0]):
        if client is not None and isinstance(client.op, SpecifyShape):
            length = client.inputs[1 + axis]
            if isinstance(length, Constant) and length.data is not None:
                return int(length.data)
    return None


def _flat_inverse(found: tuple[Any, ...], op: extra_ops.Unique) -> Any:
    """Choose the results of ``unique`` that are wanted; the places of all elements are a vector."""
    wanted = (True, op.return_index, op.return_inverse, op.return_counts)
    values, first, inverse, counts = found
    results = tuple(
        result
        for result, is_wanted in zip(
            (values, first, inverse.reshape(-1), counts), wanted, strict=True
        )
        if is_wanted
    )
    return results if len(results) > 1 else results[0]


@lowering(extra_ops.Unique, fold=False)
def lower_unique(op: extra_ops.Unique, node: Apply, context: Context) -> Callable:
    """Find the different elements, whose number the graph declares by ``specify_shape``."""
    everything: dict[str, Any] = dict.fromkeys(
        ("return_index", "return_inverse", "return_counts"), True
    )

    def unique(x: Any) -> Any:
        if is_known(x):
            return _flat_inverse(numpy.unique(x, axis=op.axis, **everything), op)
        axis = 0 if op.axis is None else op.axis % x.ndim
        number = _declared_number(node, axis, context)
        if number is None:
            raise DataDependentShape(
                "how many different elements there are must be known when the graph is compiled "
                "(declare it with tensor.specify_shape(tensor.unique(x), [number]))",
                x,
            )
        most = x.size if op.axis is None else x.shape[axis]
        values, first, inverse, counts = jnp.unique(x, axis=op.axis, size=most, **everything)
        context.check(
            (counts > 0).sum() == number,
            GraphError(f"{node.op} found another number of different elements than {number}"),
        )
        values = lax.slice_in_dim(values, 0, number, axis=axis)
        return _flat_inverse((values, first[:number], inverse, counts[:number]), op)

    return unique
