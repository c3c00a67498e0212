"""Extensions of the main loop: what watches, reports, saves, changes and ends training.

Here are the base classes and what nearly every script uses; see also `extensions.monitoring`,
`extensions.saveload`, `extensions.stopping`, `extensions.training` and `extensions.predicates`.
"""

# First, because it sets Aesara up, which must come before anything imports Aesara.
import bricks  # noqa: F401
from extensions.base import (
    CompositeExtension,
    SimpleExtension,
    TrainingExtension,
    always_true,
    callback,
)
from extensions.finishing import FinishAfter
from extensions.predicates import Predicate, has_done_epochs
from extensions.progress import ProgressBar
from extensions.reports import Printing
from extensions.timing import Timestamp, Timing

__all__ = [
    "CompositeExtension",
    "FinishAfter",
    "Predicate",
    "Printing",
    "ProgressBar",
    "SimpleExtension",
    "Timestamp",
    "Timing",
    "TrainingExtension",
    "always_true",
    "callback",
    "has_done_epochs",
]
