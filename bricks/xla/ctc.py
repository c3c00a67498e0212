"""Connectionist temporal classification: the cost of a label sequence of unknown alignment.

Each frame of a sequence has scores for the classes and for a *blank*. An alignment gives each frame
a class or a blank; merging repeats and then removing blanks leaves the labels. The cost is minus
the logarithm of the probability of all alignments together. It is computed in log space, forwards
and backwards over the frames, and so is its gradient.

References
----------
A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber, *Connectionist Temporal Classification: Labelling
Unsegmented Sequence Data with Recurrent Neural Networks*, ICML 2006.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from aesara import tensor
from aesara.gradient import DisconnectedType, grad_not_implemented
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import Op
from aesara.tensor.type import TensorType
from jax import lax

from bricks.utils.plain import is_integer
from bricks.xla.lowering import Context, lowering

__all__ = ["ctc_loss"]


def ctc_loss(
    scores: Any,
    labels: Any,
    input_lengths: Any = None,
    label_lengths: Any = None,
    blank: int = 0,
) -> Variable:
    """Return minus the logarithm of the probability of label sequences of unknown alignment.

    Parameters
    ----------
    scores : float tensor of shape (time, batch, class)
        Of each frame, before a softmax over the classes; logarithms of probabilities are such
        scores too.
    labels : integer tensor of shape (batch, label)
        The classes in order, without blanks. What lies beyond a sequence's length is ignored.
    input_lengths : integer tensor of shape (batch,), optional
        How many frames each sequence has; by default all. Of a mask of shape (time, batch) it is
        ``mask.sum(axis=0)``, as an integer.
    label_lengths : integer tensor of shape (batch,), optional
        How many labels each sequence has; by default all.
    blank : int, optional
        The class that stands for no label; a negative one counts from the last.

    Returns
    -------
    float tensor of shape (batch,)
        The costs. Infinite, with a gradient of 0, where there are fewer frames than the labels
        need. NaN, with a gradient of NaN, where a label is no class or is the blank, or a length
        is impossible. Gradients flow to `scores`, once.

    Raises
    ------
    TypeError
        If an argument has the wrong number of axes or the wrong dtype.
    ValueError
        If `blank` is none of the classes. Where their number is known only at run time it is a
        :class:`~bricks.xla.GraphError` there.

    Examples
    --------
    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> scores = tensor.dtensor3("scores")
    >>> cost = xla.ctc_loss(scores, numpy.array([[1, 2]]))
    >>> probability = numpy.exp(-xla.function([scores], cost)(numpy.zeros((2, 1, 4))))
    >>> round(float(probability[0]), 4)  # 1 of the 16 alignments
    0.0625
    """
    scores = tensor.as_tensor_variable(scores)
    labels = tensor.as_tensor_variable(labels)
    _check("scores", scores, 3, "float", "(time, batch, class)")
    _check("labels", labels, 2, "int", "(batch, label)")
    if not is_integer(blank):
        raise ValueError(
            f"ctc_loss: `blank` must be an integer, the number of a class; got {blank!r}."
        )
    if scores.type.shape[2] is not None:
        _check_blank(blank, scores.type.shape[2])
    num_sequences = scores.shape[1]
    if input_lengths is None:
        input_lengths = tensor.alloc(scores.shape[0], num_sequences)
    if label_lengths is None:
        label_lengths = tensor.alloc(labels.shape[1], num_sequences)
    lengths = {"input_lengths": input_lengths, "label_lengths": label_lengths}
    for name, value in lengths.items():
        lengths[name] = tensor.as_tensor_variable(value)
        _check(name, lengths[name], 1, "int", "(batch,)")
    operation: Any = CTCLoss(int(blank))
    return operation(scores, labels, *lengths.values())[0]


def _check(name: str, variable: Variable, ndim: int, kind: str, axes: str) -> None:
    dtype = str(variable.type.dtype)
    if variable.type.ndim != ndim or kind not in dtype:
        raise TypeError(
            f"ctc_loss: `{name}` must be a tensor of shape {axes} and of {kind} numbers; got "
            f"{variable.type}."
        )


def _check_blank(blank: int, num_classes: int) -> None:
    if not -num_classes <= blank < num_classes:
        raise ValueError(
            f"ctc_loss: `blank` must be one of the {num_classes} classes of `scores`, from "
            f"{-num_classes} to {num_classes - 1}; got {blank}."
        )


class CTCLoss(Op):
    """The costs of sequences, and their derivatives by the scores.

    Parameters
    ----------
    blank : int
        The class that stands for no label.
    """

    __props__ = ("blank",)

    def __init__(self, blank: int):
        self.blank = blank

    def make_node(self, *inputs: Any) -> Apply:
        """Make the node of scores, labels, lengths of inputs and lengths of labels."""
        operands = [tensor.as_tensor_variable(x) for x in inputs]
        scores = operands[0].type
        costs = TensorType(scores.dtype, shape=(scores.shape[1],))()
        return Apply(self, operands, [costs, scores()])

    def perform(
        self, node: Apply, inputs: Sequence[Any], output_storage: list[list], params: Any = None
    ) -> None:
        """Compute with numpy."""
        with numpy.errstate(invalid="ignore", divide="ignore"):
            results = _costs_and_slopes(_NUMPY, inputs, self.blank)
        for storage, result, variable in zip(output_storage, results, node.outputs, strict=True):
            storage[0] = numpy.asarray(result, variable.type.dtype)

    def infer_shape(self, fgraph: Any, node: Apply, shapes: Sequence[tuple]) -> list[tuple]:
        """Return one length for the costs, and the lengths of the scores."""
        return [(shapes[0][1],), shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Only the scores are quantities."""
        return [[True, True], *[[False, False]] * 3]

    def L_op(
        self, inputs: Sequence[Any], outputs: Sequence[Any], gradients: Sequence[Any]
    ) -> list[Variable]:
        """Scale the derivatives, which are outputs already."""
        of_costs, of_slopes = gradients
        if not isinstance(of_slopes.type, DisconnectedType):
            slope = grad_not_implemented(self, 0, inputs[0], "ctc_loss is differentiated once.")
        else:
            slope = of_costs[None, :, None] * outputs[1]
        return [slope, *(DisconnectedType()() for _ in inputs[1:])]


class _Backend(NamedTuple):
    """Arrays of numpy or of JAX, and how a loop is run over them."""

    numpy: Any
    loop: Callable[..., tuple[Any, Any]]
    matmul: Callable[[Any, Any], Any]


def _numpy_loop(step: Callable, start: Any, sequences: Any, reverse: bool = False) -> Any:
    """Do for arrays of numpy what ``lax.scan`` does for arrays of JAX."""
    num_steps = len(sequences[0])
    collected = numpy.zeros((num_steps, *start.shape), start.dtype)
    state = start
    places = range(num_steps)
    for place in reversed(places) if reverse else places:
        state, collected[place] = step(state, tuple(x[place] for x in sequences))
    return state, collected


_NUMPY = _Backend(numpy, _numpy_loop, numpy.matmul)
_JAX = _Backend(jnp, lax.scan, lambda x, y: jnp.matmul(x, y, precision="highest"))


@lowering(CTCLoss, fold=False)
def lower_ctc_loss(op: CTCLoss, node: Apply, context: Context) -> Callable:
    """Compute costs and derivatives in two loops over the frames."""

    def ctc(*operands: Any) -> tuple[jax.Array, ...]:
        return _costs_and_slopes(_JAX, [jnp.asarray(x) for x in operands], op.blank)

    return ctc


def _costs_and_slopes(backend: _Backend, operands: Sequence[Any], blank: int) -> tuple[Any, Any]:
    """Compute the costs and their derivatives by the scores.

    Between and around the labels there may be blanks: the *states* are blank, label, blank, …,
    label, blank.
    """
    xp = backend.numpy
    scores, labels, input_lengths, label_lengths = operands
    num_frames, _, num_classes = scores.shape
    _check_blank(blank, num_classes)
    blank = blank % num_classes
    scores = scores.astype(xp.promote_types(scores.dtype, "float32"))
    labels, input_lengths, label_lengths = (
        x.astype("int32") for x in (labels, input_lengths, label_lengths)
    )
    is_label = xp.arange(labels.shape[1]) < label_lengths[:, None]
    is_wrong = (labels < 0) | (labels >= num_classes) | (labels == blank)
    is_possible = (
        ~(is_label & is_wrong).any(axis=1)
        & (label_lengths >= 0)
        & (label_lengths <= labels.shape[1])
        & (input_lengths >= 0)
        & (input_lengths <= num_frames)
    )
    labels = xp.where(is_label & ~is_wrong, labels, blank)
    logarithms = _log_softmax(xp, scores)
    states = _between(xp, labels, blank)
    shape = (num_frames, *states.shape)
    emitted = xp.take_along_axis(logarithms, xp.broadcast_to(states[None], shape), axis=2)
    # From a label to the next one without a blank between them, if they differ.
    preceding = xp.pad(labels, ((0, 0), (1, 0)), constant_values=blank)[:, :-1]
    jumps = _between(xp, labels != preceding, False)
    is_frame = xp.arange(num_frames)[:, None] < input_lengths
    total, forward, backward = _both_ways(
        backend, emitted, xp.where(jumps, 0, -xp.inf), is_frame, label_lengths
    )

    is_reached = is_possible & (total != -xp.inf)
    weights = xp.exp(forward + backward - xp.where(is_reached, total, 0)[:, None])
    expected = _per_class(backend, weights, labels, blank, num_classes)
    slopes = xp.where((is_frame & is_reached)[:, :, None], xp.exp(logarithms) - expected, 0)
    slopes = xp.where(is_possible[:, None], slopes, xp.nan)
    return xp.where(is_possible, -total, xp.nan), slopes


def _both_ways(
    backend: _Backend, emitted: Any, jumps: Any, is_frame: Any, label_lengths: Any
) -> tuple[Any, Any, Any]:
    """Add up the alignments before and after each frame.

    Parameters
    ----------
    backend : _Backend
    emitted : array of shape (time, batch, state)
        The logarithm of the probability of a state's class.
    jumps : array of shape (batch, state)
        0 where the last but one state may come before, minus infinity elsewhere.
    is_frame : array of shape (time, batch)
    label_lengths : array of shape (batch,)

    Returns
    -------
    total : array of shape (batch,)
        The logarithm of the probability of all alignments.
    forward, backward : array of shape (time, batch, state)
        Of those up to a frame that end in a state, and of those after it.
    """
    xp = backend.numpy
    impossible = xp.full_like(emitted[:1].sum(axis=0), -xp.inf)
    places = xp.arange(emitted.shape[2])
    # As if a blank came before the first frame.
    first = xp.where(places == 0, 0, impossible)
    ends = xp.abs(places - 2 * label_lengths[:, None] + 0.5) < 1
    last = xp.where(ends, 0, impossible)

    def forwards(state: Any, frame: Any) -> Any:
        emission, is_there = frame
        moved = _shifted(xp, state, 1)
        jumped = _shifted(xp, state, 2) + jumps
        new = _log_of_sum(xp, state, moved, jumped) + emission
        new = xp.where(is_there[:, None], new, state)
        return new, new

    def backwards(state: Any, frame: Any) -> Any:
        emission, is_there = frame
        emitted_next = state + emission
        moved = _shifted(xp, emitted_next, -1)
        jumped = _shifted(xp, emitted_next + jumps, -2)
        new = _log_of_sum(xp, emitted_next, moved, jumped)
        return xp.where(is_there[:, None], new, state), state

    end, forward = backend.loop(forwards, first, (emitted, is_frame))
    _, backward = backend.loop(backwards, last, (emitted, is_frame), reverse=True)
    total = xp.where(ends, end, -xp.inf)
    highest = total.max(axis=1)
    total = xp.log(xp.exp(total - xp.where(highest > -xp.inf, highest, 0)[:, None]).sum(axis=1))
    return total + highest, forward, backward


def _log_softmax(xp: Any, scores: Any) -> Any:
    centred = scores - scores.max(axis=-1, keepdims=True)
    return centred - xp.log(xp.exp(centred).sum(axis=-1, keepdims=True))


def _log_of_sum(xp: Any, *logarithms: Any) -> Any:
    """Add up numbers that are given by their logarithms."""
    highest = functools.reduce(xp.maximum, logarithms)
    reference = xp.where(highest > -xp.inf, highest, 0)
    return reference + xp.log(sum(xp.exp(x - reference) for x in logarithms))


def _between(xp: Any, labels: Any, other: Any) -> Any:
    """Put another value before, between and after the elements of each row."""
    pairs = xp.stack([xp.full_like(labels, other), labels], axis=2)
    rows = pairs.reshape(labels.shape[0], 2 * labels.shape[1])
    return xp.pad(rows, ((0, 0), (0, 1)), constant_values=other)


def _shifted(xp: Any, values: Any, steps: int) -> Any:
    """Move each row to the right, or to the left, and fill with minus infinity."""
    before, after = max(steps, 0), max(-steps, 0)
    padded = xp.pad(values, ((0, 0), (before, after)), constant_values=-xp.inf)
    return padded[:, after : after + values.shape[1]]


def _per_class(backend: _Backend, weights: Any, labels: Any, blank: int, num_classes: int) -> Any:
    """Add up the weights of states that stand for the same class, as a product of matrices.

    A sum by index would be a scatter, which is slower, and which some versions of XLA abort on.
    """
    xp = backend.numpy
    classes = xp.arange(num_classes)
    is_class = (labels[:, :, None] == classes).astype(weights.dtype)
    of_labels = backend.matmul(xp.moveaxis(weights[:, :, 1::2], 0, 1), is_class)
    of_blanks = weights[:, :, ::2].sum(axis=2)[:, :, None] * (classes == blank)
    return xp.moveaxis(of_labels, 0, 1) + of_blanks.astype(weights.dtype)
