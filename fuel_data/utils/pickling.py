"""Attributes that stay out of pickles and are loaded again when they are wanted."""

from collections.abc import Callable, Iterator
from typing import Any


def lazy_property_factory(lazy_property: str) -> property:
    """Make a property that calls ``load()`` when it is read before it was set.

    Parameters
    ----------
    lazy_property : str
        Name of the property; the value is kept in an attribute with an underscore before it.

    Returns
    -------
    property
        To be set on a class that has a method ``load``.
    """
    hidden = "_" + lazy_property

    def get(self: Any) -> Any:
        if hidden not in self.__dict__:
            self.load()
        if hidden not in self.__dict__:
            raise ValueError(
                f"{type(self).__name__}.load() did not set {lazy_property!r}; "
                "it has to set every attribute that is not pickled."
            )
        return self.__dict__[hidden]

    def set_(self: Any, value: Any) -> None:
        self.__dict__[hidden] = value

    return property(get, set_, doc=f"`{lazy_property}`, loaded when first read.")


def do_not_pickle_attributes(*lazy_properties: str) -> Callable[[type], type]:
    """Decorate a class so that some attributes are not pickled.

    The class has a method ``load()`` that sets these attributes. It is called when one of them is
    read and not there: after unpickling, or when the constructor did not set it.

    Parameters
    ----------
    *lazy_properties : str
        Names of the attributes.

    Returns
    -------
    function
        The class decorator. Attributes that a base class was decorated with stay out, too. A class
        that defines its own ``__getstate__`` keeps it.

    Raises
    ------
    ValueError
        When decorating, if the class has no ``load``; when pickling, if another attribute is an
        iterator, because most of them cannot be pickled and none of them can be started again.
    """

    def decorate(cls: type) -> type:
        if not callable(getattr(cls, "load", None)):
            raise ValueError(
                f"do_not_pickle_attributes: {cls.__name__} needs a method `load` that sets "
                f"{', '.join(lazy_properties)}."
            )
        for name in lazy_properties:
            setattr(cls, name, lazy_property_factory(name))
        inherited = getattr(cls, "__getstate__", None)
        # Since Python 3.11 `object` has a __getstate__, so that hasattr() says nothing.
        is_default = inherited is getattr(object, "__getstate__", None)
        if is_default or hasattr(inherited, "left_out"):
            left_out: frozenset[str] = getattr(inherited, "left_out", frozenset())
            cls.__getstate__ = _state_without(left_out.union(lazy_properties))  # type: ignore
        return cls

    return decorate


def _state_without(lazy_properties: frozenset[str]) -> Callable[[Any], dict[str, Any]]:
    hidden = {"_" + name for name in lazy_properties}

    def __getstate__(self: Any) -> dict[str, Any]:
        state = {key: value for key, value in self.__dict__.items() if key not in hidden}
        for key, value in state.items():
            if isinstance(value, Iterator):
                raise ValueError(
                    f"{type(self).__name__}.{key} is an iterator, which does not belong into a "
                    "pickle. Name it in do_not_pickle_attributes and make it in load()."
                )
        return state

    __getstate__.left_out = lazy_properties  # type: ignore[attr-defined]
    return __getstate__
