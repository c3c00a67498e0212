"""Bricks that apply others one after the other."""

import copy
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from typing import Any

from aesara.tensor.var import TensorVariable as Variable

from bricks.base import BoundApplication, Brick, application, lazy
from bricks.checks import check_sizes
from bricks.interfaces import Feedforward, Initializable
from bricks.simple import Linear
from bricks.utils import pack

__all__ = ["FeedforwardSequence", "MLP", "Sequence"]


class Sequence(Brick):
    """Apply bricks one after the other, each to the outputs of the one before.

    Parameters
    ----------
    application_methods : list of bound application or Brick
        What to apply; a brick stands for its ``apply``. At least one. The same brick may be there
        several times.
    **kwargs
        For `Brick`.
    """

    def __init__(self, application_methods: Iterable[Any], **kwargs: Any) -> None:
        methods = [_as_application(type(self), one) for one in application_methods]
        if not methods:
            raise ValueError(f"{type(self).__name__}: `application_methods` must not be empty.")
        self.application_methods = methods
        children = list(dict.fromkeys(method.brick for method in methods))
        kwargs["children"] = [*kwargs.get("children", ()), *children]
        super().__init__(**kwargs)

    @application
    def apply(self, *args: Variable, **kwargs: Variable) -> Any:
        """Apply all.

        Parameters
        ----------
        *args, **kwargs : Variable
            Inputs of the first application.

        Returns
        -------
        Variable or list of Variable
            Outputs of the last one.
        """
        first, *others = self.application_methods
        outputs = first(*args, **kwargs)
        for method in others:
            outputs = method(*pack(outputs))
        return outputs

    @apply.property("inputs")
    def apply_inputs(self) -> list[str]:
        """Give the names of the inputs of the first application.

        Returns
        -------
        list of str
            As that application declares them.
        """
        return self.application_methods[0].inputs

    @apply.property("outputs")
    def apply_outputs(self) -> list[str]:
        """Give the names of the outputs of the last application.

        Returns
        -------
        list of str
            As that application declares them.
        """
        return self.application_methods[-1].outputs


class FeedforwardSequence(Sequence, Feedforward):
    """A sequence of feedforward bricks, whose sizes are those of the first and of the last."""

    @property
    def input_dim(self) -> Any:
        """Features of the input of the first brick."""
        return self._first.input_dim

    @input_dim.setter
    def input_dim(self, value: int) -> None:
        self._first.input_dim = value

    @property
    def output_dim(self) -> Any:
        """Features of the output of the last brick."""
        return self._last.output_dim

    @output_dim.setter
    def output_dim(self, value: int) -> None:
        self._last.output_dim = value

    @property
    def _first(self) -> Any:
        return self.application_methods[0].brick

    @property
    def _last(self) -> Any:
        return self.application_methods[-1].brick

    def get_dim(self, name: str) -> Any:
        """Features of the input or the output; see `Brick.get_dim`."""
        if name in self.apply.inputs:
            return self.input_dim
        return self.output_dim if name in self.apply.outputs else super().get_dim(name)


class MLP(FeedforwardSequence, Initializable):
    """A multi-layer perceptron: linear maps, each followed by an activation.

    Parameters
    ----------
    activations : list of Brick, bound application or None
        One for each layer; None for a layer without one.
    dims : list of int
        Features of the input and of each layer. Needed for allocation.
    prototype : Brick, optional
        Copied for each layer; a `Linear` by default. The layers are called
        ``<name of the prototype>_<number>``.
    **kwargs
        For `Initializable`. `use_bias` reaches the layers only if it is given.

    Examples
    --------
    >>> from bricks import MLP, Rectifier, Softmax
    >>> mlp = MLP([Rectifier(), Softmax()], [784, 100, 10])
    >>> [layer.name for layer in mlp.linear_transformations]
    ['linear_0', 'linear_1']
    """

    @lazy(allocation=["dims"])
    def __init__(
        self,
        activations: SequenceOf[Any],
        dims: SequenceOf[int],
        prototype: Brick | None = None,
        **kwargs: Any,
    ) -> None:
        self.activations = list(activations)
        self.prototype = Linear() if prototype is None else prototype
        self.linear_transformations = []
        methods: list[Any] = []
        for index, activation in enumerate(self.activations):
            layer: Any = copy.deepcopy(self.prototype)
            layer.name = f"{self.prototype.name}_{index}"
            self.linear_transformations.append(layer)
            methods += [layer] if activation is None else [layer, activation]
        super().__init__(methods, **kwargs)
        # Before allocation these may be given one by one, or replaced: one who learns the size of
        # the input later gives those of the layers alone at first.
        self.dims: list[Any] = list(dims) if dims else [None] * (len(self.activations) + 1)

    @property
    def input_dim(self) -> Any:
        """Features of the input."""
        return self.dims[0]

    @input_dim.setter
    def input_dim(self, value: int) -> None:
        self.dims[0] = value

    @property
    def output_dim(self) -> Any:
        """Features of the last layer."""
        return self.dims[-1]

    @output_dim.setter
    def output_dim(self, value: int) -> None:
        self.dims[-1] = value

    def _push_allocation_config(self) -> None:
        if len(self.dims) != len(self.activations) + 1:
            raise ValueError(
                f"{self.path}: `dims` must have {len(self.activations) + 1} sizes, that of the "
                f"input and one for each of the {len(self.activations)} activations; got "
                f"{list(self.dims)}. Give None for a layer without activation."
            )
        check_sizes(self, **{f"dims[{i}]": dim for i, dim in enumerate(self.dims)})
        pairs = zip(self.dims[:-1], self.dims[1:], strict=True)
        for (input_dim, output_dim), layer in zip(pairs, self.linear_transformations, strict=True):
            layer.input_dim, layer.output_dim = input_dim, output_dim
            if "use_bias" in self.__dict__:
                layer.use_bias = self.use_bias


def _as_application(owner: type, one: Any) -> BoundApplication:
    if isinstance(one, BoundApplication):
        return one
    if isinstance(one, Brick) and hasattr(one, "apply"):
        return one.apply
    hint = f" Make one: {one.__name__}()." if isinstance(one, type) else ""
    raise TypeError(
        f"{owner.__name__}: expected bricks with an `apply`, or bound applications; got {one!r}."
        f"{hint}"
    )
