"""Schemes that draw with replacement: each example as likely as the others, or by weights.

They are found in `fuel_data.schemes`. A draw is a function of (seed, epoch, index of the request),
so the position is one number.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from fuel_data.randomness import key
from fuel_data.requests import PositionedScheme, as_indices
from fuel_data.utils.arguments import seed_number, whole_number


class _Sampled(PositionedScheme):
    """What schemes that draw with replacement have in common."""

    indices: Sequence[int]
    batch_size: int = 1

    def _set_draws(self, num_examples: int | None, seed: int | None) -> None:
        who = type(self).__name__
        num_draws = len(self.indices) if num_examples is None else num_examples
        self.num_draws = whole_number(who, "num_examples", num_draws, least=0)
        if self.num_draws and not len(self.indices):
            raise ValueError(
                f"{who}: `num_examples` must be 0 where there are none to draw from; got "
                f"{num_draws}."
            )
        self.seed = seed_number(who, seed)

    @property
    def num_examples(self) -> int:  # type: ignore[override]
        """How many examples an epoch has, those that are drawn again included."""
        return self.num_draws

    @property
    def num_requests(self) -> int:  # type: ignore[override]
        """How many requests an epoch has."""
        return -(-self.num_draws // self.batch_size)

    def make_order(self, epoch: int, place: str) -> tuple:
        """Say what to draw with; see `PositionedScheme.make_order`."""
        weights = getattr(self, "_weights", None)
        return epoch, place, None if weights is None else numpy.cumsum(weights)

    def make_request(self, order: tuple, index: int) -> Any:
        """Draw one request; see `PositionedScheme.make_request`."""
        epoch, place, sums = order
        size = min(self.batch_size, self.num_draws - index * self.batch_size)
        draws = numpy.random.Philox(key=key(self.seed, place, epoch, index)).random_raw(size)
        if sums is None:
            # The product of two numbers below 2 ** 32 fits. Of n examples, one is favoured over
            # another by n / 2 ** 32 of its chance at most.
            halves = draws >> numpy.uint64(32)
            places = halves * numpy.uint64(len(self.indices)) >> numpy.uint64(32)
        else:
            # 53 bits make a float below 1 without rounding; the product may round up to the sum.
            drawn = (draws >> numpy.uint64(11)) * 2.0**-53 * sums[-1]
            last = numpy.searchsorted(sums, sums[-1])
            places = numpy.searchsorted(sums, drawn, side="right").clip(max=last)
        return [int(self.indices[place]) for place in places.tolist()]


class SampledScheme(_Sampled):
    """Ask for batches of examples that are drawn with replacement, each as likely as the others.

    Parameters
    ----------
    examples : int or iterable of int
        How many examples there are, or which.
    batch_size : int
        How many examples a batch has. The last one may have fewer.
    num_examples : int, optional
        How many are drawn in an epoch, by default as many as there are.
    seed : int, optional
        Seed of the draws, ``config.default_seed`` by default.

    Examples
    --------
    >>> list(SampledScheme(10, batch_size=4, num_examples=6, seed=1).get_request_iterator())
    [[6, 0, 3, 9], [9, 8]]
    """

    requests_examples = False

    def __init__(
        self,
        examples: int | Iterable[int],
        batch_size: int,
        num_examples: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        self.batch_size = whole_number(type(self).__name__, "batch_size", batch_size, least=1)
        self.indices = as_indices(type(self).__name__, examples)
        self._set_draws(num_examples, seed)


class SampledExampleScheme(_Sampled):
    """Ask for one example at a time, drawn with replacement, each as likely as the others.

    Parameters
    ----------
    examples : int or iterable of int
        How many examples there are, or which.
    num_examples : int, optional
        How many are drawn in an epoch, by default as many as there are.
    seed : int, optional
        Seed of the draws, ``config.default_seed`` by default.
    """

    requests_examples = True

    def __init__(
        self,
        examples: int | Iterable[int],
        num_examples: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        self.indices = as_indices(type(self).__name__, examples)
        self._set_draws(num_examples, seed)

    def make_request(self, order: tuple, index: int) -> int:
        """Draw one request; see `PositionedScheme.make_request`."""
        return super().make_request(order, index)[0]


class WeightedScheme(_Sampled):
    """Ask for batches of examples that are drawn with replacement, in proportion to weights.

    Parameters
    ----------
    weights : sequence of float
        How likely each example of the data set is: none below 0, not all 0.
    batch_size : int
        How many examples a batch has. The last one may have fewer.
    num_examples : int, optional
        How many are drawn in an epoch, by default as many as there are weights.
    seed : int, optional
        Seed of the draws, ``config.default_seed`` by default.

    Examples
    --------
    >>> scheme = WeightedScheme([0, 1, 3], batch_size=4, num_examples=6, seed=1)
    >>> list(scheme.get_request_iterator())
    [[2, 1, 2, 2], [2, 2]]
    """

    requests_examples = False

    def __init__(
        self,
        weights: Sequence[float],
        batch_size: int,
        num_examples: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        self.batch_size = whole_number(type(self).__name__, "batch_size", batch_size, least=1)
        self._weights = _check_weights(type(self).__name__, weights)
        self.indices = range(len(self._weights))
        self._set_draws(num_examples, seed)


class WeightedExampleScheme(_Sampled):
    """Ask for one example at a time, drawn with replacement in proportion to weights.

    Parameters
    ----------
    weights : sequence of float
        How likely each example of the data set is: none below 0, not all 0.
    num_examples : int, optional
        How many are drawn in an epoch, by default as many as there are weights.
    seed : int, optional
        Seed of the draws, ``config.default_seed`` by default.
    """

    requests_examples = True

    def __init__(
        self,
        weights: Sequence[float],
        num_examples: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        self._weights = _check_weights(type(self).__name__, weights)
        self.indices = range(len(self._weights))
        self._set_draws(num_examples, seed)

    def make_request(self, order: tuple, index: int) -> int:
        """Draw one request; see `PositionedScheme.make_request`."""
        return super().make_request(order, index)[0]


def _check_weights(who: str, weights: Sequence[float]) -> numpy.ndarray:
    given = numpy.asarray(weights, dtype=float)
    with numpy.errstate(over="ignore"):
        is_valid = given.ndim == 1 and (given >= 0).all() and numpy.isfinite(given.sum())
    if not (is_valid and given.any()):
        raise ValueError(
            f"{who}: `weights` must be one number for each example, none below 0 and not all 0; "
            f"got shape {given.shape}, from {given.min(initial=0):g} to {given.max(initial=0):g}."
        )
    return given
