"""Convolutions, poolings and what stands between them, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import lengths_of
from bricks.base import Brick, application, lazy
from bricks.checks import check_ndim
from bricks.conv.geometry import check_mask, keep_valid
from bricks.interfaces import Feedforward, Initializable
from bricks.sequences import Sequence


class ConvolutionalSequence(Sequence, Initializable, Feedforward):
    """Convolutions, poolings, normalizations and activations, one after the other.

    Parameters
    ----------
    layers : list of Brick or bound application
        What to apply. Those that have `num_channels` and `image_size` are told what they get from
        the layer before.
    num_channels : int
        Channels of the input. Needed for allocation.
    batch_size : int, optional
        Examples in a batch; pushed to the layers if it is given.
    image_size : tuple of int or None, optional
        Lengths of the input behind its channels, as far as they are known.
    border_mode : str, int or tuple, optional
        Pushed to the layers that have one, if it is given.
    tied_biases : bool, optional
        Pushed to the layers that have it, if it is given.
    **kwargs
        For `Initializable`. `use_bias` reaches the layers only if it is given.

    Examples
    --------
    >>> from bricks import Rectifier
    >>> from bricks.conv import Convolutional, ConvolutionalSequence, MaxPooling
    >>> features = ConvolutionalSequence(
    ...     [Convolutional((5, 5), 6, name="first"), Rectifier(), MaxPooling((2, 2))],
    ...     num_channels=1, image_size=(28, 28),
    ... )
    >>> features.get_dim("output")
    (6, 12, 12)
    """

    @lazy(allocation=["num_channels"])
    def __init__(
        self,
        layers: Iterable[Any],
        num_channels: int,
        batch_size: int | None = None,
        image_size: Any = None,
        border_mode: Any = None,
        tied_biases: bool | None = None,
        **kwargs: Any,
    ) -> None:
        self.layers = list(layers)
        super().__init__(self.layers, **kwargs)
        self.num_channels = num_channels
        self.batch_size = batch_size
        self.image_size = image_size
        self.border_mode = border_mode
        self.tied_biases = tied_biases

    @property
    def input_dim(self) -> Any:
        """Channels and lengths of the input; None where they are not known."""
        return self.get_dim("input_")

    @property
    def output_dim(self) -> Any:
        """Channels and lengths of the output; None where they are not known."""
        return self.get_dim("output")

    @property
    def num_output_channels(self) -> Any:
        """Channels of the output."""
        return self._push_sizes()[0]

    @property
    def _bricks(self) -> list[Any]:
        return [method.brick for method in self.application_methods]

    def _push_allocation_config(self) -> None:
        options = {"border_mode": self.border_mode, "tied_biases": self.tied_biases}
        given = {name: value for name, value in options.items() if value is not None}
        if "use_bias" in self.__dict__:
            given["use_bias"] = self.use_bias
        if self.batch_size is not None:
            given["batch_size"] = self.batch_size
        for brick in self._bricks:
            for name, value in given.items():
                if hasattr(brick, name):
                    setattr(brick, name, value)
        self._push_sizes()

    def _push_sizes(self) -> tuple[Any, ...]:
        """Tell each layer what it gets; return what comes out of the last."""
        num_channels, image_size = self.num_channels, self.image_size
        for brick in self._bricks:
            # Of the class: some work it out from sizes that are told only here.
            if not hasattr(type(brick), "num_output_channels"):
                continue
            brick.num_channels = num_channels
            if image_size is not None:
                brick.image_size = image_size
            if isinstance(brick, ConvolutionalSequence):
                brick._push_allocation_config()
            num_channels, *image_size = brick.get_dim("output")
            image_size = tuple(image_size)
        lengths = image_size if isinstance(image_size, tuple | list) else (image_size,)
        return (num_channels, *lengths)

    @application(inputs=["input_", "mask"], outputs=["output"])
    def apply(self, input_: Variable, mask: Variable | None = None) -> Variable:
        """Apply all layers.

        Parameters
        ----------
        input_ : Variable of shape (batch, channel, height, width)
            Or what else the first layer takes.
        mask : Variable of shape (batch, time), optional
            0 behind the end of each sequence; time is the first axis behind the channels. Each
            layer that takes one gets its own.

        Returns
        -------
        Variable of shape (batch, channel, height, width)
            Or what else the last layer gives; 0 behind the end of each sequence.
        """
        if mask is not None:
            check_mask(self.apply, mask, input_)
        output = input_
        for method in self.application_methods:
            takes_mask = mask is not None and "mask" in getattr(method, "inputs", ())
            output = method(output, mask=mask) if takes_mask else method(output)
            mask = _mask_behind(method.brick, mask)
        return output if mask is None or output.ndim < 3 else keep_valid(output, mask)

    @apply.property("inputs")
    def apply_inputs(self) -> list[str]:
        """Give the names of the inputs.

        Returns
        -------
        list of str
            ``'input_'`` and ``'mask'``.
        """
        return ["input_", "mask"]

    @apply.property("outputs")
    def apply_outputs(self) -> list[str]:
        """Give the name of the output.

        Returns
        -------
        list of str
            ``'output'``.
        """
        return ["output"]

    @application(inputs=["mask"], outputs=["output_mask"])
    def output_mask(self, mask: Variable) -> Variable:
        """Give the mask of the output.

        Parameters
        ----------
        mask : Variable of shape (batch, time)
            Of the input.

        Returns
        -------
        Variable of shape (batch, time)
            That of the last layer, of the same dtype.
        """
        for brick in self._bricks:
            mask = _mask_behind(brick, mask)
        return mask

    def get_dim(self, name: str) -> Any:
        """Channels and lengths of ``'input_'`` or ``'output'``; see `Brick.get_dim`.

        Parameters
        ----------
        name : str
            ``'input_'`` or ``'output'``, or that of a mask.

        Returns
        -------
        tuple of int or None
            None for lengths that are not known. 0 for a mask.
        """
        if name == "input_":
            image_size = self.image_size
            lengths = image_size if isinstance(image_size, tuple | list) else (image_size,)
            return (self.num_channels, *lengths)
        if name == "output":
            return self._push_sizes()
        return 0 if name in ("mask", "output_mask") else super().get_dim(name)


def _mask_behind(brick: Any, mask: Any) -> Any:
    """Give the mask of what a layer makes."""
    return mask if mask is None or not hasattr(brick, "output_mask") else brick.output_mask(mask)


class Flattener(Brick):
    """Make one axis of all but the first.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.conv import Flattener
    >>> Flattener().apply(tensor.TensorType("float32", (None, 3, 4, 4))("images")).type.shape
    (None, 48)
    """

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Flatten.

        Parameters
        ----------
        input_ : Variable of shape (batch, ...)

        Returns
        -------
        Variable of shape (batch, feature)
            The features in the order of the axes.
        """
        check_ndim(self.apply.path, 2, input_=input_)
        batch, *lengths = lengths_of(input_)
        # Not -1, which says nothing of a batch without examples.
        return input_.reshape((batch, prod(lengths)), ndim=2)
