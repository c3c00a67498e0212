"""Recurrent bricks: how the states of one step follow from those of the step before."""

from __future__ import annotations

from typing import Any

import numpy
from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import Brick, application, lazy
from bricks.checks import check_sizes
from bricks.interfaces import Initializable, check_last_dim, draw_parameter
from bricks.recurrent.base import BaseRecurrent, recurrent
from bricks.roles import INITIAL_STATE, add_role
from bricks.simple import Tanh, allocate_weights
from bricks.utils import shared_floatx

__all__ = ["SimpleRecurrent"]


def allocate_initial_state(brick: Brick, name: str, dim: int) -> None:
    """Add a trainable initial state, of zeros, to the parameters of a brick.

    Parameters
    ----------
    brick : Brick
        Which is being allocated.
    name : str
        Of the parameter.
    dim : int
        Its length.
    """
    parameter = shared_floatx(numpy.zeros(dim), name=name, shape=(dim,))
    add_role(parameter, INITIAL_STATE)
    brick.parameters.append(parameter)


def keep_masked(mask: Variable | None, new: Variable, old: Variable) -> Variable:
    """Let states of examples whose sequence is over stay as they are.

    Parameters
    ----------
    mask : Variable of shape (batch,), or None
        1 where the sequence goes on, 0 where it is over.
    new, old : Variable of shape (batch, dim)
        The states after and before the step.

    Returns
    -------
    Variable of shape (batch, dim)
        `new` where the mask is 1, `old` where it is 0.
    """
    if mask is None:
        return new
    mask = as_float(mask, new.dtype)[:, None]
    return mask * new + (1 - mask) * old


class SimpleRecurrent(BaseRecurrent, Initializable):
    """The plain recurrent network: ``states = activation(inputs + states W)``.

    Parameters
    ----------
    dim : int
        Features of the inputs and of the states. Needed for allocation.
    activation : Brick, optional
        Applied to the sum; `Tanh` by default.
    **kwargs
        For `Initializable`. `weights_init` draws ``W``; there are no biases.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.initialization import Orthogonal
    >>> recurrent = SimpleRecurrent(3, weights_init=Orthogonal())
    >>> recurrent.initialize()
    >>> x, mask = tensor.tensor3("x"), tensor.matrix("mask")   # axes: time, batch, feature
    >>> recurrent.apply(x, mask=mask)                          # states of axes time, batch, feature
    simplerecurrent_apply_states
    """

    has_biases = False

    @lazy(allocation=["dim"])
    def __init__(self, dim: int, activation: Any = None, **kwargs: Any) -> None:
        self.activation = activation or Tanh()
        kwargs["children"] = [*kwargs.get("children", ()), self.activation]
        super().__init__(**kwargs)
        self.dim = dim

    @property
    def W(self) -> Any:
        """The weights from the states of one step to those of the next."""
        return self.parameters[0]

    def get_dim(self, name: str) -> Any:
        """Features of ``'inputs'`` and ``'states'``; see `Brick.get_dim`."""
        if name == "mask":
            return 0
        if name in (*self.apply.sequences, *self.apply.states):
            return self.dim
        return super().get_dim(name)

    def _allocate(self) -> None:
        check_sizes(self, dim=self.dim)
        allocate_weights(self, "W", (self.dim, self.dim))
        allocate_initial_state(self, "initial_state", self.dim)

    def _initialize(self) -> None:
        draw_parameter(self, "weights_init", self.W)

    @recurrent(sequences=["inputs", "mask"], states=["states"], outputs=["states"], contexts=[])
    def apply(self, inputs: Variable, states: Variable, mask: Variable | None = None) -> Any:
        """Take one step, or one for each element of the inputs; see `recurrent`.

        Parameters
        ----------
        inputs : Variable of shape (batch, dim)
            What is added to the transformed states.
        states : Variable of shape (batch, dim)
            The states of the step before.
        mask : Variable of shape (batch,), optional
            0 for examples that keep their states.

        Returns
        -------
        Variable of shape (batch, dim)
            The next states.
        """
        check_last_dim(self, inputs, self.dim, "inputs")
        check_last_dim(self, states, self.dim, "states")
        total = as_float(inputs, self.W.dtype) + tensor.dot(states, self.W)
        return keep_masked(mask, self.activation.apply(total), states)

    @application(outputs=["states"])
    def initial_states(self, batch_size: Any, **kwargs: Any) -> Any:
        """Repeat the trainable initial state; see `BaseRecurrent.initial_states`."""
        return tensor.alloc(self.parameters[1], batch_size, self.dim)
