"""Cross-entropy over very many classes, of which a few are drawn at each step."""

import math
from typing import Any

from aesara import tensor
from aesara.tensor import special
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import application
from bricks.checks import check_ndim, check_sizes, describe
from bricks.cost.base import Cost
from bricks.interfaces import Initializable, Random, check_last_dim
from bricks.lookup import TiedProjection, check_integers, look_up
from bricks.simple import Linear
from bricks.targets import cross_entropy
from fuel_data.utils.names import nearest_name

__all__ = ["SampledSoftmax"]

#: A uniform number in 32 bits tells 2 ** 23 values apart: too few to draw one of a million classes.
#: So it is drawn in two steps, of this many coarse ones and as many fine ones as there are.
_COARSE = 4096

_DISTRIBUTIONS = ("log_uniform", "uniform")


class SampledSoftmax(Initializable, Random, Cost):
    """Cross-entropy of a softmax over very many classes, estimated from a few of them.

    At each step some classes are drawn, the same for the whole batch. They stand for all that are
    not the target, each with a weight of one over how often it is expected to be drawn, so that the
    sum over all classes is estimated without a bias. The logarithm makes the cost a little too
    small, and the less so the more classes are drawn. For evaluation there is `full_costs`.

    Parameters
    ----------
    projection : Linear or TiedProjection
        What gives the scores of the classes; a child of this brick. `TiedProjection` has the
        weights of a class in one row, which is faster to look up.
    num_sampled : int
        How many classes are drawn at each step, with replacement.
    distribution : {'log_uniform', 'uniform'}
        What they are drawn from: class ``k`` with a probability of ``log((k + 2) / (k + 1))``, up
        to a factor, as for words that are ordered by how frequent they are; or all evenly.
    **kwargs
        For `Initializable` and `Random`: schemes of initialization, `theano_seed`, `name`.

    References
    ----------
    Y. Bengio, J.-S. Senecal, "Adaptive importance sampling to accelerate training of a neural
    probabilistic language model", *IEEE Transactions on Neural Networks* 19, 2008. S. Jean, K. Cho,
    R. Memisevic, Y. Bengio, "On using very large target vocabulary for neural machine translation",
    ACL 2015. The target itself is always there, so it is not corrected.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks import LookupTable, TiedProjection
    >>> from bricks.cost import SampledSoftmax
    >>> words = LookupTable(length=100000, dim=64, name="words")
    >>> cost = SampledSoftmax(TiedProjection(words), num_sampled=1000)
    >>> y, hidden, mask = tensor.lmatrix("y"), tensor.tensor3("hidden"), tensor.matrix("mask")
    >>> training_cost = (cost.costs(y, hidden) * mask).sum() / mask.sum()
    >>> test_cost = (cost.full_costs(y, hidden) * mask).sum() / mask.sum()
    """

    def __init__(
        self,
        projection: Linear | TiedProjection,
        num_sampled: int,
        distribution: str = "log_uniform",
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if not isinstance(projection, Linear | TiedProjection):
            raise TypeError(
                f"{name}: `projection` must be a Linear or a TiedProjection, whose weights can be "
                f"taken for single classes; got {projection!r}."
            )
        if distribution not in _DISTRIBUTIONS:
            raise ValueError(
                f"{name}: `distribution` must be one of {', '.join(map(repr, _DISTRIBUTIONS))}; "
                f"got {distribution!r}.{nearest_name(distribution, _DISTRIBUTIONS)}"
            )
        super().__init__(children=[projection], **kwargs)
        self.projection = projection
        self.num_sampled = num_sampled
        self.distribution = distribution

    def _allocate(self) -> None:
        check_sizes(self, num_sampled=self.num_sampled)

    @application(inputs=["y", "input_", "candidates"], outputs=["cost"])
    def apply(self, y: Variable, input_: Variable, candidates: Variable | None = None) -> Variable:
        """Mean of the estimated costs; the arguments are those of `costs`.

        Parameters
        ----------
        y, input_, candidates : Variable
            See `costs`.

        Returns
        -------
        Variable
            A scalar.
        """
        return self.costs(y, input_, candidates).mean()

    @application(inputs=["y", "input_", "candidates"], outputs=["costs"])
    def costs(
        self,
        application: Any,
        y: Variable,
        input_: Variable,
        candidates: Variable | None = None,
    ) -> Variable:
        """Estimate the cost of each example.

        Parameters
        ----------
        y : Variable of shape (...)
            Integers from 0: the classes.
        input_ : Variable of shape (..., feature)
            What the projection would be applied to.
        candidates : Variable of shape (sample,), optional
            The classes that were drawn; drawn anew at each step by default.

        Returns
        -------
        Variable of shape (...)
            In nats. NaN where a class is none of the projection's; backends that can raise do.

        Raises
        ------
        ValueError
            If a shape or dtype does not fit.
        """
        self._check(application.path, y, input_)
        if candidates is None:
            candidates = self.draw_candidates()
        check_integers(application.path, candidates=candidates)
        if candidates.ndim != 1:
            raise ValueError(
                f"{application.path}: `candidates` must have shape (sample,); got "
                f"{describe(candidates)}."
            )
        input_ = as_float(input_)
        own = (input_ * self._weights(y)).sum(axis=-1) + self._biases(y)
        others = tensor.dot(input_, self._weights(candidates).T) + self._biases(candidates)
        others = others - self._log_expected_counts(candidates)
        hits = tensor.eq(candidates, tensor.shape_padright(y))
        others = tensor.switch(hits, -float("inf"), others)
        scores = tensor.concatenate([tensor.shape_padright(own), others], axis=-1)
        logarithms: Any = special.LogSoftmax(axis=-1)(scores)
        return -logarithms[..., 0]

    @application(inputs=["y", "input_"], outputs=["costs"])
    def full_costs(self, application: Any, y: Variable, input_: Variable) -> Variable:
        """Compute the cost of each example from all classes, for evaluation.

        Parameters
        ----------
        y : Variable of shape (..., batch)
            Integers from 0: the classes.
        input_ : Variable of shape (..., batch, feature)
            What the projection is applied to.

        Returns
        -------
        Variable of shape (..., batch)
            In nats; NaN where the class is not one of them.
        """
        self._check(application.path, y, input_)
        logarithms: Any = special.LogSoftmax(axis=-1)(self.projection.apply(input_))
        return cross_entropy(application.path, y, logarithms)

    def draw_candidates(self) -> Variable:
        """Draw the classes that stand for all, anew at each step.

        Returns
        -------
        Variable of shape (sample,)
            Integers from 0 and below the number of classes; some may be there more than once.
        """
        num_classes = self.projection.output_dim
        if self.distribution == "uniform":
            return self.theano_rng.integers((self.num_sampled,), 0, num_classes)
        coarse = self.theano_rng.integers((self.num_sampled,), 0, _COARSE)
        step = math.log(num_classes + 1) / _COARSE
        fine = self.theano_rng.uniform((self.num_sampled,))
        # Uniform logarithms of numbers from 1, rounded down to the classes from 0.
        numbers = tensor.exp(step * as_float(coarse)) * tensor.exp(step * fine)
        return tensor.clip(tensor.floor(numbers).astype("int64") - 1, 0, num_classes - 1)

    def _check(self, path: str, y: Variable, input_: Variable) -> None:
        check_integers(path, y=y)
        check_ndim(path, 1, input_=input_)
        application = path.rpartition(".")[2]
        check_last_dim(self, input_, self.projection.input_dim, application=application)
        lengths = zip(y.type.shape, input_.type.shape, strict=False)
        differ = any(None not in pair and pair[0] != pair[1] for pair in lengths)
        if y.ndim != input_.ndim - 1 or differ:
            raise ValueError(
                f"{path}: `y` must have the axes of `input_` without that of the features; got "
                f"{describe(y)} and {describe(input_)}."
            )

    def _weights(self, classes: Variable) -> Variable:
        """Weights of classes, each of shape (feature,)."""
        is_tied = isinstance(self.projection, TiedProjection)
        table = self.projection.W if is_tied else self.projection.W.T
        return look_up(table, classes)

    def _biases(self, classes: Variable) -> Any:
        if not self.projection.use_bias:
            return 0
        return look_up(self.projection.b.dimshuffle(0, "x"), classes)[..., 0]

    def _log_expected_counts(self, classes: Variable) -> Any:
        """Logarithm of how often each class is expected among all that are drawn."""
        num_classes = self.projection.output_dim
        if self.distribution == "uniform":
            return math.log(self.num_sampled / num_classes)
        ratios = tensor.log1p(1 / (as_float(classes) + 1))
        return tensor.log(ratios) + math.log(self.num_sampled / math.log(num_classes + 1))
