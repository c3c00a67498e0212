"""A symbolic graph as lists of its variables."""

from __future__ import annotations

import warnings
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aesara.graph.basic import Variable
from aesara.scan.op import Scan

from bricks.annotations import Annotation, get_annotations
from bricks.graph.order import nodes_below
from bricks.graph.rewriting import Rewriter, inner_variables
from bricks.roles import AUXILIARY, PARAMETER, has_roles
from bricks.utils.plain import dict_union, pack
from bricks.utils.variables import is_graph_input, is_shared_variable
from fuel_data.utils.names import nearest_name

__all__ = ["ComputationGraph"]


class ComputationGraph:
    """The variables that some outputs are computed from.

    Parameters
    ----------
    outputs : Variable or iterable of Variable
        The outputs.

    Attributes
    ----------
    outputs : list of Variable
        The outputs.
    variables : list of Variable
        All variables in topological order, the same in every process; the auxiliary variables of
        an annotation follow the first variable that carries it.
    scans : list of Scan
        The loops of the graph.
    updates : OrderedDict of SharedVariable to Variable
        What must be updated when the outputs are computed: the updates of annotations, and the
        default updates of shared variables, such as random keys.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import Linear
    >>> x = tensor.matrix("x")
    >>> y = Linear(3, 2).apply(x)
    >>> graph = ComputationGraph(y.sum())
    >>> graph.inputs, graph.parameters
    ([x], [W, b])
    >>> y in graph.variables
    True
    >>> z = tensor.matrix("z")
    >>> graph.replace({x: z}).inputs                  # another graph; this one stays as it is
    [z]
    """

    def __init__(self, outputs: Variable | Iterable[Variable]) -> None:
        self.outputs = [outputs] if isinstance(outputs, Variable) else pack(list(outputs))
        for output in self.outputs:
            if not isinstance(output, Variable):
                raise TypeError(
                    f"ComputationGraph: `outputs` must be symbolic variables; got {output!r}."
                )
        self._list_variables()

    def __iter__(self) -> Iterator[Variable]:
        """Go through all variables, so that a graph may stand where a list of them is expected."""
        return iter(self.variables)

    def _list_variables(self) -> None:
        """Fill in `variables`, `scans` and `updates`."""
        nodes = nodes_below(self.outputs)
        self.scan_nodes = [node for node in nodes if isinstance(node.op, Scan)]
        self.scans = list({id(node.op): node.op for node in self.scan_nodes}.values())
        # Keys of a dictionary, not a set: their order must not depend on hashes.
        in_graph = dict.fromkeys(variable for node in nodes for variable in node.inputs)
        in_graph.update(dict.fromkeys(self.outputs))
        variables: dict[Variable, None] = {}
        self.updates: OrderedDict[Variable, Variable] = OrderedDict()
        seen: set[int] = set()
        for variable in in_graph:
            variables[variable] = None
            for annotation in get_annotations(variable):
                if id(annotation) in seen:
                    continue
                seen.add(id(annotation))
                for auxiliary in annotation.auxiliary_variables:
                    if auxiliary not in in_graph:
                        variables[auxiliary] = None
                self._add_updates(annotation)
        self.variables = list(variables)
        for shared in self.shared_variables:
            default_update = getattr(shared, "default_update", None)
            if default_update is not None:
                self.updates.setdefault(shared, default_update)

    def _add_updates(self, annotation: Annotation) -> None:
        """Add the updates of an annotation, each of which must be the only one of its variable."""
        for shared, value in annotation.updates.items():
            if self.updates.setdefault(shared, value) is not value:
                raise ValueError(
                    f"ComputationGraph: {shared} is to be updated in two ways, once by "
                    f"{annotation!r}. Let only one annotation update it."
                )

    @property
    def inputs(self) -> list[Variable]:
        """The variables that must be given."""
        return [variable for variable in self.variables if is_graph_input(variable)]

    @property
    def intermediary_variables(self) -> list[Variable]:
        """The variables that are neither inputs nor outputs."""
        ends = {*self.inputs, *self.outputs}
        return [variable for variable in self.variables if variable not in ends]

    @property
    def shared_variables(self) -> list[Any]:
        """The shared variables."""
        return [variable for variable in self.variables if is_shared_variable(variable)]

    @property
    def parameters(self) -> list[Any]:
        """The shared variables of role PARAMETER."""
        return [shared for shared in self.shared_variables if has_roles(shared, [PARAMETER])]

    @property
    def auxiliary_variables(self) -> list[Variable]:
        """The variables of role AUXILIARY."""
        return [variable for variable in self.variables if has_roles(variable, [AUXILIARY])]

    @property
    def scan_variables(self) -> list[Variable]:
        """The variables of the steps of all loops, in the order of the loops."""
        graphs = (ComputationGraph(scan.inner_outputs) for scan in self.scans)
        found = dict.fromkeys(
            variable for graph in graphs for variable in [*graph.variables, *graph.scan_variables]
        )
        return list(found)

    def dict_of_inputs(self) -> OrderedDict:
        """Return the inputs by name.

        Returns
        -------
        OrderedDict of str to Variable
            The inputs.

        Raises
        ------
        ValueError
            If an input has no name, or two have the same.
        """
        names = Counter(variable.name for variable in self.inputs)
        bad = [name for name, count in names.items() if name is None or count > 1]
        if bad:
            raise ValueError(
                "ComputationGraph: each input must have a name of its own, to be given by name; "
                f"not unique: {', '.join(map(str, bad))}. Name them, as in `tensor.matrix('x')`."
            )
        return OrderedDict((variable.name, variable) for variable in self.inputs)

    def replace(self, replacements: Mapping | Iterable[tuple[Variable, Any]]) -> ComputationGraph:
        """Return a graph in which some variables are replaced, all at once.

        Parameters
        ----------
        replacements : mapping or pairs of Variable to Variable
            What is replaced by what. A replacement may contain the variable that it replaces,
            which stands for what it was before, and other replaced variables, which stand for
            their replacements. Variables of the step of a loop (`scan_variables`) are replaced
            inside the loop; their replacements may use variables of the step and of the graph.

        Returns
        -------
        ComputationGraph
            The new graph. Inputs, shared variables and constants are the same objects; all
            else is a copy with the same names, roles and annotations. Application calls are
            copied too, so that their auxiliary variables and updates are those of the new graph.

        Raises
        ------
        TypeError
            If a replacement has another type than the variable.
        ValueError
            If replacements refer to each other in a circle, or a variable cannot be replaced.

        Warns
        -----
        UserWarning
            If a variable is not in the graph, or is auxiliary.
        """
        replacements = OrderedDict(replacements)
        present = {**dict.fromkeys(self.variables), **dict.fromkeys(self._all_outputs())}
        inside = {variable for node in self.scan_nodes for variable in inner_variables(node.op)}
        for variable in list(replacements):
            if variable not in present and variable not in inside:
                warnings.warn(
                    f"{variable} cannot be replaced: it is not a part of the graph.", stacklevel=2
                )
                del replacements[variable]
            elif has_roles(variable, [AUXILIARY]):
                warnings.warn(
                    f"{variable} is an auxiliary variable: replacing it changes no output.",
                    stacklevel=2,
                )
        return ComputationGraph(Rewriter(replacements, self.outputs).rewrite())

    def _all_outputs(self) -> list[Variable]:
        """Return all outputs of all nodes, used or not."""
        nodes = nodes_below(self.outputs)
        return [output for node in nodes for output in node.outputs]

    def get_function(self, additional_updates: Any = None, **kwargs: Any) -> Any:
        """Compile a function from the inputs to the outputs, which also applies the updates.

        Parameters
        ----------
        additional_updates : mapping or pairs, optional
            Further updates.
        **kwargs : object
            For :func:`bricks.xla.function`.

        Returns
        -------
        function
            The compiled function.
        """
        from bricks import xla

        updates = dict_union(self.updates, OrderedDict(additional_updates or ()))
        return xla.function(self.inputs, self.outputs, updates=updates, **kwargs)

    get_theano_function = get_function

    def get_snapshot(self, data: Mapping) -> OrderedDict:
        """Compute all variables that have a role.

        Parameters
        ----------
        data : mapping of Variable or str to array
            Values of the inputs, by input or by its name.

        Returns
        -------
        OrderedDict of Variable to array
            The values, without those of shared variables. No update is applied.
        """
        from bricks import xla

        wanted = [
            variable
            for variable in self.variables
            if getattr(variable.tag, "roles", []) and not is_shared_variable(variable)
        ]
        keep = [(shared, shared) for shared in self.updates]
        function = xla.function(self.inputs, wanted, updates=keep, on_unused_input="ignore")
        values = function(*[self._given_value(variable, data) for variable in self.inputs])
        return OrderedDict(zip(wanted, values, strict=True))

    def _given_value(self, variable: Variable, data: Mapping) -> Any:
        for key in (variable, variable.name):
            if key in data:
                return data[key]
        known = [key if isinstance(key, str) else str(key.name) for key in data]
        raise ValueError(
            f"get_snapshot: no value for input {variable}.{nearest_name(str(variable.name), known)}"
        )

    def has_inputs(self, variable: Variable) -> bool:
        """Say whether a variable depends on an input of the graph.

        Parameters
        ----------
        variable : Variable
            The variable.

        Returns
        -------
        bool
            Whether it does; false of what depends on shared variables and constants only.
        """
        known = self.__dict__.setdefault("_has_inputs", {})
        if variable in known:
            return known[variable]
        if variable.owner is None:
            return is_graph_input(variable)
        for node in nodes_below([variable]):
            depends = any(known.get(i, is_graph_input(i)) for i in node.inputs)
            known.update(dict.fromkeys(node.outputs, depends))
        return known[variable]
