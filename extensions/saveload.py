"""Save the main loop while it runs, and load what was saved.

A checkpoint has the whole state by name, and the pickled loop beside it (see
`bricks.serialization`). It is written beside its target and renamed, so that at every moment there
is a whole one. It is written after all other extensions have been called (`runs_last`), so that a
run that goes on from it does all that the uninterrupted run did.
"""

import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from extensions.base import SimpleExtension

logger = logging.getLogger(__name__)

LOADED_FROM = "loaded_from"
SAVED_TO = "saved_to"


class Checkpoint(SimpleExtension):
    """Save the main loop to a file.

    The newest checkpoint is always at `path`. The row in which it was made gets the record
    ``saved_to``, a tuple of all paths. Nothing is written while a batch has been drawn that is not
    processed yet, nor when the values of the parameters were lost in a step that failed; a warning
    says so then, and the last checkpoint stays.
    While the loop runs, another one that writes to `path` is refused (see `bricks.locks`).

    Parameters
    ----------
    path : path
        The file.
    parameters : list of SharedVariable, optional
        As in Blocks. All parameters are saved in any case; those that are given must be among them.
    save_separately : list of str, optional
        Attributes of the main loop, such as ``log``, that are pickled again under their own names,
        so that ``load(path, 'log')`` reads them alone.
    save_main_loop : bool
        Whether to pickle the main loop too, which `bricks-continue` needs. Its state by name is
        saved in any case.
    use_cpickle : bool
        As in Blocks; it makes no difference.
    keep_last : int
        How many checkpoints to keep. With more than one, each is also kept as
        ``<path>-<batches>``, the suffix at the end, and the oldest of them are deleted.
    keep_best : int
        How many of the best checkpoints to keep as ``<path>-best-<batches>``.
    best_record : str, optional
        The record of the present row that tells which is best. A checkpoint that is made in a row
        without it is not compared.
    choose_best : callable
        Given two values, returns the better one.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`, but not ``before_batch``. By default after training. An argument
        of a condition (`add_condition`) is a path to be used instead.

    Raises
    ------
    ValueError
        If `keep_best` is given without `best_record`, or a number is too small.

    Examples
    --------
    >>> import tempfile
    >>> from aesara import tensor
    >>> from bricks.algorithms import UpdatesAlgorithm
    >>> from bricks.main_loop import MainLoop
    >>> from bricks.utils import shared_floatx
    >>> from extensions import FinishAfter
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> def run(path, num_epochs):
    ...     x, total = tensor.scalar("x"), shared_floatx(0.0, name="total")
    ...     main_loop = MainLoop(
    ...         UpdatesAlgorithm(updates=[(total, total + x)]),
    ...         DataStream(IterableDataset({"x": [1.0, 2.0, 3.0]})),
    ...         extensions=[FinishAfter(after_n_epochs=num_epochs), Checkpoint(path)],
    ...     )
    ...     main_loop.run(resume="auto")              # from the checkpoint, if there is one
    ...     return main_loop.status["iterations_done"], total.get_value().item()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(f"{folder}/total.zip", num_epochs=1), run(f"{folder}/total.zip", num_epochs=2)
    ((3, 6.0), (6, 12.0))
    """

    runs_last = True
    records_written = (SAVED_TO,)

    def __init__(
        self,
        path: str | os.PathLike[str],
        parameters: Iterable[Any] | None = None,
        save_separately: Iterable[str] | None = None,
        save_main_loop: bool = True,
        use_cpickle: bool = False,
        *,
        keep_last: int = 1,
        keep_best: int = 0,
        best_record: str | None = None,
        choose_best: Callable[[Any, Any], Any] = min,
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        if keep_last < 1 or keep_best < 0:
            raise ValueError(
                "Checkpoint: `keep_last` must be at least 1 and `keep_best` at least 0; got "
                f"{keep_last} and {keep_best}."
            )
        if keep_best and best_record is None:
            raise ValueError("Checkpoint: `keep_best` needs `best_record`, by which to compare.")
        self.path = os.fspath(path)
        self.parameters = None if parameters is None else list(parameters)
        self.save_separately = list(save_separately or [])
        self.save_main_loop = save_main_loop
        self.use_cpickle = use_cpickle
        self.keep_last = keep_last
        self.keep_best = keep_best
        self.best_record = best_record
        self.choose_best = choose_best
        # Names in the folder of `path`, oldest first; with their values, best first.
        self._last: list[str] = []
        self._best: list[tuple[str, Any]] = []
        super().__init__(name, **{"after_training": True} | triggers)

    @property
    def records_read(self) -> tuple[str, ...]:
        """Names of the records that this looks for: those of conditions, and `best_record`."""
        compared = () if self.best_record is None else (self.best_record,)
        return (*super().records_read, *compared)

    @property
    def checkpoint_path(self) -> Path:
        """Where the newest checkpoint is, once there is one; ``run(resume='auto')`` looks here."""
        return Path(self.path)

    def add_condition(
        self,
        callbacks_names: Sequence[str],
        predicate: Callable[[Any], bool] | None = None,
        arguments: Iterable[Any] | None = None,
    ) -> "Checkpoint":
        """Save at further times.

        Parameters
        ----------
        callbacks_names : list of str
            The callbacks at which to look.
        predicate : callable, optional
            Given the log, tells whether to save. By default always.
        arguments : iterable, optional
            One path, to be used instead of the usual one.

        Returns
        -------
        Checkpoint
            This extension.

        Raises
        ------
        ValueError
            If a name is not that of a callback, or that of `before_batch`.
        """
        if "before_batch" in callbacks_names:
            raise ValueError(
                f"{self.name}: a loop cannot be saved in `before_batch`, when its batch has been "
                "drawn and would be lost. Use `after_batch`."
            )
        super().add_condition(callbacks_names, predicate, arguments)
        return self

    def before_training(self) -> None:
        """Look whether checkpoints can be written, before time is spent on training."""
        self._check_path()

    def on_resumption(self) -> None:
        """Look again; this may be another process."""
        self._check_path()

    def _check_path(self) -> None:
        folder = self.checkpoint_path.absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(
                f"{self.name}: {self.path} cannot be written, because there is no folder {folder}. "
                "Make it first, or give another `path`."
            )
        if not os.access(folder, os.W_OK):
            raise PermissionError(
                f"{self.name}: {self.path} cannot be written, because nothing may be written to "
                f"the folder {folder}. Change its permissions, or give another `path`."
            )
        if self.checkpoint_path.is_dir():
            raise IsADirectoryError(f"{self.name}: `path` must be a file; {self.path} is a folder.")

    def do(self, which_callback: str, *args: Any) -> None:
        """Save the main loop.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments, and the path of the condition.
        """
        reason = self._reason_not_to_save()
        if reason is not None:
            logger.warning("%s: nothing was saved, because %s.", self.name, reason)
            return
        _, from_user = self.parse_args(which_callback, args)
        if from_user:
            self._save(os.fspath(from_user[0]))
        elif not self.main_loop.restoring:
            self._save_and_keep()

    def _reason_not_to_save(self) -> str | None:
        if self.main_loop.batch_in_flight:
            return "a batch has been drawn that is not processed yet and would be lost"
        if self.main_loop.state_is_lost():
            return "the values of the parameters were lost in a step that failed"
        return None

    def _save_and_keep(self) -> None:
        before = self._last, self._best
        status = self.main_loop.log.status
        # The file itself says which files there will be when it is written.
        outdated = self._note_last(status["iterations_done"])
        best, no_longer_best = self._note_best(status["iterations_done"])
        try:
            self._save(self.path)
        except BaseException:
            self._last, self._best = before
            raise
        if self.keep_last > 1:
            self._keep_as(self._last[-1])
        if best is not None:
            self._keep_as(best)
        for file_name in (*outdated, *no_longer_best):
            self.checkpoint_path.with_name(file_name).unlink(missing_ok=True)

    def _save(self, path: str) -> None:
        from bricks.serialization import dump_and_add_to_dump

        row = self.main_loop.log.current_row
        already = tuple(row.get(SAVED_TO, ()))
        # Noted before, so that the log in the file has it too.
        row[SAVED_TO] = already if path in already else (*already, path)
        try:
            dump_and_add_to_dump(
                self.main_loop,
                path,
                to_add=self._separately(),
                save_main_loop=self.save_main_loop,
            )
        except BaseException as error:
            row[SAVED_TO] = already
            if not already:
                del row[SAVED_TO]
            there = os.path.exists(path)
            still = f" The checkpoint that was at {path} is still there." if there else ""
            if not isinstance(error, OSError) or error.errno is None:
                error.add_note(f"{self.name}: nothing was saved to {path}.{still}")
                raise
            words = f"{self.name}: {path} cannot be written: {os.strerror(error.errno)}.{still}"
            raise OSError(error.errno, words) from error

    def _separately(self) -> dict[str, Any]:
        from bricks.state import named_variables

        if self.parameters is not None:
            known = {v for part in named_variables(self.main_loop).values() for v in part.values()}
            for parameter in self.parameters:
                if parameter not in known:
                    raise ValueError(
                        f"{self.name}: {parameter} of `parameters` belongs neither to the model "
                        "nor to the algorithm."
                    )
        for attribute in self.save_separately:
            if not hasattr(self.main_loop, attribute):
                raise ValueError(f"{self.name}: the main loop has no {attribute!r} to save.")
        # The model is always there under its own name.
        names = [n for n in self.save_separately if n != "model"]
        return {attribute: getattr(self.main_loop, attribute) for attribute in names}

    def _note_last(self, batches: int) -> list[str]:
        if self.keep_last == 1:
            return []
        name = self._file_name(f"-{batches:06}")
        names = [*(other for other in self._last if other != name), name]
        self._last = names[-self.keep_last :]
        return names[: -self.keep_last]

    def _note_best(self, batches: int) -> tuple[str | None, list[str]]:
        log = self.main_loop.log
        value = log.peek(log.status["iterations_done"]).get(self.best_record)
        if not self.keep_best or value is None or value != value:
            return None, []
        name = self._file_name(f"-best-{batches:06}")
        others = [(other, its) for other, its in self._best if other != name]
        place = sum(its == value or self.choose_best(its, value) == its for _, its in others)
        ranked = [*others[:place], (name, value), *others[place:]]
        self._best = ranked[: self.keep_best]
        kept = name if place < self.keep_best else None
        return kept, [other for other, _ in ranked[self.keep_best :] if other != name]

    def _file_name(self, infix: str) -> str:
        path = self.checkpoint_path
        return f"{path.stem}{infix}{path.suffix}"

    def _keep_as(self, file_name: str) -> None:
        """Give the newest checkpoint a further name; as a copy where there are no links."""
        path = self.checkpoint_path
        temporary = path.with_name(f".{file_name}.new")
        temporary.unlink(missing_ok=True)
        try:
            os.link(path, temporary)
        except OSError:
            shutil.copy2(path, temporary)
        os.replace(temporary, path.with_name(file_name))

    def get_state(self) -> dict[str, Any]:
        """Give the names of the files that are kept beside `path`.

        Returns
        -------
        dict
            Plain data; empty if there are none.
        """
        from bricks.log.plain import encode

        if not self._last and not self._best:
            return {}
        return {"last": list(self._last), "best": encode([list(pair) for pair in self._best])}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            Plain data.
        """
        from bricks.log.plain import decode

        self._last = list(state.get("last", ()))
        self._best = [(name, value) for name, value in decode(state.get("best", []))]


class Load(SimpleExtension):
    """Load parameters from a file before training, or more of a checkpoint.

    Nothing is unpickled. A loop that is resumed (`MainLoop.restore`, `run(resume='auto')`) is left
    as the checkpoint has it. The row of the beginning gets the record ``loaded_from``.

    Parameters
    ----------
    path : path
        A checkpoint, or what Blocks wrote, of which only the parameters are read.
    load_iteration_state : bool
        Whether to load the position of the stream, too.
    load_log : bool
        Whether to load the log, too. Training is then resumed, not begun.
    load_algorithm : bool, optional
        Whether to load the buffers, hyperparameters and random keys of the algorithm, too. By
        default if the position and the log are both loaded.
    ignore : iterable of str
        Names, or patterns with ``*``, of what shall stay as it is. Any other name that is missing,
        unexpected or of another shape is refused.
    name : str, optional
        What the extension is called. By default the name of its class.
    **triggers
        As for `SimpleExtension`. By default before training.
    """

    records_written = (LOADED_FROM,)

    def __init__(
        self,
        path: str | os.PathLike[str],
        load_iteration_state: bool = False,
        load_log: bool = False,
        load_algorithm: bool | None = None,
        ignore: Iterable[str] = (),
        name: str | None = None,
        **triggers: Any,
    ) -> None:
        if isinstance(ignore, str):
            raise TypeError(f"Load: `ignore` must be a list of names; got {ignore!r}.")
        self.path = os.fspath(path)
        self.load_iteration_state = load_iteration_state
        self.load_log = load_log
        both = load_iteration_state and load_log
        self.load_algorithm = both if load_algorithm is None else load_algorithm
        self.ignore = tuple(ignore)
        # Other extensions add what the algorithm remembers; that must be there to be filled.
        self.runs_last = self.load_algorithm
        super().__init__(name, **{"before_training": True} | triggers)

    def do(self, which_callback: str, *args: Any) -> None:
        """Load.

        Parameters
        ----------
        which_callback : str
            The callback at which a condition held.
        *args
            Its arguments.

        Raises
        ------
        FileNotFoundError
            If there is no such file; the nearest name is named.
        """
        from bricks.state import set_state

        if self.main_loop.restoring:
            return
        try:
            state = self._read()
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self.name}: {error} `path` must be that of a file that was saved before."
            ) from None
        set_state(self.main_loop, state, parts=list(state), ignore=self.ignore)
        self.main_loop.log.current_row[LOADED_FROM] = self.path

    def _read(self) -> dict[str, Any]:
        from bricks.archive import ForeignFile
        from bricks.serialization import load_parameters, load_state

        more = {
            "algorithm": self.load_algorithm,
            "extensions": self.load_iteration_state and self.load_log,
            "stream": self.load_iteration_state,
            "log": self.load_log,
        }
        wanted = ["parameters", "persistent", *(part for part in more if more[part])]
        with contextlib.suppress(ForeignFile):
            state = load_state(self.path)
            return {part: state[part] for part in wanted}
        if any(more.values()):
            raise ValueError(
                f"{self.name}: {self.path} is no checkpoint of a main loop, so only its parameters "
                "can be loaded."
            )
        return {"parameters": load_parameters(self.path)}
