"""What a Transformer does with each step alone, and the activations that are usual there."""

import copy
import math
from typing import Any

from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import application, lazy
from bricks.interfaces import Activation, DimensionPreserving, Initializable, check_last_dim
from bricks.simple import Linear, Rectifier

__all__ = ["GELU", "PositionwiseFeedforward", "Swish"]


class GELU(Activation):
    """Each element times the probability that a standard normal variable is below it.

    References
    ----------
    D. Hendrycks, K. Gimpel, *Gaussian Error Linear Units*, 2016.
    """

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Any:
        """Apply it to an input of any shape; integers are taken as floating-point numbers."""
        input_ = as_float(input_)
        return 0.5 * input_ * (1 + tensor.erf(input_ * math.sqrt(0.5)))


class Swish(Activation):
    """Each element times its logistic function; also called SiLU.

    References
    ----------
    P. Ramachandran, B. Zoph, Q. V. Le, *Searching for Activation Functions*, 2017.
    """

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Any:
        """Apply it to an input of any shape; integers are taken as floating-point numbers."""
        input_ = as_float(input_)
        return input_ * tensor.sigmoid(input_)


class PositionwiseFeedforward(Initializable, DimensionPreserving):
    """Two linear maps with an activation between them, of each step alone.

    The children are ``hidden`` and ``output``; with `gated` the activation is multiplied by a
    third map, ``gate``, which makes a GLU of `Logistic`, GEGLU of `GELU`, SwiGLU of `Swish`.

    Parameters
    ----------
    dim : int
        Features of input and output. Needed for allocation.
    hidden_dim : int
        Features in between. Needed for allocation.
    activation : Brick, optional
        A `Rectifier` by default.
    gated : bool
        Whether there is a gate.
    **kwargs
        For `Initializable`. `use_bias` reaches the children only if it is given.

    Notes
    -----
    For dropout, the output is the variable with the role OUTPUT of the application
    ``PositionwiseFeedforward.apply``, the hidden features are the inputs of the child ``output``.

    References
    ----------
    A. Vaswani et al., *Attention Is All You Need*, NIPS 2017, section 3.3; N. Shazeer, *GLU
    Variants Improve Transformer*, 2020.
    """

    @lazy(allocation=["dim", "hidden_dim"])
    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        activation: Any = None,
        gated: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dim = dim
        self.hidden_dim = hidden_dim
        self.activation = Rectifier() if activation is None else copy.deepcopy(activation)
        self.hidden, self.output = Linear(name="hidden"), Linear(name="output")
        self.gate = Linear(name="gate") if gated else None
        linear = [self.hidden, *([self.gate] if self.gate else []), self.output]
        self.children = [*self.children, *linear, self.activation]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        for child in (self.hidden, self.gate):
            if child is not None:
                child.input_dim, child.output_dim = self.dim, self.hidden_dim
        self.output.input_dim, self.output.output_dim = self.hidden_dim, self.dim
        if "use_bias" in self.__dict__:
            for child in (self.hidden, self.gate, self.output):
                if child is not None:
                    child.use_bias = self.use_bias

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Map each step.

        Parameters
        ----------
        input_ : Variable of shape (..., dim)

        Returns
        -------
        Variable of shape (..., dim)
        """
        check_last_dim(self, input_, self.dim)
        hidden = self.activation.apply(self.hidden.apply(input_))
        if self.gate is not None:
            hidden = hidden * self.gate.apply(input_)
        return self.output.apply(hidden)

    def get_dim(self, name: str) -> Any:
        """Features of ``'input_'`` and ``'output'``; see `Brick.get_dim`."""
        return self.dim if name in ("input_", "output") else super().get_dim(name)
