"""Long short-term memories other than the usual one."""

from __future__ import annotations

from typing import Any

import numpy
from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import lazy
from bricks.checks import check_epsilon, check_sizes
from bricks.interfaces import draw_parameter
from bricks.recurrent.architectures import LSTM, find_parameter
from bricks.roles import BIAS, PARAMETER, VariableRole, add_role
from bricks.simple import allocate_weights
from bricks.utils import shared_floatx

__all__ = ["LayerNormalizedLSTM", "ProjectedLSTM"]


class ProjectedLSTM(LSTM):
    """An `LSTM` whose states have fewer features than it has cells, by a linear map.

    What the output gate lets through is multiplied by ``W_projection``; the result is the states,
    which the next step and other bricks see.

    Parameters
    ----------
    dim : int
        The number of cells. Needed for allocation.
    projection_dim : int
        Features of the states. Needed for allocation.
    **kwargs
        For `LSTM`.

    References
    ----------
    H. Sak, A. Senior, F. Beaufays, *Long Short-Term Memory Recurrent Neural Network Architectures
    for Large Scale Acoustic Modeling*, Interspeech 2014.

    Examples
    --------
    >>> lstm = ProjectedLSTM(dim=100, projection_dim=20)
    >>> lstm.get_dims(["inputs", "states", "cells"])
    [400, 20, 100]
    """

    @lazy(allocation=["dim", "projection_dim"])
    def __init__(self, dim: int, projection_dim: int, **kwargs: Any) -> None:
        super().__init__(dim, **kwargs)
        self.projection_dim = projection_dim

    @property
    def states_dim(self) -> Any:
        """Features of the states."""
        return self.projection_dim

    @property
    def W_projection(self) -> Any:
        """The weights from what the output gate lets through to the states."""
        return find_parameter(self, "W_projection")

    def _allocate(self) -> None:
        check_sizes(self, dim=self.dim, projection_dim=self.projection_dim)
        super()._allocate()
        allocate_weights(self, "W_projection", (self.dim, self.projection_dim))

    def _initialize(self) -> None:
        super()._initialize()
        draw_parameter(self, "weights_init", self.W_projection)

    def _project(self, shown: Variable) -> Variable:
        return tensor.dot(shown, self.W_projection)


class LayerNormalizedLSTM(LSTM):
    """An `LSTM` in which what gates and cells get is normalized for each example.

    The inputs, the transformed states and the next cells are each made to have mean 0 and variance
    1 over their features, then scaled and shifted by parameters that are trained::

        i, f, z, o = normalize(inputs) * inputs_scale + normalize(states @ W_state) * states_scale
                     + shift
        next_states = out_gate * activation(normalize(next_cells) * cells_scale + cells_shift)

    The scales begin at 1, the shifts at 0.

    Parameters
    ----------
    dim : int
        Features of the states and of the cells. Needed for allocation.
    activation, gate_activation : Brick, optional
        As in `LSTM`.
    epsilon : float
        What is added to variances.
    use_peepholes : bool
        Whether the gates see the cells, as they are before they are normalized.
    **kwargs
        For `LSTM`.

    References
    ----------
    J. L. Ba, J. R. Kiros, G. E. Hinton, *Layer Normalization*, 2016, arXiv:1607.06450.
    """

    @lazy(allocation=["dim"])
    def __init__(
        self,
        dim: int,
        activation: Any = None,
        gate_activation: Any = None,
        *,
        epsilon: float = 1e-5,
        use_peepholes: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dim, activation, gate_activation, use_peepholes=use_peepholes, **kwargs)
        self.epsilon = epsilon

    def _allocate(self) -> None:
        check_epsilon(self, self.epsilon)
        super()._allocate()
        for name, length in {"inputs": 4, "states": 4, "cells": 1}.items():
            self._allocate_vector(f"{name}_scale", length * self.dim, 1, PARAMETER)
        self._allocate_vector("shift", 4 * self.dim, 0, BIAS)
        self._allocate_vector("cells_shift", self.dim, 0, BIAS)

    def _allocate_vector(self, name: str, length: int, value: float, role: VariableRole) -> None:
        parameter = shared_floatx(numpy.full(length, value), name=name, shape=(length,))
        add_role(parameter, role)
        self.parameters.append(parameter)

    def _normalized(self, variable: Any, scale: str) -> Any:
        """Normalize each example, and scale it."""
        centred = variable - variable.mean(axis=-1, keepdims=True)
        variance = tensor.mean(centred**2, axis=-1, keepdims=True)
        epsilon = numpy.asarray(self.epsilon, centred.dtype)
        return centred / tensor.sqrt(variance + epsilon) * find_parameter(self, scale)

    def _add_states(self, inputs: Variable, states: Variable) -> Variable:
        from_inputs = self._normalized(as_float(inputs, self.W_state.dtype), "inputs_scale")
        from_states = self._normalized(tensor.dot(states, self.W_state), "states_scale")
        return from_inputs + from_states + find_parameter(self, "shift")

    def _show(self, cells: Variable) -> Variable:
        normalized = self._normalized(cells, "cells_scale")
        return self.activation.apply(normalized + find_parameter(self, "cells_shift"))
