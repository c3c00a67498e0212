"""Where a cost went wrong: the first brick and variable whose value is not finite.

Nothing here is used while all is well: the graph is compiled a second time, with every value in
it as an output, and looked at in the order in which it is computed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Constant, io_toposort

from bricks import xla
from bricks.algorithms.batches import Batch, BatchInputs
from bricks.algorithms.states import (
    AnyVariable,
    explicit_inputs,
    shared_inputs,
    variable_path,
)
from bricks.filter import get_brick
from bricks.roles import INPUT, has_roles

Values = dict[AnyVariable, Any]


def find_non_finite(
    algorithm: Any, batch: Batch, state: Mapping[AnyVariable, Any] | None = None
) -> str | None:
    """Say, in words, where the cost or a gradient first stops being finite on a batch.

    Parameters
    ----------
    algorithm : GradientDescent
        The algorithm. If the batch was processed already, its parameters are those after the
        step, unless `GradientDescent.hold_on_non_finite` was called.
    batch : dict from str to array
        The batch.
    state : mapping from SharedVariable to array, optional
        Values to be used instead of the present ones, for example those before the step.

    Returns
    -------
    str or None
        The source, parameter, brick or variable, with figures about its value and about what
        it was computed from. None if the cost and all gradients are finite.

    Notes
    -----
    All shared variables, random keys too, have their values again afterwards. Infinite values
    that do not reach the cost, as in a mask, are passed over. Expressions that the compiler
    would have rewritten into a stable form may be rewritten less when each value is asked for.
    """
    roots = [root for root in (algorithm.cost, *algorithm.gradients.values()) if root is not None]
    arrays = _arrays(roots, batch)
    for name, array in arrays.items():
        if not _is_finite(array):
            return f"Source {name!r} of the batch is not finite: {_figures(array)}."
    with _given_values(state or {}):
        shared = list(shared_inputs(roots))
        for variable in shared:
            if not _is_finite(variable.get_value(borrow=True)):
                return _about_shared(variable)
        for root in roots:
            (value,) = _evaluate([root], arrays)
            if not _is_finite(value):
                return _about_graph(root, arrays)
    return None


def _arrays(roots: Sequence[AnyVariable], batch: Batch) -> dict[str, Any]:
    inputs = BatchInputs(explicit_inputs(roots), "find_non_finite")
    inputs.check_sources(batch.keys())
    return dict(zip(inputs.names, inputs.arrange(batch), strict=True))


@contextmanager
def _given_values(state: Mapping[AnyVariable, Any]) -> Iterator[None]:
    """Use some values for a while."""
    saved = {variable: variable.get_value() for variable in state}
    try:
        for variable, value in state.items():
            variable.set_value(numpy.asarray(value, dtype=variable.dtype))
        yield
    finally:
        for variable, value in saved.items():
            variable.set_value(value)


def _evaluate(variables: Sequence[AnyVariable], arrays: Mapping[str, Any]) -> list[Any]:
    """Compute some values, all with the same random numbers: no key is advanced."""
    inputs = explicit_inputs(variables)
    function = xla.function(inputs, list(variables), name="diagnosis", no_default_updates=True)
    return function(*[arrays[variable.name] for variable in inputs])


def _about_shared(variable: AnyVariable) -> str:
    brick = get_brick(variable)
    # An allocation is all NaN; who has set values need not initialize.
    nothing_set = numpy.isnan(variable.get_value()).all()
    if brick is not None and not brick.initialized and nothing_set:
        return (
            f"{brick.path} was never initialized, so {variable_path(variable)} is not finite: "
            f"{_figures(variable.get_value())}. Call `initialize()` of this brick, or of the one "
            "that it is a part of, before training."
        )
    return (
        f"{variable_path(variable)} is not finite before the batch is looked at: "
        f"{_figures(variable.get_value())}. The step that made it so came earlier, or was the one "
        "on this batch: call `hold_on_non_finite` before training, and the state stays as it was "
        "before such a step."
    )


def _about_graph(root: AnyVariable, arrays: Mapping[str, Any]) -> str:
    """Find the first value that is not finite and reaches the root by such values only."""
    order = [v for node in io_toposort([], [root]) for v in node.outputs if _is_float(v)]
    values: Values = dict(zip(order, _evaluate(order, arrays), strict=True))
    reached, todo = set(), [root]
    while todo:
        variable = todo.pop()
        if variable in reached or variable not in values or _is_finite(values[variable]):
            continue
        reached.add(variable)
        todo.extend(variable.owner.inputs)
    for variable in order:
        targets = _about_targets(variable, arrays) if variable in reached else None
        if targets is not None:
            return f"{targets} The cost of such an example, {_place(variable, order)}, is NaN."
    first = next((variable for variable in order if variable in reached), root)
    # Integers were not computed so far: an index out of range gives NaN.
    others = [v for v in dict.fromkeys(first.owner.inputs) if v.owner is not None and _is_whole(v)]
    values.update(zip(others, _evaluate(others, arrays), strict=True))
    what = (
        f"The first value that is not finite is {_title(first)} {_place(first, order)}: "
        f"{_figures(values[first])}."
    )
    return f"{what} It is computed from {_about_inputs(first, values, arrays)}."


def _about_targets(variable: AnyVariable, arrays: Mapping[str, Any]) -> str | None:
    """Say which targets are no classes, if a value is NaN for their sake."""
    targets = getattr(variable.tag, "targets", None)
    # The inputs may have been replaced since the expression was made.
    if targets is None or not {v.name for v in explicit_inputs(targets)} <= set(arrays):
        return None
    numbers, count = _evaluate(targets, arrays)
    wrong = sorted({int(n) for n in numpy.ravel(numbers) if not 0 <= n < count})
    if not wrong:
        return None
    shown = ", ".join(map(str, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
    return (
        f"There is a target {shown}, but there are {count} classes, 0 to {count - 1}: "
        f"{_figures(numbers)}."
    )


def _about_inputs(variable: AnyVariable, values: Values, arrays: Mapping[str, Any]) -> str:
    parts = []
    for variable_in in dict.fromkeys(variable.owner.inputs):
        value = _value_of(variable_in, values, arrays)
        if value is not None:
            parts.append(f"{_title(variable_in)} ({_figures(value)})")
    return "; ".join(parts) or "nothing"


def _value_of(variable: AnyVariable, values: Values, arrays: Mapping[str, Any]) -> Any:
    if isinstance(variable, SharedVariable):
        return variable.get_value()
    if isinstance(variable, Constant):
        return variable.data
    if variable in values:
        return values[variable]
    return arrays.get(variable.name)


def _title(variable: AnyVariable) -> str:
    if isinstance(variable, SharedVariable):
        return variable_path(variable)
    if isinstance(variable, Constant):
        return "a constant"
    if variable.owner is None or variable.name:
        return repr(variable.name)
    return f"a result of {variable.owner.op}"


def _place(variable: AnyVariable, order: Sequence[AnyVariable]) -> str:
    """Name the brick in which a variable is computed, by what it is used for."""
    later = order[order.index(variable) :]
    depends = {variable}
    for candidate in later:
        if candidate is not variable and not depends.intersection(candidate.owner.inputs):
            continue
        depends.add(candidate)
        brick = get_brick(candidate)
        if brick is None:
            continue
        # An input of a brick is computed outside of it.
        if has_roles(candidate, [INPUT]):
            return f"before {brick.path}"
        return f"in {brick.path}"
    return "outside of all bricks"


def _is_float(variable: AnyVariable) -> bool:
    return str(getattr(variable, "dtype", "")).startswith("float")


def _is_whole(variable: AnyVariable) -> bool:
    return str(getattr(variable, "dtype", "")).startswith(("int", "uint"))


def _is_finite(value: Any) -> bool:
    array = numpy.asarray(value)
    return array.dtype.kind != "f" or bool(numpy.isfinite(array).all())


def _figures(value: Any) -> str:
    """Describe a value in one line."""
    array = numpy.asarray(value)
    shown = f"{array.dtype} of shape {array.shape}"
    if array.dtype.kind not in "fiu" or not array.size:
        return shown
    good = array[numpy.isfinite(array)] if array.dtype.kind == "f" else array
    bad = []
    if array.dtype.kind == "f":
        counts = {"NaN": numpy.isnan(array).sum(), "infinite": numpy.isinf(array).sum()}
        bad = [f"{count} {kind}" for kind, count in counts.items() if count]
    parts = [shown, *([f"{' and '.join(bad)} of {array.size} elements"] if bad else [])]
    if good.size:
        parts.append(f"{'the others ' if bad else ''}from {good.min():.6g} to {good.max():.6g}")
    return ", ".join(parts)
