"""Signals that ask a main loop to stop, noted as flags that it reads between two batches."""

import signal
import threading
from types import FrameType
from typing import Any

# This SIGINT is one for the handler that was there before, usually a KeyboardInterrupt.
_AT_ONCE = 3


class TrainingFinish(Exception):
    """Raised by an extension to end training at once and as usual, with `after_training`.

    The extensions that would be called after it for the same batch or epoch are not; the usual way
    is a request that all of them see: ``main_loop.log.current_row['training_finish_requested']``.
    """


class Signals:
    """A context in which SIGINT, SIGTERM and SIGHUP are noted; the old handlers come back after it.

    Outside of the main thread, where Python takes no handlers, nothing is done.

    Attributes
    ----------
    received : bool
        Whether a signal came since this was last set to False.
    interrupts : int
        How often SIGINT came.
    terminated : bool
        Whether SIGTERM or SIGHUP came.
    terminated_by : signal.Signals
        Which of them came first, if one came.
    in_step : bool
        Whether a step is being done that must come to its end, to be set by who does it: a third
        SIGINT is then held back, the fourth is not.
    held : bool
        Whether one was held back; see `let_go`.
    """

    def __init__(self) -> None:
        self.received = False
        self.interrupts = 0
        self.terminated = False
        self.terminated_by = signal.SIGTERM
        self.in_step = False
        self.held = False
        self._old: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        handlers: dict[int, Any] = {signal.SIGINT: self._interrupt}
        handlers |= dict.fromkeys((signal.SIGTERM, signal.SIGHUP), self._terminate)
        for number, handler in handlers.items():
            old = signal.getsignal(number)
            # Who started us may have asked that the signal be ignored (nohup, a shell's `&`); None
            # is a handler that was not set from Python and could not be put back.
            if old not in (signal.SIG_IGN, None):
                self._old[number] = signal.signal(number, handler)

    def __exit__(self, *_: object) -> None:
        self.put_back()

    def put_back(self) -> None:
        """Put the old handlers back."""
        while self._old:
            signal.signal(*self._old.popitem())

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupts += 1
        self.received = True
        if self.interrupts < _AT_ONCE:
            return
        signal.signal(signal.SIGINT, self._old[signal.SIGINT])
        self.held = self.in_step
        if not self.held:
            signal.raise_signal(signal.SIGINT)

    def let_go(self) -> None:
        """Give a SIGINT that was held back to the handler that was there before."""
        if self.held:
            self.held = False
            signal.raise_signal(signal.SIGINT)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if not self.terminated:
            self.terminated_by = signal.Signals(number)
        self.terminated = True
        self.received = True
