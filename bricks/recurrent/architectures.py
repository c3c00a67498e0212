"""Recurrent bricks: how the states of one step follow from those of the step before."""

from __future__ import annotations

from typing import Any

import numpy
from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import Brick, application, lazy
from bricks.checks import check_sizes, describe
from bricks.interfaces import Initializable, check_last_dim, draw_parameter
from bricks.recurrent.base import BaseRecurrent, recurrent
from bricks.roles import INITIAL_STATE, add_role
from bricks.simple import Logistic, Tanh, allocate_weights
from bricks.utils import shared_floatx

__all__ = ["GatedRecurrent", "LSTM", "SimpleRecurrent"]


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


def draw_vector(brick: Initializable, parameter: Any) -> None:
    """Draw a vector by a brick's scheme of weights, as the only row of a matrix.

    So schemes that draw only matrices, such as `Orthogonal`, will do.

    Parameters
    ----------
    brick : Initializable
        The brick, whose `weights_init` was found to be a scheme.
    parameter : SharedVariable
        Of one axis.
    """
    scheme: Any = brick.weights_init
    row = scheme.generate(brick.rng, (1, *parameter.get_value().shape))
    parameter.set_value(row[0])


def check_step(brick: Brick, **variables: Variable) -> None:
    """Refuse what a step is given if its axes differ from those of the states.

    Parameters
    ----------
    brick : Brick
        Which takes the step.
    **variables : Variable of shape (batch, feature)
        By their names, ``states`` among them.

    Raises
    ------
    ValueError
        If there are more or fewer axes than the states have, or the last one is known to have
        another length than the brick tells.
    """
    states = variables["states"]
    for name, variable in variables.items():
        check_last_dim(brick, variable, brick.get_dim(name), name)
        if variable.ndim != states.ndim:
            raise ValueError(
                f"{brick.path}.apply: in each step `{name}` and `states` must have the same axes, "
                f"(batch, feature); got {describe(variable)} and {describe(states)}. Those of "
                "whole sequences are (time, batch, feature)."
            )


def keep_masked(brick: Brick, mask: Variable | None, new: Variable, old: Variable) -> Variable:
    """Let states of examples whose sequence is over stay as they are.

    Parameters
    ----------
    brick : Brick
        Whose states they are.
    mask : Variable of shape (batch,), or None
        1 where the sequence goes on, 0 where it is over.
    new, old : Variable of shape (batch, dim)
        The states after and before the step.

    Returns
    -------
    Variable of shape (batch, dim)
        `new` where the mask is 1, `old` where it is 0; of their dtype.

    Raises
    ------
    ValueError
        If the mask has other axes.
    """
    if mask is None:
        return new
    if mask.ndim != 1:
        raise ValueError(
            f"{brick.path}.apply: `mask` must have the axes (time, batch), so (batch,) in each "
            f"step; got {describe(mask)} in each step."
        )
    mask = mask.astype(new.dtype)[:, None]
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
        check_step(self, inputs=inputs, states=states)
        total = as_float(inputs, self.W.dtype) + tensor.dot(states, self.W)
        return keep_masked(self, mask, self.activation.apply(total), states)

    @application(outputs=["states"])
    def initial_states(self, batch_size: Any, **kwargs: Any) -> Any:
        """Repeat the trainable initial state; see `BaseRecurrent.initial_states`."""
        return tensor.alloc(self.parameters[1], batch_size, self.dim)


class LSTM(BaseRecurrent, Initializable):
    """Long short-term memory, with connections from the cells to the gates ("peepholes").

    The features of the inputs are four parts of length `dim`, for the input gate, the forget gate,
    the cells and the output gate, in this order; so are the columns of ``W_state``::

        i, f, z, o = inputs + states @ W_state
        in_gate = gate_activation(i + cells * W_cell_to_in)
        forget_gate = gate_activation(f + cells * W_cell_to_forget)
        next_cells = forget_gate * cells + in_gate * activation(z)
        out_gate = gate_activation(o + next_cells * W_cell_to_out)
        next_states = out_gate * activation(next_cells)

    Biases belong to what makes the inputs, such as a `Linear` of ``4 * dim`` features.

    Parameters
    ----------
    dim : int
        Features of the states and of the cells. Needed for allocation.
    activation : Brick, optional
        Of the cells; `Tanh` by default.
    gate_activation : Brick, optional
        Of the gates; `Logistic` by default.
    use_peepholes : bool
        Whether the gates see the cells. Without, there are no ``W_cell_to_…``.
    **kwargs
        For `Initializable`. `weights_init` draws all weights; the initial states and cells begin
        at zero, and are trained.

    References
    ----------
    F. Gers, N. Schraudolph, J. Schmidhuber, *Learning Precise Timing with LSTM Recurrent
    Networks*, JMLR 3, 2002.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import Linear
    >>> from bricks.initialization import Constant, IsotropicGaussian
    >>> schemes = {"weights_init": IsotropicGaussian(0.1), "biases_init": Constant(0)}
    >>> linear = Linear(5, 4 * 3, **schemes)
    >>> lstm = LSTM(3, weights_init=IsotropicGaussian(0.1))
    >>> linear.initialize(); lstm.initialize()
    >>> x = tensor.tensor3("x")                                # axes: time, batch, feature
    >>> lstm.apply(linear.apply(x))
    [lstm_apply_states, lstm_apply_cells]
    """

    has_biases = False

    @lazy(allocation=["dim"])
    def __init__(
        self,
        dim: int,
        activation: Any = None,
        gate_activation: Any = None,
        *,
        use_peepholes: bool = True,
        **kwargs: Any,
    ) -> None:
        self.activation = activation or Tanh()
        self.gate_activation = gate_activation or Logistic()
        activations = dict.fromkeys([self.activation, self.gate_activation])
        kwargs["children"] = [*kwargs.get("children", ()), *activations]
        super().__init__(**kwargs)
        self.dim = dim
        self.use_peepholes = use_peepholes

    @property
    def states_dim(self) -> Any:
        """Features of the states."""
        return self.dim

    def get_dim(self, name: str) -> Any:
        """Features of ``'inputs'``, ``'states'`` and ``'cells'``; see `Brick.get_dim`."""
        dims = {
            "inputs": lambda: 4 * known_dim(self),
            "states": lambda: self.states_dim,
            "cells": lambda: self.dim,
            "mask": lambda: 0,
        }
        return dims[name]() if name in dims else super().get_dim(name)

    def _allocate(self) -> None:
        check_sizes(self, dim=self.dim)
        allocate_weights(self, "W_state", (self.states_dim, 4 * self.dim))
        if self.use_peepholes:
            for gate in ("in", "forget", "out"):
                allocate_weights(self, f"W_cell_to_{gate}", (self.dim,))
        allocate_initial_state(self, "initial_state", self.states_dim)
        allocate_initial_state(self, "initial_cells", self.dim)

    def _initialize(self) -> None:
        draw_parameter(self, "weights_init", self.W_state)
        if self.use_peepholes:
            for parameter in (self.W_cell_to_in, self.W_cell_to_forget, self.W_cell_to_out):
                draw_vector(self, parameter)

    @property
    def W_state(self) -> Any:
        """The weights from the states of one step to gates and cells of the next."""
        return find_parameter(self, "W_state")

    @property
    def W_cell_to_in(self) -> Any:
        """The weights from each cell to its input gate."""
        return find_parameter(self, "W_cell_to_in")

    @property
    def W_cell_to_forget(self) -> Any:
        """The weights from each cell to its forget gate."""
        return find_parameter(self, "W_cell_to_forget")

    @property
    def W_cell_to_out(self) -> Any:
        """The weights from each cell to its output gate."""
        return find_parameter(self, "W_cell_to_out")

    @property
    def initial_state_(self) -> Any:
        """The trainable initial states; `initial_states` is the application."""
        return find_parameter(self, "initial_state")

    @property
    def initial_cells(self) -> Any:
        """The trainable initial cells."""
        return find_parameter(self, "initial_cells")

    @recurrent(
        sequences=["inputs", "mask"],
        states=["states", "cells"],
        outputs=["states", "cells"],
        contexts=[],
    )
    def apply(
        self, inputs: Variable, states: Variable, cells: Variable, mask: Variable | None = None
    ) -> Any:
        """Take one step, or one for each element of the inputs; see `recurrent`.

        Parameters
        ----------
        inputs : Variable of shape (batch, 4 * dim)
            What is added to the transformed states.
        states : Variable of shape (batch, dim)
            The states of the step before.
        cells : Variable of shape (batch, dim)
            The cells of the step before.
        mask : Variable of shape (batch,), optional
            0 for examples that keep their states and cells.

        Returns
        -------
        states : Variable of shape (batch, dim)
            The next states.
        cells : Variable of shape (batch, dim)
            The next cells.
        """
        check_step(self, inputs=inputs, states=states, cells=cells)
        total = self._add_states(inputs, states)
        for_in, for_forget, for_cells, for_out = split_last(total, 4, self.dim)
        gate, peep = self.gate_activation.apply, self._peep
        in_gate = gate(peep(for_in, cells, "in"))
        forget_gate = gate(peep(for_forget, cells, "forget"))
        next_cells = forget_gate * cells + in_gate * self.activation.apply(for_cells)
        out_gate = gate(peep(for_out, next_cells, "out"))
        next_states = self._project(out_gate * self._show(next_cells))
        pairs = (next_states, states), (next_cells, cells)
        return [keep_masked(self, mask, new, old) for new, old in pairs]

    def _add_states(self, inputs: Variable, states: Variable) -> Variable:
        """Return what gates and cells get, before their activations."""
        return as_float(inputs, self.W_state.dtype) + tensor.dot(states, self.W_state)

    def _peep(self, total: Variable, cells: Variable, gate: str) -> Variable:
        """Add to what a gate gets what it sees of the cells."""
        if not self.use_peepholes:
            return total
        return total + cells * find_parameter(self, f"W_cell_to_{gate}")

    def _show(self, cells: Variable) -> Variable:
        """Return what the output gate lets through."""
        return self.activation.apply(cells)

    def _project(self, shown: Variable) -> Variable:
        """Return the states, from what the output gate let through."""
        return shown

    @application(outputs=["states", "cells"])
    def initial_states(self, batch_size: Any, **kwargs: Any) -> Any:
        """Repeat the trainable initial states and cells; see `BaseRecurrent.initial_states`."""
        return [
            tensor.alloc(self.initial_state_, batch_size, self.states_dim),
            tensor.alloc(self.initial_cells, batch_size, self.dim),
        ]


class GatedRecurrent(BaseRecurrent, Initializable):
    """The gated recurrent network (GRU), which takes the inputs of its gates apart::

        update, reset = gate_activation(gate_inputs + states @ state_to_gates)
        candidate = activation(inputs + (states * reset) @ state_to_state)
        next_states = update * candidate + (1 - update) * states

    The features of ``gate_inputs`` are two parts of length `dim`, for the update gate and the reset
    gate, in this order; so are the columns of ``state_to_gates``. Biases belong to what makes the
    inputs, such as a `Fork` with the output names ``gated.apply.sequences`` but the mask.

    Parameters
    ----------
    dim : int
        Features of the states. Needed for allocation.
    activation : Brick, optional
        Of the candidate; `Tanh` by default.
    gate_activation : Brick, optional
        Of the gates; `Logistic` by default.
    **kwargs
        For `Initializable`. `weights_init` draws all weights; the initial states begin at zero,
        and are trained.

    References
    ----------
    K. Cho et al., *Learning Phrase Representations using RNN Encoder-Decoder for Statistical
    Machine Translation*, EMNLP 2014.

    Examples
    --------
    >>> from aesara import tensor
    >>> gated = GatedRecurrent(3)
    >>> gated.get_dim("inputs"), gated.get_dim("gate_inputs")
    (3, 6)
    >>> x, gates = tensor.tensor3("x"), tensor.tensor3("gates") # axes: time, batch, feature
    >>> gated.apply(x, gates)
    gatedrecurrent_apply_states
    """

    has_biases = False

    @lazy(allocation=["dim"])
    def __init__(
        self, dim: int, activation: Any = None, gate_activation: Any = None, **kwargs: Any
    ) -> None:
        self.activation = activation or Tanh()
        self.gate_activation = gate_activation or Logistic()
        activations = dict.fromkeys([self.activation, self.gate_activation])
        kwargs["children"] = [*kwargs.get("children", ()), *activations]
        super().__init__(**kwargs)
        self.dim = dim

    @property
    def state_to_state(self) -> Any:
        """The weights from the states of one step to the candidate of the next."""
        return find_parameter(self, "state_to_state")

    @property
    def state_to_gates(self) -> Any:
        """The weights from the states of one step to the gates of the next."""
        return find_parameter(self, "state_to_gates")

    def get_dim(self, name: str) -> Any:
        """Features of ``'inputs'``, ``'gate_inputs'`` and ``'states'``; see `Brick.get_dim`."""
        if name == "mask":
            return 0
        if name in ("inputs", "states"):
            return self.dim
        return 2 * known_dim(self) if name == "gate_inputs" else super().get_dim(name)

    def _allocate(self) -> None:
        check_sizes(self, dim=self.dim)
        allocate_weights(self, "state_to_state", (self.dim, self.dim))
        allocate_weights(self, "state_to_gates", (self.dim, 2 * self.dim))
        allocate_initial_state(self, "initial_state", self.dim)

    def _initialize(self) -> None:
        draw_parameter(self, "weights_init", self.state_to_state)
        draw_parameter(self, "weights_init", self.state_to_gates)

    @recurrent(
        sequences=["mask", "inputs", "gate_inputs"],
        states=["states"],
        outputs=["states"],
        contexts=[],
    )
    def apply(
        self,
        inputs: Variable,
        gate_inputs: Variable,
        states: Variable,
        mask: Variable | None = None,
    ) -> Any:
        """Take one step, or one for each element of the inputs; see `recurrent`.

        Parameters
        ----------
        inputs : Variable of shape (batch, dim)
            What is added for the candidate.
        gate_inputs : Variable of shape (batch, 2 * dim)
            What is added for the gates.
        states : Variable of shape (batch, dim)
            The states of the step before.
        mask : Variable of shape (batch,), optional
            0 for examples that keep their states.

        Returns
        -------
        Variable of shape (batch, dim)
            The next states.
        """
        check_step(self, inputs=inputs, gate_inputs=gate_inputs, states=states)
        dtype = self.state_to_state.dtype
        gates = as_float(gate_inputs, dtype) + tensor.dot(states, self.state_to_gates)
        update, reset = split_last(self.gate_activation.apply(gates), 2, self.dim)
        total = as_float(inputs, dtype) + tensor.dot(states * reset, self.state_to_state)
        next_states = self.activation.apply(total) * update + states * (1 - update)
        return keep_masked(self, mask, next_states, states)

    @application(outputs=["states"])
    def initial_states(self, batch_size: Any, **kwargs: Any) -> Any:
        """Repeat the trainable initial state; see `BaseRecurrent.initial_states`."""
        return tensor.alloc(find_parameter(self, "initial_state"), batch_size, self.dim)


def find_parameter(brick: Brick, name: str) -> Any:
    """Find a parameter of a brick by its name.

    Parameters
    ----------
    brick : Brick
        The brick, allocated.
    name : str
        Of the parameter.

    Returns
    -------
    SharedVariable
        The parameter.

    Raises
    ------
    AttributeError
        If there is none.
    """
    for parameter in brick.parameters:
        if parameter.name == name:
            return parameter
    names = ", ".join(str(parameter.name) for parameter in brick.parameters)
    raise AttributeError(f"{brick.path} has no parameter {name!r}; it has {names}.")


def split_last(variable: Variable, num_parts: int, dim: int) -> list[Any]:
    """Split the last axis of a matrix into parts of one length.

    Parameters
    ----------
    variable : Variable of shape (batch, num_parts * dim)
        What is split.
    num_parts : int
        The number of parts.
    dim : int
        Features of each part.

    Returns
    -------
    list of Variable of shape (batch, dim)
        The parts in their order.
    """
    return [variable[:, part * dim : (part + 1) * dim] for part in range(num_parts)]


def known_dim(brick: Any) -> int:
    """Return the size of a brick, which others are told of.

    Parameters
    ----------
    brick : Brick
        One that has `dim`.

    Returns
    -------
    int
        Its `dim`.

    Raises
    ------
    ValueError
        If it is not set yet.
    """
    if not brick.dim:
        raise ValueError(f"{brick.path}: `dim` is not set yet, so its other sizes are not known.")
    return brick.dim
