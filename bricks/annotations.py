"""What is attached to the variables of a graph: who made them, and what else belongs to them.

An annotation is an object in ``variable.tag.annotations``. Bricks annotate their parameters, and
bricks and application calls annotate the inputs and outputs of applications. An annotation carries
*auxiliary variables* (worth monitoring, on no path to the outputs) and *updates* (which whoever
compiles the graph has to apply).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from aesara.graph.basic import Variable

from bricks.roles import AUXILIARY, VariableRole, add_role

__all__ = ["Annotation", "add_annotation", "get_annotations"]


def get_annotations(variable: Variable) -> list[Annotation]:
    """Return the annotations of a variable.

    Parameters
    ----------
    variable : Variable
        The variable.

    Returns
    -------
    list of Annotation
        In the order in which they were added; empty if there are none. Not to be changed.
    """
    return getattr(variable.tag, "annotations", [])


def add_annotation(variable: Variable, annotation: Annotation) -> None:
    """Attach an annotation to a variable.

    Parameters
    ----------
    variable : Variable
        The variable.
    annotation : Annotation
        The brick, application call or other annotation it belongs to.

    Raises
    ------
    ValueError
        If another annotation of exactly the same class is there: a variable has one maker.
    """
    annotations = get_annotations(variable)
    for other in annotations:
        if type(other) is type(annotation) and other is not annotation:
            raise ValueError(
                f"{variable} is annotated by {other!r} already, so {annotation!r} of the same "
                "class cannot claim it too. Give it a copy (`variable.copy()`), or share the brick "
                "itself instead of its variable."
            )
    if annotation not in annotations:
        # A new list: copies of a variable share their tag's lists with it.
        variable.tag.annotations = [*annotations, annotation]


class Annotation:
    """What a brick or an application call tells about the variables that it made.

    Attributes
    ----------
    auxiliary_variables : list of Variable
        Variables of interest that the outputs do not depend on.
    updates : OrderedDict of shared variable to Variable
        What must be updated whenever the annotated variables are computed.
    """

    def __init__(self) -> None:
        self.auxiliary_variables: list[Variable] = []
        self.updates: OrderedDict[Variable, Variable] = OrderedDict()

    def add_auxiliary_variable(
        self,
        variable: Variable,
        roles: VariableRole | Iterable[VariableRole] | None = None,
        name: str | None = None,
    ) -> None:
        """Attach a variable that is worth looking at, such as the norm of a weight matrix.

        Parameters
        ----------
        variable : Variable
            The variable; it gets the role ``AUXILIARY``.
        roles : VariableRole or iterable of VariableRole, optional
            Further roles.
        name : str, optional
            Its name from now on.
        """
        add_annotation(variable, self)
        if name is not None:
            variable.name = name
            variable.tag.name = name
        add_role(variable, AUXILIARY)
        for role in [roles] if isinstance(roles, VariableRole) else roles or ():
            add_role(variable, role)
        self.auxiliary_variables.append(variable)

    def add_updates(self, updates: Mapping[Variable, Any] | Iterable[tuple[Variable, Any]]) -> None:
        """Attach updates of shared variables, which ``ComputationGraph.updates`` collects.

        Parameters
        ----------
        updates : mapping or pairs
            Shared variable to its next value.
        """
        self.updates.update(updates)
