"""The layers of Transformers: attention and feed-forward bricks, each with a residual around it."""

import copy
from collections.abc import Callable
from typing import Any

from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import Brick, application, lazy
from bricks.checks import describe
from bricks.interfaces import Initializable, check_last_dim
from bricks.normalization import LayerNormalization
from bricks.transformer.feedforward import PositionwiseFeedforward
from bricks.transformer.multi_head import MultiHeadAttention
from bricks.transformer.positions import AttentionPositions, check_sequences

__all__ = ["DecoderBlock", "EncoderBlock"]


class _Block(Initializable):
    """What blocks have in common.

    Parameters
    ----------
    num_heads : int
        Heads of the attention.
    dim : int
        Features of input and output. Needed for allocation; a stack pushes it.
    hidden_dim : int, optional
        Features within the feed-forward brick; four times `dim` by default.
    causal : bool
        Whether the attention of the input to itself is causal.
    norm_first : bool
        Whether inputs are normalized, or sums.
    activation : Brick, optional
        Of the feed-forward brick.
    gated : bool
        Whether the feed-forward brick has a gate.
    positions : AttentionPositions, optional
        What tells the attention about positions; copied.
    norm : Brick, optional
        Copied for each sublayer; a `LayerNormalization` by default.
    **kwargs
        For `Initializable`.
    """

    def __init__(
        self,
        num_heads: int,
        dim: Any,
        hidden_dim: int | None,
        causal: bool,
        norm_first: bool,
        activation: Any,
        gated: bool,
        positions: AttentionPositions | None,
        norm: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dim = dim
        self.hidden_dim = hidden_dim
        self.norm_first = norm_first
        self.norm = LayerNormalization() if norm is None else norm
        self.attention = MultiHeadAttention(
            num_heads, causal=causal, positions=copy.deepcopy(positions), name="attention"
        )
        self.feedforward = PositionwiseFeedforward(
            activation=activation, gated=gated, name="feedforward"
        )
        self.attention_norm = copy_named(self.norm, "attention_norm")
        self.feedforward_norm = copy_named(self.norm, "feedforward_norm")
        own = [self.attention, self.feedforward, self.attention_norm, self.feedforward_norm]
        self.children = [*self.children, *own]

    @property
    def _norms(self) -> list[Any]:
        return [self.attention_norm, self.feedforward_norm]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        self.attention.query_dim = self.dim
        self.feedforward.dim = self.dim
        self.feedforward.hidden_dim = self.hidden_dim or 4 * self.dim
        for norm in self._norms:
            norm.input_dim = self.dim
        if "use_bias" in self.__dict__:
            for child in self.children:
                if isinstance(child, MultiHeadAttention | PositionwiseFeedforward):
                    child.use_bias = self.use_bias

    def _residual(self, norm: Any, input_: Any, sublayer: Callable[[Any], Any]) -> Any:
        """Add to an input what a sublayer makes of it."""
        if self.norm_first:
            return input_ + sublayer(norm.apply(input_))
        return norm.apply(input_ + sublayer(input_))

    def _feed_forward(self, input_: Any) -> Any:
        return self._residual(self.feedforward_norm, input_, self.feedforward.apply)

    def get_dim(self, name: str) -> Any:
        """Features of inputs and outputs, 0 for masks; see `Brick.get_dim`."""
        if name in ("input_", "output"):
            return self.dim
        if name in ("mask", "bias", "attended_mask", "position"):
            return 0
        return super().get_dim(name)


class EncoderBlock(_Block):
    """A layer of an encoder: attention of a sequence to itself, then a feed-forward brick.

    Each of the two has a residual connection and a normalization. With `norm_first` (*pre-norm*)
    a sublayer gives ``x + f(norm(x))``, otherwise (*post-norm*) ``norm(x + f(x))``.

    The children are ``attention``, ``feedforward``, ``attention_norm`` and ``feedforward_norm``.

    Parameters
    ----------
    num_heads : int
        Heads of the attention.
    dim : int
        Features of input and output. Needed for allocation; a stack pushes it.
    hidden_dim : int, optional
        Features within the feed-forward brick; four times `dim` by default.
    causal : bool
        Whether no step looks at later ones: the block of a language model.
    norm_first : bool
        Whether inputs are normalized, or sums.
    activation : Brick, optional
        Of the feed-forward brick, copied; a `Rectifier` by default.
    gated : bool
        Whether the feed-forward brick has a gate.
    positions : AttentionPositions, optional
        `RotaryPositions` or `RelativePositions`, copied.
    norm : Brick, optional
        Copied for each normalization; a `LayerNormalization` by default.
    **kwargs
        For `Initializable`. `use_bias` reaches attention and feed-forward only if it is given.

    Notes
    -----
    For dropout, as of the first paper, replace the outputs of the applications
    ``MultiHeadAttention.apply`` and ``PositionwiseFeedforward.apply``, which are what is added to
    the residual; the weights are the outputs of ``MultiHeadAttention.compute_weights``.
    `bricks.transformer` has an example.

    References
    ----------
    A. Vaswani et al., *Attention Is All You Need*, NIPS 2017; R. Xiong et al., *On Layer
    Normalization in the Transformer Architecture*, ICML 2020.
    """

    @lazy(allocation=["dim"])
    def __init__(
        self,
        num_heads: int,
        dim: int,
        hidden_dim: int | None = None,
        causal: bool = False,
        norm_first: bool = True,
        activation: Any = None,
        gated: bool = False,
        positions: AttentionPositions | None = None,
        norm: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_heads,
            dim,
            hidden_dim,
            causal,
            norm_first,
            activation,
            gated,
            positions,
            norm,
            **kwargs,
        )

    @application(inputs=["input_", "mask", "bias"], outputs=["output"])
    def apply(self, input_: Variable, mask: Any = None, bias: Any = None) -> Any:
        """Encode sequences.

        Parameters
        ----------
        input_ : Variable of shape (time, batch, dim)
        mask : Variable of shape (time, batch), optional
            0 for padding, which changes nothing of the other steps.
        bias : Variable, optional
            Energies to add; see `MultiHeadAttention.apply`.

        Returns
        -------
        Variable of shape (time, batch, dim)
        """
        check_sequences(self, "apply", "input_", input_, self.dim)
        attended = self._residual(
            self.attention_norm,
            as_float(input_),
            lambda x: self.attention.apply(x, key_mask=mask, bias=bias),
        )
        return self._feed_forward(attended)


class DecoderBlock(_Block):
    """A layer of a decoder: causal attention to itself, attention to what is attended, and a
    feed-forward brick.

    The children are ``attention``, ``feedforward``, ``attention_norm``, ``feedforward_norm`` as in
    `EncoderBlock`, and, unless `attends` is false, ``cross_attention`` and
    ``cross_attention_norm``.

    Parameters
    ----------
    num_heads : int
        Heads of each attention.
    dim : int
        Features of input and output. Needed for allocation; a stack pushes it.
    attended_dim : int, optional
        Features of what is attended; `dim` by default.
    attends : bool
        Whether anything but the sequence itself is attended. Not in a language model.
    hidden_dim : int, optional
        Features within the feed-forward brick; four times `dim` by default.
    norm_first : bool
        Whether inputs are normalized, or sums.
    activation : Brick, optional
        Of the feed-forward brick, copied; a `Rectifier` by default.
    gated : bool
        Whether the feed-forward brick has a gate.
    positions : AttentionPositions, optional
        `RotaryPositions` or `RelativePositions`, copied, for the attention to itself only.
    norm : Brick, optional
        Copied for each normalization; a `LayerNormalization` by default.
    **kwargs
        For `Initializable`. `use_bias` reaches attention and feed-forward only if it is given.

    Notes
    -----
    For dropout see `EncoderBlock`.
    """

    @lazy(allocation=["dim"])
    def __init__(
        self,
        num_heads: int,
        dim: int,
        attended_dim: int | None = None,
        attends: bool = True,
        hidden_dim: int | None = None,
        norm_first: bool = True,
        activation: Any = None,
        gated: bool = False,
        positions: AttentionPositions | None = None,
        norm: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_heads,
            dim,
            hidden_dim,
            True,
            norm_first,
            activation,
            gated,
            positions,
            norm,
            **kwargs,
        )
        self.attended_dim = attended_dim
        self.attends = attends
        if attends:
            self.cross_attention = MultiHeadAttention(num_heads, name="cross_attention")
            self.cross_attention_norm = copy_named(self.norm, "cross_attention_norm")
            self.children = [*self.children, self.cross_attention, self.cross_attention_norm]

    @property
    def _norms(self) -> list[Any]:
        return [*super()._norms, *([self.cross_attention_norm] if self.attends else [])]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        if self.attends:
            self.cross_attention.query_dim = self.dim
            self.cross_attention.key_dim = self.attended_dim or self.dim

    @application(inputs=["input_", "mask", "attended", "attended_mask"], outputs=["output"])
    def apply(
        self, input_: Variable, mask: Any = None, attended: Any = None, attended_mask: Any = None
    ) -> Any:
        """Decode all steps of sequences at once; each sees itself and those before it.

        Parameters
        ----------
        input_ : Variable of shape (time, batch, dim)
        mask : Variable of shape (time, batch), optional
            0 for padding. At the end of sequences it changes nothing of the other steps anyway.
        attended : Variable of shape (attended time, batch, attended_dim)
            What is attended; only if the block attends.
        attended_mask : Variable of shape (attended time, batch), optional
            0 for padding of what is attended.

        Returns
        -------
        Variable of shape (time, batch, dim)
        """
        check_sequences(self, "apply", "input_", input_, self.dim)
        self._check_attended("apply", attended=attended)
        self._check_attends("apply", attended_mask=attended_mask)
        hidden = self._residual(
            self.attention_norm,
            as_float(input_),
            lambda x: self.attention.apply(x, key_mask=mask),
        )
        if self.attends:
            hidden = self._residual(
                self.cross_attention_norm,
                hidden,
                lambda x: self.cross_attention.apply(x, attended, key_mask=attended_mask),
            )
        return self._feed_forward(hidden)

    @application(outputs=["attended_keys", "attended_values"])
    def preprocess(self, attended: Variable) -> Any:
        """Do what does not depend on the decoded sequence, and so is done once for all steps.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, attended_dim)

        Returns
        -------
        attended_keys, attended_values : Variable of shape (attended time, batch, feature)
            For `step`.
        """
        self._check_attended("preprocess", attended=attended)
        return self.cross_attention.preprocess(attended, as_list=True)

    @application(outputs=["output", "keys", "values"])
    def step(
        self,
        input_: Variable,
        keys: Variable,
        values: Variable,
        position: Variable,
        attended_keys: Any = None,
        attended_values: Any = None,
        attended_mask: Any = None,
    ) -> Any:
        """Decode one more step; see `MultiHeadAttention.step`.

        Parameters
        ----------
        input_ : Variable of shape (batch, dim)
        keys, values : Variable of shape (batch, max_length, feature)
            Those of the steps before.
        position : Variable of integers of shape (batch,)
            How many steps there were before.
        attended_keys, attended_values : Variable of shape (attended time, batch, feature)
            What `preprocess` made; only if the block attends.
        attended_mask : Variable of shape (attended time, batch), optional
            0 for padding of what is attended.

        Returns
        -------
        output : Variable of shape (batch, dim)
            NaN where `position` is not below `max_length`.
        keys, values : Variable of shape (batch, max_length, feature)
            With those of this step.
        """
        if input_.ndim != 2:
            raise ValueError(
                f"{self.path}.step: `input_` must have the axes (batch, feature), those of one "
                f"step; got {describe(input_)}."
            )
        check_last_dim(self, input_, self.dim, "input_", "step")
        self._check_attended("step", attended_keys=attended_keys, attended_values=attended_values)
        self._check_attends("step", attended_mask=attended_mask)
        caches: list[Any] = []

        def attend(x: Any) -> Any:
            output, *new = self.attention.step(x, keys, values, position)
            caches.extend(new)
            return output

        def attend_across(x: Any) -> Any:
            across = self.cross_attention.apply_preprocessed
            return across(x[None], attended_keys, attended_values, attended_mask)[0]

        hidden = self._residual(self.attention_norm, as_float(input_), attend)
        if self.attends:
            hidden = self._residual(self.cross_attention_norm, hidden, attend_across)
        return [self._feed_forward(hidden), *caches]

    @application(outputs=["keys", "values"])
    def initial_states(self, batch_size: Any, max_length: Any) -> Any:
        """States of `step` before the first one; see `MultiHeadAttention.initial_states`.

        Parameters
        ----------
        batch_size : int or Variable
            Examples in the batch.
        max_length : int or Variable
            How many steps there will be at most.

        Returns
        -------
        keys, values : Variable of shape (batch, max_length, feature)
        """
        return self.attention.initial_states(batch_size, max_length, as_list=True)

    def get_dim(self, name: str) -> Any:
        """Features of inputs, outputs and states, 0 for masks; see `Brick.get_dim`."""
        if name == "attended":
            return self.attended_dim or self.dim
        if name in ("keys", "values", "attended_keys", "attended_values"):
            return self.attention.get_dim("keys")
        return super().get_dim(name)

    def _check_attended(self, application_name: str, **given: Any) -> None:
        """Refuse what is attended by a block that does not, and the other way round."""
        self._check_attends(application_name, **given)
        for name, variable in given.items():
            if self.attends and variable is None:
                raise TypeError(
                    f"{self.path}.{application_name}: `{name}` must be given. Make the block with "
                    "attends=False if it attends nothing but its own sequence."
                )

    def _check_attends(self, application_name: str, **given: Any) -> None:
        """Refuse what belongs to what is attended if nothing is."""
        for name, variable in given.items():
            if not self.attends and variable is not None:
                raise TypeError(
                    f"{self.path}.{application_name}: `{name}` is given, but the block was made "
                    "with attends=False."
                )


def copy_named(brick: Brick, name: str) -> Any:
    """Copy a brick, and give the copy a name.

    Parameters
    ----------
    brick : Brick
        The prototype.
    name : str
        Of the copy.

    Returns
    -------
    Brick
        The copy.
    """
    copied = copy.deepcopy(brick)
    copied.name = name
    return copied


def check_block(brick: Brick, prototype: Any, kind: type) -> None:
    """Refuse a prototype that is no block of a kind.

    Parameters
    ----------
    brick : Brick
        The stack.
    prototype : object
        What it was given.
    kind : type
        What it must be.

    Raises
    ------
    TypeError
        If it is not.
    """
    if not isinstance(prototype, kind):
        raise TypeError(
            f"{type(brick).__name__}: `prototype` must be a {kind.__name__}, which is copied for "
            f"each layer; got {prototype!r}."
        )
