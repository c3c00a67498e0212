"""The bricks that most others are made of: linear maps, activations, softmax."""

from typing import Any

import numpy
from aesara import tensor
from aesara.tensor import special
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, l2_norm, lengths_of, of_dtype
from bricks.base import Brick, application, lazy
from bricks.checks import check_ndim, check_sizes, describe
from bricks.interfaces import (
    Activation,
    DimensionPreserving,
    Feedforward,
    Initializable,
    LinearLike,
    Random,
    check_last_dim,
    draw_parameter,
)
from bricks.roles import BIAS, WEIGHT, add_role
from bricks.targets import cross_entropy
from bricks.utils import shared_floatx
from bricks.wrappers import WithExtraDims

__all__ = [
    "Bias",
    "Identity",
    "LeakyRectifier",
    "Linear",
    "LinearMaxout",
    "Logistic",
    "Maxout",
    "NDimensionalSoftmax",
    "Rectifier",
    "Softmax",
    "Softplus",
    "Tanh",
    "Activation",
    "Feedforward",
    "Initializable",
    "LinearLike",
    "Random",
]


class Linear(LinearLike, Feedforward):
    """A linear map with an optional bias: ``y = x W + b``.

    Parameters
    ----------
    input_dim : int
        Features of the input. Needed for allocation.
    output_dim : int
        Features of the output. Needed for allocation.
    **kwargs
        For `Initializable`: schemes of initialization, `use_bias`, `seed`, `name`.
    """

    @lazy(allocation=["input_dim", "output_dim"])
    def __init__(self, input_dim: int, output_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.input_dim = input_dim
        self.output_dim = output_dim

    def _allocate(self) -> None:
        check_sizes(self, input_dim=self.input_dim, output_dim=self.output_dim)
        allocate_weights(self, "W", (self.input_dim, self.output_dim))
        if self.use_bias:
            allocate_biases(self, "b", (self.output_dim,))

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Map the last axis of the input.

        Parameters
        ----------
        input_ : Variable of shape (..., input_dim)
            Integers are taken as floating-point numbers.

        Returns
        -------
        Variable of shape (..., output_dim)
        """
        check_ndim(self.apply.path, 1, input_=input_)
        check_last_dim(self, input_, self.input_dim)
        output = tensor.dot(as_float(input_, self.W.dtype), self.W)
        return output + self.b if self.use_bias else output

    def get_dim(self, name: str) -> Any:
        """Features of ``'input_'`` or ``'output'``; see `Brick.get_dim`."""
        return feedforward_dim(self, super().get_dim, name)


class Bias(DimensionPreserving, Initializable):
    """Add a bias to the last axis.

    Parameters
    ----------
    dim : int
        Features of input and output. Needed for allocation.
    **kwargs
        For `Initializable`.
    """

    @lazy(allocation=["dim"])
    def __init__(self, dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dim = dim

    @property
    def b(self) -> Any:
        """The biases."""
        return self.parameters[0]

    def _allocate(self) -> None:
        check_sizes(self, dim=self.dim)
        allocate_biases(self, "b", (self.dim,))

    def _initialize(self) -> None:
        draw_parameter(self, "biases_init", self.b)

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Add the bias.

        Parameters
        ----------
        input_ : Variable of shape (..., dim)
            Integers are taken as floating-point numbers.

        Returns
        -------
        Variable of shape (..., dim)
        """
        check_ndim(self.apply.path, 1, input_=input_)
        check_last_dim(self, input_, self.dim)
        return as_float(input_, self.b.dtype) + self.b

    def get_dim(self, name: str) -> Any:
        """Features of ``'input_'`` or ``'output'``; see `Brick.get_dim`."""
        return feedforward_dim(self, super().get_dim, name)


class Maxout(Brick):
    """The largest of each group of neighbouring features.

    Parameters
    ----------
    num_pieces : int
        Features in a group. Needed for allocation.
    **kwargs
        For `Brick`.

    References
    ----------
    I. Goodfellow et al., "Maxout networks", ICML 2013.
    """

    @lazy(allocation=["num_pieces"])
    def __init__(self, num_pieces: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_pieces = num_pieces

    def _allocate(self) -> None:
        check_sizes(self, num_pieces=self.num_pieces)

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Take the maxima.

        Parameters
        ----------
        input_ : Variable of shape (..., output_dim * num_pieces)
            The pieces of a group follow each other.

        Returns
        -------
        Variable of shape (..., output_dim)
        """
        check_ndim(self.apply.path, 1, input_=input_)
        *front, last = lengths_of(input_)
        if isinstance(last, int) and last % self.num_pieces:
            raise ValueError(
                f"{self.apply.path}: the last axis of `input_` must be a multiple of "
                f"num_pieces={self.num_pieces}; got {describe(input_)}."
            )
        shape = (*front, last // self.num_pieces, self.num_pieces)
        return tensor.max(input_.reshape(shape, ndim=input_.ndim + 1), axis=-1)


class LinearMaxout(Initializable, Feedforward):
    """A linear map followed by maxout.

    Parameters
    ----------
    input_dim : int
        Features of the input. Needed for allocation.
    output_dim : int
        Features of the output. Needed for allocation.
    num_pieces : int
        Linear features for each of the output. Needed for allocation.
    **kwargs
        For `Initializable`.
    """

    @lazy(allocation=["input_dim", "output_dim", "num_pieces"])
    def __init__(self, input_dim: int, output_dim: int, num_pieces: int, **kwargs: Any) -> None:
        self.linear = Linear()
        self.maxout = Maxout()
        kwargs["children"] = [self.linear, self.maxout, *kwargs.get("children", ())]
        super().__init__(**kwargs)
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.num_pieces = num_pieces

    def _push_allocation_config(self) -> None:
        sizes = {"output_dim": self.output_dim, "num_pieces": self.num_pieces}
        check_sizes(self, **sizes)
        self.linear.input_dim = self.input_dim
        self.linear.output_dim = self.output_dim * self.num_pieces
        self.linear.use_bias = self.use_bias
        self.maxout.num_pieces = self.num_pieces

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Map the last axis and take the maxima.

        Parameters
        ----------
        input_ : Variable of shape (..., input_dim)

        Returns
        -------
        Variable of shape (..., output_dim)
        """
        check_last_dim(self, input_, self.input_dim)
        return self.maxout.apply(self.linear.apply(input_))

    def get_dim(self, name: str) -> Any:
        """Features of ``'input_'`` or ``'output'``; see `Brick.get_dim`."""
        return feedforward_dim(self, super().get_dim, name)


class Identity(Activation):
    """Return the input."""

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Return the input, of any shape."""
        return input_


class Tanh(Activation):
    """The hyperbolic tangent of each element."""

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Apply it to an input of any shape; integers are taken as floating-point numbers."""
        return tensor.tanh(as_float(input_))


class Logistic(Activation):
    """The logistic function of each element: ``1 / (1 + exp(-x))``."""

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Apply it to an input of any shape; integers are taken as floating-point numbers."""
        return tensor.sigmoid(as_float(input_))


class Softplus(Activation):
    """The logarithm of ``1 + exp(x)`` of each element, without overflow."""

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Apply it to an input of any shape; integers are taken as floating-point numbers."""
        return tensor.softplus(as_float(input_))


class Rectifier(Activation):
    """The positive part of each element. Its gradient at 0 is 0; NaN stays NaN."""

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Apply it to an input of any shape."""
        return tensor.switch(tensor.le(input_, 0), 0, input_)


class LeakyRectifier(Activation):
    """The positive part of each element, and a fraction of the negative one.

    Parameters
    ----------
    leak : float
        The fraction.
    **kwargs
        For `Brick`.

    References
    ----------
    A. Maas et al., "Rectifier nonlinearities improve neural network acoustic models", ICML 2013.
    """

    def __init__(self, leak: float = 0.01, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._leak = leak

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Apply it to an input of any shape; integers are taken as floating-point numbers."""
        input_ = as_float(input_)
        leak = of_dtype(self._leak, input_.dtype)
        return tensor.switch(tensor.gt(input_, 0), input_, leak * input_)


class Softmax(Brick):
    """The softmax over the last axis, its logarithm and the cross-entropy, all without overflow."""

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Any:
        """Probabilities of the classes.

        Parameters
        ----------
        input_ : Variable of shape (..., class)
            Any numbers; integers are taken as floating-point numbers.

        Returns
        -------
        Variable of shape (..., class)
            Positive, with the sum 1.
        """
        check_ndim(self.apply.path, 1, input_=input_)
        # The op itself: the function of Aesara warns of vectors, and of what it once did to them.
        return special.Softmax(axis=-1)(as_float(input_))

    @application(inputs=["input_"], outputs=["output"])
    def log_probabilities(self, input_: Variable) -> Any:
        """Logarithms of the probabilities of the classes, finite where these would be 0.

        Parameters
        ----------
        input_ : Variable of shape (..., class)

        Returns
        -------
        Variable of shape (..., class)
        """
        check_ndim(self.log_probabilities.path, 1, input_=input_)
        return special.LogSoftmax(axis=-1)(as_float(input_))

    @application(inputs=["y", "x"], outputs=["output"])
    def categorical_cross_entropy(self, application: Any, y: Variable, x: Variable) -> Variable:
        """Cross-entropy of each example, from what the softmax would be applied to.

        Parameters
        ----------
        y : Variable of shape (..., batch), (..., batch, 1) or (..., batch, class)
            Integers from 0: the classes. Or weights of the classes: a distribution.
        x : Variable of shape (..., batch, class)
            What the softmax would be applied to.

        Returns
        -------
        Variable of shape (..., batch)
            In nats; NaN where the class is not one of them.
        """
        return cross_entropy(application.path, y, self.log_probabilities(x))


class NDimensionalSoftmax(Softmax):
    """A softmax whose applications take ``extra_ndim``; see `WithExtraDims`."""

    decorators = [WithExtraDims()]


def allocate_weights(brick: Brick, name: str, shape: tuple[int, ...]) -> None:
    """Add weights to the parameters of a brick, full of NaN, and their norm beside them.

    Parameters
    ----------
    brick : Brick
        Which is being allocated.
    name : str
        Of the parameter.
    shape : tuple of int
        Its shape.
    """
    _allocate(brick, name, shape, WEIGHT)


def allocate_biases(brick: Brick, name: str, shape: tuple[int, ...]) -> None:
    """Add biases to the parameters of a brick, full of NaN, and their norm beside them.

    Parameters
    ----------
    brick : Brick
        Which is being allocated.
    name : str
        Of the parameter.
    shape : tuple of int
        Its shape.
    """
    _allocate(brick, name, shape, BIAS)


def _allocate(brick: Brick, name: str, shape: tuple[int, ...], role: Any) -> None:
    # Lengths that are known let the next brick refuse what does not fit before anything runs.
    parameter = shared_floatx(numpy.full(shape, numpy.nan), name=name, shape=shape)
    add_role(parameter, role)
    brick.parameters.append(parameter)
    brick.add_auxiliary_variable(l2_norm([parameter]), name=f"{name}_norm")


def feedforward_dim(brick: Any, otherwise: Any, name: str) -> Any:
    """Features of the input or output of a feedforward brick.

    Parameters
    ----------
    brick : Feedforward
        Any.
    otherwise : callable
        What answers for other names.
    name : str
        ``'input_'``, ``'output'`` or another name.

    Returns
    -------
    int
    """
    if name == "input_":
        return brick.input_dim
    return brick.output_dim if name == "output" else otherwise(name)
