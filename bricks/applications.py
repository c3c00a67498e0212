"""Application methods: how a brick's method becomes a named, annotated part of a graph.

A method decorated by :func:`application` is an :class:`Application` on its class and a
:class:`BoundApplication` on a brick. Calling the latter

* allocates the brick if nobody did,
* copies every symbolic input and output, so that each copy has one maker and one set of
  annotations (the copies are identities, which compiling removes),
* names the copies ``<brick>_<application>_<argument>``, keeps the bare name in ``tag.name``,
  gives them the roles INPUT and OUTPUT, and annotates them by the brick and by an
  :class:`ApplicationCall` of this one call.

Attributes of a bound application are looked up in four places: those set on it, the property
functions of the application, the attributes of the application, the delegate.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from aesara.graph.basic import Variable
from aesara.tensor.type import TensorType

from bricks.annotations import Annotation, add_annotation
from bricks.roles import INPUT, OUTPUT, add_role
from bricks.utils.plain import pack, unpack
from fuel_data.utils.names import nearest_name

if TYPE_CHECKING:
    from bricks.base import Brick

__all__ = ["Application", "ApplicationCall", "BoundApplication", "application"]

#: The bricks whose applications are running, outermost first, in this thread or task.
_CALL_STACK: ContextVar[tuple[Brick, ...]] = ContextVar("call_stack", default=())

_INJECTED = ("application", "application_call")


class ApplicationCall(Annotation):
    """One call of an application method; an annotation of all its inputs and outputs.

    Parameters
    ----------
    application : BoundApplication
        What was called.

    Attributes
    ----------
    application : BoundApplication
        What was called.
    metadata : dict
        What the call wants known, such as ``call_id``.
    """

    def __init__(self, application: BoundApplication) -> None:
        super().__init__()
        self.application = application
        self.metadata: dict[str, Any] = {}

    def add_auxiliary_variable(
        self, variable: Any, roles: Any = None, name: str | None = None
    ) -> None:
        """Attach a variable of interest to this call and to the brick that was called.

        Parameters
        ----------
        variable : Variable
            The variable.
        roles : VariableRole or iterable of VariableRole, optional
            Its roles, beside ``AUXILIARY``.
        name : str, optional
            Its bare name; ``variable.name`` becomes ``<brick>_<application>_<name>``.
        """
        add_annotation(variable, self.application.brick)
        super().add_auxiliary_variable(variable, roles)
        if name is not None:
            variable.tag.name = name
            variable.name = _graph_name(self.application, name)

    def __repr__(self) -> str:
        return f"<call of {self.application!r}>"


class Application:
    """An application method, as an attribute of its class.

    Parameters
    ----------
    application_function : function
        What computes the outputs. Its parameters named ``application`` and ``application_call``,
        if it has them, get the bound application and the :class:`ApplicationCall`.

    Attributes
    ----------
    brick : type
        The class that defines it.
    """

    _OWN = frozenset(["application_function", "delegate_function", "properties", "brick"])
    brick: type | None

    def __init__(self, application_function: Callable) -> None:
        self.properties: dict[str, str | Callable] = {}
        self.application_function = application_function
        self.application_name = application_function.__name__
        self.delegate_function: Callable | None = None
        self.brick = None
        self.__doc__ = application_function.__doc__
        self.__name__ = application_function.__name__
        self.__wrapped__ = application_function

    def __set_name__(self, owner: type, name: str) -> None:
        if self.brick is None:
            self.brick = owner
            self.application_name = name

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.application_name

    @property
    def signature(self) -> inspect.Signature:
        """The parameters that a caller may give: not the brick, nor what is injected."""
        parameters = list(inspect.signature(self.application_function).parameters.values())[1:]
        return inspect.Signature([p for p in parameters if p.name not in _INJECTED])

    def property(self, name: str) -> Callable[[Callable], Callable]:
        """Decorate a method that computes an attribute of the application for each brick.

        Parameters
        ----------
        name : str
            Name of the attribute, such as ``'inputs'``.

        Returns
        -------
        callable
            The decorator.
        """

        def decorate(function: Callable) -> Callable:
            self.properties[name] = function
            return function

        return decorate

    def delegate(self, function: Callable) -> Callable:
        """Decorate a method that returns the application to ask for attributes not found here.

        Parameters
        ----------
        function : callable
            Takes the brick, returns a bound application.

        Returns
        -------
        callable
            The same function.
        """
        self.delegate_function = function
        return function

    def __get__(self, instance: Brick | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        bound = instance.__dict__.setdefault("_bound_applications", {})
        if self not in bound:
            bound[self] = BoundApplication(self, instance)
        return bound[self]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("properties", {}):
            raise ValueError(
                f"{self!r}: {name!r} is computed for each brick by a property of the application. "
                f"Set it on the application of one brick, as in `brick.{self.name}.{name} = …`."
            )
        if name == "inputs":
            _check_input_names(self, value)
        super().__setattr__(name, value)

    def __call__(self, brick: Brick, *args: Any, **kwargs: Any) -> Any:
        return self.__get__(brick, type(brick))(*args, **kwargs)

    def __reduce__(self) -> Any:
        if self.brick is None:
            raise TypeError(f"application {self.name!r} belongs to no class, so cannot be pickled.")
        return getattr, (self.brick, self.application_name)

    def __repr__(self) -> str:
        owner = self.brick.__name__ if self.brick is not None else "?"
        return f"<application {owner}.{self.application_name}>"

    def apply(
        self,
        bound: BoundApplication,
        *args: Any,
        as_dict: bool = False,
        as_list: bool = False,
        call_id: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Build the part of the graph that one call stands for.

        Parameters
        ----------
        bound : BoundApplication
            What is called.
        *args : Variable or object
            Arguments of the method.
        as_dict : bool, optional
            Whether to return the outputs by name.
        as_list : bool, optional
            Whether to return a list, also for one output.
        call_id : object, optional
            Kept in the call's metadata, for ``VariableFilter(call_id=…)``.
        **kwargs : Variable or object
            Arguments of the method.

        Returns
        -------
        Variable, list of Variable or OrderedDict
            The outputs; one output is not wrapped in a list.

        Raises
        ------
        TypeError
            If an argument is unknown, missing or given twice.
        ValueError
            If `as_dict` and `as_list` are both set, or the outputs do not fit their names.
        """
        path = bound.path
        if as_dict and as_list:
            raise ValueError(f"{path}: give `as_dict` or `as_list`, not both.")
        self._check_arguments(path, args, kwargs)
        call = ApplicationCall(bound)
        if call_id is not None:
            call.metadata["call_id"] = call_id
        if not bound.brick.allocated:
            bound.brick.allocate()
        args, kwargs = self._tag_inputs(bound, call, args, kwargs)
        outputs = self._run(bound, call, args, kwargs)
        outputs = _tag_outputs(bound, call, outputs)
        if as_dict:
            return _name_outputs(bound, outputs)
        return outputs if as_list else unpack(outputs)

    def _check_arguments(self, path: str, args: tuple, kwargs: dict) -> None:
        """Refuse arguments that the method does not take, in words."""
        signature = self.signature
        parameters = signature.parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            known = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
            for name in kwargs:
                if name not in known:
                    raise TypeError(
                        f"{path}: unexpected argument {name!r}.{nearest_name(name, known)}"
                    )
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{path}{signature}: {error}.") from error

    def _tag_inputs(
        self, bound: BoundApplication, call: ApplicationCall, args: tuple, kwargs: dict
    ) -> tuple[tuple, dict]:
        """Copy and annotate the symbolic inputs of a call."""
        parameters = self.signature.parameters.values()
        names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
        names += [f"{rest}_{index}" for index in range(len(args) - len(names))]

        def tag(value: Any, name: str) -> Any:
            if _is_tensor(value):
                return _copy_and_tag(bound, call, value, INPUT, name)
            return value

        return (
            tuple(tag(value, name) for value, name in zip(args, names, strict=False)),
            {name: tag(value, name) for name, value in kwargs.items()},
        )

    def _run(
        self, bound: BoundApplication, call: ApplicationCall, args: tuple, kwargs: dict
    ) -> list:
        """Call the method itself, with what it wants injected, and return a list of outputs."""
        parameters = inspect.signature(self.application_function).parameters
        injected = {"application": bound, "application_call": call}
        wanted = {name: value for name, value in injected.items() if name in parameters}
        positional = list(args)
        for index, parameter in enumerate(list(parameters.values())[1:]):
            by_position = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            if parameter.name in wanted and by_position and index < len(positional):
                # Injected parameters stand anywhere; those after them shift.
                positional.insert(index, wanted.pop(parameter.name))
        brick, stack = bound.brick, _CALL_STACK.get()
        if stack and stack[-1] is not brick and not _is_child(brick, stack[-1]):
            warnings.warn(
                f"{stack[-1].path} applies {brick.path}, which is not one of its children. "
                "Add it to `children`, so that it is initialized, named and saved with its user.",
                stacklevel=4,
            )
        token = _CALL_STACK.set((*stack, brick))
        try:
            return pack(self.application_function(brick, *positional, **kwargs, **wanted))
        finally:
            _CALL_STACK.reset(token)


class BoundApplication:
    """An application method of one brick.

    Parameters
    ----------
    application : Application
        The method on the class.
    brick : Brick
        The brick.
    """

    def __init__(self, application: Application, brick: Brick) -> None:
        self.application = application
        self.brick = brick

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.application.application_name

    @property
    def path(self) -> str:
        """The brick's path and the method's name, for messages and names: ``/mlp.apply``."""
        return f"{self.brick.path}.{self.name}"

    def __getattr__(self, name: str) -> Any:
        # Python asks here only for what is not set on the bound application itself.
        if name in ("application", "brick") or name.startswith("__"):
            raise AttributeError(name)
        application = self.application
        if name in application.properties:
            return application.properties[name](self.brick)  # type: ignore[operator]
        if name in vars(application) and name not in Application._OWN:
            return getattr(application, name)
        if application.delegate_function is not None:
            return getattr(application.delegate_function(self.brick), name)
        raise AttributeError(
            f"application {self.path} has no attribute {name!r}: it is neither set, nor declared "
            "by `@application(…)`, nor computed by a property, nor found on a delegate."
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "inputs":
            _check_input_names(self.application, value)
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundApplication)
            and self.application is other.application
            and self.brick is other.brick
        )

    def __hash__(self) -> int:
        return hash((id(self.application), id(self.brick)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.application.apply(self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<application {self.path}>"


def application(*args: Callable, **kwargs: Any) -> Any:
    """Decorate a method of a brick that builds a part of the graph.

    Parameters
    ----------
    *args : callable
        The method, when the decorator is used bare.
    **kwargs : object
        Attributes of the application, such as ``inputs=['x']`` and ``outputs=['y']``.

    Returns
    -------
    Application or callable
        The application, or a decorator when used with arguments.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.base import Brick
    >>> class Doubler(Brick):
    ...     @application(inputs=["x"], outputs=["y"])
    ...     def apply(self, x):
    ...         return 2 * x
    >>> Doubler(name="double").apply(tensor.matrix("x"))
    double_apply_y
    >>> dict(Doubler().apply(tensor.matrix("x"), as_dict=True))
    {'y': doubler_apply_y}
    """

    def wrap(function: Callable) -> Application:
        wrapped = Application(function)
        for name, value in kwargs.items():
            setattr(wrapped, name, value)
        return wrapped

    if not args:
        return wrap
    if len(args) > 1 or kwargs or not callable(args[0]):
        raise TypeError(
            "application: use it bare, or with keyword arguments only, as in "
            "`@application(inputs=['x'], outputs=['y'])`."
        )
    return wrap(args[0])


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Variable) and isinstance(value.type, TensorType)


def _is_child(brick: Brick, parent: Brick) -> bool:
    return any(child is brick for child in parent.children)


def _check_input_names(owner: Application, names: Iterable[str]) -> None:
    """Refuse declared inputs that are no parameters of the method."""
    parameters = owner.signature.parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters]
    for name in names:
        if name not in known:
            raise ValueError(
                f"{owner!r}: `inputs` names {name!r}, which is no argument of the method."
                f"{nearest_name(name, known)}"
            )


def _graph_name(bound: BoundApplication, name: str) -> str:
    return f"{bound.brick.name}_{bound.name}_{name}"


def _copy_and_tag(
    bound: BoundApplication, call: ApplicationCall, variable: Any, role: Any, name: str
) -> Any:
    """Return a copy of a variable that belongs to this call under the given name."""
    copy = variable.copy()
    copy.name = _graph_name(bound, name)
    copy.tag.name = name
    add_annotation(copy, bound.brick)
    add_annotation(copy, call)
    add_role(copy, role)
    return copy


def _tag_outputs(bound: BoundApplication, call: ApplicationCall, outputs: list) -> list:
    """Copy and annotate the outputs of a call."""
    names = getattr(bound, "outputs", None)
    if names is not None and len(outputs) > len(names):
        raise ValueError(
            f"{bound.path}: expected outputs {list(names)}, got {len(outputs)} values. "
            "Declare a name for each in `@application(outputs=[…])`."
        )
    tagged = []
    for index, output in enumerate(outputs):
        if _is_tensor(output):
            name = f"output_{index}" if names is None else names[index]
            output = _copy_and_tag(bound, call, output, OUTPUT, name)
        tagged.append(output)
    return tagged


def _name_outputs(bound: BoundApplication, outputs: list) -> OrderedDict:
    """Return the outputs of a call by name."""
    names = getattr(bound, "outputs", None)
    if names is None or len(names) != len(outputs):
        raise ValueError(
            f"{bound.path}: `as_dict` needs a name for each output; there are {len(outputs)} "
            f"outputs, named {names}. Declare `@application(outputs=[…])`."
        )
    return OrderedDict(zip(names, outputs, strict=True))
