"""Monitoring: what becomes of the values that variables take on many batches.

`bricks.monitoring.aggregation` has the schemes and the functions that attach them to variables,
`bricks.monitoring.evaluators` what computes the aggregates, `bricks.monitoring.quantities` what is
computed in Python.
"""

from bricks.monitoring.aggregation import (
    AggregationScheme,
    Aggregator,
    Concatenate,
    Maximum,
    Mean,
    Minimum,
    Perplexity,
    TakeLast,
    concatenate,
    maximum,
    mean,
    minimum,
    perplexity,
    take_last,
)
from bricks.monitoring.evaluators import AggregationBuffer, DatasetEvaluator
from bricks.monitoring.quantities import MonitoredQuantity, MonitoredQuantityBuffer

__all__ = [
    "AggregationBuffer",
    "AggregationScheme",
    "Aggregator",
    "Concatenate",
    "DatasetEvaluator",
    "Maximum",
    "Mean",
    "Minimum",
    "MonitoredQuantity",
    "MonitoredQuantityBuffer",
    "Perplexity",
    "TakeLast",
    "concatenate",
    "maximum",
    "mean",
    "minimum",
    "perplexity",
    "take_last",
]
