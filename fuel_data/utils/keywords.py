"""Keywords that no one takes, refused with the name of the nearest that is taken."""

import inspect
from typing import Any

from fuel_data.utils.names import nearest_name


class NamedKeywords:
    """A base of classes that say which keyword was probably meant by one that they do not take.

    Python's own message does not say it before version 3.13, and then only for some calls. A class
    whose ``__init__`` takes ``**kwargs`` decides itself what it takes.

    Raises
    ------
    TypeError
        When an instance is made with a keyword that ``__init__`` does not take.

    Examples
    --------
    >>> class Rate(NamedKeywords):
    ...     def __init__(self, learning_rate=1):
    ...         self.learning_rate = learning_rate
    >>> Rate(learning_rat=2)
    Traceback (most recent call last):
    TypeError: Rate: unexpected argument 'learning_rat'. Did you mean 'learning_rate'?
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Refuse unknown keywords before ``__init__`` sees them."""
        if kwargs:
            check_keywords(cls, kwargs)
        return super().__new__(cls)


def check_keywords(class_: type, keywords: Any) -> None:
    """Refuse keywords that the ``__init__`` of a class does not take.

    Parameters
    ----------
    class_ : type
        The class; one whose ``__init__`` takes ``**kwargs`` takes all.
    keywords : iterable of str
        What it was called with.

    Raises
    ------
    TypeError
        If one is unknown; the nearest known one is named.
    """
    init: Any = inspect.getattr_static(class_, "__init__")
    # That of `object` looks as if it took anything.
    takes_nothing = init is object.__init__
    parameters = [] if takes_nothing else list(inspect.signature(init).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = [parameter.name for parameter in parameters if parameter.kind in named]
    for name in keywords:
        if name not in known:
            raise TypeError(
                f"{class_.__name__}: unexpected argument {name!r}.{nearest_name(name, known)}"
            )
