"""Attention that knows where it looked before."""

from collections.abc import Mapping
from typing import Any

from aesara.tensor.var import TensorVariable as Variable

from bricks.attention.matching import SequenceContentAttention
from bricks.base import application, lazy
from bricks.conv import Convolutional
from bricks.simple import Linear

__all__ = ["LocationSensitiveAttention"]


class LocationSensitiveAttention(SequenceContentAttention):
    """Additive attention whose energies depend on the weights of the step before too.

    The weights are convolved with `num_filters` filters over time (the child ``location_conv``),
    and mapped linearly (``location_trans``) to what is added to the transforms of the states and
    of what is attended. So the glimpse ``weights`` is also an input, handed on from step to step.

    Parameters
    ----------
    match_dim : int
        Features of the vectors that are added. Needed for allocation.
    num_filters : int
        Filters.
    filter_length : int
        Steps that a filter covers, an odd number.
    **kwargs
        For `SequenceContentAttention`.

    References
    ----------
    J. Chorowski, D. Bahdanau, D. Serdyuk, K. Cho, Y. Bengio, *Attention-Based Models for Speech
    Recognition*, NIPS 2015.
    """

    @lazy(allocation=["match_dim"])
    def __init__(
        self, match_dim: int, num_filters: int = 10, filter_length: int = 31, **kwargs: Any
    ) -> None:
        super().__init__(match_dim, **kwargs)
        self.num_filters = num_filters
        self.filter_length = filter_length
        self.location_convolution = Convolutional(
            num_channels=1, border_mode="half", use_bias=False, name="location_conv"
        )
        self.location_transformer = Linear(use_bias=False, name="location_trans")
        self.children = [*self.children, self.location_convolution, self.location_transformer]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        if self.filter_length % 2 == 0:
            raise ValueError(
                f"{self.path} cannot be allocated: `filter_length` must be odd, so that filters "
                f"have a middle; got {self.filter_length}."
            )
        self.location_convolution.filter_size = (self.filter_length,)
        self.location_convolution.num_filters = self.num_filters
        self.location_transformer.input_dim = self.num_filters
        self.location_transformer.output_dim = self.match_dim

    @application(outputs=["energies"])
    def compute_energies(
        self, attended: Variable, preprocessed_attended: Any, states: Mapping[str, Variable]
    ) -> Any:
        """Match the states and the weights before with each attended step.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, attended_dim)
        preprocessed_attended : Variable of shape (attended time, batch, match_dim) or None
            Computed if it is None.
        states : mapping of str to Variable
            The states by name, of shape (batch, feature), and the ``weights`` before, of shape
            (batch, attended time).

        Returns
        -------
        Variable of shape (attended time, batch)
        """
        if "weights" not in states:
            raise TypeError(
                f"{self.path}.take_glimpses: `weights` must be given: the glimpse of the step "
                "before, or that of `initial_glimpses`."
            )
        states = dict(states)
        weights = states.pop("weights")
        if preprocessed_attended is None:
            preprocessed_attended = self.preprocess(attended)
        filtered = self.location_convolution.apply(weights[:, None, :])
        located = self.location_transformer.apply(filtered.dimshuffle(2, 0, 1))
        matched = self.state_transformers.apply(as_list=True, **states)
        return self._match(preprocessed_attended + located, sum(matched[1:], matched[0]))

    @application(outputs=["weighted_averages", "weights"])
    def take_glimpses(
        self,
        attended: Variable,
        preprocessed_attended: Any = None,
        attended_mask: Any = None,
        **states: Variable,
    ) -> list[Any]:
        """Average what is attended; see `SequenceContentAttention.take_glimpses`.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, attended_dim)
        preprocessed_attended : Variable of shape (attended time, batch, match_dim), optional
        attended_mask : Variable of shape (attended time, batch), optional
        **states : Variable
            The states by name, of shape (batch, feature), and the ``weights`` before, of shape
            (batch, attended time).

        Returns
        -------
        weighted_averages : Variable of shape (batch, attended_dim)
        weights : Variable of shape (batch, attended time)
        """
        return self._glimpse(attended, preprocessed_attended, attended_mask, states)

    @take_glimpses.property("inputs")
    def take_glimpses_inputs(self) -> list[str]:
        """Names of the inputs, with the glimpse that is handed on.

        Returns
        -------
        list of str
        """
        names = ["attended", "preprocessed_attended", "attended_mask"]
        return [*names, *(self.state_names or ()), "weights"]
