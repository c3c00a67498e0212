"""End training when enough is done."""

from typing import Any

from extensions.base import SimpleExtension
from extensions.predicates import Reached

_COUNTERS = {"after_n_epochs": "epochs_done", "after_n_batches": "iterations_done"}


class FinishAfter(SimpleExtension):
    """Ask the main loop to end training when a trigger says so.

    With ``after_n_epochs`` or ``after_n_batches``, a run that has done at least so many is ended:
    one that is resumed after its end does not train any further.

    Parameters
    ----------
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`.
    """

    records_written = ("training_finish_requested",)

    def __init__(self, name: str | None = None, **triggers: Any) -> None:
        super().__init__(name, **triggers)

    def set_conditions(self, **triggers: Any) -> "FinishAfter":
        """Set the triggers, in place of all conditions that there were.

        Parameters
        ----------
        **triggers
            As for `SimpleExtension`.

        Returns
        -------
        FinishAfter
            This extension.

        Raises
        ------
        TypeError
            If a keyword is not a trigger.
        """
        super().set_conditions(**triggers)
        conditions = self.conditions
        self._conditions = []
        for callback_name, predicate, arguments in conditions:
            counter = _COUNTERS.get(getattr(predicate, "condition", ""))
            if counter is None:
                self.add_condition([callback_name], predicate, arguments)
            else:
                reached = Reached(counter, predicate.num)  # type: ignore[attr-defined]
                self.add_condition([callback_name, "on_resumption"], reached)
        return self

    def extend(self, *, epochs: int | None = None, batches: int | None = None) -> None:
        """Let a run go on beyond its end: numbers to reach are set anew, from where it is now.

        Parameters
        ----------
        epochs, batches : int, optional
            How many more of them; exactly one is given.

        Raises
        ------
        ValueError
            If none or both are given.
        """
        if (epochs is None) == (batches is None):
            raise ValueError(f"{self.name}.extend: give either `epochs` or `batches`.")
        others = [c for c in self.conditions if not isinstance(c[1], Reached)]
        status = self.main_loop.log.status
        if epochs is not None:
            self.set_conditions(after_n_epochs=status["epochs_done"] + epochs)
        else:
            self.set_conditions(after_n_batches=status["iterations_done"] + batches)
        for callback_name, predicate, arguments in others:
            self.add_condition([callback_name], predicate, arguments)

    def do(self, which_callback: str, *args: Any) -> None:
        """Ask for the end of training.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.
        """
        self.main_loop.log.current_row["training_finish_requested"] = True
