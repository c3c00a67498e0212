"""Extensions of runs that are killed: they say where the run is, and wait to be told to go on."""

import hashlib
import sys

import numpy

from extensions import TrainingExtension


class Lockstep(TrainingExtension):
    """Prints each batch that was done, and each pickling of the loop, and waits for a line.

    So whoever follows the run can kill it between two lines, and it never ends by itself before.
    """

    def after_batch(self, batch):
        self._wait("batch")

    def __getstate__(self):
        # Called when a checkpoint is being written, after its arrays and before its end.
        self._wait("saving")
        return self.__dict__

    def _wait(self, event):
        print(event, self.main_loop.status["iterations_done"], flush=True)
        if not sys.stdin.readline():
            raise EOFError("nobody follows this run any more")


class BatchDigests(TrainingExtension):
    """Logs a digest of each batch."""

    def after_batch(self, batch):
        self.main_loop.log.current_row["batch"] = digest_of(batch)


def digest_of(batch):
    """Give a digest of names, types, shapes and bits of a batch."""
    digest = hashlib.sha256()
    for name in sorted(batch):
        array = numpy.ascontiguousarray(batch[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
