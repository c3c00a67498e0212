"""Where windows lie along the axes that they move over, and what masks become of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
from aesara import tensor
from aesara.raise_op import Assert
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import lengths_of
from bricks.base import Brick
from bricks.checks import check_at_run_time, describe
from bricks.utils.plain import is_integer


class Window(NamedTuple):
    """A window that moves along one axis.

    Attributes
    ----------
    size : int
        Its elements.
    step : int
        From one place to the next.
    dilation : int
        From one of its elements to the next.
    before, after : int
        Elements that are added to the two ends of the axis.
    covers_all : bool
        Whether the last window may reach beyond the axis, so that it leaves no element out.
    """

    size: int
    step: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    covers_all: bool = False

    @property
    def span(self) -> int:
        """From its first element to its last, both counted."""
        return (self.size - 1) * self.dilation + 1

    @property
    def least(self) -> int:
        """The shortest axis on which it has a place."""
        return 1 if self.covers_all else max(1, self.span - self.before - self.after)

    def count(self, length: Any) -> Any:
        """Count its places along an axis.

        Parameters
        ----------
        length : int or Variable
            Of the axis, at least 1.

        Returns
        -------
        int or Variable
            At most 0 if the window does not fit.
        """
        room = length + self.before + self.after
        if not self.covers_all:
            return (room - self.span) // self.step + 1
        if self.step >= self.span:
            return (room - 1) // self.step + 1
        most: Any = tensor.maximum if isinstance(room, Variable) else max
        return most(0, -((self.span - room) // self.step)) + 1

    def reach(self, count: Any) -> Any:
        """Say how long the shortest axis is on which it has so many places.

        Parameters
        ----------
        count : int or Variable
            At least 1.

        Returns
        -------
        int or Variable
        """
        return (count - 1) * self.step + self.span - self.before - self.after


def per_axis(brick: Brick, name: str, num_axes: int, least: int | None = 1) -> tuple[Any, ...]:
    """Read a setting that has a number for each axis, or one for all of them.

    Parameters
    ----------
    brick : Brick
        Whose attribute it is.
    name : str
        Of the attribute.
    num_axes : int
        How many axes there are.
    least : int, optional
        What each number must be at least; None where None may stand for a number.

    Returns
    -------
    tuple of int, or of int or None
        One for each axis.

    Raises
    ------
    ValueError
        If there are more or fewer, or one is no such number.
    """
    value = getattr(brick, name)
    values = tuple(value) if isinstance(value, tuple | list) else (value,) * num_axes
    lowest = 1 if least is None else least
    fit = len(values) == num_axes and all(
        (least is None and one is None) or (is_integer(one) and one >= lowest) for one in values
    )
    if not fit:
        unknown = ", or None if it is not known," if least is None else ""
        raise ValueError(
            f"{brick.path}: `{name}` must be an integer from {lowest}{unknown} for each of the "
            f"{_axes(num_axes)} that the window moves over, or one for all; got {value!r}."
        )
    return tuple(one if one is None else int(one) for one in values)


def _axes(number: int) -> str:
    return "1 axis" if number == 1 else f"{number} axes"


def border_pairs(
    brick: Brick, border_mode: Any, spans: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Say how many elements a border mode adds before and after each axis.

    Parameters
    ----------
    brick : Brick
        Whose `border_mode` it is.
    border_mode : str, int or tuple
        A mode for all axes, or one for each: ``'valid'``, ``'half'``, ``'full'``, ``'causal'``, a
        number for both ends, or a pair of numbers.
    spans : sequence of int
        What the window covers of each axis.

    Returns
    -------
    tuple of (int, int)

    Raises
    ------
    ValueError
        If it is none of these.
    """
    modes = border_mode if isinstance(border_mode, tuple | list) else [border_mode] * len(spans)
    if len(modes) != len(spans):
        raise ValueError(
            f"{brick.path}: `border_mode` must be one mode for all axes, or a tuple with one for "
            f"each of the {_axes(len(spans))}; got {border_mode!r}. A pair of numbers for the two "
            "ends of the only axis is written ((before, after),)."
        )
    return tuple(_border_pair(brick, mode, span) for mode, span in zip(modes, spans, strict=True))


def _border_pair(brick: Brick, mode: Any, span: int) -> tuple[int, int]:
    named = {
        "valid": (0, 0),
        "half": (span // 2, span // 2),
        "full": (span - 1, span - 1),
        "causal": (span - 1, 0),
    }
    if isinstance(mode, str) and mode in named:
        return named[mode]
    pair = tuple(mode) if isinstance(mode, tuple | list) else (mode, mode)
    if len(pair) == 2 and all(is_integer(one) and one >= 0 for one in pair):
        return (int(pair[0]), int(pair[1]))
    raise ValueError(
        f"{brick.path}: `border_mode` must be 'valid', 'half', 'full', 'causal', a number of "
        f"elements from 0, or a pair of them, for all axes or for each of them; got {mode!r}."
    )


def check_fit(
    who: str, window: Window, axis: int, length: int | None, what: str, ways_out: str
) -> None:
    """Refuse an axis on which a window has no place.

    Parameters
    ----------
    who : str
        The path of the brick or application.
    window : Window
        The window.
    axis : int
        The number of the axis, in batches.
    length : int or None
        Of the axis; None if it is not known.
    what : str
        What the window is called.
    ways_out : str
        What to do about it.

    Raises
    ------
    ValueError
        If it has none.
    """
    if length is not None and length < window.least:
        raise ValueError(_too_short(who, window, axis, str(length), what, ways_out))


def check_fit_at_run_time(
    who: str,
    windows: Sequence[Window],
    input_: Variable,
    lengths: Sequence[int | None],
    what: str,
    ways_out: str,
) -> Variable:
    """Let axes whose lengths are not known before run time be refused then, if they are too short.

    Parameters
    ----------
    who : str
        The path of the application.
    windows : sequence of Window
        For each of the last axes.
    input_ : Variable
        The batch.
    lengths : sequence of int or None
        Of its last axes, as far as they are known.
    what : str
        What the window is called.
    ways_out : str
        What to do about it.

    Returns
    -------
    Variable
        The batch.
    """
    at_run_time, first_axis = lengths_of(input_), input_.ndim - len(windows)
    for axis, (window, length) in enumerate(zip(windows, lengths, strict=True), first_axis):
        if length is None and window.least > 1:
            compare: Any = Assert(_too_short(who, window, axis, "fewer", what, ways_out))
            input_ = compare(input_, tensor.ge(at_run_time[axis], window.least))
    return input_


def _too_short(who: str, window: Window, axis: int, length: str, what: str, ways_out: str) -> str:
    added = window.before + window.after
    return (
        f"{who}: the {what} covers {window.span} elements of axis {axis}, but the input has "
        f"{length} there{f' and the border adds {added}' if added else ''}. {ways_out}"
    )


def check_images(
    application: Any, input_: Variable, num_channels: Any, lengths: Sequence[int | None]
) -> Variable:
    """Refuse a batch of images that is not what a brick takes, now or at run time.

    Parameters
    ----------
    application : BoundApplication
        What takes it.
    input_ : Variable
        The batch.
    num_channels : int or None
        Its channels, if the brick knows them.
    lengths : sequence of int or None
        Of the axes behind the channels, as far as the brick knows them.

    Returns
    -------
    Variable
        The batch. What is known only at run time is an ``AssertionError`` there.

    Raises
    ------
    ValueError
        If it has another number of axes, or another shape.
    """
    wanted = (None, num_channels, *lengths)
    names = {1: ("time",), 2: ("height", "width"), 3: ("depth", "height", "width")}
    axes = zip(names[len(lengths)], lengths, strict=True)
    shape = ["batch", f"channel{'' if num_channels is None else f'={num_channels}'}"]
    shape += [name if length is None else f"{name}={length}" for name, length in axes]
    words = f"{application.path}: `input_` must have the axes ({', '.join(shape)})"
    way_out = (
        "Reorder its axes by `dimshuffle`, or set `num_channels`, `image_size` and the size of the "
        "window to what comes."
    )
    pairs = zip(input_.type.shape, wanted, strict=False)
    if input_.ndim != len(wanted) or not all(None in pair or pair[0] == pair[1] for pair in pairs):
        raise ValueError(f"{words}; got {describe(input_)}. {way_out}")
    return check_at_run_time(f"{words}. {way_out}", input_, wanted)


def merge_lengths(known: Sequence[Any], declared: Sequence[Any]) -> list[int | None]:
    """Take each length from where it is known.

    Parameters
    ----------
    known, declared : sequence of int or None

    Returns
    -------
    list of int or None
    """
    pairs = zip(known, declared, strict=True)
    return [one if one is not None else other for one, other in pairs]


def with_lengths(variable: Variable, lengths: Sequence[int | None]) -> Variable:
    """Let a variable know lengths of its axes, so that the next brick can refuse what is wrong.

    Parameters
    ----------
    variable : Variable
        Any.
    lengths : sequence of int or None
        As far as they are known.

    Returns
    -------
    Variable
    """
    if all(one in (None, own) for one, own in zip(lengths, variable.type.shape, strict=True)):
        return variable
    specified: Any = list(lengths)
    return tensor.specify_shape(variable, specified)


def check_mask(application: Any, mask: Variable, input_: Variable) -> None:
    """Refuse a mask that cannot belong to an input of axes (batch, channel, time, …).

    Parameters
    ----------
    application : BoundApplication
        What takes it.
    mask : Variable
        The mask.
    input_ : Variable
        The input.

    Raises
    ------
    ValueError
        If its axes are not (batch, time).
    """
    axes = zip(mask.type.shape, (input_.type.shape[0], input_.type.shape[2]), strict=False)
    if mask.ndim != 2 or not all(None in pair or pair[0] == pair[1] for pair in axes):
        raise ValueError(
            f"{application.path}: `mask` must have the axes (batch, time), of the lengths that "
            f"`input_` has on its axes 0 and 2; got {describe(mask)} for {describe(input_)}."
        )


def keep_valid(variable: Variable, mask: Variable, other: float = 0.0) -> Variable:
    """Replace what a mask leaves out.

    Parameters
    ----------
    variable : Variable of shape (batch, channel, time, …)
        What to mask.
    mask : Variable of shape (batch, time)
        0 where something is left out.
    other : float
        What takes its place.

    Returns
    -------
    Variable of the same shape
        Nothing of what was left out is in it, not even NaN.
    """
    later_axes = ["x"] * (variable.ndim - 3)
    is_valid = tensor.neq(mask, 0).dimshuffle(0, "x", 1, *later_axes)
    return tensor.switch(is_valid, variable, numpy.array(other, variable.dtype))


def lengths_in_mask(mask: Variable) -> Variable:
    """Say how long the sequences of a batch are.

    Parameters
    ----------
    mask : Variable of shape (batch, time)

    Returns
    -------
    Variable of shape (batch,)
        Integers: up to the last element that is not 0.
    """
    numbers = tensor.arange(1, lengths_of(mask)[1] + 1)
    return tensor.max(tensor.switch(tensor.neq(mask, 0), numbers, 0), axis=1)


def mask_of_lengths(lengths: Variable, length: Any, dtype: str) -> Variable:
    """Make the mask of sequences.

    Parameters
    ----------
    lengths : Variable of shape (batch,)
        Of the sequences.
    length : int or Variable
        Of the mask's axis of time.
    dtype : str
        Of the mask.

    Returns
    -------
    Variable of shape (batch, time)
        1 up to the length of each, then 0.
    """
    return tensor.lt(tensor.arange(length), lengths[:, None]).astype(dtype)
