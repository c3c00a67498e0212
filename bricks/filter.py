"""Find variables of a graph by role, brick, application and name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from aesara.graph.basic import Variable

from bricks.annotations import get_annotations
from bricks.applications import Application, ApplicationCall, BoundApplication
from bricks.base import Brick
from bricks.roles import VariableRole, has_roles
from bricks.utils.plain import pack

__all__ = ["VariableFilter", "get_annotation", "get_application_call", "get_brick"]


def get_annotation(variable: Variable, cls: type) -> Any:
    """Return the annotation of a class that a variable has, or None.

    Parameters
    ----------
    variable : Variable
        The variable.
    cls : type
        A subclass of :class:`bricks.annotations.Annotation`.

    Returns
    -------
    Annotation or None
        The first one, if there is one.
    """
    return next((one for one in get_annotations(variable) if isinstance(one, cls)), None)


def get_brick(variable: Variable) -> Brick | None:
    """Return the brick that made a variable.

    Parameters
    ----------
    variable : Variable
        The variable.

    Returns
    -------
    Brick or None
        None if no brick annotates it.
    """
    return get_annotation(variable, Brick)


def get_application_call(variable: Variable) -> ApplicationCall | None:
    """Return the call of an application that a variable is an input or output of.

    Parameters
    ----------
    variable : Variable
        The variable.

    Returns
    -------
    ApplicationCall or None
        None if no call annotates it.
    """
    return get_annotation(variable, ApplicationCall)


class VariableFilter:
    """Finds the variables of a list that fit all that is asked for.

    Parameters
    ----------
    roles : iterable of VariableRole, optional
        Variables must have one of these roles, or one descending from them.
    bricks : iterable of Brick or brick classes, optional
        Variables must be annotated by one of these bricks, or by a brick of one of these classes.
    each_role : bool, optional
        Whether all of `roles` must be there.
    name : str, optional
        The bare name (``tag.name``) that variables must have.
    name_regex : str, optional
        A regular expression that the bare name must match, from its start.
    theano_name : str, optional
        The full name (``variable.name``) that variables must have.
    theano_name_regex : str, optional
        A regular expression that the full name must match, from its start.
    call_id : object, optional
        The `call_id` given to the call that made the variables.
    applications : iterable of applications, optional
        Applications of bricks (``mlp.apply``) or of brick classes (``MLP.apply``), one of which
        must have made the variables.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import MLP, Rectifier
    >>> from bricks.graph import ComputationGraph
    >>> from bricks.roles import INPUT, WEIGHT
    >>> mlp = MLP([Rectifier(), None], [4, 3, 2])
    >>> graph = ComputationGraph(mlp.apply(tensor.matrix("x")))
    >>> VariableFilter(roles=[WEIGHT])(graph.variables)
    [W, W]
    >>> VariableFilter(roles=[INPUT], bricks=[Rectifier])(graph.variables)
    [rectifier_apply_input_]
    >>> VariableFilter(theano_name_regex="linear_._apply_out")(graph.variables)
    [linear_0_apply_output, linear_1_apply_output]
    """

    def __init__(
        self,
        roles: Iterable[VariableRole] | None = None,
        bricks: Iterable | None = None,
        each_role: bool = False,
        name: str | None = None,
        name_regex: str | None = None,
        theano_name: str | None = None,
        theano_name_regex: str | None = None,
        call_id: Any = None,
        applications: Iterable | None = None,
    ) -> None:
        self.roles = None if roles is None else _checked("roles", pack(roles), VariableRole)
        self.bricks = None if bricks is None else pack(bricks)
        for brick in self.bricks or ():
            is_class = isinstance(brick, type) and issubclass(brick, Brick)
            if not is_class and not isinstance(brick, Brick):
                raise ValueError(
                    f"VariableFilter: `bricks` must hold bricks or brick classes; got {brick!r}."
                )
        self.applications = None
        if applications is not None:
            kinds = (Application, BoundApplication)
            self.applications = _checked("applications", pack(applications), kinds)
        self.each_role = each_role
        self.name = name
        self.name_regex = name_regex
        self.theano_name = theano_name
        self.theano_name_regex = theano_name_regex
        self.call_id = call_id

    def __call__(self, variables: Iterable[Variable]) -> list[Variable]:
        """Return the variables that fit, in their order.

        Parameters
        ----------
        variables : iterable of Variable
            The variables, such as ``ComputationGraph(cost).variables``.

        Returns
        -------
        list of Variable
            Those that fit.
        """
        return [variable for variable in variables if self._fits(variable)]

    def _fits(self, variable: Variable) -> bool:
        return (
            (self.roles is None or has_roles(variable, self.roles, self.each_role))
            and self._fits_names(variable)
            and self._fits_bricks(variable)
            and self._fits_call(variable)
        )

    def _fits_names(self, variable: Variable) -> bool:
        bare, full = getattr(variable.tag, "name", None), variable.name
        return (
            (self.name is None or bare == self.name)
            and (self.theano_name is None or full == self.theano_name)
            and (self.name_regex is None or bool(re.match(self.name_regex, bare or "")))
            and (
                self.theano_name_regex is None or bool(re.match(self.theano_name_regex, full or ""))
            )
        )

    def _fits_bricks(self, variable: Variable) -> bool:
        if self.bricks is None:
            return True
        mine = get_brick(variable)
        return any(
            isinstance(mine, brick) if isinstance(brick, type) else mine is brick
            for brick in self.bricks
        )

    def _fits_call(self, variable: Variable) -> bool:
        if self.call_id is None and self.applications is None:
            return True
        call = get_application_call(variable)
        if call is None:
            return False
        if self.call_id is not None and call.metadata.get("call_id") != self.call_id:
            return False
        return self.applications is None or any(
            call.application == wanted or call.application.application is wanted
            for wanted in self.applications
        )


def _checked(argument: str, values: list, kinds: Any) -> list:
    """Return a list whose elements are all of a kind."""
    for value in values:
        if not isinstance(value, kinds):
            hint = " Roles are objects such as WEIGHT." if argument == "roles" else ""
            raise ValueError(
                f"VariableFilter: `{argument}` holds {value!r} of {type(value).__name__}, which is "
                f"none of the {argument}.{hint}"
            )
    return values
