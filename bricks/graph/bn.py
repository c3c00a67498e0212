"""Switch batch normalization to the mode of training, and find what updates its statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from aesara.graph.basic import Variable

from bricks.applications import ApplicationCall
from bricks.base import Brick
from bricks.bn import BatchNormalization
from bricks.filter import VariableFilter, get_application_call
from bricks.graph.computation import ComputationGraph
from bricks.roles import INPUT, OUTPUT
from bricks.utils.plain import find_bricks

__all__ = ["apply_batch_normalization", "batch_normalization", "get_batch_normalization_updates"]


@contextmanager
def batch_normalization(*bricks: Brick) -> Iterator[None]:
    """Apply bricks, and all below them, with batch normalization in the mode of training.

    Parameters
    ----------
    *bricks : Brick
        Those that are batch normalizations, or have some among their descendants.

    Yields
    ------
    None
        While they are in that mode.

    Examples
    --------
    The graph for inference, the one for training, and updates of the statistics by a moving
    average:

    >>> from aesara import tensor
    >>> from bricks import Tanh
    >>> from bricks.bn import BatchNormalizedMLP
    >>> from bricks.graph import ComputationGraph, get_batch_normalization_updates
    >>> mlp = BatchNormalizedMLP([Tanh(), None], [4, 3, 2])
    >>> x = tensor.matrix("x")
    >>> inference = mlp.apply(x)
    >>> with batch_normalization(mlp):
    ...     training = mlp.apply(x)
    >>> pairs = get_batch_normalization_updates(ComputationGraph(training))
    >>> updates = [(population, 0.9 * population + 0.1 * batch) for population, batch in pairs]
    >>> [population.name for population, _ in pairs][:2]
    ['population_mean', 'population_stdev']
    """
    found = find_bricks(bricks, lambda brick: isinstance(brick, BatchNormalization))
    with ExitStack() as stack:
        for brick in found:
            stack.enter_context(brick)
        yield


def apply_batch_normalization(computation_graph: ComputationGraph) -> ComputationGraph:
    """Return the graph for training, given the one for inference.

    Parameters
    ----------
    computation_graph : ComputationGraph
        With applications of batch normalizations. Those in the mode of training already stay as
        they are.

    Returns
    -------
    ComputationGraph
        With all of them in the mode of training.

    Raises
    ------
    ValueError
        If one is applied in the step of a loop, where a batch has no statistics of its own.
    """
    _refuse_in_loops("apply_batch_normalization", _calls(computation_graph.scan_variables))
    variables = computation_graph.variables
    replacements = []
    for call in _calls(variables):
        if call.metadata["training_mode"]:
            continue
        brick: Any = call.application.brick
        inputs = {one.tag.name: one for one in _of_call(variables, INPUT, call)}
        (output,) = _of_call(variables, OUTPUT, call)
        with brick:
            replacements.append((output, brick.apply(**inputs)))
    return computation_graph.replace(replacements) if replacements else computation_graph


def get_batch_normalization_updates(
    training_graph: ComputationGraph, allow_duplicates: bool = False
) -> list[tuple[Any, Variable]]:
    """Pair the statistics of the population with those of the batch.

    Parameters
    ----------
    training_graph : ComputationGraph
        With batch normalizations in the mode of training.
    allow_duplicates : bool
        Whether a brick may be applied several times; then there are several pairs for it, of
        which a user has to make one update.

    Returns
    -------
    list of (SharedVariable, Variable)
        Means and standard deviations, of the same shapes. What becomes of them, such as a moving
        average, is the user's to say.

    Raises
    ------
    ValueError
        If there are none, or a brick is applied several times, or in the step of a loop.
    """
    calls, inside = (
        [call for call in _calls(variables) if call.metadata["training_mode"]]
        for variables in (training_graph.variables, training_graph.scan_variables)
    )
    _refuse_in_loops("get_batch_normalization_updates", inside)
    if not calls:
        raise ValueError(
            "get_batch_normalization_updates: no batch normalization in the mode of training was "
            "found in the graph. Derive one by `apply_batch_normalization(graph)`, or apply the "
            "bricks inside of `with batch_normalization(brick):`."
        )
    seen: list[Any] = []
    for call in calls:
        brick = call.application.brick
        if brick in seen and not allow_duplicates:
            raise ValueError(
                f"get_batch_normalization_updates: {brick.path} is applied several times, so "
                "there are several statistics for it. Pass allow_duplicates=True, and combine "
                "them to one update."
            )
        seen.append(brick)
    return [pair for call in calls for pair in _pairs(call)]


def _refuse_in_loops(function: str, calls: list[ApplicationCall]) -> None:
    """Refuse applications in the steps of loops."""
    if calls:
        raise ValueError(
            f"{function}: {calls[0].application.brick.path} is applied in the step of a loop, "
            "where its statistics would be those of one step. Apply it to whole sequences, or use "
            "LayerNormalization there."
        )


def _pairs(call: ApplicationCall) -> list[tuple[Any, Variable]]:
    brick: Any = call.application.brick
    pairs = [(brick.population_mean, call.metadata["offset"])]
    if not brick.mean_only:
        pairs.append((brick.population_stdev, call.metadata["divisor"]))
    return pairs


def _calls(variables: Iterable[Variable]) -> list[ApplicationCall]:
    """Return the applications of batch normalizations, in the order of the graph."""
    outputs = VariableFilter(bricks=[BatchNormalization], roles=[OUTPUT])(variables)
    calls: list[Any] = [get_application_call(output) for output in outputs]
    return list({id(call): call for call in calls}.values())


def _of_call(variables: Iterable[Variable], role: Any, call: ApplicationCall) -> list[Variable]:
    """Return the inputs or the outputs of one application."""
    found = VariableFilter(bricks=[call.application.brick], roles=[role])(variables)
    return [variable for variable in found if get_application_call(variable) is call]
