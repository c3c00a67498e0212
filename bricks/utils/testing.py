"""For tests of extensions: a main loop that trains nothing, and tests that may have to be left out.

For tests of bricks see `bricks.testing`.
"""

from __future__ import annotations

import time
import unittest
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

from bricks.algorithms import TrainingAlgorithm
from bricks.config import config
from bricks.main_loop import MainLoop
from fuel_data.utils.paths import find_in_data_path

__all__ = [
    "MockAlgorithm",
    "MockMainLoop",
    "skip_if_configuration_set",
    "skip_if_not_available",
]


class MockAlgorithm(TrainingAlgorithm):
    """An algorithm that learns nothing.

    Parameters
    ----------
    delay_time : float
        Seconds that each batch takes.

    Attributes
    ----------
    batch : dict of str to array
        The batch that was processed last.
    """

    def __init__(self, delay_time: float = 0) -> None:
        self.delay_time = delay_time
        self.batch: Any = None
        self._initialized = False

    def initialize(self) -> None:
        """Get ready.

        Raises
        ------
        RuntimeError
            If that was done before: a main loop does it once.
        """
        if self._initialized:
            raise RuntimeError("MockAlgorithm.initialize: called a second time.")
        self._initialized = True

    def process_batch(self, batch: Any) -> None:
        """Keep the batch.

        Parameters
        ----------
        batch : dict of str to array
            Any.
        """
        time.sleep(self.delay_time)
        self.batch = batch


class _Numbers:
    """A stream of ten batches an epoch: ``{'data': 0}`` to ``{'data': 9}``."""

    sources = ("data",)

    def get_epoch_iterator(self, as_dict: bool = False, epoch: int | None = None) -> Iterator:
        """Begin an epoch; they are all alike."""
        return iter([{"data": number} if as_dict else (number,) for number in range(10)])


class MockMainLoop(MainLoop):
    """A main loop with an algorithm and a stream of its own, to run extensions in.

    Parameters
    ----------
    algorithm : TrainingAlgorithm, optional
        By default a `MockAlgorithm`.
    data_stream : DataStream, optional
        By default the batches ``{'data': 0}`` to ``{'data': 9}`` in each epoch.
    **kwargs
        For `MainLoop`.

    Examples
    --------
    >>> from bricks.utils.testing import MockMainLoop
    >>> from extensions import FinishAfter
    >>> main_loop = MockMainLoop(extensions=[FinishAfter(after_n_epochs=2)])
    >>> main_loop.run()
    >>> main_loop.status["iterations_done"]
    20
    """

    def __init__(self, algorithm: Any = None, data_stream: Any = None, **kwargs: Any) -> None:
        super().__init__(
            algorithm=MockAlgorithm() if algorithm is None else algorithm,
            data_stream=_Numbers() if data_stream is None else data_stream,
            **kwargs,
        )


def skip_if_not_available(
    modules: Iterable[str] | None = None,
    datasets: Iterable[str] | None = None,
    configurations: Iterable[str] | None = None,
) -> None:
    """Leave out the test that is running if it needs something that is not there.

    Parameters
    ----------
    modules : iterable of str, optional
        Modules that must be installed.
    datasets : iterable of str, optional
        Files that must be in the data path.
    configurations : iterable of str, optional
        Settings of `bricks.config` that must have a value.

    Raises
    ------
    unittest.SkipTest
        If one is missing; it is named.
    """
    for module in modules or ():
        if find_spec(module.partition(".")[0]) is None:
            raise unittest.SkipTest(f"module {module!r} is not installed")
    for dataset in datasets or ():
        try:
            find_in_data_path(dataset)
        except OSError as error:
            raise unittest.SkipTest(str(error)) from error
    for configuration in configurations or ():
        if getattr(config, configuration, None) is None:
            raise unittest.SkipTest(f"setting {configuration!r} has no value")


def skip_if_configuration_set(configuration: str, value: Any, message: str | None = None) -> None:
    """Leave out the test that is running if a setting has a value.

    Parameters
    ----------
    configuration : str
        A setting of `bricks.config`.
    value : object
        The value.
    message : str, optional
        Why.

    Raises
    ------
    unittest.SkipTest
        If it has that value.
    """
    if getattr(config, configuration) == value:
        reason = f"setting {configuration!r} is {value!r}"
        raise unittest.SkipTest(reason if message is None else f"{reason}: {message}")
