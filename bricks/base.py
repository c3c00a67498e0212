"""Bricks: objects that hold parameters and build parts of the graph.

A brick is configured when made, *allocated* (its parameters come into being), *initialized* (they
get values) and *applied* (see :mod:`bricks.applications`). Bricks form a tree through
:attr:`Brick.children`: parents push their configuration to their children before allocation and
before initialization, and whatever is set on a child in between wins.

**Paths.** A brick's path is ``/parent/child``. A brick that has several parents keeps the path it
has through the first of them: another parent that comes later renames nothing. Two children of
one parent may share a name as long as they have no parameters; a name that two parameters would
get is an error where parameters are collected.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from aesara.graph.basic import Variable

from bricks.annotations import Annotation, add_annotation
from bricks.applications import Application, ApplicationCall, BoundApplication, application
from bricks.roles import PARAMETER, add_role
from bricks.utils.containers import AnnotatingList
from bricks.utils.plain import repr_attrs
from fuel_data.utils.names import nearest_name

__all__ = [
    "BRICK_DELIMITER",
    "Application",
    "ApplicationCall",
    "BoundApplication",
    "Brick",
    "Children",
    "LazyNone",
    "NoneAllocation",
    "NoneInitialization",
    "Parameters",
    "application",
    "args_to_kwargs",
    "create_unbound_method",
    "lazy",
    "rename_function",
]

#: What stands between the names in the path of a brick.
BRICK_DELIMITER = "/"


class LazyNone:
    """What stands for an argument that is given later: false, and one object for ever.

    Parameters
    ----------
    name : str
        Its name in this module.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return self.name


#: Stands for an argument that must be set before allocation.
NoneAllocation = LazyNone("NoneAllocation")
#: Stands for an argument that must be set before initialization.
NoneInitialization = LazyNone("NoneInitialization")


class Parameters(AnnotatingList):
    """The parameters of a brick. What is put in gets the role PARAMETER and the brick's annotation.

    Parameters
    ----------
    brick : Brick
        The brick.
    items : iterable, optional
        Shared variables, or None for a parameter that is not there.
    """

    def __init__(self, brick: Brick, items: Iterable | None = None) -> None:
        self.brick = brick
        super().__init__(items)

    def _setitem(self, value: Any) -> None:
        if isinstance(value, Variable):
            add_role(value, PARAMETER)
            add_annotation(value, self.brick)


class Children(AnnotatingList):
    """The children of a brick. Those put in get the brick as a parent.

    Parameters
    ----------
    brick : Brick
        The brick.
    items : iterable, optional
        Bricks.
    """

    def __init__(self, brick: Brick, items: Iterable | None = None) -> None:
        self.brick = brick
        super().__init__(items)

    def _setitem(self, value: Any) -> None:
        if value is not None:
            value.parents.append(self.brick)

    def _delitem(self, value: Any) -> None:
        if value is not None:
            places = [i for i, parent in enumerate(value.parents) if parent is self.brick]
            del value.parents[places[-1]]


class _Brick(ABCMeta):
    """The class of brick classes: runs their ``decorators`` and refuses unknown arguments."""

    def __new__(mcs, name: str, bases: tuple, namespace: dict) -> type:
        for decorator in namespace.get("decorators", ()):
            decorator(mcs, name, bases, namespace)
        for attribute, value in list(namespace.items()):
            if isinstance(value, Application):
                namespace.setdefault(f"_{attribute}", value.application_function)
        made: Any = super().__new__(mcs, name, bases, namespace)
        # What `help` and `inspect` show; they would find the arguments of `__call__` below.
        signature = inspect.signature(made.__init__)
        made.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
        return made

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        parameters = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            unknown = [name for name in kwargs if name not in parameters]
            if unknown:
                raise TypeError(_unknown_arguments(cls, kwargs.get("name"), unknown))
        return super().__call__(*args, **kwargs)


def _unknown_arguments(cls: type, name: str | None, unknown: list[str]) -> str:
    """Return the message about arguments that no constructor of a brick takes."""
    known = {
        parameter.name
        for ancestor in cls.__mro__
        if "__init__" in vars(ancestor)
        for parameter in inspect.signature(vars(ancestor)["__init__"]).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    } - {"self"}
    who = f"{cls.__name__} (name={name!r})" if name else cls.__name__
    hints = "; ".join(f"{one!r}.{nearest_name(one, known)}" for one in unknown)
    return f"{who}: unexpected argument {hints}"


class Brick(Annotation, metaclass=_Brick):
    """The base class of all bricks.

    Parameters
    ----------
    name : str, optional
        The name; the class's in lower case by default.
    children : iterable of Brick, optional
        The children.

    Attributes
    ----------
    parameters : Parameters
        Shared variables, in the order of allocation; not there before allocation.
    children : Children
        The bricks that this one applies.
    parents : list of Brick
        The bricks that have this one as a child, in the order in which they got it.
    allocated, initialized : bool
        Whether there are parameters, and values.
    allocation_config_pushed, initialization_config_pushed : bool
        Whether the children got their configuration.

    Notes
    -----
    Subclasses call ``super().__init__(**kwargs)``, and override :meth:`_allocate`,
    :meth:`_initialize`, :meth:`_push_allocation_config`, :meth:`_push_initialization_config` and
    :meth:`get_dim` where they have something to do.

    Examples
    --------
    A brick of one's own, with one parameter, whose size may be given later:

    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> from bricks.utils import shared_floatx_nans
    >>> class Scale(Brick):
    ...     @lazy(allocation=["dim"])
    ...     def __init__(self, dim, factor=1.0, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.dim, self.factor = dim, factor
    ...     def _allocate(self):
    ...         self.parameters.append(shared_floatx_nans((self.dim,), name="w"))
    ...     def _initialize(self):
    ...         (w,) = self.parameters
    ...         w.set_value(numpy.full(self.dim, self.factor, w.dtype))
    ...     @application(inputs=["x"], outputs=["y"])
    ...     def apply(self, x):
    ...         return x * self.parameters[0]
    >>> scale = Scale(3, factor=2)
    >>> scale.initialize()
    >>> x = tensor.vector("x")
    >>> xla.function([x], scale.apply(x))(numpy.ones(3, "float32")).tolist()
    [2.0, 2.0, 2.0]
    """

    allocation_args: list[str]
    initialization_args: list[str]
    _children: Children

    def __init__(
        self, name: str | None = None, children: Iterable[Brick] | None = None, **unknown: Any
    ) -> None:
        if unknown:
            raise TypeError(_unknown_arguments(type(self), name, list(unknown)))
        name = type(self).__name__.lower() if name is None else name
        if not isinstance(name, str) or not name or any(mark in name for mark in "/."):
            raise ValueError(
                f"{type(self).__name__}: `name` must be text without '/' and '.', which stand "
                f"between names in a path; got {name!r}."
            )
        self.name = name
        self.parents: list[Brick] = []
        self.children = children
        self.allocated = False
        self.allocation_config_pushed = False
        self.initialized = False
        self.initialization_config_pushed = False
        super().__init__()

    def __repr__(self) -> str:
        return repr_attrs(self, "name")

    @property
    def parameters(self) -> Parameters:
        """The parameters of the brick itself, without those of its children."""
        if "_parameters" not in self.__dict__:
            raise AttributeError(
                f"{self.path} has no parameters yet. Call `allocate()` or `initialize()`, or "
                "apply it, first."
            )
        return self._parameters

    @parameters.setter
    def parameters(self, value: Iterable | None) -> None:
        self._parameters = Parameters(self, value)

    @property
    def children(self) -> Children:
        """The bricks that this one applies."""
        return self._children

    @children.setter
    def children(self, value: Iterable[Brick] | None) -> None:
        if "_children" in self.__dict__:
            del self._children[:]
        self._children = Children(self, value)

    @property
    def path(self) -> str:
        """The names from the top brick down to this one: ``/mlp/linear_0``."""
        return "".join(BRICK_DELIMITER + brick.name for brick in self.get_unique_path())

    def allocate(self) -> None:
        """Make the parameters of this brick and of its children.

        A child that was allocated already, alone or by another parent, keeps its parameters.
        Calling this again makes new parameters, full of NaN, for this brick and for the children
        whose first parent it is.

        Raises
        ------
        ValueError
            If a lazy argument is missing, or a child was allocated with another configuration
            than this brick pushes.
        """
        self._check_lazy_arguments(self._lazy_names("allocation_args"), NoneAllocation)
        if not self.allocation_config_pushed:
            self.push_allocation_config()
        again = self.allocated
        for child in self.children:
            if not child.allocated or (again and child.parents[0] is self):
                child.allocate()
            else:
                child._check_allocated_as_configured(self)
        self.parameters = []
        self._allocate()
        self._allocated_as = {
            name: _snapshot(getattr(self, name, None))
            for name in self._lazy_names("allocation_args")
        }
        self.allocated = True

    def _allocate(self) -> None:
        """Make the parameters: append shared variables to ``self.parameters``."""

    def initialize(self) -> None:
        """Give values to the parameters of this brick and of its children.

        Allocates first if nobody did. Calling this again draws again, except for a child that
        belongs to another parent first.

        Raises
        ------
        ValueError
            If a lazy argument is missing.
        """
        self._check_lazy_arguments(self._lazy_names("initialization_args"), NoneInitialization)
        if not self.allocated:
            self.allocate()
        if not self.initialization_config_pushed:
            self.push_initialization_config()
        for child in self.children:
            shared = any(parent is not self for parent in child.parents)
            mine = self.initialized and child.parents[0] is self
            if not (child.initialized and shared) or mine:
                child.initialize()
        self._initialize()
        self.initialized = True

    def _initialize(self) -> None:
        """Give values to ``self.parameters``."""

    def push_allocation_config(self) -> None:
        """Push what the children need to be allocated, down to the leaves.

        Call it by hand to override a setting of a child afterwards.
        """
        self._push_allocation_config()
        self.allocation_config_pushed = True
        for child in self.children:
            try:
                child.push_allocation_config()
            except BaseException:
                self.allocation_config_pushed = False
                raise

    def _push_allocation_config(self) -> None:
        """Set on the children what they need to be allocated."""

    def push_initialization_config(self) -> None:
        """Push what the children need to be initialized, down to the leaves.

        Call it by hand to override a setting of a child afterwards.
        """
        self._push_initialization_config()
        self.initialization_config_pushed = True
        for child in self.children:
            try:
                child.push_initialization_config()
            except BaseException:
                self.initialization_config_pushed = False
                raise

    def _push_initialization_config(self) -> None:
        """Set on the children what they need to be initialized."""

    def get_dim(self, name: str) -> Any:
        """Return the size of the last axis of an input or output.

        Parameters
        ----------
        name : str
            Name of an input or output of an application.

        Returns
        -------
        int or tuple of int
            The size; 0 for a variable without a feature axis (a mask, integer labels).

        Raises
        ------
        ValueError
            If the brick does not know.
        """
        raise ValueError(
            f"{self.path}: the dimension of {name!r} is not known. Override `get_dim` of "
            f"{type(self).__name__} to tell it, and call `super().get_dim(name)` for other names."
        )

    def get_dims(self, names: Iterable[str]) -> list:
        """Return the sizes of several inputs or outputs; see :meth:`get_dim`.

        Parameters
        ----------
        names : iterable of str
            Names of inputs or outputs of applications.

        Returns
        -------
        list of int or tuple of int
            One size for each name, in their order.

        Raises
        ------
        ValueError
            If the brick does not know one of them.
        """
        return [self.get_dim(name) for name in names]

    def get_unique_path(self) -> list[Brick]:
        """Return the bricks from the top one down to this one, through first parents only.

        Returns
        -------
        list of Brick
            The top brick first, this one last; this one alone if it has no parent.

        Raises
        ------
        ValueError
            If the brick is among its own ancestors.
        """
        path = [self]
        while path[-1].parents:
            path.append(path[-1].parents[0])
            if path[-1] in path[:-1]:
                raise ValueError(f"{self.name}: the brick is among its own ancestors.")
        return path[::-1]

    def get_hierarchical_name(self, parameter: Variable, delimiter: str = BRICK_DELIMITER) -> str:
        """Return the name of a parameter with the path of the brick before it.

        Parameters
        ----------
        parameter : Variable
            A parameter of this brick.
        delimiter : str, optional
            What stands between the names of bricks.

        Returns
        -------
        str
            ``/mlp/linear_0.W``.
        """
        names = "".join(delimiter + brick.name for brick in self.get_unique_path())
        return f"{names}.{parameter.name}"

    def _lazy_names(self, which: str) -> list[str]:
        return self.__dict__.get(which, [])

    def _check_lazy_arguments(self, names: list[str], missing: LazyNone) -> None:
        """Refuse to go on while lazy arguments are missing."""
        absent = [name for name in names if getattr(self, name, missing) is missing]
        if absent:
            step = "allocated" if missing is NoneAllocation else "initialized"
            raise ValueError(
                f"{self.path} cannot be {step}: {', '.join(map(repr, absent))} not set. Give them "
                f"to {type(self).__name__}(…), set them as attributes, or let a parent push them."
            )

    def _check_allocated_as_configured(self, parent: Brick) -> None:
        """Refuse a configuration other than the one the parameters were made for."""
        for name, before in self.__dict__.get("_allocated_as", {}).items():
            now = getattr(self, name, None)
            if not _same(before, _snapshot(now)):
                raise ValueError(
                    f"{self.path} was allocated with {name}={before!r}, and {parent.path} now "
                    f"configures it with {name}={now!r}. Make them agree, or call "
                    f"`{self.name}.allocate()` to give up its present parameters."
                )


def _snapshot(value: Any) -> Any:
    """Return a value that later changes in place do not reach."""
    return list(value) if isinstance(value, list | tuple) else value


def _same(one: Any, other: Any) -> bool:
    """Say whether two settings are equal; those that cannot tell are taken to be."""
    try:
        return one is other or bool(one == other)
    except ValueError:
        return True


def lazy(
    allocation: list[str] | None = None, initialization: list[str] | None = None
) -> Callable[[Callable], Callable]:
    """Decorate a constructor, some of whose arguments may be given later.

    Parameters
    ----------
    allocation : list of str, optional
        Arguments that must be set before allocation.
    initialization : list of str, optional
        Arguments that must be set before initialization.

    Returns
    -------
    callable
        The decorator. Arguments left out are `NoneAllocation` or `NoneInitialization`, and the
        names are added to the brick's ``allocation_args`` and ``initialization_args``.
    """
    later = {
        **dict.fromkeys(allocation or (), NoneAllocation),
        **dict.fromkeys(initialization or (), NoneInitialization),
    }

    def decorate(init: Callable) -> Callable:
        signature = inspect.signature(init)

        @wraps(init)
        def lazy_init(self: Brick, *args: Any, **kwargs: Any) -> None:
            for which, names in (
                ("allocation_args", allocation),
                ("initialization_args", initialization),
            ):
                known = self.__dict__.setdefault(which, [])
                known.extend(name for name in names or () if name not in known)
            by_position = signature.bind_partial(self, *args).arguments
            given = {**by_position, **kwargs}
            absent = {name: none for name, none in later.items() if name not in given}
            init(self, *args, **kwargs, **absent)

        shown: Any = lazy_init
        shown.__signature__ = _with_defaults(signature, later)
        return lazy_init

    return decorate


def _with_defaults(signature: inspect.Signature, later: dict[str, LazyNone]) -> inspect.Signature:
    """Return the signature of a constructor whose lazy arguments have defaults.

    One that stands before a required argument stays without, as a signature must be written.
    """
    parameters = list(signature.parameters.values())
    for index, parameter in reversed(list(enumerate(parameters))):
        if parameter.name in later:
            parameters[index] = parameter.replace(default=later[parameter.name])
        elif (
            parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            and parameter.default is parameter.empty
        ):
            break
    return signature.replace(parameters=parameters)


def args_to_kwargs(args: Iterable, f: Callable) -> dict:
    """Return positional arguments by the names of a function's parameters.

    Parameters
    ----------
    args : iterable
        The arguments.
    f : callable
        The function.

    Returns
    -------
    dict
        Name to value.
    """
    return dict(inspect.signature(f).bind_partial(*args).arguments)


def rename_function(function: Callable, new_name: str) -> Callable:
    """Give a function another name.

    Parameters
    ----------
    function : callable
        The function; changed in place.
    new_name : str
        The name.

    Returns
    -------
    callable
        The same function.
    """
    function.__name__ = new_name
    function.__qualname__ = f"{function.__qualname__.rpartition('.')[0]}.{new_name}".lstrip(".")
    return function


def create_unbound_method(func: Callable, cls: type) -> Callable:
    """Return a function that becomes a method when it is set on a class.

    Parameters
    ----------
    func : callable
        The function.
    cls : type
        The class; kept for the sake of callers, a function needs none.

    Returns
    -------
    callable
        The function.
    """
    return func
