"""Normalize each example by statistics of its own: layer, group and root-mean-square norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, lengths_of
from bricks.base import application, lazy
from bricks.checks import (
    check_at_run_time,
    check_epsilon,
    check_ndim,
    check_sizes,
    describe,
)
from bricks.conv.geometry import check_mask, keep_valid
from bricks.initialization import Constant
from bricks.interfaces import Feedforward, RNGMixin, draw_parameter
from bricks.roles import BIAS, PARAMETER, add_role
from bricks.utils import shared_floatx

__all__ = ["GroupNormalization", "LayerNormalization", "RMSNormalization"]


def moments(
    variable: Variable, axes: Sequence[int], valid: Variable | None = None
) -> tuple[Variable, Variable]:
    """Mean and variance over some axes.

    The variance is the mean of squared differences from the mean, never a difference of squares,
    which would be rounding noise where the mean is far from 0.

    Parameters
    ----------
    variable : Variable
        Floating-point numbers of any shape.
    axes : sequence of int
        What to average over.
    valid : Variable of truth values, optional
        Which elements count, of as many axes, those of length 1 stretched.

    Returns
    -------
    mean, variance : Variable
        With the same axes, those averaged over of length 1; 0 where nothing counts.
    """
    axes = list(axes)
    if valid is None:
        mean = tensor.mean(variable, axis=axes, keepdims=True)
        return mean, tensor.mean((variable - mean) ** 2, axis=axes, keepdims=True)
    one, zero = (numpy.array(number, variable.dtype) for number in (1, 0))
    count = tensor.sum(tensor.switch(valid, one, zero), axis=axes, keepdims=True)
    for axis in axes:
        if valid.type.shape[axis] == 1:
            length = tensor.as_tensor_variable(lengths_of(variable)[axis])
            count = count * length.astype(variable.dtype)
    count = tensor.maximum(count, one)
    mean = tensor.sum(tensor.switch(valid, variable, zero), axis=axes, keepdims=True) / count
    squares = tensor.switch(valid, (variable - mean) ** 2, zero)
    return mean, tensor.sum(squares, axis=axes, keepdims=True) / count


class _Scaled(RNGMixin, Feedforward):
    """What the normalizations of single examples share: learned scales and shifts."""

    def __init__(
        self,
        epsilon: float,
        scale_init: Any,
        shift_init: Any,
        learn_scale: bool,
        learn_shift: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.scale_init = Constant(1) if scale_init is None else scale_init
        self.shift_init = Constant(0) if shift_init is None else shift_init
        self.learn_scale = learn_scale
        self.learn_shift = learn_shift
        self.scale: Any = None
        self.shift: Any = None

    def _allocate_both(self, shape: tuple[int, ...]) -> None:
        check_epsilon(self, self.epsilon)
        self.scale = self._add("scale", shape, PARAMETER) if self.learn_scale else None
        self.shift = self._add("shift", shape, BIAS) if self.learn_shift else None

    def _add(self, name: str, shape: tuple[int, ...], role: Any) -> Any:
        parameter = shared_floatx(numpy.full(shape, numpy.nan), name=name, shape=shape)
        add_role(parameter, role)
        self.parameters.append(parameter)
        return parameter

    def _initialize(self) -> None:
        for name, parameter in {"shift_init": self.shift, "scale_init": self.scale}.items():
            if parameter is not None:
                draw_parameter(self, name, parameter)  # type: ignore[arg-type]

    def _scale_and_shift(self, variable: Variable, *pattern: Any) -> Variable:
        """Apply what is learned, its axes ordered by a pattern of `dimshuffle`."""
        if self.scale is not None:
            variable = variable * self.scale.dimshuffle(*pattern)
        return variable if self.shift is None else variable + self.shift.dimshuffle(*pattern)

    def _inverse_root(self, variance: Variable) -> Variable:
        return 1 / tensor.sqrt(variance + numpy.array(self.epsilon, variance.dtype))


class LayerNormalization(_Scaled):
    """Normalize the features of each example to mean 0 and variance 1, then scale and shift them.

    Parameters
    ----------
    input_dim : int or tuple of int
        Features on the last axis; or lengths of several last axes, over all of which the mean is
        taken. Needed for allocation.
    epsilon : float
        Added to the variance.
    scale_init, shift_init : NdarrayInitialization, optional
        How scales and shifts are drawn; ones and zeros by default.
    learn_scale, learn_shift : bool
        Whether there are scales and shifts.
    **kwargs
        For `RNGMixin`.

    Notes
    -----
    It needs no mask: each position has its own mean.

    References
    ----------
    J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer normalization", 2016.

    Examples
    --------
    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> normalization = LayerNormalization(2)
    >>> normalization.initialize()
    >>> x = tensor.tensor3("x")                                # any axes, the features last
    >>> y = xla.function([x], normalization.apply(x))
    >>> y(numpy.array([[[1, 3]]], "float32")).round(2).tolist()
    [[[-1.0, 1.0]]]
    """

    @lazy(allocation=["input_dim"])
    def __init__(
        self,
        input_dim: Any,
        epsilon: float = 1e-5,
        scale_init: Any = None,
        shift_init: Any = None,
        learn_scale: bool = True,
        learn_shift: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(epsilon, scale_init, shift_init, learn_scale, learn_shift, **kwargs)
        self.input_dim = input_dim

    @property
    def output_dim(self) -> Any:
        """Features of the output, which are those of the input."""
        return self.input_dim

    @output_dim.setter
    def output_dim(self, value: Any) -> None:
        self.input_dim = value

    @property
    def _shape(self) -> tuple[int, ...]:
        given = self.input_dim
        return tuple(given) if isinstance(given, tuple | list) else (given,)

    def _allocate(self) -> None:
        check_sizes(self, **{f"input_dim[{i}]": size for i, size in enumerate(self._shape)})
        self._allocate_both(self._shape)

    @application(inputs=["input_"], outputs=["output"])
    def apply(self, input_: Variable) -> Variable:
        """Normalize.

        Parameters
        ----------
        input_ : Variable of shape (..., input_dim)
            Integers are taken as floating-point numbers.

        Returns
        -------
        Variable of shape (..., input_dim)
        """
        check_ndim(self.apply.path, len(self._shape), input_=input_)
        _check_last_axes(self, input_, self._shape)
        return self._scale_and_shift(self._normalize(as_float(input_)), *range(len(self._shape)))

    def _normalize(self, input_: Variable) -> Variable:
        mean, variance = moments(input_, range(input_.ndim - len(self._shape), input_.ndim))
        return (input_ - mean) * self._inverse_root(variance)

    def get_dim(self, name: str) -> Any:
        """Features of ``'input_'`` or ``'output'``; see `Brick.get_dim`."""
        return self.input_dim if name in ("input_", "output") else super().get_dim(name)


class RMSNormalization(LayerNormalization):
    """Divide the features of each example by the root of their mean square, then scale them.

    Parameters
    ----------
    input_dim : int or tuple of int
        As for `LayerNormalization`. Needed for allocation.
    epsilon : float
        Added to the mean square.
    scale_init : NdarrayInitialization, optional
        How scales are drawn; ones by default.
    learn_scale : bool
        Whether there are scales.
    **kwargs
        For `RNGMixin`.

    References
    ----------
    B. Zhang and R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.
    """

    @lazy(allocation=["input_dim"])
    def __init__(
        self,
        input_dim: Any,
        epsilon: float = 1e-6,
        scale_init: Any = None,
        learn_scale: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_dim, epsilon, scale_init, None, learn_scale, False, **kwargs)

    def _normalize(self, input_: Variable) -> Variable:
        axes = list(range(input_.ndim - len(self._shape), input_.ndim))
        return input_ * self._inverse_root(tensor.mean(input_**2, axis=axes, keepdims=True))


class GroupNormalization(_Scaled):
    """Normalize groups of channels of each example, then scale and shift each channel.

    With one group it is the layer normalization of images; with a group for each channel, the
    instance normalization.

    Parameters
    ----------
    num_groups : int
        Groups of neighbouring channels; it divides their number. Needed for allocation.
    num_channels : int
        Channels of the input. Needed for allocation.
    image_size : tuple of int or None, optional
        Lengths of the input behind its channels, as far as they are known, for `get_dim`.
    epsilon : float
        Added to the variance.
    scale_init, shift_init : NdarrayInitialization, optional
        How scales and shifts are drawn; ones and zeros by default.
    learn_scale, learn_shift : bool
        Whether there are scales and shifts.
    **kwargs
        For `RNGMixin`.

    References
    ----------
    Y. Wu and K. He, "Group normalization", ECCV 2018.
    """

    @lazy(allocation=["num_groups", "num_channels"])
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        image_size: Any = None,
        epsilon: float = 1e-5,
        scale_init: Any = None,
        shift_init: Any = None,
        learn_scale: bool = True,
        learn_shift: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(epsilon, scale_init, shift_init, learn_scale, learn_shift, **kwargs)
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.image_size = image_size

    @property
    def num_output_channels(self) -> Any:
        """Channels of the output, which are those of the input."""
        return self.num_channels

    @property
    def input_dim(self) -> Any:
        """Channels and lengths of the input; None where they are not known."""
        given = self.image_size
        return (self.num_channels, *(given if isinstance(given, tuple | list) else (given,)))

    @property
    def output_dim(self) -> Any:
        """Channels and lengths of the output, which are those of the input."""
        return self.input_dim

    def _allocate(self) -> None:
        check_sizes(self, num_groups=self.num_groups, num_channels=self.num_channels)
        if self.num_channels % self.num_groups:
            raise ValueError(
                f"{self.path} cannot be allocated: `num_groups`, {self.num_groups}, must divide "
                f"num_channels={self.num_channels}."
            )
        self._allocate_both((self.num_channels,))

    @application(inputs=["input_", "mask"], outputs=["output"])
    def apply(self, input_: Variable, mask: Variable | None = None) -> Variable:
        """Normalize.

        Parameters
        ----------
        input_ : Variable of shape (batch, channel, ...)
            Integers are taken as floating-point numbers.
        mask : Variable of shape (batch, time), optional
            0 where an element shall not count; time is the first axis behind the channels.

        Returns
        -------
        Variable of shape (batch, channel, ...)
            0 where the mask is 0.
        """
        check_ndim(self.apply.path, 2 if mask is None else 3, input_=input_)
        words = f"{self.apply.path}: `input_` must have {self.num_channels} channels on axis 1"
        way_out = "Reorder its axes by `dimshuffle`, or set `num_channels`."
        if input_.type.shape[1] not in (None, self.num_channels):
            raise ValueError(f"{words}; got {describe(input_)}. {way_out}")
        wanted = [None, self.num_channels, *[None] * (input_.ndim - 2)]
        input_ = as_float(check_at_run_time(f"{words}. {way_out}", input_, wanted))
        valid = None
        if mask is not None:
            check_mask(self.apply, mask, input_)
            input_ = keep_valid(input_, mask)
            valid = tensor.neq(mask, 0).dimshuffle(0, "x", "x", 1, *["x"] * (input_.ndim - 3))
        output = self._normalize(input_, valid)
        output = self._scale_and_shift(output, "x", 0, *["x"] * (input_.ndim - 2))
        return output if mask is None else keep_valid(output, mask)

    def _normalize(self, input_: Variable, valid: Variable | None) -> Variable:
        batch, _, *lengths = lengths_of(input_)
        of_group = self.num_channels // self.num_groups
        grouped = input_.reshape((batch, self.num_groups, of_group, *lengths))
        mean, variance = moments(grouped, range(2, grouped.ndim), valid)
        normalized = (grouped - mean) * self._inverse_root(variance)
        return normalized.reshape((batch, self.num_channels, *lengths))

    def get_dim(self, name: str) -> Any:
        """Channels and lengths of ``'input_'`` or ``'output'``, 0 for ``'mask'``.

        Parameters
        ----------
        name : str
            Of the variable; see `Brick.get_dim`.

        Returns
        -------
        tuple of int or None, or 0
        """
        if name in ("input_", "output"):
            return self.input_dim
        return 0 if name == "mask" else super().get_dim(name)


def _check_last_axes(brick: Any, input_: Variable, shape: tuple[int, ...]) -> None:
    """Refuse an input whose last axes are known to have other lengths."""
    pairs = zip(input_.type.shape[-len(shape) :], shape, strict=True)
    if not all(known in (None, wanted) for known, wanted in pairs):
        raise ValueError(
            f"{brick.path}.apply: `input_` must have the lengths {shape} on its last "
            f"{'axis' if len(shape) == 1 else 'axes'}; got {describe(input_)}. Set `input_dim`, or "
            "reshape the input first."
        )
