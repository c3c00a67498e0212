"""What stands between the states of a sequence generator and its outputs."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.base import Application, application, lazy
from bricks.interfaces import Initializable
from bricks.parallel import Merge
from bricks.sequence_generators.emitters import TrivialEmitter, TrivialFeedback
from bricks.simple import Bias
from fuel_data.utils.names import nearest_name

__all__ = ["AbstractReadout", "Readout"]


class AbstractReadout(Initializable):
    """The base class of what reads outputs out of states, and feeds them back.

    Parameters
    ----------
    source_names : list of str
        Which states, glimpses and contexts the readouts depend on; ``'feedback'`` stands for the
        output before. Needed for allocation.
    readout_dim : int
        Features of a readout. Needed for allocation.
    **kwargs
        For `Initializable`.
    """

    @lazy(allocation=["source_names", "readout_dim"])
    def __init__(self, source_names: Sequence[str], readout_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source_names = source_names
        self.readout_dim = readout_dim

    @abstractmethod
    def readout(self, **kwargs: Variable) -> Variable:
        """Compute readouts.

        Parameters
        ----------
        **kwargs : Variable
            States, glimpses and contexts by name, and ``feedback``.

        Returns
        -------
        Variable of shape (..., readout_dim)
        """

    @abstractmethod
    def emit(self, readouts: Variable) -> Variable:
        """Draw outputs.

        Parameters
        ----------
        readouts : Variable of shape (batch, readout_dim)
            What `readout` gives.

        Returns
        -------
        Variable of shape (batch, ...)
        """

    @abstractmethod
    def cost(self, readouts: Variable, outputs: Variable) -> Variable:
        """Cost of given outputs.

        Parameters
        ----------
        readouts : Variable of shape (..., readout_dim)
            What `readout` gives.
        outputs : Variable of shape (...) or (..., feature)
            The outputs.

        Returns
        -------
        Variable of shape (...)
        """

    @abstractmethod
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

    @abstractmethod
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


class Readout(AbstractReadout):
    """A readout made of four parts: what merges sources, emits, costs and feeds back.

    Parameters
    ----------
    emitter : AbstractEmitter, optional
        A `TrivialEmitter` by default.
    feedback_brick : AbstractFeedback, optional
        A `TrivialFeedback` by default.
    merge : Brick, optional
        Makes one vector of the sources, which it takes by name; a `Merge` by default.
    merge_prototype : Feedforward, optional
        Prototype of the default `merge`; a `Linear` without bias by default.
    post_merge : Feedforward, optional
        Applied to what `merge` gives; a `Bias` by default.
    merged_dim : int, optional
        Features of what `merge` gives; `readout_dim` by default.
    **kwargs
        For `AbstractReadout`.

    Examples
    --------
    >>> from bricks.sequence_generators import LookupFeedback, Readout, SoftmaxEmitter
    >>> readout = Readout(
    ...     source_names=["states", "feedback"], readout_dim=5,
    ...     emitter=SoftmaxEmitter(), feedback_brick=LookupFeedback(5, 3),
    ... )
    >>> readout.get_dim("feedback"), readout.get_dim("outputs")
    (3, 0)
    """

    def __init__(
        self,
        emitter: Any = None,
        feedback_brick: Any = None,
        merge: Any = None,
        merge_prototype: Any = None,
        post_merge: Any = None,
        merged_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        source_names, readout_dim = kwargs.get("source_names"), kwargs.get("readout_dim")
        self.emitter = emitter or _lazily(TrivialEmitter, readout_dim)
        self.feedback_brick = feedback_brick or _lazily(TrivialFeedback, readout_dim)
        self.merge = merge or Merge(input_names=source_names or [], prototype=merge_prototype)
        self.post_merge = post_merge or _lazily(Bias, readout_dim)
        self.merged_dim = merged_dim
        parts = [self.emitter, self.feedback_brick, self.merge, self.post_merge]
        kwargs["children"] = [*parts, *kwargs.get("children", ())]
        super().__init__(**kwargs)
        self.source_dims: list[int] = []

    def _push_allocation_config(self) -> None:
        self.emitter.readout_dim = self.readout_dim
        self.feedback_brick.output_dim = self.emitter.get_dim("outputs")
        merged_dim = self.merged_dim or self.readout_dim
        if not self.source_names or len(self.source_dims) != len(self.source_names):
            raise ValueError(
                f"{self.path} cannot be allocated: `source_dims` must be a list of sizes, one for "
                f"each of the sources {list(self.source_names)}; got {self.source_dims!r}. A "
                "sequence generator sets them; set them yourself to use the readout alone."
            )
        if list(self.merge.input_names) != list(self.source_names):
            self.merge.input_names = self.source_names
        self.merge.input_dims = list(self.source_dims)
        self.merge.output_dim = merged_dim
        self.post_merge.input_dim = merged_dim
        self.post_merge.output_dim = self.readout_dim

    @application
    def readout(self, application: Any, **kwargs: Variable) -> Variable:
        """Merge the sources.

        Parameters
        ----------
        **kwargs : Variable of shape (..., feature)
            States, glimpses and contexts by name, and ``feedback``; those that are no sources are
            not looked at.

        Returns
        -------
        Variable of shape (..., readout_dim)
        """
        for name in self.source_names:
            if name not in kwargs:
                raise ValueError(
                    f"{application.path}: the source {name!r} is not among what there is: "
                    f"{', '.join(kwargs)}.{nearest_name(name, kwargs)}"
                )
        sources = {name: kwargs[name] for name in self.source_names}
        return self.post_merge.apply(self.merge.apply(**sources))

    @application
    def emit(self, readouts: Variable) -> Variable:
        """Draw outputs; see `AbstractReadout.emit`."""
        return self.emitter.emit(readouts)

    @application
    def cost(self, readouts: Variable, outputs: Variable) -> Variable:
        """Cost of given outputs; see `AbstractReadout.cost`."""
        return self.emitter.cost(readouts, outputs)

    @application
    def log_probs(self, application: Any, readouts: Variable) -> Variable:
        """Logarithms of the probabilities of all outputs, for a search.

        Parameters
        ----------
        readouts : Variable of shape (..., readout_dim)
            What `readout` gives.

        Returns
        -------
        Variable of shape (..., symbol)

        Raises
        ------
        ValueError
            If the emitter knows no probabilities of all outputs.
        """
        given = _most_derived(type(self.emitter), ("log_probs", "probs"))
        if given == "log_probs":
            return self.emitter.log_probs(readouts)
        if given == "probs":
            return tensor.log(self.emitter.probs(readouts))
        raise ValueError(
            f"{application.path}: {type(self.emitter).__name__} gives no probabilities of all "
            "outputs, which a search needs. Define an application `log_probs(readouts)` of the "
            "emitter, or use SoftmaxEmitter."
        )

    @application
    def initial_outputs(self, batch_size: Any) -> Variable:
        """Give what is fed back at first; see `AbstractReadout.initial_outputs`."""
        return self.emitter.initial_outputs(batch_size)

    @application(outputs=["feedback"])
    def feedback(self, outputs: Variable) -> Variable:
        """Feed outputs back; see `AbstractReadout.feedback`."""
        return self.feedback_brick.feedback(outputs)

    def get_dim(self, name: str) -> Any:
        """Features of ``'outputs'``, ``'feedback'`` or ``'readouts'``; see `Brick.get_dim`."""
        if name == "outputs":
            return self.emitter.get_dim(name)
        if name == "feedback":
            return self.feedback_brick.get_dim(name)
        return self.readout_dim if name == "readouts" else super().get_dim(name)


def _lazily(brick: Any, size: int | None) -> Any:
    """Make a brick with its size, if that is known already."""
    return brick(size) if size else brick()


def _most_derived(kind: type, names: tuple[str, ...]) -> str | None:
    """Return which of some applications the most derived class defines, and of these the first.

    So an emitter that overrides one of them is not answered for by the other, inherited one.
    """
    known = [name for name in names if isinstance(getattr(kind, name, None), Application)]
    return next((name for one in kind.__mro__ for name in known if name in vars(one)), None)
