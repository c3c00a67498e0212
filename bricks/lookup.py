"""Look vectors up in a table, as for words."""

from typing import Any

from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import lengths_of
from bricks.base import application, lazy
from bricks.checks import check_sizes, describe
from bricks.interfaces import Feedforward, Initializable, draw_parameter
from bricks.simple import allocate_weights

__all__ = ["LookupTable"]


class LookupTable(Initializable, Feedforward):
    """A table of vectors that are looked up by integers.

    Parameters
    ----------
    length : int
        Rows: how many different integers there are. Needed for allocation.
    dim : int
        Features of a vector. Needed for allocation.
    **kwargs
        For `Initializable`; there are no biases.
    """

    has_biases = False

    @lazy(allocation=["length", "dim"])
    def __init__(self, length: int, dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.length = length
        self.dim = dim

    @property
    def W(self) -> Any:
        """The table, of shape (length, dim)."""
        return self.parameters[0]

    @property
    def input_dim(self) -> int:
        """0: the input has no axis of features. Nothing else can be set."""
        return 0

    @input_dim.setter
    def input_dim(self, value: int) -> None:
        if value != 0:
            raise ValueError(
                f"{self.path}: `input_dim` must be 0, because the input are integers without an "
                f"axis of features; got {value!r}. The number of rows is `length`."
            )

    @property
    def output_dim(self) -> Any:
        """Features of a vector."""
        return self.dim

    @output_dim.setter
    def output_dim(self, value: int) -> None:
        self.dim = value

    def _allocate(self) -> None:
        check_sizes(self, length=self.length, dim=self.dim)
        allocate_weights(self, "W", (self.length, self.dim))

    def _initialize(self) -> None:
        draw_parameter(self, "weights_init", self.W)

    @application(inputs=["indices"], outputs=["output"])
    def apply(self, indices: Variable) -> Variable:
        """Look up a vector for each integer.

        Parameters
        ----------
        indices : Variable of shape (...)
            Integers from 0 and below `length`.

        Returns
        -------
        Variable of shape (..., dim)
            NaN for an integer that is out of range, negative ones included, on the backend
            ``'xla'``, where nothing can be raised while the device computes; the other backends
            raise an IndexError. `NonFiniteCost` finds the brick when that reaches the cost.
        """
        if not indices.dtype.startswith(("int", "uint")):
            raise ValueError(
                f"{self.apply.path}: `indices` must be integers; got {describe(indices)}. "
                "Cast them first: `indices.astype('int64')`."
            )
        shape = (*lengths_of(indices), self.dim)
        rows = indices.flatten()
        if indices.dtype.startswith("int"):
            # Not counted from the end, as numpy would.
            rows = tensor.switch(tensor.lt(rows, 0), self.length, rows)
        return self.W[rows].reshape(shape, ndim=indices.ndim + 1)

    def get_dim(self, name: str) -> Any:
        """0 for ``'indices'``, `dim` for ``'output'``; see `Brick.get_dim`."""
        if name == "indices":
            return 0
        return self.dim if name == "output" else super().get_dim(name)
