"""Derive graphs with dropout and noise.

Each variable gets a random key of its own, whose name says which variable it belongs to
(``dropout/mlp/linear_0.apply.output``) and from which, with the seed, its first value is hashed. So
masks do not depend on the order of the variables, nor on what else is dropped.

A variable of the step of a loop gets one mask, or one noise, for all steps of a call (as Y. Gal and
Z. Ghahramani propose in *A Theoretically Grounded Application of Dropout in Recurrent Neural
Networks*, NIPS 2016), or another one in each step. Both are drawn at once, before the loop. Weights
stand outside of loops, which are given them: they get one mask, or one noise, for a call.

:func:`noise_taken_out` leads back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from aesara import tensor
from aesara.graph.basic import Apply, Variable

from bricks.aesara_expressions import of_dtype
from bricks.filter import get_application_call, get_brick
from bricks.graph.computation import ComputationGraph
from bricks.graph.steps import element_of_step, lengths_outside, loops_around
from bricks.interfaces import derive_seed
from bricks.roles import DROPOUT, add_role
from bricks.utils.plain import is_number

__all__ = ["apply_dropout", "apply_noise", "noise_taken_out"]


def apply_dropout(
    computation_graph: ComputationGraph,
    variables: Iterable[Any],
    drop_prob: Any,
    rng: Any = None,
    seed: int | None = None,
    custom_divisor: Any = None,
    *,
    masks: Mapping[Variable, Variable] | None = None,
    per: str = "sequence",
    same_along: Sequence[int] = (),
) -> ComputationGraph:
    """Return a graph in which elements of some variables are set to zero at random.

    What is left is divided by the probability to be left, so that the graph without dropout is
    the one to use after training.

    Parameters
    ----------
    computation_graph : ComputationGraph
        The graph.
    variables : iterable of Variable
        Variables of floating point numbers in it.
    drop_prob : float or Variable
        The probability to be set to zero, at least 0 and below 1.
    rng : bricks.xla.RandomStream, optional
        What all masks are drawn from; by default each variable has its own key.
    seed : int, optional
        Seed of these keys; ``config.default_seed`` by default.
    custom_divisor : float or Variable, optional
        What to divide by instead.
    masks : mapping of Variable to Variable, optional
        Masks to use for some of the variables, for instance inputs: 1 where the element is left.
        For a variable of the step of a loop the mask has the variable's axes, or the axis of time
        before them; then it holds a mask for each step, in the order in which they are taken.
    per : {'sequence', 'step'}
        Whether variables of steps of loops get one mask for all steps, or another one in each.
    same_along : sequence of int, optional
        Axes of the variables along which masks do not vary, such as ``[0]`` for one mask for all
        times of sequences outside of loops.

    Returns
    -------
    ComputationGraph
        The new graph. What stands for the variables has the role DROPOUT, and
        ``tag.replacement_of``.

    Raises
    ------
    ValueError
        If `drop_prob` is out of range, a variable holds integers, or a mask has other axes or
        belongs to none of the variables.

    References
    ----------
    N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever, R. Salakhutdinov, *Dropout: A Simple Way
    to Prevent Neural Networks from Overfitting*, JMLR 15, 2014.

    Examples
    --------
    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks import Identity, xla
    >>> from bricks.filter import VariableFilter
    >>> from bricks.roles import INPUT
    >>> x = tensor.vector("x")
    >>> graph = ComputationGraph(Identity().apply(x))
    >>> inputs = VariableFilter(roles=[INPUT], bricks=[Identity])(graph.variables)
    >>> dropped = apply_dropout(graph, inputs, drop_prob=0.75, seed=1)
    >>> y = xla.function([x], dropped.outputs[0])(numpy.ones(100, x.dtype))
    >>> sorted(set(y.tolist()))                       # what is left is divided by 0.25
    [0.0, 4.0]

    The states that each step of an LSTM gets, with one mask for each sequence:

    >>> from bricks.recurrent import LSTM
    >>> lstm = LSTM(3)
    >>> graph = ComputationGraph(lstm.apply(tensor.tensor3("x")))
    >>> states = VariableFilter(roles=[INPUT], bricks=[lstm], name="states")(graph.scan_variables)
    >>> dropped = apply_dropout(graph, states, drop_prob=0.5, per="sequence")
    """
    is_known = not isinstance(drop_prob, Variable)
    if is_known and (not is_number(drop_prob) or not 0 <= drop_prob < 1):
        raise ValueError(
            f"apply_dropout: `drop_prob` must be at least 0 and below 1; got {drop_prob!r}."
        )
    divisor = 1 - drop_prob if custom_divisor is None else custom_divisor
    masks = dict(masks or {})
    variables = list(variables)
    for one in masks:
        if one not in variables:
            raise ValueError(
                f"apply_dropout: `masks` has {one}, which is not among `variables`. Add it there."
            )

    place = _Placing(computation_graph, per, same_along)

    def drop(variable: Any, stream: Any) -> Any:
        def draw(size: Any) -> Any:
            return stream.binomial(size=size, p=1 - drop_prob, dtype=variable.dtype)

        mask = masks.get(variable)
        mask = place.drawn(variable, draw) if mask is None else place.given(variable, mask)
        dropped = variable * mask / of_dtype(divisor, variable.dtype)
        add_role(dropped, DROPOUT)
        return dropped

    return _replace_at_random(computation_graph, variables, "dropout", drop, rng, seed)


def apply_noise(
    computation_graph: ComputationGraph,
    variables: Iterable[Any],
    level: Any,
    seed: int | None = None,
    rng: Any = None,
    *,
    per: str = "sequence",
    same_along: Sequence[int] = (),
) -> ComputationGraph:
    """Return a graph in which normally distributed noise is added to some variables.

    Parameters
    ----------
    computation_graph : ComputationGraph
        The graph.
    variables : iterable of Variable
        Variables of floating point numbers in it; parameters too.
    level : float or Variable
        The standard deviation of the noise, at least 0.
    seed : int, optional
        Seed of the keys of the variables; ``config.default_seed`` by default.
    rng : bricks.xla.RandomStream, optional
        What all noise is drawn from; by default each variable has its own key.
    per : {'sequence', 'step'}
        Whether variables of steps of loops get one noise for all steps, or another one in each.
    same_along : sequence of int, optional
        Axes of the variables along which the noise does not vary.

    Returns
    -------
    ComputationGraph
        The new graph. What stands for the variables has ``tag.replacement_of``.

    Raises
    ------
    ValueError
        If `level` is no number from 0, or a variable holds integers.
    """
    if not isinstance(level, Variable) and (not is_number(level) or level < 0):
        raise ValueError(f"apply_noise: `level` must be at least 0; got {level!r}.")

    place = _Placing(computation_graph, per, same_along)

    def add_noise(variable: Any, stream: Any) -> Any:
        def draw(size: Any) -> Any:
            return stream.normal(size=size, dtype=variable.dtype)

        noise = place.drawn(variable, draw)
        return variable + noise * of_dtype(level, variable.dtype)

    return _replace_at_random(computation_graph, variables, "noise", add_noise, rng, seed)


def noise_taken_out(variables: Iterable[Any]) -> dict[Variable, Variable]:
    """Return what dropout and noise were applied to, by what stands for it.

    Parameters
    ----------
    variables : iterable of Variable
        Of a graph, and of the steps of its loops.

    Returns
    -------
    dict of Variable to Variable
        For each of the variables that :func:`apply_dropout` or :func:`apply_noise` made, what it is
        without that: replacements for :meth:`ComputationGraph.replace`, which undo them.
    """
    found = {}
    for variable in variables:
        below = variable
        for _ in range(getattr(variable.tag, "noise_depth", 0)):
            below = below.owner.inputs[0]
        if below is not variable:
            found[variable] = below
    return found


class _Placing:
    """Where what is drawn for the variables of a graph is drawn, and how it reaches them.

    Parameters
    ----------
    graph : ComputationGraph
        The graph.
    per : {'sequence', 'step'}
        How often something is drawn for variables of the steps of loops.
    same_along : sequence of int
        Axes along which it does not vary.
    """

    def __init__(self, graph: ComputationGraph, per: str, same_along: Sequence[int]) -> None:
        if per not in ("sequence", "step"):
            raise ValueError(f"`per` must be 'sequence' or 'step'; got {per!r}.")
        self._nodes: list[Apply] = graph.scan_nodes
        self._is_per_step = per == "step"
        self._same_along = list(same_along)

    def drawn(self, variable: Any, draw: Callable[[Any], Any]) -> Any:
        """Return what a function draws, given a size, for a variable."""
        loops = loops_around(variable, self._nodes)
        size = variable.shape
        if loops:
            size = lengths_outside(variable, loops, over_steps=self._is_per_step)
        if not self._same_along:
            return self._in_step(draw(size), loops if self._is_per_step else [])
        lengths = list(size)
        same = [len(lengths) - variable.ndim + axis for axis in self._axes(variable)]
        for axis in same:
            lengths[axis] = 1
        value = tensor.addbroadcast(draw(lengths), *same)
        return self._in_step(value, loops if self._is_per_step else [])

    def given(self, variable: Any, value: Any) -> Any:
        """Return what the user gave for a variable."""
        loops = loops_around(variable, self._nodes)
        value = tensor.as_tensor_variable(value).astype(variable.dtype)
        if value.ndim == variable.ndim:
            return value
        if loops and value.ndim == variable.ndim + len(loops):
            return self._in_step(value, loops)
        allowed = f"{variable.ndim}"
        if loops:
            allowed += f", or {variable.ndim + len(loops)} with the steps before them"
        raise ValueError(
            f"the mask of {variable} must have {allowed} axes; got {value} with {value.ndim}."
        )

    def _axes(self, variable: Any) -> list[int]:
        axes = [axis + variable.ndim if axis < 0 else axis for axis in self._same_along]
        if any(not 0 <= axis < variable.ndim for axis in axes):
            raise ValueError(
                f"`same_along` must hold axes of {variable}, which has {variable.ndim}; "
                f"got {self._same_along}."
            )
        return axes

    def _in_step(self, value: Any, loops: list[Apply]) -> Any:
        for _ in loops:
            value = element_of_step(value)
        return value


def _replace_at_random(
    graph: ComputationGraph,
    variables: Iterable[Any],
    purpose: str,
    replacement: Callable[[Any, Any], Any],
    rng: Any,
    seed: int | None,
) -> ComputationGraph:
    """Replace variables by what a function makes of the variable and a stream."""
    from bricks.config import config
    from bricks.xla import RandomStream

    variables = list(dict.fromkeys(variables))
    for variable in variables:
        if not variable.dtype.startswith("float"):
            raise ValueError(
                f"apply_{purpose}: {variable} holds {variable.dtype}; only variables of floating "
                "point numbers can be replaced. Cast it in the graph, and choose the result."
            )
    seed = config.default_seed if seed is None else seed
    names = _names_of_keys(graph, variables, purpose)
    replacements = {}
    for variable in variables:
        name = names[variable]
        stream = rng if rng is not None else RandomStream(derive_seed(seed, name), name=name)
        replacements[variable] = replacement(variable, stream)
        replacements[variable].tag.replacement_of = variable
        replacements[variable].tag.noise_depth = _depth(replacements[variable], variable)
    return graph.replace(replacements)


def _depth(value: Any, variable: Variable) -> int:
    """Return how many first inputs lie between a replacement and what it replaces."""
    depth = 0
    while value is not variable:
        value = value.owner.inputs[0]
        depth += 1
    return depth


def _names_of_keys(
    graph: ComputationGraph, variables: list[Variable], purpose: str
) -> dict[Variable, str]:
    """Return a name for each variable that no other one of the graph has.

    Of several variables of one place (a brick that is applied twice) the second in the graph's
    order gets ``#1``, whichever of them are replaced.
    """
    everywhere = [*graph.variables, *graph.scan_variables]
    taken = {str(shared.name).rpartition(".")[0] for shared in graph.shared_variables}
    counts: dict[str, int] = {}
    wanted, names = set(variables), {}
    for variable in dict.fromkeys([*everywhere, *variables]):
        name = f"{purpose}/{_place(variable)}"
        number = counts.get(name, 0)
        counts[name] = number + 1
        if variable not in wanted:
            continue
        unique = f"{name}#{number}" if number else name
        while unique in taken:
            # Another dropout of the same graph has used the name before.
            unique += "'"
        taken.add(unique)
        names[variable] = unique
    return names


def _place(variable: Variable) -> str:
    """Return what tells a variable from others: brick, application and name."""
    while hasattr(variable.tag, "replacement_of"):
        variable = variable.tag.replacement_of
    brick, call = get_brick(variable), get_application_call(variable)
    name = getattr(variable.tag, "name", None) or variable.name or "variable"
    if brick is None:
        return name
    path = brick.path.lstrip("/")
    return f"{path}.{call.application.name}.{name}" if call is not None else f"{path}.{name}"
