"""Transformers: stacks of equal layers.

A decoder takes all steps at once when it is trained, and one step at a time when it generates.
The latter needs states: the keys and values of the steps before, for each layer, and their number.
"""

from collections.abc import Iterable
from typing import Any

from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.base import application, lazy
from bricks.checks import check_sizes
from bricks.interfaces import Initializable
from bricks.transformer.blocks import DecoderBlock, EncoderBlock, check_block, copy_named
from bricks.transformer.positions import AddedPositions, check_sequences
from fuel_data.utils.names import nearest_name

__all__ = ["TransformerDecoder", "TransformerEncoder"]


class _Stack(Initializable):
    """What stacks have in common.

    Parameters
    ----------
    num_layers : int
        Layers.
    prototype : Brick
        Copied for each layer.
    dim : int
        Features of input and output.
    positions : AddedPositions, optional
        Added to the input.
    **kwargs
        For `Initializable`.
    """

    def __init__(
        self,
        num_layers: int,
        prototype: Any,
        dim: Any,
        positions: AddedPositions | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.dim = dim
        self.positions = positions
        self.layers = [copy_named(prototype, f"layer_{index}") for index in range(num_layers)]
        # The sum of all residuals has never been normalized.
        self.norm = copy_named(prototype.norm, "norm") if prototype.norm_first else None
        others = [one for one in (self.norm, positions) if one is not None]
        self.children = [*self.children, *self.layers, *others]

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        check_sizes(self, num_layers=self.num_layers, dim=self.dim)
        for layer in self.layers:
            layer.dim = self.dim
            if "use_bias" in self.__dict__:
                layer.use_bias = self.use_bias
        if self.norm is not None:
            self.norm.input_dim = self.dim
        if self.positions is not None:
            self.positions.dim = self.dim

    def _normalize(self, output: Any) -> Any:
        return output if self.norm is None else self.norm.apply(output)

    def get_dim(self, name: str) -> Any:
        """Features of inputs and outputs, 0 for masks; see `Brick.get_dim`."""
        return self.dim if name in ("input_", "output") else self.layers[0].get_dim(name)


class TransformerEncoder(_Stack):
    """A stack of encoder blocks, with a last normalization if they are pre-norm.

    Sequences have the axes (time, batch, feature), masks (time, batch), as for recurrent bricks.
    The children are ``layer_0``, ``layer_1``, …, ``norm`` and the positions.

    Parameters
    ----------
    num_layers : int
        Layers, at least one.
    prototype : EncoderBlock
        Copied for each layer; a causal one makes a language model that looks at all at once.
    dim : int
        Features of input and output. Needed for allocation.
    positions : AddedPositions, optional
        Added to the input: `SinusoidalPositions` or `LearnedPositions`.
    **kwargs
        For `Initializable`. `use_bias` reaches the layers only if it is given.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.initialization import Constant, IsotropicGaussian
    >>> from bricks.transformer import EncoderBlock, SinusoidalPositions, TransformerEncoder
    >>> encoder = TransformerEncoder(
    ...     2, EncoderBlock(num_heads=4, hidden_dim=64), dim=16, positions=SinusoidalPositions(),
    ...     weights_init=IsotropicGaussian(0.1), biases_init=Constant(0))
    >>> encoder.initialize()
    >>> x, mask = tensor.tensor3("x"), tensor.matrix("mask")
    >>> encoder.apply(x, mask)
    transformerencoder_apply_output
    """

    @lazy(allocation=["dim"])
    def __init__(
        self,
        num_layers: int,
        prototype: EncoderBlock,
        dim: int,
        positions: AddedPositions | None = None,
        **kwargs: Any,
    ) -> None:
        check_block(self, prototype, EncoderBlock)
        super().__init__(num_layers, prototype, dim, positions, **kwargs)

    @application(inputs=["input_", "mask", "bias"], outputs=["output"])
    def apply(self, input_: Variable, mask: Any = None, bias: Any = None) -> Any:
        """Encode sequences.

        Parameters
        ----------
        input_ : Variable of shape (time, batch, dim)
        mask : Variable of shape (time, batch), optional
            0 for padding, which changes nothing of the other steps.
        bias : Variable, optional
            Energies to add in each layer; see `MultiHeadAttention.apply`.

        Returns
        -------
        Variable of shape (time, batch, dim)
        """
        check_sequences(self, "apply", "input_", input_, self.dim)
        hidden = input_ if self.positions is None else self.positions.apply(input_)
        for layer in self.layers:
            hidden = layer.apply(hidden, mask, bias)
        return self._normalize(hidden)


class TransformerDecoder(_Stack):
    """A stack of decoder blocks, with a last normalization if they are pre-norm.

    `apply` takes all steps at once. `step` takes one, and gives the same as `apply` at that step;
    its states are ``position`` and, for each layer, ``keys_<i>`` and ``values_<i>``, all with the
    batch as first axis, as a search needs them.

    Parameters
    ----------
    num_layers : int
        Layers, at least one.
    prototype : DecoderBlock
        Copied for each layer.
    dim : int
        Features of input and output. Needed for allocation.
    positions : AddedPositions, optional
        Added to the input: `SinusoidalPositions` or `LearnedPositions`.
    max_length : int
        How many steps there is room for in the states of `step`; `apply` takes any number.
    **kwargs
        For `Initializable`. `use_bias` reaches the layers only if it is given.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.transformer import DecoderBlock, SinusoidalPositions, TransformerDecoder
    >>> decoder = TransformerDecoder(
    ...     2, DecoderBlock(num_heads=4), dim=16, positions=SinusoidalPositions(), max_length=50)
    >>> x, encoded = tensor.tensor3("x"), tensor.tensor3("encoded")
    >>> y = decoder.apply(x, attended=encoded)                 # to train

    To generate, begin with the initial states, and hand on what `step` returns:

    >>> contexts = decoder.preprocess(encoded, as_dict=True)   # once
    >>> states = decoder.initial_states(encoded.shape[1], as_dict=True)
    >>> list(states)
    ['position', 'keys_0', 'values_0', 'keys_1', 'values_1']
    >>> states = decoder.step(tensor.matrix("x_t"), **states, **contexts, as_dict=True)
    >>> y_t = states.pop("output")
    """

    @lazy(allocation=["dim"])
    def __init__(
        self,
        num_layers: int,
        prototype: DecoderBlock,
        dim: int,
        positions: AddedPositions | None = None,
        max_length: int = 256,
        **kwargs: Any,
    ) -> None:
        check_block(self, prototype, DecoderBlock)
        super().__init__(num_layers, prototype, dim, positions, **kwargs)
        self.max_length = max_length
        self.attends = prototype.attends

    @application(inputs=["input_", "mask", "attended", "attended_mask"], outputs=["output"])
    def apply(
        self, input_: Variable, mask: Any = None, attended: Any = None, attended_mask: Any = None
    ) -> Any:
        """Decode all steps of sequences at once; each sees itself and those before it.

        Parameters
        ----------
        input_ : Variable of shape (time, batch, dim)
        mask : Variable of shape (time, batch), optional
            0 for padding.
        attended : Variable of shape (attended time, batch, feature)
            What is attended; only if the blocks attend.
        attended_mask : Variable of shape (attended time, batch), optional
            0 for padding of what is attended.

        Returns
        -------
        Variable of shape (time, batch, dim)
        """
        check_sequences(self, "apply", "input_", input_, self.dim)
        hidden = input_ if self.positions is None else self.positions.apply(input_)
        for layer in self.layers:
            hidden = layer.apply(hidden, mask, attended, attended_mask)
        return self._normalize(hidden)

    @application(inputs=["attended"])
    def preprocess(self, attended: Variable) -> list[Any]:
        """Do what does not depend on the decoded sequence, and so is done once for all steps.

        Parameters
        ----------
        attended : Variable of shape (attended time, batch, feature)

        Returns
        -------
        list of Variable of shape (attended time, batch, feature)
            Contexts of `step`: ``attended_keys_<i>`` and ``attended_values_<i>`` for each layer.
        """
        return [one for layer in self.layers for one in layer.preprocess(attended, as_list=True)]

    @preprocess.property("outputs")
    def preprocess_outputs(self) -> list[str]:
        """Give the names of the contexts that are made of what is attended.

        Returns
        -------
        list of str
            None if the blocks do not attend.
        """
        names = ("attended_keys", "attended_values") if self.attends else ()
        return self._names_of_layers(*names)

    @application
    def step(self, input_: Variable, **states: Any) -> list[Any]:
        """Decode one more step.

        Parameters
        ----------
        input_ : Variable of shape (batch, dim)
        **states : Variable
            The states and, if the blocks attend, the contexts by name: those that `preprocess`
            made and, perhaps, ``attended_mask``.

        Returns
        -------
        list of Variable
            The output of shape (batch, dim), and the states after the step. The output is NaN
            after more than `max_length` steps.
        """
        self._check_states(states)
        position = states["position"]
        hidden = input_ if self.positions is None else self.positions.step(input_, position)
        caches = []
        for index, layer in enumerate(self.layers):
            own = {
                name: states.get(f"{name}_{index}")
                for name in ("keys", "values", "attended_keys", "attended_values")
            }
            hidden, *new = layer.step(
                hidden, position=position, attended_mask=states.get("attended_mask"), **own
            )
            caches += new
        return [self._normalize(hidden), position + 1, *caches]

    @step.property("inputs")
    def step_inputs(self) -> list[str]:
        """Give the names of all that a step takes.

        Returns
        -------
        list of str
            The input, states and contexts.
        """
        return ["input_", *self.step_states(), *self.step_contexts()]

    @step.property("states")
    def step_states(self) -> list[str]:
        """Give the names of the states.

        Returns
        -------
        list of str
            The position, and the keys and values of each layer.
        """
        return ["position", *self._names_of_layers("keys", "values")]

    @step.property("contexts")
    def step_contexts(self) -> list[str]:
        """Give the names of the contexts.

        Returns
        -------
        list of str
            What is made of what is attended, and its mask.
        """
        return [*self.preprocess_outputs(), "attended_mask"] if self.attends else []

    @step.property("outputs")
    def step_outputs(self) -> list[str]:
        """Give the names of the outputs.

        Returns
        -------
        list of str
            The output and the states.
        """
        return ["output", *self.step_states()]

    @application
    def initial_states(self, batch_size: Any, max_length: Any = None) -> list[Any]:
        """States before the first step.

        Parameters
        ----------
        batch_size : int or Variable
            Examples in the batch.
        max_length : int or Variable, optional
            How many steps there will be at most; the brick's own by default.

        Returns
        -------
        list of Variable
            In the order of ``step.states``.
        """
        length = self.max_length if max_length is None else max_length
        position = tensor.zeros((batch_size,), "int64")
        caches = [layer.initial_states(batch_size, length) for layer in self.layers]
        return [position, *(cache for pair in caches for cache in pair)]

    @initial_states.property("outputs")
    def initial_states_outputs(self) -> list[str]:
        """Give the names of the states.

        Returns
        -------
        list of str
            Those of `step`.
        """
        return self.step_states()

    def get_dim(self, name: str) -> Any:
        """Features of inputs, outputs, states and contexts; see `Brick.get_dim`.

        Parameters
        ----------
        name : str
            Of any of them.

        Returns
        -------
        int
            0 for masks and the position.
        """
        bare, _, number = name.rpartition("_")
        return super().get_dim(bare if number.isdigit() else name)

    def _names_of_layers(self, *names: str) -> list[str]:
        return [f"{name}_{index}" for index in range(self.num_layers) for name in names]

    def _check_states(self, given: Iterable[str]) -> None:
        """Refuse names that are no states or contexts, and those that are missing."""
        known = [*self.step_states(), *self.step_contexts()]
        for name in given:
            if name not in known:
                raise TypeError(
                    f"{self.path}.step: unexpected argument {name!r}.{nearest_name(name, known)}"
                )
        missing = [name for name in known if name not in given and name != "attended_mask"]
        if missing:
            raise TypeError(
                f"{self.path}.step: missing {', '.join(missing)}. States come from "
                "`initial_states` or the step before, contexts from `preprocess`."
            )
