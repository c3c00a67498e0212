"""Lowerings of convolutions and of their gradients.

Each gradient is a convolution of its own, with the strides and dilations of the forward one
exchanged; XLA knows these forms. They need not come from differentiating the forward convolution,
so each could be computed in a precision of its own.

Aesara's ``border_mode``, ``subsample``, ``filter_dilation``, ``num_groups`` and ``filter_flip``
are XLA's padding, strides, kernel dilation, feature groups and a reversed kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from aesara.graph.basic import Apply
from aesara.tensor.nnet import abstract_conv
from jax import lax

from bricks.xla.lowering import Context, known_ints, lowering

_AXES = {2: "01", 3: "012"}


class _Geometry(NamedTuple):
    """What a convolution does along each of its axes, and to its channels.

    The lengths of the kernel are those of its own elements; ``spans`` are what they cover.
    """

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    paddings: tuple[tuple[int, int], ...]
    groups: int

    @property
    def spans(self) -> tuple[int, ...]:
        return _spans(self.kernel, self.dilations)

    @property
    def output(self) -> tuple[int, ...]:
        return tuple(
            (image + low + high - span) // stride + 1
            for image, (low, high), span, stride in zip(
                self.image, self.paddings, self.spans, self.strides, strict=True
            )
        )


def _spans(lengths: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    return tuple((n - 1) * step + 1 for n, step in zip(lengths, dilations, strict=True))


def _paddings(border_mode: Any, spans: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return how many zeros a border mode puts before and after each axis."""
    if border_mode == "valid":
        return ((0, 0),) * len(spans)
    if border_mode == "half":
        return tuple((span // 2, span // 2) for span in spans)
    if border_mode == "full":
        return tuple((span - 1, span - 1) for span in spans)
    return tuple(side if isinstance(side, tuple) else (side, side) for side in border_mode)


def _geometry(op: Any, image: Sequence[int], kernel: Sequence[int]) -> _Geometry:
    """Collect what a convolution does, and refuse what it cannot do.

    Parameters
    ----------
    op : aesara.tensor.nnet.abstract_conv.BaseAbstractConv
    image, kernel : sequence of int
        The lengths of their axes other than batch and channels.

    Returns
    -------
    _Geometry

    Raises
    ------
    ValueError
        If the kernel is empty or larger than the padded image.
    """
    image, kernel = tuple(image), tuple(kernel)
    paddings = _paddings(op.border_mode, _spans(kernel, op.filter_dilation))
    geometry = _Geometry(image, kernel, op.subsample, op.filter_dilation, paddings, op.num_groups)
    for axis, (length, (low, high), span) in enumerate(
        zip(image, paddings, geometry.spans, strict=True)
    ):
        if not 0 < span <= length + low + high:
            raise ValueError(
                f"the kernel, of lengths {kernel} with dilation {op.filter_dilation}, covers "
                f"{max(span, 0)} elements of axis {axis + 2}, where the image of lengths {image} "
                f"has {length} and border_mode {op.border_mode!r} adds {low} + {high}; it must "
                "cover at least one and at most all of them. Use a smaller kernel, or a "
                "border_mode that pads more"
            )
    return geometry


def _check_channels(op: Any, image: int, kernel: int, filters: int) -> None:
    """Refuse channels that do not fit each other, or groups that do not divide them."""
    groups = op.num_groups
    if filters % groups:
        raise ValueError(
            f"num_groups, {groups}, must divide the number of filters, which is {filters}"
        )
    if image != kernel * groups:
        of_groups = f" in each of {groups} groups, {kernel * groups} together" if groups > 1 else ""
        raise ValueError(
            f"the image has {image} channels, but the filters expect {kernel}{of_groups}"
        )


def _check_declared(op: Any, image: Sequence[int], kernel: Sequence[int]) -> None:
    """Refuse shapes other than those declared, which Aesara has used without looking again."""
    for name, declared, shape in (
        ("input_shape", op.imshp, image),
        ("filter_shape", op.kshp, kernel),
    ):
        wanted = [None if n is None else int(getattr(n, "data", n)) for n in declared]
        if any(n not in (None, m) for n, m in zip(wanted, shape, strict=True)):
            raise ValueError(
                f"{name} was declared as {tuple(wanted)} when the convolution was written; got "
                f"{tuple(shape)}. Declare None where a length is not fixed"
            )


def _check_gradient(gradient: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuse the gradient of an output that the convolution does not have."""
    if gradient != expected:
        raise ValueError(
            f"the gradient of the output, or the input of a transposed convolution, must have "
            f"shape {expected} for these shapes of image and filters; got {gradient}"
        )


def _check_dtypes(node: Apply) -> None:
    """Refuse filters whose products the declared dtype cannot hold."""
    first, second = (variable.type.dtype for variable in node.inputs[:2])
    if not numpy.can_cast(second, first, "same_kind"):
        raise ValueError(
            f"Aesara makes the result {first}, the dtype of the first operand, but the second is "
            f"{second}, whose products would be cut off. Cast the first with .astype('{second}')"
        )


def _convolve(
    x: Any,
    kernel: Any,
    dtype: Any,
    *,
    numbers: tuple[str, str, str],
    strides: Sequence[int],
    paddings: Sequence[tuple[int, int]],
    spread: Sequence[int] | None = None,
    dilations: Sequence[int],
    groups: int = 1,
    batch_groups: int = 1,
) -> jax.Array:
    """Correlate; every convolution and gradient passes here, so precision is chosen here."""
    return lax.conv_general_dilated(
        jnp.asarray(x, dtype),
        jnp.asarray(kernel, dtype),
        window_strides=strides,
        padding=paddings,
        lhs_dilation=spread,
        rhs_dilation=dilations,
        dimension_numbers=numbers,
        feature_group_count=groups,
        batch_group_count=batch_groups,
        preferred_element_type=numpy.dtype(dtype),
    )


def _reverse(kernel: jax.Array, num_axes: int) -> jax.Array:
    return lax.rev(kernel, tuple(range(kernel.ndim - num_axes, kernel.ndim)))


@lowering(abstract_conv.AbstractConv, fold=False)
def lower_convolution(op: Any, node: Apply, context: Context) -> Callable:
    """Convolve images with filters, or correlate them if the filters are not to be flipped."""
    _check_dtypes(node)
    dtype, axes = node.outputs[0].type.dtype, _AXES[op.convdim]

    def convolution(image: Any, kernel: Any) -> jax.Array:
        image, kernel = jnp.asarray(image), jnp.asarray(kernel)
        _check_declared(op, image.shape, kernel.shape)
        _check_channels(op, image.shape[1], kernel.shape[-op.convdim - 1], kernel.shape[0])
        geometry = _geometry(op, image.shape[2:], kernel.shape[-op.convdim :])
        if op.filter_flip:
            kernel = _reverse(kernel, op.convdim)
        if op.unshared:
            _check_places(kernel.shape, geometry)
            return _convolve_unshared(image, kernel, dtype, geometry)
        return _convolve(
            image,
            kernel,
            dtype,
            numbers=("NC" + axes, "OI" + axes, "NC" + axes),
            strides=geometry.strides,
            paddings=geometry.paddings,
            dilations=geometry.dilations,
            groups=geometry.groups,
        )

    return convolution


def _gradient_of_image(
    kernel: jax.Array, gradient: jax.Array, dtype: Any, geometry: _Geometry
) -> jax.Array:
    """Correlate the spread gradient of the output with the reversed kernel."""
    axes, groups = _AXES[len(geometry.kernel)], geometry.groups
    grouped = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    joined = jnp.swapaxes(grouped, 1, 2).reshape(-1, kernel.shape[0] // groups, *geometry.kernel)
    paddings = []
    for axis, (low, _) in enumerate(geometry.paddings):
        span = geometry.spans[axis]
        covered = (geometry.output[axis] - 1) * geometry.strides[axis] + 1
        before = span - 1 - low
        paddings.append((before, geometry.image[axis] + span - 1 - covered - before))
    return _convolve(
        gradient,
        _reverse(joined, len(axes)),
        dtype,
        numbers=("NC" + axes, "OI" + axes, "NC" + axes),
        strides=(1,) * len(axes),
        paddings=paddings,
        spread=geometry.strides,
        dilations=geometry.dilations,
        groups=groups,
    )


def _gradient_of_kernel(
    image: jax.Array, gradient: jax.Array, dtype: Any, geometry: _Geometry
) -> jax.Array:
    """Correlate the image with the spread gradient of the output, summing over the batch."""
    axes, outputs = _AXES[len(geometry.kernel)], geometry.output
    covered = [(n - 1) * stride + 1 for n, stride in zip(outputs, geometry.strides, strict=True)]
    paddings = [
        (low, reach + span - 1 - length - low)
        for reach, span, length, (low, _) in zip(
            covered, geometry.spans, geometry.image, geometry.paddings, strict=True
        )
    ]
    if any(reach > length for reach, length in zip(covered, geometry.image, strict=True)):
        # XLA's fast convolution on the CPU takes no kernel larger than the image, which is what
        # the gradient of a full border is; with the padding done beforehand it is 30 times faster.
        # The barrier keeps XLA from undoing that.
        margins = [(0, 0, 0), (0, 0, 0), *((low, high, 0) for low, high in paddings)]
        padded = lax.pad(image.astype(dtype), numpy.array(0, dtype), margins)
        image, paddings = lax.optimization_barrier(padded), [(0, 0)] * len(axes)
    return _convolve(
        image,
        gradient,
        dtype,
        numbers=("CN" + axes, "IO" + axes, "CN" + axes),
        strides=geometry.dilations,
        paddings=paddings,
        dilations=geometry.strides,
        batch_groups=geometry.groups,
    )


@lowering(abstract_conv.AbstractConv_gradInputs, fold=False)
def lower_convolution_gradient_of_inputs(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the gradient for the images, which is a transposed convolution."""
    _check_dtypes(node)
    dtype = node.outputs[0].type.dtype

    def gradient_of_inputs(kernel: Any, gradient: Any, lengths: Any) -> jax.Array:
        kernel, gradient = jnp.asarray(kernel), jnp.asarray(gradient)
        lengths = known_ints(lengths, "the shape of the image")
        channels = kernel.shape[-op.convdim - 1] * op.num_groups
        shape = (gradient.shape[0], channels, *lengths)
        _check_declared(op, shape, kernel.shape)
        _check_channels(op, channels, kernel.shape[-op.convdim - 1], kernel.shape[0])
        geometry = _geometry(op, lengths, kernel.shape[-op.convdim :])
        expected = (gradient.shape[0], kernel.shape[0], *geometry.output)
        _check_gradient(gradient.shape, expected)
        if op.filter_flip:
            kernel = _reverse(kernel, op.convdim)
        if 0 in gradient.shape:
            return jnp.zeros(shape, dtype)
        if not op.unshared:
            return _gradient_of_image(kernel, gradient, dtype, geometry)
        _check_places(kernel.shape, geometry)
        return _transpose(
            lambda image: _convolve_unshared(image, kernel, dtype, geometry), shape, dtype
        )(gradient)

    return gradient_of_inputs


@lowering(abstract_conv.AbstractConv_gradWeights, fold=False)
def lower_convolution_gradient_of_weights(op: Any, node: Apply, context: Context) -> Callable:
    """Compute the gradient for the filters."""
    _check_dtypes(node)
    dtype = node.outputs[0].type.dtype

    def gradient_of_weights(image: Any, gradient: Any, lengths: Any) -> jax.Array:
        image, gradient = jnp.asarray(image), jnp.asarray(gradient)
        lengths = known_ints(lengths, "the shape of the filters")
        batch, filters = image.shape[0], gradient.shape[1]
        channels, rest = divmod(image.shape[1], op.num_groups)
        if rest:
            raise ValueError(
                f"num_groups, {op.num_groups}, must divide the number of channels of the image, "
                f"which is {image.shape[1]}"
            )
        _check_channels(op, image.shape[1], channels, filters)
        geometry = _geometry(op, image.shape[2:], lengths)
        places = geometry.output if op.unshared else ()
        shape = (filters, *places, channels, *lengths)
        _check_declared(op, image.shape, shape)
        _check_gradient(gradient.shape, (batch, filters, *geometry.output))
        if 0 in gradient.shape:
            return jnp.zeros(shape, dtype)
        if op.unshared:
            kernel = _transpose(
                lambda kernel: _convolve_unshared(image, kernel, dtype, geometry), shape, dtype
            )(gradient)
        else:
            kernel = _gradient_of_kernel(image, gradient, dtype, geometry)
        return _reverse(kernel, op.convdim) if op.filter_flip else kernel

    return gradient_of_weights


def _check_places(kernel: tuple[int, ...], geometry: _Geometry) -> None:
    """Refuse filters that are not shared, if there is not one for each place of the output."""
    places = kernel[1 : 1 + len(geometry.image)]
    if places != geometry.output:
        raise ValueError(
            f"unshared filters need one kernel for each place of the output, which has lengths "
            f"{geometry.output}; these filters have {places}"
        )


def _convolve_unshared(image: Any, kernel: Any, dtype: Any, geometry: _Geometry) -> jax.Array:
    """Correlate with another kernel at each place: products of patches, summed."""
    groups, filters, channels = geometry.groups, kernel.shape[0], image.shape[1]
    padded = jnp.pad(jnp.asarray(image, dtype), ((0, 0), (0, 0), *geometry.paddings))
    patches = []
    for offsets in itertools.product(*map(range, geometry.kernel)):
        starts = [i * step for i, step in zip(offsets, geometry.dilations, strict=True)]
        places = tuple(
            slice(start, start + (n - 1) * stride + 1, stride)
            for start, n, stride in zip(starts, geometry.output, geometry.strides, strict=True)
        )
        patches.append(padded[(..., *places)])
    of_group, output = channels // groups, geometry.output
    stacked = jnp.stack(patches, axis=1).reshape(
        image.shape[0], len(patches), groups, of_group, *output
    )
    grouped = jnp.asarray(kernel, dtype).reshape(
        groups, filters // groups, *output, of_group, len(patches)
    )
    sums = jnp.einsum("bkgchw,gfhwck->bgfhw", stacked, grouped)
    return sums.reshape(image.shape[0], filters, *output)


def _transpose(linear: Callable, shape: tuple[int, ...], dtype: Any) -> Callable:
    """Return the transpose of a linear function of one array."""
    transposed = jax.linear_transpose(linear, jax.ShapeDtypeStruct(shape, dtype))
    return lambda gradient: transposed(jnp.asarray(gradient, dtype))[0]
