"""Decorators of brick classes that change what their applications take."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from aesara import tensor
from aesara.tensor.var import TensorVariable

from bricks.aesara_expressions import lengths_of
from bricks.base import Application, application, rename_function
from bricks.checks import describe
from bricks.utils import pack


class BrickWrapper(ABC):
    """The base class of wrappers of all applications that a brick class inherits.

    A wrapper stands in the `decorators` of the new class, because a class has to be wrapped while
    it is made.

    Examples
    --------
    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks import Softmax, xla
    >>> class SoftmaxOfEachStep(Softmax):
    ...     decorators = [WithExtraDims()]
    >>> x = tensor.tensor3("x")                                # axes: time, batch, class
    >>> y = SoftmaxOfEachStep().apply(x, extra_ndim=1)
    >>> ones = numpy.ones((2, 1, 4), x.dtype)
    >>> xla.function([x], y)(ones).tolist()
    [[[0.25, 0.25, 0.25, 0.25]], [[0.25, 0.25, 0.25, 0.25]]]
    """

    def __call__(self, mcs: type, name: str, bases: tuple, namespace: dict[str, Any]) -> None:
        """Wrap every application of the base classes.

        Parameters
        ----------
        mcs : type
            The class of the class that is made.
        name : str
            Its name.
        bases : tuple of type
            Its bases.
        namespace : dict
            Its attributes, to which the wrapped applications are added.
        """
        done: set[str] = set()
        for base in bases:
            for attribute in dir(base):
                value = getattr(base, attribute, None)
                if isinstance(value, Application) and attribute not in done:
                    done.add(attribute)
                    self.wrap(value, namespace)

    @abstractmethod
    def wrap(self, wrapped: Application, namespace: dict[str, Any]) -> None:
        """Add a wrapped application to a class that is made.

        Parameters
        ----------
        wrapped : Application
            Of a base class.
        namespace : dict
            The attributes of the new class, to be changed in place.
        """


class WithExtraDims(BrickWrapper):
    """Let applications take inputs that have more axes in front, such as time.

    The wrapped applications take ``extra_ndim``, by keyword: how many axes to fold into the first
    one of those that the application knows, 0 by default. All inputs must have the same lengths
    there. The outputs get these axes back.
    """

    def wrap(self, wrapped: Application, namespace: dict[str, Any]) -> None:
        """Add the application that folds the axes; see `BrickWrapper.wrap`."""
        name = wrapped.application_name

        def apply(self: Any, application: Any, *args: Any, **kwargs: Any) -> Any:
            extra_ndim = kwargs.pop("extra_ndim", 0)
            inner = wrapped.__get__(self, type(self))
            if not extra_ndim:
                return inner(*args, **kwargs)
            inputs = {**wrapped.signature.bind_partial(*args).arguments, **kwargs}
            lengths: Sequence[Any] = ()
            for key, value in inputs.items():
                if isinstance(value, TensorVariable):
                    _check_axes(application.path, key, value, extra_ndim)
                    lengths = lengths_of(value)[:extra_ndim]
                    inputs[key] = _fold(value, extra_ndim)
            return [_unfold(output, lengths) for output in pack(inner(**inputs))]

        def delegate(self: Any) -> Any:
            """Give the application that is wrapped, to be asked for attributes not found here.

            Returns
            -------
            BoundApplication
                Of the same brick.
            """
            return wrapped.__get__(self, type(self))

        apply.__doc__ = wrapped.__doc__
        new = application(rename_function(apply, name))
        new.delegate(rename_function(delegate, f"{name}_delegate"))
        namespace[name] = new
        namespace[f"{name}_delegate"] = delegate


def _check_axes(application: str, name: str, variable: Any, extra_ndim: int) -> None:
    if variable.ndim <= extra_ndim:
        raise ValueError(
            f"{application}: with extra_ndim={extra_ndim}, `{name}` must have at least "
            f"{extra_ndim + 1} axes; got {describe(variable)}."
        )


def _fold(variable: Any, extra_ndim: int) -> Any:
    lengths = lengths_of(variable)
    first = tensor.prod(tensor.stack(lengths[: extra_ndim + 1]))
    rest = lengths[extra_ndim + 1 :]
    return variable.reshape((first, *rest), ndim=1 + len(rest))


def _unfold(variable: Any, extra: Sequence[Any]) -> Any:
    lengths = lengths_of(variable)
    first = lengths[0] // tensor.prod(tensor.stack(list(extra)))
    return variable.reshape((*extra, first, *lengths[1:]), ndim=len(extra) + variable.ndim)
