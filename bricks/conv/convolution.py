"""Convolutions, and the transposed ones that make images larger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aesara import tensor
from aesara.raise_op import Assert
from aesara.tensor.nnet import abstract_conv
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, lengths_of
from bricks.base import application, lazy
from bricks.checks import check_sizes
from bricks.conv.geometry import (
    Window,
    border_pairs,
    check_fit,
    check_fit_at_run_time,
    check_images,
    check_mask,
    keep_valid,
    lengths_in_mask,
    mask_of_lengths,
    merge_lengths,
    per_axis,
    with_lengths,
)
from bricks.interfaces import LinearLike
from bricks.roles import FILTER, add_role
from bricks.simple import allocate_biases, allocate_weights

_WAYS_OUT = "Use a smaller filter or dilation, or a border that adds more, such as 'half'."


class Convolutional(LinearLike):
    """Convolve images, volumes or sequences with learned filters.

    The axes of the input are (batch, channel, height, width); (batch, channel, time) for filters
    with one axis, (batch, channel, depth, height, width) for those with three. As in Blocks, the
    filters are flipped: this is a convolution, not a correlation.

    Parameters
    ----------
    filter_size : tuple of int, or int
        Lengths of the filters: one, two or three. An integer is the length of a filter with one
        axis. Needed for allocation.
    num_filters : int
        Channels of the output. Needed for allocation.
    num_channels : int
        Channels of the input. Needed for allocation.
    batch_size : int, optional
        Examples in a batch. Nothing depends on it: the last batch may be smaller.
    image_size : tuple of int or None, optional
        Lengths of the input behind its channels, as far as they are known. `get_dim` and untied
        biases need them.
    step : int or tuple of int
        From one place of the filters to the next, along all axes or each.
    border_mode : str, int or tuple
        How many zeros are put around the input: none (``'valid'``), half of what the filter
        covers (``'half'``: an odd filter leaves the lengths as they are), all but one (``'full'``),
        all but one before and none after (``'causal'``: nothing depends on what comes later), or
        a number. In a tuple, one of these, or a pair of numbers for both ends, for each axis.
    tied_biases : bool
        Whether the bias of a filter is the same at all places.
    dilation : int or tuple of int
        From one element of the filters to the next, along all axes or each.
    num_groups : int
        Groups of channels that are convolved apart; it divides both numbers of channels.
    **kwargs
        For `Initializable`.

    Notes
    -----
    **Masks.** Batches of sequences of different lengths get a mask of shape (batch, time), where
    time is the first axis behind the channels, and a mask is ones followed by zeros, as `Padding`
    of `fuel_data` makes them. What the mask leaves out counts as the zeros of the border, the
    output is 0 behind the end of each sequence, and each sequence comes out as it would alone;
    `output_mask` gives the mask of the output.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.conv import Convolutional
    >>> from bricks.initialization import Constant, IsotropicGaussian
    >>> convolution = Convolutional(
    ...     (5, 5), num_filters=8, num_channels=3, image_size=(28, 28), step=(2, 2),
    ...     border_mode="half", weights_init=IsotropicGaussian(0.1), biases_init=Constant(0),
    ... )
    >>> convolution.get_dim("output")
    (8, 14, 14)
    >>> convolution.apply(tensor.tensor4("images")).type.shape
    (None, 8, 14, 14)

    A convolution over time, of which nothing looks ahead:

    >>> causal = Convolutional(3, num_filters=8, num_channels=4, border_mode="causal", dilation=2)
    >>> x, mask = tensor.tensor3("x"), tensor.matrix("mask")   # batch, channel, time; batch, time
    >>> causal.apply(x, mask), causal.output_mask(mask)
    (convolutional_apply_output, convolutional_output_mask_output_mask)
    """

    @lazy(allocation=["filter_size", "num_filters", "num_channels"])
    def __init__(
        self,
        filter_size: Any,
        num_filters: int,
        num_channels: int,
        batch_size: int | None = None,
        image_size: Any = None,
        step: Any = 1,
        border_mode: Any = "valid",
        tied_biases: bool = True,
        *,
        dilation: Any = 1,
        num_groups: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.filter_size = filter_size
        self.num_filters = num_filters
        self.num_channels = num_channels
        self.batch_size = batch_size
        self.image_size = image_size
        self.step = step
        self.border_mode = border_mode
        self.tied_biases = tied_biases
        self.dilation = dilation
        self.num_groups = num_groups

    @staticmethod
    def conv2d_impl(input_: Variable, W: Variable, **options: Any) -> Variable:
        """Convolve images; a subclass may do it in another way.

        Parameters
        ----------
        input_ : Variable of shape (batch, channel, height, width)
            Sequences come as images of width 1.
        W : Variable of shape (filter, channel, height, width)
            The filters.
        **options
            ``input_shape``, ``filter_shape``, ``subsample`` (the steps) and ``border_mode``; also
            ``filter_dilation`` and ``num_groups`` where they are not 1. As Aesara's ``conv2d``
            takes them.

        Returns
        -------
        Variable of shape (batch, filter, height, width)
        """
        return abstract_conv.conv2d(input_, W, **options)

    @staticmethod
    def get_output_shape(
        image_shape: Sequence[Any],
        kernel_shape: Sequence[Any],
        border_mode: Any,
        subsample: Sequence[int],
        filter_dilation: Sequence[int] | None = None,
    ) -> tuple[Any, ...]:
        """Compute the shape of the output of a convolution, as `get_dim` does.

        Parameters
        ----------
        image_shape : tuple of int or None
            Of the input: batch, channel and the other axes.
        kernel_shape : tuple of int or None
            Of the filters.
        border_mode : str, int or tuple
            ``'valid'``, ``'half'``, ``'full'``, or numbers or pairs of zeros.
        subsample : tuple of int
            The steps.
        filter_dilation : tuple of int, optional
            The dilations; 1 by default.

        Returns
        -------
        tuple of int or None
            None where a length is not known.
        """
        return abstract_conv.get_conv_output_shape(
            tuple(image_shape), tuple(kernel_shape), border_mode, subsample, filter_dilation
        )

    @property
    def num_output_channels(self) -> Any:
        """Channels of the output."""
        return self.num_filters

    @property
    def _sizes(self) -> tuple[int, ...]:
        """The lengths of the filters."""
        given = self.filter_size
        num_axes = len(given) if isinstance(given, tuple | list) else 1
        if num_axes not in (1, 2, 3):
            raise ValueError(
                f"{self.path}: `filter_size` must have one, two or three lengths; got {given!r}."
            )
        return per_axis(self, "filter_size", num_axes)

    @property
    def _windows(self) -> list[Window]:
        """The filters along each of their axes."""
        sizes = self._sizes
        steps, dilations = (per_axis(self, name, len(sizes)) for name in ("step", "dilation"))
        bare = list(map(Window, sizes, steps, dilations))
        pairs = border_pairs(self, self.border_mode, [window.span for window in bare])
        return [
            window._replace(before=before, after=after)
            for window, (before, after) in zip(bare, pairs, strict=True)
        ]

    @property
    def _image_size(self) -> tuple[int | None, ...]:
        return per_axis(self, "image_size", len(self._sizes), least=None)

    def _filter_shape(self) -> tuple[int, ...]:
        numbers = {"num_filters": self.num_filters, "num_channels": self.num_channels}
        check_sizes(self, **numbers, num_groups=self.num_groups)
        for name, number in numbers.items():
            if number % self.num_groups:
                raise ValueError(
                    f"{self.path} cannot be allocated: `{name}`, {number}, must be a multiple of "
                    f"num_groups={self.num_groups}."
                )
        return (self.num_filters, self.num_channels // self.num_groups, *self._sizes)

    def _allocate(self) -> None:
        self._check_lengths(self.path, self._image_size)
        allocate_weights(self, "W", self._filter_shape())
        add_role(self.W, FILTER)
        if self.use_bias:
            allocate_biases(self, "b", self._bias_shape())

    def _bias_shape(self) -> tuple[int, ...]:
        if self.tied_biases:
            return (self.num_filters,)
        shape = self.get_dim("output")
        if None in shape:
            raise ValueError(
                f"{self.path} cannot be allocated: tied_biases=False needs a bias for each place, "
                f"so `image_size` must be known; it is {self.image_size!r}."
            )
        return shape

    def _check_lengths(self, who: str, lengths: Sequence[int | None]) -> None:
        """Refuse lengths on which the filters have no place."""
        for axis, (window, length) in enumerate(zip(self._windows, lengths, strict=True)):
            check_fit(who, window, axis + 2, length, "filter", _WAYS_OUT)

    def _with_room(self, input_: Variable, lengths: Sequence[int | None]) -> Variable:
        """Let an input be refused at run time if the filters have no place on it."""
        who = self.apply.path
        return check_fit_at_run_time(who, self._windows, input_, lengths, "filter", _WAYS_OUT)

    def _output_lengths(self, lengths: Sequence[int | None]) -> list[int | None]:
        pairs = zip(self._windows, lengths, strict=True)
        return [None if length is None else window.count(length) for window, length in pairs]

    @application(inputs=["input_", "mask"], outputs=["output"])
    def apply(self, input_: Variable, mask: Variable | None = None) -> Variable:
        """Convolve.

        Parameters
        ----------
        input_ : Variable of shape (batch, channel, height, width)
            Or (batch, channel, time), or (batch, channel, depth, height, width). Integers are
            taken as floating-point numbers.
        mask : Variable of shape (batch, time), optional
            0 behind the end of each sequence; time is the first axis behind the channels.

        Returns
        -------
        Variable of shape (batch, filter, height, width)
            Or (batch, filter, time), or (batch, filter, depth, height, width).
        """
        input_ = check_images(self.apply, input_, self.num_channels, self._image_size)
        lengths = merge_lengths(input_.type.shape[2:], self._image_size)
        self._check_lengths(self.apply.path, lengths)
        input_ = self._with_room(input_, lengths)
        input_ = as_float(input_, self.W.dtype)
        if mask is not None:
            check_mask(self.apply, mask, input_)
            input_ = keep_valid(input_, mask)
        output = self._convolve(input_, lengths)
        batch = input_.type.shape[0]
        output = with_lengths(output, [batch, self.num_filters, *self._output_lengths(lengths)])
        if self.use_bias:
            places = ["x"] * len(self._sizes) if self.tied_biases else range(1, self.b.ndim)
            output += self.b.dimshuffle("x", 0, *places)
        return output if mask is None else keep_valid(output, self.output_mask(mask))

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
            1 for as many elements as the convolution of each sequence alone would have, of the
            same dtype.
        """
        count = self._windows[0].count
        lengths = lengths_in_mask(mask)
        lengths = tensor.switch(tensor.gt(lengths, 0), count(lengths), 0)
        return mask_of_lengths(lengths, count(lengths_of(mask)[1]), mask.dtype)

    def _convolve(self, input_: Variable, lengths: Sequence[int | None]) -> Variable:
        """Convolve with the filters, without a bias."""
        windows = self._windows
        pairs = [(window.before, window.after) for window in windows]
        if len(windows) == 3 and any(before != after for before, after in pairs):
            # Aesara's convolutions of volumes know no border that differs between the two ends.
            input_, pairs = _pad(input_, pairs), [(0, 0)] * 3
            lengths = [None] * 3
        options = self._options(pairs)
        num_channels, shape = self.num_channels, self._filter_shape()
        if len(windows) == 3:
            given = {"input_shape": (None, num_channels, *lengths), "filter_shape": shape}
            return abstract_conv.conv3d(input_, self.W, **given, **options)
        if len(windows) == 1:
            input_, lengths, shape = _as_images(input_), [*lengths, 1], (*shape, 1)
        W = self.W if len(windows) == 2 else _as_images(self.W)
        given = {"input_shape": (None, num_channels, *lengths), "filter_shape": shape}
        output = self.conv2d_impl(input_, W, **given, **options)
        return output if len(windows) == 2 else output[..., 0]

    def _options(self, pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Say how Aesara shall convolve; one axis is convolved as an image of width 1."""
        windows = [*self._windows, Window(1)] if len(pairs) == 1 else self._windows
        borders = [*pairs, (0, 0)] if len(pairs) == 1 else pairs
        options: dict[str, Any] = {
            "subsample": tuple(window.step for window in windows),
            "border_mode": tuple(
                before if before == after else (before, after) for before, after in borders
            ),
        }
        # Only where it is needed, for the sake of functions that are put in the place of conv2d.
        if any(window.dilation > 1 for window in windows):
            options["filter_dilation"] = tuple(window.dilation for window in windows)
        if self.num_groups > 1:
            options["num_groups"] = self.num_groups
        return options

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
            return (self.num_channels, *self._image_size)
        if name == "output":
            self._check_lengths(self.path, self._image_size)
            return (self.num_filters, *self._output_lengths(self._image_size))
        return 0 if name in ("mask", "output_mask") else super().get_dim(name)


class ConvolutionalTranspose(Convolutional):
    """Make larger images of small ones: the gradient of a convolution as an operation of its own.

    Where `Convolutional` with these settings would make images of `image_size` of larger ones,
    this goes the other way: each element of the input is spread over the output by the filters.

    Parameters
    ----------
    filter_size : tuple of int, or int
        Lengths of the filters: one, two or three. Needed for allocation.
    num_filters : int
        Channels of the output, which is large. Needed for allocation.
    num_channels : int
        Channels of the input, which is small. Needed for allocation.
    original_image_size : tuple of int, optional
        Lengths of the output. By default the shortest that the convolution would make an image of
        the input's size of, and `unused_edge` beyond.
    unused_edge : int or tuple of int
        Elements at the end of each axis of the output that the convolution would not have looked
        at, fewer than `step`.
    **kwargs
        For `Convolutional`. ``border_mode`` is that of the convolution: what it would add to the
        large images is cut off from the output. With ``'causal'`` the end is cut off, so that the
        output depends on nothing that comes later.

    Examples
    --------
    >>> from bricks.conv import ConvolutionalTranspose
    >>> upward = ConvolutionalTranspose(
    ...     (4, 4), num_filters=3, num_channels=8, image_size=(7, 7), step=2, border_mode=1
    ... )
    >>> upward.get_dim("output")
    (3, 14, 14)
    """

    @lazy(allocation=["filter_size", "num_filters", "num_channels"])
    def __init__(
        self,
        filter_size: Any,
        num_filters: int,
        num_channels: int,
        original_image_size: Any = None,
        unused_edge: Any = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(filter_size, num_filters, num_channels, **kwargs)
        self._original_image_size = original_image_size
        self.unused_edge = unused_edge

    @property
    def original_image_size(self) -> tuple[int | None, ...]:
        """Lengths of the output: those that were given, or those that follow from the input's."""
        return tuple(self._output_lengths(self._image_size))

    @original_image_size.setter
    def original_image_size(self, value: Any) -> None:
        self._original_image_size = value

    @property
    def _given_lengths(self) -> tuple[int | None, ...]:
        return per_axis(self, "_original_image_size", len(self._sizes), least=None)

    @property
    def _windows(self) -> list[Window]:
        modes = self.border_mode
        named = list(modes) if isinstance(modes, tuple | list) else [modes] * len(self._sizes)
        return [
            window._replace(before=0, after=window.span - 1) if mode == "causal" else window
            for window, mode in zip(super()._windows, named, strict=True)
        ]

    @property
    def _edges(self) -> tuple[int, ...]:
        return per_axis(self, "unused_edge", len(self._sizes), least=0)

    def _allocate(self) -> None:
        if any(edge >= w.step for edge, w in zip(self._edges, self._windows, strict=True)):
            raise ValueError(
                f"{self.path} cannot be allocated: `unused_edge` must be less than `step`, "
                f"{self.step!r}, or the convolution would look at it; got {self.unused_edge!r}."
            )
        super()._allocate()

    def _output_length(self, axis: int, length: Any) -> Any:
        """Say how long an axis of the output is, where that of the input has a length."""
        return self._windows[axis].reach(length) + self._edges[axis]

    def _output_lengths(self, lengths: Sequence[int | None]) -> list[int | None]:
        return [
            given if given is not None else (None if n is None else self._output_length(axis, n))
            for axis, (given, n) in enumerate(zip(self._given_lengths, lengths, strict=True))
        ]

    def _check_lengths(self, who: str, lengths: Sequence[int | None]) -> None:
        outputs = self._output_lengths(lengths)
        known = zip(self._windows, lengths, outputs, strict=True)
        for axis, (window, length, output) in enumerate(known):
            if length is None or output is None:
                continue
            found = window.count(output) if output > 0 else 0
            if found != length:
                raise ValueError(
                    f"{who}: an output of length {output} on axis {axis + 2} does not belong to "
                    f"an input of length {length}, because the convolution would make {found} of "
                    f"it. Choose `original_image_size` from {window.reach(length)} to "
                    f"{window.reach(length) + window.step - 1}, or leave it out and choose "
                    f"`unused_edge` from 0 to {window.step - 1}."
                )

    def _with_room(self, input_: Variable, lengths: Sequence[int | None]) -> Variable:
        """Let an input be refused at run time that the given output does not belong to."""
        at_run_time = lengths_of(input_)[2:]
        given = zip(self._windows, self._given_lengths, lengths, strict=True)
        for axis, (window, output, length) in enumerate(given):
            if length is None and output is not None:
                wanted = window.count(output)
                compare: Any = Assert(
                    f"{self.apply.path}: an output of length {output} on axis {axis + 2} belongs "
                    f"only to an input of length {wanted}, because that is what the convolution "
                    "would make of it. Choose another `original_image_size`, or leave it out."
                )
                input_ = compare(input_, tensor.eq(at_run_time[axis], wanted))
        return input_

    def _convolve(self, input_: Variable, lengths: Sequence[int | None]) -> Variable:
        windows, num_axes = self._windows, len(self._sizes)
        pairs = [(window.before, window.after) for window in windows]
        ahead = lengths_of(input_)[2:]
        given = zip(self._output_lengths(lengths), ahead, strict=True)
        outputs = [self._output_length(i, n) if o is None else o for i, (o, n) in enumerate(given)]
        uneven = num_axes == 3 and any(before != after for before, after in pairs)
        if uneven:
            outputs = [
                n + before + after for n, (before, after) in zip(outputs, pairs, strict=True)
            ]
            cuts, pairs = pairs, [(0, 0)] * 3
        options = self._options(pairs)
        W = self._filters_of_the_convolution()
        if num_axes == 1:
            W, input_, outputs = _as_images(W), _as_images(input_), [*outputs, 1]
        kinds = abstract_conv.AbstractConv2d_gradInputs, abstract_conv.AbstractConv3d_gradInputs
        output: Any = kinds[num_axes == 3](**options)(W, input_, tensor.stack(outputs))
        if uneven:
            ends = zip(cuts, outputs, strict=True)
            output = output[(..., *(slice(low, length - high) for (low, high), length in ends))]
        return output[..., 0] if num_axes == 1 else output

    def _filters_of_the_convolution(self) -> Variable:
        """Give the filters with the channels of the input first, as they are in a convolution."""
        groups, (num_filters, of_group, *sizes) = self.num_groups, self._filter_shape()
        if groups == 1:
            return self.W.dimshuffle(1, 0, *range(2, self.W.ndim))
        apart = self.W.reshape((groups, num_filters // groups, of_group, *sizes))
        turned = apart.dimshuffle(0, 2, 1, *range(3, apart.ndim))
        return turned.reshape((self.num_channels, num_filters // groups, *sizes))

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
            1 for as many elements as each sequence alone would become, of the same dtype.
        """
        length, reach = lengths_of(mask)[1], self._windows[0].reach
        (output,) = self._output_lengths([None] * len(self._sizes))[:1]
        output = self._output_length(0, length) if output is None else output
        lengths = lengths_in_mask(mask)
        longer = reach(lengths) + output - reach(length)
        lengths = tensor.switch(tensor.gt(lengths, 0), longer, 0)
        return mask_of_lengths(lengths, output, mask.dtype)


def _as_images(sequences: Variable) -> Variable:
    """Give sequences, or filters for them, an axis of length 1 behind that of time."""
    return sequences.dimshuffle(0, 1, 2, "x")


def _pad(volumes: Variable, pairs: Sequence[tuple[int, int]]) -> Variable:
    """Put zeros around volumes."""
    batch, channel, *lengths = lengths_of(volumes)
    ends = list(zip(lengths, pairs, strict=True))
    shape = [batch, channel, *(n + before + after for n, (before, after) in ends)]
    inside = (..., *(slice(before, before + n) for n, (before, _) in ends))
    return tensor.set_subtensor(tensor.zeros(shape, volumes.dtype)[inside], volumes)
