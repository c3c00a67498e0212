"""What turns readouts into symbols, and symbols into what is fed back."""

from abc import abstractmethod
from typing import Any

import numpy
from aesara import config, tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import lengths_of
from bricks.base import Brick, application, lazy
from bricks.interfaces import Initializable, Random
from bricks.lookup import LookupTable
from bricks.simple import Softmax

__all__ = [
    "AbstractEmitter",
    "AbstractFeedback",
    "LookupFeedback",
    "SoftmaxEmitter",
    "TrivialEmitter",
    "TrivialFeedback",
]


class AbstractEmitter(Brick):
    """The base class of what draws outputs from readouts and says what outputs cost.

    Subclasses also tell, by ``get_dim('outputs')``, how many features an output has; 0 for integers
    without an axis of features. One whose outputs can be enumerated may define an application
    ``log_probs(readouts)``, or ``probs(readouts)``: a search needs it.
    """

    @abstractmethod
    @application
    def emit(self, readouts: Variable) -> Variable:
        """Draw outputs.

        Parameters
        ----------
        readouts : Variable of shape (batch, readout)
            What the outputs depend on.

        Returns
        -------
        Variable of shape (batch, ...)
        """

    @abstractmethod
    @application
    def cost(self, readouts: Variable, outputs: Variable) -> Variable:
        """Cost of given outputs.

        Parameters
        ----------
        readouts : Variable of shape (..., readout)
            What the outputs depend on.
        outputs : Variable of shape (...) or (..., feature)
            The outputs.

        Returns
        -------
        Variable of shape (...)
        """

    @abstractmethod
    @application
    def initial_outputs(self, batch_size: Any) -> Variable:
        """Give what is fed back before there is an output.

        Parameters
        ----------
        batch_size : int or Variable
            How many sequences there are.

        Returns
        -------
        Variable of shape (batch, ...)
        """


class AbstractFeedback(Brick):
    """The base class of what turns outputs into what the transition and the readout get back.

    Subclasses also tell, by ``get_dim('feedback')``, how many features that has.
    """

    @abstractmethod
    @application(outputs=["feedback"])
    def feedback(self, outputs: Variable) -> Variable:
        """Feed outputs back.

        Parameters
        ----------
        outputs : Variable of shape (...) or (..., feature)
            The outputs.

        Returns
        -------
        Variable of shape (..., feedback)
        """


class TrivialEmitter(AbstractEmitter):
    """Emit the readouts themselves, at no cost.

    Parameters
    ----------
    readout_dim : int
        Features of a readout. Needed for allocation.
    **kwargs
        For `Brick`.

    Notes
    -----
    Subclasses override :meth:`cost`, for example by a squared difference.
    """

    @lazy(allocation=["readout_dim"])
    def __init__(self, readout_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.readout_dim = readout_dim

    @application
    def emit(self, readouts: Variable) -> Variable:
        """Return the readouts."""
        return readouts

    @application
    def cost(self, readouts: Variable, outputs: Variable) -> Variable:
        """Return zeros, one for each output."""
        shape = lengths_of(outputs)[: readouts.ndim - 1]
        return tensor.zeros(shape, dtype=config.floatX)

    @application
    def initial_outputs(self, batch_size: Any) -> Variable:
        """Return zeros of shape (batch, readout)."""
        return tensor.zeros((batch_size, self.readout_dim), dtype=config.floatX)

    def get_dim(self, name: str) -> Any:
        """Features of ``'outputs'``; see `Brick.get_dim`."""
        return self.readout_dim if name == "outputs" else super().get_dim(name)


class SoftmaxEmitter(AbstractEmitter, Initializable, Random):
    """Draw integers with the probabilities that a softmax makes of the readouts.

    Parameters
    ----------
    initial_output : int
        What is fed back before there is an output.
    **kwargs
        For `Initializable` and `Random`; there are no biases.
    """

    has_biases = False

    def __init__(self, initial_output: int = 0, **kwargs: Any) -> None:
        self.softmax = Softmax()
        kwargs["children"] = [self.softmax, *kwargs.get("children", ())]
        super().__init__(**kwargs)
        self.initial_output = initial_output

    @application
    def probs(self, readouts: Variable) -> Variable:
        """Probabilities of all outputs.

        Parameters
        ----------
        readouts : Variable of shape (..., symbol)
            Unnormalized logarithms of the probabilities.

        Returns
        -------
        Variable of shape (..., symbol)
        """
        return self.softmax.apply(readouts)

    @application
    def log_probs(self, readouts: Variable) -> Variable:
        """Logarithms of the probabilities of all outputs.

        Parameters
        ----------
        readouts : Variable of shape (..., symbol)
            Unnormalized logarithms of the probabilities.

        Returns
        -------
        Variable of shape (..., symbol)
        """
        return self.softmax.log_probabilities(readouts)

    @application
    def emit(self, readouts: Variable) -> Variable:
        """Draw an integer for each readout.

        Parameters
        ----------
        readouts : Variable of shape (..., symbol)
            Unnormalized logarithms of the probabilities.

        Returns
        -------
        Variable of shape (...)
            Of dtype ``int64``.
        """
        return self.theano_rng.categorical(pvals=self.probs(readouts))

    @application
    def cost(self, readouts: Variable, outputs: Variable) -> Variable:
        """Cross-entropy of given outputs, in nats.

        Parameters
        ----------
        readouts : Variable of shape (..., symbol)
            Unnormalized logarithms of the probabilities.
        outputs : Variable of shape (...)
            Integers from 0 and below the number of symbols.

        Returns
        -------
        Variable of shape (...)
            NaN for an output that is no symbol.
        """
        return self.softmax.categorical_cross_entropy(outputs, readouts)

    @application
    def initial_outputs(self, batch_size: Any) -> Any:
        """Return `initial_output` for each sequence, of dtype ``int64``."""
        return tensor.alloc(numpy.int64(self.initial_output), batch_size)

    def get_dim(self, name: str) -> Any:
        """0 for ``'outputs'``; see `Brick.get_dim`."""
        return 0 if name == "outputs" else super().get_dim(name)


class TrivialFeedback(AbstractFeedback):
    """Feed the outputs back as they are.

    Parameters
    ----------
    output_dim : int
        Features of an output. Needed for allocation.
    **kwargs
        For `Brick`.
    """

    @lazy(allocation=["output_dim"])
    def __init__(self, output_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.output_dim = output_dim

    @application(outputs=["feedback"])
    def feedback(self, outputs: Variable) -> Variable:
        """Return the outputs."""
        return outputs

    def get_dim(self, name: str) -> Any:
        """Features of ``'feedback'``; see `Brick.get_dim`."""
        return self.output_dim if name == "feedback" else super().get_dim(name)


class LookupFeedback(AbstractFeedback, Initializable):
    """Feed a vector back that is looked up for each output, an integer.

    Parameters
    ----------
    num_outputs : int
        How many different outputs there are. Needed for allocation.
    feedback_dim : int
        Features of a vector. Needed for allocation.
    **kwargs
        For `Initializable`; there are no biases.
    """

    has_biases = False

    @lazy(allocation=["num_outputs", "feedback_dim"])
    def __init__(self, num_outputs: int, feedback_dim: int, **kwargs: Any) -> None:
        self.lookup = LookupTable(num_outputs, feedback_dim)
        kwargs["children"] = [self.lookup, *kwargs.get("children", ())]
        super().__init__(**kwargs)
        self.num_outputs = num_outputs
        self.feedback_dim = feedback_dim

    @property
    def output_dim(self) -> int:
        """0: integers have no axis of features. Nothing else can be set."""
        return 0

    @output_dim.setter
    def output_dim(self, value: int) -> None:
        if value != 0:
            raise ValueError(
                f"{self.path} looks integers up, and an emitter gives it outputs of {value!r} "
                "features. Give the readout an emitter of integers, such as SoftmaxEmitter, or "
                "another feedback brick, such as TrivialFeedback."
            )

    def _push_allocation_config(self) -> None:
        self.lookup.length = self.num_outputs
        self.lookup.dim = self.feedback_dim

    @application(outputs=["feedback"])
    def feedback(self, outputs: Variable) -> Variable:
        """Look a vector up for each output.

        Parameters
        ----------
        outputs : Variable of shape (...)
            Integers from 0 and below `num_outputs`.

        Returns
        -------
        Variable of shape (..., feedback_dim)
        """
        return self.lookup.apply(outputs)

    def get_dim(self, name: str) -> Any:
        """Features of ``'feedback'``; see `Brick.get_dim`."""
        return self.feedback_dim if name == "feedback" else super().get_dim(name)
