"""Bring up Aesara the way firebrick needs it, before its first import.

Importing :mod:`bricks` runs :func:`set_up` once. It does seven things:

* gives ``AESARA_FLAGS`` defaults (``floatX=float32,cxx=,blas__ldflags=``) that a flag of the
  user's own overrides: firebrick compiles with XLA, so no C compiler is wanted;
* puts back the names that numpy 2 removed and Aesara 2.9 still uses, only where one is missing;
* puts back the names that Theano had and Aesara dropped, so that scripts written with
  ``tensor.sqr`` and its like go on working;
* repairs the gradient of batch normalization, which left out its statistics;
* repairs the gradient of the gradient of a scan, which counted some terms twice;
* keeps the zeros of truncated gradients, which a rewrite of scans dropped;
* replaces a few gradients of Aesara that numpy 2 refuses.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy

__all__ = ["DEFAULT_FLAGS", "merge_flags", "set_up"]

#: What Aesara is told unless the user's ``AESARA_FLAGS`` says otherwise.
DEFAULT_FLAGS = {"floatX": "float32", "cxx": "", "blas__ldflags": ""}

_RENAMED_IN_NUMPY = {
    "float_": "float64",
    "complex_": "complex128",
    "unicode_": "str_",
    "string_": "bytes_",
    "bool8": "bool_",
    "product": "prod",
    "cumproduct": "cumprod",
    "alltrue": "all",
    "sometrue": "any",
    "row_stack": "vstack",
    "Inf": "inf",
    "Infinity": "inf",
    "infty": "inf",
    "PINF": "inf",
    "NaN": "nan",
}


class _Casts(dict):
    """What ``numpy.cast`` was: a dtype gives the function that converts to it."""

    def __missing__(self, dtype: Any) -> Callable:
        # Types of Aesara name their dtype in an attribute.
        return lambda value: numpy.asarray(value).astype(getattr(dtype, "dtype", dtype))


def merge_flags(flags: str) -> str:
    """Add the defaults to a value of ``AESARA_FLAGS``.

    Parameters
    ----------
    flags : str
        What the user set, ``'name=value'`` joined by commas; may be empty.

    Returns
    -------
    str
        The same flags, preceded by each of :data:`DEFAULT_FLAGS` that they do not name.
    """
    named = {flag.partition("=")[0].strip() for flag in flags.split(",")}
    defaults = [f"{name}={value}" for name, value in DEFAULT_FLAGS.items() if name not in named]
    return ",".join([*defaults, flags] if flags else defaults)


def _provide_silently(owner: ModuleType, name: str, value: Any) -> None:
    """Set an attribute that a module has only through a ``__getattr__`` that warns at each use."""
    vars(owner).setdefault(name, value)


def _provide(owner: ModuleType, name: str, value: Any) -> None:
    """Set an attribute of a module that lacks it, leaving one that exists alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not hasattr(owner, name):
            setattr(owner, name, value)


def _scalar_type_of(value: Any, default: Any = None) -> Any:
    """Return the numpy scalar type of a dtype or object, as ``numpy.obj2sctype`` did."""
    try:
        return numpy.dtype(value).type
    except TypeError:
        return default


def provide_numpy_names() -> None:
    """Put the names that numpy 2 removed back into numpy, where they are missing."""
    _provide(numpy, "obj2sctype", _scalar_type_of)
    _provide(numpy, "sctype2char", lambda value: numpy.dtype(value).char)
    _provide(numpy, "cast", _Casts())
    _provide(numpy, "NINF", -numpy.inf)
    _provide(numpy, "MAXDIMS", 64)
    for old, new in _RENAMED_IN_NUMPY.items():
        _provide(numpy, old, getattr(numpy, new))
    for name in ("ComplexWarning", "AxisError", "VisibleDeprecationWarning"):
        _provide(numpy, name, getattr(numpy.exceptions, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numeric = import_module("numpy.core.numeric")
        _provide_silently(numeric, "normalize_axis_tuple", numeric.normalize_axis_tuple)
        core = import_module("numpy.core")
        _provide_silently(core, "_multiarray_umath", core._multiarray_umath)
    if not hasattr(numpy.lib.stride_tricks, "_broadcast_shape"):
        implementation = import_module("numpy.lib._stride_tricks_impl")
        _provide(numpy.lib.stride_tricks, "_broadcast_shape", implementation._broadcast_shape)


def _import_aesara() -> ModuleType:
    """Import Aesara and the deprecated modules of it that firebrick uses, without their noise."""
    blas_log = logging.getLogger("aesara.tensor.blas")
    level = blas_log.level
    # Without a C compiler Aesara warns of a slow BLAS that is never used.
    blas_log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import aesara
            import aesara.tensor.nnet
            import aesara.tensor.nnet.basic
            import aesara.tensor.signal.pool
    finally:
        blas_log.setLevel(level)
    return aesara


def provide_theano_names(aesara: ModuleType) -> None:
    """Put the names that Theano had and Aesara dropped or deprecates into Aesara.

    Parameters
    ----------
    aesara : module
        The imported :mod:`aesara`.
    """
    from aesara.gradient import Lop, Rop, verify_grad
    from aesara.graph.basic import Apply, clone_replace
    from aesara.graph.op import Op
    from aesara.tensor import type as types
    from aesara.tensor.shape import specify_broadcastable, unbroadcast
    from aesara.tensor.sharedvar import TensorSharedVariable

    tensor = aesara.tensor
    _provide_silently(tensor, "sqr", tensor.square)
    _provide_silently(tensor, "inv", tensor.reciprocal)
    _provide_silently(tensor, "abs_", tensor.abs)
    missing_in_tensor = {
        "Lop": Lop,
        "Rop": Rop,
        "SharedVariable": TensorSharedVariable,
        "addbroadcast": specify_broadcastable,
        "discrete_dtypes": types.discrete_dtypes,
        "float_dtypes": types.float_dtypes,
        "integer_dtypes": types.integer_dtypes,
        "unbroadcast": unbroadcast,
        "verify_grad": verify_grad,
    }
    for name, value in missing_in_tensor.items():
        _provide(tensor, name, value)
    missing_in_aesara = {"Apply": Apply, "Op": Op, "clone": clone_replace, "dot": tensor.dot}
    for name, value in missing_in_aesara.items():
        _provide(aesara, name, value)


def repair_batch_normalization() -> None:
    """Let gradients pass through the statistics of a batch that is normalized.

    Aesara's gradient of ``batch_normalization_train`` leaves out the two statistics that it
    returns beside the normalized batch. Its own first gradient uses them, so that second
    derivatives, and gradients of costs that contain a statistic, were wrong without a word.
    """
    from aesara.gradient import DisconnectedType
    from aesara.tensor.nnet.batchnorm import AbstractBatchNormTrain

    normalize = AbstractBatchNormTrain.L_op
    if normalize.__module__ == __name__:
        return

    def gradient(self: Any, inputs: Any, outputs: Any, grads: Any) -> list[Any]:
        x, mean, inverse_std = inputs[0], outputs[1], outputs[2]
        of_y, of_mean, of_inverse_std = grads[:3]
        if isinstance(of_y.type, DisconnectedType):
            of_y = x.zeros_like()
        of_x, *others = normalize(self, inputs, outputs, [of_y, *grads[1:]])
        share = (mean.size / x.size).astype(x.dtype)
        if not isinstance(of_mean.type, DisconnectedType):
            of_x = of_x + share * of_mean
        if not isinstance(of_inverse_std.type, DisconnectedType):
            of_x = of_x - share * of_inverse_std * inverse_std**3 * (x - mean)
        return [of_x, *others]

    AbstractBatchNormTrain.L_op = gradient  # type: ignore[method-assign]


def repair_second_derivatives_of_scans() -> None:
    """Let gradients pass through the gradient of a scan.

    Each step of that gradient overwrites a value that it reads. What the new value adds to a cost
    is no longer added by the old one, but Aesara counted it for both, so that second derivatives
    were wrong without a word unless the cost was linear in the states. Of a state with several taps
    a step overwrites several values, whose outputs Aesara confuses; that is refused.
    """
    scans: Any = import_module("aesara.scan.op")
    gradient, clone_replace = scans.Scan.L_op, scans.clone_replace
    if gradient.__module__ == __name__:
        return

    def forget(output: Any, replace: list[tuple[Any, Any]]) -> Any:
        """Let the gradient of an overwritten value be the new one alone.

        Aesara replaces nothing else in a scan: what is to be added, by the gradient of the value
        that was written.
        """
        return clone_replace(output, replace=[(old, new.zeros_like()) for old, new in replace])

    def checked_gradient(self: Any, inputs: Any, outputs: Any, grads: Any) -> list[Any]:
        if any(len(places) > 1 for places in self.info.mit_mot_out_slices):
            raise NotImplementedError(
                f"{self}: there is no second derivative of a scan one of whose states has several "
                "taps. Give each state the tap -1, and hand an earlier value on as a state of its "
                "own: `return new, state` for the states `state` and `state before`."
            )
        return gradient(self, inputs, outputs, grads)

    scans.clone_replace = forget
    scans.Scan.L_op = checked_gradient


def keep_zeros_of_truncated_gradients() -> None:
    """Let no rewrite replace a scan by the values of its steps where its results are longer.

    The gradient of a truncated scan takes fewer steps than the array of its results has places; the
    others stay zero. Where no step needs another one, Aesara put the values of the steps alone in
    the place of that array: a wrong length, or one step's gradient given to all of them.
    """
    scans: Any = import_module("aesara.scan.rewriting")
    equal_computations = import_module("aesara.graph.basic").equal_computations
    rewriter = scans.push_out_seq_scan
    push_out = rewriter.fn
    if push_out.__module__ == __name__:
        return

    def checked_push_out(fgraph: Any, node: Any) -> Any:
        replacements = push_out(fgraph, node)
        if not replacements or _has_scan_in_place(node, replacements):
            return replacements
        num_steps, lengths = node.inputs[0], node.op.outer_nitsot(node.inputs)
        is_whole = all(equal_computations([length], [num_steps]) for length in lengths)
        return replacements if is_whole else False

    rewriter.fn = checked_push_out


def _has_scan_in_place(node: Any, replacements: dict[Any, Any]) -> bool:
    """Tell whether a scan is replaced by another one."""
    owner = replacements[node.outputs[0]].owner if node.outputs[0] in replacements else None
    return owner is not None and type(owner.op) is type(node.op)


def _zeros(op: Any, inputs: list[Any], gradients: list[Any]) -> list[Any]:
    """Return the gradients of an operation that lets none through."""
    return [gradient.zeros_like() for gradient in gradients]


def _scaling_by(factor: float) -> Callable:
    """Make the gradient of a multiplication by a constant."""

    def l_op(op: Any, inputs: list[Any], outputs: list[Any], gradients: list[Any]) -> list[Any]:
        return [gradients[0] * numpy.asarray(factor, gradients[0].type.dtype)]

    return l_op


def mend_gradients() -> None:
    """Replace gradients of Aesara that give numpy a variable or a type where it wants a dtype.

    Numpy 2 refuses that; with numpy 1 the replacements compute the same.
    """
    from aesara import gradient
    from aesara.scalar import basic

    replacements: list[tuple[Any, str, Callable]] = [
        (gradient.ConsiderConstant, "grad", _zeros),
        (gradient.ZeroGrad, "grad", _zeros),
        (basic.Deg2Rad, "L_op", _scaling_by(numpy.pi / 180)),
        (basic.Rad2Deg, "L_op", _scaling_by(180 / numpy.pi)),
    ]
    for class_, name, function in replacements:
        setattr(class_, name, function)


def _tangent_of_first(op: Any, inputs: list[Any], tangents: list[Any]) -> list[Any]:
    """Return the tangent of an operation that gives out its first input."""
    return tangents[:1]


def let_tangents_through_checks() -> None:
    """Give ``Assert`` and its kin the R operator, which Aesara left out.

    Bricks check lengths by them, so no R operator would go through a convolution.
    """
    checks: Any = import_module("aesara.raise_op")
    checks.CheckAndRaise.R_op = _tangent_of_first


def _tell_of_foreign_settings(aesara: ModuleType) -> None:
    """Warn when the user imported Aesara first and its settings are not what firebrick needs."""
    if aesara.config.floatX == "float64" and "floatX" not in os.environ.get("AESARA_FLAGS", ""):
        warnings.warn(
            "aesara was imported before bricks and so computes in float64, its own default. Import "
            "bricks first, or set AESARA_FLAGS=floatX=float32 (or floatX=float64, if you mean it).",
            stacklevel=2,
        )


def set_up() -> ModuleType:
    """Set Aesara's flags, import it, put back the names that are missing, and repair it.

    Returns
    -------
    module
        The imported :mod:`aesara`.

    Warns
    -----
    UserWarning
        If Aesara had been imported before, with ``floatX=float64`` that nobody asked for.
    """
    provide_numpy_names()
    came_first = "aesara" in sys.modules
    if not came_first:
        os.environ["AESARA_FLAGS"] = merge_flags(os.environ.get("AESARA_FLAGS", ""))
    aesara = _import_aesara()
    provide_theano_names(aesara)
    mend_gradients()
    let_tangents_through_checks()
    repair_batch_normalization()
    repair_second_derivatives_of_scans()
    keep_zeros_of_truncated_gradients()
    if came_first:
        _tell_of_foreign_settings(aesara)
    return aesara
