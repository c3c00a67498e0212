"""The models compiled by firebrick, as a step to time."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from typing import Any

import jax
import models
import numpy


class Step:
    """A compiled training step.

    Parameters
    ----------
    name : str
        Of the model.
    sizes : dict
        Of the model.
    parameters : dict of str to array
        First values.
    batch : list of array
        For which it is compiled.
    device : str
        Such as ``'cpu'``.
    """

    def __init__(
        self,
        name: str,
        sizes: models.Sizes,
        parameters: Mapping[str, numpy.ndarray],
        batch: list[numpy.ndarray],
        device: str,
    ):
        # Where JAX chooses the device by itself, calls need not say it.
        jax.config.update("jax_platforms", device)
        (model,) = (model for model in [*models.MODELS, *models.OVERHEADS] if model.name == name)
        graph = model.make(sizes)
        self._step = models.compile_step(graph)
        self._step(*batch)
        for name, variable in graph.parameters.items():
            variable.set_value(parameters[name])
        self._batch = batch

    def __call__(self, batch: list[numpy.ndarray]) -> float:
        """Train on a batch and return the cost before that."""
        return float(self._step(*batch))

    def figures(self) -> dict[str, Any]:
        """Give what is measured beside the time of a step.

        Returns
        -------
        dict
            ``build``, seconds by stage; ``memory``, bytes of XLA's buffers for a step; ``peak``,
            bytes that the process took at most; ``version``.
        """
        times = self._step.build_times
        return {
            "build": {stage: getattr(times, stage) for stage in ("rewrite", "trace", "compile")},
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "memory": self._step.memory(*self._batch).total,
            "version": f"jax {jax.__version__}",
        }
