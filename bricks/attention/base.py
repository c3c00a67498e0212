"""What attention over sequences has in common: its contract, and how energies become weights."""

from abc import abstractmethod
from collections.abc import Sequence as SequenceOf
from typing import Any

from aesara import config, tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, lengths_of
from bricks.attention.softmax import softmax_where
from bricks.base import Brick, application, lazy
from bricks.checks import describe
from bricks.interfaces import Feedforward, Initializable, check_last_dim
from bricks.sequences import Sequence
from bricks.simple import Linear, Tanh

__all__ = ["AbstractAttention", "GenericSequenceAttention", "ShallowEnergyComputer"]


class AbstractAttention(Brick):
    """The base class of attention: where to look depends on states of something recurrent.

    What is looked at is called *attended*. It is preprocessed once, by :meth:`preprocess`. At each
    step :meth:`take_glimpses` looks at it, given the states, and returns *glimpses*: what was
    seen, and perhaps where. A glimpse whose name is also among the inputs of `take_glimpses` is
    handed on from step to step.

    Parameters
    ----------
    state_names : list of str
        Names of the states. Needed for allocation.
    state_dims : list of int
        Features of each state. Needed for allocation.
    attended_dim : int
        Features of what is attended. Needed for allocation.
    **kwargs
        For `Brick`.
    """

    @lazy(allocation=["state_names", "state_dims", "attended_dim"])
    def __init__(
        self,
        state_names: SequenceOf[str],
        state_dims: SequenceOf[int],
        attended_dim: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.state_names = list(state_names) if state_names else state_names
        self.state_dims = state_dims
        self.attended_dim = attended_dim

    @application(inputs=["attended"], outputs=["preprocessed_attended"])
    def preprocess(self, attended: Variable) -> Variable:
        """Do what does not depend on the states, and so is done once.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, attended_dim)

        Returns
        -------
        Variable
            What `take_glimpses` takes as `preprocessed_attended`; `attended` itself by default.
        """
        return attended

    @abstractmethod
    @application
    def take_glimpses(
        self,
        attended: Variable,
        preprocessed_attended: Any = None,
        attended_mask: Any = None,
        **states: Variable,
    ) -> Any:
        """Look at what is attended.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, attended_dim)
        preprocessed_attended : Variable, optional
            What `preprocess` made of it.
        attended_mask : Variable of shape (attended time, batch), optional
            0 for padding.
        **states : Variable of shape (batch, feature)
            The states, and glimpses of the step before that are asked for.

        Returns
        -------
        list of Variable
            The glimpses; their first axis is the batch.
        """

    @abstractmethod
    def initial_glimpses(self, batch_size: Any, attended: Variable) -> Any:
        """Glimpses before the first step.

        Parameters
        ----------
        batch_size : int or Variable
            Examples in the batch.
        attended : Variable of shape (attended time, batch, attended_dim)
            What is attended.

        Returns
        -------
        list of Variable
            In the order of the outputs of `take_glimpses`.
        """

    def get_dim(self, name: str) -> Any:
        """Features of a state or of what is attended, 0 for its mask; see `Brick.get_dim`."""
        if self.state_names and self.state_dims and name in self.state_names:
            return self.state_dims[self.state_names.index(name)]
        if name == "attended_mask":
            return 0
        return self.attended_dim if name == "attended" else super().get_dim(name)


class GenericSequenceAttention(AbstractAttention):
    """The base class of attention that weighs the steps of a sequence.

    Subclasses compute energies. The glimpses are the ``weighted_averages``, of shape (batch,
    attended_dim), and the ``weights``, of shape (batch, attended time).
    """

    @application(inputs=["energies", "attended_mask"], outputs=["weights"])
    def compute_weights(self, energies: Variable, attended_mask: Any = None) -> Any:
        """Normalize energies to weights.

        Parameters
        ----------
        energies : Variable of shape (attended time, batch)
        attended_mask : Variable of shape (attended time, batch), optional
            0 for padding, 1 elsewhere. Numbers in between make a step weigh less.

        Returns
        -------
        Variable of shape (attended time, batch)
            With the sum 1 over time; 0 everywhere in an example that is all padding.
        """
        if attended_mask is None:
            return softmax_where(energies, axis=0)
        allowed = tensor.gt(attended_mask, 0)
        factor = tensor.switch(allowed, as_float(attended_mask), 1).astype(energies.dtype)
        return softmax_where(energies + tensor.log(factor), allowed, axis=0)

    @application(inputs=["weights", "attended"], outputs=["weighted_averages"])
    def compute_weighted_averages(self, weights: Variable, attended: Variable) -> Any:
        """Average what is attended over time.

        Parameters
        ----------
        weights : Variable of shape (attended time, batch)
        attended : Variable of shape (attended time, batch, attended_dim)

        Returns
        -------
        Variable of shape (batch, attended_dim)
        """
        return (tensor.shape_padright(weights) * attended).sum(axis=0)

    @application(outputs=["weighted_averages", "weights"])
    def initial_glimpses(self, batch_size: Any, attended: Variable) -> list[Any]:
        """Zeros, in the shapes of the glimpses; see `AbstractAttention.initial_glimpses`."""
        length = lengths_of(attended)[0]
        return [
            tensor.zeros((batch_size, self.attended_dim), config.floatX),
            tensor.zeros((batch_size, length), config.floatX),
        ]

    def get_dim(self, name: str) -> Any:
        """Features of a state, of what is attended or of a glimpse; see `Brick.get_dim`."""
        if name == "weighted_averages":
            return self.attended_dim
        # As many as there are steps: no features.
        return 0 if name == "weights" else super().get_dim(name)

    def _check_glimpsed(
        self, application_name: str, attended: Any, preprocessed: Any = None, mask: Any = None
    ) -> None:
        """Refuse what has other axes than (attended time, batch, feature) and (…, batch)."""
        both = "(attended time, batch"
        given = {
            "attended": (attended, f"{both}, feature)", 3),
            "preprocessed_attended": (preprocessed, f"{both}, feature)", 3),
            "attended_mask": (mask, f"{both})", 2),
        }
        for name, (variable, words, ndim) in given.items():
            if variable is None:
                continue
            words = f"{self.path}.{application_name}: `{name}` must have the axes {words}"
            if variable.ndim != ndim:
                raise ValueError(f"{words}; got {describe(variable)}.")
            pairs = zip(variable.type.shape[:2], attended.type.shape[:2], strict=True)
            if not all(None in pair or pair[0] == pair[1] for pair in pairs):
                raise ValueError(
                    f"{words}, of the lengths that `attended` has; got {describe(variable)} for "
                    f"{describe(attended)}."
                )
        check_last_dim(self, attended, self.attended_dim, "attended", application_name)


class ShallowEnergyComputer(Sequence, Initializable, Feedforward):
    """An energy of each vector: a linear map, without bias, of its hyperbolic tangent.

    Parameters
    ----------
    **kwargs
        For `Initializable`. `input_dim` and `output_dim` are set as attributes, or pushed by the
        attention.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__([Tanh(), Linear(use_bias=False)], **kwargs)

    @property
    def input_dim(self) -> Any:
        """Features of the input."""
        return self._linear.input_dim

    @input_dim.setter
    def input_dim(self, value: int) -> None:
        self._linear.input_dim = value

    @property
    def output_dim(self) -> Any:
        """Features of the output: 1 for energies."""
        return self._linear.output_dim

    @output_dim.setter
    def output_dim(self, value: int) -> None:
        self._linear.output_dim = value

    @property
    def _linear(self) -> Any:
        return self.application_methods[-1].brick
