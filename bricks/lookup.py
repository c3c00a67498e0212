"""Look vectors up in a table, as for words."""

from typing import Any

from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, lengths_of
from bricks.base import application, lazy
from bricks.checks import check_ndim, check_sizes, describe
from bricks.interfaces import Feedforward, Initializable, check_last_dim, draw_parameter
from bricks.simple import allocate_biases, allocate_weights, feedforward_dim

__all__ = ["LookupTable", "TiedProjection", "look_up"]


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
        check_integers(self.apply.path, indices=indices)
        return look_up(self.W, indices)

    def get_dim(self, name: str) -> Any:
        """0 for ``'indices'``, `dim` for ``'output'``; see `Brick.get_dim`."""
        if name == "indices":
            return 0
        return self.dim if name == "output" else super().get_dim(name)


class TiedProjection(Initializable, Feedforward):
    """Scores of the rows of a lookup table, by the table's own vectors: ``y = x Wᵀ + b``.

    The vectors that words come in with are those that their scores go out with, so there is one
    table, with one name, and it learns from both uses.

    Parameters
    ----------
    table : LookupTable
        A child of this brick; it keeps its path if another brick had it first.
    **kwargs
        For `Initializable`: `biases_init`, `use_bias`, `seed`, `name`. A `weights_init` goes to the
        table if it has none of its own.

    References
    ----------
    O. Press, L. Wolf, "Using the output embedding to improve language models", EACL 2017.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import LookupTable, TiedProjection
    >>> from bricks.initialization import Constant, IsotropicGaussian
    >>> from bricks.model import Model
    >>> words = LookupTable(length=5000, dim=8, weights_init=IsotropicGaussian(0.1), name="words")
    >>> scores = TiedProjection(words, biases_init=Constant(0), name="scores")
    >>> scores.initialize()
    >>> y = scores.apply(words.apply(tensor.lvector("x")))
    >>> [(name, p.get_value().shape) for name, p in Model(y).get_parameter_dict().items()]
    [('/scores/words.W', (5000, 8)), ('/scores.b', (5000,))]
    """

    def __init__(self, table: LookupTable, **kwargs: Any) -> None:
        if not isinstance(table, LookupTable):
            raise TypeError(
                f"{type(self).__name__}: `table` must be a LookupTable, whose vectors are shared; "
                f"got {table!r}. A projection with weights of its own is `bricks.Linear`."
            )
        super().__init__(children=[table], **kwargs)
        self.table = table

    @property
    def W(self) -> Any:
        """The vectors of the table, of shape (output_dim, input_dim)."""
        return self.table.W

    @property
    def b(self) -> Any:
        """The biases, one for each row.

        Raises
        ------
        AttributeError
            If the brick has none.
        """
        if not self.use_bias:
            raise AttributeError(f"{self.path} has no biases: use_bias is False.")
        return self.parameters[0]

    @property
    def input_dim(self) -> Any:
        """Features of the input: the `dim` of the table."""
        return self.table.dim

    @input_dim.setter
    def input_dim(self, value: int) -> None:
        self.table.dim = value

    @property
    def output_dim(self) -> Any:
        """How many scores come out: the `length` of the table."""
        return self.table.length

    @output_dim.setter
    def output_dim(self, value: int) -> None:
        self.table.length = value

    def _allocate(self) -> None:
        if self.use_bias:
            allocate_biases(self, "b", (self.output_dim,))

    def _initialize(self) -> None:
        if self.use_bias:
            draw_parameter(self, "biases_init", self.b)

    def _push_initialization_config(self) -> None:
        own = self.table.weights_init
        super()._push_initialization_config()
        # What was chosen for the vectors of the input holds, and not what suits an output.
        self.table.weights_init = own or self.table.weights_init

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Score each row of the table by its product with the input.

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
        output = tensor.dot(as_float(input_, self.W.dtype), self.W.T)
        return output + self.b if self.use_bias else output

    def get_dim(self, name: str) -> Any:
        """Features of ``'input_'``, or of ``'output'``; see `Brick.get_dim`."""
        return feedforward_dim(self, super().get_dim, name)


def look_up(table: Variable, indices: Variable) -> Variable:
    """Look up a row of a matrix for each integer.

    Parameters
    ----------
    table : Variable of shape (length, dim)
        The rows.
    indices : Variable of shape (...)
        Integers from 0 and below `length`.

    Returns
    -------
    Variable of shape (..., dim)
        NaN for what is out of range, negative integers included, on the backend ``'xla'``; the
        others raise an IndexError.
    """
    length, dim = lengths_of(table)
    rows = indices.flatten()
    if indices.dtype.startswith("int"):
        # Not counted from the end, as numpy would.
        rows = tensor.switch(tensor.lt(rows, 0), length, rows)
    return table[rows].reshape((*lengths_of(indices), dim), ndim=indices.ndim + 1)


def check_integers(application: str, **inputs: Variable) -> None:
    """Refuse indices that are no integers.

    Parameters
    ----------
    application : str
        The path of the application.
    **inputs : Variable
        By the names of its arguments.

    Raises
    ------
    ValueError
        If one is not of integers.
    """
    for name, indices in inputs.items():
        if not indices.dtype.startswith(("int", "uint")):
            raise ValueError(
                f"{application}: `{name}` must be integers; got {describe(indices)}. "
                f"Cast them first: `{name}.astype('int64')`."
            )
