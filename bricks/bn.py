"""Batch normalization: by statistics of the batch in training, of the population afterwards.

A brick is applied in the mode of inference unless it is told otherwise. For training, either apply
it inside of ``with batch_normalization(brick):`` or derive the graph for training from the one for
inference by :func:`bricks.graph.apply_batch_normalization`. What keeps the population's statistics
up to date are updates that the algorithm gets; see :func:`bricks.graph.batch_normalization`.

The statistics are no parameters. They are the brick's `persistent` variables, which a model finds
(`Model.get_persistent_dict`), a checkpoint holds, and `Load` restores; `Model.get_parameter_values`
does not have them.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import Any

import numpy
from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.annotations import add_annotation
from bricks.base import Brick, application, lazy
from bricks.checks import (
    check_at_run_time,
    check_epsilon,
    check_ndim,
    check_sizes,
    describe,
)
from bricks.initialization import Constant
from bricks.interfaces import Feedforward, RNGMixin, draw_parameter
from bricks.normalization import moments
from bricks.roles import (
    BATCH_NORM_DIVISOR,
    BATCH_NORM_MINIBATCH_ESTIMATE,
    BATCH_NORM_OFFSET,
    BATCH_NORM_POPULATION_MEAN,
    BATCH_NORM_POPULATION_STDEV,
    BATCH_NORM_SCALE_PARAMETER,
    BATCH_NORM_SHIFT_PARAMETER,
    add_role,
)
from bricks.sequences import MLP, Sequence
from bricks.utils import shared_floatx

__all__ = ["BatchNormalization", "BatchNormalizedMLP", "SpatialBatchNormalization"]


class BatchNormalization(RNGMixin, Feedforward):
    """Normalize each feature to mean 0 and variance 1, then scale and shift it.

    Parameters
    ----------
    input_dim : int or tuple of int
        Features on the last axis of the input, where the mean is taken over all others. Or the
        lengths of all axes behind the batch. Needed for allocation.
    broadcastable : tuple of bool, optional
        Over which axes of `input_dim` the mean is taken too. Over none by default; then each
        element has a mean of its own.
    conserve_memory : bool
        As in Blocks; the compiler decides what is kept, so it makes no difference.
    epsilon : float
        Added to the variance.
    scale_init, shift_init : NdarrayInitialization, optional
        How scales and shifts are drawn; ones and zeros by default.
    mean_only : bool
        Whether only the mean is taken away, and nothing is scaled.
    learn_scale, learn_shift : bool
        Whether there are scales and shifts.
    **kwargs
        For `RNGMixin`.

    Attributes
    ----------
    scale, shift : SharedVariable or None
        The parameters, of the lengths of `input_dim` with 1 where the mean is taken.
    population_mean, population_stdev : SharedVariable
        The statistics of the population, of the same shape: 0 and 1 at first. The standard
        deviation has `epsilon` in it; there is none with `mean_only`.

    Notes
    -----
    **Masks** say what counts in the statistics: 0 leaves out. Their axes are the first of those
    that the mean is taken over. The output is 0 where the mask is.

    References
    ----------
    S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015. T. Salimans and D. P. Kingma,
    "Weight normalization", NeurIPS 2016, for `mean_only`.

    Examples
    --------
    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> normalization = BatchNormalization(1)
    >>> normalization.initialize()
    >>> x = tensor.matrix("x")
    >>> inference = normalization.apply(x)
    >>> with normalization:
    ...     training = normalization.apply(x)
    >>> both = xla.function([x], [inference, training])(numpy.array([[1], [3]], "float32"))
    >>> [value.round(2).ravel().tolist() for value in both]
    [[1.0, 3.0], [-1.0, 1.0]]
    """

    @lazy(allocation=["input_dim"])
    def __init__(
        self,
        input_dim: Any,
        broadcastable: SequenceOf[bool] | None = None,
        conserve_memory: bool = True,
        epsilon: float = 1e-4,
        scale_init: Any = None,
        shift_init: Any = None,
        mean_only: bool = False,
        learn_scale: bool = True,
        learn_shift: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.input_dim = input_dim
        self.broadcastable = broadcastable
        self.conserve_memory = conserve_memory
        self.epsilon = epsilon
        self.scale_init = Constant(1) if scale_init is None else scale_init
        self.shift_init = Constant(0) if shift_init is None else shift_init
        self.mean_only = mean_only
        self.learn_scale = learn_scale
        self.learn_shift = learn_shift
        self._training_mode: list[bool] = []
        self.scale: Any = None
        self.shift: Any = None
        self.population_mean: Any = None
        self.population_stdev: Any = None

    def __enter__(self) -> BatchNormalization:
        self._training_mode.append(True)
        return self

    def __exit__(self, *exception: object) -> None:
        self._training_mode.pop()

    @property
    def output_dim(self) -> Any:
        """Features or lengths of the output, which are those of the input."""
        return self.input_dim

    @output_dim.setter
    def output_dim(self, value: Any) -> None:
        self.input_dim = value

    @property
    def num_channels(self) -> Any:
        """Length of the first axis behind the batch; None if it is not known."""
        return self._lengths[0] if self._lengths else None

    @num_channels.setter
    def num_channels(self, value: int) -> None:
        self.input_dim = (value, *self._lengths[1:])

    @property
    def image_size(self) -> Any:
        """Lengths of the axes behind that; None where they are not known."""
        return self._lengths[1:]

    @image_size.setter
    def image_size(self, value: Any) -> None:
        lengths = tuple(value) if isinstance(value, tuple | list) else (value,)
        self.input_dim = (self.num_channels, *lengths)

    @property
    def num_output_channels(self) -> Any:
        """Channels of the output, which are those of the input."""
        return self.num_channels

    @property
    def persistent(self) -> list[Any]:
        """The variables that are no parameters and belong to the model: the statistics."""
        return [one for one in (self.population_mean, self.population_stdev) if one is not None]

    @property
    def normalization_axes(self) -> tuple[int, ...]:
        """The axes of a batch of shape (batch, *input_dim) over which the mean is taken."""
        return (0, *(i for i, stretched in enumerate(self._stretched, 1) if stretched))

    @property
    def _lengths(self) -> tuple[Any, ...]:
        given = self.input_dim
        if isinstance(given, tuple | list):
            return tuple(given)
        return (given,) if given else ()

    @property
    def _stretched(self) -> tuple[bool, ...]:
        """Over which axes of `input_dim` the mean is taken."""
        if self.broadcastable is None:
            return (False,) * len(self._lengths)
        if len(self.broadcastable) != len(self._lengths):
            raise ValueError(
                f"{self.path}: `broadcastable` must have a truth value for each of the "
                f"{len(self._lengths)} axes of `input_dim`, {self.input_dim!r}; got "
                f"{self.broadcastable!r}."
            )
        return tuple(map(bool, self.broadcastable))

    def _allocate(self) -> None:
        axes = enumerate(zip(self._lengths, self._stretched, strict=True))
        check_epsilon(self, self.epsilon)
        own = {f"input_dim[{i}]": length for i, (length, stretched) in axes if not stretched}
        check_sizes(self, **own)
        if not self._lengths:
            check_sizes(self, input_dim=self.input_dim)
        if self.learn_scale and not self.mean_only:
            self.scale = self._add("batch_norm_scale", numpy.nan, BATCH_NORM_SCALE_PARAMETER)
            self.parameters.append(self.scale)
        if self.learn_shift:
            self.shift = self._add("batch_norm_shift", numpy.nan, BATCH_NORM_SHIFT_PARAMETER)
            self.parameters.append(self.shift)
        self.population_mean = self._add("population_mean", 0, BATCH_NORM_POPULATION_MEAN)
        if not self.mean_only:
            self.population_stdev = self._add("population_stdev", 1, BATCH_NORM_POPULATION_STDEV)
        for statistic in self.persistent:
            add_annotation(statistic, self)

    def _add(self, name: str, value: float, role: Any) -> Any:
        pairs = zip(self._lengths, self._stretched, strict=True)
        shape = tuple(1 if stretched else length for length, stretched in pairs)
        variable = shared_floatx(numpy.full(shape, value), name=name, shape=shape)
        add_role(variable, role)
        return variable

    def _initialize(self) -> None:
        for name, parameter in {"shift_init": self.shift, "scale_init": self.scale}.items():
            if parameter is not None:
                draw_parameter(self, name, parameter)  # type: ignore[arg-type]
        for statistic, value in zip(self.persistent, (0, 1), strict=False):
            shape = statistic.get_value(borrow=True).shape
            statistic.set_value(numpy.full(shape, value, statistic.dtype))

    @application(inputs=["input_", "mask"], outputs=["output"])
    def apply(
        self, input_: Variable, mask: Variable | None = None, application_call: Any = None
    ) -> Variable:
        """Normalize, in the mode of training inside of ``with brick:``, else in that of inference.

        Parameters
        ----------
        input_ : Variable of shape (batch, ...)
            The last axis has `input_dim` features, or the axes behind the batch the lengths
            `input_dim`. Integers are taken as floating-point numbers.
        mask : Variable of shape (batch, ...), optional
            0 for what shall not count.

        Returns
        -------
        Variable of the same shape
            0 where the mask is 0.
        """
        input_ = as_float(self._check_input(input_), self.population_mean.dtype)
        axes, pattern = self._places(input_)
        valid = None if mask is None else self._align(mask, input_, axes)
        if self._training_mode:
            mean, variance = moments(input_, axes, valid)
            stdev = tensor.sqrt(variance + numpy.array(self.epsilon, variance.dtype))
            add_role(mean, BATCH_NORM_MINIBATCH_ESTIMATE)
            add_role(stdev, BATCH_NORM_MINIBATCH_ESTIMATE)
        else:
            mean = self.population_mean.dimshuffle(*pattern)
            stdev = None if self.mean_only else self.population_stdev.dimshuffle(*pattern)
        self._record(application_call, pattern, mean, None if self.mean_only else stdev)
        output = input_ - mean
        if not self.mean_only:
            scale = 1 if self.scale is None else self.scale.dimshuffle(*pattern)
            output = output * (scale / stdev)
        if self.shift is not None:
            output = output + self.shift.dimshuffle(*pattern)
        zero = numpy.array(0, output.dtype)
        return output if valid is None else tensor.switch(valid, output, zero)

    def _check_input(self, input_: Variable) -> Variable:
        """Refuse an input of another shape, now or at run time."""
        has_lengths = isinstance(self.input_dim, tuple | list)
        check_ndim(self.apply.path, 1 if has_lengths else 2, input_=input_)
        in_front = 1 if has_lengths else input_.ndim - 1
        wanted = (*[None] * in_front, *self._lengths)
        shape = ", ".join("?" if one is None else str(one) for one in self._lengths)
        axes = "batch" if has_lengths else "..."
        words = f"{self.apply.path}: `input_` must have the shape ({axes}, {shape})"
        way_out = "Set `input_dim`, or reshape the input first."
        pairs = zip(input_.type.shape, wanted, strict=False)
        fits = input_.ndim == len(wanted)
        if not fits or not all(None in pair or pair[0] == pair[1] for pair in pairs):
            raise ValueError(f"{words}; got {describe(input_)}. {way_out}")
        return check_at_run_time(f"{words}. {way_out}", input_, wanted)

    def _places(self, input_: Variable) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Say which axes are averaged over, and where the axes of the statistics belong."""
        if isinstance(self.input_dim, tuple | list):
            return self.normalization_axes, ("x", *range(len(self._lengths)))
        num_axes = input_.ndim if any(self._stretched) else input_.ndim - 1
        return tuple(range(num_axes)), (*["x"] * (input_.ndim - 1), 0)

    def _align(self, mask: Variable, input_: Variable, axes: tuple[int, ...]) -> Variable:
        """Give a mask the axes of the input, and truth values."""
        own = axes[: mask.ndim]
        lengths = zip(mask.type.shape, (input_.type.shape[axis] for axis in own), strict=False)
        fits = 0 < mask.ndim <= len(axes)
        if not fits or not all(None in pair or pair[0] == pair[1] for pair in lengths):
            raise ValueError(
                f"{self.apply.path}: `mask` must have the axes {list(axes)} of `input_`, or the "
                f"first of them, of the same lengths; got {describe(mask)} for {describe(input_)}."
            )
        pattern = [own.index(axis) if axis in own else "x" for axis in range(input_.ndim)]
        return tensor.neq(mask, 0).dimshuffle(*pattern)

    def _record(
        self, application_call: Any, pattern: tuple[Any, ...], mean: Variable, stdev: Any
    ) -> None:
        """Let the application call know what it normalized by, in the shape of the statistics."""
        # A truth value: the list of modes changes later.
        application_call.metadata["training_mode"] = bool(self._training_mode)
        axes = [place for place, axis in enumerate(pattern) if axis != "x"]
        for name, role, statistic in (
            ("offset", BATCH_NORM_OFFSET, mean),
            ("divisor", BATCH_NORM_DIVISOR, stdev),
        ):
            application_call.metadata[name] = None
            if statistic is None:
                continue
            add_role(statistic, role)
            add_annotation(statistic, self)
            add_annotation(statistic, application_call)
            application_call.metadata[name] = statistic.dimshuffle(*axes)

    def get_dim(self, name: str) -> Any:
        """`input_dim` for ``'input_'`` and ``'output'``, 0 for ``'mask'``.

        Parameters
        ----------
        name : str
            Of the variable; see `Brick.get_dim`.

        Returns
        -------
        int or tuple of int
        """
        if name in ("input_", "output"):
            return self.input_dim
        return 0 if name == "mask" else super().get_dim(name)


class SpatialBatchNormalization(BatchNormalization):
    """Batch normalization of images, volumes or sequences: one mean for each channel.

    Parameters
    ----------
    input_dim : tuple of int
        Channels and the lengths of the axes behind them, None for those that are not known. In a
        `ConvolutionalSequence` it is given by the layer before. Needed for allocation.
    **kwargs
        For `BatchNormalization`; `broadcastable` follows from `input_dim`.

    Notes
    -----
    A mask of shape (batch, time) leaves elements of sequences of shape (batch, channel, time) out,
    one of shape (batch, height, width) those of images.

    Examples
    --------
    >>> from bricks.conv import Convolutional, ConvolutionalSequence
    >>> normalization = SpatialBatchNormalization()
    >>> layers = ConvolutionalSequence(
    ...     [Convolutional((3, 3), 8, use_bias=False), normalization],
    ...     num_channels=3, image_size=(9, 9),
    ... )
    >>> layers.allocate()
    >>> normalization.input_dim, normalization.population_mean.type.shape
    ((8, 7, 7), (8, 1, 1))
    """

    @lazy(allocation=["input_dim"])
    def __init__(self, input_dim: Any, **kwargs: Any) -> None:
        if input_dim and not isinstance(input_dim, tuple | list):
            raise ValueError(
                f"{type(self).__name__}: `input_dim` must be the channels and the lengths behind "
                f"them, as in (8, 28, 28), with None for those not known; got {input_dim!r}."
            )
        super().__init__(input_dim, **kwargs)

    @property
    def _stretched(self) -> tuple[bool, ...]:
        return tuple(axis > 0 for axis in range(len(self._lengths)))

    def _allocate(self) -> None:
        if len(self._lengths) < 2:
            raise ValueError(
                f"{self.path} cannot be allocated: `input_dim` must have a length, or None, for "
                f"each axis behind the channels; got {self.input_dim!r}. Set `image_size` of the "
                "sequence that it is in, for instance to (None, None)."
            )
        super()._allocate()


class BatchNormalizedMLP(MLP):
    """A multi-layer perceptron whose linear maps are each followed by a batch normalization.

    Parameters
    ----------
    activations : list of Brick, bound application or None
        One for each layer, applied to what is normalized; None for a layer without one.
    dims : list of int
        Features of the input and of each layer. Needed for allocation.
    prototype : Brick, optional
        As for `MLP`.
    conserve_memory : bool
        As in Blocks; it makes no difference.
    epsilon : float
        Added to the variances.
    mean_only : bool
        Whether only means are taken away, and nothing is scaled.
    learn_scale : bool
        Whether there are scales.
    learn_shift : bool
        Whether there are shifts.
    use_bias : bool
        Whether the linear maps have biases, although each layer is shifted anyway.
    **kwargs
        For `MLP`.

    Examples
    --------
    >>> from bricks import Rectifier, Softmax
    >>> mlp = BatchNormalizedMLP([Rectifier(), Softmax()], [784, 100, 10])
    >>> [type(child).__name__ for child in mlp.activations[0].children]
    ['BatchNormalization', 'Rectifier']
    """

    @lazy(allocation=["dims"])
    def __init__(
        self,
        activations: SequenceOf[Any],
        dims: SequenceOf[int],
        prototype: Brick | None = None,
        *,
        conserve_memory: bool = True,
        epsilon: float = 1e-4,
        mean_only: bool = False,
        learn_scale: bool = True,
        learn_shift: bool = True,
        use_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        options: dict[str, Any] = {
            "conserve_memory": conserve_memory,
            "epsilon": epsilon,
            "mean_only": mean_only,
            "learn_scale": learn_scale,
            "learn_shift": learn_shift,
        }
        self.normalizations = [BatchNormalization(**options) for _ in activations]
        normalized = [
            Sequence(
                [normalization, *([] if activation is None else [activation])],
                name=f"batch_norm_activation_{index}",
            )
            for index, (normalization, activation) in enumerate(
                zip(self.normalizations, activations, strict=True)
            )
        ]
        super().__init__(normalized, dims, prototype, use_bias=use_bias, **kwargs)

    @property
    def conserve_memory(self) -> bool:
        """As in Blocks; it makes no difference."""
        return self.normalizations[0].conserve_memory

    @conserve_memory.setter
    def conserve_memory(self, value: bool) -> None:
        for normalization in self.normalizations:
            normalization.conserve_memory = value

    def _push_allocation_config(self) -> None:
        super()._push_allocation_config()
        for normalization, dim in zip(self.normalizations, self.dims[1:], strict=True):
            normalization.input_dim = dim
