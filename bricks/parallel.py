"""Bricks that apply copies of a prototype side by side, to inputs or for outputs with names."""

import copy
from collections.abc import Sequence
from typing import Any

from aesara.tensor.var import TensorVariable as Variable

from bricks.base import Brick, NoneAllocation, application, lazy
from bricks.checks import check_same_shape
from bricks.interfaces import Initializable
from bricks.simple import Linear

__all__ = ["Distribute", "Fork", "Merge", "Parallel"]


class Parallel(Initializable):
    """Apply a copy of a prototype to each of several inputs.

    Parameters
    ----------
    input_names : list of str
        Names of the inputs, and of the outputs. Needed for allocation: the children, called
        ``<prefix>_<name>``, are made when they are given.
    input_dims : list of int
        Features of each input. Needed for allocation.
    output_dims : list of int
        Features of each output. Needed for allocation.
    prototype : Feedforward
        Copied for each input.
    child_prefix : str, optional
        Beginning of the names of the children; the prototype's name by default.
    **kwargs
        For `Initializable`. `use_bias` reaches the children only if it is given.
    """

    @lazy(allocation=["input_names", "input_dims", "output_dims"])
    def __init__(
        self,
        input_names: Sequence[str],
        input_dims: Sequence[int],
        output_dims: Sequence[int],
        prototype: Any,
        child_prefix: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.prototype = prototype
        self.child_prefix = child_prefix or prototype.name
        self.transforms: list[Any] = []
        self._input_names: Any = NoneAllocation
        self.input_names = input_names
        self.input_dims = input_dims
        self.output_dims = output_dims

    @property
    def input_names(self) -> Any:
        """Names of the inputs. Setting them makes the children anew."""
        return self._input_names

    @input_names.setter
    def input_names(self, names: Any) -> None:
        if self.allocated:
            raise ValueError(f"{self.path}: the names cannot be changed after allocation.")
        if isinstance(names, str) or len(set(names or ())) != len(names or ()):
            raise ValueError(
                f"{self.path}: the names must be a list of different names; got {names!r}."
            )
        others = [c for c in self.children if not any(c is one for one in self.transforms)]
        self._input_names = list(names) if names else names
        self.transforms = []
        for name in names or ():
            child = copy.deepcopy(self.prototype)
            child.name = f"{self.child_prefix}_{name}"
            self.transforms.append(child)
        self.children = [*others, *self.transforms]

    def _push_allocation_config(self) -> None:
        for name in ("input_dims", "output_dims"):
            dims = getattr(self, name)
            if not isinstance(dims, list | tuple) or len(dims) != len(self.input_names):
                raise ValueError(
                    f"{self.path}: `{name}` must be a list of {len(self.input_names)} sizes, one "
                    f"for each of {', '.join(self.input_names)}; got {dims!r}."
                )
        sizes = zip(self.input_dims, self.output_dims, strict=True)
        for child, (input_dim, output_dim) in zip(self.transforms, sizes, strict=True):
            child.input_dim, child.output_dim = input_dim, output_dim
            if "use_bias" in self.__dict__:
                child.use_bias = self.use_bias

    @application
    def apply(self, application: Any, *args: Variable, **kwargs: Variable) -> list[Variable]:
        """Apply each child to its input.

        Parameters
        ----------
        *args, **kwargs : Variable of shape (..., input_dim)
            The inputs, by position or by name.

        Returns
        -------
        list of Variable of shape (..., output_dim)
            In the order of the names.
        """
        inputs = _by_name(application.path, self.input_names, args, kwargs)
        return [
            child.apply(inputs[name])
            for child, name in zip(self.transforms, self.input_names, strict=True)
        ]

    @apply.property("inputs")
    def apply_inputs(self) -> Any:
        """Give the names of the inputs.

        Returns
        -------
        list of str
            `input_names`.
        """
        return self.input_names

    @apply.property("outputs")
    def apply_outputs(self) -> Any:
        """Give the names of the outputs, which are those of the inputs.

        Returns
        -------
        list of str
            `input_names`.
        """
        return self.input_names

    def get_dim(self, name: str) -> Any:
        """Features of an input, by its name; see `Brick.get_dim`."""
        if self.input_names and name in self.input_names:
            return self.input_dims[self.input_names.index(name)]
        return super().get_dim(name)


class Fork(Parallel):
    """Several outputs from one input, each by a copy of a prototype.

    Parameters
    ----------
    output_names : list of str
        Names of the outputs. Needed for allocation.
    input_dim : int
        Features of the input. Needed for allocation.
    prototype : Feedforward, optional
        Copied for each output; a `Linear` by default.
    **kwargs
        For `Parallel`: `output_dims` and others. The children are called ``fork_<name>``.
    """

    @lazy(allocation=["output_names", "input_dim"])
    def __init__(
        self,
        output_names: Sequence[str],
        input_dim: int,
        prototype: Any = None,
        **kwargs: Any,
    ) -> None:
        self.input_dim = input_dim
        kwargs.setdefault("child_prefix", "fork")
        kwargs.setdefault("input_dims", None)
        super().__init__(output_names, prototype=prototype or Linear(), **kwargs)

    @property
    def output_names(self) -> Any:
        """Names of the outputs. Setting them makes the children anew."""
        return self.input_names

    @output_names.setter
    def output_names(self, names: Any) -> None:
        self.input_names = names

    def _push_allocation_config(self) -> None:
        self.input_dims = [self.input_dim] * len(self.output_names)
        super()._push_allocation_config()

    @application(inputs=["input_"])
    def apply(self, input_: Variable) -> list[Variable]:
        """Apply every child to the input.

        Parameters
        ----------
        input_ : Variable of shape (..., input_dim)

        Returns
        -------
        list of Variable of shape (..., output_dim)
            In the order of the names.
        """
        return [child.apply(input_) for child in self.transforms]

    @apply.property("outputs")
    def apply_outputs(self) -> Any:
        """Names of the outputs."""
        return self.output_names

    def get_dim(self, name: str) -> Any:
        """Features of ``'input_'`` or of an output; see `Brick.get_dim`."""
        if name == "input_":
            return self.input_dim
        if self.output_names and name in self.output_names:
            return self.output_dims[self.output_names.index(name)]
        return Brick.get_dim(self, name)


class Distribute(Fork):
    """Add a transformed source to each of several targets.

    Parameters
    ----------
    target_names : list of str
        Names of the targets. Needed for allocation.
    source_name : str
        Name of the source. Needed for allocation.
    target_dims : list of int
        Features of each target. Needed for allocation.
    source_dim : int
        Features of the source. Needed for allocation.
    prototype : Feedforward, optional
        Copied for each target; a `Linear` without bias by default.
    **kwargs
        For `Fork`.
    """

    @lazy(allocation=["target_names", "source_name", "target_dims", "source_dim"])
    def __init__(
        self,
        target_names: Sequence[str],
        source_name: str,
        target_dims: Sequence[int],
        source_dim: int,
        prototype: Any = None,
        **kwargs: Any,
    ) -> None:
        self.source_name = source_name
        self.target_dims = target_dims
        self.source_dim = source_dim
        prototype = prototype or Linear(use_bias=False)
        super().__init__(target_names, source_dim or 0, prototype, output_dims=[], **kwargs)

    @property
    def target_names(self) -> Any:
        """Names of the targets. Setting them makes the children anew."""
        return self.input_names

    @target_names.setter
    def target_names(self, names: Any) -> None:
        self.input_names = names

    def _push_allocation_config(self) -> None:
        self.input_dim = self.source_dim
        self.output_dims = self.target_dims
        super()._push_allocation_config()

    @application
    def apply(self, application: Any, *args: Variable, **kwargs: Variable) -> list[Variable]:
        """Add the transformed source to the targets.

        Parameters
        ----------
        *args, **kwargs : Variable
            The source and the targets, by position in this order, or by name.

        Returns
        -------
        list of Variable
            The sums, in the order of the targets.
        """
        names = [self.source_name, *self.target_names]
        inputs = _by_name(application.path, names, args, kwargs)
        source = inputs[self.source_name]
        sums = []
        for child, name in zip(self.transforms, self.target_names, strict=True):
            added = child.apply(source)
            check_same_shape(application.path, **{name: inputs[name], "transformed source": added})
            sums.append(inputs[name] + added)
        return sums

    @apply.property("inputs")
    def apply_inputs(self) -> Any:
        """Names of the source and of the targets."""
        return [self.source_name, *self.target_names]

    @apply.property("outputs")
    def apply_outputs(self) -> Any:
        """Names of the targets."""
        return self.target_names

    def get_dim(self, name: str) -> Any:
        """Features of the source or of a target; see `Brick.get_dim`."""
        if name == self.source_name:
            return self.source_dim
        if self.target_names and name in self.target_names:
            return self.target_dims[self.target_names.index(name)]
        return Brick.get_dim(self, name)


class Merge(Parallel):
    """The sum of several inputs, each transformed by a copy of a prototype.

    Parameters
    ----------
    input_names : list of str
        Names of the inputs. Needed for allocation.
    input_dims : list of int
        Features of each input. Needed for allocation.
    output_dim : int
        Features of the output. Needed for allocation.
    prototype : Feedforward, optional
        Copied for each input; a `Linear` without bias by default.
    **kwargs
        For `Parallel`.
    """

    @lazy(allocation=["input_names", "input_dims", "output_dim"])
    def __init__(
        self,
        input_names: Sequence[str],
        input_dims: Sequence[int],
        output_dim: int,
        prototype: Any = None,
        **kwargs: Any,
    ) -> None:
        self.output_dim = output_dim
        prototype = prototype or Linear(use_bias=False)
        super().__init__(input_names, input_dims, [], prototype, **kwargs)

    def _push_allocation_config(self) -> None:
        self.output_dims = [self.output_dim] * len(self.input_names)
        super()._push_allocation_config()

    @application(outputs=["output"])
    def apply(self, application: Any, *args: Variable, **kwargs: Variable) -> Variable:
        """Sum the transformed inputs.

        Parameters
        ----------
        *args, **kwargs : Variable of shape (..., input_dim)
            The inputs, by position or by name.

        Returns
        -------
        Variable of shape (..., output_dim)
        """
        inputs = _by_name(application.path, self.input_names, args, kwargs)
        total: Any = None
        for child, name in zip(self.transforms, self.input_names, strict=True):
            output = child.apply(inputs[name])
            total = output if total is None else total + output
        return total

    @apply.property("inputs")
    def apply_inputs(self) -> Any:
        """Names of the inputs."""
        return self.input_names

    def get_dim(self, name: str) -> Any:
        """Features of an input or of ``'output'``; see `Brick.get_dim`."""
        return self.output_dim if name == "output" else super().get_dim(name)


def _by_name(
    application: str, names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Inputs by name, each given once, by position or by name."""
    given = dict(zip(names, args, strict=False))
    unknown = sorted(set(kwargs) - set(names))
    if len(args) > len(names):
        unknown.append(f"number {len(names) + 1} of {len(args)}")
    twice = sorted(set(given) & set(kwargs))
    missing = [name for name in names if name not in given and name not in kwargs]
    problems = {"missing": missing, "unknown": unknown, "given twice": twice}
    words = "; ".join(f"{title}: {', '.join(found)}" for title, found in problems.items() if found)
    if words:
        raise TypeError(f"{application} takes the inputs {', '.join(names)}; {words}.")
    return {**given, **kwargs}
