"""What an algorithm remembers: hyperparameters and buffers, with roles, and names by path.

Every variable made here is shared, has a role of the family ``ALGORITHM_STATE`` and a name from
which a checkpoint can tell it from all others, in each process the same.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import aesara
import numpy
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Constant, Variable, graph_inputs

from bricks import xla
from bricks.filter import get_brick
from bricks.roles import ALGORITHM_BUFFER, ALGORITHM_HYPERPARAMETER, add_role

# Aesara declares neither that tensors can be added nor that shared ones are tensors, so a checker
# of types could only be misled: where this stands, a symbolic variable is meant.
AnyVariable: TypeAlias = Any


def hyperparameter(value: object, name: str) -> AnyVariable:
    """Make a hyperparameter that can be changed while a compiled function uses it.

    Parameters
    ----------
    value : float, numpy array or Variable
        The number. A variable is taken as it is, so that several rules can share one, or a
        schedule can be an expression.
    name : str
        The variable's name.

    Returns
    -------
    Variable
        Of dtype ``floatX`` if it is new, with the role ``ALGORITHM_HYPERPARAMETER``.
    """
    if isinstance(value, Variable):
        variable = value
    else:
        variable = xla.shared(numpy.asarray(value, dtype=aesara.config.floatX), name=name)
    add_role(variable, ALGORITHM_HYPERPARAMETER)
    return variable


def algorithm_buffer(parameter: AnyVariable, name: str) -> AnyVariable:
    """Make a buffer of zeros that belongs to one parameter.

    Parameters
    ----------
    parameter : SharedVariable
        The parameter; the buffer has its shape, its dtype and its broadcastable axes.
    name : str
        What the buffer holds, for example ``velocity``.

    Returns
    -------
    SharedVariable
        With the role ``ALGORITHM_BUFFER``, ``tag.name`` the given name, ``tag.for_parameter``
        the parameter, and the name ``velocity[/mlp/linear_0.W]``.
    """
    value = parameter.get_value(borrow=True)
    buffer = xla.shared(
        numpy.zeros(value.shape, dtype=parameter.dtype),
        name=f"{name}[{variable_path(parameter)}]",
        shape=parameter.type.shape,
    )
    buffer.tag.name = name
    buffer.tag.for_parameter = parameter
    add_role(buffer, ALGORITHM_BUFFER)
    return buffer


def common_buffer(name: str, value: object, dtype: str | None = None) -> AnyVariable:
    """Make a buffer that belongs to no single parameter.

    Parameters
    ----------
    name : str
        The variable's name.
    value : float or numpy array
        The value it begins with.
    dtype : str, optional
        The default is ``floatX``.

    Returns
    -------
    SharedVariable
        With the role ``ALGORITHM_BUFFER``.
    """
    buffer = xla.shared(numpy.asarray(value, dtype=dtype or aesara.config.floatX), name=name)
    add_role(buffer, ALGORITHM_BUFFER)
    return buffer


def put_below(part: str, variables: Iterable[AnyVariable]) -> None:
    """Note that some state belongs to a component of a rule, so that its name can say so.

    Parameters
    ----------
    part : str
        The component's name in the rule that contains it.
    variables : iterable of SharedVariable
        What the component updates.
    """
    for variable in variables:
        variable.tag.rule_path = (part, *getattr(variable.tag, "rule_path", ()))


def variable_path(variable: AnyVariable) -> str:
    """Give the path by which users know a variable.

    Parameters
    ----------
    variable : Variable
        Any variable.

    Returns
    -------
    str
        ``/mlp/linear_0.W`` if a brick has annotated it, its name if not, and ``unnamed`` if it
        has none.
    """
    if not variable.name:
        return "unnamed"
    brick = get_brick(variable)
    if brick is None:
        return variable.name
    return brick.get_hierarchical_name(variable)


def state_name(variable: AnyVariable) -> str:
    """Give a buffer's name below the path of its rule.

    Parameters
    ----------
    variable : SharedVariable
        A variable that a step rule updates.

    Returns
    -------
    str
        For example ``/0.velocity[/mlp/linear_0.W]``, or ``.time`` if it belongs to the rule at
        the top.
    """
    name = getattr(variable.tag, "name", None) or variable.name or "unnamed"
    parameter = getattr(variable.tag, "for_parameter", None)
    suffix = "" if parameter is None else f"[{variable_path(parameter)}]"
    path = "".join(f"/{part}" for part in getattr(variable.tag, "rule_path", ()))
    return f"{path}.{name}{suffix}"


def name_uniquely(named: Iterable[tuple[str, AnyVariable]]) -> "OrderedDict[str, AnyVariable]":
    """Make names unique without changing the first of each.

    Parameters
    ----------
    named : iterable of (str, Variable)
        Names and variables in an order that does not depend on the process. A variable that
        comes again is left out.

    Returns
    -------
    OrderedDict
        From name to variable; the second variable called ``a`` is called ``a_2``.
    """
    result: OrderedDict[str, AnyVariable] = OrderedDict()
    seen: set[AnyVariable] = set()
    for name, variable in named:
        if variable in seen:
            continue
        seen.add(variable)
        unique, count = name, 1
        while unique in result:
            count += 1
            unique = f"{name}_{count}"
        result[unique] = variable
    return result


def shared_inputs(expressions: Sequence[AnyVariable]) -> Iterator[AnyVariable]:
    """Find the shared variables that some expressions read, default updates included.

    Parameters
    ----------
    expressions : sequence of Variable
        What is computed.

    Yields
    ------
    SharedVariable
        Each once, in the order of a walk through the graph.
    """
    todo = list(expressions)
    seen: set[AnyVariable] = set()
    while todo:
        found = [v for v in graph_inputs(todo) if isinstance(v, SharedVariable) and v not in seen]
        todo = []
        for variable in found:
            if variable in seen:
                continue
            seen.add(variable)
            yield variable
            if getattr(variable, "default_update", None) is not None:
                todo.append(variable.default_update)


def explicit_inputs(expressions: Sequence[AnyVariable]) -> list[AnyVariable]:
    """Find the inputs that have to be given when some expressions are computed.

    Parameters
    ----------
    expressions : sequence of Variable
        What is computed.

    Returns
    -------
    list of Variable
        Neither shared nor constant, each once, in the order of a walk through the graph.
    """
    found = graph_inputs(expressions)
    plain = (v for v in found if not isinstance(v, SharedVariable | Constant))
    return list(dict.fromkeys(plain))
