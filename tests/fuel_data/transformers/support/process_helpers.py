"""Functions that a process in the background can import."""

import os


def with_process(batch):
    return (batch[0] * 0 + os.getpid(), *batch[1:])


def fails_at_six(batch):
    if 6 in batch[1]:
        raise KeyError("six")
    return batch
