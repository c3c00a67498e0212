"""The cost of label sequences whose alignment with the frames is not known."""

from typing import Any

from aesara import tensor
from aesara.raise_op import Assert
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import application
from bricks.checks import check_ndim, describe
from bricks.cost.base import Cost
from bricks.lookup import check_integers
from bricks.utils.plain import is_integer
from bricks.xla import ctc_loss

__all__ = ["CTC"]


class CTC(Cost):
    """Connectionist temporal classification: how unlikely labels are, however they are aligned.

    All sequences have time as their first axis, as they do in recurrent bricks. Where they end is
    said by masks (1 up to the end of a sequence, 0 beyond) or by lengths, whichever the data set
    gives; without either, all are as long as the longest.

    Parameters
    ----------
    blank : int
        The class that stands for no label; a negative one counts from the last.
    **kwargs
        For `Brick`.

    References
    ----------
    A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber, "Connectionist temporal classification:
    labelling unsegmented sequence data with recurrent neural networks", ICML 2006.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.cost import CTC
    >>> labels, scores = tensor.lmatrix("labels"), tensor.tensor3("scores")
    >>> labels_mask, frames_mask = tensor.matrix("labels_mask"), tensor.matrix("frames_mask")
    >>> CTC().apply(labels, scores, y_mask=labels_mask, y_hat_mask=frames_mask)
    ctc_apply_cost
    """

    def __init__(self, blank: int = 0, **kwargs: Any) -> None:
        if not is_integer(blank):
            raise ValueError(
                f"{type(self).__name__}: `blank` must be an integer, the number of a class; got "
                f"{blank!r}."
            )
        super().__init__(**kwargs)
        self.blank = blank

    @application(outputs=["cost"])
    def apply(
        self,
        y: Variable,
        y_hat: Variable,
        y_mask: Variable | None = None,
        y_hat_mask: Variable | None = None,
        y_lengths: Variable | None = None,
        y_hat_lengths: Variable | None = None,
    ) -> Variable:
        """Mean cost of the sequences of a batch; the arguments are those of `costs`.

        Parameters
        ----------
        y, y_hat, y_mask, y_hat_mask, y_lengths, y_hat_lengths : Variable
            See `costs`.

        Returns
        -------
        Variable
            A scalar; infinite if one sequence has fewer frames than its labels need.
        """
        return self.costs(y, y_hat, y_mask, y_hat_mask, y_lengths, y_hat_lengths).mean()

    @application(outputs=["costs"])
    def costs(
        self,
        application: Any,
        y: Variable,
        y_hat: Variable,
        y_mask: Variable | None = None,
        y_hat_mask: Variable | None = None,
        y_lengths: Variable | None = None,
        y_hat_lengths: Variable | None = None,
    ) -> Variable:
        """Cost of each sequence.

        Parameters
        ----------
        y : Variable of shape (label, batch)
            Integers: the classes in order, without blanks.
        y_hat : Variable of shape (time, batch, class)
            Scores of each frame, before a softmax over the classes.
        y_mask : Variable of shape (label, batch), optional
            1 for what is a label, 0 beyond.
        y_hat_mask : Variable of shape (time, batch), optional
            1 for what is a frame, 0 beyond.
        y_lengths : Variable of shape (batch,), optional
            How many labels there are, in place of `y_mask`.
        y_hat_lengths : Variable of shape (batch,), optional
            How many frames there are, in place of `y_hat_mask`.

        Returns
        -------
        Variable of shape (batch,)
            In nats. Infinite, with a gradient of 0, where there are fewer frames than the labels
            need; NaN where a label is no class or is the blank.

        Raises
        ------
        ValueError
            If a shape or dtype does not fit, the blank is none of the classes, or a mask and
            lengths are given for the same. Where the number of classes is known only at run time
            it is an ``AssertionError`` there.
        """
        path = application.path
        check_integers(path, y=y)
        _check_axes(path, "y", y, 2, "(label, batch)")
        _check_axes(path, "y_hat", y_hat, 3, "(time, batch, class)")
        label_lengths = _lengths(path, "y", y_mask, y_lengths, "(label, batch)")
        frame_lengths = _lengths(path, "y_hat", y_hat_mask, y_hat_lengths, "(time, batch)")
        y_hat = self._with_blank(path, y_hat)
        costs: Any = ctc_loss(as_float(y_hat), y.T, frame_lengths, label_lengths, self.blank)
        return costs

    def _with_blank(self, path: str, y_hat: Variable) -> Any:
        """Refuse scores of so few classes that the blank is none of them, now or at run time."""
        least = self.blank + 1 if self.blank >= 0 else -self.blank
        num_classes = y_hat.type.shape[-1]
        message = f"{path}: `blank` is {self.blank}, so `y_hat` must have at least {least} classes"
        if num_classes is None:
            return Assert(f"{message} on its last axis.")(y_hat, tensor.ge(y_hat.shape[-1], least))
        if num_classes < least:
            raise ValueError(f"{message}; got {describe(y_hat)}.")
        return y_hat


def _lengths(
    path: str, name: str, mask: Variable | None, lengths: Variable | None, axes: str
) -> Variable | None:
    """How long sequences are, of whatever says it."""
    if mask is not None and lengths is not None:
        raise ValueError(
            f"{path}: give `{name}_mask` or `{name}_lengths`, not both; they say the same."
        )
    if mask is not None:
        _check_axes(path, f"{name}_mask", mask, 2, axes)
        return tensor.neq(mask, 0).sum(axis=0)
    if lengths is not None:
        check_integers(path, **{f"{name}_lengths": lengths})
        _check_axes(path, f"{name}_lengths", lengths, 1, "(batch,)")
    return lengths


def _check_axes(path: str, name: str, variable: Variable, ndim: int, axes: str) -> None:
    check_ndim(path, ndim, **{name: variable})
    if variable.ndim != ndim:
        raise ValueError(f"{path}: `{name}` must have shape {axes}; got {describe(variable)}.")
