"""Attention that matches states with the steps of a sequence."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import of_dtype
from bricks.attention.base import GenericSequenceAttention, ShallowEnergyComputer
from bricks.base import application, lazy
from bricks.checks import describe
from bricks.interfaces import Initializable, check_last_dim
from bricks.parallel import Parallel
from bricks.simple import Linear
from fuel_data.utils.names import nearest_name

__all__ = ["DotProductAttention", "MatchingAttention", "SequenceContentAttention"]


class MatchingAttention(GenericSequenceAttention, Initializable):
    """The base class of attention that maps states and attended steps to vectors of one size.

    Parameters
    ----------
    match_dim : int
        Features of these vectors. Needed for allocation.
    state_transformer : Feedforward, optional
        Copied for each state, as ``state_trans/<name>_<state>``; a `Linear` without bias by
        default.
    attended_transformer : Feedforward, optional
        Preprocesses what is attended; a `Linear` called ``preprocess`` by default.
    **kwargs
        For `AbstractAttention` and `Initializable`.
    """

    @lazy(allocation=["match_dim"])
    def __init__(
        self,
        match_dim: int,
        state_transformer: Any = None,
        attended_transformer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.match_dim = match_dim
        self.state_transformer = state_transformer or Linear(use_bias=False)
        self.state_transformers = Parallel(
            input_names=self.state_names, prototype=self.state_transformer, name="state_trans"
        )
        self.attended_transformer = attended_transformer or Linear(name="preprocess")
        self.children = [*self.children, self.state_transformers, self.attended_transformer]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        transformers = self.state_transformers
        if transformers.input_names != list(self.state_names):
            transformers.input_names = self.state_names
        transformers.input_dims = self.state_dims
        transformers.output_dims = [self.match_dim] * len(self.state_names)
        self.attended_transformer.input_dim = self.attended_dim
        self.attended_transformer.output_dim = self.match_dim

    @application(inputs=["attended"], outputs=["preprocessed_attended"])
    def preprocess(self, attended: Variable) -> Variable:
        """Map what is attended to vectors of `match_dim` features.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, attended_dim)

        Returns
        -------
        Variable of shape (attended time, batch, match_dim)
        """
        self._check_glimpsed("preprocess", attended)
        return self.attended_transformer.apply(attended)

    @application(outputs=["energies"])
    def compute_energies(
        self, attended: Variable, preprocessed_attended: Any, states: Mapping[str, Variable]
    ) -> Any:
        """Match the states with each attended step.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, attended_dim)
        preprocessed_attended : Variable of shape (attended time, batch, match_dim) or None
            Computed if it is None.
        states : mapping of str to Variable of shape (batch, feature)
            The states by name.

        Returns
        -------
        Variable of shape (attended time, batch)
        """
        if preprocessed_attended is None:
            preprocessed_attended = self.preprocess(attended)
        matched = self.state_transformers.apply(as_list=True, **states)
        return self._match(preprocessed_attended, sum(matched[1:], matched[0]))

    @abstractmethod
    def _match(self, preprocessed_attended: Variable, matched: Variable) -> Any:
        """Return energies of the steps, given the sum of the transformed states."""

    @application(outputs=["weighted_averages", "weights"])
    def take_glimpses(
        self,
        attended: Variable,
        preprocessed_attended: Any = None,
        attended_mask: Any = None,
        **states: Variable,
    ) -> list[Any]:
        """Average what is attended, weighted by how well it matches the states.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, attended_dim)
        preprocessed_attended : Variable of shape (attended time, batch, match_dim), optional
            What `preprocess` made of it; computed if it is not given.
        attended_mask : Variable of shape (attended time, batch), optional
            0 for padding, which changes nothing.
        **states : Variable of shape (batch, feature)
            The states by name.

        Returns
        -------
        weighted_averages : Variable of shape (batch, attended_dim)
        weights : Variable of shape (batch, attended time)
        """
        return self._glimpse(attended, preprocessed_attended, attended_mask, states)

    @take_glimpses.property("inputs")
    def take_glimpses_inputs(self) -> list[str]:
        """Names of the inputs: what is attended, and the states.

        Returns
        -------
        list of str
        """
        names = ["attended", "preprocessed_attended", "attended_mask"]
        return [*names, *(self.state_names or ())]

    def _glimpse(self, attended: Any, preprocessed: Any, mask: Any, states: Any) -> list[Any]:
        """Return the glimpses."""
        name = "take_glimpses"
        self._check_glimpsed(name, attended, preprocessed, mask)
        if preprocessed is not None:
            check_last_dim(self, preprocessed, self.match_dim, "preprocessed_attended", name)
        known = self.take_glimpses.inputs
        for name, state in states.items():
            if name not in known:
                raise TypeError(
                    f"{self.path}.take_glimpses: unexpected argument {name!r}."
                    f"{nearest_name(name, known)}"
                )
            if state.ndim != 2:
                axes = "(batch, attended time)" if name == "weights" else "(batch, feature)"
                raise ValueError(
                    f"{self.path}.take_glimpses: `{name}` must have the axes {axes}; got "
                    f"{describe(state)}."
                )
        energies = self.compute_energies(attended, preprocessed, states)
        weights = self.compute_weights(energies, mask)
        return [self.compute_weighted_averages(weights, attended), weights.T]

    def get_dim(self, name: str) -> Any:
        """Features of an input or of a glimpse; see `Brick.get_dim`."""
        return self.match_dim if name == "preprocessed_attended" else super().get_dim(name)


class SequenceContentAttention(MatchingAttention):
    """Additive attention: the energy of a step is computed from the sum of all transforms.

    Parameters
    ----------
    match_dim : int
        Features of the vectors that are added. Needed for allocation.
    state_transformer : Feedforward, optional
        Copied for each state; a `Linear` without bias by default.
    attended_transformer : Feedforward, optional
        Preprocesses what is attended; a `Linear` called ``preprocess`` by default.
    energy_computer : Feedforward, optional
        Gives one energy for each vector; a `ShallowEnergyComputer` called ``energy_comp`` by
        default.
    **kwargs
        For `AbstractAttention` and `Initializable`: `state_names`, `state_dims`, `attended_dim`,
        schemes of initialization, `name`.

    References
    ----------
    D. Bahdanau, K. Cho, Y. Bengio, *Neural Machine Translation by Jointly Learning to Align and
    Translate*, ICLR 2015.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.attention import SequenceContentAttention
    >>> attention = SequenceContentAttention(
    ...     state_names=["states"], state_dims=[3], attended_dim=4, match_dim=5)
    >>> attended, states = tensor.tensor3("attended"), tensor.matrix("states")
    >>> glimpses = attention.take_glimpses(attended, states=states, as_dict=True)
    >>> list(glimpses)
    ['weighted_averages', 'weights']
    """

    @lazy(allocation=["match_dim"])
    def __init__(
        self,
        match_dim: int,
        state_transformer: Any = None,
        attended_transformer: Any = None,
        energy_computer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(match_dim, state_transformer, attended_transformer, **kwargs)
        self.energy_computer = energy_computer or ShallowEnergyComputer(name="energy_comp")
        self.children = [*self.children, self.energy_computer]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        self.energy_computer.input_dim = self.match_dim
        self.energy_computer.output_dim = 1

    def _match(self, preprocessed_attended: Variable, matched: Variable) -> Any:
        return self.energy_computer.apply(preprocessed_attended + matched)[..., 0]


class DotProductAttention(MatchingAttention):
    """Multiplicative attention: the energy of a step is its scalar product with the states.

    By default both are mapped linearly to `match_dim` features. With
    ``state_transformer=Identity()`` and `match_dim` the features of the state this is the
    *general* attention of Luong; with ``attended_transformer=Identity()`` too it is *dot*.

    Parameters
    ----------
    match_dim : int
        Features of the vectors that are multiplied. Needed for allocation.
    state_transformer : Feedforward, optional
        Copied for each state, and summed; a `Linear` without bias by default.
    attended_transformer : Feedforward, optional
        Preprocesses what is attended; a `Linear` called ``preprocess`` by default.
    scaled : bool
        Whether to divide the products by the square root of `match_dim`.
    **kwargs
        For `AbstractAttention` and `Initializable`: `state_names`, `state_dims`, `attended_dim`,
        schemes of initialization, `name`.

    References
    ----------
    M.-T. Luong, H. Pham, C. D. Manning, *Effective Approaches to Attention-based Neural Machine
    Translation*, EMNLP 2015.
    """

    @lazy(allocation=["match_dim"])
    def __init__(
        self,
        match_dim: int,
        state_transformer: Any = None,
        attended_transformer: Any = None,
        scaled: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(match_dim, state_transformer, attended_transformer, **kwargs)
        self.scaled = scaled

    def _match(self, preprocessed_attended: Variable, matched: Variable) -> Any:
        energies = (preprocessed_attended * matched).sum(axis=-1)
        scale = of_dtype(math.sqrt(self.match_dim), energies.dtype)
        return energies / scale if self.scaled else energies
