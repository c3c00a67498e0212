"""Pooling: one number for each place of a window."""

from __future__ import annotations

from typing import Any

import numpy
from aesara import tensor
from aesara.tensor.signal.pool import Pool
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, lengths_of
from bricks.base import application, lazy
from bricks.checks import describe
from bricks.conv.geometry import (
    Window,
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
from bricks.interfaces import Feedforward

_WAYS_OUT = "Use a smaller window, a padding, or ignore_border=False."

_MODES = ("max", "sum", "average_inc_pad", "average_exc_pad")


class Pooling(Feedforward):
    """Make one number of the elements of each window, in each channel.

    The axes of the input are (batch, channel, height, width); (batch, channel, time) for windows
    with one axis, (batch, channel, depth, height, width) for those with three. Without a mask there
    may be more or fewer axes in front.

    Parameters
    ----------
    mode : {'max', 'sum', 'average_inc_pad', 'average_exc_pad'}
        What to make: the largest, the sum, or the mean of what the window covers with or without
        the padding. Needed for allocation.
    pooling_size : tuple of int, or int
        Lengths of the window: one, two or three. An integer is the length of a window with one
        axis. Needed for allocation.
    step : int or tuple of int, optional
        From one place of the window to the next, along all axes or each; `pooling_size` by
        default.
    input_dim : tuple of int or None, optional
        Channels and lengths of the input, as far as they are known. `get_dim` needs them.
    ignore_border : bool
        Whether elements at the end on which no whole window fits are left out; otherwise the last
        window covers fewer elements.
    padding : int or tuple of int
        Elements added to both ends of all axes or each, fewer than the window has: they are
        smaller than any other for a maximum, and 0 otherwise. Only with `ignore_border`.
    **kwargs
        For `Brick`.

    Notes
    -----
    Masks are those of `Convolutional`: what they leave out counts as outside of the input.
    """

    @lazy(allocation=["mode", "pooling_size"])
    def __init__(
        self,
        mode: str,
        pooling_size: Any,
        step: Any = None,
        input_dim: Any = None,
        ignore_border: bool = True,
        padding: Any = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.mode = mode
        self.pooling_size = pooling_size
        self.step = step
        self.input_dim = input_dim
        self.ignore_border = ignore_border
        self.padding = padding

    @property
    def num_channels(self) -> Any:
        """Channels of the input; None if they are not known."""
        return self._input_dim[0]

    @num_channels.setter
    def num_channels(self, value: int | None) -> None:
        self.input_dim = (value, *self._input_dim[1:])

    @property
    def image_size(self) -> Any:
        """Lengths of the input behind its channels; None where they are not known."""
        return self._input_dim[1:]

    @image_size.setter
    def image_size(self, value: Any) -> None:
        lengths = tuple(value) if isinstance(value, tuple | list) else (value,) * len(self._sizes)
        self.input_dim = (self._input_dim[0], *lengths)

    @property
    def num_output_channels(self) -> Any:
        """Channels of the output, which are those of the input."""
        return self.num_channels

    @property
    def output_dim(self) -> Any:
        """Channels and lengths of the output; None where they are not known."""
        return self.get_dim("output")

    @property
    def _sizes(self) -> tuple[int, ...]:
        given = self.pooling_size
        num_axes = len(given) if isinstance(given, tuple | list) else 1
        if num_axes not in (1, 2, 3):
            raise ValueError(
                f"{self.path}: `pooling_size` must have one, two or three lengths; got {given!r}."
            )
        return per_axis(self, "pooling_size", num_axes)

    @property
    def _input_dim(self) -> tuple[Any, ...]:
        if self.input_dim is None:
            return (None,) * (1 + len(self._sizes))
        if len(self.input_dim) != 1 + len(self._sizes):
            raise ValueError(
                f"{self.path}: `input_dim` must be the channels and the {len(self._sizes)} lengths "
                f"that the window moves over, with None for what is not known; got "
                f"{self.input_dim!r}."
            )
        return tuple(self.input_dim)

    @property
    def _windows(self) -> list[Window]:
        """The window along each of its axes."""
        sizes = self._sizes
        steps = sizes if self.step is None else per_axis(self, "step", len(sizes))
        paddings = per_axis(self, "padding", len(sizes), least=0)
        self._check_paddings(sizes, paddings)
        return [
            Window(size, step, 1, padding, padding, not self.ignore_border)
            for size, step, padding in zip(sizes, steps, paddings, strict=True)
        ]

    def _check_paddings(self, sizes: tuple[int, ...], paddings: tuple[int, ...]) -> None:
        if any(paddings) and not self.ignore_border:
            raise ValueError(
                f"{self.path}: `padding` needs ignore_border=True; got {self.padding!r}. Leave it "
                "out: without ignore_border the last window covers what is left."
            )
        if any(one >= size for one, size in zip(paddings, sizes, strict=True)):
            raise ValueError(
                f"{self.path}: `padding` must be less than `pooling_size`, {self.pooling_size!r}, "
                f"or a window would hold nothing else; got {self.padding!r}."
            )

    def _allocate(self) -> None:
        if self.mode not in _MODES:
            raise ValueError(
                f"{self.path} cannot be allocated: `mode` must be one of {', '.join(_MODES)}; got "
                f"{self.mode!r}."
            )
        self.get_dim("output")

    def _output_lengths(self, who: str, lengths: Any, first_axis: int = 2) -> list[int | None]:
        found: list[int | None] = []
        pairs = zip(self._windows, lengths, strict=True)
        for axis, (window, length) in enumerate(pairs, first_axis):
            check_fit(who, window, axis, length, "window", _WAYS_OUT)
            found.append(None if length is None else window.count(length))
        return found

    @application(inputs=["input_", "mask"], outputs=["output"])
    def apply(self, input_: Variable, mask: Variable | None = None) -> Variable:
        """Pool.

        Parameters
        ----------
        input_ : Variable of shape (batch, channel, height, width)
            Or (batch, channel, time), or (batch, channel, depth, height, width). Integers are
            taken as floating-point numbers.
        mask : Variable of shape (batch, time), optional
            0 behind the end of each sequence; time is the first axis behind the channels.

        Returns
        -------
        Variable of shape (batch, channel, height, width)
            Or with the other axes of the input. 0 behind the end of each sequence.
        """
        input_ = self._check_input(input_, mask)
        num_axes = len(self._sizes)
        lengths = merge_lengths(input_.type.shape[-num_axes:], self._input_dim[1:])
        kept = [*input_.type.shape[:-num_axes]]
        if len(kept) == 2:
            kept = merge_lengths(kept, [None, self._input_dim[0]])
        who, known = self.apply.path, lengths
        lengths = self._output_lengths(who, known, input_.ndim - num_axes)
        input_ = check_fit_at_run_time(who, self._windows, input_, known, "window", _WAYS_OUT)
        input_ = as_float(input_)
        if mask is None:
            return with_lengths(self._pool(input_, self.mode), [*kept, *lengths])
        output = with_lengths(self._pool_valid(input_, mask), [*kept, *lengths])
        return keep_valid(output, self.output_mask(mask))

    def _check_input(self, input_: Variable, mask: Variable | None) -> Variable:
        num_channels, *lengths = self._input_dim
        if mask is not None or input_.ndim == len(lengths) + 2 or num_channels is not None:
            input_ = check_images(self.apply, input_, num_channels, lengths)
        elif input_.ndim < len(lengths):
            raise ValueError(
                f"{self.apply.path}: `input_` must have the {len(lengths)} axes of the window "
                f"last; got {describe(input_)}."
            )
        if mask is not None:
            check_mask(self.apply, mask, input_)
        return input_

    def _pool(self, input_: Variable, mode: str) -> Variable:
        windows = self._windows
        pool: Any = Pool(ignore_border=self.ignore_border, mode=mode, ndim=len(windows))
        numbers = [[getattr(w, name) for w in windows] for name in ("size", "step", "before")]
        return pool(input_, *(tensor.constant(numpy.array(one, "int64")) for one in numbers))

    def _pool_valid(self, input_: Variable, mask: Variable) -> Variable:
        """Pool what a mask leaves in."""
        if self.mode == "max":
            return self._pool(keep_valid(input_, mask, -numpy.inf), "max")
        input_ = keep_valid(input_, mask)
        # Where the last window may cover fewer elements, how many depends on each sequence.
        if self.mode == "sum" or (self.mode == "average_inc_pad" and self.ignore_border):
            return self._pool(input_, self.mode)
        counts = self._pool(keep_valid(tensor.ones_like(input_[:, :1]), mask), "sum")
        counts = with_lengths(counts, [None, 1, *[None] * len(self._sizes)])
        return self._pool(input_, "sum") / tensor.maximum(counts, 1)

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
            1 for as many windows as each sequence alone would have, of the same dtype.
        """
        count = self._windows[0].count
        lengths = lengths_in_mask(mask)
        lengths = tensor.switch(tensor.gt(lengths, 0), count(lengths), 0)
        return mask_of_lengths(lengths, count(lengths_of(mask)[1]), mask.dtype)

    def get_dim(self, name: str) -> Any:
        """Channels and lengths of ``'input_'`` or ``'output'``; see `Brick.get_dim`.

        Parameters
        ----------
        name : str
            ``'input_'`` or ``'output'``, or that of a mask.

        Returns
        -------
        tuple of int or None
            None for what is not known. 0 for a mask.
        """
        if name == "input_":
            return self._input_dim
        if name == "output":
            num_channels, *lengths = self._input_dim
            return (num_channels, *self._output_lengths(self.path, lengths))
        return 0 if name in ("mask", "output_mask") else super().get_dim(name)


class MaxPooling(Pooling):
    """The largest element of each window, in each channel.

    Parameters
    ----------
    pooling_size : tuple of int, or int
        Lengths of the window: one, two or three. Needed for allocation.
    step : int or tuple of int, optional
        From one place of the window to the next; `pooling_size` by default.
    input_dim : tuple of int or None, optional
        Channels and lengths of the input, as far as they are known.
    ignore_border : bool
        Whether elements at the end on which no whole window fits are left out.
    padding : int or tuple of int
        Elements added to both ends, fewer than the window has.
    **kwargs
        For `Brick`.

    Examples
    --------
    >>> from bricks.conv import MaxPooling
    >>> MaxPooling((2, 2), input_dim=(8, 7, 7)).get_dim("output")
    (8, 3, 3)
    >>> MaxPooling((2, 2), input_dim=(8, 7, 7), ignore_border=False).get_dim("output")
    (8, 4, 4)
    """

    @lazy(allocation=["pooling_size"])
    def __init__(
        self,
        pooling_size: Any,
        step: Any = None,
        input_dim: Any = None,
        ignore_border: bool = True,
        padding: Any = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__("max", pooling_size, step, input_dim, ignore_border, padding, **kwargs)


class AveragePooling(Pooling):
    """The mean of each window, in each channel.

    Parameters
    ----------
    pooling_size : tuple of int, or int
        Lengths of the window: one, two or three. Needed for allocation.
    step : int or tuple of int, optional
        From one place of the window to the next; `pooling_size` by default.
    input_dim : tuple of int or None, optional
        Channels and lengths of the input, as far as they are known.
    ignore_border : bool
        Whether elements at the end on which no whole window fits are left out.
    padding : int or tuple of int
        Elements added to both ends, fewer than the window has.
    include_padding : bool
        Whether the zeros of the padding are counted in the mean.
    **kwargs
        For `Brick`.
    """

    @lazy(allocation=["pooling_size"])
    def __init__(
        self,
        pooling_size: Any,
        step: Any = None,
        input_dim: Any = None,
        ignore_border: bool = True,
        padding: Any = 0,
        include_padding: bool = False,
        **kwargs: Any,
    ) -> None:
        mode = "average_inc_pad" if include_padding else "average_exc_pad"
        super().__init__(mode, pooling_size, step, input_dim, ignore_border, padding, **kwargs)
