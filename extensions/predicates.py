"""When an extension acts: predicates of the log, which can be pickled."""

import time
from typing import Any


def always_true(log: Any) -> bool:
    """Hold at every call.

    Parameters
    ----------
    log : TrainingLogBase
        The log.

    Returns
    -------
    bool
        True.
    """
    return True


def has_done_epochs(log: Any) -> bool:
    """Hold before the first epoch has ended. (The name is that of Blocks.)

    Parameters
    ----------
    log : TrainingLogBase
        The log.

    Returns
    -------
    bool
        Whether no epoch has been done.
    """
    return log.status["epochs_done"] == 0


class Predicate:
    """Hold when a number of batches or epochs is done.

    Parameters
    ----------
    condition : {'every_n_epochs', 'every_n_batches', 'after_n_epochs', 'after_n_batches'}
        Whether at each multiple of `num`, or once; and what is counted.
    num : int
        The number, at least 1.
    """

    def __init__(self, condition: str, num: int) -> None:
        if isinstance(num, bool) or not hasattr(num, "__index__") or num < 1:
            raise ValueError(f"`{condition}` must be a number of at least 1; got {num!r}.")
        self.condition = condition
        self.num = int(num)
        self._every = condition.startswith("every")
        self._counter = "epochs_done" if condition.endswith("epochs") else "iterations_done"

    def __call__(self, log: Any) -> bool:
        done = log.status[self._counter]
        return done % self.num == 0 if self._every else done == self.num

    def __repr__(self) -> str:
        return f"Predicate({self.condition!r}, {self.num})"


class Reached:
    """Hold when at least a number of batches or epochs is done.

    Parameters
    ----------
    counter : {'iterations_done', 'epochs_done'}
        What is counted.
    num : int
        The number.
    """

    def __init__(self, counter: str, num: int) -> None:
        self.counter = counter
        self.num = num

    def __call__(self, log: Any) -> bool:
        return log.status[self.counter] >= self.num

    def __repr__(self) -> str:
        return f"Reached({self.counter!r}, {self.num})"


class EverySeconds:
    """Hold when some time has passed since it held, or since it was first asked.

    Parameters
    ----------
    seconds : float
        The time, more than 0. It begins anew in a process that resumes a run.
    """

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
            raise ValueError(f"a time between two calls must be more than 0; got {seconds!r}.")
        self.seconds = seconds
        self._last: float | None = None

    def __call__(self, log: Any) -> bool:
        now = time.monotonic()
        if self._last is None:
            self._last = now
        if now - self._last < self.seconds:
            return False
        self._last = now
        return True

    def __getstate__(self) -> dict[str, Any]:
        # The clock of another process has another zero.
        return self.__dict__ | {"_last": None}

    def __repr__(self) -> str:
        return f"EverySeconds({self.seconds})"


class OnLogRecord:
    """Hold when the present row has a record, and the record is true.

    Parameters
    ----------
    record_name : str
        The name of the record.
    """

    def __init__(self, record_name: str) -> None:
        self.record_name = record_name

    def __call__(self, log: Any) -> bool:
        return bool(log.peek(log.status["iterations_done"]).get(self.record_name, False))

    def __repr__(self) -> str:
        return f"OnLogRecord({self.record_name!r})"
