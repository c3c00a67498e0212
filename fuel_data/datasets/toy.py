"""Points on spirals and on a rolled sheet: data sets that are made, not read."""

from collections.abc import Sequence
from typing import Any

import numpy

from fuel_data.axes import AxisLabels
from fuel_data.datasets.base import IndexableDataset
from fuel_data.utils.arguments import seed_number, whole_number


class Spiral(IndexableDataset):
    """Points on the arms of a spiral in the plane.

    The sources are `features`, float32 of shape (batch, index 2), the points; `position`, float32
    of shape (batch,), how many turns from the inner end of its arm a point is; and `label`, uint8
    of shape (batch,), the arm. The radius grows along an arm from 1/3 by 2/3 with each turn.

    Parameters
    ----------
    num_examples : int, optional
        How many points.
    classes : int, optional
        How many arms, from 1 to 256.
    cycles : float, optional
        How many turns an arm has.
    noise : float, optional
        Standard deviation of the normal noise that is added to the points.
    seed : int, optional
        Seed of the points; by default the setting `default_seed`.
    sources : sequence of str, optional
        The sources wanted, in the order wanted; all by default.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> spiral = Spiral(num_examples=500, classes=2, cycles=1.5, noise=0.1)
    >>> features, position, label = spiral.get_data(request=slice(0, 100))
    >>> features.shape, sorted(set(label.tolist()))
    ((100, 2), [0, 1])
    """

    def __init__(
        self,
        num_examples: int = 1000,
        classes: int = 1,
        cycles: float = 1.0,
        noise: float = 0.0,
        seed: int | None = None,
        sources: Sequence[str] | None = None,
        axis_labels: AxisLabels | None = None,
    ) -> None:
        _check("Spiral", num_examples, noise)
        if not 1 <= classes <= 256:
            raise ValueError(f"Spiral: `classes` must be from 1 to 256; got {classes}.")
        if not cycles > 0:
            raise ValueError(f"Spiral: `cycles` must be positive; got {cycles}.")
        self.classes = classes
        self.cycles = cycles
        self.noise = noise
        self.seed = seed_number("Spiral", seed)
        # Of this class numpy promises that its numbers stay as they are.
        rng = numpy.random.RandomState(self.seed)
        label = rng.randint(classes, size=num_examples)
        position = rng.uniform(0, cycles, size=num_examples)
        angle = 2 * numpy.pi * (position + label / classes)
        points = numpy.stack([numpy.sin(angle), numpy.cos(angle)], axis=1)
        points *= (1 + 2 * position[:, None]) / 3
        points += noise * rng.normal(size=points.shape)
        data = {
            "features": points.astype("float32"),
            "position": position.astype("float32"),
            "label": label.astype("uint8"),
        }
        labels = {"features": ("batch", "index"), "position": ("batch",), "label": ("batch",)}
        super().__init__(data, sources=sources, axis_labels=axis_labels or labels)

    def identity(self) -> dict[str, Any]:
        """Say what data these are; see `Dataset.identity`."""
        made_of = [self.classes, self.cycles, self.noise, self.seed]
        return {**super().identity(), "made_of": made_of}


class SwissRoll(IndexableDataset):
    """Points on a sheet that is rolled up in three dimensions.

    The sources are `features`, float32 of shape (batch, index 3), the points, and `position`,
    float32 of shape (batch, index 2), where on the flat sheet they are: along the roll, from 0 to
    1, and across it, from -1 to 1. The roll has one and a half turns around the second axis, with
    radii from 1/3 to 1.

    Parameters
    ----------
    num_examples : int, optional
        How many points.
    noise : float, optional
        Standard deviation of the normal noise that is added to the points.
    seed : int, optional
        Seed of the points; by default the setting `default_seed`.
    sources : sequence of str, optional
        The sources wanted, in the order wanted; all by default.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    def __init__(
        self,
        num_examples: int = 1000,
        noise: float = 0.0,
        seed: int | None = None,
        sources: Sequence[str] | None = None,
        axis_labels: AxisLabels | None = None,
    ) -> None:
        _check("SwissRoll", num_examples, noise)
        self.noise = noise
        self.seed = seed_number("SwissRoll", seed)
        rng = numpy.random.RandomState(self.seed)
        along = rng.uniform(0, 1, size=num_examples)
        across = rng.uniform(-1, 1, size=num_examples)
        radius = (1 + 2 * along) / 3
        angle = 3 * numpy.pi * along
        points = numpy.stack([radius * numpy.cos(angle), across, radius * numpy.sin(angle)], axis=1)
        points += noise * rng.normal(size=points.shape)
        data = {
            "features": points.astype("float32"),
            "position": numpy.stack([along, across], axis=1).astype("float32"),
        }
        labels = {"features": ("batch", "index"), "position": ("batch", "index")}
        super().__init__(data, sources=sources, axis_labels=axis_labels or labels)

    def identity(self) -> dict[str, Any]:
        """Say what data these are; see `Dataset.identity`."""
        return {**super().identity(), "made_of": [self.noise, self.seed]}


def _check(who: str, num_examples: int, noise: float) -> None:
    whole_number(who, "num_examples", num_examples, least=1)
    if not noise >= 0:
        raise ValueError(f"{who}: `noise` must not be negative; got {noise}.")
