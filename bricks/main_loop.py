"""The main loop: it draws batches from a stream, gives them to an algorithm, and calls extensions.

The life of a run, with the callbacks of the extensions::

    before_training                     once for every loop, before the algorithm is initialized
    on_resumption                       instead, or after it, when batches were done before
    for each epoch of the stream:
        before_epoch
        for each batch:
            before_batch(batch)         the batch has been drawn
            after_batch(batch)          it has been processed and counted
        after_epoch                     the epoch has been counted
    on_interrupt                        when a signal was received, between two batches
    after_training                      training has ended, by itself or by a signal
    on_error(exception)                 instead, if something was raised; it is raised again

Extensions are called in the order of the list, with two exceptions. One that reads records of the
log (`records_read`: `TrackTheBest`, `EarlyStopping`) is called after those that say they write them
(`records_written`). One that saves the loop (`runs_last`) is called after all others that may
change its state, so that what it saves is the state after all of them. See `bricks.ordering`, which
also says in words when a record is looked for that none writes.

Signals, when the loop runs in the main thread. Handlers only set flags, which the loop looks at
between two batches; the handlers that were there before are always put back.

=============  ===================================================================================
SIGINT, first  the epoch is finished, then training ends as usual (`after_training`)
second         the same after the batch
third          ``KeyboardInterrupt`` at once, as an exception like others: `on_error` and no
               `after_training`; but if it comes while a batch is processed, then only after that
               batch, which is neither lost nor processed again if training goes on
fourth         at once, whatever is being done
SIGTERM        the batch is finished, then training ends as usual, so a checkpoint is written;
               further ones are ignored
SIGHUP         the same: the terminal was closed. Not if it is ignored, as under ``nohup``
=============  ===================================================================================

Python looks at signals between two steps of its own: those of one kind that come while one call is
at work in C, such as the first compilation or a long step, count as one.

`MainLoop.exit_status` is then what a script should exit with: 0 if training ended by itself, 130
after SIGINT, 143 after SIGTERM, 129 after SIGHUP, 1 after an exception. A script that a cluster may
stop and start again ends in ``main_loop.run(resume='auto'); sys.exit(main_loop.exit_status)``.

A loop that was stopped can be run again: it goes on where it was. So can its pickle, which may be
made at any batch, and a loop that was built by a script and given the state of a checkpoint.
"""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any

from bricks.callbacks import find_handlers, print_times
from bricks.config import config
from bricks.epochs import open_epoch, takes_number
from bricks.hyperparameters import compare_with_script, get_hyperparameters
from bricks.interrupts import Signals, TrainingFinish
from bricks.locks import claimed
from bricks.log import TrainingLogBase, make_log
from bricks.ordering import check_records, flat, handler_of, in_order, warn_of_missing_records
from bricks.utils import change_recursion_limit
from fuel_data.utils.keywords import NamedKeywords
from fuel_data.utils.names import nearest_name

__all__ = ["MainLoop", "TrainingFinish"]

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_INTERRUPTED = 128 + signal.SIGINT

# What a run leaves in its last row, and a run that goes on from there takes out again.
_END_RECORDS = ("training_finish_requested", "training_finished", "got_exception")


class MainLoop(NamedKeywords):
    """Train: the stream gives batches, the algorithm processes them, the extensions do the rest.

    Parameters
    ----------
    algorithm : TrainingAlgorithm
        What has `initialize()` and `process_batch(batch)`.
    data_stream : DataStream
        What has `get_epoch_iterator(as_dict=True)`, which gives the batches of the next epoch, or
        raises ``StopIteration`` when there are no more epochs. If it also takes `epoch`, it is
        asked for the epoch with the number of epochs done.
    model : Model, optional
        Whose parameters are trained; checkpoints name them by it.
    log : TrainingLogBase, optional
        Where records go.
    log_backend : {'python', 'sqlite', 'jsonlines'}, optional
        What kind of log to make if none is given. By default the setting ``log_backend``.
    extensions : list of TrainingExtension, optional
        What is called at each stage of training.

    Attributes
    ----------
    epoch_iterator : iterator or None
        The position in the present epoch; None between epochs.
    exit_status : int
        How the latest run ended; see the top of this module.
    times : dict of str to float
        Seconds spent in ``initialization``, ``read_data`` and ``train``, of all runs together.
    restoring : bool
        Whether `restore` is at work: `before_training` is then called for a loop that is about to
        get the state of a checkpoint.

    Examples
    --------
    >>> from aesara import tensor
    >>> from bricks.algorithms import GradientDescent, Scale
    >>> from bricks.utils import shared_floatx
    >>> from extensions import FinishAfter
    >>> from fuel_data.datasets import IterableDataset
    >>> from fuel_data.streams import DataStream
    >>> x, mean = tensor.scalar("x"), shared_floatx(0.0, name="mean")
    >>> algorithm = GradientDescent((mean - x) ** 2, [mean], step_rule=Scale(0.25))
    >>> stream = DataStream(IterableDataset({"x": [2.0, 2.0]}))
    >>> main_loop = MainLoop(algorithm, stream, extensions=[FinishAfter(after_n_epochs=2)])
    >>> main_loop.run()
    >>> main_loop.status["iterations_done"], mean.get_value().item()
    (4, 1.875)
    """

    # Whether a batch is being drawn; an exception from outside leaves it so.
    _drawing = False

    def __init__(
        self,
        algorithm: Any,
        data_stream: Any,
        model: Any = None,
        log: TrainingLogBase | None = None,
        log_backend: str | None = None,
        extensions: Iterable[Any] | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.data_stream = data_stream
        self.model = model
        self.log = make_log(log_backend) if log is None else log
        self.extensions = list(extensions or [])
        self.epoch_iterator: Any = None
        self.exit_status = 0
        self.times = {"initialization": 0.0, "read_data": 0.0, "train": 0.0}
        self.restoring = False
        # Digests of the compiled step when a checkpoint was written, until the next step is made.
        self.expected_steps: dict[str, str] | None = None
        # Hyperparameters as the script gave them, before anything changed them.
        self.script_values: Mapping[str, Any] = {}
        for flag in ("training_started", "epoch_started", "received_first_batch"):
            self.status.setdefault(flag, False)
        self._clear_interrupts()
        # Drawn and not yet processed: if the step fails or is interrupted, it is not lost.
        self._batch: Any = None
        self._initialized = False
        self._prepared: list[Any] = []
        self._running = False
        self._signals = Signals()
        self._handlers: dict[str, list[Callable]] = {}

    def __getstate__(self) -> dict[str, Any]:
        passing = {"_handlers": {}, "_running": False, "_signals": Signals(), "restoring": False}
        return self.__dict__ | passing

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of older versions lack it.
        self.__dict__.update({"script_values": {}} | state)

    def __repr__(self) -> str:
        names = ", ".join(str(extension.name) for extension in self.extensions)
        return (
            f"<MainLoop of {type(self.algorithm).__name__}: {self.status['iterations_done']} "
            f"batches and {self.status['epochs_done']} epochs done; extensions: {names or 'none'}>"
        )

    @property
    def status(self) -> dict[str, Any]:
        """The status of the run, which is kept in the log."""
        return self.log.status

    @property
    def iteration_state(self) -> tuple[Any, Any]:
        """The stream, and the position in its present epoch."""
        return self.data_stream, self.epoch_iterator

    @iteration_state.setter
    def iteration_state(self, state: tuple[Any, Any]) -> None:
        self.data_stream, self.epoch_iterator = state

    @property
    def batch_in_flight(self) -> bool:
        """Whether a batch has been drawn that is not processed yet.

        The position of the stream is then ahead of the parameters, and no checkpoint is made.
        """
        return self._batch is not None or self._has_lost_batch()

    def _has_lost_batch(self) -> bool:
        """Whether an exception came after a batch was drawn and before it was noted."""
        drawing = self._drawing and self._batch is None
        return drawing and getattr(self.epoch_iterator, "index", 0) == self._done_in_epoch() + 1

    def _done_in_epoch(self) -> int:
        return self.status["iterations_done"] - ([0] + self.status["_epoch_ends"])[-1]

    def _draw_lost_batch_again(self) -> None:
        stream, epoch = self.data_stream, self.status["epochs_done"]
        if self._has_lost_batch() and takes_number(stream):
            self.epoch_iterator = open_epoch(stream, epoch, num_done=self._done_in_epoch())
        self._drawing = False

    def find_extension(self, name: str) -> Any:
        """Find an extension by its name, also inside of composite ones.

        Parameters
        ----------
        name : str
            The name.

        Returns
        -------
        TrainingExtension
            The only extension with this name.

        Raises
        ------
        ValueError
            If none or several have it.
        """
        extensions = list(flat(self.extensions))
        found = [extension for extension in extensions if extension.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(f"MainLoop.find_extension: {len(found)} are named {name!r}.")
        near = nearest_name(name, {str(extension.name) for extension in extensions})
        raise ValueError(f"MainLoop.find_extension: no extension is named {name!r}.{near}")

    def ordered_extensions(self) -> list[Any]:
        """Give the extensions in the order in which they are called.

        Returns
        -------
        list of TrainingExtension
            The list as it is, but those that read records come after those that write them, and
            those with `runs_last` after the last one that is neither such a one nor one that
            `only_reports`.
        """
        return in_order(self.extensions)

    def extensions_changed(self) -> None:
        """Look again at which extensions want which callbacks.

        `SimpleExtension` calls it when it gets new conditions; call it after `extensions` was
        changed while the loop runs.
        """
        if self._handlers:
            self._find_handlers()

    def run(
        self,
        resume: str | os.PathLike[str] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        ignore: Iterable[str] = (),
    ) -> None:
        """Train, from the beginning or from where training was stopped.

        Parameters
        ----------
        resume : 'auto' or path, optional
            A checkpoint to restore first. ``'auto'`` takes the one that the `Checkpoint` extension
            writes, if it is there already, and begins anew if not: the same command starts a run
            and goes on with it. A loop that has done batches already just goes on.
        checkpoint : path, optional
            The file that ``'auto'`` looks for, instead of that of the extension.
        ignore : iterable of str
            As for `restore`.

        Raises
        ------
        ValueError
            If an epoch has no batches, or ``'auto'`` does not know where to look.
        TypeError
            If `resume` is neither a path nor ``'auto'``.
        RuntimeError
            If this loop is running already, or another run writes checkpoints to the same file.
        Exception
            What algorithm, stream or extensions raise.
        """
        if self._running:
            raise RuntimeError("MainLoop.run: this loop is running already.")
        with claimed(self.checkpoint_paths()):
            if resume is not None:
                self._restore_if_there(resume, checkpoint, ignore)
            self._run()

    def _run(self) -> None:
        self._running = True
        self.exit_status = 0
        self._signals = Signals()
        # Graphs are deep, and pickling follows them.
        depth = max(sys.getrecursionlimit(), config.recursion_limit)
        with self._signals, change_recursion_limit(depth):
            try:
                self._prepare()
                self._go_on_if_begun()
                with suppress(TrainingFinish):
                    self._train()
                self._finish()
            except BaseException as error:
                self._fail(error)
                raise
            finally:
                self._running = False
                self._handlers = {}

    def restore(self, path: str | os.PathLike[str], ignore: Iterable[str] = ()) -> None:
        """Put the state of a checkpoint into this loop, by name, unpickling nothing.

        The loop is one that a script has built as it did when the checkpoint was written. `run`
        then goes on from there, and what is changed before it, such as a learning rate, holds.
        `before_training` is called, and the algorithm initialized, if that was not done before.

        Parameters
        ----------
        path : path
            The checkpoint.
        ignore : iterable of str
            Names, or patterns with ``*``, of what shall stay as it is in this loop. With
            ``'stream'``, the epoch that had begun begins anew, with the stream of this loop; with
            ``'log'``, a new log begins, with the counts of batches and epochs of the old one.

        Raises
        ------
        FileNotFoundError
            If there is no such file; the nearest name is named.
        DamagedArchive, ForeignFile
            If the file cannot be used.
        ValueError
            If names are missing, unexpected or of another shape; nothing is changed then.
        """
        from bricks.archive import Archive
        from bricks.provenance import expected_steps
        from bricks.serialization import load_state
        from bricks.state import set_state

        try:
            state = load_state(path)
        except FileNotFoundError as error:
            way_out = "`run(resume='auto')` begins anew if there is none yet."
            raise FileNotFoundError(f"MainLoop.restore: {error} {way_out}") from None
        with Archive(path) as archive:
            manifest = archive.manifest
        self.restoring = True
        try:
            self._prepare()
        finally:
            self.restoring = False
        set_state(self, state, ignore=ignore)
        self._batch, self._drawing = None, False
        self.expected_steps = expected_steps(manifest)
        taken = get_hyperparameters(self.algorithm)
        self.script_values = compare_with_script(self.script_values, manifest, taken)
        self.status["training_started"] = True
        logger.info("Restored %s, after %d batches.", path, self.status["iterations_done"])

    def state_is_lost(self) -> bool:
        """Tell whether values on the device were lost in a step that failed.

        Returns
        -------
        bool
            If so, this loop cannot be saved; `restore` puts the values of a checkpoint back.
        """
        xla = sys.modules.get("bricks.xla")
        if xla is None:
            # Nothing was compiled in this process, so nothing was given away to a step.
            return False
        from bricks.state import named_variables

        parts = named_variables(self).values()
        return any(xla.state_is_lost(list(variables.values())) for variables in parts)

    def last_checkpoint(self) -> str | None:
        """Name the latest checkpoint that an extension has written or restored.

        Returns
        -------
        str or None
            Its path; None if there is none.
        """
        there = [path for path in self.checkpoint_paths() if os.path.exists(path)]
        return max(there, key=os.path.getmtime, default=None)

    def checkpoint_paths(self) -> list[str]:
        """Name the files that extensions write checkpoints to.

        Returns
        -------
        list of str
            Their paths; empty if no extension saves this loop.
        """
        paths = (getattr(e, "checkpoint_path", None) for e in flat(self.extensions))
        return [os.fspath(path) for path in paths if path is not None]

    def _restore_if_there(
        self,
        resume: str | os.PathLike[str],
        checkpoint: str | os.PathLike[str] | None,
        ignore: Iterable[str],
    ) -> None:
        if not isinstance(resume, str | os.PathLike):
            raise TypeError(
                "MainLoop.run: `resume` must be 'auto', the path of a checkpoint, or None; got "
                f"{resume!r}. `resume='auto'` begins a run and goes on with it."
            )
        if resume != "auto":
            self.restore(resume, ignore)
            return
        if self.status["iterations_done"]:
            return
        if checkpoint is None and not self.checkpoint_paths():
            raise ValueError(
                "MainLoop.run: `resume='auto'` needs a `Checkpoint` extension that writes the "
                "checkpoint, or `checkpoint=` with its path."
            )
        path = self.last_checkpoint() if checkpoint is None else checkpoint
        if path is None or not os.path.exists(path):
            logger.info("There is no checkpoint to resume from: training begins anew.")
            return
        self.restore(path, ignore)

    def _prepare(self) -> None:
        """Introduce extensions that are new here, and initialize the algorithm if it is not."""
        new = [e for e in self.ordered_extensions() if not any(e is p for p in self._prepared)]
        for extension in new:
            extension.main_loop = self
        if new:
            check_records(self.extensions)
        start = perf_counter()
        if not self._initialized:
            self.script_values = get_hyperparameters(self.algorithm)
        if not self._initialized and hasattr(self.model, "check_sanity"):
            self.model.check_sanity(self.algorithm)
        for extension in new:
            handler = handler_of(extension, "before_training")
            if handler is not None:
                handler()
        if not self._initialized:
            self.algorithm.initialize()
            self._check_sources()
        self._initialized = True
        self._prepared = list(self.extensions)
        self.status["training_started"] = True
        self.times["initialization"] += perf_counter() - start
        self._find_handlers()

    def _check_sources(self) -> None:
        sources = getattr(self.data_stream, "sources", None)
        if sources is not None and hasattr(self.algorithm, "check_sources"):
            self.algorithm.check_sources(sources)

    def _find_handlers(self) -> None:
        times = self.times if config.profile else None
        self._handlers = find_handlers(self.ordered_extensions(), times)

    def _call(self, callback: str, *args: Any) -> None:
        for handler in self._handlers[callback]:
            handler(*args)

    def _go_on_if_begun(self) -> None:
        self._clear_interrupts()
        if not self.status["iterations_done"]:
            return
        self.log.resume()
        self.log.forget(_END_RECORDS)
        self._call("on_resumption")

    def _train(self) -> None:
        self._draw_lost_batch_again()
        stopped = self._must_stop(epoch_ended=False)
        while not stopped:
            if not self.status["epoch_started"] and not self._begin_epoch():
                return
            if not self._process_batches():
                return
            self._end_epoch()
            stopped = self._must_stop(epoch_ended=True)

    def _begin_epoch(self) -> bool:
        try:
            self.epoch_iterator = open_epoch(self.data_stream, self.status["epochs_done"])
        except StopIteration:
            logger.info("The stream has no more epochs: training ends.")
            return False
        self.status["received_first_batch"] = False
        self.status["epoch_started"] = True
        self._call("before_epoch")
        return True

    def _process_batches(self) -> bool:
        """Process the rest of the epoch; tell whether it came to its end."""
        times = self.times
        while not self._must_stop(epoch_ended=False):
            start = perf_counter()
            if self._batch is None:
                self._drawing = True
                try:
                    self._batch = next(self.epoch_iterator)
                except StopIteration:
                    self._drawing = False
                    return True
                self._drawing = False
            batch = self._batch
            self.status["received_first_batch"] = True
            read = perf_counter()
            for handler in self._handlers["before_batch"]:
                handler(batch)
            begun = perf_counter()
            self._do_step(batch)
            times["read_data"] += read - start
            times["train"] += perf_counter() - begun
            for handler in self._handlers["after_batch"]:
                handler(batch)
            if self._signals.held:
                self._signals.let_go()
        return False

    def _do_step(self, batch: Any) -> None:
        """Process a batch and count it: both or, if it fails, neither."""
        signals = self._signals
        signals.in_step = True
        try:
            self.algorithm.process_batch(batch)
            self._batch = None
            self.status["iterations_done"] += 1
            if self.expected_steps is not None:
                self._compare_steps(self.expected_steps)
        finally:
            signals.in_step = False

    def _compare_steps(self, expected: Mapping[str, str]) -> None:
        """Warn if the first step after a checkpoint was restored is another program than before."""
        from bricks.provenance import warn_of_another_step

        self.expected_steps = None
        warn_of_another_step(expected, self.algorithm)

    def _end_epoch(self) -> None:
        status = self.status
        status["epoch_started"] = False
        self.epoch_iterator = None
        if not status["received_first_batch"]:
            raise ValueError(
                "MainLoop: the stream gave an epoch without a single batch. Its data set may be "
                "empty, smaller than one batch whose rest is dropped, or an iterator that can be "
                "read only once."
            )
        status["epochs_done"] += 1
        status["_epoch_ends"].append(status["iterations_done"])
        self._call("after_epoch")
        if status["epochs_done"] == 2:
            warn_of_missing_records(self.extensions, self.log)
        self.log.flush()

    def _must_stop(self, epoch_ended: bool) -> bool:
        if self._signals.received:
            self._note_interrupts()
        status = self.status
        if status["batch_interrupt_received"]:
            return True
        if epoch_ended and status["epoch_interrupt_received"]:
            return True
        row = self.log.peek(status["iterations_done"])
        return bool(row.get("training_finish_requested", False))

    def _note_interrupts(self) -> None:
        signals, status = self._signals, self.status
        signals.received = False
        status["epoch_interrupt_received"] = signals.interrupts > 0
        status["batch_interrupt_received"] = signals.interrupts > 1 or signals.terminated
        terminated = 128 + signals.terminated_by
        self.exit_status = terminated if signals.terminated else EXIT_INTERRUPTED
        if signals.terminated:
            name = signals.terminated_by.name
            logger.warning("%s received: training ends after this batch.", name)
        elif signals.interrupts > 1:
            logger.warning(
                "Interrupted again: training ends after this batch. The next one stops it at once."
            )
        else:
            logger.warning(
                "Interrupted: training ends after this epoch. Interrupt again to end it after the "
                "batch."
            )
        self._call("on_interrupt")

    def _clear_interrupts(self) -> None:
        self.status["epoch_interrupt_received"] = False
        self.status["batch_interrupt_received"] = False

    def _finish(self) -> None:
        if self.status["epochs_done"] < 2:
            warn_of_missing_records(self.extensions, self.log)
        self.log.current_row["training_finished"] = True
        self._call("after_training")
        self.log.flush()
        if config.profile:
            print_times(self.times)

    def _fail(self, error: BaseException) -> None:
        """Tell the extensions of an exception, whatever else goes wrong meanwhile."""
        self._signals.put_back()
        self.exit_status = EXIT_FAILED
        trace = "".join(traceback.format_exception(error))
        _attempt("noting the exception in the log", self._note_exception, trace)
        _attempt("looking for lost values", self._note_lost_state, error)
        for handler in self._handlers.get("on_error", ()):
            _attempt("an extension's on_error", handler, error)
        _attempt("writing the log", self.log.flush)

    def _note_exception(self, trace: str) -> None:
        self.log.current_row["got_exception"] = trace

    def _note_lost_state(self, error: BaseException) -> None:
        if self.state_is_lost():
            last = self.last_checkpoint()
            way_out = f"The last checkpoint is {last}." if last else "There is no checkpoint."
            error.add_note(
                "MainLoop: this stopped a step that had been given the memory of the parameters "
                f"and buffers; their values are lost, and no checkpoint is written. {way_out} "
                "`main_loop.restore(path)` puts its values back, also in this process."
            )


def _attempt(what: str, function: Callable, *args: Any) -> None:
    try:
        function(*args)
    except Exception:
        logger.exception("MainLoop: %s failed too, after the exception that ended training.", what)
