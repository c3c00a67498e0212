"""Streams for the tests of the server, built by name."""

import contextlib
import hashlib
import os
import signal
import sys
import time

import numpy

from fuel_data.datasets import IndexableDataset
from fuel_data.datasets.hdf5 import H5PYDataset
from fuel_data.schemes import SequentialScheme, ShuffledScheme
from fuel_data.server import serve
from fuel_data.streams import DataStream, ServerDataStream
from fuel_data.transformers import Mapping, Merge

VARIABLE = 1


def counted(num_examples=10, batch_size=2, seed=1):
    dataset = IndexableDataset(
        {"x": numpy.arange(2 * num_examples).reshape(-1, 2), "y": numpy.arange(num_examples)},
        axis_labels={"x": ("batch", "feature"), "y": ("batch",)},
    )
    return DataStream(dataset, iteration_scheme=ShuffledScheme(num_examples, batch_size, seed=seed))


def in_order(num_examples=10, batch_size=2):
    dataset = IndexableDataset({"x": numpy.arange(num_examples)})
    return DataStream(dataset, iteration_scheme=SequentialScheme(num_examples, batch_size))


def of_another_server(address):
    return ServerDataStream(address=address)


def _noisy(batch, rng):
    # Some work, so that a kill falls into it.
    seed = bytes(8)
    for _ in range(1000):
        seed = hashlib.sha256(seed).digest()
    return (batch[0] + rng.normal(size=batch[0].shape), *batch[1:])


def random(path=None, load_in_memory=True):
    stream = counted(100, 3)
    if path is not None:
        dataset = H5PYDataset(path, which_sets=("train",), load_in_memory=load_in_memory)
        stream = DataStream(dataset, iteration_scheme=ShuffledScheme(100, 3, seed=1))
    return Mapping(stream, _noisy, random=True, seed=3)


def chained(is_served=True, **arguments):
    below = serve(f"{__file__}:random", **arguments) if is_served else random(**arguments)
    return Mapping(below, _noisy, random=True, seed=3)


def with_generator(seed=4):
    scheme = ShuffledScheme(10, 2, rng=numpy.random.RandomState(seed))
    return DataStream(IndexableDataset({"x": numpy.arange(10)}), iteration_scheme=scheme)


class Noise:
    """A function that draws from a generator of its own for each batch."""

    def __init__(self, seed):
        self.rng = numpy.random.RandomState(seed)

    def __call__(self, batch):
        return (batch[0] + self.rng.normal(size=batch[0].shape),)


def noise(seed=4):
    return Mapping(in_order(), Noise(seed))


def sharing_a_generator():
    scheme = ShuffledScheme(10, 2, rng=numpy.random.RandomState(4))
    shuffled = DataStream(IndexableDataset({"y": numpy.arange(10)}), iteration_scheme=scheme)
    above = Noise(4)
    above.rng = scheme.rng
    return Merge([Mapping(in_order(), above), shuffled])


def _fail_at_six(batch):
    if 6 in batch[0]:
        raise ZeroDivisionError("the sixth is bad")
    return batch


def failing():
    return Mapping(in_order(), _fail_at_six)


def _leave_at_six(batch):
    if 6 in batch[0]:
        sys.exit("leaving")
    return batch


def leaving():
    return Mapping(in_order(), _leave_at_six)


def _die_at_six(batch):
    if 6 in batch[0]:
        print("about to die", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


def dying():
    return Mapping(in_order(), _die_at_six)


def _die_at_two(batch):
    if 2 in batch[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


def dying_at_once():
    return Mapping(in_order(), _die_at_two)


def _hang_at_six(batch):
    if 6 in batch[0]:
        time.sleep(600)
    return batch


def slow(go_on):
    while not os.path.exists(go_on):
        time.sleep(0.01)
    return in_order()


def hanging():
    return Mapping(in_order(), _hang_at_six)


def clings_to_life(sign):
    with open(sign, "w"):
        pass
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(600)


def modules():
    names = sorted({name.partition(".")[0] for name in sys.modules})
    return IndexableDataset({"name": numpy.array(names)}).get_example_stream()


def no_stream():
    return [1, 2, 3]


def needs(path):
    raise KeyError(path)


def printing_and_failing(num_lines):
    for number in range(num_lines):
        print("line", number, flush=True)
    raise ValueError("".join(f"cause {number}\n" for number in range(num_lines)))
